"""The lessons of Learn beyond attention itself: values are Python's, by words or by pieces, by hand, key and thumb."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect
from sacrebleu import sentence_bleu

from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.inspection.sublayer_trace import NormOrder, SubLayerTrace, head_vectors, trace_sublayers
from dragoman.model.probe import Site
from dragoman.translation.translator import Translator
from support.browsing import AXE, Visit, nothing_is_wider_than, open_page, until_on
from support.serving import Running

SENTENCE = "the old dog sees the red house"
PRONOUNS = [f"The animal didn't cross the street because it was too {word}." for word in ("tired", "wide")]
LESSONS = 16


@pytest.fixture(scope="module")
def inspector(served_run: Path) -> Inspector:
    return Inspector.load(served_run)


def served_tokens(run: Path, text: str) -> tuple[str, ...]:
    """The translation that the page shows: the service's quick engine found it."""
    (translation,) = Translator.load(run).translate_stream([text])
    return translation.candidates[0].tokens


@pytest.fixture(scope="module")
def seen(served_run: Path, inspector: Inspector) -> Inspection:
    return inspector.inspect(SENTENCE, served_tokens(served_run, SENTENCE))


def walked(inspector: Inspector, seen: Inspection, order: NormOrder | None = None) -> SubLayerTrace:
    tokenizer, explainer = inspector.tokenizer, inspector.explainer
    target = [*tokenizer.start_ids, *explainer.token_ids(seen.tokens), tokenizer.eos_id]
    return trace_sublayers(inspector.model, tokenizer.encoder_ids(explainer.source_ids(SENTENCE)), target, order)


@pytest.fixture(scope="module")
def traced(inspector: Inspector, seen: Inspection) -> SubLayerTrace:
    return walked(inspector, seen)


@pytest.fixture(scope="module")
def learning(browser: Browser, served: Running) -> Iterator[Visit]:
    """One page for the tests of values, by pieces."""
    for visit in open_page(browser, served, f"#/learn?by=pieces&text={quote(SENTENCE)}"):
        expect(visit.page.locator("#machine .living")).to_be_visible()
        yield visit


def becomes(within: Page | Locator, name: str, value: float, digits: int, sign: str = "−") -> None:
    expect(within.locator(f'[data-shown="{name}"]')).to_have_text(written(value, digits, sign))


def written(value: float, digits: int, sign: str = "−") -> re.Pattern[str]:
    """The last digit may be rounded up on one machine and down on another."""
    offs = (-(10**-digits), 0.0, 10**-digits)
    return re.compile("^(" + "|".join(re.escape(f"{value + off:.{digits}f}".replace("-", sign)) for off in offs) + ")$")


def strip(within: Locator, name: str) -> list[float]:
    values = within.get_by_role("img", name=name, exact=True).get_attribute("data-values") or ""
    return [float(value) for value in values.split()]


def near(values: torch.Tensor, tolerance: float = 1e-3) -> Any:
    return pytest.approx(values.tolist(), rel=tolerance, abs=tolerance)


def press(within: Locator, group: str, at: int) -> None:
    button = within.get_by_role("group", name=group, exact=True).get_by_role("button").nth(at)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")


def test_query_key_and_value_are_the_heads(learning: Visit, inspector: Inspector, traced: SubLayerTrace) -> None:
    lesson = learning.page.locator("#qkv")
    lesson.locator(".controls label", has_text="Head").locator("select").select_option("1")
    for kind, row, column in (("encoder", 2, 4), ("cross", 3, 1)):
        lesson.get_by_text("Encoder" if kind == "encoder" else "Decoder to source", exact=True).click()
        press(lesson, "Whose query", row)
        expected = head_vectors(inspector.model, traced, Site(kind, 0), 1, row)  # type: ignore[arg-type]
        lesson.locator(".mixture tbody button").nth(column).click()
        becomes(lesson, "qkv score", float(expected.scores[column]), 3)
        becomes(lesson, "qkv sum", float(expected.scores[column] / expected.scale), 3)
        weights = lesson.locator(".mixture .weight-cell").evaluate_all("all => all.map((one) => +one.dataset.value)")
        assert weights == near(expected.weights)
        assert strip(lesson, "What the head hands on") == near(expected.context)
        products = lesson.locator(".products .strip").evaluate_all(
            "all => all.map((one) => one.dataset.values.split(' ').map(Number))"
        )
        assert products[0] == near(expected.query)
        assert products[1] == near(expected.keys[column])
        assert products[2] == near(expected.query * expected.keys[column])


