"""The automaton of required phrases says of any tokens what their text says."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.glossary import Required, unmet
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.decoding.phrase_automaton import Borders, Phrases


@pytest.fixture(scope="module")
def tokenizer(tiny_run: Path) -> Tokenizer:
    return load_tokenizer(tiny_run)


@pytest.fixture(scope="module")
def cased_tokenizer(cased_run: Path) -> Tokenizer:
    return load_tokenizer(cased_run)


@settings(max_examples=150)
@given(data=st.data())
def test_the_automaton_says_of_any_tokens_what_their_text_says(tokenizer: Tokenizer, data: st.DataObject) -> None:
    """It never says "all there" of a text without; what it lacks can always be had in as many tokens as it says."""
    words = ["hundo", "la hundo", "kato", "(kato", "Zorblatt", "ĝardeno", "{x}"]
    it_agrees_with_the_text(tokenizer, words, data)


@settings(max_examples=300)
@given(data=st.data())
def test_the_automaton_knows_the_marks_of_inline_case(cased_tokenizer: Tokenizer, data: st.DataObject) -> None:
    words = ["hundo", "la hundo", "kato", "Kato", "KATO", "laHundo", "HUNDOj", "Zorblatt", "12", "d'arbo"]
    it_agrees_with_the_text(cased_tokenizer, words, data)


def it_agrees_with_the_text(tokenizer: Tokenizer, words: Sequence[str], data: st.DataObject) -> None:
    required = [Required((word,)) for word in data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3))]
    phrases = Phrases(required, tokenizer, Borders.of(tokenizer))
    spelt = [token for term in required for token in tokenizer.encode(term.forms[0])]
    marks = [*tokenizer.case_marks.values()] or spelt
    pieces = st.one_of(st.sampled_from(spelt), st.sampled_from(marks), st.integers(4, tokenizer.vocab_size - 1))
    drawn = data.draw(st.lists(pieces, max_size=10))
    state = phrases.start
    for token in drawn:
        said, state = phrases.missing_after(state, token), phrases.advance(state, token)
        assert phrases.missing(state) == said
    if phrases.missing(state) == 0:
        assert unmet(tokenizer.decode(drawn), required) == []
    left = phrases.missing(state)
    for _ in range(left):
        drawn.append(min(phrases.wanted(state), key=lambda token: phrases.missing(phrases.advance(state, token))))
        state = phrases.advance(state, drawn[-1])
    assert phrases.missing(state) == 0
    assert unmet(tokenizer.decode(drawn), required) == []


def test_a_longer_word_is_another_word(tokenizer: Tokenizer) -> None:
    phrases = Phrases([Required(("kat",))], tokenizer, Borders.of(tokenizer))
    for text, enough in (("la kat vidas", True), ("la kato vidas", False), ("la (kat) vidas", True), ("lkat", False)):
        state = phrases.start
        for token in tokenizer.encode(text):
            state = phrases.advance(state, token)
        assert (phrases.missing(state) == 0) == enough, text


@pytest.mark.parametrize(
    ("form", "text", "enough"),
    [
        ("kato", "Kato vidas", True),  # a sentence begins
        ("kato", "La kato vidas", True),
        ("kato", "La Kato vidas", False),
        ("kato", "La KATO vidas", False),
        ("kato", "la (kato", True),
        ("kato", "l'kato", True),
        ("kato", "L'KATO", False),
        ("kato", "L'KATo", False),
        ("Kato", "la Kato vidas", True),
        ("Kato", "la (Kato)", True),
        ("Kato", "l'Kato", True),
        ("Kato", "la kato", False),
        ("Kato", "la KATO", False),
        ("KATO", "la KATO.", True),
        ("KATO", "L'KATO.", False),  # the mark stands before the L: it is not seen, and so asked for once more
        ("KATO", "la KATOj", False),
        ("kato", "la katoJ", False),
        ("kato", "la katoArbo", False),
        ("laHundo", "nun laHundo", True),
    ],
)
def test_a_required_word_is_found_in_its_own_casing(
    cased_tokenizer: Tokenizer, form: str, text: str, enough: bool
) -> None:
    phrases = Phrases([Required((form,))], cased_tokenizer, Borders.of(cased_tokenizer))
    state = phrases.start
    for token in cased_tokenizer.encode(text):
        state = phrases.advance(state, token)
    assert (phrases.missing(state) == 0) == enough


def test_after_a_full_stop_a_word_is_asked_for_with_its_space(tokenizer: Tokenizer) -> None:
    phrases = Phrases([Required(("kat",))], tokenizer, Borders.of(tokenizer))
    spaced = tokenizer.encode("kat")[0]
    for text, bare in (("la (", True), ("la.", False), ("la,", False)):
        state = phrases.start
        for token in tokenizer.encode(text):
            state = phrases.advance(state, token)
        wanted = phrases.wanted(state)
        assert spaced in wanted
        assert any(not tokenizer.piece(token).startswith("▁") for token in wanted) == bare, text
