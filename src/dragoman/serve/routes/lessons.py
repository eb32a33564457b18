"""/api/v1/learn: the vectors of one sentence and its translation, and BLEU taken apart, for the lessons of the page."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from dragoman.errors import UsageError
from dragoman.serve.answers import ERRORS, key_check, while_connected
from dragoman.serve.routes.inside_models import AttentionKind, LayerNumber
from dragoman.serve.routes.translation import pair_of
from dragoman.serve.routes.translation_models import ApiModel, Question, TokenList
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.inspection.explain import Explainer
    from dragoman.inspection.sublayer_trace import NormOrder, StackTrace, SubLayerTrace

T = TypeVar("T")
Stack = Literal["encoder", "decoder"]
Order = Literal["pre", "post"]
RowNumber = Annotated[int, Field(ge=0, description="A token's, from 0: of the source, or of what the decoder is fed")]
Vector = list[float]
LONGEST = 2000  # characters of a sentence that BLEU is taken apart for


class SentenceQuestion(Question):
    text: Annotated[str, Field(min_length=1, description="One sentence")]
    translation: Annotated[TokenList, Field(description="The translation that is looked into, as tokens")]


class StreamQuestion(SentenceQuestion):
    stack: Stack = "encoder"
    row: RowNumber = 0
    order: Annotated[Order | None, Field(description="Where it is normalised; null: where the run does it")] = None


class HeadQuestion(SentenceQuestion):
    kind: AttentionKind = "encoder"
    layer: LayerNumber = 0
    head: LayerNumber = 0
    row: RowNumber = 0


class MachineQuestion(SentenceQuestion):
    numbers: Annotated[int, Field(ge=1, le=64, description="How many of each vector's numbers")] = 16
    candidates: Annotated[int, Field(ge=1, le=20, description="How many tokens that may follow")] = 5


class BleuQuestion(ApiModel):
    hypothesis: Annotated[str, Field(max_length=LONGEST)]
    reference: Annotated[str, Field(max_length=LONGEST)]


class SubLayerAnswer(ApiModel):
    layer: int
    name: str
    received: Vector
    written: Vector
    stream: Vector
    hidden: Vector | None


class StreamAnswer(ApiModel):
    own_order: Order
    order: Order
    token: Vector
    position: Vector | None
    embedded: Vector
    sublayers: list[SubLayerAnswer]
    output: Vector
    log_probability: Annotated[float, Field(description="Of the whole translation, in this order")]


class HeadVectorsAnswer(ApiModel):
    query: Vector
    keys: list[Vector]
    values: list[Vector]
    scores: Annotated[list[float | None], Field(description="null: hidden by the mask")]
    weights: Vector
    context: Vector
    scale: float


class StageAnswer(ApiModel):
    layer: int
    name: str
    streams: list[Vector]
    weights: Annotated[list[Vector] | None, Field(description="Of an attention: the mean of its heads")]


class StackAnswer(ApiModel):
    tokens: list[Vector]
    embedded: list[Vector]
    stages: list[StageAnswer]
    output: list[Vector]


class CandidateAnswer(ApiModel):
    token: str
    probability: float


class MachineAnswer(ApiModel):
    encoder: StackAnswer
    decoder: StackAnswer
    next: Annotated[list[list[CandidateAnswer]], Field(description="After each fed token, the likeliest first")]


class BleuAnswer(ApiModel):
    score: float
    precisions: Vector
    counts: list[int]
    totals: list[int]
    brevity_penalty: float
    hypothesis_tokens: list[str]
    reference_tokens: list[str]
    signature: str


def make_router(service: Service, keys: Keys) -> APIRouter:
    routes = _LessonRoutes(service)
    router = APIRouter(
        prefix="/api/v1/learn", tags=["Learn"], responses=ERRORS, dependencies=[Depends(key_check(keys))]
    )
    router.post("/stream")(routes.stream)
    router.post("/head")(routes.head)
    router.post("/machine")(routes.machine)
    router.post("/bleu")(routes.bleu)
    return router


class _LessonRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def stream(self, question: StreamQuestion, request: Request) -> StreamAnswer:
        """One token's way through a stack: what each sub-layer reads, writes and leaves in the residual stream."""

        def work(explainer: "Explainer") -> StreamAnswer:
            from dragoman.inspection.sublayer_trace import own_order

            traced = _traced(explainer, question, question.order)
            stack = traced.encoder if question.stack == "encoder" else traced.decoder
            chosen = traced.log_probabilities[len(explainer.tokenizer.start_ids) - 1 :]  # what the model chose itself
            return _stream_answer(stack, traced, question.row, own_order(explainer.model), sum(chosen))

        return await self._explain(question, request, work)

    async def head(self, question: HeadQuestion, request: Request) -> HeadVectorsAnswer:
        """One head's query, and all keys and values that it meets."""

        def work(explainer: "Explainer") -> HeadVectorsAnswer:
            from dragoman.inspection.sublayer_trace import head_vectors
            from dragoman.model.probe import Site

            site = Site(question.kind, question.layer)
            found = head_vectors(explainer.model, _traced(explainer, question), site, question.head, question.row)
            shown = {name: _numbers(value) for name, value in vars(found).items() if name not in ("scores", "scale")}
            scores = [None if score == -float("inf") else score for score in found.scores.tolist()]
            return HeadVectorsAnswer.model_validate({**shown, "scores": scores, "scale": found.scale})

        return await self._explain(question, request, work)

    async def machine(self, question: MachineQuestion, request: Request) -> MachineAnswer:
        """The whole pass in small: the first numbers of every vector, mean attention, and the likeliest next tokens."""

        def work(explainer: "Explainer") -> MachineAnswer:
            traced = _traced(explainer, question)
            top = traced.log_probs.exp().topk(min(question.candidates, traced.log_probs.shape[1]), dim=-1)
            following = [
                [CandidateAnswer(token=token, probability=value) for token, value in zip(names, values, strict=True)]
                for names, values in zip(map(explainer.pieces, top.indices.tolist()), top.values.tolist(), strict=True)
            ]
            stacks = (_stack_answer(stack, question.numbers) for stack in (traced.encoder, traced.decoder))
            encoder, decoder = stacks
            return MachineAnswer(encoder=encoder, decoder=decoder, next=following)

        return await self._explain(question, request, work)

    async def bleu(self, question: BleuQuestion) -> BleuAnswer:
        """sacreBLEU's score of one sentence against one reference, with the counts that it is made of."""
        from sacrebleu.metrics.bleu import BLEU

        for text in (question.hypothesis, question.reference):
            check_text(text)
        metric = BLEU(effective_order=True)
        found = metric.sentence_score(question.hypothesis, [question.reference])
        return BleuAnswer(
            score=found.score,
            precisions=found.precisions,
            counts=found.counts,
            totals=found.totals,
            brevity_penalty=found.bp,
            hypothesis_tokens=metric.tokenizer(question.hypothesis.rstrip()).split(),
            reference_tokens=metric.tokenizer(question.reference.rstrip()).split(),
            signature=str(metric.get_signature()),
        )

    async def _explain(self, question: SentenceQuestion, request: Request, work: "Callable[[Explainer], T]") -> T:
        question.check(self._service.settings)
        pair = pair_of(self._service, question.source, question.target)
        return await while_connected(request, self._service.explain(pair, work))


