"""The rows of every sentence that is still searched: what beam search and sampling have in common.

Letters in shape comments are beam_search.py's: B sentences still searched, K rows of each, W candidates of each row.
"""

import math
from bisect import insort
from collections.abc import Sequence, Set
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.decoding.constrained_beam import BeamRow, Choice, Requirement, share_out
from dragoman.decoding.constraints import Constrain
from dragoman.decoding.hypothesis import Hypothesis, LengthPenalty
from dragoman.decoding.topk import CHUNK, Candidates, Floats, Ints, best_of_chunks, merge
from dragoman.errors import DragomanError, UsageError


class State(Protocol):
    """What the step function carries from one position to the next, for every row of every sentence."""

    def select(self, sentences: Tensor, beams: Tensor) -> Self:
        """The state of these sentences, (B',) indices among the present B. beams (B', K') says which of the sentence's
        present rows each new row continues. K' differs from K only when the search widens, once.
        """
        ...


StateT = TypeVar("StateT", bound=State)

# A hypothesis as a chain from its last token to its first: (what came before, token, log-probability of the token).
# Rows share their beginnings, so continuing one costs one link and nothing is copied.
_Path = tuple["_Path", int, float] | None
_Finished = tuple[float, float, _Path]  # rank (smaller is better), total, path with end symbol


