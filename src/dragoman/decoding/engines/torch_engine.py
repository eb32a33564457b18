"""The reference engine: our own search over our own model, in torch; one model or an ensemble of several."""

import copy
import functools
import math
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.config import SearchConfig
from dragoman.data.batching import pad
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.beam_search import beam_search, greedy_search, sample
from dragoman.decoding.constrained_beam import Requirement
from dragoman.decoding.constraints import Constrain, all_of, no_repeats
from dragoman.decoding.engines import batches_of_like_length, require_vocabulary_of
from dragoman.decoding.hypothesis import Hypothesis, length_penalty_of
from dragoman.decoding.search_record import Recorder
from dragoman.errors import UsageError
from dragoman.model.probe import Probe
from dragoman.model.sequence_model import SearchState, SequenceModel, next_logits
from dragoman.model.transformer import Transformer
from dragoman.processes import Crew

# The largest beam of a sentence with required words: 8 take half the time and lose a point of chrF (bench/terms.py).
MOST_SHARED = 16
# Other processes are started when more work is left than this: they need some two seconds to import torch.
SECONDS_WORTH_SHARING = 4.0
SCORED_TOKENS = 2048  # tokens of the longer side that are scored in one pass


class _States(NamedTuple):
    """The decoding states of the models of an ensemble."""

    members: tuple[SearchState, ...]
    device: torch.device

    def select(self, sentences: Tensor, beams: Tensor) -> "_States":
        sentences, beams = sentences.to(self.device), beams.to(self.device)
        return _States(tuple(member.select(sentences, beams) for member in self.members), self.device)


class Prefixes(NamedTuple):
    """Decoding without a cache, for interventions that change attention weights or masks: every step is computed from
    the whole prefix, as in the pass that shows the weights. (Without the decoder's mask, later tokens change what
    earlier positions hold.)"""

    models: tuple[Transformer, ...]
    encoded: tuple[Tensor, ...]  # (B, S, D) the encoder's output, of each model
    mask: Tensor | None  # (B, S)
    prefixes: Tensor  # (B, K, T)
    probe: Probe

    def select(self, sentences: Tensor, beams: Tensor) -> "Prefixes":
        sentences, beams = sentences.to(self.prefixes.device), beams.to(self.prefixes.device)
        return self._replace(
            encoded=tuple(output[sentences] for output in self.encoded),
            mask=None if self.mask is None else self.mask[sentences],
            prefixes=self.prefixes[sentences[:, None], beams],
        )

    def step(self, last_ids: Tensor) -> tuple[list[Tensor], "Prefixes"]:
        prefixes = torch.cat((self.prefixes, last_ids[..., None]), dim=2)
        beams = prefixes.shape[1]
        mask = None if self.mask is None else self.mask.repeat_interleave(beams, dim=0)
        logits = [
            model.output(
                model.decode(prefixes.flatten(0, 1), output.repeat_interleave(beams, dim=0), mask, self.probe)[:, -1]
            ).view(*prefixes.shape[:2], -1)
            for model, output in zip(self.models, self.encoded, strict=True)
        ]
        return logits, self._replace(prefixes=prefixes)


class _Batch(NamedTuple):
    """Sentences that are searched together, and how."""

    sources: Sequence[Sequence[int]]
    search: SearchConfig
    n_best: int
    seed: int
    no_repeat: int


class _Extras(NamedTuple):
    """What only this engine can do in a search."""

    constrain: Constrain | None = None
    require: Sequence[Requirement] | None = None
    recorder: Recorder | None = None
    probe: Probe | None = None

    def of(self, indices: Sequence[int]) -> "_Extras":
        """Those of some of the sentences."""
        constrain, require = self.constrain, self.require
        return self._replace(
            constrain=constrain and (lambda sentence, prefix: constrain(indices[sentence], prefix)),
            require=require and [require[index] for index in indices],
        )


_NO_EXTRAS = _Extras()


