"""The whole way: read, clean, split, learn a vocabulary, probe, size, train, score, quantise, report.

Every stage leaves its result in the run's directory and finds it there again: the same command goes on after a stop.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.cleaning import check_corpora
from dragoman.config import CorpusConfig, DataConfig, RunConfig, load
from dragoman.corpus import file_digest, read_lines
from dragoman.dataset import prepare
from dragoman.doctor.text import examine_text
from dragoman.errors import DataError
from dragoman.evaluate import LEAST_TELLING_BLEU, Scores, bleu, evaluate, read_references
from dragoman.formats import Found, Wanted, files_of, read_any
from dragoman.identify import detect_pair
from dragoman.quantize import Verdict, quantize
from dragoman.quickstart import report, sizing
from dragoman.quickstart.probe import measure
from dragoman.rundir import RunDirectory, made, read_json, write_atomically
from dragoman.splitting import HeldOut, Pair, split_pairs
from dragoman.translate import Translator

LEAST_PAIRS = 200
_FORMAT = 1  # of quickstart.json
_AFTER_TRAINING = 0.06  # the share of the time that scoring, quantising and the report are left
ALPHAS = (0.6, 1.0, 1.4)  # the paper's length penalty, and those that models trained briefly like better
_TO_CHOOSE_BY = 300  # validation sentences

_FEW_EPOCHS = 3  # with fewer a model has hardly begun

Say = Callable[[str], None]


@dataclass(frozen=True)
class Data:
    """The text, as it lies in the run's directory."""

    directory: Path
    about: dict[str, Any]  # files, lines read and dropped, pairs of each part, languages

    @property
    def train(self) -> Path:
        return self.directory / "train.tsv"

    @property
    def valid(self) -> Path:
        return self.directory / "valid.tsv"

    def source(self, part: str) -> list[str]:
        return list(read_lines(self.directory / f"{part}.source"))

    def references(self, part: str) -> list[list[str]]:
        paths = self.directory.glob(f"{part}.reference.*")
        return read_references(sorted(paths, key=lambda path: int(path.suffix[1:])))

    @property
    def languages(self) -> tuple[str, str] | None:
        found = self.about["languages"]
        return (found[0], found[1]) if found else None

    @property
    def target_language(self) -> str | None:
        return self.languages[1] if self.languages else None


@dataclass(frozen=True)
class Outcome:
    """What a quickstart came to."""

    run: Path
    data: Data
    plan: sizing.Plan
    scores: Scores
    copied: float  # BLEU of the source sentences themselves
    penalties: dict[float, float]  # BLEU on the validation sentences by length penalty; empty: the user insists
    verdict: Verdict
    actual: dict[str, float]  # steps, minutes and tokens_per_second of the training; all_minutes of everything
    samples: list[tuple[str, str, str]]  # source, output, reference


def quickstart(
    paths: Sequence[Path],
    out: Path,
    minutes: float,
    wanted: Wanted,
    seed: int,
    changes: Sequence[Any],
    again: str,
    say: Say,
) -> Outcome:
    """A translator from pairs, in about so many minutes. `changes`: settings that the user insists on."""
    run = RunDirectory(out)
    began = time.monotonic() - _trained_before(run)
    data = prepare_data(paths, run, wanted, seed, say)
    config, plan = plan_training(data, run, minutes, seed, changes, began, say)
    from dragoman.train import train  # torch is not needed before

    train(config, run, again)
    if data.languages:
        content = json.dumps({"source": data.languages[0], "target": data.languages[1]}) + "\n"
        write_atomically(run.languages_path, content.encode())
    insists = any(key == "search.alpha" for key, *_ in changes)
    penalties = {} if insists else choose_penalty(run, data, say)
    outcome = finish(run, data, plan, penalties, began, say)
    report.write(outcome, config)
    return outcome


def _trained_before(run: RunDirectory) -> float:
    """Seconds of training before this process, which belong to what it all took."""
    return max((event.get("seconds", 0.0) for event in run.events()), default=0.0)


