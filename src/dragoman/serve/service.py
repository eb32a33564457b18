"""What the two APIs stand on: runs by language pair, texts translated through the batcher, explanations one by one."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dragoman.data.glossary import Glossary, Kept, requirements
from dragoman.data.language_id import Detected, LanguageDetector
from dragoman.data.segmentation import Segment, join, segments
from dragoman.errors import DragomanError, UsageError
from dragoman.evaluation.compare import TestSet
from dragoman.run_directory import RunDirectory
from dragoman.serve.batcher import Batcher, OverloadedError
from dragoman.serve.cache import BoundedCache, FileStore
from dragoman.serve.metrics import Metrics
from dragoman.serve.pairs import ServedPair, parsing_pair, target_for
from dragoman.serve.runs import WatchedRun, WatchedRuns
from dragoman.serve.security import RefusedError
from dragoman.serve.settings import Settings
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.translation_memory import Suggestion, TranslationMemory
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.explain import Explainer
    from dragoman.parsing.parser import Parser

T = TypeVar("T")
Stamp = tuple[int, int] | None


class TranslationOptions(NamedTuple):
    """How a request wants its text translated, where not as everybody."""

    beam: int | None = None
    alpha: float | None = None
    terms: tuple[tuple[str, str], ...] = ()  # a glossary
    keep: tuple[Kept, ...] = ()
    rate: bool = False  # with confidences, where the run is calibrated
    kept: tuple[str, ...] = ()  # what a document says is to be copied


class BatchKey(NamedTuple):
    """What sentences must share to be translated together."""

    pair: str
    n_best: int
    wishes: TranslationOptions


@dataclass(frozen=True)
class TranslatedText:
    source: str
    parts: tuple[Segment, ...]
    translations: tuple[Translation, ...]

    @property
    def text(self) -> str:
        return self.nth(0)

    def nth(self, rank: int) -> str:
        """The best of each sentence, or the second best of each, ..."""
        chosen = [some.candidates[min(rank, len(some.candidates) - 1)].text for some in self.translations]
        return join(self.source, list(self.parts), chosen)

    def alternatives(self, count: int) -> list[str]:
        most = max((len(some.candidates) for some in self.translations), default=1)
        return list(dict.fromkeys(said for rank in range(1, most) if (said := self.nth(rank)) != self.text))[:count]


class Service:
    def __init__(
        self,
        pairs: Sequence[ServedPair],
        settings: Settings,
        load: Callable[[ServedPair], Translator] = lambda pair: Translator.load(pair.run, to=target_for(pair)),
        results: Sequence[Path] = (),
        test_set: TestSet | None = None,
        parsers: Sequence[Path] = (),
    ) -> None:
        """The first run of each language pair translates, and the first of the parsers parses, as soon as it has a
        model; all of them can be watched and compared."""
        self.settings = settings
        trees = list(map(parsing_pair, parsers))
        self.runs = WatchedRuns([*pairs, *trees], test_set)
        self.parsing = next((one for one in self.runs.watched.values() if one.pair in trees), None)
        self.results = results
        self._load = load
        first = {pair.name: pair for pair in reversed(pairs)}
        self._waiting = {name: pair for name, pair in first.items() if not RunDirectory.open(pair.run).has_model()}
        self.pairs = {pair.name: pair for pair in pairs if pair == first[pair.name] and pair.name not in self._waiting}
        self.languages = sorted({code for pair in pairs for code in (pair.source, pair.target)})
        self._stamps = {pair.name: _stamp(pair) for pair in self.pairs.values()}  # of the models that are loaded
        self.translators = {pair.name: load(pair) for pair in self.pairs.values()}
        self._renewing: dict[str, asyncio.Task[None]] = {}
        # Of runs that do not translate, by the name they are watched under.
        self._beside: dict[str, tuple[Stamp, Translator]] = {}
        self.detector = LanguageDetector(self.languages)
        self.metrics = Metrics()
        self.files = FileStore(settings.file_bytes, settings.file_seconds)
        self.memory = None if settings.corrections is None else TranslationMemory(settings.corrections)
        self._cache: BoundedCache[tuple[Stamp, BatchKey, str], Translation] = BoundedCache(settings.cache_characters)
        self._explainers: dict[str, Explainer] = {}
        self._parser: Parser | None = None
        # torch shares the cores with the translation of everyone else: one explanation at a time.
        self._explain_pool = ThreadPoolExecutor(1, thread_name_prefix="explain")
        # What is done to a text before it is translated. Not on the event loop: everyone else waits for that.
        self._text_pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="text")
        # Each waits for sentences most of its time.
        self.document_pool = ThreadPoolExecutor(settings.document_limit, thread_name_prefix="document")
        self._explaining = 0
        self._expected = False
        self.batcher: Batcher[BatchKey, Translation] = Batcher(
            self._translate,
            workers=settings.workers,
            batch_tokens=settings.batch_tokens,
            batch_wait=settings.batch_wait,
            queue_limit=settings.queue_limit,
            observe_batch=self.metrics.count_batch,
        )
        self.metrics.add_gauge("waiting_sentences", "Sentences that wait for a worker", lambda: self.batcher.waiting)
        self.metrics.add_gauge("cached_characters", "Characters held in the cache", lambda: self._cache.size)

    def warm_up(self) -> None:
        """Both ways of an engine, for one sentence and for many, are loaded before the first request."""
        for translator in self.translators.values():
            _warm(translator)

    async def admit(self) -> None:
        """Serve the runs that had no model when this began and have one now; and where a run has a newer one, that, as
        soon as it is loaded."""
        for name, pair in list(self._waiting.items()):
            if RunDirectory(pair.run).has_model():
                stamp = _stamp(pair)
                translator = await asyncio.to_thread(self._load, pair)
                if self._waiting.pop(name, None) is not None:
                    self.translators[name] = translator
                    self._stamps[name] = stamp
                    self.pairs[name] = pair
        for name, pair in self.pairs.items():
            if name not in self._renewing and (stamp := _stamp(pair)) not in (None, self._stamps[name]):
                self._renewing[name] = asyncio.create_task(self._renew(pair, stamp))

    async def _renew(self, pair: ServedPair, stamp: Stamp) -> None:
        def load() -> Translator:
            translator = self._load(pair)
            _warm(translator)
            return translator

        def take() -> None:
            self.translators[pair.name] = translator
            self._explainers.pop(pair.name, None)
            self._stamps[pair.name] = stamp

        try:
            translator = await asyncio.to_thread(load)
            # Where explanations are made, so that none is begun with one model and kept for the other.
            await asyncio.get_running_loop().run_in_executor(self._explain_pool, take)
        except DragomanError as error:  # what is loaded goes on translating
            print(f"dragoman: {error}", file=sys.stderr)
            self._stamps[pair.name] = stamp  # not tried again before there is another
        finally:
            del self._renewing[pair.name]

    def translator_of(self, watched: WatchedRun) -> Translator:
        """Of a run that is watched, whether it serves or not."""
        if self.pairs.get(watched.pair.name) == watched.pair:
            return self.translators[watched.pair.name]
        stamp = _stamp(watched.pair)
        if watched.name not in self._beside or self._beside[watched.name][0] != stamp:
            self._beside[watched.name] = stamp, self._load(watched.pair)
        return self._beside[watched.name][1]

    async def start(self) -> None:
        self.batcher.start()

    async def close(self) -> None:
        for task in self._renewing.values():
            task.cancel()
        await asyncio.gather(*self._renewing.values(), return_exceptions=True)
        await self.batcher.close()
        self.document_pool.shutdown(wait=False, cancel_futures=True)
        self._explain_pool.shutdown()
        self._text_pool.shutdown()
        if self.memory is not None:
            self.memory.close()

    def pair(self, source: str, target: str) -> ServedPair | None:
        return self.pairs.get(f"{source}-{target}")

    @property
    def waiting(self) -> list[str]:
        return list(self._waiting)

    @property
    def untranslated(self) -> str | None:
        """Why nothing at all is translated here; None: something is."""
        if self.pairs:
            return None
        if self.parsing is not None and not self._waiting:
            return (
                f"nothing is translated here: the run {self.parsing.name} is a parser; ask it with POST /api/v1/parse"
            )
        return "nothing is translated here yet: no run has a model; it has one after its first validation"

    async def on_text(self, work: Callable[[], T]) -> T:
        """Read or cut a request's text while others are answered."""
        return await asyncio.get_running_loop().run_in_executor(self._text_pool, work)

    async def detect(self, texts: Sequence[str]) -> list[Detected]:
        return await self.on_text(lambda: self.detector.detect(texts))

    async def segments(self, pair: ServedPair, texts: Sequence[str]) -> list[list[Segment]]:
        """The sentences of each text; more than a request may have are refused."""
        fits = self.translators[pair.name].fits
        found = await self.on_text(lambda: [segments(text, fits, pair.source) for text in texts])
        self.check_count(sum(map(len, found)))
        return found

    def check_count(self, sentences: int) -> None:
        limit = self.settings.sentence_limit
        if sentences > limit:
            raise RefusedError(
                413, f"Invalid request: more than {limit} sentences; send it in parts, or start with --sentence-limit"
            )

    async def translate(
        self, pair: ServedPair, texts: Sequence[str], n_best: int = 1, wishes: TranslationOptions | None = None
    ) -> list[TranslatedText]:
        kind = BatchKey(pair.name, n_best, wishes or TranslationOptions())
        parts = await self.segments(pair, texts)
        done = await self.sentences(kind, [part.text for some in parts for part in some])
        results, position = [], 0
        for text, some in zip(texts, parts, strict=True):
            results.append(TranslatedText(text, tuple(some), tuple(done[position : position + len(some)])))
            position += len(some)
        return results

    async def stream(
        self, pair: ServedPair, parts: Sequence[Segment], n_best: int = 1, wishes: TranslationOptions | None = None
    ) -> AsyncIterator[tuple[Segment, Translation]]:
        """A text's sentences one by one, in their order; many are under way at once, never more than may wait."""
        kind = BatchKey(pair.name, n_best, wishes or TranslationOptions())
        tasks: deque[asyncio.Task[list[Translation]]] = deque()
        ahead = iter(parts)
        try:
            for part in parts:
                for later in islice(ahead, max(1, self.settings.queue_limit // 4) - len(tasks)):
                    tasks.append(asyncio.create_task(self.sentences(kind, [later.text])))
                yield part, (await tasks[0])[0]
                tasks.popleft()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def explain(self, pair: ServedPair, work: "Callable[[Explainer], T]") -> T:
        return await self.in_explain_pool(lambda: work(self._explainer(pair)))

    async def parse(self, work: "Callable[[Parser], T]") -> T:
        return await self.in_explain_pool(lambda: work(self._loaded_parser()))

    async def in_explain_pool(self, work: Callable[[], T]) -> T:
        """Where torch works, one thing at a time."""
        if self._explaining >= self.settings.explain_limit:
            raise OverloadedError(self._explaining, self.settings.explain_limit, 1)
        self._explaining += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._explain_pool, work)
        finally:
            self._explaining -= 1

    def expect_explanations(self) -> None:
        """Load torch and the models in the background: someone opened the page and will soon look inside."""
        if not self._expected:
            self._expected = True
            for pair in self.pairs.values():
                self._explain_pool.submit(lambda pair: self._explainer(pair).alignment_heads, pair)
            if self.parses:
                self._explain_pool.submit(self._loaded_parser)

    @property
    def parses(self) -> bool:
        """Whether there is a parser, and it has a model."""
        return self.parsing is not None and RunDirectory.open(self.parsing.pair.run).has_model()

    def _loaded_parser(self) -> "Parser":
        if self._parser is None:
            from dragoman.parsing.parser import Parser

            assert self.parsing is not None
            _use_one_thread()
            self._parser = Parser.load(self.parsing.pair.run)
        return self._parser

    def _explainer(self, pair: ServedPair) -> "Explainer":
        if pair.name not in self._explainers:
            from dragoman.documents.sentence_translator import explainer_of

            _use_one_thread()
            found = explainer_of(self.translators[pair.name], pair.run)
            if found is None:
                raise UsageError(f"{pair.run}: no Transformer, or one of several languages; others can be looked into")
            self._explainers[pair.name] = found
        return self._explainers[pair.name]

    async def sentences(self, kind: BatchKey, texts: Sequence[str]) -> list[Translation]:
        """What was corrected as it was corrected; of the rest each different sentence once, and only those that were
        not translated of late."""
        found = await self._corrected(kind, texts)
        stamp = self._stamps[kind.pair]
        cached = {
            text: known for text in texts if text not in found and (known := self._cache.get((stamp, kind, text)))
        }
        self.metrics.cache_hits.inc(len(cached))
        found |= cached
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        if missing:
            tokenizer = self.translators[kind.pair].tokenizer
            lengths = await self.on_text(lambda: [len(ids) + 1 for ids in tokenizer.encode_batch(missing)])
            done = await self.batcher.translate(kind, missing, lengths)
            for text, translation in zip(missing, done, strict=True):
                found[text] = translation
                size = len(text) + sum(len(candidate.text) for candidate in translation.candidates)
                self._cache.put((stamp, kind, text), translation, size)
        return [found[text] for text in texts]

    async def translate_sentences(self, pair: ServedPair, asked: Sequence[SourceSentence]) -> list[Translation]:
        """A document's sentences: those with the same stretches to copy together."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for sentence in asked:
            groups.setdefault(sentence.kept, []).append(sentence.text)
        kinds = [BatchKey(pair.name, 1, TranslationOptions(kept=kept)) for kept in groups]
        found = await asyncio.gather(*map(self.sentences, kinds, groups.values()))
        answers = {kept: iter(some) for kept, some in zip(groups, found, strict=True)}
        return [next(answers[sentence.kept]) for sentence in asked]

    async def _corrected(self, kind: BatchKey, texts: Sequence[str]) -> dict[str, Translation]:
        """A request's own terms are stronger than a correction, which may not hold them."""
        memory = self.memory
        if memory is None or kind.wishes.terms or kind.wishes.keep:
            return {}

        def look() -> dict[str, Translation]:
            known = {text: memory.exact(kind.pair, text) for text in dict.fromkeys(texts)}
            return {
                text: Translation(text, (self._unsearched(kind, said),), corrected=True)
                for text, said in known.items()
                if said is not None
            }

        return await self.on_text(look)

    def _unsearched(self, kind: BatchKey, said: str) -> Candidate:
        tokenizer = self.translators[kind.pair].tokenizer
        return Candidate(said, 0.0, 0.0, tuple(map(tokenizer.piece, tokenizer.encode(said))), None)

    def suggestion(self, pair: ServedPair, text: str) -> Suggestion | None:
        """The correction of a similar sentence."""
        return None if self.memory is None else self.memory.similar(pair.name, text)

    def _translate(self, kind: BatchKey, texts: Sequence[str]) -> list[Translation]:
        translator = self.translators[kind.pair]
        wishes = kind.wishes
        changes = {"beam": wishes.beam, "alpha": wishes.alpha}
        given = {name: value for name, value in changes.items() if value is not None}
        if given:
            translator = translator.with_search(**given)
        return translator.translate_sentences(
            [SourceSentence(text, wishes.kept) for text in texts],
            kind.n_best,
            required=requirements(Glossary.of(wishes.terms), wishes.keep),
            rate=wishes.rate,
        )


def _stamp(pair: ServedPair) -> Stamp:
    """Another one where the run has another model. None: it translates with a checkpoint."""
    try:
        found = RunDirectory(pair.run).model_path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def _warm(translator: Translator) -> None:
    for texts in (["a"], ["a", "b"]):
        list(translator.translate_stream(texts, scores=False, repair=False, whole=True, protect=False))


def is_translatable(text: str) -> bool:
    """Whether there is a letter in it: numbers and marks are the same in every language."""
    return any(map(str.isalpha, text))


def check_text(text: str) -> None:
    """Text that is none is refused here, before it can fail in the middle of others' work."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"Invalid request: character {error.start + 1} is a lone surrogate, which no Unicode text holds"
        ) from None


def _use_one_thread() -> None:
    """A sentence is little work for torch: a second thread gains next to nothing, and as soon as something else takes
    its core the first one waits for it, a hundred times in a pass."""
    import torch

    torch.set_num_threads(1)
