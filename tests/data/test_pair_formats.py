"""Pairs out of every kind of file, and one clear line where there are none."""

import gzip
import json
from pathlib import Path

import polib
import pytest

from dragoman.data.pair_formats import read_any
from dragoman.errors import DataError

PAIRS = [("Hello & welcome.", "Bonjour et bienvenue."), ("The cat <3", "Le chat <3"), ("Two\nlines", "Deux\nlignes")]
LINES = [*PAIRS[:2], ("Two", "Deux"), ("lines", "lignes")]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def tmx(units: list[dict[str, str]], source: str = "en-US") -> str:
    variants = [
        "".join(f'<tuv xml:lang="{code}"><seg>{escaped(text)}</seg></tuv>' for code, text in unit.items())
        for unit in units
    ]
    body = "".join(f"<tu>{variant}</tu>" for variant in variants)
    return f'<?xml version="1.0"?><tmx version="1.4"><header srclang="{source}"/><body>{body}</body></tmx>'


def xliff(pairs: list[tuple[str, str]]) -> str:
    units = "".join(
        f'<trans-unit id="{i}"><source>{escaped(s)}</source>'
        f"{f'<target>{escaped(t)}</target>' if t else ''}</trans-unit>"
        for i, (s, t) in enumerate(pairs)
    )
    return (
        '<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        '<file original="x" datatype="plaintext" source-language="en" target-language="fr-CA">'
        f"<body>{units}</body></file></xliff>"
    )


def po(pairs: list[tuple[str, str]]) -> polib.POFile:
    file = polib.POFile()
    file.metadata = {"Language": "fr", "Content-Type": "text/plain; charset=utf-8"}
    for source, target in pairs:
        file.append(polib.POEntry(msgid=source, msgstr=target))
    return file


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    flat = [(s.replace("\n", " "), t.replace("\n", " ")) for s, t in PAIRS]
    files = {
        "a.tsv": "source\ttarget\n" + "".join(f"{s}\t{t}\tmore\n" for s, t in flat),
        "a.csv": 'Source;Target\n"' + '"\n"'.join(f'{s}";"{t}' for s, t in PAIRS) + '"\n',
        "a.jsonl": "".join(json.dumps({"translation": {"en": s, "fr": t}}) + "\n" for s, t in PAIRS),
        "b.jsonl": "".join(json.dumps({"src": s, "tgt": t, "id": 3}) + "\n" for s, t in PAIRS),
        "c.jsonl": "".join(json.dumps([s, t]) + "\n" for s, t in PAIRS),
        "a.json": json.dumps([{"en": s, "fr": t} for s, t in PAIRS], indent=1),
        "a.tmx": tmx([{"fr-FR": t, "en-US": s} for s, t in PAIRS]),
        "a.xlf": xliff(PAIRS),
    }
    for name, text in files.items():
        found = read_any([write(tmp_path / name, text)])
        expected = flat if name in ("a.tsv", "a.xlf") else LINES  # white space says nothing in XLIFF
        assert found.pairs == expected, name
        if name in ("a.jsonl", "a.tmx", "a.xlf"):
            assert found.languages == ("en", "fr"), name
    with gzip.open(tmp_path / "z.tsv.gz", "wt", encoding="utf-8") as stream:
        stream.write("".join(f"{s}\t{t}\n" for s, t in flat))
    assert read_any([tmp_path / "z.tsv.gz"]).pairs == flat
    po(PAIRS).save(str(tmp_path / "a.po"))
    po(PAIRS).save_as_mofile(str(tmp_path / "a.mo"))
    for name in ("a.po", "a.mo"):
        found = read_any([tmp_path / name])
        assert (sorted(found.pairs), found.languages) == (sorted(LINES), ("en", "fr"))
    two = [
        write(tmp_path / f"t.{code}", "".join(f"{pair[i]}\n" for pair in flat)) for i, code in enumerate(("en", "fr"))
    ]
    found = read_any(two)
    assert (found.pairs, found.languages) == (flat, ("en", "fr"))


def test_the_direction_that_is_asked_for_is_what_is_read(tmp_path: Path) -> None:
    flat = [(s.replace("\n", " "), t.replace("\n", " ")) for s, t in PAIRS]
    back = [(target, source) for source, target in flat]
    po(flat).save(str(tmp_path / "a.po"))
    two = [
        write(tmp_path / f"t.{code}", "".join(f"{pair[i]}\n" for pair in flat)) for i, code in enumerate(("en", "fr"))
    ]
    for paths in ([write(tmp_path / "a.xlf", xliff(PAIRS))], [tmp_path / "a.po"], two):
        found = read_any(paths, ("fr", "en"))
        assert (sorted(found.pairs), found.languages) == (sorted(back), ("fr", "en"))
        assert sorted(read_any(paths, ("en", "fr")).pairs) == sorted(flat)


