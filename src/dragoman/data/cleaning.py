"""Cleans corpora: decides for every line whether it is used, drops and counts the faulty ones, and raises an error
where too many have the same fault.

The rules for single lines run on all cores; their verdicts do not depend on the number of cores. The rules that compare
lines (duplicates, what is held out) need sixteen bytes for each line: a hash of each side.
"""

import dataclasses
import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from dragoman.config import CorpusConfig, DataConfig
from dragoman.data.corpus import (
    CHARACTERS_PER_TOKEN,
    LONGEST_LINE,
    CleaningReport,
    Corpus,
    LineVerdict,
    RawPair,
    Role,
    corpus_name,
    count_verdicts,
    how_to_write_pairs,
    raw_pairs,
)
from dragoman.errors import DataError
from dragoman.processes import map_on_all_cores

_RATIO_FREE_CHARACTERS = 20  # up to this length any ratio is allowed: "Hi." is "Bonjour !"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")  # all but the tab
CHUNK_LINES = 10_000  # judged at a time
CHUNK_BYTES = 8_000_000

# Swapped columns. Corpora are compared with the largest of them; one whose sources name the target language by a tag is
# compared with itself. A word counts as evidence only if one side has it eight times as often as the other, and no word
# counts for more than e^4; a line is swapped only if both of its sides say so.
_PROFILE_LINES = 200_000
_PROFILE_WORDS = 50_000
_PROFILE_CHARACTERS = 120  # of each sentence: its beginning is evidence enough
_LEAST_ODDS = math.log(8)
_MOST_ODDS = 4.0
_SWAP_EVIDENCE = 6.0  # nats on each side: at least two telling words on both
_LANGUAGE_TAG = re.compile(r"(?:<\S+> )*(>>\S+<<) ")  # in the text itself, as fine-tuning writes it

# To save memory lines are compared one share at a time, a share being the lines whose hashes begin with the same bits,
# and arrays are gone through in parts.
_SHARES = 16
_SHARE_BITS = np.uint64(60)
PART_LINES = 1_000_000
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class CleanedCorpora:
    """The corpora of a training after cleaning. Their text can be read as often as needed."""

    train: list[Corpus]
    valid: list[Corpus]  # with files of their own, or held out from `train`

    def report(self) -> CleaningReport:
        """Reports each corpus once: what was held out is part of its training corpus's report."""
        own_files = [corpus for corpus in self.valid if corpus.role == "valid"]
        return CleaningReport([corpus.report() for corpus in (*self.train, *own_files)])


def check_corpora(config: DataConfig, seed: int, processes: int | None = None) -> CleanedCorpora:
    """Reads all corpora, decides on every line, and holds out validation pairs where no validation text is given.

    Validation text is what quality is measured with, so it stays as given: only lines that cannot be used at all are
    dropped.
    """
    if not config.train:
        raise DataError("no training text; give --pairs FILE, or --source FILE and --target FILE")
    profiles = [_profile(corpus, config) for corpus in config.train]
    untagged = [profile for profile in profiles if not profile.tagged]
    largest = max(untagged or profiles, key=lambda profile: profile.lines)

    def compared_with(own: _Profile) -> _Profile:
        return own if own.tagged or config.target_languages else largest

    hashes = _LineHashes(bytearray(), bytearray())
    train = [
        _scan(corpus, "train", config, compared_with(profile), seed, hashes, processes)
        for corpus, profile in zip(config.train, profiles, strict=True)
    ]
    valid = [
        _scan(corpus, "valid", config, compared_with(_profile(corpus, config)), seed, None, processes)
        for corpus in config.valid
    ]
    hold_out = 0 if valid else config.hold_out
    _compare_lines(train, hashes, config.drop_duplicates, hold_out)
    checked = CleanedCorpora(train, valid)
    require_pairs(checked.train)
    if valid:
        require_pairs(valid)
    elif hold_out:
        checked.valid.extend(dataclasses.replace(corpus, selected=LineVerdict.HELD_OUT) for corpus in checked.train)
    return checked


