"""Smaller numbers are kept where they are good enough, and for the weights that they were measured with only."""

import json
import sys
from pathlib import Path

import pytest
import torch

from dragoman import cli
from dragoman.checkpoint import save_weights, weights_of
from dragoman.config import ModelConfig, RunConfig, SearchConfig
from dragoman.engines.ctranslate2 import CTranslate2Engine
from dragoman.errors import DataError, UsageError
from dragoman.evaluate import References, Score
from dragoman.model import Transformer
from dragoman.quantize import quantize
from dragoman.rundir import RunDirectory
from dragoman.tokenizer import Tokenizer
from dragoman.translate import Translator

SOURCES = ["Two dogs play in the snow.", "A man in a red jacket is climbing a rock.", "Children sit at a table."]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    tokenizer = Tokenizer.learn(SOURCES * 3, 300)
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, num_heads=2
    )
    run.write_config(RunConfig(model=config, search=SearchConfig(max_extra_length=3)))
    tokenizer.save(run.tokenizer_path)
    torch.manual_seed(0)
    save_weights(run.model_path, weights_of(Transformer(config)))
    return run


def compute_type(run: RunDirectory) -> str:
    engine = Translator.load(run.path).engine
    assert isinstance(engine, CTranslate2Engine)
    return engine.compute_type


def loses(points: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 is scored first, then the other."""
    values = iter([30.0, 30.0 - points] * 9)

    def bleu(hypotheses: list[str], references: References, language: str | None) -> Score:
        assert len(hypotheses) == len(references) == len(SOURCES)
        assert language is None
        return Score("BLEU", next(values), "a signature")

    monkeypatch.setattr("dragoman.quantize.bleu", bleu)


def test_good_enough_is_kept_until_the_weights_change(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    loses(0.125, monkeypatch)
    references = [[line] for line in SOURCES]
    assert compute_type(run) == "float32"
    verdict = quantize(run.path, SOURCES, references, limit=0.125, rounds=1)
    assert verdict.kept
    assert verdict.lost == 0.125
    assert verdict.after.sentences_per_second > 0
    assert compute_type(run) == "int8"
    assert json.loads(run.engine_path.read_text())["measured"]["before"]["bleu"] == 30.0
    torch.manual_seed(1)
    save_weights(run.model_path, weights_of(Transformer(run.read_config().model)))
    assert compute_type(run) == "float32"


def test_too_much_lost_is_refused_and_nothing_kept(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"{line}\n" for line in SOURCES), encoding="utf-8")

    def command(*more: str) -> tuple[int, str, str]:
        arguments = ["quantize", str(run.path), "--source", str(text), "--reference", str(text), "--rounds", "1"]
        monkeypatch.setattr(sys, "argv", ["dragoman", *arguments, *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()  # type: ignore[return-value]

    loses(0.25, monkeypatch)
    code, output, errors = command("--limit", "0.3", "--to", "int16")
    assert (code, compute_type(run)) == (0, "int16")
    assert "now translates with int16" in errors
    code, output, errors = command()
    assert code == 1
    assert [line.split()[:3] for line in output.splitlines()[:2]] == [
        ["float32", "BLEU", "30.00"],
        ["int8", "BLEU", "29.75"],
    ]
    assert errors == f"dragoman: int8 loses 0.25 BLEU, more than the limit of 0.2; {run.path} stays with float32\n"
    assert compute_type(run) == "float32"
    assert not list(run.converted_path.glob("int8-*"))
    code, output, errors = command("--limit", "0.25", "--json")
    assert (code, json.loads(output)["lost"], json.loads(output)["kept"]) == (0, 0.25, True)
    assert compute_type(run) == "int8"


def test_what_cannot_be_measured(run: RunDirectory) -> None:
    with pytest.raises(UsageError, match="float32 is what a run has"):
        quantize(run.path, SOURCES, [[line] for line in SOURCES], to="float32")
    with pytest.raises(DataError, match="3 source lines but references for 1"):
        quantize(run.path, SOURCES, [["one"]])
