"""The tokenizer of an imported model: its own files, unchanged, in one archive.

The archive is a zip file without compression, with fixed dates, so that the same files give the same bytes:

tokenizer.json              kind, sizes, special ids, languages
source.spm, target.spm      marian: the sentencepiece models of both sides
vocab.json                  all but nllb: the ids of the pieces
target_vocab.json           marian and sentencepiece: the ids of the target's pieces, where they are not the source's
sentencepiece.bpe.model     m2m100, nllb and sentencepiece: the one sentencepiece model
"""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from dragoman.data.piece_codec import MappedCodec, PieceCodec, load_sentencepiece
from dragoman.errors import DataError

MAGIC = b"PK\x03\x04"
ABOUT, SOURCE_MODEL, TARGET_MODEL = "tokenizer.json", "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY, ONE_MODEL = "vocab.json", "target_vocab.json", "sentencepiece.bpe.model"
MOST_BYTES = 256 * 2**20  # of an archive; those of the largest public models have 10 million
MOST_TOKENS = 2_000_000
_FORMAT = 1
_FAIRSEQ_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")  # the first ids of NLLB; its pieces come after them

ImportedKind = Literal["marian", "m2m100", "nllb", "sentencepiece"]
_FILES: dict[ImportedKind, tuple[set[str], set[str]]] = {  # what must be there, and what may be
    "marian": ({SOURCE_MODEL, TARGET_MODEL, VOCABULARY}, {TARGET_VOCABULARY}),
    "m2m100": ({ONE_MODEL, VOCABULARY}, set()),
    "nllb": ({ONE_MODEL}, set()),
    "sentencepiece": ({ONE_MODEL, VOCABULARY}, {TARGET_VOCABULARY}),
}


@dataclass(frozen=True)
class AboutTokenizer:
    """What the files of a tokenizer do not say themselves."""

    kind: ImportedKind
    vocab_size: int  # tokens of the target
    source_vocab_size: int
    bos_id: int  # what the decoder is fed first
    eos_id: int
    pad_id: int
    unk: str = "<unk>"  # a piece
    suppressed: tuple[int, ...] = ()  # ids that a search must never choose
    languages: Mapping[str, int] = field(default_factory=dict)  # code and id of each language token
    mask_id: int | None = None  # of NLLB's <mask>
    ends_source: bool = True  # the end symbol comes after every source
    given: tuple[int, ...] = ()  # what every target begins with, after the start symbol

    def checked(self) -> "AboutTokenizer":
        """Raises a ValueError if a number is out of its range."""
        if self.kind not in get_args(ImportedKind):
            raise ValueError(f"kind {self.kind!r}")
        for size in (self.vocab_size, self.source_vocab_size):
            if type(size) is not int or not 1 <= size <= MOST_TOKENS:
                raise ValueError(f"a vocabulary of {size!r} tokens")
        for name, tokens in (
            ("decoder_start_token_id", [self.bos_id]),
            ("eos_token_id", [self.eos_id]),
            ("pad_token_id", [self.pad_id]),
            ("the id of <mask>", [] if self.mask_id is None else [self.mask_id]),
            ("bad_words_ids", self.suppressed),
            ("what every target begins with", self.given),
            ("the id of a language", self.languages.values()),
        ):
            for token in tokens:
                if type(token) is not int or not 0 <= token < self.vocab_size:
                    raise ValueError(f"{name} = {token!r}, and the model has {self.vocab_size:,} tokens")
        if type(self.ends_source) is not bool:
            raise ValueError(f"ends_source {self.ends_source!r}")
        return self


@dataclass(frozen=True)
class ImportedTokenizer:
    """The two sides of an imported tokenizer, and what is special in it."""

    about: AboutTokenizer
    files: Mapping[str, bytes]
    source: PieceCodec
    target: PieceCodec


def pack(about: AboutTokenizer, files: Mapping[str, bytes]) -> bytes:
    """Makes the archive of a tokenizer."""
    content = json.dumps({"format": _FORMAT, **asdict(about)}, indent=1, ensure_ascii=False)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, part in ((ABOUT, content.encode()), *sorted(files.items())):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            file.writestr(info, part)
    return archive.getvalue()


