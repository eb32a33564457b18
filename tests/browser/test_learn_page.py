"""Learn in a real browser: every widget moves, and its numbers are the Python API's for a sentence typed here."""

import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
import torch
from playwright.sync_api import Browser, Locator, expect

from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.model.probe import Site
from dragoman.translation.translator import Translator
from support.browsing import Visit, open_page
from support.serving import Running

SENTENCE = "the old dog sees the red house"
ENCODER = Site("encoder", 0)


@pytest.fixture(scope="module")
def inspector(served_run: Path) -> Inspector:
    return Inspector.load(served_run)


@pytest.fixture(scope="module")
def seen(served_run: Path, inspector: Inspector) -> Inspection:
    """Of what the page shows: the service's translation, which its quick engine found."""
    (translation,) = Translator.load(served_run).translate_stream([SENTENCE])
    return inspector.inspect(SENTENCE, translation.candidates[0].tokens)


@pytest.fixture(scope="module")
def learning(browser: Browser, served: Running) -> Iterator[Visit]:
    """One page for all tests: each looks at its own lesson. The sentence is typed."""

    def is_of_all_of_it(answer: Any) -> bool:
        """Before that, what was typed so far is looked at."""
        return bool(answer.url.endswith("/inside")) and bool(json.loads(answer.request.post_data)["text"] == SENTENCE)

    for visit in open_page(browser, served, "#/learn?by=pieces&text="):
        with visit.page.expect_response(is_of_all_of_it):
            visit.page.get_by_label("Your sentence").press_sequentially(SENTENCE)
        expect(visit.page.locator(".translated")).to_have_attribute("aria-busy", "false")
        expect(visit.page.locator("#machine .living")).to_be_visible()
        yield visit


def shown(visit: Visit, name: str) -> float:
    text = visit.page.locator(f'[data-shown="{name}"]').inner_text()
    return float(text.replace("−", "-").replace(",", ""))


def becomes(visit: Visit, name: str, value: float, digits: int) -> None:
    text = f"{value:.{digits}f}".replace("-", "−")
    expect(visit.page.locator(f'[data-shown="{name}"]')).to_have_text(text)


def bars(lesson: Locator) -> list[float]:
    return [float(cell.get_attribute("data-value") or "nan") for cell in lesson.locator(".bars [data-value]").all()]


def entropy(weights: torch.Tensor) -> float:
    return float(torch.special.entr(weights.double()).sum())


def drag(slider: Locator, to: int) -> None:
    slider.fill(str(to))


def press(lesson: Locator, group: str, at: int) -> None:
    button = lesson.get_by_role("group", name=group).get_by_role("button").nth(at)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")


def test_words_have_neighbours(learning: Visit, inspector: Inspector) -> None:
    lesson = learning.page.locator("#vectors")
    for at, word in ((2, "dog"), (5, "red")):
        press(lesson, "Word", at)
        expect(lesson.get_by_role("table", name=f"Neighbours of {word}")).to_be_visible()
        expected = inspector.neighbours(word, 8)
        expect(lesson.locator(".bars [data-value]").first).to_have_text(f"{expected[0].similarity:.3f}")
        assert bars(lesson) == pytest.approx([one.similarity for one in expected], abs=1e-5)


def test_positions_are_fingerprints_and_an_offset_rotates(learning: Visit, inspector: Inspector) -> None:
    page, lesson = learning.page, learning.page.locator("#positions")
    rows = inspector.positions(64)
    for position in (3, 20):
        drag(lesson.get_by_role("slider", name="Position"), position)
        expect(lesson.get_by_role("img", name=f"Fingerprint of position {position}:")).to_be_visible()
        values = lesson.locator(".fingerprint").get_attribute("data-values") or ""
        assert [float(value) for value in values.split()] == pytest.approx(rows[position].tolist(), abs=6e-4)
    box = lesson.locator(".position-map").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] * 5.5 / 64)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] * 9.5 / 64, steps=4)
    page.mouse.up()
    expect(lesson.get_by_role("img", name="Fingerprint of position 9:")).to_be_visible()
    width = rows.shape[1]
    for offset, hand in ((7, 2), (12, 5)):
        drag(lesson.get_by_role("slider", name="Offset k"), offset)
        drag(lesson.get_by_role("slider", name="Hand i"), hand)
        becomes(learning, "angle", offset * 10_000 ** (-2 * hand / width), 4)
        assert shown(learning, "rotation error") < 2e-4  # sixteen bits a number
    first, second = (lesson.locator(f".clock-face .end.curve-{n}") for n in (1, 2))
    for end, position in ((first, 9), (second, 9 + 12)):
        sine, cosine = rows[position, 10:12].tolist()
        x, y = (float(end.get_attribute(name) or "nan") for name in ("cx", "cy"))
        assert [x, y] == pytest.approx([60 + 50 * sine, 60 - 50 * cosine], abs=0.01)


