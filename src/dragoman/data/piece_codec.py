"""Text to token ids and back, through a sentencepiece model: one side of a tokenizer.

`PlainCodec` is for our own vocabularies: the ids are sentencepiece's, and nothing of a text is lost. sentencepiece
writes a space as U+2581 (▁), so a ▁ in the text itself would come back as a space: it is escaped, before the model sees
it. Text without ▁ or ␛ has the ids that the plain sentencepiece library gives it, unless the vocabulary has the marks
of casing.py: then capitals are written with these.

`MappedCodec` is for imported models, whose ids stand in a vocabulary beside the sentencepiece model. It encodes and
decodes as transformers does, with one exception: a special symbol that is written in a text, such as the tag </s> of a
web page, is text, and not the symbol.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import sentencepiece

from dragoman.data.casing import LOWER, MARK_PIECES, TITLE, UPPER, InlineCase
from dragoman.errors import DataError

_FEW = 256  # texts; with more of them, starting threads is worth it
_ESCAPES = {"▁": "␛_", "␛": "␛␛", TITLE: "␛^", UPPER: "␛=", LOWER: "␛."}
_UNESCAPES = {escaped: character for character, escaped in _ESCAPES.items()}


class PieceCodec(Protocol):
    """Encodes and decodes the text of one side."""

    @property
    def pieces(self) -> Sequence[str]:
        """The text of each token."""

    @property
    def unk_id(self) -> int:
        """The id of the unknown symbol."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes texts, without start or end symbols."""

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Decodes ids to texts, without special symbols."""


def load_sentencepiece(model: bytes, origin: str) -> sentencepiece.SentencePieceProcessor:
    """Loads a sentencepiece model, and raises a DataError that names its origin if it is none."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        processor.id_to_piece(list(range(processor.vocab_size())))
    except (RuntimeError, UnicodeDecodeError):
        raise DataError(f"{origin}: not a sentencepiece model; give a .model file as sentencepiece writes it") from None
    return processor


class PlainCodec:
    """A sentencepiece model with its own ids, and the escaping that makes it lossless."""

    def __init__(self, model: sentencepiece.SentencePieceProcessor) -> None:
        self._model = model
        self.pieces: list[str] = model.id_to_piece(list(range(model.vocab_size())))
        self.unk_id: int = model.unk_id()
        # The ids of the marks of inline case, if this vocabulary has been learned with it. A learned piece has another
        # score than given ones, which have zero (but for the first that is learned, and that is one piece).
        given = {piece: token for token, piece in enumerate(self.pieces) if model.get_score(token) == 0}
        self.case_marks: Mapping[str, int] = (
            {piece: given[piece] for piece in MARK_PIECES} if set(MARK_PIECES) <= given.keys() else {}
        )
        tags = [piece[1:] for piece in given if piece.startswith("▁") and piece not in self.case_marks]
        self._casing = InlineCase(tags) if self.case_marks else None

    def prepared(self, text: str) -> str:
        """The text as sentencepiece gets it."""
        return prepared(text, self._casing)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        ready = list(map(self.prepared, texts))
        ids: list[list[int]] = self._model.encode(ready) if _many(ready) else list(map(self._model.encode, ready))
        return ids

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Decodes ids to texts; bytes that are not UTF-8 become U+FFFD."""
        texts = self._model.decode(batch) if _many(batch) else map(self._model.decode, batch)
        if self._casing is None:
            return [_unescape(text) for text in texts]
        return [_unescape(self._casing.restore(text), with_marks=True) for text in texts]


class MappedCodec:
    """A sentencepiece model whose pieces have the ids of a vocabulary beside it."""

    def __init__(
        self,
        encoder: sentencepiece.SentencePieceProcessor,
        decoder: sentencepiece.SentencePieceProcessor,
        ids: Mapping[str, int],
        pieces: Sequence[str],
        unk_id: int,
        silent: frozenset[int],
        tags_first: bool,
    ) -> None:
        """encoder: cuts text into pieces. decoder: joins pieces to text. ids: of what the encoder may give; anything
        else is unknown. silent: the special symbols, which have no text. tags_first: a text may begin with the tag of
        a language, `>>deu<<`, which is one token."""
        self.pieces, self.unk_id = pieces, unk_id
        self._encoder, self._decoder = encoder, decoder
        self._ids, self._silent, self._tags_first = ids, silent, tags_first

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        tags, bodies = [], []
        for text in texts:
            require_unicode(text)
            end = text.find("<<") + 2 if self._tags_first and text.startswith(">>") else 0
            end = 0 if end == 1 else end  # no tag ends there
            tags.append([text[:end]] if end else [])
            bodies.append(text[end:])
        cut = self._encoder.encode_as_pieces
        encoded: list[list[str]] = cut(bodies) if _many(bodies) else list(map(cut, bodies))
        known, unk_id = self._ids, self.unk_id
        return [
            [known.get(piece, unk_id) for piece in (*tag, *pieces)] for tag, pieces in zip(tags, encoded, strict=True)
        ]

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        named = [[self.pieces[token] for token in ids if token not in self._silent] for ids in batch]
        joined = self._decoder.decode_pieces
        texts = joined(named) if _many(named) else map(joined, named)
        return [text.replace("▁", " ").strip() for text in texts]


def require_unicode(text: str) -> None:
    """Raises a DataError for a text with a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"character {error.start + 1} of {text[:40]!r} is a lone surrogate (U+{ord(text[error.start]):04X}), "
            f"which no Unicode text holds; decode the input as UTF-8"
        ) from None


def prepared(text: str, casing: InlineCase | None) -> str:
    """A text as sentencepiece gets it: with ▁ and ␛ escaped, and with inline case, capitals as marks. A text with a
    lone surrogate is an error."""
    require_unicode(text)
    if casing is not None:
        return casing.fold(re.sub("[▁␛⇧⇪⇩]", lambda match: _ESCAPES[match[0]], text))
    if "▁" in text or "␛" in text:
        return re.sub("[▁␛]", lambda match: _ESCAPES[match[0]], text)
    return text


def _unescape(text: str, with_marks: bool = False) -> str:
    # A model may write a ␛ that escapes nothing: it stays as it is.
    if "␛" not in text:
        return text
    return re.sub("␛[_␛^=.]" if with_marks else "␛[_␛]", lambda match: _UNESCAPES[match[0]], text)


def _many(batch: Sequence[object]) -> bool:
    """Tells whether a batch is large enough to give it to sentencepiece as a list. For a list it starts a thread on
    each core at every call, so that few texts are faster one by one."""
    return len(batch) > _FEW
