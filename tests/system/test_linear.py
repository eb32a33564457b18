"""Work grows with the text and no faster, whatever the text is.

Where Python does the work its steps are counted, for a text and for one eight times as long. What a regular expression
does is not seen so: there the text is so long that a pattern that reads it again for each of its characters would take
hours, and the wait for it has an end.
"""

import io
import json
import re
import signal
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dragoman.data.code_spans import code_spans
from dragoman.data.glossary import Glossary, all_required, kept_as_is
from dragoman.data.protected_spans import difference, has_words, protected_spans
from dragoman.data.segmentation import segments
from dragoman.documents.flow import sentences_of
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.html import html_pieces
from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.tag_placement import place_tags
from dragoman.documents.word_alignment import without_alignment
from dragoman.serve.xml_tags import MalformedTagsError, with_html_tags
from dragoman.translation.fallbacks import stretches
from dragoman.translation.masking import masked
from dragoman.translation.result import SourceSentence
from dragoman.translation.translation_memory import TranslationMemory
from support.counting import count_steps
from support.document_samples import MAIN_PART
from support.scripted_translator import Scripted, careful

LONGEST_WAIT = 60  # seconds of the processor, where a hundredth of it is enough


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Half as much again is allowed: a quadratic way would take eight times its share."""
    work(1)  # what is made once
    few, many = count_steps(lambda: work(size)), count_steps(lambda: work(8 * size))
    assert many <= 12 * few


@contextmanager
def end_of_patience() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise AssertionError(f"not done after {LONGEST_WAIT} s of the processor")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_WAIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# Texts


@pytest.mark.parametrize("text", ["<!--", "<![CDATA[", "<?", "<a ", "<a><!-- ", "<a/>", "< ", "<!--<?-->"])
def test_the_tags_of_a_text(text: str) -> None:
    with end_of_patience(), suppress(MalformedTagsError):
        with_html_tags(text * 200_000)
    assert_linear(lambda size: with_html_tags("<!-- " * size), 500)


# Documents


def office(kind: DocumentFormat, xml: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(MAIN_PART[kind], xml)
    return packed.getvalue()


def run_of(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


FIELD = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
DOCUMENTS: dict[str, tuple[DocumentFormat, Callable[[int], str]]] = {
    "html-nested": ("html", lambda n: f"<p>{'<b>' * n}word{'</b>' * n}</p>"),
    "html-never-closed": ("html", lambda n: f"<p>{'<b>word ' * n}</p>"),
    "html-never-opened": ("html", lambda n: f"<p>{'word </b>' * n}</p>"),
    "html-sup": ("html", lambda n: f"<p>{'<sup>' * n}word{'</sup>' * n}</p>"),
    "html-sup-never-closed": ("html", lambda n: f"<p>{'a<sup>' * n}</p>"),
    "html-code": ("html", lambda n: f"<p>{'<code>' * n}word{'</code>' * n}</p>"),
    "html-code-never-closed": ("html", lambda n: f"<p>{'<code>word ' * n}</p>"),
    "html-code-with-full-stops": ("html", lambda n: f"<p>{' '.join(f'<code>a{i}. B</code> b' for i in range(n))}</p>"),
    "html-kept": ("html", lambda n: f"<p>{'<span translate=no>' * n}</p>"),
    "html-pictures": ("html", lambda n: f"<p>word {'<img alt=x>' * n} word</p>"),
    "html-breaks": ("html", lambda n: f"<p>{'a<br>' * n}</p>"),
    "html-brackets": ("html", lambda n: "<" * n),
    "html-comments": ("html", lambda n: "<!--" * n),
    "html-declarations": ("html", lambda n: "<!a " * n),
    "html-quotes": ("html", lambda n: "<a b='" * n),
    "markdown-stars": ("markdown", lambda n: "*a " * n),
    "markdown-nested": ("markdown", lambda n: f"{'**a *b ' * n}{'c* d**' * n}"),
    "markdown-brackets": ("markdown", lambda n: "[" * n),
    "markdown-links": ("markdown", lambda n: "[a](b) " * n),
    "markdown-names": ("markdown", lambda n: "[a] " * n + "\n\n[a]: b\n"),
    "markdown-definitions": ("markdown", lambda n: "".join(f"[a{i}]: b\n\nSee [a{i}].\n\n" for i in range(n))),
    "markdown-code": ("markdown", lambda n: "`a ``b " * n),
    "markdown-tags": ("markdown", lambda n: f"{'<b>' * n}word{'</b>' * n}"),
    "markdown-formulas": ("markdown", lambda n: "$a $b " * n),
    "markdown-formula-blocks": ("markdown", lambda n: "\\begin{a}\n" * n),
    "markdown-bracket-blocks": ("markdown", lambda n: "\\[\n" * n + "word \\]\n"),
    "markdown-notes": ("markdown", lambda n: "[^1]: a\n" * n),
    "text-lines": ("text", lambda n: "a\n" * n),
    "text-dots": ("text", lambda n: f"a{'.' * n}b"),
    "srt-tags": ("srt", lambda n: f"1\n00:00:01,000 --> 00:00:02,000\n{'<i>' * n}a{'</i>' * n}\n\n"),
    "srt-cues": ("srt", lambda n: "1\n00:00:01,000 --> 00:00:02,000\na\n\n" * n),
    "vtt-tags": ("vtt", lambda n: f"WEBVTT\n\n00:01.000 --> 00:02.000\n{'<v a>' * n}\n\n"),
    "po-tags": ("po", lambda n: f'msgid "{"<b>" * n}a{"</b>" * n}"\nmsgstr ""\n\n'),
    "po-lines": ("po", lambda n: 'msgid ""\n' + '"a "\n' * n + 'msgstr ""\n\n'),
    "xliff-units": ("xliff", lambda n: "<trans-unit><source>A word</source></trans-unit>" * n),
    "xliff-tags": ("xliff", lambda n: f"<trans-unit><source>{'<g>' * n}A{'</g>' * n}</source></trans-unit>"),
    "xliff-pairs": ("xliff", lambda n: f"<trans-unit><source>{'<bx/>a ' * n}</source></trans-unit>"),
    "json-tags": ("json", lambda n: json.dumps({"a": "A " + "<b>" * n + "word" + "</b>" * n})),
    "json-values": ("json", lambda n: json.dumps(["A word"] * n)),
    "docx-paragraphs": ("docx", lambda n: f"<w:p>{run_of('a ', '<w:b/>') + run_of('b ')}</w:p>" * n),
    "docx-looks": ("docx", lambda n: f"<w:p>{(run_of('a ', '<w:b/>') + run_of('b ')) * n}</w:p>"),
    "docx-links": ("docx", lambda n: f"<w:p>{'<w:hyperlink>' * n}{run_of('a')}{'</w:hyperlink>' * n}</w:p>"),
    "docx-fields": ("docx", lambda n: f"<w:p>{FIELD}{run_of('a') * n}</w:p>"),
    "pptx-looks": ("pptx", lambda n: f"<a:p>{'<a:r><a:rPr/><a:t>a</a:t></a:r><a:r><a:t>b</a:t></a:r>' * n}</a:p>"),
    "xlsx-strings": ("xlsx", lambda n: "<si><t>A word</t></si>" * n),
    "ods-cells": ("ods", lambda n: "<table:table-cell><text:p>A word</text:p></table:table-cell>" * n),
    "yaml-lines": ("yaml", lambda n: "a:\n" + "  - the dog\n" * n),
    "yaml-block": ("yaml", lambda n: "a: |\n" + "  the dog\n" * n),
    "yaml-quotes": ("yaml", lambda n: 'a: "the dog\n' * n),
    "yaml-going-on": ("yaml", lambda n: "a: the\n" + "  dog\n" * n + "  b: c\n"),
    "properties-lines": ("properties", lambda n: "a=the dog\n" * n),
    "properties-long": ("properties", lambda n: "a=the " + "dog\\\n" * n),
    "android-strings": ("android", lambda n: f"<resources>{'<string>a dog</string>' * n}</resources>"),
    "android-tags": ("android", lambda n: f"<resources><string>{'<b>' * n}a{'</b>' * n}</string></resources>"),
    "strings": ("strings", lambda n: '"a" = "the dog";\n' * n),
    "stringsdict": ("stringsdict", lambda n: "<key>one</key><string>a dog</string>" * n),
    "csv-cells": ("csv", lambda n: "a,b\n" + "the dog,a cat\n" * n),
    "csv-quotes": ("csv", lambda n: "a,b\n" + '"the dog ""' * n),
    "odt-spans": ("odt", lambda n: f"<text:p>{'<text:span>' * n}a{'</text:span>' * n}</text:p>"),
    "odt-paragraphs": ("odt", lambda n: "<text:p>A word</text:p>" * n),
}  # fmt: skip


class OfFewWords(Scripted):
    """Takes short sentences: how many marks one may have at the most is reached by short texts already."""

    def fits(self, text: str) -> bool:
        return len(text) < 60


def translated(name: str, size: int) -> bytes:
    kind, document = DOCUMENTS[name]
    content = office(kind, document(size)) if kind in MAIN_PART else document(size).encode()
    return translate_bytes(content, kind, "file", OfFewWords(careful))[0]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_takes_work_in_proportion_to_its_length(name: str) -> None:
    assert_linear(lambda size: translated(name, size), 150)


@pytest.mark.full
@pytest.mark.parametrize("name", DOCUMENTS)
def test_so_does_a_large_one(name: str) -> None:
    assert_linear(lambda size: translated(name, size), 1000)


def test_placing_tags_takes_work_in_proportion_to_their_number() -> None:
    def place(count: int) -> None:
        page = f"<p>one {'<img>' * count}two {'<b>' * count}three{'</b>' * count} four</p>"
        flow = next(piece for piece in html_pieces([page]) if not isinstance(piece, str) and piece.text.strip())
        (sentence,) = sentences_of(flow, lambda _: True, "en")
        placed = place_tags(flow, sentence, "un deux trois quatre", without_alignment(sentence, "un deux trois quatre"))
        assert placed is not None
        assert sum(isinstance(item, int) for item in placed.items) == len(sentence.tags) > count

    assert_linear(place, 200)


# What is kept, and what is required


def test_what_is_kept_is_looked_for_in_one_go() -> None:
    def look(count: int) -> None:
        names = [f"x{number}" for number in range(count)]
        text = " ".join(names)
        assert [span.text for span in protected_spans(text, names) if span.kind == "code"] == names
        assert difference(text, text, names).lost == []
        assert len([part for part in stretches(SourceSentence(text, tuple(names))) if part.stays]) == count

    assert_linear(look, 100)


def test_terms_that_begin_alike_are_not_tried_one_by_one() -> None:
    def look(count: int) -> None:
        terms = Glossary.of([(f"a {number:05d}", "b") for number in range(count)])
        assert list(terms.matches("a " * count)) == []

    assert_linear(look, 100)


def test_what_is_required_is_counted_once() -> None:
    rule = all_required(kept_as_is())

    def look(count: int) -> None:
        assert len(rule(" ".join(f"{{x{number}}}" for number in range(count)))) == count

    assert_linear(look, 100)


def test_a_fuzzy_match_takes_work_in_proportion_to_the_sentence(tmp_path: Path) -> None:
    memory = TranslationMemory(tmp_path / "corrections.sqlite")

    def look(count: int) -> None:
        memory.store("en-fr", "a b " * count, "c")
        found = memory.similar("en-fr", "a b " * count + "b")
        assert count > 240 or found is not None

    assert_linear(look, 30)
    memory.close()


PARTS = [
    "a", "{", "}", "{a}", "{{", "{{a", "1 ", "1", ".", "..", "a.", "http", "http://", "http://(", "www.",
    "ftp://.", "@", "a@", "a@b.", "%", "%s", "%(a", "%-", "0", "1,", "1 111 ", "$", "$a", "&", "&a", "&#1", "<",
    "<a", "<a ", "__", "_a", "\\", "\\(", "\\[", "\\\\a", "/", "/a", "../", "~/", "*../", "C:\\", "=A1+",
    "=SUM(", '=A1&"', "a^", "Ctrl+", "⌘", "😀", "😀\u200d", "1\ufe0f", "'", '"', "«", "(", "-", "a-", " ",
    "\u00a0", "Dr. ", "A. ", "a. B ", "…", "?!", "日本", "。",
]  # fmt: skip
BEGINNINGS = ["", "%", "%(a)", "C:\\", "\\\\a", "http://", "{{", "$", "=A1&", "a@b", "x "]
READERS: dict[str, Callable[[str], object]] = {
    "protected": protected_spans,
    "words": has_words,
    "code": code_spans,
    "masked": lambda text: masked(text, (), "common"),
    "kept": kept_as_is(("placeholders", "urls", "emails", "numbers")),
    "segments": lambda text: segments(text, lambda part: len(part) < 400, "en"),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_pattern_reads_a_text_again_and_again(reader: str) -> None:
    with end_of_patience():
        for beginning in BEGINNINGS:
            for part in PARTS:
                READERS[reader](beginning + part * (2_000 // len(part)) + " end")


@pytest.mark.parametrize("text", ["%" + "0" * 200_000, "%(a)" + "0" * 200_000, "C:\\" + "." * 200_000, "{" * 200_000])
def test_nor_a_long_one(text: str) -> None:
    with end_of_patience():
        for read in (protected_spans, code_spans):
            read(text + "!")
    assert re.search(r"\s", text) is None
