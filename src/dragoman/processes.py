"""The machine: how many cores and how much memory may be used, worker processes on all cores, the allocator's setting.

The worker processes are plain Python ones that are told what to import. Those of `multiprocessing` either copy a
process whose threads may hold locks (fork) or run the user's own program again (spawn), which a script has to be
written for.
"""

import contextlib
import ctypes
import gc
import itertools
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, Self, TypeVar

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")

_HERE = 2  # items done in this process before others are started: little work does not wait for them
# One thread each; and what is freed is kept for the next item, as faulting pages in anew costs a fifth of the time.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4  # glibc's malloc.h
_CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from dragoman.processes import _serve; _serve()"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_allowed() -> int:
    """How many threads an engine may use: one for each core, or what OMP_NUM_THREADS says if that is fewer."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), int(allowed)) if allowed.isdecimal() and int(allowed) > 0 else cores()


def memory() -> int | None:
    """How many bytes of memory this process may use: the machine's, or the container's if that has less. None where
    the system does not say."""
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        found.append(int(_CONTAINER_MEMORY.read_text(encoding="ascii")))
    return min(found)


def keep_freed_memory(large_blocks: bool = True) -> None:
    """Tells glibc not to hand freed memory back to the system: a training step frees and takes the same sizes again,
    and faulting the pages in anew costs a fifth of the time of a small model. Other systems have no such setting.

    large_blocks: also those of 32 MB and more. Kept, they leave gaps that nothing else fits into, which are gigabytes
    where a model is large; and there faulting in is little beside the work.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)  # the top of the heap stays
        libc.mallopt(_M_MMAP_THRESHOLD, 2**25)  # the highest that it takes; larger blocks come from mmap, ...
        libc.mallopt(_M_MMAP_MAX, 0 if large_blocks else 2**16)  # ... of which there may be so many


def give_freed_memory_back() -> None:
    """Hands back what was freed until now: after a training, to what comes next."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def map_on_all_cores(
    function: Callable[[ItemT], OutcomeT], items: Iterable[ItemT], processes: int | None = None
) -> Iterator[OutcomeT]:
    """Applies a function to each item on all cores; results come in the order of the items, of which a few are in
    memory at a time.

    The function (of a module, or a partial of one) is pickled once a process, and each item and result once.
    """
    wanted = cores() if processes is None else processes
    items = iter(items)
    if wanted < 2:
        yield from map(function, items)
        return
    yield from map(function, itertools.islice(items, _HERE))
    following = next(items, None)
    if following is None:
        return
    with Crew(function, wanted) as crew:
        yield from crew.map(itertools.chain([following], items))


class Crew(Generic[ItemT, OutcomeT]):
    """Worker processes for one function, which start at once and run until `close`."""

    def __init__(self, function: Callable[[ItemT], OutcomeT], processes: int) -> None:
        self._size = processes
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._stack = contextlib.ExitStack()
        for _ in range(processes):
            self._idle.put(self._stack.enter_context(_Process(function)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def map(self, items: Iterable[ItemT]) -> Iterator[OutcomeT]:
        """Results in the order of the items. A caller that stops early may call `map` again with other items."""
        waiting: deque[Future[OutcomeT]] = deque()
        threads = ThreadPoolExecutor(self._size)
        try:
            for item in items:
                waiting.append(threads.submit(self._call, item))
                if len(waiting) > 2 * self._size:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            threads.shutdown(cancel_futures=True)

    def _call(self, item: ItemT) -> OutcomeT:
        process = self._idle.get()
        try:
            result: OutcomeT = process.call(item)
            return result
        finally:
            self._idle.put(process)


class _Process:
    """A worker process for one function. If it cannot be started, or dies, its work is done in this process."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for this process, which then closes the pipe: that ends the other, however this one ends.
                start_new_session=True,
                env={**os.environ, **_ENVIRONMENT},
            )
        self._introduced = False

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
            self._process.wait()

    def call(self, item: Any) -> Any:
        try:
            return self._ask(item)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.__exit__()
            self._process = None
            return self._function(item)

    def _ask(self, item: Any) -> Any:
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise EOFError
        if not self._introduced:
            pickle.dump(self._function, self._process.stdin)
            self._introduced = True
        pickle.dump(item, self._process.stdin)
        self._process.stdin.flush()
        failed, value = pickle.load(self._process.stdout)
        if failed:
            raise value
        return value


def _serve() -> None:
    """The main loop of a worker process, until its input ends."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    with contextlib.suppress(EOFError, OSError):
        function = pickle.load(questions)
        while True:
            item = pickle.load(questions)
            try:
                answer = (False, function(item))
            except Exception as error:
                answer = (True, error)
            pickle.dump(answer, answers)
            answers.flush()
    os._exit(0)  # nothing is left to clean up
