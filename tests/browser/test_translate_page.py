"""Translate in a real browser, where it is not plain sailing: texts too long, a service that fails, many sentences."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, open_page
from support.serving import Running

SENTENCE = "the old dog sees the red house"
STREAM = "**/api/v1/translate/stream"

CONTRASTS = """() => {
  const parts = (colour) => { // of any notation, painted
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const colour = parts(getComputedStyle(element).backgroundColor);
    return colour[3] > 250 ? colour : behind(element.parentElement);
  };
  return [...document.querySelectorAll("button:not(:disabled)")].filter((one) => one.innerText.trim()).map((one) => {
    const [light, dark] = [parts(getComputedStyle(one).color), behind(one)].map(luminance).sort((a, b) => b - a);
    return [one.innerText.trim(), (light + 0.05) / (dark + 0.05)];
  });
}"""


@pytest.fixture(scope="module")
def shared(browser: Browser, served: Running) -> Iterator[Visit]:
    """One page for all tests."""
    for visit in open_page(browser, served):
        yield visit
        visit.errors.clear()  # the browser's own report of the answers that tests made fail


@pytest.fixture
def visit(shared: Visit) -> Iterator[Visit]:
    expect(shared.page.get_by_label("Text to translate")).to_be_visible()
    yield shared
    shared.page.unroute_all()
    shared.page.get_by_label("Text to translate").fill("")
    expect(shared.words).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_pressed_button_can_be_read(browser: Browser, served: Running, scheme: str) -> None:
    for visit in open_page(browser, served, f"#/inside?text={SENTENCE}", color_scheme=scheme):
        page = visit.page
        switch = page.get_by_role("button", name="Switch head")
        switch.click()
        expect(switch).to_have_attribute("aria-pressed", "true")  # and the pointer is still over it
        seen = 0
        for name in ("Inside", "Translate", "Learn", "Training", "Compare"):
            if name != "Inside":
                page.get_by_role("navigation").get_by_role("link", name=name).click()
                expect(page).to_have_title(f"{name} · Dragoman")
            expect(page.locator("main h1, main .study").first).to_be_attached()
            developer = page.context.new_cdp_session(page)
            developer.send("DOM.enable")
            developer.send("CSS.enable")
            root = developer.send("DOM.getDocument")["root"]["nodeId"]
            found = developer.send("DOM.querySelectorAll", {"nodeId": root, "selector": "button"})["nodeIds"]
            for node in found:
                forced = {"nodeId": node, "forcedPseudoClasses": ["hover", "active"]}
                developer.send("CSS.forcePseudoState", forced)
            contrasts = page.evaluate(CONTRASTS)
            assert [(button, round(contrast, 2)) for button, contrast in contrasts if contrast < 4.5] == [], name
            seen += len(contrasts)
            developer.detach()
        assert seen > 10


def test_over_the_limit_the_pane_says_so_and_what_to_do(visit: Visit, translator: Translator) -> None:
    page, limit = visit.page, visit.server.service.settings.character_limit
    field = page.get_by_label("Text to translate")
    text = "the dog\n" * (limit // 8 + 1)
    field.fill(text)
    told = page.locator(".pane.target").get_by_role("status").filter(has_text="Nothing is translated")
    expect(told).to_contain_text(f"the text has {len(text):,} characters, and at most {limit:,} are translated")
    expect(told).to_contain_text(f"Leave out {len(text) - limit:,}")
    expect(told).to_be_in_viewport()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate("async () => (await axe.run()).violations.map((one) => one.id)") == []
    told.get_by_role("button", name="Translate it as a file").click()
    panel = page.get_by_role("region", name="File")
    with page.expect_download() as download:
        panel.get_by_role("link", name="text.eo.txt").click()
    (dog,) = translator.translate(["the dog"])
    assert download.value.path().read_text() == text.replace("the dog", dog)
    panel.get_by_role("button", name="Close").click()
    visit.elsewhere.clear()  # blob: addresses, which are the page's own
    field.fill("🙂" * (limit - 10))  # which the service counts as one character each
    expect(told).to_have_count(0)


@pytest.fixture(scope="module")
def translator(served_run: Any) -> Translator:
    return Translator.load(served_run)


def fails_with(route: Route, status: int) -> None:
    if status:
        route.fulfill(status=status, json={"error": "Something broke"}, headers={"retry-after": "1"})
    else:
        route.abort()


@pytest.mark.parametrize("status", [0, 500, 503])
def test_after_a_failure_the_old_translation_is_marked_until_the_service_is_back(
    visit: Visit, translator: Translator, status: int
) -> None:
    page = visit.page
    dog, river = translator.translate(["the dog", "the river"])
    visit.type("the dog")
    expect(visit.output).to_have_text(dog)
    fresh = visit.output.evaluate("(element) => getComputedStyle(element).color")
    page.route(STREAM, lambda route: fails_with(route, status))
    page.get_by_label("Text to translate").fill("the river")
    told = page.get_by_role("alert")
    expect(told).to_contain_text("It is tried again in")
    expect(told).to_contain_text("What stands below is the translation of what was typed before.")
    expect(visit.output).to_have_text(dog)
    assert visit.output.evaluate("(element) => getComputedStyle(element).color") != fresh
    expect(visit.field).to_have_attribute("aria-describedby", "stale-note")
    expect(visit.field).not_to_be_editable()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_disabled()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate("async () => (await axe.run()).violations.map((one) => one.id)") == []
    page.unroute(STREAM)
    expect(visit.output).to_have_text(river)
    expect(told).to_have_count(0)
    assert visit.output.evaluate("(element) => getComputedStyle(element).color") == fresh


def test_a_service_that_is_silent_is_given_up_and_asked_again(browser: Browser, served: Running) -> None:
    for visit in open_page(browser, served):
        page = visit.page
        held: list[Route] = []
        page.clock.install()
        page.route(STREAM, lambda route: held.append(route))  # noqa: B023
        page.get_by_label("Text to translate").fill("the dog")
        for _ in range(600):
            page.clock.run_for(300)
            if held:
                break
            page.wait_for_timeout(20)
        page.clock.fast_forward(40_000)
        expect(page.get_by_role("alert")).to_contain_text("The service has not answered for 30 s.")
        page.unroute(STREAM)
        page.clock.fast_forward(40_000)
        page.clock.resume()
        expect(visit.words.first).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        visit.errors.clear()


NOUNS = ("dog", "cat", "house", "tree", "garden", "child", "river")


def test_every_sentence_is_checked_one_at_a_time(visit: Visit) -> None:
    under_way, most, asked = 0, 0, []

    def count(route: Route) -> None:
        nonlocal under_way, most
        asked.append(json.loads(route.request.post_data or "")["text"])
        under_way += 1
        most = max(most, under_way)
        answer = route.fetch()
        under_way -= 1
        route.fulfill(response=answer)

    sentences = [f"The {noun} sees the {other}." for noun, other in zip(NOUNS, reversed(NOUNS), strict=True)]
    visit.page.route("**/api/v1/explain", count)
    visit.page.get_by_label("Text to translate").fill(" ".join(sentences))
    for index in range(len(sentences)):
        expect(visit.page.locator(f".reading .word[data-segment='{index}']").first).to_be_visible()
    assert (most, asked) == (1, sentences)
    visit.page.get_by_label("Text to translate").fill(" ".join([*sentences, "A red tree."]))
    expect(visit.page.locator(f".reading .word[data-segment='{len(sentences)}']").first).to_be_visible()
    assert asked == [*sentences, "A red tree."]  # what is known is not asked again


def test_a_check_that_finds_the_service_busy_is_made_later(visit: Visit) -> None:
    refused: list[Route] = []

    def busy_once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route)
            route.fulfill(status=503, json={"error": "Too busy"}, headers={"retry-after": "1"})

    visit.page.route("**/api/v1/explain", busy_once)
    visit.type("the small garden near the river")
    assert len(refused) == 1


def test_a_choice_stays_with_its_sentence(visit: Visit, translator: Translator) -> None:
    page, twice = visit.page, SENTENCE
    field = page.get_by_label("Text to translate")
    (plain,) = translator.translate([twice])
    field.fill(f"{twice}\n\n{twice}")
    second = page.locator(".reading .word[data-segment='1']")
    expect(second.first).to_be_visible()
    visit.choose_at(2, segment=1)
    now = second.nth(2).inner_text()
    options = page.locator(".option .said")
    other = next(at for at, said in enumerate(options.all_inner_texts()) if said.split(" · ")[0] != now)
    page.locator(".option").nth(other).click()
    undo = page.get_by_role("button", name="Undo", exact=True)
    expect(undo).to_be_enabled()
    whole = visit.output.inner_text()
    assert whole.startswith(plain)
    chosen = whole.removeprefix(plain).strip()
    assert chosen != plain
    cat, river = translator.translate(["a cat", "the river"])
    for typed, shown in (
        ((twice, twice, "a cat"), f"{plain} {chosen} {cat}"),
        (("the river", twice, twice, "a cat"), f"{river} {plain} {chosen} {cat}"),
        ((twice, twice, "a cat"), f"{plain} {chosen} {cat}"),
        (("the river", twice, "the river"), f"{river} {chosen} {river}"),  # of which its words alone tell
    ):
        field.fill("\n\n".join(typed))
        expect(visit.output).to_have_text(shown)
    undo.click()
    expect(visit.output).to_have_text(f"{river} {plain} {river}")
    field.fill(f"{twice}\n\na cat")
    expect(visit.output).to_have_text(f"{plain} {cat}")
    expect(undo).to_be_disabled()


def test_defects_are_told_at_their_sentence(visit: Visit) -> None:
    page = visit.page

    def with_defects(route: Route) -> None:
        answer = route.fetch()
        events = answer.text().split("\n\n")
        events[1] = events[1].replace('"faults": []', '"faults": ["loop", "short", "lost"]')
        events[1] = events[1].replace('"how": "plain"', '"how": "source"')
        route.fulfill(response=answer, body="\n\n".join(events))

    page.route(STREAM, with_defects)
    page.get_by_label("Text to translate").fill("A cat. The river. A red tree.")
    doubted = page.locator(".reading .doubted")
    expect(doubted).to_have_count(1)
    said = "not translated; repeated itself; is much shorter than usual; lost what must stay"
    assert doubted.get_attribute("data-doubt") == said
    assert "lost" not in visit.output.inner_text()  # nor in what is selected and copied
    assert page.locator(".bar-of.doubtful").get_attribute("title") == f"Sentence 2 of 3: {said}"
    legend = page.get_by_role("note", name="How sure")
    expect(legend).to_contain_text("1 of 3 sentences has a defect")
    legend.get_by_role("button", name="Show it").click()
    expect(visit.field).to_be_focused()
    expect(page.get_by_role("region", name="The sentence")).to_contain_text(f"Sentence 2 of 3: {said}")
    expect(legend).not_to_contain_text("doubtful")  # of which nothing is known here
