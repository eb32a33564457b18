"""What the model promises: the paper's sizes, nothing of the future or of padding, and one result by every way through.

That it computes what others compute is test_parity.py.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, recipes
from dragoman.decoding.engines.torch_engine import Prefixes
from dragoman.errors import ConfigError, DataError
from dragoman.model.dropout import Dropout
from dragoman.model.probe import Intervention, Override, Probe, Site
from dragoman.model.transformer import AddAndNorm, Embedding, Transformer, attention, count_parameters, sinusoids
from dragoman.model.variants import BatchNorm, RearrangedAddAndNorm

VOCABULARY, LAYERS, HEADS, D_MODEL = 19, 2, 3, 12
EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11}  # everything here is float64
SITES = [Site(kind, layer) for kind in ("encoder", "decoder", "cross") for layer in range(LAYERS)]

VARIETIES: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-norm": {"norm_order": "pre"},
    "learned positions": {"positions": "learned", "max_positions": 120},
    "index as position": {"positions": "index"},
    "no positions": {"positions": "none"},
    "pre-norm, learned positions": {"norm_order": "pre", "positions": "learned", "max_positions": 120},
    "pre-norm, no positions": {"norm_order": "pre", "positions": "none"},
    "narrow keys": {"d_k": 2, "d_v": 5},
    "narrow values": {"d_k": 5, "d_v": 2},
    "scaled by 1/d_k": {"attention_scale": "1/d_k"},
    "unscaled attention": {"attention_scale": "1"},
    "no residual": {"residual": False},
    "batch norm": {"norm": "batch"},
    "batch norm, pre-norm": {"norm": "batch", "norm_order": "pre"},
    "untied": {"tie_embeddings": False},
    "unscaled embeddings": {"scale_embeddings": False},
    "as Marian": {"activation": "swish", "attention_bias": True, "output_bias": True},
    "as M2M100": {"norm_order": "pre", "attention_bias": True, "positions": "sinusoidal-fairseq"},
    "as BART": {"activation": "gelu", "attention_bias": True, "embedding_norm": True, "positions": "learned"},
    "biases of narrow keys": {"attention_bias": True, "d_k": 2, "d_v": 5},
    "output apart": {"tie_embeddings": False, "tied_pair": "source-target"},
    "two vocabularies": {"tie_embeddings": False, "tied_pair": "target-output", "source_vocab_size": VOCABULARY + 4},
}
every_variety = pytest.mark.parametrize("changes", VARIETIES.values(), ids=list(VARIETIES))
both_paths = pytest.mark.parametrize("probed", [False, True], ids=["fused", "explicit"])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def make(**changes: Any) -> Transformer:
    """A small model in which every parameter matters, without dropout."""
    shape = {"vocab_size": VOCABULARY, "encoder_layers": LAYERS, "decoder_layers": LAYERS}
    shape |= {"d_model": D_MODEL, "d_ff": 16, "num_heads": HEADS}
    model = Transformer(ModelConfig(**(shape | changes))).double().eval()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=0.4)
        if "norm" in name and name.endswith("weight"):
            parameter.data += 1
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            nn.init.normal_(buffer, std=0.4)
        elif name.endswith("running_var"):
            nn.init.uniform_(buffer, 0.5, 2.0)
    return model


def tokens(*shape: int) -> Tensor:
    return torch.randint(VOCABULARY, shape)


def mask_of(lengths: Sequence[int], longest: int | None = None) -> Tensor:
    return torch.arange(longest or max(lengths)) < torch.tensor(lengths)[:, None]


# Table 3

PRINTED = {"base": 65, "B1": 58, "B2": 60, "C1": 36, "C2": 50, "C3": 80, "C4": 28, "C5": 168, "C6": 53, "C7": 90}


def millions(row: str, vocab_size: int) -> float:
    model_config = replace(recipes.load(f"table3-{row}").config.model, vocab_size=vocab_size)
    with torch.device("meta"):
        return count_parameters(Transformer(model_config)) / 1e6


@pytest.mark.parametrize("vocab_size", [41_004, 41_208])
def test_one_vocabulary_gives_every_printed_size_but_bigs(vocab_size: int) -> None:
    """From 41,004 to 41,208 pieces all rows round to the printed million: counts are linear in the vocabulary."""
    assert {row: round(millions(row, vocab_size)) for row in PRINTED} == PRINTED


@pytest.mark.parametrize("page", ["README.md", "docs/tour.md"])
def test_the_base_model_has_as_many_as_the_pages_say(page: str, repository: Path) -> None:
    with torch.device("meta"):
        counted = count_parameters(Transformer(ModelConfig.base()))
    assert f"{counted:,} parameters: with 41,000 pieces they are the paper's 65 million" in (
        repository / page
    ).read_text(encoding="utf-8")
    assert round(millions("base", 41_000)) == PRINTED["base"]


def test_no_other_vocabulary_does() -> None:
    assert millions("C6", 41_003) < 52.5
    assert millions("C2", 41_209) > 50.5


def test_big_was_counted_with_another_vocabulary() -> None:
    """213 million need 35,368 to 36,344 pieces: not the other rows' 41,000, nor quite the stated 37,000."""
    assert [round(millions("big", pieces)) for pieces in (35_368, 36_000, 36_344)] == [213, 213, 213]
    assert millions("big", 35_367) < 212.5
    assert millions("big", 36_345) > 213.5
    assert [round(millions("big", pieces)) for pieces in (37_000, 41_100)] == [214, 218]


