"""The API of the pages Training and Compare, under /api/v1: runs and their logs, replays, comparisons, results."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from dragoman.errors import DragomanError
from dragoman.evaluation.compare import differences
from dragoman.serve.answers import ERRORS, event, key_check, while_connected
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.results import read_results
from dragoman.serve.routes.inside import BINARY
from dragoman.serve.routes.translation_models import ApiModel
from dragoman.serve.runs import NobodyWaitsError, WatchedRun
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text

STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}, "description": "Events"}}


class RunInfo(ApiModel):
    name: str
    source: str
    target: str
    serves: Annotated[bool, Field(description="Whether it is what translates this pair, or parses")]
    has_model: bool
    state: str
    step: int
    seconds: float
    steps: int
    minutes: float | None
    checkpoints: list[int]
    best_bleu: float | None


class ReplayQuestion(ApiModel):
    text: Annotated[str, Field(min_length=1)]
    translation: Annotated[
        str | None, Field(max_length=10_000, description="Looked into in place of the checkpoint's own translation")
    ] = None
    step: Annotated[int | None, Field(ge=0, description="Of a kept checkpoint; null: what the run translates with")] = (
        None
    )


class PinnedQuestion(ApiModel):
    source: Annotated[str, Field(min_length=1, max_length=2000)]
    reference: Annotated[str, Field(max_length=2000, description="Scored too; empty: there is none")] = ""


class PinnedQuestions(ApiModel):
    step: Annotated[int, Field(ge=0, description="Of a kept checkpoint")]
    sentences: Annotated[list[PinnedQuestion], Field(min_length=1, max_length=10)]


class PinnedAnswer(ApiModel):
    translation: str
    log_probability: float
    per_token: Annotated[float, Field(description="log-probability of the translation, a token")]
    reference_per_token: Annotated[float | None, Field(description="log-probability of the reference, a token")]


class DifferenceAnswer(ApiModel):
    key: str
    a: Any
    b: Any


class CompareQuestion(ApiModel):
    a: str
    b: str
    sentences: Annotated[int, Field(ge=1, le=10_000)] = 300


class ResultInfo(ApiModel):
    name: str
    kind: str
    title: str
    verdict: str


def make_router(service: Service, keys: Keys) -> APIRouter:
    runs, comparisons, results = _RunRoutes(service), _CompareRoutes(service), _ResultRoutes(service)
    router = APIRouter(prefix="/api/v1", tags=["Runs"], responses=ERRORS, dependencies=[Depends(key_check(keys))])
    router.get("/runs")(runs.all_runs)
    router.get("/runs/{name}/events", response_class=StreamingResponse, responses=STREAM)(runs.events)
    router.post("/runs/{name}/replay", response_class=Response, responses=BINARY)(runs.replay)
    router.get("/runs/{name}/sentences")(runs.sentences)
    router.post("/runs/{name}/pinned")(runs.pinned)
    router.get("/compare/{a}/{b}")(comparisons.configuration)
    router.post("/compare", response_class=StreamingResponse, responses=STREAM)(comparisons.compare)
    router.get("/results")(results.results)
    router.get("/results/{name}")(results.result)
    return router


class _RunRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def all_runs(self) -> list[RunInfo]:
        """What is watched: the runs that translate, and those beside them."""
        return [await asyncio.to_thread(self._describe, watched) for watched in self._service.runs.watched.values()]

    def _describe(self, watched: WatchedRun) -> RunInfo:
        history, progress = self._service.runs.progress(watched)
        config = watched.run.read_config().train
        last = history.train[-1] if history.train else {}
        serves = self._service.models.pairs.get(watched.pair.name) == watched.pair
        return RunInfo(
            name=watched.name,
            source=watched.pair.source,
            target=watched.pair.target,
            serves=serves or watched == self._service.parser_run,
            has_model=watched.run.has_model(),
            state=progress.state,
            step=last.get("step", 0),
            seconds=last.get("seconds", 0.0),
            steps=config.steps,
            minutes=config.minutes,
            checkpoints=list(progress.checkpoints),
            best_bleu=max((point["bleu"] for point in history.valid), default=None),
        )

    async def events(self, name: str) -> StreamingResponse:
        """A run's log, from its beginning and then as it grows: `log` with points and alerts, `state` where it changes.

        Points from the first new step on replace those that were told before."""
        watched = _watched(self._service, name)

        async def stream() -> AsyncIterator[str]:
            async for update, progress in self._service.runs.follow(watched):
                if progress is not None:
                    yield event("state", asdict(progress))
                if update is not None:
                    yield event("log", asdict(update))
                if update is None and progress is None:
                    yield ": still here\n\n"

        return _events(stream())

    async def replay(self, name: str, question: ReplayQuestion, request: Request) -> Response:
        """One sentence's translation by a kept checkpoint, and all of its cross-attention: (layers, heads, rows,
        columns) after a header that also has `translation`, `source`, `produced` and `log_probability`."""
        watched = _watched(self._service, name)
        check_text(question.text + (question.translation or ""))
        limit = self._service.settings.character_limit
        if len(question.text) > limit:
            raise HTTPException(422, f"Invalid request: text: {len(question.text)}; at most {limit}")

        def work() -> bytes:
            from torch import stack

            from dragoman.inspection.uint16_codec import pack

            inspection = self._service.runs.replay(watched, question.step, question.text, question.translation)
            return pack(
                stack([weights for site, weights in inspection.weights.items() if site.kind == "cross"]),
                0.0,
                1.0,
                translation=inspection.translation,
                source=inspection.source,
                produced=inspection.produced,
                log_probability=inspection.log_probability,
            )

        packed = await while_connected(request, self._service.with_torch(work))
        return Response(packed, media_type="application/octet-stream", headers={"cache-control": "no-store"})

    async def sentences(self, name: str) -> list[PinnedQuestion]:
        """Five sentences of the run's validation set, to be watched while it learns; none where it has no such set."""
        watched = _watched(self._service, name)
        found = await asyncio.to_thread(self._service.runs.sentences, watched)
        return [PinnedQuestion(source=source, reference=reference) for source, reference in found]

    async def pinned(self, name: str, question: PinnedQuestions, request: Request) -> list[PinnedAnswer]:
        """Sentences as a kept checkpoint translates them, and how probable it finds their references: the same text at
        every checkpoint, so that its figures are of one thing."""
        watched = _watched(self._service, name)
        pairs = [(one.source, one.reference) for one in question.sentences]
        check_text("".join(source + reference for source, reference in pairs))
        runs = self._service.runs
        found = await while_connected(
            request, self._service.with_torch(lambda: runs.pinned(watched, question.step, pairs))
        )
        return [PinnedAnswer.model_validate(one) for one in found]


