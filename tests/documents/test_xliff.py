# ruff: noqa: E501
"""XLIFF: empty targets are filled and say in which state they are; everything else comes back as it was."""

import re
from typing import Any

import pytest
from lxml import etree

from dragoman.data.tmx_xliff import xliff_units
from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.report import DocumentReport
from dragoman.documents.settings import DEFAULTS, FormatSettings
from dragoman.errors import DataError
from support.scripted_translator import Scripted, backwards, careful

ONE = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a.html" source-language="en" target-language="fr" datatype="html">
    <body>
%s
    </body>
  </file>
</xliff>
"""
TWO = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr"><file id="f">
%s
</file></xliff>
"""
FILLED = 'state="needs-review-translation" state-qualifier="leveraged-mt"'


def through(
    content: str, translator: Scripted | None = None, settings: FormatSettings = DEFAULTS
) -> tuple[str, DocumentReport]:
    found, report = translate_bytes(content.encode(), "xliff", "x.xlf", translator or Scripted(careful), settings)
    etree.fromstring(found)  # still XML
    return found.decode(), report


def unit_after(around: str, unit: str, **other: Any) -> str:
    said = through(around % unit, **other)[0]
    before, after = around.split("%s")
    assert said.startswith(before)
    assert said.endswith(after)
    return said[len(before) : len(said) - len(after)]


@pytest.mark.parametrize(
    ("unit", "after"),
    [
        (
            '<trans-unit id="1">\n  <source>The dog. A cat &amp; co.</source>\n  <note>a dog</note>\n</trans-unit>',
            '<trans-unit id="1">\n  <source>The dog. A cat &amp; co.</source>\n'
            f"  <target {FILLED}>THE DOG. A CAT &amp; CO.</target>\n  <note>a dog</note>\n</trans-unit>",
        ),
        (
            '<trans-unit id="1"><source>dog</source><target/></trans-unit>',
            f'<trans-unit id="1"><source>dog</source><target {FILLED}>DOG</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>dog</source><target state="new" xml:lang="fr">dog</target></trans-unit>',
            '<trans-unit id="1"><source>dog</source>'
            '<target state="needs-review-translation" xml:lang="fr" state-qualifier="leveraged-mt">DOG</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>dog</source><target></target><alt-trans match-quality="80"><source>dogs</source>'
            "<target>chiens</target></alt-trans></trans-unit>",
            f'<trans-unit id="1"><source>dog</source><target {FILLED}>DOG</target><alt-trans match-quality="80">'
            "<source>dogs</source><target>chiens</target></alt-trans></trans-unit>",
        ),
        (
            '<trans-unit id="1"><source>one two. </source><seg-source><mrk mtype="seg" mid="1">one two</mrk><mrk mtype="seg" '
            'mid="2"> three</mrk></seg-source></trans-unit>',
            '<trans-unit id="1"><source>one two. </source><seg-source><mrk mtype="seg" mid="1">one two</mrk><mrk mtype="seg" '
            f'mid="2"> three</mrk></seg-source><target {FILLED}><mrk mtype="seg" mid="1">ONE TWO</mrk><mrk mtype="seg" '
            'mid="2"> THREE</mrk></target></trans-unit>',
        ),
        (
            '<x:trans-unit id="1"><x:source><![CDATA[a < b]]></x:source></x:trans-unit>'.replace("x:", ""),
            f'<trans-unit id="1"><source><![CDATA[a < b]]></source><target {FILLED}>A &lt; B</target></trans-unit>',
        ),
    ],
)  # fmt: skip
def test_an_empty_target_is_filled(unit: str, after: str) -> None:
    assert unit_after(ONE, unit) == after


@pytest.mark.parametrize(
    "unit",
    [
        '<trans-unit id="1"><source>dog</source><target>chien</target></trans-unit>',
        '<trans-unit id="1"><source>dog</source><target state="final">chien</target></trans-unit>',
        '<trans-unit id="1" approved="yes"><source>dog</source><target/></trans-unit>',
        '<trans-unit id="1" translate="no"><source>dog</source></trans-unit>',
        '<group translate="no"><group><trans-unit id="1"><source>dog</source></trans-unit></group></group>',
        '<bin-unit id="1"><bin-source><external-file href="dog.png"/></bin-source></bin-unit>',
        '<trans-unit id="1"><source/></trans-unit>',
        '<trans-unit id="1"><target>x</target><seg-source>a dog</seg-source></trans-unit>',
    ],
)
def test_what_is_translated_approved_or_not_to_be_translated_stays(unit: str) -> None:
    assert unit_after(ONE, unit) == unit


