"""The glossaries of DeepL's API: of two languages each (v2), and of several (v3). Both versions see the same ones."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from dragoman.serve.routes.deepl_request import DeepLState, Values, glossary_of, read, refuse, ways_of
from dragoman.serve.terms import (
    Entries,
    EntriesError,
    FullError,
    KeptGlossary,
    Languages,
    check_count,
    read_entries,
    write_entries,
)

TSV = "text/tab-separated-values"


def make_router(state: DeepLState) -> APIRouter:
    shared = _Glossaries(state)
    second, third = _SecondVersion(state, shared), _ThirdVersion(state, shared)
    router = APIRouter()
    router.get("/v2/glossary-language-pairs")(shared.language_pairs)
    router.post("/v2/glossaries", status_code=201)(second.create)
    router.get("/v2/glossaries")(second.list_all)
    router.get("/v2/glossaries/{glossary_id}")(second.get)
    router.get("/v2/glossaries/{glossary_id}/entries")(second.entries)
    router.post("/v3/glossaries", status_code=201)(third.create)
    router.get("/v3/glossaries")(third.list_all)
    router.get("/v3/glossaries/{glossary_id}")(third.get)
    router.patch("/v3/glossaries/{glossary_id}")(third.change)
    router.get("/v3/glossaries/{glossary_id}/entries")(third.entries)
    router.put("/v3/glossaries/{glossary_id}/dictionaries")(third.replace)
    router.delete("/v3/glossaries/{glossary_id}/dictionaries", status_code=204)(third.delete_dictionary)
    for version in ("v2", "v3"):
        router.delete(f"/{version}/glossaries/{{glossary_id}}", status_code=204)(shared.delete)
    return router


class _Glossaries:
    """What both versions do."""

    def __init__(self, state: DeepLState) -> None:
        self._state = state

    async def language_pairs(self, request: Request) -> Any:
        """The languages that a glossary may be for."""
        await read(self._state, request)
        pairs = sorted({_base(way.source, way.target) for way in ways_of(self._state.service)})
        return {"supported_languages": [{"source_lang": source, "target_lang": target} for source, target in pairs]}

    async def delete(self, request: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        values = await read(self._state, request)
        self._state.glossaries.remove(glossary_of(self._state, values, glossary_id))
        return Response(status_code=204)

    def add(self, values: Values, dictionaries: dict[Languages, Entries]) -> KeptGlossary:
        name = values.text("name").strip()
        if not name:
            refuse(400, "Bad request", "Missing or invalid argument: name")
        glossary = KeptGlossary(name, values.owner, dictionaries)
        try:
            self._state.glossaries.add(glossary)
        except FullError:
            refuse(456, "Quota exceeded: no more glossaries are kept; delete some")
        return glossary

    def languages(self, values: Values) -> Languages:
        source, target = _base(values.needed("source_lang"), values.needed("target_lang"))
        if (source, target) not in {_base(way.source, way.target) for way in ways_of(self._state.service)}:
            refuse(400, "Unsupported glossary source and target language pair")
        return source, target

    async def dictionary(self, values: Values) -> tuple[Languages, Entries]:
        """The languages and the entries that a request gives."""
        languages = self.languages(values)
        text, form = values.needed("entries"), values.one_of("entries_format", ("tsv", "csv"), "tsv")
        try:
            return languages, await self._state.service.on_text(lambda: read_entries(text, form))
        except EntriesError as error:
            refuse(400, "Invalid glossary entries provided", str(error))

    def check_room(self, entries: Entries) -> None:
        try:
            self._state.glossaries.check_room(sum(len(source) + len(target) for source, target in entries.items()))
        except FullError:
            refuse(456, "Quota exceeded: the glossaries are too large together; delete some")


class _SecondVersion:
    """A glossary has one dictionary."""

    def __init__(self, state: DeepLState, shared: _Glossaries) -> None:
        self._state, self._shared = state, shared

    async def create(self, request: Request) -> Any:
        """Create a glossary for two languages."""
        values = await read(self._state, request)
        languages, entries = await self._shared.dictionary(values)
        return _info_2(self._shared.add(values, {languages: entries}))

    async def list_all(self, request: Request) -> Any:
        """List the glossaries for two languages."""
        values = await read(self._state, request)
        own = (one for one in self._state.glossaries.of(values.owner) if len(one.dictionaries) == 1)
        return {"glossaries": list(map(_info_2, own))}

    async def get(self, request: Request, glossary_id: str) -> Any:
        """What is known of a glossary."""
        return _info_2(await self._one(request, glossary_id))

    async def entries(self, request: Request, glossary_id: str) -> Response:
        """The entries of a glossary, as tab-separated values."""
        glossary = await self._one(request, glossary_id)
        if not any(kind in request.headers.get("accept", TSV) for kind in (TSV, "*/*", "text/*")):
            refuse(415, f"No supported media type specified in Accept header; it can be {TSV}")
        (entries,) = glossary.dictionaries.values()
        return Response(write_entries(entries), media_type=f"{TSV}; charset=utf-8")

    async def _one(self, request: Request, name: str) -> KeptGlossary:
        found = glossary_of(self._state, await read(self._state, request), name)
        if len(found.dictionaries) != 1:
            refuse(404, "Glossary not found", "It is for several languages; ask with /v3/glossaries")
        return found


class _ThirdVersion:
    """A glossary has a dictionary for each two languages."""

    def __init__(self, state: DeepLState, shared: _Glossaries) -> None:
        self._state, self._shared = state, shared

    async def create(self, request: Request) -> Any:
        """Create a glossary of dictionaries."""
        values = await read(self._state, request)
        dictionaries = await self._dictionaries(values)
        if not dictionaries:
            refuse(400, "Glossary dictionaries must be provided")
        return _info_3(self._shared.add(values, dictionaries))

    async def list_all(self, request: Request) -> Any:
        """List the glossaries."""
        values = await read(self._state, request)
        return {"glossaries": list(map(_info_3, self._state.glossaries.of(values.owner)))}

    async def get(self, request: Request, glossary_id: str) -> Any:
        """What is known of a glossary."""
        values = await read(self._state, request)
        return _info_3(glossary_of(self._state, values, glossary_id))

    async def change(self, request: Request, glossary_id: str) -> Any:
        """Give a glossary another name, or more entries: those with a source term that it has take its place."""
        values = await read(self._state, request)
        glossary = glossary_of(self._state, values, glossary_id)
        dictionaries = await self._dictionaries(values)
        for entries in dictionaries.values():
            self._shared.check_room(entries)
        together = {each: glossary.dictionaries.get(each, {}) | entries for each, entries in dictionaries.items()}
        try:
            for entries in together.values():
                check_count(entries)
        except EntriesError as error:
            refuse(400, "Invalid glossary entries provided", str(error))
        for languages, entries in together.items():
            glossary.put(languages, entries)
        glossary.name = values.text("name").strip() or glossary.name
        return _info_3(glossary)

    async def entries(self, request: Request, glossary_id: str) -> Any:
        """The entries for two languages."""
        values = await read(self._state, request)
        glossary = glossary_of(self._state, values, glossary_id)
        source, target = languages = self._shared.languages(values)
        known = {"source_lang": source, "target_lang": target, "entries_format": "tsv"}
        return {"dictionaries": [known | {"entries": write_entries(_dictionary(glossary, languages))}]}

    async def replace(self, request: Request, glossary_id: str) -> Any:
        """Give a glossary these entries for two languages, in place of those that it has."""
        values = await read(self._state, request)
        glossary = glossary_of(self._state, values, glossary_id)
        languages, entries = await self._shared.dictionary(values)
        self._shared.check_room(entries)
        glossary.put(languages, entries)
        return _info_of(languages, entries)

    async def delete_dictionary(self, request: Request, glossary_id: str) -> Response:
        """Delete the entries for two languages."""
        values = await read(self._state, request)
        glossary = glossary_of(self._state, values, glossary_id)
        languages = self._shared.languages(values)
        _dictionary(glossary, languages)
        del glossary.dictionaries[languages]
        return Response(status_code=204)

    async def _dictionaries(self, values: Values) -> dict[Languages, Entries]:
        found: dict[Languages, Entries] = {}
        for given in values.given.get("dictionaries", []):
            if not isinstance(given, dict):
                refuse(400, "Bad request", "Missing or invalid argument: dictionaries")
            one = Values(values.owner, {name: [value] for name, value in given.items()})
            languages, entries = await self._shared.dictionary(one)
            found[languages] = entries
        return found


def _dictionary(glossary: KeptGlossary, languages: Languages) -> Entries:
    found = glossary.dictionaries.get(languages)
    if found is None:
        refuse(404, "Dictionary not found")
    return found


def _base(source: str, target: str) -> Languages:
    """A glossary is for languages, not for their variants."""
    return source.lower().partition("-")[0], target.lower().partition("-")[0]


def _created(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _info_2(glossary: KeptGlossary) -> dict[str, Any]:
    ((languages, entries),) = glossary.dictionaries.items()
    known = {"glossary_id": glossary.id, "name": glossary.name, "ready": True}
    return known | _info_of(languages, entries) | {"creation_time": _created(glossary.created)}


def _info_3(glossary: KeptGlossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "dictionaries": [_info_of(languages, entries) for languages, entries in glossary.dictionaries.items()],
        "creation_time": _created(glossary.created),
    }


def _info_of(languages: Languages, entries: Entries) -> dict[str, Any]:
    return {"source_lang": languages[0], "target_lang": languages[1], "entry_count": len(entries)}
