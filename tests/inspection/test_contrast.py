"""Contrastive attribution: its gradients are those of finite differences, its erasures those of shorter inputs."""

from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.errors import UsageError
from dragoman.inspection.contrast import Continuations, attribute, erasures, gradients, log_probabilities
from dragoman.inspection.inspector import Inspector
from support.deep_inspectors import SENTENCE, deep_inspector

ASKED = Continuations(source=[40, 51, 62, 33, 3], before=[2, 71, 64], this=[90, 45], that=[81])


@pytest.fixture(scope="module", params=["pre", "post"])
def deep(request: pytest.FixtureRequest, tiny_run: Path) -> Inspector:
    """One table for both languages would make a moved vector move the output, too."""
    return deep_inspector(tiny_run, norm_order=request.param, tie_embeddings=False)


@pytest.fixture(scope="module")
def trained(tiny_run: Path) -> Inspector:
    return Inspector.load(tiny_run)


def test_gradients_are_finite_differences(deep: Inspector) -> None:
    """Each token's vector is moved a little in every direction; a token that stands twice would move twice."""
    model: Any = deep.model
    small = 1e-6

    def difference() -> float:
        this, that = log_probabilities(model, ASKED)
        return this - that

    times_input, norms = gradients(model, ASKED)
    for table, ids, products, sizes in (
        (model.source_embedding.tokens.weight, ASKED.source, times_input[0], norms[0]),
        (model.target_embedding.tokens.weight, ASKED.before, times_input[1], norms[1]),
    ):
        for token, product, size in zip(ids, products, sizes, strict=True):
            vector = table.data[token]
            slopes = torch.zeros_like(vector)
            for at in range(len(vector)):
                kept = vector[at].item()
                vector[at] = kept + small
                above = difference()
                vector[at] = kept - small
                slopes[at] = (above - difference()) / (2 * small)
                vector[at] = kept
            assert product == pytest.approx((slopes * vector).sum().item(), rel=1e-5, abs=1e-7)
            assert size == pytest.approx(slopes.abs().sum().item(), rel=1e-5)


def by_passes(deep: Inspector, asked: Continuations) -> float:
    """The difference by two whole passes."""
    sums = []
    for continuation in (asked.this, asked.that):
        fed = torch.tensor([[*asked.before, *continuation]])
        with torch.no_grad():
            log_probabilities = deep.model(torch.tensor([list(asked.source)]), fed[:, :-1]).log_softmax(dim=-1)
        rows = log_probabilities[0, -len(continuation) :]
        sums.append(float(sum(rows[at, token].item() for at, token in enumerate(continuation))))
    return sums[0] - sums[1]


def test_erasures_are_passes_without_the_token(deep: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.inspection.contrast.ERASED_AT_ONCE", 2)
    whole = by_passes(deep, ASKED)
    this, that = log_probabilities(deep.model, ASKED)
    assert this - that == pytest.approx(whole)
    of_source, of_before = erasures(deep.model, ASKED, given=1)
    for at, lost in enumerate(of_source):
        left = [*ASKED.source[:at], *ASKED.source[at + 1 :]]
        assert lost == pytest.approx(whole - by_passes(deep, Continuations(left, ASKED.before, ASKED.this, ASKED.that)))
    assert of_before[0] is None  # the start symbol
    for at, lost in list(enumerate(of_before))[1:]:
        left = [*ASKED.before[:at], *ASKED.before[at + 1 :]]
        assert lost == pytest.approx(whole - by_passes(deep, Continuations(ASKED.source, left, ASKED.this, ASKED.that)))
    alone = Continuations([3], [2], [40], [41])
    assert erasures(deep.model, alone, given=1) == ([None], [None])


def test_the_other_way_round_everything_has_the_other_sign(deep: Inspector) -> None:
    turned = Continuations(ASKED.source, ASKED.before, ASKED.that, ASKED.this)
    for one, other in zip(attribute(deep.model, ASKED), attribute(deep.model, turned), strict=True):
        assert one[0] == pytest.approx([-value for value in other[0]])
        assert one[1] == pytest.approx(other[1])
        assert one[2] == [None if value is None else pytest.approx(-value) for value in other[2]]


def test_two_tokens_are_compared_where_the_translation_goes_on(trained: Inspector) -> None:
    seen = trained.inspect(SENTENCE)
    row = 2
    likely = trained.explainer.explain(SENTENCE, seen.tokens).positions[row].alternatives
    other = next(one for one in likely if one.token != seen.produced[row])
    found = trained.contrast(SENTENCE, [other.token], row)
    assert (found.this, found.that, found.position) == ((seen.produced[row],), (other.token,), row)
    assert found.this_log_probability == pytest.approx(seen.log_probabilities[row], abs=1e-4)
    assert found.that_log_probability == pytest.approx(torch.tensor(other.probability).log().item(), abs=1e-4)
    assert found.difference == found.this_log_probability - found.that_log_probability
    assert [one.token for one in found.source] == list(seen.source)
    assert [one.token for one in found.before] == list(seen.fed[: row + 1])
    # With nothing said, it is the least certain token against the next best one.
    usual = trained.contrast(SENTENCE)
    assert seen.log_probabilities[usual.position] == min(seen.log_probabilities)
    best = trained.explainer.explain(SENTENCE, seen.tokens).positions[usual.position].alternatives
    assert usual.that[0] == next(one.token for one in best if one.token != usual.this[0])


def test_words_are_compared_whole(trained: Inspector) -> None:
    seen = trained.inspect(SENTENCE, "la malnova hundo vidas arbon")
    words = trained.explainer.words(trained.explainer.token_ids(seen.tokens))
    word = next(one for one in words if one.last_token > one.first_token)
    found = trained.contrast(SENTENCE, "kato", word.last_token, seen.tokens)
    assert found.position == word.first_token
    assert found.this == seen.tokens[word.first_token : word.last_token + 1]
    assert found.that == trained.explainer.pieces(trained.tokenizer.encode_target("kato"))
    assert found.this_log_probability == pytest.approx(
        sum(seen.log_probabilities[word.first_token : word.last_token + 1]), abs=1e-4
    )
    ended = trained.contrast(SENTENCE, "kato", len(seen.tokens), seen.tokens)
    assert ended.this == ("</s>",)


def test_what_cannot_be_compared_is_refused_in_a_line(trained: Inspector) -> None:
    seen = trained.inspect(SENTENCE)
    with pytest.raises(UsageError, match=f"position 99; the translation has 0 to {len(seen.tokens)}"):
        trained.contrast(SENTENCE, "kato", 99)
    with pytest.raises(UsageError, match="the same; give another word"):
        trained.contrast(SENTENCE, [seen.produced[1]], 1)
    with pytest.raises(UsageError, match="give another word"):
        trained.contrast(SENTENCE, "  ", 1)
    with pytest.raises(UsageError, match="'nothere' is not in the vocabulary"):
        trained.contrast(SENTENCE, ["nothere"], 1)
