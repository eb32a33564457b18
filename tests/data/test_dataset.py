"""From text to ids on disk: nothing is lost, nothing is done twice, and changed text is noticed."""

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

import dragoman.data.dataset
from dragoman.config import CorpusConfig, DataConfig
from dragoman.data.dataset import Dataset, Prepared, prepare
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.errors import DataError

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def write_pairs(path: Path, count: int, seed: int = 0) -> CorpusConfig:
    rng = random.Random(seed)
    lines = []
    for i in range(count):
        words = rng.choices(WORDS, k=rng.randint(1, 9))
        lines.append(f"{i} {' '.join(words)}\t{' '.join(words[::-1])} {i}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return CorpusConfig(pairs=str(path))


@pytest.fixture
def text(tmp_path: Path) -> DataConfig:
    return DataConfig(
        train=(write_pairs(tmp_path / "a.tsv", 300), write_pairs(tmp_path / "b.tsv", 100, seed=9)),
        valid=(write_pairs(tmp_path / "v.tsv", 30, seed=2),),
    )


def run(config: DataConfig, directory: Path, vocab_size: int = 400, seed: int = 1) -> Prepared:
    return prepare(config, vocab_size, seed, directory, lambda _: None)


def decoded(dataset: Dataset, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return [
        (tokenizer.decode(dataset.source(i).tolist()), tokenizer.decode(dataset.target(i).tolist()))
        for i in range(len(dataset))
    ]


def pairs_of(*corpora: CorpusConfig) -> list[tuple[str, str]]:
    lines = [line for c in corpora for line in Path(str(c.pairs)).read_text(encoding="utf-8").split("\n")[:-1]]
    return [(line.split("\t")[0], line.split("\t")[1]) for line in lines]


def replaced(config: DataConfig, **changes: Any) -> DataConfig:
    return DataConfig(**{**config.__dict__, **changes})


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many texts have been encoded so far."""
    seen = [0]
    original = Tokenizer.encode_batch

    def counting(self: Tokenizer, texts: list[str]) -> list[list[int]]:
        seen[0] += len(texts)
        return original(self, texts)

    monkeypatch.setattr(Tokenizer, "encode_batch", counting)
    return lambda: seen[0]


def test_ids_decode_to_the_text_in_order(text: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dragoman.data.dataset, "CHUNK_PAIRS", 64)  # several chunks, the last one short
    prepared = run(text, tmp_path / "run")
    assert decoded(prepared.train, prepared.tokenizer) == pairs_of(*text.train)
    assert decoded(prepared.valid, prepared.tokenizer) == pairs_of(*text.valid) == prepared.valid_pairs
    assert prepared.train.corpus.tolist() == [0] * 300 + [1] * 100
    assert prepared.train.source_lengths.tolist() == [len(prepared.train.source(i)) for i in range(400)]
    assert prepared.train.target_lengths.tolist() == [len(prepared.train.target(i)) for i in range(400)]
    assert prepared.train.source_lengths.dtype == np.int32
    assert prepared.train.source(0).dtype == np.uint16
    assert not prepared.train.source(0).flags.writeable
    special = {prepared.tokenizer.bos_id, prepared.tokenizer.eos_id, prepared.tokenizer.pad_id}
    assert not special & set(np.unique(prepared.train.source_ids).tolist())


def test_what_is_written(text: DataConfig, tmp_path: Path) -> None:
    prepared = run(text, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["cleaning.json", "data", "tokenizer.model"]
    assert Tokenizer.load(tmp_path / "run" / "tokenizer.model").digest == prepared.tokenizer.digest
    record = json.loads((tmp_path / "run" / "cleaning.json").read_text(encoding="utf-8"))
    assert record["report"] == prepared.report.to_dict()
    assert [c["kept"] for c in record["report"]["corpora"]] == [300, 100, 30]


def test_unchanged_text_is_neither_cleaned_nor_encoded_again(
    text: DataConfig, tmp_path: Path, encodings: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(text, tmp_path / "run")
    before = encodings()
    assert before > 0
    monkeypatch.setattr(dragoman.data.dataset, "check_corpora", None)
    weighted = replaced(text, train=tuple(CorpusConfig(pairs=c.pairs, weight=0.5) for c in text.train))
    again = run(weighted, tmp_path / "run")
    assert encodings() == before
    assert again.train.source_ids.tolist() == first.train.source_ids.tolist()
    assert (again.valid_pairs, again.report) == (first.valid_pairs, first.report)
    assert (first.train.weights, again.train.weights) == ((1.0, 1.0), (0.5, 0.5))


def test_the_same_content_elsewhere_is_unchanged(
    text: DataConfig, tmp_path: Path, encodings: Callable[[], int]
) -> None:
    run(text, tmp_path / "run")
    before = encodings()
    moved = Path(str(text.train[0].pairs)).rename(tmp_path / "moved.tsv")
    run(replaced(text, train=(CorpusConfig(pairs=str(moved)), text.train[1])), tmp_path / "run")
    assert encodings() == before


def test_changed_validation_text_is_encoded_again(text: DataConfig, tmp_path: Path) -> None:
    first = run(text, tmp_path / "run")
    write_pairs(tmp_path / "v.tsv", 20, seed=3)
    second = run(text, tmp_path / "run")
    assert decoded(second.valid, second.tokenizer) == pairs_of(*text.valid) == second.valid_pairs
    assert second.tokenizer.digest == first.tokenizer.digest
    assert second.train.source_ids.tolist() == first.train.source_ids.tolist()
    assert second.report.corpora[-1].lines == 20
    assert len(list((tmp_path / "run" / "data").iterdir())) == 1  # the stale one is gone


def test_changed_training_text_is_refused(text: DataConfig, tmp_path: Path) -> None:
    run(text, tmp_path / "run")
    third = write_pairs(tmp_path / "c.tsv", 10)
    with pytest.raises(DataError, match=r"c\.tsv was not part of this run; .*give a new --out"):
        run(replaced(text, train=(*text.train, third)), tmp_path / "run")
    with pytest.raises(DataError, match=r"was begun with .*b\.tsv too"):
        run(replaced(text, train=text.train[:1]), tmp_path / "run")
    write_pairs(tmp_path / "b.tsv", 101, seed=9)
    with pytest.raises(DataError, match=r"b\.tsv is not the file this run was begun with; .*give a new --out"):
        run(text, tmp_path / "run")
    assert len(run(text, tmp_path / "other").train) == 401


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 100}, r"data\.max_length was 256 when this run began, is 100 now"),
        ({"drop_duplicates": False}, r"data\.drop_duplicates was True"),
        ({"valid": ()}, r"data\.hold_out was 0"),
    ],
)
def test_changed_settings_are_refused(text: DataConfig, tmp_path: Path, change: Any, message: str) -> None:
    run(text, tmp_path / "run")
    with pytest.raises(DataError, match=message):
        run(replaced(text, **change), tmp_path / "run")


def test_another_tokenizer_in_its_place_is_refused(text: DataConfig, tmp_path: Path) -> None:
    own = run(text, tmp_path / "run").tokenizer
    other = Tokenizer.learn((side for pair in pairs_of(*text.train) for side in pair), 300)
    other.save(tmp_path / "run" / "tokenizer.model")
    for refused in (lambda: run(text, tmp_path / "run"), lambda: load_tokenizer(tmp_path / "run")):
        with pytest.raises(DataError, match=r"tokenizer\.model: not the tokenizer that this run was begun with"):
            refused()
    own.save(tmp_path / "run" / "tokenizer.model")
    assert load_tokenizer(tmp_path / "run").digest == own.digest
    (tmp_path / "run" / "cleaning.json").unlink()  # as of a model that was given away without it
    assert load_tokenizer(tmp_path / "run").digest == own.digest


def test_a_tokenizer_that_no_record_speaks_of_encodes_anew(
    text: DataConfig, tmp_path: Path, encodings: Callable[[], int]
) -> None:
    run(text, tmp_path / "run")
    before = encodings()
    record = json.loads((tmp_path / "run" / "cleaning.json").read_text(encoding="utf-8"))
    del record["tokenizer"]
    (tmp_path / "run" / "cleaning.json").write_text(json.dumps(record), encoding="utf-8")
    other = Tokenizer.learn((side for pair in pairs_of(*text.train) for side in pair), 300)
    other.save(tmp_path / "run" / "tokenizer.model")
    prepared = run(text, tmp_path / "run")
    assert encodings() > before
    assert prepared.tokenizer.digest == other.digest
    assert decoded(prepared.train, prepared.tokenizer) == pairs_of(*text.train)


def test_a_given_tokenizer_is_used(text: DataConfig, tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["only these words", "and no more"], 300)
    tokenizer.save(tmp_path / "given.model")
    config = replaced(text, tokenizer=str(tmp_path / "given.model"))
    prepared = run(config, tmp_path / "run")
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == tokenizer.model_bytes
    assert decoded(prepared.train, tokenizer) == pairs_of(*text.train)
    Tokenizer.learn(["another one"], 300).save(tmp_path / "given.model")
    with pytest.raises(DataError, match=r"data\.tokenizer was"):
        run(config, tmp_path / "run")
    (tmp_path / "given.model").write_text("not a model", encoding="utf-8")
    with pytest.raises(DataError, match=r"given\.model: not a sentencepiece model"):
        run(config, tmp_path / "new")


@pytest.mark.parametrize("moment", ["learn", "encode_corpora", "_open"])
def test_an_interrupted_preparation_is_done_again(
    text: DataConfig, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "learn":
            patch.setattr(Tokenizer, "learn", interrupted)
        elif moment == "encode_corpora":  # in the middle: the training half is written
            original = dragoman.data.dataset.encode_corpora
            calls = iter([original, interrupted])
            patch.setattr(dragoman.data.dataset, moment, lambda *a, **k: next(calls)(*a, **k))
        else:
            patch.setattr(dragoman.data.dataset, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(text, tmp_path / "run")
    prepared = run(text, tmp_path / "run")
    expected = run(text, tmp_path / "uninterrupted")
    assert decoded(prepared.train, prepared.tokenizer) == pairs_of(*text.train)
    assert prepared.report == expected.report
    assert prepared.tokenizer.digest == expected.tokenizer.digest
    assert [path.suffix for path in (tmp_path / "run" / "data").iterdir()] == [""]


def test_text_that_changed_after_an_interruption_is_refused(
    text: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dragoman.data.dataset, "encode_corpora", None)
        with pytest.raises(TypeError):
            run(text, tmp_path / "run")
    write_pairs(tmp_path / "a.tsv", 310)
    with pytest.raises(DataError, match=r"a\.tsv is not the file this run was begun with"):
        run(text, tmp_path / "run")


def test_long_pairs_are_dropped_by_tokens_and_reported(text: DataConfig, tmp_path: Path) -> None:
    path = Path(str(text.train[0].pairs))
    long, longest = " ".join(WORDS * 2), " ".join(WORDS * 3)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{long}\tshort but not too short\n{longest[:100]}\t{longest}\nlast\tone\n")
    config = replaced(text, max_length=8)
    prepared = run(config, tmp_path / "run")
    assert max(prepared.train.source_lengths.max(), prepared.train.target_lengths.max()) == 8
    report = prepared.report.corpora[0]
    kept = decoded(prepared.train, prepared.tokenizer)
    dropped = [pair for pair in pairs_of(*text.train) if pair not in kept]
    lengths = [max(map(len, prepared.tokenizer.encode_batch(pair))) for pair in dropped]
    assert min(lengths) > 8
    assert ("last", "one") in kept
    assert report.dropped["too_long"] + prepared.report.corpora[1].dropped.get("too_long", 0) == len(dropped) >= 2
    example = report.examples["too_long"][0]
    assert pairs_of(text.train[0])[example.line - 1] in dropped
    assert report.kept == np.count_nonzero(prepared.train.corpus == 0)


def test_a_side_that_a_given_tokenizer_normalises_away_is_empty(tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS), model_writer=model, vocab_size=25, minloglevel=2, hard_vocab_limit=False
    )
    Tokenizer.load(model.getvalue()).save(tmp_path / "given.model")
    (tmp_path / "a.tsv").write_text("alpha\tbeta\n\u200b\tgamma\ndelta\tzeta\n", encoding="utf-8")
    config = DataConfig(train=(CorpusConfig(pairs=str(tmp_path / "a.tsv")),), tokenizer=str(tmp_path / "given.model"))
    prepared = run(config, tmp_path / "run")
    assert decoded(prepared.train, prepared.tokenizer) == [("alpha", "beta"), ("delta", "zeta")]
    assert prepared.report.corpora[0].dropped == {"empty": 1}


def test_all_pairs_too_long(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a b c\td e f\ng h\ti j k\n", encoding="utf-8")
    config = DataConfig(train=(CorpusConfig(pairs=str(tmp_path / "a.tsv")),), max_length=2)
    with pytest.raises(DataError, match=r"nothing is left of 2 lines for train; 2 were dropped as too long"):
        run(config, tmp_path / "run")


def test_held_out_pairs_are_the_validation_data(text: DataConfig, tmp_path: Path) -> None:
    prepared = run(replaced(text, valid=(), hold_out=25), tmp_path / "run", vocab_size=0)
    assert len(prepared.valid) == len(prepared.valid_pairs) == 25
    assert decoded(prepared.valid, prepared.tokenizer) == prepared.valid_pairs
    both = {*decoded(prepared.train, prepared.tokenizer), *prepared.valid_pairs}
    assert both == set(pairs_of(*text.train))
    assert [c.held_out + c.kept for c in prepared.report.corpora] == [300, 100]
    with pytest.raises(DataError, match=r"train\.seed was 1 when this run began, is 2 now"):
        run(replaced(text, valid=(), hold_out=25), tmp_path / "run", seed=2)


def test_no_validation_data_at_all(text: DataConfig, tmp_path: Path) -> None:
    for _ in range(2):
        prepared = run(replaced(text, valid=(), hold_out=0), tmp_path / "run")
        assert (len(prepared.valid), prepared.valid_pairs, len(prepared.train)) == (0, [], 400)


def test_awkward_text_survives(tmp_path: Path) -> None:
    pairs = [("a  b ▁ c", "<s> ␛_ </s>"), ("ﬁ <0x41>", "👩‍👩‍👧 \u2028 e\u0301")]
    (tmp_path / "a.en.gz").write_bytes(gzip.compress("".join(a + "\n" for a, _ in pairs).encode()))
    (tmp_path / "a.de").write_text("".join(b + "\n" for _, b in pairs), encoding="utf-8")
    config = DataConfig(train=(CorpusConfig(source=str(tmp_path / "a.en.gz"), target=str(tmp_path / "a.de")),))
    prepared = run(config, tmp_path / "run")
    assert decoded(prepared.train, prepared.tokenizer) == pairs


def test_a_large_vocabulary_is_stored_in_four_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = DataConfig(train=(write_pairs(tmp_path / "a.tsv", 50),), hold_out=0)
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda _, texts: [[70_000 + len(text)] for text in texts])
    original = Tokenizer.learn.__func__  # type: ignore[attr-defined]

    def large(cls: type[Tokenizer], *arguments: Any, **settings: Any) -> Tokenizer:
        tokenizer: Tokenizer = original(cls, *arguments, **settings)
        tokenizer.vocab_size = 80_000
        return tokenizer

    monkeypatch.setattr(Tokenizer, "learn", classmethod(large))
    prepared = run(config, tmp_path / "run")
    expected = [70_000 + len(source) for source, _ in pairs_of(*config.train)]
    assert prepared.train.source_ids.tolist() == expected


def test_damaged_data_is_named(text: DataConfig, tmp_path: Path) -> None:
    run(text, tmp_path / "run")
    ids = next((tmp_path / "run" / "data").glob("*/train/source.ids"))
    ids.write_bytes(ids.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"train: damaged .*; delete it and start again"):
        run(text, tmp_path / "run")


def test_the_vocabulary_is_learned_from_a_bounded_sample(
    text: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    original = Tokenizer.learn.__func__  # type: ignore[attr-defined]

    def watched(cls: type[Tokenizer], sentences: Any, *arguments: Any, **settings: Any) -> Tokenizer:
        seen.extend(sentences)
        tokenizer: Tokenizer = original(cls, seen, *arguments, **settings)
        return tokenizer

    monkeypatch.setattr(Tokenizer, "learn", classmethod(watched))
    monkeypatch.setattr(dragoman.data.dataset, "SAMPLE_PAIRS", 130)
    run(text, tmp_path / "run")
    assert seen == [side for c in text.train for pair in pairs_of(c)[::4] for side in pair]
