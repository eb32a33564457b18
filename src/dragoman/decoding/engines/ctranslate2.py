"""The fast engine: CTranslate2. Imports neither torch nor numpy, so that a first translation waits for neither.

It searches by its own rules: an end counts only among the `beam` best continuations, and a sentence is done when `beam`
of them have ended. (`decoding.beam_search.beam_search` with stop="first" is the same search; tests show the two equal.)
The n-best list is then ranked by the paper's length penalty. docs/decisions/005-ctranslate2.md says what that costs,
and docs/decisions/009-vocabulary-map-and-threads.md how likely words and the number of threads are chosen.
"""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import ctranslate2

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import CannotServeError, ComputeType, even_batches
from dragoman.decoding.engines.ct2_cache import (
    VOCABULARY_MAP,
    Converted,
    Threads,
    converted_path,
    digest_of,
    find_converted,
    kept_choice,
    remember_threads,
    remembered_threads,
)
from dragoman.decoding.hypothesis import Hypothesis, length_penalty_of
from dragoman.errors import DataError
from dragoman.processes import threads_allowed
from dragoman.run_directory import RunDirectory

# Sentences after which an input counts as large: measuring the threads takes little time beside it.
LARGE = 10_000
# Threads that share a batch must be this much quicker than a batch for each: they wait for each other as soon as
# anything else runs, which a quiet measurement does not show.
WORTH_SHARING = 1.2
# Bytes of a float32 model from which on two threads together are quicker with a single sentence than one: with 186 MB
# they were 1.8 times as quick, with 7 MB 0.8. In int8 they were many times slower with either: bench/results.md
SHARED_FROM = 64_000_000
# More tokens of beam 4 do not stay in a core's cache; whole numbers gain less from many rows. bench/engine_below.py
BATCH_TOKENS = {"float32": 1024, "int16": 1024, "int8": 400}
# The vocabulary of a batch is the union of what its sentences may need, so a smaller batch has a smaller one.
MAP_BATCH_TOKENS = 512


