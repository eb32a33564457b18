"""A corpus that is broken in one way is told by that cause first, and a good one has no causes."""

import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.corpus import SentencePair
from dragoman.diagnosis.corpus_checks import examine_text
from support.good_corpus import GOOD, TEST


def change(share: float, how: Callable[[str, str], SentencePair], seed: int = 3) -> list[SentencePair]:
    draw = random.Random(seed)
    return [how(source, target) if draw.random() < share else (source, target) for source, target in GOOD]


def shifted(pairs: list[SentencePair]) -> list[SentencePair]:
    return list(zip([s for s, _ in pairs], [pairs[-1][1], *(t for _, t in pairs[:-1])], strict=True))


FRENCH = "Le vieux capitaine achète des fleurs et des pommes au marché parce que personne n'a le temps."


BROKEN: dict[str, Callable[[], list[SentencePair]]] = {
    "misaligned": lambda: GOOD[:900] + shifted(GOOD[900:]),
    "duplicates": lambda: GOOD + GOOD[:700],
    "wrong language": lambda: change(0.2, lambda s, _: (s, FRENCH)),
    "encoding damage": lambda: change(0.5, lambda s, t: (s, t.encode().decode("cp1252", errors="replace"))),
    "casing": lambda: [(s, t.lower()) for s, t in GOOD],
    "untranslated copies": lambda: change(0.1, lambda s, _: (s, s)),
    "tokenised text": lambda: [(s.replace(".", " ."), t.replace(".", " .").replace(",", " ,")) for s, t in GOOD],
    "HTML entities": lambda: change(0.3, lambda s, t: (f"&quot;{s}&quot;", f"&quot;{t}&quot;")),
}


def test_a_good_corpus_has_no_causes() -> None:
    assert examine_text(GOOD, "good.tsv", TEST) == []
    by_length = sorted(GOOD, key=lambda pair: len(pair[0]))  # lengths say nothing there
    assert examine_text(by_length, "good.tsv") == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_corpus_is_told_by_its_cause(name: str) -> None:
    causes = examine_text(BROKEN[name](), "broken.tsv", TEST)
    assert [cause.name for cause in causes[:1]] == [name]
    assert all(value for value in (causes[0].finding, causes[0].evidence, causes[0].cost))
    assert "broken.tsv" in causes[0].remedy or name in ("casing",)


def test_misaligned_lines_are_named_and_the_shift_too() -> None:
    (cause,) = examine_text(BROKEN["misaligned"](), "broken.tsv")
    first, last = (int(number.replace(",", "")) for number in cause.finding.split(" ")[1:4:2])
    assert abs(first - 900) <= 200
    assert last >= 1400
    assert "1 line too late" in cause.finding
    everything = shifted(GOOD)
    assert examine_text(everything, "broken.tsv")[0].name == "misaligned"


def test_leaked_sentences_come_first() -> None:
    leaked = [(source.upper(), target) for source, target in GOOD[:40]] + TEST[:60]
    causes = examine_text(GOOD, "good.tsv", leaked)
    assert [cause.name for cause in causes] == ["leakage"]
    assert "40 of 100 test sentences" in causes[0].finding


def test_the_command(cli: Callable[..., Any], tmp_path: Path) -> None:
    good_path, bad_path = tmp_path / "good.tsv", tmp_path / "bad.tsv"
    good_path.write_text("".join(f"{s}\t{t}\n" for s, t in GOOD), encoding="utf-8")
    bad_path.write_text("".join(f"{s}\t{t}\n" for s, t in BROKEN["untranslated copies"]()), encoding="utf-8")
    ran = cli("doctor", good_path)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "nothing found\n")
    ran = cli("doctor", bad_path)
    assert ran.code == 4
    assert ran.stdout.startswith("1. untranslated copies: ")
    assert [line.split()[0] for line in ran.stdout.splitlines()[1:4]] == ["evidence", "cost", "remedy"]
    ran = cli("doctor", bad_path, "--json")
    assert json.loads(ran.stdout)["causes"][0]["name"] == "untranslated copies"
    assert cli("doctor", tmp_path / "none.tsv").code == 3


def test_remedies_fit_the_format(cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sort, awk and iconv are for lines: a translation memory is written as lines first, and itself stays as it is."""
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv><tuv xml:lang="de"><seg>{t}</seg></tuv></tu>'
        for s, t in GOOD + GOOD[:700]
    )
    memory = tmp_path / "help.tmx"
    memory.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>', encoding="utf-8")
    (cause,) = json.loads(cli("doctor", memory, "--json").stdout)["causes"]
    assert cause["name"] == "duplicates"
    first, then = cause["remedy"].split("   #")[0].split("; ")
    assert (first, then) == (f"dragoman doctor {memory} --out pairs.tsv", "sort -u pairs.tsv > once.tsv")
    monkeypatch.chdir(tmp_path)
    cli(*first.split()[1:])
    subprocess.run(then, shell=True, check=True, timeout=60)
    assert len((tmp_path / "once.tsv").read_text(encoding="utf-8").splitlines()) == len(GOOD)
    with_heading = tmp_path / "a.tsv"  # its line numbers are not those of the pairs
    with_heading.write_text("".join(f"{s}\t{t}\n" for s, t in [("en", "de"), *GOOD, *GOOD]), encoding="utf-8")
    ran = cli("doctor", with_heading)
    assert "--out pairs.tsv" in ran.stdout
    assert "the first row is a heading (en, de)" in ran.stderr
    assert cli("doctor", tmp_path, "--out", "x.tsv").code == 4
    for name in BROKEN:
        for remedy in (c.remedy for c in examine_text(BROKEN[name](), ["a.xlsx", "b.po"], has_lines=False)):
            tools = re.findall(r"(?:sort -u|awk|iconv|cut|<)\b[^;>]*", remedy)
            assert not any("a.xlsx" in part for part in tools), remedy
