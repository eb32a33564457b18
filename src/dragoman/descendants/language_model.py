"""LanguageModel: a decoder alone that continues text. The engine treats it as a translator of an empty source."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import Tokenizer, shared_tokenizer
from dragoman.decoding.constraints import forced_prefix
from dragoman.decoding.engines import batches_of_like_length
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.search_record import BeamStep
from dragoman.errors import DataError, UsageError
from dragoman.model.checkpoint import load_transformer
from dragoman.run_directory import RunDirectory, require_task
from dragoman.translation.search_settings import with_changes

_INCOMPLETE = "\ufffd"  # stands for a character whose last bytes are not generated yet


@dataclass(frozen=True)
class GeneratedText:
    """A generated text, with the prompt in front; `finished` says whether the model ended it itself."""

    text: str
    log_probability: float  # of what follows the prompt, the end included
    finished: bool


@dataclass(frozen=True)
class TextScore:
    """How well a model predicts a text. The end of a line counts: its end symbol as a token, its newline as a byte."""

    lines: int
    tokens: int
    bytes: int
    nll: float  # of the whole text, in nats

    @property
    def perplexity(self) -> float:
        return math.exp(self.nll / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Loss in bits for each byte, which can be compared between models of different vocabularies."""
        return self.nll / math.log(2) / self.bytes


class LanguageModel:
    """Generates and scores text with a trained run, or with several of one vocabulary as an ensemble."""

    def __init__(self, engine: ReferenceEngine, tokenizer: Tokenizer, search: SearchConfig) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.search = search

    @classmethod
    def load(cls, *runs: str | Path, checkpoint: str | None = None, **search: float) -> Self:
        """Loads runs: `LanguageModel.load("runs/lm", temperature=0.8)` changes one of the run's own search settings."""
        if not runs:
            raise UsageError("LanguageModel.load() needs at least one run directory")
        directories = [RunDirectory.open(run) for run in runs]
        for run in directories:
            require_task(run, "continue")
        one = f"train the members of an ensemble with one: --tokenizer {directories[0].tokenizer_path}"
        tokenizer = shared_tokenizer([run.path for run in directories], one)
        engine = ReferenceEngine([load_transformer(run, checkpoint) for run in directories], tokenizer)
        return cls(engine, tokenizer, with_changes(directories[0].read_config().search, **search))

    def generate(
        self, prompt: str = "", count: int = 1, seed: int = 0, stream: Callable[[str], None] | None = None
    ) -> list[GeneratedText]:
        """Generates `count` texts that begin with the prompt; `stream` gets the first of them piece by piece."""
        if stream is not None and not self.search.sampling and self.search.beam > 1:
            raise UsageError(
                f"beam {self.search.beam}: a beam changes its mind, so its text cannot be streamed; use beam 1"
            )
        prompt = prompt.rstrip()  # a space belongs to the token after it
        prompt_ids = self.tokenizer.encode_target(prompt) if prompt else []
        room = self.search.max_extra_length
        search = with_changes(self.search, max_extra_length=len(prompt_ids) + room)
        written: list[int] = []
        shown = ""

        def follow(step: BeamStep) -> None:
            nonlocal shown
            drawn = step.candidates[0]
            if stream is None or drawn.fate == "finished" or step.position != len(written):
                return
            written.append(drawn.token)
            text = self.tokenizer.decode(written)
            if not text.endswith(_INCOMPLETE):
                stream(text[len(shown) :])
                shown = text

        [drawn] = self.engine.translate(
            [[]], search, n_best=count, seed=seed, constrain=forced_prefix([prompt_ids]), recorder=follow
        )
        texts = self.tokenizer.decode_batch([hypothesis.ids for hypothesis in drawn])
        if stream is not None and texts:
            stream(texts[0][len(shown) :])
        return [
            GeneratedText(text, sum((one.token_log_probabilities or ())[len(prompt_ids) :]), one.finished)
            for text, one in zip(texts, drawn, strict=True)
        ]

    def score(self, lines: Sequence[str]) -> Iterator[tuple[int, list[float]]]:
        """The number of each line and the log-probabilities of its tokens, the end symbol last; longest lines first."""
        ids = self.tokenizer.encode_target_batch(lines)
        for batch in batches_of_like_length([len(line) for line in ids], self.search.batch_tokens):
            scores = self.engine.score([[] for _ in batch], [ids[number] for number in batch])
            yield from zip(batch, scores, strict=True)

    def evaluate(self, lines: Sequence[str]) -> TextScore:
        """The loss of the model on a text, one sentence in each line."""
        if not lines:
            raise DataError("no lines to evaluate; give a text with one sentence a line")
        found = [log_probs for _, log_probs in self.score(lines)]
        tokens = sum(map(len, found))
        size = sum(len(line.encode()) + 1 for line in lines)
        return TextScore(len(lines), tokens, size, -math.fsum(map(math.fsum, found)))
