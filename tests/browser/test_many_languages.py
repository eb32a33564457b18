"""The language lists of the page: what is reached through a pivot says so, and many languages can be searched."""

import string
from pathlib import Path

from playwright.sync_api import Browser, expect

from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.translation.pivot import PivotTranslator
from dragoman.translation.translator import Translator
from support.browsing import AXE, open_page
from support.serving import running

SENTENCE = "the old dog sees the red house"


def test_a_translation_through_a_pivot_says_so(browser: Browser, served_run: Path) -> None:
    pairs = [ServedPair("en", "fr", served_run), ServedPair("fr", "de", served_run)]
    translator = Translator.load(served_run)
    (expected,) = PivotTranslator(translator, translator).translate_stream([SENTENCE])
    with running(Service(pairs, Settings(port=0, rate_limit=0))) as server:
        for visit in open_page(browser, server):
            page = visit.page
            to = page.get_by_role("combobox", name="To", exact=True)
            page.get_by_role("combobox", name="From").select_option("en")
            expect(to.locator("option")).to_have_text(["French", "German (via French)"])
            to.select_option("de")
            page.get_by_label("Text to translate").fill(SENTENCE)
            expect(visit.output).to_have_text(expected.text)
            legend = page.get_by_role("note", name="How sure")
            expect(legend).to_contain_text("Translated via French, as no run here translates from English into German.")
            legend.get_by_text("the text in French").click()
            expect(legend.locator("[lang=fr]")).to_have_text(expected.pivot_text or "")
            expect(page.get_by_role("link", name="Look inside")).to_have_count(0)
            expect(page.get_by_text("How it was found")).to_have_count(0)
            page.evaluate(AXE.read_text())
            assert page.evaluate("axe.run().then(({violations}) => violations.map(({id}) => id))") == []
            to.select_option("fr")
            expect(visit.words.first).to_be_visible()
            expect(page.get_by_role("link", name="Look inside")).to_be_visible()
            expect(legend).not_to_contain_text("via")
            page.get_by_role("navigation").get_by_role("link", name="Inside").click()  # which looks into one model
            expect(page.get_by_role("combobox", name="To", exact=True).locator("option")).to_have_text(["French"])


def test_one_of_many_languages_is_found_by_its_name(browser: Browser, served_run: Path) -> None:
    codes = ["de", "fr", "fi", "eo", "ceb", *(f"x{letter}" for letter in string.ascii_lowercase)]
    pairs = [ServedPair("en", code, served_run) for code in codes]
    with running(Service(pairs, Settings(port=0, rate_limit=0))) as server:
        for visit in open_page(browser, server):
            page = visit.page
            to = page.get_by_role("combobox", name="To", exact=True)
            expect(to.locator("option")).to_have_count(len(codes))
            names = to.locator("option").all_text_contents()
            assert names[:5] == ["Cebuano", "Esperanto", "Finnish", "French", "German"]
            expect(to).to_have_value("de")  # the first that was given
            find = page.get_by_label("Find a language, to")
            find.fill("f")
            expect(to.locator("option").nth(1)).to_have_text("Finnish")
            find.fill("fr")
            find.press("Enter")
            expect(to).to_have_value("fr")
            expect(find).to_have_value("")
            find.fill("klingon")
            expect(page.get_by_text("not served")).to_be_visible()
            find.press("Escape")
            expect(find).to_have_value("")
            find.fill("ceb")
            find.press("Enter")
            expect(to).to_have_value("ceb")
            page.evaluate(AXE.read_text())
            assert page.evaluate("axe.run().then(({violations}) => violations.map(({id}) => id))") == []
