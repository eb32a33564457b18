"""A trace shows what the model does, in the pass that it does it in, and leaves the model as it was."""

import math

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import UsageError
from dragoman.inspection.attention_trace import Trace, trace
from dragoman.model.probe import AttentionKind, Intervention, Override, Probe, Site
from dragoman.model.transformer import Transformer

SOURCE = [7, 11, 5, 9, 3]  # the end symbol last
TARGET = [2, 6, 10, 4, 8, 3]  # the start symbol first, the end symbol last
LAYERS: dict[AttentionKind, int] = {"encoder": 2, "decoder": 3, "cross": 3}
SITES = [Site(kind, layer) for kind, count in LAYERS.items() for layer in range(count)]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=13, encoder_layers=2, decoder_layers=3, d_model=12, d_ff=20, num_heads=3)
    made = Transformer(config).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.eval()


def changed(before: Trace, after: Trace) -> list[float]:
    return [b - a for b, a in zip(before.log_probabilities, after.log_probabilities, strict=True)]


def test_every_site_is_there_with_labelled_rows_and_columns(model: Transformer) -> None:
    found = trace(model, SOURCE, TARGET)
    assert (found.source, found.fed, found.predicted) == (tuple(SOURCE), tuple(TARGET[:-1]), tuple(TARGET[1:]))
    assert sorted(found.weights) == sorted(SITES)
    sizes = {"encoder": (3, 5, 5), "decoder": (3, 5, 5), "cross": (3, 5, 5)}
    for site, weights in found.weights.items():
        assert weights.shape == sizes[site.kind]
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 5, dtype=torch.float64))
        if site.kind == "decoder":
            assert not weights.triu(1).any()  # exactly none of the future


def test_sizes_follow_each_side(model: Transformer) -> None:
    found = trace(model, SOURCE[1:], TARGET[:3])
    shapes = {site.kind: tuple(weights.shape) for site, weights in found.weights.items()}
    assert shapes == {"encoder": (3, 4, 4), "decoder": (3, 2, 2), "cross": (3, 2, 4)}


def test_log_probabilities_are_those_of_the_predicted_tokens(model: Transformer) -> None:
    logits = model(torch.tensor([SOURCE]), torch.tensor([TARGET[:-1]]))[0]
    expected = [logits[t].log_softmax(0)[token].item() for t, token in enumerate(TARGET[1:])]
    torch.testing.assert_close(torch.tensor(trace(model, SOURCE, TARGET).log_probabilities), torch.tensor(expected))


def test_the_weights_are_those_of_decoding_step_by_step(model: Transformer) -> None:
    found = trace(model, SOURCE, TARGET)
    probe, source = Probe(), torch.tensor([SOURCE])
    with torch.no_grad():
        state = model.start(source)
        for t, token in enumerate(TARGET[:-1]):
            logits = model.step(torch.tensor([[token]]), state)
            model(source, torch.tensor([TARGET[: t + 1]]), probe=probe)
            for site, weights in probe.weights.items():
                row: Tensor = weights[0, :, -1] if site.kind != "encoder" else weights[0]
                expected = found.weights[site] if site.kind == "encoder" else found.weights[site][:, t]
                expected = expected[:, : t + 1] if site.kind == "decoder" else expected
                torch.testing.assert_close(row, expected, rtol=1e-10, atol=1e-12)
            reported = logits[0, 0].log_softmax(0)[TARGET[t + 1]].item()
            assert math.isclose(reported, found.log_probabilities[t], rel_tol=1e-5)


@pytest.mark.parametrize("site", SITES)
def test_a_head_switched_off_changes_what_is_predicted_in_this_pass_only(model: Transformer, site: Site) -> None:
    before = trace(model, SOURCE, TARGET)
    after = trace(model, SOURCE, TARGET, {site: Intervention(heads_off=(1,))})
    assert max(map(abs, changed(before, after))) > 1e-4
    assert trace(model, SOURCE, TARGET).log_probabilities == before.log_probabilities


def test_an_overridden_row_is_the_row_that_is_returned(model: Transformer) -> None:
    site, forced = Site("cross", 1), torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    before = trace(model, SOURCE, TARGET)
    after = trace(model, SOURCE, TARGET, {site: Intervention(overrides=(Override(2, 3, forced),))})
    assert torch.equal(after.weights[site][2, 3], forced.double())
    assert torch.equal(after.weights[site][:2], before.weights[site][:2])
    differences = changed(before, after)
    assert differences[:3] == [0.0, 0.0, 0.0]  # what came before row 3 knows nothing of it
    assert abs(differences[3]) > 1e-4


def test_a_model_in_training_is_traced_without_dropout_and_goes_on_training() -> None:
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=13, encoder_layers=1, decoder_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.5)
    model = Transformer(config).train()
    first, second = trace(model, SOURCE, TARGET), trace(model, SOURCE, TARGET)
    assert first.log_probabilities == second.log_probabilities
    assert all(module.training for module in model.modules())
    assert not any(weights.requires_grad for weights in first.weights.values())


@pytest.mark.parametrize(
    ("interventions", "message"),
    [
        ({Site("decoder", 3): Intervention(heads_off=(0,))}, "decoder layer 3; the model has encoder 0 to 1, decoder"),
        ({Site("encoder", 2): Intervention(heads_off=(0,))}, "encoder layer 2"),
        ({Site("cross", 0): Intervention(heads_off=(3,))}, "head 3 of cross layer 0; the model has heads 0 to 2"),
        ({Site("cross", 0): Intervention(overrides=(Override(-1, None, torch.ones(5)),))}, "head -1"),
    ],
)
def test_an_intervention_on_nothing_is_an_error(
    model: Transformer, interventions: dict[Site, Intervention], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        trace(model, SOURCE, TARGET, interventions)


@pytest.mark.parametrize(("source", "target"), [([], TARGET), (SOURCE, [2])])
def test_a_side_with_nothing_to_trace_is_an_error(model: Transformer, source: list[int], target: list[int]) -> None:
    with pytest.raises(UsageError, match=f"{len(source)} source and {len(target)} target ids"):
        trace(model, source, target)