def test_a_group_ends() -> None:
    group = '<group translate="no"><trans-unit id="1"><source>dog</source></trans-unit></group>'
    assert unit_after(ONE, f'{group}<trans-unit id="2"><source>cat</source></trans-unit>').startswith(
        f'{group}<trans-unit id="2"><source>cat</source><target'
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ('The <g id="1">red</g> dog', 'DOG <g id="1">RED</g> THE'),
        ('The <bx id="1"/>red<ex id="1"/> dog', 'DOG <bx id="1"/>RED<ex id="1"/> THE'),
        ('The <bx id="1" rid="9"/>red<ex id="2" rid="9"/> dog', 'DOG <bx id="1" rid="9"/>RED<ex id="2" rid="9"/> THE'),
        (
            'The <bpt id="1">&lt;b&gt;</bpt>red<ept id="1">&lt;/b&gt;</ept> dog',
            'DOG <bpt id="1">&lt;b&gt;</bpt>RED<ept id="1">&lt;/b&gt;</ept> THE',
        ),
        ('A <ph id="1">{0}</ph> dog', 'DOG <ph id="1">{0}</ph> A'),
        ('The <it id="1" pos="open">&lt;b&gt;</it>dog', 'DOG <it id="1" pos="open">&lt;b&gt;</it>THE'),
        ('The <mrk mtype="protected">Red</mrk> dog', 'DOG <mrk mtype="protected">Red</mrk> THE'),
        ('The <mrk mtype="term">red</mrk> dog', 'DOG <mrk mtype="term">RED</mrk> THE'),
        ("The &lt;b&gt;red&lt;/b&gt; dog", "DOG &lt;b&gt;RED&lt;/b&gt; THE"),
    ],
)
def test_inline_tags_go_with_their_words(source: str, target: str) -> None:
    said = unit_after(
        ONE, f'<trans-unit id="1"><source>{source}</source></trans-unit>', translator=Scripted(careful, backwards)
    )
    (found,) = re.findall("<target[^>]*>(.*)</target>", said)
    assert sorted(re.findall(r"<[^>]*>|\w+", found)) == sorted(re.findall(r"<[^>]*>|\w+", target))
    assert found == target


@pytest.mark.parametrize(
    ("unit", "after"),
    [
        (
            '<unit id="1"><segment><source>The <pc id="1">red</pc> dog<ph id="2"/></source></segment></unit>',
            '<unit id="1"><segment state="translated" subState="dragoman:needs-review"><source>The <pc id="1">red</pc> '
            'dog<ph id="2"/></source><target>THE <pc id="1">RED</pc> DOG<ph id="2"/></target></segment></unit>',
        ),
        (
            '<unit id="1"><segment state="initial"><source>a <sc id="1"/>dog<ec startRef="1"/> and</source><target>dog</target>'
            "</segment><ignorable><source> </source></ignorable></unit>",
            '<unit id="1"><segment state="translated" subState="dragoman:needs-review"><source>a <sc id="1"/>dog<ec startRef="1"/> and'
            '</source><target>A <sc id="1"/>DOG<ec startRef="1"/> AND</target></segment><ignorable><source> </source></ignorable></unit>',
        ),
        (
            '<unit id="1"><segment><source>Tom <mrk id="m1" translate="no">Dog</mrk> runs</source></segment></unit>',
            '<unit id="1"><segment state="translated" subState="dragoman:needs-review"><source>Tom <mrk id="m1" translate="no">Dog</mrk>'
            ' runs</source><target>TOM <mrk id="m1" translate="no">Dog</mrk> RUNS</target></segment></unit>',
        ),
    ],
)  # fmt: skip
def test_segments_of_version_2(unit: str, after: str) -> None:
    assert unit_after(TWO, unit) == after


@pytest.mark.parametrize(
    "unit",
    [
        '<unit id="1"><segment state="final"><source>dog</source><target>chien</target></segment></unit>',
        '<unit id="1"><segment><source>dog</source><target>chien</target></segment></unit>',
        '<unit id="1" translate="no"><segment><source>dog</source></segment></unit>',
        '<group id="g" translate="no"><unit id="1"><segment><source>dog</source></segment></unit></group>',
        '<unit id="1"><notes><note>the dog</note></notes></unit>',
    ],
)
def test_what_stays_in_version_2(unit: str) -> None:
    assert unit_after(TWO, unit) == unit


def test_an_inner_unit_may_be_translated_after_all() -> None:
    unit = '<unit id="1" translate="yes"><segment><source>dog</source></segment></unit>'
    assert "<target>DOG</target>" in unit_after(TWO, f'<group id="g" translate="no">{unit}</group>')


