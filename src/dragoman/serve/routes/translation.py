"""Our own API, /api/v1: translations with their tokens and scores, and everything that explains them."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from dragoman.data.glossary import Glossary, Kept
from dragoman.data.language_codes import language_name
from dragoman.data.segmentation import Segment, join
from dragoman.documents.formats import SUFFIXES
from dragoman.serve.answers import ERRORS, event, key_check, while_connected
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.pairs import ServedPair
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.texts import TranslationOptions, check_text
from dragoman.translation.defects import Defect
from dragoman.translation.result import How, Translation
from dragoman.translation.translation_memory import Suggestion
from dragoman.translation.translator import Translator


class ApiModel(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True)


Text = Annotated[str, Field(min_length=1, description="At most so many characters as /api/v1/service says")]
Language = Annotated[str, Field(min_length=1, max_length=16, examples=["en"])]
Tokens = Annotated[list[str], Field(max_length=1024, description="Pieces of the vocabulary, as answers name them")]
Beam = Annotated[int | None, Field(ge=1, description="Beam size; null: the run's own")]
Alpha = Annotated[float | None, Field(ge=0, le=5, description="Length penalty; null: the run's own")]


class Question(ApiModel):
    text: Text
    source: Language
    target: Language

    def check(self, settings: Settings) -> None:
        """The limits that can be set. Whatever of them a question does not have is within them."""
        check_text(self.text)
        for name, value, limit in (
            ("text", len(self.text), settings.character_limit),
            ("beam", getattr(self, "beam", None) or 0, settings.beam_limit),
            ("n_best", getattr(self, "n_best", 1) - 1, settings.alternatives_limit),
            ("alternatives", getattr(self, "alternatives", 0), settings.alternatives_limit),
        ):
            if value > limit:
                raise HTTPException(422, f"Invalid request: {name}: {value}; at most {limit}")


class TermQuestion(ApiModel):
    source: Annotated[str, Field(min_length=1, max_length=200)]
    target: Annotated[str, Field(max_length=1000, description="Allowed forms, separated by |; none: not translated")]


class TranslateQuestion(Question):
    source: Annotated[str, Field(min_length=1, max_length=16, description="A language code, or auto")]
    n_best: Annotated[int, Field(ge=1)] = 1
    beam: Beam = None
    alpha: Alpha = None
    glossary: Annotated[list[TermQuestion], Field(max_length=1000, description="Terms to use in this text")] = []
    keep: Annotated[list[Kept], Field(max_length=8, description="Copied through as they are")] = []
    min_confidence: Annotated[
        float, Field(ge=0, le=1, description="Leave the source in place of what is less sure than this")
    ] = 0.0

    def wishes(self) -> TranslationOptions:
        terms = tuple((term.source, term.target) for term in self.glossary)
        Glossary.of(terms)  # refused here, and not in the middle of others' work
        return TranslationOptions(self.beam, self.alpha, terms, tuple(self.keep), rate=True)


class SearchQuestion(Question):
    prefix: Tokens = []
    beam: Beam = None
    alpha: Alpha = None

    def search(self) -> dict[str, float]:
        values = {"beam": self.beam, "alpha": self.alpha}
        return {name: value for name, value in values.items() if value is not None}


class ExplainQuestion(SearchQuestion):
    translation: Tokens | None = None
    alternatives: Annotated[int, Field(ge=1)] = 5


class AlternativesQuestion(Question):
    prefix: Tokens = []
    alternatives: Annotated[int, Field(ge=1)] = 6


class PairInfo(ApiModel):
    source: str
    target: str
    source_name: str
    target_name: str
    beam: int
    alpha: float
    max_source_length: int
    good: float | None  # the chrF that a good sentence has, by which the run is calibrated; null: it is not


class CorrectionQuestion(Question):
    """A sentence as it was in a segment of an answer, and what its translation should have been."""

    translation: Annotated[str, Field(max_length=10_000, description="Empty: forget the correction")]
    machine: Annotated[str, Field(max_length=10_000, description="What was corrected")] = ""


class CorrectionAnswer(ApiModel):
    stored: bool


class ParserInfo(ApiModel):
    name: str
    has_model: bool


class ServiceInfo(ApiModel):
    pairs: list[PairInfo]
    waiting: Annotated[list[str], Field(description="Pairs whose run has no model yet; served when it has one")]
    parser: ParserInfo | None
    key_required: bool
    character_limit: int
    alternatives_limit: int
    beam_limit: int
    body_limit: int
    file_formats: Annotated[list[str], Field(description="Endings of the files that /translate_file takes")]
    corrections: bool  # whether they are kept here


class CandidateAnswer(ApiModel):
    text: str
    score: float
    log_probability: float
    tokens: list[str]


class WordConfidenceAnswer(ApiModel):
    text: str
    start: int
    end: int
    confidence: float


class SuggestionAnswer(ApiModel):
    source: str
    target: str
    score: float


class SegmentAnswer(ApiModel):
    start: int
    end: int
    source: str
    candidates: list[CandidateAnswer]
    faults: Annotated[list[Defect], Field(description="What is plainly wrong with the first candidate")]
    repaired: Annotated[list[Defect], Field(description="What was, before it was found in another way")]
    how: Annotated[How, Field(description="The way it was found: plain, or another by which nothing is lost")]
    notes: Annotated[list[str], Field(description="What was lost or added in the translations that were not taken")]
    confidence: Annotated[float | None, Field(description="How probably it is good; null: the run is not calibrated")]
    words: Annotated[list[WordConfidenceAnswer], Field(description="How probably each word is right")]
    withheld: Annotated[bool, Field(description="Less sure than min_confidence: the text has the source in its place")]
    corrected: Annotated[bool, Field(description="A person's translation, from the corrections kept")]
    suggestion: Annotated[SuggestionAnswer | None, Field(description="The correction of a similar sentence")]


class DetectedAnswer(ApiModel):
    language: str
    confidence: float


class TranslateAnswer(ApiModel):
    text: str
    source: str
    target: str
    detected: DetectedAnswer | None
    segments: list[SegmentAnswer]


class WordAnswer(ApiModel):
    text: str
    start: int
    end: int
    first_token: int
    last_token: int


class AlternativeAnswer(ApiModel):
    token: str
    probability: float


class PositionAnswer(ApiModel):
    token: str
    probability: float
    alternatives: list[AlternativeAnswer]


class ExplainAnswer(ApiModel):
    source: str
    target: str
    source_words: list[WordAnswer]
    target_words: list[WordAnswer]
    tokens: list[str]
    positions: list[PositionAnswer]
    alignment: list[list[float]]
    links: list[tuple[int, int]]
    log_probability: float
    score: float


class WordChoiceAnswer(ApiModel):
    text: str
    tokens: list[str]
    probability: float


class BeamCandidateAnswer(ApiModel):
    parent: int
    row: int | None
    token: str
    text: str
    token_probability: float
    log_probability: float
    length: int
    score: float
    fate: str


class BeamAnswer(ApiModel):
    beam: int
    alpha: float
    steps: list[list[BeamCandidateAnswer]]
    finished: list[BeamCandidateAnswer]
    target: str
    tokens: list[str]
    score: float


def pair_of(service: Service, source: str, target: str) -> ServedPair:
    pair = service.models.pair(source, target)
    if pair is None:
        served = service.why_untranslated or f"served: {', '.join(service.models.pairs)}"
        raise HTTPException(404, f"{source}-{target} is not served; {served}")
    return pair


def make_router(service: Service, keys: Keys) -> APIRouter:
    settings = service.settings

    async def source_of(question: TranslateQuestion) -> tuple[str, DetectedAnswer | None]:
        question.check(settings)
        if question.source != "auto":
            return question.source, None
        # Among the languages that can be translated so: to say that German text is German would help nobody.
        detected = (await service.detect([question.text]))[0]
        found = DetectedAnswer(language=detected.language, confidence=detected.confidence)
        if service.models.pair(detected.language, question.target) is None:
            sources = [pair.source for pair in service.models.pairs.values() if pair.target == question.target]
            return (sources[0] if sources else detected.language), found
        return detected.language, found

    def segment_of(
        pair: ServedPair, part: Segment, translation: Translation, question: TranslateQuestion
    ) -> SegmentAnswer:
        suggestion = None if translation.corrected else service.suggestion(pair, part.text)
        return _segment(part, translation, question.min_confidence, suggestion)

    router = APIRouter(prefix="/api/v1", tags=["Dragoman"], responses=ERRORS)
    locked = [Depends(key_check(keys))]

    @router.get("/service")
    async def about() -> ServiceInfo:
        """What is served, and within which limits. A run that trained its first model since then is served now."""
        await service.models.refresh()
        parsing = service.parser_run
        return ServiceInfo(
            pairs=[_pair_info(pair, service.models.translators[pair.name]) for pair in service.models.pairs.values()],
            waiting=service.models.waiting,
            parser=None if parsing is None else ParserInfo(name=parsing.name, has_model=service.models.has_parser),
            key_required=keys.required,
            character_limit=settings.character_limit,
            alternatives_limit=settings.alternatives_limit,
            beam_limit=settings.beam_limit,
            body_limit=settings.body_limit,
            file_formats=list(SUFFIXES),
            corrections=service.memory is not None,
        )

    @router.post("/translate", dependencies=locked)
    async def translate(question: TranslateQuestion, request: Request) -> TranslateAnswer:
        """A text, with the tokens and scores of each sentence."""
        source, detected = await source_of(question)
        pair = pair_of(service, source, question.target)
        done = await while_connected(
            request,
            service.translate(pair, [question.text], question.n_best, await service.on_text(question.wishes)),
        )

        def answer() -> TranslateAnswer:
            both = zip(done[0].parts, done[0].translations, strict=True)
            shown = [segment_of(pair, part, translation, question) for part, translation in both]
            said = [segment.source if segment.withheld else segment.candidates[0].text for segment in shown]
            text = join(question.text, list(done[0].parts), said)
            return TranslateAnswer(text=text, source=source, target=question.target, detected=detected, segments=shown)

        return await service.on_text(answer)

    @router.post(
        "/translate/stream",
        dependencies=locked,
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "One event a sentence, then `done`"}},
    )
    async def stream(question: TranslateQuestion) -> StreamingResponse:
        """The same, sentence by sentence as server-sent events."""
        source, detected = await source_of(question)
        pair, wishes = pair_of(service, source, question.target), await service.on_text(question.wishes)
        (parts,) = await service.segments(pair, [question.text])

        async def events() -> AsyncIterator[str]:
            try:
                translations = service.stream(pair, parts, question.n_best, wishes)
                async for part, translation in translations:
                    shown = await service.on_text(partial(segment_of, pair, part, translation, question))
                    yield event("segment", shown.model_dump())
            except OverloadedError as error:
                yield event("error", {"error": f"Too busy: {error}", "retry_after": error.retry_after})
                return
            last = {"source": source, "target": question.target, "detected": detected and detected.model_dump()}
            yield event("done", last)

        return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    @router.post("/explain", dependencies=locked)
    async def explain(question: ExplainQuestion, request: Request) -> ExplainAnswer:
        """One sentence: every token's probability, the model's alternatives there, and which words belong together.

        Of `translation`, if its tokens are given; else of the best translation that begins with `prefix`."""
        question.check(settings)
        changes = question.search()
        found = await while_connected(
            request,
            service.explain(
                pair_of(service, question.source, question.target),
                lambda explainer: explainer.explain(
                    question.text, question.translation, question.prefix, question.alternatives, **changes
                ),
            ),
        )
        return ExplainAnswer.model_validate(found)

    @router.post("/alternatives", dependencies=locked)
    async def alternatives(question: AlternativesQuestion, request: Request) -> list[WordChoiceAnswer]:
        """The words that the model would put after a beginning, most probable first."""
        question.check(settings)
        found = await while_connected(
            request,
            service.explain(
                pair_of(service, question.source, question.target),
                lambda explainer: explainer.alternatives(question.text, question.prefix, question.alternatives),
            ),
        )
        return [WordChoiceAnswer.model_validate(choice) for choice in found]

    @router.post("/corrections", dependencies=locked)
    async def correct(question: CorrectionQuestion) -> CorrectionAnswer:
        """Keep a correction. From then on the sentence is answered with it, and similar ones with a suggestion."""
        if service.memory is None:
            raise HTTPException(404, "No corrections are kept here; start the service with --corrections FILE")
        question.check(settings)
        pair, memory = pair_of(service, question.source, question.target), service.memory
        check_text(question.translation + question.machine)

        def keep() -> bool:
            if not question.translation.strip():
                return not memory.forget(pair.name, question.text)
            memory.store(pair.name, question.text, question.translation, question.machine)
            return True

        return CorrectionAnswer(stored=await service.on_text(keep))

    @router.post("/beam", dependencies=locked)
    async def beam(question: SearchQuestion, request: Request) -> BeamAnswer:
        """One sentence's beam search, step by step: what was kept, what ended and what was pruned."""
        question.check(settings)
        changes = question.search()
        found = await while_connected(
            request,
            service.explain(
                pair_of(service, question.source, question.target),
                lambda explainer: explainer.beam(question.text, question.prefix, **changes),
            ),
        )
        return BeamAnswer.model_validate(found)

    return router


def _pair_info(pair: ServedPair, translator: Translator) -> PairInfo:
    search, calibration = translator.search, translator.calibration
    return PairInfo(
        source=pair.source,
        target=pair.target,
        source_name=language_name(pair.source),
        target_name=language_name(pair.target),
        beam=search.beam,
        alpha=search.alpha,
        max_source_length=search.max_source_length,
        good=None if calibration is None else calibration.good,
    )


def _segment(
    part: Segment, translation: Translation, min_confidence: float, suggestion: Suggestion | None
) -> SegmentAnswer:
    return SegmentAnswer(
        start=part.start,
        end=part.end,
        source=part.text,
        candidates=[CandidateAnswer.model_validate(candidate) for candidate in translation.candidates],
        faults=list(translation.defects),
        repaired=list(translation.repaired),
        how=translation.how,
        notes=list(translation.notes),
        confidence=translation.confidence,
        words=[WordConfidenceAnswer.model_validate(word) for word in translation.words],
        withheld=min_confidence > 0 and translation.is_doubtful(min_confidence),
        corrected=translation.corrected,
        suggestion=None if suggestion is None else SuggestionAnswer.model_validate(suggestion),
    )
