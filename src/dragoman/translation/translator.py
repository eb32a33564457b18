"""Translator: strings in, strings out. Nothing outside ever sees a token unless it asks."""

import copy
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dragoman.config import SearchConfig
from dragoman.data.glossary import Requirements
from dragoman.data.protected_spans import has_words
from dragoman.data.segmentation import Segment
from dragoman.data.tokenizer import Tokenizer, shared_tokenizer
from dragoman.decoding.engines import ComputeType, Engine, EngineName
from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.decoding.engines.select import load_engine, load_reference
from dragoman.errors import DataError, UsageError
from dragoman.progress import Say, discard
from dragoman.run_directory import RunDirectory, require_task
from dragoman.translation.confidence import Calibration, Evidence
from dragoman.translation.fallbacks import translate_protected
from dragoman.translation.lengths import ANY_PAIR, UsualLengths
from dragoman.translation.line import cut_line, translate_lines
from dragoman.translation.repair import DecodedSentence
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.search_settings import with_changes
from dragoman.translation.sentence_decoder import EncodedSentence, SentenceDecoder
from dragoman.translation.sentence_search import SentenceSearch, TranslationOptions, evidence_of
from dragoman.translation.target_language import AskedLanguages, asked_languages, languages_wanted

if TYPE_CHECKING:
    from dragoman.decoding.engines.torch_engine import ReferenceEngine
    from dragoman.translation.translation_memory import TranslationMemory

