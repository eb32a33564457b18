"""The queue of arms: what was measured is not measured again, whatever stops it."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.lab.queue import Arm, OutOfBudget, Queue
from support.lab import arm


def test_what_was_measured_is_never_measured_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def measure(one: Arm) -> dict[str, Any]:
        calls.append(one.configuration["number"])
        return {"square": one.configuration["number"] ** 2}

    first = Queue(tmp_path, say=lambda _: None).measure_all([arm(1), arm(2), arm(1)], measure)
    again = Queue(tmp_path, say=lambda _: None).measure_all([arm(2), arm(3)], measure)
    assert calls == [1, 2, 3]
    assert [measured.measurements["square"] for measured in (*first, *again)] == [1, 4, 1, 4, 9]
    lines = (tmp_path / "arms" / "counting.jsonl").read_text().splitlines()
    assert [json.loads(line)["configuration"]["number"] for line in lines] == [1, 2, 3]


def test_two_queues_at_work_keep_each_others_arms(tmp_path: Path) -> None:
    one, other = (Queue(tmp_path, say=lambda _: None) for _ in range(2))
    assert one.find(arm(1)) is other.find(arm(1)) is None
    one.measure_all([arm(1)], lambda _: {})
    other.measure_all([arm(2)], lambda _: {})
    assert all(Queue(tmp_path).find(arm(number)) is not None for number in (1, 2))


def test_a_stop_in_the_middle_keeps_what_is_there(tmp_path: Path) -> None:
    def measure(one: Arm) -> dict[str, Any]:
        if one.configuration["number"] == 2:
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        Queue(tmp_path, say=lambda _: None).measure_all([arm(1), arm(2)], measure)
    assert Queue(tmp_path).find(arm(1)) is not None
    assert Queue(tmp_path).find(arm(2)) is None


def test_the_budget_ends_before_the_arm_that_would_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "arms" / "counting.jsonl"
    path.parent.mkdir()
    record = {"key": arm(1).key, "seconds": 100.0, "cost": 1.0, "measured": {}}
    path.write_text(json.dumps(record) + "\n")
    messages: list[str] = []
    queue = Queue(tmp_path, budget=140.0, say=messages.append)
    long = Arm("counting", "long", {"number": 9}, cost=3.0)
    unknown = Arm("other", "unknown", {})
    queue.plan([arm(1), arm(2), long, unknown])
    assert queue.expected(long) == 300
    assert queue.left() == "3 arms left, about 6:40 for 2 of them, and 1 of kinds not timed yet"
    queue.measure_all([arm(2)], lambda _: {})
    with pytest.raises(OutOfBudget, match="long would not fit"):
        queue.measure_all([long], lambda _: {})


def test_an_arm_is_known_by_its_configuration_not_by_its_name() -> None:
    assert Arm("a", "x", {"p": 1, "q": 2}).key == Arm("a", "y", {"q": 2, "p": 1}, cost=7.0).key
    assert len({Arm("a", "x", {"p": 1}).key, Arm("b", "x", {"p": 1}).key, Arm("a", "x", {"p": 2}).key}) == 3
