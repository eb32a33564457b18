"""Measuring a fine-tuning takes a time in proportion to it, and the memory of one model."""

import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.progress import Say, discard
from dragoman.run_directory import RunDirectory
from dragoman.training import finetune_scores
from dragoman.training.finetune_scores import FIRST, Domain, compare_domains, seconds_trained, translate_within

LINES = [f"this is the line number {number}" for number in range(1000)]


class Slow:
    """A translator that takes as many seconds of its own clock for each line, and answers with the line."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.time, self._seconds = 0.0, seconds

    def translate(self, lines: Sequence[str], warn: Say = discard) -> list[str]:
        warn("")
        self.time += self._seconds * len(lines)
        return list(lines)


@pytest.mark.parametrize(
    ("each", "count"), [(1.0, 100), (0.01, 1000), (0.0, 1000), (5.0, FIRST)]
)  # of 100 seconds; the last: longer than the time
def test_as_many_lines_are_translated_as_the_time_allows(each: float, count: int) -> None:
    slow = Slow(each)
    assert translate_within(100.0, slow, LINES, now=lambda: slow.time) == LINES[:count]  # type: ignore[arg-type]


def test_few_lines_are_all_translated() -> None:
    slow = Slow()
    assert translate_within(1.0, slow, LINES[:5], now=lambda: slow.time) == LINES[:5]  # type: ignore[arg-type]


def test_both_runs_are_measured_with_the_same_sentences_one_model_at_a_time(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[weakref.ref[Slow]] = []
    asked: list[list[str]] = []

    class Remembering(Slow):
        def translate(self, lines: Sequence[str], warn: Say = discard) -> list[str]:
            asked.append(list(lines))
            return super().translate(lines, warn)

    def load(*_: object) -> Slow:
        assert all(one() is None for one in loaded)
        translator = Remembering()
        loaded.append(weakref.ref(translator))
        return translator

    monkeypatch.setattr(finetune_scores, "load_for_tagged", load)
    monkeypatch.setattr(
        finetune_scores, "translate_within", lambda _, translator, lines: translator.translate(lines[:40])
    )
    said: list[str] = []
    run = RunDirectory(tiny_run)
    domains = {"new": Domain(LINES, LINES), "old": Domain(LINES[:20], LINES[:20])}
    found = compare_domains(run, run, domains, None, None, said.append)
    assert (found["new"].sentences, found["old"].sentences) == (40, 20)
    assert found["new"].bleu.a == found["new"].bleu.b == pytest.approx(100)  # each line with its own reference
    assert asked[0] == asked[2] != LINES[:40]  # drawn from all of them
    assert asked[1] == asked[3]
    assert "40 of 1,000 measure it: more would take longer than the training did" in said
    assert len(loaded) == 2


def test_the_time_is_that_of_the_training(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = seconds_trained(RunDirectory(tiny_run))
    assert trained > 0
    assert seconds_trained(RunDirectory(tmp_path)) == 0  # without a log
    given: list[float] = []

    def within(seconds: float, translator: Slow, lines: Sequence[str]) -> list[str]:
        given.append(seconds)
        return translator.translate(lines)

    monkeypatch.setattr(finetune_scores, "load_for_tagged", lambda *_: Slow())
    monkeypatch.setattr(finetune_scores, "translate_within", within)
    monkeypatch.setattr(finetune_scores, "LEAST_SECONDS", 0.0)
    run = RunDirectory(tiny_run)
    compare_domains(run, run, {"new": Domain(LINES, LINES)}, None, None, discard)
    assert given == [trained / 2]
