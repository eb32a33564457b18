"""Translates documents: each in a thread of its own, which asks for its sentences and waits for them as clients do."""

import asyncio
import io
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.documents.formats import DocumentFormat, pieces_of
from dragoman.documents.pipeline import sentences_in, translate_bytes
from dragoman.documents.report import DocumentReport
from dragoman.documents.settings import FormatSettings
from dragoman.errors import MissingPackageError, UsageError
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.translation.result import Candidate, SourceSentence, Translation

if TYPE_CHECKING:
    from dragoman.inspection.alignment import Alignment

T = TypeVar("T")


class ServedSentenceTranslator:
    """Translates a document's sentences in batches with others', and aligns them in the thread of explanations."""

    def __init__(self, service: Service, pair: ServedPair, loop: asyncio.AbstractEventLoop) -> None:
        self.service, self.pair, self.loop = service, pair, loop
        self.translator = service.models.translators[pair.name]
        self.left = threading.Event()  # the client waits no longer

    min_confidence: float | None = None  # no request can ask for it
    mark = ""

    @property
    def language(self) -> str | None:
        return self.pair.source

    def fits(self, text: str) -> bool:
        return self.translator.fits(text)

    def translate(self, sentences: Sequence[SourceSentence]) -> list[Translation]:
        return self._wait(self.service.translate_sentences(self.pair, sentences))

    def align(self, text: str, candidate: Candidate) -> "Alignment | None":
        try:
            return self._wait(
                self.service.explain(self.pair, lambda explainer: explainer.align(text, candidate.tokens))
            )
        except (UsageError, MissingPackageError):  # a model that cannot align, or no torch to do it with
            return None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self.left.is_set():
            work.close()
            raise CancelledError
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


async def translate_document(
    service: Service, pair: ServedPair, content: bytes, kind: DocumentFormat, name: str
) -> tuple[bytes, DocumentReport]:
    loop = asyncio.get_running_loop()
    translator = ServedSentenceTranslator(service, pair, loop)

    def translate() -> tuple[bytes, DocumentReport]:
        # Counted before anything is translated: what is refused should not have cost much.
        settings = FormatSettings(target=pair.target)
        sentences = sentences_in(pieces_of(lambda: io.BytesIO(content), kind, name, settings), translator)
        service.check_count(sum(1 for _ in islice(sentences, service.settings.sentence_limit + 1)))
        return translate_bytes(content, kind, name, translator, settings)

    try:
        return await loop.run_in_executor(service.document_pool, translate)
    finally:
        translator.left.set()
