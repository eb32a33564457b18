"""Opens the translation memory for a run: finds under which language pair its corrections are kept."""

from pathlib import Path

from dragoman.data.language_codes import languages_of
from dragoman.errors import UsageError
from dragoman.run_directory import RunDirectory
from dragoman.translation.translation_memory import TranslationMemory


def corrections_for(run: str | Path, file: str | Path, to: str | None = None) -> tuple[TranslationMemory, str]:
    """The translation memory, and the language pair under which it keeps corrections for this run."""
    memory = TranslationMemory(file, must_exist=True)
    known = languages_of(RunDirectory.open(run))
    if known is not None:
        source, target = known if to != known[0] else reversed(known)
        return memory, f"{source}-{target}"
    pairs = sorted({correction.pair for correction in memory})
    if len(pairs) > 1:
        raise UsageError(
            f"{file}: corrections of {', '.join(pairs)}, and {run} does not say its languages; "
            f'write {{"source": "en", "target": "de"}} into its languages.json'
        )
    return memory, "".join(pairs)
