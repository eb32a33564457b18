"""A real Chromium for tests of the page, and everything about a visit that must not happen."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from support.serving import Running
from support.waiting import PATIENCE, until

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
MILLISECONDS = PATIENCE * 1000
expect.set_options(timeout=MILLISECONDS)


@contextmanager
def chromium() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "no Chromium to test the page in: apt-get install chromium, or CHROMIUM=/path/to/it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"], timeout=MILLISECONDS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page that is open, and everything about it that must not happen."""

    page: Page
    server: Running
    elsewhere: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def type(self, text: str) -> None:
        self.page.get_by_label("Text to translate").fill(text)
        expect(self.words.first).to_be_visible()

    @property
    def words(self) -> Any:
        return self.page.locator(".reading .word")

    @property
    def output(self) -> Any:
        """The translation as it is seen; the field over it holds the same text."""
        return self.page.locator(".reading")

    @property
    def field(self) -> Any:
        return self.page.get_by_role("textbox", name="Translation", exact=True)

    def choose_at(self, word: int, segment: int | None = None) -> Any:
        """Clicks into a word of the translation, which lies behind its field; returns what is offered there."""
        words = self.words if segment is None else self.page.locator(f".reading .word[data-segment='{segment}']")
        words.nth(word).click(force=True)
        options = self.page.locator(".option")
        expect(options.first).to_be_visible()
        return options

    def lit(self, side: str) -> list[int]:
        inside = ".behind" if side == "source" else ".reading"
        found = self.page.locator(f"{inside} .lit:not(.own)").all()
        return [int(element.get_attribute("data-word") or "") for element in found]


def copied(page: Page, name: str) -> str:
    """What the button of this name copies. That it did so is said for two seconds only: too short to wait for it."""
    page.evaluate("navigator.clipboard.writeText('')")
    page.get_by_role("button", name=name, exact=True).click()
    until_on(page, lambda: page.evaluate("navigator.clipboard.readText()"))
    return str(page.evaluate("navigator.clipboard.readText()"))


def until_on(page: Page, holds: Callable[[], object]) -> None:
    """Waits until `holds()` is true, while the page goes on."""
    until(holds, pause=lambda seconds: page.wait_for_timeout(seconds * 1000))


def nothing_is_wider_than(page: Page) -> None:
    """The window; a picture follows when the window has become another one."""
    width = page.evaluate("document.documentElement.clientWidth")
    expect(page.locator("html")).to_have_js_property("scrollWidth", width)


def patient_context(browser: Browser, **context: Any) -> BrowserContext:
    within = browser.new_context(**context)
    within.set_default_timeout(MILLISECONDS)
    return within


def open_page(browser: Browser, server: Running, address: str = "", **context: Any) -> Iterator[Visit]:
    permissions = {"permissions": ["clipboard-read", "clipboard-write"]}
    within = patient_context(browser, **{"viewport": {"width": 1280, "height": 900}, **permissions, **context})
    visit = Visit(page := within.new_page(), server)
    page.on("request", lambda r: visit.elsewhere.append(r.url) if not r.url.startswith(server.url) else None)
    page.on("console", lambda m: visit.errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.add_init_script(
        "window.violations = []; addEventListener('securitypolicyviolation', e => window.violations.push(e.blockedURI))"
    )
    page.goto(server.url + address)
    yield visit
    assert page.evaluate("window.violations") == []
    assert not visit.elsewhere, visit.elsewhere
    assert not visit.errors, visit.errors
    within.close()
