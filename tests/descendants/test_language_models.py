"""Language models, masked models and classifiers through the command line; what a prefix asks for."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.data.tokenizer import load_tokenizer
from dragoman.descendants.language_model import LanguageModel
from dragoman.descendants.masked_model import Classifier, MaskedModel
from dragoman.descendants.prefix_tasks import task_pairs
from dragoman.inspection.attention_trace import trace
from dragoman.model.checkpoint import load_model, read_tensors
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory
from support.commands import run_in_process
from support.lexicon import LEXICON, lexicon_pairs

Cli = Callable[..., Any]


def trained(*arguments: str | Path) -> None:
    ran = run_in_process(arguments)
    assert ran.code == 0, ran.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("halves")


def trained_on_text(command: str, runs: Path, text: Path, *settings: str) -> Path:
    sides = ("--text", text / "train.source", "--valid-text", text / "valid.source")
    trained(command, "train", *sides, "--out", runs / command, "--steps", "60", *settings)
    return runs / command


@pytest.fixture(scope="module")
def lm_run(runs: Path, tiny_text: Path, tiny_settings: list[str]) -> Path:
    half = ("--set", "model.encoder_layers=0", "--set", "train.valid_steps=30")
    return trained_on_text("lm", runs, tiny_text, *tiny_settings, *half)


@pytest.fixture(scope="module")
def mlm_run(runs: Path, tiny_text: Path, tiny_settings: list[str]) -> Path:
    half = ("--set", "model.decoder_layers=0", "--set", "train.valid_steps=30")
    return trained_on_text("mlm", runs, tiny_text, *tiny_settings, *half)


@pytest.fixture(scope="module")
def labelled(runs: Path) -> Path:
    """Which animal comes first: the words alone do not tell, as many sentences have both."""
    path = runs / "labelled.tsv"
    lines = []
    for sentence, _ in lexicon_pairs(600, seed=5):
        words = sentence.split()
        animals = [word for word in words if word in ("dog", "cat")]
        if animals:
            lines.append(f"{sentence}\t{animals[0]} first\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def classifier_run(runs: Path, mlm_run: Path, labelled: Path) -> Path:
    settings = ("--set", "train.peak_rate=0.01", "--set", "train.threads=1", "--set", "train.valid_steps=60")
    trained(
        *("mlm", "train", "--labelled", labelled, "--valid-labelled", labelled, "--start-from", mlm_run),
        *("--out", runs / "classifier", "--steps", "120", "--set", "model.dropout=0.0", *settings),
    )
    return runs / "classifier"


# The decoder alone.


def test_a_language_model_knows_its_words_and_its_fit_is_the_sum_over_tokens(
    lm_run: Path, tiny_text: Path, cli: Cli
) -> None:
    ran = cli("lm", "evaluate", lm_run, "--text", tiny_text / "valid.source", "--json")
    found = json.loads(ran.stdout)
    lines = (tiny_text / "valid.source").read_text(encoding="utf-8").splitlines()
    # A model of sixteen equally frequent words that knew nothing of length would have 17 choices at each.
    assert found["perplexity"] < 25
    assert found["bytes"] == sum(len(line.encode()) + 1 for line in lines)
    tokenizer, model = load_tokenizer(lm_run), load_model(RunDirectory.open(lm_run))
    assert isinstance(model, Transformer)
    ids = [[tokenizer.bos_id, *tokenizer.encode(line), tokenizer.eos_id] for line in lines]
    nll = -sum(sum(trace(model, [], one).log_probabilities) for one in ids)  # one by one, without padding
    assert found["nll"] == pytest.approx(nll, rel=1e-5)
    assert found["tokens"] == sum(len(one) - 1 for one in ids)
    assert found["perplexity"] == pytest.approx(math.exp(nll / found["tokens"]), rel=1e-5)
    assert found["bits_per_byte"] == pytest.approx(nll / math.log(2) / found["bytes"], rel=1e-5)
    assert cli("lm", "evaluate", lm_run, "--text", tiny_text / "valid.source").stdout.startswith("bits per byte ")


def test_what_is_streamed_is_what_is_returned(lm_run: Path, cli: Cli) -> None:
    model = LanguageModel.load(lm_run, sampling=True, max_extra_length=12)
    parts: list[str] = []
    [streamed] = model.generate("the old ", seed=3, stream=parts.append)
    assert "".join(parts) == streamed.text
    assert len(parts) > 2
    assert streamed.text.startswith("the old")
    assert [streamed] == model.generate("the old", seed=3)
    ran = cli("lm", "generate", lm_run, "--prompt", "the old", "--seed", "3", "--max-tokens", "12")
    assert ran.stdout == streamed.text + "\n"


def test_text_that_is_drawn_has_the_probability_that_scoring_gives_it(lm_run: Path) -> None:
    model = LanguageModel.load(lm_run, sampling=True, max_extra_length=30)
    drawn = model.generate("the", count=8, seed=1)
    assert len({one.text for one in drawn}) > 4
    [prompt] = model.tokenizer.encode_batch(["the"])
    for one in drawn:
        [(_, log_probs)] = model.score([one.text])
        if model.tokenizer.encode(one.text)[: len(prompt)] == prompt:  # else the text is cut in another way
            assert one.log_probability == pytest.approx(sum(log_probs[len(prompt) :]), abs=1e-3)


def test_greedy_continuation_takes_the_likeliest_token_each_time(lm_run: Path) -> None:
    model = LanguageModel.load(lm_run, sampling=False, beam=1, max_extra_length=6)
    [one] = model.generate("the")
    network, tokenizer = model.engine.models[0], model.tokenizer
    ids = [tokenizer.bos_id, *tokenizer.encode("the")]
    with torch.no_grad():
        for _ in range(6):
            following = int(network(torch.empty(1, 0, dtype=torch.long), torch.tensor([ids]))[0, -1].argmax())
            if following == tokenizer.eos_id:
                break
            ids.append(following)
    assert one.text == tokenizer.decode(ids[1:])


# The encoder alone.


def test_a_gap_is_filled_with_a_word_of_the_language(mlm_run: Path, cli: Cli) -> None:
    ran = cli("mlm", "fill", mlm_run, "--json", stdin="the ___ sees the ___ tree\n")
    found = json.loads(ran.stdout)
    words = found["text"].split()
    assert len(words) == 6
    assert [words[0], words[2], words[3], words[5]] == ["the", "sees", "the", "tree"]
    assert {words[1], words[4]} <= set(LEXICON)
    for gap in found["gaps"]:
        shares = [filling["probability"] for filling in gap]
        assert len(shares) == 5
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1
    assert "no gap in 'the dog'; write ___ where" in cli("mlm", "fill", mlm_run, stdin="the dog\n").stderr


@pytest.mark.parametrize("text", ["___ dog", "the ___", "the ___ ___ dog", "the old ___ dog"])
def test_a_gap_is_one_token_and_the_rest_is_as_it_was(mlm_run: Path, text: str) -> None:
    model = MaskedModel.load(mlm_run)
    ids, hidden = model._with_gaps(text), model.tokenizer.unk_id
    assert ids.count(hidden) == text.count("___")
    assert "▁" not in [model.tokenizer.piece(token) for token in ids]
    dog = model.tokenizer.encode("dog")[0]
    filled = model.tokenizer.decode([dog if token == hidden else token for token in ids])
    assert filled.startswith(text.replace("___", model.tokenizer.decode([dog])).split()[0])
    assert len(filled.split()) == len(text.split())


def test_a_classifier_begins_with_the_masked_models_weights(classifier_run: Path, mlm_run: Path) -> None:
    first = RunDirectory(classifier_run).checkpoints_path / "step-00000000" / "model.safetensors"
    began, masked = read_tensors(first), read_tensors(mlm_run / "model.safetensors")
    assert set(began) == {*masked, "output.weight"}
    assert all(began[name].equal(masked[name]) for name in masked)
    assert began["output.weight"].shape == (2, 32)


def test_a_classifier_learns_what_the_words_alone_do_not_tell(classifier_run: Path, labelled: Path, cli: Cli) -> None:
    found = json.loads(cli("mlm", "classify", classifier_run, "--labelled", labelled, "--json").stdout)
    assert found["accuracy"] > 0.9  # the larger class has about half
    ran = cli("mlm", "classify", classifier_run, stdin="the cat sees the dog\nthe dog sees the cat\n")
    assert [line.split("\t")[0] for line in ran.stdout.splitlines()] == ["cat first", "dog first"]


def test_sentences_are_judged_alike_alone_and_in_company(classifier_run: Path) -> None:
    classifier = Classifier.load(classifier_run)
    sentences = ["the dog", "the old cat sees the small red dog near the house", "cat dog", "dog cat"]
    together = classifier.classify(sentences)
    for sentence, classified in zip(sentences, together, strict=True):
        [alone] = classifier.classify([sentence])
        assert alone.classes == classified.classes
        assert alone.probabilities == pytest.approx(classified.probabilities, abs=1e-5)


def test_a_run_that_was_stopped_hides_the_same_tokens_afterwards(
    tmp_path: Path, tiny_text: Path, tiny_settings: list[str]
) -> None:
    text = ("--text", tiny_text / "train.source", "--valid-text", tiny_text / "valid.source")
    half = ("--set", "model.decoder_layers=0", "--set", "train.schedule=paper", "--set", "train.valid_steps=6")
    for out, stretches in (("whole", (12,)), ("parts", (6, 12))):
        for steps in stretches:
            trained("mlm", "train", *text, "--out", tmp_path / out, "--steps", str(steps), *tiny_settings, *half)
    whole, parts = (
        read_tensors(tmp_path / out / "checkpoints/step-00000012/model.safetensors") for out in ("whole", "parts")
    )
    assert all(whole[name].equal(parts[name]) for name in whole)


# What goes wrong.


def test_a_run_is_used_for_what_it_was_trained_for(lm_run: Path, mlm_run: Path, tiny_run: Path, cli: Cli) -> None:
    for command, run, message in (
        (("translate",), lm_run, "was trained to continue, not to translate; use dragoman lm generate"),
        (("lm", "generate"), tiny_run, "was trained to translate, not to continue; use dragoman translate"),
        (("mlm", "classify"), mlm_run, "was trained to restore, not to classify; use dragoman mlm fill"),
    ):
        ran = cli(*command, run, stdin="the dog\n")
        assert (ran.code, ran.stderr) == (3, f"dragoman: {run}: {message}\n")


def test_labels_and_recipes_that_do_not_fit_are_named(
    tmp_path: Path, labelled: Path, classifier_run: Path, cli: Cli
) -> None:
    one = tmp_path / "one.tsv"
    one.write_text("the dog\tdog\nthe cat\tdog\n", encoding="utf-8")
    ran = cli("mlm", "train", "--labelled", one, "--out", tmp_path / "run")
    assert (ran.code, "1 labels (dog); a classifier needs at least 2" in ran.stderr) == (3, True)
    ran = cli("lm", "train", "--text", one, "--out", tmp_path / "run", "mlm")
    assert (ran.code, "trained to restore; set encoder_layers = 0" in ran.stderr) == (3, True)
    ran = cli("mlm", "train", "--out", tmp_path / "run")
    assert (ran.code, "give --text for a masked model, or --labelled" in ran.stderr) == (2, True)
    ran = cli("mlm", "train", "--labelled", labelled, "--start-from", classifier_run, "--out", tmp_path / "run")
    assert (ran.code, "was trained to classify, not to restore" in ran.stderr) == (3, True)


# One model for many tasks.


def test_each_task_is_asked_for_by_its_prefix(tmp_path: Path, cli: Cli) -> None:
    pairs = [("Two dogs play outside.", "Deux chiens jouent dehors."), ("Where are you?", "Où êtes-vous ?")]
    made = list(task_pairs(pairs, ("forward", "backward", "spelling"), "English", "French"))
    assert [source.split(":")[0] for source, _ in made] == [
        "translate to French", "translate to English", "correct the spelling",
    ] * 2  # fmt: skip
    assert made[0] == ("translate to French: Two dogs play outside.", "Deux chiens jouent dehors.")
    assert made[1] == ("translate to English: Deux chiens jouent dehors.", "Two dogs play outside.")
    assert made[2][1] == pairs[0][0]  # English, then French, by turns
    assert made[5][1] == pairs[1][1]
    assert made[2][0] != f"correct the spelling: {pairs[0][0]}"
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    assert cli("tasks", "--pairs", file).stdout == "".join(f"{s}\t{t}\n" for s, t in made)
    only = cli("tasks", "--pairs", file, "--task", "backward").stdout
    assert only == "".join(f"{s}\t{t}\n" for s, t in (made[1], made[4]))
    assert (
        "--task sideways; known: forward, backward, spelling"
        in cli("tasks", "--pairs", file, "--task", "sideways").stderr
    )
