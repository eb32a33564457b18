"""Read, check and clean aligned text. What is wrong is named by file and line.

A fault of a whole file (missing, unequal line counts, wrong encoding) is an error. A fault of a line drops that line
and is counted, with the first three lines of each kind shown. No text is kept in memory: a `Corpus` holds one verdict
a line and reads its files again whenever the pairs are needed.
"""

import contextlib
import dataclasses
import gzip
import hashlib
import io
import itertools
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from dragoman.config import CorpusConfig, DataConfig
from dragoman.errors import DataError

Role = Literal["train", "valid"]

CHARACTERS_PER_TOKEN = 16  # the longest piece that a tokenizer learns: no longer text fits into its tokens
_RATIO_FREE_CHARACTERS = 20  # a short sentence may well be many times as long as its translation ("Hi." - "Bonjour !")
_EXAMPLES = 3
_CLIPPED = 80
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")  # all but the tab

# Swapped columns. A word counts as evidence only where one side has it eight times as often as the other, and no word
# counts for more than e^4; a line is swapped only where both of its sides say so.
_PROFILE_LINES = 200_000
_PROFILE_WORDS = 50_000
_PROFILE_CHARACTERS = 120  # the beginning of a sentence says enough
_LEAST_ODDS = math.log(8)
_MOST_ODDS = 4.0
_SWAP_EVIDENCE = 6.0  # nats on each side: at least two telling words on both


class Verdict(IntEnum):
    """What became of a line: kept, held out for validation, or dropped by the rule named."""

    KEPT = 0
    HELD_OUT = 1
    NOT_UTF8 = 2
    COLUMNS = 3  # a TSV line with fewer than two columns
    EMPTY = 4
    TOO_LONG = 5
    LENGTH_RATIO = 6
    CONTROL_CHARACTER = 7
    DUPLICATE = 8
    SWAPPED = 9
    HELD_OUT_TWIN = 10  # shares a side with a held-out pair: training on it would be training on the test


@dataclass(frozen=True)
class Example:
    """A dropped line."""

    file: str
    line: int  # from 1
    source: str
    target: str


@dataclass(frozen=True)
class CorpusReport:
    """What cleaning did to one corpus."""

    name: str
    role: Role
    lines: int
    kept: int
    held_out: int
    dropped: dict[str, int]
    examples: dict[str, list[Example]]


@dataclass(frozen=True)
class CleaningReport:
    """What cleaning did, corpus by corpus."""

    corpora: list[CorpusReport]

    def summary(self) -> list[str]:
        """Plain lines to print."""
        text = []
        for corpus in self.corpora:
            held_out = f", {corpus.held_out:,} held out for validation" if corpus.held_out else ""
            text.append(f"{corpus.name}: {corpus.lines:,} lines, {corpus.kept:,} kept for {corpus.role}{held_out}")
            for rule, count in corpus.dropped.items():
                text.append(f"  dropped {count:,}: {rule.replace('_', ' ')}")
                text += [f"    line {e.line:,}: {e.source} | {e.target}" for e in corpus.examples[rule]]
        return text

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        corpora = []
        for corpus in values["corpora"]:
            examples = {rule: [Example(**e) for e in found] for rule, found in corpus["examples"].items()}
            corpora.append(CorpusReport(**{**corpus, "examples": examples}))
        return cls(corpora)