def test_the_stream_in_both_orders(
    learning: Visit, inspector: Inspector, seen: Inspection, traced: SubLayerTrace
) -> None:
    lesson = learning.page.locator("#block")
    other: NormOrder = "post" if traced.order == "pre" else "pre"
    label = {"pre": "Normalise before", "post": "Normalise after"}
    for half, row in (("Encoder", 2), ("Decoder", 1)):
        lesson.get_by_text(half, exact=True).click()
        press(lesson, "Whose vector", row)
        for order in (other, traced.order):
            lesson.get_by_text(label[order], exact=True).click()
            found = walked(inspector, seen, order)
            becomes(lesson, "block log-probability", sum(found.log_probabilities), 3)
            stack = found.encoder if half == "Encoder" else found.decoder
            for name, expected in (
                ("written", [one.written[row].square().mean().sqrt() for one in stack.sublayers]),
                ("stream", [one.stream[row].square().mean().sqrt() for one in stack.sublayers]),
            ):
                sizes = lesson.locator(f"[data-{name}]").evaluate_all(f"all => all.map((one) => +one.dataset.{name})")
                assert sizes == near(torch.stack(expected))
    lesson.locator(".stream button").last.click()  # the last feed-forward layer, in the run's own order
    last = traced.decoder.sublayers[-1]
    assert last.hidden is not None
    before = traced.decoder.sublayers[-2].stream[1] if traced.order == "pre" else last.received[1] + last.written[1]
    expect(lesson.locator('[data-shown="switches on"]')).to_have_text(str(int((last.hidden[1] > 0).sum())))
    becomes(lesson, "mean before", float(before.mean()), 2)
    becomes(lesson, "spread before", float(before.std(unbiased=False)), 2)


def test_the_machine_writes_the_translation(
    learning: Visit, inspector: Inspector, seen: Inspection, traced: SubLayerTrace
) -> None:
    lesson = learning.page.locator("#machine")
    box, moment = lesson.locator(".machine-box"), lesson.get_by_role("slider", name="Moment")
    becomes(lesson, "log-probability", seen.log_probability, 3)
    layers = len(inspector.model.encoder), len(inspector.model.decoder)
    per_token = 2 + 3 * layers[1]
    first = 3 + 2 * layers[0]
    assert moment.get_attribute("max") == str(first + per_token * len(seen.produced) - 1)
    for at in (0, len(seen.produced) - 1):
        moment.fill(str(first + per_token * (at + 1) - 1))
        expect(box).to_have_attribute("data-stage", "output")
        expect(box).to_have_attribute("data-at", str(at))
        becomes(lesson, "next probability", math.exp(seen.log_probabilities[at]), 4)
        top = traced.log_probs[at].exp().topk(5).values
        shares = [float(text) for text in lesson.locator(".living .share").all_text_contents()]
        assert shares == near(top)
        expect(lesson.locator(".living .ghost")).to_have_count(0 if at else 1)  # nothing goes back in after the end
    moment.fill("2")  # self-attention of the first layer
    expect(box).to_have_attribute("data-stage", "attend")
    weights = seen.weights[Site("encoder", 0)].mean(dim=0)
    expect(lesson.locator(".living .link")).to_have_count(int((weights >= 0.04).sum()))


