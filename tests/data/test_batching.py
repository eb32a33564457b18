"""Every pair once an epoch, within the budget, with little padding, in an order that seed and epoch alone decide."""

import math
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import dragoman.data.batching
from dragoman.config import ModelConfig
from dragoman.data.batching import Batch, make_batch, micro_batches_per_step, pad, plan_epoch
from dragoman.data.dataset import Dataset
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.transformer import Transformer

PAD, BOS, EOS = 0, 2, 3
# All that a batch needs of a tokenizer.
SYMBOLS: Any = SimpleNamespace(pad_id=PAD, bos_id=BOS, eos_id=EOS, ends_source=True)
Lengths = Sequence[tuple[int, int]]
Plan = Sequence[list[np.ndarray]]


def dataset_of(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], counts: Sequence[int] = (), weights: Sequence[float] = (1.0,)
) -> Dataset:
    arrays: dict[str, Any] = {}
    for side, sequences in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        arrays[f"{side}_ids"] = np.concatenate([np.asarray(ids, dtype=np.uint16) for ids in sequences])
        arrays[f"{side}_lengths"] = np.array([len(ids) for ids in sequences], dtype=np.int32)
        offsets = np.concatenate([[0], np.cumsum(arrays[f"{side}_lengths"])])
        arrays[f"{side}_offsets"] = offsets.astype(np.uint64)
    corpus = np.repeat(np.arange(len(weights), dtype=np.uint16), counts or [len(pairs)])
    return Dataset(corpus=corpus, weights=tuple(weights), **arrays)


def of_lengths(lengths: Lengths, counts: Sequence[int] = (), weights: Sequence[float] = (1.0,)) -> Dataset:
    return dataset_of([([9] * source, [9] * target) for source, target in lengths], counts, weights)


def micro_batches(plan: Plan) -> list[np.ndarray]:
    return [rows for step in plan for rows in step]


def as_lists(plan: Plan) -> list[list[list[int]]]:
    return [[rows.tolist() for rows in step] for step in plan]


def seen(plan: Plan) -> Counter[int]:
    return Counter(int(row) for rows in micro_batches(plan) for row in rows)


def sizes(data: Dataset, rows: np.ndarray) -> tuple[int, int]:
    """Positions computed on each side, padding and the end symbol included."""
    return (
        len(rows) * (int(data.source_lengths[rows].max()) + 1),
        len(rows) * (int(data.target_lengths[rows].max()) + 1),
    )


def real_tokens(data: Dataset, rows: np.ndarray) -> tuple[int, int]:
    return int((data.source_lengths[rows] + 1).sum()), int((data.target_lengths[rows] + 1).sum())


def like_multi30k(count: int = 29_000, seed: int = 0) -> Lengths:
    """Image captions in 8,000 pieces: 14 to 15 tokens a side, three quarters between 10 and 20, some up to 50."""
    random = np.random.default_rng(seed)
    source = np.exp(random.normal(2.60, 0.30, count))
    target = source * np.exp(random.normal(0.01, 0.18, count))
    return [(max(1, round(s)), max(1, round(t))) for s, t in zip(source, target, strict=True)]


any_lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=60)