def test_rows_without_a_printed_size_are_as_large_as_base() -> None:
    base = millions("base", 41_100)
    assert {row: millions(row, 41_100) for row in ("A1", "A2", "A3", "A4", "D1", "D2", "D3", "D4")} == dict.fromkeys(
        ("A1", "A2", "A3", "A4", "D1", "D2", "D3", "D4"), base
    )
    assert millions("E", 41_100) == pytest.approx(base + 2 * 1024 * 512 / 1e6)  # a table of positions on either side


def test_a_size_counted_by_hand() -> None:
    model = make(d_k=2, d_v=5)
    attend = HEADS * D_MODEL * (2 + 2 + 5 + 5)
    feed_forward = 2 * D_MODEL * 16 + 16 + D_MODEL
    norm = 2 * D_MODEL
    encoder, decoder = attend + feed_forward + 2 * norm, 2 * attend + feed_forward + 3 * norm
    assert count_parameters(model) == VOCABULARY * D_MODEL + LAYERS * (encoder + decoder)


# What a position can see


@every_variety
@both_paths
def test_a_changed_token_leaves_all_earlier_logits_bit_identical(changes: dict[str, Any], probed: bool) -> None:
    model, source, target = make(**changes), tokens(2, 6), tokens(2, 9)
    before = model(source, target, probe=Probe() if probed else None)
    for t in range(target.shape[1]):
        other = target.clone()
        other[:, t] = (other[:, t] + 1) % VOCABULARY
        after = model(source, other, probe=Probe() if probed else None)
        assert torch.equal(after[:, :t], before[:, :t])
        assert (after[:, t] != before[:, t]).any(dim=-1).all()


@both_paths
def test_causality_holds_over_many_positions_in_float32(probed: bool) -> None:
    model, source, target = make().float(), tokens(1, 70), tokens(1, 70)
    other = target.clone()
    other[:, 40:] = tokens(30)
    before, after = (model(source, ids, probe=Probe() if probed else None) for ids in (target, other))
    assert torch.equal(after[:, :40], before[:, :40])
    assert not torch.equal(after[:, 40:], before[:, 40:])


@every_variety
@both_paths
def test_padding_changes_nothing(changes: dict[str, Any], probed: bool) -> None:
    """Neither how much of it there is on either side, nor what stands in it."""
    model = make(**changes)
    source_lengths, target_lengths = [7, 1, 4], [3, 5, 1]
    sources, targets = [tokens(1, n) for n in source_lengths], [tokens(1, n) for n in target_lengths]
    for extra in (0, 3):
        longest_source, longest_target = 7 + extra, 5 + extra
        source, target = tokens(3, longest_source), tokens(3, longest_target)  # junk in place of padding
        for row, (s, t) in enumerate(zip(sources, targets, strict=True)):
            source[row, : s.shape[1]], target[row, : t.shape[1]] = s[0], t[0]
        probe = Probe() if probed else None
        logits = model(source, target, mask_of(source_lengths, longest_source), probe)
        for row, (s, t) in enumerate(zip(sources, targets, strict=True)):
            torch.testing.assert_close(logits[row, : t.shape[1]], model(s, t)[0], **EXACT)


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_without_positions_permuting_the_source_permutes_the_memory(norm_order: str) -> None:
    source, order = tokens(2, 8), torch.randperm(8)
    model = make(positions="none", norm_order=norm_order)
    torch.testing.assert_close(model.encode(source[:, order]), model.encode(source)[:, order], **EXACT)
    with_positions = make(norm_order=norm_order)
    difference = with_positions.encode(source[:, order]) - with_positions.encode(source)[:, order]
    assert difference.abs().max() > 0.1


