"""Words in another script than the text around them."""

import pytest

from dragoman.data.scripts import foreign_words, main_script


@pytest.mark.parametrize(
    ("text", "script"),
    [("Two dogs", "LATIN"), ("Où êtes-vous ?", "LATIN"), ("Две собаки и cat", "CYRILLIC"), ("東京へ行く", "CJK"),
     ("Ask Дмитрий", "LATIN"), ("12 %", "")],
)  # fmt: skip
def test_a_text_is_in_the_script_of_most_of_its_letters(text: str, script: str) -> None:
    assert main_script(text) == script


@pytest.mark.parametrize(
    ("source", "translation", "words"),
    [
        ("Have you seen Дмитрий and 東京?", "Avez-vous vu ?", ("Дмитрий", "東京")),
        ("Have you seen Дмитрий?", "Вы видели Дмитрия?", ()),  # there it is a word of the language, and is inflected
        ("Ты видел iPhone?", "Have you seen it?", ()),
        ("Ты видел iPhone?", "네 아이폰 봤어?", ("iPhone",)),
        ("Où est l'été ?", "Where is it?", ()),
        ("the β version of 10 µg", "la version", ()),  # a single letter is a symbol
        ("私はTokyoへ行く", "我去", ("Tokyo",)),
        ("カタカナと漢字", "kana", ()),
        ("a mixed саse", "un", ()),  # both scripts in one word: a mistake, no name
        ("", "", ()),
    ],
)
def test_foreign_words_are_in_the_script_of_neither_side(source: str, translation: str, words: tuple[str, ...]) -> None:
    assert foreign_words(source, translation) == words
