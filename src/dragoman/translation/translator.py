"""Translator: strings in, strings out. Nothing outside ever sees a token unless it asks."""

import copy
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from dragoman.config import SearchConfig, language_tag
from dragoman.data.glossary import Required, Requirements
from dragoman.data.language_codes import languages_of
from dragoman.data.protected_spans import has_words
from dragoman.data.segmentation import Segment, cut_to_fit, segments
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.data.words import words_of
from dragoman.decoding.engines import ComputeType, Engine, EngineName, batches_of_like_length
from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.decoding.engines.select import load_engine, load_reference
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import DataError, UsageError
from dragoman.progress import Say, nobody
from dragoman.run_directory import RunDirectory, require_task
from dragoman.translation.confidence import Calibration, Evidence, Rating
from dragoman.translation.defects import Defect, TokenizedText, defects_of
from dragoman.translation.fallbacks import translate_protected
from dragoman.translation.line import translation_of_line
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.translation_memory import TranslationMemory

if TYPE_CHECKING:
    from dragoman.decoding.engines.torch_engine import ReferenceEngine
    from dragoman.decoding.phrase_automaton import Borders, Phrases

# Lines that are sorted by length together when text is streamed: enough for batches of like length.
WINDOW = 2000
PORTION = 16  # batches given at a time to an engine that forms them itself: in between it is told how far it is
AGAIN = 64  # sentences that are decoded again together
MOST_SCORED_TOKENS = 4096  # of a side: attention takes memory by the square of its length, and nothing is split here


class _Part(NamedTuple):
    text: str
    ids: list[int]
    required: tuple[Required, ...]


class _Wishes(NamedTuple):
    """How the texts of one call are to be translated."""

    seed: int
    scores: bool
    required: Requirements | None
    repair: bool
    rate: bool
    protect: bool
    tell: Say = nobody

    def as_it_comes(self, text: str) -> bool:
        """Whether even a translation that ran away is wanted: the source in its place would not hold required words."""
        return not self.repair or (self.required is not None and bool(self.required(text)))


