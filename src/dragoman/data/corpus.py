"""Reads aligned text, and names the file and line of whatever is wrong with it.

A fault of a whole file (missing, unequal line counts, wrong encoding) is an error; what becomes of a faulty line is
decided in `cleaning`. No text is kept in memory: a `Corpus` holds one verdict for each line, and reads its files again
whenever the pairs are needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import itertools
import shlex
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
        """Stands for numpy and imports it at first use: reading lines to translate does not need it, and should not
        wait for it."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _Numpy()

SentencePair = tuple[str, str]  # a source sentence and its translation
Role = Literal["train", "valid"]
RawPair = Sequence[bytes]  # source and target, undecoded; further columns may follow, a bad TSV line has no target

CHARACTERS_PER_TOKEN = 16  # of the longest piece that a tokenizer learns: n tokens hold at most 16 n characters
LONGEST_LINE = 1_000_000  # bytes of a line that are read: no sentence has more, and memory is limited
# Endings of files that hold pairs in another way than a line each; `pair_formats` reads them.
OTHER_FORMATS = {
    ".csv", ".xlsx", ".xlsm", ".json", ".jsonl", ".ndjson", ".tmx", ".xlf", ".xliff", ".sdlxliff", ".mxliff",
    ".po", ".pot", ".mo",
}  # fmt: skip
_ZIP = b"PK\x03\x04"
_EXAMPLES = 3  # dropped lines that a report shows for each rule
_CLIPPED = 80  # characters of each


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
    """Makes one corpus from three options of a command, or None where none of them was given. `prefix`: how the
    options' names begin, "--" or "--valid-"."""
    if pairs is None and source is None and target is None:
        return None
    if (source is None) != (target is None) or (pairs is not None) == (source is not None):
        raise UsageError(f"{command}: give {prefix}pairs, or both {prefix}source and {prefix}target")
    if pairs is not None:
        return CorpusConfig(pairs=str(pairs))
    return CorpusConfig(source=str(source), target=str(target))


@dataclass(frozen=True)
class Example:
    """A dropped line, for the report."""

    file: str
    line: int  # from 1
    source: str
    target: str


@dataclass(frozen=True)
class CorpusReport:
    """How many lines of one corpus cleaning kept and dropped, and by which rules."""

    name: str
    role: Role
    lines: int
    kept: int
    held_out: int
    dropped: dict[str, int]  # lines by the name of the rule
    examples: dict[str, list[Example]]  # the first of them


