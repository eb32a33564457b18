"""Which run translates between which languages, and what languages are called."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DataError, UsageError
from dragoman.rundir import RunDirectory, read_json

NAMES = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish",
    "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "ko": "Korean",
    "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay", "mt": "Maltese",
    "nb": "Norwegian Bokmål", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
# Of the language lists that name files by three letters, those of the demo's kind.
_THREE_LETTERS = {
    "eng": "en", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de", "spa": "es", "ita": "it", "por": "pt",
    "nld": "nl", "rus": "ru", "pol": "pl", "epo": "eo", "jpn": "ja", "cmn": "zh", "tur": "tr", "ukr": "uk",
}  # fmt: skip
_CODE = re.compile(r"[a-z]{2,3}(-[a-z]{2,4})?")


@dataclass(frozen=True)
class Pair:
    source: str
    target: str
    run: Path

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


def language_name(code: str) -> str:
    return NAMES.get(code, code)


def pair_of(text: str) -> Pair:
    """`en-de=runs/my`."""
    languages, equals, run = text.partition("=")
    source, dash, target = languages.partition("-")
    if not equals or not dash or not run:
        raise UsageError(f"serve: --pair {text}; write it as en-de=RUN")
    return Pair(_checked(source), _checked(target), Path(run))


def pairs_to_serve(
    runs: Sequence[Path], named: Sequence[str], source_language: str | None, target_language: str | None
) -> list[Pair]:
    """From the command line: runs whose languages are known, or said once for all of them, and named pairs."""
    if (source_language is None) != (target_language is None):
        raise UsageError("serve: --source-language and --target-language go together; give both")
    if source_language is not None and len(runs) != 1:
        raise UsageError(f"serve: --source-language is for one RUN, not {len(runs)}; use --pair en-de=RUN for each")
    if not runs and not named:
        raise UsageError(_how_to_get_one(Path("runs")))
    pairs = [pair_of(text) for text in named]
    for run in runs:
        if source_language is not None and target_language is not None:
            pairs.append(Pair(_checked(source_language), _checked(target_language), run))
        else:
            source, target = languages_of(RunDirectory.open(run))
            pairs.append(Pair(source, target, run))
    taken: dict[str, Pair] = {}
    for pair in pairs:
        if pair.name in taken:
            raise UsageError(
                f"serve: {taken[pair.name].run} and {pair.run} both translate {pair.name}; give one run a pair"
            )
        if pair.source == pair.target:
            raise UsageError(f"serve: {pair.run} from {pair.source} to {pair.target}; give two languages")
        taken[pair.name] = pair
    return pairs


def languages_of(run: RunDirectory) -> tuple[str, str]:
    """What the run says of itself in languages.json, or what the names of its training files say."""
    said = run.languages_path
    if said.is_file():
        values = read_json(said)
        try:
            return _checked(str(values["source"])), _checked(str(values["target"]))
        except KeyError as missing:
            raise DataError(f'{said}: {missing} is missing; write {{"source": "en", "target": "de"}}') from None
    for corpus in run.read_config().data.train:
        if corpus.source is not None and corpus.target is not None:
            codes = [_code_in_suffix(Path(name)) for name in (corpus.source, corpus.target)]
            if codes[0] and codes[1] and codes[0] != codes[1]:
                return codes[0], codes[1]
        elif corpus.pairs is not None:
            for found in re.finditer(r"(?<![a-z])([a-z]{2,3})-([a-z]{2,3})(?![a-z])", str(corpus.pairs)):
                source, target = (_known(code) for code in found.groups())
                if source and target and source != target:
                    return source, target
    raise UsageError(f"serve: {run.path} does not say its languages; name them: dragoman serve --pair en-de={run.path}")


def _code_in_suffix(path: Path) -> str | None:
    suffixes = [suffix.lstrip(".") for suffix in path.suffixes if suffix not in (".gz", ".txt")]
    return _known(suffixes[-1]) if suffixes else None


def _known(code: str) -> str | None:
    code = _THREE_LETTERS.get(code, code)
    return code if code in NAMES else None


def _checked(code: str) -> str:
    if not _CODE.fullmatch(code.lower()) or code.lower() == "auto":
        raise UsageError(f"serve: language {code!r}; give a code of two or three letters, for example en or pt-br")
    return code.lower()


def _how_to_get_one(directory: Path) -> str:
    found = sorted(path.parent for path in directory.glob("*/config.json"))
    if found:
        return f"serve: which run? dragoman serve {found[0]}" + (
            f" (there are also {', '.join(map(str, found[1:4]))})" if found[1:] else ""
        )
    return (
        "serve: no model at hand; make one in ten minutes with `dragoman demo`, then `dragoman serve runs/demo`, "
        "or your own with `dragoman train --pairs my.tsv --out runs/my`"
    )
