"""Trees as drawings, in the terminal and as pictures."""

import re
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path

from dragoman.parsing.draw import draw_svg, draw_text, place
from support.trees import SENTENCE, read_one


def test_a_drawing_in_the_terminal() -> None:
    assert draw_text(read_one(SENTENCE)).splitlines() == [
        "TOP",
        "└─ S",
        "   ├─ NP",
        "   │  ├─ DT the",
        "   │  └─ NN dog",
        "   ├─ VP",
        "   │  ├─ VBZ runs",
        "   │  └─ ADVP",
        "   │     └─ RB away",
        "   └─ . .",
    ]


def test_a_picture_has_every_label_its_lines_and_no_overlap() -> None:
    tree = read_one("(TOP (S (NP (DT <b>) (NN R&D)) (VP (VBZ runs))))")
    picture = xml.etree.ElementTree.fromstring(draw_svg(tree))
    name = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in picture.iter(f"{name}text")]
    assert texts == ["TOP", "S", "NP", "DT", "<b>", "NN", "R&D", "VP", "VBZ", "runs"]
    assert len(list(picture.iter(f"{name}line"))) == len(texts) - 1
    words = [placed for placed in place(tree) if placed.kind == "word"]
    assert [p.text for p in sorted(words, key=lambda p: p.x)] == tree.words()
    assert len({p.row for p in words}) == 1


def test_trees_are_drawn(cli: Callable[..., object], parser_run: Path, tmp_path: Path) -> None:
    command = ("parse", "run", parser_run, "--format", "drawing", "--drawings", tmp_path / "drawn")
    ran = cli(*command, stdin="the dog sees the cat .\n")
    assert ran.stdout.startswith("TOP\n└─ ")  # type: ignore[attr-defined]
    assert re.search(r">cat</text>", (tmp_path / "drawn" / "1.svg").read_text())
