"""Half a model: the decoder alone, the encoder alone, pictures; each held against another way to compute the same."""

from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, Positions
from dragoman.data.objectives import ends_of
from dragoman.errors import ConfigError, DataError, UsageError
from dragoman.inspection.attention_trace import trace
from dragoman.model.probe import Intervention, Site
from dragoman.model.transformer import Transformer, sinusoids
from dragoman.model.variants import Patches, grid

V, D, HEADS = 37, 16, 4


SMALL = ModelConfig(vocab_size=V, encoder_layers=2, decoder_layers=2, d_model=D, d_ff=4 * D, num_heads=HEADS, dropout=0)


DECODER = replace(SMALL, encoder_layers=0)


ENCODER = replace(SMALL, decoder_layers=0)


NONE = torch.empty(1, 0, dtype=torch.long)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def randomised(module: Any) -> Any:
    """Every parameter matters: gains differ from 1 and biases from 0."""
    for name, parameter in module.named_parameters():
        nn.init.normal_(parameter, std=0.3)
        if name.endswith("weight") and parameter.dim() == 1:
            parameter.data += 1
    return module.double().eval()


# Other people's halves.


@pytest.fixture(scope="module")
def openai_gpt() -> Any:
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    config = OpenAIGPTConfig(vocab_size=V, n_positions=20, n_embd=D, n_layer=3, n_head=HEADS, afn="relu")
    theirs = randomised(OpenAIGPTLMHeadModel(config))
    for block in theirs.transformer.h:
        nn.init.zeros_(block.attn.c_attn.bias)  # the paper's attention has none
        nn.init.zeros_(block.attn.c_proj.bias)
    return theirs


def as_gpt(theirs: Any) -> Transformer:
    config = replace(DECODER, decoder_layers=3, positions="learned", max_positions=20, scale_embeddings=False)
    ours: Any = Transformer(config).double().eval()
    transformer = theirs.transformer
    ours.target_embedding.tokens.weight.data.copy_(transformer.tokens_embed.weight)
    ours.target_embedding.positions.data.copy_(transformer.positions_embed.weight)
    for layer, block in zip(ours.decoder, transformer.h, strict=True):
        parts = block.attn.c_attn.weight.T.chunk(3)  # their matrices are ours, transposed
        attention = layer.self_attention
        for w, part in zip((attention.w_q, attention.w_k, attention.w_v), parts, strict=True):
            w.weight.data.copy_(part)
        attention.w_o.weight.data.copy_(block.attn.c_proj.weight.T)
        for w, conv in ((layer.feed_forward.w_1, block.mlp.c_fc), (layer.feed_forward.w_2, block.mlp.c_proj)):
            w.weight.data.copy_(conv.weight.T)
            w.bias.data.copy_(conv.bias)
        layer.around_self.norm.load_state_dict(block.ln_1.state_dict())
        layer.around_feed_forward.norm.load_state_dict(block.ln_2.state_dict())
    return cast(Transformer, ours)