def test_a_query_is_picked(learning: Visit, seen: Inspection) -> None:
    lesson = learning.page.locator("#query")
    for row, head in ((2, 1), (5, 0)):
        press(lesson, "What asks", row)
        lesson.get_by_label("Head").select_option(str(head))
        becomes(learning, "query entropy", entropy(seen.weights[ENCODER][head, row]), 3)
        assert bars(lesson) == pytest.approx(seen.weights[ENCODER][head, row].tolist(), abs=2e-5)
        shades = lesson.locator(".token").evaluate_all(
            "all => all.map((one) => one.style.getPropertyValue('--weight'))"
        )
        assert [float(shade) for shade in shades] == pytest.approx(seen.weights[ENCODER][head, row].tolist(), abs=1e-4)
        scores = [float(cell.inner_text().replace("−", "-")) for cell in lesson.locator(".bars .also").all()]
        assert scores == pytest.approx(seen.scores[ENCODER][head, row].tolist(), abs=6e-3)


def test_d_k_is_dragged(learning: Visit, seen: Inspection) -> None:
    lesson = learning.page.locator("#scale")
    press(learning.page.locator("#query"), "What asks", 3)
    learning.page.locator("#query").get_by_label("Head").select_option("1")

    def entropies(of: str) -> list[float]:
        return [float(cell.inner_text()) for cell in lesson.locator(f'[data-entropy^="{of} "]').all()]

    def products(of: str) -> torch.Tensor:
        text = lesson.locator(f'[data-of="{of}"]').get_attribute("data-products") or ""
        return torch.tensor([float(value) for value in text.split()], dtype=torch.float64)

    found = {}
    for power in (2, 9):
        drag(lesson.get_by_role("slider"), power)
        expect(lesson.get_by_role("slider")).to_have_attribute("aria-valuetext", str(2**power))
        raw, size = products("random"), 2**power
        expected = [entropy((raw / by).softmax(dim=0)) for by in (1, math.sqrt(size), size)]
        found[power] = entropies("random")
        assert found[power] == pytest.approx(expected, abs=6e-4)
    assert found[9][0] < 0.3 < found[9][1] < found[9][2]  # unscaled: one key gets nearly all of it
    assert abs(found[9][2] - math.log(8)) < 0.02  # over d_k: all get the same
    before = products("random")
    lesson.get_by_role("button", name="Other vectors").click()
    expect(lesson.locator('[data-of="random"]')).not_to_have_attribute(
        "data-products", " ".join(f"{value:.5f}" for value in before.tolist())
    )
    own = seen.scores[ENCODER][1, 3].double() / seen.scale
    expected = [entropy((own / by).softmax(dim=0)) for by in (1, math.sqrt(seen.d_k), seen.d_k)]
    expect(lesson.locator('[data-entropy="own unscaled"]')).to_have_text(f"{expected[0]:.3f}")
    assert entropies("own") == pytest.approx(expected, abs=2e-3)


def test_heads_that_differ_and_what_their_average_erases(learning: Visit, seen: Inspection) -> None:
    lesson = learning.page.locator("#heads")
    for row in (1, 6):
        press(lesson, "What asks, for all heads", row)
        rows = seen.weights[ENCODER][:, row].double()

        def erased(chosen: tuple[int, ...], rows: torch.Tensor = rows) -> float:
            some = rows[list(chosen)]
            return entropy(some.mean(dim=0)) - sum(entropy(one) for one in some) / len(some)

        best = max(itertools.combinations(range(len(rows)), min(4, len(rows))), key=erased)
        becomes(learning, "erased", erased(best), 3)
        for head in best:
            becomes(learning, f"head {head} entropy", entropy(rows[head]), 3)
        becomes(learning, "average entropy", entropy(rows[list(best)].mean(dim=0)), 3)


