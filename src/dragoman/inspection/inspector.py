"""Inspector: attention, interventions and head effects of a run on one sentence. Heads and layers count from 0.

inspector = Inspector.load("runs/my")
seen = inspector.inspect("Two dogs play.")
seen.weights["cross", 0][3]                        # the attention of head 3 of layer 0, (rows, columns)
inspector.intervene("Two dogs play.", ["cross.0.3:off"]).change
inspector.effects("Two dogs play.")                # every head, the one that matters most first
inspector.lens("Two dogs play.").positions[0]      # what each layer would have said for the first token
inspector.contributions("Two dogs play.").total    # of source tokens and of those said before, to each token
inspector.contrast("Two dogs play.", "chats")      # why that word and not this one
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.data.words import Word
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import UsageError
from dragoman.inspection.attention_trace import Trace, trace
from dragoman.inspection.contrast import Continuations, Contrast, Influence, Numbers, attribute, log_probabilities
from dragoman.inspection.contributions import Contributions, contributions_of
from dragoman.inspection.explain import Explainer
from dragoman.inspection.head_statistics import HeadStatistics, head_statistics
from dragoman.inspection.interventions import Change, interventions
from dragoman.inspection.logit_lens import LogitLens, read_layers
from dragoman.model.probe import AttentionKind, Intervention, Probe, Site

Side = Literal["source", "target"]
# Passes are cached for callers that ask for one sub-layer after the other: so many numbers, 64 MB.
CACHED_NUMBERS = 16_000_000


@dataclass(frozen=True)
class Inspection:
    """The record of one teacher-forced pass over a translation: the same numbers as decoding it token by token.

    Rows and columns of "encoder" are `source`. Rows of "decoder" and "cross" have two tokens: `fed`, the decoder's
    input there, and `produced`, its output. Columns of "decoder" are `fed`, those of "cross" are `source`.
    """

    text: str
    translation: str
    tokens: tuple[str, ...]  # of the translation, without start and end symbols
    source: tuple[str, ...]  # the end symbol last, where the model reads one
    source_words: tuple[Word, ...]
    fed: tuple[str, ...]  # the start symbol first
    produced: tuple[str, ...]  # the end symbol last
    log_probabilities: tuple[float, ...]  # of the produced tokens
    weights: Mapping[Site, Tensor]  # (H, rows, columns)
    scores: Mapping[Site, Tensor]  # likewise: the softmax's input, q·k times `scale`, before the mask
    statistics: Mapping[Site, tuple[HeadStatistics, ...]]  # one a head
    changes: tuple[Change, ...]
    d_k: int
    scale: float

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)


@dataclass(frozen=True)
class InterventionOutcome:
    """The effect of changes: on the log-probability of a translation, and on the model's own translation."""

    before: Inspection
    after: Inspection  # of the same translation
    translation: str | None  # the changed model's own; None: it was not asked for
    tokens: tuple[str, ...] | None
    translation_log_probability: float | None  # by the changed model

    @property
    def change(self) -> float:
        """The change in the translation's log-probability; below 0: the changed model finds it less probable."""
        return self.after.log_probability - self.before.log_probability


@dataclass(frozen=True)
class HeadEffect:
    """What switching off one head does to a translation."""

    kind: AttentionKind
    layer: int
    head: int
    change: float  # in the log-probability of the translation, when the head is switched off


@dataclass(frozen=True)
class Neighbour:
    """A token whose embedding is close to that of a word."""

    token: str
    similarity: float  # the cosine between the two embeddings


