"""What a notebook shows of a result has its numbers, and nothing of a token is read as HTML."""

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dragoman.inspection.html_tables import shown
from dragoman.inspection.inspector import Inspector
from support.deep_inspectors import SENTENCE


@pytest.fixture(scope="module")
def trained(tiny_run: Path) -> Inspector:
    return Inspector.load(tiny_run)


def cells(html: str) -> list[list[str]]:
    rows = ElementTree.fromstring(html).findall("tbody/tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def test_results_show_themselves_in_a_notebook(trained: Inspector) -> None:
    lens, came, why = trained.lens(SENTENCE), trained.contributions(SENTENCE), trained.contrast(SENTENCE)
    (layer,) = cells(lens._repr_html_())
    best = [readings[0].candidates[0] for readings in lens.positions]
    assert layer == ["layer 0", *(f"{shown(one.token)} {one.probability:.2f}" for one in best)]
    rows = cells(came._repr_html_())
    assert [row[1:] for row in rows] == [[f"{share:.2f}" for share in shares] for shares in came.total.tolist()]
    rows = cells(why._repr_html_())
    assert [row[1] for row in rows] == [f"{one.gradient_input:+.3f}" for one in (*why.source, *why.before)]
    assert rows[len(why.source)][2] == "–"  # the start symbol


def test_a_token_is_text(trained: Inspector) -> None:
    why = dataclasses.replace(trained.contrast(SENTENCE), this=("▁<b>&",))
    assert "why &lt;b&gt;&amp; and not" in why._repr_html_()
