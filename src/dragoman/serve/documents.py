"""Translates documents: each in a thread of its own, which asks for its sentences and waits for them as clients do."""

import asyncio
import io
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.documents.flow import Flow, nested
from dragoman.documents.format_names import MEDIA_TYPES, SHOWN_BY_BROWSERS, DocumentFormat
from dragoman.documents.formats import pieces_of
from dragoman.documents.pipeline import sentences_in, translate_bytes
from dragoman.documents.report import DocumentReport
from dragoman.documents.settings import FormatSettings
from dragoman.errors import MissingPackageError, UsageError
from dragoman.serve.pairs import PivotPair, Way
from dragoman.serve.service import Service
from dragoman.serve.texts import DEFAULT_OPTIONS, RequestOptions
from dragoman.translation.result import Candidate, SourceSentence, Translation

if TYPE_CHECKING:
    from dragoman.decoding.alignment import Alignment

T = TypeVar("T")

UNPACKED = 32  # times the limit of a request: so much an archive may hold


class ServedSentenceTranslator:
    """Translates a document's sentences in batches with others', and aligns them in the thread of explanations."""

    def __init__(
        self, service: Service, way: Way, loop: asyncio.AbstractEventLoop, options: RequestOptions = DEFAULT_OPTIONS
    ) -> None:
        self.service, self.way, self.loop, self.options = service, way, loop, options
        first = way.first if isinstance(way, PivotPair) else way
        self.translator = service.models.translator(first.name)
        self.left = threading.Event()  # the client waits no longer
        self.translated: dict[str, Translation] = {}  # each sentence as it was first translated, in their order

    min_confidence: float | None = None  # no request can ask for it
    mark = ""

    @property
    def language(self) -> str | None:
        return self.way.source

    def fits(self, text: str) -> bool:
        return self.translator.fits(text)

    def translate(self, sentences: Sequence[SourceSentence]) -> list[Translation]:
        translations = self._wait(self.service.translate_sentences(self.way, sentences, self.options))
        for sentence, translation in zip(sentences, translations, strict=True):
            self.translated.setdefault(sentence.text, translation)
        return translations

    def align(self, text: str, candidate: Candidate) -> "Alignment | None":
        if isinstance(self.way, PivotPair):  # no attention leads from one end to the other
            return None
        pair = self.way
        try:
            return self._wait(self.service.explain(pair, lambda explainer: explainer.align(text, candidate.tokens)))
        except (UsageError, MissingPackageError):  # a model that cannot align, or no torch to do it with
            return None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self.left.is_set():
            work.close()
            raise CancelledError
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


async def translate_document(
    service: Service,
    way: Way,
    content: bytes,
    kind: DocumentFormat,
    name: str,
    options: RequestOptions = DEFAULT_OPTIONS,
    protect: tuple[str, ...] = (),
    preview: list[Translation] | None = None,
    xhtml: bool = False,
) -> tuple[bytes, DocumentReport]:
    """A document's translation and its report. `protect`: names of tags or styles whose text is not translated. The
    document's sentences are appended to `preview`, with how sure each is. `xhtml`: HTML is XML."""
    loop = asyncio.get_running_loop()
    translator = ServedSentenceTranslator(service, way, loop, options._replace(rate=preview is not None))

    def translate() -> tuple[bytes, DocumentReport]:
        # Counted before anything is translated: what is refused should not have cost much.
        settings = FormatSettings(protect=protect, target=way.target, xhtml=xhtml)
        sentences = sentences_in(pieces_of(lambda: io.BytesIO(content), kind, name, settings), translator)
        service.check_count(sum(1 for _ in islice(sentences, service.settings.sentence_limit + 1)))
        return translate_bytes(content, kind, name, translator, settings)

    try:
        found = await loop.run_in_executor(service.document_pool, translate)
        if preview is not None:
            preview += translator.translated.values()
        return found
    finally:
        translator.left.set()


def download_type(kind: DocumentFormat) -> str:
    """The media type that a document is given back with: one that a browser would show is not to be taken for a page
    of ours."""
    return "application/octet-stream" if kind in SHOWN_BY_BROWSERS else MEDIA_TYPES[kind]


def beginning_of(content: bytes, document_format: DocumentFormat, limit: int) -> str:
    """Enough of a document's text to tell its language."""
    texts: list[str] = []
    size = 0
    for piece in pieces_of(lambda: io.BytesIO(content), document_format, "file"):
        if isinstance(piece, Flow):
            more = [f"{flow.text}\n" for flow in (piece, *nested(piece))]
            texts += more
            size += sum(map(len, more))
        if size > limit:
            break
    return "".join(texts)[:limit]
