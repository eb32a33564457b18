"""The page in a real browser: what a person sees and does, by mouse, by keyboard and by phone."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from dragoman.inspection.explain import Explainer, Explanation
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.translation.translator import Translator
from dragoman.web import WEB
from support.browsing import AXE, Visit, copied, open_page, until_on
from support.serving import Running, running, service_of

SENTENCE = "the old dog sees the red house"


@pytest.fixture
def visit(browser: Browser, served: Running) -> Iterator[Visit]:
    yield from open_page(browser, served)


@pytest.fixture(scope="module")
def explainer(served_run: Path) -> Explainer:
    return Explainer.load(served_run)


@pytest.fixture(scope="module")
def translator(served_run: Path) -> Translator:
    return Translator.load(served_run)


@pytest.fixture(scope="module")
def shown(translator: Translator, explainer: Explainer) -> Explanation:
    """Of what the page shows for the sentence: the service's translation, which its quick engine found."""
    (translation,) = translator.translate_stream([SENTENCE])
    return explainer.explain(SENTENCE, translation=translation.candidates[0].tokens)


def test_a_translation_appears_as_one_types(visit: Visit, translator: Translator) -> None:
    field = visit.page.get_by_label("Text to translate")
    expect(field).to_be_focused()
    field.press_sequentially("the dog")
    expect(visit.output).to_have_text(translator.translate(["the dog"])[0])
    field.fill("a cat\n\nthe red house")
    first, second = translator.translate(["a cat", "the red house"])
    expect(visit.output).to_have_text(f"{first}\n\n{second}", use_inner_text=True)
    field.fill("\n- a cat\n- the red house\n***\n")
    expect(visit.output).to_have_text(f"- {first}\n- {second}\n***", use_inner_text=True)
    field.fill("12.5 % 🙂\n\na cat")  # what is no language is left as it is
    expect(visit.output).to_have_text(f"12.5 % 🙂\n\n{first}", use_inner_text=True)
    visit.page.get_by_role("button", name="Clear").click()
    expect(field).to_have_value("")
    expect(visit.words).to_have_count(0)
    expect(field).to_be_focused()
    visit.page.get_by_role("button", name="Undo clear").click()
    expect(field).to_have_value("12.5 % 🙂\n\na cat")
    expect(visit.page.get_by_role("button", name="Clear")).to_be_enabled()


def test_an_old_answer_never_takes_the_place_of_a_new_one(visit: Visit, translator: Translator) -> None:
    page, late = visit.page, []

    def hold_back_the_first(route: Any) -> None:
        if json.loads(route.request.post_data)["text"] == "the dog":
            late.append(route)
        else:
            route.continue_()

    page.route("**/api/v1/translate/stream", hold_back_the_first)
    field = page.get_by_label("Text to translate")
    field.fill("the dog")
    until_on(page, lambda: late)
    field.fill("the river")
    expected = translator.translate(["the river"])[0]
    expect(visit.output).to_have_text(expected)
    late[0].continue_()
    page.wait_for_timeout(500)
    expect(visit.output).to_have_text(expected)


def test_highlights_are_the_alignment_of_the_python_api(visit: Visit, shown: Explanation) -> None:
    visit.type(SENTENCE)
    assert visit.words.all_inner_texts() == [word.text for word in shown.target_words]
    for target in range(len(shown.target_words)):
        visit.words.nth(target).hover(force=True)
        visit.page.wait_for_selector(f".reading .own[data-word='{target}']")
        assert visit.lit("source") == [source for word, source in shown.links if word == target]
    for source in range(len(shown.source_words)):
        box = visit.page.locator(f".behind [data-word='{source}']").bounding_box()
        assert box is not None
        visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        visit.page.wait_for_selector(f".behind .own[data-word='{source}']")
        assert visit.lit("target") == [word for word, linked in shown.links if linked == source]
    assert visit.page.locator(".behind [data-word]").all_inner_texts() == [word.text for word in shown.source_words]


