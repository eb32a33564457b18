"""Asks a model of several languages for one of them: by a tag before the source, or by tokens that its tokenizer puts
around it.
"""

from pathlib import Path
from typing import NamedTuple

from dragoman.config import language_tag
from dragoman.data.language_codes import languages_of
from dragoman.data.language_names import codes_of, own_code
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import UsageError
from dragoman.run_directory import RunDirectory

MOST_NAMED = 12  # languages that an error lists


class AskedLanguages(NamedTuple):
    """What asks a model for a language: a tokenizer that does, or a tag before every source."""

    tokenizer: Tokenizer
    tag: str


def languages_wanted(
    run: RunDirectory, tokenizer: Tokenizer, source: str | None, target: str | None
) -> tuple[str | None, str | None]:
    """Source and target, where they are not said those that the run names. Of a run of several languages only an
    imported one has a target of its own: the one that it was imported for."""
    named = languages_of(run)
    if named is None:
        return source, target
    if target is None and tokenizer.is_imported and own_code(named[1], tokenizer.languages):
        target = named[1]
    return source or (named[1] if target == named[0] else named[0]), target


def asked_languages(tokenizer: Tokenizer, source: str | None, target: str | None, run: Path) -> AskedLanguages:
    """What asks a model for a target language. The target None: the one that it knows; "": the text itself says it with
    a tag. The source is needed where the model has tokens for that, too."""
    known = tokenizer.languages
    if target == "" and tokenizer.has_language_tokens and all(tokenizer.chosen_languages or (None,)):  # it is asked
        return AskedLanguages(tokenizer, "")
    if target is None and len(known) > 1:
        raise UsageError(
            f"{run} translates into {_listed(known)}; say which: --target-language {next(iter(codes_of(known)))}"
        )
    wanted = "".join(known) if target is None else target
    own = own_code(wanted, known)
    if target and own is None:
        able = f"translates into {_listed(known)}" if known else "knows one language to translate into"
        remedy = "give one of them" if len(known) > 1 else "leave --target-language out"
        raise UsageError(f"{run} {able}, not {target}; {remedy}")
    if not tokenizer.has_language_tokens:
        return AskedLanguages(tokenizer, language_tag(own) if own else "")
    if not own:
        raise UsageError(
            f"{run} reads no tags in the text; say the language: --target-language {next(iter(codes_of(known)))}"
        )
    return AskedLanguages(tokenizer.for_languages(_source_of(tokenizer, source, run), own), "")


def _source_of(tokenizer: Tokenizer, source: str | None, run: Path) -> str | None:
    known = tokenizer.source_languages
    if not known:
        return None
    if source is None:
        raise UsageError(
            f"{run} translates from {_listed(known)}; say which: --source-language {next(iter(codes_of(known)))}"
        )
    own = own_code(source, known)
    if own is None:
        raise UsageError(f"{run} translates from {_listed(known)}, not {source}; give --source-language one of them")
    return own


def _listed(languages: list[str]) -> str:
    """The languages by the codes that they are asked for; of very many the first."""
    codes = list(codes_of(languages))
    more = f" and {len(codes) - MOST_NAMED} more" if len(codes) > MOST_NAMED else ""
    return ", ".join(codes[:MOST_NAMED]) + more