class Inspector:
    """Looks into the translations of one run, sentence by sentence; keeps the last passes."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer
        self.model = explainer.model
        self.tokenizer = explainer.tokenizer
        self.engine: ReferenceEngine = explainer.engine
        self._cache: OrderedDict[tuple[object, ...], Inspection] = OrderedDict()

    @classmethod
    def load(
        cls,
        run: str | Path,
        checkpoint: str | None = None,
        to: str | None = None,
        source: str | None = None,
        **search: float,
    ) -> Self:
        """Loads a run: `Inspector.load("runs/my", checkpoint="step-00001000", beam=1)`. `to`, `source`: the languages
        that one of several is asked for."""
        return cls(Explainer.load(run, checkpoint, to, source, **search))

    @property
    def sites(self) -> tuple[Site, ...]:
        """All attention sub-layers, in the order of a pass."""
        encoder = [Site("encoder", layer) for layer in range(len(self.model.encoder))]
        return (*encoder, *(Site(kind, layer) for layer in range(len(self.model.decoder)) for kind in _IN_A_DECODER))

    def inspect(
        self, text: str, translation: str | Sequence[str] | None = None, changes: Sequence[Change | str] = ()
    ) -> Inspection:
        """Runs a pass over a translation given as text or tokens, or over the run's own if none is given."""
        source, target = self._ids(text, translation)
        return self._inspect(source, target, _parsed(changes))

    def intervene(
        self,
        text: str,
        changes: Sequence[Change | str],
        translation: str | Sequence[str] | None = None,
        retranslate: bool = True,
    ) -> InterventionOutcome:
        """Compares passes without and with the changes, which all apply together; then translates with them."""
        source, target = self._ids(text, translation)
        wanted = _parsed(changes)
        before, after = self._inspect(source, target, ()), self._inspect(source, target, wanted)
        if not retranslate:
            return InterventionOutcome(before, after, None, None, None)
        best = self._search(source, wanted)
        return InterventionOutcome(
            before, after, self.explainer.text_of(best.ids), self.explainer.pieces(best.ids), best.log_probability
        )

    @torch.inference_mode()
    def effects(
        self,
        text: str,
        translation: str | Sequence[str] | None = None,
        kind: AttentionKind | None = None,
        layer: int | None = None,
    ) -> tuple[HeadEffect, ...]:
        """Switches off one head after the other, of one kind or sub-layer if that is named; largest effects first."""
        source, target = self._ids(text, translation)
        plain = self._inspect(source, target, ()).log_probability
        sites = [site for site in self.sites if kind in (None, site.kind) and layer in (None, site.layer)]
        if not sites:
            raise UsageError(f"{kind} layer {layer}; the model has {_counted(self.sites)}")
        ids = torch.tensor([self.tokenizer.encoder_ids(source)], device=self.engine.device)
        given = len(self.tokenizer.start_ids)
        fed = torch.tensor([[*self.tokenizer.start_ids, *target]], device=self.engine.device)
        labels = torch.tensor([[*target, self.tokenizer.eos_id]], device=self.engine.device)[..., None]
        memory = self.model.eval().encode(ids)  # as it is for every head of the decoder
        found = []
        for site in sites:
            for head in range(self.model.config.num_heads):
                probe = Probe({site: Intervention(heads_off=(head,))})
                seen = self.model.encode(ids, probe=probe) if site.kind == "encoder" else memory
                logits = self.model.output(self.model.decode(fed, seen, probe=probe))[:, given - 1 :]  # (1, T, V)
                log_probability = logits.float().log_softmax(dim=-1).gather(2, labels).sum().item()
                found.append(HeadEffect(site.kind, site.layer, head, log_probability - plain))
        return tuple(sorted(found, key=lambda effect: -abs(effect.change)))

    def lens(
        self,
        text: str,
        translation: str | Sequence[str] | None = None,
        changes: Sequence[Change | str] = (),
        count: int = 5,
    ) -> LogitLens:
        """What every layer of the decoder would have said at every position; `count` tokens of each list."""
        source, target = self._ids(text, translation)
        seen = self._inspect(source, target, wanted := _parsed(changes))
        probe = Probe(self._interventions(wanted, source, target))
        read, said = self._tensors(source, target)
        positions = read_layers(self.model, read, said, probe, count, self.tokenizer.piece)
        return LogitLens(seen.text, seen.translation, seen.fed, seen.produced, positions)

    def contributions(
        self, text: str, translation: str | Sequence[str] | None = None, changes: Sequence[Change | str] = ()
    ) -> Contributions:
        """How much each source token, and each token said before, contributes to each token of a translation."""
        source, target = self._ids(text, translation)
        seen = self._inspect(source, target, wanted := _parsed(changes))
        probe = Probe(self._interventions(wanted, source, target))
        read, said = self._tensors(source, target)
        total, sublayers = contributions_of(self.model, read, said[:, :-1], probe)
        return Contributions(seen.text, seen.translation, seen.source, seen.fed, seen.produced, total, sublayers)

    def contrast(
        self,
        text: str,
        instead: str | Sequence[str] | None = None,
        position: int | None = None,
        translation: str | Sequence[str] | None = None,
    ) -> Contrast:
        """Why the translation goes on as it does at a position (a row of `produced`), and not with `instead`.

        Tokens are compared with as many tokens of the translation; text, which stands for whole words, with the word at
        the position. Left out: the position where the model was least sure, and the token that it then preferred.
        """
        source, target = self._ids(text, translation)
        seen = self._inspect(source, target, ())
        given = len(self.tokenizer.start_ids)
        if position is None:
            position = min(range(given - 1, len(seen.produced)), key=lambda row: seen.log_probabilities[row])
        if not given - 1 <= position < len(seen.produced):
            raise UsageError(f"position {position}; the translation has {given - 1} to {len(seen.produced) - 1}")
        first = position - given + 1
        said = [*target, self.tokenizer.eos_id]
        if instead is None:
            that: tuple[int, ...] = (self._next_best(source, target, first, said[first]),)
        elif isinstance(instead, str):
            that = tuple(self.tokenizer.encode_target(instead.strip()))
        else:
            that = self.explainer.token_ids(instead)
        last = first + len(that)
        if isinstance(instead, str):
            words = [word for word in self.explainer.words(target) if word.first_token <= first <= word.last_token]
            first, last = (words[0].first_token, words[0].last_token + 1) if words else (first, first + 1)
        this = tuple(said[first:last])
        if not that or that == this:
            raise UsageError(f"instead of {''.join(map(self.tokenizer.piece, this))!r} the same; give another word")
        before = (*self.tokenizer.start_ids, *target[:first])
        asked = Continuations(self.tokenizer.encoder_ids(source), before, this, that)
        log_this, log_that = log_probabilities(self.model.eval(), asked)
        of_source, of_before = attribute(self.model, asked, given)
        pieces = self.explainer.pieces
        return Contrast(
            text=seen.text,
            translation=seen.translation,
            position=first + given - 1,
            this=pieces(this),
            that=pieces(that),
            this_log_probability=log_this,
            that_log_probability=log_that,
            source=_influences(seen.source, of_source),
            before=_influences(self._fed_pieces(before), of_before),
        )

    def positions(self, count: int) -> Tensor:
        """The position encodings of the first positions, as they are added to the embeddings: (count, d_model)."""
        rows = self.model.source_embedding.position_rows(0, count)
        if rows is None:
            raise UsageError("model.positions = none: nothing is added to the embeddings of this run")
        return rows.detach().cpu()

    def neighbours(self, word: str, count: int = 8, side: Side = "source") -> tuple[Neighbour, ...]:
        """The tokens with the most similar embeddings; a word of several tokens counts as the mean of theirs."""
        tokenizer = self.tokenizer
        encode, piece = (
            (tokenizer.encode, tokenizer.source_piece)
            if side == "source"
            else (tokenizer.encode_target, tokenizer.piece)
        )
        marks = set(tokenizer.case_marks.values())
        ids = [token for token in encode(word.strip()) if token not in marks]
        if not ids:
            raise UsageError("neighbours of nothing; give a word")
        embedding = self.model.source_embedding if side == "source" else self.model.target_embedding
        if not isinstance(embedding.tokens, nn.Embedding):
            raise UsageError("this run reads pictures; only words have neighbours")
        vectors = embedding.tokens.weight.detach().float()  # (V, D)
        similarities = F.normalize(vectors, dim=-1) @ F.normalize(vectors[ids].mean(dim=0), dim=0)
        similarities[[*ids, *marks, *_not_in_words(map(piece, range(len(vectors))))]] = -torch.inf
        best = similarities.topk(min(count, len(similarities)))
        return tuple(
            Neighbour(piece(token), value)
            for value, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            if value > -torch.inf
        )

    def _ids(self, text: str, translation: str | Sequence[str] | None) -> tuple[list[int], tuple[int, ...]]:
        source = self.explainer.source_ids(text)
        if translation is None:
            return source, tuple(self._search(source, ()).ids)
        if isinstance(translation, str):
            target = tuple(self.tokenizer.encode_target(translation.strip()))
        else:
            target = self.explainer.token_ids(translation)
        limit = self.explainer.search.max_source_length + self.explainer.search.max_extra_length
        if len(target) > limit:
            raise UsageError(f"a translation of {len(target)} tokens; at most {limit} are looked into: shorten it")
        return source, target

    def _tensors(self, source: Sequence[int], target: Sequence[int]) -> tuple[Tensor, Tensor]:
        """What the encoder reads, and what the decoder is fed and says, with start and end symbols: (1, N) each."""
        said = [*self.tokenizer.start_ids, *target, self.tokenizer.eos_id]
        read = self.tokenizer.encoder_ids(source)
        return torch.tensor([read], device=self.engine.device), torch.tensor([said], device=self.engine.device)

    @torch.inference_mode()
    def _next_best(self, source: Sequence[int], target: Sequence[int], at: int, chosen: int) -> int:
        """The most probable other token in the place of one."""
        read, said = self._tensors(source, target[:at])
        best = self.model.eval()(read, said[:, :-1])[0, -1].topk(2).indices.tolist()
        return int(best[1] if best[0] == chosen else best[0])

    def _interventions(
        self, changes: Sequence[Change], source: Sequence[int], target: Sequence[int]
    ) -> Mapping[Site, Intervention]:
        longest = max(len(target), len(source) + self.explainer.search.max_extra_length)
        longest += len(self.tokenizer.start_ids)
        return interventions(changes, self.model, len(self.tokenizer.encoder_ids(source)), longest)

    def _search(self, source: list[int], changes: Sequence[Change]) -> Hypothesis:
        probe = Probe(self._interventions(changes, source, ())) if changes else None
        return self.engine.translate([source], self.explainer.search, probe=probe)[0][0]

    def _inspect(self, source: Sequence[int], target: Sequence[int], changes: tuple[Change, ...]) -> Inspection:
        key = (tuple(source), tuple(target), changes)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        start = self.tokenizer.start_ids
        fed = [*start, *target, self.tokenizer.eos_id]
        wanted = self._interventions(changes, source, target)
        traced = trace(self.model, self.tokenizer.encoder_ids(source), fed, wanted, len(start))
        found = self._named(traced, source, target, changes)
        self._cache[key] = found
        while len(self._cache) > 1 and sum(map(_numbers, self._cache.values())) > CACHED_NUMBERS:
            self._cache.popitem(last=False)
        return found

    def _fed_pieces(self, fed: Sequence[int]) -> tuple[str, ...]:
        """A start, whatever token an imported model begins with (Marian's with <pad>, NLLB with </s>)."""
        return ("<s>", *self.explainer.pieces(fed[1:]))

    def _named(
        self, traced: Trace, source: Sequence[int], target: Sequence[int], changes: tuple[Change, ...]
    ) -> Inspection:
        pieces = self.explainer.pieces
        config = self.model.config
        return Inspection(
            text=self.tokenizer.decode_source(traced.source),
            translation=self.explainer.text_of(target),
            tokens=pieces(target),
            source=self.explainer.source_pieces(traced.source),
            source_words=self.explainer.source_words(source),
            fed=self._fed_pieces(traced.fed),
            produced=pieces(traced.predicted),
            log_probabilities=traced.log_probabilities,
            weights=traced.weights,
            scores=traced.scores,
            statistics={
                site: head_statistics(weights, site.kind, self.tokenizer.ends_source)
                for site, weights in traced.weights.items()
            },
            changes=changes,
            d_k=config.key_size,
            scale=self.model.decoder[0].cross_attention.scale,  # type: ignore[union-attr, arg-type]
        )


_IN_A_DECODER: tuple[AttentionKind, AttentionKind] = ("decoder", "cross")


def _parsed(changes: Sequence[Change | str]) -> tuple[Change, ...]:
    return tuple(Change.parse(change) if isinstance(change, str) else change for change in changes)


def _influences(tokens: Sequence[str], numbers: Numbers) -> tuple[Influence, ...]:
    return tuple(Influence(*one) for one in zip(tokens, *numbers, strict=True))


def _numbers(inspection: Inspection) -> int:
    return sum(weights.numel() for weights in inspection.weights.values()) * 2  # scores are as many


def _counted(sites: Sequence[Site]) -> str:
    last = {site.kind: site.layer for site in sites}
    return ", ".join(f"{kind} 0 to {layer}" for kind, layer in last.items())


def _not_in_words(pieces: Iterable[str]) -> list[int]:
    """Special symbols and bytes: tokens that are no part of a word."""
    return [token for token, piece in enumerate(pieces) if piece.startswith("<") and piece.endswith(">")]
