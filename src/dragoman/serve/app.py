"""The service as one ASGI application, and the process that runs it."""

import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response

from dragoman.errors import DragomanError
from dragoman.serve import pages
from dragoman.serve.answers import answer_errors
from dragoman.serve.connection import Connection
from dragoman.serve.metrics import CONTENT_TYPE
from dragoman.serve.pairs import ServedPair
from dragoman.serve.routes import deepl, inside, lessons, libretranslate, opuscat, parsing, runs, translation
from dragoman.serve.security import App, Guard, Keys, RateLimiter
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings

MOST_NAMED = 6  # language pairs of a run, in the line that says what is served


def make_app(service: Service) -> App:
    """All routes behind the guard."""
    settings = service.settings
    keys, limiter = Keys(settings.api_keys), RateLimiter(settings.rate_limit)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()

    app = FastAPI(
        title="Dragoman",
        description="Translation by runs of Dragoman: the API of LibreTranslate, and one that explains.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # that page would load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    answer_errors(app)
    app.include_router(libretranslate.make_router(service, keys, limiter))
    app.include_router(deepl.make_router(service, keys, limiter))
    app.include_router(opuscat.make_router(service, keys, limiter))
    app.include_router(translation.make_router(service, keys))
    app.include_router(inside.make_router(service, keys))
    app.include_router(lessons.make_router(service, keys))
    app.include_router(parsing.make_router(service, keys))
    app.include_router(runs.make_router(service, keys))
    app.include_router(pages.make_router(service.models.expect_explanations))

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        if not settings.metrics:
            raise HTTPException(404, "Not Found")
        if keys.required and not keys.holds(request.headers.get("authorization", "").removeprefix("Bearer ")):
            raise HTTPException(403, "Invalid API key")
        return Response(service.metrics.exposition(), media_type=CONTENT_TYPE)

    return Guard(app, settings, service.metrics, limiter)


class Server(uvicorn.Server):
    """uvicorn, which calls `ready` with its address when it listens, and `leaving` when it begins to shut down."""

    def __init__(self, app: App, settings: Settings, ready: Callable[[str], None], leaving: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http=partial(Connection, settings.header_seconds),  # type: ignore[arg-type]
                log_level="critical",  # the guard logs what fails; uvicorn would log the text with it
                access_log=False,  # addresses of requests hold text
                server_header=False,
                date_header=True,
                proxy_headers=False,  # any client could forge them
                limit_concurrency=settings.connection_limit,
                timeout_keep_alive=30,
                ws="none",
                lifespan="on",
            )
        )
        self._ready = ready
        self._leaving = leaving

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                self._ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
                return

    async def shutdown(self, sockets: Any = None) -> None:
        self._leaving()
        await super().shutdown(sockets)


def run(service: Service, say: Callable[[str], None]) -> None:
    """Serves until a signal stops it; what was accepted by then is answered first."""

    def stop(*_: object) -> NoReturn:
        sys.exit(0)

    settings = service.settings
    service.models.warm_up()
    server = Server(
        make_app(service),
        settings,
        lambda address: say(f"serving {served_in_words(service)} at {address}"),
        service.runs.close,
    )
    # uvicorn handles the signal itself, finishes, and then raises it again for the handler that was there before.
    signal.signal(signal.SIGTERM, stop)
    try:
        server.run()
    except SystemExit as left:
        if left.code not in (0, None):
            raise DragomanError(
                f"serve: {settings.host} port {settings.port} cannot be used; is it taken? give another --port"
            ) from None
        raise


def served_in_words(service: Service) -> str:
    """What is served, for the line that says so when the service has started."""
    working = list(service.models.pairs.values())
    served = ", ".join(_run_in_words(run, working) for run in dict.fromkeys(pair.run for pair in working))
    if pivots := service.models.pivots:
        named = [f"{way.name} through {way.pivot}" for way in islice(pivots.values(), MOST_NAMED)]
        served = ", ".join((served, *named)) + _more(len(pivots))
    if service.parser_run is not None and service.models.has_parser:
        working.append(service.parser_run.pair)
        served = ", ".join(filter(None, (served, f"a parser ({service.parser_run.pair.run})")))
    at_work = {pair.run for pair in working}
    others = [str(one.pair.run) for one in service.runs.watched.values() if one.pair.run not in at_work]
    if not served:
        return f"the training of {', '.join(others)}, which has no model yet,"
    return f"{served}, with {', '.join(others)} to compare," if others else served


def _run_in_words(run: Path, pairs: Sequence[ServedPair]) -> str:
    names = [pair.name for pair in pairs if pair.run == run]
    return f"{', '.join(names[:MOST_NAMED])}{_more(len(names))} ({run})"


def _more(count: int) -> str:
    return f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