# The same result by every way through


@every_variety
def test_the_explicit_path_equals_the_fused_one(changes: dict[str, Any]) -> None:
    model, source, target = make(**changes), tokens(3, 7), tokens(3, 6)
    for mask in (None, mask_of([7, 2, 5])):
        probe = Probe()
        torch.testing.assert_close(model(source, target, mask, probe), model(source, target, mask), **EXACT)
        assert sorted(probe.weights) == sorted(SITES)


@every_variety
@pytest.mark.parametrize("longest", [6, 20])  # fewer and more than a softmax takes together
@pytest.mark.parametrize("padded", [False, True])
def test_decoding_with_a_cache_equals_the_full_pass(changes: dict[str, Any], longest: int, padded: bool) -> None:
    """One beam, over more positions than one block of the cache, and on both sides of each way to attend to them."""
    model, source, target = make(**changes), tokens(2, longest), tokens(2, 110)
    mask = mask_of([longest, 3]) if padded else None
    expected = model(source, target, mask)
    with torch.no_grad():
        state = model.start(source, mask)
        for t in range(target.shape[1]):
            logits = model.step(target[:, t : t + 1], state)
            torch.testing.assert_close(logits[:, 0], expected[:, t], **EXACT)


@every_variety
@pytest.mark.parametrize("padded", [False, True])
def test_beams_that_are_reordered_widened_and_dropped_keep_their_own_past(
    changes: dict[str, Any], padded: bool
) -> None:
    model, source = make(**changes), tokens(4, 5)
    mask = mask_of([5, 3, 1, 4]) if padded else None
    sentences, prefixes = torch.arange(4), torch.zeros(4, 1, 0, dtype=torch.long)  # (B), (B, K, t)
    with torch.no_grad():
        state = model.start(source, mask)
        for t in range(20):
            ids = tokens(*prefixes.shape[:2])
            prefixes = torch.cat((prefixes, ids[:, :, None]), dim=2)
            logits = model.step(ids, state)
            beams = prefixes.shape[1]
            rows = sentences.repeat_interleave(beams)
            full = model(source[rows], prefixes.flatten(0, 1), None if mask is None else mask[rows])
            torch.testing.assert_close(logits.flatten(0, 1), full[:, -1], **EXACT)
            if t in (4, 11, 17):  # a sentence leaves, another one each time, while beams move
                kept = torch.tensor([row for row in range(len(sentences)) if row != t % len(sentences)])
            else:
                kept = torch.arange(len(sentences))
            if t % 3 != 1:  # at times nothing moves, and the state goes on as it is
                origins = torch.randint(beams, (len(kept), 3))
                state = state.select(kept, origins)
                sentences = sentences[kept]
                prefixes = prefixes[kept[:, None], origins]
            elif len(kept) < len(sentences):
                origins = torch.arange(beams).expand(len(kept), beams)
                state = state.select(kept, origins)
                sentences, prefixes = sentences[kept], prefixes[kept]
    assert prefixes.shape == (1, 3, 20)


def test_a_state_may_be_widened_before_its_first_step() -> None:
    model, source = make(), tokens(3, 5)
    with torch.no_grad():
        state = model.start(source).select(torch.tensor([0, 2]), torch.zeros(2, 4, dtype=torch.long))
        ids = tokens(2, 4)
        logits = model.step(ids, state)
    for row, sentence in enumerate((0, 2)):
        full = model(source[[sentence] * 4], ids[row][:, None])
        torch.testing.assert_close(logits[row], full[:, 0], **EXACT)


