"""CTranslate2 as an engine: the fast one. Imports no torch, so that a first translation does not wait for it.

It searches by its own rules: an end counts only among the `beam` best continuations, and a sentence is done when
`beam` of them have ended. (`search.beam_search` with stop="first" is the same search; tests hold the two equal.) The
n-best list is then ranked by the paper's length penalty. docs/decisions/005-ctranslate2.md says what that costs.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ctranslate2

from dragoman.config import SearchConfig
from dragoman.engines import CannotServeError, ComputeType, batches_of_like_length
from dragoman.engines.conversion import convert, digest_of, kept_compute_type
from dragoman.errors import DataError
from dragoman.hypotheses import Hypothesis, paper_length_penalty
from dragoman.rundir import RunDirectory
from dragoman.tokenizer import Tokenizer


@dataclass(frozen=True)
class Threads:
    workers: int  # batches translated at the same time
    each: int  # threads of each worker


def choose_threads(sentences: int) -> Threads:
    """Many sentences: a batch on each core, as cores that share a batch wait for each other. One: all cores on it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed.isdecimal() and int(allowed) > 0:
        cores = min(cores, int(allowed))
    return Threads(cores, 1) if sentences > 1 else Threads(1, cores)


class CTranslate2Engine:
    """One run's model; it searches and scores, and leaves sampling and all that looks inside to the reference."""

    forms_batches = True

    def __init__(
        self, run: RunDirectory, tokenizer: Tokenizer, search: SearchConfig, compute_type: ComputeType | None = None
    ) -> None:
        if search.sampling:
            raise CannotServeError("ctranslate2 does not sample as search.sampling says; use the reference engine")
        self.run = run
        self.tokenizer = tokenizer
        self.digest = digest_of(run, tokenizer)
        self.compute_type = compute_type or kept_compute_type(run, self.digest)
        self._names = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
        self._ids = {name: index for index, name in enumerate(self._names)}
        self._loaded: dict[Threads, Any] = {}
        longest = search.max_source_length + search.max_extra_length + 1
        self._model = convert(run, tokenizer, self.compute_type, self.digest, longest)

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        n_best: int = 1,
        seed: int = 0,  # noqa: ARG002 the protocol's; nothing here is random
    ) -> list[list[Hypothesis]]:
        if search.sampling:
            raise CannotServeError("ctranslate2 does not sample as search.sampling says; use the reference engine")
        if not all(sources):
            raise CannotServeError("a source without tokens, which ctranslate2 answers without its model")
        limits = [len(source) + search.max_extra_length for source in sources]
        threads = choose_threads(len(sources))
        longest = max(map(len, sources), default=0) + 1
        translator = self._translator(threads, longest, longest + search.max_extra_length)
        tokens = [self._to_names(source) for source in sources]
        beam = max(search.beam, n_best)
        options: dict[str, Any] = {
            "beam_size": beam,
            # Without a penalty it stops as soon as nothing better can come.
            "num_hypotheses": n_best if search.alpha == 0 else beam,
            "length_penalty": search.alpha,
            "min_decoding_length": 0,
            "max_input_length": 0,  # any: the table of positions is the limit, and long enough
            "return_scores": True,
            "return_end_token": True,
            "asynchronous": True,
        }
        # Every worker is to have a batch.
        share = -(-sum(len(source) + 1 for source in sources) // threads.workers)
        waiting = []
        for batch in batches_of_like_length([len(source) for source in sources], min(search.batch_tokens, share)):
            # One limit a call, and the batch's longest sentence comes first.
            limit = limits[batch[0]]
            results = translator.translate_batch([tokens[i] for i in batch], max_decoding_length=limit, **options)
            waiting += [(index, limit, result) for index, result in zip(batch, results, strict=True)]
        outputs: list[list[_Output]] = [[] for _ in sources]
        for index, limit, result in waiting:
            outputs[index] = self._outputs(self._wait(result), search.alpha)
            if limit > limits[index] and any(len(output.ids) >= limits[index] for output in outputs[index]):
                # It went on beyond its own limit, so it is searched again under that.
                again = translator.translate_batch([tokens[index]], max_decoding_length=limits[index], **options)
                outputs[index] = self._outputs(self._wait(again[0]), search.alpha)
        self._end_what_was_cut(sources, outputs)
        penalty = paper_length_penalty(search.alpha)
        return [
            sorted(
                (
                    Hypothesis(
                        ids=output.ids,
                        log_probability=output.log_probability,
                        score=output.log_probability / penalty(len(output.ids) + 1),
                        token_log_probabilities=None,
                        finished=len(output.ids) < limit,
                    )
                    for output in some
                ),
                key=lambda hypothesis: -hypothesis.score,
            )[:n_best]
            for some, limit in zip(outputs, limits, strict=True)
        ]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        threads = choose_threads(len(sources))
        translator = self._translator(threads, longest := max(lengths, default=0) + 1, longest)
        share = -(-sum(length + 1 for length in lengths) // threads.workers)
        waiting = []
        for batch in batches_of_like_length(lengths, min(SearchConfig.batch_tokens, share)):
            results = translator.score_batch(
                [self._to_names(sources[i]) for i in batch],
                [self._to_names(targets[i]) for i in batch],
                max_input_length=0,
                asynchronous=True,
            )
            waiting += list(zip(batch, results, strict=True))
        scores: list[list[float]] = [[] for _ in sources]
        for index, result in waiting:
            scores[index] = list(result.result().log_probs)
        return scores

    def _end_what_was_cut(self, sources: Sequence[Sequence[int]], outputs: "list[list[_Output]]") -> None:
        """At its limit CTranslate2 stops in the middle. There our search forces the end, at its true probability."""
        cut = [(i, j) for i, some in enumerate(outputs) for j, output in enumerate(some) if not output.ended]
        scores = self.score([sources[i] for i, _ in cut], [outputs[i][j].ids for i, j in cut]) if cut else []
        for (i, j), log_probs in zip(cut, scores, strict=True):
            outputs[i][j] = _Output(outputs[i][j].ids, sum(log_probs), True)

    def _translator(self, threads: Threads, needed: int, wanted: int) -> Any:
        """With so many threads and positions; loaded when first needed, then kept.

        Learned positions come to an end. Then `needed` must be there; `wanted` is what the search may never reach.
        """
        if wanted > self._model.positions:
            found = convert(self.run, self.tokenizer, self.compute_type, self.digest, wanted)
            if found != self._model:
                self._model = found
                self._loaded.clear()
            if needed > found.positions:
                raise self._too_long(needed)
        if threads not in self._loaded:
            # Where a processor has no such arithmetic (int16, on many), CTranslate2 would take int8 for it, which is
            # less than was asked for; float32 loses nothing.
            has_it = self.compute_type in ctranslate2.get_supported_compute_types("cpu")
            self._loaded[threads] = ctranslate2.Translator(
                str(self._model.path),
                device="cpu",
                compute_type=self.compute_type if has_it else "float32",
                inter_threads=threads.workers,
                intra_threads=threads.each,
                max_queued_batches=-1,
            )
        return self._loaded[threads]

    def _wait(self, job: Any) -> Any:
        try:
            return job.result()
        except RuntimeError as error:
            if "position encodings" in str(error):
                raise self._too_long(self._model.positions + 1) from None
            raise

    def _too_long(self, tokens: int) -> DataError:
        return DataError(
            f"a sequence of {tokens} tokens; the model has {self._model.positions} learned positions; "
            f"split the text or train with a larger model.max_positions"
        )

    def _outputs(self, result: Any, alpha: float) -> "list[_Output]":
        end = self._names[self.tokenizer.eos_id]
        outputs = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            # Its score is the log-probability over length^alpha, where the end symbol counts if there is one.
            log_probability = score * len(tokens) ** alpha
            ended = bool(tokens) and tokens[-1] == end
            outputs.append(_Output(self._to_ids(tokens[:-1] if ended else tokens), log_probability, ended))
        return outputs

    def _to_names(self, ids: Sequence[int]) -> list[str]:
        return [self._names[index] for index in ids]

    def _to_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._ids[token] for token in tokens)


@dataclass(frozen=True)
class _Output:
    ids: tuple[int, ...]
    log_probability: float
    ended: bool
