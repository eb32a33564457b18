"""The demo's data: sentence pairs of the Tatoeba project, cleaned and split without leaks.

They are kept outside the repository, under `default_cache()`. The split is that of `splitting`. There is no giant
component: with its identity the largest one of English-French has 105 of 177,787 pairs, and 88 % of the English
sentences are the only one of theirs. The test is like the whole: 6.37 words a sentence against 6.31, 28.7 % of
sentences with several references against 28.5 %.
"""

import json
import re
import tempfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.corpus import SentencePair
from dragoman.data.splitting import HeldOut, split_pairs
from dragoman.errors import DataError
from dragoman.quickstart.corpora import CORPORA, DEFAULT, DemoCorpus
from dragoman.quickstart.distribution import cannot_hold, fetch_corpus

TEST_SENTENCES = 1000
VALID_SENTENCES = 1000
_SEED = 1
_PREPARATION = 1  # raised when cleaning or splitting changes, so that files prepared before are made again

_ATTRIBUTION = """\
The sentence pairs in this directory are from the Tatoeba project, https://tatoeba.org, by way of the Tab-delimited
Bilingual Sentence Pairs of https://www.manythings.org/anki/ (file of {date}).

Licence: Creative Commons Attribution 2.0 France (CC BY 2.0 FR), https://creativecommons.org/licenses/by/2.0/fr/

Changes made: white space written as single plain spaces, invisible characters removed, curly apostrophes written as
straight ones, {changes}pairs that are then equal written once; divided into training, validation and test.

{sentences} the numbers and authors of its two sentences at Tatoeba,
where https://tatoeba.org/sentences/show/<number> shows each. The authors of all sentences used here:

{authors}
"""
_IN_THE_ARCHIVE = "The third column of {text} in {file} names, for each pair,"
_BESIDE_THE_TEXT = """\
Each line of train.attribution names, for the same line of train.tsv, and each line of valid.attribution.N and
test.attribution.N, for the same line of valid.{target}.N and test.{target}.N (valid.tsv has those of valid.{target}.0;
several with tabs between, where several pairs were equal),"""
# Changes that only one language needs.
_CHANGES = {"uk": "Latin letters in place of Cyrillic ones that look the same exchanged, marks of stress removed,\n"}

# As in Вiн and ïжа, where i and ï are Latin; á and ó are what is left of a marked а and о.
_LOOKALIKES = str.maketrans("ABCEHIKMOPTXYaceiopxyÏïáó", "АВСЕНІКМОРТХУасеіорхуЇїао")


class TatoebaPair(NamedTuple):
    """A line of a corpus."""

    source: str
    target: str
    attribution: str  # the licence, and the numbers and authors of both sentences


@dataclass(frozen=True)
class Summary:
    """How many pairs the archive has, and how they were split."""

    pairs_in_archive: int
    pairs: int  # after cleaning
    english_sentences: int
    english_with_several_references: int
    train_pairs: int
    valid_sentences: int
    valid_references: int
    test_sentences: int
    test_references: int
    mean_words: float  # in an English sentence, over all
    mean_words_test: float


@dataclass(frozen=True)
class DemoData:
    """The prepared files. `evaluation.metrics.read_references` reads the references: an empty line is no reference."""

    corpus: DemoCorpus
    directory: Path
    summary: Summary

    @property
    def train(self) -> Path:
        """Tab-separated pairs."""
        return self.directory / "train.tsv"

    @property
    def valid(self) -> Path:
        """Tab-separated pairs: each held-out sentence with its first reference."""
        return self.directory / "valid.tsv"

    @property
    def valid_source(self) -> Path:
        return self.directory / f"valid.{self.corpus.source}"

    @property
    def valid_references(self) -> tuple[Path, ...]:
        return self._references("valid")

    @property
    def test_source(self) -> Path:
        return self.directory / f"test.{self.corpus.source}"

    @property
    def test_references(self) -> tuple[Path, ...]:
        return self._references("test")

    @property
    def attribution(self) -> Path:
        return self.directory / "ATTRIBUTION"

    def _references(self, part: str) -> tuple[Path, ...]:
        return tuple(
            sorted(self.directory.glob(f"{part}.{self.corpus.target}.*"), key=lambda path: int(path.suffix[1:]))
        )