# ------------------------------------------------------------------------------------------------------------- text


def prepare_data(paths: Sequence[Path], run: RunDirectory, wanted: Wanted, seed: int, say: Say) -> Data:
    """Read, clean and split, once: a second call finds the files."""
    directory = run.path / "text"
    about_path = directory / "about.json"
    asked = {"format": _FORMAT, "paths": [str(path) for path in paths], "wanted": wanted and list(wanted), "seed": seed}
    if about_path.exists():
        about = read_json(about_path)
        if about["asked"] != asked:
            raise DataError(
                f"{run.path}: holds a quickstart of {', '.join(about['asked']['paths'])}; give another --out"
            )
        for path, digest in about.get("digests", {}).items():
            if Path(path).exists() and file_digest(path) != digest:
                raise DataError(
                    f"{path}: changed since {run.path} was begun with it; give another --out, or remove that directory"
                )
        for file in _files_now(paths, wanted, run):
            if str(file) not in about["files"]:
                raise DataError(
                    f"{file}: is new since {run.path} was begun with its folder; give another --out, or remove that "
                    "directory"
                )
        return Data(directory, about)
    say(f"reading {', '.join(map(str, paths))}")
    found = read_any(paths, wanted, without=run.path)
    for line in found.remarks():
        say(f"  {line}")
    files = ", ".join(map(str, paths))
    with made(directory):
        pairs, dropped = clean(found, directory, seed)
        if len(pairs) < LEAST_PAIRS:
            raise DataError(
                f"{files}: {len(pairs):,} pairs are left after cleaning, of {len(found.pairs):,}; at "
                f"least {LEAST_PAIRS} are needed to train, validate and test, and some thousands for a translator"
            )
        wanted_sentences = sizing.held_out(len(pairs))
        split = split_pairs(pairs, wanted_sentences, wanted_sentences, seed)
        if len(split.test) < wanted_sentences / 2 or len(split.valid) < wanted_sentences / 2:
            raise DataError(
                f"{files}: the sentences hang together by equal sides, so that only {len(split.test)} "
                f"could be held out for the test where {wanted_sentences} are wanted; give more different sentences"
            )
    languages = wanted or found.languages or detect_pair(pairs)
    causes = examine_text(
        found.pairs, list(map(str, paths)), None, found.is_lines_of(paths)
    )  # as it was read: cleaning hides some
    for cause in causes:
        say(f"  look at this: {cause.name}: {cause.finding} ({cause.evidence})\n    {cause.remedy}")
    _write_lines(directory / "train.tsv", [f"{source}\t{target}" for source, target in split.train])
    _write_lines(directory / "valid.tsv", [f"{source}\t{targets[0]}" for source, targets in split.valid.items()])
    for part, held_out in (("valid", split.valid), ("test", split.test)):
        _write_held_out(directory, part, held_out)
    about = {
        "asked": asked,
        "files": [str(path) for path in found.files],
        "digests": {str(path): file_digest(str(path)) for path in found.files},
        "read": len(found.pairs),
        "skipped": dict(found.skipped),
        "passed_over": {str(path): why for path, why in found.passed_over.items()},
        "notes": found.notes,
        "dropped": dropped,
        "pairs": {"train": len(split.train), "valid": len(split.valid), "test": len(split.test)},
        "characters": sum(len(source) + len(target) for source, target in split.train),
        "languages": languages and list(languages),
        "causes": [cause.to_dict() for cause in causes],
    }
    # Last: whoever finds it finds all of the above.
    write_atomically(about_path, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
    named = f"{languages[0]} to {languages[1]}" if languages else "of unknown languages: name them, to serve the run"
    say(f"{len(found.pairs):,} pairs {named}; {sum(dropped.values()):,} dropped in cleaning; {len(split.train):,} to "
        f"train on; held out, sharing no sentence with them: {len(split.valid):,} to validate, {len(split.test):,} to "
        f"test")  # fmt: skip
    return Data(directory, about)


def _files_now(paths: Sequence[Path], wanted: Wanted, run: RunDirectory) -> list[Path]:
    """Of the folders. What could no longer be read from the beginning is no reason not to go on."""
    folders = [path for path in paths if path.is_dir()]
    with suppress(DataError):
        return [file for files in files_of(folders, wanted, without=run.path) for file in files]
    return []


def clean(found: Found, directory: Path, seed: int) -> tuple[list[Pair], dict[str, int]]:
    """What training's own rules keep, and how many pairs each rule dropped."""
    everything = directory / "all.tsv"
    _write_lines(everything, [f"{source}\t{target}" for source, target in found.pairs])
    try:
        checked = check_corpora(DataConfig(train=(CorpusConfig(pairs=str(everything)),), hold_out=0), seed)
        (corpus,) = checked.report().corpora
        return list(checked.train[0].pairs()), corpus.dropped
    except DataError as error:  # of a file that nobody has given
        raise DataError(str(error).replace(str(everything), ", ".join(map(str, found.files)))) from None
    finally:
        everything.unlink()


def _write_held_out(directory: Path, part: str, sentences: HeldOut) -> None:
    _write_lines(directory / f"{part}.source", list(sentences))
    for number in range(max(map(len, sentences.values()))):
        column = [targets[number] if number < len(targets) else "" for targets in sentences.values()]
        _write_lines(directory / f"{part}.reference.{number}", column)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


# --------------------------------------------------------------------------------------------------------- training


def plan_training(
    data: Data, run: RunDirectory, minutes: float, seed: int, changes: Sequence[Any], began: float, say: Say
) -> tuple[RunConfig, sizing.Plan]:
    """The configuration, decided once: a run that goes on keeps it."""
    path = run.path / "quickstart.json"
    insisted = [[key, value] for key, value, _ in changes]
    if path.exists():
        values = read_json(path)
        for name, before, now in (
            ("--minutes", values.get("minutes", minutes), minutes),
            ("--set", values.get("changes", insisted), json.loads(json.dumps(insisted))),
        ):
            if before != now:
                raise DataError(
                    f"{run.path}: planned with {name} {_said(before)}, not {_said(now)}, and the rate falls by that "
                    f"plan; give another --out, or remove that directory"
                )
        plan = sizing.Plan(**values["plan"])
        say("going on as planned before")
        return RunConfig.from_json(json.dumps(values["config"]), str(path)), plan
    first = [
        ("data.train", [{"pairs": str(data.train)}], "quickstart"),
        ("data.valid", [{"pairs": str(data.valid)}], "quickstart"),
        ("model.vocab_size", sizing.vocabulary(data.about["characters"], minutes), "quickstart"),
        ("train.seed", seed, "quickstart"),
        ("train.processes", 0, "quickstart"),
    ]
    config = load(None, [*first, *changes]).config
    prepared = prepare(config.data, config.model.vocab_size, seed, run.path, say)
    config = replace(config, model=replace(config.model, vocab_size=prepared.tokenizer.vocab_size))
    corpus = sizing.Corpus(len(prepared.train), int(prepared.train.target_lengths.sum()) + len(prepared.train))
    del prepared
    insists = any(key == "train.optimizer" for key, *_ in changes)
    say("probing how quick this machine trains")

    def minutes_left() -> float:
        elapsed = (time.monotonic() - began) / 60
        return max(0.05 * minutes, minutes * (1 - _AFTER_TRAINING) - elapsed)

    speeds, batch_tokens = {}, 0
    for size in sizing.candidates(corpus, minutes):
        asked = [
            (key, value, "quickstart")
            for key, value in (sizing.model_and_optimizer(size, 0.1) | sizing.batch_of(corpus)).items()
        ]
        probed = _with(first, asked, changes, config)
        speeds[size.name], batch_tokens = measure(run, probed), probed.train.batch_tokens
        say(f"  {size.name}: {speeds[size.name]:,.0f} tokens a second")
        if sizing.often_enough(size, corpus, minutes_left(), speeds[size.name]):
            break
    plan = sizing.choose(corpus, minutes_left(), speeds, batch_tokens, config.train.optimizer if insists else None)
    asked = [(key, value, "quickstart") for key, value in plan.settings.items()]
    config = _with(first, asked, changes, config)
    if config.train.steps < plan.steps:  # the user insists
        part = config.train.steps / plan.steps
        plan = replace(plan, steps=config.train.steps, minutes=part * plan.minutes, epochs=part * plan.epochs)
    values = {
        "minutes": minutes,
        "changes": insisted,
        "plan": asdict(plan),
        "config": json.loads(config.to_json()),
    }
    write_atomically(path, (json.dumps(values, indent=2) + "\n").encode())
    say(f"planned: the {plan.size} model, about {plan.steps:,} steps in {plan.minutes:.1f} minutes, each pair seen "
        f"{plan.epochs:.1f} times")  # fmt: skip
    if plan.epochs < _FEW_EPOCHS:
        needed = math.ceil(minutes * _FEW_EPOCHS / plan.epochs)
        say(f"  that is little: --minutes {needed} would show the text {_FEW_EPOCHS} times")
    return config, plan


def _said(value: float | list[list[Any]]) -> str:
    if isinstance(value, list):
        return ", ".join(f"{key}={one}" for key, one in value) or "nothing"
    return f"{value:g}"


def _with(first: Sequence[Any], asked: Sequence[Any], changes: Sequence[Any], prepared: RunConfig) -> RunConfig:
    config = load(None, [*first, *asked, *changes]).config
    return replace(config, model=replace(config.model, vocab_size=prepared.model.vocab_size))


# ----------------------------------------------------------------------------------------------------- what it is worth


def choose_penalty(run: RunDirectory, data: Data, say: Say) -> dict[float, float]:
    """The length penalty with which validation sentences are translated best is the run's from now on, where their BLEU
    tells anything."""
    say("choosing a length penalty")
    translator = Translator.load(run.path, compute_type="float32", vocabulary_map=False)
    sources, references = data.source("valid")[:_TO_CHOOSE_BY], data.references("valid")[:_TO_CHOOSE_BY]
    found = {
        alpha: bleu(translator.with_search(alpha=alpha).translate(sources), references, data.target_language).value
        for alpha in ALPHAS
    }
    config = run.read_config()
    if max(found.values()) >= LEAST_TELLING_BLEU:
        best = max(found, key=lambda alpha: found[alpha])
        run.write_config(replace(config, search=replace(config.search, alpha=best)))
    return found


def finish(
    run: RunDirectory, data: Data, plan: sizing.Plan, penalties: dict[float, float], began: float, say: Say
) -> Outcome:
    """Score on the test sentences, and quantise by the validation sentences: the test decides nothing."""
    say("quantising")
    verdict = quantize(
        run.path,
        data.source("valid"),
        data.references("valid"),
        language=data.target_language,
        must_be_quicker=True,
    )
    sources, references = data.source("test"), data.references("test")
    say(f"translating the {len(sources):,} test sentences")
    outputs = Translator.load(run.path).translate(sources)
    scores = evaluate(outputs, references, data.target_language)
    copied = bleu(sources, references, data.target_language).value
    every = max(1, len(sources) // 8)
    samples = [(sources[i], outputs[i], references[i][0]) for i in range(0, len(sources), every)][:8]
    events = run.events()
    trained = [event for event in events if event["event"] == "train"]
    end = next(event for event in reversed(events) if event["event"] == "end")
    actual = {
        "steps": end["step"],
        "minutes": end["seconds"] / 60,
        "tokens_per_second": sum(event["tokens"] for event in trained) / trained[-1]["seconds"],
        "all_minutes": (time.monotonic() - began) / 60,
    }
    return Outcome(run.path, data, plan, scores, copied, penalties, verdict, actual, samples)
