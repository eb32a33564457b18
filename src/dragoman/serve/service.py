"""The service behind all APIs: it translates texts through the cache, the corrections and the batcher, and explains."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.data.glossary import requirements
from dragoman.data.language_id import DetectedLanguage, LanguageDetector
from dragoman.data.segmentation import Segment, segments
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.compare import TestSet
from dragoman.serve.batcher import Batcher, OverloadedError
from dragoman.serve.cache import BoundedCache, FileStore
from dragoman.serve.metrics import Metrics
from dragoman.serve.model_pool import ModelPool, Stamp
from dragoman.serve.pairs import PivotPair, ServedPair, Way, parsing_pair, target_for
from dragoman.serve.runs import WatchedRuns
from dragoman.serve.security import RefusedError
from dragoman.serve.settings import Settings
from dragoman.serve.texts import DEFAULT_OPTIONS, BatchKey, RequestOptions, TranslatedText
from dragoman.translation.line import cut_line, translation_of_line
from dragoman.translation.pivot import is_pivotal, through_pivot
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.translation_memory import Suggestion, TranslationMemory
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.explain import Explainer
    from dragoman.parsing.parser import Parser

T = TypeVar("T")


def load_translator(pair: ServedPair) -> Translator:
    return steady(Translator.load(pair.run, to=target_for(pair), source=pair.source))


def steady(translator: Translator) -> Translator:
    """The translator whose answers do not depend on what others ask at the same time, where that costs under a tenth of
    the time: docs/guides/serving.md."""
    return translator.with_search(batch_invariant=True) if translator.engine.exact_products else translator


def translate_batch(models: ModelPool, key: BatchKey, texts: Sequence[str]) -> list[Translation]:
    """Translates sentences that have the same options with the model of their language pair."""
    translator, options = models.translator(key.pair), key.options
    search = {"beam": options.beam, "alpha": options.alpha}
    given = {name: value for name, value in search.items() if value is not None}
    if given:
        translator = translator.with_search(**given)
    return translator.translate_sentences(
        [SourceSentence(text, options.kept) for text in texts],
        key.n_best,
        required=requirements(options.terms.glossary, options.keep),
        rate=options.rate,
    )


class Service:
    def __init__(
        self,
        pairs: Sequence[ServedPair],
        settings: Settings,
        load: Callable[[ServedPair], Translator] = load_translator,
        results: Sequence[Path] = (),
        test_set: TestSet | None = None,
        parsers: Sequence[Path] = (),
        translate_batch: Callable[[ModelPool, BatchKey, Sequence[str]], Sequence[Translation]] = translate_batch,
    ) -> None:
        """The first run of each language pair translates, and the first of the parsers parses, as soon as it has a
        model; all of them can be watched and compared."""
        self.settings = settings
        parser_pairs = list(map(parsing_pair, parsers))
        self.runs = WatchedRuns([*pairs, *parser_pairs], test_set)
        self.parser_run = next((run for run in self.runs.watched.values() if run.pair in parser_pairs), None)
        self.results = results
        self.models = ModelPool(
            pairs, load, None if self.parser_run is None else self.parser_run.pair.run, settings.pivot
        )
        self.languages = sorted({code for pair in pairs for code in (pair.source, pair.target)})
        self.detector = LanguageDetector(self.languages)
        self.metrics = Metrics()
        self.files = FileStore(settings.file_bytes, settings.file_seconds)
        self.memory = None if settings.corrections is None else TranslationMemory(settings.corrections)
        self.cache: BoundedCache[tuple[Stamp, tuple[Any, ...], str], Translation] = BoundedCache(
            settings.cache_characters
        )
        # What is done to a text before it is translated. Not on the event loop: everyone else waits for that.
        self._text_pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="text")
        # Each waits for sentences most of its time.
        self.document_pool = ThreadPoolExecutor(settings.document_limit, thread_name_prefix="document")
        self._explaining = 0
        self.batcher: Batcher[BatchKey, Translation] = Batcher(
            lambda key, texts: translate_batch(self.models, key, texts),
            workers=settings.workers,
            batch_tokens=settings.batch_tokens,
            batch_wait=settings.batch_wait,
            queue_limit=settings.queue_limit,
            observe_batch=self.metrics.count_batch,
        )
        self.metrics.add_gauge("waiting_sentences", "Sentences that wait for a worker", lambda: self.batcher.waiting)
        self.metrics.add_gauge("cached_characters", "Characters held in the cache", lambda: self.cache.size)

    async def start(self) -> None:
        self.batcher.start()

    async def close(self) -> None:
        """Answers what was accepted, then ends the threads."""
        await self.models.stop_renewing()
        await self.batcher.close()
        self.document_pool.shutdown(wait=False, cancel_futures=True)
        self.models.close()
        self._text_pool.shutdown()
        if self.memory is not None:
            self.memory.close()

    @property
    def why_untranslated(self) -> str | None:
        """Why nothing at all is translated here; None: something is."""
        if self.models.pairs:
            return None
        if self.parser_run is not None and not self.models.waiting:
            name = self.parser_run.name
            return f"nothing is translated here: the run {name} is a parser; ask it with POST /api/v1/parse"
        return "nothing is translated here yet: no run has a model; it has one after its first validation"

    async def on_text(self, work: Callable[[], T]) -> T:
        """Runs work on a request's text in a thread, while others are answered."""
        return await asyncio.get_running_loop().run_in_executor(self._text_pool, work)

    async def detect(self, texts: Sequence[str]) -> list[DetectedLanguage]:
        return await self.on_text(lambda: self.detector.detect(texts))

    async def segments(self, way: Way, texts: Sequence[str]) -> list[list[Segment]]:
        """The sentences of each text; more than a request may have are refused."""
        fits = self.models.translator(way.first.name if isinstance(way, PivotPair) else way.name).fits
        found = await self.on_text(lambda: [segments(text, fits, way.source) for text in texts])
        self.check_count(sum(map(len, found)))
        return found

    def check_count(self, sentences: int) -> None:
        """Refuses more sentences than a request may have."""
        limit = self.settings.sentence_limit
        if sentences > limit:
            raise RefusedError(
                413, f"Invalid request: more than {limit} sentences; send it in parts, or start with --sentence-limit"
            )

    async def translate(
        self, way: Way, texts: Sequence[str], n_best: int = 1, options: RequestOptions | None = None
    ) -> list[TranslatedText]:
        parts = await self.segments(way, texts)
        sentences = [part.text for of_text in parts for part in of_text]
        translations = iter(await self.on_the_way(way, sentences, n_best, options or RequestOptions()))
        return [
            TranslatedText(text, tuple(of_text), tuple(islice(translations, len(of_text))))
            for text, of_text in zip(texts, parts, strict=True)
        ]

    async def stream(
        self, way: Way, parts: Sequence[Segment], n_best: int = 1, options: RequestOptions | None = None
    ) -> AsyncIterator[tuple[Segment, Translation]]:
        """Translates a text's sentences one by one, in their order. Many are under way at once, but a quarter of the
        queue at most."""
        options = options or RequestOptions()
        tasks: deque[asyncio.Task[list[Translation]]] = deque()
        ahead = iter(parts)
        try:
            for part in parts:
                for later in islice(ahead, max(1, self.settings.queue_limit // 4) - len(tasks)):
                    tasks.append(asyncio.create_task(self.on_the_way(way, [later.text], n_best, options)))
                yield part, (await tasks[0])[0]
                tasks.popleft()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def on_the_way(
        self, way: Way, texts: Sequence[str], n_best: int, options: RequestOptions
    ) -> list[Translation]:
        """Translates sentences with a run, or with two through a pivot."""
        if isinstance(way, ServedPair):
            return await self.sentences(BatchKey(way.name, n_best, options), texts)
        # Corrected from end to end: nobody needs the pivot.
        known = await self._corrected(way.name, self.models.translator(way.second.name).tokenizer, options, texts)
        left = [text for text in dict.fromkeys(texts) if text not in known]
        firsts = await self.sentences(BatchKey(way.first.name, 1, options), left)
        fits = self.models.translator(way.second.name).fits
        middles = [first.text for first in firsts if is_pivotal(first)]
        cut = await self.on_text(lambda: [cut_line(text, fits, way.pivot, whole=True).segments for text in middles])
        key = BatchKey(way.second.name, n_best, await self.on_text(options.after_pivot))
        found = iter(await self.sentences(key, [part.text for parts in cut for part in parts]))
        seconds = iter(
            [
                translation_of_line(text, parts, list(islice(found, len(parts))))
                for text, parts in zip(middles, cut, strict=True)
            ]
        )
        for text, first in zip(left, firsts, strict=True):
            known[text] = through_pivot(first, next(seconds) if is_pivotal(first) else None)
        return [known[text] for text in texts]

    async def sentences(self, key: BatchKey, texts: Sequence[str]) -> list[Translation]:
        """Translates sentences: from the corrections where they are there, then from the cache, and each different one
        of the rest once by the model."""
        tokenizer = self.models.translator(key.pair).tokenizer
        found = await self._corrected(key.pair, tokenizer, key.options, texts)
        stamp, name = self.models.stamp(key.pair), key.cached_as
        cached = {text: known for text in texts if text not in found and (known := self.cache.get((stamp, name, text)))}
        self.metrics.cache_hits.inc(len(cached))
        found |= cached
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        if missing:
            lengths = await self.on_text(lambda: [len(ids) + 1 for ids in tokenizer.encode_batch(missing)])
            translations = await self.batcher.translate(key, missing, lengths)
            for text, translation in zip(missing, translations, strict=True):
                found[text] = translation
                size = len(text) + sum(len(candidate.text) for candidate in translation.candidates)
                self.cache.put((stamp, name, text), translation, size)
        return [found[text] for text in texts]

    async def translate_sentences(
        self, way: Way, sentences: Sequence[SourceSentence], options: RequestOptions = DEFAULT_OPTIONS
    ) -> list[Translation]:
        """Translates a document's sentences: those with the same stretches to copy in one batch."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for sentence in sentences:
            groups.setdefault(sentence.kept, []).append(sentence.text)
        found = await asyncio.gather(
            *(self.on_the_way(way, texts, 1, options._replace(kept=kept)) for kept, texts in groups.items())
        )
        answers = {kept: iter(translations) for kept, translations in zip(groups, found, strict=True)}
        return [next(answers[sentence.kept]) for sentence in sentences]

    async def _corrected(
        self, pair: str, tokenizer: Tokenizer, options: RequestOptions, texts: Sequence[str]
    ) -> dict[str, Translation]:
        """The sentences that people corrected. None where the request has terms of its own: a correction may not hold
        them."""
        memory = self.memory
        if memory is None or options.terms or options.keep:
            return {}

        def candidate(text: str) -> Candidate:
            return Candidate(text, 0.0, 0.0, tuple(map(tokenizer.piece, tokenizer.encode_target(text))), None)

        def look() -> dict[str, Translation]:
            corrections = {text: memory.exact(pair, text) for text in dict.fromkeys(texts)}
            return {
                text: Translation(text, (candidate(correction),), corrected=True)
                for text, correction in corrections.items()
                if correction is not None
            }

        return await self.on_text(look)

    def suggestion(self, way: Way, text: str) -> Suggestion | None:
        """The correction of a similar sentence."""
        return None if self.memory is None else self.memory.similar(way.name, text)

    async def explain(self, pair: ServedPair, work: "Callable[[Explainer], T]") -> T:
        """Runs work with a language pair's explainer."""
        return await self.with_torch(lambda: work(self.models.explainer(pair)))

    async def parse(self, work: "Callable[[Parser], T]") -> T:
        """Runs work with the parser."""
        return await self.with_torch(lambda: work(self.models.parser()))

    async def with_torch(self, work: Callable[[], T]) -> T:
        """Runs work in the one thread where torch computes; refuses it where too many wait for that already."""
        if self._explaining >= self.settings.explain_limit:
            raise OverloadedError(self._explaining, self.settings.explain_limit, 1)
        self._explaining += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.models.torch_thread, work)
        finally:
            self._explaining -= 1
