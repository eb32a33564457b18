"""Explains a translation: the alternatives at each position, the word alignment, the steps of the beam search.

All of it comes from the reference engine, for one sentence at a time. Tokens are written as in `Candidate.tokens`, so
that a translation of `Translator` can be explained as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from dragoman.config import SearchConfig
from dragoman.data.dataset import validation_pairs
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.words import Word, words_of
from dragoman.decoding.alignment import Alignment, AlignmentHeads
from dragoman.decoding.constraints import forced_prefix
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import Hypothesis, length_penalty_of
from dragoman.decoding.search_record import BeamStep, Fate
from dragoman.errors import UsageError
from dragoman.inspection.alignment import (
    CALIBRATION_SENTENCES,
    align_words,
    find_alignment_heads,
    links_of,
    made_up_sentences,
)
from dragoman.inspection.attention_trace import Trace, trace
from dragoman.model.probe import Site
from dragoman.model.transformer import Transformer
from dragoman.translation.search_settings import with_changes
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class Alternative:
    """A token that could stand at a position."""

    token: str
    probability: float


@dataclass(frozen=True)
class Position:
    """A token of the translation, and the tokens that the model found most probable there, the best first."""

    token: str
    probability: float
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class Explanation:
    """A translation with its alternatives and its word alignment."""

    source: str
    target: str
    source_words: tuple[Word, ...]
    target_words: tuple[Word, ...]
    tokens: tuple[str, ...]
    positions: tuple[Position, ...]  # one more than tokens: the end symbol's
    alignment: tuple[tuple[float, ...], ...]  # target words by source words: how much each looks at each
    links: tuple[tuple[int, int], ...]  # (target word, source word)
    log_probability: float
    score: float


@dataclass(frozen=True)
class WordChoice:
    """A word that could follow: its tokens, and their probability."""

    text: str
    tokens: tuple[str, ...]
    probability: float


@dataclass(frozen=True)
class BeamCandidate:
    """A continuation that the beam search considered at one step."""

    parent: int  # the row it continues
    row: int | None  # the row it becomes; None: it is not kept
    token: str
    text: str  # the hypothesis so far
    token_probability: float
    log_probability: float
    length: int  # in tokens, this one included
    score: float
    fate: Fate


@dataclass(frozen=True)
class BeamRecord:
    """A beam search step by step. `finished` are all hypotheses that ended, in the order in which they did."""

    beam: int
    alpha: float
    steps: tuple[tuple[BeamCandidate, ...], ...]
    finished: tuple[BeamCandidate, ...]
    target: str
    tokens: tuple[str, ...]
    score: float


class Explainer:
    """Explains the translations of one run."""

    def __init__(
        self,
        engine: ReferenceEngine,
        search: SearchConfig,
        calibration: Sequence[tuple[str, str]] = (),
        tag: str = "",
    ) -> None:
        """calibration: pairs to choose the heads by that are shown as alignment. tag: put before every source, where
        that is how the model is asked for a language; it is no word of the source."""
        if len(engine.models) != 1:
            raise UsageError(f"an ensemble of {len(engine.models)}; only a single run's translations can be explained")
        halves = (engine.models[0].config.encoder_layers, engine.models[0].config.decoder_layers)
        if 0 in halves:
            raise UsageError(
                f"a model of {halves[0]} encoder and {halves[1]} decoder layers; only one that has both can be "
                f"explained"
            )
        model = engine.models[0]
        if not isinstance(model, Transformer):
            raise UsageError(
                f"model.architecture = {model.config.architecture}; only a transformer can be explained: "
                f"the others have no heads"
            )
        self.engine = engine
        self.search = search
        self.tokenizer: Tokenizer = engine.tokenizer
        self.model = model
        self._ids = {self.tokenizer.piece(index): index for index in range(self.tokenizer.vocab_size)}
        self._calibration = calibration
        self._tag = tag
        self._tag_tokens = len(self.tokenizer.encode(tag)) if tag else 0

    @classmethod
    def load(
        cls,
        run: str | Path,
        checkpoint: str | None = None,
        to: str | None = None,
        source: str | None = None,
        **search: float,
    ) -> Self:
        """Loads a run. `to`, `source`: the languages that one of several is asked for."""
        translator = Translator.load(run, checkpoint=checkpoint, engine="reference", to=to, source=source, **search)  # type: ignore[arg-type]
        assert isinstance(translator.engine, ReferenceEngine)
        calibration = validation_pairs(Path(run), CALIBRATION_SENTENCES)
        return cls(translator.engine, translator.search, calibration, translator.tag)

    def explain(
        self,
        text: str,
        translation: Sequence[str] | None = None,
        prefix: Sequence[str] = (),
        alternatives: int = 5,
        **search: float,
    ) -> Explanation:
        """Explains the translation given as tokens, or else the best one that begins with `prefix`."""
        source = self.source_ids(text)
        settings = with_changes(self.search, **search)
        ids = self.find(source, prefix, settings).ids if translation is None else self.token_ids(translation)
        traced = self._trace(source, ids)
        best = self._top(source, ids, alternatives)
        positions = tuple(
            Position(self.tokenizer.piece(token), _probability(log_probability), choices)
            for token, log_probability, choices in zip(
                traced.predicted[self._given - 1 :], traced.log_probabilities[self._given - 1 :], best, strict=True
            )
        )
        aligned = self._aligned(source, ids, traced.weights)
        total = sum(traced.log_probabilities)
        return Explanation(
            source=self.tokenizer.decode_source(source[self._tag_tokens :]),
            target=self.text_of(ids),
            source_words=aligned.source_words,
            target_words=aligned.target_words,
            tokens=self.pieces(ids),
            positions=positions,
            alignment=aligned.weights,
            links=links_of(aligned.weights),
            log_probability=total,
            score=total / length_penalty_of(settings)(len(ids) + 1),
        )

    def align(self, text: str, translation: Sequence[str]) -> Alignment:
        """The word alignment of a translation given as tokens; takes one pass through the model."""
        source, ids = self.source_ids(text), self.token_ids(translation)
        return self._aligned(source, ids, self._trace(source, ids).weights)

    def alternatives(self, text: str, prefix: Sequence[str], count: int = 6) -> tuple[WordChoice, ...]:
        """Words that may follow the prefix: each of the most probable tokens, completed to the end of its word."""
        source, before = self.source_ids(text), self.token_ids(prefix)
        starts = [[*before, *start] for start in self._starts(source, before, count)]
        limit = len(source) + self.search.max_extra_length
        if not starts or len(before) >= limit:
            return ()
        greedy = with_changes(self.search, beam=1)
        found = self.engine.translate([source] * len(starts), greedy, constrain=forced_prefix(starts))
        choices: dict[str, WordChoice] = {}
        for hypothesis in (hypotheses[0] for hypotheses in found if hypotheses):
            word = self.words(hypothesis.ids)[_word_at(self.words(hypothesis.ids), len(before))]
            stop = word.last_token + 1
            assert hypothesis.token_log_probabilities is not None
            probability = _probability(sum(hypothesis.token_log_probabilities[len(before) : stop]))
            tokens = self.pieces(hypothesis.ids[len(before) : stop])
            # Two first tokens can lead to the same word, split differently: it is offered once, as its best split.
            if word.text and (word.text not in choices or choices[word.text].probability < probability):
                choices[word.text] = WordChoice(word.text, tokens, probability)
        return tuple(sorted(choices.values(), key=lambda choice: -choice.probability))

    def _starts(self, source: list[int], before: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
        """The most probable tokens after these, without the end symbol. A mark of inline case says nothing by itself:
        it comes with each of the most probable tokens after it."""
        marks, end = set(self.tokenizer.case_marks.values()), self.tokenizer.eos_id
        found: dict[tuple[int, ...], float] = {}
        for choice in self._top(source, before, count)[-1]:
            token = self._ids[choice.token]
            if token not in marks:
                found[(token,)] = choice.probability
                continue
            for after in self._top(source, (*before, token), count)[-1]:
                found[token, self._ids[after.token]] = choice.probability * after.probability
        return [start for start in sorted(found, key=lambda start: -found[start])[:count] if end not in start]

    def beam(self, text: str, prefix: Sequence[str] = (), **search: float) -> BeamRecord:
        """The beam search that `explain` does, with every candidate that it considered."""
        source = self.source_ids(text)
        settings = with_changes(self.search, **search)
        recorded: list[BeamStep] = []
        best = self.find(source, prefix, settings, recorded)
        prefixes: list[tuple[int, ...]] = [()]
        steps, finished = [], []
        for step in recorded:
            sequences = [(*prefixes[candidate.parent], candidate.token) for candidate in step.candidates]
            texts = self.tokenizer.decode_batch(sequences)
            level = tuple(
                BeamCandidate(
                    parent=candidate.parent,
                    row=candidate.beam,
                    token=self.tokenizer.piece(candidate.token),
                    text=text_so_far.replace("\n", " "),
                    token_probability=_probability(candidate.token_log_probability),
                    log_probability=candidate.log_probability,
                    length=step.position + 1,
                    score=candidate.score,
                    fate=candidate.fate,
                )
                for candidate, text_so_far in zip(step.candidates, texts, strict=True)
            )
            finished += [candidate for candidate in level if candidate.fate == "finished"]
            sequence_of_row = {c.row: ids for c, ids in zip(level, sequences, strict=True) if c.row is not None}
            prefixes = [sequence_of_row.get(row, ()) for row in range(max(sequence_of_row, default=0) + 1)]
            steps.append(level)
        return BeamRecord(
            beam=settings.beam,
            alpha=settings.alpha,
            steps=tuple(steps),
            finished=tuple(finished),
            target=self.text_of(best.ids),
            tokens=self.pieces(best.ids),
            score=best.score,
        )

    @cached_property
    def alignment_heads(self) -> AlignmentHeads:
        """The heads whose attention is shown as alignment; found when they are first needed, which takes seconds."""
        pairs = self._calibration
        if not pairs and not self.model.config.alignment_layer:
            pairs = self._made_up_pairs()
        return find_alignment_heads(self.model, self.tokenizer, pairs)

    def _made_up_pairs(self) -> list[tuple[str, str]]:
        """What a run without text of its own is measured on, and how it translates that."""
        sources = [f"{self._tag} {line}".lstrip() for line in made_up_sentences(self.tokenizer)]
        search = replace(self.search, beam=1, max_extra_length=10)
        found = self.engine.translate(list(map(self.tokenizer.encode, sources)), search) if sources else []
        return [(source, self.text_of(ranked[0].ids)) for source, ranked in zip(sources, found, strict=True)]

    def words(self, ids: Sequence[int]) -> tuple[Word, ...]:
        return words_of(ids, self.tokenizer)

    def source_words(self, source: Sequence[int]) -> tuple[Word, ...]:
        """The words of a source, with their tokens among these ids."""
        before = self._tag_tokens
        words = words_of(source[before:], self.tokenizer, "source")
        return tuple(
            replace(word, first_token=word.first_token + before, last_token=word.last_token + before) for word in words
        )

    def _aligned(self, source: Sequence[int], ids: Sequence[int], weights: Mapping[Site, Tensor]) -> Alignment:
        rows = {site: found[:, self._given - 1 :] for site, found in weights.items() if site.kind == "cross"}
        return align_words(rows, self.alignment_heads, self.source_words(source), self.words(ids))

    def _trace(self, source: Sequence[int], ids: Sequence[int]) -> Trace:
        fed = [*self.tokenizer.start_ids, *ids, self.tokenizer.eos_id]
        return trace(self.model, self.tokenizer.encoder_ids(source), fed, given=self._given)

    @property
    def _given(self) -> int:
        """How many tokens the decoder is fed before the first that it chooses."""
        return len(self.tokenizer.start_ids)

    def source_ids(self, text: str) -> list[int]:
        sentence = text.strip()
        ids = self.tokenizer.encode(f"{self._tag} {sentence}" if self._tag and sentence else sentence)
        if not 1 <= len(ids) <= self.search.max_source_length:
            raise UsageError(
                f"a sentence of {len(ids)} tokens; explained are sentences of 1 to {self.search.max_source_length} "
                f"(search.max_source_length): give one sentence at a time"
            )
        return ids

    def token_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        unknown = [token for token in tokens if token not in self._ids]
        if unknown:
            raise UsageError(f"token {unknown[0]!r} is not in the vocabulary; give tokens as a translation names them")
        return tuple(self._ids[token] for token in tokens)

    def tokens_of(self, text: str) -> tuple[str, ...]:
        """The tokens of a translation, or of its beginning, as a person types it."""
        ids = self.tokenizer.encode_target(text.strip())
        limit = self.search.max_source_length + self.search.max_extra_length
        if len(ids) > limit:
            raise UsageError(f"a translation of {len(ids)} tokens; at most {limit} are explained: shorten it")
        return self.pieces(ids)

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(self.tokenizer.piece, ids))

    def source_pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(self.tokenizer.source_piece, ids))

    def text_of(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids).replace("\n", " ")

    def find(
        self, source: list[int], prefix: Sequence[str], search: SearchConfig, recorded: list[BeamStep] | None = None
    ) -> Hypothesis:
        forced = self.token_ids(prefix)
        recorder = None if recorded is None else recorded.append
        constrain = forced_prefix([forced]) if forced else None
        found = self.engine.translate([source], search, constrain=constrain, recorder=recorder)[0]
        if not found:
            raise UsageError(
                f"a beginning of {len(forced)} tokens; at most {len(source) + search.max_extra_length} are translated"
            )
        return found[0]

    @torch.inference_mode()
    def _top(self, source: Sequence[int], ids: Sequence[int], count: int) -> list[tuple[Alternative, ...]]:
        """The `count` most probable tokens at each position of a translation, and after it."""
        self.model.eval()
        device = self.engine.device
        fed = torch.tensor([[*self.tokenizer.start_ids, *ids]], device=device)
        read = torch.tensor([self.tokenizer.encoder_ids(source)], device=device)
        logits = self.model(read, fed)[0, self._given - 1 :]  # (T, V)
        top = logits.float().softmax(dim=-1).topk(min(count, logits.shape[-1]), dim=-1)
        return [
            tuple(Alternative(self.tokenizer.piece(token), value) for token, value in zip(*row, strict=True))
            for row in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]


def _word_at(words: Sequence[Word], token: int) -> int:
    return next(index for index, word in enumerate(words) if word.first_token <= token <= word.last_token)


def _probability(log_probability: float) -> float:
    return float(torch.tensor(log_probability, dtype=torch.float64).exp().clamp(max=1.0))
