"""The bench's own arithmetic. The bench itself is run by `make bench`, in its own environment."""

import ast
import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig
from dragoman.model.probe import Probe
from dragoman.model.transformer import Transformer
from support.benches import BENCH, load, load_beside

SHAPES = {
    "paper": {},
    "narrow keys": {"d_k": 3, "d_v": 8},
    "wide values": {"d_k": 8, "d_v": 16},
    "more of one side": {"encoder_layers": 3, "decoder_layers": 1},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=list(SHAPES))
def test_the_formula_counts_what_torch_counts(changes: dict[str, int]) -> None:
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    shape: dict[str, Any] = {"vocab_size": 50, **layers, "d_model": 24, "d_ff": 40, "num_heads": 4}
    config = ModelConfig(**(shape | changes), dropout=0.0)
    model = Transformer(config)
    source, target = torch.randint(50, (3, 9)), torch.randint(50, (3, 7))
    with FlopCounterMode(display=False) as counter:
        # By the explicit path: torch counts nothing in the fused attention of a CPU.
        model(source, target, probe=Probe()).sum().backward()
    assert load("flops").training_flops(config, 3, 9, 7) == counter.get_total_flops()


def test_rounds_are_summed_up_by_median_and_spread() -> None:
    rounds = load("rounds")
    found = rounds.Spread.of([3.0, 1.0, 2.0, 10.0, 2.5])
    assert (found.median, found.low, found.high) == (2.5, 1.0, 10.0)
    assert str(found) == "2.50 (1.00 to 10.00)"


def test_a_ratio_is_taken_round_by_round() -> None:
    # The machine was half as fast in the second round: for both of them.
    assert load("rounds").ratios([200.0, 100.0, 202.0], [100.0, 50.0, 101.0]).median == 2.0


def test_only_what_is_between_the_marks_is_written_anew(tmp_path: Path) -> None:
    report = load("report")
    page = tmp_path / "results.md"
    page.write_text("# By hand\n\nbefore\n", encoding="utf-8")
    report.write_section(page, "memory", "first")
    report.write_section(page, "training", "second")
    page.write_text(page.read_text(encoding="utf-8") + "\nafter\n", encoding="utf-8")
    report.write_section(page, "memory", "third")
    text = page.read_text(encoding="utf-8")
    assert "first" not in text
    assert text.index("before") < text.index("third") < text.index("second") < text.index("after")
    assert text.count("<!-- bench: memory -->") == 1


# The n-grams that a language model is measured against.

START, END, PIECES = 2, 3, 12


def ngrams(order: int) -> Any:
    """Over tokens 4 to 11 (11 is never seen) and the end symbol: nine can come."""
    draw = random.Random(0)
    sentences = [draw.choices(range(4, 11), weights=range(1, 8), k=draw.randint(1, 8)) for _ in range(300)]
    return load("kneser_ney").KneserNey(sentences, order, START, END, vocabulary=PIECES - 3)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_whatever_came_before_the_probabilities_sum_to_one(order: int) -> None:
    model = ngrams(order)
    for context in ([START], [START, 4], [START, 9, 10, 9], [START, 9, 10, 10, 9, 10, 8], [START, 11, 11]):
        found = [model.probability(context, token) for token in (END, *range(4, PIECES))]
        assert min(found) > 0
        assert sum(found) == pytest.approx(1, abs=1e-12)


def test_bigrams_are_smoothed_as_the_formula_says() -> None:
    """By hand: after `a` came b twice and c once; b is seen after a, c after a and b; discounts 0.5, 1, 1.5."""
    a, b, c = 4, 5, 6
    model = load("kneser_ney").KneserNey([[a, b], [a, b, c], [a, c]], 2, START, END, vocabulary=4)
    # Different bigrams ending in: a 1 (start a), b 1, c 2 (b c, a c), end 2 (b end, c end); 6 in all.
    # Unigrams: discounts 0.5 of a and b, 1 of c and end, together 3 of 6, go to the uniform 1/4.
    unigram_b = (1 - 0.5) / 6 + 3 / 6 / 4
    # After a: b 2 - 1, c 1 - 0.5; together 1.5 of 3 go to the unigrams.
    assert model.probability([START, a], b) == pytest.approx((2 - 1) / 3 + 1.5 / 3 * unigram_b)


