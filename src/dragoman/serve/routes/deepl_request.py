"""What the routes of DeepL's API share: the key, the values of a request, its languages, errors in DeepL's words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fastapi import HTTPException, Request

from dragoman.serve.pairs import Way
from dragoman.serve.routes.request_values import Upload, read_lists
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.terms import GlossaryStore, KeptGlossary
from dragoman.serve.texts import NO_TERMS, Terms, check_text

SCHEME = "deepl-auth-key"
# Wishes that no run can fulfil: a client that sends one is told so, which is better than another text than it expects.
_REFUSED = ("style_id", "translation_memory_id", "custom_instructions")
_FORMALITIES = ("default", "more", "less", "prefer_more", "prefer_less")
_MOST_GLOSSARIES = 5  # of a request


def refuse(status: int, message: str, detail: str | None = None) -> NoReturn:
    raise HTTPException(status, {"message": message} | ({} if detail is None else {"detail": detail}))


@dataclass
class DeepLState:
    """What the service keeps for DeepL's clients: their glossaries, and how many characters each key has sent."""

    service: Service
    keys: Keys
    glossaries: GlossaryStore = field(default_factory=GlossaryStore)
    characters: dict[str, int] = field(default_factory=dict)

    def count(self, owner: str, characters: int) -> None:
        self.characters[owner] = self.characters.get(owner, 0) + characters


@dataclass(frozen=True)
class Values:
    """The values of a request, each a list, and whose they are: the key, or "" where none is needed."""

    owner: str
    given: Mapping[str, list[Any]]

    def text(self, name: str, default: str = "") -> str:
        """The last value of a name as text: valid Unicode, so that it can be kept and answered."""
        values = self.given.get(name) or [default]
        found = str(values[-1]) if isinstance(values[-1], str | int | float) else default
        check_text(found)
        return found

    def needed(self, name: str) -> str:
        found = self.text(name)
        if not found:
            refuse(400, f"Parameter '{name}' not specified.")
        return found

    def one_of(self, name: str, allowed: Iterable[str], default: str) -> str:
        found = self.text(name, default).lower()
        if found not in allowed:
            refuse(400, f"Value for '{name}' not supported.")
        return found

    def strings(self, name: str) -> list[str]:
        values = self.given.get(name, [])
        if not all(isinstance(value, str) for value in values):
            refuse(400, f"Value for '{name}' not supported.")
        return values

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("1", "true")

    def upload(self, name: str) -> Upload | None:
        found = (self.given.get(name) or [None])[-1]
        return found if isinstance(found, Upload) else None


async def read(state: DeepLState, request: Request) -> Values:
    """The values of a request with a valid key. The key comes in a header, as it once did in the values."""
    given = await read_lists(state.service, request)
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    key = key.strip() if scheme.lower() == SCHEME else ""
    if not key and isinstance(in_values := (given.get("auth_key") or [""])[-1], str):
        key = in_values
    if not state.keys.required:
        return Values("", given)
    if not key:
        refuse(403, "Invalid or missing Authorization header; send Authorization: DeepL-Auth-Key KEY")
    if not state.keys.holds(key):
        refuse(403, "Authorization failure, check auth_key")
    return Values(key, given)


def check_wishes(values: Values, target: str) -> None:
    """Refuses wishes that would change the text and cannot be met. `prefer_more` is met by the run's own way."""
    formality = values.one_of("formality", _FORMALITIES, "default")
    if formality in ("more", "less"):
        refuse(400, f"Target language '{target.upper()}' doesn't support formality.")
    for name in _REFUSED:
        if any(values.given.get(name, [])):
            refuse(400, f"Parameter '{name}' is not supported by this service.")


def served_code(wanted: str, served: Sequence[str]) -> str | None:
    """The served language that a code of DeepL's stands for: itself, else the language without its variant (EN-GB: en),
    else the first variant of it (PT: pt-br)."""
    wanted = wanted.lower().replace("_", "-")
    base = wanted.partition("-")[0]
    same = {"nb": "no", "no": "nb"}.get(base, base)
    candidates = [wanted, base, same, *(code for code in served if code.partition("-")[0] == base)]
    return next((code for code in candidates if code in served), None)


def sources_of(service: Service) -> list[str]:
    return sorted({way.source for way in ways_of(service)})


def targets_of(service: Service) -> list[str]:
    return sorted({way.target for way in ways_of(service)})


def ways_of(service: Service) -> list[Way]:
    return [*service.models.pairs.values(), *service.models.pivots.values()]


def target_language(service: Service, values: Values) -> str:
    wanted = values.needed("target_lang")
    if service.why_untranslated:
        refuse(503, service.why_untranslated)
    found = served_code(wanted, targets_of(service))
    if found is None:
        refuse(400, "Value for 'target_lang' not supported.")
    return found


def source_language(service: Service, values: Values) -> str | None:
    """The language that the request names; None: it is to be detected."""
    wanted = values.text("source_lang")
    if not wanted:
        return None
    found = served_code(wanted, service.languages)
    if found is None:
        refuse(400, "Value for 'source_lang' not supported.")
    return found


def way_between(service: Service, source: str, target: str) -> Way | None:
    """How to translate; None where both are the same language."""
    if source == target:
        return None
    way = service.models.way(source, target)
    if way is None:
        refuse(400, f"Translation from '{source.upper()}' to '{target.upper()}' is not supported.")
    return way


async def terms_of(state: DeepLState, values: Values, source: str | None, target: str) -> Terms:
    """The terms of the glossaries that a request names."""
    names = [name for text in values.strings("glossary_ids") for name in text.split(",") if name]
    if single := values.text("glossary_id"):
        if names:
            refuse(400, "Parameters 'glossary_id' and 'glossary_ids' cannot be used together.")
        names = [single]
    if not names:
        return NO_TERMS
    if source is None:
        refuse(400, "Use of a glossary requires the source_lang parameter to be specified")
    if len(names) > _MOST_GLOSSARIES:
        refuse(400, f"Parameter 'glossary_ids' has more than {_MOST_GLOSSARIES} values.")
    glossaries = [glossary_of(state, values, name) for name in names]
    base = source.partition("-")[0], target.partition("-")[0]
    if not all(base in glossary.dictionaries for glossary in glossaries):
        refuse(400, f"Glossary has no dictionary from '{base[0].upper()}' to '{base[1].upper()}'.")
    return await state.glossaries.terms(glossaries, base, state.service.on_text)


def glossary_of(state: DeepLState, values: Values, name: str) -> KeptGlossary:
    """A glossary of this key; another's is not there."""
    found = state.glossaries.get(values.owner, name)
    if found is None:
        refuse(404, "Glossary not found")
    return found
