"""In a parser's vocabulary a bracket is one token, and rare words fall into classes."""

from pathlib import Path

import pytest

from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError
from dragoman.parsing.linearise import linearise, rebuild
from dragoman.parsing.trees import strip_tree
from dragoman.parsing.vocabulary import Vocabulary, is_of_trees, learn_vocabulary, target_text, word_classes
from support.trees import grammar_trees


@pytest.mark.parametrize("units", ["words", "subwords"])
def test_symbols_are_one_token_each_and_words_are_told_apart(units: str) -> None:
    found = [strip_tree(tree) for tree in grammar_trees(200, 1)]
    bank = [tree for tree in found if tree is not None]
    tokenizer = learn_vocabulary(bank, units, 600)  # type: ignore[arg-type]
    vocabulary = Vocabulary(Tokenizer(tokenizer.model_bytes))
    assert vocabulary.units == units
    assert is_of_trees(tokenizer)
    for tree in bank[:50]:
        symbols, count = linearise(tree), len(tree.words())
        ids = tokenizer.encode(target_text(tree))
        assert len(ids) == len(symbols) + count
        read, steps = vocabulary.read(ids)
        assert read == symbols
        assert [tokenizer.piece(ids[step]).removeprefix("▁") for step in steps] == symbols
        marks = [step for step in range(len(ids)) if step not in steps]
        ids[marks[0]], ids[marks[1]] = ids[marks[1]], ids[marks[0]]  # in the wrong places, and so no tree
        assert rebuild(vocabulary.read(ids)[0], tree.words()) is None
        assert tokenizer.unk_id not in tokenizer.encode(vocabulary.source_text(tree.words()))
    texts = {vocabulary.source_text([word]) for word in ("dog", "cat", "NN", "sees")}
    assert len({tuple(tokenizer.encode(text)) for text in texts}) == len(texts)
    unknown = tokenizer.encode(vocabulary.source_text(["Frabbling", "(NP"]))
    assert not set(unknown) & vocabulary.symbols.meaning.keys()


@pytest.mark.parametrize(
    ("word", "narrowest"),
    [
        ("frabbling", "<rare:x:ing>"),
        ("Frabbled", "<rare:Xx:ed>"),
        ("UNESCO", "<rare:X>"),
        ("1,234.5", "<rare:0>"),
        ("mid-1990s", "<rare:x0->"),
        ("a.b@c.org", "<rare:x@>"),
        ("iPod", "<rare:xX>"),
        ("***", "<rare:.>"),
    ],
)
def test_a_rare_word_falls_into_a_class_by_its_look(word: str, narrowest: str) -> None:
    classes = word_classes(word)
    assert classes[0] == narrowest
    assert classes[-1] == "<rare>"


def test_a_translators_vocabulary_is_refused(tiny_run: Path) -> None:
    tokenizer = Tokenizer.load(tiny_run / "tokenizer.model")
    with pytest.raises(DataError, match="not a parser's run"):
        Vocabulary(tokenizer)
    assert not is_of_trees(tokenizer)
