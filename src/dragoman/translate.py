"""Translator: strings in, strings out. Nothing outside ever sees a token unless it asks."""

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from dragoman.config import SearchConfig, language_tag
from dragoman.engines import ComputeType, Engine, EngineName, batches_of_like_length
from dragoman.engines.selection import load_engine, load_reference
from dragoman.errors import DataError, UsageError
from dragoman.glossary import Required, Requirements
from dragoman.hypotheses import Hypothesis
from dragoman.rundir import RunDirectory
from dragoman.sentences import split_text
from dragoman.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from dragoman.engines.reference import ReferenceEngine
    from dragoman.phrases import Borders, Phrases

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


class _Part(NamedTuple):
    text: str
    ids: list[int]
    required: tuple[Required, ...]


class Translator:
    """A trained run, or several with one vocabulary as an ensemble, ready to translate."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        search: SearchConfig,
        load_reference: "Callable[[], ReferenceEngine] | None" = None,
        tag: str = "",
    ) -> None:
        """load_reference: the same weights in the engine that can do everything, for what `engine` cannot. tag: put
        before every source, it asks a model of several languages for one of them."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.search = search
        self._load_reference = load_reference
        self.tag = tag
        self._borders: Borders | None = None

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
        settings = with_changes(directories[0].read_config().search, **search)
        tag = _tag_for(to, tokenizer, directories[0].path)
        loaded = load_engine(directories, tokenizer, settings, checkpoint, engine, compute_type, vocabulary_map)
        reference = functools.cache(lambda: load_reference(directories, tokenizer, checkpoint))
        return cls(loaded, tokenizer, settings, reference, tag)

    def tagged(self, text: str) -> str:
        """A source as the model is given it."""
        return f"{self.tag} {text}" if self.tag and text else text

    def with_search(self, **changes: float) -> "Translator":
        """The same engines with other search settings."""
        changed = with_changes(self.search, **changes)
        return Translator(self.engine, self.tokenizer, changed, self._load_reference, self.tag)

    def fits(self, text: str) -> bool:
        """Whether a sentence is translated as one."""
        limit = self.search.max_source_length
        # A token is at least a byte, so most sentences need no counting. One more: the space put before a text.
        return len(f"{self.tag}{text}".encode()) < limit - 1 or len(self.tokenizer.encode(self.tagged(text))) <= limit

    def translate(self, lines: Sequence[str], required: Requirements | None = None) -> list[str]:
        """One translation a line, in the order given. `required`: what each must hold, as `Glossary(...).required`."""
        if isinstance(lines, str):  # a sequence of strings too: it would be translated letter by letter
            raise UsageError("translate() got a string; give a list of lines")
        return [translation.text for translation in self.translate_stream(lines, scores=False, required=required)]

    def translate_stream(
        self,
        lines: Iterable[str],
        n_best: int = 1,
        seed: int = 0,
        window: int = WINDOW,
        warn: Callable[[str], None] = warnings.warn,
        scores: bool = True,
        first_line: int = 1,
        required: Requirements | None = None,
    ) -> Iterator[Translation]:
        """Translations as they come, in the order of the lines, `window` lines in memory at a time.

        scores=False: only the text is wanted, which can be quicker. first_line: the number of the first of the lines,
        for warnings and random draws. required: of a line, the words that its translation must hold; such lines are
        the reference engine's.
        """
        if required is not None and self.search.sampling:
            raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            yield from self._translate_window(chunk, first_line, n_best, seed, warn, scores, required)
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
        self,
        lines: Sequence[str],
        first_line: int,
        n_best: int,
        seed: int,
        warn: Callable[[str], None],
        scores: bool,
        required: Requirements | None,
    ) -> Iterator[Translation]:
        parts: list[_Part] = []  # of every line
        parts_of: list[range] = []
        encoded = self.tokenizer.encode_batch([self.tagged(line.strip()) for line in lines])
        limit = self.search.max_source_length
        for number, (line, ids) in enumerate(zip(lines, encoded, strict=True), start=first_line):
            begin = len(parts)
            pieces, piece_ids = [line.strip()], [ids]
            if len(ids) > limit:
                pieces = split_text(line.strip(), lambda text: len(self.tokenizer.encode(self.tagged(text))) <= limit)
                piece_ids = self.tokenizer.encode_batch([self.tagged(piece) for piece in pieces])
                warn(
                    f"line {number}: {len(ids)} tokens, more than {limit} (search.max_source_length): "
                    f"translated in {len(pieces)} parts"
                )
            for piece, some in zip(pieces, piece_ids, strict=True):
                if some:
                    parts.append(_Part(piece, some, tuple(required(piece)) if required is not None else ()))
            parts_of.append(range(begin, len(parts)))
        found = self._find(parts, n_best, seed + first_line, scores)
        for line, indices in zip(lines, parts_of, strict=True):
            yield Translation(line, self._join([found[i] for i in indices]))

    def _find(self, parts: "Sequence[_Part]", n_best: int, seed: int, scores: bool) -> list[list[Hypothesis]]:
        """The hypotheses of each part; those with required words by the engine that can do that."""
        found: list[list[Hypothesis]] = [[] for _ in parts]
        free = [index for index, part in enumerate(parts) if not part.required]
        for batch in self._batches([len(parts[index].ids) for index in free]):
            indices = [free[number] for number in batch]
            sources = [parts[index].ids for index in indices]
            hypotheses = self.engine.translate(sources, self.search, n_best, seed + batch[0], scores)
            for index, candidates in zip(indices, hypotheses, strict=True):
                found[index] = candidates
        bound = [index for index, part in enumerate(parts) if part.required]
        for batch in batches_of_like_length([len(parts[index].ids) for index in bound], self.search.batch_tokens // 4):
            indices = [bound[number] for number in batch]
            hypotheses = self.reference.translate(
                [parts[index].ids for index in indices],
                self.search,
                n_best,
                require=[self._phrases(parts[index].required) for index in indices],
            )
            for index, candidates in zip(indices, hypotheses, strict=True):
                found[index] = candidates
        return found

    @property
    def reference(self) -> "ReferenceEngine":
        """The engine that knows constraints: this translator's own, or the same weights loaded once."""
        from dragoman.engines.reference import ReferenceEngine

        if isinstance(self.engine, ReferenceEngine):
            return self.engine
        if self._load_reference is None:
            raise UsageError(f"{self.engine.name} knows no constraints; load the translator with Translator.load")
        return self._load_reference()

    def _phrases(self, required: Sequence[Required]) -> "Phrases":
        from dragoman.phrases import Borders, Phrases

        if self._borders is None:
            self._borders = Borders.of(self.tokenizer)
        return Phrases(required, self.tokenizer, self._borders)

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


def _tag_for(to: str | None, tokenizer: Tokenizer, run: Path) -> str:
    known = tokenizer.languages
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
