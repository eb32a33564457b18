"""A small grammar is learned, and the commands parse, evaluate and draw with it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.parsing.evalb import EvalbSummary, score_lines
from dragoman.parsing.trees import read_stripped
from support.trees import read_one


def test_parses_go_from_one_command_to_the_next(cli: Callable[..., object], parser_run: Path, bank: Path) -> None:
    gold = read_stripped(bank / "valid.mrg")
    text = "".join(" ".join(tree.words()) + "\n" for tree in gold)
    ran = cli("parse", "run", parser_run, stdin=text)
    lines = ran.stdout.splitlines()  # type: ignore[attr-defined]
    assert [read_one(line).words() for line in lines] == [tree.words() for tree in gold]
    (bank / "parsed.mrg").write_text(ran.stdout)  # type: ignore[attr-defined]
    scored = cli("parse", "evaluate", "--trees", bank / "valid.mrg", "--hypotheses", bank / "parsed.mrg", "--json")
    summary = EvalbSummary.of(score_lines(map(str, gold), lines))
    assert json.loads(scored.stdout)["hypotheses"]["f1"] == summary.f1  # type: ignore[attr-defined]


def test_a_sentence_like_none_before_still_gets_a_tree(cli: Callable[..., object], parser_run: Path) -> None:
    text = "Frabbling (wombats) zig-zag!\n\ndog\n" + "the dog " * 60 + "\n"
    ran = cli("parse", "run", parser_run, "--raw", "--format", "json", stdin=text)
    found = [json.loads(line) for line in ran.stdout.splitlines()]  # type: ignore[attr-defined]
    assert found.pop(1) == {"words": [], "symbols": [], "log_probability": 0.0, "tree": None}
    assert found[0]["words"] == ["Frabbling", "-LRB-", "wombats", "-RRB-", "zig-zag", "!"]
    for parse in found:
        assert read_one(parse["tree"]).words() == parse["words"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parse", "evaluate", "--trees", "x"], "give RUN to parse with, or --hypotheses"),
        (["parse", "train", "--trees", "no.mrg", "--valid-trees", "no.mrg", "--out", "o"], "no.mrg"),
        (["parse", "run", "nowhere"], "nowhere: no such run directory"),
    ],
)
def test_a_wrong_command_is_one_line(cli: Callable[..., object], arguments: list[str], message: str) -> None:
    ran = cli(*arguments)
    assert ran.code in (2, 3)  # type: ignore[attr-defined]
    assert message in ran.stderr  # type: ignore[attr-defined]
    assert ran.stderr.count("\n") == 1  # type: ignore[attr-defined]


def test_a_translator_is_not_a_parser(cli: Callable[..., object], tiny_run: Path) -> None:
    ran = cli("parse", "run", tiny_run, stdin="the dog\n")
    assert (ran.code, "not a parser's run" in ran.stderr) == (3, True)  # type: ignore[attr-defined]
