"""Names and codes of languages, and which two languages a run translates between."""

import json
import re
from pathlib import Path

from dragoman.data.language_names import MORE_NAMES, SCRIPTS
from dragoman.errors import DataError, UsageError
from dragoman.files import read_json, write_atomically
from dragoman.run_directory import RunDirectory

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
# Codes of three letters, which Tatoeba and others use in file names.
_THREE_LETTERS = {
    "eng": "en", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de", "spa": "es", "ita": "it", "por": "pt",
    "nld": "nl", "rus": "ru", "pol": "pl", "epo": "eo", "jpn": "ja", "cmn": "zh", "tur": "tr", "ukr": "uk",
}  # fmt: skip
_CODE = re.compile(r"[a-z]{2,3}(-[a-z]{2,4})?")


def language_name(code: str) -> str:
    """The English name of a language, or its code where the name is not known."""
    known = NAMES | MORE_NAMES
    base, _, script = code.partition("-")
    if code in known or script not in SCRIPTS:
        return known.get(code, code)
    return f"{known.get(base, base)} ({SCRIPTS[script]})"


def same_language(one: str, other: str) -> bool:
    """Tells whether two codes stand for the same language, wherever it is spoken: pt_BR, pt-pt and por do."""
    first, second = (re.split(r"[-_@.]", code.strip().lower())[0] for code in (one, other))
    norwegian = {"no", "nb", "nn", "nor", "nob", "nno"}
    return _THREE_LETTERS.get(first, first) == _THREE_LETTERS.get(second, second) or {first, second} <= norwegian


def languages_of(run: RunDirectory) -> tuple[str, str] | None:
    """The source and target language of a run: from its languages.json, or else from the names of its training files;
    None where neither tells."""
    path = run.languages_path
    if path.is_file():
        values = read_json(path)
        try:
            return checked_code(str(values["source"])), checked_code(str(values["target"]))
        except KeyError as missing:
            raise DataError(f'{path}: {missing} is missing; write {{"source": "en", "target": "de"}}') from None
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
    return None


def write_languages(run: RunDirectory, source: str, target: str) -> None:
    """Writes which languages the run translates between into its languages.json."""
    content = json.dumps({"source": checked_code(source), "target": checked_code(target)}) + "\n"
    write_atomically(run.languages_path, content.encode())


def is_code(code: str) -> bool:
    """Whether this can be the code of a language."""
    return _CODE.fullmatch(code) is not None and code != "auto"


def checked_code(code: str) -> str:
    """Returns a language code in small letters; what cannot be one is a UsageError."""
    if not is_code(code.lower()):
        raise UsageError(f"language {code!r}; give a code of two or three letters, for example en or pt-br")
    return code.lower()


def _code_in_suffix(path: Path) -> str | None:
    suffixes = [suffix.lstrip(".") for suffix in path.suffixes if suffix not in (".gz", ".txt")]
    return _known(suffixes[-1]) if suffixes else None


def _known(code: str) -> str | None:
    code = _THREE_LETTERS.get(code, code)
    return code if code in NAMES else None
