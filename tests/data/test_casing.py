"""Inline case: capitals as marks, lossless on any text, and everything that works on tokens with it."""

import dataclasses
import itertools
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import Casing, CorpusConfig, DataConfig
from dragoman.data.augmentation import BpeDropout, known_tags, require_bpe, words_of
from dragoman.data.casing import MARK_PIECES, InlineCase
from dragoman.data.dataset import Prepared, prepare
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.data.words import words_of as read_words_of
from dragoman.errors import DataError
from dragoman.translation.translator import Translator
from support.lexicon import lexicon_pairs

if TYPE_CHECKING:
    from support.commands import Ran

WORDS = ["the", "a", "dog", "cat", "der", "die", "Hund", "Katze", "läuft", "NASA", "l'Amour", "iPhone", "12", "1984"]
SENTENCES = [f"{a} {b} ({c}), {d}." for a in WORDS for b in WORDS for c in WORDS[4:10] for d in WORDS[6:]]
TAGS = [">>zh_Hant<<", ">>de<<", "<BT>"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(SENTENCES, 400, TAGS, casing="inline", split_digits=True)


def pieces(tokenizer: Tokenizer, text: str) -> str:
    return " ".join(map(tokenizer.piece, tokenizer.encode(text)))


# Text and back.


CASED = st.sampled_from(
    [*"aAbBzZ", "É", "é", "Σ", "σ", "ς", "ß", "ẞ", "İ", "ı", "ǅ", "Ǆ", "ǆ", "ﬁ", "ŉ", "K", "Ⅷ", "Ⓐ"]
)
AWKWARD = st.sampled_from(
    [
        "\u0301",
        "\u0345",
        "'",
        "’",
        "_",
        "-",
        " ",
        "  ",
        "⇧",
        "⇪",
        "⇩",
        "▁",
        "␛",
        "␛^",
        "␛=",
        "␛_",
        "\n",
        "\t",
        "\xa0",
        "9",
    ]
)
MORE = st.sampled_from(["日", "ა", "Ა", "𐐀", "ʰ", ">>zh_Hant<<", "<BT>", "HTTPs", "Katze", "<unk>", "<0x41>", "\0"])


@settings(max_examples=1000)
@given(text=st.lists(CASED | AWKWARD | MORE).map("".join) | st.text(st.characters(exclude_categories=["Cs"])))
def test_nothing_of_any_text_is_lost(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_id not in ids


def test_every_letter_that_has_a_case_comes_back() -> None:
    case = InlineCase()
    cased = [one for one in map(chr, range(sys.maxunicode + 1)) if not one.lower() == one.upper() == one.title()]
    assert len(cased) > 2500
    for one in cased:
        text = f"{one} {one}a A{one}A {one}{one}B({one}"
        assert case.restore(case.fold(text)) == text, f"U+{ord(one):04X}"


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Two Dogs", "⇧ two ⇧ dogs"),
        (" Two  Dogs ", " ⇧ two  ⇧ dogs "),
        ("NASA is I", "⇪ nasa is ⇧ i"),
        ("(Hello) l'Amour iPhone", "(⇧hello) l'⇧amour i⇧phone"),
        ("HTTPs PhDs MHz NASA's", "⇪ http⇩s ⇧ ph⇧ds ⇪ mh⇩z ⇪ nasa'⇩s"),
        ("HTTPServer McDONALD", "⇪ http⇧server ⇧ mc⇪donald"),
        ("DON'T L’AMOUR MAX_VALUE US-AMERIKA", "⇪ don't ⇪ l’amour ⇪ max_value ⇪ us-⇪amerika"),
        ("STRAßE ÉTÉ E\u0301TE\u0301 ΟΔΟΣ", "⇪ straße ⇪ été ⇪ e\u0301te\u0301 ⇪ οδοσ"),
        ("A4 3D B2B U.S.", "⇧ a4 3⇧d ⇪ b2b ⇧ u.⇧s."),
        ("İstanbul ǅ ß 日本 123", "İstanbul ǅ ß 日本 123"),
    ],
)
def test_how_capitals_are_written(text: str, folded: str) -> None:
    assert InlineCase().fold(text) == folded
    assert InlineCase().restore(folded) == text