def test_a_selected_state_leaves_the_old_one_as_it_was() -> None:
    model, source, ids = make(), tokens(2, 5), tokens(2, 1)
    with torch.no_grad():
        state = model.start(source)
        model.step(ids, state)
        other = state.select(torch.tensor([0, 1]), torch.zeros(2, 2, dtype=torch.long))
        model.step(tokens(2, 2), other)
        expected = model(source, torch.cat((ids, ids), dim=1))[:, -1]
        torch.testing.assert_close(model.step(ids, state)[:, 0], expected, **EXACT)


# Looking inside


@every_variety
def test_weights_are_distributions_over_what_may_be_seen(changes: dict[str, Any]) -> None:
    model, lengths, probe = make(**changes), [6, 2], Probe()
    model(tokens(2, 6), tokens(2, 5), mask_of(lengths), probe)
    for site, weights in probe.weights.items():
        queries, keys = {"encoder": (6, 6), "decoder": (5, 5), "cross": (5, 6)}[site.kind]
        assert weights.shape == (2, HEADS, queries, keys)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, HEADS, queries, dtype=torch.float64))
        hidden = weights.triu(1) if site.kind == "decoder" else weights[1, :, :, 2:]
        assert not hidden.any()  # exactly zero
        assert (weights > 0).any()


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("heads", [(0,), (2,), (0, 1), (0, 1, 2)])
def test_a_head_switched_off_is_one_whose_part_of_the_output_matrix_is_zero(site: Site, heads: tuple[int, ...]) -> None:
    model, source, target, mask = make(d_k=2, d_v=5), tokens(2, 6), tokens(2, 4), mask_of([6, 3])
    without = copy.deepcopy(model)
    block: Any = (without.encoder if site.kind == "encoder" else without.decoder)[site.layer]
    w_o = (block.cross_attention if site.kind == "cross" else block.self_attention).w_o.weight
    for head in heads:
        w_o.data[:, 5 * head : 5 * (head + 1)] = 0
    found = model(source, target, mask, Probe({site: Intervention(heads_off=heads)}))
    torch.testing.assert_close(found, without(source, target, mask), **EXACT)
    assert (found - model(source, target, mask)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_a_head_overridden_with_equal_weights_is_one_whose_queries_are_zero(kind: Any) -> None:
    model, source, target = make(), tokens(2, 6), tokens(2, 4)
    without = copy.deepcopy(model)
    block: Any = (without.encoder if kind == "encoder" else without.decoder)[1]
    d_k = D_MODEL // HEADS
    (block.cross_attention if kind == "cross" else block.self_attention).w_q.weight.data[d_k : 2 * d_k] = 0
    equal = Intervention(
        overrides=(Override(head=1, query=None, weights=torch.full((6,), 1 / 6, dtype=torch.float64)),)
    )
    found = model(source, target, probe=Probe({Site(kind, 1): equal}))
    torch.testing.assert_close(found, without(source, target), **EXACT)
    assert (found - model(source, target)).abs().max() > 1e-3


def test_an_overridden_row_is_that_row_and_no_other() -> None:
    model, source, target, site = make(), tokens(2, 6), tokens(2, 5), Site("cross", LAYERS - 1)
    forced = torch.tensor([0.0, 0.5, 0.5, 0.0, 0.0, 0.0], dtype=torch.float64)
    before, after = Probe(), Probe({site: Intervention(overrides=(Override(2, 3, forced),))})
    logits_before, logits_after = model(source, target, probe=before), model(source, target, probe=after)
    expected = before.weights[site].clone()
    expected[:, 2, 3] = forced
    assert torch.equal(after.weights[site], expected)
    others = [0, 1, 2, 4]
    torch.testing.assert_close(logits_after[:, others], logits_before[:, others], **EXACT)
    assert ((logits_after - logits_before)[:, 3].abs().amax(dim=-1) > 1e-3).all()


def test_a_decoder_without_its_mask_sees_the_future() -> None:
    model, source, target = make(), tokens(1, 4), tokens(1, 6)
    other = target.clone()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    everything = {Site("decoder", layer): Intervention(drop_mask=True) for layer in range(LAYERS)}
    probe = Probe(everything)
    before, after = model(source, target, probe=probe), model(source, other, probe=Probe(everything))
    assert ((before - after)[:, :-1].abs().amax(dim=-1) > 1e-4).all()
    assert (probe.weights[Site("decoder", 0)] > 0).all()


def test_padding_without_its_mask_is_read_as_tokens() -> None:
    model, source, target, mask = make(), tokens(2, 6), tokens(2, 4), mask_of([6, 3])
    everything = {site: Intervention(drop_mask=True) for site in SITES if site.kind != "decoder"}
    found = model(source, target, mask, Probe(everything))
    torch.testing.assert_close(found, model(source, target), **EXACT)
    assert (found - model(source, target, mask))[1].abs().max() > 1e-3


INTERVENTIONS: dict[str, Intervention] = {
    "head off": Intervention(heads_off=(1,)),
    "every row": Intervention(overrides=(Override(0, None, torch.tensor([1.0, 0, 0, 0, 0, 0])),)),
    "first row": Intervention(overrides=(Override(2, 0, torch.tensor([0.5, 0, 0, 0, 0, 0])),)),
    "a later row": Intervention(overrides=(Override(2, 3, torch.tensor([0.25, 0, 0.75, 0, 0, 0])),)),
    "two rows": Intervention(
        overrides=(
            Override(1, 1, torch.tensor([0.5, 0.5, 0, 0, 0, 0])),
            Override(0, 4, torch.tensor([0, 0, 0, 1.0, 0, 0])),
        )
    ),
}


@pytest.mark.parametrize("name", INTERVENTIONS)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_interventions_do_the_same_step_by_step_and_to_every_beam(kind: Any, name: str) -> None:
    model, source, mask, beams = make(), tokens(2, 6), mask_of([6, 5]), 3
    interventions = {Site(kind, layer): INTERVENTIONS[name] for layer in range(LAYERS)}
    target = tokens(2, beams, 6)
    target[:, :, 0] = target[:, :1, 0]  # beams begin alike
    rows = torch.arange(2).repeat_interleave(beams)
    full = model(source[rows], target.flatten(0, 1), mask[rows], Probe(interventions)).view(2, beams, 6, -1)
    untouched = model(source[rows], target.flatten(0, 1), mask[rows]).view(2, beams, 6, -1)
    assert (full - untouched).abs().amax(dim=(2, 3)).min() > 1e-4
    probe = Probe(interventions)
    with torch.no_grad():
        state = Prefixes((model,), (model.encode(source, mask, probe),), mask, target[:, :1, :0], probe)
        for t in range(6):
            if t == 0:
                [logits], state = state.step(target[:, :1, 0])
                logits = logits.expand(-1, beams, -1)
                state = state.select(torch.arange(2), torch.zeros(2, beams, dtype=torch.long))
            else:
                [logits], state = state.step(target[:, :, t])
            torch.testing.assert_close(logits, full[:, :, t], **EXACT)


@every_variety
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_heads_are_off_with_a_cache_too(changes: dict[str, Any], kind: Any) -> None:
    model, source, mask, target = make(**changes), tokens(2, 6), mask_of([6, 5]), tokens(2, 20)
    probe = Probe({Site(kind, layer): Intervention(heads_off=(0, 2)) for layer in range(LAYERS)})
    full = model(source, target, mask, probe)
    assert (full - model(source, target, mask)).abs().max() > 1e-4
    with torch.no_grad():
        state = model.start(source, mask, probe)
        for t in range(20):
            torch.testing.assert_close(model.step(target[:, t : t + 1], state)[:, 0], full[:, t], **EXACT)


def test_nothing_of_an_intervention_stays_behind() -> None:
    model, source, target = make(), tokens(2, 6), tokens(2, 4)
    before = model(source, target)
    everything = {site: Intervention(heads_off=(0,), drop_mask=True) for site in SITES}
    model(source, target, probe=Probe(everything))
    assert torch.equal(model(source, target), before)


# Options


def test_tied_weights_are_one_tensor_and_untied_ones_three() -> None:
    tied: Any = make()
    untied: Any = make(tie_embeddings=False)
    for model, count in ((tied, 1), (untied, 3)):
        weights = (model.source_embedding.tokens.weight, model.target_embedding.tokens.weight, model.output.weight)
        assert len({weight.data_ptr() for weight in weights}) == count
        assert len({id(weight) for weight in weights}) == count
    assert count_parameters(untied) - count_parameters(tied) == 2 * VOCABULARY * D_MODEL


def test_the_three_uses_of_a_tied_weight_add_up_in_its_gradient() -> None:
    tied, source, target = make(), torch.tensor([[1, 2]]), torch.tensor([[3, 4]])
    untied: Any = make(tie_embeddings=False)
    untied.load_state_dict(tied.state_dict())
    for model in (tied, untied):
        model(source, target).square().sum().backward()
    uses = (untied.source_embedding.tokens.weight, untied.target_embedding.tokens.weight, untied.output.weight)
    total = sum((weight.grad for weight in uses if weight.grad is not None), torch.zeros(()))
    assert all(weight.grad is not None and weight.grad.any() for weight in uses)
    torch.testing.assert_close(tied.output.weight.grad, total, **EXACT)


@pytest.mark.parametrize(("scale", "factor"), [("1/d_k", 4**-0.5), ("1", 4**0.5)])
def test_another_attention_scale_is_the_papers_with_other_queries(scale: str, factor: float) -> None:
    paper, other = make(), make(attention_scale=scale)
    other.load_state_dict(paper.state_dict())
    source, target = tokens(2, 6), tokens(2, 4)
    assert (other(source, target) - paper(source, target)).abs().max() > 1e-3
    for name, parameter in paper.named_parameters():
        if name.endswith("w_q.weight"):
            parameter.data *= factor
    torch.testing.assert_close(other(source, target), paper(source, target), **EXACT)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "index", "none"])
