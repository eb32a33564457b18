"""Code in running text is found, and what only looks like it is not; in time that grows with the text."""

import pytest

from dragoman.data.code_spans import code_spans
from dragoman.data.segmentation import sentences
from support.counting import count_steps


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in code_spans(text)]


@pytest.mark.parametrize(
    "code",
    [
        "=SUM(A1:A3)",
        "=A1+B2*2",
        '=IF(A1>0, "yes", "no")',
        "=AVERAGE(B2:B10)/MAX(C1,D2)",
        "$a^2+b^2=c^2$",
        "$x$",
        "$$a+b$$",
        r"\(x+y\)",
        r"\[ \frac{a}{b} \]",
        "E=mc^2",
        "(a+b)^(2)",
        "Ctrl+C",
        "Ctrl + Alt + Del",
        "Ctrl-C",
        "Cmd+Shift+P",
        "⌘C",
        "F5",
        "/usr/lib/x",
        "/etc",
        "/home/user/.bashrc",
        "/var/log/*.log",
        "~/x.txt",
        "./run.sh",
        "../a/b",
        "src/main.py",
        "package.tar.gz",
        r"C:\Users\x",
        r"C:\Program Files\Foo\x.exe",
        r"\\server\share\x",
    ],
)
def test_code_is_found_wherever_it_stands(code: str) -> None:
    for sentence in ("{}", "Press {} now.", "See {}.", "(here: {})", "«{}», then", "{}, {}; and {}?"):
        assert found(sentence.replace("{}", code)) == [code] * sentence.count("{}")


@pytest.mark.parametrize(
    "words",
    """and/or, km/h, 24/7, he/she, TCP/IP, I/O, 1/2, $5 and $10, US$5 or A$10, $HOME and $PATH, n/a, 10/12/2020, w/o,
    left/right/up/down, and / or, I said: /help, </b>, <br/>, //comment, :-/, A & B, R&D, C++, A+ grade, x = y,
    2 + 2 = 4, = 5, a=b, ^_^, ~5 minutes, Control + design, Option A, Win a prize, Alt-right politics, Win-win,
    Super-8 film, Meta-analysis, His F-16, F1's, U.S., e.g. this, night and day.It is, read/write/execute, 3.5/5 stars,
    Paris/London, AC/DC, Windows/Linux, A+B, 3/4, \\[optional\\], \\(see below\\), the F.B.I.""".replace(
        "\n    ", " "
    ).split(", "),
)
def test_what_only_looks_like_code_is_not_found(words: str) -> None:
    for sentence in ("{}", "This is {} now.", "See {}.", "({})"):
        assert found(sentence.replace("{}", words)) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('Type =IF(A1>0, "Yes. No.", "x") here. Then go.', ['Type =IF(A1>0, "Yes. No.", "x") here.', "Then go."]),
        ("Take $x_1 = 2. Y_2$ now. Then go.", ["Take $x_1 = 2. Y_2$ now.", "Then go."]),
        ("Press Ctrl+. Then go to /usr/bin. Look.", ["Press Ctrl+.", "Then go to /usr/bin.", "Look."]),
    ],
)
def test_no_sentence_ends_inside_code(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text, 0, len(text), "en")] == parts


def test_of_code_in_code_the_whole_is_found_once() -> None:
    assert found("Open $HOME, ~/a/b.txt and \\(a^2\\) with Ctrl+F5.") == ["~/a/b.txt", "\\(a^2\\)", "Ctrl+F5"]
    assert found("=SUM(A1:A3") == []
    assert code_spans("") == []


@pytest.mark.parametrize(
    "part",
    [
        "/",
        "/a",
        "a/",
        "C:\\a",
        "$a",
        "$",
        "a^",
        "=A1",
        "=SUM(",
        "Ctrl+",
        "\\(a",
        "\\[a",
        "a.",
        "=(",
        "x^)",
        "$\\a",
        '=A1&"',
        ".tar",
        "(",
        "=A1+A1",
        "../",
        "a-",
        "⌘",
        "\\\\a",
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(part: str) -> None:
    """Steps of the program are counted; what a pattern reads again is not seen so, and has the pattern's own limits."""

    def steps(text: str) -> int:
        return count_steps(lambda: code_spans(text))

    few, many = (part * (length // len(part)) for length in (500, 4000))
    assert steps(many) <= 8 * steps(few) + 400