def require_pairs(corpora: Sequence[Corpus]) -> None:
    """Raises a DataError where no pair is left, which names the rule that dropped the most lines."""
    if any(len(corpus) for corpus in corpora):
        return
    verdicts = np.concatenate([corpus.verdicts for corpus in corpora])
    counts = count_verdicts(verdicts)
    counts[LineVerdict.KEPT] = counts[LineVerdict.HELD_OUT] = 0
    worst = LineVerdict(counts.index(max(counts)))
    first = next(corpus for corpus in corpora if worst in corpus.verdicts)
    line = int(np.flatnonzero(first.verdicts == worst)[0]) + 1
    rule = worst.name.lower().replace("_", " ")
    raise DataError(
        f"{first.files}: nothing is left of {len(verdicts):,} lines for {first.role}; {counts[worst]:,} were dropped "
        f"as {rule}, the first at line {line:,}; correct the file or relax that rule"
    )


@dataclass(frozen=True)
class _JudgedChunk:
    """The result of the rules for single lines on a chunk. In bytes, which are quickly sent between processes."""

    verdicts: bytes
    source_hashes: bytes
    target_hashes: bytes
    characters: int
    straight: int  # lines whose two languages stand in the same order as in the profile
    swapped: int  # lines in which they stand in the other order


@dataclass(frozen=True)
class _LineHashes:
    """A hash of each side of every training line, by which lines are compared."""

    sources: bytearray
    targets: bytearray


def _scan(
    corpus: CorpusConfig,
    role: Role,
    config: DataConfig,
    profile: "_Profile",
    seed: int,
    hashes: _LineHashes | None,
    processes: int | None,
) -> Corpus:
    """Applies the rules for single lines to a corpus. Appends the hashes of its lines to `hashes`, if given."""
    verdicts = bytearray()
    characters = straight = swapped = 0
    judge = partial(_judge_chunk, role=role, config=config, profile=profile, salt=(seed % 2**64).to_bytes(8, "little"))
    for judged in map_on_all_cores(judge, _chunks(raw_pairs(corpus)), processes):
        verdicts += judged.verdicts
        if hashes is not None:
            hashes.sources.extend(judged.source_hashes)
            hashes.targets.extend(judged.target_hashes)
        characters += judged.characters
        straight += judged.straight
        swapped += judged.swapped
    result = Corpus(corpus, role, np.frombuffer(verdicts, dtype=np.uint8), characters)
    _require_format(result)
    if swapped > max(straight, 2):
        exchange = "its source and target files" if corpus.pairs is None else "its columns"
        raise DataError(
            f"{result.name}: in {swapped:,} of {len(verdicts):,} lines the languages stand the other way round than in "
            f"{profile.name}, in {straight:,} the same way; exchange {exchange}"
        )
    return result


def _chunks(pairs: Iterator[RawPair]) -> Iterator[list[RawPair]]:
    """Groups lines into chunks: enough lines to be worth sending to a process, and few enough bytes for memory."""
    chunk: list[RawPair] = []
    size = 0
    for pair in pairs:
        chunk.append(pair)
        size += sum(map(len, pair))
        if len(chunk) >= CHUNK_LINES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _judge_chunk(
    chunk: Sequence[RawPair], role: Role, config: DataConfig, profile: "_Profile", salt: bytes
) -> _JudgedChunk:
    """Applies the rules for single lines to a chunk, and hashes each side of its lines."""
    verdicts, source_hashes, target_hashes = bytearray(), bytearray(), bytearray()
    characters = straight = swapped = 0
    for raw in chunk:
        verdict, source, target = _judge(raw, role, config)
        if verdict == LineVerdict.KEPT:
            characters += len(source) + len(target)
            direction = profile.direction(source, target)
            straight += direction > 0
            swapped += direction < 0
            if direction < 0 and role == "train":
                verdict = LineVerdict.SWAPPED
        verdicts.append(verdict)
        source_hashes += hashlib.blake2b(source.encode(), digest_size=8, salt=salt).digest()
        target_hashes += hashlib.blake2b(target.encode(), digest_size=8, salt=salt).digest()
    return _JudgedChunk(bytes(verdicts), bytes(source_hashes), bytes(target_hashes), characters, straight, swapped)


