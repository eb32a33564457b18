"""Which run translates between which languages, what languages are called, and which one a text is in."""

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import UsageError
from dragoman.language_codes import checked_code, languages_of
from dragoman.rundir import RunDirectory


@dataclass(frozen=True)
class Pair:
    source: str
    target: str
    run: Path

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True)
class Detected:
    language: str
    confidence: float  # 0 to 100


def pair_of(text: str) -> Pair:
    """`en-de=runs/my`."""
    languages, equals, run = text.partition("=")
    source, dash, target = languages.partition("-")
    if not equals or not dash or not run:
        raise UsageError(f"serve: --pair {text}; write it as en-de=RUN")
    return Pair(checked_code(source), checked_code(target), Path(run))


def target_for(pair: Pair) -> str | None:
    """What to ask a run of several languages for; None: it has one."""
    known = RunDirectory.open(pair.run).read_config().data.target_languages
    return pair.target if known else None


def pairs_to_serve(
    runs: Sequence[Path], named: Sequence[str], source_language: str | None, target_language: str | None
) -> list[Pair]:
    """From the command line: runs whose languages are known, or said once for all of them, and named pairs."""
    if (source_language is None) != (target_language is None):
        raise UsageError("serve: --source-language and --target-language go together; give both")
    if source_language is not None and len(runs) != 1:
        raise UsageError(f"serve: --source-language is for one RUN, not {len(runs)}; use --pair en-de=RUN for each")
    if not runs and not named:
        raise UsageError(_how_to_get_one(Path("runs")))
    pairs = [pair_of(text) for text in named]
    for run in runs:
        if source_language is not None and target_language is not None:
            pairs.append(Pair(checked_code(source_language), checked_code(target_language), run))
        else:
            found = languages_of(RunDirectory.open(run))
            if found is None:
                raise UsageError(
                    f"serve: {run} does not say its languages; name them: dragoman serve --pair en-de={run}"
                )
            pairs.append(Pair(*found, run))
    taken: dict[str, Pair] = {}
    for pair in pairs:
        if pair.name in taken:
            raise UsageError(
                f"serve: {taken[pair.name].run} and {pair.run} both translate {pair.name}; give one run a pair"
            )
        if pair.source == pair.target:
            raise UsageError(f"serve: {pair.run} from {pair.source} to {pair.target}; give two languages")
        taken[pair.name] = pair
    return pairs


def _how_to_get_one(directory: Path) -> str:
    found = sorted(path.parent for path in directory.glob("*/config.json"))
    if found:
        return f"serve: which run? dragoman serve {found[0]}" + (
            f" (there are also {', '.join(map(str, found[1:4]))})" if found[1:] else ""
        )
    return (
        "serve: no model at hand; make one in ten minutes with `dragoman demo`, then `dragoman serve runs/demo`, "
        "or your own with `dragoman train --pairs my.tsv --out runs/my`"
    )


@functools.cache
def _identifier() -> Any:
    """The model takes a second to unpack, so once is enough; restricting a copy leaves it whole."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class LanguageDetector:
    """py3langid among the languages served: its model is in its package, nothing is fetched."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._identifier = copy.copy(_identifier())
        known = set(self._identifier.labels)
        # Of a language that it does not know nothing can be said: it is never detected.
        self.languages = [code for code in languages if code in known]
        if self.languages:
            self._identifier.set_languages(self.languages)

    def detect(self, texts: Sequence[str]) -> list[Detected]:
        """The most probable first, one for each language that is at all probable; by the length of the texts."""
        weights = [len(text) for text in texts]
        if not self.languages or not any(any(map(str.isalpha, text)) for text in texts):
            return [Detected("en", 0.0)]
        total: dict[str, float] = {}
        for text, weight in zip(texts, weights, strict=True):
            for language, probability in self._identifier.rank(text) if weight else ():
                total[str(language)] = total.get(str(language), 0.0) + float(probability) * weight
        shares = {language: round(100 * value / sum(weights)) for language, value in total.items()}
        ranked = sorted(shares.items(), key=lambda entry: -entry[1])
        return [Detected(language, float(share)) for language, share in ranked[:3] if share or language == ranked[0][0]]
