"""Greedy search, beam search and sampling over any step function; knows no model (section 6.1 of the paper).

Legend: B sentences still searched, K rows ("beams") of each, V vocabulary, W candidates kept of each row.

The step function gets the last ids, (B, K), and a state, and returns log-probabilities, (B, K, V), and the new state.
The caller's first state covers (B, 1): one row a sentence, which holds the start symbol. The search widens it by
`State.select` after the first step, so whatever belongs to a sentence and not to a row (the encoder's output) need
not be copied for each row. Some rows hold no hypothesis and only keep the tensor rectangular: what is computed for them
is ignored.

Each row's W best candidates are moved to the CPU once a step, and the rest is done in numpy: with so few numbers its
operations cost less than half of torch's. Ids and indices are made there; the step function and the state move what
they need to their own device. Sums of log-probabilities are float64 whatever the model computes in.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.config import Stop
from dragoman.decoding.beam_rows import BeamRows, StateT
from dragoman.decoding.constrained_beam import Requirement
from dragoman.decoding.constraints import Constrain
from dragoman.decoding.hypothesis import Hypothesis, LengthPenalty
from dragoman.decoding.search_record import BeamStep, Fate, RecordedCandidate, Recorder
from dragoman.decoding.topk import Candidates, Floats, Ints, best_first
from dragoman.errors import UsageError

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

    Each step weighs the 2·beam best continuations: at most `beam` of them end, so at least `beam` go on.
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
    rows = BeamRows(max_lengths, start_id, eos_id, require)

    def done(sentence: int, best_living: float) -> bool:
        finished = rows.finished[sentence]
        if best_living == -math.inf:
            return True
        match stop:
            case "first":
                return len(finished) >= max(n_best, beam)
            case "exact":
                if require is not None and len(finished) >= max(n_best, beam):
                    return True  # the likely rows that lack a required word might be followed to the maximum length
                best_possible = best_living / length_penalty(max_lengths[sentence] + 1)
                return len(finished) >= n_best and -finished[n_best - 1][0] >= best_possible

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
        # The best that are not ends go on, in their order, which a stable sort keeps.
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
    """Takes the most probable token at each position until that is the end symbol: a beam of one that stops at its
    first end. The length penalty changes the score that is reported and nothing else.
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
    """Draws num_samples outputs for each sentence independently; they come in the order drawn, not the best first.

    At each position the constraint applies first, then top_k (the k most probable tokens), then the temperature
    (probabilities to the power 1 / temperature), then top_p (the fewest most probable tokens that together reach p).
    The maximum length works as in beam_search; a draw that the constraint leaves without continuation is left out.
    The same generator state, batch and arguments give the same draws; another batching gives others.
    """
    _require(num_samples >= 1, "num_samples", num_samples, "at least 1")
    _require(temperature > 0, "temperature", temperature, "above 0; for the most probable tokens search greedily")
    _require(top_k is None or top_k >= 1, "top_k", top_k, "at least 1")
    _require(0 < top_p <= 1, "top_p", top_p, "above 0 and at most 1")
    rows = BeamRows(max_lengths, start_id, eos_id)
    while rows.sentences:
        log_probs, state = step(torch.from_numpy(rows.ids), state)
        values, tokens = rows.best(log_probs, top_k or log_probs.shape[-1], constrain)
        # A row without any allowed token still needs a distribution to draw from; the draw's total will be -inf.
        relative = (values - values[..., :1]).nan_to_num(nan=0.0, neginf=-math.inf)
        probabilities = (relative / temperature).softmax(-1)
        reached = probabilities.cumsum(-1) - probabilities  # the probability of the more probable tokens together
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


def _record(
    recorder: Recorder,
    rows: BeamRows,
    found: Candidates,
    scores: Floats,
    ends: npt.NDArray[np.bool_],
    kept: Ints,
) -> None:
    """Tells the recorder what was weighed at this position, sentence by sentence."""
    columns = (*found, scores, ends, kept)
    for sentence, *lists in zip(rows.sentences, *(column.tolist() for column in columns), strict=True):
        totals, origins, tokens, log_probs, row_scores, row_ends, row_kept = lists
        candidates = []
        for rank in (rank for rank, total in enumerate(totals) if total > -math.inf):
            kept_as = row_kept.index(rank) if rank in row_kept and tokens[rank] != rows.eos_id else None
            fate: Fate = "finished" if row_ends[rank] else "pruned" if kept_as is None else "kept"
            candidates.append(
                RecordedCandidate(
                    origins[rank], tokens[rank], log_probs[rank], totals[rank], row_scores[rank], fate, kept_as
                )
            )
        recorder(BeamStep(sentence, rows.position, tuple(candidates)))


def _require(holds: bool, name: str, value: object, limit: str) -> None:
    if not holds:
        raise UsageError(f"{name} {value}; must be {limit}")
