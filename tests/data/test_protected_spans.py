"""Code is protected in every text, as addresses and placeholders are."""

import random

import pytest

from dragoman.data.code_spans import code_spans, is_plain
from dragoman.data.protected_spans import difference, has_words, protected_spans
from dragoman.translation.fallbacks import translate_protected
from dragoman.translation.result import SourceSentence
from support.scripted_translator import Scripted, Searching


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("copy with Ctrl+C, then F5", ["Ctrl+C", "F5"]),
        (r"see C:\Users\x and /usr/bin.", [r"C:\Users\x", "/usr/bin"]),
        ("type =SUM(A1:A3) in 2 cells", ["=SUM(A1:A3)", "2"]),
        # Of what overlaps the whole: an index is the formula's, an address the tag's, a file the address's.
        ("so $a_{1}^2$ is", ["$a_{1}^2$"]),
        ("a <a href='/usr/bin/x.html'>b</a>", ["<a href='/usr/bin/x.html'>", "</a>"]),
        ("see https://a.b/usr/bin/x.html, x.html", ["https://a.b/usr/bin/x.html", "x.html"]),
        ("at %H:%M:%S, %-d %B", ["%H", "%M", "%S", "%-d", "%B"]),
        ("100 % sure, the %age, 5 %ige", ["100", "5"]),
        ("<%= x %> has 100%% of $user", ["<%= x %>", "100", "%%", "$user"]),
        (r"@@NAME@@ said\nHello\t{x} in C:\new", ["@@NAME@@", r"\n", r"\t", "{x}", r"C:\new"]),
        ("ask @anna at Example.com. Or www.a.org, a@b.com", ["@anna", "Example.com", "www.a.org", "a@b.com"]),
        ("run `make test` now", ["`make test`"]),
        ("``a quotation'', `one' and `another'; me @ home, A$now, $5 a.m.", ["$5"]),
        ("and/or he/she, A+B, AC/DC, Windows/Linux, C++", []),
    ],
)
def test_code_is_kept_whole_and_what_only_looks_like_it_is_not(text: str, kept: list[str]) -> None:
    assert [found.text for found in protected_spans(text)] == kept


@pytest.mark.parametrize(
    "code",
    [
        "Ctrl+C",
        "F5",
        "/usr/bin",
        r"C:\Users\x",
        "=SUM(A1:A3)",
        "$a^2+b^2=c^2$",
        "src/main.py",
        "`make test`",
        "<%= x %>",
        "@@NAME@@",
        "$user",
        "Example.com",
    ],
)
def test_code_that_is_lost_is_looked_for_and_never_translated(code: str) -> None:
    assert difference(f"now {code} here", f"nun {code.swapcase()} dort").lost == [code]
    kept = difference(f"now {code} here", f"nun {code} dort")
    assert [*kept.lost, *kept.added, *kept.numbers_added] == []
    # A model that knows names and no code.
    spoils = Scripted(lambda text: " ".join(word if word == "Tom" else "la" for word in text.split()))
    (translation,) = translate_protected([SourceSentence(f"now {code} here")], Searching(spoils))
    assert (translation.text, translation.how) == (f"la {code} la", "stand-in")
    assert not has_words(code)


def test_a_placeholder_without_end_is_read_once() -> None:
    """A pattern that tried every way to part the zeros would not come back from this."""
    assert [span.kind for span in protected_spans("%" + "0" * 1_000_000)] == ["number"]
    assert [span.kind for span in protected_spans("%(a)" + "0" * 1_000_000)] == ["number"]


PIECES = [
    *"aZß中я٣5½①ⓐⅣ€$%#_-+/\\.:,;!?'’\"«»()[]{}<>=^~@&*|…–—−⌘→😀", "\u200d", "\ufe0f", "\u0301", "\u00a0", " ", " ",
    ". ", "the", "F5", "Ctrl", "Alt", "www.", "http://", "main.py", "x@y.zz", "{0}", "%s", "A1:B2", "C:\\x", "/etc",
    "1,000", "E=mc^2", "Shift",
]  # fmt: skip


def test_a_plain_text_is_one_in_which_nothing_is_found() -> None:
    """What is plain is not searched. With a string beside it that stands in no text, it is searched all the same."""
    draw = random.Random(24)
    texts = ["".join(draw.choices(PIECES, k=draw.randint(1, 9))) for _ in range(20_000)]
    texts += ["A man, a dog. It runs!", "«Oui», dit-elle…", "Er sagte: “Nein.”", "www. example", "Ctrl . C", "a. b."]
    plain = [text for text in texts if is_plain(text)]
    assert len(plain) > 500
    assert [text for text in plain if protected_spans(text, ["not in it"]) or code_spans(f"={text}")] == []
