"""Under the constraint a search ends in a tree over exactly the words, and no tree is forbidden."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.decoding.beam_search import beam_search, sample
from dragoman.decoding.hypothesis import paper_length_penalty
from dragoman.parsing.constraint import TreeSymbols, well_formed
from dragoman.parsing.linearise import read_symbol, rebuild

_MARKS = ["()0", "()1", "()2"]  # after which they begin anew


_INVENTORY = ["(S", ")S", "(NP", ")NP", "(NN)", "(DT)", "(X", *_MARKS]  # (X has no end: it must never be opened


_EOS = len(_INVENTORY)


SYMBOLS = TreeSymbols.of(
    {i: read for i, symbol in enumerate(_INVENTORY) if (read := read_symbol(symbol))},
    list(map(_INVENTORY.index, _MARKS)),
)


class Noise:
    """A step function without a state: every sentence's next symbol is drawn from the same random numbers."""

    def select(self, sentences: Tensor, beams: Tensor) -> "Noise":  # noqa: ARG002
        return self


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_model_says_the_search_ends_in_trees_over_the_words(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    sizes = [(1, 0), (1, 5), (4, 0), (4, 1), (5, 2), (6, 9)]  # words, and symbols beyond their tags

    def step(ids: Tensor, state: Noise) -> tuple[Tensor, Noise]:
        logits = 4 * torch.randn(*ids.shape, _EOS + 1, generator=generator)
        return logits.log_softmax(-1), state

    words = [[f"w{i}" for i in range(count)] for count, _ in sizes]
    limits = [2 * count + extra for count, extra in sizes]
    settings: dict[str, Any] = {"start_id": 0, "eos_id": _EOS, "max_lengths": limits}
    constrain = well_formed(SYMBOLS, _EOS, words, limits)
    searched = beam_search(
        step, Noise(), beam=3, n_best=2, length_penalty=paper_length_penalty(0.3), constrain=constrain, **settings
    )
    drawn = sample(step, Noise(), num_samples=3, generator=generator, constrain=constrain, **settings)
    for found in (searched, drawn):
        for hypotheses, sentence, limit in zip(found, words, limits, strict=True):
            assert hypotheses
            for hypothesis in hypotheses:
                written = [_INVENTORY[i] for i in hypothesis.ids]
                marks = [(tag[-1], mark) for tag, mark in pairwise(written) if mark in _MARKS]
                assert marks == [(")", _MARKS[number % 3]) for number in range(len(sentence))]
                tree = rebuild([symbol for symbol in written if symbol not in _MARKS], sentence)
                assert tree is not None
                assert tree.words() == sentence
                assert len(hypothesis.ids) <= limit


def test_the_constraint_forbids_no_tree_that_has_room() -> None:
    symbols = ["(S", "(NP", "(NP", "(DT)", "()0", "(NN)", "()1", ")NP", "(NN)", "()2", ")NP", ")S", "(NN)", "()0"]
    ids = [_INVENTORY.index(s) for s in symbols]
    constrain = well_formed(SYMBOLS, _EOS, [["a"] * 4], [len(ids)])
    for position, token in enumerate(ids):
        assert token in (constrain(0, ids[:position]) or ())
    assert constrain(0, ids) == [_EOS]
    tighter = well_formed(SYMBOLS, _EOS, [["a"] * 4], [len(ids) - 1])
    assert any(token not in (tighter(0, ids[:position]) or ()) for position, token in enumerate(ids))


def test_punctuation_and_nothing_else_is_tagged_as_such() -> None:
    symbols = TreeSymbols.of({i: ("word", tag) for i, tag in enumerate(["NN", "HYPH", ",", ".", ":", "``"])}, [])
    for word in ("dog", "1,000", "n't", "a.m.", "-LRB-", "[", "%"):
        assert symbols.tags_for(word) == (0, 1)
    for word in (",", "...", "?!", "``", "--", '"'):
        assert symbols.tags_for(word) == (2, 3, 4, 5)
    for word in ("-", "'"):
        assert symbols.tags_for(word) == (0, 1, 2, 3, 4, 5)
    assert SYMBOLS.tags_for(",") == SYMBOLS.words  # where there is no such tag
