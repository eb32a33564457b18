"""DeepL's API, so that its clients and the plug-ins of CAT tools work unchanged: texts, languages and usage.

Documents and glossaries are in the modules beside. What DeepL can do and a run cannot is refused in a line where it
would change the translation (`formality`, style rules), and ignored where it is a hint (`context`, `model_type`).
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from dragoman.data.language_codes import language_name
from dragoman.serve.answers import ERRORS, while_connected
from dragoman.serve.documents import translate_document
from dragoman.serve.pairs import Way
from dragoman.serve.routes import deepl_documents, deepl_glossaries
from dragoman.serve.routes.deepl_request import (
    DeepLState,
    Values,
    check_wishes,
    read,
    refuse,
    source_language,
    sources_of,
    target_language,
    targets_of,
    terms_of,
    way_between,
)
from dragoman.serve.security import Keys, RateLimiter, address_of
from dragoman.serve.service import Service
from dragoman.serve.texts import RequestOptions, check_text
from dragoman.serve.xml_tags import MalformedTagsError, names_in, with_html_tags

MODEL = "latency_optimized"  # what DeepL calls its smaller models
UNLIMITED = 1_000_000_000_000  # characters: what DeepL itself says of a key without a limit
# A target of these must be named with its variant, as DeepL's own client demands.
_VARIANTS = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-PT", "Portuguese (European)"), ("PT-BR", "Portuguese (Brazilian)")),
}
_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["text", "target_lang"],
                "properties": {
                    "text": {"type": "array", "items": {"type": "string"}, "example": ["Hello, world!"]},
                    "source_lang": {"type": "string", "description": "absent: detected"},
                    "target_lang": {"type": "string", "example": "DE"},
                    "tag_handling": {"type": "string", "enum": ["xml", "html"]},
                    "ignore_tags": {"type": "array", "items": {"type": "string"}},
                    "splitting_tags": {"type": "array", "items": {"type": "string"}},
                    "glossary_id": {"type": "string"},
                    "formality": {"type": "string", "enum": ["default", "prefer_more", "prefer_less"]},
                    "show_billed_characters": {"type": "boolean"},
                },
            }
        }
    },
}


def make_router(service: Service, keys: Keys, limiter: RateLimiter) -> APIRouter:
    state = DeepLState(service, keys)
    texts = _DeepLTexts(state, limiter)
    about = _DeepLAbout(state)
    errors = {status: {**described, "model": DeepLProblem} for status, described in ERRORS.items()}
    router = APIRouter(tags=["DeepL"], responses=errors)
    router.post("/v2/translate", openapi_extra={"requestBody": _BODY})(texts.translate)
    router.get("/v2/languages")(about.languages)
    router.post("/v2/languages", include_in_schema=False)(about.languages)
    router.get("/v2/usage")(about.usage)
    router.post("/v2/usage", include_in_schema=False)(about.usage)
    router.include_router(deepl_documents.make_router(state, limiter))
    router.include_router(deepl_glossaries.make_router(state))
    return router


class DeepLProblem(BaseModel):
    """What is answered when something is wrong."""

    message: str
    detail: str | None = None


@dataclass(frozen=True)
class _Wish:
    """How the texts of a request are to be translated."""

    tags: str  # "", xml or html
    ignored: tuple[str, ...]
    splitting: tuple[str, ...]
    options: RequestOptions


class _DeepLTexts:
    def __init__(self, state: DeepLState, limiter: RateLimiter) -> None:
        self._state, self._service, self._limiter = state, state.service, limiter

    async def translate(self, request: Request) -> Any:
        """Translate texts: DeepL's own parameters, in JSON or as a form."""
        values = await read(self._state, request)
        texts = self._texts(values)
        target = target_language(self._service, values)
        source = source_language(self._service, values)
        check_wishes(values, target)
        values.one_of("split_sentences", ("0", "1", "nonewlines"), "1")
        wish = _Wish(
            values.one_of("tag_handling", ("", "xml", "html"), ""),
            tuple(names_in(values.strings("ignore_tags"))),
            tuple(names_in(values.strings("splitting_tags"))),
            RequestOptions(terms=await terms_of(self._state, values, source, target)),
        )
        self._limiter.charge(address_of(request.scope), len(texts) - 1)  # the guard has counted one
        languages = [source] * len(texts) if source else await self._detected(texts)
        ways = {language: way_between(self._service, language, target) for language in dict.fromkeys(languages)}
        found = await while_connected(request, self._translated(texts, [ways[one] for one in languages], wish))
        self._state.count(values.owner, sum(map(len, texts)))
        answers = []
        for text, language, translation in zip(texts, languages, found, strict=True):
            answer: dict[str, Any] = {"detected_source_language": language.upper(), "text": translation}
            if values.flag("show_billed_characters"):
                answer["billed_characters"] = len(text)
            if values.text("model_type"):
                answer["model_type_used"] = MODEL
            answers.append(answer)
        return {"translations": answers}

    async def _detected(self, texts: list[str]) -> list[str]:
        """The language of each text by itself."""
        detector = self._service.detector
        return await self._service.on_text(lambda: [detector.detect([text])[0].language for text in texts])

    def _texts(self, values: Values) -> list[str]:
        """The texts, within the limits."""
        texts, settings = values.strings("text"), self._service.settings
        if not texts:
            refuse(400, "Parameter 'text' not specified.")
        if len(texts) > settings.batch_limit:
            refuse(413, f"Request has {len(texts)} texts; at most {settings.batch_limit} are allowed.")
        for text in texts:
            check_text(text)
            if len(text) > settings.character_limit:
                refuse(413, f"Text has {len(text)} characters; at most {settings.character_limit} are allowed.")
        return texts

    async def _translated(self, texts: list[str], ways: list[Way | None], wish: _Wish) -> list[str]:
        """The translation of each text. What is in the target language already stays as it is."""
        places: dict[Way, list[int]] = {}
        for place, way in enumerate(ways):
            if way is not None:
                places.setdefault(way, []).append(place)
        found = list(texts)

        async def translate(way: Way, own: list[int]) -> None:
            given = [texts[place] for place in own]
            if wish.tags:
                translations = list(await asyncio.gather(*(self._with_tags(way, text, wish) for text in given)))
            else:
                translated = await self._service.translate(way, given, options=wish.options)
                translations = await self._service.on_text(lambda: [text.text for text in translated])
            for place, translation in zip(own, translations, strict=True):
                found[place] = translation

        await asyncio.gather(*(translate(way, own) for way, own in places.items()))
        return found

    async def _with_tags(self, way: Way, text: str, wish: _Wish) -> str:
        if wish.tags == "html":
            translated, _ = await translate_document(
                self._service, way, text.encode(), "html", "text", wish.options, wish.ignored
            )
            return translated.decode()
        try:
            tagged = await self._service.on_text(lambda: with_html_tags(text, wish.ignored, wish.splitting))
        except MalformedTagsError:
            refuse(400, "Tag handling parsing failed, please check input.")
        translated, _ = await translate_document(
            self._service, way, tagged.html.encode(), "html", "text", wish.options, xhtml=True
        )
        return tagged.restore(translated.decode())


class _DeepLAbout:
    def __init__(self, state: DeepLState) -> None:
        self._state, self._service = state, state.service

    async def languages(self, request: Request) -> Any:
        """The languages that texts may be in, and with type=target those to translate into."""
        values = await read(self._state, request)
        if values.one_of("type", ("source", "target"), "source") == "source":
            codes = sources_of(self._service)
            return [{"language": code.upper(), "name": language_name(code)} for code in codes]
        found = [
            variant
            for code in targets_of(self._service)
            for variant in _VARIANTS.get(code, ((code.upper(), language_name(code)),))
        ]
        return [{"language": code, "name": name, "supports_formality": False} for code, name in found]

    async def usage(self, request: Request) -> Any:
        """Characters that this key has sent since the service was started; there is no limit."""
        values = await read(self._state, request)
        return {"character_count": self._state.characters.get(values.owner, 0), "character_limit": UNLIMITED}
