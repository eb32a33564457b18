"""Serves the page's files. They are read once: the path in a request is looked up in a table, and never opened."""

import hashlib
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response

from dragoman.web import WEB

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}


@dataclass(frozen=True)
class _Page:
    content: bytes
    media_type: str
    tag: str


def make_router(opened: Callable[[], None]) -> APIRouter:
    """`opened` is called when someone opens the page."""
    router = APIRouter(include_in_schema=False)
    pages = {path.relative_to(WEB).as_posix(): _read(path) for path in WEB.rglob("*") if path.is_file()}

    @router.get("/")
    async def index(request: Request) -> Response:
        opened()
        return _answer(pages["index.html"], request)

    @router.get("/web/{name:path}")
    async def file(name: str, request: Request) -> Response:
        if name not in pages:
            raise HTTPException(404, "Not Found")
        return _answer(pages[name], request)

    @router.get("/favicon.ico")
    async def icon(request: Request) -> Response:
        return _answer(pages["icon.svg"], request)

    return router


def _read(path: Path) -> _Page:
    content = path.read_bytes()
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain; charset=utf-8"
    return _Page(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _answer(page: _Page, request: Request) -> Response:
    headers = {"etag": page.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == page.tag:
        return Response(status_code=304, headers=headers)
    return Response(page.content, media_type=page.media_type, headers=headers)
