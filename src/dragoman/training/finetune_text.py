"""Selects the text of a fine-tuning: new pairs to learn from, old ones to mix in, and pairs held out of both.

It is written into finetune/ of the new run's directory, where `finetune` names each file. No pair that is learned from
shares a side with one that is held out: that would be learning the test.
"""

import dataclasses
import heapq
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, RunConfig
from dragoman.data.cleaning import CleanedCorpora, check_corpora
from dragoman.data.corpus import Corpus, SentencePair, file_digest
from dragoman.data.dataset import Dataset, prepared_directory, read_text
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError
from dragoman.files import read_json, replacing, sha256, unfinished_path
from dragoman.run_directory import RunDirectory
from dragoman.training.self_distillation import GENERAL, own_translations

MEASURED = 1000  # pairs at most in each of the two test sets, and in each of the two validation sets
MEASURED_GENERAL = 500  # the same of general sentences, which the run has to translate first
FEWEST_DIVIDED = 100  # pairs of old validation text; with fewer, halves would be too small to show a difference
CHUNK = 10_000  # pairs decoded at a time
FORMAT = 2  # of plan.json; raised when a fine-tuning begun before can no longer go on


UNKNOWN = "the run may have learned sentences that are measured with: what it was trained on was not looked through"


@dataclass(frozen=True)
class TextAsked:
    """The text that a fine-tuning is asked to use."""

    new: CorpusConfig
    valid: CorpusConfig | None  # to measure the new domain with; None: some of the new pairs
    old: float  # pairs of the old domain for each new one
    general: Path | None  # sentences to make the old domain of; None: what the run was trained on
    languages: tuple[str, str] | None = None  # source and target, of a model that has tokens for them


@dataclass(frozen=True)
class FineTuningText:
    """The files to learn from and to measure with: no pair is in both."""

    train: CorpusConfig
    train_pairs: int
    train_tokens: int
    left_out: int  # new pairs that share a side with a held-out pair
    new_test: CorpusConfig
    old_test: CorpusConfig | None
    old: tuple[tuple[CorpusConfig, int], ...]  # each corpus with its old weight, and its number of pairs
    caveats: tuple[str, ...]  # why the scores may be too good
    old_is_agreement: bool = False  # the old pairs are the run's own translations


@dataclass(frozen=True)
class OldText:
    """What the old run was trained on and validated with."""

    train: Sequence[tuple[Callable[[], Iterator[SentencePair]], float]]  # each corpus, with its weight
    held_out: list[SentencePair]
    caveats: list[str]  # what could not be found out


@dataclass(frozen=True)
class HeldOutPairs:
    """Pairs that choose the weights ("valid") and pairs that measure them ("test"), of both domains."""

    new_valid: list[SentencePair]
    new_test: list[SentencePair]
    old_valid: list[SentencePair]
    old_test: list[SentencePair]


@dataclass
class LearnedCounts:
    """How much new text there is to learn from."""

    read: int = 0  # pairs, including those that are held out
    pairs: int = 0
    tokens: int = 0  # of their targets


def planned_text(
    before: RunDirectory,
    after: RunDirectory,
    asked: TextAsked,
    tokenizer: Tokenizer,
    say: Callable[[str], None],
) -> FineTuningText:
    """Writes the text of a fine-tuning into finetune/, once: a run that goes on finds it there."""
    directory, plan_path = after.finetune_path, after.finetune_plan_path

    def digests(corpus: CorpusConfig | None) -> list[str]:
        files = () if corpus is None else (corpus.pairs, corpus.source, corpus.target)
        return [file_digest(file) for file in files if file is not None]

    made_from = {
        "weights": sha256(before.model_path),
        "tokenizer": tokenizer.digest,
        "new": [*digests(asked.new), asked.new.tag],
        "valid": digests(asked.valid),
        "with_old": asked.old > 0,
        "general": None if asked.general is None else file_digest(str(asked.general)),
        "languages": None if asked.languages is None else list(asked.languages),
    }
    if plan_path.exists():
        plan = read_json(plan_path)
        if plan.get("format") != FORMAT:
            raise DataError(
                f"{plan_path}: format {plan.get('format', 1)}, of another version of dragoman (this one writes format "
                f"{FORMAT}); give a new --out, or go on with that version"
            )
        for name, value in made_from.items():
            if plan["made_from"].get(name) != value:
                raise DataError(f"{after.path}: was begun with other {name.replace('_', ' ')}; give a new --out")
        return _text_from(plan["text"])
    # Files of a fine-tuning that was killed here do not count; `replacing` removes them.
    unfinished = {".lock", unfinished_path(directory).name, GENERAL}
    if after.path.exists() and any(path.name not in unfinished for path in after.path.iterdir()):
        raise DataError(f"{after.path}: has files, and none of a fine-tuning; give a new --out")
    with after.lock(), replacing(directory) as temporary:  # locked, as another process may still be at work
        temporary.mkdir()
        text = _write_text(before, asked, tokenizer, (temporary, directory), say)
        plan = {"format": FORMAT, "made_from": made_from, "text": dataclasses.asdict(text)}
        (temporary / plan_path.name).write_bytes(as_json(plan))
    return text


