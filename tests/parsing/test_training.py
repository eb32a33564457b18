"""A parser is trained, by the real command line."""

import json
from collections.abc import Callable
from pathlib import Path


def test_a_grammar_is_learned(cli: Callable[..., object], parser_run: Path, bank: Path) -> None:
    ran = cli("parse", "evaluate", parser_run, "--trees", bank / "valid.mrg", "--compare", "--json")
    scores = json.loads(ran.stdout)  # type: ignore[attr-defined]
    assert scores["constrained"]["f1"] > 85
    assert (scores["constrained"]["errors"], scores["constrained"]["skipped"]) == (0, 0)
    assert scores["constrained"]["f1"] > scores["right-branching"]["f1"] + 30
    assert scores["constrained"]["f1_of_all"] >= scores["unconstrained"]["f1_of_all"] - 3


def test_an_ensemble_and_silver_trees(
    cli: Callable[..., object], parser_run: Path, bank: Path, tiny_settings: list[str], tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("the dog sees the cat .\n" * 3)
    silver = cli("parse", "run", parser_run, parser_run, "--input", tmp_path / "text")
    (tmp_path / "silver.mrg").write_text(silver.stdout)  # type: ignore[attr-defined]
    ran = cli(
        *("parse", "train", "--trees", bank / "train.mrg", "--valid-trees", bank / "valid.mrg", "--sentences", "50"),
        *("--silver", tmp_path / "silver.mrg", "--silver-weight", "0.5", "--out", tmp_path / "run", "--steps", "2"),
        *tiny_settings,
    )
    assert ran.code == 0, ran.stderr  # type: ignore[attr-defined]
    assert "53 pairs" in ran.stderr  # type: ignore[attr-defined]
    assert "BLEU of the tree's symbols (greedy; not bracket F1)" in ran.stderr  # type: ignore[attr-defined]
    assert f'echo "..." | dragoman parse run {tmp_path / "run"} --raw\n' in ran.stderr  # type: ignore[attr-defined]
