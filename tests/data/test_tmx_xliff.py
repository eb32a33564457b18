"""TMX and XLIFF as programs write them: every version, inline elements, states, spaces; and files that mean harm."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.data.pair_formats import read_any
from dragoman.data.tmx_xliff import TmxUnit, XliffUnit, tmx_units, xliff_units
from dragoman.errors import DataError

Pairs = list[tuple[str, str]]


def tmx(*units: str, header: str = '<header srclang="en"/>', before: str = "") -> str:
    return f'<?xml version="1.0"?>{before}<tmx version="1.4">{header}<body>{"".join(units)}</body></tmx>'


def tu(source: str, target: str) -> str:
    return f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="fr"><seg>{target}</seg></tuv></tu>'


def xliff_1(*units: str, namespace: str = ' xmlns="urn:oasis:names:tc:xliff:document:1.2"') -> str:
    file = '<file original="a" datatype="plaintext" source-language="en" target-language="fr-CA">'
    return f'<xliff version="1.2"{namespace}>{file}<body>{"".join(units)}</body></file></xliff>'


def trans_unit(source: str, target: str, more: str = "") -> str:
    return f'<trans-unit id="1"{more}><source>{source}</source><target>{target}</target></trans-unit>'


def xliff_2(*units: str) -> str:
    root = '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr">'
    return f'{root}<file id="f">{"".join(units)}</file></xliff>'


def segment(source: str, target: str, more: str = "") -> str:
    return f"<segment{more}><source>{source}</source><target>{target}</target></segment>"


def read(path: Path, content: str | bytes) -> Pairs:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_any([path]).pairs


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        (tmx(tu("one", "un"), tu("two", "deux")), [("one", "un"), ("two", "deux")]),
        # The codes of inline elements, and highlighted text, are text.
        (
            tmx(tu('a <bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept> <ph>%s</ph>', "<hi>c</hi> <ph>%s</ph>")),
            [("a <b>b</b> %s", "c %s")],
        ),
        (tmx(tu('see <ph>[<sub>the picture</sub>]</ph> <ph x="1"/>here', "ici")), [("see [the picture] here", "ici")]),
        (tmx(tu("a<!-- no -->b<?no no?>c", "<![CDATA[d & e]]>")), [("abc", "d & e")]),
        (tmx(tu("  one\n  two", "un\n deux")), [("one", "un"), ("two", "deux")]),
        (tmx(tu("one\n two", "un").replace("<tu>", '<tu xml:space="default">')), [("one two", "un")]),
        # What stands beside the segments is no text.
        (
            tmx(
                '<tu tuid="7"><note>n</note><prop type="p">p</prop><tuv xml:lang="EN-gb"><note>n</note>'
                '<prop type="p">p</prop><seg>one</seg></tuv><tuv xml:lang="fr_CA"><seg>un</seg></tuv></tu>'
            ),
            [("one", "un")],
        ),
        (tmx(tu("one", "un"), header='<header srclang="EN-gb"/>'), [("one", "un")]),
        (tmx(tu("one", "un"), header='<header srclang="fr"/>'), [("un", "one")]),
        (tmx(tu("one", "un"), header='<header srclang="*all*"/>'), [("one", "un")]),
        (tmx(tu("one", "un"), header=""), [("one", "un")]),
        (tmx(tu("one", "un").replace("xml:lang", "lang")), [("one", "un")]),  # as TMX 1.1 has it
        (tmx(tu("one", "un"), before='<!DOCTYPE tmx SYSTEM "tmx14.dtd">'), [("one", "un")]),
        (tmx(tu("one", "un")).replace("<tmx ", '<tmx xmlns="http://www.lisa.org/tmx14" '), [("one", "un")]),
        (tmx(tu("é", "ü")).replace("?>", ' encoding="ISO-8859-1"?>').encode("latin-1"), [("é", "ü")]),
        (tmx(tu("é", "ü")).replace("?>", ' encoding="UTF-16"?>').encode("utf-16"), [("é", "ü")]),
    ],
)  # fmt: skip
def test_tmx(tmp_path: Path, content: str | bytes, pairs: Pairs) -> None:
    assert read(tmp_path / "a.tmx", content) == pairs


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        (xliff_1(trans_unit("one", "un"), namespace=""), [("one", "un")]),
        (xliff_1(trans_unit("one", "un"), namespace=' xmlns="urn:oasis:names:tc:xliff:document:1.1"'), [("one", "un")]),
        (xliff_1("<group><group>", trans_unit("one", "un"), "</group></group>", trans_unit("two", "deux")),
         [("one", "un"), ("two", "deux")]),
        (xliff_1(trans_unit('<g id="1">one</g> <x id="2"/><ph id="3">%s</ph>', '<mrk mtype="seg" mid="1">un</mrk> %s')),
         [("one %s", "un %s")]),
        # The segments of a unit, and suggestions from a memory, are not the unit's text.
        (xliff_1('<trans-unit id="1"><source>One. Two.</source><seg-source><mrk mtype="seg" mid="1">One.</mrk> '
                 '<mrk mtype="seg" mid="2">Two.</mrk></seg-source><target>Un. Deux.</target>'
                 '<alt-trans><source>x</source><target state="new">y</target></alt-trans></trans-unit>'),
         [("One. Two.", "Un. Deux.")]),
        (xliff_1(trans_unit(" a\n  b ", "c  d"), trans_unit(" a\n  b ", "c\n  d", ' xml:space="preserve"')),
         [("a b", "c d"), ("a", "c"), ("b", "d")]),
        (xliff_2(f"<unit>{segment('one', 'un')}</unit>"), [("one", "un")]),
        (xliff_2(f"<group><unit>{segment('One.', 'Un.')}<ignorable><source> </source></ignorable>"
                 f"{segment('Two.', 'Deux.')}</unit></group>"), [("One.", "Un."), ("Two.", "Deux.")]),
        (xliff_2("<unit><notes><note>n</note></notes>", segment('<pc>a</pc> <ph/>b<cp hex="001A"/>', "<mrk>c</mrk>"),
                 "</unit>"), [("a b", "c")]),
        (xliff_2('<unit><m:matches xmlns:m="urn:oasis:names:tc:xliff:matches:2.0"><m:match><source>x</source>'
                 f"<target>y</target></m:match></m:matches>{segment('one', 'un')}</unit>"), [("one", "un")]),
        (xliff_2("<unit>", segment(" a\n  b ", "c  d"), "</unit>"), [("a b", "c d")]),
    ],
)  # fmt: skip
def test_xliff(tmp_path: Path, content: str, pairs: Pairs) -> None:
    assert read(tmp_path / "a.xlf", content) == pairs
    assert read_any([tmp_path / "a.xlf"]).languages == ("en", "fr")


def test_what_a_file_calls_untranslated_is_counted(tmp_path: Path) -> None:
    states = ("new", "needs-translation", "needs-adaptation", "needs-review-translation", "translated", "final")
    first = xliff_1(
        *(trans_unit(state, state).replace("<target", f'<target state="{state}"') for state in states),
        trans_unit("", ""),
        "<trans-unit><source>alone</source><alt-trans><target>no</target></alt-trans></trans-unit>",
    )
    second = xliff_2(
        "<unit>",
        *(segment(state, state, f' state="{state}"') for state in ("initial", "reviewed", "final")),
        "</unit>",
        "<unit><segment><source>alone</source></segment></unit>",
    )
    for content, taken, left in ((first, states[2:], 4), (second, ("reviewed", "final"), 2)):
        assert read(tmp_path / "a.xlf", content) == [(state, state) for state in taken]
        assert read_any([tmp_path / "a.xlf"]).skipped == {"not translated": left}
    no_segment = '<tu><tuv xml:lang="en"/><tuv xml:lang="fr"><seg>un</seg></tuv></tu>'
    alone = '<tu><tuv xml:lang="en"><seg>one</seg></tuv></tu>'
    assert read(tmp_path / "a.tmx", tmx(tu("", "x"), tu("x", ""), alone, no_segment, tu("two", "deux"))) == [
        ("two", "deux")
    ]
    assert read_any([tmp_path / "a.tmx"]).skipped == {"not translated": 4}


def test_each_file_in_an_xliff_file_is_turned_the_way_that_is_asked_for(tmp_path: Path) -> None:
    one = xliff_1(trans_unit("one", "un"))
    other = one.replace('"en"', '"fr"').replace('"fr-CA"', '"en"').replace("one", "deux").replace("un<", "two<")
    inner = other[other.index("<file") : other.index("</xliff>")]
    (tmp_path / "a.xlf").write_text(one.replace("</xliff>", f"{inner}</xliff>"), encoding="utf-8")
    assert read_any([tmp_path / "a.xlf"], ("en", "fr")).pairs == [("one", "un"), ("two", "deux")]
    assert read_any([tmp_path / "a.xlf"], ("fr", "en")).pairs == [("un", "one"), ("deux", "two")]
    assert [unit.languages for unit in xliff_units(tmp_path / "a.xlf")] == [("en", "fr-CA"), ("fr", "en")]


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tmx.gz").write_bytes(gzip.compress(tmx(tu("one", "un")).encode()))
    assert read_any([tmp_path / "a.tmx.gz"]).pairs == [("one", "un")]
    cut = gzip.compress(tmx(*[tu(f"{i}", f"{i * i}") for i in range(5000)]).encode())
    (tmp_path / "a.tmx.gz").write_bytes(cut[: len(cut) // 2])
    with pytest.raises(DataError, match=r"a\.tmx\.gz: cannot be read"):
        read_any([tmp_path / "a.tmx.gz"])


DECLARED = '<!DOCTYPE tmx [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY % p SYSTEM "secret.dtd"> %p;]>'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (tmx(tu("one", "un"))[:-30], "Premature end of data"),
        ("no XML at all", "Start tag expected"),
        ("", "Document is empty|no element found|None"),
        (tmx(tu("\0", "un")), "Invalid character|invalid"),
        (tmx(tu("<hi>" * 1000, "un")), "Excessive depth"),
        (tmx(tu("&b;", "un"), before=DECLARED), "declares entities of its own"),
        (tmx(tu("&b;", "un"), before=OUTSIDE), "declares entities of its own"),
        (f"<html>{tu('one', 'un')}</html>", "its first element is <html>, and in a file of this kind it is <tmx>"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, content: str, why: str) -> None:
    with pytest.raises(DataError, match=why) as refused:
        read(tmp_path / "a.tmx", content)
    assert len(str(refused.value).splitlines()) == 1


def test_nothing_outside_the_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text('<!ENTITY leak "the secret">', encoding="utf-8")
    include = f'<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{secret.as_uri()}" parse="text"/>'
    for before, text in ((f'<!DOCTYPE tmx SYSTEM "{secret.as_uri()}">', "one &leak;"), ("", f"one {include}")):
        ((source, _),) = read(tmp_path / "a.tmx", tmx(tu(text, "un"), before=before))
        assert source.startswith("one")
        assert "secret" not in source


# The process's own peak: what getrusage says begins with that of the process that started it.
MEASURE = """
import re, sys
from pathlib import Path
from dragoman.data.tmx_xliff import tmx_units, xliff_units

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

