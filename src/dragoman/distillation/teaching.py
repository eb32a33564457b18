"""The teacher translates the sources, and the best of its translations become the student's pairs.

Of each source it gives its n best translations. What loops, is empty, far too long, a copy, or has lost a number or an
address is no translation; of those that are left, the one that is nearest to the reference by sentence BLEU is taken
(Kim and Rush 2016, section 3.3), and where there is no reference the first. A stopped translation goes on.

teaching/ in the student's directory gets

chosen.txt    the sources that there is time for
raw.tsv       the translations of each
train.tsv     the student's pairs
taught.json   how many, and what was left out; written last
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.corpus import read_lines
from dragoman.data.protected_spans import difference
from dragoman.data.tokenizer import Tokenizer
from dragoman.distillation.text import FEWEST_TAUGHT, plain_line
from dragoman.errors import DataError, DragomanError
from dragoman.evaluation.sentence_bleu import sentence_bleu
from dragoman.files import read_json, replacing, write_atomically
from dragoman.processes import map_on_all_cores
from dragoman.progress import Say, discard, waiting
from dragoman.quickstart.budget import TimeBudget
from dragoman.run_directory import RunDirectory
from dragoman.training.backtranslate import fault
from dragoman.translation.defects import TokenizedText, defects_of
from dragoman.translation.file import identity_of, translate_file
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator

SHARE = 0.4  # of the time that the teacher may take: what it has not translated by then is left out
TIMED = 256  # sources translated to see how long the others take
CHUNK = 2000  # sources judged at a time
_MAY_BE_LOST = re.compile(r"[\d@/{}%<>\u2190-\u2bff\U0001f000-\U0001faff]")


@dataclass(frozen=True)
class Taught:
    """How much the teacher translated, and what became of it."""

    sources: int  # that there were
    translated: int
    kept: int
    dropped: dict[str, int]
    others: int  # where another than the first translation was taken
    characters: int
    seconds_each: float
    seconds: float = 0.0  # of the command until here

    def lines(self) -> list[str]:
        dropped = [f"left out {count:,}: {rule}" for rule, count in self.dropped.items()]
        return [
            f"{self.translated:,} of {self.sources:,} sources translated, {self.kept:,} kept; of {self.others:,} "
            f"another translation than the first was nearer to the reference, or sound",
            *dropped,
        ]


class Lesson(NamedTuple):
    """A source with its reference, if it has one, and the teacher's translations."""

    source: str
    reference: str
    candidates: Sequence[str]


@dataclass
class JudgedLessons:
    """A chunk of lessons: the pairs to learn, and what was left out."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    others: int = 0


def seconds_before(run: RunDirectory) -> float:
    """Returns the seconds that earlier commands spent until the student's pairs were there, or on a part of them."""
    taught, planned, progress = (
        run.teaching_path / name for name in ("taught.json", "planned.json", "raw.tsv.progress")
    )
    try:
        if taught.is_file():
            return float(read_json(taught)["seconds"])
        if planned.is_file() and progress.is_file():
            return float(read_json(planned)["seconds_each"]) * int(read_json(progress)["lines"])
    except (DragomanError, KeyError, TypeError, ValueError):  # damaged: then it counts as nothing
        pass
    return 0.0


def teach(
    teachers: Sequence[RunDirectory],
    translator: Translator,
    run: RunDirectory,
    n_best: int,
    clock: TimeBudget,
    say: Say,
) -> Taught:
    """Translates as many sources as there is time for, and writes the student's pairs."""
    directory = run.teaching_path
    taught_path, raw = directory / "taught.json", directory / "raw.tsv"
    if taught_path.exists():
        return Taught(**read_json(taught_path))
    planned = _planned(translator, directory, n_best, clock, say)
    if not raw.exists():
        identity = [*identity_of([teacher.path for teacher in teachers], None), translator.engine.name, translator.tag]
        translate_file(
            translator,
            directory / "chosen.txt",
            raw,
            _line,
            identity=identity,
            n_best=n_best,
            say=say,
            repair=False,  # what has a defect is left out, or another candidate taken: decoding again takes longer
            protect=False,
        )
    taught = _write_pairs(translator.tokenizer, directory, planned)
    taught = Taught(**{**asdict(taught), "seconds": clock.elapsed})
    for line in taught.lines():
        say(f"  {line}")
    if taught.kept < FEWEST_TAUGHT:
        raise DataError(
            f"{run.path}: {taught.kept} of {taught.translated} translations are sound, at least {FEWEST_TAUGHT} are "
            f"needed; look at {raw}, or give another teacher"
        )
    write_atomically(taught_path, (json.dumps(asdict(taught), indent=2) + "\n").encode())
    return taught


