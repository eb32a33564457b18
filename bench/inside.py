"""How soon the Inside page shows something, in a real Chromium against a real server.

    python bench/inside.py                       # the paper's base shape: 6 + 6 layers, 8 heads, d_model 512
    python bench/inside.py --layers 2 --d-model 256

The weights are random: how long attention takes to compute, fetch and draw does not depend on what it says. The text
and its translation, which is given with the address, have 30 tokens each, end symbols counted. Times are from opening
the address, nothing cached in the browser, the service warm, until the chosen head is drawn, and until the pictures of
all heads are, by the page's own clock; then, with 200 × 200 tokens, from choosing another head until it is drawn.
Whatever else the machine does is in these times: the load average is printed with them.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import torch
from playwright.sync_api import Browser, Page, sync_playwright

from dragoman.config import ModelConfig, RunConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.model.checkpoint import save_weights, weights_of
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory
from serve import served

WORDS = [first + second for first in ("ba", "ko", "li", "mu", "ne", "ra") for second in ("dan", "fel", "gor", "pim")]


def make_run(path: Path, layers: int, d_model: int, heads: int) -> None:
    tokenizer = Tokenizer.learn([" ".join(WORDS)] * 50, 400)
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        encoder_layers=layers,
        decoder_layers=layers,
        d_model=d_model,
        d_ff=4 * d_model,
        num_heads=heads,
    )
    path.mkdir(parents=True, exist_ok=True)
    run = RunDirectory(path)
    run.write_config(RunConfig(model=config))
    tokenizer.save(run.tokenizer_path)
    save_weights(run.model_path, weights_of(Transformer(config)))


def sentence_of(run: Path, tokens: int, shift: int) -> str:
    """Words until there are so many tokens, with the end symbol."""
    tokenizer = Tokenizer.load(run / "tokenizer.model")
    words: list[str] = []
    while len(tokenizer.encode(" ".join([*words, WORDS[(len(words) + shift) % len(WORDS)]]))) < tokens:
        words.append(WORDS[(len(words) + shift) % len(WORDS)])
    return " ".join(words)


WATCH = """
  const look = () => {
    const drawn = document.querySelector('.heat canvas[data-drawn]');
    if (drawn) window.firstPicture ??= performance.now();
    if (drawn && !document.querySelector('.head canvas:not([data-drawn])')) window.allPictures = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
"""


def opened(browser: Browser, address: str) -> tuple[Page, float, float]:
    """The page, and seconds from the beginning of the navigation."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    while page.evaluate("window.allPictures ?? 0") == 0:
        page.wait_for_timeout(100)
    return page, page.evaluate("window.firstPicture") / 1000, page.evaluate("window.allPictures") / 1000


def switching(page: Page) -> float:
    """Milliseconds from choosing another head to its picture, as the page's own clock has it."""
    return float(
        page.evaluate(
            """async () => {
              const other = document.querySelector('.head[aria-checked="false"]');
              const canvas = document.querySelector('.heat canvas');
              const before = canvas.dataset.drawn, began = performance.now();
              other.click();
              while (canvas.dataset.drawn === before) await new Promise(requestAnimationFrame);
              return performance.now() - began;
            }"""
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d-model", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("bench: no Chromium; install it (Debian: apt install chromium), or name it: CHROMIUM=/path")
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        run = Path(directory) / "run"
        make_run(run, arguments.layers, arguments.d_model, arguments.heads)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with served(str(run), "en-fr") as (server, _):

            def address(tokens: int, shift: int) -> str:
                # Another sentence each time: the service keeps the passes of the last ones.
                values = {"text": sentence_of(run, tokens, shift), "translation": sentence_of(run, tokens, shift + 9)}
                return f"{server}/#/inside?{urlencode({**values, 'from': 'en', 'to': 'fr'})}"

            opened(browser, address(12, 0))[0].context.close()  # torch and the model are loaded
            rounds = []
            for shift in range(1, arguments.rounds + 1):
                page, *times = opened(browser, address(30, shift))
                page.context.close()  # a page that stays open takes part of the machine
                rounds.append(times)
            for name, times in zip(("the chosen head", "all heads"), zip(*rounds, strict=True), strict=True):
                low, high = min(times), max(times)
                print(f"30 × 30 tokens, {name}: {statistics.median(times):.2f} s ({low:.2f} to {high:.2f})", flush=True)
            print(f"load average of {os.cpu_count()} cores: {os.getloadavg()[0]:.1f}")
            page, first, whole = opened(browser, address(200, 3))
            print(f"200 × 200 tokens, the chosen head: {first:.2f} s, all heads: {whole:.2f} s")
            times = [switching(page) for _ in range(10)]
            print(f"200 × 200 tokens, another head: {statistics.median(times):.0f} ms (at most {max(times):.0f})")
        browser.close()


if __name__ == "__main__":
    main()