path = Path(sys.argv[1])
units = tmx_units(path) if path.suffix == ".tmx" else xliff_units(path)
next(units)
before = peak()
print(1 + sum(1 for _ in units), peak() - before)
"""


@pytest.mark.parametrize("suffix", [".tmx", ".xlf"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str) -> None:
    text = "word " * 2000
    inner = tu(text, text) if suffix == ".tmx" else f"<group><unit>{segment(text, text)}</unit></group>"
    before, after = (tmx("|") if suffix == ".tmx" else xliff_2("|")).split("|")
    path = tmp_path / f"a{suffix}"
    path.write_text(before + inner * 2000 + after, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, timeout=120, check=True
    )
    count, kilobytes = map(int, ran.stdout.split())
    assert count == 2000
    assert kilobytes * 1024 < path.stat().st_size / 4  # 40 MB


def test_the_units_say_which_languages_the_file_gives_them(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(tmx(tu("one", "un").replace(' xml:lang="fr"', "")), encoding="utf-8")
    assert list(tmx_units(tmp_path / "a.tmx")) == [TmxUnit("en", (("en", "one"), (None, "un")))]
    (tmp_path / "a.xlf").write_text(xliff_2(f"<unit>{segment('one', 'un')}</unit>"), encoding="utf-8")
    assert list(xliff_units(tmp_path / "a.xlf")) == [XliffUnit(("en", "fr"), 1, "one", "un")]
