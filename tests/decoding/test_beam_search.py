"""The search against hand-drawn trees, exhaustive enumeration and a slow search written from the definition."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dragoman.decoding.beam_search import beam_search, greedy_search, sample
from dragoman.decoding.constraints import Constrain, all_of, forced_prefix
from dragoman.decoding.hypothesis import Hypothesis, LengthPenalty, paper_length_penalty
from dragoman.decoding.search_record import BeamStep
from dragoman.decoding.topk import CHUNK
from dragoman.errors import DragomanError, UsageError

START, END = 99, 0
Prefix = tuple[int, ...]
Model = Callable[[int, Prefix], Sequence[float]]  # (sentence, prefix without start) -> log-probability of each token


@dataclass
class Rows:
    """A state that knows the prefix of each of its rows, and writes down how it was selected from."""

    sentences: list[int]
    prefixes: list[list[Prefix]]
    selections: list[tuple[int, int]] = field(default_factory=list)  # (sentences, rows of each) after each select
    steps: list[int] = field(default_factory=list)  # sentences in each step

    @classmethod
    def of(cls, count: int) -> Self:
        return cls(list(range(count)), [[()] for _ in range(count)])

    def select(self, sentences: Tensor, beams: Tensor) -> "Rows":
        assert sentences.dtype == beams.dtype == torch.long
        assert len(sentences) == len(beams)
        self.selections.append((beams.shape[0], beams.shape[1]))
        kept = sentences.tolist()
        prefixes = [[self.prefixes[row][b] for b in new] for row, new in zip(kept, beams.tolist(), strict=True)]
        return Rows([self.sentences[row] for row in kept], prefixes, self.selections, self.steps)


def stepper(model: Model, dtype: torch.dtype = torch.float64) -> Callable[[Tensor, Rows], tuple[Tensor, Rows]]:
    """The model as a step function that trusts only what it is given: the ids fed and the state it returned."""

    def step(ids: Tensor, state: Rows) -> tuple[Tensor, Rows]:
        assert ids.shape == (len(state.prefixes), len(state.prefixes[0]))
        state.steps.append(len(ids))
        new = [
            [(*prefix, token) for prefix, token in zip(prefixes, tokens, strict=True)]
            for prefixes, tokens in zip(state.prefixes, ids.tolist(), strict=True)
        ]
        assert all(prefix[0] == START for prefixes in new for prefix in prefixes)
        rows = [[model(s, prefix[1:]) for prefix in p] for s, p in zip(state.sentences, new, strict=True)]
        return torch.tensor(rows, dtype=dtype), Rows(state.sentences, new, state.selections, state.steps)

    return step


def random_model(seed: int, vocabulary: int, sharpness: float = 2.0) -> Model:
    def model(sentence: int, prefix: Prefix) -> Sequence[float]:
        source = random.Random(repr((seed, sentence, prefix)))
        return torch.tensor([source.gauss(0, sharpness) for _ in range(vocabulary)]).double().log_softmax(-1).tolist()

    return model


def tree(branches: dict[Prefix, dict[int, float]], vocabulary: int) -> Model:
    """A hand-drawn tree of probabilities; where nothing is drawn, the end follows."""

    def model(_: int, prefix: Prefix) -> Sequence[float]:
        drawn = branches.get(prefix, {END: 1.0})
        return [math.log(drawn[token]) if token in drawn else -math.inf for token in range(vocabulary)]

    return model


def search(model: Model, max_lengths: Sequence[int], **options: Any) -> list[list[Hypothesis]]:
    arguments: dict[str, Any] = {"beam": 4, "length_penalty": paper_length_penalty(0.6)} | options
    state = arguments.pop("state", Rows.of(len(max_lengths)))
    return beam_search(stepper(model), state, start_id=START, eos_id=END, max_lengths=max_lengths, **arguments)


def every_output(model: Model, sentence: int, vocabulary: int, max_length: int) -> list[tuple[Prefix, float]]:
    outputs = []
    for length in range(max_length + 1):
        for ids in itertools.product(range(1, vocabulary), repeat=length):
            path = (*ids, END)
            outputs.append((ids, sum(model(sentence, path[:i])[token] for i, token in enumerate(path))))
    return outputs


def slow_beam(
    model: Model, sentence: int, max_length: int, beam: int, penalty: LengthPenalty, stop: str
) -> list[tuple[Prefix, float]]:
    """Everything that a beam search finishes, best first, from the definition; never stops early if stop is "exact"."""
    living: list[tuple[float, Prefix]] = [(0.0, ())]
    finished: list[tuple[float, Prefix]] = []
    for position in range(max_length + 1):
        candidates = []
        for row, (total, prefix) in enumerate(living):
            for token, log_prob in enumerate(model(sentence, prefix)):
                if position < max_length or token == END:
                    candidates.append((-(total + log_prob), row, token))
        best = sorted(candidates)[: 2 * beam]
        ends = [c for c in (best if stop == "exact" else best[:beam]) if c[2] == END]
        finished += [(-cost / penalty(position + 1), living[row][1]) for cost, row, _ in ends]
        living = [(-cost, (*living[row][1], token)) for cost, row, token in best if token != END][:beam]
        if not living or (stop == "first" and len(finished) >= beam):
            break
    finished.sort(key=lambda entry: -entry[0])
    return [(ids, score) for score, ids in finished]


def outputs(hypotheses: Sequence[Hypothesis]) -> list[Prefix]:
    return [h.ids for h in hypotheses]


# Greedy takes 1 (0.6), whose continuations are weak; the best output begins with 2.
GARDEN_PATH = tree(
    {
        (): {1: 0.6, 2: 0.4},
        (1,): {3: 0.3, 4: 0.3, 5: 0.2, END: 0.2},
        (2,): {3: 0.9, END: 0.1},
    },
    vocabulary=6,
)


def test_a_beam_of_two_finds_what_greedy_search_misses() -> None:
    penalty = paper_length_penalty(0.0)
    greedy = greedy_search(
        stepper(GARDEN_PATH), Rows.of(1), start_id=START, eos_id=END, max_lengths=[5], length_penalty=penalty
    )
    [[best]] = search(GARDEN_PATH, [5], beam=2, length_penalty=penalty)
    assert outputs(greedy[0]) == [(1, 3)]
    assert greedy[0][0].log_probability == pytest.approx(math.log(0.6 * 0.3))
    assert best.ids == (2, 3)
    assert best.log_probability == pytest.approx(math.log(0.4 * 0.9))


def test_greedy_search_takes_the_most_probable_token_at_every_position() -> None:
    for seed in range(20):
        model = random_model(seed, 6)
        ids: list[int] = []
        while len(ids) < 8:
            row = model(0, tuple(ids))
            token = max(range(6), key=row.__getitem__)
            if token == END:
                break
            ids.append(token)
        [[found]] = greedy_search(
            stepper(model),
            Rows.of(1),
            start_id=START,
            eos_id=END,
            max_lengths=[8],
            length_penalty=paper_length_penalty(1.0),
        )
        assert found.ids == tuple(ids)
        assert found.finished == (len(ids) < 8)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 0.6, 1.0]), n_best=st.integers(1, 6))
def test_a_wide_enough_beam_is_exhaustive(seed: int, alpha: float, n_best: int) -> None:
    vocabulary, max_length, penalty = 4, 3, paper_length_penalty(alpha)
    model = random_model(seed, vocabulary)
    expected = sorted(
        (log_probability / ((5 + len(ids) + 1) / 6) ** alpha, ids)
        for ids, log_probability in every_output(model, 0, vocabulary, max_length)
    )[::-1]
    [found] = search(model, [max_length], beam=27, length_penalty=penalty, n_best=n_best)
    assert outputs(found) == [ids for _, ids in expected[:n_best]]
    assert [h.score for h in found] == pytest.approx([score for score, _ in expected[:n_best]])


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.6, 1.0]),
    n_best=st.integers(1, 3),
    stop=st.sampled_from(["exact", "first"]),
    sharpness=st.sampled_from([0.5, 2.0, 5.0]),
)
def test_a_narrow_beam_is_the_one_written_from_the_definition(
    seed: int, beam: int, alpha: float, n_best: int, stop: str, sharpness: float
) -> None:
    """The slow search runs to the end, so with stop="exact" this also shows that stopping early loses nothing."""
    penalty, model, lengths = paper_length_penalty(alpha), random_model(seed, 7, sharpness), [6, 2, 0, 4]
    n_best = min(n_best, beam)
    found = search(model, lengths, beam=beam, length_penalty=penalty, n_best=n_best, stop=stop)
    for sentence, hypotheses in enumerate(found):
        expected = slow_beam(model, sentence, lengths[sentence], beam, penalty, stop)[:n_best]
        assert outputs(hypotheses) == [ids for ids, _ in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score in expected])


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 4),
    vocabulary=st.integers(8 * CHUNK, 10 * CHUNK),
    stop=st.sampled_from(["exact", "first"]),
)
def test_looking_at_the_best_of_each_chunk_is_looking_at_every_token(
    seed: int, beam: int, vocabulary: int, stop: str
) -> None:
    def model(sentence: int, prefix: Prefix) -> Sequence[float]:
        generator = torch.Generator().manual_seed(random.Random(repr((seed, sentence, prefix))).getrandbits(60))
        row = 4 * torch.randn(vocabulary, generator=generator, dtype=torch.float64)
        row[END] += 6
        return row.log_softmax(-1).tolist()

    def searched(constrain: Constrain | None) -> tuple[list[list[Hypothesis]], list[BeamStep]]:
        record: list[BeamStep] = []
        options: dict[str, Any] = {"beam": beam, "n_best": beam, "stop": stop, "recorder": record.append}
        return search(model, [3, 1, 2], constrain=constrain, **options), record

    # A constraint that allows everything takes the plain way.
    assert searched(None) == searched(lambda _, __: None)


def test_ties_between_chunks_go_to_the_lower_row_then_to_the_lower_id() -> None:
    vocabulary, likely = 8 * CHUNK + 5, (1, 2 * CHUNK, 5 * CHUNK + 3, 8 * CHUNK + 4)  # the last is in no chunk
    flat = tree({(): dict.fromkeys(likely, 0.25)}, vocabulary)
    assert outputs(search(flat, [3], beam=4, n_best=4)[0]) == [(token,) for token in likely]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 3.0])
@pytest.mark.parametrize("place", [5 * CHUNK + 3, 8 * CHUNK + 4])
def test_what_is_not_a_log_probability_is_found_in_every_chunk_and_after_the_last(bad: float, place: int) -> None:
    def model(_: int, __: Prefix) -> Sequence[float]:
        return [bad if token == place else -9.0 for token in range(8 * CHUNK + 5)]

    with pytest.raises(DragomanError, match="at target position 0, which must be at most 0"):
        search(model, [4, 4], beam=4)


def test_stopping_early_does_stop() -> None:
    ends_soon = tree({(): {1: 0.9, 2: 0.1}, (1,): {END: 0.9, 1: 0.1}}, vocabulary=3)
    state, patient = Rows.of(1), Rows.of(1)
    [[best]] = search(ends_soon, [50], state=state)
    [all_of_them] = search(ends_soon, [50], state=patient, n_best=1000)
    assert best == all_of_them[0]
    assert len(state.steps) == 2
    assert len(patient.steps) > 2


def test_the_bound_waits_for_a_longer_output_that_scores_better() -> None:
    """After one token the end is likelier than going on, but the length penalty makes the long output the better."""
    patience = tree({(): {1: 1.0}, (1,): {END: 0.55, 2: 0.45}, (1, 2): {3: 1.0}, (1, 2, 3): {4: 1.0}}, vocabulary=5)
    [[unnormalised]] = search(patience, [8], length_penalty=paper_length_penalty(0.0))
    [[normalised]] = search(patience, [8], length_penalty=paper_length_penalty(1.0))
    assert unnormalised.ids == (1,)
    assert normalised.ids == (1, 2, 3, 4)


def test_stop_first_counts_ends_among_the_beam_only_and_stops_when_the_beam_is_full() -> None:
    late_end = tree({(): {1: 0.5, 2: 0.3, END: 0.2}, (1,): {1: 0.5, 2: 0.5}, (2,): {1: 0.5, 2: 0.5}}, vocabulary=3)
    [exact] = search(late_end, [6], beam=2, n_best=20)
    [first] = search(late_end, [6], beam=2, n_best=2, stop="first")
    assert () in outputs(exact)
    assert () not in outputs(first)
    state = Rows.of(1)
    search(random_model(3, 5), [40], beam=3, stop="first", state=state)
    assert len(state.steps) < 40


def test_the_paper_length_penalty_counts_the_end_symbol() -> None:
    assert paper_length_penalty(0.6)(1) == 1.0
    assert paper_length_penalty(0.6)(7) == pytest.approx(2.0**0.6)
    certain_but_for_the_end = tree({(): {1: 1.0}, (1,): {END: 0.5, 2: 0.5}}, vocabulary=3)
    found = search(certain_but_for_the_end, [5], n_best=2, length_penalty=paper_length_penalty(1.0))[0]
    assert {h.ids: h.score for h in found} == pytest.approx(
        {(1,): math.log(0.5) / (7 / 6), (1, 2): math.log(0.5) / (8 / 6)}
    )
    with pytest.raises(UsageError, match=r"alpha -0\.1; must be at least 0"):
        paper_length_penalty(-0.1)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(0, 7), max_size=6), beam=st.integers(1, 4))
def test_a_batch_is_its_sentences_one_by_one(seed: int, lengths: list[int], beam: int) -> None:
    model = random_model(seed, 8)
    together = search(model, lengths, beam=beam, n_best=2)
    for sentence, length in enumerate(lengths):
        alone = search(partial(lambda s, _, prefix: model(s, prefix), sentence), [length], beam=beam, n_best=2)
        assert together[sentence] == alone[0]


def test_sentences_leave_the_batch_as_they_finish() -> None:
    def countdown(sentence: int, prefix: Prefix) -> Sequence[float]:
        ends = len(prefix) == 2 * sentence
        return [math.log(0.98 if ends else 0.01), math.log(0.01 if ends else 0.98), math.log(0.01)]

    state = Rows.of(3)
    found = search(countdown, [9, 9, 9], beam=2, state=state)
    assert [len(h[0].ids) for h in found] == [0, 2, 4]
    assert state.steps == [3, 2, 2, 1, 1]
    assert state.selections[0] == (2, 2)
    assert all(shape[1] == 2 for shape in state.selections)
    assert [shape[0] for shape in state.selections] == sorted((shape[0] for shape in state.selections), reverse=True)


def test_the_state_is_left_alone_when_no_row_moves() -> None:
    chain = tree({(): {1: 1.0}, (1,): {2: 1.0}, (1, 2): {3: 1.0}}, vocabulary=4)
    narrow, wide = Rows.of(2), Rows.of(2)
    search(chain, [9, 9], beam=1, state=narrow)
    search(chain, [9, 9], beam=3, state=wide)
    assert narrow.selections == []
    assert wide.selections == [(2, 3)]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_scores_add_up(alpha: float) -> None:
    model, penalty = random_model(5, 9), paper_length_penalty(alpha)
    for sentence, found in enumerate(search(model, [7, 5, 3], n_best=4, length_penalty=penalty)):
        assert len(found) == 4
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        for h in found:
            path = (*h.ids, END)
            expected = [model(sentence, path[:i])[token] for i, token in enumerate(path)]
            assert h.token_log_probabilities is not None
            assert list(h.token_log_probabilities) == pytest.approx(expected)
            assert sum(h.token_log_probabilities) == pytest.approx(h.log_probability)
            assert h.score == pytest.approx(h.log_probability / ((5 + len(h.ids) + 1) / 6) ** alpha)


def test_the_maximum_length_is_kept_and_told() -> None:
    never_ends = tree({(1,) * n: {1: 0.999, END: 0.001} for n in range(20)}, vocabulary=2)
    found = search(never_ends, [0, 1, 5], beam=2, length_penalty=paper_length_penalty(1.0))
    assert [max(len(h.ids) for h in hypotheses) for hypotheses in found] == [0, 1, 5]
    longest = found[2][0]
    assert longest.ids == (1,) * 5
    assert not longest.finished
    assert longest.log_probability == pytest.approx(5 * math.log(0.999) + math.log(0.001))
    [[by_itself]] = search(GARDEN_PATH, [5])
    assert by_itself.finished


def test_more_hypotheses_asked_for_than_there_are() -> None:
    model = random_model(1, 3)
    [found] = search(model, [2], beam=8, n_best=100)
    assert sorted(outputs(found)) == sorted(ids for ids, _ in every_output(model, 0, 3, 2))


def test_ties_go_to_the_lower_id() -> None:
    uniform = tree({(): {1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25}}, vocabulary=5)
    [found] = search(uniform, [3], beam=4, n_best=4)
    assert outputs(found) == [(1,), (2,), (3,), (4,)]


def test_no_sentences_no_steps() -> None:
    assert search(GARDEN_PATH, []) == []


@pytest.mark.parametrize("bad", [math.nan, math.inf, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_not_a_log_probability_is_an_error_and_not_a_translation(bad: float, dtype: torch.dtype) -> None:
    def model(sentence: int, prefix: Prefix) -> Sequence[float]:
        return [-1.0, -2.0, bad if sentence == 1 and prefix else -3.0, -4.0, -5.0, -6.0]

    def run(find: Callable[..., object], **options: Any) -> None:
        find(stepper(model, dtype), Rows.of(2), start_id=START, eos_id=END, max_lengths=[4, 4], **options)

    penalty = paper_length_penalty(0.6)
    for find, options in (
        (beam_search, {"beam": 2, "length_penalty": penalty, "n_best": 3}),
        (sample, {"num_samples": 20, "generator": torch.Generator().manual_seed(1)}),
    ):
        with pytest.raises(DragomanError, match="at target position 1, which must be at most 0") as raised:
            run(find, **options)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"beam": 0}, "beam 0; must be at least 1"), ({"n_best": 0}, "n_best 0; must be at least 1")],
)
def test_impossible_arguments_are_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        search(GARDEN_PATH, [3], **options)
    with pytest.raises(UsageError, match="maximum length -1; must be at least 0"):
        search(GARDEN_PATH, [-1])


# Constraints


def test_a_forced_prefix_is_obeyed_and_what_follows_is_the_best_after_it() -> None:
    model = random_model(11, 6)
    prefixes = [(3, 1), (), (5,)]
    found = search(model, [4, 4, 4], beam=200, n_best=3, constrain=forced_prefix(prefixes))
    for sentence, (prefix, hypotheses) in enumerate(zip(prefixes, found, strict=True)):
        allowed = [o for o in every_output(model, sentence, 6, 4) if o[0][: len(prefix)] == prefix]
        allowed.sort(key=lambda output: -output[1] / paper_length_penalty(0.6)(len(output[0]) + 1))
        assert outputs(hypotheses) == [ids for ids, _ in allowed[:3]]
        assert hypotheses[0].log_probability == pytest.approx(allowed[0][1])


def test_a_constraint_is_a_model_without_the_other_tokens() -> None:
    def odd_then_even(_: int, prefix: Sequence[int]) -> Sequence[int]:
        return [END, *range(1 + len(prefix) % 2, 30, 2)]  # 15 tokens: more than the candidates of a row

    model = random_model(4, 30)

    def without(sentence: int, prefix: Prefix) -> Sequence[float]:
        allowed = odd_then_even(sentence, prefix)
        return [p if token in allowed else -math.inf for token, p in enumerate(model(sentence, prefix))]

    for beam in (1, 3):
        constrained = search(model, [6, 6], beam=beam, n_best=3, constrain=odd_then_even)
        assert constrained == search(without, [6, 6], beam=beam, n_best=3)
        assert constrained != search(model, [6, 6], beam=beam, n_best=3)
        for ids in (h.ids for hypotheses in constrained for h in hypotheses):
            assert all(token % 2 == (position + 1) % 2 for position, token in enumerate(ids))


def test_an_id_allowed_twice_is_one_candidate() -> None:
    [found] = search(random_model(4, 5), [2], beam=4, n_best=50, constrain=lambda _, __: [1, 1, END, END])
    assert sorted(outputs(found)) == [(), (1,), (1, 1)]


def test_the_constraint_is_asked_about_living_prefixes_of_the_right_sentence() -> None:
    asked: list[tuple[int, Prefix]] = []

    def spy(sentence: int, prefix: Sequence[int]) -> None:
        asked.append((sentence, tuple(prefix)))

    model = random_model(8, 6)
    free, constrained = search(model, [3, 5]), search(model, [3, 5], constrain=spy)
    assert free == constrained
    assert len(asked) == len(set(asked))
    assert max(len(prefix) for sentence, prefix in asked if sentence == 0) <= 3
    for sentence in (0, 1):
        best = free[sentence][0].ids
        assert {(sentence, best[:n]) for n in range(len(best) + 1)} <= set(asked)
    asked.clear()
    search(model, [5], constrain=all_of(forced_prefix([(3, 4)]), spy))  # at first only one of the rows is alive
    assert len(asked) == len(set(asked))
    assert all(prefix[:2] == (3, 4)[: len(prefix)] for _, prefix in asked)


def test_constraints_combine() -> None:
    no_three: Constrain = lambda _, __: [END, 1, 2, 4]  # noqa: E731
    both = all_of(forced_prefix([(4,)]), no_three)
    [found] = search(random_model(2, 5), [3], beam=30, n_best=30, constrain=both)
    assert sorted(outputs(found)) == sorted(
        (4, *rest) for n in range(3) for rest in itertools.product((1, 2, 4), repeat=n)
    )
    assert all_of()(0, ()) is None
    assert all_of(forced_prefix([(3,)]), no_three)(0, ()) == []


def test_a_sentence_without_any_allowed_output_has_none_and_disturbs_no_other() -> None:
    model = random_model(6, 6)
    dead_end: Constrain = lambda s, prefix: [] if s == 1 and len(prefix) == 2 else None if s != 1 else [1, 2]  # noqa: E731
    found = search(model, [4, 4, 4], constrain=dead_end)
    free = search(model, [4, 4, 4])
    assert found == [free[0], [], free[2]]


def test_the_maximum_length_never_breaks_a_constraint() -> None:
    never_end: Constrain = lambda _, __: [1, 2]  # noqa: E731
    assert search(random_model(6, 6), [3], constrain=never_end) == [[]]
    assert search(random_model(6, 6), [1], constrain=forced_prefix([(1, 2)])) == [[]]
    [[just_fits]] = search(random_model(6, 6), [2], constrain=forced_prefix([(1, 2)]))
    assert just_fits.ids == (1, 2)


# The recorder


@pytest.mark.parametrize("stop", ["exact", "first"])
def test_the_record_replays_to_what_was_returned(stop: str) -> None:
    model, lengths, beam = random_model(21, 7), [5, 3, 6], 3
    record: list[BeamStep] = []
    found = search(model, lengths, beam=beam, n_best=3, stop=stop, recorder=record.append)
    assert found == search(model, lengths, beam=beam, n_best=3, stop=stop)
    for sentence, hypotheses in enumerate(found):
        steps = [step for step in record if step.sentence == sentence]
        assert [step.position for step in steps] == list(range(len(steps)))
        living: dict[int, tuple[Prefix, float]] = {0: ((), 0.0)}
        finished: dict[Prefix, tuple[float, float]] = {}
        for step in steps:
            grown: dict[int, tuple[Prefix, float]] = {}
            for rank, c in enumerate(step.candidates):
                prefix, total = living[c.parent]
                assert c.token_log_probability == pytest.approx(model(sentence, prefix)[c.token])
                assert c.log_probability == pytest.approx(total + c.token_log_probability)
                assert c.score == pytest.approx(c.log_probability / paper_length_penalty(0.6)(step.position + 1))
                assert (c.beam is not None) == (c.fate == "kept")
                if c.fate == "finished":
                    finished[prefix] = (c.log_probability, c.score)
                elif c.fate == "kept":
                    assert c.beam == len(grown)
                    grown[c.beam] = ((*prefix, c.token), c.log_probability)
                else:
                    assert len(grown) == beam or (c.token == END and rank >= beam and stop == "first")
                assert c.token != END or c.fate != "kept"
            totals = [c.log_probability for c in step.candidates]
            assert totals == sorted(totals, reverse=True)
            assert 1 <= len(totals) <= 2 * beam
            living = grown
        best = sorted(finished.items(), key=lambda item: -item[1][1])[:3]
        assert [(h.ids, h.log_probability, h.score) for h in hypotheses] == [(ids, *rest) for ids, rest in best]


# Sampling


def draw(model: Model, max_lengths: Sequence[int], num_samples: int, seed: int = 1, **options: Any) -> Any:
    return sample(
        stepper(model),
        options.pop("state", None) or Rows.of(len(max_lengths)),
        start_id=START,
        eos_id=END,
        max_lengths=max_lengths,
        num_samples=num_samples,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )


WEATHER = tree({(): {1: 0.5, 2: 0.3, 3: 0.15, END: 0.05}, (1,): {4: 0.8, END: 0.2}}, vocabulary=5)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_samples_are_as_frequent_as_they_are_probable(temperature: float) -> None:
    count = 4000
    [samples] = draw(WEATHER, [5], count, temperature=temperature)
    assert len(samples) == count

    def heated(probabilities: dict[int, float]) -> dict[int, float]:
        powers = {token: p ** (1 / temperature) for token, p in probabilities.items()}
        return {token: power / sum(powers.values()) for token, power in powers.items()}

    first, second = heated({1: 0.5, 2: 0.3, 3: 0.15, 0: 0.05}), heated({4: 0.8, 0: 0.2})
    expected = {(): first[0], (2,): first[2], (3,): first[3], (1,): first[1] * second[0], (1, 4): first[1] * second[4]}
    counts = Counter(outputs(samples))
    assert set(counts) == set(expected)
    for ids, p in expected.items():
        assert abs(counts[ids] - count * p) < 4 * math.sqrt(count * p * (1 - p)), ids
    # The log-probability is the model's, whatever the temperature.
    own = {(): 0.05, (2,): 0.3, (3,): 0.15, (1,): 0.1, (1, 4): 0.4}
    for h in samples[:200]:
        assert h.log_probability == h.score == pytest.approx(math.log(own[h.ids]))
        assert sum(h.token_log_probabilities) == pytest.approx(h.log_probability)
        assert h.finished


def test_samples_come_in_the_order_drawn() -> None:
    """Were they ordered by when they end, the first of many would nearly always be the shortest."""
    first = Counter(samples[0].ids for samples in draw(WEATHER, [5] * 400, 8))
    assert abs(first[(1, 4)] - 160) < 40


def test_top_k_and_top_p_leave_out_the_improbable() -> None:
    assert set(outputs(draw(WEATHER, [1], 300, top_k=2)[0])) == {(1,), (2,)}
    assert set(outputs(draw(WEATHER, [1], 300, top_p=0.4)[0])) == {(1,)}
    assert set(outputs(draw(WEATHER, [1], 300, top_p=0.7)[0])) == {(1,), (2,)}
    assert set(outputs(draw(WEATHER, [1], 300, top_p=0.9)[0])) == {(1,), (2,), (3,)}
    # Of the two most probable, 0.5 / 0.8 is reached by the first alone.
    assert set(outputs(draw(WEATHER, [1], 300, top_k=2, top_p=0.6)[0])) == {(1,)}


def test_sampling_near_temperature_zero_is_greedy() -> None:
    model, lengths = random_model(13, 8), [6, 3, 5]
    greedy = greedy_search(
        stepper(model),
        Rows.of(3),
        start_id=START,
        eos_id=END,
        max_lengths=lengths,
        length_penalty=paper_length_penalty(0.0),
    )
    for options in ({"temperature": 1e-9}, {"temperature": 1e-300}, {"top_k": 1}, {"top_p": 1e-9}):
        cold = draw(model, lengths, 2, **options)
        assert [outputs(samples) for samples in cold] == [outputs(best) * 2 for best in greedy]
    with pytest.raises(UsageError, match="temperature 0; must be above 0"):
        draw(model, lengths, 2, temperature=0)
    with pytest.raises(UsageError, match="top_p 0; must be above 0"):
        draw(model, lengths, 2, top_p=0)


def test_samples_keep_lengths_constraints_and_the_seed() -> None:
    model, lengths, state = random_model(17, 6, sharpness=0.5), [0, 2, 6], Rows.of(3)
    constrain = all_of(forced_prefix([(), (5,), (4, 3)]), lambda _, prefix: None if len(prefix) < 2 else [END, 1, 2])
    samples = draw(model, lengths, 12, constrain=constrain, state=state)
    assert outputs(samples[0]) == [()] * 12
    assert all(ids[:1] == (5,) and len(ids) <= 2 for ids in outputs(samples[1]))
    assert all(ids[:2] == (4, 3) and len(ids) <= 6 and set(ids[2:]) <= {1, 2} for ids in outputs(samples[2]))
    assert len(samples[1]) == len(samples[2]) == 12
    assert all(h.finished == (len(h.ids) < lengths[s]) for s in range(3) for h in samples[s])
    assert state.steps[0] == 3
    assert state.steps[-1] == 1
    assert samples == draw(model, lengths, 12, constrain=constrain)
    assert samples != draw(model, lengths, 12, seed=2, constrain=constrain)


def test_a_sample_that_meets_a_dead_end_is_left_out() -> None:
    dead_end: Constrain = lambda _, prefix: [] if 1 in prefix else None  # noqa: E731
    [samples] = draw(WEATHER, [5], 200, constrain=dead_end)
    assert 0 < len(samples) < 200
    assert set(outputs(samples)) == {(), (2,), (3,)}
    assert draw(WEATHER, [5], 3, constrain=lambda _, __: []) == [[]]