class BeamRows:
    """The sentences still searched, their rows, and the hypotheses that have finished."""

    def __init__(
        self, max_lengths: Sequence[int], start_id: int, eos_id: int, require: Sequence[Requirement] | None = None
    ) -> None:
        for length in max_lengths:
            if length < 0:
                raise UsageError(f"maximum length {length}; must be at least 0")
        self.max_lengths = max_lengths
        self.eos_id = eos_id
        self.position = 0
        self.sentences = list(range(len(max_lengths)))  # (B) the index of each
        self.ids: Ints = np.full((len(max_lengths), 1), start_id)  # (B, K) the last token of each row
        self.living: Floats = np.zeros((len(max_lengths), 1))  # (B, K) totals; -inf: an empty row
        self.paths: list[list[_Path]] = [[None] for _ in max_lengths]  # (B, K)
        self.finished: list[list[_Finished]] = [[] for _ in max_lengths]  # of every sentence by index, best first
        self.require = require
        self.phrase_states = [[requirement.start] for requirement in require or ()]  # (B, K)

    def continuations(self, log_probs: Tensor, count: int, constrain: Constrain | None) -> Candidates:
        """The `count` best continuations of each sentence over all its rows, best first."""
        ending = any(self.position == self.max_lengths[sentence] for sentence in self.sentences)
        chunks, plain = log_probs.shape[-1] // CHUNK, log_probs.is_cpu and log_probs.dtype.itemsize >= 4
        if constrain is None and not ending and plain and chunks >= count:
            log_probs = log_probs.detach()
            peaks = self._peaks(log_probs, chunks)
            return best_of_chunks(self.living, log_probs, peaks, count)
        values, tokens = self.best(log_probs, count, constrain)
        return merge(self.living, values.numpy(), tokens.numpy(), count, filler=self.eos_id)

    def shared_out(
        self, log_probs: Tensor, beam: int, constrain: Constrain | None, require: Sequence[Requirement]
    ) -> tuple[Candidates, Ints]:
        """Candidates, best first, and which of them go on, (B, beam), where words are required. The most probable
        tokens of each row are weighed, and all that bring it nearer to a required word."""
        # Fewer candidates of each row than the beam has: one row hardly ever gives all that go on.
        width = min(2 * beam, max(beam // 2, 8))
        values, tokens = (column.tolist() for column in self.best(log_probs, width, constrain))
        chosen = []
        for row, sentence in enumerate(self.sentences):
            room = self.max_lengths[sentence] - self.position - 1
            rows = []
            for beam_row, total in enumerate(self.living[row].tolist()):
                if total == -math.inf:
                    continue
                likely = zip(tokens[row][beam_row], values[row][beam_row], strict=True)
                options = {token: value for token, value in likely if value > -math.inf}
                if room >= 0:
                    further = sorted(self._wanted(row, beam_row, constrain, require) - options.keys())
                    options |= zip(further, log_probs[row, beam_row, further].double().tolist(), strict=True)
                rows.append((beam_row, BeamRow(total, self.phrase_states[row][beam_row], options)))
            chosen.append(share_out(require[sentence], rows, beam, room, self.eos_id))
        return _as_candidates(chosen, beam, self.eos_id)

    def _wanted(self, row: int, beam_row: int, constrain: Constrain | None, require: Sequence[Requirement]) -> Set[int]:
        """The allowed tokens that bring a row nearer to a required word."""
        sentence = self.sentences[row]
        wanted = require[sentence].wanted(self.phrase_states[row][beam_row])
        allowed = None if constrain is None else constrain(sentence, _unwind(self.paths[row][beam_row])[0])
        return wanted if allowed is None else wanted & set(allowed)

    def best(self, log_probs: Tensor, width: int, constrain: Constrain | None) -> tuple[Tensor, Tensor]:
        """The log-probabilities and ids, (B, K, W), of the `width` most probable allowed tokens of each row, best
        first, on the CPU. Where fewer are allowed, the rest is -inf.

        Within a row the order by log-probability is the order by total, so totals over all of V are never needed.
        """
        assert log_probs.shape[:2] == self.ids.shape, (log_probs.shape, self.ids.shape)
        log_probs = log_probs.detach()
        values, tokens = log_probs.topk(min(width, log_probs.shape[-1]), dim=-1)
        ending = [row for row, sentence in enumerate(self.sentences) if self.position == self.max_lengths[sentence]]
        if ending:
            values[ending], tokens[ending] = -math.inf, self.eos_id
            values[ending, :, 0] = log_probs[ending, :, self.eos_id]
        if constrain is not None:
            for row, beam in np.argwhere(self.living > -math.inf).tolist():
                allowed = constrain(self.sentences[row], _unwind(self.paths[row][beam])[0])
                if allowed is None:
                    continue
                if row in ending:
                    allowed = [self.eos_id] if self.eos_id in allowed else []
                options = torch.tensor(sorted(set(allowed)), dtype=torch.long, device=tokens.device)
                top = log_probs[row, beam, options].topk(min(values.shape[-1], len(options)))
                values[row, beam], tokens[row, beam] = -math.inf, self.eos_id
                values[row, beam, : len(options)] = top.values
                tokens[row, beam, : len(options)] = options[top.indices]
        values, tokens = values.cpu().double(), tokens.cpu()
        self._require_log_probability(values[..., 0].max().item())
        return values, tokens

    def _peaks(self, log_probs: Tensor, chunks: int) -> npt.NDArray[np.float32]:
        """The highest log-probability of each chunk of the vocabulary, (B, K, chunks); the rest after the last chunk is
        left out."""
        peaks: npt.NDArray[np.float32]
        peaks = log_probs[..., : chunks * CHUNK].view(*log_probs.shape[:2], chunks, CHUNK).amax(dim=-1).numpy()
        self._require_log_probability(peaks.max().item())
        if chunks * CHUNK < log_probs.shape[-1]:
            self._require_log_probability(log_probs[..., chunks * CHUNK :].max().item())
        return peaks

    def _require_log_probability(self, highest: float) -> None:
        """Refuses what cannot be the highest log-probability."""
        # A maximum over numbers with a NaN is NaN, so none goes unseen. The margin is for rounding in the model.
        if not highest <= 0.01:
            raise DragomanError(
                f"the model gave a log-probability of {highest:g} at target position {self.position}, which must be at "
                "most 0: its weights are damaged or its training diverged; use another checkpoint"
            )

    def finish(self, found: Candidates, ends: npt.NDArray[np.bool_], ranks: Floats | Ints) -> None:
        """Adds the candidates that are ends to the finished hypotheses, sorted by rank."""
        if not ends.any():
            return
        columns = (ranks[ends], found.totals[ends], found.origins[ends], found.log_probs[ends], ends.nonzero()[0])
        for rank, total, origin, log_prob, row in zip(*(column.tolist() for column in columns), strict=True):
            path = (self.paths[row][origin], self.eos_id, log_prob)
            insort(self.finished[self.sentences[row]], (rank, total, path), key=lambda entry: entry[0])

    def go_on(self, state: StateT, searched: list[int], found: Candidates, living: Floats) -> StateT:
        """Makes the candidates the new rows; those whose `living` total is -inf become empty rows. Only the sentences
        `searched` stay."""
        before, width = self.ids.shape
        empty = living == -math.inf
        beams = np.where(empty, np.arange(living.shape[1]).clip(max=width - 1), found.origins)
        columns = (beams.tolist(), found.tokens.tolist(), found.log_probs.tolist())
        paths: list[list[_Path]] = [
            [(old[beam], token, log_prob) for beam, token, log_prob in zip(*new, strict=True)]
            for old, *new in zip(self.paths, *columns, strict=True)
        ]
        self.paths = [paths[row] for row in searched]
        if self.require is not None:
            advanced = [
                [self.require[sentence].advance(old[beam], token) for beam, token, _ in zip(*new, strict=True)]
                for sentence, old, *new in zip(self.sentences, self.phrase_states, *columns, strict=True)
            ]
            self.phrase_states = [advanced[row] for row in searched]
        self.sentences = [self.sentences[row] for row in searched]
        kept = np.array(searched, dtype=np.int64)
        self.ids, self.living = np.where(empty, self.eos_id, found.tokens)[kept], living[kept]
        self.position += 1
        # Selecting copies a model's whole cache, so it is left out when no row moves.
        unmoved = len(searched) == before and beams.shape[1] == width and bool((beams == np.arange(width)).all())
        return state if unmoved or not searched else state.select(torch.from_numpy(kept), torch.from_numpy(beams[kept]))

    def hypotheses(self, count: int, length_penalty: LengthPenalty) -> list[list[Hypothesis]]:
        """The first `count` finished hypotheses of each sentence."""
        return [
            [
                Hypothesis(
                    ids=tuple(ids[:-1]),
                    log_probability=total,
                    score=total / length_penalty(len(ids)),
                    token_log_probabilities=tuple(log_probs),
                    finished=len(ids) <= limit,
                )
                for _, total, path in finished[:count]
                for ids, log_probs in [_unwind(path)]
            ]
            for finished, limit in zip(self.finished, self.max_lengths, strict=True)
        ]


def _as_candidates(chosen: Sequence[Sequence[Choice]], beam: int, eos_id: int) -> tuple[Candidates, Ints]:
    """The choices of each sentence as arrays, and the places of those that go on, (B, beam)."""
    longest = max(map(len, chosen)) + 1  # at least one at the end does not exist, for rows that stay empty
    nothing = Choice(-math.inf, 0, eos_id, -math.inf)
    kept = np.full((len(chosen), beam), longest - 1)
    for row, choices in enumerate(chosen):
        places = [place for place, choice in enumerate(choices) if choice.token != eos_id]
        kept[row, : len(places)] = places
    columns = np.array([[*choices, *[nothing] * (longest - len(choices))] for choices in chosen], dtype=np.float64)
    totals, origins, ids, log_probabilities = np.moveaxis(columns, -1, 0)
    return Candidates(totals, origins.astype(np.int64), ids.astype(np.int64), log_probabilities), kept


def _unwind(path: _Path) -> tuple[list[int], list[float]]:
    """The token ids of a path and their log-probabilities, first to last."""
    ids, log_probs = [], []
    while path is not None:
        path, token, log_prob = path
        ids.append(token)
        log_probs.append(log_prob)
    return ids[::-1], log_probs[::-1]