def prepare_demo(cache: Path, corpus: DemoCorpus = CORPORA[DEFAULT]) -> DemoData:
    """Fetches, cleans and splits the pairs. This is done once: a second call finds the files."""
    directory = cache / f"demo-{corpus.name}"
    found = _prepared(corpus, directory)
    if found is not None:
        return found
    path = fetch_corpus(corpus, cache)
    try:
        with tempfile.TemporaryDirectory(dir=cache, prefix=".preparing-") as temporary:
            # Written elsewhere and renamed when complete: an interrupted preparation is never taken for a whole one.
            staged = Path(temporary) / "staged"
            staged.mkdir()
            _write_demo(corpus, path, staged)
            if directory.exists():
                directory.rename(Path(temporary) / "outdated")
            staged.rename(directory)
    except OSError as error:
        raise cannot_hold(cache, error) from None
    prepared = _prepared(corpus, directory)
    assert prepared is not None
    return prepared


def read_tatoeba(corpus: DemoCorpus, path: Path) -> list[TatoebaPair]:
    """Reads all pairs of the corpus's file unchanged."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as content:
            text = content.read(corpus.text).decode("utf-8")
    else:
        text = path.read_bytes().decode("utf-8")
    pairs = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        columns = line.split("\t", 2)
        if len(columns) < 2:
            raise DataError(f"{path}: line {number} of {corpus.text} has no tab; delete the file to fetch it again")
        pairs.append(TatoebaPair(columns[0], columns[1], "".join(columns[2:])))
    return pairs


def authors_of(pairs: Iterable[TatoebaPair]) -> list[str]:
    """Returns the authors that the attributions name, each once, by name."""
    authors = {name for pair in pairs for name in re.findall(r"#\d+ \(([^)]*)\)", pair.attribution)}
    return sorted(authors, key=lambda name: (name.casefold(), name))


def clean(pairs: Iterable[TatoebaPair], target_language: str) -> dict[SentencePair, list[str]]:
    """Returns pairs with one spelling of spaces, apostrophes and letters, each pair once, none with an empty side; and
    the attributions of all the lines that each of them was.

    Tatoeba's French has four kinds of space before `!` and two apostrophes, its Ukrainian Latin letters among the
    Cyrillic ones, by author and not by meaning; a small model could only guess between them.
    """
    cleaned: dict[SentencePair, list[str]] = defaultdict(list)
    for source, target, attribution in pairs:
        pair = (clean_text(source), clean_text(target, target_language))
        if all(pair):
            cleaned[pair].append(attribution)
    return dict(cleaned)


def clean_text(text: str, language: str = "") -> str:
    """Returns one side of a pair with one spelling of spaces and apostrophes; of Ukrainian also of letters."""
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = re.sub("[’‘ʼ]", "'", text)  # the last is a letter, and written in Ukrainian words
        text = unicodedata.normalize("NFC", text)
        if language == "uk":
            text = re.sub(r"[^\W\d_]+", _in_cyrillic, text.replace("\u0301", ""))
    return " ".join(text.split())


def _in_cyrillic(word: re.Match[str]) -> str:
    """Returns a word with Cyrillic letters in place of Latin ones if it is then wholly Cyrillic, and was not Latin."""
    cyrillic = word[0].translate(_LOOKALIKES)
    mixed = word[0] == "i" or any(_is_cyrillic(c) or c in "ïÏ" for c in word[0])
    return cyrillic if mixed and all(map(_is_cyrillic, cyrillic)) else word[0]


def _is_cyrillic(letter: str) -> bool:
    return "\u0400" <= letter <= "\u04ff"


def _prepared(corpus: DemoCorpus, directory: Path) -> DemoData | None:
    """Returns the data in `directory` if it is complete and was made with the present settings; otherwise None."""
    try:
        manifest = json.loads((directory / "demo.json").read_text(encoding="utf-8"))
        if manifest["made_by"] != _made_by(corpus):
            return None
        data = DemoData(corpus, directory, Summary(**manifest["summary"]))
        sizes = {path.name: path.stat().st_size for path in directory.iterdir() if path.name != "demo.json"}
        return data if sizes == manifest["sizes"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _made_by(corpus: DemoCorpus) -> dict[str, Any]:
    return {
        "preparation": _PREPARATION,
        "archive": corpus.sha256,
        "seed": _SEED,
        "valid_sentences": VALID_SENTENCES,
        "test_sentences": TEST_SENTENCES,
    }


def _write_demo(corpus: DemoCorpus, path: Path, directory: Path) -> None:
    raw = read_tatoeba(corpus, path)
    attributions = clean(raw, corpus.target)
    pairs = list(attributions)
    split = split_pairs(pairs, VALID_SENTENCES, TEST_SENTENCES, _SEED)
    references: dict[str, int] = defaultdict(int)
    for source, _ in pairs:
        references[source] += 1
    summary = Summary(
        pairs_in_archive=len(raw),
        pairs=len(pairs),
        english_sentences=len(references),
        english_with_several_references=sum(count > 1 for count in references.values()),
        train_pairs=len(split.train),
        valid_sentences=len(split.valid),
        valid_references=sum(map(len, split.valid.values())),
        test_sentences=len(split.test),
        test_references=sum(map(len, split.test.values())),
        mean_words=_mean_words(references),
        mean_words_test=_mean_words(split.test),
    )
    _write_lines(directory / "train.tsv", (f"{source}\t{target}" for source, target in split.train))
    _write_lines(directory / "valid.tsv", (f"{source}\t{targets[0]}" for source, targets in split.valid.items()))
    for part, sentences in (("valid", split.valid), ("test", split.test)):
        _write_held_out(corpus, directory, part, sentences, attributions)
    if corpus.attribution_of_each_line:
        _write_lines(directory / "train.attribution", ("\t".join(attributions[pair]) for pair in split.train))
    (directory / "ATTRIBUTION").write_text(_attribution(corpus, authors_of(raw)), encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in directory.iterdir()}
    manifest = {"made_by": _made_by(corpus), "summary": asdict(summary), "sizes": sizes}
    (directory / "demo.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _write_held_out(
    corpus: DemoCorpus,
    directory: Path,
    part: str,
    sentences: HeldOut,
    attributions: Mapping[SentencePair, Sequence[str]],
) -> None:
    """Writes the sources, and a file for the first reference of each, the second, and so on; likewise attributions."""
    _write_lines(directory / f"{part}.{corpus.source}", sentences)
    for number in range(max(map(len, sentences.values()), default=0)):
        column = [targets[number] if number < len(targets) else "" for targets in sentences.values()]
        _write_lines(directory / f"{part}.{corpus.target}.{number}", column)
        if corpus.attribution_of_each_line:
            pairs = zip(sentences, column, strict=True)
            lines = ("\t".join(attributions.get(pair, ())) for pair in pairs)
            _write_lines(directory / f"{part}.attribution.{number}", lines)


def _attribution(corpus: DemoCorpus, authors: Sequence[str]) -> str:
    """Returns the text that says whose the sentences are, and what was changed."""
    where = _BESIDE_THE_TEXT if corpus.attribution_of_each_line else _IN_THE_ARCHIVE
    return _ATTRIBUTION.format(
        date=corpus.date,
        changes=_CHANGES.get(corpus.target, ""),
        sentences=where.format(text=corpus.text, file=corpus.file, target=corpus.target),
        authors=", ".join(authors),
    )


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _mean_words(sentences: Iterable[str]) -> float:
    lengths = [len(sentence.split()) for sentence in sentences]
    return round(sum(lengths) / len(lengths), 2) if lengths else 0.0
