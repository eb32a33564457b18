"""Our own API, /api/v1: translations with their tokens and scores, and everything that explains them."""

from collections.abc import AsyncIterator
from functools import partial

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import StreamingResponse

from dragoman.data.language_codes import language_name
from dragoman.data.segmentation import Segment, join
from dragoman.documents.formats import SUFFIXES
from dragoman.serve.answers import ERRORS, event, key_check, while_connected
from dragoman.serve.batcher import OverloadedError
from dragoman.serve.pairs import ServedPair
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


def pair_of(service: Service, source: str, target: str) -> ServedPair:
    """The language pair that a question names; 404 where it is not served."""
    pair = service.models.pair(source, target)
    if pair is None:
        served = service.why_untranslated or f"served: {', '.join(service.models.pairs)}"
        raise HTTPException(404, f"{source}-{target} is not served; {served}")
    return pair


def make_router(service: Service, keys: Keys) -> APIRouter:
    translations, explanations = _TranslationRoutes(service, keys), _ExplanationRoutes(service)
    router = APIRouter(prefix="/api/v1", tags=["Dragoman"], responses=ERRORS)
    locked = [Depends(key_check(keys))]
    router.get("/service")(translations.about)
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

    async def about(self) -> ServiceInfo:
        """What is served, and within which limits. A run that trained its first model since then is served now."""
        service, settings = self._service, self._service.settings
        await service.models.refresh()
        parser = service.parser_run
        return ServiceInfo(
            pairs=[_pair_info(pair, service.models.translators[pair.name]) for pair in service.models.pairs.values()],
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
        pair, options = (
            pair_of(self._service, source, question.target),
            await self._service.on_text(question.options),
        )
        (translated,) = await while_connected(
            request, self._service.translate(pair, [question.text], question.n_best, options)
        )
        return await self._service.on_text(lambda: self._answer(question, pair, translated, detected))

    async def stream(self, question: TranslateQuestion) -> StreamingResponse:
        """The same, sentence by sentence as server-sent events."""
        source, detected = await self._source_of(question)
        pair, options = (
            pair_of(self._service, source, question.target),
            await self._service.on_text(question.options),
        )
        (parts,) = await self._service.segments(pair, [question.text])

        async def events() -> AsyncIterator[str]:
            try:
                async for part, translation in self._service.stream(pair, parts, question.n_best, options):
                    segment = await self._service.on_text(
                        partial(self._segment, pair, part, translation, question.min_confidence)
                    )
                    yield event("segment", segment.model_dump())
            except OverloadedError as error:
                yield event("error", {"error": f"Too busy: {error}", "retry_after": error.retry_after})
                return
            last = {"source": source, "target": question.target, "detected": detected and detected.model_dump()}
            yield event("done", last)

        return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def correct(self, question: CorrectionQuestion) -> CorrectionAnswer:
        """Keep a correction. From then on the sentence is answered with it, and similar ones with a suggestion."""
        memory = self._service.memory
        if memory is None:
            raise HTTPException(404, "No corrections are kept here; start the service with --corrections FILE")
        question.check(self._service.settings)
        pair = pair_of(self._service, question.source, question.target)
        check_text(question.translation + question.machine)

        def keep() -> bool:
            if not question.translation.strip():
                return not memory.forget(pair.name, question.text)
            memory.store(pair.name, question.text, question.translation, question.machine)
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
        if models.pair(detected.language, question.target) is not None:
            return detected.language, found
        # To be told that German text cannot be translated into German would help nobody.
        sources = [pair.source for pair in models.pairs.values() if pair.target == question.target]
        return (sources[0] if sources else detected.language), found

    def _answer(
        self, question: TranslateQuestion, pair: ServedPair, translated: TranslatedText, detected: DetectedAnswer | None
    ) -> TranslateAnswer:
        both = zip(translated.parts, translated.translations, strict=True)
        segments = [self._segment(pair, part, translation, question.min_confidence) for part, translation in both]
        shown = [segment.source if segment.withheld else segment.candidates[0].text for segment in segments]
        return TranslateAnswer(
            text=join(question.text, list(translated.parts), shown),
            source=pair.source,
            target=pair.target,
            detected=detected,
            segments=segments,
        )

    def _segment(
        self, pair: ServedPair, part: Segment, translation: Translation, min_confidence: float
    ) -> SegmentAnswer:
        suggestion = None if translation.corrected else self._service.suggestion(pair, part.text)
        return _segment_answer(part, translation, min_confidence, suggestion)


class _ExplanationRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def explain(self, question: ExplainQuestion, request: Request) -> ExplainAnswer:
        """One sentence: every token's probability, the model's alternatives there, and which words belong together.

        Of `translation`, if its tokens are given; else of the best translation that begins with `prefix`."""
        question.check(self._service.settings)
        changes = question.search()
        explanation = await while_connected(
            request,
            self._service.explain(
                pair_of(self._service, question.source, question.target),
                lambda explainer: explainer.explain(
                    question.text, question.translation, question.prefix, question.alternatives, **changes
                ),
            ),
        )
        return ExplainAnswer.model_validate(explanation)

    async def alternatives(self, question: AlternativesQuestion, request: Request) -> list[WordChoiceAnswer]:
        """The words that the model would put after a beginning, most probable first."""
        question.check(self._service.settings)
        choices = await while_connected(
            request,
            self._service.explain(
                pair_of(self._service, question.source, question.target),
                lambda explainer: explainer.alternatives(question.text, question.prefix, question.alternatives),
            ),
        )
        return [WordChoiceAnswer.model_validate(choice) for choice in choices]

    async def beam(self, question: SearchQuestion, request: Request) -> BeamAnswer:
        """One sentence's beam search, step by step: what was kept, what ended and what was pruned."""
        question.check(self._service.settings)
        changes = question.search()
        search = await while_connected(
            request,
            self._service.explain(
                pair_of(self._service, question.source, question.target),
                lambda explainer: explainer.beam(question.text, question.prefix, **changes),
            ),
        )
        return BeamAnswer.model_validate(search)


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
        confidence=translation.confidence,
        words=[WordConfidenceAnswer.model_validate(word) for word in translation.words],
        withheld=min_confidence > 0 and translation.is_doubtful(min_confidence),
        corrected=translation.corrected,
        suggestion=None if suggestion is None else SuggestionAnswer.model_validate(suggestion),
    )
