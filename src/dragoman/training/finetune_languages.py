"""Asks a model of several languages for the two that it is fine-tuned in: by a tag before every source, or by tokens
that its tokenizer puts around the text.
"""

from dataclasses import replace

from dragoman.config import CorpusConfig
from dragoman.data.language_codes import languages_of, write_languages
from dragoman.data.language_names import codes_of
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.run_directory import RunDirectory
from dragoman.translation.target_language import asked_languages, languages_wanted
from dragoman.translation.translator import Translator


def in_languages(
    run: RunDirectory, new: CorpusConfig, valid: CorpusConfig | None, source: str | None, target: str | None
) -> tuple[CorpusConfig, CorpusConfig | None, Tokenizer]:
    """The new text with the tag that asks for its language, and the tokenizer with the tokens that do. Of a run that
    needs not be asked, and of text that has a tag already, both as they are."""
    tokenizer = load_tokenizer(run.path)
    if not tokenizer.languages or new.tag is not None:
        return new, valid, tokenizer
    asked = asked_languages(tokenizer, *languages_wanted(run, tokenizer, source, target), run.path)
    if asked.tag:
        new, valid = replace(new, tag=asked.tag), None if valid is None else replace(valid, tag=asked.tag)
    return new, valid, asked.tokenizer


def token_languages(tokenizer: Tokenizer) -> tuple[str, str] | None:
    """The usual codes of the languages whose tokens a tokenizer puts around text; None: it has none."""
    chosen = [own for own in tokenizer.chosen_languages if own is not None]
    if len(chosen) != 2:
        return None
    usual = {own: code for code, own in codes_of(tokenizer.languages).items()}
    return usual[chosen[0]], usual[chosen[1]]


def name_languages(before: RunDirectory, after: RunDirectory, languages: tuple[str, str] | None) -> None:
    """Writes into the new run which languages it translates between: those that it was asked for, or those of the run
    that it was made from."""
    if (known := languages or languages_of(before)) is not None:
        write_languages(after, *known)


def load_for_tagged(run: RunDirectory, languages: tuple[str, str] | None) -> Translator:
    """Loads a run to translate text that has its tags already. `languages`: of a model that has tokens for them."""
    source, target = languages or (None, "")
    return Translator.load(run.path, to=target, source=source)
