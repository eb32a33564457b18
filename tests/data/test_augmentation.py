"""Views of the training text: written anew, reproducible, and still the same sentences."""

import dataclasses
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import dragoman.data.dataset
from dragoman.config import CorpusConfig, DataConfig
from dragoman.data.augmentation import require_bpe
from dragoman.data.cleaning import check_corpora
from dragoman.data.corpus import read_pairs
from dragoman.data.dataset import Dataset, Prepared, encode_view, prepare
from dragoman.data.phrase_pairs import learn_lexicon, phrase_of
from dragoman.data.text_changes import rewrite
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import ConfigError, DataError
from support.lexicon import LEXICON

ODD = "née ▁␛ \u2028 𝄞 it's naïveté — 東京"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> DataConfig:
    draw = random.Random(5)
    words = ["alphabetical", "benevolence", "gregarious", "delightfully", "epsilon", ODD]
    lines = [f"{i} {' '.join(draw.choices(words, k=6))}\t{' '.join(draw.choices(words, k=5))} {i}" for i in range(300)]
    path = tmp_path_factory.mktemp("views") / "pairs.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return DataConfig(train=(CorpusConfig(pairs=str(path)),), hold_out=20)


def with_views(text: DataConfig, **changes: Any) -> DataConfig:
    return dataclasses.replace(text, views=3, **changes)


def run(config: DataConfig, directory: Path, seed: int = 1) -> Prepared:
    return prepare(config, 600, seed, directory, lambda _: None)


def ids(data: Dataset) -> list[tuple[list[int], list[int]]]:
    return [(data.source(i).tolist(), data.target(i).tolist()) for i in range(len(data))]


def decoded(data: Dataset, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return [(tokenizer.decode(source), tokenizer.decode(target)) for source, target in ids(data)]


def test_bpe_dropout_cuts_other_pieces_of_the_same_text(text: DataConfig, tmp_path: Path) -> None:
    plain = run(text, tmp_path / "plain")
    prepared = run(with_views(text, bpe_dropout=0.1), tmp_path / "views")
    assert ids(prepared.view(0)) == ids(plain.train) == ids(prepared.view(3))
    one, two = prepared.view(1), prepared.view(2)
    for view in (one, two):
        assert decoded(view, prepared.tokenizer) == decoded(plain.train, plain.tokenizer)
        changed = sum(a != b for a, b in zip(ids(view), ids(plain.train), strict=True))
        assert changed > 0.9 * len(view)  # some twenty merges a side
        assert view.corpus.tolist() == plain.train.corpus.tolist()
    assert ids(one) != ids(two)
    other = run(with_views(text, bpe_dropout=0.1), tmp_path / "other", seed=1)
    assert ids(other.view(1)) == ids(one)
    assert ids(prepared.valid) == ids(plain.valid)


def test_what_is_put_into_pairs_is_spelt_in_pieces_or_bytes(text: DataConfig, tmp_path: Path) -> None:
    config = with_views(text, bpe_dropout=0.1, inline_noise=0.7, inline_tags=0.2)
    prepared = run(config, tmp_path / "run", seed=4)
    rows = decoded(prepared.train, prepared.tokenizer)
    lexicon = learn_lexicon(rows)
    expected = [rewrite(pair, lexicon, config, random.Random(f"4 1 {row}")) for row, pair in enumerate(rows)]
    assert decoded(prepared.view(1), prepared.tokenizer) == expected
    assert sum(a != b for a, b in zip(expected, rows, strict=True)) > 0.8 * len(rows)


def test_the_only_view_is_changed(text: DataConfig, tmp_path: Path) -> None:
    plain = run(text, tmp_path / "plain", seed=4)
    config = dataclasses.replace(text, upper_case=0.5)
    prepared = run(config, tmp_path / "run", seed=4)
    rows = decoded(plain.train, plain.tokenizer)
    expected = [rewrite(pair, {}, config, random.Random(f"4 0 {row}")) for row, pair in enumerate(rows)]
    assert decoded(prepared.view(0), prepared.tokenizer) == expected != rows
    assert ids(prepared.view(1)) == ids(prepared.train)
    assert ids(prepared.valid) == ids(plain.valid)
    assert ids(run(config, tmp_path / "run", seed=4).train) == ids(prepared.train)
    with pytest.raises(DataError, match=r"data\.upper_case was 0\.5 when this run began, is 0\.0 now"):
        run(text, tmp_path / "run", seed=4)


def test_without_dropout_merging_is_what_the_tokenizer_does(text: DataConfig, tmp_path: Path) -> None:
    prepared = run(text, tmp_path / "run")
    odd = ["", " ", "  two  spaces ", ODD, "ALPHABETICAL!", "a\tb", "🦆" * 3, "▁▁", "x" * 50]
    plain = [side for pair in decoded(prepared.train, prepared.tokenizer) for side in pair]
    require_bpe(prepared.tokenizer, [*odd, *plain])
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(plain), model_writer=model, model_type="unigram", vocab_size=80, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    (tmp_path / "unigram.model").write_bytes(model.getvalue())
    with pytest.raises(DataError, match="does not merge within words, as BPE does; leave bpe_dropout out"):
        run(with_views(text, bpe_dropout=0.1, tokenizer=str(tmp_path / "unigram.model")), tmp_path / "other")


@pytest.mark.parametrize("changes", [{"bpe_dropout": 0.1, "typos": 0.5}, {"joined": 0.6, "inline_noise": 0.3}])
def test_a_view_does_not_depend_on_the_number_of_processes(
    text: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, float]
) -> None:
    monkeypatch.setattr(dragoman.data.dataset, "CHUNK_PAIRS", 20)  # so many that other processes are started
    config = with_views(text, **changes)
    checked = check_corpora(config, 1)
    tokenizer = Tokenizer.learn((side for corpus in checked.train for pair in corpus.pairs() for side in pair), 600)
    found = []
    for processes in (1, 3):  # and the whole in one chunk, below
        encode_view(checked.train, tokenizer, {}, tmp_path / str(processes), config, 1, 1, processes)
        found.append(ids(Dataset.open(tmp_path / str(processes), [1.0])))
    assert found[0] == found[1]
    for size in (3, 1000):  # a chunk shorter than what a row may be joined with; one chunk
        monkeypatch.setattr(dragoman.data.dataset, "CHUNK_PAIRS", size)
        encode_view(checked.train, tokenizer, {}, tmp_path / f"chunks of {size}", config, 1, 1, 1)
        assert ids(Dataset.open(tmp_path / f"chunks of {size}", [1.0])) == found[0]
    encode_view(checked.train, tokenizer, {}, tmp_path / "other", config, 2, 1)
    assert ids(Dataset.open(tmp_path / "other", [1.0])) != found[0]