def unpack(archive: bytes, origin: str) -> ImportedTokenizer:
    """Reads the archive of a tokenizer; a damaged one is a DataError that names its origin."""
    try:
        files = _read_files(archive)
        values = json.loads(files.pop(ABOUT))
        if values.pop("format") != _FORMAT:
            raise ValueError("written by a newer version")
        values |= {name: tuple(values.get(name, ())) for name in ("suppressed", "given")}
        about = AboutTokenizer(**values).checked()
        needed, allowed = _FILES[about.kind]
        if not needed <= files.keys() <= needed | allowed:
            raise ValueError(f"a tokenizer of kind {about.kind} with the files {', '.join(sorted(files))}")
        return ImportedTokenizer(about, files, *_sides(about, files, origin))
    except (
        zipfile.BadZipFile, zlib.error, struct.error, ValueError, LookupError, TypeError, AttributeError, EOFError,
        OSError, RuntimeError, NotImplementedError, RecursionError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataError(f"{origin}: a damaged tokenizer ({reason}); import the model again") from None


def _read_files(archive: bytes) -> dict[str, bytes]:
    """The files of an archive. None is compressed, so that none is larger than the archive."""
    if len(archive) > MOST_BYTES:
        raise ValueError(f"{len(archive):,} bytes, more than {MOST_BYTES:,}")
    known = {ABOUT, SOURCE_MODEL, TARGET_MODEL, VOCABULARY, TARGET_VOCABULARY, ONE_MODEL}
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        files: dict[str, bytes] = {}
        for info in file.infolist():
            if info.filename not in known or info.filename in files:
                raise ValueError(f"the file {info.filename[:40]!r} does not belong there")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(archive):
                raise ValueError(f"{info.filename} is compressed")
            files[info.filename] = file.read(info)
    return files


def _sides(about: AboutTokenizer, files: Mapping[str, bytes], origin: str) -> tuple[PieceCodec, PieceCodec]:
    """The codecs of both sides."""
    if about.kind in ("marian", "sentencepiece"):
        return _sides_apart(about, files, origin)
    model = load_sentencepiece(files[ONE_MODEL], f"{origin}: {ONE_MODEL}")
    if about.kind == "m2m100":
        ids = read_vocabulary(files[VOCABULARY])
        languages = {f"__{code}__": token for code, token in about.languages.items()}
    else:
        ids = {symbol: token for token, symbol in enumerate(_FAIRSEQ_SYMBOLS)}
        ids |= {model.id_to_piece(token): token + 1 for token in range(3, model.vocab_size())}
        languages = dict(about.languages) | ({} if about.mask_id is None else {"<mask>": about.mask_id})
    unk_id = ids[about.unk]
    specials = {ids.get(symbol, unk_id) for symbol in _FAIRSEQ_SYMBOLS}
    silent = frozenset((*specials, about.eos_id, about.pad_id, *languages.values()))
    pieces = _names(ids | languages, about.vocab_size)
    codec = MappedCodec(model, model, ids, pieces, unk_id, silent, tags_first=False)
    return codec, codec


def _sides_apart(about: AboutTokenizer, files: Mapping[str, bytes], origin: str) -> tuple[PieceCodec, PieceCodec]:
    """The codecs of a tokenizer with a vocabulary for each side, or one for both, beside its sentencepiece models."""
    tags = about.kind == "marian"
    names = (SOURCE_MODEL, TARGET_MODEL) if tags else (ONE_MODEL, ONE_MODEL)
    source, target = (load_sentencepiece(files[name], f"{origin}: {name}") for name in names)
    ids = target_ids = read_vocabulary(files[VOCABULARY])
    if separate := TARGET_VOCABULARY in files:
        target_ids = read_vocabulary(files[TARGET_VOCABULARY])
    pieces = _names(ids, about.source_vocab_size)
    target_pieces = _names(target_ids, about.vocab_size) if separate else pieces
    special = {about.unk, *(target_pieces[token] for token in (about.bos_id, about.eos_id, about.pad_id))}
    # With one vocabulary, transformers joins the target's pieces with the source's sentencepiece model.
    sides = [(source, source, ids, pieces), (target, target if separate else source, target_ids, target_pieces)]
    codecs = (
        MappedCodec(cutting, joining, known, named, known[about.unk], _ids_of(special, known), tags_first=tags)
        for cutting, joining, known, named in sides
    )
    return next(codecs), next(codecs)


def _ids_of(pieces: Iterable[str], ids: Mapping[str, int]) -> frozenset[int]:
    return frozenset(ids[piece] for piece in pieces if piece in ids)


def read_vocabulary(content: bytes) -> dict[str, int]:
    """The ids of the pieces in a vocab.json; a ValueError if it is no such file."""
    values: Any = json.loads(content)
    if not isinstance(values, dict) or any(type(token) is not int for token in values.values()):
        raise ValueError("a vocabulary is not a table of pieces and their ids")
    return values


def _names(ids: Mapping[str, int], size: int) -> list[str]:
    """The piece of each id; an id that nothing has gets a name that no text has."""
    names = [f"<unused-{token}>" for token in range(size)]
    for piece, token in ids.items():
        if not 0 <= token < size:
            raise ValueError(f"the piece {piece[:40]!r} has id {token}, and the model {size} tokens")
        names[token] = piece
    return names
