"""Greedy search, beam search and sampling over any step function; knows no model (section 6.1 of the paper).

Legend: B sentences still searched, K rows ("beams") of each, V vocabulary, W candidates kept of each row.

The step function gets the last ids, (B, K), and a state, and returns log-probabilities, (B, K, V), and the new state.
The caller's first state covers (B, 1): one row a sentence, all holding the start symbol. The search widens it by
`State.select` after the first step, so whatever belongs to a sentence and not to a row (the encoder's memory) need
not be copied for each row. Rows that hold no hypothesis exist only to keep the tensor rectangular: what they are fed
means nothing, and what comes out of them counts for nothing.

Each row's W best candidates are brought to the CPU once a step, and what follows is done in numpy, whose operations on
so little cost less than half of torch's. Ids and indices are made there; the step function and the state move what they
need. Sums of log-probabilities are float64 whatever the model computes in.
"""

import math
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.config import Stop
from dragoman.decoding.constrained_beam import Choice, Requirement, Row, share_out
from dragoman.decoding.constraints import Constrain
from dragoman.decoding.hypothesis import Hypothesis, LengthPenalty
from dragoman.decoding.search_record import BeamStep, Candidate, Fate, Recorder
from dragoman.decoding.topk import CHUNK, Candidates, Floats, Ints, best_first, best_of_chunks, merge
from dragoman.errors import DragomanError, UsageError


class State(Protocol):
    """What the step function carries from one position to the next, for every row of every sentence."""

    def select(self, sentences: Tensor, beams: Tensor) -> Self:
        """The state of the sentences (B',) of the present B; beams (B', K') says of which of a sentence's
        present rows each of its new rows is the continuation. K' differs from K only when the search widens, once.
        """
        ...


StateT = TypeVar("StateT", bound=State)
Step = Callable[[Tensor, StateT], tuple[Tensor, StateT]]


def beam_search(
    step: Step[StateT],
    state: StateT,
    *,
    start_id: int,
    eos_id: int,
    max_lengths: Sequence[int],
    beam: int,
    length_penalty: LengthPenalty,
    n_best: int = 1,
    stop: Stop = "exact",
    constrain: Constrain | None = None,
    require: Sequence[Requirement] | None = None,
    recorder: Recorder | None = None,
) -> list[list[Hypothesis]]:
    """The n_best hypotheses of each sentence by log-probability / length_penalty(length with end symbol), best first.

    Each step weighs the 2·beam best continuations: at most `beam` of them end, so `beam` go on whatever happens.
    stop="exact" (tensor2tensor's rule): every end among them counts, and a sentence is done as soon as its n_best-th
    finished score is at least what the best living row would score if it went on at no cost to the maximum length.
    As log-probabilities are at most 0 and length_penalty must not fall with length, that never changes the result.
    stop="first" (CTranslate2's rule): an end counts only among the `beam` best continuations, and a sentence is done
    when `beam` (or n_best, if more) have ended. With beam 1 this is greedy search.

    max_lengths: the most tokens of each sentence, the end symbol not counted. A row that gets there must end, at the
    end symbol's true log-probability. So every hypothesis is complete, has a score that scoring the text reproduces,
    and competes fairly with those that ended by themselves; `finished` tells the two kinds apart.

    A constraint is never broken: a row with no allowed continuation dies. A sentence can therefore have fewer than
    n_best hypotheses, or an empty list, which the caller must expect where it constrains.

    require, one for each sentence: no output ends before it holds all that is required; constrained_beam.py says how.

    Ties go to the lower row, then to the lower id; of equal scores at different lengths the shorter comes first. Only
    where more than 2·beam continuations of one row tie at the edge does torch.topk choose among them.
    """
    _require(beam >= 1, "beam", beam, "at least 1")
    _require(n_best >= 1, "n_best", n_best, "at least 1")
    rows = _Rows(max_lengths, start_id, eos_id, require)

    def done(sentence: int, best_living: float) -> bool:
        finished = rows.finished[sentence]
        if best_living == -math.inf:
            return True
        match stop:
            case "first":
                return len(finished) >= max(n_best, beam)
            case "exact":
                if require is not None and len(finished) >= max(n_best, beam):
                    return True  # the likely rows that lack something might be followed to the maximum length
                bound = best_living / length_penalty(max_lengths[sentence] + 1)
                return len(finished) >= n_best and -finished[n_best - 1][0] >= bound

    while rows.sentences:
        log_probs, state = step(torch.from_numpy(rows.ids), state)
        if require is None:
            found, kept = rows.continuations(log_probs, 2 * beam, constrain), None
        else:
            found, kept = rows.shared_out(log_probs, beam, constrain, require)
        scores = found.totals / length_penalty(rows.position + 1)
        is_end = found.tokens == eos_id
        ends = is_end & (found.totals > -math.inf)
        if stop == "first":
            ends[:, beam:] = False
        rows.finish(found, ends, ranks=-scores)
        # What goes on: the best that are not ends, in their order, which a stable sort keeps.
        going_on = np.where(is_end, -math.inf, found.totals)
        if kept is None:
            kept = best_first(going_on)[:, :beam]
        living = np.take_along_axis(going_on, kept, 1)
        if recorder is not None:
            _record(recorder, rows, found, scores, ends, kept)
        best = zip(rows.sentences, living[:, 0].tolist(), strict=True)
        searched = [row for row, (sentence, total) in enumerate(best) if not done(sentence, total)]
        state = rows.go_on(state, searched, found.take(kept), living)
    return rows.hypotheses(n_best, length_penalty)


