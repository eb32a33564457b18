"""Our own API, /api/v1: translations with their tokens and scores, and everything that explains them."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from dragoman.data.language_codes import language_name
from dragoman.data.segmentation import Segment, join
from dragoman.documents.format_names import SUFFIXES
from dragoman.serve.answers import ERRORS, event, key_check, while_connected
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.pairs import PivotPair, ServedPair, Way
from dragoman.serve.routes.translation_models import (
    AlternativesQuestion,
    BeamAnswer,
    CandidateAnswer,
    CorrectionAnswer,
    CorrectionQuestion,
    DetectedAnswer,
    ExplainAnswer,
    ExplainQuestion,
    PairInfo,
    ParserInfo,
    PivotInfo,
    SearchQuestion,
    SegmentAnswer,
    ServiceInfo,
    SuggestionAnswer,
    TranslateAnswer,
    TranslateQuestion,
    WordChoiceAnswer,
    WordConfidenceAnswer,
)
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.texts import TranslatedText, check_text
from dragoman.translation.result import Translation
from dragoman.translation.translation_memory import Suggestion
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.explain import Explainer, Explanation

MOST_NAMED = 20  # pairs that an error lists


def way_of(service: Service, source: str, target: str) -> Way:
    """How to translate between the languages that a question names; 404 where they are not served."""
    way = service.models.way(source, target)
    if way is None:
        pairs = list(service.models.pairs)
        more = f" and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
        served = service.why_untranslated or f"served: {', '.join(pairs[:MOST_NAMED])}{more}"
        raise HTTPException(404, f"{source}-{target} is not served; {served}")
    return way


def pair_of(service: Service, source: str, target: str) -> ServedPair:
    """The language pair that a question names, which a run must translate by itself: one model is looked into."""
    way = way_of(service, source, target)
    if isinstance(way, PivotPair):
        raise HTTPException(
            404, f"{way.name} is translated through {way.pivot}; look into {way.first.name} or {way.second.name}"
        )
    return way


def make_router(service: Service, keys: Keys) -> APIRouter:
    translations, explanations = _TranslationRoutes(service, keys), _ExplanationRoutes(service)
    router = APIRouter(prefix="/api/v1", tags=["Dragoman"], responses=ERRORS)
    locked = [Depends(key_check(keys))]
    router.get("/service", response_model=ServiceInfo)(translations.about)
    router.post("/translate", dependencies=locked)(translations.translate)
    router.post(
        "/translate/stream",
        dependencies=locked,
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "One event a sentence, then `done`"}},
    )(translations.stream)
    router.post("/explain", dependencies=locked)(explanations.explain)
    router.post("/alternatives", dependencies=locked)(explanations.alternatives)
    router.post("/corrections", dependencies=locked)(translations.correct)
    router.post("/beam", dependencies=locked)(explanations.beam)
    return router


class _TranslationRoutes:
    def __init__(self, service: Service, keys: Keys) -> None:
        self._service, self._keys = service, keys
        self._about: tuple[tuple[int, bool], bytes] | None = None

    async def about(self) -> Response:
        """What is served, and within which limits. A run that trained its first model since then is served now."""
        models = self._service.models
        await models.refresh()
        state = models.version, models.has_parser
        if self._about is None or self._about[0] != state:
            # Once, and not on the event loop: a run of 200 languages has 40,000 pairs.
            self._about = state, await self._service.on_text(lambda: self._info().model_dump_json().encode())
        return Response(self._about[1], media_type="application/json")

    def _info(self) -> ServiceInfo:
        service, settings = self._service, self._service.settings
        parser = service.parser_run
        return ServiceInfo(
            pairs=[_pair_info(pair, service.models.of_run(pair.run)) for pair in service.models.pairs.values()],
            pivots=[_pivot_info(way) for way in service.models.pivots.values()],
            waiting=service.models.waiting,
            parser=None if parser is None else ParserInfo(name=parser.name, has_model=service.models.has_parser),
            key_required=self._keys.required,
            character_limit=settings.character_limit,
            alternatives_limit=settings.alternatives_limit,
            beam_limit=settings.beam_limit,
            body_limit=settings.body_limit,
            file_formats=list(SUFFIXES),
            corrections=service.memory is not None,
        )

    async def translate(self, question: TranslateQuestion, request: Request) -> TranslateAnswer:
        """A text, with the tokens and scores of each sentence."""
        source, detected = await self._source_of(question)
        way, options = (
            way_of(self._service, source, question.target),
            await self._service.on_text(question.options),
        )
        (translated,) = await while_connected(
            request, self._service.translate(way, [question.text], question.n_best, options)
        )
        return await self._service.on_text(lambda: self._answer(question, way, translated, detected))

    async def stream(self, question: TranslateQuestion) -> StreamingResponse:
        """The same, sentence by sentence as server-sent events."""
        source, detected = await self._source_of(question)
        way, options = (
            way_of(self._service, source, question.target),
            await self._service.on_text(question.options),
        )
        (parts,) = await self._service.segments(way, [question.text])

        async def events() -> AsyncIterator[str]:
            try:
                async for part, translation in self._service.stream(way, parts, question.n_best, options):
                    segment = await self._service.on_text(
                        partial(self._segment, way, part, translation, question.min_confidence)
                    )
                    yield event("segment", segment.model_dump())
            except OverloadedError as error:
                yield event("error", {"error": f"Too busy: {error}", "retry_after": error.retry_after})
                return
            found = None if detected is None else detected.model_dump()
            yield event("done", {"source": source, "target": question.target, "pivot": _pivot(way), "detected": found})

        return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def correct(self, question: CorrectionQuestion) -> CorrectionAnswer:
        """Keep a correction. From then on the sentence is answered with it, and similar ones with a suggestion."""
        memory = self._service.memory
        if memory is None:
            raise HTTPException(404, "No corrections are kept here; start the service with --corrections FILE")
        question.check(self._service.settings)
        way = way_of(self._service, question.source, question.target)
        check_text(question.translation + question.machine)

        def keep() -> bool:
            if not question.translation.strip():
                return not memory.forget(way.name, question.text)
            memory.store(way.name, question.text, question.translation, question.machine)
            return True

        return CorrectionAnswer(stored=await self._service.on_text(keep))

    async def _source_of(self, question: TranslateQuestion) -> tuple[str, DetectedAnswer | None]:
        """The language to translate from: the one named, or one detected."""
        question.check(self._service.settings)
        if question.source != "auto":
            return question.source, None
        detected = (await self._service.detect([question.text]))[0]
        found = DetectedAnswer(language=detected.language, confidence=detected.confidence)
        models = self._service.models
        if models.way(detected.language, question.target) is not None:
            return detected.language, found
        # To be told that German text cannot be translated into German would help nobody.
        sources = [pair.source for pair in models.pairs.values() if pair.target == question.target]
        return (sources[0] if sources else detected.language), found

    def _answer(
        self, question: TranslateQuestion, way: Way, translated: TranslatedText, detected: DetectedAnswer | None
    ) -> TranslateAnswer:
        both = zip(translated.parts, translated.translations, strict=True)
        segments = [self._segment(way, part, translation, question.min_confidence) for part, translation in both]
        shown = [segment.source if segment.withheld else segment.candidates[0].text for segment in segments]
        return TranslateAnswer(
            text=join(question.text, list(translated.parts), shown),
            source=way.source,
            target=way.target,
            pivot=_pivot(way),
            detected=detected,
            segments=segments,
        )

    def _segment(self, way: Way, part: Segment, translation: Translation, min_confidence: float) -> SegmentAnswer:
        suggestion = None if translation.corrected else self._service.suggestion(way, part.text)
        return _segment_answer(part, translation, min_confidence, suggestion)


class _ExplanationRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def explain(self, question: ExplainQuestion, request: Request) -> ExplainAnswer:
        """One sentence: every token's probability, the model's alternatives there, and which words belong together.

        Of `translation`, if its tokens are given, or its text; else of the best translation that begins with
        `prefix`, or `prefix_text`."""
        question.check(self._service.settings)
        changes = question.search()
        check_text(question.prefix_text + (question.translation_text or ""))

        def explained(explainer: "Explainer") -> "Explanation":
            typed, given = question.translation_text, question.translation
            tokens = explainer.tokens_of(typed) if given is None and typed is not None else given
            prefix = beginning(explainer, question)
            return explainer.explain(question.text, tokens, prefix, question.alternatives, **changes)

        pair = pair_of(self._service, question.source, question.target)
        explanation = await while_connected(request, self._service.explain(pair, explained))
        return ExplainAnswer.model_validate(explanation)

    async def alternatives(self, question: AlternativesQuestion, request: Request) -> list[WordChoiceAnswer]:
        """The words that the model would put after a beginning, most probable first."""
        question.check(self._service.settings)
        check_text(question.prefix_text)
        choices = await while_connected(
            request,
            self._service.explain(
                pair_of(self._service, question.source, question.target),
                lambda explainer: explainer.alternatives(
                    question.text, beginning(explainer, question), question.alternatives
                ),
            ),
        )
        return [WordChoiceAnswer.model_validate(choice) for choice in choices]

    async def beam(self, question: SearchQuestion, request: Request) -> BeamAnswer:
        """One sentence's beam search, step by step: what was kept, what ended and what was pruned."""
        question.check(self._service.settings)
        changes = question.search()
        check_text(question.prefix_text)
        search = await while_connected(
            request,
            self._service.explain(
                pair_of(self._service, question.source, question.target),
                lambda explainer: explainer.beam(question.text, beginning(explainer, question), **changes),
            ),
        )
        return BeamAnswer.model_validate(search)


def beginning(explainer: "Explainer", question: SearchQuestion | AlternativesQuestion) -> Sequence[str]:
    """The tokens that a translation shall begin with: as they are given, or those of a text."""
    return explainer.tokens_of(question.prefix_text) if question.prefix_text.strip() else question.prefix


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


def _pivot_info(way: PivotPair) -> PivotInfo:
    return PivotInfo(
        source=way.source,
        target=way.target,
        pivot=way.pivot,
        source_name=language_name(way.source),
        target_name=language_name(way.target),
        pivot_name=language_name(way.pivot),
    )


def _pivot(way: Way) -> str | None:
    return way.pivot if isinstance(way, PivotPair) else None


def _segment_answer(
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
        pivot_text=translation.pivot_text,
        confidence=translation.confidence,
        words=[WordConfidenceAnswer.model_validate(word) for word in translation.words],
        withheld=min_confidence > 0 and translation.is_doubtful(min_confidence),
        corrected=translation.corrected,
        suggestion=None if suggestion is None else SuggestionAnswer.model_validate(suggestion),
    )