def _judge(raw: RawPair, role: Role, config: DataConfig) -> tuple[LineVerdict, str, str]:
    """Applies the rules for single lines to one line, the cheapest first. Only a kept line has its text returned."""
    limit = CHARACTERS_PER_TOKEN * config.max_length
    # A character has up to 4 bytes, so a line with more need not be decoded. One over LONGEST_LINE was cut short.
    if max(map(len, raw[:2])) > 4 * limit or sum(map(len, raw)) >= LONGEST_LINE:
        return LineVerdict.TOO_LONG, "", ""
    if len(raw) < 2:
        return LineVerdict.COLUMNS, "", ""
    try:
        source, target = raw[0].decode().strip(), raw[1].decode().strip()
    except UnicodeDecodeError:
        return LineVerdict.NOT_UTF8, "", ""
    if not source or not target:
        return LineVerdict.EMPTY, "", ""
    shorter, longer = sorted((len(source), len(target)))
    if longer > limit:
        return LineVerdict.TOO_LONG, "", ""
    if role == "valid":
        return LineVerdict.KEPT, source, target
    if longer > _RATIO_FREE_CHARACTERS and longer > config.max_length_ratio * shorter:
        return LineVerdict.LENGTH_RATIO, "", ""
    # isprintable is false for more than control characters (odd spaces), but far faster where it is true.
    if not (source.isprintable() and target.isprintable()) and (_CONTROL.search(source) or _CONTROL.search(target)):
        return LineVerdict.CONTROL_CHARACTER, "", ""
    return LineVerdict.KEPT, source, target


def _require_format(corpus: Corpus) -> None:
    """Raises a DataError for an empty file, or one with over 1 % of malformed lines: it is not what it is taken for."""
    lines = len(corpus.verdicts)
    if not lines:
        raise DataError(f"{corpus.name}: no lines; give a file with a sentence, or a pair of them, on each line")
    remedies = {
        LineVerdict.NOT_UTF8: ("are not UTF-8", "convert the text with: iconv -f ITS_ENCODING -t UTF-8"),
        LineVerdict.COLUMNS: ("have no tab", how_to_write_pairs(corpus.name)),
    }
    for verdict, (fault, remedy) in remedies.items():
        bad = np.flatnonzero(corpus.verdicts == verdict)
        if len(bad) > 0.01 * lines:
            first = f"the first being line {bad[0] + 1:,}, where 1 % is tolerated"
            raise DataError(f"{corpus.files}: {len(bad):,} of {lines:,} lines {fault}, {first}; {remedy}")


@dataclass(frozen=True)
class _Profile:
    """The words that tell a corpus's two languages apart, each with log(P(word | source) / P(word | target)).

    Where both sides are in one language (copying, sorting, paraphrase) there are hardly any such words, and no line is
    called swapped. Nor is a line of which only one side looks swapped: it may be untranslated.
    """

    name: str
    lines: int
    tagged: bool  # most of its sources begin with a tag that names the target language
    odds: dict[str, float]

    def direction(self, source: str, target: str) -> int:
        """Judges the order of a line's languages: 1 straight, -1 swapped, 0 not sure."""
        sides = _words(source, target)
        source_odds, target_odds = (sum(map(self.odds.get, words, itertools.repeat(0.0))) for words in sides)
        if source_odds > _SWAP_EVIDENCE and target_odds < -_SWAP_EVIDENCE:
            return 1
        return -1 if source_odds < -_SWAP_EVIDENCE and target_odds > _SWAP_EVIDENCE else 0


def _words(source: str, target: str) -> list[list[str]]:
    """Splits each side into words. Where the source begins with a language tag, every word gets it as a prefix: what is
    straight in one direction is swapped in the other, and a file may hold both directions."""
    tag = _LANGUAGE_TAG.match(source)
    if tag is not None:
        source = source[tag.end() :]
    sides = [side[:_PROFILE_CHARACTERS].lower().split() for side in (source, target)]
    return sides if tag is None else [[f"{tag[1]} {word}" for word in words] for words in sides]


def _profile(corpus: CorpusConfig, config: DataConfig) -> _Profile:
    """Makes the profile of a corpus: add-one unigram odds of its first lines."""
    lines, tagged, counts = 0, 0, (Counter[str](), Counter[str]())
    for raw in itertools.islice(raw_pairs(corpus), _PROFILE_LINES):
        verdict, *sides = _judge(raw, "train", config)
        if verdict == LineVerdict.KEPT:
            lines += 1
            tagged += _LANGUAGE_TAG.match(sides[0]) is not None
            for count, side_words in zip(counts, _words(*sides), strict=True):
                count.update(side_words)
    source, target = counts
    words = {word for count in counts for word, _ in count.most_common(_PROFILE_WORDS)}
    scale = math.log(target.total() + len(words) + 1) - math.log(source.total() + len(words) + 1)
    odds = {}
    for word in words:
        value = math.log(source[word] + 1) - math.log(target[word] + 1) + scale
        if abs(value) >= _LEAST_ODDS:
            odds[word] = max(-_MOST_ODDS, min(_MOST_ODDS, value))
    return _Profile(corpus_name(corpus), lines, 2 * tagged > lines, odds)


