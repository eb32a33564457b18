"""A bank of trees, and a parser that learned them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.parsing.trees import write_indented
from support.trees import grammar_trees


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("trees")
    found = list(dict.fromkeys(grammar_trees(900, 2)))
    (directory / "train.mrg").write_text("\n".join(write_indented(tree) for tree in found[60:]))
    (directory / "valid.mrg").write_text("".join(f"{tree}\n" for tree in found[:60]))
    return directory


@pytest.fixture(scope="session")
def parser_run(cli: Callable[..., object], bank: Path, tiny_settings: list[str]) -> Path:
    changes = ["model.d_model=64", "model.d_ff=128", "model.num_heads=4", "model.decoder_layers=2"]
    changes += [
        "train.micro_batch_tokens=270",
        "train.warmup_steps=40",
        "train.peak_rate=0.01",
        "train.schedule=linear",
    ]
    changes += ["train.label_smoothing=0.0", "train.valid_steps=300", "search.beam=2", "search.max_extra_length=60"]
    ran = cli(
        *("parse", "train", "--trees", bank / "train.mrg", "--valid-trees", bank / "valid.mrg"),
        *(
            "--out",
            bank / "run",
            "--steps",
            "300",
            *tiny_settings,
            *(part for value in changes for part in ("--set", value)),
        ),
    )
    assert ran.code == 0, ran.stderr  # type: ignore[attr-defined]
    return bank / "run"
