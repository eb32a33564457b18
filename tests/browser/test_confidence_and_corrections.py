"""On the page: how sure a translation is, with a legend that says what that means, and corrections."""

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.run_directory import RunDirectory
from dragoman.translation.confidence import calibrate
from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, open_page
from support.lexicon import lexicon_pairs
from support.serving import Running, running, service_of

SENTENCE = "the old dog sees the red house"


@pytest.fixture(scope="module")
def trusting(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A run that is calibrated, on sentences that it knows and sentences it cannot, and corrections that are kept."""
    run = Path(shutil.copytree(served_run, tmp_path_factory.mktemp("trusted") / "run"))
    known, unknown = lexicon_pairs(60, seed=1), [(f"xyz qrs{number} wvu", "tute alia afero") for number in range(60)]
    translator = Translator.load(run)
    pairs = [*known, *unknown]
    evidence = [seen for seen in translator.evidence([source for source, _ in pairs]) if seen is not None]
    directory = RunDirectory(run)
    digest = digest_of(directory, translator.tokenizer)
    calibrate(evidence, [[target] for _, target in pairs], digest).calibration.save(directory)
    with running(service_of(run, corrections=run.parent / "corrections.db")) as server:
        yield server


@pytest.fixture(scope="module")
def shared(browser: Browser, trusting: Running) -> Iterator[Visit]:
    yield from open_page(browser, trusting)


@pytest.fixture
def visit(shared: Visit) -> Iterator[Visit]:
    yield shared
    shared.page.get_by_label("Text to translate").fill("")
    expect(shared.words).to_have_count(0)


def test_every_sentence_has_its_confidence_in_the_margin(visit: Visit, trusting: Running) -> None:
    text = "\n".join([f"{SENTENCE}. Qrs wvu xyz.", *(source for source, _ in lexicon_pairs(20, seed=1))])
    visit.type(text)
    answer = trusting.post("/api/v1/translate", {"text": text, "source": "en", "target": "eo"})
    rated = [segment["confidence"] for segment in answer.json["segments"]]
    bars = visit.page.locator(".bar-of")
    expect(bars).to_have_count(len(rated))
    assert [float(bar.get_attribute("data-confidence") or -1) for bar in bars.all()] == pytest.approx(rated)
    # They follow each other down the margin, none over another, from the first line to the last.
    boxes = [bar.bounding_box() for bar in bars.all()]
    places = [(box["y"], box["y"] + box["height"]) for box in boxes if box]
    assert all(before[1] <= after[0] + 1 for before, after in pairwise(places))
    reading = visit.output.bounding_box()
    assert reading
    assert places[0][0] < reading["y"] + 60
    hues = {bar.evaluate("(one) => getComputedStyle(one).backgroundColor") for bar in bars.all()}
    assert len(hues) > 3, rated  # as different as the figures; the doubtful ones have stripes
    bars.nth(1).click()
    expect(visit.field).to_be_focused()
    said = f"{100 * rated[1]:.1f}".rstrip("0").rstrip(".") if rated[1] < 0.0995 else f"{100 * rated[1]:.0f}"
    expect(visit.page.get_by_role("region", name="The sentence")).to_contain_text(f"Sentence 2 of {len(rated)}: {said}")
    legend = visit.page.get_by_role("note", name="How sure")
    assert legend.locator("strong").count() == 0  # one summary, no list of figures
    legend.get_by_text("What the marks mean").click()
    expect(legend.get_by_text("chrF of 50 or more")).to_be_visible()
    for index in range(len(rated)):
        expect(visit.page.locator(f".reading .word[data-segment='{index}']").first).to_be_attached()
    unsure = sum(word["confidence"] < 0.5 for segment in answer.json["segments"] for word in segment["words"])
    expect(visit.page.locator(".reading .word.unsure")).to_have_count(unsure)
    expect(visit.words.first).to_have_attribute("data-said", re.compile("likely to be right"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_doubtful_sentences_are_marked_counted_and_found(
    browser: Browser, trusting: Running, scheme: str, width: int
) -> None:
    for visit in open_page(browser, trusting, viewport={"width": width, "height": 800}, color_scheme=scheme):
        page = visit.page
        known = [source for source, _ in lexicon_pairs(20, seed=1)]
        text = "\n\n".join(["Qrs wvu xyz.", *known, "Wvu qrs xyz qrs."])
        answer = trusting.post("/api/v1/translate", {"text": text, "source": "en", "target": "eo"})
        rated = [segment["confidence"] for segment in answer.json["segments"]]
        doubtful = [at for at, confidence in enumerate(rated) if confidence < 0.5]
        assert 2 <= len(doubtful) < len(rated)
        page.get_by_label("Text to translate").fill(text)
        legend = page.get_by_role("note", name="How sure")
        expect(legend).to_contain_text(f"{len(doubtful)} of {len(rated)} sentences are doubtful")
        marked = page.locator(".reading .doubted")
        assert [int(one.get_attribute("data-sentence") or -1) for one in marked.all()] == doubtful
        assert [int(one.get_attribute("data-bar") or -1) for one in page.locator(".bar-of.doubtful").all()] == doubtful
        for at in range(len(doubtful)):
            assert re.fullmatch(r"[<\xa0\d.]+%\xa0sure(; .*)?", marked.nth(at).get_attribute("data-doubt") or "")
        for at in (*range(len(doubtful)), 0):
            legend.get_by_role("button", name="Next").click()
            expect(visit.field).to_be_focused()
            expect(marked.nth(at)).to_be_in_viewport()
            expect(legend.get_by_role("button", name="Next")).to_be_in_viewport()  # under a long text too
            selected = visit.field.evaluate("(one) => one.value.slice(one.selectionStart, one.selectionEnd)")
            assert selected == marked.nth(at).inner_text()
            told = page.get_by_role("region", name="The sentence").get_by_role("status")
            expect(told).to_contain_text(f"Sentence {doubtful[at] + 1} of {len(rated)}")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate("async () => (await axe.run()).violations.map((one) => one.id)") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_run_that_is_not_calibrated_says_nothing_of_confidence(browser: Browser, served: Running) -> None:
    for visit in open_page(browser, served):
        visit.type("Qrs wvu xyz. Wvu qrs xyz.")
        legend = visit.page.get_by_role("note", name="How sure")
        legend.get_by_text("What the marks mean").click()
        expect(legend).to_contain_text("How often such words are right was not measured for this model.")
        assert "doubtful" not in legend.inner_text()
        expect(visit.page.locator(".bar-of")).to_have_count(2)
        expect(visit.page.locator(".bar-of.rated")).to_have_count(0)


def test_what_is_typed_is_kept_used_and_offered(browser: Browser, trusting: Running) -> None:
    for visit in open_page(browser, trusting):
        page, mine = visit.page, "Tute bone dirite."
        asked = {"text": SENTENCE, "source": "en", "target": "eo"}
        visit.type(SENTENCE)
        machine = visit.output.inner_text()
        visit.field.fill(mine)
        page.get_by_label("Text to translate").focus()  # the sentence is left
        told = page.get_by_role("region", name="The sentence")
        expect(told).to_contain_text("Kept: from now on this sentence is translated so.")
        assert trusting.post("/api/v1/translate", asked).json["text"] == mine
        page.reload()
        expect(visit.output).to_have_text(mine)
        expect(page.get_by_text("A sentence is as corrected before")).to_be_visible()
        visit.type(f"{SENTENCE} near")
        expect(told).to_contain_text("was corrected to “Tute bone dirite.”")
        told.get_by_role("button", name="Use it").click()
        expect(visit.output).to_have_text(mine)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate("async () => (await axe.run()).violations.map((one) => one.id)") == []
        page.get_by_label("Text to translate").fill(SENTENCE)
        expect(visit.output).to_have_text(mine)
        told.get_by_role("button", name="Forget it").click()
        expect(visit.output).to_have_text(machine)
        assert trusting.post("/api/v1/translate", asked).json["text"] == machine


def test_what_is_taken_back_is_forgotten(visit: Visit, trusting: Running) -> None:
    page, text = visit.page, "the child hears the river"
    asked = {"text": text, "source": "en", "target": "eo"}
    visit.type(text)
    machine = visit.output.inner_text()
    visit.choose_at(1).nth(1).click()
    expect(visit.output).not_to_have_text(machine)
    chosen = visit.output.inner_text()
    page.get_by_label("Text to translate").focus()
    told = page.get_by_role("region", name="The sentence")
    expect(told).to_contain_text("Kept: from now on")
    assert trusting.post("/api/v1/translate", asked).json["text"] == chosen
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(visit.output).to_have_text(machine)
    visit.field.focus()
    page.get_by_label("Text to translate").focus()
    expect(told).to_contain_text("Forgotten.")
    assert trusting.post("/api/v1/translate", asked).json["text"] == machine
