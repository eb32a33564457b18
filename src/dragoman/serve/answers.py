"""Answers that all routes share: errors, server-sent events, the check of a key; and work that stops when its client
leaves."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from dragoman.errors import DataError, DragomanError, MissingPackageError, UsageError, missing_package
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.security import Keys, RefusedError, problem

T = TypeVar("T")


class Problem(BaseModel):
    """What is answered when something is wrong."""

    error: str


_STATUSES = {
    400: "Invalid request",
    401: "An API key is needed",
    403: "Refused",
    404: "Not found",
    408: "The request arrived too slowly",
    413: "The request is too large",
    421: "Another host was meant",
    422: "A value is missing or not allowed",
    429: "Too many requests; Retry-After says when to come again",
    500: "An error of this service",
    503: "Too much is waiting; Retry-After says when to come again",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description} for status, description in _STATUSES.items()
}


class ClientLeftError(Exception):
    """The client closed its connection before it was answered."""


def key_check(keys: Keys) -> Callable[[Request], Awaitable[None]]:
    """Makes a dependency for routes that need a key, where keys are required."""

    async def require_key(request: Request) -> None:
        if not keys.required:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise HTTPException(401, "An API key is needed: Authorization: Bearer KEY", {"www-authenticate": "Bearer"})
        if not keys.holds(given.strip()):
            raise HTTPException(403, "Invalid API key")

    return require_key


def event(name: str, data: Any) -> str:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Waits for the result of work. When the client leaves first, the work is cancelled and leaves the queue."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientLeftError
        return working.result()
    finally:
        for task in (working, leaving):
            if not task.done():
                task.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def answer_errors(app: FastAPI) -> None:
    """Makes every error one sentence in JSON, which repeats nothing of the request but names and sizes."""

    def answer(request: Request, status: int, error: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse(problem(request.url.path, error), status, headers)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.detail, dict):  # what DeepL's clients read: a message and its details
            return JSONResponse(error.detail, error.status_code)
        return answer(request, error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        message = str(first["msg"]).encode(errors="replace").decode()
        return answer(request, 422, f"Invalid request: {where + ': ' if where else ''}{message}")

    @app.exception_handler(OverloadedError)
    async def overloaded(request: Request, error: OverloadedError) -> JSONResponse:
        return answer(request, 503, f"Too busy: {error}", {"retry-after": str(error.retry_after)})

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> JSONResponse:
        return answer(
            request, error.status, error.error, {name.decode(): value.decode() for name, value in error.headers}
        )

    @app.exception_handler(ClientLeftError)
    async def left(request: Request, __: ClientLeftError) -> JSONResponse:
        return answer(request, 499, "The client left")

    @app.exception_handler(MissingPackageError)
    async def not_installed(request: Request, error: MissingPackageError) -> JSONResponse:
        return answer(request, 501, str(error))

    @app.exception_handler(ModuleNotFoundError)
    async def not_there(request: Request, error: ModuleNotFoundError) -> JSONResponse:
        return answer(request, 501, str(missing_package(error) or error))

    @app.exception_handler(DragomanError)
    async def explained(request: Request, error: DragomanError) -> JSONResponse:
        return answer(request, 400 if isinstance(error, UsageError | DataError) else 500, str(error))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, __: Exception) -> JSONResponse:
        return answer(request, 500, "Cannot translate text: an error of this service; its operator finds it in the log")
