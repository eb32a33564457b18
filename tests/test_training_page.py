"""Training and Compare in a real browser: a run in progress, alerts, replays; two runs and kept results."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import AXE, PATIENCE, Visit, open_page
from playwright.sync_api import Browser, expect
from serving import running

from dragoman import evaluate
from dragoman.comparison import shared_validation_set
from dragoman.history import read_history
from dragoman.inspection.inspector import Inspector
from dragoman.model import Site
from dragoman.rundir import RunDirectory
from dragoman.serve.pairs import Pair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.translate import Translator

SENTENCE = "the old dog sees the red house"
EXPERIMENT = {
    "experiment": "Scaling of scores",
    "claim": "Without √d_k, training is worse.",
    "verdict": "held",
    "arms": [{"name": "1/sqrt(d_k)", "bleu": 30.5}, {"name": "1", "bleu": 21.25, "curve": [1, 2]}],
    "figures": [{"title": "BLEU", "x": [1, 2, 3], "series": {"a": [1, 2, 3], "b": [1, 1, 2]}}, "drawn elsewhere"],
}


def service_of(*runs: Path, **more: Any) -> Service:
    return Service([Pair("en", "eo", run) for run in runs], Settings(port=0, rate_limit=0), **more)


@pytest.fixture(scope="module")
def two(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and the same as it was after 30 steps under another seed."""
    other = Path(shutil.copytree(served_run, tmp_path_factory.mktemp("two") / "weaker"))
    shutil.copy(other / "checkpoints" / "step-00000030" / "model.safetensors", other / "model.safetensors")
    shutil.rmtree(other / "ctranslate2", ignore_errors=True)
    config = json.loads((other / "config.json").read_text())
    config["train"]["seed"] = 7
    (other / "config.json").write_text(json.dumps(config))
    return served_run, other


@pytest.fixture(scope="module")
def compared(browser: Browser, two: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    results = tmp_path_factory.mktemp("results")
    (results / "scaling.json").write_text(json.dumps(EXPERIMENT))
    with running(service_of(*two, results=[results])) as server:
        yield from open_page(browser, server, "#/compare")


def without_violations(visit: Visit) -> None:
    visit.page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = visit.page.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []
    assert visit.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def shown(visit: Visit, name: str) -> Any:
    return visit.page.locator(f'[data-shown="{name}"]')


def test_a_run_in_progress_updates(browser: Browser, tiny_run: Path, tmp_path: Path) -> None:
    """From before its first step, without a model, to its end: nothing is reloaded."""
    run = Path(shutil.copytree(tiny_run, tmp_path / "growing"))
    whole = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    away = tmp_path / "away"
    away.mkdir()
    for name in ("model.safetensors", "checkpoints"):
        shutil.move(run / name, away)
    (run / "metrics.jsonl").write_bytes(b"")
    history = read_history(RunDirectory(tiny_run))
    with running(service_of(run)) as server:
        for visit in open_page(browser, server, "#/translate"):
            page = visit.page
            expect(page.get_by_text("This run has no model yet")).to_be_visible(timeout=PATIENCE)
            page.get_by_role("link", name="Training").last.click()
            expect(page.get_by_text("No step is done yet")).to_be_visible(timeout=PATIENCE)
            directory = RunDirectory(run)
            with directory.lock(), (run / "metrics.jsonl").open("ab", buffering=0) as log:
                expect(page.get_by_role("status")).to_have_text("training", timeout=PATIENCE)
                log.write(b"".join(whole[:2]))
                expect(shown(visit, "step")).to_have_text("10", timeout=PATIENCE)
                loss = page.get_by_role("img", name="Loss:")
                first, second = (point["loss"] for point in history.train[:2])
                expect(loss).to_have_attribute(
                    "aria-label", f"Loss: training, smoothed {second:.3f} at 10, from {first:.3f}"
                )
                expect(loss.locator("canvas")).to_be_visible(timeout=PATIENCE)
                page.evaluate("window.still = 'the same page'")
                log.write(b'{"event": "skipped", "step": 12, "loss": "nan", "gradient_norm": "nan"}\n')
                expect(page.locator('[data-kind="skipped"]')).to_contain_text(
                    "Step skipped at step 12", timeout=PATIENCE
                )
                log.write(b"".join(whole[2:]))
                for name in ("model.safetensors", "checkpoints"):
                    shutil.move(away / name, run)
                expect(shown(visit, "step")).to_have_text("90", timeout=PATIENCE)
                best = max(point["bleu"] for point in history.valid)
                expect(shown(visit, "best")).to_have_text(f"{best:.1f}")
                samples = page.locator(".samples .output").all_inner_texts()
                assert samples == [point["output"] or "(nothing)" for point in reversed(history.valid)]
            expect(page.get_by_role("status")).to_have_text("finished", timeout=PATIENCE)
            expect(page.locator(".states li")).to_have_count(3)
            assert page.evaluate("window.still") == "the same page"
            page.get_by_role("link", name="Translate").click()
            expect(page.get_by_label("Text to translate")).to_be_visible(timeout=PATIENCE)


def test_curves_are_the_log_and_change_their_axis(browser: Browser, served: Any, served_run: Path) -> None:
    history = read_history(RunDirectory(served_run))
    last, last_valid = history.train[-1], history.valid[-1]
    for visit in open_page(browser, served, "#/training"):
        page = visit.page
        for title, said in {
            "Gradient norm": f"norm {last['gradient_norm']:.3g} at 90",
            "BLEU": f"validation, greedy {last_valid['bleu']:.1f} at 90",
            "Tokens a second": f"target tokens {round(last['tokens_per_second']):,} at 90",
        }.items():
            picture = page.get_by_role("img", name=f"{title}:")
            expect(picture.locator("canvas")).to_be_visible(timeout=PATIENCE)
            assert said in (picture.get_attribute("aria-label") or "")
        assert page.locator(".plot canvas").count() == 6
        page.get_by_label("by time").click()
        label = page.get_by_role("img", name="Gradient norm:")
        expect(label).to_have_attribute("aria-label", re.compile(f"at 0:{round(last['seconds']):02d}"))
        assert "x=time" in page.url


def test_the_scrubber_replays_a_sentence_through_the_checkpoints(
    browser: Browser, served: Any, served_run: Path
) -> None:
    seen = {s: Inspector.load(served_run, checkpoint=f"step-{s:08d}").inspect(SENTENCE) for s in (30, 60, 90)}
    for visit in open_page(browser, served, "#/training"):
        page, replay = visit.page, visit.page.get_by_role("region", name="As it learned")
        replay.get_by_label("Sentence").fill(SENTENCE)
        said = replay.locator(".states li > span:nth-child(2)")
        expect(said).to_have_text([one.translation for one in seen.values()], timeout=PATIENCE)
        slider = replay.get_by_role("slider", name="Checkpoint")
        for at, step in ((0, 30), (2, 90)):
            slider.fill(str(at))
            expect(replay.get_by_role("heading", name=f"Cross-attention at step {step}")).to_be_visible()
            cells = replay.locator("td[data-weight]")
            for head in (-1, 1):
                replay.get_by_label("Head").select_option(str(head))
                weights = seen[step].weights[Site("cross", 0)]
                expected = (weights.mean(dim=0) if head < 0 else weights[head]).flatten().tolist()
                expect(cells.first).to_have_attribute("data-weight", f"{expected[0]:.4f}", timeout=PATIENCE)
                found = cells.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.weight))")
                assert found == pytest.approx(expected, abs=1.2e-4)
        slider.fill("2")
        replay.get_by_role("button", name="Play").click()
        expect(replay.get_by_role("heading", name="Cross-attention at step 30")).to_be_visible()
        expect(replay.get_by_role("heading", name="Cross-attention at step 90")).to_be_visible(timeout=PATIENCE)
        expect(replay.get_by_role("button", name="Play")).to_be_visible(timeout=PATIENCE)
        assert "step=90" in page.url


