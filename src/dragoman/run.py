"""A run as one object: what the commands do, from Python. What is heavy is imported when it is first needed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from dragoman import config as configuration
from dragoman.config import CorpusConfig, RunConfig, language_tag
from dragoman.corpus import read_lines
from dragoman.errors import UsageError
from dragoman.rundir import RunDirectory

if TYPE_CHECKING:
    from dragoman.adapt.finetune import FineTuned
    from dragoman.engines import ComputeType
    from dragoman.evaluate import Scores
    from dragoman.export.bundle import About
    from dragoman.export.writing import Form
    from dragoman.quantize import Verdict
    from dragoman.translate import Translation, Translator

Text = str | Path | CorpusConfig  # a TSV file of pairs, or a corpus of two files
Lines = Sequence[str] | Path  # sentences, or a file with one a line
Several = list[str] | tuple[str, ...] | Path  # the same where a string is one sentence, and not a sequence of letters


class Run:
    """`Run("runs/my").translate("Hello.")`: a trained run, or a bundle of one."""

    def __init__(self, path: str | Path) -> None:
        self.directory = RunDirectory.open(path)
        self._translators: dict[tuple[Any, ...], Translator] = {}

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def config(self) -> RunConfig:
        """Everything that the run is made from."""
        return self.directory.read_config()

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Every measurement of its training, in order."""
        return self.directory.events()

    @classmethod
    def train(
        cls,
        pairs: Text,
        out: str | Path,
        *,
        valid: Text | None = None,
        recipe: str = "small",
        both: tuple[str, str] | None = None,
        steps: int | None = None,
        minutes: float | None = None,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Self:
        """Train a translator, or go on with one that was stopped.

        `pairs`: a TSV file, or `CorpusConfig(source=..., target=...)` for two. `both`: the languages of the pairs, for
        one model of both directions. `settings`: any value by its full name, `{"model.d_ff": 512}`.
        """
        import dataclasses

        from dragoman.train import train

        def corpora(text: Text | None) -> list[dict[str, Any]] | None:
            if text is None:
                return None
            corpus = text if isinstance(text, CorpusConfig) else CorpusConfig(pairs=str(text))
            if both is not None:
                corpus = dataclasses.replace(corpus, tag=language_tag(both[1]), back_tag=language_tag(both[0]))
            return [dataclasses.asdict(corpus)]

        given = {
            "data.train": corpora(pairs),
            "data.valid": corpora(valid),
            "train.steps": steps,
            "train.minutes": minutes,
            "train.seed": seed,
            **(settings or {}),
        }
        overrides = [(key, value, "Run.train") for key, value in given.items() if value is not None]
        train(configuration.load(recipe, overrides).config, RunDirectory(out), "the same call")
        return cls(out)

    @overload
    def translate(self, text: str, *, to: str | None = None, **search: float) -> str: ...
    @overload
    def translate(
        self, text: Path | list[str] | tuple[str, ...], *, to: str | None = None, **search: float
    ) -> list[str]: ...
    def translate(
        self, text: str | Path | list[str] | tuple[str, ...], *, to: str | None = None, **search: float
    ) -> str | list[str]:
        """A sentence to a sentence, or lines to lines. `beam`, `alpha` and the other search settings by name."""
        translator = self.translator(to, **search)
        if isinstance(text, str):
            return translator.translate([text])[0]
        return translator.translate(_lines(text))

    def candidates(
        self, text: Lines, n_best: int = 5, *, to: str | None = None, **search: float
    ) -> list["Translation"]:
        """Of each line the best translations, with their scores and tokens."""
        translator = self.translator(to, **({"beam": max(n_best, self.config.search.beam)} | search))
        return list(translator.translate_stream(_lines(text), n_best))

    def score(self, pairs: Sequence[tuple[str, str]], *, to: str | None = None) -> list[float]:
        """The log-probability of each given translation."""
        return [sum(tokens) for tokens in self.translator(to).score(pairs)]

    def evaluate(
        self,
        sources: Lines,
        references: Lines,
        *,
        to: str | None = None,
        language: str | None = None,
        confidence: int = 1000,
        **search: float,
    ) -> "Scores":
        """Translate and score: BLEU with its signature, chrF, TER, each with its 95 % interval by so many resamples."""
        from dragoman.evaluate import evaluate

        outputs = self.translate(list(_lines(sources)), to=to, **search)
        return evaluate(outputs, [[line] for line in _lines(references)], language, confidence)

    def finetune(self, pairs: Text, out: str | Path, **options: Any) -> "FineTuned":
        """Teach it new text; options as of `dragoman.finetune`."""
        from dragoman.adapt.finetune import finetune

        return finetune(self.path, pairs, out, **options)

    def quantize(self, sources: Lines, references: Lines, to: "ComputeType" = "int8", limit: float = 0.2) -> "Verdict":
        """Translate with smaller numbers from now on, if no more BLEU is lost than the limit."""
        from dragoman.quantize import quantize

        self._translators.clear()
        return quantize(self.path, list(_lines(sources)), [[line] for line in _lines(references)], to, limit)

    def export(self, to: "Form", out: str | Path | None = None, **options: Any) -> Path:
        """For another program: ctranslate2, argos, marian-hf or onnx; the path of what was written."""
        from dragoman.export.writing import export

        return export(self.path, to, out, **options)

    def bundle(self, out: str | Path, about: "About | None" = None, *, with_text: bool = False) -> Path:
        """The run and its model card in one file."""
        from dragoman.export.bundle import bundle

        return bundle(self.path, out, about, with_text)

    @classmethod
    def from_marian(cls, directory: str | Path, out: str | Path, languages: tuple[str, str] | None = None) -> Self:
        """A run from a Hugging Face Marian directory."""
        from dragoman.export.writing import import_marian

        return cls(import_marian(directory, out, languages))

    def translator(self, to: str | None = None, **search: float) -> "Translator":
        """What translates, loaded once for each language and settings."""
        from dragoman.translate import Translator

        key = (to, *sorted(search.items()))
        if key not in self._translators:
            load: Callable[..., Translator] = Translator.load
            self._translators[key] = load(self.path, to=to, **search)
        return self._translators[key]


def _lines(text: Lines) -> list[str]:
    if isinstance(text, str):
        raise UsageError(f"{text[:40]!r} is one string; give a list of lines, or a Path to a file of them")
    return list(read_lines(text)) if isinstance(text, Path) else list(text)
