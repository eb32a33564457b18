"""The views of Inside beside its heads: their values are the Python API's, keys lead to them, a file keeps them."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from dragoman.inspection.html_page import display, page_of
from dragoman.inspection.html_tables import shown as shown_piece
from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.inspection.to_json import describe_contrast
from dragoman.model.probe import Site
from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, nothing_is_wider_than, open_page, patient_context
from support.serving import Running

SENTENCE = "the old dog sees the red house"
ADDRESS = f"#/inside?from=en&to=eo&text={quote(SENTENCE)}"
READY = {
    "heads": ".heat canvas[data-drawn]",
    "lens": ".layers tbody td",
    "contributions": ".graph svg",
    "contrast": ".influences",
}


@pytest.fixture(scope="module")
def inspector(served_run: Path) -> Inspector:
    return Inspector.load(served_run)


@pytest.fixture(scope="module")
def seen(served_run: Path, inspector: Inspector) -> Inspection:
    """What the page shows: the service's translation, which its quick engine found."""
    (translation,) = Translator.load(served_run).translate_stream([SENTENCE])
    return inspector.inspect(SENTENCE, translation.candidates[0].tokens)


@pytest.fixture
def visit(browser: Browser, served: Running, request: pytest.FixtureRequest) -> Iterator[Visit]:
    yield from open_page(browser, served, ADDRESS + getattr(request, "param", ""))


def signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def numbers(page: Page, selector: str, attribute: str) -> list[float]:
    return [float(one.get_attribute(attribute) or "nan") for one in page.locator(selector).all()]


def check_lens(page: Page, inspector: Inspector, seen: Inspection, at: int, changes: Any = ()) -> None:
    lens = inspector.lens(SENTENCE, seen.tokens, changes)
    expect(page.locator(".layers tbody tr[data-layer]")).to_have_count(1)
    first = [readings[0].candidates[0] for readings in lens.positions]
    assert numbers(page, ".layers tr[data-layer='0'] td", "data-probability") == pytest.approx(
        [one.probability for one in first], abs=1e-4
    )
    for cell, one in zip(page.locator(".layers tr[data-layer='0'] td").all(), first, strict=True):
        assert cell.inner_text().startswith(shown_piece(one.token))
    reading = lens.positions[at][0]
    heading = page.locator(".reading-of h4").inner_text()
    assert heading == f"Layer 0: rank {reading.rank}, {reading.probability:.4f}"
    for name, found in (
        ("candidates", reading.candidates),
        ("promotes", reading.promoted),
        ("suppresses", reading.suppressed),
    ):
        rows = page.locator(f".reading-of .{name} li").all()
        assert [row.locator("span").first.inner_text() for row in rows] == [shown_piece(one.token) for one in found]
    shifts = [one.after - one.before for one in reading.promoted]
    assert page.locator(".promotes .share").all_inner_texts() == [signed(value, 4) for value in shifts]


def check_contributions(page: Page, inspector: Inspector, seen: Inspection, at: int) -> None:
    found = inspector.contributions(SENTENCE, seen.tokens)
    rows = page.locator(".shares .weights li")
    expect(rows).to_have_count(min(10, len(seen.source) + at + 1))
    for row in rows.all():
        expected = found.total[at, int(row.get_attribute("data-column") or "")].item()
        assert float(row.locator(".share").inner_text()) == pytest.approx(expected, abs=1e-4)
    assert float(page.locator(".from-source").inner_text()) == pytest.approx(found.from_source[at], abs=0.006)
    flows = dict(
        zip(
            [one.get_attribute("data-edge") for one in page.locator(".graph path").all()],
            numbers(page, ".graph path", "data-flow"),
            strict=True,
        )
    )
    cross = found.sublayers[Site("cross", 0)][at].tolist()
    assert {name: flow for name, flow in flows.items() if name and name[0] == "c"} == {
        f"c1.{at}.{token}": pytest.approx(share, abs=2e-4) for token, share in enumerate(cross[:-1]) if share >= 0.0101
    }
    assert sum(flow for name, flow in flows.items() if name and name[0] in "cd") == pytest.approx(1, abs=0.15)


def check_contrast(page: Page, inspector: Inspector, seen: Inspection, instead: Any, at: int | None) -> None:
    found = inspector.contrast(SENTENCE, instead, at, seen.tokens)
    expect(page.locator(".difference")).to_have_text(signed(found.difference))
    that = " ".join(map(shown_piece, found.that)).replace(" ·", "")
    assert f"“{that}” {math.exp(found.that_log_probability):.4f}" in page.locator(".verdict").inner_text()
    rows = [row for row in page.locator(".influences tbody tr").all() if row.get_attribute("class") != "part"]
    for row, one in zip(rows, (*found.source, *found.before), strict=True):
        assert row.locator("th").inner_text() == shown_piece(one.token)
        shown = [
            float(cell.replace("−", "-").replace("–", "nan")) for cell in row.locator("td.number").all_inner_texts()
        ]
        expected = [one.gradient_input, math.nan if one.erasure is None else one.erasure, one.gradient_norm]
        assert shown == pytest.approx(expected, abs=6e-3, nan_ok=True)


