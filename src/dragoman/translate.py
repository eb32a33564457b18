"""Translator: strings in, strings out. Nothing outside ever sees a token unless it asks."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Self

from dragoman.config import DataConfig, SearchConfig, language_tag
from dragoman.engines import ComputeType, Engine, EngineName, batches_of_like_length
from dragoman.engines.selection import load_engine
from dragoman.errors import DataError, UsageError
from dragoman.hypotheses import Hypothesis
from dragoman.rundir import RunDirectory
from dragoman.tokenizer import Tokenizer, load_tokenizer

# Lines that are sorted by length together when text is streamed: enough for batches of like length.
WINDOW = 2000
MOST_SCORED_TOKENS = 4096  # of a side: attention takes memory by the square of its length, and nothing is split here


@dataclass(frozen=True)
class Candidate:
    """One translation of a line."""

    text: str
    score: float  # log-probability over the length penalty: what the search ranks by
    log_probability: float
    tokens: tuple[str, ...]
    # One more than tokens: the end symbol's. None: the engine knows only their sum; Translator.score gives them.
    token_log_probabilities: tuple[float, ...] | None


@dataclass(frozen=True)
class Translation:
    """A line, and its translations, best first. An empty line has one, which is empty."""

    source: str
    candidates: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        return self.candidates[0].text


class Translator:
    """A trained run, or several with one vocabulary as an ensemble, ready to translate."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, search: SearchConfig, tag: str = "") -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.search = search
        self.tag = tag  # put before every source: it asks a model of several languages for one of them

    @classmethod
    def load(
        cls,
        *runs: str | Path,
        checkpoint: str | None = None,
        engine: EngineName = "auto",
        compute_type: ComputeType | None = None,
        vocabulary_map: bool | None = None,
        to: str | None = None,
        **search: float,
    ) -> Self:
        """`Translator.load("runs/my", beam=8)`: the run's own search settings, with these in their place.

        `to`: the language to translate into, of a run of several; "" where the text itself says it with a tag.

        `engine="auto"` is CTranslate2 where that can do it, without torch, and else the reference engine. Of
        CTranslate2, `compute_type` chooses the numbers and `vocabulary_map` whether the likely target tokens alone are
        weighed; None: what `dragoman quantize` kept, else float32 and no map.
        """
        if not runs:
            raise UsageError("Translator.load() needs at least one run directory")
        directories = [RunDirectory.open(run) for run in runs]
        tokenizer = load_tokenizer(directories[0].path)
        for run in directories[1:]:
            if load_tokenizer(run.path).digest != tokenizer.digest:
                raise DataError(
                    f"{run.path}: its vocabulary differs from that of {directories[0].path}; train the members of an "
                    f"ensemble with one: --tokenizer {directories[0].tokenizer_path}"
                )
        config = directories[0].read_config()
        settings, tag = with_changes(config.search, **search), _tag_for(to, config.data, directories[0].path)
        loaded = load_engine(directories, tokenizer, settings, checkpoint, engine, compute_type, vocabulary_map)
        return cls(loaded, tokenizer, settings, tag)

    def tagged(self, text: str) -> str:
        """A source as the model is given it."""
        return f"{self.tag} {text}" if self.tag and text else text

    def translate(self, lines: Sequence[str]) -> list[str]:
        """One translation a line, in the order given."""
        if isinstance(lines, str):  # a sequence of strings too: it would be translated letter by letter
            raise UsageError("translate() got a string; give a list of lines")
        return [translation.text for translation in self.translate_stream(lines, scores=False)]

    def translate_stream(
        self,
        lines: Iterable[str],
        n_best: int = 1,
        seed: int = 0,
        window: int = WINDOW,
        warn: Callable[[str], None] = warnings.warn,
        scores: bool = True,
        first_line: int = 1,
    ) -> Iterator[Translation]:
        """Translations as they come, in the order of the lines, `window` lines in memory at a time.

        scores=False: only the text is wanted, which can be quicker. first_line: the number of the first of the lines,
        for warnings and random draws.
        """
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            yield from self._translate_window(chunk, first_line, n_best, seed, warn, scores)
            first_line += len(chunk)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
        """The log-probability of each token of each given translation, the end symbol's last."""
        sources = self.tokenizer.encode_batch([self.tagged(source.strip()) for source, _ in pairs])
        targets = self.tokenizer.encode_batch([target.strip() for _, target in pairs])
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        if lengths and max(lengths) > MOST_SCORED_TOKENS:
            number = lengths.index(max(lengths)) + 1
            raise DataError(
                f"pair {number}: a side of {max(lengths):,} tokens; at most {MOST_SCORED_TOKENS:,} are scored; split it"
            )
        scores: list[list[float]] = [[] for _ in pairs]
        for batch in self._batches(lengths):
            found = self.engine.score([sources[i] for i in batch], [targets[i] for i in batch])
            for index, log_probs in zip(batch, found, strict=True):
                scores[index] = log_probs
        return scores

    def _translate_window(
        self, lines: Sequence[str], first_line: int, n_best: int, seed: int, warn: Callable[[str], None], scores: bool
    ) -> Iterator[Translation]:
        parts: list[list[int]] = []  # the token ids of every part of every line
        parts_of: list[range] = []
        encoded = self.tokenizer.encode_batch([self.tagged(line.strip()) for line in lines])
        limit = self.search.max_source_length
        for number, (line, ids) in enumerate(zip(lines, encoded, strict=True), start=first_line):
            begin = len(parts)
            if len(ids) > limit:
                pieces = split_text(line.strip(), lambda text: len(self.tokenizer.encode(self.tagged(text))) <= limit)
                parts.extend(self.tokenizer.encode_batch([self.tagged(piece) for piece in pieces]))
                warn(
                    f"line {number}: {len(ids)} tokens, more than {limit} (search.max_source_length): "
                    f"translated in {len(pieces)} parts"
                )
            elif ids:
                parts.append(ids)
            parts_of.append(range(begin, len(parts)))
        found: list[list[Hypothesis]] = [[] for _ in parts]
        for batch in self._batches([len(part) for part in parts]):
            hypotheses = self.engine.translate(
                [parts[i] for i in batch], self.search, n_best, seed + first_line + batch[0], scores
            )
            for index, candidates in zip(batch, hypotheses, strict=True):
                found[index] = candidates
        for line, indices in zip(lines, parts_of, strict=True):
            yield Translation(line, self._join([found[i] for i in indices]))

    def _join(self, parts: Sequence[Sequence["Hypothesis"]]) -> tuple[Candidate, ...]:
        """The candidates of a line from those of its parts: the best of each, then the second best of each ..."""
        if not parts:
            return (Candidate("", 0.0, 0.0, (), ()),)
        candidates = []
        for hypotheses in zip(*parts, strict=False):
            tokens = tuple(self.tokenizer.piece(i) for hypothesis in hypotheses for i in hypothesis.ids)
            candidates.append(
                Candidate(
                    # A line stays a line: a model that spells in bytes can write a line feed, too.
                    " ".join(self.tokenizer.decode(hypothesis.ids) for hypothesis in hypotheses).replace("\n", " "),
                    sum(hypothesis.score for hypothesis in hypotheses),
                    sum(hypothesis.log_probability for hypothesis in hypotheses),
                    tokens,
                    _chain([hypothesis.token_log_probabilities for hypothesis in hypotheses]),
                )
            )
        return tuple(candidates)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """What the engine is given at a time: indices of like length, or all."""
        if self.engine.forms_batches:
            return iter([list(range(len(lengths)))] if lengths else [])
        return batches_of_like_length(lengths, self.search.batch_tokens)