@dataclass(frozen=True)
class CleaningReport:
    """The reports of all corpora."""

    corpora: list[CorpusReport]

    def summary(self) -> list[str]:
        """The report as lines of plain text."""
        lines = []
        for corpus in self.corpora:
            held_out = f", {corpus.held_out:,} held out for validation" if corpus.held_out else ""
            lines.append(f"{corpus.name}: {corpus.lines:,} lines, {corpus.kept:,} kept for {corpus.role}{held_out}")
            for rule, count in corpus.dropped.items():
                lines.append(f"  dropped {count:,}: {rule.replace('_', ' ')}")
                lines += [f"    line {e.line:,}: {e.source} | {e.target}" for e in corpus.examples[rule]]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Restores what `to_dict` gave."""
        corpora = []
        for corpus in values["corpora"]:
            examples = {rule: [Example(**e) for e in dropped] for rule, dropped in corpus["examples"].items()}
            corpora.append(CorpusReport(**{**corpus, "examples": examples}))
        return cls(corpora)


@dataclass(frozen=True)
class Corpus:
    """Those lines of a corpus that have the verdict `selected`. The training lines and the held-out lines of a file are
    two such objects, which share one array of verdicts."""

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
        """The file, or the two files, in which a line may be faulty."""
        return self.name if self.config.target is None else f"{self.config.source} or {self.config.target}"

    @property
    def ways(self) -> int:
        """How many pairs each line gives: one, or one for each direction."""
        return 1 if self.config.back_tag is None else 2

    def __len__(self) -> int:
        return int(np.count_nonzero(self.verdicts == self.selected)) * self.ways

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Reads the selected pairs, with the corpus's tags before the sources.

        Whitespace around a sentence is removed: it means nothing, and a model would learn to write it at random."""
        tag, back_tag = self.config.tag, self.config.back_tag
        for verdict, raw in zip(self.verdicts.tobytes(), raw_pairs(self.config), strict=False):
            if verdict == self.selected:
                source, target = raw[0].decode().strip(), raw[1].decode().strip()
                yield (source if tag is None else f"{tag} {source}"), target
                if back_tag is not None:
                    yield f"{back_tag} {target}", source

    def drop(self, positions: Mapping[LineVerdict, Sequence[int]]) -> None:
        """Gives new verdicts to pairs, which are named by their positions among the selected ones."""
        lines = np.flatnonzero(self.verdicts == self.selected)
        for verdict, dropped in positions.items():
            self.verdicts[lines[[position // self.ways for position in dropped]]] = verdict

    def report(self) -> CorpusReport:
        """Counts the verdicts, and reads the first examples of each rule again."""
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
    """Counts how often each verdict was given. (np.bincount would take eight bytes for each line's one.)"""
    return [int(np.count_nonzero(verdicts == verdict)) for verdict in LineVerdict]


def corpus_name(config: CorpusConfig) -> str:
    """The file by which messages name a corpus."""
    return config.pairs or config.source or ""


# ---------------------------------------------------------------------------------------------------------- reading


def how_to_write_pairs(name: str) -> str:
    """What is to be done about a file whose lines are no pairs; one of another format can be written as lines."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix.lower() != ".gz"]
    lines = "each line must be a source, a tab and a target"
    if not suffixes or suffixes[-1] not in OTHER_FORMATS:
        return lines
    return f"{lines}; write it so: dragoman doctor {shlex.quote(name)} --out pairs.tsv"


def read_lines(file: str | Path | BinaryIO) -> Iterator[str]:
    """Reads the lines of a text file or stream, unchanged. A line that is not UTF-8, or too long, is an error."""
    for number, line in enumerate(_raw_lines(file), start=1):
        yield _decode(line, file, number)


def read_pairs(file: str | Path | BinaryIO) -> Iterator[tuple[str, str]]:
    """Reads the first two columns of a TSV file or stream. A line that lacks them is an error."""
    for number, line in enumerate(_raw_lines(file), start=1):
        columns = _decode(line, file, number).split("\t", 2)
        if len(columns) < 2:
            raise DataError(f"{name_of(file)}:{number}: one column; {how_to_write_pairs(name_of(file))}")
        yield columns[0], columns[1]


def _decode(line: bytes, file: str | Path | BinaryIO, number: int) -> str:
    if len(line) > LONGEST_LINE:
        raise DataError(
            f"{name_of(file)}:{number}: a line of more than {LONGEST_LINE:,} bytes; give text with one sentence a line"
        )
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name_of(file)}:{number}: byte {error.start + 1} (0x{line[error.start]:02X}) is not UTF-8; "
            f"convert the text with: iconv -f ITS_ENCODING -t UTF-8"
        ) from None


def name_of(file: str | Path | BinaryIO) -> str:
    """The name by which messages call a file or stream."""
    return str(file) if isinstance(file, str | Path) else str(getattr(file, "name", "input"))


def file_digest(path: str) -> str:
    """Computes the SHA-256 of a text file; if it cannot be read, the error says why."""
    with _explained(path):
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise DataError(f"{path}: not a regular file; the text is read several times, so save it to a file first")
        return sha256(path)


def no_such_file(name: str) -> DataError:
    """The error of a file that is not there; `-`, which is standard input elsewhere, is none where this is raised."""
    if name == "-":
        return DataError("-: this is not read from standard input; save it to a file, and give that")
    return DataError(f"{name}: no such file; check the path, which is taken from {Path.cwd()}")


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turns an OSError within the block into a DataError of one line that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise no_such_file(name) from None
    except IsADirectoryError:
        raise DataError(f"{name}: a directory; give a text file") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}); check the path and its permissions") from None


def _raw_lines(file: str | Path | BinaryIO) -> Iterator[bytes]:
    """Reads the lines of a file or stream as bytes, without their ends, and unpacks gzip.

    A line ends at \\n alone (one \\r before it is removed too): U+2028 and its like are part of the text. Of a line
    longer than LONGEST_LINE only the beginning is given.
    """
    name, number = name_of(file), 0
    with _explained(name), contextlib.ExitStack() as stack:
        stream = stack.enter_context(Path(file).open("rb")) if isinstance(file, str | Path) else file
        if isinstance(stream, io.BufferedReader) and stream.peek(2).startswith(b"\x1f\x8b"):
            stream = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=stream)))
        try:
            # Five bytes more, for what is removed below: a byte order mark and the line's end.
            for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE + 5), b""), start=1):
                if len(line) == LONGEST_LINE + 5 and not line.endswith(b"\n"):
                    _skip_line(stream)
                if number == 1:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise DataError(f"{name}:1: UTF-16; convert it with: iconv -f UTF-16 -t UTF-8")
                    if line.startswith(_ZIP):
                        raise DataError(
                            f"{name}: an archive, as XLSX, DOCX and ODT are, and no lines of text; if it has pairs: "
                            f"dragoman doctor {shlex.quote(name)} --out pairs.tsv; a document is for translate-file"
                        )
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield line.removesuffix(b"\n").removesuffix(b"\r")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(
                f"{name}: the gzip data is damaged or cut off near line {number:,}; fetch it again"
            ) from None


def _skip_line(stream: BinaryIO) -> None:
    """Reads on to the end of the current line."""
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def raw_pairs(config: CorpusConfig) -> Iterator[RawPair]:
    """Reads the pairs of a corpus, undecoded. Two files of unequal length are an error."""
    if config.pairs is not None:
        for line in _raw_lines(config.pairs):
            yield line.split(b"\t", 2) if line.strip() else (b"", b"")  # a blank line is empty, not malformed
        return
    assert config.source is not None
    assert config.target is not None
    sources, targets = _raw_lines(config.source), _raw_lines(config.target)
    for lines, (source, target) in enumerate(itertools.zip_longest(sources, targets)):
        if source is None or target is None:
            longer = lines + 1 + sum(1 for _ in itertools.chain(sources, targets))  # one of them is at its end
            counts = (lines, longer) if source is None else (longer, lines)
            raise DataError(
                f"{config.source} has {counts[0]:,} lines, {config.target} {counts[1]:,}: "
                f"line n of one must translate line n of the other; find where they diverge and align them again"
            )
        yield source, target


def _clip(side: bytes) -> str:
    text = side[: 4 * _CLIPPED + 4].decode(errors="replace").strip()
    return text if len(text) <= _CLIPPED else text[: _CLIPPED - 1] + "…"
