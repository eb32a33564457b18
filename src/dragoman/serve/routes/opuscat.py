"""The API of OPUS-CAT's engine, so that its plug-ins for Trados, memoQ, OmegaT, Wordfast and browsers work unchanged.

They ask for one sentence at a time, with GET and everything in the address. Their token of a login is not used by the
engine; where this service needs a key, the token must be one.
"""

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from dragoman.serve.answers import ERRORS, while_connected
from dragoman.serve.pairs import Way
from dragoman.serve.routes.deepl_request import served_code, sources_of, targets_of
from dragoman.serve.routes.request_values import refuse
from dragoman.serve.security import Keys, RateLimiter, RefusedError, address_of
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text

PREFIXES = ("/MTRestService", "/MtRestService")  # its plug-ins write both


def make_router(service: Service, keys: Keys, limiter: RateLimiter) -> APIRouter:
    routes = _Routes(service, keys, limiter)
    router = APIRouter(tags=["OPUS-CAT"], responses=ERRORS)
    for prefix in PREFIXES:
        shown = prefix == PREFIXES[0]
        get = {
            "Login": routes.login,
            "ListSupportedLanguagePairs": routes.language_pairs,
            "GetLanguagePairModelTags": routes.model_tags,
            "CheckModelStatus": routes.model_status,
            "Translate": routes.translate,
            "TranslateParagraphJson": routes.translate,
            "TranslateJson": routes.translate_json,
            "TranslateStream": routes.translate_stream,
        }
        for name, route in get.items():
            router.get(f"{prefix}/{name}", include_in_schema=shown)(route)
        router.post(f"{prefix}/TranslatePost", include_in_schema=shown)(routes.translate_json)
        router.post(f"{prefix}/PreOrderBatch", include_in_schema=shown)(routes.pre_order)
    return router


class _Routes:
    def __init__(self, service: Service, keys: Keys, limiter: RateLimiter) -> None:
        self._service, self._keys, self._limiter = service, keys, limiter
        self._ordered: set[asyncio.Task[Any]] = set()

    async def login(self, request: Request) -> Any:
        """A token for the other calls: the password, which is a key where one is needed."""
        password = request.query_params.get("password", "")
        if self._keys.required and not self._keys.holds(password):
            return None
        return password or "0"

    async def language_pairs(self, request: Request) -> Any:
        """The language pairs that are translated, as en-fr."""
        self._check(request)
        return list(self._service.models.pairs) + list(self._service.models.pivots)

    async def model_tags(self, request: Request) -> Any:
        """The tags of a language pair's models, which no run has."""
        self._check(request)
        return []

    async def model_status(self, request: Request) -> Any:
        """Whether a language pair can be translated, in a sentence."""
        self._check(request)
        source, target = self._languages(request)
        name, way = f"{source}-{target}", self._service.models.way(source, target)
        return f"No model available for {name}." if way is None else f"Model for {name} will be used."

    async def translate(self, request: Request) -> Any:
        """Translate a text."""
        return await self._translation(request)

    async def translate_json(self, request: Request) -> Any:
        """Translate a text; the answer has the translation under both names that plug-ins look for."""
        translation = await self._translation(request)
        return {"translation": translation, "Translation": translation}

    async def translate_stream(self, request: Request) -> Response:
        """Translate a text; the answer is the translation and nothing else."""
        return Response(await self._translation(request), media_type="text/plain; charset=utf-8")

    async def pre_order(self, request: Request) -> Response:
        """Translate sentences that will soon be asked for, so that they are in the cache by then."""
        self._check(request)
        way = self._way(request)
        try:
            texts = await request.json()
        except (ValueError, RecursionError):
            texts = None
        limit = self._service.settings.batch_limit
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            refuse("Invalid request: the body must be a list of texts")
        if len(texts) > limit:
            refuse(f"Invalid request: request ({len(texts)}) exceeds text limit ({limit})")
        for text in texts:
            self._check_length(text)
        self._limiter.charge(address_of(request.scope), len(texts) - 1)  # the guard has counted one
        if len(self._ordered) < self._service.settings.document_limit:  # else they are translated when asked for
            task = asyncio.create_task(self._order(way, texts))
            self._ordered.add(task)
            task.add_done_callback(self._ordered.discard)
        return Response(status_code=200)

    async def _order(self, way: Way, texts: list[str]) -> None:
        try:
            await self._service.translate(way, texts)
        except Exception:  # nobody waits for it: whoever asks for the sentence later hears what is wrong
            return

    async def _translation(self, request: Request) -> str:
        self._check(request)
        way, text = self._way(request), request.query_params.get("input", "")
        self._check_length(text)
        (translated,) = await while_connected(request, self._service.translate(way, [text]))
        return await self._service.on_text(lambda: translated.text)

    def _check_length(self, text: str) -> None:
        check_text(text)
        limit = self._service.settings.character_limit
        if len(text) > limit:
            refuse(f"Invalid request: request ({len(text)}) exceeds text limit ({limit})")

    def _check(self, request: Request) -> None:
        if not self._keys.required:
            return
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._keys.holds(bearer) and not self._keys.holds(request.query_params.get("tokenCode", "")):
            raise HTTPException(401, "A key is needed: as tokenCode, or Authorization: Bearer KEY")

    def _way(self, request: Request) -> Way:
        if self._service.why_untranslated:
            raise RefusedError(503, self._service.why_untranslated)
        source, target = self._languages(request)
        way = self._service.models.way(source, target)
        if way is None:
            raise HTTPException(404, f"{source}-{target} is not served")
        return way

    def _languages(self, request: Request) -> tuple[str, str]:
        """The two languages of a request, as they are served. Plug-ins name a country too: en-US where en is served."""
        given = [request.query_params.get(name, "").strip()[:16] for name in ("srcLangCode", "trgLangCode")]
        source = served_code(given[0], sources_of(self._service)) or given[0]
        target = served_code(given[1], targets_of(self._service)) or given[1]
        return source, target