def test_a_pair_that_would_become_too_long_stays_as_it_is(text: DataConfig, tmp_path: Path) -> None:
    plain = run(text, tmp_path / "plain")
    longest = max(max(map(len, pair)) for pair in ids(plain.train))
    prepared = run(with_views(dataclasses.replace(text, max_length=longest), bpe_dropout=0.5), tmp_path / "views")
    assert len(prepared.view(1)) == len(plain.train)
    assert prepared.view(1).source_lengths.max() <= longest
    at_the_limit = next(i for i, pair in enumerate(ids(plain.train)) if max(map(len, pair)) == longest)
    assert ids(prepared.view(1))[at_the_limit] == ids(plain.train)[at_the_limit]


def test_the_record_of_a_plain_run_is_what_it_was(text: DataConfig, tmp_path: Path) -> None:
    run(text, tmp_path / "run")
    settings = json.loads((tmp_path / "run" / "cleaning.json").read_text(encoding="utf-8"))["inputs"]["settings"]
    assert list(settings) == [
        "data.max_length", "data.max_length_ratio", "data.drop_duplicates", "data.tokenizer", "data.hold_out",
        "train.seed",
    ]  # fmt: skip


def test_the_record_of_views_names_later_changes_only_where_they_are_used(text: DataConfig, tmp_path: Path) -> None:
    def recorded(name: str, **changes: float) -> list[str]:
        run(with_views(text, **changes), tmp_path / name)
        settings = json.loads((tmp_path / name / "cleaning.json").read_text(encoding="utf-8"))["inputs"]["settings"]
        return [key.removeprefix("data.") for key in settings][6:]

    first = ["views", "bpe_dropout", "upper_case", "title_case", "short_phrases", "typos"]
    assert recorded("old", typos=0.5) == first  # so data that was prepared before there were others is found again
    assert recorded("new", joined=0.5) == [*first, "joined"]
    with pytest.raises(DataError, match=r"data\.joined was 0\.0 when this run began, is 0\.2 now"):
        run(with_views(text, typos=0.5, joined=0.2), tmp_path / "old")


