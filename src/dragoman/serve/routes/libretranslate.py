"""The API of LibreTranslate, so that its clients work unchanged: its routes, its shapes and its words."""

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any, NoReturn
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, HTTPException, Request, Response

from dragoman.data.language_codes import language_name
from dragoman.documents.flow import Flow, nested
from dragoman.documents.formats import MEDIA_TYPES, SUFFIXES, DocumentFormat, pieces_of, uncompressed_size
from dragoman.documents.po import OtherLanguageError
from dragoman.errors import DataError
from dragoman.serve.answers import ERRORS, while_connected
from dragoman.serve.documents import translate_document
from dragoman.serve.pairs import ServedPair
from dragoman.serve.security import Keys, RateLimiter, address_of
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text, is_translatable

FILE_FORMATS = list(SUFFIXES)
FIELDS = 1000  # of a form
UNPACKED = 32  # times the limit of a request: so much an archive may hold


@dataclass(frozen=True)
class Upload:
    name: str  # as the client calls it: only its ending is looked at
    content: bytes


def make_router(service: Service, keys: Keys, limiter: RateLimiter) -> APIRouter:
    router = APIRouter(tags=["LibreTranslate"])
    settings = service.settings

    def require_key(given: Any) -> None:
        if not keys.required:
            return
        if not given:
            _refuse("Please contact the server operator to get an API key")
        if not isinstance(given, str) or not keys.holds(given):
            raise HTTPException(403, "Invalid API key")

    def texts_of(q: Any) -> list[str]:
        """A text or a list of them, within the limits."""
        texts: list[Any] = q if isinstance(q, list) else [q]
        if len(texts) > settings.batch_limit:
            _refuse(f"Invalid request: request ({len(texts)}) exceeds text limit ({settings.batch_limit})")
        for text in texts:
            if not isinstance(text, str):
                _refuse("Invalid request: q parameter is not a text or a list of texts")
            check_text(text)
            if len(text) > settings.character_limit:
                _refuse(f"Invalid request: request ({len(text)}) exceeds text limit ({settings.character_limit})")
        return texts

    @router.post("/translate", openapi_extra=_body(_TRANSLATE, ["q", "source", "target"]), responses=_ok(_TRANSLATED))
    async def translate(request: Request) -> Any:
        """Translate a text, or a list of texts."""
        values = await _values(service, request)
        require_key(values.get("api_key"))
        q, source, target = values.get("q"), _code(values.get("source")), _code(values.get("target"))
        for name, value in (("q", q), ("source", source), ("target", target)):
            if not value:
                _refuse(f"Invalid request: missing {name} parameter")
        count = _alternatives(values.get("alternatives", 0), settings.alternatives_limit)
        many = isinstance(q, list)
        texts = texts_of(q)
        limiter.charge(address_of(request.scope), len(texts) - 1)
        detected = (await service.detect(texts))[0] if source == "auto" else None
        if detected is not None and not any(map(is_translatable, texts)):
            from_language = target  # nothing to translate, so it may as well be in that language already
        else:
            from_language = source if detected is None else detected.language
        _require_supported(service, source if detected is not None else from_language, from_language)
        _require_supported(service, target, target)
        text_format = values.get("format") or "text"
        if text_format not in ("text", "html"):
            _refuse(f"{text_format} format is not supported")
        pair = _pair(service, from_language, target)
        if text_format == "html":
            said = await while_connected(request, _translate_html(service, pair, texts))
            others: list[list[str]] = [[] for _ in texts]
        elif pair is None:
            said, others = texts, [[] for _ in texts]
        else:
            done = await while_connected(request, service.translate(pair, texts, n_best=count + 1))
            said, others = await service.on_text(
                lambda: ([text.text for text in done], [text.alternatives(count) for text in done])
            )
        answer: dict[str, Any] = {"translatedText": said if many else said[0]}
        if detected is not None:
            shown = {"confidence": detected.confidence, "language": detected.language}
            answer["detectedLanguage"] = [shown] * len(texts) if many else shown
        if count > 0:
            answer["alternatives"] = others if many else others[0]
        return answer

    @router.post("/detect", openapi_extra=_body(_DETECT, ["q"]), responses=_ok(_DETECTIONS))
    async def detect(request: Request) -> Any:
        """Which language a text is in, among those served."""
        values = await _values(service, request)
        require_key(values.get("api_key"))
        q = values.get("q")
        if not q:
            _refuse("Invalid request: missing q parameter")
        found = await service.detect(texts_of(q))
        return [{"confidence": one.confidence, "language": one.language} for one in found]

    @router.get("/languages", responses=_ok(_LANGUAGES))
    async def languages() -> Any:
        """The languages served, and from each into which. A text may always stay as it is."""
        return [
            {
                "code": code,
                "name": language_name(code),
                "targets": sorted(
                    {code, *(pair.target for pair in service.models.pairs.values() if pair.source == code)}
                ),
            }
            for code in service.languages
        ]

    @router.post("/translate_file", openapi_extra=_file_body(), responses=_ok(_FILE_URL))
    async def translate_file(request: Request) -> Any:
        """Translate a document. The name it comes with says what it is; it is never used as a path."""
        values = await _values(service, request)
        require_key(values.get("api_key"))
        file = values.get("file")
        source, target = _code(values.get("source")), _code(values.get("target"))
        if not isinstance(file, Upload) or not file.name:
            _refuse("Invalid request: missing file parameter")
        for name, value in (("source", source), ("target", target)):
            if not value:
                _refuse(f"Invalid request: missing {name} parameter")
        suffix = PurePath(file.name).suffix.lower()
        if suffix not in SUFFIXES:
            _refuse("Invalid request: file format not supported")
        if source != "auto":
            _require_supported(service, source, source)
        _require_supported(service, target, target)
        content, kind = file.content, SUFFIXES[suffix]
        try:
            size = await service.on_text(lambda: uncompressed_size(lambda: io.BytesIO(file.content), kind, "file"))
            if size > UNPACKED * settings.body_limit:
                _refuse(f"Invalid request: file ({size}) exceeds size limit ({UNPACKED * settings.body_limit})")
            limiter.charge(address_of(request.scope), size // settings.character_limit)
            if source == "auto":
                beginning = await service.on_text(lambda: _beginning(file.content, kind, settings.character_limit))
                source = (await service.detect([beginning]))[0].language
                _require_supported(service, source, source)
            pair = _pair(service, source, target)
            if pair is not None:
                content, _ = await while_connected(request, translate_document(service, pair, content, kind, "file"))
        except OtherLanguageError as error:
            _refuse(f"Invalid request: {error}")
        except DataError:
            _refuse("Invalid request: file format not supported")
        name = service.files.put(content)
        host = request.headers["host"]
        return {"translatedFileUrl": f"{request.url.scheme}://{host}/download_file/{name}.{quote(target)}{suffix}"}

    @router.get("/download_file/{filename}", responses={200: {"content": {"text/plain": {}}}, **ERRORS})
    async def download_file(filename: str) -> Response:
        """A translated file, for some minutes."""
        name = filename.partition(".")[0]
        content = service.files.get(name)
        if content is None:
            raise HTTPException(404, "Invalid filename")
        suffix = PurePath(filename).suffix if PurePath(filename).suffix in SUFFIXES else ".txt"
        kind = SUFFIXES[suffix]
        # A page that someone sent is not to be taken for one of ours.
        media_type = "application/octet-stream" if kind == "html" else MEDIA_TYPES[kind]
        disposition = {"content-disposition": f'attachment; filename="translated{suffix}"'}
        return Response(content, media_type=media_type, headers=disposition)

    @router.get("/health", responses=_ok({"type": "object", "properties": {"status": {"type": "string"}}}))
    async def health() -> Any:
        return {"status": "ok"}

    @router.get("/frontend/settings", responses=_ok({"type": "object"}))
    async def frontend_settings() -> Any:
        if service.why_untranslated:
            raise HTTPException(404, service.why_untranslated)
        first = next(iter(service.models.pairs.values()))
        return {
            "charLimit": settings.character_limit,
            "frontendTimeout": 300,
            "apiKeys": keys.required,
            "keyRequired": keys.required,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": FILE_FORMATS,
            "language": {
                "source": {"code": first.source, "name": language_name(first.source)},
                "target": {"code": first.target, "name": language_name(first.target)},
            },
        }

    @router.get("/spec", include_in_schema=False)
    async def spec(request: Request) -> Any:
        return request.app.openapi()

    return router


async def _values(service: Service, request: Request) -> Mapping[str, Any]:
    """JSON, or a form and the query together."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        try:
            values = await service.on_text(partial(json.loads, await request.body()))
        except (ValueError, RecursionError):
            _refuse("The browser (or proxy) sent a request that this server could not understand.")
        if not isinstance(values, dict):
            _refuse("Invalid JSON format")
        return values
    read: dict[str, Any]
    if kind == "application/x-www-form-urlencoded":
        # Not by request.form(), which takes what was not percent-encoded for Latin-1: `curl -d q=...` sends UTF-8.
        body = (await request.body()).decode(errors="replace")
        try:
            read = await service.on_text(lambda: dict(parse_qsl(body, keep_blank_values=True, max_num_fields=FIELDS)))
        except ValueError:
            _refuse(f"Invalid request: more than {FIELDS} fields")
    else:
        async with request.form() as form:
            read = {
                name: value if isinstance(value, str) else Upload(value.filename or "", await value.read())
                for name, value in form.items()
            }
    merged: dict[str, Any] = {**read, **request.query_params}
    if isinstance(merged.get("q"), str):
        merged["q"] = "\n".join(merged["q"].splitlines())  # forms end their lines in two ways
    return merged


async def _translate_html(service: Service, pair: ServedPair | None, texts: list[str]) -> list[str]:
    if pair is None:
        return texts
    done = [translate_document(service, pair, text.encode(), "html", "q") for text in texts]
    return [content.decode() for content, _ in await asyncio.gather(*done)]


def _beginning(content: bytes, kind: DocumentFormat, limit: int) -> str:
    """Enough of a document's text to tell its language."""
    texts: list[str] = []
    size = 0
    for piece in pieces_of(lambda: io.BytesIO(content), kind, "file"):
        if isinstance(piece, Flow):
            more = [f"{flow.text}\n" for flow in (piece, *nested(piece))]
            texts += more
            size += sum(map(len, more))
        if size > limit:
            break
    return "".join(texts)[:limit]


def _pair(service: Service, source: str, target: str) -> ServedPair | None:
    """The run that translates so; None where a language stays as it is."""
    if source == target:
        return None
    pair = service.models.pair(source, target)
    if pair is None:
        _refuse(
            f"{language_name(target)} ({target}) is not available as a target language from "
            f"{language_name(source)} ({source})"
        )
    return pair


def _require_supported(service: Service, named: str, language: str) -> None:
    if service.why_untranslated:
        _refuse(service.why_untranslated)
    if language not in service.languages:
        _refuse(f"{named} is not supported")


def _code(value: Any) -> str:
    return value.lower() if isinstance(value, str) else str(value) if value else ""


def _alternatives(value: Any, limit: int) -> int:
    try:
        count = max(0, int(value))
    except (ValueError, TypeError, OverflowError):
        _refuse("Invalid request: alternatives parameter is not a number")
    if count > limit:
        _refuse(f"Invalid request: alternatives parameter must be <= {limit}")
    return count


def _refuse(error: str) -> NoReturn:
    raise HTTPException(400, error)


# What /spec says of the above.

_TEXTS: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
    ]
}
_LANGUAGE: dict[str, Any] = {"type": "string", "minLength": 1, "example": "en"}
_TRANSLATE: dict[str, Any] = {
    "q": {**_TEXTS, "example": "Hello world!"},
    "source": {**_LANGUAGE, "description": "A language code, or auto"},
    "target": _LANGUAGE,
    "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
    "alternatives": {"type": "integer", "minimum": 0, "default": 0},
    "api_key": {"type": "string"},
}
_DETECT: dict[str, Any] = {"q": {**_TEXTS, "example": "Hello world!"}, "api_key": {"type": "string"}}
_DETECTION: dict[str, Any] = {
    "type": "object",
    "required": ["confidence", "language"],
    "properties": {
        "confidence": {"type": "number", "minimum": 0, "maximum": 100},
        "language": {"type": "string"},
    },
}
_DETECTIONS: dict[str, Any] = {"type": "array", "items": _DETECTION}
_STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_TRANSLATED: dict[str, Any] = {
    "type": "object",
    "required": ["translatedText"],
    "properties": {
        "translatedText": {"oneOf": [{"type": "string"}, _STRINGS]},
        "alternatives": {"type": "array", "items": {"oneOf": [{"type": "string"}, _STRINGS]}},
        "detectedLanguage": {"oneOf": [_DETECTION, _DETECTIONS]},
    },
}
_LANGUAGES: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["code", "name", "targets"],
        "properties": {"code": {"type": "string"}, "name": {"type": "string"}, "targets": _STRINGS},
    },
}
_FILE_URL: dict[str, Any] = {
    "type": "object",
    "required": ["translatedFileUrl"],
    "properties": {"translatedFileUrl": {"type": "string"}},
}


def _body(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "required": required, "properties": properties}
    form = {"type": "object", "required": required, "properties": {**properties, "q": {"type": "string"}}}
    content = {"application/json": {"schema": schema}, "application/x-www-form-urlencoded": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


def _file_body() -> dict[str, Any]:
    properties = {
        "file": {"type": "string", "format": "binary"},
        "source": _LANGUAGE,
        "target": _LANGUAGE,
        "api_key": {"type": "string"},
    }
    schema = {"type": "object", "required": ["file", "source", "target"], "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _ok(schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"schema": schema}}}, **ERRORS}
