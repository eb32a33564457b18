"""The tokenizer: one subword vocabulary for both languages, lossless on any Unicode text.

It is sentencepiece's BPE without normalisation: all whitespace is kept, and characters without a piece are spelt in
bytes. With inline case, capitals are marks of their own (casing.py). The tokenizer of an imported model is its own: it
may have two vocabularies, and normalise text.
"""

import copy
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import sentencepiece

from dragoman.config import Casing
from dragoman.data import imported_tokenizer
from dragoman.data.casing import MARK_PIECES, InlineCase
from dragoman.data.corpus import CHARACTERS_PER_TOKEN
from dragoman.data.language_codes import languages_of, same_language
from dragoman.data.piece_codec import PieceCodec, PlainCodec, load_sentencepiece, prepared
from dragoman.errors import DataError, UsageError
from dragoman.files import write_atomically
from dragoman.run_directory import CLEANING, TOKENIZER, RunDirectory

# The share of characters in the text that get pieces; rarer ones are spelt in bytes: full coverage would spend pieces
# on every stray character of a web crawl. The lower shares are for a large alphabet in a small vocabulary;
# sentencepiece allows none below 0.98.
_COVERAGES = (0.9999, 0.99, 0.98)


def choose_vocab_size(num_characters: int) -> int:
    """Chooses the number of pieces for a training text with so many characters, counted on both sides.

    It grows with the cube root, through sizes that are known to work: 8,000 for Tatoeba's 11 million characters of
    short sentences, and the paper's 37,000 for the 1.2 billion of WMT14 English-German. Multi30k's 4 million get 5,700.
    """
    hundreds: int = round(0.36 * num_characters ** (1 / 3))
    return min(37_000, max(1_000, 100 * hundreds))


