"""Translates the sentences of many requests together, in batches.

A sentence waits until a worker is free and either enough others are there to fill a batch or it has waited a few
milliseconds. A batch holds sentences of one key and of similar length, the one that has waited longest among them. The
queue is bounded; who comes when it is full is told when to come again. Everything but the translation itself happens on
the event loop, so nothing here needs a lock.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from dragoman.errors import DragomanError

KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")


class OverloadedError(DragomanError):
    """The queue is full; after `retry_after` seconds what waits now should be done."""

    def __init__(self, waiting: int, limit: int, retry_after: int) -> None:
        super().__init__(f"{waiting} sentences wait, at most {limit} may; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(frozen=True, eq=False)
class _Job(Generic[KeyT, ResultT]):
    key: KeyT
    text: str
    tokens: int
    arrived: float
    future: "asyncio.Future[ResultT]"


class Batcher(Generic[KeyT, ResultT]):
    """Gathers sentences of concurrent requests into batches, in one bounded queue."""

    def __init__(
        self,
        translate: Callable[[KeyT, Sequence[str]], Sequence[ResultT]],
        *,
        workers: int,
        batch_tokens: int,
        batch_wait: float,
        queue_limit: int,
        observe_batch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._translate = translate
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="translate")
        self._workers = workers
        self._batch_tokens = batch_tokens
        self._batch_wait = batch_wait
        self._queue_limit = queue_limit
        self._observe_batch = observe_batch
        self._waiting: dict[_Job[KeyT, ResultT], None] = {}  # the oldest first
        self._running: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()  # a sentence arrived, a worker is free, or it is time to close
        self._room = asyncio.Event()  # a sentence left the queue
        self._done: deque[tuple[float, int]] = deque(maxlen=64)  # (when, sentences) of the last batches
        self._closing = False
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Sentences in the queue."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Batches that are being translated."""
        return len(self._running)

    def start(self) -> None:
        self._dispatcher = asyncio.create_task(self._dispatch())

    async def close(self) -> None:
        """Answers what was accepted, then stops."""
        self._closing = True
        self._news.set()
        if self._dispatcher is not None:
            await self._dispatcher
        await asyncio.gather(*self._running)
        self._pool.shutdown()

    async def translate(self, key: KeyT, texts: Sequence[str], tokens: Sequence[int]) -> list[ResultT]:
        """Translates all of them, in order. Cancelling this takes what still waits out of the queue.

        A request that alone would fill the queue is let in by parts, each when there is room for it: only its first
        part can be refused.
        """
        results: list[ResultT] = []
        part = max(1, self._queue_limit // 4)
        for first in range(0, len(texts), part):
            count = min(part, len(texts) - first)
            while first and self._full(count):
                self._room.clear()
                await self._room.wait()
            if self._closing or self._full(count):
                raise OverloadedError(self.waiting, self._queue_limit, self.retry_after())
            jobs = [self._submit(key, *job) for job in zip(texts[first:][:part], tokens[first:][:part], strict=True)]
            try:
                # Not `gather`: one that fails would leave the others waiting for nobody.
                results += [await job.future for job in jobs]
            finally:
                for job in jobs:
                    job.future.cancel()
                    self._waiting.pop(job, None)
                self._room.set()
        return results

    def retry_after(self) -> int:
        """Seconds until what waits now should be done, at the pace of the last batches."""
        if len(self._done) < 2:
            return 1
        elapsed = max(1e-3, time.monotonic() - self._done[0][0])
        pace = sum(count for _, count in self._done) / elapsed
        return min(30, max(1, math.ceil(self.waiting / pace)))

    def _full(self, more: int) -> bool:
        return len(self._waiting) + more > self._queue_limit

    def _submit(self, key: KeyT, text: str, tokens: int) -> _Job[KeyT, ResultT]:
        loop = asyncio.get_running_loop()
        job: _Job[KeyT, ResultT] = _Job(key, text, tokens, time.monotonic(), loop.create_future())
        self._waiting[job] = None
        self._news.set()
        return job

    async def _dispatch(self) -> None:
        while True:
            self._news.clear()
            if not self._waiting or len(self._running) >= self._workers:
                if self._closing and not self._waiting:
                    return
                await self._news.wait()
                continue
            oldest = next(iter(self._waiting))
            left = self._batch_wait - (time.monotonic() - oldest.arrived)
            # Where no batch runs, others are not to be expected: a lone client is answered at once.
            if left > 0 and self._running and not self._closing and self._waiting_tokens() < self._batch_tokens:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), left)
                continue
            batch = self._choose(oldest)
            for job in batch:
                del self._waiting[job]
            self._room.set()
            task = asyncio.create_task(self._run(batch))
            self._running.add(task)
            task.add_done_callback(self._free)

    def _waiting_tokens(self) -> int:
        total = 0
        for job in self._waiting:  # stops early: the queue may be long
            total += job.tokens
            if total >= self._batch_tokens:
                break
        return total

    def _choose(self, oldest: _Job[KeyT, ResultT]) -> list[_Job[KeyT, ResultT]]:
        """Picks the oldest, and of its key those nearest to it in length, as many as the budget holds with padding."""
        like = [job for job in self._waiting if job.key == oldest.key and job is not oldest]
        like.sort(key=lambda job: abs(job.tokens - oldest.tokens))
        batch, longest = [oldest], oldest.tokens
        for job in like:
            longest = max(longest, job.tokens)
            if (len(batch) + 1) * longest > self._batch_tokens:
                break
            batch.append(job)
        return batch

    async def _run(self, batch: list[_Job[KeyT, ResultT]]) -> None:
        self._observe_batch(len(batch))
        outcomes = await self._outcomes(batch)
        self._done.append((time.monotonic(), len(batch)))
        for job, outcome in zip(batch, outcomes, strict=True):
            if job.future.done():  # the client has left
                continue
            if isinstance(outcome, BaseException):
                job.future.set_exception(outcome)
            else:
                job.future.set_result(outcome)

    async def _outcomes(self, batch: list[_Job[KeyT, ResultT]]) -> Sequence[ResultT | BaseException]:
        loop = asyncio.get_running_loop()
        texts = [job.text for job in batch]
        try:
            return await loop.run_in_executor(self._pool, self._translate, batch[0].key, texts)
        except Exception as error:
            if len(batch) == 1:
                return [error]
        # One of them is at fault; the others came into the batch with it by chance.
        outcomes: list[ResultT | BaseException] = []
        for job in batch:
            outcomes += await self._outcomes([job])
        return outcomes

    def _free(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._news.set()