@torch.no_grad()
def test_logits_equal_openai_gpts(openai_gpt: Any) -> None:
    ids = torch.randint(V, (5, 11))
    ours = as_gpt(openai_gpt)(NONE, ids)
    torch.testing.assert_close(ours, openai_gpt(ids).logits, rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_decoding_with_a_cache_equals_openai_gpts_whole_passes(openai_gpt: Any) -> None:
    ids = torch.randint(V, (5, 11))
    ours = as_gpt(openai_gpt)
    state = ours.start(torch.zeros(5, 1, dtype=torch.long))
    steps = [ours.step(ids[:, [at]], state)[:, 0] for at in range(ids.shape[1])]
    torch.testing.assert_close(torch.stack(steps, dim=1), openai_gpt(ids).logits, rtol=1e-9, atol=1e-9)


def as_bert(theirs: Any, **changes: Any) -> Transformer:
    config = replace(
        ENCODER, encoder_layers=3, positions="learned", max_positions=20, scale_embeddings=False, embedding_norm=True
    )
    ours: Any = Transformer(replace(config, **changes)).double().eval()
    embeddings = theirs.bert.embeddings
    ours.source_embedding.tokens.weight.data.copy_(embeddings.word_embeddings.weight)
    ours.source_embedding.positions.data.copy_(embeddings.position_embeddings.weight)
    ours.source_embedding.norm.load_state_dict(embeddings.LayerNorm.state_dict())
    for layer, block in zip(ours.encoder, theirs.bert.encoder.layer, strict=True):
        own, attention = block.attention.self, layer.self_attention
        for w, linear in ((attention.w_q, own.query), (attention.w_k, own.key), (attention.w_v, own.value)):
            w.weight.data.copy_(linear.weight)
        attention.w_o.weight.data.copy_(block.attention.output.dense.weight)
        layer.feed_forward.w_1.load_state_dict(block.intermediate.dense.state_dict())
        layer.feed_forward.w_2.load_state_dict(block.output.dense.state_dict())
        layer.around_self.norm.load_state_dict(block.attention.output.LayerNorm.state_dict())
        layer.around_feed_forward.norm.load_state_dict(block.output.LayerNorm.state_dict())
    return cast(Transformer, ours)


def bert_with_labels(count: int) -> Any:
    from transformers import BertConfig, BertForTokenClassification

    config = BertConfig(
        vocab_size=V,
        hidden_size=D,
        num_hidden_layers=3,
        num_attention_heads=HEADS,
        intermediate_size=4 * D,
        hidden_act="relu",
        max_position_embeddings=20,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        num_labels=count,  # type: ignore[call-arg]  # of every configuration, and undeclared
    )
    theirs = randomised(BertForTokenClassification(config))
    nn.init.zeros_(theirs.bert.embeddings.token_type_embeddings.weight)  # we have no kinds of sentences
    nn.init.zeros_(theirs.classifier.bias)
    for block in theirs.bert.encoder.layer:  # the paper's attention has no biases
        for linear in (block.attention.self.query, block.attention.self.key, block.attention.self.value):
            nn.init.zeros_(linear.bias)
        nn.init.zeros_(block.attention.output.dense.bias)
    return theirs


@torch.no_grad()
@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["every token of the vocabulary", "classes"])
def test_logits_equal_berts(classes: tuple[str, ...]) -> None:
    theirs = bert_with_labels(len(classes) or V)
    if not classes:
        theirs.classifier.weight = theirs.bert.embeddings.word_embeddings.weight  # tied, as BERT's own are
    ours = as_bert(theirs, classes=classes)
    if classes:
        ours.output.weight.data.copy_(theirs.classifier.weight)
    real = torch.arange(9) < torch.tensor([[9], [4], [7], [1]])
    ids = torch.randint(V, (4, 9))
    expected = theirs(ids, attention_mask=real.long()).logits
    torch.testing.assert_close(ours(ids, NONE, real)[real], expected[real], rtol=1e-9, atol=1e-9)
    ends = ends_of(ids, real)
    assert ends.tolist() == [8, 12, 24, 27]


# Our own halves.


@torch.no_grad()
def test_the_decoder_alone_never_looks_ahead_nor_at_a_source() -> None:
    model = Transformer(DECODER).eval()
    ids = torch.randint(V, (1, 9))
    changed = ids.clone()
    changed[0, 6] = (ids[0, 6] + 1) % V
    before, after = model(NONE, ids), model(torch.randint(V, (1, 4)), changed)
    assert before[:, :6].equal(after[:, :6])
    assert not before[:, 6:].equal(after[:, 6:])
    assert not [name for name, _ in model.named_parameters() if "cross" in name or "source" in name]