class ReferenceEngine:
    """The exact engine, which can do all that the search and the model can: constraints, a recorder, interventions."""

    name = "reference"

    exact_products = False

    def __init__(self, models: Sequence[SequenceModel], tokenizer: Tokenizer, on_all_cores: bool = False) -> None:
        """on_all_cores: the weights will not change, so many sentences may be shared among processes of one thread
        each. Decoding is a chain of many small products, which gain little from several threads (bench/results.md)."""
        for model in models:
            require_vocabulary_of(model.config, tokenizer)
        self.models = list(models)
        self.tokenizer = tokenizer
        self.device = self.models[0].output.weight.device
        self.forms_batches = on_all_cores
        self._crew: Crew[_Batch, list[list[Hypothesis]]] | None = None

    def for_tokenizer(self, tokenizer: Tokenizer) -> "ReferenceEngine":
        """The same weights with a copy of the tokenizer for which other languages were chosen."""
        other = copy.copy(self)
        other.tokenizer, other._crew = tokenizer, None
        return other

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        n_best: int = 1,
        seed: int = 0,
        scores: bool = True,  # noqa: ARG002 the protocol's; here they are always exact
        no_repeat: int = 0,
        *,
        constrain: Constrain | None = None,
        require: Sequence[Requirement] | None = None,
        recorder: Recorder | None = None,
        probe: Probe | None = None,
    ) -> list[list[Hypothesis]]:
        """As the protocol says. constrain: which tokens may follow a prefix. require: what each output must hold.
        recorder: is told every step of the search. probe: looks into the model, or changes what its heads do."""
        extras = _Extras(constrain, require, recorder, probe)
        batch = _Batch(sources, search, n_best, seed, no_repeat)
        if len(sources) > 1 and not search.sampling:
            together = _searched_together(batch, require)
            if len(together) > 1:
                return self._search_in_parts(batch, extras, together)
        if extras != _NO_EXTRAS or not self.forms_batches:
            return self._search(batch, extras)
        groups = list(batches_of_like_length([len(source) for source in sources], search.batch_tokens))
        batches = [
            _Batch([sources[index] for index in indices], search, n_best, seed + indices[0], no_repeat)
            for indices in groups
        ]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for indices, hypotheses in zip(groups, self._search_all(batches), strict=True):
            for index, candidates in zip(indices, hypotheses, strict=True):
                found[index] = candidates
        return found

    def _search_in_parts(
        self, batch: _Batch, extras: _Extras, parts: Sequence[Sequence[int]]
    ) -> list[list[Hypothesis]]:
        """Searches for these sentences of a batch by themselves."""
        found: list[list[Hypothesis]] = [[] for _ in batch.sources]
        for indices in parts:
            part = batch._replace(sources=[batch.sources[index] for index in indices])
            for index, candidates in zip(indices, self._search(part, extras.of(indices)), strict=True):
                found[index] = candidates
        return found

    def _search_all(self, batches: Sequence[_Batch]) -> Iterator[list[list[Hypothesis]]]:
        """Searches in this process, until what is left takes so long that others are started and share it."""
        processes = torch.get_num_threads() if self.device.type == "cpu" else 1
        began = time.monotonic()
        for done, batch in enumerate(batches):
            left = len(batches) - done
            takes = (time.monotonic() - began) / done * left if done else 0.0
            if self._crew is None and processes > 1 and takes > SECONDS_WORTH_SHARING:
                self._crew = Crew(functools.partial(_search_elsewhere, self.models, self.tokenizer), processes)
                weakref.finalize(self, self._crew.close)
            if self._crew is not None and left > 1:
                yield from self._crew.map(batches[done:])
                return
            yield self._search(batch)

    @torch.inference_mode()
    def _search(self, batch: _Batch, extras: _Extras = _NO_EXTRAS) -> list[list[Hypothesis]]:
        """Searches one batch with torch in this process."""
        sources, search, n_best, seed, no_repeat = batch
        constrain, require, recorder, probe = extras
        if no_repeat:
            blocked = no_repeats(no_repeat, self.tokenizer.vocab_size, self.tokenizer.eos_id)
            constrain = all_of(constrain, blocked) if constrain else blocked
        max_lengths, beam = _limits(batch, require)
        states = self._start(sources, probe)
        start_id, eos_id = self.tokenizer.start_ids[-1], self.tokenizer.eos_id
        if search.sampling:
            return sample(
                self._step,
                states,
                start_id=start_id,
                eos_id=eos_id,
                max_lengths=max_lengths,
                num_samples=n_best,
                generator=torch.Generator().manual_seed(seed),
                temperature=search.temperature,
                top_k=search.top_k or None,
                top_p=search.top_p,
                constrain=constrain,
                recorder=recorder,
            )
        length_penalty = length_penalty_of(search)
        if beam == 1:
            return greedy_search(
                self._step,
                states,
                start_id=start_id,
                eos_id=eos_id,
                max_lengths=max_lengths,
                length_penalty=length_penalty,
                constrain=constrain,
                recorder=recorder,
            )
        return beam_search(
            self._step,
            states,
            start_id=start_id,
            eos_id=eos_id,
            max_lengths=max_lengths,
            beam=beam,
            length_penalty=length_penalty,
            n_best=n_best,
            stop=search.stop,
            constrain=constrain,
            require=require,
            recorder=recorder,
        )

    def _start(self, sources: Sequence[Sequence[int]], probe: Probe | None) -> _States | Prefixes:
        """Encodes the sources: the state before the first target token."""
        for model in self.models:
            model.eval()
        ids, mask = self._source_batch(sources)
        if probe is not None and any(change.overrides or change.drop_mask for change in probe.interventions.values()):
            encoded = tuple(model.encode(ids, mask, probe) for model in self.models)
            # An LSTM has refused the probe by now.
            models = tuple(model for model in self.models if isinstance(model, Transformer))
            given = ids.new_tensor(self.tokenizer.start_ids[:-1]).expand(len(sources), 1, -1)
            return Prefixes(models, encoded, mask, given, probe)
        states: _States | Prefixes = _States(tuple(model.start(ids, mask, probe) for model in self.models), self.device)
        for given_id in self.tokenizer.start_ids[:-1]:
            _, states = self._step(ids.new_full((len(sources), 1), given_id), states)
        return states

    def _step(self, last_ids: Tensor, states: _States | Prefixes) -> tuple[Tensor, _States | Prefixes]:
        """The log-probabilities of the next tokens, (B, K, V), and the state with the last ids in it."""
        last_ids = last_ids.to(self.device)
        if isinstance(states, Prefixes):
            logits, states = states.step(last_ids)
        else:
            members = zip(self.models, states.members, strict=True)
            logits = [next_logits(model, last_ids, state) for model, state in members]
        log_probs = _mean_log_probabilities(logits)
        if self.tokenizer.suppressed:
            log_probs[..., list(self.tokenizer.suppressed)] = -math.inf
        return log_probs, states

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """By teacher forcing: the same log-probabilities that beam search adds up token by token."""
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        found: list[list[float]] = [[] for _ in sources]
        for rows in batches_of_like_length(lengths, SCORED_TOKENS):
            scored = self._score([sources[i] for i in rows], [targets[i] for i in rows])
            for index, log_probs in zip(rows, scored, strict=True):
                found[index] = log_probs
        return found

    @torch.inference_mode()
    def _score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        for model in self.models:
            model.eval()
        ids, mask = self._source_batch(sources)
        start = self.tokenizer.start_ids
        fed, _ = pad([[*start, *target] for target in targets], self.tokenizer.pad_id)
        fed = fed.to(self.device)
        log_probs = _mean_log_probabilities([model(ids, fed, mask) for model in self.models])  # (B, T, V)
        log_probs = log_probs[:, len(start) - 1 :]
        labels, _ = pad([[*target, self.tokenizer.eos_id] for target in targets], self.tokenizer.pad_id)
        picked = log_probs.gather(2, labels.to(self.device)[:, :, None]).squeeze(2).tolist()
        return [row[: len(target) + 1] for row, target in zip(picked, targets, strict=True)]

    def _source_batch(self, sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor | None]:
        ids, mask = pad([self.tokenizer.encoder_ids(source) for source in sources], self.tokenizer.pad_id)
        return ids.to(self.device), None if mask is None else mask.to(self.device)


