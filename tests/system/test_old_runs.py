"""Runs that an earlier version made: they load, translate to the same text, and their training goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import Ran
from support.lexicon import lexicon_pairs

PAIRS = lexicon_pairs(220, seed=1)  # what the runs in tests/fixtures were trained on
SETTINGS = [
    "model.vocab_size=300", "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=32",
    "model.num_heads=2", "model.dropout=0", "train.batch_tokens=800", "train.micro_batch_tokens=800",
    "train.warmup_steps=20", "train.threads=1", "train.processes=1", "train.valid_steps=800", "train.optimizer=muon",
]  # fmt: skip
LEARNED = PAIRS[:40]  # translated without a mistake when the run was made
# Of validation after 20 more steps, by the version that made the run. On one machine the weights are the same bits,
# too; another processor adds in another order.
NLL_AT_820 = 0.48075073


@pytest.fixture
def old_run(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run of format 1, 800 steps long, with its text beside it as when it was trained."""
    monkeypatch.chdir(tmp_path)
    for name, part in (("train", PAIRS[:200]), ("valid", PAIRS[200:])):
        Path(f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in part), encoding="utf-8")
    return Path(shutil.copytree(repository / "tests" / "fixtures" / "run-format-1", tmp_path / "run"))


@pytest.mark.parametrize("search", [("reference", "4"), ("reference", "1"), ("ctranslate2", "1")], ids="-beam-".join)
def test_it_translates_as_it_did(cli: Callable[..., Ran], old_run: Path, search: tuple[str, str]) -> None:
    engine, beam = search
    lines = "".join(f"{source}\n" for source, _ in LEARNED)
    ran = cli("translate", old_run, "--engine", engine, "--beam", beam, stdin=lines)
    assert (ran.code, ran.stdout.splitlines()) == (0, [target for _, target in LEARNED])


def test_its_training_goes_on(cli: Callable[..., Ran], old_run: Path) -> None:
    """From its weights and its optimiser's state, over the same batches: to the loss that it had when its own version
    went on with it."""
    data = ["--pairs", "train.tsv", "--valid-pairs", "valid.tsv"]
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    ran = cli("train", *data, "--out", old_run, "--steps", "820", *settings)
    assert ran.code == 0, ran.stderr
    events = [json.loads(line) for line in (old_run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    before, after = [event["nll"] for event in events if event["event"] == "valid"]
    assert abs(after - before) > 1e-4  # so that the next line shows where it went, not only where it began
    assert after == pytest.approx(NLL_AT_820, abs=5e-5)
    assert events[-1]["step"] == 820
