"""The likely target pieces: learned from pairs whose answer is known, and written as CTranslate2 reads them."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from dragoman.data.dataset import Dataset
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import vocabulary_map
from dragoman.decoding.engines.vocabulary_map import VocabularyMap, learn, training_pairs, write
from dragoman.errors import DataError
from dragoman.run_directory import RunDirectory

VOCABULARY = 60


def dataset_of(pairs: list[tuple[list[int], list[int]]]) -> Dataset:
    def side(index: int) -> tuple[object, object, object]:
        lengths = np.array([len(pair[index]) for pair in pairs], dtype=np.int32)
        ids = np.array([token for pair in pairs for token in pair[index]], dtype=np.uint16)
        return ids, lengths, np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)

    source_ids, source_lengths, source_offsets = side(0)
    target_ids, target_lengths, target_offsets = side(1)
    return Dataset(
        source_ids,  # type: ignore[arg-type]
        target_ids,  # type: ignore[arg-type]
        source_lengths,  # type: ignore[arg-type]
        target_lengths,  # type: ignore[arg-type]
        source_offsets,  # type: ignore[arg-type]
        target_offsets,  # type: ignore[arg-type]
        np.zeros(len(pairs), dtype=np.uint16),
        (1.0,),
    )


def lexicon(count: int) -> Dataset:
    """Source piece s, of 4 to 29, becomes s + 30 in any order, and every sentence ends in 59."""
    draw = random.Random(3)
    pairs = []
    for _ in range(count):
        source = draw.choices(range(4, 30), k=draw.randint(2, 9))
        target = [token + 30 for token in source]
        draw.shuffle(target)
        pairs.append((source, [*target, 59]))
    return dataset_of(pairs)


@pytest.mark.parametrize("links", [10**9, 5_000])
def test_a_word_makes_its_translation_likely(links: int) -> None:
    found = learn(lexicon(3_000), VOCABULARY, links)
    for piece in range(4, 30):
        assert found.likely[piece][0] == piece  # what is copied
        assert found.likely[piece][1] == piece + 30
        assert len(found.likely[piece]) <= vocabulary_map.MOST + 1
    assert found.likely[50] == (50,)  # never seen as a source
    assert found.common[0] == 59  # the most frequent


def test_what_is_improbable_and_what_is_too_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_map, "COMMON", 1)
    monkeypatch.setattr(vocabulary_map, "MOST", 1)
    found = learn(lexicon(2_000), VOCABULARY)
    assert found.common == (59,)
    assert [found.likely[piece] for piece in (4, 29)] == [(4, 34), (29, 59)] or found.likely[4] == (4, 34)
    assert all(len(pieces) <= 2 for pieces in found.likely)
    monkeypatch.setattr(vocabulary_map, "LEAST_PROBABILITY", 1.1)
    assert all(pieces == (piece,) for piece, pieces in enumerate(learn(lexicon(50), VOCABULARY).likely))


def test_memory_is_bounded_by_looking_at_fewer_pairs() -> None:
    data = lexicon(2_000)
    sources, targets, groups = vocabulary_map._links(data, VOCABULARY, 10_000)
    assert 5_000 < len(sources) <= 10_000 + 100
    assert len(sources) == len(targets) == len(groups)
    assert np.all(np.diff(groups) >= 0)
    assert set(sources[groups == 0]) >= {VOCABULARY}  # the piece that takes what comes of none


def test_the_file_is_as_ctranslate2_reads_it(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["a b\tc d e f g"] * 5, 300)
    names = [tokenizer.piece(piece) for piece in range(tokenizer.vocab_size)]
    tabs = [piece for piece, name in enumerate(names) if "\t" in name]
    likely = tuple((piece, 5) for piece in range(tokenizer.vocab_size))
    write(tmp_path / "vmap.txt", VocabularyMap((7, 8, *tabs), likely), tokenizer)
    lines = (tmp_path / "vmap.txt").read_text(encoding="utf-8").split("\n")
    assert lines[0] == f"\t{names[7]} {names[8]}"
    assert f"{names[9]}\t{names[9]} {names[5]}" in lines
    assert all(line.count("\t") == 1 for line in lines[:-1])
    assert len(lines) == 2 + len(names) - len(tabs)


def test_the_marks_of_inline_case_are_likely_everywhere(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["a b c d e f g"] * 5, 300, casing="inline")
    write(tmp_path / "vmap.txt", VocabularyMap((7, 20), ((5,),) * tokenizer.vocab_size), tokenizer)
    common = (tmp_path / "vmap.txt").read_text(encoding="utf-8").split("\n")[0].split()
    assert set(tokenizer.case_marks) <= set(common)
    assert len(common) == len(set(common))


def test_a_run_without_its_text_says_so(tiny_run: Path, tmp_path: Path) -> None:
    assert len(training_pairs(RunDirectory(tiny_run))) == 200
    shutil.copytree(tiny_run, tmp_path / "run", ignore=shutil.ignore_patterns("data"))
    with pytest.raises(DataError, match=r"its prepared text \(data/\) is not there"):
        training_pairs(RunDirectory(tmp_path / "run"))
