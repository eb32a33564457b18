"""PO: what a machine filled in is marked, another language is refused, and a label keeps the mark of its key."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polib
import pytest

from dragoman.data.language_codes import same_language
from dragoman.documents.settings import FormatSettings
from dragoman.errors import DataError
from dragoman.run import Run
from support.po_files import HEADER, through
from support.scripted_translator import Scripted


@pytest.mark.parametrize(
    ("entry", "marked"),
    [
        ('msgid "dog"\nmsgstr ""\n', '#, fuzzy\nmsgid "dog"\nmsgstr "DOG"\n'),
        ('# a\n#, c-format\nmsgid "dog"\nmsgstr ""\n', '# a\n#, fuzzy, c-format\nmsgid "dog"\nmsgstr "DOG"\n'),
        ('#, fuzzy\nmsgid "dog"\nmsgstr ""\n', '#, fuzzy\nmsgid "dog"\nmsgstr "DOG"\n'),
        ('# a\n#| msgid "d"\nmsgid "dog"\nmsgstr ""\n', '# a\n#, fuzzy\n#| msgid "d"\nmsgid "dog"\nmsgstr "DOG"\n'),
        ('msgctxt "c"\r\nmsgid "dog"\r\nmsgstr ""\r\n', '#, fuzzy\r\nmsgctxt "c"\r\nmsgid "dog"\r\nmsgstr "DOG"\r\n'),
        ('msgid "dog"\nmsgstr "chien"\n', 'msgid "dog"\nmsgstr "chien"\n'),
        ('msgid "{x}"\nmsgstr ""\n', 'msgid "{x}"\nmsgstr ""\n'),
        (
            'msgid "dog"\nmsgid_plural "dogs"\nmsgstr[0] "chien"\nmsgstr[1] ""\n',
            '#, fuzzy\nmsgid "dog"\nmsgid_plural "dogs"\nmsgstr[0] "chien"\nmsgstr[1] "DOGS"\n',
        ),
    ],
)  # fmt: skip
def test_what_was_filled_in_is_marked_fuzzy(entry: str, marked: str) -> None:
    assert through(entry) == marked


def test_a_setting_leaves_it_unmarked() -> None:
    entry = '# a\n#, c-format\nmsgid "dog"\nmsgstr ""\n'
    assert through(entry, settings=FormatSettings(fuzzy=False)) == entry.replace('msgstr ""', 'msgstr "DOG"')


def test_a_placeholder_of_its_format_comes_through() -> None:
    """The model loses the sign, and the number of it is there all the same."""
    loses = Scripted(lambda text: text.upper().replace("%", "").replace("TOM", "Tom"))
    for flag in ("qt-format", "kde-format", "qt-plural-format"):
        said = through(f'#, {flag}\nmsgid "%1 &files"\nmsgstr ""\n', loses)
        assert said == f'#, fuzzy, {flag}\nmsgid "%1 &files"\nmsgstr "%1 &FILES"\n'


def test_what_stays_empty_is_not_fuzzy() -> None:
    entry = 'msgid "hello %s"\nmsgstr ""\n'
    assert through(entry, Scripted(lambda _: "{x}")) == entry


def test_messages_without_an_empty_line_between_them_are_each_their_own() -> None:
    read = polib.pofile(
        through('msgid "dog"\nmsgstr ""\n#: a:1\nmsgid "cat"\nmsgstr ""\nmsgid "cow"\nmsgstr "vache"\n')
    )
    assert [(e.msgid, e.msgstr, e.fuzzy) for e in read] == [
        ("dog", "DOG", True), ("cat", "CAT", True), ("cow", "vache", False)
    ]  # fmt: skip


def test_a_file_in_another_language_is_refused() -> None:
    entry = 'msgid "dog"\nmsgstr ""\n'
    with pytest.raises(
        DataError, match=r"x\.po: its header says Language: de, but the target language is French \(fr\)"
    ):
        through(HEADER.format(language="de") + entry, settings=FormatSettings(target="fr"))
    for language, target in [("fr_CA", "fr"), ("fr", "fr-ca"), ("", "fr"), ("de", None), ("pt_BR", "pt")]:
        content = HEADER.format(language=language) + entry
        assert 'msgstr "DOG"' in through(content, settings=FormatSettings(target=target))
    assert same_language("nb_NO", "no")
    assert not same_language("sr@latin", "sv")


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    (run / "languages.json").write_text('{"source": "en", "target": "eo"}', encoding="utf-8")
    return run


def test_the_command_and_python_refuse_mark_and_protect(run: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    (tmp_path / "de.po").write_text(HEADER.format(language="de") + 'msgid "dog"\nmsgstr ""\n', encoding="utf-8")
    ran = cli("translate-file", run, tmp_path / "de.po", "--out", tmp_path / "out.po")
    assert (ran.code, ran.stderr.count("\n")) == (3, 1)
    assert "Language: de" in ran.stderr
    assert not (tmp_path / "out.po").exists()

    # A run that does not know its languages takes the user's word, and without it says that nothing was checked.
    (run / "languages.json").unlink()
    named = ["translate-file", run, tmp_path / "de.po", "--out", tmp_path / "out.po"]
    ran = cli(*named, "--target-language", "eo")
    assert (ran.code, "Language: de, but the target language is Esperanto" in ran.stderr) == (3, True)
    assert not (tmp_path / "out.po").exists()
    ran = cli(*named, "--target-language", "de")
    assert (ran.code, "Language" in ran.stderr) == (0, False)
    ran = cli(*named)
    assert ran.code == 0
    assert [line for line in ran.stderr.splitlines() if "Language: de" in line] == [
        f"{tmp_path / 'de.po'}: its header says Language: de, and nothing says whether the run translates into that; "
        "--target-language has it checked"
    ]
    (run / "languages.json").write_text('{"source": "en", "target": "eo"}', encoding="utf-8")

    (tmp_path / "eo.po").write_text(HEADER.format(language="eo") + 'msgid "the dog"\nmsgstr ""\n', encoding="utf-8")
    for switch, fuzzy in (([], True), (["--no-fuzzy"], False)):
        ran = cli("translate-file", run, tmp_path / "eo.po", "--out", tmp_path / "out.po", *switch)
        assert ran.code == 0, ran.stderr
        assert polib.pofile(str(tmp_path / "out.po"))[0].fuzzy == fuzzy
    Run(run).translate_document(tmp_path / "eo.po", tmp_path / "python.po", fuzzy=False, say=None)
    assert (tmp_path / "python.po").read_bytes() == (tmp_path / "out.po").read_bytes()

    page = '<p class="brand">the dog</p><h1>the dog</h1><p>the dog</p>'
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    protect = ["--protect-style", "Brand", "--protect-style", "h1", "--protect-style", "Brnad"]
    ran = cli("translate-file", run, tmp_path / "a.html", "--out", tmp_path / "out.html", *protect)
    assert ran.code == 0, ran.stderr
    assert [line for line in ran.stderr.splitlines() if "nothing was protected" in line] == [
        f"{tmp_path / 'a.html'}: no style, font, class or tag 'Brnad' in it; nothing was protected by that name"
    ]
    said = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert said.startswith('<p class="brand">the dog</p><h1>the dog</h1><p>')
    assert "hundo" in said
    Run(run).translate_document(tmp_path / "a.html", tmp_path / "b.html", protect_styles=["brand", "H1"], say=None)
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == said