def test_an_embedding_is_token_times_scale_plus_position(scaled: bool, positions: str) -> None:
    model: Any = make(scale_embeddings=scaled, positions=positions)
    for embedding in (model.source_embedding, model.target_embedding):
        ids, first = tokens(2, 5), 7
        expected = embedding.tokens.weight[ids] * (math.sqrt(D_MODEL) if scaled else 1)
        if positions == "sinusoidal":
            expected = expected + sinusoids(first + 5, D_MODEL)[first:]
        elif positions == "learned":
            expected = expected + embedding.positions[first : first + 5]
        elif positions == "index":
            expected = expected + torch.arange(first, first + 5)[:, None] / 100
        torch.testing.assert_close(embedding(ids, first), expected, rtol=1e-6, atol=1e-6)


def test_each_side_learns_its_own_positions() -> None:
    model = make(positions="learned")
    assert model.source_embedding.positions is not model.target_embedding.positions


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_a_sub_layer_is_wrapped_as_the_paper_says(norm_order: Any, residual: bool) -> None:
    """Found in a model, so that the paper's settings are seen to give the paper's wrapper."""
    model: Any = make(norm_order=norm_order, residual=residual)
    expected_type = AddAndNorm if norm_order == "post" and residual else RearrangedAddAndNorm
    assert type(model.encoder[0].around_self) is expected_type
    around: Any = model.encoder[0].around_self
    nn.init.normal_(around.norm.weight)
    nn.init.normal_(around.norm.bias)
    x, w = torch.randn(2, 3, D_MODEL).double(), torch.randn(D_MODEL, D_MODEL).double()

    def layer_norm(y: Tensor) -> Tensor:
        centred = y - y.mean(dim=-1, keepdim=True)
        unit = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
        shifted: Tensor = unit * around.norm.weight + around.norm.bias
        return shifted

    kept = x if residual else torch.zeros_like(x)
    expected = layer_norm(kept + x @ w) if norm_order == "post" else kept + layer_norm(x) @ w
    torch.testing.assert_close(around(x, lambda y: y @ w), expected, **EXACT)


