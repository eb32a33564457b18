"""Questions to /api/v1/inside and its answers, as JSON."""

from typing import Annotated, Literal

from pydantic import Field

from dragoman.serve.routes.translation_models import ApiModel, Language, Question, QuestionText, TokenList, WordAnswer

AttentionKind = Literal["encoder", "decoder", "cross"]
LayerNumber = Annotated[int, Field(ge=0, description="From 0")]
TranslationText = Annotated[str, Field(description="A translation as text")]
Changes = Annotated[
    list[Annotated[str, Field(max_length=64)]],
    Field(max_length=64, examples=[["cross.0.3:off", "encoder.0.1:pin@2", "decoder.*:unmask"]]),
]


class InsideQuestion(Question):
    sentence: Annotated[int, Field(ge=0, description="Which of the text's sentences, from 0")] = 0
    translation: Annotated[
        TokenList | TranslationText | None, Field(description="As tokens or text; null: the service's own translation")
    ] = None


class ChangedQuestion(InsideQuestion):
    changes: Changes = []  # noqa: RUF012 pydantic copies it


class AttentionQuestion(ChangedQuestion):
    kind: AttentionKind
    layer: LayerNumber
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


class LensQuestion(ChangedQuestion):
    count: Annotated[int, Field(ge=1, le=10, description="Tokens of each list")] = 5


class ContrastQuestion(InsideQuestion):
    instead: Annotated[
        TokenList | TranslationText | None,
        Field(description="Tokens, or words as text; null: the most probable other token"),
    ] = None
    position: Annotated[
        int | None, Field(ge=0, description="Which of `produced`, from 0; null: the one of least probability")
    ] = None


class EffectsQuestion(InsideQuestion):
    kind: AttentionKind | None = None
    layer: LayerNumber | None = None


class PositionsQuestion(ApiModel):
    source: Language
    target: Language
    count: Annotated[int, Field(ge=1, le=512)] = 64


class NeighboursQuestion(ApiModel):
    text: QuestionText
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


class CandidateAnswer(ApiModel):
    token: str
    probability: float


class ShiftAnswer(ApiModel):
    token: str
    before: float
    after: float


class ReadingAnswer(ApiModel):
    layer: int
    probability: float
    rank: int
    candidates: list[CandidateAnswer]
    promoted: list[ShiftAnswer]
    suppressed: list[ShiftAnswer]


class LensAnswer(ApiModel):
    text: str
    translation: str
    fed: list[str]
    produced: list[str]
    positions: list[list[ReadingAnswer]]


class InfluenceAnswer(ApiModel):
    token: str
    gradient_input: float
    gradient_norm: float
    erasure: float | None


class ContrastAnswer(ApiModel):
    text: str
    translation: str
    position: int
    this: list[str]
    that: list[str]
    this_log_probability: float
    that_log_probability: float
    difference: float
    source: list[InfluenceAnswer]
    before: list[InfluenceAnswer]
