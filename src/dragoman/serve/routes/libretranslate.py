"""The API of LibreTranslate, so that its clients work unchanged: its routes, its shapes and its words."""

import asyncio
import io
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response

from dragoman.data.language_codes import language_name
from dragoman.data.language_id import DetectedLanguage
from dragoman.documents.format_names import SUFFIXES, DocumentFormat
from dragoman.documents.formats import uncompressed_size
from dragoman.documents.settings import OtherLanguageError
from dragoman.errors import DataError
from dragoman.serve.answers import ERRORS, while_connected
from dragoman.serve.documents import UNPACKED, beginning_of, download_type, translate_document
from dragoman.serve.pairs import PivotPair, Way
from dragoman.serve.routes import libretranslate_spec as spec
from dragoman.serve.routes.request_values import Upload, read_values, refuse
from dragoman.serve.security import Keys, RateLimiter, address_of
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text, is_translatable
from dragoman.translation.result import Translation

FILE_FORMATS = list(SUFFIXES)
PREVIEWED = 2000  # sentences of a document


def make_router(service: Service, keys: Keys, limiter: RateLimiter) -> APIRouter:
    texts = _TextRoutes(service, keys, limiter)
    files = _FileRoutes(service, keys, limiter)
    about = _AboutRoutes(service, keys)
    router = APIRouter(tags=["LibreTranslate"])
    router.post(
        "/translate",
        openapi_extra=spec.body_of(spec.TRANSLATE, ["q", "source", "target"]),
        responses=spec.ok(spec.TRANSLATED),
    )(texts.translate)
    router.post(
        "/suggest",
        openapi_extra=spec.body_of(spec.SUGGEST, ["q", "s", "source", "target"]),
        responses=spec.ok(spec.SUGGESTED),
    )(texts.suggest)
    router.post("/detect", openapi_extra=spec.body_of(spec.DETECT, ["q"]), responses=spec.ok(spec.DETECTIONS))(
        texts.detect
    )
    router.get("/languages", responses=spec.ok(spec.LANGUAGES))(about.languages)
    router.post("/translate_file", openapi_extra=spec.file_body(), responses=spec.ok(spec.FILE_URL))(
        files.translate_file
    )
    router.get("/download_file/{filename}", responses={200: {"content": {"text/plain": {}}}, **ERRORS})(
        files.download_file
    )
    router.get("/health", responses=spec.ok({"type": "object", "properties": {"status": {"type": "string"}}}))(
        about.health
    )
    router.get("/frontend/settings", responses=spec.ok({"type": "object"}))(about.frontend_settings)
    router.get("/spec", include_in_schema=False)(about.spec)
    return router


class _TextRoutes:
    def __init__(self, service: Service, keys: Keys, limiter: RateLimiter) -> None:
        self._service, self._keys, self._limiter = service, keys, limiter

    async def translate(self, request: Request) -> Any:
        """Translate a text, or a list of texts."""
        values = await read_values(self._service, request)
        _require_key(self._keys, values)
        q, source, target = values.get("q"), _code(values.get("source")), _code(values.get("target"))
        _require_given(q=q, source=source, target=target)
        count = _alternatives(values.get("alternatives", 0), self._service.settings.alternatives_limit)
        texts = self._texts(q)
        self._limiter.charge(address_of(request.scope), len(texts) - 1)  # the guard has counted one
        detected = (await self._service.detect(texts))[0] if source == "auto" else None
        language = self._source_language(texts, source, target, detected)
        text_format = values.get("format") or "text"
        if text_format not in ("text", "html"):
            refuse(f"{text_format} format is not supported")
        way = _way(self._service, language, target)
        translations, alternatives = texts, [list[str]() for _ in texts]
        if way is not None and text_format == "html":
            translations = await while_connected(request, _translate_html(self._service, way, texts))
        elif way is not None:
            translations, alternatives = await while_connected(request, self._translate(way, texts, count))
        answer = _answer(translations, alternatives if count > 0 else None, detected, isinstance(q, list))
        return answer | _named_pivot(way)

    async def suggest(self, request: Request) -> Any:
        """Keep what the translation of a text should have been, where corrections are kept."""
        values = await read_values(self._service, request)
        _require_key(self._keys, values)
        memory = self._service.memory
        if memory is None:
            raise HTTPException(403, "Suggestions are disabled on this server.")
        source, target = _code(values.get("source")), _code(values.get("target"))
        texts, limit = {name: values.get(name) for name in ("q", "s")}, self._service.settings.character_limit
        _require_given(**texts, source=source, target=target)
        for name, text in texts.items():
            if not isinstance(text, str):
                refuse(f"Invalid request: {name} parameter is not a text")
            check_text(text)
            if len(text) > limit:
                refuse(f"Invalid request: request ({len(text)}) exceeds text limit ({limit})")
        way = _way(self._service, source, target)
        if way is None:
            refuse(f"{target} is not a target of {source}")
        await self._service.on_text(lambda: memory.store(way.name, str(texts["q"]), str(texts["s"])))
        return {"success": True}

    async def detect(self, request: Request) -> Any:
        """Which language a text is in, among those served."""
        values = await read_values(self._service, request)
        _require_key(self._keys, values)
        q = values.get("q")
        _require_given(q=q)
        return [_detection(detected) for detected in await self._service.detect(self._texts(q))]

    def _texts(self, q: Any) -> list[str]:
        """A text or a list of them, within the limits."""
        settings = self._service.settings
        texts: list[Any] = q if isinstance(q, list) else [q]
        if len(texts) > settings.batch_limit:
            refuse(f"Invalid request: request ({len(texts)}) exceeds text limit ({settings.batch_limit})")
        for text in texts:
            if not isinstance(text, str):
                refuse("Invalid request: q parameter is not a text or a list of texts")
            check_text(text)
            if len(text) > settings.character_limit:
                refuse(f"Invalid request: request ({len(text)}) exceeds text limit ({settings.character_limit})")
        return texts

    def _source_language(self, texts: list[str], source: str, target: str, detected: DetectedLanguage | None) -> str:
        """The language that the request names, or the one detected; both it and the target must be served."""
        if detected is None:
            language = source
        elif any(map(is_translatable, texts)):
            language = detected.language
        else:
            language = target  # nothing to translate, so it may as well be in that language already
        _require_supported(self._service, source, language)
        _require_supported(self._service, target, target)
        return language

    async def _translate(self, way: Way, texts: list[str], count: int) -> tuple[list[str], list[list[str]]]:
        """The translations, and up to `count` alternatives of each."""
        translated = await self._service.translate(way, texts, n_best=count + 1)
        return await self._service.on_text(
            lambda: ([text.text for text in translated], [text.alternatives(count) for text in translated])
        )


