"""A tree is a sequence and back; what is no tree is not repaired."""

import pytest

from dragoman.parsing.linearise import fault, linearise, read_symbol, rebuild
from support.trees import SENTENCE, random_trees, read_one


def test_a_tree_survives_its_sequence() -> None:
    for tree in random_trees(100, seed=2):
        assert rebuild(linearise(tree), tree.words()) == tree


def test_a_sequence_is_readable() -> None:
    expected = "(S (NP (DT) (NN) )NP (VP (VBZ) (ADVP (RB) )ADVP )VP (.) )S"
    assert " ".join(linearise(read_one(SENTENCE))) == expected


@pytest.mark.parametrize(
    ("symbols", "why"),
    [
        ("", "tags for 0 of 1 words"),
        ("(S (NP (NN) )NP", "never closed: (S"),
        ("(S (NN) )NP", "symbol 3, )NP, stands where (S is to be closed"),
        ("(S )S (NN)", "symbol 2, )S, closes an empty bracket"),
        ("(NN) )S", "symbol 2, )S, closes a bracket that was never opened"),
        ("(S (NN) (NN) )S", "symbol 3, (NN), is the tag of one word too many: there are 1"),
        ("dog", "symbol 1, dog, is neither a bracket nor a tag"),
        ("(S (NN) </s> )S", "symbol 3, </s>, is neither a bracket nor a tag"),
    ],
)
def test_what_is_no_tree_is_none_and_not_repaired(symbols: str, why: str) -> None:
    assert rebuild(symbols.split(), ["dog"]) is None
    assert fault(symbols.split(), ["dog"]) == why


@pytest.mark.parametrize("text", ["dog", "-LRB-", "(", ")", "()", "(a)b", "((a", ""])
def test_no_word_is_a_symbol(text: str) -> None:
    assert read_symbol(text) is None
