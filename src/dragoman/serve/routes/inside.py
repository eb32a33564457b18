"""/api/v1/inside: what the model computes for a sentence. Attention goes out one sub-layer at a time, packed by
inspection/uint16_codec.py."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from dragoman.errors import UsageError
from dragoman.serve.answers import ERRORS, key_check, while_connected
from dragoman.serve.pairs import ServedPair
from dragoman.serve.routes.inside_models import (
    AttentionQuestion,
    ChangedQuestion,
    ContrastAnswer,
    ContrastQuestion,
    EffectAnswer,
    EffectsQuestion,
    InsideAnswer,
    InsideQuestion,
    InterveneQuestion,
    LensAnswer,
    LensQuestion,
    NeighbourAnswer,
    NeighboursQuestion,
    OutcomeAnswer,
    PageQuestion,
    PositionsQuestion,
)
from dragoman.serve.routes.translation import pair_of
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text

if TYPE_CHECKING:
    from dragoman.inspection.explain import Explainer
    from dragoman.inspection.inspector import Inspector

T = TypeVar("T")
BINARY: dict[int | str, dict[str, object]] = {
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "description": "uint32 length of a JSON header, the header, then uint16 values between its low and high",
    }
}


FILE: dict[int | str, dict[str, object]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page that loads nothing"}
}


def make_router(service: Service, keys: Keys) -> APIRouter:
    routes = _InsideRoutes(service)
    router = APIRouter(
        prefix="/api/v1/inside", tags=["Inside"], responses=ERRORS, dependencies=[Depends(key_check(keys))]
    )
    router.post("")(routes.inside)
    router.post("/attention", response_class=Response, responses=BINARY)(routes.attention)
    router.post("/intervene")(routes.intervene)
    router.post("/effects")(routes.effects)
    router.post("/lens")(routes.lens)
    router.post("/contributions", response_class=Response, responses=BINARY)(routes.contributions)
    router.post("/contrast")(routes.contrast)
    router.post("/page", response_class=Response, responses=FILE)(routes.page)
    router.post("/positions", response_class=Response, responses=BINARY)(routes.positions)
    router.post("/neighbours")(routes.neighbours)
    return router


class _AskedSentence(NamedTuple):
    """The sentence that a question is about: which of the text's sentences, and its translation."""

    pair: ServedPair
    sentences: list[str]
    text: str
    translation: list[str] | str