def test_characters_of_two_units_shift_nothing(visit: Visit, translator: Translator, explainer: Explainer) -> None:
    """A string of a browser counts an emoji as two, one of Python as one."""
    text = f"🙂 🙂🙂\n\n🙂 {SENTENCE}"
    visit.type(text)
    after = explainer.explain(SENTENCE, translation=translator_tokens(translator, SENTENCE))
    expect(visit.output).to_have_text(f"🙂 🙂🙂\n\n🙂 {after.target}", use_inner_text=True)
    assert visit.words.all_inner_texts() == [word.text for word in after.target_words]
    behind = visit.page.locator(".behind [data-word]").all_inner_texts()
    assert behind == [word.text for word in after.source_words]


def translator_tokens(translator: Translator, text: str) -> tuple[str, ...]:
    (translation,) = translator.translate_stream([text])
    return translation.candidates[0].tokens


def test_another_word_is_chosen_and_the_rest_follows(visit: Visit, explainer: Explainer, shown: Explanation) -> None:
    visit.type(SENTENCE)
    first = visit.output.inner_text()
    word = shown.target_words[2]
    before = shown.tokens[: word.first_token]
    expected = explainer.alternatives(SENTENCE, before)
    options = visit.choose_at(2)
    expect(visit.field).to_be_focused()  # one may type as well
    expect(options).to_have_count(len(expected))
    assert [text.split(" · ")[0] for text in visit.page.locator(".option .said").all_inner_texts()] == [
        choice.text for choice in expected
    ]
    other = next(index for index, choice in enumerate(expected) if choice.text != word.text)
    options.nth(other).click()
    wanted = explainer.explain(SENTENCE, prefix=[*before, *expected[other].tokens])
    expect(visit.output).to_have_text(wanted.target)
    assert wanted.target != first
    visit.page.get_by_role("button", name="Undo", exact=True).click()
    expect(visit.output).to_have_text(first)
    expect(visit.words.first).to_be_visible()  # and it is explained again


def test_the_beam_step_by_step(visit: Visit, explainer: Explainer) -> None:
    visit.type(SENTENCE)
    visit.page.get_by_text("How it was found").click()
    record = explainer.beam(SENTENCE)
    rows = visit.page.locator("table.steps tbody tr")
    for number, step in enumerate(record.steps[:3], start=1):
        expect(visit.page.get_by_role("heading", name=f"Step {number} of {len(record.steps)}")).to_be_visible()
        fates = [text.split()[-1] for text in visit.page.locator("table.steps .fate").all_inner_texts()]
        assert fates == [{"finished": "ended"}.get(candidate.fate, candidate.fate) for candidate in step]
        assert all(rows.locator(".why").all_inner_texts())
        visit.page.get_by_role("button", name="Next step").click()

    def ranked(alpha: float) -> list[str]:
        def score(candidate: Any) -> float:
            return float(candidate.log_probability / ((5 + candidate.length) / 6) ** alpha)

        return [c.text for c in sorted(record.finished, key=score, reverse=True)]

    # At once: the ranking changes before the service answers.
    unanswered: list[Any] = []
    visit.page.route("**/api/v1/beam", lambda route: unanswered.append(route))
    finished = visit.page.get_by_role("region", name="What ended").locator("tbody .said")
    for alpha in (0.0, 2.0):
        visit.page.get_by_role("slider", name="Length penalty").fill(str(alpha))
        expect(finished).to_have_text([text or "nothing" for text in ranked(alpha)])


