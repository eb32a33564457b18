# ruff: noqa: E501
"""A small document of each format with most of what the format can have, for tests of all of them."""

import io
import json
import zipfile

from dragoman.documents.format_names import DocumentFormat

# Of the formats that are archives: the part that the text of the sample is.
MAIN_PART: dict[DocumentFormat, str] = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/sharedStrings.xml",
    "odt": "content.xml",
    "odp": "content.xml",
    "ods": "content.xml",
    "epub": "page.xhtml",
}

WORD = b'<?xml version="1.0"?><w:document><w:body>%b</w:body></w:document>'
RUN = b"<w:r><w:rPr><w:b/></w:rPr><w:t>The old</w:t></w:r><w:r><w:t> dog, see </w:t></w:r>"
FIELD = b'<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
LINK = b'<w:hyperlink r:id="a"><w:r><w:t>here.</w:t></w:r></w:hyperlink>'
OPEN = b"<office:text>%b</office:text>"
NOTE = b"<text:note><text:note-body><text:p>A note.</text:p></text:note-body></text:note>"
DOCUMENTS: dict[DocumentFormat, bytes] = {
    "text": b"One line.\n\n- an item\n- another. And more!\n",
    "html": b'<!DOCTYPE html><p>The <b>old <i>dog</i></b><sup>1</sup> &amp; <code>x</code>'
    b'<img alt="a cat"><!-- no --></p>'
    b"<script>no()</script><ul><li>One<li>Two</ul>",
    "markdown": b"# Title\n\nThe *old* **dog** [here](x) and `code`, $a^2$.\n\n> quoted\n> again\n\n"
    b"| a | b |\n|---|---|\n| one | two |\n\n[^1]: a note\n\n```\ncode\n```\n\n<b>tag</b>\n",
    "srt": b"1\n00:00:01,000 --> 00:00:02,000\n<i>The old\ndog</i>\n\n2\n00:00:03,000 --> 00:00:04,000\n- who?\n\n",
    "vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>The old dog &amp; cat\n\n",
    "po": b'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\nmsgid "The %s <b>dog</b>"\n'
    b'msgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n\n',
    "xliff": b'<?xml version="1.0"?><xliff version="1.2"><file source-language="en" target-language="fr"><body><group>'
    b'<trans-unit id="1"><source>The <g id="1">old</g> dog<x id="2"/>.</source><target/><note>n</note></trans-unit>'
    b'<trans-unit id="2" approved="yes"><source>A</source><target state="final">B</target></trans-unit></group></body></file>'
    b'<unit><segment><source>A <pc id="1">dog</pc><sc id="2"/> &amp; <mrk translate="no">cat</mrk></source></segment></unit>'
    b"</xliff>",
    "json": json.dumps({"a": "The old dog", "b": ["A {name} here", 1, None, True], "c": {"d": "é \\ \" x y"}}).encode(),
    "docx": WORD % (b"<w:p>" + RUN + FIELD + LINK + b"</w:p><w:p/>"),
    "yaml": b"# c\nen: &a\n  hello: Hello %{name} # c\n  b: \"a \\\"big\\\"\n    dog\"\n  c: 'it''s'\n  l: |\n    line one\n\n    two\n"
    b"  - x: >-\n      folded\n      dog\n  p: goes\n    on\n",
    "properties": b"# c\nkey = Hello \\\n  dog\nm:it''s {0}\nu=caf\\u00e9 dog\n",
    "android": b"<resources><string name='a'>It\\'s <b>a</b> dog\\n</string><plurals name='p'><item quantity='one'>%d dog</item>"
    b'</plurals><string name="c"><![CDATA[<b>a</b>]]></string><string name="q">" a <xliff:g>b</xliff:g>"</string></resources>',
    "strings": b'/* c */\n"k" = "the \\"dog\\" %@";\nbare = "a\\U00e9 dog";\n// x\n',
    "stringsdict": b"<plist><dict><key>a</key><dict><key>one</key><string>%d dog</string></dict></dict></plist>",
    "csv": b'id,title,note\n1,the dog,"a ""big"", cat"\n2,"one\ntwo",\n',
    "tsv": b"id\ttitle\n1\tthe dog\n",
    "epub": b'<html><body><p>A <i>red</i><a id="p"/> dog.<br/><img alt="a cat"/></p></body></html>',
    "pptx": b'<p:sld><p:cNvPr id="1" descr="a cat"/><a:p><a:pPr/><a:r><a:rPr lang="en" b="1"/><a:t>The old</a:t></a:r>'
    b"<a:br/><a:r><a:t> dog</a:t></a:r><a:fld><a:t>1</a:t></a:fld></a:p></p:sld>",
    "xlsx": b"<sst><si><t>The &amp; dog</t></si><si><r><rPr><b/></rPr><t>old</t></r><r><t> cat</t></r><rPh><t>x</t></rPh></si></sst>",
    "odp": OPEN % (b"<draw:page><text:p>The <text:span>old</text:span> dog.</text:p></draw:page>"),
    "ods": OPEN % (b'<table:table-cell office:value-type="float"><text:p>1</text:p></table:table-cell><table:table-cell>'
    b"<text:p>The old dog</text:p></table:table-cell>"),
    "odt": OPEN % (b"<text:p>The <text:span>old</text:span> dog." + NOTE + b"</text:p><text:h>Head</text:h>"),
}  # fmt: skip


def packed(kind: DocumentFormat, content: bytes, *, store: bool = False, more: dict[str, bytes] | None = None) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_STORED if store else zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MAIN_PART[kind], content)
        if kind == "epub":
            archive.writestr("META-INF/container.xml", '<container><rootfile full-path="a.opf"/></container>')
            archive.writestr("a.opf", '<item href="page.xhtml" media-type="application/xhtml+xml"/>')
        for name, other in (more or {"meta.xml": b"<a/>"}).items():
            archive.writestr(name, other)
    return found.getvalue()
