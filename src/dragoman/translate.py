"""Translator: strings in, strings out. Nothing outside ever sees a token unless it asks."""

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from dragoman.confidence import Calibration, Evidence, Rating, WordConfidence
from dragoman.config import SearchConfig, language_tag
from dragoman.engines import ComputeType, Engine, EngineName, batches_of_like_length
from dragoman.engines.converted import digest_of
from dragoman.engines.selection import load_engine, load_reference
from dragoman.errors import DataError, UsageError
from dragoman.faults import Fault, Said, faults_of
from dragoman.glossary import Required, Requirements
from dragoman.hypotheses import Hypothesis
from dragoman.rundir import RunDirectory, require_task
from dragoman.sentences import split_text
from dragoman.tokenizer import Tokenizer, load_tokenizer
from dragoman.words import words_of

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
    faults: tuple[Fault, ...] = ()  # what is plainly wrong with the best of them
    repaired: tuple[Fault, ...] = ()  # what was, before it was decoded again
    confidence: float | None = None  # where it was asked for, and the run is calibrated
    words: tuple[WordConfidence, ...] = ()
    corrected: bool = False  # a person's, from the corrections that are kept

    @property
    def text(self) -> str:
        return self.candidates[0].text

    def is_doubtful(self, min_confidence: float) -> bool:
        """Less sure than that, or plainly wrong. An empty line is neither."""
        too_little = self.confidence is not None and self.confidence < min_confidence
        return bool(self.source.strip()) and (too_little or bool(self.faults))


class _Part(NamedTuple):
    text: str
    ids: list[int]
    required: tuple[Required, ...]


_Texts = Mapping[tuple[int, ...], str]  # of ids that were decoded before


