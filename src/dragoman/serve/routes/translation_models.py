"""The questions and answers of /api/v1 as pydantic models: what the translation routes take and give."""

from typing import Annotated

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field

from dragoman.data.glossary import CopiedKind
from dragoman.serve.settings import Settings
from dragoman.serve.texts import RequestOptions, Terms, check_text
from dragoman.translation.defects import Defect
from dragoman.translation.result import How


class ApiModel(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True)


QuestionText = Annotated[str, Field(min_length=1, description="At most so many characters as /api/v1/service says")]
Language = Annotated[str, Field(min_length=1, max_length=16, examples=["en"])]
TokenList = Annotated[list[str], Field(max_length=1024, description="Pieces of the vocabulary, as answers name them")]
Beam = Annotated[int | None, Field(ge=1, description="Beam size; null: the run's own")]
Alpha = Annotated[float | None, Field(ge=0, le=5, description="Length penalty; null: the run's own")]


class Question(ApiModel):
    text: QuestionText
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
    keep: Annotated[list[CopiedKind], Field(max_length=8, description="Copied through as they are")] = []
    min_confidence: Annotated[
        float, Field(ge=0, le=1, description="Leave the source in place of what is less sure than this")
    ] = 0.0

    def options(self) -> RequestOptions:
        terms = Terms([(term.source, term.target) for term in self.glossary])
        return RequestOptions(self.beam, self.alpha, terms, tuple(self.keep), rate=True)


BeginningText = Annotated[
    str, Field(max_length=10_000, description="A beginning as a person typed it, in place of `prefix`")
]


class SearchQuestion(Question):
    prefix: TokenList = []
    prefix_text: BeginningText = ""
    beam: Beam = None
    alpha: Alpha = None

    def search(self) -> dict[str, float]:
        values = {"beam": self.beam, "alpha": self.alpha}
        return {name: value for name, value in values.items() if value is not None}


class ExplainQuestion(SearchQuestion):
    translation: TokenList | None = None
    translation_text: Annotated[
        str | None, Field(max_length=10_000, description="A translation as a person typed it, in place of its tokens")
    ] = None
    alternatives: Annotated[int, Field(ge=1)] = 5


class AlternativesQuestion(Question):
    prefix: TokenList = []
    prefix_text: BeginningText = ""
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


class PivotInfo(ApiModel):
    """Two languages that no run translates between, and the one through which two runs do."""

    source: str
    target: str
    pivot: str
    source_name: str
    target_name: str
    pivot_name: str


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
    pivots: list[PivotInfo]
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
    pivot_text: Annotated[str | None, Field(description="The sentence in the pivot's language; null: there is none")]
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
    pivot: Annotated[str | None, Field(description="The language it was translated through; null: directly")]
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