@dataclass(frozen=True)
class _PlainSearch:
    """A translator as what `fallbacks` ask."""

    translator: "Translator"
    wishes: _Wishes

    def translate(
        self, texts: Sequence[str], n_best: int = 1, required: Sequence[Sequence[Required]] | None = None
    ) -> list[Translation]:
        return self.translator._translate_plain(texts, n_best, self.wishes, required)


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
        language: str | None = None,
        tags_in_text: bool = False,
    ) -> None:
        """load_reference: the same weights in the engine that can do everything, for what `engine` cannot. tag: put
        before every source, it asks a model of several languages for one of them. language: the source's, by which
        lines are cut into sentences. tags_in_text: every line says itself which language it wants, so none is cut."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.search = search
        self._load_reference = load_reference
        self._load_calibration = load_calibration
        self.tag = tag
        self.language = language
        self.tags_in_text = tags_in_text
        self._corrections: tuple[TranslationMemory, str] | None = None
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
            _source_language(directories[0], to),
            to == "" and bool(tokenizer.languages),
        )

    def tagged(self, text: str) -> str:
        """A source as the model is given it."""
        return f"{self.tag} {text}" if self.tag and text else text

    def with_search(self, **changes: float | str) -> "Translator":
        """The same engines with other search settings."""
        other = copy.copy(self)
        other.search = with_changes(self.search, **changes)
        return other

    def with_corrections(self, memory: TranslationMemory, pair: str) -> "Translator":
        """The same, answering sentences that were corrected under this pair of languages with their corrections."""
        other = copy.copy(self)
        other._corrections = memory, pair
        return other

    @property
    def calibration(self) -> Calibration | None:
        """What `dragoman calibrate` learned of this run; None where it was not asked, or of other weights."""
        return self._load_calibration()

    def fits(self, text: str) -> bool:
        """Whether a sentence is translated as one."""
        limit = self.search.max_source_length
        # A token is at least a byte, so most sentences need no counting. One more: the space put before a text.
        return len(f"{self.tag}{text}".encode()) < limit - 1 or len(self.tokenizer.encode(self.tagged(text))) <= limit

    def translate(
        self, lines: Sequence[str], required: Requirements | None = None, *, whole: bool = False, protect: bool = True
    ) -> list[str]:
        """One translation a line, in the order given. `required`: what each must hold, as `Glossary(...).required`."""
        if isinstance(lines, str):  # a sequence of strings too: it would be translated letter by letter
            raise UsageError("translate() got a string; give a list of lines")
        stream = self.translate_stream(lines, scores=False, required=required, whole=whole, protect=protect)
        return [translation.text for translation in stream]

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
        whole: bool = False,
        protect: bool = True,
        tell: Say = nobody,
    ) -> Iterator[Translation]:
        """Translations as they come, in the order of the lines, `window` lines in memory at a time.

        Lines are cut into sentences, and put together again; whole=True: none is cut that need not be.
        scores=False: only the text is wanted, which can be quicker. first_line: the number of the first of the lines,
        for warnings and random draws. required: of a sentence, the words that its translation must hold; such are
        the reference engine's. repair: what loops, copies, runs away or is empty is decoded again, without repeats.
        protect: what must come through (numbers, addresses, placeholders, emoji) does, or the line is named.
        rate: with confidences, where the run is calibrated. tell: is given how far the work is, again and again.
        """
        if required is not None and self.search.sampling:
            raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            stripped = [line.strip() for line in chunk]
            tell(f"{len(chunk):,} lines to cut")
            cut = [self._cut(line, number, warn, whole) for number, line in enumerate(stripped, start=first_line)]
            texts = [SourceSentence(part.text) for parts in cut for part in parts]
            wishes = _Wishes(seed + first_line, scores, required, repair, rate, protect, tell)
            found = iter(self._translate_sentences(texts, n_best, wishes))
            for number, (line, parts) in enumerate(zip(stripped, cut, strict=True), start=first_line):
                translation = translation_of_line(line, parts, [next(found) for _ in parts])
                if translation.how == "source":
                    warn(f"line {number}: left in part as it was: {'; '.join(translation.notes)}")
                yield replace(translation, source=chunk[number - first_line])
            first_line += len(chunk)

    def translate_sentences(
        self,
        texts: Sequence[SourceSentence],
        n_best: int = 1,
        *,
        scores: bool = True,
        required: Requirements | None = None,
        rate: bool = False,
    ) -> list[Translation]:
        """Sentences that were cut already, each as `translate_stream` translates the sentences of a line."""
        return self._translate_sentences(texts, n_best, _Wishes(0, scores, required, True, rate, True))

    def _translate_sentences(
        self, texts: Sequence[SourceSentence], n_best: int, wishes: "_Wishes"
    ) -> list[Translation]:
        known = [self._without_searching(sentence, wishes.required) for sentence in texts]
        unknown = [sentence for sentence, there in zip(texts, known, strict=True) if there is None]
        plain = _PlainSearch(self, wishes)
        if wishes.protect and not self.search.sampling:
            searched = iter(translate_protected(unknown, plain, n_best, as_it_comes=wishes.as_it_comes))
        else:
            searched = iter(plain.translate([sentence.text for sentence in unknown], n_best))
        return [self._with_tokens(there or self._with_suggestion(next(searched))) for there in known]

    def _without_searching(self, sentence: SourceSentence, required: Requirements | None) -> Translation | None:
        """What was corrected as it was corrected, what has no words as it is. Required words are stronger than both."""
        if required is not None and required(sentence.text):
            return None
        if self._corrections is not None:
            memory, pair = self._corrections
            corrected = memory.exact(pair, sentence.text)
            if corrected is not None:
                return Translation(sentence.text, (Candidate(corrected, 0.0, 0.0, (), None),), corrected=True)
        if has_words(*sentence):
            return None
        return Translation(sentence.text, (Candidate(sentence.text, 0.0, 0.0, (), None),))

    def _with_suggestion(self, translation: Translation) -> Translation:
        if self._corrections is None:
            return translation
        memory, pair = self._corrections
        similar = memory.similar(pair, translation.source)
        return translation if similar is None else replace(translation, suggestions=(similar,))

    def _with_tokens(self, translation: Translation) -> Translation:
        """What was not searched for as it stands has the tokens that it would be written with."""
        if translation.candidates[0].tokens or not translation.text:
            return translation
        first, *others = translation.candidates
        tokens = tuple(map(self.tokenizer.piece, self.tokenizer.encode(first.text)))
        return replace(translation, candidates=(replace(first, tokens=tokens), *others))

    def _cut(self, line: str, number: int, warn: Callable[[str], None], whole: bool) -> list[Segment]:
        """A line's sentences, and what of them is too long in parts, which is said."""
        if whole or self.tags_in_text:
            found = [Segment(*span, line[slice(*span)]) for span in cut_to_fit(line, 0, len(line), self.fits) if line]
            uncut = 1
        else:
            found = segments(line, self.fits, self.language)
            uncut = len(segments(line, lambda _: True, self.language))
        if len(found) > uncut:
            limit, tokens = self.search.max_source_length, len(self.tokenizer.encode(self.tagged(line)))
            warn(
                f"line {number}: {tokens} tokens, more than {limit} (search.max_source_length): "
                f"translated in {len(found)} parts"
            )
        return found

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

    def _translate_plain(
        self,
        texts: Sequence[str],
        n_best: int,
        wishes: "_Wishes",
        required: Sequence[Sequence[Required]] | None,
    ) -> list[Translation]:
        """Each text as one, searched and, where it went plainly wrong, searched again."""
        encoded = self.tokenizer.encode_batch([self.tagged(text) for text in texts])
        more = [()] * len(texts) if required is None or not self._can_constrain else required
        parts = [
            _Part(text, ids, tuple(wishes.required(text) if wishes.required is not None else ()) + tuple(asked))
            for text, ids, asked in zip(texts, encoded, more, strict=True)
        ]
        found = self._find(parts, n_best, wishes.seed, wishes.scores or n_best > 1, wishes.tell)
        best = [some[0].ids for some in found if some]
        decoded = dict(zip(best, self.tokenizer.decode_batch(best), strict=True))  # together, which is quicker
        defects = [self._defects(part, some, decoded) for part, some in zip(parts, found, strict=True)]
        repaired: list[tuple[Defect, ...]] = [()] * len(parts)
        if wishes.repair and any(defects) and not self.search.sampling:
            wrong = [index for index, some in enumerate(defects) if some]
            again = self._find_again(
                [parts[i] for i in wrong], [found[i] for i in wrong], [defects[i] for i in wrong], wishes.tell
            )
            for index, (hypotheses, left) in zip(wrong, again, strict=True):
                repaired[index] = tuple(defect for defect in defects[index] if defect not in left)
                found[index], defects[index] = hypotheses, left
        ratings: list[Rating] = []
        if wishes.rate and (calibration := self.calibration) is not None:
            ratings = [calibration.rate(one) for one in self._evidence(parts, [some[0] for some in found])]
        return [
            Translation(
                text,
                tuple(self._candidate(hypothesis, decoded) for hypothesis in found[index]),
                defects[index],
                repaired[index],
                ratings[index].confidence if ratings else None,
                ratings[index].words if ratings else (),
            )
            for index, text in enumerate(texts)
        ]

    def _find(
        self, parts: "Sequence[_Part]", n_best: int, seed: int, scores: bool, tell: Say = nobody
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each part; those with required words by the engine that can do that."""
        found: list[list[Hypothesis]] = [[] for _ in parts]
        free = [index for index, part in enumerate(parts) if not part.required]
        done = 0
        tell(f"0 of {len(parts):,} sentences")
        for batch in self._batches([len(parts[index].ids) for index in free]):
            indices = [free[number] for number in batch]
            sources = [parts[index].ids for index in indices]
            hypotheses = self.engine.translate(sources, self.search, n_best, seed + batch[0], scores)
            for index, candidates in zip(indices, hypotheses, strict=True):
                found[index] = candidates
            done += len(batch)
            tell(f"{done:,} of {len(parts):,} sentences")
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
            done += len(batch)
            tell(f"{done:,} of {len(parts):,} sentences")
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

    def _defects(self, part: "_Part", found: Sequence[Hypothesis], texts: _Texts) -> tuple[Defect, ...]:
        if not found:
            return ("empty",)
        text = self._text(found[0], texts)
        return defects_of(TokenizedText(part.ids, part.text), TokenizedText(found[0].ids, text), found[0].finished)

    def _find_again(
        self,
        parts: "Sequence[_Part]",
        found: Sequence[list[Hypothesis]],
        defects: Sequence[tuple[Defect, ...]],
        tell: Say,
    ) -> list[tuple[list[Hypothesis], tuple[Defect, ...]]]:
        """Without repeats and, where it copied, without the source's own stretches: first of three tokens, then of
        two. The best of those with the fewest defects comes first, and what was found before after it."""
        best = list(zip(found, defects, strict=True))
        # Only the reference engine knows words that must be there and stretches of the source that must not.
        bound = [bool(part.required) or "copy" in some for part, some in zip(parts, defects, strict=True)]
        for size, kind in product((3, 2), (False, True) if self._can_constrain else (False,)):
            wrong = [i for i, (_, some) in enumerate(best) if some and bound[i] is kind]
            done = 0
            for indices in _of_one_length(wrong, lambda index: len(parts[index].ids)):
                tell(f"{done:,} of {len(wrong):,} sentences once more")
                done += len(indices)
                hypotheses = self._without_repeats([(parts[i], defects[i]) for i in indices], size, kind)
                for index, some in zip(indices, hypotheses, strict=True):
                    left = self._defects(parts[index], some, {})
                    if some and len(left) < len(best[index][1]):
                        best[index] = [*some, *found[index][: len(found[index]) - 1]], left
        return best

    def _without_repeats(
        self, wrong: "Sequence[tuple[_Part, tuple[Defect, ...]]]", size: int, bound: bool
    ) -> list[list[Hypothesis]]:
        sources = [part.ids for part, _ in wrong]
        # Nothing is cut that is no runaway: twice the source, and some. All are of one length.
        search = replace(self.search, max_extra_length=min(self.search.max_extra_length, len(sources[0]) + 10))
        if not bound:
            return self.engine.translate(sources, search, no_repeat=size)
        from dragoman.decoding.beam_search import no_repeats

        own = [ngrams(part.ids, size) if "copy" in defects else set() for part, defects in wrong]
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
        from dragoman.decoding.engines.torch_engine import ReferenceEngine

        if isinstance(self.engine, ReferenceEngine):
            return self.engine
        if self._load_reference is None:
            raise UsageError(f"{self.engine.name} knows no constraints; load the translator with Translator.load")
        return self._load_reference()

    def _phrases(self, required: Sequence[Required]) -> "Phrases":
        from dragoman.decoding.phrase_automaton import Borders, Phrases

        if self._borders is None:
            self._borders = Borders.of(self.tokenizer)
        return Phrases(required, self.tokenizer, self._borders)

    def _text(self, hypothesis: Hypothesis, texts: _Texts) -> str:
        known = texts.get(hypothesis.ids)
        return self.tokenizer.decode(hypothesis.ids) if known is None else known

    def _candidate(self, hypothesis: Hypothesis, decoded: _Texts) -> Candidate:
        return Candidate(
            # A line stays a line: a model that spells in bytes can write a line feed, too.
            self._text(hypothesis, decoded).replace("\n", " "),
            hypothesis.score,
            hypothesis.log_probability,
            tuple(map(self.tokenizer.piece, hypothesis.ids)),
            hypothesis.token_log_probabilities,
        )

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """What the engine is given at a time: indices of like length, or all, unless they are very many."""
        if not self.engine.forms_batches:
            return batches_of_like_length(lengths, self.search.batch_tokens)
        if sum(lengths) > PORTION * self.search.batch_tokens:
            return batches_of_like_length(lengths, PORTION * self.search.batch_tokens)
        return iter([list(range(len(lengths)))] if lengths else [])


def _calibration_of(runs: Sequence[RunDirectory], tokenizer: Tokenizer, checkpoint: str | None) -> Calibration | None:
    if len(runs) != 1 or checkpoint is not None:
        return None
    found = Calibration.load(runs[0])
    return found if found is not None and found.digest == digest_of(runs[0], tokenizer) else None


def _source_language(run: RunDirectory, to: str | None) -> str | None:
    known = languages_of(run)
    if known is None:
        return None
    return known[1] if to == known[0] else known[0]


def _of_one_length(indices: Sequence[int], length: Callable[[int], int]) -> list[list[int]]:
    """What is decoded together must not say how a sentence is: each length by itself, and not too many."""
    together = [list(some) for _, some in groupby(sorted(indices, key=length), length)]
    return [some[first : first + AGAIN] for some in together for first in range(0, len(some), AGAIN)]


def ngrams(ids: Sequence[int], size: int) -> set[tuple[int, ...]]:
    return {tuple(ids[start : start + size]) for start in range(len(ids) - size + 1)}


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
