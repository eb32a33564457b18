"""Reads, cleans, splits and checks the text of a quickstart. This is done once: a second call finds the files."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, DataConfig
from dragoman.data.cleaning import check_corpora
from dragoman.data.corpus import SentencePair, file_digest, read_lines
from dragoman.data.language_id import detect_pair
from dragoman.data.pair_formats import PairCollection, WantedLanguages, files_of, read_any
from dragoman.data.splitting import HeldOut, Split, split_pairs
from dragoman.diagnosis.causes import Cause
from dragoman.diagnosis.corpus_checks import examine_text
from dragoman.errors import DataError
from dragoman.evaluation.metrics import read_references
from dragoman.files import directory_made, read_json, write_atomically
from dragoman.progress import Say, waiting
from dragoman.quickstart import sizing
from dragoman.run_directory import RunDirectory

LEAST_PAIRS = 200
_FORMAT = 1  # of about.json


@dataclass(frozen=True)
class QuickstartText:
    """The prepared text in the run's directory: pairs to train on, sentences to validate and test with."""

    directory: Path
    about: dict[str, Any]  # files, lines read and dropped, pairs in each part, languages

    @property
    def train(self) -> Path:
        return self.directory / "train.tsv"

    @property
    def valid(self) -> Path:
        return self.directory / "valid.tsv"

    def source(self, part: str) -> list[str]:
        """Returns the source sentences of "valid" or "test"."""
        return list(read_lines(self.directory / f"{part}.source"))

    def references(self, part: str) -> list[list[str]]:
        """Returns the references of each sentence of "valid" or "test"."""
        paths = sorted(self.directory.glob(f"{part}.reference.*"), key=lambda path: int(path.suffix[1:]))
        return read_references(paths)

    @property
    def languages(self) -> tuple[str, str] | None:
        found = self.about["languages"]
        return (found[0], found[1]) if found else None

    @property
    def target_language(self) -> str | None:
        return self.languages[1] if self.languages else None


