"""Translates sentences by search, and repairs what has plain defects. What must come through is not looked at here."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.data.glossary import Required, Requirements
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.words import words_of
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.progress import Say, discard
from dragoman.translation.confidence import Calibration, Evidence, Rating
from dragoman.translation.lengths import ANY_PAIR, UsualLengths
from dragoman.translation.repair import DecodedSentence, repair
from dragoman.translation.result import Candidate, Translation
from dragoman.translation.sentence_decoder import EncodedSentence, SentenceDecoder


@dataclass(frozen=True)
class TranslationOptions:
    """How the texts of one call are to be translated; `Translator.translate_stream` says what each means."""

    n_best: int = 1
    seed: int = 0
    scores: bool = True
    required: Requirements | None = None
    repair: bool = True
    rate: bool = False
    protect: bool = True
    tell: Say = discard

    def required_words(self, text: str) -> tuple[Required, ...]:
        return tuple(self.required(text)) if self.required is not None else ()

    def accepts_anything(self, text: str) -> bool:
        """Whether even a runaway or empty translation is wanted: the source in its place would lack required words."""
        return not self.repair or bool(self.required_words(text))


@dataclass(frozen=True)
class SentenceSearch:
    """A decoder and how to use it: the `PlainTranslator` that `fallbacks` ask."""

    decoder: SentenceDecoder
    options: TranslationOptions
    calibration: Calibration | None = None  # None: translations come without confidences
    lengths: UsualLengths = ANY_PAIR

    def translate(
        self, texts: Sequence[str], n_best: int = 1, required: Sequence[Sequence[Required]] | None = None
    ) -> list[Translation]:
        """Each text as one sentence. `required`: what each translation must hold, beside what the options say."""
        decoder, options = self.decoder, self.options
        sentences = self._encode(texts, required)
        found = decoder.decode(sentences, n_best, options.seed, options.scores or n_best > 1, options.tell)
        text_of = _TextOf(decoder.tokenizer, [hypotheses[0] for hypotheses in found if hypotheses])
        case_marks = frozenset(decoder.tokenizer.case_marks.values())
        decoded = [
            DecodedSentence.examine(sentence, hypotheses, text_of, case_marks, self.lengths)
            for sentence, hypotheses in zip(sentences, found, strict=True)
        ]
        if options.repair and not decoder.search.sampling:
            decoded = self._repair(decoded)
        ratings: Sequence[Rating | None] = [None] * len(decoded)
        if self.calibration is not None:
            ratings = [self.calibration.rate(evidence) for evidence in evidence_of(decoded, decoder)]
        return [self._translation(one, rating, text_of) for one, rating in zip(decoded, ratings, strict=True)]

    def _encode(self, texts: Sequence[str], required: Sequence[Sequence[Required]] | None) -> list[EncodedSentence]:
        more = [()] * len(texts) if required is None or not self.decoder.can_constrain else required
        return [
            EncodedSentence(text, ids, self.options.required_words(text) + tuple(words))
            for text, ids, words in zip(texts, self.decoder.encode(texts), more, strict=True)
        ]

    def _repair(self, decoded: Sequence[DecodedSentence]) -> list[DecodedSentence]:
        defective = [index for index, one in enumerate(decoded) if one.worse]
        if not defective:  # nearly always
            return list(decoded)
        repaired = repair([decoded[index] for index in defective], self.decoder, self.options.tell, self.lengths)
        by_index = dict(zip(defective, repaired, strict=True))
        return [by_index.get(index, one) for index, one in enumerate(decoded)]

    def _translation(self, decoded: DecodedSentence, rating: Rating | None, text_of: "_TextOf") -> Translation:
        return Translation(
            decoded.sentence.text,
            tuple(self._candidate(hypothesis, text_of) for hypothesis in decoded.hypotheses),
            decoded.defects,
            decoded.repaired,
            self._confidence(decoded, rating, text_of) if rating is not None else None,
            rating.words if rating is not None else (),
        )

    def _confidence(self, decoded: DecodedSentence, rating: Rating, text_of: "_TextOf") -> float:
        """What is short is lowered by how short it is: hardly any of those that the fit saw was."""
        if "short" not in decoded.defects:
            return rating.confidence
        return rating.confidence * self.lengths.share(decoded.sentence.text, text_of(decoded.hypotheses[0]))

    def _candidate(self, hypothesis: Hypothesis, text_of: "_TextOf") -> Candidate:
        return Candidate(
            # A line stays a line: a model that spells in bytes can write a line feed, too.
            text_of(hypothesis).replace("\n", " "),
            hypothesis.score,
            hypothesis.log_probability,
            self.decoder.tokenizer.names(hypothesis.ids),
            hypothesis.token_log_probabilities,
        )


def evidence_of(sentences: Sequence[DecodedSentence], decoder: SentenceDecoder) -> list[Evidence]:
    """What a confidence is estimated from, of the best hypothesis of each sentence."""
    best = [one.hypotheses[0] for one in sentences]
    log_probs: list[Sequence[float]] = [hypothesis.token_log_probabilities or () for hypothesis in best]
    unknown = [index for index, known in enumerate(log_probs) if not known]
    scored = decoder.score([sentences[i].sentence.ids for i in unknown], [best[i].ids for i in unknown])
    for index, scores in zip(unknown, scored, strict=True):
        log_probs[index] = scores
    return [
        Evidence(
            len(one.sentence.ids),
            decoder.tokenizer.decode(hypothesis.ids).replace("\n", " "),
            words_of(hypothesis.ids, decoder.tokenizer),
            tuple(scores),
        )
        for one, hypothesis, scores in zip(sentences, best, log_probs, strict=True)
    ]


class _TextOf:
    """The texts of hypotheses. Those that are given at the start are decoded together, which is quicker."""

    def __init__(self, tokenizer: Tokenizer, hypotheses: Sequence[Hypothesis]) -> None:
        self._tokenizer = tokenizer
        ids = [hypothesis.ids for hypothesis in hypotheses]
        self._known = dict(zip(ids, tokenizer.decode_batch(ids), strict=True))

    def __call__(self, hypothesis: Hypothesis) -> str:
        known = self._known.get(hypothesis.ids)
        return self._tokenizer.decode(hypothesis.ids) if known is None else known
