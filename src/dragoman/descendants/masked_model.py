"""Encoders alone: MaskedModel fills gaps in a text, Classifier finds the class of a line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from dragoman.data.batching import pad
from dragoman.data.objectives import ends_of
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.decoding.engines import batches_of_like_length
from dragoman.errors import DataError
from dragoman.model.checkpoint import load_transformer
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory, require_task

GAP = "___"
_MARK = "\ue000"  # a private character: in no vocabulary, and so always encoded as bytes


@dataclass(frozen=True)
class GapCandidate:
    """A token that could fill a gap."""

    piece: str
    probability: float


@dataclass(frozen=True)
class FilledText:
    """A text with its gaps filled, and the candidates for each gap, most probable first."""

    text: str
    gaps: list[list[GapCandidate]]


class MaskedModel:
    """Fills gaps with a run that was trained to restore masked tokens."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self._special_ids = [tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id]

    @classmethod
    def load(cls, run: str | Path, checkpoint: str | None = None) -> Self:
        directory = RunDirectory.open(run)
        require_task(directory, "restore")
        return cls(load_transformer(directory, checkpoint), load_tokenizer(directory.path))

    @torch.inference_mode()
    def fill(self, text: str, best: int = 5) -> FilledText:
        """Fills each ___ with one token: first the gap that the model is surest of, then the next one given that token,
        as tokens depend on each other. The other candidates of a gap are those at the time it was filled."""
        ids = self._with_gaps(text)
        gaps = [place for place, token in enumerate(ids) if token == self.tokenizer.unk_id]
        found: dict[int, list[GapCandidate]] = {}
        while len(found) < len(gaps):
            logits = self.model(torch.tensor([[*ids, self.tokenizer.eos_id]]), torch.empty(1, 0, dtype=torch.long))[0]
            logits[:, self._special_ids] = -torch.inf
            probabilities = logits.softmax(dim=-1)
            place = max((p for p in gaps if p not in found), key=lambda p: float(probabilities[p].max()))
            top = probabilities[place].topk(min(best, self.tokenizer.vocab_size))
            ids[place] = int(top.indices[0])
            pieces = [self.tokenizer.piece(token) for token in top.indices.tolist()]
            found[place] = [GapCandidate(*pair) for pair in zip(pieces, top.values.tolist(), strict=True)]
        return FilledText(self.tokenizer.decode(ids), [found[place] for place in gaps])

    def _with_gaps(self, text: str) -> list[int]:
        """Token ids with the unknown symbol at each gap. The space before a gap belongs to the missing token."""
        if GAP not in text:
            raise DataError(f"no gap in {text[:60]!r}; write {GAP} where a token is to be found")
        mark = self.tokenizer.spelt(_MARK)
        encoded, ids = self.tokenizer.encode(text.replace(GAP, _MARK)), list[int]()
        while encoded:
            if encoded[: len(mark)] == mark:
                del encoded[: len(mark)]
                if ids and self.tokenizer.piece(ids[-1]) == "▁":
                    ids.pop()
                ids.append(self.tokenizer.unk_id)
            else:
                ids.append(encoded.pop(0))
        return ids


@dataclass(frozen=True)
class Classification:
    """The classes of a line with their probabilities, most probable first."""

    classes: tuple[str, ...]
    probabilities: tuple[float, ...]

    @property
    def label(self) -> str:
        return self.classes[0]


class Classifier:
    """Classifies sentences, or pictures written as lines, with a run that was trained for it."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, run: str | Path, checkpoint: str | None = None) -> Self:
        directory = RunDirectory.open(run)
        require_task(directory, "classify")
        return cls(load_transformer(directory, checkpoint), load_tokenizer(directory.path))

    def classify(self, lines: Sequence[str], batch_tokens: int = 4096) -> list[Classification]:
        """The classes of each line, in the order of the lines."""
        classified: dict[int, Classification] = {}
        ids = self.tokenizer.encode_batch([line.strip() for line in lines])
        for batch in batches_of_like_length([len(line) for line in ids], batch_tokens):
            classified.update(zip(batch, self._judge([ids[number] for number in batch]), strict=True))
        return [classified[number] for number in range(len(lines))]

    def accuracy(self, pairs: Sequence[tuple[str, str]]) -> float:
        """The share of lines whose most probable class is their label."""
        if not pairs:
            raise DataError("no lines to classify; give a line, a tab and a label on each")
        classified = self.classify([line for line, _ in pairs])
        return sum(one.label == label.strip() for one, (_, label) in zip(classified, pairs, strict=True)) / len(pairs)

    @torch.inference_mode()
    def _judge(self, sentences: Sequence[Sequence[int]]) -> Iterator[Classification]:
        source, mask = pad([[*ids, self.tokenizer.eos_id] for ids in sentences], self.tokenizer.pad_id)
        states = self.model.states(source, torch.empty(len(source), 0, dtype=torch.long), mask)
        logits: Tensor = self.model.output(states.flatten(0, 1)[ends_of(source, mask, self.model.config.patch)])
        probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
        names = self.model.config.classes
        for row, places in zip(probabilities.tolist(), order.tolist(), strict=True):
            yield Classification(tuple(names[place] for place in places), tuple(row))
