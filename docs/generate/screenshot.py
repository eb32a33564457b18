"""Makes the README's picture, docs/images/translate.png: the page with a word's alternatives open.

python docs/generate/screenshot.py runs/demo
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

TEXT = "The children are playing in the garden. Where did you learn to cook so well?"
WORD = 2  # the third word of the translation
PICTURE = Path(__file__).parents[1] / "images" / "translate.png"


def take(address: str) -> None:
    browser_path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 640}, color_scheme="light")
        page.goto(address)
        page.get_by_label("Text to translate").fill(TEXT)
        page.locator(".reading .word").nth(WORD).wait_for(timeout=120_000)
        page.wait_for_timeout(5_000)  # every sentence is explained after it was translated
        page.locator(".reading .word").nth(WORD).click(force=True)  # the field lies over the words
        page.wait_for_timeout(2_000)
        page.screenshot(path=PICTURE)
        browser.close()


def main(run: str) -> None:
    command = [sys.executable, "-m", "dragoman", "serve", "--pair", f"en-fr={run}", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            address = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line)))
            take(address)
        finally:
            server.terminate()
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python docs/generate/screenshot.py RUN (English to French: runs/demo)")
    main(sys.argv[1])