def _compare_lines(corpora: Sequence[Corpus], hashes: _LineHashes, drop_duplicates: bool, hold_out: int) -> None:
    """Applies the rules that look at all lines of all corpora together: duplicates, and the pairs held out.

    Held out are the pairs whose source sentences have the smallest seeded hashes, one pair for each sentence, at most
    a tenth of all pairs: a random sample that does not depend on the order of lines.
    """
    verdicts = np.concatenate([corpus.verdicts for corpus in corpora])
    sources, targets = (np.frombuffer(side, dtype="<u8") for side in (hashes.sources, hashes.targets))
    if drop_duplicates:
        for lines, pairs in _shares(verdicts, lambda part: _pair_hashes(sources[part], targets[part])):
            first = np.unique(pairs, return_index=True)[1]
            verdicts[lines] = LineVerdict.DUPLICATE
            verdicts[lines[first]] = LineVerdict.KEPT
    kept = int(np.count_nonzero(verdicts == LineVerdict.KEPT))
    wanted = min(hold_out, kept // 10)
    held_out = np.zeros(0, dtype=np.int64)
    for lines, source_hashes in _shares(verdicts, lambda part: sources[part]):
        if len(held_out) >= wanted:
            break
        # Of the pairs that share a source, the one with the smallest hash of both; or the first, where any may stay.
        ties = _pair_hashes(source_hashes, targets[lines]) if drop_duplicates else lines
        order = np.lexsort((ties, source_hashes))
        first = order[np.unique(source_hashes[order], return_index=True)[1]]
        held_out = np.concatenate([held_out, lines[first[: wanted - len(held_out)]]])
    if wanted:
        for part in _parts(len(verdicts)):
            twins = _among(sources[part], sources[held_out]) | _among(targets[part], targets[held_out])
            verdicts[part][twins & (verdicts[part] == LineVerdict.KEPT)] = LineVerdict.HELD_OUT_TWIN
        verdicts[held_out] = LineVerdict.HELD_OUT
    ends = np.cumsum([len(corpus.verdicts) for corpus in corpora])
    for corpus, corpus_verdicts in zip(corpora, np.split(verdicts, ends[:-1]), strict=True):
        corpus.verdicts[:] = corpus_verdicts


def _pair_hashes(sources: Hashes, targets: Hashes) -> Hashes:
    return sources * np.uint64(0x9E3779B97F4A7C15) + targets  # not a plain sum: (a, b) and (b, a) are two pairs


def _parts(lines: int) -> Iterator[slice]:
    """Divides so many lines into slices."""
    for start in range(0, lines, PART_LINES):
        yield slice(start, start + PART_LINES)


def _shares(
    verdicts: npt.NDArray[np.uint8], hashes_of: Callable[[slice], Hashes]
) -> Iterator[tuple[npt.NDArray[np.int64], Hashes]]:
    """Gives the numbers and hashes of the kept lines, one share at a time: the share with the smallest hashes first,
    and within a share in the order of lines."""
    for share in range(_SHARES):
        lines, hashes = [], []
        for part in _parts(len(verdicts)):
            part_hashes = hashes_of(part)
            inside = np.flatnonzero((part_hashes >> _SHARE_BITS == share) & (verdicts[part] == LineVerdict.KEPT))
            lines.append(inside + part.start)
            hashes.append(part_hashes[inside])
        yield np.concatenate(lines), np.concatenate(hashes)


def _among(hashes: Hashes, few: Hashes) -> npt.NDArray[np.bool_]:
    """Tells of each hash whether it is one of the few."""
    ordered = np.sort(few)
    found: npt.NDArray[np.bool_] = ordered[np.searchsorted(ordered, hashes).clip(max=len(ordered) - 1)] == hashes
    return found
