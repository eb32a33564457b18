"""The Inside view in a real browser: its numbers are the Python API's, its changes change the output."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest
from playwright.sync_api import Browser, expect

from dragoman.inspection.html_page import page_of
from dragoman.inspection.html_tables import shown as shown_piece
from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.model.probe import Site
from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, open_page, patient_context
from support.serving import Running, running, service_of

SENTENCE = "the old dog sees the red house"
TYPED = "the small cat hears a river"


@pytest.fixture(scope="module")
def inspector(served_run: Path) -> Inspector:
    return Inspector.load(served_run)


def own(served_run: Path, inspector: Inspector, text: str) -> Inspection:
    """Of what the page shows: the service's translation, which its quick engine found."""
    (translation,) = Translator.load(served_run).translate_stream([text])
    return inspector.inspect(text, translation.candidates[0].tokens)


@pytest.fixture(scope="module")
def shown(served_run: Path, inspector: Inspector) -> Inspection:
    return own(served_run, inspector, SENTENCE)


@pytest.fixture
def visit(browser: Browser, served: Running) -> Iterator[Visit]:
    yield from open_page(browser, served, f"#/inside?from=en&to=eo&text={quote(SENTENCE)}")


def drawn(visit: Visit) -> None:
    expect(visit.page.locator(".heat canvas[data-drawn]")).to_be_visible()
    expect(visit.page.locator(".head canvas:not([data-drawn])")).to_have_count(0)


def weights_in(visit: Visit) -> dict[int, float]:
    rows = visit.page.locator(".weights li").all()
    return {int(one.get_attribute("data-column") or ""): float(one.locator(".share").inner_text()) for one in rows}


def values_in(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(address.split("?", 1)[1]).items()}


def test_values_are_the_python_apis_for_a_sentence_typed_here(
    visit: Visit, served_run: Path, inspector: Inspector
) -> None:
    page = visit.page
    drawn(visit)
    page.get_by_label("Text", exact=True).fill(TYPED)
    seen = own(served_run, inspector, TYPED)
    expect(page.get_by_label("Translation", exact=True)).to_have_value(seen.translation)
    expect(page.locator(".log-probability")).to_have_text(f"log P = −{-seen.log_probability:.2f}")
    drawn(visit)
    for (site, all_heads), head in itertools.product(seen.statistics.items(), range(2)):
        button = page.locator(f'[data-head="{site.kind}.{site.layer}.{head}"]')
        expect(button.locator(".value")).to_have_text(f"{all_heads[head].entropy:.2f}")
        button.click()
        expect(page.locator(".heat canvas")).to_have_attribute("data-drawn", page.locator("#chosen-title").inner_text())
        for row in (0, 3):
            page.get_by_label("Row", exact=True).select_option(str(row))
            columns = seen.source if site.kind != "decoder" else seen.fed[: row + 1]
            expect(page.locator(".weights li")).to_have_count(min(8, len(columns)))
            found = weights_in(visit)
            expected = seen.weights[site][head][row].tolist()
            assert found == {column: pytest.approx(expected[column], abs=1e-4) for column in found}
            assert sorted(expected, reverse=True)[: len(found)] == pytest.approx(list(found.values()), abs=1e-4)
        options = page.get_by_label("Row", exact=True).locator("option").all_inner_texts()
        if site.kind == "encoder":
            assert options == [f"{at}: {shown_piece(token)}" for at, token in enumerate(seen.source)]
        else:
            both = zip(seen.fed, seen.produced, strict=True)
            assert options == [f"{at}: {shown_piece(a)} → {shown_piece(b)}" for at, (a, b) in enumerate(both)]
    page.get_by_label("Number").select_option("end")
    expect(page.locator('[data-head="encoder.0.1"] .value')).to_have_text(
        f"{seen.statistics[Site('encoder', 0)][1].end:.2f}"
    )


