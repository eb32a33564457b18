"""Changes of training pairs: each has its share, and what it makes is still a translation."""

import random
import re

import pytest

from dragoman.config import TEXT_CHANGES, DataConfig, TextChange
from dragoman.data.corpus import SentencePair
from dragoman.data.inline_noise import FIRST_EMOJI, noise
from dragoman.data.phrase_pairs import places_between_words
from dragoman.data.text_changes import (
    changed,
    joined,
    misspelt,
    rewrite,
    title_case,
    with_noise,
    with_tags,
    with_typos,
    without_end_punctuation,
)
from support.lexicon import LEXICON, lexicon_pairs

PAIRS = [(f"{source.capitalize()}.", f"{target.capitalize()}.") for source, target in lexicon_pairs(200, seed=9)]


def test_each_change_has_its_share() -> None:
    pair = ("don't move the piano", "ne bouge pas le piano")
    config = DataConfig(views=2, upper_case=0.2, title_case=0.1, typos=0.3)
    written = [rewrite(pair, {}, config, random.Random(i)) for i in range(3000)]
    upper = written.count(("DON'T MOVE THE PIANO", "NE BOUGE PAS LE PIANO"))
    title = written.count(("Don't Move The Piano", "Ne Bouge Pas Le Piano"))
    unchanged = written.count(pair)
    erred = [w for w in written if w[0] not in (pair[0], pair[0].upper(), title_case(pair[0]))]
    assert (round(upper / 3000, 1), round(title / 3000, 1)) == (0.2, 0.1)
    assert 0.37 < unchanged / 3000 < 0.5  # a slip may give the same word again: two equal letters exchanged
    assert {target for _, target in erred} == {pair[1]}


def test_typos_are_in_the_words_that_can_bear_them() -> None:
    draw = random.Random(3)
    assert with_typos("a b cde", draw) == "a b cde"
    for _ in range(200):
        words = with_typos("the benevolent a gregarious", draw).split(" ")
        assert (words[0], words[2]) == ("the", "a")
        assert sum(a != b for a, b in zip(words, ["the", "benevolent", "a", "gregarious"], strict=True)) <= 1
        assert abs(len(misspelt("gregarious", draw)) - len("gregarious")) <= 1


def test_the_draws_of_the_first_changes_do_not_depend_on_later_ones() -> None:
    first = {"upper_case": 0.1, "title_case": 0.1, "short_phrases": 0.2, "typos": 0.2}
    later = {name: 0.07 for name in TEXT_CHANGES if name not in first}
    assert list(TEXT_CHANGES)[:4] == list(first)
    for row, pair in enumerate(PAIRS):
        before = rewrite(pair, LEXICON, DataConfig(views=2, **first), random.Random(row))  # type: ignore[arg-type]
        after = rewrite(pair, LEXICON, DataConfig(views=2, **first, **later), random.Random(row))  # type: ignore[arg-type]
        assert before in (after, pair)


@pytest.mark.parametrize("change", TEXT_CHANGES)
def test_each_change_is_made_of_the_same_draws_again(change: TextChange) -> None:
    def made(row: int) -> SentencePair:
        return changed(change, PAIRS[row], LEXICON, random.Random(row), PAIRS[row + 1 :])

    assert [made(row) for row in range(100)] == [made(row) for row in range(100)]
    assert sum(made(row) != PAIRS[row] for row in range(100)) > 90
    config = DataConfig(views=2, **{change: 0.99})  # type: ignore[arg-type]
    written = [rewrite(PAIRS[row], LEXICON, config, random.Random(row), PAIRS[row + 1 :]) for row in range(100)]
    assert sum(new != old for new, old in zip(written, PAIRS, strict=False)) > 85


def test_without_capitals_the_target_keeps_its_own() -> None:
    pair = ("I met Tom in PARIS.", "J'ai vu Tom à Paris.")
    assert changed("lower_case", pair, {}, random.Random(1), ()) == ("i met tom in paris.", pair[1])


