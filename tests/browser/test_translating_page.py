"""Translate in a real browser, for someone who translates: typing into the translation, glossary, history, files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from dragoman.inspection.explain import Explainer
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, open_page
from support.serving import Running, running

SENTENCE = "the old dog sees the red house"
STREAM = "**/api/v1/translate/stream"
ENGLISH = "#/translate?from=en&to=eo"


@pytest.fixture(scope="module")
def both(served_run: Path) -> Iterator[Running]:
    """A run that is served in both directions."""
    pairs = [ServedPair("en", "eo", served_run), ServedPair("eo", "en", served_run)]
    with running(Service(pairs, Settings(port=0, rate_limit=0))) as server:
        yield server


@pytest.fixture(scope="module")
def explainer(served_run: Path) -> Explainer:
    return Explainer.load(served_run)


@pytest.fixture(scope="module")
def translator(served_run: Path) -> Translator:
    return Translator.load(served_run)


@pytest.fixture(scope="module")
def shared(browser: Browser, both: Running) -> Iterator[Visit]:
    for visit in open_page(browser, both, ENGLISH):
        yield visit
        visit.elsewhere.clear()  # blob: addresses, which are the page's own


@pytest.fixture
def visit(shared: Visit) -> Iterator[Visit]:
    yield shared
    shared.page.unroute_all()
    shared.page.get_by_role("combobox", name="From").select_option("en")
    shared.page.get_by_label("Text to translate").fill("")
    expect(shared.words).to_have_count(0)


def without_violations(visit: Visit) -> None:
    visit.page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = visit.page.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []


def test_an_empty_page_offers_examples_and_no_command(visit: Visit) -> None:
    page = visit.page
    examples = page.get_by_role("group", name="Examples").get_by_role("button")
    expect(examples).to_have_count(3)
    shown = page.locator("main").inner_text()
    assert not re.search(r"dragoman |curl|Python", shown)
    first = examples.first.inner_text()
    examples.first.click()
    expect(page.get_by_label("Text to translate")).to_have_value(first)
    expect(examples).to_have_count(0)


def test_five_sizes_of_type_and_one_primary_action(visit: Visit) -> None:
    visit.type(f"{SENTENCE}. A cat.")
    visit.choose_at(1)
    visit.page.get_by_text("How it was found").click()
    expect(visit.page.locator("table.steps")).to_be_visible()
    sizes = visit.page.evaluate(
        """() => {
          const holdsText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
          const all = [...document.querySelectorAll("body *")];
          const shown = all.filter((one) => one.checkVisibility() && holdsText(one));
          return [...new Set(shown.map((one) => getComputedStyle(one).fontSize))];
        }"""
    )
    assert 3 <= len(sizes) <= 5, sizes
    assert visit.page.locator(".main:visible").all_inner_texts() == ["Copy"]
    visit.page.get_by_text("How it was found").click()


def test_typing_offers_how_the_model_would_go_on(visit: Visit, explainer: Explainer) -> None:
    page = visit.page
    visit.type(SENTENCE)
    plain = visit.output.inner_text()
    first, second = plain.split(" ")[:2]
    visit.field.click()
    visit.field.fill("")
    typed = f"{first} {second[:2]}"
    visit.field.press_sequentially(typed)
    expect(visit.output).to_have_text(typed)
    rest = explainer.explain(SENTENCE, prefix=explainer.tokens_of(typed))
    words = explainer.alternatives(SENTENCE, explainer.tokens_of(f"{first} "))
    fitting = [word.text for word in words if word.text.lower().startswith(second[:2].lower())][:4]
    offered = page.locator(".option .said")
    expect(offered).to_have_count(len(fitting) + (rest.target.startswith(typed) and rest.target != typed))
    assert offered.all_inner_texts()[: len(fitting)] == fitting
    assert fitting
    page.keyboard.press("ArrowDown")
    expect(page.locator(".option[aria-selected=true] .said")).to_have_text(fitting[0])
    page.keyboard.press("Tab")
    wanted = explainer.explain(SENTENCE, prefix=explainer.tokens_of(f"{first} {fitting[0]}"))
    expect(visit.output).to_have_text(wanted.target)
    expect(visit.field).to_be_focused()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(visit.output).to_have_text(typed)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(visit.output).to_have_text(plain)
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()


def test_what_is_typed_survives_further_typing(visit: Visit, translator: Translator, explainer: Explainer) -> None:
    page = visit.page
    field = page.get_by_label("Text to translate")
    dog, cat, river = translator.translate(["the dog", "a cat", "the river"])
    field.fill("the dog\n\na cat")
    expect(visit.output).to_have_text(f"{dog} {cat}")
    expect(visit.field).to_be_editable()
    visit.field.press("Control+End")
    visit.field.press_sequentially(" mia")
    mine = f"{cat} mia"
    expect(visit.output).to_have_text(f"{dog} {mine}")
    expect(page.locator(".sentence-of.changed")).to_have_text(mine)
    # What was typed is explained as well: the alignment of the words as they are now.
    expected = explainer.explain("a cat", translation=explainer.tokens_of(mine))
    words = page.locator(".reading .word[data-segment='1']")
    expect(words).to_have_text([word.text for word in expected.target_words])
    field.fill("the river\n\nthe dog\n\na cat")
    expect(visit.output).to_have_text(f"{river} {dog} {mine}")
    # A choice in another sentence takes nothing from it.
    visit.choose_at(0, segment=0).nth(1).click()
    expect(visit.output).not_to_have_text(f"{river} {dog} {mine}")
    expect(visit.output).to_contain_text(mine)
    # What stands between the sentences is the source's.
    visit.field.evaluate("(one) => one.setSelectionRange(one.value.indexOf('\\n'), one.value.indexOf('\\n') + 2)")
    before = visit.field.input_value()
    visit.field.press("Delete")
    expect(visit.field).to_have_value(before)


EDITS = """async () => {
  const { editsOf, shownText } = await import("/web/views/translate/editing.js");
  let seed = 7;
  const draw = (most) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % most; };
  const word = () => "abba aab".slice(draw(4), 4 + draw(4)); // few letters: what changed is often ambiguous
  const wrong = [];
  for (let round = 0; round < 3000; round += 1) {
    const segments = Array.from({ length: 1 + draw(4) }, () => ({ text: word() }));
    const before = segments.map((_, at) => (at ? ["", " ", "\\n\\n"][draw(3)] : ""));
    const shown = shownText({ segments, before, after: "" });
    const at = draw(segments.length);
    const { start, end } = shown.places[at];
    const from = start + draw(end - start + 1);
    const to = from + draw(end - from + 1);
    const written = word();
    const typed = shown.text.slice(0, from) + written + shown.text.slice(to);
    const edits = editsOf(shown, typed, from + written.length);
    const now = segments.map(({ text }, index) => edits.find((edit) => edit.at === index)?.text ?? text);
    const own = shown.text.slice(start, from) + written + shown.text.slice(to, end);
    const gap = (index) => shown.text.slice(index ? shown.places[index - 1].end : 0, shown.places[index].start);
    const joined = now.map((text, index) => gap(index) + text).join("");
    const isOther = edits.length > 1 || (edits.length && edits[0].at === at && edits[0].text !== own);
    if (joined !== typed || isOther) wrong.push([shown.text, typed, edits]);
  }
  return wrong.slice(0, 3);
}"""


def test_what_is_typed_belongs_to_the_sentence_that_it_is_typed_into(visit: Visit) -> None:
    assert visit.page.evaluate(EDITS) == []


def test_whole_sentences_are_offered_beside_the_text(visit: Visit, translator: Translator) -> None:
    visit.type(SENTENCE)
    (translation,) = translator.translate_stream([SENTENCE], n_best=4)
    plain = visit.output.inner_text()
    expected = [text for text in dict.fromkeys(one.text for one in translation.candidates) if text and text != plain]
    ways = visit.page.locator(".way")
    expect(ways).to_have_text(expected)
    ways.last.click()
    expect(visit.output).to_have_text(expected[-1])
    expect(visit.words.first).to_be_visible()
    expect(ways).to_have_text([plain, *expected[:-1]])  # and the way back is among them
    visit.page.get_by_role("button", name="Undo", exact=True).click()
    expect(visit.output).to_have_text(plain)


def test_ribbons_are_as_thick_as_the_alignment(visit: Visit, translator: Translator, explainer: Explainer) -> None:
    visit.type(SENTENCE)
    (translation,) = translator.translate_stream([SENTENCE])
    shown = explainer.explain(SENTENCE, translation=translation.candidates[0].tokens)
    ribbons = visit.page.locator(".ribbons path")
    for word in range(len(shown.target_words)):
        visit.words.nth(word).hover(force=True)
        visit.page.wait_for_selector(f".reading .own[data-word='{word}']")
        expected = [weight for weight in shown.alignment[word] if weight >= 0.03]
        expect(ribbons).to_have_count(len(expected))
        weights = [float(one.get_attribute("data-weight") or -1) for one in ribbons.all()]
        assert weights == pytest.approx(expected, abs=2e-3)
        widths = [float(one.get_attribute("stroke-width") or -1) for one in ribbons.all()]
        assert widths == pytest.approx([12 * weight for weight in weights], abs=0.02)
    visit.page.mouse.move(5, 5)
    expect(ribbons).to_have_count(0)


def test_what_was_not_carried_over_is_struck_through(visit: Visit) -> None:
    page = visit.page

    def lost(route: Route) -> None:
        answer = route.fetch()
        body = answer.text().replace('"notes": []', '"notes": ["lost: dog", "lost: red", "no verb"]', 1)
        route.fulfill(response=answer, body=body)

    page.route(STREAM, lost)
    page.get_by_label("Text to translate").fill(SENTENCE)
    struck = page.locator(".behind .lost")
    expect(struck).to_have_text(["dog", "red"])
    assert "line-through" in struck.first.evaluate("(one) => getComputedStyle(one).textDecorationLine")
    legend = page.get_by_role("note", name="How sure")
    expect(legend).to_contain_text("not carried over: “dog”, “red”")
    expect(legend).to_contain_text("1 of 1 sentence has a defect")
    doubt = page.locator(".doubted").get_attribute("data-doubt")
    assert doubt == "not carried over: “dog”, “red”; no verb"  # and what else the service notes


def test_a_term_is_added_from_a_selection_and_used(visit: Visit) -> None:
    page = visit.page
    visit.type(SENTENCE)
    plain = visit.output.inner_text()
    page.get_by_label("Text to translate").evaluate("(one) => { one.focus(); one.setSelectionRange(8, 11); }")
    page.get_by_role("button", name="Add “dog” to the glossary").click()
    panel = page.locator("details.glossary")
    expect(panel.get_by_label("Term", exact=True)).to_have_value("dog")
    target = panel.get_by_label("Its translation")
    expect(target).to_be_focused()
    assert target.input_value() in plain  # what it is aligned with
    target.fill("urso")
    with page.expect_request(STREAM) as asked:
        target.press("Enter")
    assert json.loads(asked.value.post_data or "")["glossary"] == [{"source": "dog", "target": "urso"}]
    expect(visit.output).to_contain_text("urso")
    expect(panel.get_by_role("list", name="Terms")).to_contain_text("dog → urso")
    without_violations(visit)
    content = b'source,target\n"house","hejmo, dolcha"\ncat,felo\ndog,hundego\n'
    panel.get_by_label("Glossary file").set_input_files(
        {"name": "terms.csv", "mimeType": "text/csv", "buffer": content}
    )
    expect(panel.get_by_role("status")).to_have_text("2 terms are new, of 3 in terms.csv.")
    expect(visit.output).to_contain_text("hundego")
    page.reload()
    expect(page.get_by_text("3 terms, English to Esperanto")).to_be_visible()  # it stays in this browser
    page.get_by_text("Glossary", exact=True).click()
    panel.get_by_role("button", name="Remove dog").click()
    panel.get_by_label("Glossary file").set_input_files(
        {"name": "x.txt", "mimeType": "text/plain", "buffer": b"none here"}
    )
    expect(panel.get_by_role("status")).to_contain_text("x.txt has no terms")
    panel.get_by_role("button", name="Remove all").click()
    expect(visit.output).to_have_text(plain)


def test_a_history_stays_in_this_browser(visit: Visit) -> None:
    page = visit.page
    visit.type(SENTENCE)
    said = visit.output.inner_text()
    panel = page.locator("details.history")
    page.get_by_text("History", exact=True).click()
    entries = panel.locator(".entry")
    expect(entries.first).to_contain_text(SENTENCE)
    expect(entries.first).to_contain_text(said)
    page.get_by_role("button", name="Clear").click()
    page.reload()
    page.get_by_text("History", exact=True).click()
    without_violations(visit)
    entries.filter(has_text=SENTENCE).first.click()
    expect(page.get_by_label("Text to translate")).to_have_value(SENTENCE)
    expect(visit.output).to_have_text(said)
    panel.get_by_role("button", name=f"Forget “{SENTENCE}”").first.click()
    panel.get_by_label("Keep a history").uncheck()
    expect(entries).to_have_count(0)
    assert SENTENCE not in page.evaluate("localStorage.getItem('dragoman-history')")
    panel.get_by_label("Keep a history").check()


def test_a_language_is_detected_by_default(browser: Browser, both: Running) -> None:
    for visit in open_page(browser, both):
        page = visit.page
        expect(page.get_by_role("combobox", name="From")).to_have_value("auto")
        page.get_by_label("Text to translate").fill("the cat is sleeping on the sofa")
        expect(page.get_by_role("option", name="Detected: English")).to_be_attached()
        esperanto = "la kato dormas sur la sofo, kaj la hundo vidas ĝin"
        page.get_by_label("Text to translate").fill(esperanto)
        hint = page.locator(".looks-like")
        expect(hint).to_contain_text("This looks like Esperanto.")  # which is what it would be translated into
        hint.get_by_role("button", name="Translate from Esperanto into English").click()
        expect(page.get_by_role("combobox", name="From")).to_have_value("eo")
        expect(page.get_by_role("combobox", name="To", exact=True)).to_have_value("en")
        expect(hint).to_have_count(0)
        page.get_by_label("Text to translate").fill("the cat is sleeping on the sofa")
        expect(hint).to_contain_text("This looks like English.")  # although it was said to be Esperanto
        without_violations(visit)


def preview_of(*confidences: float) -> list[dict[str, Any]]:
    return [
        {
            "source": f"line {at}",
            "output": f"linio {at}",
            "confidence": confidence,
            "how": "plain",
            "faults": [],
            "notes": [],
        }
        for at, confidence in enumerate(confidences)
    ]


def test_a_file_is_shown_with_what_is_doubtful_in_it(visit: Visit, translator: Translator) -> None:
    page, panel = visit.page, visit.page.get_by_role("region", name="File")
    page.get_by_label("File to translate").set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog\n\na cat\n"}
    )
    rows = panel.get_by_role("region", name="Preview").locator("tbody tr")
    dog, cat = translator.translate(["the dog", "a cat"])
    expect(rows).to_have_text([f"the dog{dog}", f"a cat{cat}"])
    expect(panel).to_contain_text("No sentence has a defect.")

    def rated(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "preview": preview_of(0.9, 0.2, 0.7), "sentences": 3})

    page.route("**/translate_file", rated)
    page.get_by_label("File to translate").set_input_files(
        {"name": "b.txt", "mimeType": "text/plain", "buffer": b"a cat"}
    )
    expect(panel.locator(".preview-head")).to_contain_text("1 of 3 sentences is doubtful.")
    expect(panel.locator(".doubtful-row")).to_contain_text("20\xa0% sure")
    panel.get_by_label("Only these").check()
    expect(rows).to_have_count(1)
    without_violations(visit)
    panel.get_by_role("button", name="Close").click()


DRAG = """(kind) => {
  const carried = new DataTransfer();
  carried.items.add(new File(["x"], "a.txt"));
  const event = new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true });
  document.querySelector(".translator").dispatchEvent(event);
}"""


def test_a_file_that_is_dragged_is_told_where_to_drop(visit: Visit) -> None:
    told = visit.page.get_by_text("Drop the file: it is translated into Esperanto")
    expect(told).to_have_count(0)
    visit.page.evaluate(DRAG, "dragenter")
    expect(told).to_be_visible()
    visit.page.evaluate(DRAG, "dragleave")
    expect(told).to_have_count(0)


def test_the_beam_is_a_tree_whose_winner_moves_with_alpha(visit: Visit, explainer: Explainer) -> None:
    page = visit.page
    visit.type(SENTENCE)
    page.get_by_text("How it was found").click()
    record = explainer.beam(SENTENCE)
    tree = page.get_by_role("region", name="The search as a tree")
    nodes = tree.locator("g[data-node]")
    expect(nodes).to_have_count(sum(map(len, record.steps)))
    for step, level in enumerate(record.steps[:4]):
        for at, candidate in enumerate(level):
            node = tree.locator(f"g[data-node='{step}.{at}']")
            assert (node.get_attribute("data-token"), node.get_attribute("data-fate")) == (
                candidate.token,
                candidate.fate,
            )
    found = sorted(
        float(one.get_attribute("data-probability") or -1) for one in tree.locator("path[data-step='1']").all()
    )
    assert found == pytest.approx(sorted(one.token_probability for one in record.steps[1]), abs=1e-3)
    widths = [float(one.get_attribute("stroke-width") or -1) for one in tree.locator("path[data-step='1']").all()]
    assert sorted(widths) == pytest.approx([max(0.8, 15 * one) for one in found], abs=0.02)

    def winner(alpha: float) -> list[str]:
        """The tokens on the way to what ranks first."""
        best = max(record.finished, key=lambda one: one.log_probability / ((5 + one.length) / 6) ** alpha)
        row, step = next((one.parent, s) for s, level in enumerate(record.steps) for one in level if one is best)
        tokens = [best.token]
        while step > 0:
            step -= 1
            before = next(one for one in record.steps[step] if one.row == row)
            tokens, row = [before.token, *tokens], before.parent
        return tokens

    ways = {alpha: winner(alpha) for alpha in (0.0, 2.0)}
    page.route("**/api/v1/beam", lambda _: None)  # the winner moves before the service answers
    for alpha, tokens in ways.items():
        page.get_by_role("slider", name="Length penalty").fill(str(alpha))
        won = tree.locator("g.won")
        expect(won).to_have_count(len(tokens))
        assert [one.get_attribute("data-token") for one in won.all()] == tokens
    faded = tree.locator("g.pruned").first.evaluate("(one) => Number(getComputedStyle(one).opacity)")
    assert faded < 0.6
    tree.locator("g[data-node='2.0']").click()
    expect(page.get_by_role("heading", name=f"Step 3 of {len(record.steps)}")).to_be_visible()
    page.get_by_text("How it was found").click()


def test_the_printed_page_is_what_is_read(visit: Visit) -> None:
    visit.type(SENTENCE)
    visit.page.emulate_media(media="print")
    expect(visit.page.get_by_role("button", name="Copy", exact=True)).to_be_hidden()
    expect(visit.page.get_by_role("navigation")).to_be_hidden()
    expect(visit.output).to_be_visible()
    visit.page.emulate_media(media="screen")


def test_on_a_phone_all_of_it_fits(browser: Browser, both: Running) -> None:
    for visit in open_page(browser, both, ENGLISH, viewport={"width": 360, "height": 740}, color_scheme="dark"):
        visit.type(f"{SENTENCE}. A cat.")
        visit.choose_at(1)
        visit.page.get_by_text("Glossary", exact=True).click()
        visit.page.get_by_text("How it was found").click()
        expect(visit.page.locator(".beam-tree g.won").first).to_be_attached()
        visit.page.get_by_text("History", exact=True).click()
        box = visit.page.locator(".entry-text").first.bounding_box()
        assert box is not None
        assert box["width"] > 150  # under each other, to be read
        without_violations(visit)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