def _limits(batch: _Batch, require: Sequence[Requirement] | None) -> tuple[list[int], int]:
    """The maximum length of each output, and the size of the beam."""
    max_lengths = [len(source) + batch.search.max_extra_length for source in batch.sources]
    if require is None:
        return max_lengths, max(batch.search.beam, batch.n_best)
    if batch.search.sampling:
        raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
    missing = [requirement.missing(requirement.start) for requirement in require]
    max_lengths = [most + needed for most, needed in zip(max_lengths, missing, strict=True)]
    return max_lengths, max(_beam(batch.search, batch.n_best, requirement) for requirement in require)


def _searched_together(batch: _Batch, require: Sequence[Requirement] | None) -> list[list[int]]:
    """The sentences of a batch by their beams: with the beam that a neighbour needs, a sentence could have another
    translation than alone."""
    if batch.search.batch_invariant:
        return [[index] for index in range(len(batch.sources))]
    like: dict[int, list[int]] = {}
    for index, requirement in enumerate(require or ()):
        like.setdefault(_beam(batch.search, batch.n_best, requirement), []).append(index)
    return list(like.values())


def _beam(search: SearchConfig, n_best: int, requirement: Requirement) -> int:
    """The size of a sentence's beam, which is shared out among rows that lack more and fewer words."""
    return min(MOST_SHARED, max(search.beam, n_best) * (1 + requirement.missing(requirement.start)))


def _search_elsewhere(models: Sequence[SequenceModel], tokenizer: Tokenizer, batch: _Batch) -> list[list[Hypothesis]]:
    """Searches in a process that was started for it, whose torch has one thread."""
    return ReferenceEngine(models, tokenizer).translate(*batch[:4], no_repeat=batch.no_repeat)


def _mean_log_probabilities(logits: Sequence[Tensor]) -> Tensor:
    """The distribution of an ensemble, which is the mean of its members' probabilities."""
    if len(logits) == 1:
        return logits[0].float().log_softmax(dim=-1)
    stacked = torch.stack([member.float().log_softmax(dim=-1) for member in logits])
    return stacked.logsumexp(dim=0) - math.log(len(logits))