# Lines that are sorted by length together when text is streamed: enough for batches of like length.
WINDOW = 2000
MOST_SCORED_TOKENS = 4096  # of a side: attention takes memory by the square of its length, and nothing is split here


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
        run: Path = Path("this model"),
        lengths: UsualLengths = ANY_PAIR,
    ) -> None:
        """load_reference: loads the same weights into the engine that can do everything, for what `engine` cannot.
        tag: put before every source, it asks a model of several languages for one of them. language: the source
        language, by whose rules lines are cut into sentences. tags_in_text: every line begins with the tag of the
        language that it wants, so none is cut. run: what errors call it.
        lengths: how long its translations usually are."""
        self._run, self._all_languages, self._lengths = run, tokenizer, lengths
        self._decoder = SentenceDecoder(engine, tokenizer, search, load_reference, tag)
        self._load_calibration = load_calibration
        self.language = language
        self.tags_in_text = tags_in_text
        self._corrections: tuple[TranslationMemory, str] | None = None

    @classmethod
    def load(
        cls,
        *runs: str | Path,
        checkpoint: str | None = None,
        engine: EngineName = "auto",
        compute_type: ComputeType | None = None,
        vocabulary_map: bool | None = None,
        to: str | None = None,
        source: str | None = None,
        **search: float | str,
    ) -> Self:
        """Loads a run with its own search settings, some of them replaced: `Translator.load("runs/my", beam=8)`.

        `to`: the language to translate into, of a run of several; None: of an imported one the language that it was
        imported for; "" where the text itself says it with a tag.
        `source`: the language of the text, where it is not the one that the run says.

        `engine="auto"` is CTranslate2 where that can do it, without torch, and else the reference engine. Of
        CTranslate2, `compute_type` chooses the number type and `vocabulary_map` whether only the likely target tokens
        are weighed; None: what `dragoman quantize` kept, else float32 and no map.
        """
        if not runs:
            raise UsageError("Translator.load() needs at least one run directory")
        directories = [RunDirectory.open(run) for run in runs]
        one = f"train the members of an ensemble with one: --tokenizer {directories[0].tokenizer_path}"
        tokenizer = shared_tokenizer([run.path for run in directories], one)
        for run in directories:
            require_task(run, "translate")
        settings = with_changes(directories[0].read_config().search, **search)
        language, target = languages_wanted(directories[0], tokenizer, source, to)
        asked = asked_languages(tokenizer, language, target, directories[0].path)
        loaded = load_engine(directories, tokenizer, settings, checkpoint, engine, compute_type, vocabulary_map)
        translator = cls(
            loaded,
            tokenizer,
            settings,
            functools.cache(lambda: load_reference(directories, tokenizer, checkpoint)),
            functools.cache(lambda: _calibration_of(directories, tokenizer, checkpoint)),
            language=language,
            tags_in_text=to == "" and bool(tokenizer.languages),
            run=directories[0].path,
            lengths=_lengths_of(directories[0], tokenizer),
        )
        return translator._asking(asked)

    @property
    def engine(self) -> Engine:
        return self._decoder.engine

    @property
    def tokenizer(self) -> Tokenizer:
        return self._decoder.tokenizer

    @property
    def search(self) -> SearchConfig:
        return self._decoder.search

    @property
    def tag(self) -> str:
        """The tag of the target language that is put before every source; empty: none is."""
        return self._decoder.tag

    @property
    def has_languages(self) -> bool:
        """Whether the model translates into languages that it must be asked for."""
        return bool(self._all_languages.languages)

    @property
    def reference(self) -> "ReferenceEngine":
        """The engine that knows constraints: this translator's own, or the same weights loaded once."""
        return self._decoder.reference

    @property
    def calibration(self) -> Calibration | None:
        """What `dragoman calibrate` learned about this run; None: it was never calibrated, or with other weights."""
        return self._load_calibration()

    def with_search(self, **changes: float | str) -> "Translator":
        """The same engines with other search settings."""
        other = copy.copy(self)
        other._decoder = self._decoder.with_search(with_changes(self.search, **changes))
        return other

    def for_languages(self, source: str | None, target: str | None) -> "Translator":
        """The same weights, of a model of several languages, asked for another one; source None: from the same language
        as this one. Nothing is loaded again."""
        language = source or self.language
        other = self._asking(asked_languages(self._all_languages, language, target, self._run))
        other.language = language
        return other

    def _asking(self, asked: AskedLanguages) -> Self:
        other = copy.copy(self)
        other._decoder = self._decoder.with_languages(asked.tokenizer, asked.tag)
        return other

    def with_corrections(self, memory: "TranslationMemory", pair: str) -> "Translator":
        """The same translator, which answers a sentence that was corrected under this language pair with its
        correction."""
        other = copy.copy(self)
        other._corrections = memory, pair
        return other

    def fits(self, text: str) -> bool:
        """Whether a sentence is short enough to be translated as one."""
        limit = self.search.max_source_length
        # A token is at least a byte, so most sentences need no counting. One more: the space put before a text.
        return len(f"{self.tag}{text}".encode(errors="surrogatepass")) < limit - 1 or self._count_tokens(text) <= limit

    def translate(
        self,
        lines: Sequence[str],
        required: Requirements | None = None,
        *,
        whole: bool = False,
        protect: bool = True,
        warn: Say = warnings.warn,
    ) -> list[str]:
        """One translation a line, in the order given. `required`: what each must hold, as `Glossary(...).required`.
        `warn`: is told of lines that were left; `discard` where the lines only measure."""
        if isinstance(lines, str):  # a sequence of strings too: it would be translated letter by letter
            raise UsageError("translate() got a string; give a list of lines")
        stream = self.translate_stream(lines, scores=False, required=required, whole=whole, protect=protect, warn=warn)
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
        tell: Say = discard,
    ) -> Iterator[Translation]:
        """Yields a translation for each line, in order, with `window` lines in memory at a time.

        Lines are cut into sentences, and put together again; whole=True: none is cut that need not be.
        scores=False: only the text is wanted, which can be quicker. first_line: the number of the first of the lines,
        for warnings and random draws. required: gives the words that the translation of a sentence must hold; such
        sentences are translated by the reference engine. repair: what loops, copies, runs away or is empty is decoded
        again, without repeats. protect: what must come through (numbers, addresses, placeholders, emoji) does, or the
        line is named in a warning. rate: with confidences, where the run is calibrated. tell: is given how far the
        work is, again and again.
        """
        if required is not None and self.search.sampling:
            raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
        options = TranslationOptions(n_best, seed, scores, required, repair, rate, protect, tell)
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            tell(f"{len(chunk):,} lines to cut")
            here = replace(options, seed=seed + first_line)
            yield from translate_lines(
                chunk,
                first_line,
                functools.partial(self.cut, warn=warn, whole=whole),
                functools.partial(self._translate_sentences, options=here),
                warn,
            )
            first_line += len(chunk)

    def translate_sentences(
        self,
        texts: Sequence[SourceSentence],
        n_best: int = 1,
        *,
        seed: int = 0,
        scores: bool = True,
        required: Requirements | None = None,
        repair: bool = True,
        rate: bool = False,
        protect: bool = True,
        tell: Say = discard,
    ) -> list[Translation]:
        """Sentences that were cut already, each as `translate_stream` translates the sentences of a line."""
        options = TranslationOptions(n_best, seed, scores, required, repair, rate, protect, tell)
        return self._translate_sentences(texts, options)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
        """The log-probability of each token of each given translation, the end symbol's last."""
        sources = self._decoder.encode([source.strip() for source, _ in pairs])
        targets = self.tokenizer.encode_target_batch([target.strip() for _, target in pairs])
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        if lengths and max(lengths) > MOST_SCORED_TOKENS:
            number = lengths.index(max(lengths)) + 1
            raise DataError(
                f"pair {number}: a side of {max(lengths):,} tokens; at most {MOST_SCORED_TOKENS:,} are scored; split it"
            )
        return self._decoder.score(sources, targets)

    def evidence(self, lines: Sequence[str]) -> list[Evidence | None]:
        """What calibration needs of each line's translation; None for a line that is empty or too long for one."""
        encoded = self._decoder.encode(lines)
        sentences = {
            index: EncodedSentence(line.strip(), ids)
            for index, (line, ids) in enumerate(zip(lines, encoded, strict=True))
            if 1 <= len(ids) <= self.search.max_source_length
        }
        hypotheses = self._decoder.decode(list(sentences.values()), 1, 0, scores=False)
        decoded = [
            DecodedSentence(sentence, found, ()) for sentence, found in zip(sentences.values(), hypotheses, strict=True)
        ]
        evidence = dict(zip(sentences, evidence_of(decoded, self._decoder), strict=True))
        return [evidence.get(index) for index in range(len(lines))]

    def cut(self, line: str, number: int, warn: Callable[[str], None], whole: bool = False) -> list[Segment]:
        """A line's sentences; those that are too long are cut into parts, with a warning that names the line by its
        number. whole: none is cut that need not be."""
        cut = cut_line(line, self.fits, self.language, whole or self.tags_in_text)
        if cut.too_long:
            warn(
                f"line {number}: {self._count_tokens(line)} tokens, more than {self.search.max_source_length} "
                f"(search.max_source_length): translated in {len(cut.segments)} parts"
            )
        return cut.segments

    def _count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(self._decoder.tagged(text)))

    def _translate_sentences(
        self, sentences: Sequence[SourceSentence], options: TranslationOptions
    ) -> list[Translation]:
        known = [self._without_searching(sentence, options) for sentence in sentences]
        unknown = [sentence for sentence, there in zip(sentences, known, strict=True) if there is None]
        search = SentenceSearch(self._decoder, options, self.calibration if options.rate else None, self._lengths)
        if options.protect and not self.search.sampling:
            accepted = options.accepts_anything
            searched = iter(translate_protected(unknown, search, options.n_best, as_it_comes=accepted))
        else:
            searched = iter(search.translate([sentence.text for sentence in unknown], options.n_best))
        return [self._with_tokens(there or self._with_suggestion(next(searched))) for there in known]

    def _without_searching(self, sentence: SourceSentence, options: TranslationOptions) -> Translation | None:
        """A corrected sentence has its correction, and one without words stays as it is; None: it must be searched
        for, as everything with required words."""
        if options.required_words(sentence.text):
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
        """With the correction of a similar sentence, where there is one."""
        if self._corrections is None:
            return translation
        memory, pair = self._corrections
        similar = memory.similar(pair, translation.source)
        return translation if similar is None else replace(translation, suggestions=(similar,))

    def _with_tokens(self, translation: Translation) -> Translation:
        """A text that no search found, such as a correction, gets the tokens that it is encoded with."""
        if translation.candidates[0].tokens or not translation.text:
            return translation
        first, *others = translation.candidates
        tokens = tuple(map(self.tokenizer.piece, self.tokenizer.encode_target(first.text)))
        return replace(translation, candidates=(replace(first, tokens=tokens), *others))


def _calibration_of(runs: Sequence[RunDirectory], tokenizer: Tokenizer, checkpoint: str | None) -> Calibration | None:
    """The calibration of a single run's own weights; None of an ensemble, of a checkpoint, and of other weights."""
    if len(runs) != 1 or checkpoint is not None:
        return None
    found = Calibration.load(runs[0])
    return found if found is not None and found.digest == digest_of(runs[0], tokenizer) else None


def _lengths_of(run: RunDirectory, tokenizer: Tokenizer) -> UsualLengths:
    """What calibration measured of the pair of languages, which other weights do not change. A model of several
    languages has none: it was measured with one pair of them."""
    if tokenizer.languages:
        return ANY_PAIR
    try:
        found = Calibration.load(run)
    except DataError:  # it is said where confidences are asked for
        return ANY_PAIR
    return found.lengths if found is not None else ANY_PAIR