def test_the_machine_plays_and_steps(learning: Visit, seen: Inspection) -> None:
    page, lesson = learning.page, learning.page.locator("#machine")
    box, moment = lesson.locator(".machine-box"), lesson.get_by_role("slider", name="Moment")
    lesson.get_by_role("button", name="From the start").click()
    expect(box).to_have_attribute("data-stage", "words")
    lesson.get_by_role("button", name="Step", exact=True).click()
    expect(box).to_have_attribute("data-stage", "embedding")
    lesson.locator(".living a").first.focus()
    page.keyboard.press("ArrowRight")
    expect(box).to_have_attribute("data-stage", "attend")
    page.keyboard.press("ArrowLeft")
    expect(moment).to_have_value("1")
    lesson.get_by_role("button", name="Next word").click()
    expect(box).to_have_attribute("data-at", "0")
    moment.fill(str(int(moment.get_attribute("max") or "0") - 2))
    lesson.get_by_role("button", name="Play").click()
    expect(lesson.get_by_role("button", name="Play again")).to_be_visible()  # it ends by itself
    expect(box).to_have_attribute("data-at", str(len(seen.produced) - 1))
    for name, leads in (("masked self-attention", "mask"), ("+ position", "positions"), ("cross", "qkv")):
        link = lesson.get_by_role("link", name=f"{name}: opens its lesson").last
        assert f"lesson={leads}" in (link.get_attribute("href") or "")
    lesson.get_by_role("link", name="masked self-attention: opens its lesson").click()
    expect(page.locator("#mask-title")).to_be_focused()
    expect(page.locator("#mask")).to_be_in_viewport()