def greedy_search(
    step: Step[StateT],
    state: StateT,
    *,
    start_id: int,
    eos_id: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty,
    constrain: Constrain | None = None,
    recorder: Recorder | None = None,
) -> list[list[Hypothesis]]:
    """The most probable token at each position until that is the end symbol: a beam of one that stops at its first end.

    The length penalty changes the score that is reported and nothing else.
    """
    return beam_search(
        step,
        state,
        start_id=start_id,
        eos_id=eos_id,
        max_lengths=max_lengths,
        beam=1,
        length_penalty=length_penalty,
        stop="first",
        constrain=constrain,
        recorder=recorder,
    )


def sample(
    step: Step[StateT],
    state: StateT,
    *,
    start_id: int,
    eos_id: int,
    max_lengths: Sequence[int],
    num_samples: int,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    constrain: Constrain | None = None,
    recorder: Recorder | None = None,
) -> list[list[Hypothesis]]:
    """Independent draws for each sentence, in the order drawn, which is not one of quality.

    At each position the constraint applies first, then top_k (the k most probable tokens), then the temperature
    (probabilities to the power 1 / temperature), then top_p (the fewest most probable tokens that together reach p).
    The maximum length works as in beam_search; a draw that the constraint leaves without continuation is left out.
    The same generator state, batch and arguments give the same draws; another batching gives others.
    """
    _require(num_samples >= 1, "num_samples", num_samples, "at least 1")
    _require(temperature > 0, "temperature", temperature, "above 0; for the most probable tokens search greedily")
    _require(top_k is None or top_k >= 1, "top_k", top_k, "at least 1")
    _require(0 < top_p <= 1, "top_p", top_p, "above 0 and at most 1")
    rows = _Rows(max_lengths, start_id, eos_id)
    while rows.sentences:
        log_probs, state = step(torch.from_numpy(rows.ids), state)
        values, tokens = rows.best(log_probs, top_k or log_probs.shape[-1], constrain)
        # A row without any allowed token still needs a distribution to draw from; the draw's total will be -inf.
        relative = (values - values[..., :1]).nan_to_num(nan=0.0, neginf=-math.inf)
        probabilities = (relative / temperature).softmax(-1)
        reached = probabilities.cumsum(-1) - probabilities  # by the more probable tokens alone
        probabilities = probabilities.masked_fill(reached >= top_p, 0.0).to(generator.device)
        # At the first position all draws come from the one row that there is, later one from each.
        draws = num_samples if rows.position == 0 else 1
        picked = torch.multinomial(probabilities.flatten(0, 1), draws, replacement=True, generator=generator)
        picked = picked.view(*rows.ids.shape, draws).cpu()
        log_probs_drawn = values.gather(-1, picked).flatten(1).numpy()  # (B, num_samples)
        numbers = np.broadcast_to(np.arange(num_samples), log_probs_drawn.shape)
        origins = numbers if draws == 1 else np.zeros_like(numbers)
        drawn = tokens.gather(-1, picked).flatten(1).numpy()
        found = Candidates(rows.living + log_probs_drawn, origins, drawn, log_probs_drawn)
        ends = (found.tokens == eos_id) & (found.totals > -math.inf)
        rows.finish(found, ends, ranks=numbers)
        if recorder is not None:
            _record(recorder, rows, found, found.totals, ends, numbers)
        living = np.where(ends, -math.inf, found.totals)
        searched = np.flatnonzero((living > -math.inf).any(axis=1)).tolist()
        state = rows.go_on(state, searched, found, living)
    return rows.hypotheses(num_samples, lambda _: 1.0)


# A hypothesis as a chain from its last token to its first: (what came before, token, log-probability of the token).
# Rows share their beginnings, so continuing one costs one link and nothing is copied.
_Path = tuple["_Path", int, float] | None
_Finished = tuple[float, float, _Path]  # rank (smaller is better), total, path with end symbol


