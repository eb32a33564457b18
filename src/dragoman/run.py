"""A run as one object: the commands from Python. Heavy imports are made when they are first needed."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from dragoman.config import CorpusConfig, RunConfig, language_tag, recipes
from dragoman.data.corpus import read_lines
from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.progress import Say, StderrRelay, relaying_stderr, to_stderr
from dragoman.run_directory import RunDirectory

if TYPE_CHECKING:
    from dragoman.data.glossary import Glossary
    from dragoman.decoding.engines import ComputeType, EngineName
    from dragoman.documents.format_names import DocumentFormat
    from dragoman.documents.report import DocumentReport
    from dragoman.evaluation.metrics import Scores
    from dragoman.evaluation.quantize import QuantizationResult
    from dragoman.export.bundle import About
    from dragoman.export.formats import ExportFormat
    from dragoman.quickstart.finished import FinishedResult
    from dragoman.training.finetune import FineTuned
    from dragoman.translation.confidence import CalibrationReport
    from dragoman.translation.result import Translation
    from dragoman.translation.translator import Translator

Text = str | Path | CorpusConfig  # a TSV file of pairs, or a corpus of two files
Lines = Sequence[str] | Path  # sentences, or a file with one a line

MOST_CANDIDATES = 256  # as many as the largest beam has


class Run:
    """A trained run, or a bundle of one: `Run("runs/my").translate("Hello.")`."""

    def __init__(self, path: str | Path, corrections: str | Path | None = None) -> None:
        """corrections: a translation memory that `dragoman serve --corrections` keeps; a sentence that it holds is
        answered from it."""
        self.directory = RunDirectory.open(_path(path, "the run's directory"))
        self._corrections = None if corrections is None else _path(corrections, "the file of corrections")
        self._translators: dict[tuple[Any, ...], Translator] = {}

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def config(self) -> RunConfig:
        """The configuration: everything that the run is made from."""
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
        say: Say | None = to_stderr,
    ) -> Self:
        """Trains a translator, or goes on with a training that was stopped.

        `pairs`: a TSV file, or `CorpusConfig(source=..., target=...)` for two. `both`: the languages of the pairs, for
        one model of both directions. `settings`: any value by its full name, `{"model.d_ff": 512}`. `say` is given the
        lines of progress; None: they go nowhere.
        """
        from dragoman.training.loop import train

        if pairs is None:
            _path(pairs, "a file of pairs")
        run = RunDirectory(_path(out, "the new run's directory"))
        given = {
            "data.train": _corpora(pairs, both),
            "data.valid": None if valid is None else _corpora(valid, both),
            "train.steps": steps,
            "train.minutes": minutes,
            "train.seed": seed,
            **(settings or {}),
        }
        overrides = [(key, value, "Run.train") for key, value in given.items() if value is not None]
        config = recipes.load(recipe, overrides).config
        with _progress(say):
            train(config, run, "the same call")
        return cls(out)

    @classmethod
    def quickstart(
        cls,
        paths: str | Path | Sequence[str | Path],
        out: str | Path,
        *,
        minutes: float = 30.0,
        languages: tuple[str, str] | None = None,
        seed: int = 1,
        settings: Mapping[str, Any] | None = None,
        say: Say | None = to_stderr,
    ) -> "tuple[Self, FinishedResult]":
        """Makes a translator from your own sentence pairs: checks them, chooses a size, trains it, scores it.

        `paths`: a file of pairs in any format that `dragoman quickstart` reads, two aligned files, or a folder.
        """
        from dragoman.data.language_codes import checked_code
        from dragoman.quickstart.pipeline import quickstart

        several = [paths] if isinstance(paths, str | Path) else paths
        files = [_path(path, "a file of pairs") for path in _sequence(several, "files of pairs")]
        if not files:
            raise UsageError("no file of pairs; give one, two aligned ones, or a folder")
        if not isinstance(minutes, int | float) or not 0.1 <= minutes < 1e6:
            raise UsageError(f"minutes {minutes!r}; give a number from 0.1 to 1e+06")
        wanted = None if languages is None else (checked_code(languages[0]), checked_code(languages[1]))
        changes = [(key, value, "Run.quickstart") for key, value in (settings or {}).items()]
        into = _path(out, "the new run's directory")
        with _progress(say) as relay:
            outcome = quickstart(files, into, minutes, wanted, seed, changes, "the same call", relay.say)
        return cls(out), outcome

    @overload
    def translate(self, text: str, *, to: str | None = None, **search: float) -> str: ...
    @overload
    def translate(
        self, text: Path | list[str] | tuple[str, ...], *, to: str | None = None, **search: float
    ) -> list[str]: ...
    def translate(
        self, text: str | Path | list[str] | tuple[str, ...], *, to: str | None = None, **search: float
    ) -> str | list[str]:
        """Translates a sentence, or lines. `beam`, `alpha` and the other search settings can be given by name."""
        lines = [text] if isinstance(text, str) else _lines(text)
        translations = self.translator(to, **search).translate(lines)
        return translations[0] if isinstance(text, str) else translations

    def translate_document(
        self,
        document: str | Path,
        out: str | Path,
        *,
        report: str | Path | None = None,
        kind: "DocumentFormat | None" = None,
        language: str | None = None,
        to: str | None = None,
        glossary: "str | Path | Glossary | None" = None,
        min_confidence: float | None = None,
        mark: str = "[?] ",
        protect_styles: Sequence[str] = (),
        fuzzy: bool = True,
        columns: Sequence[str] = (),
        engine: "EngineName" = "auto",
        compute_type: "ComputeType | None" = None,
        say: Say | None = to_stderr,
        **search: float,
    ) -> "DocumentReport":
        """Translates a document of any format of `dragoman translate-file`; returns how its sentences were translated.

        `report`: a JSON file of each sentence that needed more than plain translation, and why. `kind` None: by the end
        of the document's name. `min_confidence`: what is less sure than this is left, with `mark` before it.
        `protect_styles`: names of styles and fonts (HTML, Markdown: of classes and tags) whose text is left. `fuzzy`:
        what is filled in a PO or XLIFF file is marked so. `columns`: of a CSV or TSV file, none is all.
        """
        from dragoman.documents.from_run import translate_with

        if min_confidence is not None:
            _within(min_confidence, 1, "min_confidence")
        return translate_with(
            self.path,
            _path(document, "the document"),
            _path(out, "the file to write"),
            report=None if report is None else _path(report, "the file of the report"),
            document_format=kind,
            language=language,
            to=to,
            target_language=to,
            glossary=Path(glossary) if isinstance(glossary, str) else glossary,
            corrections=self._corrections,
            min_confidence=min_confidence,
            mark=mark,
            protect_styles=_names(protect_styles),
            fuzzy=fuzzy,
            columns=_names(columns),
            engine=engine,
            compute_type=compute_type,
            say=say or (lambda _: None),
            **search,
        )

    def candidates(
        self, text: Lines, n_best: int = 5, *, to: str | None = None, **search: float
    ) -> list["Translation"]:
        """The n_best translations of each line, with their scores and tokens."""
        if type(n_best) is not int or not 1 <= n_best <= MOST_CANDIDATES:
            raise UsageError(f"n_best {n_best!r}; give a whole number from 1 to {MOST_CANDIDATES}")
        translator = self.translator(to, **({"beam": max(n_best, self.config.search.beam)} | search))
        return list(translator.translate_stream(_lines(text), n_best))

    def score(self, pairs: Sequence[tuple[str, str]], *, to: str | None = None) -> list[float]:
        """The log-probability of each given translation."""
        given = _sequence(pairs, "pairs of a source and a translation")
        for number, pair in enumerate(given, start=1):
            if not isinstance(pair, tuple | list) or [type(text) for text in pair] != [str, str]:
                raise UsageError(f"pair {number} is {_shown(pair)}; give a source and a translation, both strings")
        return [sum(tokens) for tokens in self.translator(to).score(given)]

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
        """Translates and scores: BLEU with its signature, chrF and TER, each with a 95 % interval. `confidence`: the
        number of bootstrap resamples for it."""
        from dragoman.evaluation.metrics import evaluate

        right = [[line] for line in _lines(references)]
        outputs = self.translate(list(_lines(sources)), to=to, **search)
        return evaluate(outputs, right, language, confidence)

    def calibrate(
        self, sources: Lines, references: Lines, *, good: float = 50.0, to: str | None = None
    ) -> "CalibrationReport":
        """Learns how sure its translations are, from sentences that it was not trained on; `good`: the least chrF of a
        good translation.

        From then on all ways to translate can say how probably a translation is good.
        """
        from dragoman.evaluation.calibration import calibrate_run

        _within(good, 100, "good")
        self._translators.clear()
        return calibrate_run(self.path, _lines(sources), [[line] for line in _lines(references)], good, to)

    def finetune(self, pairs: Text, out: str | Path, *, say: Say | None = to_stderr, **options: Any) -> "FineTuned":
        """Fine-tunes it on new text; options as of `dragoman.finetune`. `say` is given the lines of progress; None:
        they go nowhere."""
        from dragoman.training.finetune import finetune

        text = pairs if isinstance(pairs, CorpusConfig) else _path(pairs, "a file of pairs")
        with _progress(say) as relay:
            return finetune(self.path, text, _path(out, "the new run's directory"), say=relay.say, **options)

    def distill(
        self, out: str | Path, *, beside: Sequence[str | Path] = (), say: Say | None = to_stderr, **options: Any
    ) -> "FinishedResult":
        """Teaches a small and fast model what it says, into `out`; options as of `dragoman.distill`. `beside`: further
        teachers, an ensemble with this run."""
        from dragoman.distillation.pipeline import distill

        teachers = [self.path, *(_path(path, "a teacher") for path in _sequence(beside, "the other teachers"))]
        with _progress(say) as relay:
            return distill(teachers, _path(out, "the new run's directory"), say=relay.say, **options)

    def quantize(
        self, sources: Lines, references: Lines, to: "ComputeType" = "int8", limit: float = 0.2
    ) -> "QuantizationResult":
        """Translates with a smaller number type from now on, if that loses no more BLEU than the limit."""
        from dragoman.evaluation.quantize import quantize

        _within(limit, 100, "limit")
        self._translators.clear()
        return quantize(self.path, list(_lines(sources)), [[line] for line in _lines(references)], to, limit)

    def export(self, to: "ExportFormat", out: str | Path | None = None, **options: Any) -> Path:
        """Writes the run for another program: ctranslate2, argos, marian-hf or onnx; returns the path of the result."""
        from dragoman.export.formats import export

        return export(self.path, to, out, **options)

    def bundle(self, out: str | Path, about: "About | None" = None, *, with_text: bool = False) -> Path:
        """Writes the run and its model card into one file."""
        from dragoman.export.bundle import bundle

        return bundle(self.path, _path(out, "the file to write"), about, with_text)

    @classmethod
    def import_model(
        cls,
        model: str | Path,
        out: str | Path,
        languages: tuple[str, str] | None = None,
        revision: str | None = None,
    ) -> Self:
        """Makes a run from a public model, as `dragoman import` does. `model`: its path, or its name on the hub."""
        from dragoman.importing.read import import_model

        _path(model, "the model")
        return cls(import_model(model, _path(out, "the new run's directory"), languages, revision))

    def translator(self, to: str | None = None, **search: float) -> "Translator":
        """The translator into this language with these search settings; each is loaded once."""
        from dragoman.translation.translator import Translator

        key = (to, *sorted(search.items()))
        if key not in self._translators:
            load: Callable[..., Translator] = Translator.load
            translator = load(self.path, to=to, **search)
            if self._corrections is not None:
                from dragoman.translation.corrections import corrections_for

                translator = translator.with_corrections(*corrections_for(self.path, self._corrections, to))
            self._translators[key] = translator
        return self._translators[key]


@contextmanager
def _progress(say: Say | None) -> Iterator[StderrRelay]:
    """Gives lines of progress to `say`, and turns the SystemExit of a training of several processes into an error."""
    if say is not None and not callable(say):
        raise UsageError(f"say is {_shown(say)}; give a function of a line, or None for silence")
    relay: StderrRelay | None = None
    try:
        with relaying_stderr(say) as relay:
            yield relay
    except SystemExit as left:
        kinds: dict[Any, type[DragomanError]] = {2: UsageError, 3: DataError}
        reason = relay.error_message if relay is not None else ""
        raise kinds.get(left.code, DragomanError)(
            reason or "a process of the training failed; see its line above"
        ) from None


def _corpora(text: Text, both: tuple[str, str] | None) -> list[dict[str, Any]]:
    """The corpora of a configuration; with `both`, for one model of both directions."""
    corpus = text if isinstance(text, CorpusConfig) else CorpusConfig(pairs=str(_path(text, "a file of pairs")))
    if both is not None:
        corpus = dataclasses.replace(corpus, tag=language_tag(both[1]), back_tag=language_tag(both[0]))
    return [dataclasses.asdict(corpus)]


def _lines(text: Lines) -> list[str]:
    """The lines of a list or a file; a UsageError for everything else."""
    if isinstance(text, str):
        raise UsageError(f"{text[:40]!r} is one string; give a list of lines, or a Path to a file of them")
    if isinstance(text, Path):
        return list(read_lines(text))
    lines = _sequence(text, "a string, a list of strings, or a Path to a file of lines")
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise UsageError(f"line {number} is {_shown(line)}; every line is a string")
    return lines


def _sequence(value: Any, wanted: str) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        raise UsageError(f"{_shown(value)} was given; give {wanted}")
    return list(value)


def _names(value: Any) -> list[str]:
    names = _sequence(value, "a list of names of styles and fonts")
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{_shown(name)} was given for a style; give its name, a string")
    return names


def _within(value: Any, most: int, name: str) -> None:
    if not isinstance(value, int | float) or not 0 <= value <= most:
        raise UsageError(f"{name} {value!r}; give a number from 0 to {most}")


def _path(value: Any, what: str) -> Path:
    if not isinstance(value, str | Path) or value == "":
        raise UsageError(f"{_shown(value)} was given for {what}; give its path, a string or a Path")
    return Path(value)


def _shown(value: Any) -> str:
    """A value as it is written in a message, with its type."""
    return "None" if value is None else f"{repr(value)[:40]} ({type(value).__name__})"