@given(st.text("aZ9_'- ⇧é", max_size=12) | st.text("abAB0_'. -", max_size=20))
def test_the_words_that_are_looked_at_are_all_that_have_a_capital(text: str) -> None:
    """Of plain ASCII only those are; with a tag that has capitals, all words are."""
    assert InlineCase().fold(text) == InlineCase(["<Tag>"]).fold(text)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("⇧", ""),
        ("a ⇧", "a"),
        ("a⇧", "a"),
        ("a ⇪ ⇧ ", "a"),
        ("⇧ , b", ", b"),
        ("a ⇧ , b", "a , b"),
        ("a ⇩ b", "a b"),
        ("a⇧ two", "a two"),
        ("a ⇧two", "a Two"),
        ("⇧ ⇪ two", "TWO"),
        ("a ⇧⇪ two", "a TWO"),
        ("⇧3d ⇪ 日", "3d 日"),
        ("⇪ ab⇧⇩cd", "ABcd"),
    ],
)
def test_marks_in_vain_disappear(written: str, text: str) -> None:
    assert InlineCase().restore(written) == text


@settings(max_examples=500)
@given(data=st.data())
def test_whatever_tokens_a_model_writes_are_a_tidy_text(tokenizer: Tokenizer, data: st.DataObject) -> None:
    words = {token for word in WORDS for token in tokenizer.encode(word)} - {tokenizer.encode("12")[0]}
    tidy = [token for token in words if tokenizer.piece(token) != "▁"]
    ids = data.draw(st.lists(st.sampled_from([*tokenizer.case_marks.values(), *sorted(tidy)])))
    text = tokenizer.decode(ids)
    assert not set(text) & set("⇧⇪⇩")
    assert text == " ".join(text.split())


# The vocabulary.


def test_a_word_shares_its_pieces_with_its_lower_case_form(tokenizer: Tokenizer) -> None:
    assert pieces(tokenizer, "Dog Dog") == "▁⇧ ▁dog ▁⇧ ▁dog"
    marks, dog = tokenizer.case_marks, tokenizer.encode("dog")
    assert tuple(marks) == MARK_PIECES
    assert tokenizer.encode("Dog") == [marks["▁⇧"], *dog]
    assert tokenizer.encode("DOG") == [marks["▁⇪"], *dog]
    assert tokenizer.encode("dogs DOGs")[-2:] == [marks["⇩"], *tokenizer.encode("(s")[1:]]
    letters = [
        p
        for p in map(tokenizer.piece, range(tokenizer.vocab_size))
        if not p.startswith("<") and f"▁{p}" not in MARK_PIECES
    ]
    assert [p for p in letters if p != p.lower()] == ["▁>>zh_Hant<<", "▁<BT>"]


def test_digits_are_tokens_of_their_own(tokenizer: Tokenizer) -> None:
    assert pieces(tokenizer, "1984, a1") == "▁ 1 9 8 4 , ▁a 1"
    merged = Tokenizer.learn(SENTENCES, 400)
    assert any(len(piece) > 2 and piece.strip("▁").isdigit() for piece in map(merged.piece, range(merged.vocab_size)))


def test_tags_stay_whole_and_are_no_marks(tokenizer: Tokenizer) -> None:
    assert pieces(tokenizer, ">>zh_Hant<< <BT> Dog") == "▁>>zh_Hant<< ▁<BT> ▁⇧ ▁dog"
    assert tokenizer.languages == ["de", "zh_Hant"]
    assert known_tags(tokenizer, DataConfig()) == frozenset(TAGS)