def test_shift_and_mask_together(learning: Visit, seen: Inspection) -> None:
    lesson = learning.page.locator("#mask")
    for at in (1, 3):
        lesson.locator(".shift button").nth(at).click()
        expect(lesson.locator('[data-shown="sees"]')).to_have_text(str(at + 1))
        expect(lesson.locator(".shift .hidden-cell")).to_have_count(len(seen.fed) - at - 1)
        expect(lesson.locator(".shift .to-say")).to_have_count(1)
    lesson.get_by_text("Scores before the softmax").click()
    table = lesson.get_by_role("table", name="Decoder self-attention scores, mask on")
    expect(table.locator("td.hidden-cell").first).to_have_text("−∞")
    expect(table.locator("td.hidden-cell")).to_have_count(len(seen.fed) * (len(seen.fed) - 1) // 2)
    own = seen.scores[Site("decoder", 0)][0, 2, :3].tolist()
    cells = table.locator("tbody tr").nth(2).locator("td:not(.hidden-cell)").all_inner_texts()
    assert [float(cell.replace("−", "-")) for cell in cells] == pytest.approx(own, abs=0.06)
    lesson.get_by_text("Weights", exact=True).click()


def test_the_pronoun_in_every_head(learning: Visit, served_run: Path, inspector: Inspector) -> None:
    lesson = learning.page.locator("#pronoun")
    rows = lesson.locator(".pronoun tbody tr")
    heads = inspector.model.config.encoder_layers * inspector.model.config.num_heads
    expect(rows).to_have_count(heads)
    given: dict[tuple[int, int], list[float]] = {}
    for text in PRONOUNS:
        found = inspector.inspect(text, served_tokens(served_run, text))
        words = {word.text: range(word.first_token, word.last_token + 1) for word in found.source_words}
        for layer in range(inspector.model.config.encoder_layers):
            for head, weights in enumerate(found.weights[Site("encoder", layer)]):
                looking = weights[list(words["it"])].mean(dim=0)
                for noun in ("animal", "street"):
                    given.setdefault((layer, head), []).append(float(looking[list(words[noun])].sum()))
    for row in rows.all():
        layer, head = map(int, (row.get_attribute("data-head") or "").split("."))
        cells = row.locator("td").evaluate_all("all => all.map((one) => +one.dataset.weight)")
        assert cells == pytest.approx(given[layer, head], abs=3e-5 * 10)
    animal = [values for values in given.values() if values[0] > values[1]]
    expect(lesson.locator('[data-shown="animal heads"]')).to_have_text(str(len(animal)))
    turning = [values for values in animal if values[3] > values[2]]
    expect(lesson.locator('[data-shown="turning heads"]')).to_have_text(str(len(turning)))


def test_table_1_for_any_length_and_width(learning: Visit) -> None:
    lesson = learning.page.locator("#costs")
    for step_n, step_d, cheaper in ((40, 24, "n > d"), (12, 36, "n < d"), (24, 24, "n = d")):
        lesson.get_by_role("slider", name="length").fill(str(step_n))
        lesson.get_by_role("slider", name="width").fill(str(step_d))
        n, d, k, r = 2 ** (step_n // 4), 2 ** (step_d // 4), 3, 16
        expected = {
            "cost": [n * n * d, n * d * d, k * n * d * d, min(r, n) * n * d],
            "steps": [1, n, 1, 1],
            "path": [1, n, max(1, math.ceil(math.log(n, k) - 1e-9)), max(1, math.ceil(n / r))],
        }
        expect(lesson.locator('[data-shown="verdict"]')).to_contain_text(cheaper)
        for name, values in expected.items():
            found = lesson.locator(f"[data-{name}]").evaluate_all(f"all => all.map((one) => +one.dataset.{name})")
            assert found == values, name


def test_bleu_is_sacrebleus(learning: Visit, seen: Inspection) -> None:
    lesson = learning.page.locator("#bleu")
    expect(lesson.get_by_text("Type a reference to have a score.")).to_be_visible()
    words = seen.translation.split()
    for reference in (seen.translation, " ".join([*words[:3], "io", "alia."]), " ".join(reversed(words))):
        lesson.get_by_label("A reference").fill(reference)
        expected = sentence_bleu(seen.translation, [reference], use_effective_order=True)
        expect(lesson.locator('[data-shown="bleu"]')).to_have_text(f"{expected.score:.2f}")
        counts = lesson.locator("[data-found]").evaluate_all("all => all.map((one) => +one.dataset.found)")
        assert counts == expected.counts
        for size in (1, 2):
            lesson.get_by_text(f"{size} word", exact=size == 1).first.click()
            expect(lesson.locator("[data-matched]")).to_have_attribute("data-matched", str(expected.counts[size - 1]))


def test_questions_symbols_and_reading(learning: Visit, inspector: Inspector) -> None:
    page, config = learning.page, inspector.model.config
    questions = page.locator("#questions details.question")
    expect(questions).to_have_count(8)
    for question in questions.all():
        question.locator("summary").click()
        expect(question.locator("p").first).to_be_visible()
    expect(page.locator("#q-sure .findings li").first).to_be_visible()
    page.locator("#q-gpt").scroll_into_view_if_needed()
    here = page.locator("#notation .here").all_inner_texts()
    for value in (config.d_model, config.d_ff, config.num_heads, config.key_size):
        assert str(value) in here
    assert page.locator("#reading a").count() == 0  # the page leads nowhere else
    expect(page.locator("#reading li")).to_have_count(18)
    assert page.locator("math").count() == 11  # every equation is drawn by the browser itself
    assert page.locator("math mfrac").first.evaluate("node => node.namespaceURI").endswith("MathML")
    assert page.evaluate(
        "document.fonts.check('16px Equations')"
    )  # came with the page, and not from the reader's system
    assert page.locator("math").first.evaluate("node => getComputedStyle(node).fontFamily").startswith("Equations")


def test_words_or_pieces_everywhere(browser: Browser, served: Running, served_run: Path, inspector: Inspector) -> None:
    text = "the old doghouse sees"
    found = inspector.inspect(text, served_tokens(served_run, text))
    words = [list(range(word.first_token, word.last_token + 1)) for word in found.source_words]
    assert max(map(len, words)) > 1
    units = [*words, [len(found.source) - 1]]
    for visit in open_page(browser, served, f"#/learn?text={quote(text)}"):
        page = visit.page
        expect(page.locator("#query .token")).to_have_count(len(units))
        press(page.locator("#query"), "What asks", 2)
        weights = found.weights[Site("encoder", 0)][0]
        expected = [float(weights[units[2]][:, unit].sum(dim=1).mean()) for unit in units]
        first = page.locator("#query .bars [data-value]").first
        expect(first).to_have_text(written(expected[0], 3))
        bars = page.locator("#query .bars [data-value]").evaluate_all("all => all.map((one) => +one.dataset.value)")
        assert bars == pytest.approx(expected, abs=1e-3)
        assert sum(bars) == pytest.approx(1, abs=1e-3)
        counted = {"#qkv .tokens": ".token", "#block .tokens": ".token", "#heads .strips": "thead th"}
        for by, count in (("Words", len(units)), ("Pieces", len(found.source))):
            page.get_by_text(by, exact=True).click()
            for lesson, one in counted.items():
                expect(page.locator(f"{lesson} {one}")).to_have_count(count)
        expect(page).to_have_url(re.compile("by=pieces"))
        expect(page.get_by_label("Your sentence")).to_have_value(text)
        page.get_by_label("Your sentence").fill("…")
        expect(page.get_by_text("No piece of this sentence is a part of a word.")).to_be_visible()


def comes_to(page: Page, lesson: str, pixels: int) -> None:
    """The lesson's upper edge, from the window's."""
    where = f"(node => node ? node.getBoundingClientRect().top : Infinity)(document.querySelector('#{lesson}'))"
    until_on(page, lambda: abs(page.evaluate(where) - pixels) < 3)


def test_contents_lead_there_and_one_comes_back_to_the_place(browser: Browser, served: Running) -> None:
    for visit in open_page(browser, served, f"#/learn?text={quote(SENTENCE)}"):
        page = visit.page
        contents = page.get_by_role("navigation", name="Contents")
        expect(contents.get_by_role("link")).to_have_count(LESSONS)
        contents.get_by_role("link", name="Shift and mask").click()
        expect(page.locator("#mask-title")).to_be_focused()
        expect(page).to_have_url(re.compile("lesson=mask"))
        comes_to(page, "mask", 80)
        page.mouse.wheel(0, 150)
        comes_to(page, "mask", -70)
        expect(page.locator(".learn-bar [aria-current]")).to_have_text("9")
        page.wait_for_timeout(1200)  # long enough to have read there
        page.get_by_role("link", name="Translate").click()
        expect(page.get_by_label("Text to translate")).to_be_visible()
        page.get_by_role("link", name="Learn").click()
        comes_to(page, "mask", -70)
        page.reload()
        expect(page.locator("#mask")).to_be_in_viewport()
        comes_to(page, "mask", 80)  # a lesson is in the address, not how far one is in it


def scrolls_beyond(page: Page, pixels: float) -> None:
    until_on(page, lambda: page.evaluate("scrollY") > pixels)


def test_a_thumb_scrolls_over_the_map_of_positions(browser: Browser, served: Running) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    for visit in open_page(browser, served, f"#/learn?lesson=positions&text={quote(SENTENCE)}", **phone):
        page, placed = visit.page, visit.page.locator(".position-map")
        expect(placed).to_be_visible()
        page.wait_for_timeout(2600)  # until the place is no longer held
        placed.evaluate("node => node.scrollIntoView({ block: 'center' })")
        box = placed.bounding_box()
        assert box is not None
        x, y = box["x"] + 100, box["y"] + 200
        placed.tap(position={"x": 50, "y": box["height"] * 20.5 / 64})
        expect(page.get_by_role("img", name="Fingerprint of position 20:")).to_be_visible()
        before = page.evaluate("scrollY")
        session = page.context.new_cdp_session(page)
        for kind, points in (
            ("touchStart", [{"x": x, "y": y}]),
            *(("touchMove", [{"x": x, "y": y - 20 * step}]) for step in range(1, 11)),
            ("touchEnd", []),
        ):
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        scrolls_beyond(page, before + 100)
        expect(page.get_by_role("img", name="Fingerprint of position 20:")).to_have_count(1)  # and chose nothing


def test_it_prints(browser: Browser, served: Running) -> None:
    for visit in open_page(browser, served, f"#/learn?text={quote(SENTENCE)}"):
        page = visit.page
        expect(page.locator("#bleu")).to_be_visible()
        page.emulate_media(media="print", color_scheme="dark")
        assert page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor") == "rgb(255, 255, 255)"
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        for hidden in (".learn-bar", ".contents", ".player", "#costs .controls"):
            expect(page.locator(hidden).first).to_be_hidden()
        expect(page.locator("#q-gpt p").first).to_be_visible()  # what was folded is on paper
        expect(page.locator("#query .token").first).to_be_visible()
        assert len(page.pdf()) > 100_000
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(page.locator("#q-gpt p").first).to_be_hidden()


# The sizes of what has text of its own, but for what is raised, lowered or unseen.
SIZES = """() => {
  const found = {};
  for (const node of document.querySelectorAll('.learn *')) {
    if (node.closest('math, sub, sup, .unseen')) continue;
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (own) (found[getComputedStyle(node).fontSize] ??= []).push(`${node.tagName} ${node.className}`);
  }
  return found;
}"""


def test_axe_finds_nothing_and_there_are_five_sizes(browser: Browser, served: Running) -> None:
    for visit in open_page(browser, served, f"#/learn?text={quote(SENTENCE)}"):
        page = visit.page
        page.evaluate(AXE.read_text(encoding="utf-8"))
        looks: list[tuple[Literal["light", "dark"], int]] = [("light", 1280), ("dark", 360)]
        filled = (
            "#vectors .bars",
            "#positions .clock-face",
            "#heads td",
            "#mask .shift",
            "#block .hidden",
            "#pronoun td",
        )
        for scheme, width in looks:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            for part in filled:
                expect(page.locator(part).first).to_be_visible()
            page.get_by_label("A reference").fill("la hundo")
            expect(page.locator('[data-shown="bleu"]')).to_be_visible()
            nothing_is_wider_than(page)
            page.evaluate("for (const one of document.querySelectorAll('.learn details')) one.open = true")
            nothing_is_wider_than(page)
            sizes = page.evaluate(SIZES)
            assert len(sizes) <= 5, {size: nodes[:5] for size, nodes in sizes.items()}
            violations = page.evaluate("async () => (await axe.run()).violations")
            assert [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in violations] == []


DRAWN = """async () => {
  const { html, render } = await import("/web/vendor/htm-preact.js");
  const { Chart } = await import("/web/chart.js");
  const written = (window.written = []);
  const own = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    written.push(String(text));
    own.call(this, text, ...rest);
  };
  const place = document.createElement("div");
  place.style.width = "340px";
  document.body.append(place);
  const series = [{ label: "steps", points: Array.from({ length: 11 }, (_, at) => [at, 1000 + at]) }];
  const told = (x) => `step ${Math.round(x)}`;
  render(html`<${Chart} title="steps" series=${series} format=${String} formatX=${told} />`, place);
}"""


def test_marks_of_a_chart_stand_at_whole_steps(learning: Visit) -> None:
    """10 steps were marked 3, 5, 8 and 10: at 2.5 and 7.5, written as whole numbers."""
    learning.page.evaluate(DRAWN)
    marks = "[...new Set(written)].filter((text) => text.startsWith('step')).map((text) => +text.slice(5))"
    until_on(learning.page, lambda: len(learning.page.evaluate(marks)) > 2)
    found = learning.page.evaluate(marks)
    assert len({after - before for before, after in itertools.pairwise(found)}) == 1, found
