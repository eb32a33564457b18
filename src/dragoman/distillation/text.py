"""Collects the text of a distillation: what the teacher translates, with references where there are any, and what the
student is measured with. This is done once: a second call finds the files.

In the student's directory, teaching/ holds

about.json              what it was made from, what was found and what was left out; written last
sources.tsv             a source sentence, a tab, and its reference or nothing: in the order in which they are taught
valid.source, ...       what the weights and the number type are chosen by, with its references
test.source, ...        what is measured with

Noise that the student is to withstand is put into the sources here, before the teacher translates: what the student
learns of a sentence with a typo is what the teacher makes of that very sentence.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, DataConfig, TextChange
from dragoman.data.cleaning import check_corpora
from dragoman.data.corpus import SentencePair, file_digest, read_lines
from dragoman.data.dataset import prepared_directory
from dragoman.data.splitting import HeldOut, identity_of, split_pairs
from dragoman.data.text_changes import changed
from dragoman.errors import DataError
from dragoman.files import directory_made, read_json, write_atomically
from dragoman.progress import Say, discard, waiting
from dragoman.quickstart.text import QuickstartText, write_held_out
from dragoman.run_directory import RunDirectory
from dragoman.training.finetune_text import OldText, divided, old_text
from dragoman.translation.file import identity_of as identity_of_runs
from dragoman.translation.translator import Translator

NOISE: tuple[TextChange, ...] = ("typos", "lower_case", "upper_case", "no_end_punctuation")
FEWEST_TAUGHT = 50  # sources; with fewer there is nothing to learn from
FEWEST_MEASURED = 20  # sentences in each of the two sets that are held out
MOST_MEASURED = 1000
HELD_OUT_SHARE = 20  # where nothing was held out before: one of so many for each set
FORMAT = 1  # of about.json


@dataclass(frozen=True)
class TextToTeach:
    """The text that a distillation is asked to use."""

    pairs: CorpusConfig | None = None  # None: what the first teacher was trained on
    valid: CorpusConfig | None = None  # to choose by and to measure with; None: what the teacher was validated with
    text: tuple[Path, ...] = ()  # more sources, one a line
    noise: float = 0.0  # the share of the sources that is changed
    n_best: int = 1
    seed: int = 1
    languages: tuple[str, str] | None = None  # where they are known


@dataclass
class Found:
    """The text before it is written."""

    pairs: list[SentencePair] = field(default_factory=list)  # with references
    valid: HeldOut = field(default_factory=dict)
    test: HeldOut = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)  # without
    dropped: Counter[str] = field(default_factory=Counter)
    caveats: list[str] = field(default_factory=list)  # why figures may be too good
    agreement: bool = False  # the references that measure are the teacher's own translations


def prepare_text(
    teachers: Sequence[RunDirectory], translator: Translator, run: RunDirectory, asked: TextToTeach, say: Say
) -> QuickstartText:
    """Writes the text, or finds what an earlier call wrote."""
    directory, about_path = run.teaching_path, run.teaching_path / "about.json"
    made_from = _made_from(teachers, translator, asked)
    if about_path.exists():
        about = read_json(about_path)
        for name, value in made_from.items():
            if about["made_from"].get(name) != value:
                raise DataError(f"{run.path}: was begun with other {name.replace('_', ' ')}; give another --out")
        return QuickstartText(directory, about)
    if run.config_path.exists():
        raise DataError(f"{run.path}: holds a run, and none of a distillation; give another --out")
    found = _collect(teachers, translator, asked, say)
    lines, noise = _ordered(found, asked)
    with directory_made(directory):
        write_atomically(directory / "sources.tsv", "".join(f"{s}\t{t}\n" for s, t in lines).encode())
        for part, held_out in (("valid", found.valid), ("test", found.test)):
            write_held_out(directory, part, held_out)
        first = "".join(f"{source}\t{targets[0]}\n" for source, targets in found.valid.items())
        write_atomically(directory / "valid.tsv", first.encode())
        about = {
            "made_from": made_from,
            "languages": asked.languages and list(asked.languages),
            "with_reference": len(found.pairs),
            "without_reference": len(found.sources),
            "noise": dict(noise),
            "dropped": dict(found.dropped),
            "held_out": {"valid": len(found.valid), "test": len(found.test)},
            "caveats": found.caveats,
            "agreement": found.agreement,
        }
        write_atomically(about_path, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
    say(
        f"{len(found.pairs):,} sources with a reference and {len(found.sources):,} without, {noise.total():,} of them "
        f"changed to be read all the same; held out: {len(found.valid):,} to choose by, {len(found.test):,} to measure"
    )
    for caveat in found.caveats:
        say(f"  but {caveat}")
    return QuickstartText(directory, about)


def _made_from(teachers: Sequence[RunDirectory], translator: Translator, asked: TextToTeach) -> dict[str, Any]:
    def digests(corpus: CorpusConfig | None) -> list[str]:
        files = () if corpus is None else (corpus.pairs, corpus.source, corpus.target)
        return [file_digest(file) for file in files if file is not None]

    return {
        "teachers": identity_of_runs([run.path for run in teachers], None),
        "target_language": translator.tag,
        "pairs": digests(asked.pairs),
        "valid_pairs": digests(asked.valid),
        "text": [file_digest(str(path)) for path in asked.text],
        "noise": asked.noise,
        "n_best": asked.n_best,
        "seed": asked.seed,
    }


def _collect(teachers: Sequence[RunDirectory], translator: Translator, asked: TextToTeach, say: Say) -> Found:
    """Reads everything, holds out what measures, and leaves out what shares a sentence with it."""
    found = Found()
    with waiting("reading the text to teach with"):
        held_out = _read_pairs(teachers, translator, asked, found, say)
        found.sources = list(_read_sources(asked.text, translator, found.dropped))
    if asked.text and not found.sources:
        raise DataError(f"{', '.join(map(str, asked.text))}: no sentence in it; give text, one sentence a line")
    if not held_out:
        held_out = _hold_out(found, translator, asked.seed, say)
    found.valid, found.test = held_out
    if min(len(found.valid), len(found.test)) < FEWEST_MEASURED:
        raise DataError(
            f"{len(found.test)} sentences to measure with, at least {FEWEST_MEASURED} are needed; give pairs that the "
            f"teacher has not learned: --valid-pairs FILE, twice as many"
        )
    _note_learned(teachers, translator, found, say)
    _leave_out_measured(found)
    taught = len(found.pairs) + len(found.sources)
    if taught < FEWEST_TAUGHT:
        raise DataError(
            f"{taught} sentences to teach with, at least {FEWEST_TAUGHT} are needed; give more: --text FILE, or --pairs"
        )
    return found


def _read_pairs(
    teachers: Sequence[RunDirectory], translator: Translator, asked: TextToTeach, found: Found, say: Say
) -> tuple[HeldOut, HeldOut] | None:
    """Reads pairs to teach with into `found`; returns what was held out of them, if that is known."""
    first = teachers[0]
    config, tag = first.read_config(), translator.tag
    left_text = prepared_directory(first.path) is not None or bool(config.data.train)
    old = OldText([], [], [])
    if left_text and (asked.pairs is None or asked.valid is None):
        old = old_text(first, config, translator.tokenizer, asked.pairs is None, say)
    if asked.pairs is None:
        learned = chain.from_iterable(pairs() for pairs, _ in old.train)
        found.pairs = list(_plain(_without_tag(learned, tag)))
    else:
        found.pairs = list(_plain(_cleaned(asked.pairs, asked.seed)))
    if asked.valid is not None:
        return _halves(_plain(_cleaned(asked.valid, asked.seed)))
    about_path = first.about_quickstart_text_path
    held_out = list(_plain(_without_tag(old.held_out, tag)))
    if about_path.is_file() and held_out and not tag:  # a quickstart kept test sentences that chose nothing
        kept = QuickstartText(first.quickstart_text_path, read_json(about_path))
        test = dict(zip(kept.source("test"), kept.references("test"), strict=True))
        return _grouped(held_out), dict(islice(test.items(), MOST_MEASURED))
    return _halves(held_out) if held_out else None


def _cleaned(corpus: CorpusConfig, seed: int) -> Iterator[SentencePair]:
    for kept in check_corpora(DataConfig(train=(corpus,), hold_out=0, drop_duplicates=False), seed).train:
        yield from kept.pairs()


def _without_tag(pairs: Iterable[SentencePair], tag: str) -> Iterator[SentencePair]:
    """Of a run of several languages, the pairs of the language that is asked for, without its tag."""
    for source, target in pairs:
        if not tag or source.startswith(tag):
            yield source.removeprefix(tag).strip(), target


def _plain(pairs: Iterable[SentencePair]) -> Iterator[SentencePair]:
    """Sides without the signs that separate them in a file."""
    for source, target in pairs:
        yield plain_line(source), plain_line(target)


def plain_line(text: str) -> str:
    """The text with spaces in place of tabs and line feeds."""
    return text.translate({9: " ", 10: " ", 13: " "}).strip()


def _halves(pairs: Iterable[SentencePair]) -> tuple[HeldOut, HeldOut]:
    """Pairs to choose by, and others to measure with."""
    chosen_by, measured = divided(list(islice(pairs, 2 * MOST_MEASURED)))
    return _grouped(chosen_by), _grouped(measured)


def _grouped(pairs: Iterable[SentencePair]) -> HeldOut:
    grouped: HeldOut = {}
    for source, target in pairs:
        if source and target:
            grouped.setdefault(source, []).append(target)
    return dict(islice(grouped.items(), MOST_MEASURED))


def _read_sources(paths: Sequence[Path], translator: Translator, dropped: Counter[str]) -> Iterator[str]:
    """Yields every line once that the teacher can translate as it is."""
    seen: set[str] = set()
    for path in paths:
        for line in read_lines(path):
            sentence = plain_line(line)
            if not sentence:
                dropped["text: empty"] += 1
            elif sentence in seen:
                dropped["text: duplicate"] += 1
            elif not translator.fits(sentence):
                dropped["text: too long"] += 1
            else:
                seen.add(sentence)
                yield sentence


def _hold_out(found: Found, translator: Translator, seed: int, say: Say) -> tuple[HeldOut, HeldOut]:
    """Holds out some of the pairs; where there are none, some of the sources, with the teacher's translations."""
    wanted = min(MOST_MEASURED, (len(found.pairs) or len(found.sources)) // HELD_OUT_SHARE)
    if found.pairs:
        split = split_pairs(found.pairs, wanted, wanted, seed)
        found.caveats.append("the teachers may have learned the sentences that measure; --valid-pairs names others")
        return split.valid, split.test
    drawn = random.Random(seed).sample(found.sources, 2 * wanted)
    say(f"no references: the teacher translates {len(drawn):,} sentences to measure with")
    outputs = translator.translate(drawn, warn=discard)
    pairs = [(source, plain_line(output)) for source, output in zip(drawn, outputs, strict=True)]
    found.agreement = True
    found.caveats.append("there are no references: BLEU and chrF are agreement with the teacher, not quality")
    return _grouped(pairs[:wanted]), _grouped(pairs[wanted:])


def _note_learned(teachers: Sequence[RunDirectory], translator: Translator, found: Found, say: Say) -> None:
    """Leaves out sentences that measure but that one of the teachers has learned, as far as that is known; where too
    few would be left, says so."""
    if found.agreement or found.caveats:
        return
    learned: set[str] = set()
    unknown = []
    for teacher in teachers:
        if prepared_directory(teacher.path) is None:
            unknown.append(str(teacher.path))
            continue
        text = old_text(teacher, teacher.read_config(), translator.tokenizer, False, discard)
        pairs = chain.from_iterable(pairs() for pairs, _ in text.train)
        learned.update(identity_of(source) for source, _ in _without_tag(pairs, translator.tag))
    for name, held_out in (("choose by", found.valid), ("measure with", found.test)):
        known = [source for source in held_out if identity_of(source) in learned]
        if len(held_out) - len(known) >= FEWEST_MEASURED:
            for source in known:
                del held_out[source]
            if known:
                say(f"{len(known):,} sentences to {name} were learned by a teacher: left out")
        elif known:
            found.caveats.append(f"the teachers learned {len(known):,} of the sentences to {name}")
    if unknown:
        found.caveats.append(f"what {', '.join(unknown)} learned is not known: it may hold the sentences that measure")


def _leave_out_measured(found: Found) -> None:
    """Nothing is taught that measures: no source of it, whatever its case and punctuation."""
    measured = {identity_of(source) for source in chain(found.valid, found.test)}
    pairs = [pair for pair in found.pairs if pair[0] and identity_of(pair[0]) not in measured]
    sources = [source for source in found.sources if identity_of(source) not in measured]
    if left_out := len(found.pairs) + len(found.sources) - len(pairs) - len(sources):
        found.dropped["held out"] += left_out
    found.pairs, found.sources = pairs, sources


def _ordered(found: Found, asked: TextToTeach) -> tuple[list[SentencePair], Counter[str]]:
    """Returns the sources in random order, those with a reference first, some of them changed; and how many were."""
    draw = random.Random(asked.seed)
    pairs, others = list(found.pairs), [(source, "") for source in found.sources]
    draw.shuffle(pairs)
    draw.shuffle(others)
    counts: Counter[str] = Counter()
    lines = [_with_noise(pair, asked, counts) for pair in chain(pairs, others)]
    return lines, counts


def _with_noise(pair: SentencePair, asked: TextToTeach, counts: Counter[str]) -> SentencePair:
    """Changes a source as often as is asked for. The reference is what the translation should be of the changed source,
    as near as it is known: of a misspelt sentence, that of the sentence itself."""
    source, reference = pair
    draw = random.Random(f"{asked.seed} {source}")
    if draw.random() >= asked.noise:
        return pair
    for change in draw.sample(NOISE, len(NOISE)):  # not every sentence can be changed in every way
        noisy, new_reference = changed(change, (source, reference or source), {}, draw, ())
        if noisy and noisy != source:
            counts[change] += 1
            return plain_line(noisy), plain_line(new_reference) if reference else ""
    return pair
