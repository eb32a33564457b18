"""The bench's own arithmetic. The bench itself is run by `make bench`, in its own environment."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig
from dragoman.model import Probe, Transformer

BENCH = Path(__file__).parents[1] / "bench"


def load(name: str) -> ModuleType:
    """A module of the bench, which is no package: its files are run, not installed."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


SHAPES = {
    "paper": {},
    "narrow keys": {"d_k": 3, "d_v": 8},
    "wide values": {"d_k": 8, "d_v": 16},
    "more of one side": {"encoder_layers": 3, "decoder_layers": 1},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=list(SHAPES))
def test_the_formula_counts_what_torch_counts(changes: dict[str, int]) -> None:
    shape = {"vocab_size": 50, "encoder_layers": 2, "decoder_layers": 2, "d_model": 24, "d_ff": 40, "num_heads": 4}
    config = ModelConfig(**(shape | changes), dropout=0.0)
    model = Transformer(config)
    source, target = torch.randint(50, (3, 9)), torch.randint(50, (3, 7))
    with FlopCounterMode(display=False) as counter:
        # By the explicit path: torch counts nothing in the fused attention of a CPU.
        model(source, target, probe=Probe()).sum().backward()
    assert load("flops").training_flops(config, 3, 9, 7) == counter.get_total_flops()


def test_rounds_are_summed_up_by_median_and_spread() -> None:
    rounds = load("rounds")
    found = rounds.Spread.of([3.0, 1.0, 2.0, 10.0, 2.5])
    assert (found.median, found.low, found.high) == (2.5, 1.0, 10.0)
    assert str(found) == "2.50 (1.00 to 10.00)"


def test_a_ratio_is_taken_round_by_round() -> None:
    # The machine was half as fast in the second round: for both of them.
    assert load("rounds").ratios([200.0, 100.0, 202.0], [100.0, 50.0, 101.0]).median == 2.0


def test_only_what_is_between_the_marks_is_written_anew(tmp_path: Path) -> None:
    report = load("report")
    page = tmp_path / "results.md"
    page.write_text("# By hand\n\nbefore\n", encoding="utf-8")
    report.write_section(page, "memory", "first")
    report.write_section(page, "training", "second")
    page.write_text(page.read_text(encoding="utf-8") + "\nafter\n", encoding="utf-8")
    report.write_section(page, "memory", "third")
    text = page.read_text(encoding="utf-8")
    assert "first" not in text
    assert text.index("before") < text.index("third") < text.index("second") < text.index("after")
    assert text.count("<!-- bench: memory -->") == 1