def _text_from(values: dict[str, Any]) -> FineTuningText:
    """Reads the text back from what plan.json says of it."""

    def corpus(found: dict[str, Any] | None) -> CorpusConfig | None:
        return None if found is None else CorpusConfig(**found)

    configs = {name: corpus(values[name]) for name in ("train", "new_test", "old_test")}
    old = tuple((CorpusConfig(**found), int(pairs)) for found, pairs in values["old"])
    return FineTuningText(**{**values, **configs, "old": old, "caveats": tuple(values["caveats"])})


def _write_text(
    before: RunDirectory,
    asked: TextAsked,
    tokenizer: Tokenizer,
    directories: tuple[Path, Path],
    say: Callable[[str], None],
) -> FineTuningText:
    """Writes all files of text. `directories`: the one to write into, and the one that it will be."""
    written, final = directories
    config, new, given, with_old = before.read_config(), asked.new, asked.valid, asked.old > 0
    say(f"reading and cleaning {_name(new)}")
    rules = replace(config.data, train=(new,), valid=() if given is None else (given,), hold_out=0)
    checked = check_corpora(rules, config.train.seed)
    if asked.general is not None:
        old = _own_text(before, final.parent / GENERAL, asked, sum(map(len, checked.train)), config.train.seed, say)
    else:
        old = old_text(before, config, tokenizer, with_old, say)
    held_out = _held_out(checked, old, new, config.train.seed, test_given=given is not None, with_old=with_old)
    not_learned = _sides(held_out.new_valid, held_out.new_test, old.held_out)
    counts = _write_new(written, checked.train, not_learned, tokenizer)
    if not counts.pairs:
        count = len({*held_out.new_valid, *held_out.new_test})
        raise DataError(f"{_name(new)}: no pair is left to learn from once {count} are held out")
    mixed = _write_old(directories, old, not_learned) if with_old else []
    _write_held_out(written, held_out)
    say(
        f"{counts.pairs:,} new pairs to learn from, {sum(size for _, size in mixed):,} old ones to mix in; "
        f"weights chosen by {len(held_out.new_valid):,} new and {len(held_out.old_valid):,} old pairs, "
        f"measured with {len(held_out.new_test):,} new and {len(held_out.old_test):,} old ones"
    )
    return FineTuningText(
        train=corpus_at(final, "new"),
        train_pairs=counts.pairs,
        train_tokens=counts.tokens,
        left_out=counts.read - counts.pairs,
        new_test=corpus_at(final, "new-test"),
        old_test=corpus_at(final, "old-test") if held_out.old_test else None,
        old=tuple(mixed),
        caveats=(*old.caveats, *_caveats_about(held_out)),
        old_is_agreement=asked.general is not None,
    )


def _held_out(
    checked: CleanedCorpora, old: OldText, new: CorpusConfig, seed: int, *, test_given: bool, with_old: bool
) -> HeldOutPairs:
    """Chooses what is held out: of the new domain the pairs that were given, or else some that the old run has not
    seen; of the old domain what the old run was validated with."""
    old_valid, old_test = divided(old.held_out)
    if not with_old:  # then only the new domain counts: the old pairs measure what is forgotten, but choose nothing
        old_valid = []
    known = itertools.chain(old.held_out, itertools.chain.from_iterable(pairs() for pairs, _ in old.train))
    if test_given:
        new_test = list(itertools.islice(_pairs(checked.valid), MEASURED))
        new_valid = _hold_out(checked.train, itertools.chain(new_test, known), 1, seed)
    else:
        drawn = _hold_out(checked.train, known, 2, seed)
        new_valid, new_test = drawn[1::2], drawn[::2]
    if not new_test:
        raise DataError(
            f"{_name(new)}: too few pairs that the old training has not seen to measure with; give --valid-pairs"
        )
    measured = _sides(new_test)
    old_valid = [
        pair for pair in old_valid if measured.isdisjoint(pair)
    ]  # the pairs given by the user may be among them
    return HeldOutPairs(new_valid or new_test, new_test, old_valid, old_test)