def test_what_is_not_translated_is_counted(tmp_path: Path) -> None:
    found = read_any([write(tmp_path / "a.xlf", xliff([*PAIRS, ("open", "")]))])
    assert found.skipped == {"not translated": 1}
    file = po([("one", "un"), ("two", "")])
    file.append(polib.POEntry(msgid="three", msgstr="trios", flags=["fuzzy"]))
    file.append(
        polib.POEntry(msgid="%d file", msgid_plural="%d files", msgstr_plural={0: "%d fichier", 1: "%d fichiers"})
    )
    file.save(str(tmp_path / "a.po"))
    found = read_any([tmp_path / "a.po"])
    assert found.pairs == [("one", "un"), ("%d file", "%d fichier"), ("%d files", "%d fichiers")]
    assert found.skipped == {"not translated": 1, "fuzzy or obsolete": 1}


def test_a_folder_is_all_that_is_in_it(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", "one\tun\n")
    (tmp_path / "deeper").mkdir()
    write(tmp_path / "deeper" / "b.jsonl", '{"source": "two", "target": "deux"}\n')
    write(tmp_path / "deeper" / "news.en", "three\n")
    write(tmp_path / "deeper" / "news.fr", "trois\n")
    write(tmp_path / "README", "not data")
    write(tmp_path / "notes.md", "not data")
    write(tmp_path / "old.xls", "not data")
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".git" / "b.tsv", "hidden\tcaché\n")
    found = read_any([tmp_path])
    assert {path.name: why for path, why in found.passed_over.items()} == {
        "README": "files without an ending are not read",
        "notes.md": "files ending in .md are not read",
        "old.xls": "this format of spreadsheets is not read; save it as .xlsx, or as CSV in UTF-8",
    }
    assert found.pairs == [("one", "un"), ("two", "deux"), ("three", "trois")]
    assert read_any([tmp_path], ("fr", "en")).pairs[-1] == ("trois", "three")
    write(tmp_path / "deeper" / "alone.en", "four\n")
    alone = read_any([tmp_path]).passed_over[tmp_path / "deeper" / "alone.en"]
    assert alone == "there is no second file of that name, in another language"
    (tmp_path / "deeper" / "alone.en").unlink()
    write(tmp_path / "deeper" / "news.de", "drei\n")
    with pytest.raises(DataError, match=r"3 files of one name; .*--source-language"):
        read_any([tmp_path])
    assert read_any([tmp_path], ("de", "en")).pairs[-1] == ("drei", "three")


def test_several_languages_in_one_file_are_chosen_from(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx([{"en": "one", "fr": "un", "de": "eins"}, {"en": "two", "de": "zwei"}]))
    with pytest.raises(DataError, match=r"3 languages \(en, fr, de\); choose two with --source-language"):
        read_any([path])
    assert read_any([path], ("de", "en")).pairs == [("eins", "one"), ("zwei", "two")]
    found = read_any([path], ("en", "fr"))
    assert (found.pairs, found.skipped) == ([("one", "un")], {"not translated": 1})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"one two\nthree four\n", "2 of 2 lines are without a tab; give a source, a tab and a target"),
        ("a.tsv", "é\tà\n".encode("latin-1") * 5, "5 of 5 lines are not UTF-8"),
        ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl:1: no pair in it; write"),
        ("a.jsonl", b"{\n", r"a\.jsonl:1: not valid JSON"),
        ("a.tmx", b"<tmx><body>", r"a\.tmx: cannot be read"),
        ("a.po", b"hello world\n", r"a\.po: cannot be read"),
        ("a.tsv", b"", "nothing to learn from"),
        ("a.xls", b"x", r"a\.xls: this format of spreadsheets is not read; save it as \.xlsx"),
        ("a.xlsx", b"one,un", r"a\.xlsx: no XLSX file"),
        ("a.zip", b"x", r"a\.zip: an archive is not read; unpack it first"),
        ("a.csv", b'a,"' + 200_000 * b"x", r"a\.csv: cannot be read as CSV"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_any([tmp_path / name])
    with pytest.raises(DataError, match="no such file"):
        read_any([tmp_path / "missing.tsv"])


def test_two_folders_are_no_two_aligned_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text.tsv").write_text(f"one {name}\tun {name}\n", encoding="utf-8")
    assert read_any([tmp_path / "a", tmp_path / "b"]).pairs == [("one a", "un a"), ("one b", "un b")]
