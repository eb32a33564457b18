"""Smaller numbers are kept where they are good enough, and for the weights that they were measured with only."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dragoman.cli import main
from dragoman.config import ModelConfig, RunConfig, SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.ct2_cache import remembered_threads
from dragoman.decoding.engines.ctranslate2 import CTranslate2Engine
from dragoman.errors import DataError, UsageError
from dragoman.evaluation.metrics import References, Score
from dragoman.evaluation.quantize import EngineMeasurement, QuantizationResult, quantize
from dragoman.model.checkpoint import save_weights, weights_of
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator
from support.lexicon import lexicon_pairs

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

    monkeypatch.setattr("dragoman.evaluation.quantize.bleu", bleu)


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
            main.main()
        return ended.value.code, *capsys.readouterr()  # type: ignore[return-value]

    loses(0.25, monkeypatch)
    code, output, errors = command("--limit", "0.3", "--compute-type", "int16")
    assert (code, compute_type(run)) == (0, "int16")
    assert "now translates with int16" in errors
    code, output, errors = command()
    assert code == 4
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


@pytest.mark.parametrize(
    ("speed", "map_speed", "map_loses", "quicker"),
    [(90.0, 95.0, 0.0, False), (90.0, 110.0, 0.0, True), (90.0, 110.0, 0.3, False), (101.0, 95.0, 0.0, True)],
)
def test_what_is_smaller_and_slower_is_kept_only_for_who_asked_for_it(
    speed: float, map_speed: float, map_loses: float, quicker: bool
) -> None:
    before, after = EngineMeasurement("float32", 30.0, 100.0), EngineMeasurement("int8", 30.0, speed)
    with_map = EngineMeasurement("int8", 30.0 - map_loses, map_speed, vocabulary_map=True)
    assert QuantizationResult(before, after, "a signature", 0.2, with_map).kept
    assert QuantizationResult(before, after, "a signature", 0.2, with_map, must_be_quicker=True).kept == quicker


def test_what_cannot_be_measured(run: RunDirectory) -> None:
    with pytest.raises(UsageError, match="float32 is what a run has"):
        quantize(run.path, SOURCES, [[line] for line in SOURCES], to="float32")
    with pytest.raises(DataError, match="3 source lines but references for 1"):
        quantize(run.path, SOURCES, [["one"]])


@pytest.mark.parametrize(
    ("bleu", "speed", "numbers_lose", "kept"),
    [
        (29.95, 200.0, 0.0, True),
        (31.00, 200.0, 0.0, True),  # better is no fault
        (29.91, 200.0, 0.0, True),
        (29.90, 200.0, 0.0, False),  # 0.1 is too much
        (29.95, 90.0, 0.0, False),  # slower than without
        (29.95, 200.0, 0.3, False),  # the numbers themselves are refused
    ],
)
def test_a_vocabulary_map_is_kept_where_it_costs_next_to_nothing_and_saves_time(
    bleu: float, speed: float, numbers_lose: float, kept: bool
) -> None:
    before, after = EngineMeasurement("float32", 30.0 + numbers_lose, 80.0), EngineMeasurement("int8", 30.0, 100.0)
    verdict = QuantizationResult(
        before, after, "a signature", 0.2, EngineMeasurement("int8", bleu, speed, vocabulary_map=True)
    )
    assert verdict.map_kept == kept
    assert verdict.to_dict()["map_kept"] == kept
    assert verdict.lines()[3].endswith(", kept" if kept else ", not kept")
    assert f"({speed / 80:.2f} × the speed" in verdict.lines()[2]
    assert not QuantizationResult(before, after, "a signature", 0.2).map_kept


@pytest.mark.parametrize("costs", [0.05, 0.5])
def test_a_map_is_learned_from_the_runs_own_text_and_goes_with_its_numbers(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, costs: float
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(tiny_run, copy)
    sources = [source for source, _ in lexicon_pairs(30, seed=5)]
    values = iter([30.0, 30.0, 30.0 - costs])
    monkeypatch.setattr("dragoman.evaluation.quantize.bleu", lambda *_: Score("BLEU", next(values), "a signature"))
    # The map is to be the quicker one here, whatever the machine does meanwhile.
    clock = iter([0.0, 3.0, 0.0, 2.0, 0.0, 1.0])
    monkeypatch.setattr("dragoman.evaluation.quantize.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    verdict = quantize(copy, sources, [[line] for line in sources], rounds=1)
    assert verdict.with_map is not None
    assert verdict.with_map.sentences_per_second == 3 * verdict.before.sentences_per_second
    assert verdict.map_kept == (costs < 0.1)
    engines = {kind: Translator.load(copy, compute_type=kind).engine for kind in (None, "int8", "float32")}
    assert all(isinstance(engine, CTranslate2Engine) for engine in engines.values())
    assert [engine.name for engine in engines.values()] == [
        "ctranslate2 int8 with a vocabulary map" if costs < 0.1 else "ctranslate2 int8",
        "ctranslate2 int8 with a vocabulary map" if costs < 0.1 else "ctranslate2 int8",
        "ctranslate2 float32",
    ]
    assert bool(list(copy.glob("ctranslate2/int8-*/vmap.txt"))) == (costs < 0.1)
    # What such a model writes is what the words allow: on so regular a language, the same.
    plain, chosen = (Translator.load(copy, compute_type=kind) for kind in ("float32", "int8"))
    assert len(chosen.translate(sources)) == len(plain.translate(sources)) == 30
    assert remembered_threads(RunDirectory(copy), "ctranslate2 float32") is not None
