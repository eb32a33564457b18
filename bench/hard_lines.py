"""The hundred hard lines of docs/guides/trust.md in every way to translate: the same answers, no silent loss.

python bench/hard_lines.py runs/demo

Lines in other languages than the run's are given to a copy that says it knows theirs: what it makes of them is nothing
to read, but where they are cut and what comes through does not depend on that.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from dragoman import Run
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from support.serving import running

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "trust.md"
WAYS = ("translate", "serve", "Python", "translate-file")
# What a reader would look for in the translation, found without the code that sees to it.
_TELLING = re.compile(
    r"https?://\S*\w|www\.\S*\w|[\w.+]+@[\w.]*\w|\{+[^{}]+\}+|%\(\w+\)s|%\d\$s|%d|<[^<>]+>|&\w+;|\d+|[\U0001f1e6-\U0001faff☔→←]"
)

Command = Callable[[Sequence[str | Path], str], str]


@dataclass(frozen=True)
class HardLine:
    language: str
    sentences: int
    text: str


@dataclass(frozen=True)
class Translated:
    line: HardLine
    answers: dict[str, str]  # of each way
    said: dict[str, Any]  # what `translate --json` says of it

    @property
    def missing(self) -> list[str]:
        """Of what a reader would look for."""
        wanted, there = (Counter(map(_plain, _TELLING.findall(text))) for text in (self.line.text, self.text))
        return list((wanted - there).elements())

    @property
    def text(self) -> str:
        return self.answers["translate"]

    @property
    def in_silence(self) -> bool:
        """Something is missing, and nobody says so."""
        return bool(self.missing) and "lost" not in self.said["faults"] and self.said["how"] != "source"


def _plain(found: str) -> str:
    return (found.lstrip("0") or "0") if found.isdigit() else found


def hard_lines(page: Path = PAGE) -> list[HardLine]:
    block = re.search(r"^```tsv\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None, f"{page}: no block of hard lines"
    rows = [row.split("\t") for row in block[1].splitlines()]
    return [HardLine(language, int(sentences), text) for language, sentences, text in rows]


def translated(run: Path, lines: Sequence[HardLine], command: Command, work: Path) -> list[Translated]:
    """Every line in every way, language by language."""
    found: list[Translated] = []
    for language, group in groupby(lines, lambda line: line.language):
        found += _of_one_language(_speaking(run, language, work), language, list(group), command, work)
    return found


def _of_one_language(
    run: Path, language: str, lines: Sequence[HardLine], command: Command, work: Path
) -> list[Translated]:
    texts = [line.text for line in lines]
    said = [json.loads(row) for row in command(["translate", run, "--json"], _lines(texts)).splitlines()]
    (work / "in.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    command(["translate-file", run, work / "in.txt", "--out", work / "out.txt"], "")
    of_file = (work / "out.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n\n")
    (work / "out.txt").unlink()
    answers = {
        "translate": command(["translate", run], _lines(texts)).splitlines(),
        "serve": _served(run, language, texts),
        "Python": _in_python(run, texts, [row["how"] for row in said]),
        "translate-file": of_file,
    }
    assert {way: len(some) for way, some in answers.items()} == dict.fromkeys(WAYS, len(lines))
    each = zip(*(answers[way] for way in WAYS), strict=True)
    return [
        Translated(line, dict(zip(WAYS, some, strict=True)), row)
        for line, some, row in zip(lines, each, said, strict=True)
    ]


def _in_python(run: Path, texts: Sequence[str], hows: Sequence[str]) -> list[str]:
    """With a warning for every line that was left."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Run(run).translate(list(texts))
    named = [str(one.message).partition(":")[0] for one in caught]
    assert named == [f"line {number}" for number, how in enumerate(hows, start=1) if how == "source"], named
    return found


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _served(run: Path, language: str, texts: Sequence[str]) -> list[str]:
    with running(Service([ServedPair(language, "eo", run)], Settings(port=0, rate_limit=0))) as server:
        asked = [{"text": text, "source": language, "target": "eo"} for text in texts]
        return [server.post("/api/v1/translate", one).json["text"] for one in asked]


def _speaking(run: Path, language: str, work: Path) -> Path:
    """A copy of the run that says it translates from this language."""
    copy = work / language
    if not copy.exists():
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns("checkpoints", "data", "tensorboard"))
    (copy / "languages.json").write_text(json.dumps({"source": language, "target": "eo"}), encoding="utf-8")
    return copy


def counts(found: Sequence[Translated]) -> dict[str, int]:
    hows = Counter(one.said["how"] for one in found)
    return {
        "lines": len(found),
        "the same in all four ways": sum(len(set(one.answers.values())) == 1 for one in found),
        **{f"way: {how}": count for how, count in hows.most_common()},
        "with all that a reader would look for": sum(not one.missing for one in found),
        "named as not kept whole": sum(bool(one.missing) and not one.in_silence for one in found),
        "with something lost in silence": sum(one.in_silence for one in found),
    }


def _command(arguments: Sequence[str | Path], stdin: str) -> str:
    whole = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    return subprocess.run(whole, input=stdin, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--show", action="store_true", help="Every line and its translation.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = translated(given.run, hard_lines(), _command, Path(work))
    for one in found:
        if given.show or len(set(one.answers.values())) > 1 or one.missing:
            print(f"{one.line.text}\n    {one.said['how']}: {one.text}\n    missing: {one.missing}")
            for way, text in one.answers.items():
                if text != one.text:
                    print(f"    {way}: {text}")
    for what, count in counts(found).items():
        print(f"{count:5}  {what}")


if __name__ == "__main__":
    main()