def test_without_the_mark_it_is_translated() -> None:
    plain = FormatSettings(fuzzy=False)
    unit = '<trans-unit id="1"><source>dog</source></trans-unit>'
    assert '<target state="translated" state-qualifier="leveraged-mt">DOG' in unit_after(ONE, unit, settings=plain)
    unit = '<unit id="1"><segment><source>dog</source></segment></unit>'
    assert '<segment state="translated"><source>' in unit_after(TWO, unit, settings=plain)


def test_what_could_not_be_translated_whole_stays_empty() -> None:
    unit = '<trans-unit id="1"><source>hello %s</source><target/></trans-unit>'
    assert unit_after(ONE, unit, translator=Scripted(lambda _: "{x}")) == unit
    # A name that is the same in both languages is a translation.
    unit = '<trans-unit id="1"><source>Paris</source></trans-unit>'
    assert ">Paris</target>" in unit_after(ONE, unit, translator=Scripted(str))


def test_the_target_language_is_compared_or_written() -> None:
    unit = '<trans-unit id="1"><source>dog</source></trans-unit>'
    with pytest.raises(DataError, match=r"x\.xlf: it says target-language: fr, but the target language is German"):
        through(ONE % unit, settings=FormatSettings(target="de"))
    with pytest.raises(DataError, match=r"x\.xlf: it says trgLang: fr, but"):
        through(TWO % "", settings=FormatSettings(target="de"))
    bare = (ONE % unit).replace(' target-language="fr"', "")
    assert 'datatype="html" target-language="de">' in through(bare, settings=FormatSettings(target="de"))[0]
    bare = TWO.replace(' trgLang="fr"', "") % '<unit id="1"><segment><source>dog</source></segment></unit>'
    assert 'srcLang="en" trgLang="de">' in through(bare, settings=FormatSettings(target="de"))[0]


def test_another_reader_finds_the_pairs(tmp_path: Any) -> None:
    path = tmp_path / "a.xlf"
    unit = '<trans-unit id="1"><source>The <g id="1">dog</g></source></trans-unit>'
    path.write_text(through(ONE % unit)[0], encoding="utf-8")
    assert [(one.languages, one.source, one.target) for one in xliff_units(path)] == [
        (("en", "fr"), "The dog", "THE DOG")
    ]


def test_other_encodings_come_back_as_they_were() -> None:
    text = (ONE % '<trans-unit id="1"><source>café</source></trans-unit>').replace("UTF-8", "ISO-8859-1")
    found, _ = translate_bytes(text.encode("latin-1"), "xliff", "x.xlf", Scripted(lambda text: f"{text} œ"))
    assert etree.fromstring(found).findtext(".//{*}target") == "café œ"
    found, _ = translate_bytes(
        text.replace("ISO-8859-1", "UTF-16").encode("utf-16"), "xliff", "x.xlf", Scripted(careful)
    )
    assert etree.fromstring(found).findtext(".//{*}target") == "CAFÉ"
    with pytest.raises(DataError, match=r"x\.xlf: is in EBCDIC-CP-FR; save the document as UTF-8"):
        through(text.replace("ISO-8859-1", "EBCDIC-CP-FR"))
    with pytest.raises(DataError, match=r"x\.xlf: is damaged \(<source> has no end\)"):
        through('<xliff version="1.2"><file><trans-unit><source></trans-unit>')


@pytest.mark.parametrize(
    ("names", "why"), [(["mrk"] * 500, "more than 50 <mrk> inside each other"), ([f"x{i}:mrk" for i in range(500)], "")]
)
def test_marks_too_deep_in_each_other_are_refused(names: list[str], why: str) -> None:
    source = "".join(f"<{name}>" for name in names) + "dog" + "".join(f"</{name}>" for name in reversed(names))
    with pytest.raises(DataError, match=rf"^x\.xlf: is damaged \({why}.*\); save the document again$"):
        through(ONE % f'<trans-unit id="1"><source>{source}</source></trans-unit>')


def test_entities_that_the_file_declares_are_copied() -> None:
    unit = '<trans-unit id="1"><source>Welcome to &app; &amp; <mrk mtype="protected">&co;</mrk>%s</source></trans-unit>'
    around = ONE.replace("<xliff", '<!DOCTYPE xliff [<!ENTITY app "Foo"><!ENTITY co "Bar">]>\n<xliff', 1)
    inside = "&lt;b title='&app;'&gt;big&lt;/b&gt;"
    said = through(around % (unit % inside), Scripted(careful))[0]
    assert (
        'WELCOME TO &app; &amp; <mrk mtype="protected">&co;</mrk>'
        "&lt;b title='&app;'&gt;BIG&lt;/b&gt;</target>" in said
    )
