"""Training and Compare in a real browser: a run in progress, alerts, replays; two runs and kept results."""

import csv
import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, expect

from dragoman.evaluation import metrics
from dragoman.evaluation.charts import Figure
from dragoman.evaluation.compare import shared_validation_set
from dragoman.inspection.inspector import Inspector
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.model.probe import Site
from dragoman.run_directory import RunDirectory
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.training.log_reader import read_history
from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, nothing_is_wider_than, open_page
from support.serving import running

SENTENCE = "the old dog sees the red house"
EXPERIMENT = ExperimentResult(
    experiment="scaling",
    title="Scaling of scores",
    claim="Without √d_k, training is worse.",
    method="Two arms.",
    rule="The larger BLEU wins.",
    headline="All of it holds.",
    findings=[Finding("it is worse", "holds", "21.25 is less than 30.5", -9.25, -10.5, -8.0, "BLEU")],
    arms=[{"name": "1/sqrt(d_k)", "bleu": 30.5}, {"name": "1", "bleu": 21.25, "curve": [1, 2]}],
    figures=[Figure("BLEU", [1, 2, 3], {"a": [1, 2, 3], "b": [1, None, 2]}, log_y=True)],
)


def service_of(*runs: Path, **more: Any) -> Service:
    return Service([ServedPair("en", "eo", run) for run in runs], Settings(port=0, rate_limit=0), **more)


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
    (results / "scaling.json").write_text(EXPERIMENT.to_json())
    (results / "other.json").write_text(json.dumps({"experiment": "other", "figures": ["drawn elsewhere"]}))
    with running(service_of(*two, results=[results])) as server:
        yield from open_page(browser, server, "#/compare")


def without_violations(visit: Visit) -> None:
    nothing_is_wider_than(visit.page)
    visit.page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = visit.page.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []


def shown(visit: Visit, name: str) -> Any:
    return visit.page.locator(f'[data-shown="{name}"]')


def half_up(number: float) -> int:
    """As the browser rounds; what was measured by the clock may end in a half."""
    return math.floor(number + 0.5)


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
            expect(page.get_by_text("This run has no model yet")).to_be_visible()
            page.get_by_role("link", name="Training").last.click()
            expect(page.get_by_text("No step is done yet")).to_be_visible()
            directory = RunDirectory(run)
            with directory.lock(), (run / "metrics.jsonl").open("ab", buffering=0) as log:
                expect(page.get_by_role("status")).to_have_text("training")
                log.write(b"".join(whole[:2]))
                expect(shown(visit, "step")).to_have_text("10")
                loss = page.get_by_role("img", name="Loss:")
                first, second = (point["loss"] for point in history.train[:2])
                expect(loss).to_have_attribute(
                    "aria-label", f"Loss: training, label-smoothed {second:.3f} at 10, from {first:.3f}"
                )
                expect(loss.locator("canvas")).to_be_visible()
                page.evaluate("window.still = 'the same page'")
                log.write(b'{"event": "skipped", "step": 12, "loss": "nan", "gradient_norm": "nan"}\n')
                expect(page.locator('[data-kind="skipped"]')).to_contain_text("Step skipped at step 12")
                log.write(b"".join(whole[2:]))
                for name in ("model.safetensors", "checkpoints"):
                    shutil.move(away / name, run)
                expect(shown(visit, "step")).to_have_text("90")
                best = max(point["bleu"] for point in history.valid)
                expect(shown(visit, "best")).to_have_text(f"{best:.1f}")
                expect(page.locator(".samples .output")).to_have_text(
                    [point["output"] or "(nothing)" for point in reversed(history.valid)], use_inner_text=True
                )
            expect(page.get_by_role("status")).to_have_text("finished")
            expect(page.locator(".states li")).to_have_count(3)
            assert page.evaluate("window.still") == "the same page"
            page.get_by_role("link", name="Translate").click()
            expect(page.get_by_label("Text to translate")).to_be_visible()


def test_curves_are_the_log_and_change_their_axis(browser: Browser, served: Any, served_run: Path) -> None:
    history = read_history(RunDirectory(served_run))
    last, last_valid = history.train[-1], history.valid[-1]
    for visit in open_page(browser, served, "#/training"):
        page = visit.page
        for title, said in {
            "Gradient norm": f"norm {last['gradient_norm']:.3g} at 90",
            "BLEU": f"validation, greedy {last_valid['bleu']:.1f} at 90",
            "Tokens a second": f"target tokens {half_up(last['tokens_per_second']):,} at 90",
        }.items():
            picture = page.get_by_role("img", name=f"{title}:")
            expect(picture.locator("canvas")).to_be_visible()
            expect(picture).to_have_attribute("aria-label", re.compile(re.escape(said)))
        expect(page.locator(".curves .plot canvas")).to_have_count(6)
        page.get_by_label("by time").click()
        label = page.get_by_role("img", name="Gradient norm:")
        minutes, seconds = divmod(half_up(last["seconds"]), 60)
        expect(label).to_have_attribute("aria-label", re.compile(f"at {minutes}:{seconds:02d},"))
        page.wait_for_url("**x=time**")


