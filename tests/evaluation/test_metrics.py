import gzip
import json
import logging
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from dragoman.errors import DataError
from dragoman.evaluation.metrics import Comparison, Scores, bleu, compare, evaluate, read_references, split_compounds

WORDS = ("the", "a", "dog", "cat", "sees", "finds", "hears", "small", "red", "old", "house", "tree", "under", "near")


def sentences(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(6, 14))).capitalize() + "." for _ in range(count)]


def corrupted(texts: list[str], chance: float, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join("wrong" if rng.random() < chance else word for word in text.split()) for text in texts]


@pytest.fixture(autouse=True)
def _default_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)


def test_equals_sacrebleu_called_directly() -> None:
    references = sentences(40, seed=1)
    hypotheses = corrupted(references, 0.2, seed=2)
    scores = evaluate(hypotheses, [[reference] for reference in references], confidence=0)
    for score, metric in ((scores.bleu, BLEU()), (scores.chrf, CHRF()), (scores.ter, TER())):
        assert score.value == metric.corpus_score(hypotheses, [references]).score
        assert score.signature == metric.get_signature().format()
    assert scores.sentences == 40
    assert bleu(hypotheses, [[reference] for reference in references]) == scores.bleu


def test_bleu_with_unequal_numbers_of_references_by_hand() -> None:
    # Every n-gram of both outputs is in some reference: all precisions are 1. The output has 5 + 2 tokens, the closest
    # references 5 + 4, so BLEU is the brevity penalty alone. Were the missing second reference taken for an empty
    # one, its length 0 would be as close to 2 as 4 is, and the penalty would be gone.
    hypotheses = ["a b c d e", "g h"]
    references = [["a b c d f", "x b c d e"], ["g h i j"]]
    scores = evaluate(hypotheses, references)
    assert scores.bleu.value == pytest.approx(100 * math.exp(1 - 9 / 7))
    assert "nrefs:var" in scores.bleu.signature
    assert scores.paper_bleu.value == pytest.approx(scores.bleu.value)
    assert scores.lowercase_bleu.value == pytest.approx(scores.bleu.value)


def test_bleu_by_hand() -> None:
    # 1- to 4-grams found: 8 of 9, 6 of 7, 4 of 5, 2 of 3, at equal length.
    score = bleu(["a b c d e", "g h i j"], [["a b c d e"], ["g h i k"]])
    assert score.value == pytest.approx(100 * (8 / 9 * 6 / 7 * 4 / 5 * 2 / 3) ** 0.25)


def test_ter_with_unequal_numbers_of_references_by_hand() -> None:
    # One edit to the nearer reference, over the mean of lengths 3 and 5; none over 2.
    scores = evaluate(["a b c", "g h"], [["a b d", "v w x y z"], ["g h"]])
    assert scores.ter.value == pytest.approx(100 * 1 / (4 + 2))


def test_case_counts_in_the_first_score_and_not_in_the_lower_cased_one() -> None:
    scores = evaluate(["Two dogs play in deep snow."], [["two Dogs play in deep snow."]])
    assert scores.bleu.value < 100
    assert scores.lowercase_bleu.value == pytest.approx(100)
    assert "case:mixed" in scores.bleu.signature
    assert "case:lc" in scores.lowercase_bleu.signature


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a - b", "a - b"),
        ("-5 und 5-", "-5 und 5-"),
        ("a-b-c", "a ##AT##-##AT## b-c"),  # as the authors' pattern does: matches do not overlap
        ("E-Mail-Adresse", "E ##AT##-##AT## Mail ##AT##-##AT## Adresse"),
    ],
)
def test_compound_split(text: str, split: str) -> None:
    assert split_compounds(text) == split