def _caveats_about(held_out: HeldOutPairs) -> Iterator[str]:
    """Yields why a score may be too good: the same pairs also chose the weights."""
    chosen_by = _sides(held_out.new_valid, held_out.old_valid)
    for domain, test in (("new", held_out.new_test), ("old", held_out.old_test)):
        if not chosen_by.isdisjoint(_sides(test)):
            yield (
                f"the {domain} sentences also chose the weights, as too few others could be held out: "
                f"what is found on them may be a little too good"
            )


def _write_new(
    directory: Path, corpora: Sequence[Corpus], not_learned: set[str], tokenizer: Tokenizer
) -> LearnedCounts:
    """Writes the new pairs to learn from: those that share no side with one that is held out."""
    counts = LearnedCounts()

    def to_learn() -> Iterator[SentencePair]:
        for chunk in _chunks(_pairs(corpora)):
            learned = [pair for pair in chunk if not_learned.isdisjoint(pair)]
            counts.read += len(chunk)
            counts.pairs += len(learned)
            counts.tokens += sum(map(len, tokenizer.encode_target_batch([target for _, target in learned])))
            yield from learned

    write_pairs(directory, "new", to_learn())
    return counts


def _write_old(directories: tuple[Path, Path], old: OldText, not_learned: set[str]) -> list[tuple[CorpusConfig, int]]:
    """Writes the old pairs to mix in, corpus by corpus; returns each that has any, and how many."""
    written, final = directories
    mixed = []
    for number, (pairs, weight) in enumerate(old.train):
        size = write_pairs(written, f"old-{number}", (pair for pair in pairs() if not_learned.isdisjoint(pair)))
        if size:
            mixed.append((replace(corpus_at(final, f"old-{number}"), weight=weight), size))
    return mixed


def _write_held_out(directory: Path, held_out: HeldOutPairs) -> None:
    """Writes the four sets, and the two that choose the weights by turns as one."""
    write_pairs(directory, "new-valid", held_out.new_valid)
    write_pairs(directory, "old-valid", held_out.old_valid)
    write_pairs(directory, "new-test", held_out.new_test)
    write_pairs(directory, "old-test", held_out.old_test)
    by_turns = itertools.chain.from_iterable(itertools.zip_longest(held_out.new_valid, held_out.old_valid))
    write_pairs(directory, "valid", (pair for pair in by_turns if pair is not None))


def old_text(
    before: RunDirectory,
    config: RunConfig,
    tokenizer: Tokenizer,
    with_old: bool,
    say: Callable[[str], None],
) -> OldText:
    """Finds what the old run was trained on and validated with.

    From the token ids in its own directory, if it has them: they are exactly that text, even if the files have changed.
    Otherwise from the files, which may be missing if no old text is mixed in.
    """
    directory = prepared_directory(before.path)
    if directory is None and not config.data.train:
        say(
            f"the old domain is neither kept nor measured, as {before.path} came without the text it was trained on; "
            f"give --general FILE, sentences of the source language, one a line"
        )
        return OldText([], [], [UNKNOWN])
    if directory is None:
        say(f"{before.path} keeps no data of its own: reading the text it was trained on")
        try:
            checked = check_corpora(config.data, config.train.seed)
        except DataError as error:
            if with_old:
                raise DataError(f"{error}; or fine-tune without the old text: --old 0") from None
            return OldText([], [], [f"the old run may have learned sentences that are measured with: {error}"])
        held_out = list(itertools.islice(_pairs(checked.valid), 2 * MEASURED))
        return OldText([(corpus.pairs, corpus.config.weight) for corpus in checked.train], held_out, [])
    weights = [corpus.weight for corpus in config.data.train]
    data = Dataset.open(directory / "train", weights)

    def decoded(number: int) -> Callable[[], Iterator[SentencePair]]:
        return lambda: _decoded(data, number, tokenizer)

    train_text = [(decoded(number), weight) for number, weight in enumerate(weights)]
    return OldText(train_text, read_text(directory)[: 2 * MEASURED], [])