def test_a_head_switched_off_changes_the_output_as_in_python(
    visit: Visit, inspector: Inspector, shown: Inspection
) -> None:
    page = visit.page
    drawn(visit)
    before, listed = weights_in(visit), page.locator(".weights li").all_inner_texts()
    page.get_by_role("button", name="Switch head cross 0.0 off").click()
    page.locator('[data-head="cross.0.1"]').click()
    page.get_by_role("button", name="Switch head cross 0.1 off").click()
    both = ["cross.0.0:off", "cross.0.1:off"]
    outcome = inspector.intervene(SENTENCE, both, shown.tokens)
    expect(page.locator(".now-says")).to_have_text(outcome.translation or "")
    assert outcome.translation != shown.translation
    assert float(page.locator(".delta").get_attribute("data-change") or "") == pytest.approx(outcome.change, abs=1e-4)
    assert page.get_by_role("list", name="Changes").get_by_role("listitem").count() == 3  # two, and undo all
    page.get_by_role("button", name="Undo all").click()
    page.get_by_label("Pin it to").select_option("2")
    drawn(visit)
    expect(page.locator(".weights li").first).to_have_attribute("data-column", "2")
    expect(page.locator(".weights .share").first).to_have_text("1.0000")
    pinned = inspector.intervene(SENTENCE, ["cross.0.1:pin@2"], shown.tokens)
    expect(page.locator(".now-says")).to_contain_text(pinned.translation or "")
    page.get_by_role("button", name="Undo: cross").click()
    page.get_by_role("button", name="Drop the decoder’s mask").click()
    unmasked = inspector.intervene(SENTENCE, ["decoder.*:unmask"], shown.tokens)
    expect(page.locator(".delta")).to_have_text(f"{unmasked.change:+.2f}".replace("-", "−"))
    page.get_by_role("button", name="Drop the decoder’s mask").click()
    page.locator('[data-head="cross.0.0"]').click()
    expect(page.locator(".weights li")).to_have_text(listed, use_inner_text=True)
    assert weights_in(visit) == before


def test_heads_are_ranked_by_measured_effect(visit: Visit, inspector: Inspector, shown: Inspection) -> None:
    page = visit.page
    drawn(visit)
    effects = inspector.effects(SENTENCE, shown.tokens)
    expect(page.get_by_role("heading", name="Attention is not proof of cause")).to_be_visible()
    chosen = next(effect for effect in effects if (effect.kind, effect.layer, effect.head) == ("cross", 0, 0))
    expect(page.locator(".own-effect")).to_have_text(f"{chosen.change:+.3f}".replace("-", "−"))
    page.get_by_role("button", name="Measure all 6 heads").click()
    expect(page.locator(".ranked tbody tr")).to_have_count(6)
    expect(page.locator(".ranked tbody button")).to_have_text(
        [f"{effect.kind} {effect.layer}.{effect.head}" for effect in effects]
    )
    page.locator(".ranked tbody button").last.click()
    expect(page.locator('.head[aria-checked="true"]')).to_have_attribute(
        "data-head", f"{effects[-1].kind}.{effects[-1].layer}.{effects[-1].head}"
    )
    assert page.get_by_label("Number").input_value() == "effect"


def test_the_address_restores_everything(browser: Browser, served: Running, inspector: Inspector) -> None:
    values = "translation=la+kato&kind=decoder&head=1&row=2&column=1&statistic=diagonal&changes=decoder.0.1:pin@0"
    address = f"#/inside?from=en&to=eo&text={quote(SENTENCE)}&{values}"
    wanted = {"kind": "cross", "text": SENTENCE, "row": "1", "column": "2"}
    for visit in open_page(browser, served, address):
        page = visit.page
        drawn(visit)
        expect(page.get_by_label("Translation", exact=True)).to_have_value("la kato")
        expect(page.locator('.head[aria-checked="true"]')).to_have_attribute("data-head", "decoder.0.1")
        expect(page.locator("#heat-readout")).to_contain_text("looks at")
        expect(page.locator("#heat-readout .number")).to_have_text("0.0000")  # it is pinned to the start symbol
        expect(page.get_by_label("Row", exact=True)).to_have_value("2")
        outcome = inspector.intervene(SENTENCE, ["decoder.0.1:pin@0"], "la kato")
        expect(page.locator(".delta")).to_have_text(f"{outcome.change:+.2f}".replace("-", "−"))
        assert values_in(page.url) == values_in(address)
        page.keyboard.press("Escape")
        page.locator('[data-head="decoder.0.1"]').focus()
        page.keyboard.press("ArrowLeft")  # arrows choose
        expect(page.locator('.head[aria-checked="true"]')).to_have_attribute("data-head", "decoder.0.0")
        page.keyboard.press("ArrowDown")
        expect(page.locator('.head[aria-checked="true"]')).to_have_attribute("data-head", "cross.0.0")
        page.locator(".heat-frame").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#heat-readout")).to_contain_text("looks at")
        page.wait_for_url(lambda url: values_in(url).items() >= wanted.items())  # it follows the picture