def test_views_belong_to_the_run(text: DataConfig, tmp_path: Path) -> None:
    run(with_views(text, bpe_dropout=0.1), tmp_path / "run")
    with pytest.raises(DataError, match=r"data\.bpe_dropout was 0\.1 when this run began, is 0\.2 now"):
        run(with_views(text, bpe_dropout=0.2), tmp_path / "run")
    with pytest.raises(DataError, match=r"data\.views was 3 when this run began, is 1 now"):
        run(text, tmp_path / "run")
    run(text, tmp_path / "plain")
    with pytest.raises(DataError, match=r"data\.views was 1 when this run began, is 3 now"):
        run(with_views(text, typos=0.1), tmp_path / "plain")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"views": 8}, r"data\.views = 8 with nothing that changes the text; must be 1, or give one of bpe_dropout"),
        ({"views": 2, "bpe_dropout": 1.0}, r"data\.bpe_dropout = 1\.0; must be at least 0 and below 1"),
        ({"views": 2, "typos": 0.6, "upper_case": 0.6}, r"= 1\.2; must be at most 1"),
        ({"views": 0}, r"data\.views = 0; must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**values)  # type: ignore[arg-type]


def test_resumed_equals_uninterrupted_across_views(
    cli: Callable[..., Any], tiny_text: Path, tiny_settings: list[str], tmp_path: Path
) -> None:
    def train(name: str, steps: int, *more: str) -> Path:
        views = ["--set", "data.views=3", "--set", "data.bpe_dropout=0.2", "--set", "train.valid_steps=5"]
        views += ["--set", "train.schedule=paper"]  # the other one follows the budget
        views += ["--set", "train.valid_sentences=2", "--set", "search.max_extra_length=5"]
        pairs = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
        ran = cli("train", *pairs, "--out", tmp_path / name, "--steps", str(steps), *tiny_settings, *views, *more)
        assert ran.code == 0, ran.stderr
        return tmp_path / name

    whole = train("whole", 15)
    epochs = [json.loads(line).get("epoch") for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert max(e for e in epochs if e is not None) >= 3  # all views, and the first one again
    train("parts", 5)
    parts = train("parts", 15)
    for name in ("model.safetensors", "optimizer.safetensors"):
        last = f"checkpoints/step-00000015/{name}"
        assert (whole / last).read_bytes() == (parts / last).read_bytes()
    verified = cli("verify", parts)
    assert verified.code == 0, verified.stderr
    assert "the same to the bit" in verified.stdout


TAGGED = [
    {"bpe_dropout": 0.3},
    {"upper_case": 0.4, "title_case": 0.3, "typos": 0.3},
    {"short_phrases": 0.99},
    {"joined": 0.3, "inline_noise": 0.3, "inline_tags": 0.3},
    {"bpe_dropout": 0.3, "upper_case": 0.3, "short_phrases": 0.6},
]


@pytest.mark.parametrize("changes", TAGGED)
def test_tags_stay_before_the_source_in_every_view(tiny_text: Path, tmp_path: Path, changes: dict[str, float]) -> None:
    corpora = (
        CorpusConfig(pairs=str(tiny_text / "train.tsv"), tag=">>eo<<", back_tag=">>en<<"),
        CorpusConfig(pairs=str(tiny_text / "valid.tsv"), tag="<synthetic> >>eo<<"),
    )
    prepared = run(with_views(DataConfig(train=corpora, hold_out=0), **changes), tmp_path / "run")
    symbols = [prepared.tokenizer.encode(tag) for tag in (">>eo<<", ">>en<<", "<synthetic> >>eo<<")]
    assert list(map(len, symbols)) == [1, 1, 2]
    plain = decoded(prepared.train, prepared.tokenizer)
    for view in (prepared.view(1), prepared.view(2)):
        changed = 0
        for before, after in zip(ids(prepared.train), ids(view), strict=True):
            tags = next(found for found in symbols if before[0][: len(found)] == found)
            assert after[0][: len(tags)] == tags
            assert len(after[0]) > len(tags)
            changed += before != after
        assert changed > 0.6 * len(view)
        if list(changes) == ["bpe_dropout"]:
            assert decoded(view, prepared.tokenizer) == plain
        if list(changes) == ["short_phrases"]:
            there = [pair for pair, corpus in zip(ids(view), view.corpus, strict=True) if corpus == 1]
            phrases = [(prepared.tokenizer.decode(source[2:]), prepared.tokenizer.decode(t)) for source, t in there]
            assert all(t.split() == [LEXICON[word] for word in source.split()] for source, t in phrases)


def test_rows_are_joined_with_those_of_the_same_tags(tiny_text: Path, tmp_path: Path) -> None:
    corpora = (CorpusConfig(pairs=str(tiny_text / "train.tsv"), tag=">>eo<<", back_tag=">>en<<"),)
    prepared = run(with_views(DataConfig(train=corpora, hold_out=0), joined=0.99), tmp_path / "run")
    plain = decoded(prepared.train, prepared.tokenizer)
    neighbours = 0
    for row, (source, target) in enumerate(decoded(prepared.view(1), prepared.tokenizer)):
        tag, first = plain[row][0].split(" ", 1)
        assert source.startswith(f"{tag} {first}")
        assert source.count(">>") == 1
        words = [LEXICON[word] for word in source.split()[1:]] if tag == ">>eo<<" else source.split()[1:]
        assert words == (target.split() if tag == ">>eo<<" else [LEXICON[word] for word in target.split()])
        # The directions take turns, so the next row of the same tags is the one after the next.
        neighbours += row + 2 < len(plain) and source.startswith(f"{tag} {first} {plain[row + 2][0].split(' ', 1)[1]}")
    assert neighbours > 0.9 * len(plain)


def test_a_fine_tuned_run_has_its_tags_in_the_text_and_keeps_them(tiny_text: Path, tmp_path: Path) -> None:
    pairs = list(read_pairs(tiny_text / "train.tsv"))
    symbols = (">>eo<<", "<synthetic>")
    Tokenizer.learn((side for pair in pairs for side in pair), 400, symbols).save(tmp_path / "given.model")
    lines = "".join(f"{symbols[i % 2]} {source}\t{target}\n" for i, (source, target) in enumerate(pairs))
    (tmp_path / "tagged.tsv").write_text(lines, encoding="utf-8")
    corpora = (CorpusConfig(pairs=str(tmp_path / "tagged.tsv")),)
    config = DataConfig(train=corpora, tokenizer=str(tmp_path / "given.model"), hold_out=0)
    prepared = run(with_views(config, bpe_dropout=0.3, upper_case=0.5), tmp_path / "run")
    known = {prepared.tokenizer.encode(symbol)[0] for symbol in symbols}
    assert {prepared.tokenizer.piece(token) for token in known} == {"▁>>eo<<", "▁<synthetic>"}
    assert {source[0] for source, _ in ids(prepared.view(1))} == known


def test_a_tag_that_a_given_vocabulary_does_not_know_is_spelt_alike_in_every_view(
    tiny_text: Path, tmp_path: Path
) -> None:
    pairs = read_pairs(tiny_text / "train.tsv")
    tokenizer = Tokenizer.learn((side for pair in pairs for side in pair), 400)
    tokenizer.save(tmp_path / "given.model")
    corpora = (CorpusConfig(pairs=str(tiny_text / "train.tsv"), tag=">>dog<<"),)
    config = DataConfig(train=corpora, tokenizer=str(tmp_path / "given.model"), hold_out=0)
    prepared = run(with_views(config, bpe_dropout=0.5, upper_case=0.5), tmp_path / "run")
    spelt = tokenizer.encode(">>dog<<")
    assert all(source[: len(spelt)] == spelt for source, _ in ids(prepared.view(1)))


def test_short_phrases_are_translations_of_each_other(tiny_text: Path) -> None:
    pairs = list(read_pairs(tiny_text / "train.tsv"))
    lexicon = learn_lexicon(pairs)
    assert {word: LEXICON[word] for word in lexicon} == lexicon
    assert len(lexicon) == len(LEXICON)
    draw = random.Random(1)
    found = [phrase_of(pair, lexicon, draw) for pair in pairs]
    assert all(target == " ".join(LEXICON[word] for word in source.split()) for source, target in found)
    assert {len(source.split()) for source, _ in found} >= {1, 2, 3, 4}
    assert max(len(s.split()) for (s, _), pair in zip(found, pairs, strict=True) if s != pair[0]) == 4
    # In another order, capitals and punctuation as they are; a word that is there twice is not linked.
    assert phrase_of(("The RED house.", "La domo ruĝa."), {"red": "ruĝa", "house": "domo"}, random.Random(0)) in (
        ("RED", "ruĝa"), ("house", "domo"), ("RED house", "domo ruĝa"))  # fmt: skip
    assert phrase_of(("red, red", "ruĝa, ruĝa"), {"red": "ruĝa"}, draw) == ("red, red", "ruĝa, ruĝa")
    assert learn_lexicon([]) == {}