class _Rows:
    """The sentences still searched, their rows, and what has finished: the part that both kinds of search share."""

    def __init__(
        self, max_lengths: Sequence[int], start_id: int, eos_id: int, require: Sequence[Requirement] | None = None
    ) -> None:
        for length in max_lengths:
            _require(length >= 0, "maximum length", length, "at least 0")
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
        """Candidates, best first, and those of them that go on, (B, beam). Weighed are the most probable tokens of each
        row and all that bring it further."""
        # Of each row fewer than the beam: one row hardly ever gives all that goes on.
        width = min(2 * beam, max(beam // 2, 8))
        values, tokens = (column.tolist() for column in self.best(log_probs, width, constrain))
        chosen = []
        for row, sentence in enumerate(self.sentences):
            room = self.max_lengths[sentence] - self.position - 1
            rows = []
            for number, (total, phrase_state) in enumerate(
                zip(self.living[row].tolist(), self.phrase_states[row], strict=True)
            ):
                if total == -math.inf:
                    continue
                likely = zip(tokens[row][number], values[row][number], strict=True)
                options = {token: value for token, value in likely if value > -math.inf}
                if room >= 0:
                    wanted = require[sentence].wanted(phrase_state) - options.keys()
                    allowed = None if constrain is None else constrain(sentence, _unwind(self.paths[row][number])[0])
                    further = sorted(wanted if allowed is None else wanted & set(allowed))
                    options |= zip(further, log_probs[row, number, further].double().tolist(), strict=True)
                rows.append((number, Row(total, phrase_state, options)))
            chosen.append(share_out(require[sentence], rows, beam, room, self.eos_id))
        longest = max(map(len, chosen)) + 1  # at least one at the end does not exist, for rows that stay empty
        nothing = Choice(-math.inf, 0, self.eos_id, -math.inf)
        kept = np.full((len(chosen), beam), longest - 1)
        for row, some in enumerate(chosen):
            places = [place for place, choice in enumerate(some) if choice.token != self.eos_id]
            kept[row, : len(places)] = places
        columns = np.array([[*some, *[nothing] * (longest - len(some))] for some in chosen], dtype=np.float64)
        totals, origins, ids, log_probabilities = np.moveaxis(columns, -1, 0)
        return Candidates(totals, origins.astype(np.int64), ids.astype(np.int64), log_probabilities), kept

    def best(self, log_probs: Tensor, width: int, constrain: Constrain | None) -> tuple[Tensor, Tensor]:
        """The log-probabilities and ids, (B, K, W), of the `width` most probable allowed tokens of each row, best
        first, on the CPU. Where fewer are allowed, -inf.

        Within a row the order by log-probability is the order by total, so the totals need never be formed over V.
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
        self._check(values[..., 0].max().item())
        return values, tokens

    def _peaks(self, log_probs: Tensor, chunks: int) -> npt.NDArray[np.float32]:
        """The best of each chunk of the vocabulary, (B, K, chunks); what is left over at its end is in none."""
        peaks: npt.NDArray[np.float32]
        peaks = log_probs[..., : chunks * CHUNK].view(*log_probs.shape[:2], chunks, CHUNK).amax(dim=-1).numpy()
        self._check(peaks.max().item())
        if chunks * CHUNK < log_probs.shape[-1]:
            self._check(log_probs[..., chunks * CHUNK :].max().item())
        return peaks

    def _check(self, highest: float) -> None:
        # Every maximum puts NaN above all numbers, so none can hide. The margin is for rounding in the model.
        if not highest <= 0.01:
            raise DragomanError(
                f"the model gave a log-probability of {highest:g} at target position {self.position}, which must be at "
                "most 0: its weights are damaged or its training diverged; use another checkpoint"
            )

    def finish(self, found: Candidates, ends: npt.NDArray[np.bool_], ranks: Floats | Ints) -> None:
        if not ends.any():
            return
        columns = (ranks[ends], found.totals[ends], found.origins[ends], found.log_probs[ends], ends.nonzero()[0])
        for rank, total, origin, log_prob, row in zip(*(column.tolist() for column in columns), strict=True):
            path = (self.paths[row][origin], self.eos_id, log_prob)
            insort(self.finished[self.sentences[row]], (rank, total, path), key=lambda entry: entry[0])

    def go_on(self, state: StateT, searched: list[int], found: Candidates, living: Floats) -> StateT:
        """Make candidates the new rows, those with `living` -inf empty ones; of the sentences, only `searched` stay."""
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


def _record(
    recorder: Recorder,
    rows: _Rows,
    found: Candidates,
    scores: Floats,
    ends: npt.NDArray[np.bool_],
    kept: Ints,
) -> None:
    columns = (*found, scores, ends, kept)
    for sentence, *lists in zip(rows.sentences, *(column.tolist() for column in columns), strict=True):
        totals, origins, tokens, log_probs, row_scores, row_ends, row_kept = lists
        candidates = []
        for rank in (rank for rank, total in enumerate(totals) if total > -math.inf):
            kept_as = row_kept.index(rank) if rank in row_kept and tokens[rank] != rows.eos_id else None
            fate: Fate = "finished" if row_ends[rank] else "pruned" if kept_as is None else "kept"
            candidates.append(
                Candidate(origins[rank], tokens[rank], log_probs[rank], totals[rank], row_scores[rank], fate, kept_as)
            )
        recorder(BeamStep(sentence, rows.position, tuple(candidates)))


def _unwind(path: _Path) -> tuple[list[int], list[float]]:
    ids, log_probs = [], []
    while path is not None:
        path, token, log_prob = path
        ids.append(token)
        log_probs.append(log_prob)
    return ids[::-1], log_probs[::-1]


def _require(holds: bool, name: str, value: object, limit: str) -> None:
    if not holds:
        raise UsageError(f"{name} {value}; must be {limit}")