@pytest.mark.parametrize("view", ["inside", "learn"])
def test_a_key_can_be_given_here(browser: Browser, served_run: Path, view: str) -> None:
    key = "0123456789abcdef"
    with running(service_of(served_run, api_keys=(key,))) as server:
        for visit in open_page(browser, server, f"#/{view}?from=en&to=eo&text={quote(SENTENCE)}"):
            visit.page.get_by_label("This service asks for a key.").fill(key)
            visit.page.get_by_role("button", name="Use it").click()
            expect(visit.page.locator(".heat canvas[data-drawn], .lesson").first).to_be_visible()
            expect(visit.page.get_by_role("alert")).to_have_count(0)
            visit.errors.clear()  # the browser's own report of the answer that asked for it


def check_accessible(visit: Visit, width: int) -> None:
    visit.page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = visit.page.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_axe_finds_nothing(browser: Browser, served: Running, scheme: str, width: int) -> None:
    size = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    address = f"#/inside?from=en&to=eo&text={quote(SENTENCE)}&changes=cross.0.0:off&ranked=1&column=2"
    for visit in open_page(browser, served, address, **size):
        drawn(visit)
        expect(visit.page.locator(".delta")).to_be_visible()
        expect(visit.page.locator(".ranked tbody tr")).to_have_count(6)
        check_accessible(visit, width)


def test_saved_as_one_file_it_opens_without_a_service(
    visit: Visit, browser: Browser, inspector: Inspector, shown: Inspection, tmp_path: Path
) -> None:
    page = visit.page
    drawn(visit)
    page.get_by_role("button", name="Switch head cross 0.0 off").click()
    expect(page.locator(".delta")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as one HTML file").click()
    file = tmp_path / "inside.html"
    download.value.save_as(file)
    check_file(browser, file, inspector, shown, ["cross.0.0:off"])


def check_file(browser: Browser, file: Path, inspector: Inspector, shown: Inspection, changes: list[str]) -> None:
    requests: list[str] = []
    errors: list[str] = []
    within = patient_context(browser, offline=True)
    page = within.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    expect(page.locator(".heat canvas[data-drawn]")).to_be_visible()
    expect(page.locator(".head canvas[data-drawn]")).to_have_count(6)
    seen = inspector.inspect(SENTENCE, shown.tokens, changes)
    page.locator('[data-head="cross.0.1"]').click()
    page.get_by_label("Row", exact=True).select_option("3")
    expected = seen.weights[Site("cross", 0)][1, 3].tolist()
    for one in page.locator(".weights li").all():
        value = float(one.locator(".share").inner_text())
        assert value == pytest.approx(expected[int(one.get_attribute("data-column") or "")], abs=1e-4)
    expect(page.locator(".ranked tbody button")).to_have_count(6)
    if changes:
        outcome = inspector.intervene(SENTENCE, changes, shown.tokens)
        expect(page.locator(".delta")).to_have_text(f"{outcome.change:+.2f}".replace("-", "−"))
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert errors == []
    within.close()


def test_a_file_that_python_writes_is_the_same_page(
    browser: Browser, inspector: Inspector, shown: Inspection, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of(inspector, SENTENCE, shown.tokens, [], {"kind": "encoder"}), encoding="utf-8")
    check_file(browser, file, inspector, shown, [])
