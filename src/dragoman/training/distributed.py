"""Trains with several processes: torch.distributed, under torchrun or started here for the cores of one machine.

A rank computes its share of each step's micro-batches; gradients are summed over ranks, and as the loss is already
divided by the tokens of the whole step, the sum is the mean over tokens. Alone, everything here does nothing, so that
the training loop reads the same for one process and for hundreds.
"""

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from dragoman.errors import ConfigError, DragomanError, UnheardError
from dragoman.processes import cores
from dragoman.progress import to_stderr

SharedT = TypeVar("SharedT")

GO_ON = "the same command goes on from the last checkpoint"
STARTING_SECONDS = 600.0  # that ranks may differ by at the first step, as some have more to import and read
MOST_PER_CORE = 4  # processes, or threads of each; more than that would only wait for each other
SETTLING_SECONDS = 10.0  # for the other ranks to notice as well that one is lost


class LostRankError(DragomanError):
    """Another process of this training ended or hangs. `noticed_first`: no other rank has reported it yet."""

    def __init__(self, message: str, hung: bool = False, noticed_first: bool = True) -> None:
        super().__init__(message)
        self.hung, self.noticed_first = hung, noticed_first


class Ranks:
    """This process's rank among the processes of a training, and their common operations."""

    def __init__(
        self,
        answer_seconds: float = 600.0,
        *,
        starting_seconds: float = STARTING_SECONDS,
        settling_seconds: float = SETTLING_SECONDS,
        size: int | None = None,
        store: Any = None,
        meetings: int = 0,
    ) -> None:
        """`size`, `store` and `meetings` are those of a group that has met already; without them the environment names
        the group, and this process joins it."""
        self.answer_seconds, self._settling_seconds = answer_seconds, settling_seconds
        self.rank = int(os.environ.get("RANK", 0))
        self.size = int(os.environ.get("WORLD_SIZE", 1)) if size is None else size
        self.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        self.leads = leads()
        self._meetings, self._when = meetings, ""  # of all ranks, counted by each: the same number on every one
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(self.device)
        self._patience = max(answer_seconds, starting_seconds)
        if store is not None:
            self._store = store
        elif self.size > 1 and dist.is_initialized():
            self._store = dist.distributed_c10d._get_default_store()  # no public name
        elif self.size > 1:
            self._join(timedelta(seconds=self._patience))

    def _join(self, timeout: timedelta) -> None:
        """Joins the process group. A group that torchrun has restarted gets a new store: the old one has the addresses
        of processes that are gone."""
        try:
            store, rank, size = next(iter(rendezvous("env://", timeout=timeout)))
        except RuntimeError:
            where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            raise LostRankError(f"starting: rank 0 of {self.size} cannot be reached at {where} within "
                                f"{self._patience:g} s; is its machine up, and the port open?") from None  # fmt: skip
        # Else the group's threads may still be at work when the interpreter ends, which aborts a process that was done.
        # What optimisers import later holds any group that is there by then, with its threads, beyond its end.
        import torch._dynamo  # noqa: F401

        atexit.register(leave)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = dist.PrefixStore(f"dragoman/{attempt}", store)  # type: ignore[attr-defined]
        with self.together("starting"):
            dist.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo",
                store=self._store,
                rank=rank,
                world_size=size,
                timeout=timeout,
            )

    def share(self, items: Sequence[SharedT]) -> Sequence[SharedT]:
        """Returns this rank's part of what all ranks have to do."""
        return items[self.rank :: self.size]

    def share_evenly(self, items: Sequence[SharedT]) -> Iterator[tuple[int, SharedT, float]]:
        """Yields number, item and weight of this rank's items. Every rank gets as many items, some of weight 0 when
        items run out: ranks that divide a model must pass through it together."""
        for first in range(0, len(items), self.size):
            number = first + self.rank
            yield (number, items[number], 1.0) if number < len(items) else (0, items[0], 0.0)

    def first(self, name: str, work: Callable[[], SharedT]) -> SharedT:
        """Lets rank 0 do the work before the others, however long that takes; the others then find its results."""
        if self.size == 1:
            return work()
        if not self.leads:
            while not self._store.check([name]):  # a collective would run into its timeout, a wait would hear no signal
                time.sleep(0.05)
            return work()
        result = work()
        self._store.set(name, "done")
        return result

    def sum(self, values: Tensor, step: int) -> Tensor:
        """Sums a tensor over all ranks, in place."""
        if self.size > 1:
            with self.together(f"step {step}"):
                dist.all_reduce(values)
            self._all_have_started()
        return values

    def divide_rows(self, function: Callable[[Tensor], Tensor], stacks: Iterable[Tensor]) -> Iterator[Sequence[Tensor]]:
        """Yields what a function makes of each stack of matrices, row by row. All ranks have the same stacks. On one
        machine each rank does its share of the rows; over a network, passing the results on may take longer."""
        if self.size == 1 or self.local_size < self.size or self.device.type != "cpu":
            yield from map(function, stacks)
            return
        stacks = list(stacks)
        if not stacks:
            return
        shares = [-(-len(stack) // self.size) for stack in stacks]  # rows of each rank, at most
        sizes = [share * stack[0].numel() for share, stack in zip(shares, stacks, strict=True)]
        own = stacks[0].new_zeros(sum(sizes))
        for part, stack in zip(own.split(sizes), stacks, strict=True):
            if len(rows := stack[self.rank :: self.size]):
                made = function(rows)
                part[: made.numel()] = made.reshape(-1)
        found = [torch.empty_like(own) for _ in range(self.size)]
        with self.together("the optimiser's step"):
            dist.all_gather(found, own)
        parts = zip(*(of_rank.split(sizes) for of_rank in found), strict=True)
        for share, of_ranks, stack in zip(shares, parts, stacks, strict=True):
            rows_of = [part.unflatten(0, (share, *stack.shape[1:])) for part in of_ranks]
            yield [rows_of[row % self.size][row // self.size] for row in range(len(stack))]

    def _all_have_started(self) -> None:
        """Shortens the timeout once all ranks are at work: from now on, a rank that does not answer hangs."""
        if self._patience > self.answer_seconds:
            self._patience = self.answer_seconds
            # There is no public function to change a timeout.
            dist.distributed_c10d._set_pg_timeout(timedelta(seconds=self._patience), dist.group.WORLD)

    def gather(self, value: Any) -> list[Any]:
        """Returns the values of all ranks, in the order of ranks, on every rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with self.together("between steps"):
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def together(self, when: str) -> Iterator[None]:
        """Wraps an operation that needs all ranks: if one is missing, the error says which."""
        self._meetings, self._when = self._meetings + 1, when
        try:
            if self.size > 1:
                self._store.set(f"arrived/{self.rank}", f"{self._meetings} {time.time()}")
            yield
        except RuntimeError as error:
            if not is_about_the_group(error):
                raise
            raise self._lost("timed out" in str(error).lower() or "timeout" in str(error).lower()) from None

    def _lost(self, hung: bool) -> LostRankError:
        """Makes the error for a lost rank. All ranks report what the first one noticed: the others often notice only
        that the first one left."""
        try:
            # The rank that is lost may be the one that holds the store.
            self._store.set_timeout(timedelta(seconds=self._settling_seconds))
            self._store.set(f"gives up/{self.rank}", "hung" if hung else "ended")
            missing = self._missing(hung)
            notices = [f"gives up/{rank}" for rank in range(self.size)]
            hung = any(self._store.get(key) == b"hung" for key in notices if self._store.check([key]))
            own_notice = f"{self.rank} {self._that_is(missing, hung)}"
            first_notice = self._store.compare_set("lost", "", own_notice).decode()
            return LostRankError(first_notice.split(" ", 1)[1], hung, noticed_first=first_notice == own_notice)
        except RuntimeError:
            return LostRankError(self._that_is([0], hung), hung)

    def _that_is(self, missing: Sequence[int], hung: bool) -> str:
        who, what = ", ".join(map(str, missing)), f"did not answer within {self._patience:g} s" if hung else "ended"
        return f"{self._when}: rank {who} of {self.size} {what}; {GO_ON}"

    def _missing(self, hung: bool) -> list[int]:
        """Returns the ranks that did not arrive; if all did, those that have not reported an error; if all have, the
        last one to arrive, which was too late for the first."""
        arrived = [
            self._store.get(f"arrived/{rank}").split() if self._store.check([f"arrived/{rank}"]) else [b"0", b"0"]
            for rank in range(self.size)
        ]
        late = [rank for rank, (meeting, _) in enumerate(arrived) if int(meeting) < self._meetings]
        if hung and late:
            return late
        until = time.monotonic() + self._settling_seconds
        while True:
            missing = [rank for rank in range(self.size) if not self._store.check([f"gives up/{rank}"])]
            if len(missing) <= 1 or time.monotonic() > until:
                break
            time.sleep(0.1)
        return missing or [max(range(self.size), key=lambda rank: float(arrived[rank][1]))]


class TrainingClock:
    """Measures the seconds of a training so far, by the first rank's clock. Rates and the end of a budget in minutes
    depend on it: with clocks of their own, ranks would train at different rates and stop at different steps."""

    def __init__(self, ranks: Ranks, before: float, now: Callable[[], float]) -> None:
        """`before`: seconds of training before this process."""
        self._ranks, self._now = ranks, now
        self._start = now() - before if ranks.leads else 0.0

    def part(self) -> float:
        """Returns this rank's part of a sum over all ranks that gives the time: 0 on all but the first."""
        return self._now() - self._start if self._ranks.leads else 0.0

    def agreed(self) -> float:
        """Returns the time when there is no sum to send it with. All ranks must call this together."""
        return float(self._ranks.gather(self.part())[0])


def is_about_the_group(error: RuntimeError) -> bool:
    """Tells whether an error is of the process group, not of the computation. gloo's errors have no class, but begin
    with the name of its file."""
    return isinstance(error, dist.DistError) or "gloo" in str(error).lower() or "Operation timed out" in str(error)


def leave() -> None:
    """Leaves the process group, if this process is in one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def leads() -> bool:
    """Tells whether this is the first rank, which alone writes messages, logs and checkpoints."""
    return int(os.environ.get("RANK", 0)) == 0


def started_by_torchrun() -> bool:
    """Tells whether torchrun, or `launch`, started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def require_room(processes: int, threads: int) -> None:
    """Raises a ConfigError for more processes or threads than this machine can reasonably start."""
    most = max(MOST_PER_CORE * cores(), torch.cuda.device_count())
    for name, asked in (("processes", processes), ("threads", threads)):
        if asked > most:
            raise ConfigError(
                f"train.{name} = {asked}; must be at most {most} here, {MOST_PER_CORE} for each of {cores()} cores; "
                f"0 leaves the choice to Dragoman"
            )


def processes_for(asked: int, micro_batches: int, threads: int) -> int:
    """Returns how many processes to train with. If 0 are asked for: one for each GPU, or as many as there are cores for
    `threads` each (0: one each), but no more than there are micro-batches in a step.

    Processes that share a step wait less for each other than threads that share a small product.
    """
    if asked:
        return asked
    available = torch.cuda.device_count() or cores() // max(1, threads)
    return max(1, min(available, micro_batches))


def threads_for(asked: int, processes: int) -> int:
    """Returns the threads of each process; 0 divides the cores among the processes."""
    return asked or max(1, cores() // processes)


def in_words(processes: int, threads: int, chosen: bool) -> str:
    """Describes processes and threads, as in `2 processes of 1 thread each`, and whether they are too many."""
    of_each = f"{threads} thread{'s' if threads > 1 else ''}"
    in_use = of_each if processes == 1 else f"{processes} processes of {of_each} each"
    available = f"{cores()} core{'s' if cores() > 1 else ''}"
    if processes * threads > cores():
        return f"{in_use} (more than {available}: they wait for each other)"
    if chosen and processes > 1:
        return f"{in_use} (train.processes = 0 takes {available}; --set train.processes=1 takes one process)"
    return in_use


def launch(processes: int, work: Callable[..., object], *arguments: Any) -> None:
    """Runs `work(*arguments)` in several processes of this machine, by torchrun's launcher; fails if one fails."""
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in [name for name in logging.root.manager.loggerDict if name.startswith("torch.")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the ranks print their own errors
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=f"dragoman-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        shutdown_timeout=600,  # so that a rank that is asked to stop can finish its step and save
    )
    try:
        with _handlers_kept():
            elastic_launch(config, _as_rank)(work, *arguments)
    except ChildFailedError as error:
        codes = [failure.exitcode for failure in error.failures.values()]
        code = next((code for code in codes if code > 1), 1)
        if min(codes) < 0:
            raise LostRankError(f"a process of this training was killed (signal {-min(codes)}); {GO_ON}") from None
        raise SystemExit(code) from None
    except SignalException:
        raise KeyboardInterrupt from None


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restores our signal handlers at the end: the launcher replaces them, and leaves its own in place."""
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in stopping}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)


def _as_rank(work: Callable[..., object], *arguments: Any) -> None:
    """Runs one rank from start to end. An error is printed as one line, as the command line does for one process."""
    os.setpgrp()  # Ctrl-C reaches only the launcher, which passes it on once
    if not leads():  # until the loop handles it: they have nothing to save, and may be waiting in C for the first
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        work(*arguments)
    except LostRankError as error:
        # The rank that ended has printed its own error, unless it was killed.
        if error.noticed_first if error.hung else leads():
            _complain(error)
        sys.exit(1)
    except DragomanError as error:
        _complain(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        leave()


def _complain(error: DragomanError) -> None:
    with suppress(UnheardError):
        to_stderr(f"dragoman: {error}")