def drawn_over(visit: Visit, share: tuple[float, float]) -> None:
    """Draws across the first chart, from one share of its width to another."""
    box = visit.page.locator(".curves .u-over").first.bounding_box()
    assert box is not None
    start, end = (box["x"] + part * box["width"] for part in share)
    visit.page.mouse.move(start, box["y"] + 30)
    visit.page.mouse.down()
    visit.page.mouse.move(end, box["y"] + 30, steps=4)
    visit.page.mouse.up()


def ema(points: list[float], weight: float) -> float:
    total = norm = 0.0
    for point in points:
        total, norm = weight * total + (1 - weight) * point, weight * norm + (1 - weight)
    return total / norm


def test_charts_are_zoomed_smoothed_and_read_together(browser: Browser, served: Any, served_run: Path) -> None:
    history = read_history(RunDirectory(served_run))
    for visit in open_page(browser, served, "#/training"):
        page = visit.page
        plots = page.locator(".curves .plot")
        expect(plots.locator("canvas")).to_have_count(6)
        drawn_over(visit, (0.4, 0.8))
        expect(page.get_by_label("Shown")).to_have_value("drawn")
        ranges = {(one.get_attribute("data-from"), one.get_attribute("data-to")) for one in plots.all()}
        assert len(ranges) == 1
        ((start, end),) = ranges
        assert 0 < float(start or 0) < float(end or 0) < 90
        page.get_by_role("button", name="Show all").click()
        expect(page.get_by_label("Shown")).to_have_value("1")
        page.get_by_label("Shown").select_option("0.5")
        expect(plots.first).to_have_attribute("data-from", "45")
        page.get_by_label("Shown").select_option("1")

        # Pointing at one says what all have there.
        box = page.locator(".curves .u-over").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 40)
        expect(page.locator(".curves .key.at").nth(4)).to_have_text("at 90")
        page.mouse.move(5, 5)

        page.get_by_label("Moving average").fill("0.9")
        losses = [point["loss"] for point in history.train]
        expected = f"training, label-smoothed, EMA 0.90 {ema(losses, 0.9):.3f} at 90, from {losses[0]:.3f}"
        expect(page.get_by_role("img", name="Loss:")).to_have_attribute("aria-label", re.compile(re.escape(expected)))
        page.get_by_label("Scale").select_option("true")
        without_violations(visit)

        with page.expect_download() as download:
            page.get_by_role("button", name="Save the data").click()
        rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
        kept = [float(row["loss"]) for row in rows if row["part"] == "train"]
        assert kept == losses
        assert [float(row["bleu"]) for row in rows if row["part"] == "valid"] == [one["bleu"] for one in history.valid]
        visit.elsewhere.clear()  # a blob: address, which is the page's own


def test_what_translates_and_what_each_kind_of_weights_scored(browser: Browser, served: Any, served_run: Path) -> None:
    end = read_history(RunDirectory(served_run)).end
    assert end is not None
    for visit in open_page(browser, served, "#/training"):
        expect(shown(visit, "average bleu")).to_have_text(f"{end['average_bleu']:.1f}")
        expect(shown(visit, "best bleu")).to_have_text(f"{end['best_bleu']:.1f}")
        kind = {"average": "average of the last checkpoints", "best": "best checkpoint"}[end["kind"]]
        expect(shown(visit, "kind")).to_have_text(kind)


