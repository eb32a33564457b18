"""What must be the same in a translation is found, compared, and kept by every way a sentence takes."""

import pytest
from interpreting import Scripted, Searching

from dragoman.fallbacks import translate_protected
from dragoman.protected_spans import difference, has_words, protected_spans
from dragoman.translations import SourceSentence


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("see https://a.b/c?d=1. Now", ["https://a.b/c?d=1"]),
        ("(https://en.x/Mercury_(planet)) or www.x.y!", ["https://en.x/Mercury_(planet)", "www.x.y"]),
        ("mail a.b+c@d-e.org.", ["a.b+c@d-e.org"]),
        (
            "{name} {{x y}} ${z} %s %(n)d %1$s %.2f {0}",
            ["{name}", "{{x y}}", "${z}", "%s", "%(n)d", "%1$s", "%.2f", "{0}"],
        ),
        ("100% sure, 50% discount", ["100", "50"]),
        ("a <x/> b &amp; c", ["<x/>", "&amp;"]),
        ("1,234.50 and 1 000 and 5:30", ["1,234.50", "1 000", "5", "30"]),
        ("nothing", []),
        ("copy with Ctrl+C, then F5", ["Ctrl+C", "F5"]),
        (r"see C:\Users\x and /usr/bin.", [r"C:\Users\x", "/usr/bin"]),
        ("type =SUM(A1:A3) in 2 cells", ["=SUM(A1:A3)", "2"]),
        # Of what overlaps the whole: an index is the formula's, an address the tag's, a file the address's.
        ("so $a_{1}^2$ is", ["$a_{1}^2$"]),
        ("a <a href='/usr/bin/x.html'>b</a>", ["<a href='/usr/bin/x.html'>", "</a>"]),
        ("see https://a.b/usr/bin/x.html, x.html", ["https://a.b/usr/bin/x.html", "x.html"]),
        ("and/or he/she, A+B, AC/DC, Windows/Linux, C++", []),
        ("3/4 of it, 24/7", ["3", "4", "24", "7"]),
    ],
)
def test_what_must_be_kept(text: str, kept: list[str]) -> None:
    assert [found.text for found in protected_spans(text)] == kept


def test_numbers_may_change_their_marks_but_not_their_digits() -> None:
    assert difference("1,234.50 euro", "1.234,50 Euro").lost == []
    assert difference("1,234.50 euro", "1 234,50 euro").lost == []
    assert difference("in 1998", "en 1999") == (["1998"], [], ["1999"])
    assert difference("3 and 3", "3").lost == ["3"]
    assert difference("4.5 stars", "2. Sterne").lost == ["4.5"]
    assert difference("4.5 stars", "45 Sterne").lost == ["4.5"]
    assert difference("one {x}", "1 {x} {y}") == ([], ["{y}"], ["1"])


@pytest.mark.parametrize(
    "code", ["Ctrl+C", "F5", "/usr/bin", r"C:\Users\x", "=SUM(A1:A3)", "$a^2+b^2=c^2$", "src/main.py"]
)
def test_code_that_is_lost_is_looked_for_and_never_translated(code: str) -> None:
    assert difference(f"now {code} here", f"nun {code.swapcase()} dort").lost == [code]
    assert difference(f"now {code} here", f"nun {code} dort") == ([], [], [])
    # A model that knows names and no code.
    spoils = Scripted(lambda text: " ".join(word if word == "Tom" else "la" for word in text.split()))
    (translation,) = translate_protected([SourceSentence(f"now {code} here")], Searching(spoils))
    assert (translation.text, translation.how) == (f"la {code} la", "stand-in")
    assert not has_words(code)


def test_a_placeholder_without_end_is_read_once() -> None:
    """A pattern that tried every way to part the zeros would not come back from this."""
    assert [span.kind for span in protected_spans("%" + "0" * 1_000_000)] == ["number"]
    assert [span.kind for span in protected_spans("%(a)" + "0" * 1_000_000)] == ["number"]