@given(any_lengths, st.integers(1, 200), st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_every_pair_comes_exactly_once_and_within_the_budget(
    lengths: Lengths, batch_tokens: int, micro_batch_tokens: int, seed: int, epoch: int
) -> None:
    data = of_lengths(lengths)
    plan = plan_epoch(data, batch_tokens, micro_batch_tokens, seed, epoch)
    assert seen(plan) == dict.fromkeys(range(len(lengths)), 1)
    for rows in micro_batches(plan):  # a pair over the budget goes alone
        assert len(rows) == 1 or max(sizes(data, rows)) <= min(batch_tokens, micro_batch_tokens)


@given(any_lengths, st.integers(20, 200), st.integers(10, 100), st.integers(0, 5))
def test_a_step_stays_within_its_tokens_and_has_as_many_micro_batches_as_every_other(
    lengths: Lengths, batch_tokens: int, micro_batch_tokens: int, seed: int
) -> None:
    data = of_lengths(lengths)
    plan = plan_epoch(data, batch_tokens, micro_batch_tokens, seed, 0)
    filled = [sum(max(real_tokens(data, rows)) for rows in step) for step in plan]
    for step, tokens in zip(plan, filled, strict=True):
        alone = sum(max(real_tokens(data, rows)) for rows in step if len(rows) == 1)  # however long
        assert tokens - alone <= batch_tokens
    # So many as bring it to its tokens; what is left over makes an epoch's last step.
    per_step = micro_batches_per_step(batch_tokens, micro_batch_tokens)
    assert (per_step - 1) * micro_batch_tokens < batch_tokens <= per_step * micro_batch_tokens
    assert all(len(step) == per_step for step in plan[:-1])
    assert not plan or 1 <= len(plan[-1]) <= per_step


def test_a_micro_batch_is_filled_as_far_as_it_goes() -> None:
    """10 pairs of 4 + 5 positions in 12: two at a time, which is 10; a third would be 15."""
    plan = plan_epoch(of_lengths([(3, 4)] * 10), 12, 12, 0, 0)
    assert [len(rows) for rows in micro_batches(plan)] == [2] * 5


def test_the_papers_step_is_reached_in_parts() -> None:
    data = of_lengths(like_multi30k(20_000))
    plan = plan_epoch(data, 25_000, 6_250, 1, 0)
    filled = [
        max(sum(tokens) for tokens in zip(*(real_tokens(data, rows) for rows in step), strict=True)) for step in plan
    ]
    assert max(filled) <= 25_000
    assert sum(filled[:-1]) / len(filled[:-1]) > 0.8 * 25_000
    assert len(plan[0]) == 4


@pytest.mark.parametrize("budget", [1500, 4096])
def test_captions_need_little_padding(budget: int) -> None:
    data = of_lengths(like_multi30k())
    rows_of = micro_batches(plan_epoch(data, budget, budget, 1, 0))
    computed = sum(sum(sizes(data, rows)) for rows in rows_of)
    real = sum(sum(real_tokens(data, rows)) for rows in rows_of)
    assert 1 - real / computed < 0.05
    same_length = sum(np.ptp(data.source_lengths[rows]) == 0 for rows in rows_of)
    assert same_length / len(rows_of) > 0.7  # and most sources no mask
    assert sum(max(sizes(data, rows)) for rows in rows_of) / len(rows_of) > 0.9 * budget  # which is used up


def test_seed_and_epoch_alone_decide() -> None:
    data = of_lengths(like_multi30k(3000))
    plan = as_lists(plan_epoch(data, 2000, 500, 7, 3))
    np.random.seed(1)
    torch.manual_seed(1)
    plan_epoch(data, 2000, 500, 7, 2)
    assert as_lists(plan_epoch(data, 2000, 500, 7, 3)) == plan
    for seed, epoch in ((7, 4), (8, 3), (3, 7)):
        assert as_lists(plan_epoch(data, 2000, 500, seed, epoch)) != plan


def test_each_epoch_brings_other_batches_in_another_order() -> None:
    data = of_lengths(like_multi30k(3000))
    first, second = (micro_batches(plan_epoch(data, 500, 500, 1, epoch)) for epoch in (0, 1))
    together_first, together_second = ({frozenset(rows.tolist()) for rows in rows_of} for rows_of in (first, second))
    assert len(together_first & together_second) < 0.1 * len(together_first)
    for rows_of in (first, second):
        lengths = [int(data.source_lengths[rows].max()) for rows in rows_of]
        rising = sum(a <= b for a, b in pairwise(lengths)) / len(lengths)
        assert 0.35 < rising < 0.75  # neither short ones first nor long ones


def test_a_corpus_comes_as_often_as_its_weight() -> None:
    lengths = like_multi30k(3000)
    data = of_lengths(lengths, counts=(1000, 1000, 1000), weights=(2.0, 0.5, 1.0))
    epochs = [seen(plan_epoch(data, 1000, 1000, 1, epoch)) for epoch in range(20)]
    for found in epochs:
        assert {found[row] for row in range(1000)} == {2}
        assert {found[row] for row in range(1000, 2000)} == {0, 1}
        assert {found[row] for row in range(2000, 3000)} == {1}
        assert 420 < sum(found[row] for row in range(1000, 2000)) < 580  # five standard deviations of 1000 coins
    times = [sum(found[row] for found in epochs) for row in range(1000, 2000)]
    assert min(times) >= 1  # another half each time, so that every pair has its turn
    assert 9.5 < sum(times) / 1000 < 10.5


def test_a_weight_between_is_the_whole_part_and_sometimes_one_more() -> None:
    data = of_lengths([(3, 3)] * 2000, weights=(2.25,))
    found = seen(plan_epoch(data, 100, 100, 1, 0))
    assert set(found.values()) == {2, 3}
    assert 400 < sum(times == 3 for times in found.values()) < 600


@given(any_lengths, st.integers(0, 40), st.tuples(st.floats(0.1, 4), st.floats(0.1, 4)), st.integers(0, 3))
def test_a_pair_comes_as_often_as_its_weight_says_or_once_more(
    lengths: Lengths, first: int, weights: tuple[float, float], seed: int
) -> None:
    first = min(first, len(lengths))
    data = of_lengths(lengths, counts=(first, len(lengths) - first), weights=weights)
    found = seen(plan_epoch(data, 90, 90, seed, 0))
    for row in range(len(lengths)):
        weight = weights[row >= first]
        assert math.floor(weight) <= found[row] <= math.floor(weight) + 1
        assert weight != math.floor(weight) or found[row] == weight


@given(any_lengths, st.integers(1, 200), st.integers(1, 200), st.integers(1, 30))
def test_a_plan_made_in_parts_is_the_one_made_at_once(
    lengths: Lengths, batch_tokens: int, micro_batch_tokens: int, part: int
) -> None:
    data = of_lengths(lengths, counts=(len(lengths) // 2, len(lengths) - len(lengths) // 2), weights=(1.5, 1.0))
    whole = as_lists(plan_epoch(data, batch_tokens, micro_batch_tokens, 1, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dragoman.data.batching, "PART_PAIRS", part)
        assert as_lists(plan_epoch(data, batch_tokens, micro_batch_tokens, 1, 0)) == whole


@given(any_lengths, st.slices(20), st.integers(-30, 30))
def test_a_plan_is_a_sequence_of_its_steps(lengths: Lengths, part: slice, index: int) -> None:
    plan = plan_epoch(of_lengths(lengths), 60, 25, 1, 0)
    steps = as_lists(plan)
    assert len(plan) == len(steps)
    assert as_lists(plan[part]) == steps[part]
    assert as_lists(plan[2:][1:]) == steps[3:]
    if -len(steps) <= index < len(steps):
        assert as_lists([plan[index]]) == [steps[index]]
    else:
        with pytest.raises(IndexError):
            plan[index]


def test_a_plan_takes_few_bytes_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dragoman.data.batching, "PART_PAIRS", 20_000)
    pairs = 400_000
    random = np.random.default_rng(0)
    lengths = [np.exp(random.normal(2.6, 0.4, pairs)).astype(np.int32).clip(1) for _ in range(2)]
    nothing = np.zeros(0, np.uint16)  # a plan looks at lengths alone
    arrays: dict[str, Any] = {f"{side}_{kind}": nothing for side in ("source", "target") for kind in ("ids", "offsets")}
    arrays |= dict(zip(("source_lengths", "target_lengths"), lengths, strict=True))
    data = Dataset(corpus=nothing, weights=(1.0,), **arrays)
    tracemalloc.start()
    plan = plan_epoch(data, 25_000, 6_250, 1, 0)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, micro_batches(plan))) == pairs
    assert kept < 5 * pairs
    assert peak < 25 * pairs


# What a batch holds


def test_a_batch_by_hand() -> None:
    data = dataset_of([([11, 12], [21, 22, 23]), ([13], [24]), ([14, 15, 16], [25])])
    batch = make_batch(data, np.array([2, 0]), SYMBOLS)
    assert batch.rows.tolist() == [2, 0]
    assert batch.source.tolist() == [[14, 15, 16, EOS], [11, 12, EOS, PAD]]
    assert batch.source_mask is not None
    assert batch.source_mask.tolist() == [[True, True, True, True], [True, True, True, False]]
    assert batch.target.tolist() == [[BOS, 25, PAD, PAD], [BOS, 21, 22, 23]]
    assert batch.labels.tolist() == [25, EOS, 21, 22, 23, EOS]
    assert batch.real is not None
    assert batch.real.tolist() == [0, 1, 4, 5, 6, 7]
    assert batch.tokens == 6
    assert {t.dtype for t in (batch.source, batch.target, batch.labels, batch.real)} == {torch.int64}


def test_a_source_has_an_end_symbol_unless_the_model_reads_none() -> None:
    data = dataset_of([([5, 6], [7]), ([8, 9, 10], [7])])
    without = SimpleNamespace(**{**vars(SYMBOLS), "ends_source": False})
    sources = [make_batch(data, np.arange(2), tokenizer).source.tolist() for tokenizer in (SYMBOLS, without)]  # type: ignore[arg-type]
    assert sources == [[[5, 6, EOS, PAD], [8, 9, 10, EOS]], [[5, 6, PAD], [8, 9, 10]]]


def test_a_batch_without_padding_has_no_mask() -> None:
    data = dataset_of([([11, 12], [21]), ([13, 14], [22])])
    batch = make_batch(data, np.array([0, 1]), SYMBOLS)
    assert (batch.source_mask, batch.real) == (None, None)
    assert batch.source.tolist() == [[11, 12, EOS], [13, 14, EOS]]
    assert batch.target.tolist() == [[BOS, 21], [BOS, 22]]
    assert batch.labels.tolist() == [21, EOS, 22, EOS]


@given(st.lists(st.lists(st.integers(4, 99), max_size=7), min_size=1, max_size=6))
def test_padding_is_at_the_end_and_the_mask_says_where(sequences: list[list[int]]) -> None:
    ids, mask = pad(sequences, PAD)
    assert ids.shape == (len(sequences), max(map(len, sequences)))
    if mask is None:
        assert ids.tolist() == sequences
    else:
        assert [row[real].tolist() for row, real in zip(ids, mask, strict=True)] == sequences
        assert not ids[~mask].any()
        assert mask.sum(dim=1).tolist() == [len(sequence) for sequence in sequences]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=5))