class Tokenizer:
    """Turns text into token ids and back. Source and target have one vocabulary; in imported models it can be two."""

    def __init__(self, model: bytes, origin: str = "tokenizer") -> None:
        """model: a sentencepiece model, or the archive of an imported model's tokenizer."""
        self.model_bytes = model
        self.digest = hashlib.sha256(model).hexdigest()
        self.suppressed: tuple[int, ...] = ()  # ids that a search must never choose
        self.ends_source = True  # the end symbol comes after every source
        self._given: tuple[int, ...] = ()  # what every target begins with
        self.files: Mapping[str, bytes] = {}  # of an imported model's tokenizer, by their own names
        self.case_marks: Mapping[str, int] = {}  # piece and id of each mark of inline case; none: plain casing
        self._language_ids: Mapping[str, int] = {}
        self._source_prefix: tuple[int, ...] = ()
        if model.startswith(imported_tokenizer.MAGIC):
            self._take_imported(imported_tokenizer.unpack(model, origin))
        else:
            self._take_own(load_sentencepiece(model, origin), origin)
        self.vocab_size = len(self._target.pieces)
        self.source_vocab_size = len(self._source.pieces)
        self.unk_id, self.source_unk_id = self._target.unk_id, self._source.unk_id
        self.start_ids: tuple[int, ...] = (self.bos_id, *self._given)  # what the decoder is fed before the first token

    def _take_own(self, model: sentencepiece.SentencePieceProcessor, origin: str) -> None:
        self._own: sentencepiece.SentencePieceProcessor | None = model
        self._plain = PlainCodec(model)
        self._source: PieceCodec = self._plain
        self._target: PieceCodec = self._plain
        self.case_marks = self._plain.case_marks
        self.eos_id: int = model.eos_id()
        if self.eos_id < 0:
            raise DataError(f"{origin}: the sentencepiece model has no end symbol; train it with an eos_id")
        bos_id, pad_id = model.bos_id(), model.pad_id()
        # Some models lack these two. The end symbol can begin a sentence as well as any other, and the id of the
        # padding does not matter: it is masked by length.
        self.bos_id: int = bos_id if bos_id >= 0 else self.eos_id
        self.pad_id: int = pad_id if pad_id >= 0 else self.eos_id

    def _take_imported(self, imported: imported_tokenizer.ImportedTokenizer) -> None:
        about = imported.about
        self._own = None
        self.files = imported.files
        self._source, self._target = imported.source, imported.target
        self.bos_id, self.eos_id, self.pad_id = about.bos_id, about.eos_id, about.pad_id
        self.suppressed, self._language_ids = about.suppressed, about.languages
        self.ends_source, self._given = about.ends_source, about.given

    @classmethod
    def learn(
        cls,
        sentences: Iterable[str],
        vocab_size: int,
        tags: Sequence[str] = (),
        casing: Casing = "plain",
        split_digits: bool = False,
    ) -> Self:
        """Learns a vocabulary of `vocab_size` pieces: fewer if the text has not so many, more if its alphabet needs
        them; 0 chooses the size from the amount of text. Each of the `tags` becomes a piece. casing: inline gives
        capitals marks of their own. split_digits: no piece has a digit and anything else.

        The text is held in memory: the caller limits it.
        """
        inline = InlineCase(tags) if casing == "inline" else None
        lines = [prepared(sentence, inline) for sentence in sentences]
        symbols = [*(f"▁{tag}" for tag in tags), *(MARK_PIECES if inline else ())]
        wanted = vocab_size or choose_vocab_size(sum(map(len, lines)))
        for coverage in _COVERAGES:
            try:
                return cls(_learn(iter(lines), wanted, coverage, symbols, split_digits))
            except RuntimeError as error:
                too_small = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
                if too_small is None:
                    raise DataError(
                        f"no vocabulary can be learned from {len(lines):,} lines ({str(error).strip()}); "
                        f"give more text, in lines of at most 4,192 bytes"
                    ) from None
                smallest = int(too_small[1])
        return cls(_learn(iter(lines), smallest, _COVERAGES[-1], symbols, split_digits))

    @classmethod
    def load(cls, model: str | Path | bytes) -> Self:
        """Loads a tokenizer from a file or from its content."""
        if isinstance(model, bytes):
            return cls(model)
        try:
            return cls(Path(model).read_bytes(), str(model))
        except OSError as error:
            raise DataError(f"{model}: the tokenizer cannot be read ({error.strerror}); check the path") from None

    def save(self, path: Path) -> None:
        """Writes the model in one step: a reader finds the whole file or none."""
        write_atomically(path, self.model_bytes)

    @property
    def is_imported(self) -> bool:
        """Tells whether this is the tokenizer of an imported model."""
        return self._own is None

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes source texts, without start or end symbols; many of them on all cores. The language token of the
        source comes first, where a model has such; a text without tokens has none."""
        ids = self._source.encode_batch(texts)
        return [[*self._source_prefix, *one] if one else [] for one in ids] if self._source_prefix else ids

    def encoder_ids(self, ids: Sequence[int]) -> list[int]:
        """What the encoder reads of a source: its tokens and the end symbol, or its tokens alone where the model was
        trained so. Nothing is read as an end."""
        return [*ids, self.eos_id] if self.ends_source or not ids else list(ids)

    def encode_target(self, text: str) -> list[int]:
        return self._target.encode_batch([text])[0]

    def encode_target_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes target texts, without what `start_ids` says and without the end symbol."""
        return self._target.encode_batch(texts)

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Encodes pairs as a model is trained with them: the target begins with its language token, where a model has
        such. A side without tokens stays empty."""
        before = self.start_ids[1:]
        sources = self.encode_batch([source for source, _ in pairs])
        targets = self.encode_target_batch([target for _, target in pairs])
        return [(s, [*before, *t] if before and t else t) for s, t in zip(sources, targets, strict=True)]

    def normalised_batch(self, texts: Sequence[str]) -> list[str]:
        """Gives the texts as sentencepiece normalises them before it looks for pieces; a space becomes ▁."""
        normalised: list[str] = self._own_model.normalize([self._plain.prepared(text) for text in texts])
        return normalised

    def merge_ranks(self) -> dict[str, tuple[float, int]]:
        """Maps each piece that BPE begins with or merges to its rank (the lowest is merged first) and its id."""
        model = self._own_model
        special = (model.is_control, model.is_unknown, model.is_unused, model.is_byte)
        return {
            piece: (-model.get_score(token), token)
            for token, piece in enumerate(self._source.pieces)
            if not any(is_one(token) for is_one in special)
        }

    @property
    def _own_model(self) -> sentencepiece.SentencePieceProcessor:
        if self._own is None:
            raise DataError("an imported model has its own tokenizer, which cuts words in one way only")
        return self._own

    def is_alphabet(self) -> bool:
        """Tells whether all pieces are single characters: the smallest vocabulary that a text allows."""
        return not self.is_imported and all(len(piece) == 1 or piece in self.case_marks for piece in self.merge_ranks())

    def spelt(self, character: str) -> list[int]:
        """The ids for a character without a piece: its bytes, or the unknown symbol if the vocabulary has no bytes."""
        names = [f"<0x{byte:02X}>" for byte in character.encode()]
        ids = [self._own_model.piece_to_id(name) for name in names]
        return ids if all(map(self._own_model.is_byte, ids)) else [self.unk_id]

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decodes target ids to texts. Special symbols are left out; bytes that are not UTF-8 become U+FFFD."""
        return self._target.decode_batch([[int(i) for i in ids] for ids in batch])

    def decode_source(self, ids: Iterable[int]) -> str:
        return self.decode_source_batch([ids])[0]

    def decode_source_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decodes source ids to texts, likewise."""
        return self._source.decode_batch([[int(i) for i in ids] for ids in batch])

    @property
    def languages(self) -> list[str]:
        """The target languages that can be asked for. Empty for a model with one, which needs not be asked."""
        if self.has_language_tokens:
            return sorted(self._language_ids)
        tags = (re.fullmatch(r"▁?>>(.+)<<", piece) for piece in self._source.pieces if piece.endswith("<<"))
        return sorted(tag[1] for tag in tags if tag is not None)

    @property
    def has_language_tokens(self) -> bool:
        """Tells whether the languages are tokens that are fed before source and target, and not tags in the source."""
        return bool(self._language_ids)

    @property
    def source_languages(self) -> list[str]:
        """The source languages that can be chosen. Empty for a model that needs not be told."""
        return sorted(self._language_ids)

    def for_languages(self, source: str | None, target: str | None) -> Self:
        """The same tokenizer with these languages chosen, where the model has language tokens; else itself. None
        leaves the choice as it is."""
        if not self.has_language_tokens:
            return self
        chosen = copy.copy(self)
        if source is not None:
            chosen._source_prefix = (self._language_id(source),)
        if target is not None:
            chosen.start_ids = (self.bos_id, self._language_id(target))
        return chosen

    @property
    def chosen_languages(self) -> tuple[str | None, str | None] | tuple[()]:
        """The source and the target language that were chosen, None for one that was not; empty for a model without
        language tokens."""
        if not self.has_language_tokens:
            return ()
        codes = {token: code for code, token in self._language_ids.items()}
        source, target = self._source_prefix, self.start_ids[1:]
        return codes[source[0]] if source else None, codes[target[0]] if target else None

    def _language_id(self, language: str) -> int:
        """The token of a language, by the model's own code for it or by another: en is NLLB's eng_Latn."""
        known = self._language_ids
        plain = language.lower().replace("_", "-")
        found = [code for code in known if code.lower().replace("_", "-") == plain]
        found = found or [code for code in known if same_language(code, language)]
        if len(found) != 1:
            able = f"can be {' or '.join(sorted(found))}" if found else f"is none of {', '.join(sorted(known))}"
            raise UsageError(f"language {language} {able} of this model; give one of them")
        return known[found[0]]

    def piece(self, token: int) -> str:
        """The text of a target token, for display: a leading space is written ▁."""
        return self._target.pieces[token]

    def names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The texts of target tokens, likewise."""
        return tuple(map(self._target.pieces.__getitem__, ids))

    def source_piece(self, token: int) -> str:
        """The text of a source token, likewise."""
        return self._source.pieces[token]


