"""The reference engine: our own search over our own model, in torch; one model or an ensemble of several."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.batching import pad
from dragoman.config import SearchConfig
from dragoman.errors import ConfigError, UsageError
from dragoman.hypotheses import Hypothesis, paper_length_penalty
from dragoman.model import DecodingState, Probe, Transformer
from dragoman.search import Constrain, Recorder, all_of, beam_search, greedy_search, no_repeats, sample
from dragoman.sharing import Requirement
from dragoman.tokenizer import Tokenizer

# Rows of a sentence with required words: 8 take half the time and lose a point of chrF (bench/terms.py).
MOST_SHARED = 16


class _States(NamedTuple):
    """One decoding state a model of the ensemble."""

    members: tuple[DecodingState, ...]
    device: torch.device

    def select(self, sentences: Tensor, beams: Tensor) -> "_States":
        sentences, beams = sentences.to(self.device), beams.to(self.device)
        return _States(tuple(member.select(sentences, beams) for member in self.members), self.device)


class _Prefixes(NamedTuple):
    """Decoding without a cache. Where the decoder's mask is dropped, what is said later changes what earlier positions
    hold, so every step is computed from the whole of what was said so far."""

    models: tuple[Transformer, ...]
    memories: tuple[Tensor, ...]  # (B, S, D) a model
    mask: Tensor | None  # (B, S)
    said: Tensor  # (B, K, T)
    probe: Probe

    def select(self, sentences: Tensor, beams: Tensor) -> "_Prefixes":
        sentences, beams = sentences.to(self.said.device), beams.to(self.said.device)
        said = self.said[sentences[:, None], beams]
        memories = tuple(memory[sentences] for memory in self.memories)
        return self._replace(memories=memories, mask=None if self.mask is None else self.mask[sentences], said=said)

    def step(self, last_ids: Tensor) -> tuple[list[Tensor], "_Prefixes"]:
        said = torch.cat((self.said, last_ids[..., None]), dim=2)
        beams = said.shape[1]
        mask = None if self.mask is None else self.mask.repeat_interleave(beams, dim=0)
        logits = [
            model.output(
                model.decode(said.flatten(0, 1), memory.repeat_interleave(beams, dim=0), mask, self.probe)[:, -1]
            ).view(*said.shape[:2], -1)
            for model, memory in zip(self.models, self.memories, strict=True)
        ]
        return logits, self._replace(said=said)


class ReferenceEngine:
    """Exact, and able to do all that the search and the model can: constraints, the recorded beam, interventions."""

    name = "reference"
    forms_batches = False

    def __init__(self, models: Sequence[Transformer], tokenizer: Tokenizer) -> None:
        for model in models:
            if model.config.vocab_size != tokenizer.vocab_size:
                raise ConfigError(
                    f"a model of {model.config.vocab_size} pieces and a tokenizer of {tokenizer.vocab_size}; "
                    f"an ensemble shares one vocabulary, and a run keeps the tokenizer it was trained with"
                )
        self.models = list(models)
        self.tokenizer = tokenizer
        self.device = self.models[0].output.weight.device

    @torch.inference_mode()
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
        if no_repeat:
            blocked = no_repeats(no_repeat, self.tokenizer.vocab_size, self.tokenizer.eos_id)
            constrain = all_of(constrain, blocked) if constrain else blocked
        for model in self.models:
            model.eval()
        ids, mask = self._source_batch(sources)
        states: _States | _Prefixes
        if probe is not None and any(change.drop_mask for change in probe.interventions.values()):
            memories = tuple(model.encode(ids, mask, probe) for model in self.models)
            states = _Prefixes(tuple(self.models), memories, mask, ids.new_empty(len(sources), 1, 0), probe)
        else:
            states = _States(tuple(model.start(ids, mask, probe) for model in self.models), self.device)

        def step(last_ids: Tensor, states: _States | _Prefixes) -> tuple[Tensor, _States | _Prefixes]:
            last_ids = last_ids.to(self.device)
            if isinstance(states, _Prefixes):
                logits, states = states.step(last_ids)
                return _mean_log_probabilities(logits), states
            logits = [
                model.step(last_ids, state, probe) for model, state in zip(self.models, states.members, strict=True)
            ]
            return _mean_log_probabilities(logits), states

        max_lengths = [len(source) + search.max_extra_length for source in sources]
        beam = max(search.beam, n_best)
        if require is not None:
            if search.sampling:
                raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
            missing = [requirement.missing(requirement.start) for requirement in require]
            max_lengths = [most + needed for most, needed in zip(max_lengths, missing, strict=True)]
            # The beam is shared out among rows that lack more and less.
            beam = min(MOST_SHARED, beam * (1 + max(missing)))
        start_id, eos_id = self.tokenizer.bos_id, self.tokenizer.eos_id
        if search.sampling:
            return sample(
                step,
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
        length_penalty = paper_length_penalty(search.alpha)
        if beam == 1:
            return greedy_search(
                step,
                states,
                start_id=start_id,
                eos_id=eos_id,
                max_lengths=max_lengths,
                length_penalty=length_penalty,
                constrain=constrain,
                recorder=recorder,
            )
        return beam_search(
            step,
            states,
            start_id=start_id,
            eos_id=eos_id,
            max_lengths=max_lengths,
            beam=beam,
            length_penalty=length_penalty,
            n_best=n_best,
            constrain=constrain,
            require=require,
            recorder=recorder,
        )

    @torch.inference_mode()
    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """One teacher-forced pass: what beam search adds up token by token."""
        for model in self.models:
            model.eval()
        ids, mask = self._source_batch(sources)
        fed, _ = pad([[self.tokenizer.bos_id, *target] for target in targets], self.tokenizer.pad_id)
        fed = fed.to(self.device)
        log_probs = _mean_log_probabilities([model(ids, fed, mask) for model in self.models])  # (B, T, V)
        labels, _ = pad([[*target, self.tokenizer.eos_id] for target in targets], self.tokenizer.pad_id)
        picked = log_probs.gather(2, labels.to(self.device)[:, :, None]).squeeze(2).tolist()
        return [row[: len(target) + 1] for row, target in zip(picked, targets, strict=True)]

    def _source_batch(self, sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor | None]:
        ids, mask = pad([[*source, self.tokenizer.eos_id] for source in sources], self.tokenizer.pad_id)
        return ids.to(self.device), None if mask is None else mask.to(self.device)


def _mean_log_probabilities(logits: Sequence[Tensor]) -> Tensor:
    """An ensemble's distribution is the mean of its members' probabilities."""
    if len(logits) == 1:
        return logits[0].float().log_softmax(dim=-1)
    stacked = torch.stack([member.float().log_softmax(dim=-1) for member in logits])
    return stacked.logsumexp(dim=0) - math.log(len(logits))
