"""The model against other people's code with the same weights, and its formulas against the paper's, term by term."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.decoding.beam_search import beam_search, greedy_search
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.model.incremental import DecodingState
from dragoman.model.probe import Probe, Site
from dragoman.model.transformer import (
    AddAndNorm,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    Transformer,
    sinusoids,
)
from dragoman.model.variants import RearrangedAddAndNorm

if TYPE_CHECKING:
    from transformers import MarianMTModel

SITE = Site("encoder", 0)
EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}  # everything here is float64
PROBES = pytest.mark.parametrize("probed", [False, True], ids=["fused", "explicit"])
ORDERS = pytest.mark.parametrize("norm_order", ["post", "pre"])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def randomise(module: nn.Module, std: float = 0.3) -> None:
    """Every parameter matters: gains differ from 1 and biases from 0."""
    for name, parameter in module.named_parameters():
        nn.init.normal_(parameter, std=std)
        if "norm" in name and name.endswith("weight"):
            parameter.data += 1


def zero_attention_biases(module: nn.Module) -> None:
    """torch ties them to those of the feed-forward layers, which the paper does have."""
    for attend in module.modules():
        if isinstance(attend, nn.MultiheadAttention):
            assert attend.in_proj_bias is not None
            nn.init.zeros_(attend.in_proj_bias)
            nn.init.zeros_(attend.out_proj.bias)


def copy(source: nn.Linear | nn.LayerNorm, target: nn.Module) -> None:
    target.load_state_dict(source.state_dict())


def copy_attention(source: nn.MultiheadAttention, target: MultiHeadAttention) -> None:
    w_q, w_k, w_v = source.in_proj_weight.chunk(3)
    for ours, theirs in ((target.w_q, w_q), (target.w_k, w_k), (target.w_v, w_v)):
        ours.weight.data.copy_(theirs)
    target.w_o.weight.data.copy_(source.out_proj.weight)


def copy_layer(
    source: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, target: EncoderLayer | DecoderLayer
) -> None:
    norms = [source.norm1, source.norm2]
    around = [target.around_self, target.around_feed_forward]
    copy_attention(source.self_attn, target.self_attention)
    if isinstance(source, nn.TransformerDecoderLayer):
        assert isinstance(target, DecoderLayer)
        assert target.cross_attention is not None
        assert target.around_cross is not None
        copy_attention(source.multihead_attn, target.cross_attention)
        norms.append(source.norm3)
        around.insert(1, target.around_cross)
    for theirs, ours in zip(norms, around, strict=True):
        copy(theirs, ours.norm)
    copy(source.linear1, target.feed_forward.w_1)
    copy(source.linear2, target.feed_forward.w_2)


def literal_sinusoids(length: int, d_model: int) -> Tensor:
    """Section 3.5 as it is printed."""
    table = torch.zeros(length, d_model, dtype=torch.float64)
    for position in range(length):
        for i in range(d_model // 2):
            table[position, 2 * i] = math.sin(position / 10_000 ** (2 * i / d_model))
            table[position, 2 * i + 1] = math.cos(position / 10_000 ** (2 * i / d_model))
    return table


# The paper's formulas, term by term.


def test_positions_are_the_papers_formula() -> None:
    torch.testing.assert_close(sinusoids(40, 12).double(), literal_sinusoids(40, 12), rtol=0, atol=1e-7)


@PROBES
def test_attention_is_equation_1(probed: bool) -> None:
    queries, keys, d_k, d_v = 3, 4, 5, 2
    query, key, value = (
        torch.randn(1, 1, rows, width, dtype=torch.float64)
        for rows, width in ((queries, d_k), (keys, d_k), (keys, d_v))
    )
    allowed = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1]]).bool()
    expected = torch.zeros(queries, d_v, dtype=torch.float64)
    for t in range(queries):
        scores = [
            math.exp(sum(float(query[0, 0, t, i] * key[0, 0, s, i]) for i in range(d_k)) / math.sqrt(d_k))
            if allowed[t, s]
            else 0.0
            for s in range(keys)
        ]
        for s in range(keys):
            for j in range(d_v):
                expected[t, j] += scores[s] / sum(scores) * value[0, 0, s, j]
    head = MultiHeadAttention(d_v, 1, d_k, d_v).double()
    nn.init.eye_(head.w_o.weight)
    found = head.attend(query, key, value, SITE, allowed, probe=Probe() if probed else None)
    torch.testing.assert_close(found[0], expected, **EXACT)


# torch.nn


@PROBES
@pytest.mark.parametrize("masked", ["nothing", "padding", "future", "at random"])
@pytest.mark.parametrize("across", [False, True], ids=["self", "cross"])
def test_multi_head_attention_equals_torchs(masked: str, across: bool, probed: bool) -> None:
    batch, length, heads, d_model = 3, 5, 4, 24
    theirs = nn.MultiheadAttention(d_model, heads, bias=False, batch_first=True, dtype=torch.float64)
    randomise(theirs)
    ours = MultiHeadAttention(d_model, heads, d_model // heads, d_model // heads).double()
    copy_attention(theirs, ours)
    x = torch.randn(batch, length, d_model, dtype=torch.float64)
    memory = torch.randn(batch, 7, d_model, dtype=torch.float64) if across else x
    keys = memory.shape[1]
    may_attend = {
        "nothing": None,
        "padding": (torch.arange(keys) < torch.tensor([[keys], [2], [4]]))[:, None, None].expand(-1, 1, length, -1),
        "future": torch.ones(length, keys).tril().bool().expand(batch, 1, -1, -1),
        "at random": (torch.rand(batch, heads, length, keys) < 0.5) | (torch.arange(keys) == 0),
    }[masked]
    forbidden = None if may_attend is None else ~may_attend.expand(-1, heads, -1, -1).flatten(0, 1)
    expected, expected_weights = theirs(x, memory, memory, attn_mask=forbidden, average_attn_weights=False)

    if across:
        query, key, value = (ours.split_heads(w(y)) for w, y in ((ours.w_q, x), (ours.w_k, memory), (ours.w_v, memory)))
    else:
        query, key, value = ours.project(x)
    probe = Probe() if probed else None
    torch.testing.assert_close(ours.attend(query, key, value, SITE, may_attend, probe=probe), expected, **EXACT)
    if probe is not None:
        torch.testing.assert_close(probe.weights[SITE], expected_weights, **EXACT)


def around(count: int, d_model: int, norm_order: str) -> list[AddAndNorm | RearrangedAddAndNorm]:
    norms = [nn.LayerNorm(d_model) for _ in range(count)]
    if norm_order == "post":
        return [AddAndNorm(norm, 0.0) for norm in norms]
    return [RearrangedAddAndNorm(norm, 0.0, pre_norm=True, residual=True) for norm in norms]


def mha(d_model: int, heads: int) -> MultiHeadAttention:
    return MultiHeadAttention(d_model, heads, d_model // heads, d_model // heads)


@ORDERS
@PROBES
def test_the_encoder_layer_equals_torchs(norm_order: str, probed: bool) -> None:
    theirs = nn.TransformerEncoderLayer(
        12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm_order == "pre", dtype=torch.float64
    )
    randomise(theirs)
    zero_attention_biases(theirs)
    ours = EncoderLayer(mha(12, 3), FeedForward(12, 20), around(2, 12, norm_order)).double()
    copy_layer(theirs, ours)
    x = torch.randn(2, 6, 12, dtype=torch.float64)
    real = torch.arange(6) < torch.tensor([[6], [4]])
    found = ours(x, real[:, None, None], 0, Probe() if probed else None)
    torch.testing.assert_close(found[real], theirs(x, src_key_padding_mask=~real)[real], **EXACT)


@ORDERS
@PROBES
def test_the_decoder_layer_equals_torchs(norm_order: str, probed: bool) -> None:
    theirs = nn.TransformerDecoderLayer(
        12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm_order == "pre", dtype=torch.float64
    )
    randomise(theirs)
    zero_attention_biases(theirs)
    ours = DecoderLayer(mha(12, 3), mha(12, 3), FeedForward(12, 20), around(3, 12, norm_order)).double()
    copy_layer(theirs, ours)
    x, memory = torch.randn(2, 5, 12, dtype=torch.float64), torch.randn(2, 6, 12, dtype=torch.float64)
    real = torch.arange(6) < torch.tensor([[6], [4]])
    future = ~torch.ones(5, 5).tril().bool()
    expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~real)
    cross = ours.cross_attention
    assert cross is not None
    keys_values = cross.split_heads(cross.w_k(memory)), cross.split_heads(cross.w_v(memory))
    found = ours(x, keys_values, real[:, None, None], 0, Probe() if probed else None)
    torch.testing.assert_close(found, expected, **EXACT)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@ORDERS
@PROBES
def test_the_whole_stack_equals_torchs(norm_order: Any, probed: bool) -> None:
    """nn.Transformer between an embedding and a projection made by hand is the whole model."""
    config = ModelConfig(
        vocab_size=17,
        encoder_layers=3,
        decoder_layers=2,
        d_model=12,
        d_ff=20,
        num_heads=3,
        dropout=0.0,
        norm_order=norm_order,
    )
    theirs = nn.Transformer(
        12, 3, 3, 2, 20, dropout=0.0, batch_first=True, norm_first=norm_order == "pre", dtype=torch.float64
    )
    randomise(theirs)
    zero_attention_biases(theirs)
    ours: Any = Transformer(config).double()
    for their_layers, our_layers in ((theirs.encoder.layers, ours.encoder), (theirs.decoder.layers, ours.decoder)):
        for their_layer, our_layer in zip(their_layers, our_layers, strict=True):
            copy_layer(their_layer, our_layer)
    if norm_order == "pre":
        copy(theirs.encoder.norm, ours.encoder_norm)
        copy(theirs.decoder.norm, ours.decoder_norm)
    else:  # torch normalises once more after the last layer, which the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None

    source, target = torch.randint(17, (3, 7)), torch.randint(17, (3, 5))
    source_real = torch.arange(7) < torch.tensor([[7], [3], [5]])
    target_real = torch.arange(5) < torch.tensor([[4], [5], [2]])
    embedding = ours.source_embedding.tokens.weight
    positions = literal_sinusoids(7, 12).float()  # as precise as our table
    hidden = theirs(
        embedding[source] * math.sqrt(12) + positions,
        embedding[target] * math.sqrt(12) + positions[:5],
        tgt_mask=~torch.ones(5, 5).tril().bool(),
        src_key_padding_mask=~source_real,
        tgt_key_padding_mask=~target_real,
        memory_key_padding_mask=~source_real,
    )
    logits = ours(source, target, source_real, Probe() if probed else None)
    expected = hidden @ embedding.T
    torch.testing.assert_close(logits[target_real], expected[target_real], **EXACT)


# Hugging Face's Marian, which has the paper's post-norm layers and three-way shared embeddings

PAD, BOS, EOS, VOCABULARY = 0, 2, 3, 24
LONGEST = 49  # more than any output needs


class Pair(NamedTuple):
    """Two models of the same weights, and sources for them."""

    ours: Transformer
    theirs: "MarianMTModel"
    source: Tensor  # (B, S)
    real: Tensor  # (B, S)


def copy_marian_layer(theirs: Any, ours: Any, order: Tensor) -> None:
    """`order` holds, for each of our model dimensions, Marian's: rows that write to them and columns that read them."""
    attentions = [(theirs.self_attn, ours.self_attention)]
    norms = [
        (theirs.self_attn_layer_norm, ours.around_self.norm),
        (theirs.final_layer_norm, ours.around_feed_forward.norm),
    ]
    if isinstance(ours, DecoderLayer):
        attentions.append((theirs.encoder_attn, ours.cross_attention))
        assert ours.around_cross is not None
        norms.append((theirs.encoder_attn_layer_norm, ours.around_cross.norm))
    for source, target in attentions:
        projections = ((source.q_proj, target.w_q), (source.k_proj, target.w_k), (source.v_proj, target.w_v))
        for projection, w in projections:
            w.weight.data.copy_(projection.weight[:, order])
        target.w_o.weight.data.copy_(source.out_proj.weight[order])
    for source, target in norms:
        target.weight.data.copy_(source.weight[order])
        target.bias.data.copy_(source.bias[order])
    ours.feed_forward.w_1.weight.data.copy_(theirs.fc1.weight[:, order])
    ours.feed_forward.w_1.bias.data.copy_(theirs.fc1.bias)
    ours.feed_forward.w_2.weight.data.copy_(theirs.fc2.weight[order])
    ours.feed_forward.w_2.bias.data.copy_(theirs.fc2.bias[order])


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(39)
    d_model, heads, d_ff = 16, 4, 28
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY,
            max_position_embeddings=64,
            encoder_layers=2,
            decoder_layers=3,
            encoder_ffn_dim=d_ff,
            decoder_ffn_dim=d_ff,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            d_model=d_model,
            activation_function="relu",
            scale_embedding=True,
            dropout=0.0,
            pad_token_id=PAD,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    )
    theirs.double().eval()
    for name, parameter in theirs.named_parameters():
        if name.endswith(("q_proj.bias", "k_proj.bias", "v_proj.bias", "out_proj.bias")):
            nn.init.zeros_(parameter)
        elif "embed_positions" not in name:
            # Gains of either sign: a random model that passed its input through would say one token for ever.
            nn.init.normal_(parameter, std=1.0 if "norm.weight" in name else 0.2)
    # With a leaning towards the end symbol, outputs end.
    theirs.model.decoder.layers[-1].final_layer_norm.bias.data += 0.5 * theirs.model.shared.weight[EOS]
    config = ModelConfig(
        vocab_size=VOCABULARY, encoder_layers=2, decoder_layers=3, d_model=d_model, d_ff=d_ff, num_heads=heads
    )
    ours: Any = Transformer(config).double().eval()
    # Marian keeps all sines before all cosines, we alternate them: its dimensions, in the order of ours.
    order = torch.arange(d_model).view(2, -1).T.flatten()
    ours.source_embedding.tokens.weight.data.copy_(theirs.model.shared.weight[:, order])
    marian = theirs.model
    for source, target in ((marian.encoder, ours.encoder), (marian.decoder, ours.decoder)):
        for their_layer, our_layer in zip(source.layers, target, strict=True):
            copy_marian_layer(their_layer, our_layer, order)
    lengths = torch.tensor([[9], [4], [7], [1], [9], [6]])
    real = torch.arange(9) < lengths
    with torch.no_grad():
        yield Pair(ours, theirs, torch.randint(4, VOCABULARY, (6, 9)).where(real, PAD), real)


