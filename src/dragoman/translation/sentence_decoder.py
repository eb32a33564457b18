"""Finds hypotheses for sentences: makes batches of like length, and gives each to the engine that can do it."""

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from dragoman.config import SearchConfig
from dragoman.data.glossary import Required
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import Engine, batches_of_like_length
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.phrase_automaton import Borders, Phrases
from dragoman.errors import UsageError, has_torch
from dragoman.progress import Say, discard

if TYPE_CHECKING:
    from dragoman.decoding.engines.torch_engine import ReferenceEngine

PORTION = 16  # batches given at a time to an engine that forms them itself: in between, progress can be shown


class EncodedSentence(NamedTuple):
    """A source sentence, its token ids with the language tag, and the words that its translation must hold."""

    text: str
    ids: list[int]
    required: tuple[Required, ...] = ()


class SentenceDecoder:
    """An engine, and where it was given the reference engine of the same weights, with one set of search settings."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        search: SearchConfig,
        load_reference: "Callable[[], ReferenceEngine] | None" = None,
        tag: str = "",
    ) -> None:
        """load_reference: loads the same weights into the engine that knows constraints. tag: put before every source,
        it asks a model of several languages for one of them."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.search = search
        self.tag = tag
        self._load_reference = load_reference
        self._borders: Borders | None = None

    def with_search(self, search: SearchConfig) -> "SentenceDecoder":
        """The same engines with other search settings."""
        other = copy.copy(self)
        other.search = search
        return other

    def with_languages(self, tokenizer: Tokenizer, tag: str) -> "SentenceDecoder":
        """The same weights, asked for another language: by a tag before the source, or by the tokens that this copy of
        the tokenizer puts around it."""
        other = copy.copy(self)
        other.tag = tag
        if tokenizer is not self.tokenizer:
            other.tokenizer = tokenizer
            other.engine = self.engine.for_tokenizer(tokenizer)
            load = self._load_reference
            if load is not None:
                other._load_reference = functools.cache(lambda: load().for_tokenizer(tokenizer))
        return other

    @property
    def can_constrain(self) -> bool:
        return self.engine.name == "reference" or (self._load_reference is not None and has_torch())

    @property
    def reference(self) -> "ReferenceEngine":
        """The engine that knows constraints: the decoder's own, or the same weights loaded once."""
        if self.engine.name == "reference":
            return cast("ReferenceEngine", self.engine)
        if self._load_reference is None:
            raise UsageError(f"{self.engine.name} knows no constraints; load the translator with Translator.load")
        return self._load_reference()

    def tagged(self, text: str) -> str:
        """The source as the model is given it: with the tag of the target language, where it needs one."""
        return f"{self.tag} {text}" if self.tag and text else text

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokenizer.encode_batch([self.tagged(text) for text in texts])

    def decode(
        self, sentences: Sequence[EncodedSentence], n_best: int, seed: int, scores: bool, tell: Say = discard
    ) -> list[list[Hypothesis]]:
        """Up to n_best hypotheses of each sentence, best first; with required words, by the reference engine."""
        found: list[list[Hypothesis]] = [[] for _ in sentences]
        done = 0
        tell(f"0 of {len(sentences):,} sentences")
        for batch in self._free_batches(sentences):
            sources = [sentences[index].ids for index in batch.indices]
            hypotheses = self.engine.translate(sources, self.search, n_best, seed + batch.first, scores)
            for index, candidates in zip(batch.indices, hypotheses, strict=True):
                found[index] = candidates
            done += len(batch.indices)
            tell(f"{done:,} of {len(sentences):,} sentences")
        for indices in self._constrained_batches(sentences):
            hypotheses = self.decode_required([sentences[index] for index in indices], n_best)
            for index, candidates in zip(indices, hypotheses, strict=True):
                found[index] = candidates
            done += len(indices)
            tell(f"{done:,} of {len(sentences):,} sentences")
        return found

    def decode_required(self, sentences: Sequence[EncodedSentence], n_best: int) -> list[list[Hypothesis]]:
        """Hypotheses that hold the required words. Where the vocabulary cannot spell a word in the place where it must
        stand, there are none: then hypotheses without it."""
        phrases = [self.phrases(sentence.required) for sentence in sentences]
        free: list[list[Hypothesis]] = [[] for _ in sentences]
        if n_best == 1 and self.engine.name != "reference":
            # The best of all translations is the best of those with the words, too, if it has them.
            free = self.engine.translate([sentence.ids for sentence in sentences], self.search)
        kept = [bool(best) and wanted.hold(best[0].ids) for best, wanted in zip(free, phrases, strict=True)]
        left = [index for index, is_kept in enumerate(kept) if not is_kept]
        bound = (
            self.reference.translate(
                [sentences[index].ids for index in left],
                self.search,
                n_best,
                require=[phrases[index] for index in left],
            )
            if left
            else []
        )
        for index, candidates in zip(left, bound, strict=True):
            free[index] = candidates or self.engine.translate([sentences[index].ids], self.search, n_best)[0]
        return free

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probability of each token of each given target, the end symbol's last."""
        scores: list[list[float]] = [[] for _ in sources]
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for batch in self._batches(lengths):
            found = self.engine.score([sources[i] for i in batch], [targets[i] for i in batch])
            for index, log_probs in zip(batch, found, strict=True):
                scores[index] = log_probs
        return scores

    def phrases(self, required: Sequence[Required]) -> Phrases:
        """The automaton of the required words."""
        if self._borders is None:
            self._borders = Borders.of(self.tokenizer)
        return Phrases(required, self.tokenizer, self._borders)

    def _free_batches(self, sentences: Sequence[EncodedSentence]) -> "Iterator[_SentenceBatch]":
        free = [index for index, sentence in enumerate(sentences) if not sentence.required]
        for batch in self._batches([len(sentences[index].ids) for index in free]):
            yield _SentenceBatch([free[number] for number in batch], batch[0])

    def _constrained_batches(self, sentences: Sequence[EncodedSentence]) -> Iterator[list[int]]:
        bound = [index for index, sentence in enumerate(sentences) if sentence.required]
        lengths = [len(sentences[index].ids) for index in bound]
        for batch in batches_of_like_length(lengths, self.search.batch_tokens // 4):
            yield [bound[number] for number in batch]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """What the engine is given at a time: indices of like length, or all, unless they are very many."""
        if not self.engine.forms_batches:
            return batches_of_like_length(lengths, self.search.batch_tokens)
        if sum(lengths) > PORTION * self.search.batch_tokens:
            return batches_of_like_length(lengths, PORTION * self.search.batch_tokens)
        return iter([list(range(len(lengths)))] if lengths else [])


class _SentenceBatch(NamedTuple):
    """Sentences without required words that are decoded together."""

    indices: list[int]  # among all sentences
    first: int  # the number of the first of them among those without required words: it is added to the seed