class _CompareRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def configuration(self, a: str, b: str) -> list[DifferenceAnswer]:
        """The settings in which two runs differ."""
        configs = [_watched(self._service, name).run.read_config() for name in (a, b)]
        return [DifferenceAnswer.model_validate(difference) for difference in differences(*configs)]

    async def compare(self, question: CompareQuestion) -> StreamingResponse:
        """Both runs translate the test set, or validation pairs that they share: `progress`, then `done` with the
        report of `dragoman compare`, or `error`. Whoever leaves stops it."""
        first, second = _watched(self._service, question.a), _watched(self._service, question.b)
        loop, steps = asyncio.get_running_loop(), asyncio.Queue[tuple[int, int] | None]()
        client_left = False

        def report(done: int, total: int) -> None:
            if client_left:
                raise NobodyWaitsError
            loop.call_soon_threadsafe(steps.put_nowait, (done, total))

        async def stream() -> AsyncIterator[str]:
            nonlocal client_left
            runs, translator_of = self._service.runs, self._service.models.translator_of
            work = asyncio.ensure_future(
                asyncio.to_thread(runs.compare, first, second, translator_of, question.sentences, report)
            )
            work.add_done_callback(lambda _: steps.put_nowait(None))
            try:
                while (step := await steps.get()) is not None:
                    yield event("progress", {"done": step[0], "total": step[1]})
                yield event("done", work.result().to_dict())
            except OverloadedError as error:
                yield event("error", {"error": "another comparison is under way", "retry_after": error.retry_after})
            except DragomanError as error:
                yield event("error", {"error": str(error), "retry_after": 0})
            finally:
                client_left = True
                if work.done() and not work.cancelled():
                    work.exception()  # taken note of: asyncio would warn of one that nobody asked for

        return _events(stream())


class _ResultRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def results(self) -> list[ResultInfo]:
        """Reports of comparisons and experiments in the directories of --results."""
        found = await asyncio.to_thread(read_results, self._service.results)
        return [
            ResultInfo(name=result.name, kind=result.kind, title=result.title, verdict=result.verdict)
            for result in found.values()
        ]

    async def result(self, name: str) -> dict[str, Any]:
        """One of them, as it is in its file."""
        found = await asyncio.to_thread(read_results, self._service.results)
        if name not in found:
            raise HTTPException(404, f"there is no result {name}; look at /api/v1/results")
        return found[name].content


def _watched(service: Service, name: str) -> WatchedRun:
    watched = service.runs.watched
    if name not in watched:
        raise HTTPException(404, f"there is no run {name}; served: {', '.join(watched)}")
    return watched[name]


def _events(stream: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store"})