def test_paths(learning: Visit, seen: Inspection) -> None:
    lesson = learning.page.locator("#paths")
    for to in (2, 6):
        drag(lesson.get_by_role("slider"), to)
        becomes(learning, "recurrent steps", to, 0)
        becomes(learning, "attention steps", 1, 0)
        assert lesson.locator("path.curve-2").count() == to
        assert lesson.locator("path.curve-1").count() == 1
    expected = [
        sum(head.distance for head in seen.statistics[site]) / len(seen.statistics[site])
        for site in (ENCODER, Site("decoder", 0))
    ]
    assert bars(lesson) == pytest.approx(expected, abs=1e-5)


def test_the_mask_on_and_off(learning: Visit, seen: Inspection, inspector: Inspector) -> None:
    lesson = learning.page.locator("#mask")
    outcome = inspector.intervene(SENTENCE, ["decoder.*:unmask"], seen.tokens, retranslate=False)
    becomes(learning, "masked", outcome.before.log_probability, 3)
    becomes(learning, "unmasked", outcome.after.log_probability, 3)
    assert outcome.change != 0
    switch = lesson.get_by_role("switch")
    for on, inspection in ((True, outcome.before), (False, outcome.after)):
        expect(switch).to_have_attribute("aria-checked", "true" if on else "false")
        table = lesson.get_by_role("table", name=f"Decoder self-attention, mask {'on' if on else 'off'}")
        expected = inspection.weights[Site("decoder", 0)][1].flatten().tolist()
        lesson.get_by_label("Head").select_option("1")
        future = 1  # the second cell of the first row
        # The last digit shown may be rounded up on one machine and down on another.
        near = re.compile("|".join(f"^{max(expected[future] + off, 0):.4f}$" for off in (-1e-4, 0, 1e-4)))
        expect(table.locator("td[data-weight]").nth(future)).to_have_attribute("data-weight", near)
        found = [float(cell.get_attribute("data-weight") or "nan") for cell in table.locator("td[data-weight]").all()]
        assert found == pytest.approx(expected, abs=1e-4)
        assert (expected[future] == 0) == on
        switch.click()
    expect(switch).to_have_attribute("aria-checked", "true")


def test_a_sentence_may_grow_and_shrink_while_one_looks(
    browser: Browser, served: Running, inspector: Inspector
) -> None:
    for visit in open_page(browser, served, "#/learn?by=pieces&text="):
        lesson = visit.page.locator("#query")
        for typed in ("the dog", SENTENCE, "the cat"):
            visit.page.get_by_label("Your sentence").fill(typed)
            tokens = inspector.inspect(typed).source
            expect(lesson.locator(".bars [data-value]")).to_have_count(len(tokens))
            expect(lesson.locator(".token")).to_have_count(len(tokens))
            assert sum(bars(lesson)) == pytest.approx(1, abs=1e-4)


def test_each_widget_opens_the_same_state_in_inside(browser: Browser, served: Running, seen: Inspection) -> None:
    for visit in open_page(browser, served, f"#/learn?from=en&to=eo&text={quote(SENTENCE)}&head=1&row=4"):
        page = visit.page
        expect(page.locator("#machine .living")).to_be_visible()
        page.locator("#mask").get_by_role("switch").click()
        addresses = {}
        for lesson in ("machine", "positions", "query", "qkv", "scale", "heads", "paths", "mask", "pronoun"):
            link = page.locator(f"#{lesson} .inside-link").get_attribute("href") or ""
            assert link.startswith("#/inside?")
            addresses[lesson] = {name: values[0] for name, values in parse_qs(link.split("?", 1)[1]).items()}
            assert addresses[lesson]["text"] == (
                SENTENCE if lesson != "pronoun" else "The animal didn't cross the street because it was too tired."
            )
        assert {name: addresses["query"][name] for name in ("kind", "layer", "head", "row")} == {
            "kind": "encoder", "layer": "0", "head": "1", "row": "4",
        }  # fmt: skip
        assert addresses["mask"]["changes"] == "decoder.*:unmask"
        assert addresses["paths"]["statistic"] == "distance"
        page.locator("#query .inside-link").click()
        expect(page.get_by_role("heading", name="Encoder: self-attention, layer 0, head 1")).to_be_visible()
        top = int(seen.weights[ENCODER][1, 4].argmax())
        weights = page.locator(".weights li").first
        expect(weights).to_have_attribute("data-column", str(top))
        page.go_back()
        expect(page.locator("#query")).to_be_visible()