@dataclass(frozen=True)
class Corpus:
    """The lines of one corpus that have the verdict `selected`. Several may share their verdicts."""

    config: CorpusConfig
    role: Role
    verdicts: npt.NDArray[np.uint8]
    characters: int  # of both sides of the lines that passed the rules for single lines
    selected: Verdict = Verdict.KEPT

    @property
    def name(self) -> str:
        return corpus_name(self.config)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.verdicts == self.selected))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Without the whitespace around them: it says nothing, and teaches a model to write it at random."""
        for verdict, raw in zip(self.verdicts.tobytes(), _raw_pairs(self.config), strict=False):
            if verdict == self.selected:
                yield raw[0].decode().strip(), raw[1].decode().strip()

    def drop(self, positions: Mapping[Verdict, Sequence[int]]) -> None:
        """Give new verdicts to pairs, named by their positions among those selected."""
        lines = np.flatnonzero(self.verdicts == self.selected)
        for verdict, dropped in positions.items():
            self.verdicts[lines[list(dropped)]] = verdict

    def report(self) -> CorpusReport:
        counts = np.bincount(self.verdicts, minlength=len(Verdict)).tolist()
        rules = [rule for rule in Verdict if rule > Verdict.HELD_OUT and counts[rule]]
        wanted = {int(i): rule for rule in rules for i in np.flatnonzero(self.verdicts == rule)[:_EXAMPLES]}
        examples: dict[str, list[Example]] = {rule.name.lower(): [] for rule in rules}
        lines = itertools.islice(_raw_pairs(self.config), max(wanted, default=-1) + 1)
        for index, raw in enumerate(lines):
            if index in wanted:
                source, target = (_clip(side) for side in (*raw, b"")[:2])
                examples[wanted[index].name.lower()].append(Example(self.name, index + 1, source, target))
        return CorpusReport(
            name=self.name,
            role=self.role,
            lines=len(self.verdicts),
            kept=counts[Verdict.KEPT],
            held_out=counts[Verdict.HELD_OUT],
            dropped={rule.name.lower(): counts[rule] for rule in rules},
            examples=examples,
        )


@dataclass(frozen=True)
class Checked:
    """Clean text, to be read as often as needed."""

    train: list[Corpus]
    valid: list[Corpus]  # of their own files, or held out from `train`

    def report(self) -> CleaningReport:
        """Of each file once: a held-out corpus is part of the training corpus's own report."""
        own_files = [corpus for corpus in self.valid if corpus.role == "valid"]
        return CleaningReport([corpus.report() for corpus in (*self.train, *own_files)])


def corpus_name(config: CorpusConfig) -> str:
    """The file that names a corpus in messages."""
    return config.pairs or config.source or ""


def check_corpora(config: DataConfig, seed: int) -> Checked:
    """Read all corpora once or twice, decide on every line, and hold out validation pairs where none are given.

    Validation text is a measure and stays as it is given: only lines that cannot be used at all are dropped.
    """
    if not config.train:
        raise DataError("no training text; give --pairs FILE, or --source FILE and --target FILE")
    profile = max((_profile(corpus, config) for corpus in config.train), key=lambda profile: profile.lines)
    train = [_scan(corpus, "train", config, profile, seed) for corpus in config.train]
    valid = [_scan(corpus, "valid", config, profile, seed).corpus for corpus in config.valid]
    hold_out = 0 if valid else config.hold_out
    _compare_lines(train, config.drop_duplicates, hold_out)
    checked = Checked([scan.corpus for scan in train], valid)
    require_pairs(checked.train)
    if valid:
        require_pairs(valid)
    elif hold_out:
        checked.valid.extend(dataclasses.replace(corpus, selected=Verdict.HELD_OUT) for corpus in checked.train)
    return checked


def require_pairs(corpora: Sequence[Corpus]) -> None:
    """Nothing left is an error that says what took the most."""
    if any(len(corpus) for corpus in corpora):
        return
    verdicts = np.concatenate([corpus.verdicts for corpus in corpora])
    counts = np.bincount(verdicts, minlength=len(Verdict))
    counts[Verdict.KEPT] = counts[Verdict.HELD_OUT] = 0
    worst = Verdict(int(counts.argmax()))
    first = next(corpus for corpus in corpora if worst in corpus.verdicts)
    line = int(np.flatnonzero(first.verdicts == worst)[0]) + 1
    rule = worst.name.lower().replace("_", " ")
    raise DataError(
        f"{first.name}: nothing is left of {len(verdicts):,} lines for {first.role}; {counts[worst]:,} were dropped as "
        f"{rule}, the first at line {line:,}; correct the file or relax that rule"
    )


