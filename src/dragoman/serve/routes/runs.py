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
from dragoman.serve.routes.translation import ApiModel
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
    step: Annotated[int | None, Field(ge=0, description="Of a kept checkpoint; null: what the run translates with")] = (
        None
    )


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
    router = APIRouter(prefix="/api/v1", tags=["Runs"], responses=ERRORS, dependencies=[Depends(key_check(keys))])
    runs, settings = service.runs, service.settings

    def watched(name: str) -> WatchedRun:
        if name not in runs.watched:
            raise HTTPException(404, f"there is no run {name}; served: {', '.join(runs.watched)}")
        return runs.watched[name]

    def describe(one: WatchedRun) -> RunInfo:
        history, progress = runs.progress(one)
        config = one.run.read_config().train
        last = history.train[-1] if history.train else {}
        return RunInfo(
            name=one.name,
            source=one.pair.source,
            target=one.pair.target,
            serves=service.models.pairs.get(one.pair.name) == one.pair or one == service.parser_run,
            has_model=one.run.has_model(),
            state=progress.state,
            step=last.get("step", 0),
            seconds=last.get("seconds", 0.0),
            steps=config.steps,
            minutes=config.minutes,
            checkpoints=list(progress.checkpoints),
            best_bleu=max((point["bleu"] for point in history.valid), default=None),
        )

    @router.get("/runs")
    async def all_runs() -> list[RunInfo]:
        """What is watched: the runs that translate, and those beside them."""
        return [await asyncio.to_thread(describe, one) for one in runs.watched.values()]

    @router.get("/runs/{name}/events", response_class=StreamingResponse, responses=STREAM)
    async def events(name: str) -> StreamingResponse:
        """A run's log, from its beginning and then as it grows: `log` with points and alerts, `state` where it changes.

        Points from the first new step on replace those that were told before."""
        one = watched(name)

        async def stream() -> AsyncIterator[str]:
            async for update, progress in runs.follow(one):
                if progress is not None:
                    yield event("state", asdict(progress))
                if update is not None:
                    yield event("log", asdict(update))
                if update is None and progress is None:
                    yield ": still here\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    @router.post("/runs/{name}/replay", response_class=Response, responses=BINARY)
    async def replay(name: str, question: ReplayQuestion, request: Request) -> Response:
        """One sentence's translation by a kept checkpoint, and all of its cross-attention: (layers, heads, rows,
        columns) after a header that also has `translation`, `source`, `produced` and `log_probability`."""
        one = watched(name)
        check_text(question.text)
        if len(question.text) > settings.character_limit:
            raise HTTPException(422, f"Invalid request: text: {len(question.text)}; at most {settings.character_limit}")

        def work() -> bytes:
            from torch import stack

            from dragoman.inspection.uint16_codec import pack

            seen = runs.replay(one, question.step, question.text)
            return pack(
                stack([weights for site, weights in seen.weights.items() if site.kind == "cross"]),
                0.0,
                1.0,
                translation=seen.translation,
                source=seen.source,
                produced=seen.produced,
                log_probability=seen.log_probability,
            )

        packed = await while_connected(request, service.with_torch(work))
        return Response(packed, media_type="application/octet-stream", headers={"cache-control": "no-store"})

    @router.get("/compare/{a}/{b}")
    async def configuration(a: str, b: str) -> list[DifferenceAnswer]:
        """The settings in which two runs differ."""
        configs = [watched(name).run.read_config() for name in (a, b)]
        return [DifferenceAnswer.model_validate(one) for one in differences(*configs)]

    @router.post("/compare", response_class=StreamingResponse, responses=STREAM)
    async def compare(question: CompareQuestion) -> StreamingResponse:
        """Both runs translate the test set, or validation pairs that they share: `progress`, then `done` with the
        report of `dragoman compare`, or `error`. Whoever leaves stops it."""
        first, second = watched(question.a), watched(question.b)
        loop, said = asyncio.get_running_loop(), asyncio.Queue[tuple[int, int] | None]()
        left = False

        def told(done: int, total: int) -> None:
            if left:
                raise NobodyWaitsError
            loop.call_soon_threadsafe(said.put_nowait, (done, total))

        async def stream() -> AsyncIterator[str]:
            nonlocal left
            work = asyncio.ensure_future(
                asyncio.to_thread(runs.compare, first, second, service.models.translator_of, question.sentences, told)
            )
            work.add_done_callback(lambda _: said.put_nowait(None))
            try:
                while (now := await said.get()) is not None:
                    yield event("progress", {"done": now[0], "total": now[1]})
                yield event("done", work.result().to_dict())
            except OverloadedError as error:
                yield event("error", {"error": "another comparison is under way", "retry_after": error.retry_after})
            except DragomanError as error:
                yield event("error", {"error": str(error), "retry_after": 0})
            finally:
                left = True
                if work.done() and not work.cancelled():
                    work.exception()  # seen

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    @router.get("/results")
    async def results() -> list[ResultInfo]:
        """Reports of comparisons and experiments in the directories of --results."""
        found = await asyncio.to_thread(read_results, service.results)
        return [
            ResultInfo(name=one.name, kind=one.kind, title=one.title, verdict=one.verdict) for one in found.values()
        ]

    @router.get("/results/{name}")
    async def result(name: str) -> dict[str, Any]:
        """One of them, as it is in its file."""
        found = await asyncio.to_thread(read_results, service.results)
        if name not in found:
            raise HTTPException(404, f"there is no result {name}; look at /api/v1/results")
        return found[name].content

    return router