def test_everything_by_keyboard(visit: Visit, explainer: Explainer, shown: Explanation) -> None:
    page = visit.page

    def is_of_all_of_it(answer: Any) -> bool:
        """Who types slowly sees what was typed so far translated and explained, too."""
        return bool(answer.url.endswith("/explain")) and bool(json.loads(answer.request.post_data)["text"] == SENTENCE)

    with page.expect_response(is_of_all_of_it):
        page.get_by_label("Text to translate").press_sequentially(SENTENCE)
    expect(visit.words).to_have_text([word.text for word in shown.target_words])
    page.keyboard.press("Home")  # the caret lights what the first word became
    page.wait_for_selector(".behind .own[data-word='0']")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Clear")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Translate a file")).to_be_focused()
    page.keyboard.press("Tab")
    expect(visit.field).to_be_focused()
    page.keyboard.press("Home")
    page.wait_for_selector(".reading .own[data-word='0']")
    for _ in range(shown.target_words[2].start + 1):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector(".reading .own[data-word='2']")
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator(".option").nth(1)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(visit.field).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator(".option").nth(1)).to_be_visible()
    before = shown.tokens[: shown.target_words[2].first_token]
    choices = explainer.alternatives(SENTENCE, before)
    other = next(index for index, choice in enumerate(choices) if choice.text != shown.target_words[2].text)
    for at in range(other + 1):
        page.keyboard.press("ArrowDown")
        expect(visit.field).to_have_attribute("aria-activedescendant", f"choice-{at}")
    page.keyboard.press("Enter")
    wanted = explainer.explain(SENTENCE, prefix=[*before, *choices[other].tokens])
    expect(visit.output).to_have_text(wanted.target)
    expect(visit.field).to_be_focused()
    place = wanted.target_words[2].end  # after the word that was taken
    expect(visit.field).to_have_js_property("selectionStart", place)
    page.get_by_text("How it was found").locator("..").focus()
    page.keyboard.press("Enter")
    expect(page.locator("table.steps")).to_be_visible()