def test_five_sentences_fill_in_with_each_checkpoint(browser: Browser, tiny_run: Path, tmp_path: Path) -> None:
    """A checkpoint that comes while one looks, and one that is no longer kept."""
    run = Path(shutil.copytree(tiny_run, tmp_path / "growing"))
    away = tmp_path / "away"
    away.mkdir()
    shutil.move(run / "checkpoints" / "step-00000090", away)
    with running(service_of(run)) as server:
        for visit in open_page(browser, server, "#/training"):
            pins = visit.page.locator(".pins > li")
            expect(pins).to_have_count(5)

            def filled(step: int) -> Any:
                return visit.page.locator(f".fills li[data-step='{step}']")  # noqa: B023

            for step in (30, 60):
                check_pinned(visit, run, step)
            expect(filled(90)).to_have_count(0)
            # In this order: a page that knows of the newest one knows that the oldest is gone, and does not ask for it.
            shutil.move(run / "checkpoints" / "step-00000030", away)
            shutil.move(away / "step-00000090", run / "checkpoints")
            check_pinned(visit, run, 90)
            expect(filled(30)).to_have_count(5)  # what was seen stays
            chart = visit.page.get_by_role("img", name="Log-probability of the reference")
            expect(chart).to_have_attribute("aria-label", re.compile(r"sentence 5 −\d+\.\d\d at 90"))
            pins.first.get_by_role("button", name="Pin another").click()
            pins.first.get_by_label("Sentence 1").fill(SENTENCE)
            pins.first.get_by_label("Its reference").fill("")
            pins.first.get_by_role("button", name="Pin it").click()
            own = Inspector.load(run, checkpoint="step-00000090").inspect(SENTENCE).translation
            expect(pins.first.locator("li[data-step='90'] .filled")).to_have_text(own)
            without_violations(visit)
            # The page asks again where the service is busy (503), and not for a checkpoint that is gone (400); the
            # browser writes both down.
            visit.errors[:] = [error for error in visit.errors if not re.search(r"status of (503|400)", error)]


def check_pinned(visit: Visit, run: Path, step: int) -> None:
    inspector = Inspector.load(run, checkpoint=f"step-{step:08d}")
    pins = visit.page.locator(".pins > li")
    for pin in pins.all():
        source = pin.locator(".pin-head b").inner_text()
        reference = pin.locator(".reference").inner_text().removeprefix("reference").strip()
        row = pin.locator(f"li[data-step='{step}']")
        expect(row.locator(".filled")).to_have_text(inspector.inspect(source).translation or "(nothing)")
        scored = inspector.inspect(source, reference)
        expected = scored.log_probability / len(scored.log_probabilities)
        expect(row.locator("[data-reference]")).to_have_attribute("data-reference", re.compile(r"-\d"))
        assert float(row.locator("[data-reference]").get_attribute("data-reference") or 0) == pytest.approx(
            expected, abs=2e-3
        )


def test_a_training_says_how_long_it_will_take_and_what_it_holds(
    browser: Browser, tiny_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "going"))
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    points = [json.loads(line) for line in lines]
    until_60 = [line for line, point in zip(lines, points, strict=True) if point["step"] <= 60]
    (run / "metrics.jsonl").write_bytes(b"".join(until_60))
    train = [point for point in points if point["event"] == "train" and point["step"] <= 60]
    last, before = train[-1], train[max(0, len(train) - 11)]
    left = (last["seconds"] - before["seconds"]) / (last["step"] - before["step"]) * (90 - last["step"])
    with running(service_of(run)) as server, RunDirectory(run).lock():
        for visit in open_page(browser, server, "#/training"):
            minutes, seconds = divmod(half_up(left), 60)
            expect(shown(visit, "left")).to_have_text(f"{minutes}:{seconds:02d}")
            expect(shown(visit, "memory")).to_have_text(re.compile(r"[\d,]+"))
            held = int(shown(visit, "memory").inner_text().replace(",", ""))
            assert 16 <= held <= 16_384


def test_several_runs_are_drawn_over_each_other(browser: Browser, two: tuple[Path, Path]) -> None:
    with running(service_of(*two)) as server:
        for visit in open_page(browser, server, "#/training"):
            label = visit.page.get_by_role("img", name="BLEU:")
            expect(label).not_to_have_attribute("aria-label", re.compile("weaker"))
            visit.page.get_by_role("group", name="Draw other runs").get_by_label("weaker").check()
            best = read_history(RunDirectory(two[1])).valid[-1]["bleu"]
            said = f"weaker, validation, greedy {best:.1f} at 90"
            expect(label).to_have_attribute("aria-label", re.compile(re.escape(said)))
            visit.page.wait_for_url("**beside=weaker**")
            without_violations(visit)


# Each is there for less than a second: whoever looks from outside may come too late.
WATCH_HEADINGS = """() => {
  const replay = document.querySelector(".replay");
  window.headings = [];
  new MutationObserver(() => {
    const now = replay.querySelector("h3").textContent;
    if (now !== window.headings.at(-1)) window.headings.push(now);
  }).observe(replay, { subtree: true, childList: true, characterData: true });
}"""