def thread_choices(count: int) -> list[Threads]:
    """Every way to use all cores: as many workers as there are cores, with one thread each, ... one worker."""
    return [Threads(count // each, each) for each in range(1, count + 1) if count % each == 0]


def best_threads(speeds: Mapping[Threads, float]) -> Threads:
    """The quickest; but threads share a batch only where that is much quicker than a batch for each."""
    quickest = max(speeds, key=speeds.__getitem__)
    apart = max(speeds, key=lambda threads: threads.workers)
    return quickest if speeds[quickest] > WORTH_SHARING * speeds[apart] else apart


class CTranslate2Engine:
    """Searches and scores with one run's model; sampling, constraints and inspection need the reference engine."""

    forms_batches = True

    def __init__(
        self,
        run: RunDirectory,
        tokenizer: Tokenizer,
        search: SearchConfig,
        compute_type: ComputeType | None = None,
        vocabulary_map: bool | None = None,
    ) -> None:
        """compute_type, vocabulary_map: None is what `quantize` kept. It kept a map for its own number type only."""
        if search.sampling:
            raise CannotServeError("ctranslate2 does not sample as search.sampling says; use the reference engine")
        self.run = run
        self.tokenizer = tokenizer
        self.digest = digest_of(run, tokenizer)
        kept = kept_choice(run, self.digest)
        self.compute_type = compute_type or kept.compute_type
        self._names = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
        self._ids = {name: index for index, name in enumerate(self._names)}
        self._source_names = [tokenizer.source_piece(index) for index in range(tokenizer.source_vocab_size)]
        self._batch_tokens = BATCH_TOKENS[self._computes_with]
        self._loaded: dict[Threads, Any] = {}
        self._seen = 0  # sentences translated so far
        longest = search.max_source_length + search.max_extra_length + 1
        self._model = self._converted(longest)
        if vocabulary_map is None:
            vocabulary_map = kept.vocabulary_map and self.compute_type == kept.compute_type
        self.vocabulary_map = vocabulary_map and (self._model.path / VOCABULARY_MAP).is_file()
        self.name = f"ctranslate2 {self.compute_type}" + (" with a vocabulary map" if self.vocabulary_map else "")
        self._threads = remembered_threads(run, self.name)

    @property
    def exact_products(self) -> bool:
        return self._computes_with == "int8" and not self.vocabulary_map

    @property
    def _computes_with(self) -> ComputeType:
        """Where a processor cannot compute with the type (int16, on many), CTranslate2 would take int8, which is less
        exact than was asked for; float32 loses nothing."""
        return self.compute_type if self.compute_type in ctranslate2.get_supported_compute_types("cpu") else "float32"

    @property
    def _shares_a_sentence(self) -> bool:
        """Whether threads that share the products of one sentence gain more than they wait for each other."""
        return self._computes_with == "float32" and self._model.size >= SHARED_FROM

    @property
    def _given(self) -> list[str]:
        """What every output begins with."""
        return [self._names[index] for index in self.tokenizer.start_ids[1:]]

    def for_tokenizer(self, tokenizer: Tokenizer) -> "CTranslate2Engine":
        """The same weights, loaded once, with a copy of the tokenizer for which other languages were chosen."""
        other = copy.copy(self)
        other.tokenizer = tokenizer
        return other

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        n_best: int = 1,
        seed: int = 0,  # noqa: ARG002 the protocol's; nothing here is random
        scores: bool = True,
        no_repeat: int = 0,
    ) -> list[list[Hypothesis]]:
        if search.sampling:
            raise CannotServeError("ctranslate2 does not sample as search.sampling says; use the reference engine")
        if not all(sources):
            raise CannotServeError("a source without tokens, which ctranslate2 answers without its model")
        self._seen += len(sources)
        may_measure = threads_allowed() > 1 and not search.batch_invariant
        if self._threads is None and self._seen > LARGE and len(sources) > 1 and may_measure:
            self.measure_threads(sources, search)
        many = self._threads or Threads(threads_allowed(), 1)
        # Many: at first a batch on each core, as cores that share one wait for each other; after a measurement, what
        # was quickest. One sentence: all cores on it, where its products are large enough for that.
        threads = Threads(1, threads_allowed()) if len(sources) == 1 and self._shares_a_sentence else many
        if search.batch_invariant:  # threads that share a product add in another order
            threads = Threads(threads_allowed(), 1)
        found = self._search(sources, search, n_best, threads, no_repeat)
        if scores and (self.vocabulary_map or no_repeat or self.tokenizer.suppressed):
            found = self._true_scores(sources, found, search)
        return found

    def measure_threads(
        self, sources: Sequence[Sequence[int]], search: SearchConfig, rounds: int = 3
    ) -> dict[Threads, float]:
        """Sentences a second with every way to use the cores; the best is used from now on, and remembered.

        The batches are the same whichever it is, so that the translations are too.
        """
        choices = thread_choices(threads_allowed())
        sample = sources[:: max(1, len(sources) // (64 * threads_allowed()))]
        times: dict[Threads, list[float]] = {threads: [] for threads in choices}
        for threads in choices:  # loads the model, which is no part of the speed
            self._search(sample[:2], search, 1, threads)
        for _ in range(rounds):
            for threads in choices:
                begin = time.perf_counter()
                self._search(sample, search, 1, threads)
                times[threads].append(time.perf_counter() - begin)
            # On a busy machine, threads that wait for each other can be very slow: one round of that is enough.
            best = min(map(median, times.values()))
            choices = [threads for threads in choices if median(times[threads]) <= 2 * best]
        speeds = {threads: len(sample) / median(taken) for threads, taken in times.items()}
        self._threads = best_threads(speeds)
        self._loaded = {threads: loaded for threads, loaded in self._loaded.items() if threads == self._threads}
        remember_threads(self.run, self.name, self._threads, speeds)
        return speeds

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        n_best: int,
        threads: Threads,
        no_repeat: int = 0,
    ) -> list[list[Hypothesis]]:
        limits = [len(source) + search.max_extra_length for source in sources]
        outputs = self._decode(sources, limits, search, threads, self._options(search, n_best, no_repeat))
        self._end_what_was_cut(sources, outputs, search.batch_invariant)
        penalty = length_penalty_of(search)

        def score(output: _Output) -> float:
            return output.log_probability / penalty(len(output.tokens) + 1)

        return [
            [
                Hypothesis(
                    ids=self._to_ids(output.tokens),
                    log_probability=output.log_probability,
                    score=score(output),
                    token_log_probabilities=None,
                    finished=len(output.tokens) < limit,
                )
                for output in sorted(beam, key=score, reverse=True)[:n_best]
            ]
            for beam, limit in zip(outputs, limits, strict=True)
        ]

    def _options(self, search: SearchConfig, n_best: int, no_repeat: int) -> dict[str, Any]:
        """CTranslate2's names for the search settings."""
        beam = max(search.beam, n_best)
        return {
            "beam_size": beam,
            # Without a penalty it stops as soon as nothing better can come; with one, only when it is asked for all.
            "num_hypotheses": n_best if search.alpha == 0 else beam,
            "length_penalty": search.alpha,
            "min_decoding_length": 0,
            "no_repeat_ngram_size": no_repeat,
            "max_input_length": 0,  # any: the table of positions is the limit, and long enough
            "use_vmap": self.vocabulary_map,
            "return_scores": True,
            "return_end_token": True,
            "asynchronous": True,
            "suppress_sequences": [[self._names[index]] for index in self.tokenizer.suppressed] or None,
        }

    def _decode(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        search: SearchConfig,
        threads: Threads,
        options: Mapping[str, Any],
    ) -> "list[list[_Output]]":
        """The beam of each source, each output at most as long as its limit."""
        longest = max(map(len, sources), default=0) + 1
        translator = self._translator(threads, longest, longest + search.max_extra_length)
        tokens = [self._of_source(source) for source in sources]
        waiting = []
        for batch in self._batches([len(source) for source in sources], search):
            # A call has one limit, and the batch's longest sentence comes first.
            limit = limits[batch[0]]
            results = self._translate_batch(translator, [tokens[i] for i in batch], limit, options)
            waiting += [(index, limit, result) for index, result in zip(batch, results, strict=True)]
        outputs: list[list[_Output]] = [[] for _ in sources]
        for index, limit, result in waiting:
            outputs[index] = self._outputs(self._wait(result), search.alpha)
            if limit > limits[index] and any(len(output.tokens) >= limits[index] for output in outputs[index]):
                # It went on beyond its own limit, so it is searched again under that.
                again = self._translate_batch(translator, [tokens[index]], limits[index], options)
                outputs[index] = self._outputs(self._wait(again[0]), search.alpha)
        return outputs

    def _batches(self, lengths: Sequence[int], search: SearchConfig) -> list[list[int]]:
        """Which sentences are searched for together. docs/decisions/005-ctranslate2.md"""
        most = min(MAP_BATCH_TOKENS, self._batch_tokens) if self.vocabulary_map else self._batch_tokens
        batch_tokens = min(search.batch_tokens, most)
        if not search.batch_invariant:
            # All cores count, not these threads: other batches round differently.
            return even_batches(lengths, batch_tokens, threads_allowed())
        # Products of whole numbers are exact, whatever rows are beside them; but padding changes the rest, and other
        # sentences' likely words what may be written. Those of float32 round by the number of rows.
        if not self.exact_products:
            return [[index] for index in range(len(lengths))]
        like: dict[int, list[int]] = {}
        for index, length in enumerate(lengths):
            like.setdefault(length, []).append(index)
        at_once = {length: max(1, batch_tokens // (length + 1)) for length in like}
        return [
            like[length][first : first + at_once[length]]
            for length in sorted(like, reverse=True)
            for first in range(0, len(like[length]), at_once[length])
        ]

    def _translate_batch(
        self, translator: Any, sources: list[list[str]], limit: int, options: Mapping[str, Any]
    ) -> list[Any]:
        """Searches a batch; what every output begins with counts as none of its tokens."""
        given = [self._given] * len(sources) if self._given else None
        found: list[Any] = translator.translate_batch(
            sources, given, max_decoding_length=limit + len(self._given), **options
        )
        return found

    def _true_scores(
        self, sources: Sequence[Sequence[int]], found: list[list[Hypothesis]], search: SearchConfig
    ) -> list[list[Hypothesis]]:
        """The hypotheses with probabilities over the whole vocabulary: with a vocabulary map, or without repeats,
        CTranslate2 gives them over the tokens that are left."""
        pairs = [(source, one) for source, hypotheses in zip(sources, found, strict=True) for one in hypotheses]
        rows = [source for source, _ in pairs], [one.ids for _, one in pairs]
        log_probs = self._score(*rows, alone=search.batch_invariant)
        penalty = length_penalty_of(search)
        scored = (
            replace(one, log_probability=total, score=total / penalty(len(one.ids) + 1))
            for (_, one), total in zip(pairs, map(sum, log_probs), strict=True)
        )
        return [sorted(islice(scored, len(hypotheses)), key=lambda one: -one.score) for hypotheses in found]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        return self._score(sources, targets, alone=False)

    def _score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], alone: bool
    ) -> list[list[float]]:
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        count = threads_allowed()
        alone_on_all = len(sources) == 1 and self._shares_a_sentence
        threads = Threads(1, count) if alone_on_all else self._threads or Threads(count, 1)
        if alone:
            threads = Threads(count, 1)
        translator = self._translator(threads, longest := max(lengths, default=0) + 1, longest)
        waiting = []
        for batch in even_batches(lengths, 1 if alone else self._batch_tokens, count):
            results = translator.score_batch(
                [self._of_source(sources[i]) for i in batch],
                [[*self._given, *map(self._names.__getitem__, targets[i])] for i in batch],
                max_input_length=0,
                asynchronous=True,
            )
            waiting += list(zip(batch, results, strict=True))
        scores: list[list[float]] = [[] for _ in sources]
        for index, result in waiting:
            scores[index] = list(result.result().log_probs)[len(self._given) :]
        return scores

    def _end_what_was_cut(self, sources: Sequence[Sequence[int]], outputs: "list[list[_Output]]", alone: bool) -> None:
        """Ends what CTranslate2 cut at its limit: adds the end symbol's true probability, as our search does."""
        cut = [(i, j) for i, beam in enumerate(outputs) for j, output in enumerate(beam) if not output.ended]
        ids = [self._to_ids(outputs[i][j].tokens) for i, j in cut]
        scores = self._score([sources[i] for i, _ in cut], ids, alone) if cut else []
        for (i, j), log_probs in zip(cut, scores, strict=True):
            outputs[i][j] = _Output(outputs[i][j].tokens, sum(log_probs), True)

    def _translator(self, threads: Threads, needed: int, wanted: int) -> Any:
        """CTranslate2's translator with so many threads and positions; loaded when first needed, then kept.

        A model with learned positions has a limited number of them: `needed` must be there, `wanted` need not, as the
        search may never get so far.
        """
        if wanted > self._model.positions:
            found = self._converted(wanted)
            if found != self._model:
                self._model = found
                self._loaded.clear()
            if needed > found.positions:
                raise self._too_long(needed)
        if threads not in self._loaded:
            try:
                self._loaded[threads] = ctranslate2.Translator(
                    str(self._model.path),
                    device="cpu",
                    compute_type=self._computes_with,
                    inter_threads=threads.workers,
                    intra_threads=threads.each,
                    max_queued_batches=-1,
                )
            except (RuntimeError, ValueError) as error:
                reason = " ".join(str(error).split())
                raise DataError(f"{self._model.path}: damaged ({reason}); delete it: it is made anew") from None
        return self._loaded[threads]

    def _converted(self, positions: int) -> Converted:
        found = find_converted(converted_path(self.run, self.compute_type, self.digest))
        if found is not None and found.positions >= positions:
            return found
        from dragoman.decoding.engines.ct2_convert import convert

        return convert(self.run, self.tokenizer, self.compute_type, self.digest, positions)

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
        end, given = self._names[self.tokenizer.eos_id], len(self.tokenizer.start_ids) - 1
        outputs = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            # Its score is the log-probability over length^alpha, where the end symbol counts if there is one.
            log_probability = score * len(tokens) ** alpha
            del tokens[:given]
            ended = bool(tokens) and tokens[-1] == end
            if ended:
                del tokens[-1]
            outputs.append(_Output(tokens, log_probability, ended))
        return outputs

    def _of_source(self, ids: Sequence[int]) -> list[str]:
        return list(map(self._source_names.__getitem__, ids))

    def _to_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        return tuple(map(self._ids.__getitem__, tokens))


class _Output(NamedTuple):
    """One output of a beam, as CTranslate2 gives it: most of them are only ranked."""

    tokens: list[str]
    log_probability: float
    ended: bool
