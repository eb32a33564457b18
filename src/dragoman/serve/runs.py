"""The runs that can be watched in the page: their logs as they grow, replays of their checkpoints, comparisons."""

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.data.dataset import validation_pairs
from dragoman.errors import UsageError
from dragoman.evaluation.compare import RunComparison, TestSet, compare_runs, shared_validation_set
from dragoman.run_directory import WEIGHTS, RunDirectory, step_of
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.pairs import ServedPair, target_for
from dragoman.training.log_reader import (
    History,
    LogFollower,
    Point,
    TrainingState,
    Update,
    kept_steps,
    read_history,
    state_of,
)
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.inspector import Inspection, Inspector

LOOK_EVERY = 0.5  # seconds between two looks at a log
PINNED = 5  # sentences that are watched while a run learns,
SENTENCES_READ = 200  # taken from so many of its validation set
LOADED_AT_ONCE = 2  # checkpoints in memory: one of each of two runs


@dataclass(frozen=True)
class WatchedRun:
    """A run under the name that the page knows it by."""

    name: str
    pair: ServedPair
    run: RunDirectory


@dataclass(frozen=True)
class RunProgress:
    """What a run's curves do not hold: its state and kept checkpoints, the memory of the process that trains it, and at
    its end what each kind of weights scored."""

    state: TrainingState
    checkpoints: tuple[int, ...]
    memory: int | None
    end: Point | None


@dataclass(frozen=True)
class PinnedSentence:
    """A sentence as a checkpoint translates it: log-probabilities of its own translation and of the reference."""

    translation: str
    log_probability: float
    per_token: float
    reference_per_token: float | None  # the mean over the reference's tokens, the end symbol's among them


class NobodyWaitsError(Exception):
    """The client that asked for a comparison has left."""