def test_labels_stand_beside_the_states_that_predict_them(lengths: Lengths) -> None:
    pairs = [([9] * s, [100 * (row + 1) + t for t in range(target)]) for row, (s, target) in enumerate(lengths)]
    batch = make_batch(dataset_of(pairs), np.arange(len(pairs)), SYMBOLS)
    states = batch.target[:, :, None].expand(-1, -1, 4)  # as if each state were the token fed
    picked = batch.real_states(states)
    assert picked.shape == (batch.tokens, 4)
    fed, labels = picked[:, 0].tolist(), batch.labels.tolist()
    expected = [step for _, target in pairs for step in zip([BOS, *target], [*target, EOS], strict=True)]
    assert list(zip(fed, labels, strict=True)) == expected


def test_a_batch_moves_as_a_whole() -> None:
    for pairs in ([([11], [21]), ([12, 13], [22, 23])], [([11], [21])]):
        batch = make_batch(dataset_of(pairs), np.arange(len(pairs)), SYMBOLS)
        moved = batch.to(torch.device("meta"))
        for name, value in vars(batch).items():
            there = getattr(moved, name)
            if isinstance(value, Tensor):
                assert (there.device.type, there.shape, there.dtype) == ("meta", value.shape, value.dtype)
            else:
                assert there is value