@torch.no_grad()
def test_the_encoder_alone_looks_both_ways_but_not_at_padding() -> None:
    model = Transformer(ENCODER).eval()
    ids, real = torch.randint(V, (1, 7)), torch.arange(7)[None] < 5
    changed = ids.clone()
    changed[0, 5:] = 0
    assert model(ids, NONE, real)[:, :5].equal(model(changed, NONE, real)[:, :5])
    changed[0, 4] = (ids[0, 4] + 1) % V
    assert not model(ids, NONE, real)[:, 0].allclose(model(changed, NONE, real)[:, 0])
    assert not [name for name, _ in model.named_parameters() if name.startswith(("decoder", "target"))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_layers": 0, "decoder_layers": 0}, "model.encoder_layers = 0; must be at least 1"),
        ({"encoder_layers": 0, "architecture": "lstm"}, "model.encoder_layers = 0; must be at least 1"),
        ({"classes": ("a", "b")}, "model.decoder_layers = 2; must be 0 where classes is given"),
        ({"patch": 2}, "model.decoder_layers = 2; must be 0 where patch is given"),
        ({"positions": "sinusoidal-2d"}, "model.patch = 0; must be at least 1 with positions in two dimensions"),
    ],
)
def test_halves_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, **changes)


def test_a_trace_has_the_sites_of_its_half() -> None:
    ids = [5, 6, 7, 3]
    encoder = trace(Transformer(ENCODER), ids, [])
    assert set(encoder.weights) == {Site("encoder", 0), Site("encoder", 1)}
    assert encoder.log_probabilities == ()
    model = Transformer(DECODER)
    decoder = trace(model, [], ids)
    assert set(decoder.weights) == {Site("decoder", 0), Site("decoder", 1)}
    assert len(decoder.log_probabilities) == 3
    assert decoder.weights[Site("decoder", 0)].triu(1).count_nonzero() == 0
    silent = trace(model, [], ids, {Site("decoder", 1): Intervention(heads_off=(0, 1, 2, 3))})
    assert silent.log_probabilities != decoder.log_probabilities
    with pytest.raises(UsageError, match=r"0 source and 1 target ids; a trace of this model needs at least 0 and 2"):
        trace(model, [], [2])
    with pytest.raises(UsageError, match="intervention on cross layer 0; the model has decoder 0 to 1"):
        trace(model, [], ids, {Site("cross", 0): Intervention()})


# Pictures.


def test_patches_are_a_convolution_with_steps_of_its_own_size() -> None:
    patches = Patches(21, D, 2)
    nn.init.normal_(patches.project.weight)
    nn.init.normal_(patches.end)
    pixels = torch.randint(17, (3, 8, 8))
    ids = torch.cat((pixels.flatten(1) + 4, torch.full((3, 1), 3)), dim=1)
    kernel = patches.project.weight.view(D, 1, 2, 2)
    expected = nn.functional.conv2d(pixels[:, None] / 16, kernel, stride=2).flatten(2).mT
    torch.testing.assert_close(patches(ids)[:, :-1], expected)
    assert patches(ids)[:, -1].equal(patches.end.expand(3, D))
    with pytest.raises(DataError, match="a picture of 63 pixels; it must be a square whose side is a multiple of 2"):
        patches(ids[:, 1:])


def test_a_place_on_the_grid_is_its_row_and_its_column() -> None:
    table = sinusoids(5, D // 2)
    cells = grid(table[:4], table).view(4, 5, D)
    for row in range(4):
        for column in range(5):
            assert cells[row, column].equal(torch.cat((table[row], table[column])))


def test_without_positions_the_order_of_patches_does_not_matter() -> None:
    config = replace(ENCODER, vocab_size=21, patch=2, classes=("a", "b"), positions="none")
    ids = torch.randint(4, 21, (1, 65))
    turned = torch.cat((ids[:, :-1].view(1, 4, 2, 4, 2).flip(1).reshape(1, 64), ids[:, -1:]), dim=1)

    def verdicts(model: Transformer) -> list[Tensor]:
        return [model(picture, NONE)[:, -1] for picture in (ids, turned)]

    expected: dict[Positions, bool] = {"none": True, "sinusoidal": False, "sinusoidal-2d": False}
    with torch.no_grad():
        for positions, alike in expected.items():
            one, other = verdicts(Transformer(replace(config, positions=positions)).eval())
            assert torch.allclose(one, other, atol=1e-5) is alike, positions
