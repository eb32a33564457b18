"""Cleaning: what is dropped, what is fatal, what is held out, and that it does not matter how many cores do it."""

import gzip
import itertools
import json
import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dragoman.data.cleaning
from dragoman.config import CorpusConfig, DataConfig
from dragoman.data.cleaning import CleanedCorpora, _compare_lines, _LineHashes, _profile, check_corpora
from dragoman.data.corpus import CleaningReport, Corpus, LineVerdict
from dragoman.errors import DataError

ENGLISH = ["the", "a", "dog", "cat", "man", "woman", "runs", "sleeps", "sees", "reads", "with", "and"]
GERMAN = ["der", "ein", "Hund", "Katze", "Mann", "Frau", "läuft", "schläft", "sieht", "liest", "mit", "und"]


def sentence_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Different sentences of seven words, and their word-by-word translations."""
    rng = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        chosen = rng.choices(range(len(ENGLISH)), k=7)
        pairs[" ".join(ENGLISH[i] for i in chosen)] = " ".join(GERMAN[i] for i in chosen)
    return list(pairs.items())


def tsv(path: Path, pairs: list[tuple[str, str]], swapped: bool = False) -> CorpusConfig:
    lines = [f"{b}\t{a}\n" if swapped else f"{a}\t{b}\n" for a, b in pairs]
    path.write_bytes("".join(lines).encode())
    return CorpusConfig(pairs=str(path))


def check(*train: CorpusConfig, valid: tuple[CorpusConfig, ...] = (), seed: int = 1, **options: Any) -> CleanedCorpora:
    return check_corpora(DataConfig(train=train, valid=valid, **{"hold_out": 0, **options}), seed)


def check_lines(path: Path, *lines: str | bytes, **options: Any) -> CleanedCorpora:
    """`lines` after enough good ones that none of them is more than 1 % of the whole."""
    good = "".join(f"{a}\t{b}\n" for a, b in sentence_pairs(200)).encode()
    path.write_bytes(good + b"".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return check(CorpusConfig(pairs=str(path)), **options)


# ------------------------------------------------------------------------------------------ corpora and their faults


def test_pairs_can_be_read_again_and_are_stripped(tmp_path: Path) -> None:
    checked = check(tsv(tmp_path / "a.tsv", [(" a  b\u3000", "ä\u00a0b "), ("<s>", "▁\u2028▁")]))
    assert list(checked.train[0].pairs()) == [("a  b", "ä\u00a0b"), ("<s>", "▁\u2028▁")]
    assert list(checked.train[0].pairs()) == list(checked.train[0].pairs())
    assert len(checked.train[0]) == 2
    assert checked.valid == []


def test_two_files_are_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\r\ntwo", encoding="utf-8")
    (tmp_path / "a.de.gz").write_bytes(gzip.compress(b"eins\nzwei\n"))
    checked = check(CorpusConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de.gz")))
    assert list(checked.train[0].pairs()) == [("one", "eins"), ("two", "zwei")]


@pytest.mark.parametrize(("sources", "targets"), [(100, 99), (99, 100), (0, 2), (3, 0)])
def test_unequal_line_counts(tmp_path: Path, sources: int, targets: int) -> None:
    (tmp_path / "a.en").write_text("x\n" * sources, encoding="utf-8")
    (tmp_path / "a.de").write_text("y\n" * targets, encoding="utf-8")
    with pytest.raises(DataError, match=rf"a\.en has {sources} lines, .*a\.de {targets}: line n of one must"):
        check(CorpusConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de")))


def test_missing_and_empty_corpora(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tsv: no such file"):
        check(CorpusConfig(pairs=str(tmp_path / "none.tsv")))
    with pytest.raises(DataError, match=r"a\.tsv: no lines"):
        check(tsv(tmp_path / "a.tsv", []))
    with pytest.raises(DataError, match="no training text"):
        check()


def test_nothing_left_names_the_rule(tmp_path: Path) -> None:
    empty = tsv(tmp_path / "a.tsv", [("x" * 30, "y"), ("", "b"), ("c", " ")])
    with pytest.raises(DataError, match=r"a\.tsv: nothing is left of 3 lines for train; 2 .* as empty, .* line 2"):
        check(empty)
    empty = tsv(tmp_path / "a.tsv", [("", "b"), ("c", " "), ("", "")])
    with pytest.raises(DataError, match=r"a\.tsv: nothing is left of 3 lines for valid"):
        check(tsv(tmp_path / "b.tsv", sentence_pairs(5)), valid=(empty,))


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"caf\xe9\tKaffee\n", "not_utf8"),
        ("no tab here\n", "columns"),
        ("\tnothing\n", "empty"),
        ("nothing \t \u3000\n", "empty"),
        ("\n", "empty"),
        ("a\t" + "b" * 4097 + "\n", "too_long"),
        (b"a\t" + b"\xff" * 20_000 + b"\n", "too_long"),  # so long that it is not even decoded
        ("ab\t" + "b" * 21 + "\n", "length_ratio"),
        ("nul\0\tnull\n", "control_character"),
        ("a\x9db\tcd\n", "control_character"),
        ("in\rside\tinnen\n", "control_character"),
        ("{}\t{}\n".format(*sentence_pairs(1)[0]), "duplicate"),
        (" {}\t{} \r\n".format(*sentence_pairs(1)[0]), "duplicate"),
        ("der Hund und ein Mann\tthe dog and a man\n", "swapped"),
    ],
)
def test_each_rule_drops_its_line(tmp_path: Path, line: str | bytes, rule: str) -> None:
    checked = check_lines(tmp_path / "a.tsv", line, "good\tgut\n")
    report = checked.report().corpora[0]
    assert report.dropped == {rule: 1}
    assert [(e.file, e.line) for e in report.examples[rule]] == [(str(tmp_path / "a.tsv"), 201)]
    assert (report.lines, report.kept) == (202, 201)
    assert list(checked.train[0].pairs())[-1] == ("good", "gut")


@pytest.mark.parametrize(
    "line",
    [
        "Hi.\tGuten Tag, Tag!\n",  # a ratio of five, but short
        "ab\t" + "b" * 18 + "\n",
        "a\tb\tattribution\tmore\n",
        "a " * 2048 + "\t" + "b " * 2048 + "\n",
        "no\u00a0break\u2028\u200d\tfeste\u3000Leerzeichen\n",
        "the dog and a man with the cat\tthe dog and a man with the cat\n",  # untranslated, not swapped
        "der Hund und ein Mann\tder Hund und ein Mann\n",
        "der Hund und ein Mann\tword after unknown word\n",  # one side alone is no proof
        "{1}\t{0}x\n".format(*sentence_pairs(1)[0]).replace(" ", "-"),  # swapped, but with no word known
    ],
)
def test_good_lines_are_kept(tmp_path: Path, line: str) -> None:
    report = check_lines(tmp_path / "a.tsv", line).report().corpora[0]
    assert report.dropped == {}
    assert report.kept == 201


def test_validation_text_stays_as_it_is_given(tmp_path: Path) -> None:
    pairs = [("a", "b"), ("a", "b"), ("x", "y" * 40), ("der Hund und ein Mann", "the dog and a man"), ("", "b")]
    train = tsv(tmp_path / "t.tsv", sentence_pairs(100))
    checked = check(train, valid=(tsv(tmp_path / "v.tsv", pairs),))
    assert list(checked.valid[0].pairs()) == pairs[:4]
    assert [(c.role, c.dropped) for c in checked.report().corpora] == [("train", {}), ("valid", {"empty": 1})]


def test_one_percent_of_malformed_lines_is_tolerated_and_no_more(tmp_path: Path) -> None:
    bad = b"caf\xe9\tKaffee\n"
    assert check_lines(tmp_path / "a.tsv", bad, bad).report().corpora[0].dropped == {"not_utf8": 2}
    with pytest.raises(DataError, match=r"a\.tsv: 3 of 203 lines are not UTF-8, the first being line 201.*iconv"):
        check_lines(tmp_path / "a.tsv", bad, bad, bad)
    with pytest.raises(DataError, match=r"a\.tsv: 3 of 203 lines have no tab, the first being line 201.* a tab and"):
        check_lines(tmp_path / "a.tsv", "a,b\n", "c,d\n", "e,f\n")


def test_duplicates_are_found_across_corpora_and_can_be_kept(tmp_path: Path) -> None:
    pairs = [*sentence_pairs(20), ("same", "same"), ("left", "right"), ("right", "left")]
    one, two = tsv(tmp_path / "1.tsv", pairs), tsv(tmp_path / "2.tsv", [*pairs[5:10], ("new", "neu")])
    checked = check(one, two)
    assert [len(corpus) for corpus in checked.train] == [23, 1]
    assert [c.dropped for c in checked.report().corpora] == [{}, {"duplicate": 5}]
    assert [len(corpus) for corpus in check(one, two, drop_duplicates=False).train] == [23, 6]


def test_the_report_counts_all_and_shows_three(tmp_path: Path) -> None:
    checked = check_lines(tmp_path / "a.tsv", *[f"{'long ' * 30}{i}\t\n" for i in range(5)], "ab\t" + "b" * 50 + "\n")
    report = checked.report()
    corpus = report.corpora[0]
    assert corpus.dropped == {"empty": 5, "length_ratio": 1}
    assert [e.line for e in corpus.examples["empty"]] == [201, 202, 203]
    assert {len(e.source) for e in corpus.examples["empty"]} == {80}
    assert CleaningReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
    summary = report.summary()
    assert summary[0] == f"{tmp_path / 'a.tsv'}: 206 lines, 200 kept for train"
    assert summary[1] == "  dropped 5: empty"
    assert summary[2].startswith("    line 201: long long")
    assert len(summary) == 1 + 4 + 2


# -------------------------------------------------------------------------------------------------- swapped columns


def test_swapped_lines_are_dropped_and_only_those(tmp_path: Path) -> None:
    pairs = sentence_pairs(600)
    mixed = [(b, a) if i % 20 == 0 else (a, b) for i, (a, b) in enumerate(pairs)]
    checked = check(tsv(tmp_path / "a.tsv", mixed))
    kept = set(checked.train[0].pairs())
    assert kept <= set(pairs)
    assert len(kept) == 570


def test_a_file_swapped_against_the_others_is_fatal(tmp_path: Path) -> None:
    train, other = tsv(tmp_path / "t.tsv", sentence_pairs(300)), sentence_pairs(30, seed=5)
    swapped = tsv(tmp_path / "s.tsv", other, swapped=True)
    message = r"s\.tsv: in \d+ of 30 lines the languages stand the other way round than in .*t\.tsv, in 0 the same"
    with pytest.raises(DataError, match=message):
        check(train, swapped)
    with pytest.raises(DataError, match=message):
        check(swapped, train)  # the larger one sets the direction
    with pytest.raises(DataError, match=message):
        check(train, valid=(swapped,))
    check(train, tsv(tmp_path / "s.tsv", other))


def test_two_files_given_in_the_wrong_order(tmp_path: Path) -> None:
    train = tsv(tmp_path / "t.tsv", sentence_pairs(300))
    (tmp_path / "v.en").write_text("".join(a + "\n" for a, _ in sentence_pairs(20, 7)), encoding="utf-8")
    (tmp_path / "v.de").write_text("".join(b + "\n" for _, b in sentence_pairs(20, 7)), encoding="utf-8")
    with pytest.raises(DataError, match="exchange its source and target files"):
        check(train, valid=(CorpusConfig(source=str(tmp_path / "v.de"), target=str(tmp_path / "v.en")),))


def tagged(pairs: list[tuple[str, str]], tag: str) -> list[tuple[str, str]]:
    return [(f"{tag} {source}", target) for source, target in pairs]


def back(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(target, source) for source, target in pairs]


def test_tags_in_the_text_say_which_way_round_its_languages_stand(tmp_path: Path) -> None:
    there, again = tagged(sentence_pairs(300), ">>de<<"), tagged(back(sentence_pairs(60, seed=5)), ">>en<<")
    synthetic = tagged(tagged(back(sentence_pairs(30, seed=6)), ">>en<<"), "<bt>")
    valid = [pair for both in zip(there[:20], again[:20], strict=True) for pair in both]
    corpora = [tsv(tmp_path / f"{name}.tsv", text) for name, text in (("t", there), ("a", again), ("s", synthetic))]
    for first in (corpora, corpora[::-1]):
        checked = check(*first, valid=(tsv(tmp_path / "v.tsv", valid), tsv(tmp_path / "w.tsv", again)))
        assert sum(map(len, checked.train)) == 390
        assert [len(corpus) for corpus in checked.valid] == [40, 60]
    plain = tsv(tmp_path / "plain.tsv", sentence_pairs(100, seed=7))
    with pytest.raises(DataError, match=r"the other way round than in .*plain\.tsv"):  # not than in a tagged one
        check(*corpora, plain, tsv(tmp_path / "swapped.tsv", sentence_pairs(20, seed=8), swapped=True))


def test_both_directions_in_one_file_are_told_apart_by_their_tags(tmp_path: Path) -> None:
    pairs = [*tagged(sentence_pairs(500), ">>de<<"), *tagged(back(sentence_pairs(60, seed=5)), ">>en<<")]
    stray = tagged(back(sentence_pairs(10, seed=6)), ">>de<<")
    checked = check(tsv(tmp_path / "a.tsv", [*pairs, *stray]))
    assert set(checked.train[0].pairs()) == set(pairs)
    few = [*sentence_pairs(500), *tagged(back(sentence_pairs(20, seed=5)), ">>en<<")]
    assert len(check(tsv(tmp_path / "b.tsv", few)).train[0]) == 520


@settings(max_examples=15, derandomize=True, deadline=None)
@given(seed=st.integers(0, 10**6), task=st.sampled_from(["copy", "reverse", "sort", "upper", "shift"]))
def test_one_language_on_both_sides_is_never_swapped(
    tmp_path_factory: pytest.TempPathFactory, seed: int, task: str
) -> None:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(rng.choice([10, 100, 3000]))]
    do: Any = {
        "copy": lambda line: line,
        "reverse": lambda line: line[::-1],
        "sort": sorted,
        "upper": lambda line: [word.upper() for word in line],
        "shift": lambda line: rng.choices(words, k=len(line)),  # unrelated text of the same language
    }[task]
    lines = [rng.choices(words, k=rng.randint(1, 60)) for _ in range(500)]
    corpus = tsv(tmp_path_factory.mktemp("t") / "a.tsv", [(" ".join(line), " ".join(do(line))) for line in lines])
    report = check(corpus, drop_duplicates=False, max_length_ratio=1000).report().corpora[0]
    assert report.dropped == {}


# --------------------------------------------------------------------------------------------------------- hold-out


@pytest.mark.parametrize("seed", range(5))
def test_chance_is_no_evidence(tmp_path: Path, seed: int) -> None:
    """Lines that the word counts have not seen, of a task with one language on both sides."""
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(1000)]
    lines = [" ".join(rng.choices(words, k=25)) for _ in range(4000)]
    corpus = tsv(tmp_path / "a.tsv", list(zip(lines[:150], lines[150:300], strict=True)))
    profile = _profile(corpus, DataConfig(train=(corpus,)))
    assert {profile.direction(a, b) for a, b in itertools.pairwise(lines[300:])} == {0}


def held_out(tmp_path: Path, pairs: list[tuple[str, str]], wanted: int, seed: int = 1) -> CleanedCorpora:
    return check(tsv(tmp_path / "h.tsv", pairs), hold_out=wanted, seed=seed)


def test_hold_out_takes_what_is_asked_but_a_tenth_at_most(tmp_path: Path) -> None:
    pairs = sentence_pairs(300)
    for wanted, given_ in ((0, 0), (7, 7), (30, 30), (1000, 30)):
        checked = held_out(tmp_path, pairs, wanted)
        assert sum(map(len, checked.valid)) == given_
        assert sorted([*checked.train[0].pairs(), *(p for c in checked.valid for p in c.pairs())]) == sorted(pairs)
        assert checked.report().corpora[0].held_out == given_


def test_hold_out_depends_on_the_seed_and_not_on_the_order(tmp_path: Path) -> None:
    pairs = sentence_pairs(250)
    pairs += [(source, target + " etwa") for source, target in pairs[:50]]  # some sources have two translations
    chosen = set(held_out(tmp_path, pairs, 20).valid[0].pairs())
    assert set(held_out(tmp_path, pairs[::-1], 20).valid[0].pairs()) == chosen
    assert set(held_out(tmp_path, pairs, 20, seed=2).valid[0].pairs()) != chosen
    one, two = tsv(tmp_path / "1.tsv", pairs[:100]), tsv(tmp_path / "2.tsv", pairs[100:])
    split = check(one, two, hold_out=20)
    assert {pair for corpus in split.valid for pair in corpus.pairs()} == chosen
    assert all(len(corpus) for corpus in split.valid)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    sides=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=20, max_size=200),
    seed=st.integers(-5, 10**20),
    duplicates=st.booleans(),
)
def test_no_held_out_sentence_is_trained_on(
    tmp_path_factory: pytest.TempPathFactory, sides: list[tuple[int, int]], seed: int, duplicates: bool
) -> None:
    pairs = [(f"s{a}", f"t{b}") for a, b in sides]
    corpus = tsv(tmp_path_factory.mktemp("h") / "a.tsv", [*pairs, *((f"u{i}", f"v{i}") for i in range(20))])
    checked = check(corpus, hold_out=10, seed=seed, drop_duplicates=not duplicates)
    train, valid = list(checked.train[0].pairs()), list(checked.valid[0].pairs())
    assert valid
    assert not {a for a, _ in train} & {a for a, _ in valid}
    assert not {b for _, b in train} & {b for _, b in valid}
    assert max(Counter(a for a, _ in valid).values()) == 1
    report = checked.report().corpora[0]
    assert report.lines == report.kept + report.held_out + sum(report.dropped.values())
    assert set(report.dropped) <= {"held_out_twin", "duplicate"}


def test_the_hold_out_never_takes_everything(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing is left of 40 lines for train; 36 were dropped as held out twin"):
        held_out(tmp_path, [(f"s{i}", "always the same") for i in range(40)], 10)
    assert list(map(len, held_out(tmp_path, sentence_pairs(9), 10).valid)) == [0]


# --------------------------------------------------------------------------------------------- all cores, any memory


def dirty_lines(count: int, seed: int) -> list[bytes]:
    """Something for every rule."""
    rng = random.Random(seed)
    faults = [
        b"caf\xe9\tx\n",
        b"no tab\n",
        b"\n",
        b"x\0y\tz\n",
        b"x\t" + b"y" * 30_000 + b"\n",
        b"ab\t" + b"b" * 50 + b"\n",
    ]
    lines = []
    for source, target in itertools.islice(itertools.cycle(sentence_pairs(300, seed)), count):
        kind = rng.random()
        if kind < 0.03:
            lines.append(rng.choice(faults))
        elif kind < 0.06:
            lines.append(f"{target}\t{source}\n".encode())
        else:
            lines.append(f"{source} {rng.randrange(9)}\t{target} {rng.randrange(3)}\n".encode())
    return lines


@pytest.mark.parametrize("packed", [False, True])
def test_any_number_of_processes_gives_the_same_verdicts(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dragoman.data.cleaning, "CHUNK_LINES", 150)
    monkeypatch.setattr(dragoman.data.cleaning, "CHUNK_BYTES", 20_000)
    for name, lines in (("a", dirty_lines(2000, 1)), ("b", dirty_lines(700, 2))):
        content = b"".join(lines)
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    config = DataConfig(train=tuple(CorpusConfig(pairs=str(tmp_path / name)) for name in ("a", "b")), hold_out=40)
    alone, several = (check_corpora(config, 3, processes) for processes in (1, 3))
    assert several.report() == alone.report()
    assert len(alone.report().corpora[0].dropped) >= 8
    for one, other in zip(alone.train, several.train, strict=True):
        assert one.verdicts.tolist() == other.verdicts.tolist()
        assert one.characters == other.characters
    assert [list(corpus.pairs()) for corpus in alone.valid] == [list(corpus.pairs()) for corpus in several.valid]


def compared_by_definition(sources: list[int], targets: list[int], drop: bool, hold_out: int) -> list[LineVerdict]:
    """Duplicates and what is held out, line by line."""
    verdicts, seen = [], set()
    for pair in map(mixed, sources, targets):
        verdicts.append(LineVerdict.DUPLICATE if drop and pair in seen else LineVerdict.KEPT)
        seen.add(pair)
    kept = [line for line, verdict in enumerate(verdicts) if verdict == LineVerdict.KEPT]
    chosen = sorted({sources[line] for line in kept})[: min(hold_out, len(kept) // 10)]
    held = {source: [line for line in kept if sources[line] == source] for source in chosen}
    taken = [
        min(lines, key=lambda line: mixed(sources[line], targets[line]) if drop else line) for lines in held.values()
    ]
    for line in kept:
        if sources[line] in chosen or targets[line] in {targets[other] for other in taken}:
            verdicts[line] = LineVerdict.HELD_OUT_TWIN
    for line in taken:
        verdicts[line] = LineVerdict.HELD_OUT
    return verdicts


def mixed(source: int, target: int) -> int:
    return (source * 0x9E3779B97F4A7C15 + target) % 2**64


hashes = st.sampled_from([0, 1, 2**60 - 1, 2**60, 2**63, 2**64 - 1, *range(5, 2**64, 2**59)])


@given(
    st.lists(st.tuples(hashes, hashes), min_size=1, max_size=120), st.booleans(), st.integers(0, 12), st.integers(1, 40)
)
def test_comparing_lines_in_shares_is_comparing_them_at_once(
    lines: list[tuple[int, int]], drop: bool, hold_out: int, part: int
) -> None:
    sources, targets = ([pair[side] for pair in lines] for side in (0, 1))
    corpus = Corpus(CorpusConfig(pairs="a"), "train", np.zeros(len(lines), np.uint8), 0)
    packed = _LineHashes(*(bytearray(np.array(side, np.uint64).tobytes()) for side in (sources, targets)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dragoman.data.cleaning, "PART_LINES", part)
        _compare_lines([corpus], packed, drop, hold_out)
    assert corpus.verdicts.tolist() == compared_by_definition(sources, targets, drop, hold_out)


def test_comparing_lines_takes_little_more_than_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = 400_000
    monkeypatch.setattr(dragoman.data.cleaning, "PART_LINES", 20_000)
    random_hashes = np.random.default_rng(1).integers(0, 2**63, (2, lines), dtype=np.uint64) * np.uint64(2)
    corpus = Corpus(CorpusConfig(pairs="a"), "train", np.zeros(lines, np.uint8), 0)
    packed = _LineHashes(*(bytearray(side.tobytes()) for side in random_hashes))
    tracemalloc.start()
    _compare_lines([corpus], packed, True, 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * lines  # bytes a line, on top of 16 of hashes and one of verdict