def train_model(lines: Iterable[str], vocab_size: int, character_coverage: float = 1.0, **settings: Any) -> bytes:
    """Trains a sentencepiece model with our ids of the special symbols, which leaves text and whitespace unchanged."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        character_coverage=character_coverage,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
        **settings,
    )
    return model.getvalue()


def _learn(
    sentences: Iterator[str], vocab_size: int, coverage: float, symbols: Sequence[str], split_digits: bool
) -> bytes:
    return train_model(
        sentences,
        vocab_size,
        coverage,
        model_type="bpe",
        byte_fallback=True,
        max_sentencepiece_length=CHARACTERS_PER_TOKEN,
        user_defined_symbols=symbols,
        **({"split_digits": True} if split_digits else {}),  # a model says all that it was trained with
    )


def load_tokenizer(run_directory: Path) -> Tokenizer:
    """Loads a run's tokenizer and checks that it is the one that its ids and weights were made with. Where languages
    are tokens, those of the run are chosen."""
    path, record_path = run_directory / TOKENIZER, run_directory / CLEANING
    tokenizer = Tokenizer.load(path)
    if tokenizer.has_language_tokens and (languages := languages_of(RunDirectory(run_directory))) is not None:
        tokenizer = tokenizer.for_languages(*languages)
    if not record_path.exists():  # a model may be passed on without it
        return tokenizer
    try:
        record = json.loads(record_path.read_text(encoding="utf-8"))
        _, recorded = record["inputs"], record.get("tokenizer")  # older records name none
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{record_path}: damaged; restore it, or give a new --out") from None
    if recorded not in (None, tokenizer.digest):
        raise DataError(f"{path}: not the tokenizer that this run was begun with; restore it, or give a new --out")
    return tokenizer


def shared_tokenizer(run_directories: Sequence[Path], remedy: str) -> Tokenizer:
    """Loads the tokenizer of an ensemble, which all its members must share. `remedy`: what the error advises if they do
    not."""
    first, *others = run_directories
    tokenizer = load_tokenizer(first)
    for other in others:
        if load_tokenizer(other).digest != tokenizer.digest:
            raise DataError(f"{other}: its vocabulary differs from that of {first}; {remedy}")
    return tokenizer