def _chain(parts: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    known = [part for part in parts if part is not None]
    return tuple(value for part in known for value in part) if len(known) == len(parts) else None


def _tag_for(to: str | None, data: DataConfig, run: Path) -> str:
    known = data.target_languages
    if to is None and len(known) > 1:
        raise UsageError(f"{run} translates into {', '.join(known)}; say which: --to {known[0]}")
    if to and to not in known:
        able = f"translates into {', '.join(known)}" if known else "knows one language to translate into"
        raise UsageError(f"{run} {able}, not {to}; leave --to out, or give one of them")
    wanted = to if to is not None else "".join(known)
    return language_tag(wanted) if wanted else ""


def with_changes(search: SearchConfig, **changes: float) -> SearchConfig:
    known = search.__dataclass_fields__
    if unknown := ", ".join(changes.keys() - known.keys()):
        raise UsageError(f"unknown search setting {unknown}; known: {', '.join(known)}")
    return replace(search, **changes)  # type: ignore[arg-type]


# Where a line that is too long may be cut, best first: after a sentence, after a clause, between words.
_CUTS = (r"(?<=[.!?…。！？])\s+", r"(?<=[,;:—])\s+", r"\s+")


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts that fit, cut at the best places there are; a word that does not fit is cut in half."""
    if fits(text):
        return [text]
    for cut in _CUTS:
        pieces = re.split(cut, text)
        if len(pieces) > 1:
            break
    else:
        middle = len(text) // 2
        return [*split_text(text[:middle], fits), *split_text(text[middle:], fits)] if middle else [text]
    parts: list[str] = []
    for piece in pieces:
        if parts and fits(f"{parts[-1]} {piece}"):
            parts[-1] = f"{parts[-1]} {piece}"
        elif fits(piece):
            parts.append(piece)
        else:
            parts.extend(split_text(piece, fits))
    return [part for part in parts if part]
