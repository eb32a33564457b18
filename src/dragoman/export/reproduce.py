"""Trains a bundle's run again from its text, and compares: bit for bit on the same kind of machine, else by BLEU."""

import dataclasses
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, RunConfig
from dragoman.data.corpus import file_digest
from dragoman.data.dataset import validation_pairs
from dragoman.decoding.engines.ct2_cache import processor
from dragoman.errors import DataError, UsageError
from dragoman.evaluation import metrics
from dragoman.files import replacing, sha256
from dragoman.run_directory import BUNDLE_CARD, CLEANING, TOKENIZER, RunDirectory, unpack
from dragoman.training.loop import train
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class Reproduced:
    """The comparison of a run with its reproduction. `expected_bits` says whether the weights should be the same to the
    bit: machine, threads and torch are the card's, and no time limit shaped the training."""

    run: Path
    expected_bits: bool
    differs: tuple[str, ...]  # what is different here from where the bundle was made
    same_tokenizer: bool
    same_bits: bool
    comparison: metrics.Comparison | None  # where the bits are not the same

    @property
    def holds(self) -> bool:
        """Whether the weights are the same or, where that cannot be expected, BLEU is not significantly lower."""
        if self.same_bits:
            return True
        if self.expected_bits or self.comparison is None:
            return False
        bleu = self.comparison.bleu
        return not (bleu.significant and bleu.b < bleu.a)

    def to_dict(self) -> dict[str, Any]:
        compared = None if self.comparison is None else self.comparison.to_dict()
        return {**dataclasses.asdict(self), "run": str(self.run), "comparison": compared, "holds": self.holds}

    def lines(self) -> list[str]:
        """The comparison for people."""
        lines = [f"here and there differ: {what}" for what in self.differs]
        lines.append(f"tokenizer: {'the same' if self.same_tokenizer else 'another'}")
        if self.same_bits:
            return [*lines, "weights: the same to the bit"]
        expected = "which was to be expected" if not self.expected_bits else "although machine and threads are the same"
        lines.append(f"weights: not the same bits, {expected}")
        if self.comparison is not None:
            lines += ["A is the bundle, B is here:", *self.comparison.lines()]
        return lines


def reproduce(
    bundle: str | Path,
    out: str | Path,
    text: Sequence[Path] = (),
    *,
    language: str | None = None,
    again: str = "the same call",
    say: Callable[[str], None] = lambda _: None,
) -> Reproduced:
    """Trains the bundle's run again in `out`, from text that is found by its hashes; resumes if it was stopped.

    `text`: directories to search for files that are neither in the bundle nor where its configuration says.
    """
    path, run = Path(bundle), RunDirectory(out)
    if not path.is_file():
        raise UsageError(f"reproduce: {path} is no file; give a bundle: dragoman bundle RUN --out my.zip")
    original = RunDirectory(run.path.with_name(f"{run.path.name}.bundle"))
    if not original.config_path.is_file():
        unpack(path, original.path)
    with zipfile.ZipFile(path) as archive:
        card: dict[str, Any] = json.loads(archive.read(BUNDLE_CARD))
    if card["began_with"]:
        raise UsageError(
            f"reproduce: {path} was fine-tuned from the weights {card['began_with'][:16]}; "
            f"reproduce that run, then use dragoman finetune"
        )
    training = card["training"]
    config = _with_text(original.read_config(), card, path, original.path, text)
    if training["by_the_clock"]:
        config = replace(config, train=replace(config.train, steps=training["steps"], minutes=None))
    if training["threads"]:
        threads, processes = training["threads"], training["processes"] or 1
        config = replace(config, train=replace(config.train, threads=threads, processes=processes))
    train(config, run, again)
    return _compared(original, run, training, language, say)


@dataclass
class _TextFinder:
    """Finds the files of a run's text by their hashes: where they were, in the bundle, or in other directories."""

    bundle: Path
    unpacked: Path  # where what is in the bundle is unpacked to
    directories: Sequence[Path]  # to look in for files that have another name now
    digests: Mapping[str, str]  # by the path that each file had
    _elsewhere: dict[str, Path] = field(default_factory=dict)  # by digest

    def find(self, name: str) -> str:
        digest = self.digests.get(name)
        for file in self._candidates(name, digest) if digest else ():
            if file.is_file() and file_digest(str(file)) == digest:
                return str(file)
        raise DataError(
            f"{self.bundle}: its text {name} (SHA-256 {str(digest)[:16]}) is not here; name its directory: --text DIR"
        )

    def _candidates(self, name: str, digest: str) -> Iterator[Path]:
        yield Path(name)
        yield self._from_bundle(digest)
        if not self._elsewhere:
            files = (file for directory in self.directories for file in sorted(directory.rglob("*")) if file.is_file())
            self._elsewhere.update((file_digest(str(file)), file) for file in files)
        if digest in self._elsewhere:
            yield self._elsewhere[digest]

    def _from_bundle(self, digest: str) -> Path:
        """Where the file is once it is unpacked; there is none if the bundle does not have it."""
        path = self.unpacked / "text" / digest
        if not path.is_file():
            with zipfile.ZipFile(self.bundle) as archive:
                if f"text/{digest}" in archive.namelist():
                    with replacing(path) as temporary:
                        temporary.write_bytes(archive.read(f"text/{digest}"))
        return path

    def corpora(self, given: Sequence[CorpusConfig]) -> tuple[CorpusConfig, ...]:
        """The same corpora, with the paths of the files as they are here."""
        moved = []
        for corpus in given:
            pairs, source, target = (name and self.find(name) for name in (corpus.pairs, corpus.source, corpus.target))
            moved.append(replace(corpus, pairs=pairs, source=source, target=target))
        return tuple(moved)


def _with_text(
    config: RunConfig, card: dict[str, Any], bundle: Path, unpacked: Path, directories: Sequence[Path]
) -> RunConfig:
    """The configuration, with each file of text found by its hash."""
    digests = {file["path"]: file["sha256"] for role in ("train", "valid") for file in card["data"][role]}
    if not digests:
        raise DataError(f"{bundle}: its card names no text (no {CLEANING}); it cannot be trained again")
    finder = _TextFinder(bundle, unpacked, directories, digests)
    data = replace(config.data, train=finder.corpora(config.data.train), valid=finder.corpora(config.data.valid))
    if data.tokenizer is not None:  # it was given, not learned
        data = replace(data, tokenizer=str(unpacked / TOKENIZER))
    return replace(config, data=data)


def _compared(
    original: RunDirectory,
    run: RunDirectory,
    training: dict[str, Any],
    language: str | None,
    say: Callable[[str], None],
) -> Reproduced:
    import torch

    here = {"processor": processor(), "torch": torch.__version__}
    differs = [
        f"{name} {training[name]} there, {value} here" for name, value in here.items() if training[name] != value
    ]
    if training["by_the_clock"]:
        differs.append("the clock set the rates there, the steps here")
    same_bits = sha256(original.model_path) == sha256(run.model_path)
    comparison = None
    pairs = validation_pairs(run.path)
    if not same_bits and pairs:
        say("the bits differ: translating the validation text with both")
        sources, references = [source for source, _ in pairs], [[target] for _, target in pairs]
        outputs = [Translator.load(which.path, to="").translate(sources) for which in (original, run)]
        comparison = metrics.compare(outputs[0], outputs[1], references, language)
    same_tokenizer = sha256(original.tokenizer_path) == sha256(run.tokenizer_path)
    return Reproduced(run.path, not differs, tuple(differs), same_tokenizer, same_bits, comparison)
