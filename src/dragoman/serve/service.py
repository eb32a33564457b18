"""What the two APIs stand on: runs by language pair, texts translated through the batcher, explanations one by one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dragoman.errors import UsageError
from dragoman.serve.batcher import Batcher, OverloadedError
from dragoman.serve.cache import BoundedCache, FileStore
from dragoman.serve.metrics import Metrics
from dragoman.serve.pairs import Detected, LanguageDetector, Pair, target_for
from dragoman.serve.segments import Segment, join, segments
from dragoman.serve.settings import Settings
from dragoman.translate import Translation, Translator, with_changes

if TYPE_CHECKING:
    from dragoman.explain import Explainer

T = TypeVar("T")


class Kind(NamedTuple):
    """What sentences must share to be translated together."""

    pair: str
    n_best: int = 1
    beam: int | None = None
    alpha: float | None = None


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
        pairs: Sequence[Pair],
        settings: Settings,
        load: Callable[[Pair], Translator] = lambda pair: Translator.load(pair.run, to=target_for(pair)),
    ) -> None:
        self.settings = settings
        self.pairs = {pair.name: pair for pair in pairs}
        self.languages = sorted({code for pair in pairs for code in (pair.source, pair.target)})
        self.translators = {pair.name: load(pair) for pair in pairs}
        self.detector = LanguageDetector(self.languages)
        self.metrics = Metrics()
        self.files = FileStore(settings.file_bytes, settings.file_seconds)
        self._cache: BoundedCache[tuple[Kind, str], Translation] = BoundedCache(settings.cache_characters)
        self._explainers: dict[str, Explainer] = {}
        # torch shares the cores with the translation of everyone else: one explanation at a time.
        self._explain_pool = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self._explaining = 0
        self._expected = False
        self.batcher: Batcher[Kind, Translation] = Batcher(
            self._translate,
            workers=settings.workers,
            batch_tokens=settings.batch_tokens,
            batch_wait=settings.batch_wait,
            queue_limit=settings.queue_limit,
            observe_batch=self.metrics.batch,
        )
        self.metrics.gauges["waiting_sentences"] = lambda: self.batcher.waiting
        self.metrics.gauges["cached_characters"] = lambda: self._cache.size

    def warm_up(self) -> None:
        """Both ways of an engine, for one sentence and for many, are loaded before the first request."""
        for translator in self.translators.values():
            for texts in (["a"], ["a", "b"]):
                translator.translate(texts)

    async def start(self) -> None:
        self.batcher.start()

    async def close(self) -> None:
        await self.batcher.close()
        self._explain_pool.shutdown()

    def pair(self, source: str, target: str) -> Pair | None:
        return self.pairs.get(f"{source}-{target}")

    def detect(self, texts: Sequence[str]) -> list[Detected]:
        return self.detector.detect(texts)

    def segments(self, pair: Pair, text: str) -> list[Segment]:
        translator = self.translators[pair.name]
        limit = translator.search.max_source_length

        def fits(part: str) -> bool:
            # A token is at least a byte, so most sentences need no counting. One more: the space put before a text.
            return len(part.encode()) < limit or len(translator.tokenizer.encode(part)) <= limit

        return segments(text, fits)

    async def translate(
        self, pair: Pair, texts: Sequence[str], n_best: int = 1, beam: int | None = None, alpha: float | None = None
    ) -> list[TranslatedText]:
        kind = Kind(pair.name, n_best, beam, alpha)
        parts = [self.segments(pair, text) for text in texts]
        done = await self._sentences(kind, [part.text for some in parts for part in some])
        results, position = [], 0
        for text, some in zip(texts, parts, strict=True):
            results.append(TranslatedText(text, tuple(some), tuple(done[position : position + len(some)])))
            position += len(some)
        return results

    async def stream(
        self, pair: Pair, text: str, n_best: int = 1, beam: int | None = None, alpha: float | None = None
    ) -> AsyncIterator[tuple[Segment, Translation]]:
        """Sentence by sentence, in the order of the text; many are under way at once, never more than may wait."""
        kind = Kind(pair.name, n_best, beam, alpha)
        parts = self.segments(pair, text)
        tasks: deque[asyncio.Task[list[Translation]]] = deque()
        ahead = iter(parts)
        try:
            for part in parts:
                for later in islice(ahead, max(1, self.settings.queue_limit // 4) - len(tasks)):
                    tasks.append(asyncio.create_task(self._sentences(kind, [later.text])))
                yield part, (await tasks[0])[0]
                tasks.popleft()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def explain(self, pair: Pair, work: "Callable[[Explainer], T]") -> T:
        if self._explaining >= self.settings.explain_limit:
            raise OverloadedError(self._explaining, self.settings.explain_limit, 1)
        self._explaining += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._explain_pool, lambda: work(self._explainer(pair)))
        finally:
            self._explaining -= 1

    def expect_explanations(self) -> None:
        """Load torch and the models in the background: someone opened the page and will soon look inside."""
        if not self._expected:
            self._expected = True
            for pair in self.pairs.values():
                self._explain_pool.submit(self._explainer, pair)

    def _explainer(self, pair: Pair) -> "Explainer":
        if pair.name not in self._explainers:
            from dragoman.explain import Explainer

            self._explainers[pair.name] = Explainer.load(pair.run)
        return self._explainers[pair.name]

    async def _sentences(self, kind: Kind, texts: Sequence[str]) -> list[Translation]:
        """Each different sentence once, and only those that were not translated of late."""
        found = {text: cached for text in texts if (cached := self._cache.get((kind, text))) is not None}
        self.metrics.counters["cache_hits"] += len(found)
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        if missing:
            encoded = self.translators[kind.pair].tokenizer.encode_batch(missing)
            done = await self.batcher.translate(kind, missing, [len(ids) + 1 for ids in encoded])
            for text, translation in zip(missing, done, strict=True):
                found[text] = translation
                size = len(text) + sum(len(candidate.text) for candidate in translation.candidates)
                self._cache.put((kind, text), translation, size)
        return [found[text] for text in texts]

    def _translate(self, kind: Kind, texts: Sequence[str]) -> list[Translation]:
        translator = self.translators[kind.pair]
        changes = {"beam": kind.beam, "alpha": kind.alpha}
        given = {name: value for name, value in changes.items() if value is not None}
        if given:
            changed = with_changes(translator.search, **given)
            translator = Translator(translator.engine, translator.tokenizer, changed, translator.tag)
        return list(translator.translate_stream(texts, kind.n_best, warn=lambda _: None))


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
