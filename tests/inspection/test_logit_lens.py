"""The logit lens reads what a model that ended after each layer would say."""

import copy
from pathlib import Path

import pytest
import torch

from dragoman.inspection.inspector import Inspector
from support.deep_inspectors import SENTENCE, deep_inspector


@pytest.fixture(scope="module", params=["pre", "post"])
def deep(request: pytest.FixtureRequest, tiny_run: Path) -> Inspector:
    return deep_inspector(tiny_run, norm_order=request.param)


def ids_of(inspector: Inspector, tokens: tuple[str, ...]) -> torch.Tensor:
    return torch.tensor([inspector.explainer.token_ids(tokens)])


def test_the_last_layer_reads_the_models_own_distribution(deep: Inspector) -> None:
    lens, seen = deep.lens(SENTENCE, "la hundo"), deep.inspect(SENTENCE, "la hundo")
    explained = deep.explainer.explain(SENTENCE, seen.tokens)
    assert len(lens.positions) == len(seen.produced)
    for row, layers in enumerate(lens.positions):
        assert layers[-1].probability == pytest.approx(explained.positions[row].probability, rel=1e-5)
        assert [one.token for one in layers[-1].candidates] == [o.token for o in explained.positions[row].alternatives]
        assert [one.probability for one in layers[-1].candidates] == pytest.approx(
            [one.probability for one in explained.positions[row].alternatives], rel=1e-5
        )


def test_each_layer_reads_what_a_decoder_that_ends_there_says(deep: Inspector) -> None:
    lens = deep.lens(SENTENCE, "la hundo", count=3)
    source, fed = ids_of(deep, deep.inspect(SENTENCE, "la hundo").source), ids_of(deep, lens.fed)
    with torch.no_grad():
        embedded = deep.model.decoder_norm(deep.model.target_embedding(fed))  # with no layer at all
        before = deep.model.output(embedded)[0].softmax(dim=-1)
    pieces = deep.explainer.pieces
    for layer in range(3):
        shorter = copy.deepcopy(deep.model)
        shorter.decoder = shorter.decoder[: layer + 1]
        with torch.no_grad():
            now = shorter(source, fed)[0].softmax(dim=-1)
        for row, token in enumerate(deep.explainer.token_ids(lens.produced)):
            reading, shift = lens.positions[row][layer], (now - before)[row]
            assert reading.layer == layer
            assert reading.probability == pytest.approx(now[row, token].item(), rel=1e-5)
            assert reading.rank == 1 + int((now[row] > now[row, token]).sum())
            assert tuple(one.token for one in reading.candidates) == pieces(now[row].topk(3).indices.tolist())
            for found, most in ((reading.promoted, shift.topk(3)), (reading.suppressed, (-shift).topk(3))):
                assert tuple(one.token for one in found) == pieces(most.indices.tolist())
                sizes = [abs(one.after - one.before) for one in found]
                assert sizes == pytest.approx(most.values.tolist(), abs=1e-6)
        before = now


def test_changed_heads_are_read_too_and_where_it_settles_is_said(deep: Inspector) -> None:
    lens, changed = deep.lens(SENTENCE, "la hundo"), deep.lens(SENTENCE, "la hundo", ["cross.2.*:off"])
    seen = deep.inspect(SENTENCE, "la hundo", ["cross.2.*:off"])
    assert [layers[1] for layers in lens.positions] == [layers[1] for layers in changed.positions]
    for layers, log_probability in zip(changed.positions, seen.log_probabilities, strict=True):
        assert layers[-1].probability == pytest.approx(torch.tensor(log_probability).exp().item(), rel=1e-5)
    own = deep.lens(SENTENCE)
    for row, layers in enumerate(own.positions):
        first = own.settled(row)
        ranks = [reading.rank for reading in layers]
        assert first == next((at for at in range(3) if set(ranks[at:]) == {1}), None)