def test_each_layer_and_what_it_promotes(visit: Visit, inspector: Inspector, seen: Inspection) -> None:
    page = visit.page
    page.get_by_role("button", name="Layer by layer").click()
    least = seen.log_probabilities.index(min(seen.log_probabilities))
    expect(page.locator('.token-strip [aria-checked="true"]')).to_have_attribute("data-at", str(least))
    check_lens(page, inspector, seen, least)
    page.locator('.token-strip [aria-checked="true"]').focus()
    page.keyboard.press("End")
    expect(page.locator(".lens h3")).to_have_text("“⟨end⟩”, layer by layer")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".lens h3")).to_contain_text(shown_piece(seen.produced[-2]))
    check_lens(page, inspector, seen, len(seen.produced) - 2)
    page.wait_for_url(lambda url: "view=lens" in url and f"at={len(seen.produced) - 2}" in url)
    page.locator(".layers tr[data-layer='0'] td").first.click()
    expect(page.locator('.token-strip [aria-checked="true"]')).to_have_attribute("data-at", "0")


@pytest.mark.parametrize("visit", ["&view=contributions&at=2"], indirect=True)
def test_what_a_token_came_from(visit: Visit, inspector: Inspector, seen: Inspection) -> None:
    page = visit.page
    expect(page.locator(READY["contributions"])).to_be_visible()
    check_contributions(page, inspector, seen, 2)
    expect(page.locator(".heat canvas[data-drawn]")).to_be_visible()
    page.locator(".heat-frame").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#heat-readout")).to_contain_text("came from")
    check_contributions(page, inspector, seen, 3)


@pytest.mark.parametrize("visit", ["&view=contrast"], indirect=True)
def test_why_this_word_and_not_that_one(visit: Visit, inspector: Inspector, seen: Inspection) -> None:
    page = visit.page
    check_contrast(page, inspector, seen, None, None)
    page.locator(".token-strip [data-at='1']").click()
    check_contrast(page, inspector, seen, None, 1)
    likely = inspector.lens(SENTENCE, seen.tokens).positions[1][-1].candidates
    other = [one.token for one in likely if one.token != seen.produced[1]][1]
    page.locator(".others .act").nth(1).click()
    check_contrast(page, inspector, seen, [other], 1)
    page.get_by_label("Other words").fill("kato")
    page.get_by_label("Other words").press("Enter")
    check_contrast(page, inspector, seen, "kato", 1)
    assert "instead=kato" in page.url
    page.get_by_label("Other words").fill(seen.tokens[1].replace("▁", ""))
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("the same; give another word")
    visit.errors.clear()  # the browser's own report of that answer


