"""The loaded models of a service: a translator for each language pair, the explainers and the parser that need torch.

However many language pairs a run translates, its weights are loaded once. Languages that no run translates between are
reached through a third one, the pivot, where two runs lead there.

A run that has no model yet is served as soon as it has one, and a run that got a newer model goes on with the old one
until the newer one is loaded.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError, UsageError, require_torch
from dragoman.run_directory import RunDirectory
from dragoman.serve.pairs import PivotPair, ServedPair, Way
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.explain import Explainer
    from dragoman.parsing.parser import Parser
    from dragoman.serve.runs import WatchedRun

MOST_CHECKED = 500  # pairs: so many are not written by hand, and those of a pattern are the run's own
Stamp = tuple[int, int] | None  # of a run's model: when it was written, and its size


class ModelPool:
    """Holds the loaded models of the served language pairs, and takes newer ones when they are there."""

    def __init__(
        self,
        pairs: Sequence[ServedPair],
        load: Callable[[ServedPair], Translator],
        parser_run: Path | None = None,
        pivot: bool = True,
    ) -> None:
        """Loads the first run of each language pair, if it has a model. pivot: languages are reached through a third
        one, too."""
        self._load = load
        self._parser_run = parser_run
        self._may_pivot = pivot
        first = {pair.name: pair for pair in reversed(pairs)}
        runs = dict.fromkeys(pair.run for pair in first.values())
        has_model = {run: RunDirectory.open(run).has_model() for run in runs}
        self._waiting = {name: pair for name, pair in first.items() if not has_model[pair.run]}
        self.pairs = {pair.name: pair for pair in pairs if pair == first[pair.name] and pair.name not in self._waiting}
        self._stamps = {run: model_stamp(run) for run in runs if has_model[run]}  # of the loaded models
        self._of_runs = {pair.run: load(pair) for pair in _one_of_each_run(self.pairs.values())}
        self._translators: dict[str, Translator] = {}
        self.version = 0  # counts the models that were loaded since
        for name in self.pairs if len(self.pairs) <= MOST_CHECKED else ():
            self.translator(name)  # what a run does not translate into is told now, and not to a client
        self._pivots: dict[str, PivotPair] | None = None  # None: not looked for since the pairs changed
        self._renewals: dict[Path, asyncio.Task[None]] = {}
        self._to_compare: dict[str, tuple[Stamp, Translator]] = {}  # runs that are watched but do not translate
        self._explainers: dict[str, Explainer] = {}
        self._parser: Parser | None = None
        self._expects_explanations = False
        # torch shares the cores with the translation of everyone else: one explanation at a time.
        self.torch_thread = ThreadPoolExecutor(1, thread_name_prefix="explain")

    def pair(self, source: str, target: str) -> ServedPair | None:
        return self.pairs.get(f"{source}-{target}")

    def way(self, source: str, target: str) -> Way | None:
        """How to translate between two languages: with a run, else through a pivot; None: not at all."""
        return self.pair(source, target) or self.pivots.get(f"{source}-{target}")

    @property
    def pivots(self) -> dict[str, PivotPair]:
        """The languages that no run translates between, and that one pivot connects. Of several pivots the one whose
        first run was given first."""
        if self._pivots is None:
            self._pivots = pivots_of(list(self.pairs.values())) if self._may_pivot else {}
        return self._pivots

    def of_run(self, run: Path) -> Translator:
        """A translator of a run, into any of its languages: for what they have in common."""
        return self._of_runs[run]

    def translator(self, pair_name: str) -> Translator:
        """The translator of a language pair; those of one run share its weights."""
        found = self._translators.get(pair_name)
        if found is None:
            pair = self.pairs[pair_name]
            found = self._of_runs[pair.run]
            if found.has_languages:
                found = found.for_languages(pair.source, pair.target)
            self._translators[pair_name] = found
        return found

    @property
    def waiting(self) -> list[str]:
        """The language pairs whose run has no model yet."""
        return list(self._waiting)

    def stamp(self, pair_name: str) -> Stamp:
        """The stamp of the model that is loaded for a language pair."""
        return self._stamps[self.pairs[pair_name].run]

    def warm_up(self) -> None:
        """Translates something with each model: an engine loads its code for one sentence and for several on first
        use, and no client should wait for that."""
        for translator in self._of_runs.values():
            _warm(translator)

    async def refresh(self) -> None:
        """Loads the runs that have their first model now, and begins to load newer models in the background."""
        for pair in _one_of_each_run(self._waiting.values()):
            if RunDirectory(pair.run).has_model():
                stamp = model_stamp(pair.run)
                translator = await asyncio.to_thread(self._load, pair)
                if pair.name in self._waiting:  # no other request did it meanwhile
                    self._serve(pair.run, translator, stamp)
        for pair in _one_of_each_run(self.pairs.values()):
            run = pair.run
            if run not in self._renewals and (stamp := model_stamp(run)) not in (None, self._stamps[run]):
                self._renewals[run] = asyncio.create_task(self._renew(pair, stamp))

    def _serve(self, run: Path, translator: Translator, stamp: Stamp) -> None:
        """Serves all pairs of a run that has its first model."""
        self._of_runs[run], self._stamps[run] = translator, stamp
        for name in [name for name, pair in self._waiting.items() if pair.run == run]:
            self.pairs[name] = self._waiting.pop(name)
        self._pivots = None
        self.version += 1

    async def _renew(self, pair: ServedPair, stamp: Stamp) -> None:
        def load() -> Translator:
            translator = self._load(pair)
            _warm(translator)
            return translator

        def replace() -> None:
            self._of_runs[pair.run] = translator
            for name in [name for name, one in self.pairs.items() if one.run == pair.run]:
                self._translators.pop(name, None)
                self._explainers.pop(name, None)
            self._stamps[pair.run] = stamp
            self.version += 1

        try:
            translator = await asyncio.to_thread(load)
            # In the thread of explanations, so that none is begun with one model and kept for the other.
            await asyncio.get_running_loop().run_in_executor(self.torch_thread, replace)
        except DragomanError as error:  # the loaded model goes on translating
            print(f"dragoman: {error}", file=sys.stderr)
            self._stamps[pair.run] = stamp  # so that this one is not tried again
        finally:
            del self._renewals[pair.run]

    def translator_of(self, watched: "WatchedRun") -> Translator:
        """The translator of any watched run, whether it serves its language pair or not."""
        if self.pairs.get(watched.pair.name) == watched.pair:
            return self.translator(watched.pair.name)
        stamp = model_stamp(watched.pair.run)
        if watched.name not in self._to_compare or self._to_compare[watched.name][0] != stamp:
            self._to_compare[watched.name] = stamp, self._load(watched.pair)
        return self._to_compare[watched.name][1]

    def expect_explanations(self) -> None:
        """Loads torch and the models for it in the background: who opens the page will soon look inside."""
        if not self._expects_explanations:
            self._expects_explanations = True
            for pair in _one_of_each_run(self.pairs.values()):
                self.torch_thread.submit(lambda pair: self.explainer(pair).alignment_heads, pair)
            if self.has_parser:
                self.torch_thread.submit(self.parser)

    def explainer(self, pair: ServedPair) -> "Explainer":
        """The explainer of a language pair, loaded when first asked for. Only for the thread `torch_thread`."""
        if pair.name not in self._explainers:
            from dragoman.documents.aligner import explainer_of

            _use_one_thread()
            explainer = explainer_of(self.translator(pair.name), pair.run)
            if explainer is None:
                raise UsageError(f"{pair.run}: no Transformer; only those can be looked into")
            self._explainers[pair.name] = explainer
        return self._explainers[pair.name]

    @property
    def has_parser(self) -> bool:
        """Whether a parser is served, and has a model."""
        return self._parser_run is not None and RunDirectory.open(self._parser_run).has_model()

    def parser(self) -> "Parser":
        """The parser, loaded when first asked for. Only for the thread `torch_thread`."""
        if self._parser is None:
            from dragoman.parsing.parser import Parser

            assert self._parser_run is not None
            _use_one_thread()
            self._parser = Parser.load(self._parser_run)
        return self._parser

    async def stop_renewing(self) -> None:
        """Gives up the models that are being loaded."""
        tasks = list(self._renewals.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Waits for the explanations that were asked for."""
        self.torch_thread.shutdown()


