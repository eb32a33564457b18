"""What is seen from inside is what the model does, and what a change does is measured."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from dragoman.config import ModelConfig, SearchConfig
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.errors import UsageError
from dragoman.inspection.explain import Explainer
from dragoman.inspection.heatmaps import heatmap_of
from dragoman.inspection.inspector import Inspector
from dragoman.inspection.interventions import Change
from dragoman.model.probe import Probe, Site
from dragoman.model.transformer import Transformer, sinusoids

SENTENCE = "the old dog sees the red house"


@pytest.fixture(scope="module")
def tokenizer(tiny_run: Path) -> Tokenizer:
    return load_tokenizer(tiny_run)


@pytest.fixture(scope="module")
def deep(tokenizer: Tokenizer) -> Inspector:
    """Untrained, but with several layers and strong opinions."""
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, encoder_layers=2, decoder_layers=3, d_model=12, d_ff=20, num_heads=3
    )
    model = Transformer(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.7)
    return Inspector(Explainer(ReferenceEngine([model], tokenizer), SearchConfig(beam=2, max_extra_length=4)))


@pytest.fixture(scope="module")
def trained(tiny_run: Path) -> Inspector:
    return Inspector.load(tiny_run)


def test_one_pass_over_the_shown_translation_is_decoding_token_by_token(deep: Inspector) -> None:
    seen = deep.inspect(SENTENCE)
    assert sorted(seen.weights) == sorted(deep.sites)
    assert seen.fed == ("<s>", *seen.tokens)
    assert seen.produced == (*seen.tokens, "</s>")
    assert seen.source[-1] == "</s>"
    ids = deep.explainer.token_ids
    probe, source = Probe(), torch.tensor([ids(seen.source)])
    with torch.no_grad():
        state = deep.model.start(source)
        for row, (fed, produced) in enumerate(zip(ids(seen.fed), ids(seen.produced), strict=True)):
            logits = deep.model.step(torch.tensor([[fed]]), state)
            deep.model(source, torch.tensor([ids(seen.fed[: row + 1])]), probe=probe)
            assert logits.log_softmax(-1)[0, 0, produced].item() == pytest.approx(seen.log_probabilities[row], abs=1e-4)
            for site, weights in probe.weights.items():
                if site.kind != "encoder":
                    columns = row + 1 if site.kind == "decoder" else None
                    torch.testing.assert_close(weights[0, :, -1], seen.weights[site][:, row, :columns])
    for site, weights in seen.weights.items():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
        assert weights.shape[2] == len(seen.fed if site.kind == "decoder" else seen.source)
        assert weights.shape[1] == len(seen.source if site.kind == "encoder" else seen.produced)
        # The scores are those before the softmax, the future among them.
        scores = seen.scores[site]
        if site.kind == "decoder":
            assert scores.triu(1).abs().max() > 0
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        torch.testing.assert_close(scores.softmax(-1), weights)
    assert seen.d_k == 4
    assert seen.scale == 0.5


def test_a_translation_is_given_as_text_or_tokens_or_found(trained: Inspector) -> None:
    seen = trained.inspect(SENTENCE)
    assert seen.translation == trained.explainer.explain(SENTENCE).target
    assert trained.inspect(SENTENCE, seen.tokens) is seen  # kept: no second pass
    other = trained.inspect(SENTENCE, "la kato")
    assert (other.translation, other.log_probability < seen.log_probability) == ("la kato", True)
    with pytest.raises(UsageError, match="a translation of 400 tokens; at most 306"):
        trained.inspect(SENTENCE, ["a"] * 400)


@pytest.mark.parametrize("text", ["cross.0.2:off", "encoder.1.0:pin@2", "cross.0.1:pin@1/1", "decoder.1.2:pin@0"])
def test_a_change_is_the_same_in_one_pass_and_in_decoding(deep: Inspector, text: str) -> None:
    assert str(Change.parse(text)) == text
    outcome = deep.intervene(SENTENCE, [text])
    assert outcome.change == pytest.approx(outcome.after.log_probability - outcome.before.log_probability)
    assert abs(outcome.change) > 1e-4
    # What the search says of its own translation is what a pass over it says.
    assert outcome.tokens is not None
    again = deep.inspect(SENTENCE, outcome.tokens, [text])
    assert outcome.translation_log_probability == pytest.approx(again.log_probability, abs=1e-3)
    assert again.log_probability != pytest.approx(deep.inspect(SENTENCE, outcome.tokens).log_probability, abs=1e-4)


def test_a_pinned_head_looks_at_the_token_wherever_it_may(deep: Inspector) -> None:
    seen = deep.inspect(SENTENCE, "la hundo", ["cross.1.0:pin@2", "decoder.1.2:pin@1"])
    assert (seen.weights[Site("cross", 1)][0, :, 2] == 1).all()
    rows = seen.weights[Site("decoder", 1)][2]
    assert (rows[1:, 1] == 1).all()
    assert rows[0].tolist() == [1.0] + [0.0] * (rows.shape[1] - 1)  # which does not see it
    plain = deep.inspect(SENTENCE, "la hundo")
    torch.testing.assert_close(seen.weights[Site("cross", 1)][1, 0], plain.weights[Site("cross", 1)][1, 0])


def test_without_the_mask_the_future_is_seen_and_decoding_begins_anew_at_each_step(deep: Inspector) -> None:
    unmask = ["decoder.*:unmask"]
    outcome = deep.intervene(SENTENCE, unmask)
    for layer in range(3):
        assert outcome.before.weights[Site("decoder", layer)].triu(1).max() == 0
        assert outcome.after.weights[Site("decoder", layer)].triu(1).max() > 0
    assert abs(outcome.change) > 1e-4
    # Greedily, by hand: each next token from a whole pass over what was said so far.
    inspector = Inspector(Explainer(deep.engine, SearchConfig(beam=1, max_extra_length=4)))
    written: list[int] = []
    source = deep.explainer.source_ids(SENTENCE)
    probe = Probe(inspector._interventions([Change.parse(unmask[0])], source, ()))
    with torch.no_grad():
        while len(written) < len(source) + 4:
            fed = torch.tensor([[deep.tokenizer.bos_id, *written]])
            logits = deep.model(torch.tensor([[*source, deep.tokenizer.eos_id]]), fed, probe=probe)
            token = int(logits[0, -1].argmax())
            if token == deep.tokenizer.eos_id:
                break
            written.append(token)
    assert inspector.intervene(SENTENCE, unmask).tokens == deep.explainer.pieces(written)


def test_effects_are_those_of_switching_each_head_off(deep: Inspector) -> None:
    found = deep.effects(SENTENCE)
    every = {(site.kind, site.layer, head) for site, head in itertools.product(deep.sites, range(3))}
    assert {(effect.kind, effect.layer, effect.head) for effect in found} == every
    sizes = [abs(effect.change) for effect in found]
    assert sizes == sorted(sizes, reverse=True)
    for effect in (*found[:3], found[-1]):
        off = f"{effect.kind}.{effect.layer}.{effect.head}:off"
        assert deep.intervene(SENTENCE, [off], retranslate=False).change == pytest.approx(effect.change, abs=1e-3)
    effects = deep.effects(SENTENCE, kind="cross", layer=1)
    assert {(effect.kind, effect.layer) for effect in effects} == {("cross", 1)}


def test_a_head_that_matters_changes_the_translation(trained: Inspector) -> None:
    before = trained.inspect(SENTENCE)
    outcome = trained.intervene(SENTENCE, ["cross.*.*:off"], before.tokens)
    assert outcome.change < -1
    assert outcome.translation != before.translation


def test_nearest_neighbours_are_those_by_cosine(deep: Inspector) -> None:
    word = next(piece for piece in map(deep.tokenizer.piece, range(300, 400)) if piece.startswith("▁"))
    ids = deep.tokenizer.encode(word[1:])
    model: Any = deep.model
    table = model.source_embedding.tokens.weight.detach()
    cosines = torch.cosine_similarity(table, table[ids].mean(0)[None], dim=1)
    found = deep.neighbours(word[1:], 5)
    assert len(found) == 5
    for one in found:
        assert one.similarity == pytest.approx(cosines[deep.explainer.token_ids([one.token])[0]].item(), abs=1e-5)
        assert not one.token.startswith("<")
    better = (cosines > found[-1].similarity + 1e-6).nonzero().flatten().tolist()
    assert {deep.tokenizer.piece(i) for i in better} - {one.token for one in found} <= {
        piece for piece in map(deep.tokenizer.piece, range(deep.tokenizer.vocab_size)) if piece.startswith("<")
    } | set(deep.explainer.pieces(ids))


def test_positions_are_the_papers(deep: Inspector) -> None:
    torch.testing.assert_close(deep.positions(20), sinusoids(20, 12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cross.0:off", "unmask is for a layer"),
        ("cross.0.1", "write cross.0.3:off"),
        ("encoder.0:unmask", "only the decoder hides"),
        ("decoder.0.0:pin@3/1", "row 1 of the decoder sees tokens 0 to 1"),
        ("cross.7.0:off", "cross layer 7; the model has encoder 0 to 1, decoder 0 to 2"),
        ("cross.0.9:off", "head 9 of cross layer 0"),
        ("cross.0.0:pin@99", "there are tokens 0 to"),
    ],
)
def test_a_change_of_nothing_is_refused_in_a_line(deep: Inspector, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        deep.inspect(SENTENCE, "la", [text])
    with pytest.raises(UsageError, match="encoder layer 5"):
        deep.effects(SENTENCE, kind="encoder", layer=5)


# The command and its files.


def test_a_heat_map_in_the_terminal(cli: Callable[..., Any], tiny_run: Path, trained: Inspector) -> None:
    ran = cli("inspect", tiny_run, SENTENCE, "--layer", "0", "--head", "1", "--effects")
    assert (ran.code, ran.stderr) == (0, "")
    seen = trained.inspect(SENTENCE)
    assert ran.stdout.startswith(f"{SENTENCE}\n{seen.translation}\nlog P {seen.log_probability:.4f}\n")
    lines = ran.stdout.splitlines()
    heatmap = heatmap_of(trained, seen, "cross", 0, 1)
    for label, weights in zip(heatmap.rows, heatmap.weights.tolist(), strict=True):
        shades = "".join(2 * " ░▒▓█"[min(4, int(5 * weight))] for weight in weights)
        assert f"{label} {shades}".rstrip() in [line.strip() for line in lines]
    strongest = trained.effects(SENTENCE)[0]
    assert f"{strongest.change:+.4f}  {strongest.kind}.{strongest.layer}.{strongest.head}" in ran.stdout
    changed = cli("inspect", tiny_run, SENTENCE, "--change", "cross.0.*:off").stdout
    assert f"the changed model says: {trained.intervene(SENTENCE, ['cross.0.*:off']).translation}" in changed
    assert "the heads that align best" in changed


def test_json_holds_what_python_has(cli: Callable[..., Any], tiny_run: Path, trained: Inspector) -> None:
    ran = cli("inspect", tiny_run, "--format", "json", stdin=f"{SENTENCE}\nthe dog\tla kato\n")
    first, second = map(json.loads, ran.stdout.splitlines())
    seen = trained.inspect(SENTENCE)
    assert (first["translation"], first["produced"]) == (seen.translation, list(seen.produced))
    assert numpy.abs(numpy.array(first["attention"]["cross.0"]) - seen.weights[Site("cross", 0)].numpy()).max() < 1e-6
    assert second["translation"] == "la kato"
    assert first["heads"][0]["entropy"] == pytest.approx(seen.statistics[Site("encoder", 0)][0].entropy)


def test_alignments_in_pharaohs_form(cli: Callable[..., Any], tiny_run: Path, trained: Inspector) -> None:
    ran = cli("inspect", tiny_run, "--format", "pharaoh", stdin=f"{SENTENCE}\n\nthe dog\tla hundo\n")
    links = trained.explainer.explain(SENTENCE).links
    first, empty, second = ran.stdout.split("\n")[:3]
    assert sorted(first.split()) == sorted(f"{source}-{target}" for target, source in links)
    assert empty == ""
    assert {link.split("-")[1] for link in second.split()} == {"0", "1"}


def test_a_picture_and_a_page_are_written(
    cli: Callable[..., Any], tiny_run: Path, tmp_path: Path, trained: Inspector
) -> None:
    from PIL import Image

    ran = cli("inspect", tiny_run, SENTENCE, "--out", tmp_path / "a.png", "--kind", "encoder", "--layer", "0")
    assert (ran.code, ran.stdout) == (0, "")
    with Image.open(tmp_path / "a.png") as image:
        colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    heaviest = heatmap_of(trained, trained.inspect(SENTENCE), "encoder", 0).weights.max().item()
    assert tuple(round(255 + (dark - 255) * heaviest) for dark in (11, 74, 99)) in colours
    awkward = 'dog </script><img src="x"> & cat'
    assert cli("inspect", tiny_run, awkward, "--out", tmp_path / "b.html").code == 0
    page = (tmp_path / "b.html").read_text(encoding="utf-8")
    assert "</script><img" not in page
    assert "http://" not in page.replace("http://www.w3.org/", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--format", "html"], "--format html needs --out FILE"),
        (["--format", "png", "--out", "a.png"], "SENTENCE is missing"),
        (["x", "--out", "a.doc"], "name it .html, .json, .png, .pharaoh or .txt"),
        (["x", "--kind", "encoder"], "encoder without a layer; add --layer 0"),
        (["x", "--layer", "4"], "cross layer 4; the run has 1"),
        (["x", "--layer", "0", "--head", "9"], "head 9; the run has heads 0 to 1"),
        (["x", "--format", "pharaoh", "--change", "cross.0.0:off"], "leave --change out"),
        (["x", "--change", "nonsense"], "write cross.0.3:off"),
    ],
)
def test_a_wrong_command_gets_one_line(
    cli: Callable[..., Any], tiny_run: Path, arguments: list[str], message: str
) -> None:
    ran = cli("inspect", tiny_run, *arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
