"""On the page: how sure a translation is, with a legend that says what that means, and corrections."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.run_directory import RunDirectory
from dragoman.translation.confidence import calibrate
from dragoman.translation.translator import Translator
from support.browsing import AXE, open_page
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


def test_a_legend_says_how_sure_and_what_that_means(browser: Browser, trusting: Running) -> None:
    for visit in open_page(browser, trusting):
        text = f"{SENTENCE}. Qrs wvu xyz."
        visit.type(text)
        answer = trusting.post("/api/v1/translate", {"text": text, "source": "en", "target": "eo"})
        legend = visit.page.get_by_role("note", name="How sure")
        figures = legend.locator("strong")
        expect(figures).to_have_count(2)
        for shown, segment in zip(figures.all_inner_texts(), answer.json["segments"], strict=True):
            assert abs(float(shown.strip("<\xa0%")) - 100 * segment["confidence"]) < 1
        legend.get_by_text("what that means").click()
        expect(legend.get_by_text("chrF of 50 or more")).to_be_visible()
        expect(visit.words.first).to_have_attribute("title", re.compile("likely to be right; choose another"))
        said = [word["confidence"] for segment in answer.json["segments"] for word in segment["words"]]
        unsure = sum(confidence < 0.5 for confidence in said)
        expect(visit.page.locator(".reading .word.unsure")).to_have_count(unsure)


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
        for at in range(len(doubtful)):
            label = marked.nth(at).get_attribute("aria-label") or ""
            assert re.fullmatch(r"Doubtful sentence: [<\xa0\d.]+%\xa0sure(; .*)?", label)
        for at in (*range(len(doubtful)), 0):
            legend.get_by_role("button", name="Show the next").click()
            expect(marked.nth(at)).to_be_focused()
            expect(marked.nth(at)).to_be_in_viewport()
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate("async () => (await axe.run()).violations.map((one) => one.id)") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_run_that_is_not_calibrated_says_nothing_of_confidence(browser: Browser, served: Running) -> None:
    for visit in open_page(browser, served):
        visit.type("Qrs wvu xyz. Wvu qrs xyz.")
        legend = visit.page.get_by_role("note", name="How sure")
        expect(legend).to_contain_text("dragoman calibrate")
        assert "doubtful" not in legend.inner_text()
        assert "How sure:" not in legend.inner_text()


def test_a_correction_is_kept_used_and_offered(browser: Browser, trusting: Running) -> None:
    for visit in open_page(browser, trusting):
        visit.type(SENTENCE)
        visit.page.get_by_role("button", name="Correct this translation").click()
        field = visit.page.get_by_label(SENTENCE)
        field.fill("Tute bone dirite.")
        visit.page.get_by_role("button", name="Keep correction").click()
        expect(visit.page.get_by_text("from now on this sentence is translated so")).to_be_visible()
        expect(visit.output).to_contain_text("Tute bone dirite.")
        visit.page.reload()
        expect(visit.output).to_contain_text("Tute bone dirite.")
        expect(visit.page.get_by_text("A sentence is as corrected before")).to_be_visible()
        visit.type(f"{SENTENCE} near")
        visit.page.get_by_role("button", name="Correct this translation (1 similar").click()
        visit.page.get_by_role("button", name="Use it").click()
        expect(visit.page.get_by_label(f"{SENTENCE} near")).to_have_value("Tute bone dirite.")
        visit.page.evaluate(AXE.read_text(encoding="utf-8"))
        assert visit.page.evaluate("async () => (await axe.run()).violations") == []
