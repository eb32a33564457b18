"""The Parse view in a real browser: its tree and its numbers are the Python API's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from playwright.sync_api import Browser, expect

from dragoman.parsing.bracket_attention import Node, ParseTrace, trace_parse
from dragoman.parsing.parser import Parser
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from support.browsing import AXE, Visit, copied, open_page, until_on
from support.serving import Running, running

SENTENCE = "the old king sees the dog ."
PUZZLE = "of of with the the saw saw likes old old king . ."  # unlike all that was learned


@pytest.fixture(scope="module")
def parser(tiny_parser: Path) -> Parser:
    return Parser.load(tiny_parser)


@pytest.fixture
def visit(browser: Browser, served_parser: Running) -> Iterator[Visit]:
    yield from open_page(browser, served_parser)


def type_in(visit: Visit, text: str) -> None:
    visit.page.get_by_label("Sentence to parse").fill(text)


def opened_first(node: Node) -> list[Node]:
    return [node, *(one for child in node.children for one in opened_first(child))]


def check_weights(visit: Visit, seen: ParseTrace, step: int, layer: int = -1, head: int | None = None) -> None:
    page = visit.page
    expect(page.locator("[data-shown=step]")).to_have_text(str(step + 1))
    expect(page.locator(".bars")).to_have_attribute("data-layer", str(layer % len(seen.weights)))
    expected = seen.attended(step, layer, head)
    ranked = sorted(range(len(expected)), key=lambda at: -expected[at])[:8]
    expect(page.locator(".bars tbody tr")).to_have_count(len(ranked))
    rows = page.locator(".bars tbody tr").all()
    columns = [int(row.get_attribute("data-column") or "") for row in rows]
    listed = [float(row.locator(".number").inner_text()) for row in rows]
    assert listed == pytest.approx([expected[at] for at in ranked], abs=6e-4)
    assert listed == pytest.approx([expected[at] for at in columns], abs=6e-4)
    if seen.tree is not None:
        lit = [float(one.get_attribute("data-weight") or "") for one in page.locator(".words [data-word]").all()]
        assert lit == pytest.approx(expected, abs=1e-4)
        below = page.locator(".words .weight").all_text_contents()
        assert list(map(float, below)) == pytest.approx(expected, abs=6e-3)


def wait_for_address(visit: Visit, **wanted: str) -> None:
    """It follows what is shown."""

    def holds(url: str) -> bool:
        values = {name: values[0] for name, values in parse_qs(url.partition("?")[2]).items()}
        return values == wanted

    visit.page.wait_for_url(holds)


def test_a_tree_is_drawn_as_one_types_and_its_numbers_are_the_python_apis(visit: Visit, parser: Parser) -> None:
    page = visit.page
    expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(["Parse", "Training", "Compare"])
    type_in(visit, "the dog")
    type_in(visit, SENTENCE)
    seen = trace_parse(parser, SENTENCE.split())
    assert seen.tree is not None
    nodes = opened_first(seen.tree)
    drawn = page.get_by_role("treeitem")
    expect(drawn).to_have_count(len(nodes))
    assert drawn.all_text_contents() == [node.label for node in nodes]
    names = [f"{node.label}: {' '.join(seen.parse.words[node.first : node.last + 1])}" for node in nodes]
    assert [one.get_attribute("aria-label") for one in drawn.all()] == names
    assert page.locator(".words [data-word] text:not(.weight)").all_text_contents() == [*SENTENCE.split(), "⟨end⟩"]
    expect(page.locator(".log-probability")).to_have_text(f"log P = −{-seen.log_probability:.2f}")
    check_weights(visit, seen, 0)
    bracket = next(at for at, node in enumerate(nodes) if node.children and (node.opened or 0) > 0)
    drawn.nth(bracket).locator("text").hover()
    check_weights(visit, seen, nodes[bracket].opened or 0)
    page.get_by_label("Sentence to parse").hover()  # away again: what was chosen comes back
    check_weights(visit, seen, 0)
    drawn.nth(bracket).locator("text").click()
    page.get_by_label("Closing").check()
    check_weights(visit, seen, nodes[bracket].closed or 0)
    expect(page.locator(".which")).to_contain_text(f"the closing bracket of {nodes[bracket].label} over")
    page.get_by_label("Head").select_option("1")
    check_weights(visit, seen, nodes[bracket].closed or 0, head=1)
    page.get_by_label("Layer").select_option("0")
    check_weights(visit, seen, nodes[bracket].closed or 0, layer=0, head=1)
    wait_for_address(visit, text=SENTENCE, at=str(bracket), end="closing", layer="0", head="1")
    assert copied(page, "Copy brackets") == str(seen.parse.tree)
    link = copied(page, "Copy link")
    page.goto(visit.server.url)
    expect(drawn).to_have_count(0)
    page.goto(link)
    expect(drawn).to_have_count(len(nodes))
    check_weights(visit, seen, nodes[bracket].closed or 0, layer=0, head=1)


def test_what_the_constraint_buys(visit: Visit, parser: Parser) -> None:
    page = visit.page
    type_in(visit, PUZZLE)
    expect(page.get_by_role("tree")).to_be_visible()
    page.get_by_role("switch", name="Only trees").click()
    free = trace_parse(parser, PUZZLE.split(), constrained=False)
    assert free.tree is None
    expect(page.locator(".fault")).to_have_text(free.fault or "")
    tied = trace_parse(parser, PUZZLE.split()).log_probability
    expect(page.locator(".bought")).to_contain_text(f"log P = −{-tied:.2f}")
    written = page.get_by_role("listbox", name="What was written").get_by_role("option")
    assert written.all_inner_texts() == list(free.parse.symbols)
    expect(page.get_by_role("button", name="Copy brackets")).to_be_disabled()
    check_weights(visit, free, 1)
    written.nth(1).focus()
    page.keyboard.press("ArrowRight")
    check_weights(visit, free, 2)
    wait_for_address(visit, text=PUZZLE, trees="free", at="2")


def test_everything_by_keyboard(visit: Visit, parser: Parser) -> None:
    page = visit.page
    expect(page.get_by_label("Sentence to parse")).to_be_focused()
    page.keyboard.type(SENTENCE)
    seen = trace_parse(parser, SENTENCE.split())
    assert seen.tree is not None
    nodes = opened_first(seen.tree)
    expect(page.get_by_role("treeitem")).to_have_count(len(nodes))
    for _ in range(5):  # over the buttons to the tree, which is one stop
        page.keyboard.press("Tab")
    focused = page.locator("[role=treeitem]:focus")
    expect(focused).to_have_attribute("data-node", "1")
    page.keyboard.press("Enter")
    assert nodes[1].closed is not None
    check_weights(visit, seen, nodes[1].closed)
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_attribute("data-node", "2")
    expect(focused).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    expect(focused).to_have_attribute("data-node", str(len(nodes) - 1))
    page.keyboard.press("ArrowLeft")  # in the row of tags, from the last word to the one before
    expect(focused).to_have_attribute("aria-label", f"{list(seen.parse.tree.leaves())[-2].tag}: dog")  # type: ignore[union-attr]
    page.keyboard.press("Home")
    expect(page.locator(".which")).to_contain_text("is the root of every tree")
    page.keyboard.press("ArrowUp")
    expect(focused).to_have_attribute("data-node", "0")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Layer")).to_be_focused()


def test_an_old_answer_never_takes_the_place_of_a_new_one(visit: Visit) -> None:
    page = visit.page
    held: list[Any] = []
    page.route("**/api/v1/parse", lambda route: held.append(route), times=1)
    type_in(visit, "the dog")
    expect(page.locator(".parse .actions .note")).to_have_text("Parsing …")
    until_on(page, lambda: held)
    type_in(visit, "the king")
    expect(page.locator(".words")).to_contain_text("king")
    held[0].continue_()
    page.wait_for_timeout(500)
    expect(page.locator(".words")).to_contain_text("king")


def test_errors_are_told_where_they_belong(visit: Visit) -> None:
    page = visit.page
    type_in(visit, "a " * 300)
    expect(page.get_by_role("alert")).to_contain_text("a sentence of 300 tokens")
    type_in(visit, "a" * 5001)
    expect(page.locator("#parse-note")).to_contain_text("leave out 1")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.route("**/api/v1/parse", lambda route: route.abort())
    type_in(visit, "the <b>dog</b>")
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer.")
    page.unroute("**/api/v1/parse")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".words [data-word] text").nth(2)).to_have_text("<b>dog</b>")
    page.goto(f"{visit.server.url}#/translate")
    expect(page.get_by_text("the run that is served is a parser")).to_be_visible()
    visit.errors.clear()  # the browser's own report of the answers above


@pytest.mark.parametrize(
    ("scheme", "width", "more"), [("light", 1280, ""), ("dark", 1280, "&trees=free"), ("dark", 360, "&at=2")]
)
def test_axe_finds_nothing(browser: Browser, served_parser: Running, scheme: str, width: int, more: str) -> None:
    size = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    long = " ".join([SENTENCE] * 3)
    for visit in open_page(browser, served_parser, f"#/parse?text={quote(long)}{more}", **size):
        page = visit.page
        expect(page.locator(".bars tbody tr").first).to_be_visible()
        page.evaluate(AXE.read_text(encoding="utf-8"))
        violations = page.evaluate("async () => (await axe.run()).violations")
        assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_beside_a_translator_both_views_are_there(browser: Browser, served_run: Path, tiny_parser: Path) -> None:
    service = Service([ServedPair("en", "eo", served_run)], Settings(port=0, rate_limit=0), parsers=[tiny_parser])
    with running(service) as server:
        for visit in open_page(browser, server):
            page = visit.page
            expect(page.get_by_label("Text to translate")).to_be_visible()
            tabs = ["Translate", "Parse", "Inside", "Learn", "Training", "Compare"]
            expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(tabs)
            page.get_by_role("link", name="Parse").click()
            type_in(visit, SENTENCE)
            expect(page.get_by_role("tree")).to_be_visible()