def test_paper_bleu_is_of_tokenised_text_with_compounds_split() -> None:
    scores = evaluate(["Das Rich-Text-Format ist gut, sagt er."], [["Das Rich-Text-Format ist neu, sagt sie…"]], "de")
    tokenised = "Das Rich ##AT##-##AT## Text ##AT##-##AT## Format ist gut , sagt er ."
    reference = "Das Rich ##AT##-##AT## Text ##AT##-##AT## Format ist neu , sagt sie ..."
    assert scores.paper_bleu.value == sacrebleu.corpus_bleu([tokenised], [[reference]], tokenize="none").score
    assert scores.paper_bleu.value != scores.bleu.value
    assert "tok:none" in scores.paper_bleu.signature


def test_lowercase_bleu_is_of_normalised_tokenised_text() -> None:
    scores = evaluate(["Ein Hund springt „hoch“ im Schnee."], [['Ein Hund rennt "hoch" im Schnee , ja.']], "de")
    tokenised = 'ein hund springt " hoch " im schnee .'
    reference = 'ein hund rennt " hoch " im schnee , ja .'
    assert scores.lowercase_bleu.value == sacrebleu.corpus_bleu([tokenised], [[reference]], tokenize="none").score


def test_language_chooses_the_moses_rules() -> None:
    # German knows "bzw." as an abbreviation; by English rules its full stop is a token before a capital.
    hypotheses, references = ["Tom bzw. Anna geht heute heim."], [["Tom bzw. Anna geht morgen heim."]]
    for code, abbreviation in (("de_DE", "bzw."), (None, "bzw .")):
        tokenised = [f"Tom {abbreviation} Anna geht {when} heim ." for when in ("heute", "morgen")]
        expected = sacrebleu.corpus_bleu(tokenised[:1], [tokenised[1:]], tokenize="none").score
        assert evaluate(hypotheses, references, code).paper_bleu.value == expected


def test_chinese_is_scored_by_character_and_japanese_never_as_one_word() -> None:
    chinese = evaluate(["我 今天去学校。"], [["我今天去学校。"]], "zh-CN")
    assert chinese.bleu.value == pytest.approx(100)
    assert "tok:zh" in chinese.bleu.signature
    assert "asian:yes" in chinese.ter.signature
    japanese = evaluate(["今日は学校に行く。"], [["今日は学校へ行く。"]], "ja")
    assert japanese.bleu.value > 0
    assert ("tok:ja-mecab" in japanese.bleu.signature) == (not japanese.notes)


def test_tokenised_output_is_one_note_and_no_noise(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    hypotheses = ["This is tokenised ."] * 200
    with caplog.at_level(logging.WARNING):
        scores = evaluate(hypotheses, [["This is tokenised."]] * 200)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
    (note,) = scores.notes
    assert note.startswith("200 of 200 translations end in a full stop after a space")
    assert "\n" not in note
    assert not evaluate(["This is not."], [["This is not."]]).notes


def test_lines_and_json_carry_every_signature() -> None:
    scores = evaluate(["a b c d e"], [["a b c d e", "a b c d"]])
    lines = scores.lines()
    assert lines[0] == f"BLEU (cased, raw text): 100.00  {scores.bleu.signature}"
    content = json.loads(scores.to_json())
    for name in ("bleu", "chrf", "ter", "paper_bleu", "lowercase_bleu"):
        assert any(content[name]["label"] in line and content[name]["signature"] in line for line in lines)
        assert "version:" in content[name]["signature"]
    assert isinstance(scores, Scores)
    assert content == scores.to_dict() | {"notes": []}


def test_confidence_gives_intervals_and_leaves_the_scores() -> None:
    references = sentences(60, seed=3)
    hypotheses = corrupted(references, 0.3, seed=4)
    rows = [[reference] for reference in references]
    plain, scores = evaluate(hypotheses, rows, confidence=0), evaluate(hypotheses, rows, confidence=200)
    for name in ("bleu", "chrf", "ter", "paper_bleu", "lowercase_bleu"):
        score = getattr(scores, name)
        assert score.value == getattr(plain, name).value
        assert getattr(plain, name).interval is None
        assert score.interval.half_width > 0
        assert abs(score.interval.mean - score.value) < score.interval.half_width
        assert "bs:200|seed:12345" in score.signature
        assert "±" in score.line()
    assert evaluate(hypotheses, rows, confidence=200) == scores


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "0 sentences"),
        (["a"], [["a"], ["b"]], "1 translations but references for 2 sentences"),
        (["a", "b"], [["a"], []], "sentence 2: no reference"),
        (["a", "b"], ["a", "b"], "sentence 1: a bare string"),
    ],
)
def test_mistakes_are_one_clear_line(hypotheses: list[str], references: list[list[str]], message: str) -> None:
    for call in (evaluate, bleu, lambda h, r: compare(h, h, r)):
        with pytest.raises(DataError, match=message) as caught:
            call(hypotheses, references)
        assert "\n" not in str(caught.value)