def _own_text(
    before: RunDirectory, directory: Path, asked: TextAsked, new_pairs: int, seed: int, say: Callable[[str], None]
) -> OldText:
    """Makes the old domain of general sentences and the run's own translations of them."""
    assert asked.general is not None
    wanted = 2 * MEASURED_GENERAL + round(asked.old * new_pairs)
    pairs = own_translations(before, asked.general, directory, wanted, asked.new.tag, asked.languages, seed, say)
    held_out = min(2 * MEASURED_GENERAL, len(pairs) // 3)
    return OldText([(lambda: iter(pairs[held_out:]), 1.0)], pairs[:held_out], [UNKNOWN])


def divided(pairs: list[SentencePair]) -> tuple[list[SentencePair], list[SentencePair]]:
    """Returns pairs to choose by and pairs to measure with, which share no side; of too few, all of them for both."""
    if len(pairs) < FEWEST_DIVIDED:
        return pairs, pairs
    # Two at a time: where a run translates both ways, one line of text is two pairs in a row.
    test = [pair for number, pair in enumerate(pairs) if number // 2 % 2 == 0]
    measured = _sides(test)
    return [pair for pair in pairs if measured.isdisjoint(pair)], test


def _decoded(data: Dataset, corpus: int, tokenizer: Tokenizer) -> Iterator[SentencePair]:
    """Yields the pairs of one corpus of prepared data, decoded from their ids."""
    rows = (data.corpus == corpus).nonzero()[0]
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        sources = tokenizer.decode_source_batch(data.source(int(row)).tolist() for row in chunk)
        yield from zip(sources, tokenizer.decode_batch(data.target(int(row)).tolist() for row in chunk), strict=True)


def _hold_out(corpora: Sequence[Corpus], known: Iterable[SentencePair], sets: int, seed: int) -> list[SentencePair]:
    """Draws pairs for a number of sets: those with the smallest seeded hashes. No two of them share a side, and none
    shares one with the known pairs: the old run has learned those, which would make the scores too good."""
    salt = (seed % 2**64).to_bytes(8, "little")
    wanted = sets * min(MEASURED, sum(map(len, corpora)) // 10)

    def drawn(pair: SentencePair) -> tuple[bytes, SentencePair]:
        return blake2b(pair[0].encode(), digest_size=8, salt=salt).digest(), pair

    # More than needed, as some will be known.
    candidates = [pair for _, pair in heapq.nsmallest(4 * wanted, map(drawn, _pairs(corpora)))]
    sides = _sides(candidates)
    taken = {side for pair in known for side in pair if side in sides}
    chosen: list[SentencePair] = []
    for pair in candidates:
        if len(chosen) < wanted and taken.isdisjoint(pair):
            chosen.append(pair)
            taken.update(pair)
    return chosen


def _sides(*sets: Iterable[SentencePair]) -> set[str]:
    """Returns all sentences of all pairs, of both sides."""
    return {side for pairs in sets for pair in pairs for side in pair}


def _pairs(corpora: Sequence[Corpus]) -> Iterator[SentencePair]:
    return itertools.chain.from_iterable(corpus.pairs() for corpus in corpora)


def _chunks(pairs: Iterator[SentencePair]) -> Iterator[list[SentencePair]]:
    while chunk := list(itertools.islice(pairs, CHUNK)):
        yield chunk


def corpus_at(directory: Path, name: str) -> CorpusConfig:
    """Names the two files of a set of pairs in a directory."""
    return CorpusConfig(source=str(directory / f"{name}.source"), target=str(directory / f"{name}.target"))


def write_pairs(directory: Path, name: str, pairs: Iterable[SentencePair]) -> int:
    """Writes pairs as two files, as a side may hold a tab; returns how many there were."""
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context((directory / f"{name}.{side}").open("wb")) for side in ("source", "target")]
        for pair in pairs:
            count += 1
            for file, side in zip(files, pair, strict=True):
                file.write(side.encode() + b"\n")
    return count


def _name(corpus: CorpusConfig) -> str:
    return str(corpus.pairs or corpus.source)


def as_json(values: dict[str, Any]) -> bytes:
    """Returns values as indented JSON."""
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
