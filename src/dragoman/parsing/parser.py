"""Parser: sentences of words in, trees out; over the engine and the search that translate."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import Tokenizer
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

WINDOW = 500  # sentences sorted by length together


@dataclass(frozen=True)
class Parse:
    """What the model made of a sentence. There is no tree of no words, nor, without the constraint, of any symbols."""

    words: tuple[str, ...]
    symbols: tuple[str, ...]
    ids: tuple[int, ...]  # as the model wrote it, with the marks of places
    steps: tuple[int, ...]  # which of the ids is each symbol
    tree: Tree | None
    log_probability: float


class Parser:
    """A trained run, or several with one vocabulary as an ensemble."""

    def __init__(self, engine: ReferenceEngine, vocabulary: Vocabulary, search: SearchConfig) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self.search = search

    @classmethod
    def load(cls, *runs: str | Path, checkpoint: str | None = None, **search: float) -> Self:
        """`Parser.load("runs/parsing", beam=8)`: the run's own search settings, with these in their place."""
        if not runs:
            raise UsageError("Parser.load() needs at least one run directory")
        directories = [RunDirectory.open(run) for run in runs]
        tokenizer = Tokenizer.load(directories[0].tokenizer_path)
        for run in directories[1:]:
            if Tokenizer.load(run.tokenizer_path).digest != tokenizer.digest:
                raise DataError(
                    f"{run.path}: its vocabulary differs from that of {directories[0].path}; the members of an "
                    f"ensemble are trained on the same trees, with another --seed"
                )
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
        """In the order given, `window` sentences in memory at a time."""
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