def test_compare_equal_outputs_are_not_significant() -> None:
    references = sentences(30, seed=5)
    hypotheses = corrupted(references, 0.3, seed=6)
    result = compare(hypotheses, list(hypotheses), [[reference] for reference in references])
    for metric in (result.bleu, result.chrf):
        assert metric.p_value == 1
        assert not metric.significant
        assert metric.a == metric.b
    assert all("no significant difference" in line for line in result.lines()[1:])


def test_compare_finds_the_clearly_better_output() -> None:
    references = sentences(100, seed=7)
    worse, better = corrupted(references, 0.4, seed=8), corrupted(references, 0.1, seed=9)
    rows = [[reference] for reference in references]
    result = compare(worse, better, rows)
    for metric in (result.bleu, result.chrf):
        assert metric.b > metric.a
        assert metric.p_value < 0.01
        assert metric.significant
        assert metric.interval_b.mean - metric.interval_b.half_width > metric.interval_a.mean
        assert "bs:1000|seed:12345" in metric.signature
    assert result.bleu.a == evaluate(worse, rows).bleu.value
    assert compare(worse, better, rows) == result  # seeded
    content = json.loads(result.to_json())
    assert content["bleu"]["significant"] is True
    assert isinstance(result, Comparison)


def test_compare_of_equally_corrupted_outputs_is_not_significant() -> None:
    references = sentences(100, seed=10)
    one, other = corrupted(references, 0.3, seed=11), corrupted(references, 0.3, seed=12)
    result = compare(one, other, [[reference] for reference in references])
    assert result.bleu.a != result.bleu.b
    assert not result.bleu.significant


def test_read_references_drops_empty_lines_of_further_files(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes("un\u2028deux\r\nbonjour\n".encode())
    (tmp_path / "1.gz").write_bytes(gzip.compress(b"\nsalut\n"))
    assert read_references([tmp_path / "0", tmp_path / "1.gz"]) == [["un\u2028deux"], ["bonjour", "salut"]]


def test_read_references_mistakes(tmp_path: Path) -> None:
    for name, content in {
        "two": b"a\nb\n",
        "one": b"a\n",
        "hole": b"a\n\n",
        "latin": b"a\n\xe9\n",
        "bad.gz": b"\x1f\x8bx",
    }.items():
        (tmp_path / name).write_bytes(content)
    for names, message in (
        ([], "no reference file"),
        (["two", "one"], "one: 1 lines, but .*two has 2"),
        (["hole", "hole"], "line 2 is empty"),
        (["latin"], r"latin:2: byte 1 \(0xE9\) is not UTF-8"),
        (["missing"], "missing: no such file"),
        (["bad.gz"], "bad.gz: the gzip data is damaged"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            read_references([tmp_path / name for name in names])
        assert "\n" not in str(caught.value)


def test_imports_no_torch() -> None:
    code = "import sys, dragoman.evaluation.metrics, dragoman.quickstart.demo; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