class _InsideRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._inspectors: dict[str, Inspector] = {}

    async def inside(self, question: ChangedQuestion, request: Request) -> InsideAnswer:
        """One sentence and its translation: tokens, probabilities, and what every head does in numbers."""
        asked = await self._asked_sentence(question, request)

        def work(inspector: "Inspector") -> InsideAnswer:
            from dragoman.inspection.to_json import describe

            inspection = inspector.inspect(asked.text, asked.translation, question.changes)
            where = {"sentences": asked.sentences, "sentence": question.sentence}
            return InsideAnswer.model_validate({**where, **describe(inspector, inspection)})

        return await self._inspect(request, asked.pair, work)

    async def attention(self, question: AttentionQuestion, request: Request) -> Response:
        """All heads of one sub-layer, (heads, rows, columns), in two bytes a number."""
        asked = await self._asked_sentence(question, request)

        def work(inspector: "Inspector") -> bytes:
            from dragoman.inspection.uint16_codec import pack
            from dragoman.model.probe import Site

            inspection = inspector.inspect(asked.text, asked.translation, question.changes)
            site = Site(question.kind, question.layer)
            if site not in inspection.weights:
                raise UsageError(f"Invalid request: {site.kind} layer {site.layer}; the run has no such layer")
            if question.values == "scores":
                return pack(inspection.scores[site], kind=site.kind, layer=site.layer)
            return pack(inspection.weights[site], 0.0, 1.0, kind=site.kind, layer=site.layer)

        return _binary(await self._inspect(request, asked.pair, work))

    async def intervene(self, question: InterveneQuestion, request: Request) -> OutcomeAnswer:
        """Heads off or pinned, the mask dropped: the shown translation's log-probability, and the new translation."""
        asked = await self._asked_sentence(question, request)

        def work(inspector: "Inspector") -> OutcomeAnswer:
            from dragoman.inspection.to_json import describe_outcome

            outcome = inspector.intervene(
                asked.text, question.changes, asked.translation, retranslate=question.retranslate
            )
            return OutcomeAnswer.model_validate(describe_outcome(outcome))

        return await self._inspect(request, asked.pair, work)

    async def effects(self, question: EffectsQuestion, request: Request) -> list[EffectAnswer]:
        """Each head switched off alone: the change in the translation's log-probability, the largest first."""
        asked = await self._asked_sentence(question, request)
        effects = await self._inspect(
            request,
            asked.pair,
            lambda inspector: inspector.effects(
                asked.text, asked.translation, kind=question.kind, layer=question.layer
            ),
        )
        return [EffectAnswer.model_validate(effect) for effect in effects]

    async def lens(self, question: LensQuestion, request: Request) -> LensAnswer:
        """What every layer of the decoder would have said at every position, and which tokens it promotes."""
        asked = await self._asked_sentence(question, request)

        def work(inspector: "Inspector") -> LensAnswer:
            from dragoman.inspection.to_json import describe_lens

            lens = inspector.lens(asked.text, asked.translation, question.changes, question.count)
            return LensAnswer.model_validate(describe_lens(lens))

        return await self._inspect(request, asked.pair, work)

    async def contributions(self, question: ChangedQuestion, request: Request) -> Response:
        """How much each source token and each token said before contributes to each token: in two bytes a number,
        `total` and each sub-layer one after the other, as the header's `parts` name them."""
        asked = await self._asked_sentence(question, request)

        def work(inspector: "Inspector") -> bytes:
            from dragoman.inspection.to_json import pack_contributions

            return pack_contributions(inspector.contributions(asked.text, asked.translation, question.changes))

        return _binary(await self._inspect(request, asked.pair, work))

    async def contrast(self, question: ContrastQuestion, request: Request) -> ContrastAnswer:
        """Why this word and not that one: what each token of the source and of the beginning does for either."""
        asked = await self._asked_sentence(question, request)
        if isinstance(question.instead, str):
            self._check_length("instead", question.instead)

        def work(inspector: "Inspector") -> ContrastAnswer:
            from dragoman.inspection.to_json import describe_contrast

            found = inspector.contrast(asked.text, question.instead, question.position, asked.translation)
            return ContrastAnswer.model_validate(describe_contrast(found))

        return await self._inspect(request, asked.pair, work)

    async def page(self, question: PageQuestion, request: Request) -> Response:
        """The sentence as one HTML file, to be kept: every head's attention and measured effect."""
        asked = await self._asked_sentence(question, request)

        def work(inspector: "Inspector") -> str:
            from dragoman.inspection.html_page import page_of

            return page_of(inspector, asked.text, asked.translation, question.changes, question.state)

        content = await self._inspect(request, asked.pair, work)
        named = {"content-disposition": 'attachment; filename="inside.html"'}
        return Response(content, media_type="text/html; charset=utf-8", headers=named)

    async def positions(self, question: PositionsQuestion, request: Request) -> Response:
        """What is added to the embeddings at each position: (count, d_model), in two bytes a number."""

        def work(inspector: "Inspector") -> bytes:
            from dragoman.inspection.uint16_codec import pack

            return pack(inspector.positions(question.count), kind=inspector.model.config.positions)

        pair = pair_of(self._service, question.source, question.target)
        return _binary(await self._inspect(request, pair, work))

    async def neighbours(self, question: NeighboursQuestion, request: Request) -> list[NeighbourAnswer]:
        """The pieces of the vocabulary whose embeddings are nearest to a word's."""
        self._check_length("text", question.text)
        pair = pair_of(self._service, question.source, question.target)
        neighbours = await self._inspect(
            request, pair, lambda inspector: inspector.neighbours(question.text, question.count, question.side)
        )
        return [NeighbourAnswer.model_validate(neighbour) for neighbour in neighbours]

    async def _inspect(self, request: Request, pair: ServedPair, work: "Callable[[Inspector], T]") -> T:
        """Runs work with a language pair's inspector, one at a time in the thread of explanations: the pass that was
        made for one question is there for the next."""
        from dragoman.inspection.inspector import Inspector

        def inspect(explainer: "Explainer") -> T:
            known = self._inspectors.get(pair.name)
            if known is None or known.explainer is not explainer:  # the run has a newer model
                self._inspectors[pair.name] = Inspector(explainer)
            return work(self._inspectors[pair.name])

        return await while_connected(request, self._service.explain(pair, inspect))

    async def _asked_sentence(self, question: InsideQuestion, request: Request) -> _AskedSentence:
        question.check(self._service.settings)
        pair = pair_of(self._service, question.source, question.target)
        (parts,) = await self._service.segments(pair, [question.text])
        sentences = [segment.text for segment in parts]
        if question.sentence >= max(1, len(sentences)):
            raise HTTPException(422, f"Invalid request: sentence: {question.sentence}; the text has {len(sentences)}")
        if not sentences:
            return _AskedSentence(pair, [question.text], question.text, [])
        text = sentences[question.sentence]
        if question.translation is not None:
            if isinstance(question.translation, str):
                self._check_length("translation", question.translation)
            return _AskedSentence(pair, sentences, text, question.translation)
        # The translation that everyone else gets, from the fast engine.
        (translated,) = await while_connected(request, self._service.translate(pair, [text]))
        tokens = [token for translation in translated.translations for token in translation.candidates[0].tokens]
        return _AskedSentence(pair, sentences, text, tokens)

    def _check_length(self, name: str, text: str) -> None:
        check_text(text)
        limit = self._service.settings.character_limit
        if len(text) > limit:
            raise HTTPException(422, f"Invalid request: {name}: more than {limit} characters")


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream", headers={"cache-control": "no-store"})