def prepare_data(
    paths: Sequence[Path], run: RunDirectory, wanted: WantedLanguages, seed: int, say: Say
) -> QuickstartText:
    """Reads, cleans and splits the text. This is done once: a second call finds the files."""
    directory, about_path = run.quickstart_text_path, run.about_quickstart_text_path
    asked = {"format": _FORMAT, "paths": [str(path) for path in paths], "wanted": wanted and list(wanted), "seed": seed}
    if about_path.exists():
        about = read_json(about_path)
        _require_same_text(about, asked, _files_now(paths, wanted, run), run)
        return QuickstartText(directory, about)
    with waiting(f"reading {', '.join(map(str, paths))}"):
        found = read_any(paths, wanted, without=run.path)
    for line in found.remarks():
        say(f"  {line}")
    with directory_made(directory), waiting("cleaning and splitting"):
        pairs, dropped = clean(found, directory, seed)
        split = _split(pairs, len(found.pairs), ", ".join(map(str, paths)), seed)
    languages = wanted or found.languages or detect_pair(pairs)
    with waiting("looking for faults in the text"):  # before cleaning, which hides some
        causes = examine_text(found.pairs, list(map(str, paths)), None, found.is_lines_of(paths))
    for cause in causes:
        say(f"  look at this: {cause.name}: {cause.finding} ({cause.evidence})\n    {cause.remedy}")
    _write_split(directory, split)
    about = {"asked": asked, **_about(found, dropped, split, languages, causes)}
    # Written last: if this file exists, so do all the others.
    write_atomically(about_path, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
    named = f"{languages[0]} to {languages[1]}" if languages else "of unknown languages (name them to serve the run)"
    say(f"{len(found.pairs):,} pairs {named}; {sum(dropped.values()):,} dropped in cleaning; {len(split.train):,} to "
        f"train on; held out, sharing no sentence with them: {len(split.valid):,} to validate, {len(split.test):,} to "
        f"test")  # fmt: skip
    return QuickstartText(directory, about)


def _require_same_text(about: dict[str, Any], asked: dict[str, Any], files: Sequence[Path], run: RunDirectory) -> None:
    """Raises a DataError if the text or the settings are not those that the run began with."""
    if about["asked"] != asked:
        raise DataError(f"{run.path}: holds a quickstart of {', '.join(about['asked']['paths'])}; give another --out")
    for path, digest in about.get("digests", {}).items():
        if Path(path).exists() and file_digest(path) != digest:
            raise DataError(
                f"{path}: changed since {run.path} was begun with it; give another --out, or remove that directory"
            )
    for file in files:
        if str(file) not in about["files"]:
            raise DataError(
                f"{file}: is new since {run.path} was begun with its folder; give another --out, or remove that "
                "directory"
            )


def _split(pairs: Sequence[SentencePair], read: int, files: str, seed: int) -> Split:
    """Splits the cleaned pairs; raises a DataError if there are too few. `read`: how many pairs were read."""
    if len(pairs) < LEAST_PAIRS:
        raise DataError(
            f"{files}: {len(pairs):,} of {read:,} pairs are left after cleaning; at least {LEAST_PAIRS} are needed to "
            f"train, validate and test, and some thousands for a useful translator"
        )
    wanted_sentences = sizing.held_out(len(pairs))
    split = split_pairs(pairs, wanted_sentences, wanted_sentences, seed)
    if len(split.test) < wanted_sentences / 2 or len(split.valid) < wanted_sentences / 2:
        raise DataError(
            f"{files}: so many pairs share a sentence that only {len(split.test)} could be held out for the test, "
            f"where {wanted_sentences} are wanted; give more different sentences"
        )
    return split


def _about(
    found: PairCollection,
    dropped: dict[str, int],
    split: Split,
    languages: tuple[str, str] | None,
    causes: Sequence[Cause],
) -> dict[str, Any]:
    """Returns the content of about.json, except for what the user asked for."""
    return {
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


def _files_now(paths: Sequence[Path], wanted: WantedLanguages, run: RunDirectory) -> list[Path]:
    """Returns the files that are in the folders now; none if a folder cannot be read, as the run can go on without
    it."""
    folders = [path for path in paths if path.is_dir()]
    with suppress(DataError):
        return [file for files in files_of(folders, wanted, without=run.path) for file in files]
    return []


def clean(found: PairCollection, directory: Path, seed: int) -> tuple[list[SentencePair], dict[str, int]]:
    """Returns the pairs that the cleaning rules of training keep, and how many each rule dropped."""
    everything = directory / "all.tsv"
    _write_lines(everything, [f"{source}\t{target}" for source, target in found.pairs])
    try:
        checked = check_corpora(DataConfig(train=(CorpusConfig(pairs=str(everything)),), hold_out=0), seed)
        (corpus,) = checked.report().corpora
        return list(checked.train[0].pairs()), corpus.dropped
    except DataError as error:  # it names the temporary file, not those of the user
        raise DataError(str(error).replace(str(everything), ", ".join(map(str, found.files)))) from None
    finally:
        everything.unlink()


def _write_split(directory: Path, split: Split) -> None:
    _write_lines(directory / "train.tsv", [f"{source}\t{target}" for source, target in split.train])
    _write_lines(directory / "valid.tsv", [f"{source}\t{targets[0]}" for source, targets in split.valid.items()])
    for part, held_out in (("valid", split.valid), ("test", split.test)):
        write_held_out(directory, part, held_out)


def write_held_out(directory: Path, part: str, sentences: HeldOut) -> None:
    """Writes the sentences of "valid" or "test", and as many files of references as one of them has."""
    _write_lines(directory / f"{part}.source", list(sentences))
    for number in range(max(map(len, sentences.values()))):
        column = [targets[number] if number < len(targets) else "" for targets in sentences.values()]
        _write_lines(directory / f"{part}.reference.{number}", column)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