def _traced(explainer: "Explainer", question: SentenceQuestion, order: "NormOrder | None" = None) -> "SubLayerTrace":
    from dragoman.inspection.sublayer_trace import trace_sublayers

    source, target = explainer.source_ids(question.text), explainer.token_ids(question.translation)
    limit = explainer.search.max_source_length + explainer.search.max_extra_length
    if len(target) > limit:
        raise UsageError(f"Invalid request: translation: {len(target)} tokens; at most {limit}")
    tokenizer = explainer.tokenizer
    fed = [*tokenizer.start_ids, *target, tokenizer.eos_id]
    return trace_sublayers(explainer.model, tokenizer.encoder_ids(source), fed, order)


def _stream_answer(
    stack: "StackTrace", traced: "SubLayerTrace", row: int, own: Order, log_probability: float
) -> StreamAnswer:
    if row >= len(stack.embedded):
        raise UsageError(f"Invalid request: row: {row}; there are rows 0 to {len(stack.embedded) - 1}")
    return StreamAnswer(
        own_order=own,
        order=traced.order,
        token=_numbers(stack.tokens[row]),
        position=None if stack.positions is None else _numbers(stack.positions[row]),
        embedded=_numbers(stack.embedded[row]),
        sublayers=[
            SubLayerAnswer(
                layer=one.layer,
                name=one.name,
                received=_numbers(one.received[row]),
                written=_numbers(one.written[row]),
                stream=_numbers(one.stream[row]),
                hidden=None if one.hidden is None else _numbers(one.hidden[row]),
            )
            for one in stack.sublayers
        ],
        output=_numbers(stack.output[row]),
        log_probability=log_probability,
    )


def _stack_answer(stack: "StackTrace", count: int) -> StackAnswer:
    return StackAnswer(
        tokens=_rows(stack.tokens[:, :count]),
        embedded=_rows(stack.embedded[:, :count]),
        stages=[
            StageAnswer(
                layer=one.layer,
                name=one.name,
                streams=_rows(one.stream[:, :count]),
                weights=None if one.weights is None else _rows(one.weights.mean(dim=0)),
            )
            for one in stack.sublayers
        ],
        output=_rows(stack.output[:, :count]),
    )


def _numbers(values: "Tensor") -> Any:
    """As lists, to six digits: a page shows three."""
    return [float(f"{value:.6g}") for value in values.tolist()] if values.dim() == 1 else _rows(values)


def _rows(values: "Tensor") -> list[Vector]:
    return [[float(f"{value:.6g}") for value in row] for row in values.tolist()]