def test_words_that_change_places_are_inside_and_small() -> None:
    languages = load("languages")
    sentence = "Tom said that he would come on Monday."
    for seed in range(20):
        changed = languages.exchanged(sentence, random.Random(seed))
        assert changed != sentence
        assert sorted(changed.split()) == sorted(sentence.split())
        assert changed.startswith("Tom ")
        assert changed.endswith(" Monday.")
    assert languages.exchanged("I am here.", random.Random(0)) is None


def test_boundaries_are_counted_in_characters_that_are_no_space() -> None:
    splitters = load_beside("splitters")
    case = splitters.case(["One dog.", "Two cats.", "Three."])
    assert case.text == "One dog. Two cats. Three."
    assert case.ends == {7, 15}
    right = splitters.score([case], [["One dog. ", "Two  cats. ", "Three."]])
    assert (right.whole, right.right, right.lossy) == (1, 2, 0)
    # A missing cut, and one too many.
    other = splitters.score([case], [["One dog. Two cats.", "Th", "ree."]])
    assert (other.whole, other.found, other.right, other.precision(), other.recall()) == (0, 2, 1, 0.5, 0.5)
    # What was lost does not move the boundaries after it.
    lost = splitters.score([case], [["One dog", "Two cats.", "Three."]])
    assert (lost.whole, lost.right, lost.lossy) == (0, 1, 1)
    assert splitters.score([case], None) is None


@pytest.mark.parametrize(
    ("comments", "texts"),
    [
        (["newdoc", "", "newpar", ""], ["A. B.", "C. D."]),
        (["newdoc", "", "newdoc", ""], ["A. B.", "C. D."]),
        (["", "", "", ""], ["A. B. C. D."]),
        (["newdoc", "newdoc", "newdoc", "newdoc"], ["A. B. C. D."]),
    ],
    ids=["paragraphs", "documents", "neither", "a document each"],
)
def test_a_treebank_is_put_together_by_its_paragraphs(tmp_path: Path, comments: list[str], texts: list[str]) -> None:
    lines = []
    for comment, letter in zip(comments, "ABCD", strict=True):
        lines += [f"# {comment}"] * bool(comment) + [f"# text = {letter}.", f"1\t{letter}.", ""]
    path = tmp_path / "xx_small-ud-dev.conllu"
    path.write_text("\n".join(lines), encoding="utf-8")
    splitters = load_beside("splitters")
    assert [case.text for case in splitters.treebank(path, "xx")] == texts
    assert splitters.treebank(path, "ja")[0].text == texts[0].replace(" ", "")


def test_rules_are_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "test_xx.py").write_text(
        'import no_such_module\nGOLDEN_XX_RULES_TEST_CASES = [("A. B.", ["A.", "B."]), p.param("C", ["C"], m=1)]\n'
        'XX_MORE_TEST_CASES = [("D. E.", ["D. E."])]\nXX_CLEAN_TEST_CASES = [("F", ["G"])]\n',
        encoding="utf-8",
    )
    splitters = load_beside("splitters")
    golden = splitters.golden_rules(tmp_path, "GOLDEN")
    assert [(case.text, set(case.ends)) for case in golden["xx"]] == [("A. B.", {2}), ("C", set())]
    assert [case.text for case in splitters.golden_rules(tmp_path, "MORE")["xx"]] == ["D. E."]


def test_every_bench_asks_for_names_that_are_there() -> None:
    """They run for hours and rarely, so that nobody sees at once when a name has moved."""
    missing = []
    for path in sorted(BENCH.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dragoman":
                module = importlib.import_module(node.module or "")
                for alias in node.names:
                    if hasattr(module, "__path__") and importlib.util.find_spec(f"{node.module}.{alias.name}"):
                        continue
                    if not hasattr(module, alias.name):
                        missing.append(f"{path.name}:{node.lineno} {node.module}.{alias.name}")
    assert not missing