def test_batch_norm_takes_its_statistics_over_all_positions_of_the_batch() -> None:
    norm, x = BatchNorm(6).double(), torch.randn(4, 5, 6).double() * 3 + 2
    trained = norm.train()(x)
    torch.testing.assert_close(trained.mean(dim=(0, 1)), torch.zeros(6).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(trained.var(dim=(0, 1), unbiased=False), torch.ones(6).double(), rtol=1e-4, atol=0)
    assert norm.norm.running_mean is not None
    running = norm.norm.running_mean.clone()
    assert running.any()
    alone = norm.eval()(x[:1])  # a sentence by itself gives what it gives among others
    torch.testing.assert_close(alone, norm(x)[:1], **EXACT)
    assert torch.equal(norm.norm.running_mean, running)


@every_variety
def test_every_variety_trains(changes: dict[str, Any]) -> None:
    """A few steps of training lower the loss, and every parameter takes part."""
    model = make(**changes).train()
    source, target, labels = tokens(4, 6), tokens(4, 5), tokens(4, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(source, target).flatten(0, 1), labels.flatten())
        loss.backward()
        losses.append(loss.item())
        used = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
        optimizer.step()
    assert losses[-1] < losses[0]
    assert {name for name, _ in model.named_parameters()} == used


def test_dropout_is_where_the_paper_has_it_and_nowhere_else() -> None:
    """Section 5.4: each sub-layer's output, and the sums of embeddings and positions."""
    model = Transformer(replace(make().config, dropout=0.3))
    holders = [
        type(module).__name__ for module in model.modules() if any(isinstance(c, Dropout) for c in module.children())
    ]
    assert sorted(holders) == ["AddAndNorm"] * (2 * LAYERS + 3 * LAYERS) + ["Embedding"] * 2
    assert all(m.probability == 0.3 for m in model.modules() if isinstance(m, Dropout))
    assert not any(isinstance(m, nn.Dropout) for m in model.modules())
    source, target = tokens(2, 6), tokens(2, 4)
    assert not torch.equal(model.train()(source, target), model(source, target))
    for module in model.modules():
        if isinstance(module, Dropout):
            module.eval()
    assert torch.equal(model(source, target), model.eval()(source, target))  # no other part knows training from use


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_a_sub_layers_output_is_dropped_before_it_is_added_and_normalised(norm_order: Any) -> None:
    """Section 5.4: LayerNorm(x + Dropout(Sublayer(x))), with the mask that the same seed draws."""
    model = make(norm_order=norm_order, dropout=0.5).train()
    w, x = torch.randn(D_MODEL, D_MODEL).double(), torch.randn(2, 3, D_MODEL).double()
    wrappers = [module for module in model.modules() if isinstance(module, AddAndNorm | RearrangedAddAndNorm)]
    assert len(wrappers) == 5 * LAYERS
    for around in wrappers:
        torch.manual_seed(9)
        found = around(x, lambda y: y @ w)
        torch.manual_seed(9)
        if norm_order == "post":
            expected = around.norm(x + Dropout(0.5)(x @ w))
        else:
            expected = x + Dropout(0.5)(around.norm(x) @ w)
        torch.testing.assert_close(found, expected, **EXACT)


def test_the_sum_of_embedding_and_position_is_dropped() -> None:
    model = make(dropout=0.5).train()
    ids = tokens(2, 6)
    for embedding in (model.source_embedding, model.target_embedding):
        torch.manual_seed(9)
        found = embedding(ids)
        torch.manual_seed(9)
        whole = embedding.tokens(ids) * math.sqrt(D_MODEL) + sinusoids(6, D_MODEL).double()
        torch.testing.assert_close(found, Dropout(0.5)(whole), **EXACT)
        assert 0.3 < (found == 0).double().mean() < 0.7


def test_a_sequence_beyond_the_learned_positions_is_an_error() -> None:
    model = make(positions="learned", max_positions=6)
    fits, too_long = tokens(1, 6), tokens(1, 7)
    model(fits, fits)
    for source, target in ((too_long, fits), (fits, too_long)):
        with pytest.raises(DataError, match=r"a sequence of 7 tokens; the model has 6 learned positions; .*max_posit"):
            model(source, target)
    with torch.no_grad():
        state = model.start(fits)
        for t in range(6):
            model.step(fits[:, t : t + 1], state)
        with pytest.raises(DataError, match="a sequence of 7 tokens"):
            model.step(fits[:, :1], state)


def test_sinusoids_have_no_end() -> None:
    model = make()
    embedding: Embedding = model.target_embedding
    short = embedding.position_rows(0, 512)
    assert embedding.sinusoids.shape[0] == 512
    with torch.inference_mode():  # a translation makes the table longer ...
        rows = embedding.position_rows(700, 40)
    torch.testing.assert_close(rows, sinusoids(740, D_MODEL)[700:].double())
    torch.testing.assert_close(embedding.position_rows(0, 512), short)
    model(tokens(1, 5), tokens(1, 5)).sum().backward()  # ... and training goes on
    assert not any("sinusoids" in name for name in model.state_dict())


def test_a_long_sequence_decodes_past_the_table_as_in_the_full_pass() -> None:
    model, source, target = make(), tokens(1, 4), tokens(1, 516)
    with torch.no_grad():
        expected = model(source, target)[:, -1]
        fresh = make()
        fresh.load_state_dict(model.state_dict())
        state = fresh.start(source)
        for t in range(516):
            logits = fresh.step(target[:, t : t + 1], state)
    torch.testing.assert_close(logits[:, 0], expected, **EXACT)


def test_a_model_needs_a_vocabulary() -> None:
    with pytest.raises(ConfigError, match="vocab_size = 0"):
        make(vocab_size=0)


def test_scores_after_the_mask_are_minus_infinity_where_nothing_may_be_seen() -> None:
    """What the softmax is given: later positions of the decoder, and padding of the source."""
    model, probe = make(), Probe()
    model(torch.randint(4, 9, (2, 5)), torch.randint(4, 9, (2, 6)), mask_of([5, 3]), probe)
    later = torch.ones(6, 6, dtype=torch.bool).triu(1)
    for site, scores in probe.masked_scores.items():
        hidden = later.expand_as(scores) if site.kind == "decoder" else torch.zeros_like(scores, dtype=torch.bool)
        if site.kind != "decoder":
            hidden[1, :, :, 3:] = True
        assert torch.equal(scores.isneginf(), hidden)
        assert torch.equal(scores[~hidden], probe.scores[site][~hidden])
        assert torch.equal(scores.softmax(-1), probe.weights[site])


# Gradients and beginnings


def test_gradients_of_attention() -> None:
    query, key, value = (
        torch.randn(2, 2, rows, width, dtype=torch.float64, requires_grad=True)
        for rows, width in ((3, 4), (5, 4), (5, 3))
    )
    mask = torch.rand(2, 1, 3, 5) < 0.6
    mask[..., 0] = True

    def explicit(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        return attention(query, key, value, 0.5, mask, Intervention())[:3]  # -inf has no numerical gradient

    def intervened(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        override = Override(0, 1, torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2]))
        return attention(query, key, value, 0.5, mask, Intervention((1,), (override,)))[:3]

    assert torch.autograd.gradcheck(explicit, (query, key, value))
    assert torch.autograd.gradcheck(intervened, (query, key, value))


@both_paths
@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_gradients_of_the_whole_model(norm_order: str, probed: bool) -> None:
    model = make(
        vocab_size=5, encoder_layers=1, decoder_layers=1, d_model=4, d_ff=3, num_heads=2, norm_order=norm_order
    )
    names, parameters = zip(*model.named_parameters(), strict=True)
    source, target, mask = torch.tensor([[1, 2, 3], [4, 1, 0]]), torch.tensor([[0, 3], [2, 4]]), mask_of([3, 2])

    def logits(*values: Tensor) -> Tensor:
        arguments = (source, target, mask, Probe() if probed else None)
        found: Tensor = torch.func.functional_call(model, dict(zip(names, values, strict=True)), arguments)
        return found

    assert torch.autograd.gradcheck(logits, parameters, fast_mode=True)  # along random directions


def test_a_seed_decides_how_a_model_begins() -> None:
    def begun(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return Transformer(
            ModelConfig(vocab_size=50, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=8)
        ).state_dict()

    first, again, other = begun(3), begun(3), begun(4)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


def test_a_model_begins_with_embeddings_of_size_one_and_glorot_projections() -> None:
    model: Any = Transformer(ModelConfig(vocab_size=400, encoder_layers=1, decoder_layers=1, d_model=64, d_ff=96))
    size = (model.source_embedding.tokens.weight * model.source_embedding.scale).std()
    assert size.item() == pytest.approx(1.0, abs=0.02)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            expected = torch.zeros_like(parameter) if name.endswith("bias") else torch.ones_like(parameter)
            assert torch.equal(parameter, expected), name
        elif "tokens" not in name:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert 0.95 * bound < parameter.abs().max().item() <= bound, name
            assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05), name