def test_copies(visit: Visit, translator: Translator) -> None:
    page = visit.page
    awkward = 'it\'s "the" dog\\'
    visit.type(awkward)
    expected = translator.translate([awkward])[0]

    assert copied(page, "Copy") == expected.strip()
    link = copied(page, "Copy link")
    page.get_by_text("How it was found").click()
    curl = copied(page, "Copy as curl")
    assert curl.startswith(f"curl {visit.server.url}translate ")
    said = subprocess.run(["bash", "-c", f"{curl} -s"], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == {"translatedText": expected}
    said = subprocess.run(
        [sys.executable, "-c", copied(page, "Copy as Python")], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"{expected}\n"
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_label("Text to translate")).to_have_value(awkward)
    expect(visit.output).to_have_text(expected)
    visit.elsewhere.clear()  # about:blank


def test_languages_and_swap(browser: Browser, served_run: Path, translator: Translator) -> None:
    pairs = [ServedPair("en", "eo", served_run), ServedPair("eo", "en", served_run), ServedPair("en", "fr", served_run)]
    with running(Service(pairs, Settings(port=0, rate_limit=0))) as server:
        for visit in open_page(browser, server):
            visit.type("the dog")
            there = translator.translate(["the dog"])[0]
            expect(visit.output).to_have_text(there)
            visit.page.get_by_role("button", name="Swap languages").click()
            expect(visit.page.get_by_role("combobox", name="From")).to_have_value("eo")
            expect(visit.page.get_by_role("combobox", name="To", exact=True)).to_have_value("en")
            expect(visit.page.get_by_label("Text to translate")).to_have_value(there)
            expect(visit.output).to_have_text(translator.translate([there])[0])
            visit.page.get_by_role("combobox", name="From").select_option("en")
            visit.page.get_by_role("combobox", name="To", exact=True).select_option("fr")
            expect(visit.page.get_by_role("button", name="Swap languages")).to_be_disabled()
            visit.page.get_by_role("combobox", name="From").select_option("auto")
            visit.page.get_by_label("Text to translate").fill("the cat is sleeping on the sofa")
            expect(visit.page.get_by_role("option", name="Detected: English")).to_be_attached()


TYPE_AND_LEAVE = """([field, text, link]) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, text);
    field.dispatchEvent(new InputEvent("input", {bubbles: true}));
    link.click();
}"""


def test_a_view_that_is_left_at_once_keeps_what_was_typed_last(visit: Visit) -> None:
    page = visit.page
    tab = page.get_by_role("navigation").get_by_role("link", name="Inside")
    tab.click()
    field = page.get_by_label("Text", exact=True)
    expect(field).not_to_have_value("")
    learn = page.get_by_role("navigation").get_by_role("link", name="Learn")
    page.evaluate(TYPE_AND_LEAVE, [field.element_handle(), "the dog", learn.element_handle()])
    expect(page).to_have_title("Learn · Dragoman")
    tab.click()
    expect(field).to_have_value("the dog")


def test_the_tabs_keep_the_sentence(visit: Visit) -> None:
    page = visit.page

    def go(name: str) -> None:
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        expect(page).to_have_title(f"{name} · Dragoman")

    visit.type(SENTENCE)
    go("Inside")
    expect(page.get_by_label("Text", exact=True)).to_have_value(SENTENCE)
    page.get_by_label("Text", exact=True).fill("the dog")
    go("Learn")
    expect(page.get_by_label("Your sentence")).to_have_value(SENTENCE)
    go("Training")
    go("Translate")
    expect(page.get_by_label("Text to translate")).to_have_value(SENTENCE)
    go("Inside")  # which was given another sentence since
    expect(page.get_by_label("Text", exact=True)).to_have_value("the dog")
    go("Translate")
    visit.type("a cat")
    go("Inside")
    expect(page.get_by_label("Text", exact=True)).to_have_value("a cat")
    page.go_back()
    expect(page.get_by_label("Text to translate")).to_have_value("a cat")
    go("Translate")  # the tab one is on changes nothing
    expect(page.get_by_label("Text to translate")).to_have_value("a cat")
    page.wait_for_url("**text=a+cat")


DROP = """([name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name));
  const drop = new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true });
  document.querySelector("textarea").dispatchEvent(drop);
}"""


def test_a_file_is_translated_and_saved(
    browser: Browser, served_run: Path, translator: Translator, tmp_path: Path
) -> None:
    letter = tmp_path / "my letter.txt"
    letter.write_text("the dog\n\na cat\n")
    key = "0123456789abcdef"
    with running(service_of(served_run, api_keys=(key,), body_limit=6000)) as server:
        for visit in open_page(browser, server):
            page, panel = visit.page, visit.page.get_by_role("region", name="File")
            with page.expect_file_chooser() as chooser:
                page.get_by_role("button", name="Translate a file").click()
            chooser.value.set_files(letter)
            panel.get_by_label("This service asks for a key.").fill(key)
            panel.get_by_role("button", name="Use it").click()

            def saved(name: str) -> str:
                with page.expect_download() as download:  # noqa: B023
                    panel.get_by_role("link", name=name).click()  # noqa: B023
                assert download.value.suggested_filename == name
                return Path(download.value.path()).read_text()

            dog, cat, river = translator.translate(["the dog", "a cat", "the river"])
            assert saved("my letter.eo.txt") == f"{dog}\n\n{cat}\n"
            page.evaluate(DROP, ["notes.md", "# the river\n"])
            assert saved("notes.eo.md") == f"# {river}\n"
            page.evaluate(DROP, ["picture.png", "x"])
            expect(panel.get_by_role("alert")).to_contain_text("Files of this kind are not translated")
            page.evaluate(DROP, ["long.txt", "x" * 6000])
            expect(panel.get_by_role("alert")).to_contain_text("It has 6 KiB, and this service takes 2 KiB.")
            panel.get_by_role("button", name="Close").click()
            expect(panel).to_have_count(0)
            visit.elsewhere.clear()  # blob: addresses, which are the page's own
            visit.errors.clear()  # the browser's own report of the answers above


def answer_busy(route: Any) -> None:
    route.fulfill(status=503, json={"error": "Too busy"}, headers={"retry-after": "1"})


def test_errors_are_told_where_they_belong(browser: Browser, served_run: Path, translator: Translator) -> None:
    key = "0123456789abcdef"
    with running(service_of(served_run, api_keys=(key,), character_limit=40)) as server:
        for visit in open_page(browser, server):
            page = visit.page
            field = page.get_by_label("Text to translate")
            field.fill("x" * 45)
            expect(page.locator("#source-note")).to_have_text(
                "45 characters; at most 40 are translated at once: leave out 5"
            )
            assert field.get_attribute("aria-invalid") == "true"
            field.fill("the dog")
            asked = page.get_by_label("This service asks for a key.")
            expect(asked).to_be_visible()
            asked.fill("wrong-key-of-16-characters")
            page.get_by_role("button", name="Use it").click()
            again = page.get_by_label("The service does not know this key.")
            expect(again).to_be_visible()
            again.fill(key)
            page.get_by_role("button", name="Use it").click()
            expect(visit.words.first).to_be_visible()
            page.route("**/api/v1/translate/stream", lambda route: route.abort())
            field.fill("a cat")
            expect(page.get_by_role("alert")).to_contain_text("The service does not answer.")
            page.unroute("**/api/v1/translate/stream")
            expect(page.get_by_role("alert")).to_have_count(0)  # it is tried again by itself
            page.route("**/api/v1/translate/stream", answer_busy)  # until it was seen: for a second each time
            field.fill("the river")
            expect(page.get_by_role("alert")).to_contain_text("The service is busy. It is tried again in 1 s.")
            page.unroute("**/api/v1/translate/stream")
            expect(visit.output).to_have_text(translator.translate(["the river"])[0])
            expect(page.get_by_role("alert")).to_have_count(0)
            visit.errors.clear()  # the browser's own report of the answers above


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing(browser: Browser, served: Running, scheme: str, width: int) -> None:
    for visit in open_page(browser, served, viewport={"width": width, "height": 800}, color_scheme=scheme):
        page = visit.page

        def check() -> None:
            violations = page.evaluate("async () => (await axe.run()).violations")  # noqa: B023
            assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []
            # Nothing is wider than the window.
            assert page.evaluate("document.documentElement.scrollWidth") <= width  # noqa: B023

        expect(page.get_by_label("Text to translate")).to_be_visible()
        page.evaluate(AXE.read_text(encoding="utf-8"))
        check()
        visit.type(f"{SENTENCE}. A cat.")
        visit.page.get_by_text("How it was found").click()
        expect(page.locator("table.steps")).to_be_visible()
        visit.words.nth(1).hover(force=True)
        check()
        visit.choose_at(1)
        check()


def test_a_link_holds_the_text_and_markup_in_it_is_text(browser: Browser, served: Running) -> None:
    text = "<img src=x onerror=alert(1)> & dog"
    for visit in open_page(browser, served, f"#/translate?from=en&to=eo&text={quote(text)}"):
        expect(visit.page.get_by_label("Text to translate")).to_have_value(text)
        expect(visit.words.first).to_be_visible()
        assert visit.page.locator("main img").count() == 0


def test_what_is_vendored_is_what_was_pinned() -> None:
    vendor = WEB / "vendor"
    lines = (vendor / "SHA256SUMS").read_text().splitlines()
    pinned = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in vendor.iterdir()}
    about = {"SHA256SUMS", "README.md"}
    assert {name: digest for name, digest in found.items() if name not in about} == pinned
    assert {
        "htm-preact.js", "LICENSE.htm", "LICENSE.preact", "uplot.js", "uplot.css", "LICENSE.uplot",
        "stix-two-math.woff2", "LICENSE.stix",
    } == set(pinned)  # fmt: skip


def test_no_file_of_the_page_names_another_host() -> None:
    allowed = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"}
    for path in WEB.rglob("*"):
        if path.suffix in (".js", ".css", ".html", ".svg"):
            text = path.read_text(encoding="utf-8")
            if path.parent.name == "vendor":  # whose comments say where something comes from; no comment is run
                text = "".join(line for line in text.splitlines() if not re.match(r"\s*(//|\*)", line))
            named = set(re.findall(r"https?://[\w./-]+", text))
            assert named <= allowed, path.name
