"""The documents of DeepL's API: sent in, asked about, and fetched once."""

import asyncio
import hmac
import io
import secrets
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request, Response

from dragoman.documents.format_names import SUFFIXES, DocumentFormat
from dragoman.documents.formats import uncompressed_size
from dragoman.errors import DragomanError
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.documents import UNPACKED, beginning_of, download_type, translate_document
from dragoman.serve.pairs import Way
from dragoman.serve.routes.deepl_request import (
    DeepLState,
    Values,
    check_wishes,
    read,
    refuse,
    source_language,
    target_language,
    terms_of,
    way_between,
)
from dragoman.serve.routes.request_values import Upload
from dragoman.serve.security import RateLimiter, RefusedError, address_of
from dragoman.serve.texts import RequestOptions

MOST_WAITING = 64  # documents that are not translated yet


def make_router(state: DeepLState, limiter: RateLimiter) -> APIRouter:
    documents = _Documents(state, limiter)
    router = APIRouter()
    router.post("/v2/document")(documents.send)
    router.post("/v2/document/{document_id}")(documents.status)
    router.post("/v2/document/{document_id}/result")(documents.result)
    return router


@dataclass
class _SentDocument:
    """A document that someone sent."""

    owner: str
    suffix: str
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())
    at: float = field(default_factory=time.monotonic)
    status: str = "queued"
    error: str = ""
    characters: int = 0
    file: str = ""  # the name of its translation in the store of files
    task: "asyncio.Task[None] | None" = None


class _Documents:
    def __init__(self, state: DeepLState, limiter: RateLimiter) -> None:
        self._state, self._service, self._limiter = state, state.service, limiter
        self._jobs: OrderedDict[str, _SentDocument] = OrderedDict()

    async def send(self, request: Request) -> Any:
        """Take in a document, which is then translated; the answer has what it is asked for by."""
        values = await read(self._state, request)
        upload = values.upload("file")
        if upload is None:
            refuse(400, "Invalid file data.")
        suffix = PurePath(values.text("filename") or upload.name).suffix.lower()
        if suffix not in SUFFIXES:
            refuse(400, f"Invalid file data. Known kinds of documents: {', '.join(SUFFIXES)}")
        wanted = values.text("output_format").lower()
        if wanted and SUFFIXES.get(f".{wanted}") != SUFFIXES[suffix]:
            refuse(400, "Value for 'output_format' not supported.")
        target = target_language(self._service, values)
        source = source_language(self._service, values)
        check_wishes(values, target)
        options = RequestOptions(terms=await terms_of(self._state, values, source, target))
        self._make_room()
        way = await self._way(request, upload, SUFFIXES[suffix], source, target)
        job = _SentDocument(values.owner, suffix)
        name = secrets.token_hex(16).upper()
        self._jobs[name] = job
        job.task = asyncio.create_task(self._work(job, way, upload.content, options))
        return {"document_id": name, "document_key": job.key}

    async def _way(
        self, request: Request, upload: Upload, kind: DocumentFormat, source: str | None, target: str
    ) -> Way:
        """How the document is translated. One that is too large, or cannot be read at all, is refused."""
        service, settings, content = self._service, self._service.settings, upload.content
        try:
            size = await service.on_text(lambda: uncompressed_size(lambda: io.BytesIO(content), kind, "file"))
            if size > UNPACKED * settings.body_limit:
                refuse(413, f"File ({size}) exceeds size limit ({UNPACKED * settings.body_limit})")
            self._limiter.charge(address_of(request.scope), size // settings.character_limit)
            if source is None:
                text = await service.on_text(lambda: beginning_of(content, kind, settings.character_limit))
                source = (await service.detect([text]))[0].language
        except DragomanError as error:
            refuse(400, f"Invalid file data. {error}")
        way = way_between(service, source, target)
        if way is None:
            refuse(400, "Source and target language are equal.")
        return way

    async def _work(self, job: _SentDocument, way: Way, content: bytes, options: RequestOptions) -> None:
        job.status = "translating"
        try:
            translated, report = await translate_document(
                self._service, way, content, SUFFIXES[job.suffix], "file", options
            )
        except (DragomanError, OverloadedError, RefusedError) as error:
            job.status, job.error = "error", getattr(error, "error", str(error))
        except Exception as error:  # nobody waits for it; its message may hold text
            print(f"dragoman: {type(error).__name__} in a document", file=sys.stderr)
            job.status, job.error = "error", "An error of this service"
        else:
            job.file = self._service.files.put(translated)
            job.characters = report.characters
            self._state.count(job.owner, report.characters)
            job.status = "done"

    async def status(self, request: Request, document_id: str) -> Any:
        """How far a document is."""
        job = self._job(await read(self._state, request), document_id)
        answer: dict[str, Any] = {"document_id": document_id, "status": job.status}
        if job.status == "done":
            answer["billed_characters"] = job.characters
        if job.status == "error":
            answer["error_message"] = answer["message"] = job.error
        return answer

    async def result(self, request: Request, document_id: str) -> Response:
        """The translated document. It is given once."""
        job = self._job(await read(self._state, request), document_id)
        if job.status in ("queued", "translating"):
            refuse(503, "Document translation is not done")
        content = self._service.files.take(job.file)
        del self._jobs[document_id]
        if content is None:
            refuse(404, "Document not found")
        disposition = {"content-disposition": f'attachment; filename="translated{job.suffix}"'}
        return Response(content, media_type=download_type(SUFFIXES[job.suffix]), headers=disposition)

    def _job(self, values: Values, name: str) -> _SentDocument:
        job, key = self._jobs.get(name), values.text("document_key")
        right = job is not None and hmac.compare_digest(job.key.encode(), key.encode(errors="replace"))
        if job is None or not right or job.owner != values.owner:
            refuse(404, "Document not found")
        return job

    def _make_room(self) -> None:
        """Forgets what is too old to be fetched; refuses a document where too many wait."""
        oldest_allowed = time.monotonic() - self._service.settings.file_seconds
        for name, job in list(self._jobs.items()):
            if job.status in ("done", "error") and job.at < oldest_allowed:
                del self._jobs[name]
        if sum(job.status in ("queued", "translating") for job in self._jobs.values()) >= MOST_WAITING:
            refuse(429, f"Too many documents wait ({MOST_WAITING}); send it again later")
