"""The encoder alone fills gaps and classifies."""

import json
from pathlib import Path

import pytest

from dragoman.descendants.masked_model import Classifier, MaskedModel
from dragoman.model.checkpoint import read_tensors
from dragoman.run_directory import RunDirectory
from support.descendants import Cli, trained
from support.lexicon import LEXICON


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
