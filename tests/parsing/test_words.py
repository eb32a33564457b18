"""Raw text is split into words as treebanks have them."""

import pytest

from dragoman.parsing.words import split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It doesn't work (yet).", "It does n't work -LRB- yet -RRB- ."),
        ('"Stop!" he said, paying $1,000.', "`` Stop ! '' he said , paying $ 1,000 ."),
        ("The dogs' owner's car can't", "The dogs ' owner 's car ca n't"),
        ("Mr. Smith's -- no, Dr. No", "Mr. Smith 's -- no , Dr. No"),
        ("I cannot...", "I can not ..."),
        ("", ""),
    ],
)
def test_raw_text_becomes_words_as_treebanks_have_them(text: str, words: str) -> None:
    assert split_words(text) == words.split()
