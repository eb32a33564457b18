"""Reads the values of a request that come as JSON, as a form with files, or in the query, as LibreTranslate's may."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request

from dragoman.serve.service import Service

FIELDS = 1000  # of a form


@dataclass(frozen=True)
class Upload:
    """A document that a client sent."""

    name: str  # as the client calls it: only its ending is looked at
    content: bytes


def refuse(error: str) -> NoReturn:
    raise HTTPException(400, error)


async def read_values(service: Service, request: Request) -> Mapping[str, Any]:
    """The values of a JSON object, or of a form and the query together."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json")):
        return await _read_json(service, request)
    if media_type == "application/x-www-form-urlencoded":
        values = await _read_urlencoded(service, request)
    else:
        values = await _read_multipart(request)
    values = {**values, **request.query_params}
    if isinstance(values.get("q"), str):
        values["q"] = "\n".join(values["q"].splitlines())  # forms end their lines in two ways
    return values


async def read_lists(service: Service, request: Request) -> dict[str, list[Any]]:
    """The values of a JSON object, or of a form and the query together, each as a list: a form may have a name several
    times. A request with GET may have a form, too."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json" and await request.body():
        values = await _read_json(service, request)
        return {name: value if isinstance(value, list) else [value] for name, value in values.items()}
    pairs: list[tuple[str, Any]] = []
    if media_type == "multipart/form-data":
        pairs += await _multipart_pairs(request)
    else:
        pairs += await _urlencoded_pairs(service, request)
    found: dict[str, list[Any]] = {}
    for name, value in [*pairs, *request.query_params.multi_items()]:
        found.setdefault(name, []).append(value)
    return found


async def _read_json(service: Service, request: Request) -> dict[str, Any]:
    try:
        values = await service.on_text(partial(json.loads, await request.body()))
    except (ValueError, RecursionError):
        refuse("The browser (or proxy) sent a request that this server could not understand.")
    if not isinstance(values, dict):
        refuse("Invalid JSON format")
    return values


async def _read_urlencoded(service: Service, request: Request) -> dict[str, Any]:
    return dict(await _urlencoded_pairs(service, request))


async def _urlencoded_pairs(service: Service, request: Request) -> list[tuple[str, str]]:
    # Not by request.form(), which takes what was not percent-encoded for Latin-1: `curl -d q=...` sends UTF-8.
    body = (await request.body()).decode(errors="replace")
    try:
        return await service.on_text(lambda: parse_qsl(body, keep_blank_values=True, max_num_fields=FIELDS))
    except ValueError:
        refuse(f"Invalid request: more than {FIELDS} fields")


async def _read_multipart(request: Request) -> dict[str, Any]:
    return dict(await _multipart_pairs(request))


async def _multipart_pairs(request: Request) -> list[tuple[str, Any]]:
    async with request.form() as form:
        return [
            (name, value if isinstance(value, str) else Upload(value.filename or "", await value.read()))
            for name, value in form.multi_items()
        ]