class WatchedRuns:
    def __init__(self, pairs: Sequence[ServedPair], test_set: TestSet | None = None) -> None:
        pairs = _few_of_each_run(pairs)
        self.watched = {
            name: WatchedRun(name, pair, RunDirectory(pair.run))
            for name, pair in zip(_names(pairs), pairs, strict=True)
        }
        self.test_set = test_set
        self._loaded: OrderedDict[tuple[str, int | None, int], Inspector] = OrderedDict()
        self._comparing = threading.Lock()
        self._closing = False

    def close(self) -> None:
        """Ends the streams of all who follow a log: a service that stops waits for its answers to end."""
        self._closing = True

    def progress(self, watched: WatchedRun) -> tuple[History, RunProgress]:
        history = read_history(watched.run)
        return history, _progress(watched.run, history)

    async def follow(self, watched: WatchedRun) -> AsyncIterator[tuple[Update | None, RunProgress | None]]:
        """Yields at every look what is new in the log, and the run's progress if it changed; ends with the service."""
        follower, last = LogFollower(watched.run), None
        while not self._closing:
            update = await asyncio.to_thread(follower.read)
            now = await asyncio.to_thread(_progress, watched.run, follower.history)
            yield update, now if now != last else None
            last = now
            await asyncio.sleep(LOOK_EVERY)

    def replay(self, watched: WatchedRun, step: int | None, text: str, translation: str | None = None) -> "Inspection":
        """Translates a sentence with a kept checkpoint, or looks into a translation that is given; step None: with the
        run's own model. Imports torch."""
        return self._inspector(watched, step).inspect(text, translation)

    def sentences(self, watched: WatchedRun) -> list[tuple[str, str]]:
        """Sentences of the validation set to watch while a run learns: five from all over it, neither long nor single
        words. The same ones each time."""
        pairs = [pair for pair in validation_pairs(watched.run.path, SENTENCES_READ) if 4 <= len(pair[0].split()) <= 16]
        distance = max(1, len(pairs) // PINNED)
        return pairs[::distance][:PINNED]

    def pinned(self, watched: WatchedRun, step: int, pairs: Sequence[tuple[str, str]]) -> list[PinnedSentence]:
        """Translates sentences with a kept checkpoint, and scores their references by it. Imports torch."""
        inspector = self._inspector(watched, step)
        found = []
        for source, reference in pairs:
            own = inspector.inspect(source)
            reference_scored = None if not reference.strip() else _per_token(inspector.inspect(source, reference))
            found.append(PinnedSentence(own.translation, own.log_probability, _per_token(own), reference_scored))
        return found

    def compare(
        self,
        first: WatchedRun,
        second: WatchedRun,
        translators: Callable[[WatchedRun], Translator],
        sentences: int,
        report: Callable[[int, int], None],
    ) -> RunComparison:
        """Compares two runs on the test set, or on the validation pairs that they share. Slow; one at a time."""
        if first.pair.name != second.pair.name:
            raise UsageError(
                f"{first.name} is {first.pair.name}, {second.name} {second.pair.name}; compare like with like"
            )
        if not self._comparing.acquire(blocking=False):
            raise OverloadedError(1, 1, 5)
        try:
            test = self.test_set or shared_validation_set(first.run, second.run, sentences)
            kept = TestSet(test.name, test.sources[:sentences], test.references[:sentences])
            if len(kept.sources) < len(test.sources):
                kept = TestSet(f"the first {sentences:,} of {test.name}", kept.sources, kept.references)
            both = translators(first), translators(second)
            return compare_runs((first.run, second.run), both, kept, first.pair.target, told=report)
        finally:
            self._comparing.release()

    def _inspector(self, watched: WatchedRun, step: int | None) -> "Inspector":
        checkpoint = None
        if step is not None:
            checkpoint = next((path for path in watched.run.checkpoints() if step_of(path) == step), None)
            if checkpoint is None:
                kept = ", ".join(f"{step:,}" for step in kept_steps(watched.run)) or "none"
                raise UsageError(f"{watched.name} does not keep step {step:,}; kept: {kept}")
        weights = watched.run.model_path if checkpoint is None else checkpoint / WEIGHTS
        # A run that is trained again in the same directory has the same names for other weights.
        written = weights.stat().st_mtime_ns if weights.exists() else 0
        key = (watched.name, step, written)
        if key not in self._loaded:
            from dragoman.decoding.engines.torch_engine import ReferenceEngine
            from dragoman.inspection.explain import Explainer
            from dragoman.inspection.inspector import Inspector

            name = None if checkpoint is None else checkpoint.name
            pair = watched.pair
            to, source = target_for(pair), pair.source
            loaded = Translator.load(pair.run, checkpoint=name, engine="reference", to=to, source=source)
            assert isinstance(loaded.engine, ReferenceEngine)
            # Words are not aligned here, so no heads are chosen for that: it takes longer than all the rest.
            self._loaded[key] = Inspector(Explainer(loaded.engine, loaded.search, tag=loaded.tag))
            while len(self._loaded) > LOADED_AT_ONCE:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(key)
        return self._loaded[key]


def _progress(run: RunDirectory, history: History) -> RunProgress:
    return RunProgress(state_of(run, history), tuple(kept_steps(run)), run.memory(), history.end)


def _few_of_each_run(pairs: Sequence[ServedPair]) -> list[ServedPair]:
    """Both directions of a run are watched and compared; of one of many languages the first pair stands for all."""
    counts = Counter(pair.run for pair in pairs)
    firsts = {pair.run: pair for pair in reversed(pairs)}
    return [pair for pair in pairs if counts[pair.run] <= 2 or pair is firsts[pair.run]]


def _names(pairs: Sequence[ServedPair]) -> list[str]:
    """The names of the runs' directories, numbered where two are the same."""
    names = [pair.run.resolve().name or "run" for pair in pairs]
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return result


def _per_token(inspection: "Inspection") -> float:
    return inspection.log_probability / len(inspection.log_probabilities)
