"""The same results as one process gives, in order, whatever happens to the others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dragoman import processes
from dragoman.processes import cores, map_on_all_cores, memory

HERE = os.getpid()


def square(number: int) -> tuple[int, bool]:
    return number * number, os.getpid() != int(os.environ["DRAGOMAN_TEST_PROCESS"])


def die_elsewhere(number: int, survive: int) -> int:
    if os.getpid() != int(os.environ["DRAGOMAN_TEST_PROCESS"]) and number != survive:
        os._exit(1)
    return -number


def complain(number: int) -> int:
    if number == 7:
        raise ValueError(f"number {number}")
    return number


@pytest.fixture(autouse=True)
def _this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TEST_PROCESS", str(HERE))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_all_in_order(count: int) -> None:
    results = list(map_on_all_cores(square, range(count), processes=3))
    assert [result for result, _ in results] == [number * number for number in range(count)]
    assert [elsewhere for _, elsewhere in results] == [number >= 2 for number in range(count)]


def test_few_items_are_in_memory_at_a_time() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    for done, _ in enumerate(map_on_all_cores(square, items(), processes=2)):
        assert len(taken) <= done + 1 + 2 * 2 + 1
    assert len(taken) == 100


def test_a_process_that_dies_is_done_without() -> None:
    results = list(map_on_all_cores(partial(die_elsewhere, survive=5), range(20), processes=2))
    assert results == [-number for number in range(20)]


def test_without_an_interpreter_to_start_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/none/such")
    assert list(map_on_all_cores(square, range(9), processes=2)) == [(n * n, False) for n in range(9)]


def test_an_error_is_the_one_of_the_function() -> None:
    with pytest.raises(ValueError, match="number 7"):
        list(map_on_all_cores(complain, range(30), processes=2))


def children() -> set[str]:
    """Of this process; other tests may have left theirs."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return {line.strip() for line in listed.stdout.splitlines()}


def test_whoever_stops_asking_leaves_no_process_behind() -> None:
    before = children()
    results = map_on_all_cores(square, range(1000), processes=2)
    assert [next(results)[0] for _ in range(10)] == [n * n for n in range(10)]
    results.close()  # type: ignore[attr-defined]
    # Each time the listing itself is a child, too: of another number.
    assert len(children() - before) <= 1


def test_one_core_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert cores() == 1
    assert list(map_on_all_cores(square, range(9))) == [(n * n, False) for n in range(9)]


def test_memory_is_the_machine_s_or_the_container_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(processes, "_CONTAINER_MEMORY", limit)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert memory() == 4_096_000
    for text, found in (("max\n", 4_096_000), ("1000000\n", 1_000_000), ("9000000\n", 4_096_000)):
        limit.write_text(text, encoding="ascii")
        assert memory() == found
    monkeypatch.delattr(os, "sysconf")
    assert memory() is None


ALLOCATING = """
import ctypes, sys
from dragoman.processes import give_freed_memory_back, keep_freed_memory
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

def after_freeing(megabytes):
    before = resident()
    block = libc.malloc(megabytes << 20)
    ctypes.memset(block, 1, megabytes << 20)
    assert resident() - before >= megabytes - 1
    libc.free(block)
    return resident() - before

exec(sys.argv[1])
"""


@pytest.mark.parametrize(
    "what",
    [
        "keep_freed_memory(); assert after_freeing(100) >= 99",
        "keep_freed_memory(large_blocks=False); assert after_freeing(100) <= 1",
        "keep_freed_memory(large_blocks=False); assert after_freeing(20) >= 19",
        "keep_freed_memory(); kept = after_freeing(100); before = resident(); give_freed_memory_back(); "
        "assert before - resident() >= 99",
    ],
)
def test_freed_memory_is_kept_or_given_back_as_asked(what: str) -> None:
    subprocess.run([sys.executable, "-c", ALLOCATING, what], check=True)