def test_two_runs_side_by_side(compared: Visit, two: tuple[Path, Path]) -> None:
    page = compared.page
    expect(page.get_by_role("row", name="train.seed")).to_contain_text("7", timeout=PATIENCE)
    expect(page.get_by_role("img", name="BLEU: tiny, validation, greedy")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="Measure").click()
    test = shared_validation_set(*map(RunDirectory, two), most=300)
    said = [Translator.load(run).translate(test.sources) for run in two]
    expected = evaluate.compare(*said, test.references)
    expect(shown(compared, "BLEU a")).to_have_text(f"{expected.bleu.a:.2f}", timeout=PATIENCE)
    expect(shown(compared, "BLEU b")).to_have_text(f"{expected.bleu.b:.2f}")
    expect(shown(compared, "BLEU p")).to_have_text(f"{expected.bleu.p_value:.4f}")
    expect(page.get_by_role("region", name="Scores")).to_contain_text(f"± {expected.bleu.interval_a.half_width:.2f}")

    chrf = [evaluate.sentence_chrf(outputs, test.references) for outputs in said]
    differences = [b - a for a, b in zip(*chrf, strict=True)]
    sources = page.locator(".sentences dd:nth-of-type(1)")
    for order, best in (("a", min(differences)), ("b", max(differences))):
        page.get_by_label("sorted").select_option(order)
        expect(page.locator(".sentences .measures b").first).to_have_text(
            f"{'+' if best > 0 else ''}{best:.1f}".replace("-", "−")
        )
        first = sources.first.inner_text()
        assert differences[list(test.sources).index(first)] == pytest.approx(best)
    page.get_by_role("button", name="Attention of both").first.click()
    both = page.locator(".side-by-side .attention")
    expect(both).to_have_count(2, timeout=PATIENCE)
    for at, run in enumerate(two):
        weights = Inspector.load(run).inspect(first).weights[Site("cross", 0)].mean(dim=0).flatten().tolist()
        cells = both.nth(at).locator("td[data-weight]")
        found = cells.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.weight))")
        assert found == pytest.approx(weights, abs=1.2e-4)
    without_violations(compared)


def test_a_kept_result_is_opened(compared: Visit) -> None:
    page = compared.page
    page.get_by_label("Result").select_option("scaling")
    expect(page.get_by_role("heading", name="Scaling of scores")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("held")).to_be_visible()
    expect(page.get_by_role("cell", name="21.3")).to_be_visible()
    expect(page.get_by_role("img", name="BLEU: a 3 at 3, from 1; b 2 at 3, from 1").locator("canvas")).to_be_visible(
        timeout=PATIENCE
    )
    expect(page.get_by_text("drawn elsewhere")).to_be_visible()


def test_axe_finds_nothing(browser: Browser, served: Any) -> None:
    for visit in open_page(browser, served, "#/training"):
        for scheme, width in (("light", 1280), ("dark", 360)):
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.set_viewport_size({"width": width, "height": 800})
            expect(visit.page.locator(".attention td").first).to_be_attached(timeout=PATIENCE)
            expect(visit.page.locator(".plot canvas").last).to_be_visible(timeout=PATIENCE)
            without_violations(visit)