def test_a_plain_vocabulary_has_no_marks_even_if_it_has_arrows() -> None:
    plain = Tokenizer.learn(["⇧ ⇪ ⇩ x⇧ y⇪ z⇩"] * 9 + SENTENCES, 400)
    assert set(MARK_PIECES) <= {plain.piece(token) for token in range(plain.vocab_size)}
    assert not plain.case_marks
    assert plain.decode(plain.encode("⇧ two ⇪ Dogs")) == "⇧ two ⇪ Dogs"


def test_a_vocabulary_of_single_characters_is_the_smallest_in_inline_case_too() -> None:
    assert Tokenizer.learn(["".join(map(chr, range(0x4E00, 0x4E80)))] * 3, 300, casing="inline").is_alphabet()


# Words, dropout, the record.


@pytest.mark.parametrize(
    "text", ["Two Dogs", '(Hello) "DOG" l\'Amour, iPhone HTTPs', "A. B ⇧ ⇪ x", "Ein日本HUND", "12 A4"]
)
def test_a_mark_belongs_to_the_word_that_it_capitalises(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    words = read_words_of(ids, tokenizer)
    assert [text[word.start : word.end] for word in words] == [word.text for word in words]
    assert "".join(word.text for word in words) == "".join(text.split())
    assert [word.first_token for word in words[1:]] == [word.last_token + 1 for word in words[:-1]]
    lower = tokenizer.encode(text.lower())
    assert [word.text.lower() for word in words] == [word.text for word in read_words_of(lower, tokenizer)]
    marks = set(tokenizer.case_marks.values())
    assert all(ids[word.last_token] not in marks for word in words)


def test_marks_that_nothing_follows_are_no_word(tokenizer: Tokenizer) -> None:
    mark, inner = tokenizer.case_marks["▁⇧"], tokenizer.case_marks["⇧"]
    dog = tokenizer.encode("dog")
    assert [word.text for word in read_words_of([*dog, mark, inner], tokenizer)] == ["dog"]
    assert [word.text for word in read_words_of([mark, mark, *dog], tokenizer)] == ["Dog"]


def test_bpe_dropout_leaves_the_marks_whole(tokenizer: Tokenizer) -> None:
    texts = [*SENTENCES[:200], "HTTPs (Hello) 1984 x2 >>zh_Hant<< Dog", " Two  Dogs", "⇧ ▁ ␛ É日A"]
    require_bpe(tokenizer, texts, TAGS)
    dropout = BpeDropout(tokenizer, TAGS, 0.5, "key")
    marks = set(tokenizer.case_marks.values())
    draw = random.Random(1)
    for text, normalised in zip(texts, tokenizer.normalised_batch(texts), strict=True):
        ids = dropout.encode(words_of(normalised), draw)
        assert tokenizer.decode(ids) == text
        assert [t for t in ids if t in marks] == [t for t in tokenizer.encode(text) if t in marks]


@pytest.fixture
def text(tmp_path: Path) -> DataConfig:
    for name, seed in (("train", 1), ("valid", 2)):
        lines = (f"{s.capitalize()} 12.\t{t.capitalize()} 12.\n" for s, t in lexicon_pairs(60, seed))
        (tmp_path / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    train, valid = (CorpusConfig(pairs=str(tmp_path / f"{name}.tsv")) for name in ("train", "valid"))
    return DataConfig(train=(train,), valid=(valid,))


def run(config: DataConfig, directory: Path) -> Prepared:
    return prepare(config, 330, 1, directory, lambda _: None)


def test_the_settings_belong_to_the_prepared_text(text: DataConfig, tmp_path: Path) -> None:
    names = {}
    for casing, digits in itertools.product(get_args(Casing), (False, True)):
        config = dataclasses.replace(text, casing=casing, split_digits=digits)
        out = tmp_path / f"{casing}-{digits}"
        made = run(config, out)
        assert bool(made.tokenizer.case_marks) == (casing == "inline")
        assert made.tokenizer.decode(made.train.source(0).tolist()).endswith(" 12.")
        names[casing, digits] = next((out / "data").iterdir()).name
        assert run(config, out).train.source(0).tolist() == made.train.source(0).tolist()
    assert len(set(names.values())) == 4
    with pytest.raises(DataError, match=r"data\.casing was inline when this run began, is plain now"):
        run(text, tmp_path / "inline-False")
    with pytest.raises(DataError, match=r"data\.split_digits was False when this run began, is True now"):
        run(dataclasses.replace(text, split_digits=True), tmp_path / "plain-False")


def test_views_of_text_in_inline_case(text: DataConfig, tmp_path: Path) -> None:
    config = dataclasses.replace(text, casing="inline", split_digits=True, views=2, bpe_dropout=0.1, upper_case=0.5)
    made = run(config, tmp_path / "views")
    sources = [made.tokenizer.decode(made.view(1).source(row).tolist()) for row in range(len(made.train))]
    plain = [made.tokenizer.decode(made.train.source(row).tolist()) for row in range(len(made.train))]
    assert all(one in (other, other.upper()) for one, other in zip(sources, plain, strict=True))
    assert 10 < sum(map(str.isupper, sources)) < 50


def test_a_vocabulary_that_is_there_keeps_its_own(text: DataConfig, tmp_path: Path) -> None:
    """And what is prepared with it is the same, whatever is asked of one that would be learned."""
    (tmp_path / "run").mkdir()
    given = tmp_path / "given.model"
    for path in (given, tmp_path / "run" / "tokenizer.model"):
        Tokenizer.learn(SENTENCES, 400).save(path)
    said: list[str] = []
    asked = dataclasses.replace(text, casing="inline", split_digits=True)
    made = [
        prepare(config, 330, 1, tmp_path / name, said.append)
        for name, config in (
            ("run", asked),
            ("one", dataclasses.replace(text, tokenizer=str(given))),
            ("two", dataclasses.replace(asked, tokenizer=str(given))),
        )
    ]
    assert all(not prepared.tokenizer.case_marks for prepared in made)
    assert len({next((tmp_path / name / "data").iterdir()).name for name in ("one", "two")}) == 1
    kept = "the vocabulary that is given keeps its own casing, which is plain"
    assert [line for line in said if "keeps its own" in line] == [kept, kept]


# A trained run.


def test_a_run_in_inline_case_translates_alike_in_both_engines(cased_run: Path, tmp_path: Path) -> None:
    shutil.copytree(cased_run, tmp_path / "run")
    lines = ["The dog sees the cat 12.", "THE DOG SEES THE CAT 12.", "the (Dog) sees"]
    reference, other = (
        Translator.load(tmp_path / "run", engine=engine, beam=1) for engine in ("reference", "ctranslate2")
    )
    found = reference.translate(lines)
    assert found == other.translate(lines)
    assert not set("".join(found)) & set("⇧⇪⇩")
    [scores] = reference.score([(lines[0], found[0])])
    assert len(scores) == len(reference.tokenizer.encode(found[0])) + 1


def test_fine_tuning_keeps_the_casing(
    cased_run: Path, tiny_text: Path, tmp_path: Path, cli: "Callable[..., Ran]", tiny_run: Path
) -> None:
    flags: Sequence[str | Path] = (
        *("--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"), "--set", "train.steps=1",
    )  # fmt: skip
    ran = cli("finetune", cased_run, *flags, "--out", tmp_path / "more")
    assert ran.code == 0, ran.stderr
    assert load_tokenizer(tmp_path / "more").digest == load_tokenizer(cased_run).digest
    ran = cli("finetune", tiny_run, *flags, "--out", tmp_path / "other", "--set", "data.casing=inline")
    assert ran.code == 0, ran.stderr
    assert load_tokenizer(tmp_path / "other").digest == load_tokenizer(tiny_run).digest
    assert "keeps its own casing, which is plain" in ran.stderr