@pytest.mark.parametrize(
    ("pair", "bare"),
    [
        (("Go!", "Va !"), ("Go", "Va")),
        (("Who is it?", "¿Quién es?"), ("Who is it", "Quién es")),
        (("Is it? He is...", "¿Sí? Es él…"), ("Is it? He is", "¿Sí? Es él")),
        (("行きます。", "I am going."), ("行きます", "I am going")),
        (("No mark", "Une marque."), None),
        (("...", "Rien."), None),
        (('He said "no."', 'Il a dit « non. »'), None),
    ],
)  # fmt: skip
def test_the_mark_at_the_end_goes_where_both_sides_have_one(pair: SentencePair, bare: SentencePair | None) -> None:
    assert without_end_punctuation(pair) == (bare or pair)


def test_noise_is_at_the_same_place_on_both_sides() -> None:
    seen = set()
    for row, pair in enumerate(PAIRS * 3):
        noisy = with_noise(pair, LEXICON, random.Random(row))
        added = noise("".join(pair), random.Random(row))  # the same draws
        before, behind = zip(*(side.split(added) for side in noisy), strict=True)
        for side, start, end in zip(pair, before, behind, strict=True):
            assert (start + end).replace(" ", "") == side.replace(" ", "")
            assert start[-1:] in ("", " ") or added >= FIRST_EMOJI
            assert end[:1] in ("", " ", ".")
        words = [re.findall(r"\w+", start.lower()) for start in before]
        assert [LEXICON[word] for word in words[0]] == words[1]
        seen.add(("start", "end", "inside")[2 if before[0] and behind[0] else bool(before[0])])
    assert seen == {"start", "end", "inside"}


def test_noise_goes_between_words_only_where_no_links_cross() -> None:
    lexicon = {"red": "rouge", "house": "maison", "big": "grande", "old": "vieux"}
    pair = ("a big red house, old", "une grande maison rouge, vieux")
    # red and house change places; a comma follows house; nothing follows old
    assert places_between_words(pair, lexicon) == [(len("a big"), len("une grande"))]
    assert places_between_words(("red red dog", "rouge rouge chien"), lexicon) == []  # nobody knows which is which


def test_tags_stand_around_words_that_translate_each_other() -> None:
    placeholders = 0
    for row, pair in enumerate(PAIRS):
        source, target = with_tags(pair, LEXICON, random.Random(row))
        tags = [re.findall(r"<[^>]+>", side) for side in (source, target)]
        assert tags[0] == tags[1]
        if tags[0]:
            assert tags[0][0][1:].split(" ")[0].rstrip(">") == tags[0][1][2:-1]
            inside = [re.split(r"<[^>]+>", side)[1].lower() for side in (source, target)]
            words = [re.findall(r"\w+", side) for side in inside]
            assert [LEXICON[word] for word in words[0]] == words[1]
            assert [re.sub(r"<[^>]+>", "", side) for side in (source, target)] == list(pair)
        else:
            placeholders += 1
            shapes = [re.findall(r"\$?\{.*\}|%\S*?[sd]|__[a-z]+__", side) for side in (source, target)]
            assert len(shapes[0]) == 1
            assert shapes[0] == shapes[1]
    assert 0.2 * len(PAIRS) < placeholders < 0.6 * len(PAIRS)
    whole = with_tags(("Hi.", "Salut."), {}, random.Random(0))
    assert re.fullmatch(r"(<(\w+).*>)Hi\.</\2>", whole[0])
    assert whole[1] == whole[0].replace("Hi", "Salut")


def test_joined_sentences_are_different_ones_in_their_order() -> None:
    following = [("B.", "b."), ("A.", "x."), ("y.", "b."), ("C.", "c."), ("D.", "d."), ("E.", "e.")]
    lines = {joined(("A.", "a."), following, random.Random(i)) for i in range(50)}
    assert lines == {("A. B.", "a. b."), ("A. B. C.", "a. b. c."), ("A. B. C. D.", "a. b. c. d.")}
    assert joined(("A.", "a."), [], random.Random(1)) == ("A.", "a.")
    # Scripts without spaces between words have none between sentences.
    assert joined(("你好。", "Hi."), [("再见。", "Bye.")], random.Random(1)) == ("你好。再见。", "Hi. Bye.")


def test_most_phrases_are_single_words() -> None:
    phrases = [changed("short_phrases", pair, LEXICON, random.Random(row), ()) for row, pair in enumerate(PAIRS)]
    single = sum(len(source.split()) == 1 for source, _ in phrases)
    # Here every word has a link; in real text most of a word's neighbours have none, and more phrases are one word.
    assert single > 0.25 * len(phrases)