def test_keys_switch_a_head_off_pin_it_and_choose_what_is_shown(
    visit: Visit, inspector: Inspector, seen: Inspection
) -> None:
    page = visit.page
    expect(page.locator(READY["heads"])).to_be_visible()
    page.get_by_label("Text", exact=True).press("o")  # in a field a key writes
    expect(page.get_by_label("Text", exact=True)).to_have_value(SENTENCE + "o")
    page.get_by_label("Text", exact=True).fill(SENTENCE)
    page.locator('[data-head="cross.0.0"]').click()
    for key, changes in (("o", ["cross.0.0:off"]), ("o", []), ("p", [])):
        page.keyboard.press(key)
        expect(page.get_by_role("list", name="Changes").get_by_role("listitem")).to_have_count(2 * len(changes))
    page.locator(".heat-frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("p")
    outcome = inspector.intervene(SENTENCE, ["cross.0.0:pin@2"], seen.tokens)
    expect(page.locator(".delta")).to_have_text(signed(outcome.change, 2))
    page.keyboard.press("o")  # off in place of pinned
    outcome = inspector.intervene(SENTENCE, ["cross.0.0:off"], seen.tokens)
    expect(page.locator(".delta")).to_have_text(signed(outcome.change, 2))
    page.keyboard.press("u")
    expect(page.get_by_role("list", name="Changes")).to_have_count(0)
    for key, view in (("2", "lens"), ("3", "contributions"), ("4", "contrast"), ("1", "heads")):
        page.locator('.views [aria-pressed="true"]').press(key)
        expect(page.locator(READY[view]).first).to_be_visible()


@pytest.mark.parametrize("visit", ["&changes=cross.0.0:off,cross.0.1:off"], indirect=True)
def test_what_it_says_stays_above_and_the_difference_is_marked(
    visit: Visit, inspector: Inspector, seen: Inspection
) -> None:
    page = visit.page
    outcome = inspector.intervene(SENTENCE, ["cross.0.0:off", "cross.0.1:off"], seen.tokens)
    expect(page.locator(".now-says")).to_have_text(outcome.translation or "")
    expect(page.locator(".says")).to_have_text(seen.translation)
    before, after = seen.translation.split(), (outcome.translation or "").split()
    gone, new = (" ".join(page.locator(f".said-bar {name}").all_inner_texts()).split() for name in ("del", "ins"))
    assert gone or new
    for words, marked in ((before, gone), (after, new)):
        kept = list(words)
        for word in marked:
            kept.remove(word)
        assert len(kept) == len(words) - len(marked)
    assert len(before) - len(gone) == len(after) - len(new)  # what is not marked is in both
    page.mouse.wheel(0, 3000)
    expect(page.locator(".ranking")).to_be_in_viewport()
    assert page.locator(".said-bar").bounding_box()["y"] == pytest.approx(0, abs=1)  # type: ignore[index]
    rail, chosen = (page.locator(one).first.bounding_box() for one in (".head-map", ".middle"))
    assert rail is not None
    assert chosen is not None
    assert rail["x"] + rail["width"] < chosen["x"]


def test_the_translation_is_looked_into_as_it_is_typed(visit: Visit, inspector: Inspector, seen: Inspection) -> None:
    page = visit.page
    field = page.get_by_label("Translation", exact=True)
    expect(field).to_have_value(seen.translation)
    field.click()
    field.fill("")
    page.keyboard.type("la kato")
    typed = inspector.inspect(SENTENCE, "la kato")
    expect(page.locator(".log-probability")).to_have_text(f"log P = −{-typed.log_probability:.2f}")
    field.fill("")
    expect(page.locator(".log-probability")).to_have_text(f"log P = −{-seen.log_probability:.2f}")
    expect(field).to_have_value("")
    field.blur()
    expect(field).to_have_value(seen.translation)


def axe_finds_nothing(page: Page) -> None:
    violations = page.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []


READABLE = """element => {
  const style = getComputedStyle(element);
  const parts = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return Math.abs(light(parts(style.color)) - light(parts(style.backgroundColor)));
}"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_every_view_is_accessible_and_fits(browser: Browser, served: Running, scheme: Any, width: int) -> None:
    size = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    for visit in open_page(browser, served, ADDRESS + "&view=lens&changes=cross.0.1:off", **size):
        page = visit.page
        page.evaluate(AXE.read_text(encoding="utf-8"))
        for at, view in enumerate(("lens", "contributions", "contrast"), start=2):
            button = page.locator(".views button").nth(at - 1)
            button.click()
            expect(page.locator(READY[view]).first).to_be_visible()
            expect(page.locator(".delta")).to_be_visible()
            assert button.evaluate(READABLE) > 90  # pressed, and still under the pointer
            axe_finds_nothing(page)
            nothing_is_wider_than(page)
        page.locator(".views button").first.click()
        expect(page.locator(READY["heads"])).to_be_visible()
        if width < 500:  # the map comes right after the heads
            rail, chosen = (page.locator(one).first.bounding_box() for one in (".head-map", ".chosen"))
            assert rail is not None
            assert chosen is not None
            assert 0 <= chosen["y"] - rail["y"] - rail["height"] < 40
        pressed = page.locator('.changes [aria-pressed="true"]').or_(page.locator(".views [aria-pressed='true']"))
        for one in pressed.all():
            one.hover()
            assert one.evaluate(READABLE) > 90


def test_a_file_is_written_whatever_its_address_asks_for(inspector: Inspector, seen: Inspection) -> None:
    usual = json.dumps(describe_contrast(inspector.contrast(SENTENCE, translation=seen.tokens)), ensure_ascii=False)
    usual = usual.replace("<", "\\u003c")
    for state in ({"at": "99"}, {"at": "1", "instead": seen.tokens[1].lstrip("▁")}, {"at": "0", "token": "nothere"}):
        assert usual in page_of(inspector, SENTENCE, seen.tokens, [], {"view": "contrast", **state})


def test_a_file_and_a_notebook_keep_every_view(
    browser: Browser, inspector: Inspector, seen: Inspection, tmp_path: Path
) -> None:
    state = {"view": "contrast", "at": "1", "instead": "kato"}
    file, notebook = tmp_path / "page.html", tmp_path / "notebook.html"
    file.write_text(page_of(inspector, SENTENCE, seen.tokens, [], state), encoding="utf-8")
    cell = display(inspector, SENTENCE, seen.tokens, view="lens", at="2")._repr_html_()
    notebook.write_text(f"<!doctype html><meta charset='utf-8'><title>A notebook</title>{cell}", encoding="utf-8")
    requests: list[str] = []
    errors: list[str] = []
    within = patient_context(browser, offline=True)
    page = within.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    check_contrast(page, inspector, seen, "kato", 1)
    page.locator('.views [aria-pressed="true"]').press("3")
    check_contributions(page, inspector, seen, 1)
    page.locator(".views button").nth(1).click()
    check_lens(page, inspector, seen, 1)
    page.goto(notebook.as_uri())
    inner: Any = page.frame_locator("iframe")
    expect(inner.locator(".lens h3")).to_contain_text(shown_piece(seen.produced[2]))
    check_lens(inner, inspector, seen, 2)
    inner.get_by_role("button", name="Heads").click()
    expect(inner.locator(READY["heads"])).to_be_visible()
    assert [url for url in requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert errors == []
    within.close()
