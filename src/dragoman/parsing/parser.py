"""Parser: turns sentences, given as words, into trees, with the engine and the search that translate."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import shared_tokenizer
from dragoman.decoding.engines import batches_of_like_length
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.errors import DataError, UsageError
from dragoman.model.checkpoint import load_model
from dragoman.parsing.constraint import well_formed
from dragoman.parsing.linearise import rebuild
from dragoman.parsing.trees import Tree, escape_word
from dragoman.parsing.vocabulary import Vocabulary
from dragoman.run_directory import RunDirectory
from dragoman.translation.search_settings import with_changes

WINDOW = 500  # sentences that are sorted by length together


@dataclass(frozen=True)
class Parse:
    """The parse of a sentence. `tree` is None for no words, and for malformed output without the constraint."""

    words: tuple[str, ...]
    symbols: tuple[str, ...]
    ids: tuple[int, ...]  # the model's output, with the place marks
    steps: tuple[int, ...]  # the index in `ids` of each symbol
    tree: Tree | None
    log_probability: float


class Parser:
    """Parses with a trained run, or with several of one vocabulary as an ensemble."""

    def __init__(self, engine: ReferenceEngine, vocabulary: Vocabulary, search: SearchConfig) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self.search = search

    @classmethod
    def load(cls, *runs: str | Path, checkpoint: str | None = None, **search: float) -> Self:
        """Loads runs: `Parser.load("runs/parsing", beam=8)` changes one of the run's own search settings."""
        if not runs:
            raise UsageError("Parser.load() needs at least one run directory")
        directories = [RunDirectory.open(run) for run in runs]
        same_trees = "train the members of an ensemble on the same trees, each with another --seed"
        tokenizer = shared_tokenizer([run.path for run in directories], same_trees)
        try:
            vocabulary = Vocabulary(tokenizer)
        except DataError as error:
            raise DataError(f"{directories[0].path}: {error}") from None
        engine = ReferenceEngine([load_model(run, checkpoint) for run in directories], tokenizer)
        return cls(engine, vocabulary, with_changes(directories[0].read_config().search, **search))

    def parse(self, sentences: Sequence[Sequence[str]], constrained: bool = True) -> list[Parse]:
        return list(self.parse_stream(sentences, constrained))

    def parse_stream(
        self, sentences: Iterable[Sequence[str]], constrained: bool = True, window: int = WINDOW
    ) -> Iterator[Parse]:
        """Parses in the order given, with `window` sentences in memory at a time."""
        sentences = iter(sentences)
        while chunk := [tuple(map(escape_word, words)) for words in islice(sentences, window)]:
            yield from self._parse_window(chunk, constrained)

    def _parse_window(self, sentences: Sequence[tuple[str, ...]], constrained: bool) -> list[Parse]:
        vocabulary, tokenizer = self.vocabulary, self.vocabulary.tokenizer
        sources = tokenizer.encode_batch([vocabulary.source_text(words) for words in sentences])
        found = [Parse(words, (), (), (), None, 0.0) for words in sentences]
        worded = [i for i, words in enumerate(sentences) if words]
        lengths = [len(sources[i]) for i in worded]
        for numbers in batches_of_like_length(lengths, self.search.batch_tokens):
            batch = [worded[number] for number in numbers]
            words = [sentences[i] for i in batch]
            limits = [len(sources[i]) + self.search.max_extra_length for i in batch]
            constrain = well_formed(vocabulary.symbols, tokenizer.eos_id, words, limits) if constrained else None
            hypotheses = self.engine.translate([sources[i] for i in batch], self.search, constrain=constrain)
            for index, (best, *_) in zip(batch, hypotheses, strict=True):
                symbols, steps = vocabulary.read(best.ids)
                tree = rebuild(symbols, sentences[index])
                assert tree is not None or not constrained, symbols
                found[index] = Parse(
                    sentences[index], tuple(symbols), best.ids, tuple(steps), tree, best.log_probability
                )
        return found