# Accumulation


def gradients(model: Transformer, batches: Sequence[Batch], smoothing: float) -> list[Tensor]:
    """As the training loop has it: the loss of the whole step, divided by the tokens of the whole step."""
    tokens = sum(batch.tokens for batch in batches)
    model.zero_grad()
    for batch in batches:
        states = batch.real_states(model.states(batch.source, batch.target, batch.source_mask))
        loss, _ = smoothed_cross_entropy(states, model.output.weight, batch.labels, smoothing)
        (loss / tokens).backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_an_accumulated_step_is_that_of_the_whole_batch(smoothing: float) -> None:
    random = np.random.default_rng(0)
    pairs = [
        (
            random.integers(4, 40, random.integers(1, 12)).tolist(),
            random.integers(4, 40, random.integers(1, 12)).tolist(),
        )
        for _ in range(30)
    ]
    data = dataset_of(pairs)
    (step,) = plan_epoch(data, 1000, 60, 1, 0)
    assert len(step) > 4
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(vocab_size=40, encoder_layers=1, decoder_layers=1, d_model=8, d_ff=12, num_heads=2, dropout=0.0)
    ).double()
    whole = gradients(model, [make_batch(data, np.arange(30), SYMBOLS)], smoothing)
    in_parts = gradients(model, [make_batch(data, rows, SYMBOLS) for rows in step], smoothing)
    for ours, expected in zip(in_parts, whole, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)
    # A mean of means would be something else.
    means = [gradients(model, [make_batch(data, rows, SYMBOLS)], smoothing)[0] / len(step) for rows in step]
    assert (torch.stack(means).sum(dim=0) - whole[0]).abs().max() > 1e-4
