"""Opens the translation memory for a run: finds under which language pair its corrections are kept, or reads TMX."""

from pathlib import Path

from dragoman.data.language_codes import languages_of
from dragoman.data.pair_formats import read_any
from dragoman.errors import UsageError
from dragoman.run_directory import RunDirectory
from dragoman.translation.translation_memory import TranslationMemory

_IN_MEMORY = ":memory:"  # SQLite's name for no file at all


def corrections_for(run: str | Path, file: str | Path, to: str | None = None) -> tuple[TranslationMemory, str]:
    """The translation memory, and the language pair under which it keeps corrections for this run. `file`: of
    corrections, or a TMX file, which is read into memory."""
    known = languages_of(RunDirectory.open(run))
    if known is not None and to == known[0]:
        known = known[1], known[0]
    if is_tmx(Path(file)):
        return tmx_memory(Path(file), known)
    memory = TranslationMemory(file, must_exist=True)
    if known is not None:
        return memory, "-".join(known)
    pairs = sorted({correction.pair for correction in memory})
    if len(pairs) > 1:
        raise UsageError(
            f"{file}: corrections of {', '.join(pairs)}, and {run} does not say its languages; "
            f'write {{"source": "en", "target": "de"}} into its languages.json'
        )
    return memory, "".join(pairs)


def is_tmx(path: Path) -> bool:
    """Whether a file is a translation memory in TMX, by the ending of its name."""
    return path.name.lower().endswith((".tmx", ".tmx.gz"))


def tmx_memory(path: Path, languages: tuple[str, str] | None) -> tuple[TranslationMemory, str]:
    """A translation memory of the pairs of a TMX file, and its language pair; `languages` None: those of the file."""
    memory = TranslationMemory(_IN_MEMORY)
    found = read_any([path], languages)
    pair = "-".join(languages or found.languages or ("source", "target"))
    memory.store_all(pair, found.pairs)
    return memory, pair