def model_stamp(run: Path) -> Stamp:
    """What tells a run's model from an older one; None: the run translates with a checkpoint."""
    try:
        found = RunDirectory(run).model_path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def pivots_of(pairs: Sequence[ServedPair]) -> dict[str, PivotPair]:
    """The pairs of languages, by name, that no run translates between and that two do, one after the other."""
    onward: dict[str, dict[str, ServedPair]] = {}
    for pair in pairs:
        onward.setdefault(pair.source, {})[pair.target] = pair
    found: dict[str, PivotPair] = {}
    for first in pairs:
        there = onward[first.source]
        for target in onward.get(first.target, {}).keys() - there.keys() - {first.source}:
            pivoted = PivotPair(first, onward[first.target][target])
            found.setdefault(pivoted.name, pivoted)
    return dict(sorted(found.items()))


def _one_of_each_run(pairs: Iterable[ServedPair]) -> list[ServedPair]:
    """The first pair of each run, which stands for all of them."""
    return list({pair.run: pair for pair in reversed(list(pairs))}.values())[::-1]


def _warm(translator: Translator) -> None:
    for texts in (["a"], ["a", "b"]):
        list(translator.translate_stream(texts, scores=False, repair=False, whole=True, protect=False))


def _use_one_thread() -> None:
    """Keeps torch to one thread. A sentence is little work: a second thread gains next to nothing, and when something
    else takes its core the first one waits for it, a hundred times in a pass."""
    require_torch("looking inside")
    import torch

    torch.set_num_threads(1)