def _planned(translator: Translator, directory: Path, n_best: int, clock: TimeBudget, say: Say) -> dict[str, Any]:
    """Writes the sources that there is time for, once."""
    path = directory / "planned.json"
    if path.exists():
        return read_json(path)
    sources = [line.split("\t")[0] for line in read_lines(directory / "sources.tsv")]
    with waiting("measuring how fast the teacher translates"):
        each = _seconds_each(translator, sources[:: max(1, len(sources) // TIMED)][:TIMED], n_best)
    seconds = max(0.0, SHARE * 60 * clock.minutes - clock.elapsed)
    count = min(len(sources), max(FEWEST_TAUGHT, int(seconds / each)))
    say(
        f"the teacher translates {count:,} of {len(sources):,} sources, about {count * each / 60:.1f} minutes"
        + ("" if count == len(sources) else f"; with more --minutes than {clock.minutes:g} it would be more")
    )
    write_atomically(directory / "chosen.txt", "".join(f"{source}\n" for source in sources[:count]).encode())
    planned = {"sources": len(sources), "translated": count, "seconds_each": each}
    write_atomically(path, (json.dumps(planned) + "\n").encode())
    return planned


def _seconds_each(translator: Translator, sample: Sequence[str], n_best: int) -> float:
    def translate(lines: Sequence[str]) -> float:
        began = time.perf_counter()
        list(translator.translate_stream(lines, n_best, warn=discard, repair=False, protect=False))
        return time.perf_counter() - began

    translate(sample[:8])  # loads what is loaded at the first call
    return max(1e-5, translate(sample) / len(sample))


def _line(translation: Translation) -> str:
    return "\t".join(plain_line(candidate.text) for candidate in translation.candidates) + "\n"


def _write_pairs(tokenizer: Tokenizer, directory: Path, planned: dict[str, Any]) -> Taught:
    """Judges all translations, and writes the pairs to learn."""
    kept = others = characters = 0
    dropped: Counter[str] = Counter()
    judge = partial(judged, tokenizer=tokenizer)
    path = directory / "train.tsv"
    with waiting("choosing among the translations"), replacing(path) as temporary, temporary.open("wb") as file:
        for found in map_on_all_cores(judge, _chunks(_lessons(directory))):
            file.write("".join(f"{source}\t{target}\n" for source, target in found.pairs).encode())
            kept += len(found.pairs)
            characters += sum(len(source) + len(target) for source, target in found.pairs)
            others += found.others
            dropped += found.dropped
    return Taught(
        planned["sources"],
        planned["translated"],
        kept,
        dict(dropped.most_common()),
        others,
        characters,
        planned["seconds_each"],
    )


def _lessons(directory: Path) -> Iterator[Lesson]:
    for line, translations in zip(
        read_lines(directory / "sources.tsv"), read_lines(directory / "raw.tsv"), strict=False
    ):
        source, _, reference = line.partition("\t")
        yield Lesson(source, reference, translations.split("\t"))


def _chunks(lessons: Iterator[Lesson]) -> Iterator[list[Lesson]]:
    while chunk := list(islice(lessons, CHUNK)):
        yield chunk


def judged(lessons: Sequence[Lesson], tokenizer: Tokenizer) -> JudgedLessons:
    """Takes of each lesson the sound translation that is nearest to the reference, or first."""
    result = JudgedLessons()
    for lesson in lessons:
        candidates = list(dict.fromkeys(lesson.candidates))
        source = TokenizedText(_words_alone(tokenizer.encode(lesson.source), tokenizer), lesson.source)
        encoded = tokenizer.encode_target_batch([*candidates, lesson.reference])
        *targets, reference = [_words_alone(ids, tokenizer) for ids in encoded]
        order = list(range(len(candidates)))
        if lesson.reference:
            nearness = [sentence_bleu(ids, reference) for ids in targets]
            order.sort(key=lambda index: -nearness[index])  # of equal ones, what the teacher likes best
        faults = []
        for index in order:
            wrong = None
            if not lesson.reference or candidates[index] != lesson.reference:  # "Tom." may well be "Tom."
                wrong = _fault(source, TokenizedText(targets[index], candidates[index]))
            if wrong is None:
                result.pairs.append((lesson.source, candidates[index]))
                result.others += index > 0
                break
            faults.append(wrong)
        else:
            result.dropped[faults[0]] += 1
    return result


def _words_alone(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The ids without those of case marks, which repeat where no word does."""
    marks = set(tokenizer.case_marks.values())
    return [token for token in ids if token not in marks] if marks else list(ids)


def _fault(source: TokenizedText, target: TokenizedText) -> str | None:
    """Says why a student should not learn this translation; None: it may."""
    defects = defects_of(source, target)
    if defects:
        return defects[0]
    if (wrong := fault(target.text, source.text)) is not None:
        return wrong
    # Most sentences have neither digits nor signs, and need no closer look.
    return "lost" if _MAY_BE_LOST.search(source.text) and difference(source.text, target.text).lost else None
