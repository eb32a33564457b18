"""Contributions are those of the paper's formulas, written out token by token, and sum to one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.inspection import contributions as module
from dragoman.inspection.inspector import Inspector
from dragoman.model.probe import Probe, Site
from support.deep_inspectors import SENTENCE, deep_inspector

SAID = "la hundo vidas la domon"


@pytest.fixture(scope="module", params=[("pre", "layer"), ("post", "layer"), ("post", "batch"), ("bias", "layer")])
def deep(request: pytest.FixtureRequest, tiny_run: Path) -> Inspector:
    order, norm = request.param
    changes = {"norm_order": "post", "attention_bias": True} if order == "bias" else {"norm_order": order}
    inspector = deep_inspector(tiny_run, norm=norm, **changes)
    for name, running in inspector.model.named_buffers():
        if name.endswith("running_var"):
            running.fill_(1.7)
    return inspector


def test_rows_sum_to_one_and_nothing_comes_from_the_future(deep: Inspector) -> None:
    found = deep.contributions(SENTENCE, SAID)
    rows, sources = len(found.produced), len(found.source)
    assert found.total.shape == (rows, sources + rows)
    assert sorted(found.sublayers) == sorted(deep.sites)
    for matrix in (found.total, *found.sublayers.values()):
        assert matrix.min() >= 0
        torch.testing.assert_close(matrix.sum(dim=1), torch.ones(matrix.shape[0], dtype=torch.float64))
    assert found.total[:, sources:].triu(1).abs().max() == 0
    assert found.sublayers[Site("decoder", 1)].triu(1).abs().max() == 0
    assert found.from_source == pytest.approx(found.total[:, :sources].sum(dim=1).tolist())


def written_out(deep: Inspector, site: Site) -> tuple[Tensor, Tensor]:
    """The shares of a sub-layer, one vector after the other, and the sub-layer's result; in the paper's matrices."""
    model: Any = deep.model
    seen = deep.inspect(SENTENCE, SAID)
    source, fed = (torch.tensor([deep.explainer.token_ids(one)]) for one in (seen.source, seen.fed))
    probe = Probe()
    with torch.no_grad():
        model(source, fed, probe=probe)
        block = (model.encoder if site.kind == "encoder" else model.decoder)[site.layer]
        own, x = block.around_self, probe.residuals["encoder" if site.kind == "encoder" else "decoder"][site.layer]
        attention = block.self_attention
        own_site = Site("encoder" if site.kind == "encoder" else "decoder", site.layer)
        causal = site.kind != "encoder"

        def look(y: Tensor) -> Tensor:
            return attention.attend(*attention.project(y), own_site, causal=causal)  # type: ignore[no-any-return]

        looked_at = own.norm(x)[0] if own.pre_norm else x[0]
        around, whole = own, own(x, look)[0]
        if site.kind == "cross":
            attention, around, x = block.cross_attention, block.around_cross, whole[None]
            looked_at = model.encode(source)[0]
            keys_values = model.cross_keys_values(model.encode(source))[site.layer]

            def across(y: Tensor) -> Tensor:
                return attention.attend(attention.split_heads(attention.w_q(y)), *keys_values, site)  # type: ignore[no-any-return]

            whole = around(x, across)[0]
        weights = probe.weights[site][0]
        d_v, d_model = 4, 12
        columns = weights.shape[2] + (site.kind == "cross")
        parts = torch.zeros(weights.shape[1], columns, d_model, dtype=torch.float64)
        for row in range(weights.shape[1]):
            for token in range(weights.shape[2]):
                values = attention.w_v(looked_at[token])
                for head in range(3):
                    of_head = slice(head * d_v, (head + 1) * d_v)
                    through = attention.w_o.weight[:, of_head] @ values[of_head]
                    parts[row, token] += weights[head, row, token] * through
            parts[row, -1 if site.kind == "cross" else row] += x[0, row]
        rest = torch.zeros_like(x[0]) if attention.w_o.bias is None else attention.w_o.bias.expand_as(x[0])
        if not around.pre_norm:
            norm, total = around.norm, parts.sum(dim=1) + rest
            if isinstance(norm, torch.nn.LayerNorm):
                linear = torch.diag(norm.weight) @ (torch.eye(d_model) - 1 / d_model).double()
                scale = 1 / (total.var(dim=1, unbiased=False) + norm.eps).sqrt()
                shift = norm.bias
            else:
                linear = torch.diag(norm.norm.weight / (norm.norm.running_var + norm.norm.eps).sqrt())
                scale = torch.ones(total.shape[0], dtype=torch.float64)
                shift = norm.norm.bias - linear @ norm.norm.running_mean
            parts = torch.einsum("t,tnd,ed->tne", scale, parts, linear)
            rest = torch.einsum("t,td,ed->te", scale, rest, linear) + shift
        # Theirs is a decomposition: vectors and biases make up what the sub-layer gives.
        torch.testing.assert_close(parts.sum(dim=1) + rest, whole)
        near = torch.stack([(whole.norm(1, dim=1) - (whole - parts[:, at]).norm(1, dim=1)) for at in range(columns)], 1)
    return near.clamp(min=0), whole


@pytest.mark.parametrize("site", [Site("encoder", 1), Site("decoder", 1), Site("cross", 2)])
def test_shares_are_those_of_the_papers_formulas(deep: Inspector, site: Site) -> None:
    found = deep.contributions(SENTENCE, SAID).sublayers[site]
    near, _ = written_out(deep, site)
    certain = near.sum(dim=1) > 1e-9
    assert certain.any()
    torch.testing.assert_close(found[certain], (near / near.sum(dim=1, keepdim=True))[certain])


def test_rows_that_are_computed_a_few_at_a_time_are_the_same(deep: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = deep.contributions(SENTENCE, SAID).total
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 1)
    torch.testing.assert_close(deep.contributions(SENTENCE, SAID).total, whole)


def test_what_is_switched_off_contributes_nothing(deep: Inspector) -> None:
    found = deep.contributions(SENTENCE, SAID, ["cross.*.*:off"])
    assert max(found.from_source) == 0
    found = deep.contributions(SENTENCE, SAID, ["cross.*.*:pin@2", "encoder.*.*:off"])
    sources = len(found.source)
    assert found.total[:, 2].min() > 0
    assert found.total[:, :sources].sum() == pytest.approx(found.total[:, 2].sum().item())


def test_paths_are_multiplied_through_the_model() -> None:
    """Two source tokens, two rows, one layer of each half: by hand."""
    sublayers = {
        Site("encoder", 0): torch.tensor([[0.5, 0.5], [0.0, 1.0]]),
        Site("decoder", 0): torch.tensor([[1.0, 0.0], [0.25, 0.75]]),
        Site("cross", 0): torch.tensor([[0.4, 0.0, 0.6], [0.0, 0.2, 0.8]]),
    }
    expected = torch.tensor([[0.2, 0.2, 0.6, 0.0], [0.0, 0.2, 0.2, 0.6]])
    torch.testing.assert_close(module.rolled_out(sublayers, 2, 2), expected)
