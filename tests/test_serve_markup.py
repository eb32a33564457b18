"""HTML: text is translated, everything else comes back as it was."""

import pytest

from dragoman.serve.markup import Markup


def shouted(document: str) -> str:
    markup = Markup(document)
    return markup.fill([text.upper() for text in markup.to_translate()])


@pytest.mark.parametrize(
    ("document", "translated"),
    [
        ("<p>a dog</p>", "<p>A DOG</p>"),
        ("a <b>red</b> dog", "A <b>RED</b> DOG"),
        ('<a href="/x?a=1&amp;b=2" title="t">go</a>', '<a href="/x?a=1&amp;b=2" title="t">GO</a>'),
        ("<script>if (a<b) go()</script>dog", "<script>if (a<b) go()</script>DOG"),
        ("<code>x &lt; y</code> dog<br>cat<br/>", "<code>x &lt; y</code> DOG<br>CAT<br/>"),
        ('<p translate="no">a <i>b</i> c</p>d', '<p translate="no">a <i>b</i> c</p>D'),
        ("<!doctype html><!-- a dog --><p>1, 2</p>", "<!doctype html><!-- a dog --><p>1, 2</p>"),
        ("fish &amp; chips &lt;b&gt;", "FISH &amp; CHIPS &lt;B&gt;"),
        ("<pre>a\n b</pre>", "<pre>a\n b</pre>"),
        ("a < b", "A &lt; B"),
        ("</p>dog<p>", "</p>DOG<p>"),
        ("", ""),
    ],
)
def test_text_only(document: str, translated: str) -> None:
    assert shouted(document) == translated


def test_a_translation_cannot_bring_tags_in() -> None:
    assert Markup("<p>dog</p>").fill(["<script>"]) == "<p>&lt;script&gt;</p>"
