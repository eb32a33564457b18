"""A model of several languages is asked for one by a tag or by tokens, and its weights are there once."""

from pathlib import Path
from typing import Any, cast

import pytest

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import UsageError
from dragoman.translation.target_language import asked_languages
from dragoman.translation.translator import Translator

RUN = Path("runs/many")
MANY = [f"a{letter}" for letter in "abcdefghijklmnopq"]


class Named:
    """The languages of a tokenizer, and nothing else of it."""

    has_language_tokens = False

    def __init__(self, *languages: str) -> None:
        self.languages = list(languages)


class WithTokens(Named):
    """The languages of a tokenizer that has tokens for them."""

    has_language_tokens = True
    asked: tuple[str | None, str | None] = (None, None)
    chosen_languages = (None, None)

    def __init__(self, *languages: str) -> None:
        super().__init__(*languages)
        self.source_languages = list(languages)

    def for_languages(self, source: str | None, target: str | None) -> "WithTokens":
        copy = WithTokens(*self.languages)
        copy.asked = source, target
        return copy


class SharedEngine:
    """An engine that knows with which tokenizer it is used."""

    name = "fake"
    forms_batches = True
    exact_products = False

    def __init__(self, weights: object, tokenizer: object = None) -> None:
        self.weights, self.tokenizer = weights, tokenizer

    def for_tokenizer(self, tokenizer: object) -> "SharedEngine":
        return SharedEngine(self.weights, tokenizer)


def asked(tokenizer: object, source: str | None, target: str | None) -> Any:
    return asked_languages(cast("Tokenizer", tokenizer), source, target, RUN)


def test_a_tag_asks_for_a_language() -> None:
    assert asked(Named(), None, None).tag == ""
    assert asked(Named("de"), None, None).tag == ">>de<<"
    assert asked(Named("deu", "fra"), None, "fr").tag == ">>fra<<"
    assert asked(Named("deu", "fra"), None, "").tag == ""
    for target, said in (
        (None, "into de, fr; say which: --target-language de"),
        ("es", "into de, fr, not es; give one of them"),
    ):
        with pytest.raises(UsageError, match=said):
            asked(Named("deu", "fra"), None, target)
    with pytest.raises(UsageError, match=r"aa, ab, .*, al and 5 more; say which"):
        asked(Named(*MANY), None, None)


def test_tokens_ask_for_two_languages() -> None:
    tokenizer = WithTokens("eng_Latn", "deu_Latn")
    found = asked(tokenizer, "en", "de")
    assert (found.tag, found.tokenizer.asked) == ("", ("eng_Latn", "deu_Latn"))
    for source, target, said in (
        (None, "de", "translates from en, de; say which: --source-language en"),
        ("fr", "de", "translates from en, de, not fr"),
        ("en", "", "reads no tags in the text"),
        ("en", None, "say which: --target-language en"),
    ):
        with pytest.raises(UsageError, match=said):
            asked(tokenizer, source, target)


def test_other_languages_share_the_weights() -> None:
    weights = object()
    tokenizer: Any = WithTokens("en", "de", "fr")
    engine: Any = SharedEngine(weights)
    first = Translator(engine, tokenizer, SearchConfig(), language="en", load_reference=lambda: engine)
    one, other = first.for_languages(None, "de"), first.for_languages("de", "fr")
    for translator, languages in (
        (one, ("en", "de")),
        (other, ("de", "fr")),
        (other.for_languages("en", "de"), ("en", "de")),
    ):
        assert cast("Any", translator.tokenizer).asked == languages
        assert cast("Any", translator.engine).weights is weights
        assert cast("Any", translator.engine).tokenizer is translator.tokenizer
        assert translator.reference.tokenizer is translator.tokenizer
        assert translator.language == languages[0]
