"""The batcher: who is translated with whom, what happens when too much comes, and when someone leaves."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from dragoman.serve.batcher import Batcher, OverloadedError
from support.waiting import PATIENCE, until_async


class Worker:
    """Translates by shouting, when it is let; remembers what came together."""

    def __init__(self, gate: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.started = threading.Event()
        self.gate = threading.Event()
        if not gate:
            self.gate.set()

    def __call__(self, kind: str, texts: Sequence[str]) -> list[str]:
        self.started.set()
        assert self.gate.wait(PATIENCE)
        self.batches.append(list(texts))
        if "poison" in texts:
            raise ValueError("poison")
        return [f"{kind}:{text.upper()}" for text in texts]


def with_batcher(worker: Worker, scenario: Callable[[Batcher[str, str]], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        values: dict[str, Any] = {"workers": 1, "batch_tokens": 100, "batch_wait": 0.01, "queue_limit": 100, **settings}
        batcher: Batcher[str, str] = Batcher(worker, **values)
        batcher.start()
        try:
            return await asyncio.wait_for(scenario(batcher), PATIENCE)
        finally:
            worker.gate.set()
            await asyncio.wait_for(batcher.close(), PATIENCE)

    return asyncio.run(main())


def test_each_gets_its_own_in_order() -> None:
    async def scenario(batcher: Batcher[str, str]) -> list[list[str]]:
        return [
            *await asyncio.gather(
                batcher.translate("x", ["a", "b"], [1, 1]),
                batcher.translate("y", ["c"], [1]),
                batcher.translate("x", [], []),
            )
        ]

    assert with_batcher(Worker(), scenario) == [["x:A", "x:B"], ["y:C"], []]


def test_a_lone_sentence_does_not_wait_for_company() -> None:
    worker = Worker()

    async def scenario(batcher: Batcher[str, str]) -> list[str]:
        return await batcher.translate("x", ["a"], [1])

    assert with_batcher(worker, scenario, batch_wait=1e9) == ["x:A"]  # or it would wait for ever


def test_while_others_are_at_work_a_sentence_waits_for_company() -> None:
    worker = Worker(gate=True)

    async def scenario(batcher: Batcher[str, str]) -> None:
        first = asyncio.create_task(batcher.translate("x", ["a"], [1]))
        await until_async(worker.started.is_set)
        second = asyncio.create_task(batcher.translate("x", ["b"], [50]))
        await until_async(lambda: batcher.waiting == 1)
        third = asyncio.create_task(batcher.translate("x", ["c"], [50]))  # and now a batch is full
        await until_async(lambda: batcher.waiting == 0)
        worker.gate.set()
        await asyncio.gather(first, second, third)

    with_batcher(worker, scenario, workers=2, batch_tokens=100, batch_wait=1e9)
    assert sorted(map(sorted, worker.batches)) == [["a"], ["b", "c"]]


def test_what_comes_at_once_goes_together_but_not_with_another_kind() -> None:
    worker = Worker()

    async def scenario(batcher: Batcher[str, str]) -> None:
        texts = [("x", "a"), ("y", "b"), ("x", "c"), ("x", "d")]
        await asyncio.gather(*(batcher.translate(kind, [text], [3]) for kind, text in texts))

    with_batcher(worker, scenario, batch_wait=1.0, batch_tokens=12)
    assert sorted(worker.batches) == [["a", "c", "d"], ["b"]]


def test_a_batch_is_the_oldest_and_those_nearest_to_it_in_length() -> None:
    worker = Worker(gate=True)

    async def scenario(batcher: Batcher[str, str]) -> None:
        first = asyncio.create_task(batcher.translate("x", ["first"], [1]))
        await until_async(worker.started.is_set)
        rest = batcher.translate("x", ["ten", "forty", "twelve", "two", "eleven"], [10, 40, 12, 2, 11])
        task = asyncio.create_task(rest)
        await until_async(lambda: batcher.waiting == 5)
        worker.gate.set()
        await asyncio.gather(first, task)

    with_batcher(worker, scenario, batch_tokens=40, batch_wait=0.0)
    assert worker.batches[1:] == [["ten", "eleven", "twelve"], ["forty"], ["two"]]


def test_too_much_is_refused_and_then_it_recovers() -> None:
    worker = Worker(gate=True)

    async def scenario(batcher: Batcher[str, str]) -> None:
        under_way = asyncio.create_task(batcher.translate("x", ["a"], [1]))
        await until_async(worker.started.is_set)
        waiting = [asyncio.create_task(batcher.translate("x", [str(i)], [1])) for i in range(4)]
        await until_async(lambda: batcher.waiting == 4)
        with pytest.raises(OverloadedError, match="4 sentences wait, at most 4 may; try again in 1 s") as refused:
            await batcher.translate("x", ["b"], [1])
        assert refused.value.retry_after >= 1
        worker.gate.set()
        await asyncio.gather(under_way, *waiting)
        assert await batcher.translate("x", ["b"], [1]) == ["x:B"]

    with_batcher(worker, scenario, queue_limit=4)


def test_who_leaves_makes_room_and_costs_nothing() -> None:
    worker = Worker(gate=True)

    async def scenario(batcher: Batcher[str, str]) -> None:
        under_way = asyncio.create_task(batcher.translate("x", ["a"], [1]))
        await until_async(worker.started.is_set)
        leaving = asyncio.create_task(batcher.translate("x", ["b", "c"], [1, 1]))
        await until_async(lambda: batcher.waiting == 2)
        leaving.cancel()
        await until_async(lambda: batcher.waiting == 0)
        worker.gate.set()
        await under_way
        assert await batcher.translate("x", ["d"], [1]) == ["x:D"]

    with_batcher(worker, scenario)
    assert worker.batches == [["a"], ["d"]]


def test_a_request_larger_than_the_queue_goes_in_by_parts() -> None:
    texts = [str(number) for number in range(50)]

    async def scenario(batcher: Batcher[str, str]) -> list[str]:
        return await batcher.translate("x", texts, [1] * 50)

    assert with_batcher(Worker(), scenario, queue_limit=8) == [f"x:{text}" for text in texts]


def test_one_that_fails_fails_alone() -> None:
    async def scenario(batcher: Batcher[str, str]) -> list[Any]:
        return await asyncio.gather(
            *(batcher.translate("x", [text], [1]) for text in ("a", "poison", "b")), return_exceptions=True
        )

    good, bad, other = with_batcher(Worker(), scenario, batch_wait=0.1)
    assert (good, other) == (["x:A"], ["x:B"])
    assert isinstance(bad, ValueError)


def test_closing_answers_what_was_accepted() -> None:
    worker = Worker(gate=True)

    async def scenario(batcher: Batcher[str, str]) -> None:
        accepted = [asyncio.create_task(batcher.translate("x", [str(i)], [1])) for i in range(20)]
        await until_async(worker.started.is_set)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)  # it begins
        with pytest.raises(OverloadedError):
            await batcher.translate("x", ["late"], [1])
        worker.gate.set()
        await closing
        assert [await task for task in accepted] == [[f"x:{i}"] for i in range(20)]

    with_batcher(worker, scenario, batch_tokens=3)
