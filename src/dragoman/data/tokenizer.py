"""The tokenizer: one subword vocabulary for both languages, lossless on any Unicode text.

It is sentencepiece's BPE without normalisation: all whitespace is kept, and characters without a piece are spelt in
bytes. sentencepiece writes a space as U+2581 (▁), so a ▁ in the text itself would come back as a space: it is escaped
here, before the model sees it. Text without ▁ or ␛ has the ids that the plain sentencepiece library gives it.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import sentencepiece

from dragoman.data.corpus import CHARACTERS_PER_TOKEN
from dragoman.errors import DataError
from dragoman.files import write_atomically
from dragoman.run_directory import CLEANING, TOKENIZER

# The share of characters in the text that get pieces; rarer ones are spelt in bytes: full coverage would spend pieces
# on every stray character of a web crawl. The lower shares are for a large alphabet in a small vocabulary;
# sentencepiece allows none below 0.98.
_COVERAGES = (0.9999, 0.99, 0.98)
_FEW = 256  # texts; with more of them, starting threads is worth it
_ESCAPES = {"▁": "␛_", "␛": "␛␛"}
_UNESCAPES = {escaped: character for character, escaped in _ESCAPES.items()}


def choose_vocab_size(num_characters: int) -> int:
    """Chooses the number of pieces for a training text with so many characters, counted on both sides.

    It grows with the cube root, through sizes that are known to work: 8,000 for Tatoeba's 11 million characters of
    short sentences, and the paper's 37,000 for the 1.2 billion of WMT14 English-German. Multi30k's 4 million get 5,700.
    """
    hundreds: int = round(0.36 * num_characters ** (1 / 3))
    return min(37_000, max(1_000, 100 * hundreds))


class Tokenizer:
    """Turns text into token ids and back: a sentencepiece model, and the escaping that makes it lossless."""

    def __init__(self, model: bytes, origin: str = "tokenizer") -> None:
        self.model_bytes = model
        self.digest = hashlib.sha256(model).hexdigest()
        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.LoadFromSerializedProto(model)
            self._pieces: list[str] = self._model.id_to_piece(list(range(self._model.vocab_size())))
        except (RuntimeError, UnicodeDecodeError):
            raise DataError(
                f"{origin}: not a sentencepiece model; give a .model file as sentencepiece writes it"
            ) from None
        self.vocab_size = len(self._pieces)
        self.unk_id: int = self._model.unk_id()
        self.eos_id: int = self._model.eos_id()
        if self.eos_id < 0:
            raise DataError(f"{origin}: the sentencepiece model has no end symbol; train it with an eos_id")
        bos_id, pad_id = self._model.bos_id(), self._model.pad_id()
        # Some models lack these two. The end symbol can begin a sentence as well as any other, and the id of the
        # padding does not matter: it is masked by length.
        self.bos_id: int = bos_id if bos_id >= 0 else self.eos_id
        self.pad_id: int = pad_id if pad_id >= 0 else self.eos_id

    @classmethod
    def learn(cls, sentences: Iterable[str], vocab_size: int, tags: Sequence[str] = ()) -> Self:
        """Learns a vocabulary of `vocab_size` pieces: fewer if the text has not so many, more if its alphabet needs
        them; 0 chooses the size from the amount of text. Each of the `tags` becomes a piece.

        The text is held in memory: the caller limits it.
        """
        escaped = [_escape(sentence) for sentence in sentences]
        wanted = vocab_size or choose_vocab_size(sum(map(len, escaped)))
        for coverage in _COVERAGES:
            try:
                return cls(_learn(iter(escaped), wanted, coverage, tags))
            except RuntimeError as error:
                too_small = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
                if too_small is None:
                    raise DataError(
                        f"no vocabulary can be learned from {len(escaped):,} lines ({str(error).strip()}); "
                        f"give more text, in lines of at most 4,192 bytes"
                    ) from None
                smallest = int(too_small[1])
        return cls(_learn(iter(escaped), smallest, _COVERAGES[-1], tags))

    @classmethod
    def load(cls, model: str | Path | bytes) -> Self:
        """Loads a sentencepiece model from a file or from its content."""
        if isinstance(model, bytes):
            return cls(model)
        try:
            return cls(Path(model).read_bytes(), str(model))
        except OSError as error:
            raise DataError(f"{model}: the tokenizer cannot be read ({error.strerror}); check the path") from None

    def save(self, path: Path) -> None:
        """Writes the model in one step: a reader finds the whole file or none."""
        write_atomically(path, self.model_bytes)

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes texts, without start or end symbols; many of them on all cores."""
        escaped = [_escape(text) for text in texts]
        ids: list[list[int]] = self._model.encode(escaped) if _many(escaped) else list(map(self._model.encode, escaped))
        return ids

    def normalised_batch(self, texts: Sequence[str]) -> list[str]:
        """Gives the texts as sentencepiece normalises them before it looks for pieces; a space becomes ▁."""
        normalised: list[str] = self._model.normalize([_escape(text) for text in texts])
        return normalised

    def merge_ranks(self) -> dict[str, tuple[float, int]]:
        """Maps each piece that BPE begins with or merges to its rank (the lowest is merged first) and its id."""
        model = self._model
        special = (model.is_control, model.is_unknown, model.is_unused, model.is_byte)
        return {
            piece: (-model.get_score(token), token)
            for token, piece in enumerate(self._pieces)
            if not any(is_one(token) for is_one in special)
        }

    def is_alphabet(self) -> bool:
        """Tells whether all pieces are single characters: the smallest vocabulary that a text allows."""
        return all(len(piece) == 1 for piece in self.merge_ranks())

    def spelt(self, character: str) -> list[int]:
        """The ids for a character without a piece: its bytes, or the unknown symbol if the vocabulary has no bytes."""
        names = [f"<0x{byte:02X}>" for byte in character.encode()]
        ids = [self._model.piece_to_id(name) for name in names]
        return ids if all(map(self._model.is_byte, ids)) else [self.unk_id]

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decodes ids to texts. Special symbols are left out; bytes that are not UTF-8 become U+FFFD."""
        lists = [[int(i) for i in ids] for ids in batch]
        texts = self._model.decode(lists) if _many(lists) else map(self._model.decode, lists)
        return [_unescape(text) for text in texts]

    @property
    def languages(self) -> list[str]:
        """The target languages that have a tag. Empty for a model with one target language, which needs no tags."""
        tags = (re.fullmatch(r"▁?>>(.+)<<", piece) for piece in self._pieces if piece.endswith("<<"))
        return sorted(tag[1] for tag in tags if tag is not None)

    def piece(self, token: int) -> str:
        """The text of a token, for display: a leading space is written ▁."""
        return self._pieces[token]


def _many(batch: Sequence[object]) -> bool:
    """Tells whether a batch is large enough to give it to sentencepiece as a list. For a list it starts a thread on
    each core at every call, so that few texts are faster one by one."""
    return len(batch) > _FEW


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


def _learn(sentences: Iterator[str], vocab_size: int, coverage: float, tags: Sequence[str]) -> bytes:
    return train_model(
        sentences,
        vocab_size,
        coverage,
        model_type="bpe",
        byte_fallback=True,
        max_sentencepiece_length=CHARACTERS_PER_TOKEN,
        user_defined_symbols=[f"▁{tag}" for tag in tags],
    )


def _escape(text: str) -> str:
    """Escapes ▁ and ␛. A text with a lone surrogate is an error."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"character {error.start + 1} of {text[:40]!r} is a lone surrogate (U+{ord(text[error.start]):04X}), "
            f"which no Unicode text holds; decode the input as UTF-8"
        ) from None
    if "▁" in text or "␛" in text:
        return re.sub("[▁␛]", lambda match: _ESCAPES[match[0]], text)
    return text


def _unescape(text: str) -> str:
    # A model may write a ␛ that escapes nothing: it stays as it is.
    return re.sub("␛[_␛]", lambda match: _UNESCAPES[match[0]], text) if "␛" in text else text


def load_tokenizer(run_directory: Path) -> Tokenizer:
    """Loads a run's tokenizer and checks that it is the one that its ids and weights were made with."""
    path, record_path = run_directory / TOKENIZER, run_directory / CLEANING
    tokenizer = Tokenizer.load(path)
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