class _FileRoutes:
    def __init__(self, service: Service, keys: Keys, limiter: RateLimiter) -> None:
        self._service, self._keys, self._limiter = service, keys, limiter

    async def translate_file(self, request: Request) -> Any:
        """Translate a document. The name it comes with says what it is; it is never used as a path."""
        values = await read_values(self._service, request)
        _require_key(self._keys, values)
        file, source, target = values.get("file"), _code(values.get("source")), _code(values.get("target"))
        if not isinstance(file, Upload) or not file.name:
            refuse("Invalid request: missing file parameter")
        _require_given(source=source, target=target)
        suffix = PurePath(file.name).suffix.lower()
        if suffix not in SUFFIXES:
            refuse("Invalid request: file format not supported")
        if source != "auto":
            _require_supported(self._service, source, source)
        _require_supported(self._service, target, target)
        try:
            preview: list[Translation] | None = [] if values.get("preview") else None
            content, way = await self._translate(request, file.content, SUFFIXES[suffix], source, target, preview)
        except OtherLanguageError as error:
            refuse(f"Invalid request: {error}")
        except DataError:
            refuse("Invalid request: file format not supported")
        name = self._service.files.put(content)
        host = request.headers["host"]
        address = f"{request.url.scheme}://{host}/download_file/{name}.{quote(target)}{suffix}"
        seen = {} if preview is None else {"preview": preview_of(preview), "sentences": len(preview)}
        return {"translatedFileUrl": address} | _named_pivot(way) | seen

    async def _translate(
        self,
        request: Request,
        content: bytes,
        document_format: DocumentFormat,
        source: str,
        target: str,
        preview: list[Translation] | None,
    ) -> tuple[bytes, Way | None]:
        service, settings = self._service, self._service.settings
        size = await service.on_text(lambda: uncompressed_size(lambda: io.BytesIO(content), document_format, "file"))
        if size > UNPACKED * settings.body_limit:
            refuse(f"Invalid request: file ({size}) exceeds size limit ({UNPACKED * settings.body_limit})")
        self._limiter.charge(address_of(request.scope), size // settings.character_limit)
        if source == "auto":
            beginning = await service.on_text(lambda: beginning_of(content, document_format, settings.character_limit))
            source = (await service.detect([beginning]))[0].language
            _require_supported(service, source, source)
        way = _way(service, source, target)
        if way is None:
            return content, None
        translated, _ = await while_connected(
            request, translate_document(service, way, content, document_format, "file", preview=preview)
        )
        return translated, way

    async def download_file(self, filename: str) -> Response:
        """A translated file, for some minutes."""
        name = filename.partition(".")[0]
        content = self._service.files.get(name)
        if content is None:
            raise HTTPException(404, "Invalid filename")
        suffix = PurePath(filename).suffix if PurePath(filename).suffix in SUFFIXES else ".txt"
        disposition = {"content-disposition": f'attachment; filename="translated{suffix}"'}
        return Response(content, media_type=download_type(SUFFIXES[suffix]), headers=disposition)


class _AboutRoutes:
    def __init__(self, service: Service, keys: Keys) -> None:
        self._service, self._keys = service, keys

    async def languages(self) -> Any:
        """The languages served, and from each into which. A text may always stay as it is."""
        models = self._service.models
        targets = {code: {code} for code in self._service.languages}
        ways: list[Way] = [*models.pairs.values(), *models.pivots.values()]
        for way in ways:
            targets[way.source].add(way.target)
        return [
            {"code": code, "name": language_name(code), "targets": sorted(targets[code])}
            for code in self._service.languages
        ]

    async def health(self) -> Any:
        return {"status": "ok"}

    async def frontend_settings(self) -> Any:
        if self._service.why_untranslated:
            raise HTTPException(404, self._service.why_untranslated)
        first = next(iter(self._service.models.pairs.values()))
        return {
            "charLimit": self._service.settings.character_limit,
            "frontendTimeout": 300,
            "apiKeys": self._keys.required,
            "keyRequired": self._keys.required,
            "suggestions": self._service.memory is not None,
            "filesTranslation": True,
            "supportedFilesFormat": FILE_FORMATS,
            "language": {
                "source": {"code": first.source, "name": language_name(first.source)},
                "target": {"code": first.target, "name": language_name(first.target)},
            },
        }

    async def spec(self, request: Request) -> Any:
        return request.app.openapi()


async def _translate_html(service: Service, way: Way, texts: list[str]) -> list[str]:
    documents = [translate_document(service, way, text.encode(), "html", "q") for text in texts]
    return [content.decode() for content, _ in await asyncio.gather(*documents)]


def _answer(
    translations: list[str], alternatives: list[list[str]] | None, detected: DetectedLanguage | None, is_list: bool
) -> dict[str, Any]:
    """The answer to /translate: lists where `q` was a list."""
    answer: dict[str, Any] = {"translatedText": translations if is_list else translations[0]}
    if detected is not None:
        answer["detectedLanguage"] = [_detection(detected)] * len(translations) if is_list else _detection(detected)
    if alternatives is not None:
        answer["alternatives"] = alternatives if is_list else alternatives[0]
    return answer


def _detection(detected: DetectedLanguage) -> dict[str, Any]:
    return {"confidence": detected.confidence, "language": detected.language}


def preview_of(translations: Sequence[Translation]) -> list[dict[str, Any]]:
    """What the page shows of a document: its first sentences, and how sure and how sound each translation is."""
    return [
        {
            "source": one.source,
            "output": one.text,
            "confidence": one.confidence,
            "how": one.how,
            "faults": list(one.defects),
            "notes": list(one.notes),
        }
        for one in translations[:PREVIEWED]
    ]


def _named_pivot(way: Way | None) -> dict[str, str]:
    """What an answer has beside LibreTranslate's own: through which language it was translated, if through one."""
    return {"pivot": way.pivot} if isinstance(way, PivotPair) else {}


def _way(service: Service, source: str, target: str) -> Way | None:
    """How to translate between two languages; None where both are the same."""
    if source == target:
        return None
    way = service.models.way(source, target)
    if way is None:
        refuse(
            f"{language_name(target)} ({target}) is not available as a target language from "
            f"{language_name(source)} ({source})"
        )
    return way


def _require_key(keys: Keys, values: Mapping[str, Any]) -> None:
    given = values.get("api_key")
    if not keys.required:
        return
    if not given:
        refuse("Please contact the server operator to get an API key")
    if not isinstance(given, str) or not keys.holds(given):
        raise HTTPException(403, "Invalid API key")


def _require_given(**values: Any) -> None:
    for name, value in values.items():
        if not value:
            refuse(f"Invalid request: missing {name} parameter")


def _require_supported(service: Service, named: str, language: str) -> None:
    """Refuses a language that is not served, by the name that the request has for it (it may be auto)."""
    if service.why_untranslated:
        refuse(service.why_untranslated)
    if language not in service.languages:
        refuse(f"{named} is not supported")


def _code(value: Any) -> str:
    return value.lower() if isinstance(value, str) else str(value) if value else ""


def _alternatives(value: Any, limit: int) -> int:
    try:
        count = max(0, int(value))
    except (ValueError, TypeError, OverflowError):
        refuse("Invalid request: alternatives parameter is not a number")
    if count > limit:
        refuse(f"Invalid request: alternatives parameter must be <= {limit}")
    return count