def test_the_scrubber_replays_a_sentence_through_the_checkpoints(
    browser: Browser, served: Any, served_run: Path
) -> None:
    seen = {s: Inspector.load(served_run, checkpoint=f"step-{s:08d}").inspect(SENTENCE) for s in (30, 60, 90)}
    for visit in open_page(browser, served, "#/training"):
        page, replay = visit.page, visit.page.get_by_role("region", name="As it learned")
        replay.get_by_label("Sentence").fill(SENTENCE)
        said = replay.locator(".states li > span:nth-child(2)")
        expect(said).to_have_text([one.translation for one in seen.values()])
        # The same text is scored at every checkpoint: a sentence of one's own has a reference when one gives it.
        reference = "la malnova hundo vidas la rugan domon"
        replay.get_by_label("Reference").fill(reference)
        scores = replay.locator(".states [data-reference]")
        expect(scores).to_have_count(3)
        for at, step in enumerate(seen):
            scored = Inspector.load(served_run, checkpoint=f"step-{step:08d}").inspect(SENTENCE, reference)
            expected_score = scored.log_probability / len(scored.log_probabilities)
            found_score = float(scores.nth(at).get_attribute("data-reference") or 0)
            assert found_score == pytest.approx(expected_score, abs=2e-3)
        slider = replay.get_by_role("slider", name="Checkpoint")
        for at, step in ((0, 30), (2, 90)):
            slider.fill(str(at))
            expect(replay.get_by_role("heading", name=f"Cross-attention at step {step}")).to_be_visible()
            cells = replay.locator("td[data-weight]")
            for head in (-1, 1):
                replay.get_by_label("Head").select_option(str(head))
                weights = seen[step].weights[Site("cross", 0)]
                expected = (weights.mean(dim=0) if head < 0 else weights[head]).flatten().tolist()
                expect(cells.first).to_have_attribute("data-weight", f"{expected[0]:.4f}")
                found = cells.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.weight))")
                assert found == pytest.approx(expected, abs=1.2e-4)
        slider.fill("2")
        expect(replay.get_by_role("heading", name="Cross-attention at step 90")).to_be_visible()
        page.evaluate(WATCH_HEADINGS)
        replay.get_by_role("button", name="Play").click()
        expect(replay.get_by_role("button", name="Play")).to_be_visible()
        assert page.evaluate("window.headings") == [f"Cross-attention at step {step}" for step in (30, 60, 90)]
        page.wait_for_url("**step=90**")


def test_two_runs_side_by_side(compared: Visit, two: tuple[Path, Path]) -> None:
    page = compared.page
    expect(page.get_by_role("row", name="train.seed")).to_contain_text("7")
    expect(page.get_by_role("img", name="BLEU: tiny, validation, greedy")).to_be_visible()
    page.get_by_role("button", name="Measure").click()
    test = shared_validation_set(RunDirectory(two[0]), RunDirectory(two[1]), most=300)
    said = [Translator.load(run).translate(test.sources) for run in two]
    expected = metrics.compare(said[0], said[1], test.references)
    expect(shown(compared, "BLEU a")).to_have_text(f"{expected.bleu.a:.2f}")
    expect(shown(compared, "BLEU b")).to_have_text(f"{expected.bleu.b:.2f}")
    expect(shown(compared, "BLEU p")).to_have_text(f"{expected.bleu.p_value:.4f}")
    expect(page.get_by_role("region", name="Scores")).to_contain_text(f"± {expected.bleu.interval_a.half_width:.2f}")

    chrf = [metrics.sentence_chrf(outputs, test.references) for outputs in said]
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
    expect(both).to_have_count(2)
    for at, run in enumerate(two):
        weights = Inspector.load(run).inspect(first).weights[Site("cross", 0)].mean(dim=0).flatten().tolist()
        cells = both.nth(at).locator("td[data-weight]")
        found = cells.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.weight))")
        assert found == pytest.approx(weights, abs=1.2e-4)
    without_violations(compared)


def test_a_kept_result_is_opened(compared: Visit) -> None:
    page = compared.page
    page.get_by_label("Result").select_option("scaling")
    expect(page.get_by_role("heading", name="Scaling of scores")).to_be_visible()
    expect(page.get_by_text("The larger BLEU wins.")).to_be_visible()
    expect(page.get_by_role("cell", name="21.25 is less than 30.5")).to_be_visible()
    expect(page.get_by_role("cell", name="21.3")).to_be_visible()
    expect(page.get_by_role("img", name="BLEU: a 3 at 3, from 1; b 2 at 3, from 1").locator("canvas")).to_be_visible()
    page.get_by_label("Result").select_option("other")
    expect(page.get_by_text("drawn elsewhere")).to_be_visible()


def test_axe_finds_nothing(browser: Browser, served: Any) -> None:
    for visit in open_page(browser, served, "#/training"):
        looks: list[tuple[Literal["light", "dark"], int]] = [("light", 1280), ("dark", 360)]
        for scheme, width in looks:
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.set_viewport_size({"width": width, "height": 800})
            expect(visit.page.locator(".attention td").first).to_be_attached()
            expect(visit.page.locator(".plot canvas").last).to_be_visible()
            without_violations(visit)
