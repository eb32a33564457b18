"""Read aligned text, and name what is wrong by file and line.

A fault of a whole file (missing, unequal line counts, wrong encoding) is an error; what becomes of a faulty line is for
`cleaning` to say. No text is kept in memory: a `Corpus` holds one verdict a line and reads its files again whenever the
pairs are needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, cast

from dragoman.config import CorpusConfig
from dragoman.errors import DataError, UsageError
from dragoman.files import sha256

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Numpy:
        """Imported when first used: reading lines to translate needs none of it, and should not wait for it."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _Numpy()

SentencePair = tuple[str, str]  # a source sentence and its translation
Role = Literal["train", "valid"]
RawPair = Sequence[bytes]  # source and target; further columns may follow, or, in a bad TSV line, the target lack

CHARACTERS_PER_TOKEN = 16  # the longest piece that a tokenizer learns: no longer text fits into its tokens
LONGEST_LINE = 1_000_000  # bytes that are looked at: no sentence has more, and memory has an end
_EXAMPLES = 3
_CLIPPED = 80


class LineVerdict(IntEnum):
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


def corpus_from(
    command: str, prefix: str, pairs: Path | None, source: Path | None, target: Path | None
) -> CorpusConfig | None:
    """Makes one corpus of three options of a command, or None where none of them was given. `prefix`: how their names
    begin, "--" or "--valid-"."""
    if pairs is None and source is None and target is None:
        return None
    if (source is None) != (target is None) or (pairs is not None) == (source is not None):
        raise UsageError(f"{command}: give {prefix}pairs, or both {prefix}source and {prefix}target")
    if pairs is not None:
        return CorpusConfig(pairs=str(pairs))
    return CorpusConfig(source=str(source), target=str(target))


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
    selected: LineVerdict = LineVerdict.KEPT

    @property
    def name(self) -> str:
        return corpus_name(self.config)

    @property
    def files(self) -> str:
        """Where a fault of a line may lie."""
        return self.name if self.config.target is None else f"{self.config.source} or {self.config.target}"

    @property
    def ways(self) -> int:
        """How many pairs a line makes: one, or one for each direction."""
        return 1 if self.config.back_tag is None else 2

    def __len__(self) -> int:
        return int(np.count_nonzero(self.verdicts == self.selected)) * self.ways

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Without the whitespace around them: it says nothing, and teaches a model to write it at random. With the tags
        that the corpus is given."""
        tag, back_tag = self.config.tag, self.config.back_tag
        for verdict, raw in zip(self.verdicts.tobytes(), raw_pairs(self.config), strict=False):
            if verdict == self.selected:
                source, target = raw[0].decode().strip(), raw[1].decode().strip()
                yield (source if tag is None else f"{tag} {source}"), target
                if back_tag is not None:
                    yield f"{back_tag} {target}", source

    def drop(self, positions: Mapping[LineVerdict, Sequence[int]]) -> None:
        """Give new verdicts to pairs, named by their positions among those selected."""
        lines = np.flatnonzero(self.verdicts == self.selected)
        for verdict, dropped in positions.items():
            self.verdicts[lines[[position // self.ways for position in dropped]]] = verdict

    def report(self) -> CorpusReport:
        counts = count_verdicts(self.verdicts)
        rules = [rule for rule in LineVerdict if rule > LineVerdict.HELD_OUT and counts[rule]]
        wanted = {int(i): rule for rule in rules for i in np.flatnonzero(self.verdicts == rule)[:_EXAMPLES]}
        examples: dict[str, list[Example]] = {rule.name.lower(): [] for rule in rules}
        lines = itertools.islice(raw_pairs(self.config), max(wanted, default=-1) + 1)
        for index, raw in enumerate(lines):
            if index in wanted:
                source, target = (_clip(side) for side in (*raw, b"")[:2])
                examples[wanted[index].name.lower()].append(Example(self.name, index + 1, source, target))
        return CorpusReport(
            name=self.name,
            role=self.role,
            lines=len(self.verdicts),
            kept=counts[LineVerdict.KEPT],
            held_out=counts[LineVerdict.HELD_OUT],
            dropped={rule.name.lower(): counts[rule] for rule in rules},
            examples=examples,
        )


def count_verdicts(verdicts: npt.NDArray[np.uint8]) -> list[int]:
    """How often each one was given. (np.bincount would make eight bytes of each line's one.)"""
    return [int(np.count_nonzero(verdicts == verdict)) for verdict in LineVerdict]


def corpus_name(config: CorpusConfig) -> str:
    """The file that names a corpus in messages."""
    return config.pairs or config.source or ""


# ---------------------------------------------------------------------------------------------------------- reading


def read_lines(file: str | Path | BinaryIO) -> Iterator[str]:
    """The lines of a text file or stream exactly as they are; one that is not UTF-8, or endless, is an error."""
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
    if len(line) > LONGEST_LINE:
        raise DataError(
            f"{_name(file)}:{number}: a line of more than {LONGEST_LINE:,} bytes; give text with one sentence a line"
        )
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
    """The SHA-256 of a text file; an error says why it cannot be read."""
    with _explained(path):
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise DataError(f"{path}: not a regular file; the text is read several times, so save it to a file first")
        return sha256(path)


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
    """Lines end at \\n alone (one \\r before it goes too): U+2028 and its like are part of the text.

    Of a line that is too long for anything, the beginning.
    """
    name, number = _name(file), 0
    with _explained(name), contextlib.ExitStack() as stack:
        stream = stack.enter_context(Path(file).open("rb")) if isinstance(file, str | Path) else file
        if isinstance(stream, io.BufferedReader) and stream.peek(2).startswith(b"\x1f\x8b"):
            stream = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=stream)))
        try:
            # With room for what is taken off at both ends.
            for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE + 5), b""), start=1):
                if len(line) == LONGEST_LINE + 5 and not line.endswith(b"\n"):
                    _skip_line(stream)
                if number == 1:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise DataError(f"{name}:1: UTF-16; convert it with: iconv -f UTF-16 -t UTF-8")
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield line.removesuffix(b"\n").removesuffix(b"\r")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(
                f"{name}: the gzip data is damaged or cut off near line {number:,}; fetch it again"
            ) from None


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def raw_pairs(config: CorpusConfig) -> Iterator[RawPair]:
    """Each line, undecoded."""
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