# ---------------------------------------------------------------------------------------------------------- reading


def read_lines(file: str | Path | BinaryIO) -> Iterator[str]:
    """The lines of a text file or stream exactly as they are; one that is not UTF-8 is an error."""
    for number, line in enumerate(_raw_lines(file), start=1):
        yield _decode(line, file, number)


def read_pairs(file: str | Path | BinaryIO) -> Iterator[tuple[str, str]]:
    """The first two columns of a TSV file or stream; a line without them is an error."""
    for number, line in enumerate(_raw_lines(file), start=1):
        columns = _decode(line, file, number).split("\t", 2)
        if len(columns) < 2:
            raise DataError(f"{_name(file)}:{number}: one column; each line must be a source, a tab and a target")
        yield columns[0], columns[1]


def _decode(line: bytes, file: str | Path | BinaryIO, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{_name(file)}:{number}: byte {error.start + 1} (0x{line[error.start]:02X}) is not UTF-8; "
            f"convert the text with: iconv -f ITS_ENCODING -t UTF-8"
        ) from None


def _name(file: str | Path | BinaryIO) -> str:
    return str(file) if isinstance(file, str | Path) else str(getattr(file, "name", "input"))


def file_digest(path: str) -> str:
    """SHA-256 of the file as it lies on disk."""
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise DataError(f"{path}: not a regular file; the text is read several times, so save it to a file first")
    with _explained(path), Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """What can go wrong with a file, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{name}: no such file; check the path, which is taken from {Path.cwd()}") from None
    except IsADirectoryError:
        raise DataError(f"{name}: a directory; give a text file") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}); check the path and its permissions") from None


def _raw_lines(file: str | Path | BinaryIO) -> Iterator[bytes]:
    """Lines end at \\n alone (one \\r before it goes too): U+2028 and its like are part of the text."""
    name, number = _name(file), 0
    with _explained(name), contextlib.ExitStack() as stack:
        stream = stack.enter_context(Path(file).open("rb")) if isinstance(file, str | Path) else file
        if isinstance(stream, io.BufferedReader) and stream.peek(2).startswith(b"\x1f\x8b"):
            stream = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=stream)))
        try:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise DataError(f"{name}:1: UTF-16; convert it with: iconv -f UTF-16 -t UTF-8")
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield line.removesuffix(b"\n").removesuffix(b"\r")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(
                f"{name}: the gzip data is damaged or cut off near line {number:,}; fetch it again"
            ) from None


def _raw_pairs(config: CorpusConfig) -> Iterator[Sequence[bytes]]:
    """Each line as undecoded source and target; further columns may follow, or, in a bad TSV line, the target lack."""
    if config.pairs is not None:
        for line in _raw_lines(config.pairs):
            yield line.split(b"\t", 2) if line.strip() else (b"", b"")  # a blank line is empty, not malformed
        return
    assert config.source is not None
    assert config.target is not None
    sources, targets = _raw_lines(config.source), _raw_lines(config.target)
    for lines, (source, target) in enumerate(itertools.zip_longest(sources, targets)):
        if source is None or target is None:
            rest = lines + 1 + sum(1 for _ in itertools.chain(sources, targets))  # one of them is at its end
            counts = (lines, rest) if source is None else (rest, lines)
            raise DataError(
                f"{config.source} has {counts[0]:,} lines, {config.target} {counts[1]:,}: "
                f"line n of the one must translate line n of the other; find where they part and align them again"
            )
        yield source, target


def _clip(side: bytes) -> str:
    text = side[: 4 * _CLIPPED + 4].decode(errors="replace").strip()
    return text if len(text) <= _CLIPPED else text[: _CLIPPED - 1] + "…"


# --------------------------------------------------------------------------------------------------------- cleaning


@dataclass(frozen=True)
class _Scan:
    """A corpus after its one reading, and what comparing its lines needs: eight bytes a side and line."""

    corpus: Corpus
    source_hashes: npt.NDArray[np.uint64]
    target_hashes: npt.NDArray[np.uint64]


def _scan(corpus: CorpusConfig, role: Role, config: DataConfig, profile: "_Profile", seed: int) -> _Scan:
    verdicts, source_hashes, target_hashes = bytearray(), bytearray(), bytearray()
    characters = straight = swapped = 0
    salt = (seed % 2**64).to_bytes(8, "little")
    for raw in _raw_pairs(corpus):
        verdict, source, target = _judge(raw, role, config)
        if verdict == Verdict.KEPT:
            characters += len(source) + len(target)
            direction = profile.direction(source, target)
            straight += direction > 0
            swapped += direction < 0
            if direction < 0 and role == "train":
                verdict = Verdict.SWAPPED
        verdicts.append(verdict)
        source_hashes += hashlib.blake2b(source.encode(), digest_size=8, salt=salt).digest()
        target_hashes += hashlib.blake2b(target.encode(), digest_size=8, salt=salt).digest()
    result = Corpus(corpus, role, np.frombuffer(verdicts, dtype=np.uint8), characters)
    _require_format(result)
    if swapped > max(straight, 2):
        exchange = "its source and target files" if corpus.pairs is None else "its columns"
        raise DataError(
            f"{result.name}: in {swapped:,} of {len(verdicts):,} lines the languages stand the other way round than in "
            f"{profile.name}, in {straight:,} the same way; exchange {exchange}"
        )
    return _Scan(result, np.frombuffer(source_hashes, dtype="<u8"), np.frombuffer(target_hashes, dtype="<u8"))


def _judge(raw: Sequence[bytes], role: Role, config: DataConfig) -> tuple[Verdict, str, str]:
    """The rules for single lines, cheapest first."""
    if len(raw) < 2:
        return Verdict.COLUMNS, "", ""
    limit = CHARACTERS_PER_TOKEN * config.max_length
    if len(raw[0]) > 4 * limit or len(raw[1]) > 4 * limit:  # no need to decode 100 MB: a character has up to 4 bytes
        return Verdict.TOO_LONG, "", ""
    try:
        source, target = raw[0].decode().strip(), raw[1].decode().strip()
    except UnicodeDecodeError:
        return Verdict.NOT_UTF8, "", ""
    if not source or not target:
        return Verdict.EMPTY, "", ""
    shorter, longer = sorted((len(source), len(target)))
    if longer > limit:
        return Verdict.TOO_LONG, "", ""
    if role == "valid":
        return Verdict.KEPT, source, target
    if longer > _RATIO_FREE_CHARACTERS and longer > config.max_length_ratio * shorter:
        return Verdict.LENGTH_RATIO, "", ""
    # isprintable is false for more than control characters (odd spaces), but far faster where it is true.
    if not (source.isprintable() and target.isprintable()) and (_CONTROL.search(source) or _CONTROL.search(target)):
        return Verdict.CONTROL_CHARACTER, "", ""
    return Verdict.KEPT, source, target


def _require_format(corpus: Corpus) -> None:
    """A few bad lines are dropped. More than one in a hundred, and the file is not what it was taken for."""
    lines = len(corpus.verdicts)
    if not lines:
        raise DataError(f"{corpus.name}: no lines; give a file with one sentence pair a line")
    remedies = {
        Verdict.NOT_UTF8: "are not UTF-8, {}; convert the text with: iconv -f ITS_ENCODING -t UTF-8",
        Verdict.COLUMNS: "have no tab, {}; each line must be a source, a tab and a target",
    }
    for verdict, remedy in remedies.items():
        bad = np.flatnonzero(corpus.verdicts == verdict)
        if len(bad) > 0.01 * lines:
            first = f"the first being line {bad[0] + 1:,}, where 1 % is tolerated"
            raise DataError(f"{corpus.name}: {len(bad):,} of {lines:,} lines {remedy.format(first)}")


@dataclass(frozen=True)
class _Profile:
    """What tells the two languages apart: log(P(word | source) / P(word | target)) of the words that do.

    Where both sides are one language (copying, sorting, paraphrase) hardly any word does, and no line is called
    swapped. Nor is one on the word of a single side: an untranslated line is not a swapped one.
    """

    name: str
    lines: int
    odds: dict[str, float]

    def direction(self, source: str, target: str) -> int:
        """1 straight, -1 swapped, 0 not sure."""
        of_source = sum(map(self.odds.get, _words(source), itertools.repeat(0.0)))
        of_target = sum(map(self.odds.get, _words(target), itertools.repeat(0.0)))
        if of_source > _SWAP_EVIDENCE and of_target < -_SWAP_EVIDENCE:
            return 1
        return -1 if of_source < -_SWAP_EVIDENCE and of_target > _SWAP_EVIDENCE else 0


def _words(text: str) -> list[str]:
    return text[:_PROFILE_CHARACTERS].lower().split()


def _profile(corpus: CorpusConfig, config: DataConfig) -> _Profile:
    """Add-one unigram odds from the beginning of a corpus."""
    lines, counts = 0, (Counter[str](), Counter[str]())
    for raw in itertools.islice(_raw_pairs(corpus), _PROFILE_LINES):
        verdict, *sides = _judge(raw, "train", config)
        if verdict == Verdict.KEPT:
            lines += 1
            for count, side in zip(counts, sides, strict=True):
                count.update(_words(side))
    source, target = counts
    words = {word for count in counts for word, _ in count.most_common(_PROFILE_WORDS)}
    scale = math.log(target.total() + len(words) + 1) - math.log(source.total() + len(words) + 1)
    odds = {}
    for word in words:
        value = math.log(source[word] + 1) - math.log(target[word] + 1) + scale
        if abs(value) >= _LEAST_ODDS:
            odds[word] = max(-_MOST_ODDS, min(_MOST_ODDS, value))
    return _Profile(corpus_name(corpus), lines, odds)


def _compare_lines(scans: Sequence[_Scan], drop_duplicates: bool, hold_out: int) -> None:
    """The rules that look at all lines of all corpora together: duplicates, and the pairs held out.

    Held out are the pairs with the smallest seeded hashes of their source sentences, one pair a sentence and at most
    a tenth of all: a sample that does not depend on the order of lines.
    """
    verdicts = np.concatenate([scan.corpus.verdicts for scan in scans])
    kept = np.flatnonzero(verdicts == Verdict.KEPT)
    sources = np.concatenate([scan.source_hashes for scan in scans])[kept]
    targets = np.concatenate([scan.target_hashes for scan in scans])[kept]
    if drop_duplicates:
        pairs = sources * np.uint64(0x9E3779B97F4A7C15) + targets  # not a plain sum: (a, b) and (b, a) are two pairs
        first = np.unique(pairs, return_index=True)[1]  # in the order of hashes, like the choice below
        verdicts[kept] = Verdict.DUPLICATE
        kept, sources, targets = kept[first], sources[first], targets[first]
        verdicts[kept] = Verdict.KEPT
    held_out = np.unique(sources, return_index=True)[1][: min(hold_out, len(kept) // 10)]
    twins = np.isin(sources, sources[held_out]) | np.isin(targets, targets[held_out])
    verdicts[kept[twins]] = Verdict.HELD_OUT_TWIN
    verdicts[kept[held_out]] = Verdict.HELD_OUT
    ends = np.cumsum([len(scan.corpus.verdicts) for scan in scans])
    for scan, part in zip(scans, np.split(verdicts, ends[:-1]), strict=True):
        scan.corpus.verdicts[:] = part