def test_logits_equal_marians(pair: Pair) -> None:
    target = torch.randint(VOCABULARY, (6, 11))
    theirs = pair.theirs(input_ids=pair.source, attention_mask=pair.real.long(), decoder_input_ids=target).logits
    ours = pair.ours(pair.source, target, pair.real)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)  # each rounds sinusoids to float32 on its own


def generated(pair: Pair, **options: Any) -> Any:
    theirs: Any = pair.theirs
    return theirs.generate(
        pair.source,
        attention_mask=pair.real.long(),
        do_sample=False,
        max_new_tokens=LONGEST + 1,  # with the end symbol
        return_dict_in_generate=True,
        **options,
    )


def cut(ids: Tensor) -> tuple[int, ...]:
    """Without the start symbol, up to the end symbol, which must be there."""
    row = ids.tolist()
    assert row[0] == BOS
    return tuple(row[1 : row.index(EOS)])


def searched(pair: Pair, search: Any, **options: Any) -> list[list[Hypothesis]]:
    def step(ids: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        return pair.ours.step(ids, state).log_softmax(dim=-1), state

    limits = [LONGEST] * len(pair.source)
    state = pair.ours.start(pair.source, pair.real)
    found: list[list[Hypothesis]] = search(step, state, start_id=BOS, eos_id=EOS, max_lengths=limits, **options)
    return found


def test_greedy_search_equals_marians(pair: Pair) -> None:
    theirs = [cut(ids) for ids in generated(pair, num_beams=1).sequences]
    ours = [best.ids for [best] in searched(pair, greedy_search, length_penalty=float)]
    assert ours == theirs
    assert len(set(ours)) == 6  # each source has its own output, so that the memory matters
    assert max(map(len, ours)) > 10


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("beam", [2, 4])
def test_beam_search_equals_marians(pair: Pair, beam: int, exponent: float) -> None:
    """All hypotheses and their scores. Hugging Face divides by length^exponent and, with early_stopping, ends a
    sentence when as many hypotheses as beams are finished, which is our stop = "first"."""
    output = generated(
        pair,
        num_beams=beam,
        num_return_sequences=beam,
        early_stopping=True,
        length_penalty=exponent,
        output_scores=True,
    )
    ours = searched(
        pair, beam_search, beam=beam, n_best=beam, stop="first", length_penalty=lambda length: length**exponent
    )
    assert [hypothesis.ids for found in ours for hypothesis in found] == [cut(ids) for ids in output.sequences]
    scores = torch.tensor([hypothesis.score for found in ours for hypothesis in found])
    torch.testing.assert_close(scores, output.sequences_scores, rtol=1e-5, atol=1e-5)
