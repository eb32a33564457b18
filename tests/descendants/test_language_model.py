"""The decoder alone continues text, and text has the probability that scoring gives it."""

import json
import math
from pathlib import Path

import pytest
import torch

from dragoman.data.tokenizer import load_tokenizer
from dragoman.descendants.language_model import LanguageModel
from dragoman.inspection.attention_trace import trace
from dragoman.model.checkpoint import load_model
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory
from support.descendants import Cli


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


def test_a_run_is_used_for_what_it_was_trained_for(lm_run: Path, mlm_run: Path, tiny_run: Path, cli: Cli) -> None:
    for command, run, message in (
        (("translate",), lm_run, "was trained to continue, not to translate; use dragoman lm generate"),
        (("lm", "generate"), tiny_run, "was trained to translate, not to continue; use dragoman translate"),
        (("mlm", "classify"), mlm_run, "was trained to restore, not to classify; use dragoman mlm fill"),
    ):
        ran = cli(*command, run, stdin="the dog\n")
        assert (ran.code, ran.stderr) == (3, f"dragoman: {run}: {message}\n")