class Translator:
    """A trained run, or several with one vocabulary as an ensemble, ready to translate."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        search: SearchConfig,
        load_reference: "Callable[[], ReferenceEngine] | None" = None,
        load_calibration: Callable[[], Calibration | None] = lambda: None,
        tag: str = "",
    ) -> None:
        """load_reference: the same weights in the engine that can do everything, for what `engine` cannot. tag: put
        before every source, it asks a model of several languages for one of them."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.search = search
        self._load_reference = load_reference
        self._load_calibration = load_calibration
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
        **search: float | str,
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
        for run in directories:
            require_task(run, "translate")
        settings = with_changes(directories[0].read_config().search, **search)
        tag = _tag_for(to, tokenizer, directories[0].path)
        loaded = load_engine(directories, tokenizer, settings, checkpoint, engine, compute_type, vocabulary_map)
        return cls(
            loaded,
            tokenizer,
            settings,
            functools.cache(lambda: load_reference(directories, tokenizer, checkpoint)),
            functools.cache(lambda: _calibration_of(directories, tokenizer, checkpoint)),
            tag,
        )

    def tagged(self, text: str) -> str:
        """A source as the model is given it."""
        return f"{self.tag} {text}" if self.tag and text else text

    def with_search(self, **changes: float | str) -> "Translator":
        """The same engines with other search settings."""
        search = with_changes(self.search, **changes)
        return Translator(self.engine, self.tokenizer, search, self._load_reference, self._load_calibration, self.tag)

    @property
    def calibration(self) -> Calibration | None:
        """What `dragoman calibrate` learned of this run; None where it was not asked, or of other weights."""
        return self._load_calibration()

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
        repair: bool = True,
        rate: bool = False,
    ) -> Iterator[Translation]:
        """Translations as they come, in the order of the lines, `window` lines in memory at a time.

        scores=False: only the text is wanted, which can be quicker. first_line: the number of the first of the lines,
        for warnings and random draws. required: of a line, the words that its translation must hold; such lines are
        the reference engine's. repair: what loops, copies, runs away or is empty is decoded again, without repeats.
        rate: with confidences, where the run is calibrated.
        """
        if required is not None and self.search.sampling:
            raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            yield from self._translate_window(chunk, first_line, n_best, seed, warn, scores, required, repair, rate)
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
        repair: bool,
        rate: bool,
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
        best = [some[0].ids for some in found if some]
        texts = dict(zip(best, self.tokenizer.decode_batch(best), strict=True))  # together, which is quicker
        faults = [self._faults(part, some, texts) for part, some in zip(parts, found, strict=True)]
        repaired: list[tuple[Fault, ...]] = [()] * len(parts)
        if repair and any(faults) and not self.search.sampling:
            wrong = [index for index, some in enumerate(faults) if some]
            again = self._find_again([parts[i] for i in wrong], [found[i] for i in wrong], [faults[i] for i in wrong])
            for index, (hypotheses, left) in zip(wrong, again, strict=True):
                repaired[index] = tuple(fault for fault in faults[index] if fault not in left)
                found[index], faults[index] = hypotheses, left
        calibration = self.calibration if rate else None
        evidence = [] if calibration is None else self._evidence(parts, [some[0] for some in found])
        for line, indices in zip(lines, parts_of, strict=True):
            ratings = [] if calibration is None else [calibration.rate(evidence[i]) for i in indices]
            yield Translation(
                line,
                self._join([found[i] for i in indices], texts),
                tuple(dict.fromkeys(fault for i in indices for fault in faults[i])),
                tuple(dict.fromkeys(fault for i in indices for fault in repaired[i])),
                min((rating.confidence for rating in ratings), default=None),  # a line is as good as its worst part
                _side_by_side([evidence[i].text for i in indices] if ratings else [], ratings),
            )

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
                # None: a vocabulary that cannot spell it where it must stand. Rather a translation without the term.
                found[index] = candidates or self.engine.translate([parts[index].ids], self.search, n_best)[0]
        return found

    def evidence(self, lines: Sequence[str]) -> list[Evidence | None]:
        """What calibrating needs to see of each translation; None of a line that is empty or too long for one."""
        encoded = self.tokenizer.encode_batch([self.tagged(line) for line in lines])
        parts = [_Part(line.strip(), ids, ()) for line, ids in zip(lines, encoded, strict=True)]
        whole = [index for index, part in enumerate(parts) if 1 <= len(part.ids) <= self.search.max_source_length]
        best = [some[0] for some in self._find([parts[i] for i in whole], 1, 0, scores=False)]
        seen = dict(zip(whole, self._evidence([parts[i] for i in whole], best), strict=True))
        return [seen.get(index) for index in range(len(lines))]

    def _evidence(self, parts: "Sequence[_Part]", best: Sequence[Hypothesis]) -> list[Evidence]:
        log_probs: list[Sequence[float]] = [hypothesis.token_log_probabilities or () for hypothesis in best]
        unknown = [index for index, some in enumerate(log_probs) if not some]
        lengths = [max(len(parts[i].ids), len(best[i].ids)) for i in unknown]
        for batch in self._batches(lengths):
            indices = [unknown[number] for number in batch]
            scored = self.engine.score([parts[i].ids for i in indices], [best[i].ids for i in indices])
            for index, some in zip(indices, scored, strict=True):
                log_probs[index] = some
        return [
            Evidence(
                len(part.ids),
                self.tokenizer.decode(hypothesis.ids).replace("\n", " "),
                words_of(hypothesis.ids, self.tokenizer),
                tuple(some),
            )
            for part, hypothesis, some in zip(parts, best, log_probs, strict=True)
        ]

    def _faults(self, part: "_Part", found: Sequence[Hypothesis], texts: _Texts) -> tuple[Fault, ...]:
        if not found:
            return ("empty",)
        text = self._text(found[0], texts)
        return faults_of(Said(part.ids, part.text), Said(found[0].ids, text), found[0].finished)

    def _find_again(
        self,
        parts: "Sequence[_Part]",
        found: Sequence[list[Hypothesis]],
        faults: Sequence[tuple[Fault, ...]],
    ) -> list[tuple[list[Hypothesis], tuple[Fault, ...]]]:
        """Without repeats and, where it copied, without the source's own stretches: first of three tokens, then of
        two. The best of those with the fewest faults comes first, and what was found before after it."""
        best = list(zip(found, faults, strict=True))
        # Only the reference engine knows words that must be there and stretches of the source that must not.
        bound = [bool(part.required) or "copy" in some for part, some in zip(parts, faults, strict=True)]
        for size, kind in product((3, 2), (False, True) if self._can_constrain else (False,)):
            wrong = [i for i, (_, some) in enumerate(best) if some and bound[i] is kind]
            for batch in batches_of_like_length([len(parts[i].ids) for i in wrong], self.search.batch_tokens // 4):
                indices = [wrong[number] for number in batch]
                hypotheses = self._without_repeats([(parts[i], faults[i]) for i in indices], size, kind)
                for index, some in zip(indices, hypotheses, strict=True):
                    left = self._faults(parts[index], some, {})
                    if some and len(left) < len(best[index][1]):
                        best[index] = [*some, *found[index][: len(found[index]) - 1]], left
        return best

    def _without_repeats(
        self, wrong: "Sequence[tuple[_Part, tuple[Fault, ...]]]", size: int, bound: bool
    ) -> list[list[Hypothesis]]:
        sources = [part.ids for part, _ in wrong]
        # Nothing is cut that is no runaway: twice the source, and some.
        search = replace(self.search, max_extra_length=min(self.search.max_extra_length, len(sources[0]) + 10))
        if not bound:
            return self.engine.translate(sources, search, no_repeat=size)
        from dragoman.search import no_repeats

        own = [ngrams(part.ids, size) if "copy" in faults else set() for part, faults in wrong]
        required = [self._phrases(part.required) for part, _ in wrong]
        return self.reference.translate(
            sources,
            search,
            constrain=no_repeats(size, self.tokenizer.vocab_size, self.tokenizer.eos_id, own),
            require=required if any(part.required for part, _ in wrong) else None,
        )

    @property
    def _can_constrain(self) -> bool:
        return self.engine.name == "reference" or self._load_reference is not None

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

    def _text(self, hypothesis: Hypothesis, texts: _Texts) -> str:
        known = texts.get(hypothesis.ids)
        return self.tokenizer.decode(hypothesis.ids) if known is None else known

    def _join(self, parts: Sequence[Sequence["Hypothesis"]], texts: _Texts) -> tuple[Candidate, ...]:
        """The candidates of a line from those of its parts: the best of each, then the second best of each ..."""
        if not parts:
            return (Candidate("", 0.0, 0.0, (), ()),)
        candidates = []
        for hypotheses in zip(*parts, strict=False):
            tokens = tuple(self.tokenizer.piece(i) for hypothesis in hypotheses for i in hypothesis.ids)
            candidates.append(
                Candidate(
                    # A line stays a line: a model that spells in bytes can write a line feed, too.
                    " ".join(self._text(hypothesis, texts) for hypothesis in hypotheses).replace("\n", " "),
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


def _calibration_of(runs: Sequence[RunDirectory], tokenizer: Tokenizer, checkpoint: str | None) -> Calibration | None:
    if len(runs) != 1 or checkpoint is not None:
        return None
    found = Calibration.load(runs[0])
    return found if found is not None and found.digest == digest_of(runs[0], tokenizer) else None


def _side_by_side(texts: Sequence[str], ratings: Sequence[Rating]) -> tuple[WordConfidence, ...]:
    """The words of a line's parts, where they stand in the line's translation."""
    words: list[WordConfidence] = []
    start = 0
    for text, rating in zip(texts, ratings, strict=True):
        words += [word._replace(start=word.start + start, end=word.end + start) for word in rating.words]
        start += len(text) + 1
    return tuple(words)


def ngrams(ids: Sequence[int], size: int) -> set[tuple[int, ...]]:
    return {tuple(ids[start : start + size]) for start in range(len(ids) - size + 1)}


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


def with_changes(search: SearchConfig, **changes: float | str) -> SearchConfig:
    known = search.__dataclass_fields__
    if unknown := ", ".join(changes.keys() - known.keys()):
        raise UsageError(f"unknown search setting {unknown}; known: {', '.join(known)}")
    return replace(search, **changes)  # type: ignore[arg-type]
