"""Scores a run before and after a fine-tuning on sentences of both domains, in a time that is in proportion to it."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dragoman.config import CorpusConfig
from dragoman.data.corpus import read_lines
from dragoman.evaluation import metrics
from dragoman.processes import give_freed_memory_back
from dragoman.progress import discard
from dragoman.run_directory import RunDirectory
from dragoman.training.finetune_languages import load_for_tagged
from dragoman.translation.translator import Translator

FIRST = 32  # sentences that show how quick a model is
LEAST_SECONDS = 60.0  # of measuring, however short the training was


class Domain(NamedTuple):
    """Sentences to measure with, and their references."""

    sources: list[str]
    references: list[str]

    @classmethod
    def read(cls, corpus: CorpusConfig) -> "Domain":
        assert corpus.source is not None
        assert corpus.target is not None
        return cls(list(read_lines(corpus.source)), list(read_lines(corpus.target)))

    def shuffled(self) -> "Domain":
        """The same pairs, so that the first of them stand for all."""
        order = random.Random(1).sample(range(len(self.sources)), len(self.sources))
        return Domain([self.sources[index] for index in order], [self.references[index] for index in order])


def compare_domains(
    before: RunDirectory,
    after: RunDirectory,
    domains: Mapping[str, Domain],
    languages: tuple[str, str] | None,
    language: str | None,
    say: Callable[[str], None],
) -> dict[str, metrics.Comparison]:
    """Translates the domains with both runs and compares their scores. With as many sentences as can be had in the time
    of the training, as a large model takes seconds for each."""
    seconds = max(LEAST_SECONDS, seconds_trained(after)) / (2 * len(domains))  # for each run and domain
    drawn = {name: domain.shuffled() for name, domain in domains.items()}
    outputs: dict[str, list[list[str]]] = {name: [] for name in drawn}
    for run, when in ((before, "before"), (after, "after")):  # one model in memory at a time
        translator = load_for_tagged(run, languages)
        for name, (sources, _) in drawn.items():
            say(f"translating the {name} domain {when}")
            if outputs[name]:
                outputs[name].append(translator.translate(sources[: len(outputs[name][0])], warn=discard))
                continue
            outputs[name].append(translate_within(seconds, translator, sources))
            if (count := len(outputs[name][0])) < len(sources):
                say(f"{count:,} of {len(sources):,} measure it: more would take longer than the training did")
        del translator
        give_freed_memory_back()

    def compared(name: str) -> metrics.Comparison:
        first, second = outputs[name]
        return metrics.compare(first, second, [[line] for line in drawn[name].references[: len(first)]], language)

    return {name: compared(name) for name in drawn}


def translate_within(
    seconds: float, translator: Translator, sources: Sequence[str], now: Callable[[], float] = time.monotonic
) -> list[str]:
    """Translates the first of these lines: at least a few, and as many as that says can be had in the time."""
    begin = now()
    outputs = translator.translate(sources[:FIRST], warn=discard)
    each = (now() - begin) / max(1, len(outputs))
    more = len(sources) if each <= 0 else int(seconds / each)
    return outputs + translator.translate(sources[FIRST : max(FIRST, more)], warn=discard)


def seconds_trained(run: RunDirectory) -> float:
    """How long a training took, as its log says."""
    return max((float(event.get("seconds", 0.0)) for event in run.events() if event.get("event") == "end"), default=0.0)
