"""Charts: well-formed SVG at the edges of what can be drawn; values stand where their axes say."""

import re
from xml.etree import ElementTree

from dragoman.evaluation.charts import LEFT, WIDTH, Figure, draw, figure_of_curves


def test_figures_are_whole_at_the_edges_of_what_can_be_measured() -> None:
    for figure in (
        Figure("one point", [1.0], {"a": [2.0]}),
        Figure("gaps", [1, 2, 3], {"a": [None, 1.0, None], "b": [0.0, -1.0, 2.0]}, spread={"b": [0.1, None, 0.2]}),
        Figure("logs", [1, 10, 100], {"a": [1e-3, 0.0, 1e3]}, log_x=True, log_y=True),
        Figure("bars < & >", [0, 1], {"a": [-1.0, 2.0], "b": [None, 0.0]}, kind="bars", labels=["x", "y"]),
        Figure("points", [0.5, -2.0], {"a": [1.0, None], "b": [None, 3.0]}, kind="points", point_labels=["p", "q"]),
    ):
        tree = ElementTree.fromstring(draw(figure))
        assert tree.attrib["aria-label"] == figure.title
        assert "nan" not in draw(figure)
        assert "prefers-color-scheme:dark" in draw(figure)


def ticks_of(drawn: str) -> list[str]:
    return re.findall(r"<text [^>]*>([0-9.]+)</text>", drawn)


def test_axes_reach_as_far_as_they_are_told_to() -> None:
    figure = Figure("half of it", [0.25, 0.5], {"a": [0.3, 0.4]})
    assert "1" not in ticks_of(draw(figure))
    assert ticks_of(draw(figure, (0.0, 1.0), (0.0, 1.0))).count("1") == 2
    assert ticks_of(draw(figure, (0.0, 1.0), (0.0, 1.0))).count("0") == 2


def test_a_note_stands_below_the_title_and_moves_what_is_below_it() -> None:
    figure = Figure("title", [1, 2], {"a": [1.0, 2.0], "b": [2.0, 1.0]})
    plain, noted = (ElementTree.fromstring(draw(figure, note=note)) for note in ("", "10 < 11 sentences"))
    texts = [element.text for element in noted.iter() if element.tag.endswith("text")]
    assert texts[:2] == ["title", "10 < 11 sentences"]
    assert int(noted.attrib["height"]) - int(plain.attrib["height"]) == 18


def test_curves_keep_all_their_points_also_where_two_share_an_x() -> None:
    figure = figure_of_curves("two", {"a": [(1.0, 5.0), (1.0, 6.0)], "b": [(0.5, 7.0)]}, "x", "y")
    for name, expected in {"a": [(1.0, 5.0), (1.0, 6.0)], "b": [(0.5, 7.0)]}.items():
        pairs = zip(figure.x, figure.series[name], strict=True)
        assert [(x, y) for x, y in pairs if y is not None] == expected
    drawn = draw(figure)
    legend, markers = 2, 3
    assert len(re.findall(r'<path class="s\d"', drawn)) == legend + markers


def test_points_far_apart_have_room_on_a_logarithmic_axis() -> None:
    """The room beside the first point is a share of the ratio: a share of the difference could lie below zero."""
    drawn = draw(Figure("speed", [20.0, 300.0, 5000.0], {"a": [1.0, 2.0, 3.0]}, kind="points", log_x=True))
    places = [float(x) for x in re.findall(r'class="s0" d="M([\d.]+),', drawn)]
    assert len(places) == 3
    assert LEFT < places[0] < places[1] < places[2] < WIDTH
    assert all(f">{tick}</text>" in drawn for tick in ("20", "50", "100", "1,000", "5,000"))
    assert ">10</text>" not in drawn
