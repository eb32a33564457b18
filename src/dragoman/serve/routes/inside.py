"""/api/v1/inside: a sentence from inside. Attention goes out a sub-layer at a time, as inspection/uint16_codec.py has
it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import Field

from dragoman.serve.answers import ERRORS, key_check, while_connected
from dragoman.serve.pairs import ServedPair
from dragoman.serve.routes.translation import ApiModel, Language, Question, Text, Tokens, WordAnswer, pair_of
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text

if TYPE_CHECKING:
    from dragoman.inspection.inspector import Inspector

T = TypeVar("T")
AttentionKind = Literal["encoder", "decoder", "cross"]
Layer = Annotated[int, Field(ge=0, description="From 0")]
TranslationText = Annotated[str, Field(description="A translation as text")]
Changes = Annotated[
    list[Annotated[str, Field(max_length=64)]],
    Field(max_length=64, examples=[["cross.0.3:off", "encoder.0.1:pin@2", "decoder.*:unmask"]]),
]
BINARY: dict[int | str, dict[str, object]] = {
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "description": "uint32 length of a JSON header, the header, then uint16 values between its low and high",
    }
}


FILE: dict[int | str, dict[str, object]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page that loads nothing"}
}


class InsideQuestion(Question):
    sentence: Annotated[int, Field(ge=0, description="Which of the text's sentences, from 0")] = 0
    translation: Annotated[
        Tokens | TranslationText | None, Field(description="As tokens or text; null: the service's own translation")
    ] = None


class ChangedQuestion(InsideQuestion):
    changes: Changes = []  # noqa: RUF012 pydantic copies it


class AttentionQuestion(ChangedQuestion):
    kind: AttentionKind
    layer: Layer
    values: Annotated[
        Literal["weights", "scores"], Field(description="scores: what the softmax is given, before the mask")
    ] = "weights"


class InterveneQuestion(ChangedQuestion):
    retranslate: Annotated[bool, Field(description="Also search for the changed model's own translation")] = True


class PageQuestion(ChangedQuestion):
    state: Annotated[
        dict[Annotated[str, Field(max_length=16)], Annotated[str, Field(max_length=10_000)]],
        Field(max_length=32, description="What the address of the Inside page holds"),
    ] = {}  # noqa: RUF012 pydantic copies it


class EffectsQuestion(InsideQuestion):
    kind: AttentionKind | None = None
    layer: Layer | None = None


class PositionsQuestion(ApiModel):
    source: Language
    target: Language
    count: Annotated[int, Field(ge=1, le=512)] = 64


class NeighboursQuestion(ApiModel):
    text: Text
    source: Language
    target: Language
    count: Annotated[int, Field(ge=1, le=50)] = 8
    side: Literal["source", "target"] = "source"


class HeadAnswer(ApiModel):
    kind: AttentionKind
    layer: int
    head: int
    entropy: float
    diagonal: float
    previous: float | None
    end: float | None
    start: float | None
    distance: float


class InsideAnswer(ApiModel):
    sentences: list[str]
    sentence: int
    text: str
    translation: str
    tokens: list[str]
    source: list[str]
    fed: list[str]
    produced: list[str]
    source_words: list[WordAnswer]
    target_words: list[WordAnswer]
    log_probabilities: list[float]
    log_probability: float
    encoder_layers: int
    decoder_layers: int
    num_heads: int
    d_model: int
    d_k: int
    scale: float
    heads: list[HeadAnswer]
    changes: list[str]


class OutcomeAnswer(ApiModel):
    changes: list[str]
    before: list[float]
    after: list[float]
    log_probability_before: float
    log_probability_after: float
    change: float
    translation: str | None
    tokens: list[str] | None
    translation_log_probability: float | None
    heads: list[HeadAnswer]


class EffectAnswer(ApiModel):
    kind: AttentionKind
    layer: int
    head: int
    change: float


class NeighbourAnswer(ApiModel):
    token: str
    similarity: float


def make_router(service: Service, keys: Keys) -> APIRouter:
    inspectors: dict[str, Inspector] = {}
    router = APIRouter(
        prefix="/api/v1/inside", tags=["Inside"], responses=ERRORS, dependencies=[Depends(key_check(keys))]
    )

    async def look(request: Request, pair: ServedPair, work: "Callable[[Inspector], T]") -> T:
        """One at a time, in the thread of explanations: whoever asks next finds the pass that was made before."""
        from dragoman.inspection.inspector import Inspector

        def looked(explainer: object) -> T:
            known = inspectors.get(pair.name)
            if known is None or known.explainer is not explainer:  # the run has a newer model
                inspectors[pair.name] = Inspector(explainer)  # type: ignore[arg-type]
            return work(inspectors[pair.name])

        return await while_connected(request, service.explain(pair, looked))

    async def sentence_of(question: InsideQuestion, request: Request) -> tuple[ServedPair, list[str], list[str] | str]:
        """The pair, the text's sentences, and the translation of the one that is asked for."""
        question.check(service.settings)
        pair = pair_of(service, question.source, question.target)
        (parts,) = await service.segments(pair, [question.text])
        sentences = [segment.text for segment in parts]
        if question.sentence >= max(1, len(sentences)):
            raise HTTPException(422, f"Invalid request: sentence: {question.sentence}; the text has {len(sentences)}")
        if not sentences:
            return pair, [question.text], []
        if question.translation is not None:
            if isinstance(question.translation, str):
                check_text(question.translation)
                if len(question.translation) > service.settings.character_limit:
                    limit = service.settings.character_limit
                    raise HTTPException(422, f"Invalid request: translation: more than {limit} characters")
            return pair, sentences, question.translation
        # The one that everyone else gets, from the quick engine.
        done = await while_connected(request, service.translate(pair, [sentences[question.sentence]]))
        return pair, sentences, [token for some in done[0].translations for token in some.candidates[0].tokens]

    @router.post("")
    async def inside(question: ChangedQuestion, request: Request) -> InsideAnswer:
        """One sentence and its translation: tokens, probabilities, and what every head does in numbers."""
        pair, sentences, said = await sentence_of(question, request)

        def work(inspector: "Inspector") -> InsideAnswer:
            from dragoman.inspection.to_json import describe

            seen = inspector.inspect(sentences[question.sentence], said, question.changes)
            where = {"sentences": sentences, "sentence": question.sentence}
            return InsideAnswer.model_validate({**where, **describe(inspector, seen)})

        return await look(request, pair, work)

    @router.post("/attention", response_class=Response, responses=BINARY)
    async def attention(question: AttentionQuestion, request: Request) -> Response:
        """All heads of one sub-layer, (heads, rows, columns), in two bytes a number."""
        pair, sentences, said = await sentence_of(question, request)

        def work(inspector: "Inspector") -> bytes:
            from dragoman.errors import UsageError
            from dragoman.inspection.uint16_codec import pack
            from dragoman.model.probe import Site

            seen = inspector.inspect(sentences[question.sentence], said, question.changes)
            site = Site(question.kind, question.layer)
            if site not in seen.weights:
                raise UsageError(f"Invalid request: {site.kind} layer {site.layer}; the run has no such layer")
            if question.values == "scores":
                return pack(seen.scores[site], kind=site.kind, layer=site.layer)
            return pack(seen.weights[site], 0.0, 1.0, kind=site.kind, layer=site.layer)

        return _binary(await look(request, pair, work))

    @router.post("/intervene")
    async def intervene(question: InterveneQuestion, request: Request) -> OutcomeAnswer:
        """Heads off or pinned, the mask dropped: the shown translation's log-probability, and the new translation."""
        pair, sentences, said = await sentence_of(question, request)

        def work(inspector: "Inspector") -> OutcomeAnswer:
            from dragoman.inspection.to_json import describe_outcome

            found = inspector.intervene(
                sentences[question.sentence], question.changes, said, retranslate=question.retranslate
            )
            return OutcomeAnswer.model_validate(describe_outcome(found))

        return await look(request, pair, work)

    @router.post("/effects")
    async def effects(question: EffectsQuestion, request: Request) -> list[EffectAnswer]:
        """Each head switched off alone: the change in the translation's log-probability, the largest first."""
        pair, sentences, said = await sentence_of(question, request)
        found = await look(
            request,
            pair,
            lambda inspector: inspector.effects(
                sentences[question.sentence], said, kind=question.kind, layer=question.layer
            ),
        )
        return [EffectAnswer.model_validate(effect) for effect in found]

    @router.post("/page", response_class=Response, responses=FILE)
    async def page(question: PageQuestion, request: Request) -> Response:
        """The sentence as one HTML file, to be kept: every head's attention and measured effect."""
        pair, sentences, said = await sentence_of(question, request)

        def work(inspector: "Inspector") -> str:
            from dragoman.inspection.html_page import page_of

            return page_of(inspector, sentences[question.sentence], said, question.changes, question.state)

        content = await look(request, pair, work)
        named = {"content-disposition": 'attachment; filename="inside.html"'}
        return Response(content, media_type="text/html; charset=utf-8", headers=named)

    @router.post("/positions", response_class=Response, responses=BINARY)
    async def positions(question: PositionsQuestion, request: Request) -> Response:
        """What is added to the embeddings at each position: (count, d_model), in two bytes a number."""

        def work(inspector: "Inspector") -> bytes:
            from dragoman.inspection.uint16_codec import pack

            return pack(inspector.positions(question.count), kind=inspector.model.config.positions)

        return _binary(await look(request, pair_of(service, question.source, question.target), work))

    @router.post("/neighbours")
    async def neighbours(question: NeighboursQuestion, request: Request) -> list[NeighbourAnswer]:
        """The pieces of the vocabulary whose embeddings are nearest to a word's."""
        check_text(question.text)
        if len(question.text) > service.settings.character_limit:
            raise HTTPException(422, f"Invalid request: text: more than {service.settings.character_limit} characters")
        pair = pair_of(service, question.source, question.target)
        found = await look(
            request, pair, lambda inspector: inspector.neighbours(question.text, question.count, question.side)
        )
        return [NeighbourAnswer.model_validate(one) for one in found]

    return router


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream", headers={"cache-control": "no-store"})
