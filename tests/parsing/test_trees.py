"""Trees are read, written and stripped; a fault is named by file and line."""

from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.parsing.draw import draw_svg, draw_text
from dragoman.parsing.linearise import linearise, rebuild
from dragoman.parsing.trees import (
    Leaf,
    Tree,
    parse_brackets,
    read_stripped,
    right_branching,
    strip_tree,
    write,
    write_indented,
)
from support.trees import random_trees, read_one


def test_trees_survive_writing_on_one_line_on_many_and_with_none_between() -> None:
    found = random_trees(100, seed=1)
    for text in ("\n".join(map(write, found)), "\n".join(map(write_indented, found)), "".join(map(write, found))):
        assert list(parse_brackets(text.splitlines())) == found


def test_a_deep_tree_is_read_written_and_drawn() -> None:
    depth = 399
    tree = read_one("(X " * depth + "(NN a)" + ")" * depth)
    assert write(tree).count("(X ") == depth
    rooted = strip_tree(tree)
    assert rooted is not None
    assert write(rebuild(linearise(rooted), rooted.words()) or tree) == f"(TOP {write(tree)})"
    assert draw_text(tree).count("\n") == depth
    assert draw_svg(tree).count("<text") == depth + 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN dog)\n(", r"input:1: 2 brackets of the tree that begins here are never closed"),
        ("(NN a)\n\n(S (NN dog)))", r"input:3: a closing bracket without its opening one"),
        ("dog (NN dog)", r"input:1: 'dog' outside brackets"),
        ("(S (NN dog) dog)", r"input:1: the word 'dog' beside brackets"),
        ("(S\n (NP a b))", r"input:2: the bracket \(NP a b\) is neither"),
        ("(S (NP))", r"input:1: the bracket \(NP\) is neither"),
        ("()", r"input:1: the bracket \(\) is neither"),
        ("(X " * 500, r"more than 400 deep"),
    ],
)
def test_a_fault_is_named_by_file_and_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(parse_brackets(text.splitlines()))


@pytest.mark.parametrize(
    ("given_", "stripped"),
    [
        ("( (S (NP-SBJ-1 (PRP it)) (VP (VBZ works))))", "(TOP (S (NP (PRP it)) (VP (VBZ works))))"),
        ("(ROOT (NP=2 (NN a)))", "(TOP (NP (NN a)))"),
        ("(S (NP (NN a)))", "(TOP (S (NP (NN a))))"),
        (
            "(S1 (VP (VBD said) (SBAR (-NONE- 0) (S (-NONE- *T*-1))) (-LRB- -LRB-) (PRP$ its)))",
            "(TOP (VP (VBD said) (-LRB- -LRB-) (PRP$ its)))",
        ),
        ("(ROOT (PRN (-LRB- -LRB-) (NN x)))", "(TOP (PRN (-LRB- -LRB-) (NN x)))"),
        ("(NN dog)", "(TOP (NN dog))"),
    ],
)
def test_stripping(given_: str, stripped: str) -> None:
    assert write(strip_tree(read_one(given_)) or Tree("none", ())) == stripped


def test_a_tree_of_nothing_but_traces_is_none(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg"
    file.write_text("(ROOT (NP (-NONE- *)))\n(ROOT\n  (NN a))\n")
    assert list(map(write, read_stripped(file))) == ["(TOP (NN a))"]


def test_right_branching_is_one_bracket_after_another() -> None:
    assert write(right_branching(Leaf("X", w) for w in "abcd")) == "(TOP (S (X a) (VP (X b) (VP (X c) (X d)))))"
    assert write(right_branching([Leaf("X", "a")])) == "(TOP (S (X a)))"
