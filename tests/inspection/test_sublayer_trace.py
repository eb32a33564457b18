"""sublayer_trace walks through the model as the model does, in either order of normalisation."""

from pathlib import Path

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.errors import UsageError
from dragoman.inspection.attention_trace import trace
from dragoman.inspection.inspector import Inspector
from dragoman.inspection.sublayer_trace import NormOrder, head_vectors, own_order, trace_sublayers
from dragoman.model.probe import AttentionKind, Site
from dragoman.model.transformer import FeedForward, Transformer

SOURCE, TARGET = [5, 9, 7, 11, 2], [1, 6, 8, 10, 2]
ORDERS: tuple[NormOrder, ...] = ("pre", "post")
SITES = [Site(kind, layer) for kind in ("encoder", "decoder", "cross") for layer in (0, 1)]


def model_of(order: NormOrder, **changes: object) -> Transformer:
    torch.manual_seed(3)
    sizes = {"vocab_size": 20, "d_model": 16, "d_ff": 24, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    model = Transformer(ModelConfig(norm_order=order, dropout=0.1, **{**sizes, **changes}))  # type: ignore[arg-type]
    for parameter in model.parameters():  # gains and biases that are not 1 and 0
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.mark.parametrize("order", ORDERS)
def test_in_the_runs_own_order_it_is_the_model(order: NormOrder) -> None:
    model = model_of(order)
    assert own_order(model) == order
    found, expected = trace_sublayers(model, SOURCE, TARGET), trace(model, SOURCE, TARGET)
    assert torch.allclose(found.encoder.output, model.encode(torch.tensor([SOURCE]))[0], atol=1e-5)
    assert found.log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-5)
    for one in (*found.encoder.sublayers, *found.decoder.sublayers):
        if one.weights is not None and one.scores is not None:
            site = Site("cross" if one.name == "cross-attention" else one.stack, one.layer)
            assert torch.allclose(one.weights, expected.weights[site], atol=1e-6)
            assert torch.allclose(one.scores, expected.scores[site], atol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_the_other_order_is_a_model_with_these_weights_in_that_order(order: NormOrder) -> None:
    other: NormOrder = "post" if order == "pre" else "pre"
    model, rearranged = model_of(order), model_of(other)
    rearranged.load_state_dict(model.state_dict(), strict=False)  # pre-norm has one normalisation more a stack
    for norm in (rearranged.encoder_norm, rearranged.decoder_norm):
        if isinstance(norm, torch.nn.LayerNorm):  # it stays as the run has it: there is none
            setattr(
                rearranged, "encoder_norm" if norm is rearranged.encoder_norm else "decoder_norm", torch.nn.Identity()
            )
    found = trace_sublayers(model, SOURCE, TARGET, other)
    assert found.log_probabilities == pytest.approx(trace(rearranged, SOURCE, TARGET).log_probabilities, abs=1e-5)
    assert found.log_probabilities != pytest.approx(trace(model, SOURCE, TARGET).log_probabilities, abs=1e-2)


@torch.no_grad()
@pytest.mark.parametrize("order", ORDERS)
def test_the_stream_is_a_sum(order: NormOrder) -> None:
    """Equation by equation: x + Sublayer(Norm(x)), or Norm(x + Sublayer(x)); the feed-forward by its two products."""
    model = model_of(order)
    for stack, blocks in (
        ((found := trace_sublayers(model, SOURCE, TARGET)).encoder, model.encoder),
        (
            found.decoder,
            model.decoder,
        ),
    ):
        x = stack.embedded
        assert stack.positions is not None
        assert torch.allclose(stack.tokens + stack.positions, x, atol=1e-6)
        for one in stack.sublayers:
            block = blocks[one.layer]
            names = {"self-attention": "around_self", "cross-attention": "around_cross"}
            norm = getattr(block, names.get(one.name, "around_feed_forward")).norm
            assert torch.allclose(one.received, norm(x) if order == "pre" else x, atol=1e-6)
            summed = x + one.written
            assert torch.allclose(one.stream, summed if order == "pre" else norm(summed), atol=1e-6)
            if one.hidden is not None:
                feed = block.feed_forward
                assert isinstance(feed, FeedForward)
                first, second = feed.w_1, feed.w_2
                assert torch.allclose(one.hidden, first(one.received).relu(), atol=1e-6)
                assert torch.allclose(one.written, second(one.hidden), atol=1e-5)
            x = one.stream


@pytest.mark.parametrize("site", SITES)
def test_a_heads_vectors_make_its_weights(site: Site) -> None:
    model = model_of("pre", d_k=6, d_v=4)
    traced, expected = trace_sublayers(model, SOURCE, TARGET), trace(model, SOURCE, TARGET)
    for head, row in ((0, 0), (1, 3)):
        found = head_vectors(model, traced, site, head, row)
        assert (found.query.shape, found.values.shape[1], found.context.shape) == ((6,), 4, (4,))
        assert torch.allclose(found.weights, expected.weights[site][head, row], atol=1e-6)
        seen = found.scores > -torch.inf
        assert torch.allclose(found.scores[seen], expected.scores[site][head, row][seen], atol=1e-5)
        assert torch.allclose(found.keys[seen] @ found.query * found.scale, found.scores[seen], atol=1e-5)
        assert int(seen.sum()) == (row + 1 if site.kind == "decoder" else len(SOURCE))
        assert torch.allclose(found.context, found.weights @ found.values, atol=1e-6)


def test_what_is_not_there_is_refused() -> None:
    model = model_of("pre")
    traced = trace_sublayers(model, SOURCE, TARGET)
    kinds: list[tuple[AttentionKind, int, int, int, str]] = [
        ("encoder", 2, 0, 0, "no such layer"),
        ("cross", 0, 2, 0, "heads 0 to 1"),
        ("decoder", 0, 0, 4, "rows 0 to 3"),
    ]
    for kind, layer, head, row, said in kinds:
        with pytest.raises(UsageError, match=said):
            head_vectors(model, traced, Site(kind, layer), head, row)


def test_a_run_with_case_marks_is_walked_through(cased_run: Path) -> None:
    inspector = Inspector.load(cased_run)
    seen = inspector.inspect("The old dog sees 12.")
    tokenizer, explainer = inspector.tokenizer, inspector.explainer
    target = [*tokenizer.start_ids, *explainer.token_ids(seen.tokens), tokenizer.eos_id]
    source = tokenizer.encoder_ids(explainer.source_ids("The old dog sees 12."))
    found = trace_sublayers(inspector.model, source, target)
    assert sum(found.log_probabilities) == pytest.approx(seen.log_probability, abs=1e-4)
