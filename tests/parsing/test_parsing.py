"""Parsing: trees to sequences and back, the constraint, and a small grammar learned through the real command line."""

import json
import random
import re
import xml.etree.ElementTree
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig, SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.beam_search import beam_search, sample
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import paper_length_penalty
from dragoman.errors import DataError, UsageError
from dragoman.inspection.attention_trace import trace
from dragoman.model.probe import Site
from dragoman.model.transformer import Transformer
from dragoman.parsing.bracket_attention import Node, ParseTrace, trace_parse
from dragoman.parsing.constraint import TreeSymbols, well_formed
from dragoman.parsing.draw import draw_svg, draw_text, place
from dragoman.parsing.evalb import EvalbSummary, score_lines
from dragoman.parsing.linearise import fault, linearise, read_symbol, rebuild
from dragoman.parsing.parser import Parser
from dragoman.parsing.trees import (
    Leaf,
    Tree,
    parse_brackets,
    read_stripped,
    right_branching,
    strip_tree,
    write,
    write_indented,
)
from dragoman.parsing.vocabulary import Vocabulary, is_of_trees, learn_vocabulary, target_text, word_classes
from dragoman.parsing.words import split_words

SENTENCE = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ runs) (ADVP (RB away))) (. .)))"

LABELS = ["S", "NP", "VP", "PP", "ADVP", "WHNP"]
LEAVES = [Leaf("NN", "a"), Leaf("DT", "Ä"), Leaf("-LRB-", "-LRB-"), Leaf("PRP$", "b"), Leaf(",", ","), Leaf("``", "``")]


def random_trees(count: int, seed: int) -> list[Tree]:
    """Of every form: one child or several, brackets beside words, more than one child of the root."""
    draw = random.Random(seed)

    def children(depth: int) -> Iterator[Tree | Leaf]:
        for _ in range(draw.randint(1, 3)):
            bracket = depth and draw.random() < 0.6
            yield Tree(draw.choice(LABELS), tuple(children(depth - 1))) if bracket else draw.choice(LEAVES)

    return [Tree("TOP", tuple(children(draw.randint(1, 5)))) for _ in range(count)]


def read_one(text: str) -> Tree:
    (tree,) = parse_brackets(text.splitlines())
    return tree


# Brackets.


def test_trees_survive_writing_on_one_line_on_many_and_with_none_between() -> None:
    found = random_trees(100, seed=1)
    for text in ("\n".join(map(write, found)), "\n".join(map(write_indented, found)), "".join(map(write, found))):
        assert list(parse_brackets(text.splitlines())) == found


def test_a_deep_tree_is_read_written_and_drawn() -> None:
    depth = 399
    tree = read_one("(X " * depth + "(NN a)" + ")" * depth)
    assert write(tree).count("(X ") == depth
    rooted = strip_tree(tree)
    assert rooted is not None
    assert write(rebuild(linearise(rooted), rooted.words()) or tree) == f"(TOP {write(tree)})"
    assert draw_text(tree).count("\n") == depth
    assert draw_svg(tree).count("<text") == depth + 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN dog)\n(", r"input:1: 2 brackets of the tree that begins here are never closed"),
        ("(NN a)\n\n(S (NN dog)))", r"input:3: a closing bracket without its opening one"),
        ("dog (NN dog)", r"input:1: 'dog' outside brackets"),
        ("(S (NN dog) dog)", r"input:1: the word 'dog' beside brackets"),
        ("(S\n (NP a b))", r"input:2: the bracket \(NP a b\) is neither"),
        ("(S (NP))", r"input:1: the bracket \(NP\) is neither"),
        ("()", r"input:1: the bracket \(\) is neither"),
        ("(X " * 500, r"more than 400 deep"),
    ],
)
def test_a_fault_is_named_by_file_and_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(parse_brackets(text.splitlines()))


@pytest.mark.parametrize(
    ("given_", "stripped"),
    [
        ("( (S (NP-SBJ-1 (PRP it)) (VP (VBZ works))))", "(TOP (S (NP (PRP it)) (VP (VBZ works))))"),
        ("(ROOT (NP=2 (NN a)))", "(TOP (NP (NN a)))"),
        ("(S (NP (NN a)))", "(TOP (S (NP (NN a))))"),
        (
            "(S1 (VP (VBD said) (SBAR (-NONE- 0) (S (-NONE- *T*-1))) (-LRB- -LRB-) (PRP$ its)))",
            "(TOP (VP (VBD said) (-LRB- -LRB-) (PRP$ its)))",
        ),
        ("(ROOT (PRN (-LRB- -LRB-) (NN x)))", "(TOP (PRN (-LRB- -LRB-) (NN x)))"),
        ("(NN dog)", "(TOP (NN dog))"),
    ],
)
def test_stripping(given_: str, stripped: str) -> None:
    assert write(strip_tree(read_one(given_)) or Tree("none", ())) == stripped


def test_a_tree_of_nothing_but_traces_is_none(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg"
    file.write_text("(ROOT (NP (-NONE- *)))\n(ROOT\n  (NN a))\n")
    assert list(map(write, read_stripped(file))) == ["(TOP (NN a))"]


def test_right_branching_is_one_bracket_after_another() -> None:
    assert write(right_branching(Leaf("X", w) for w in "abcd")) == "(TOP (S (X a) (VP (X b) (VP (X c) (X d)))))"
    assert write(right_branching([Leaf("X", "a")])) == "(TOP (S (X a)))"


# Sequences.


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


# The constraint.

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


# Words.


def grammar_trees(count: int, seed: int) -> Iterator[Tree]:
    """`with` belongs to the verb, `of` to the noun: what a bracket spans depends on a word."""
    draw = random.Random(seed)

    def noun_phrase(depth: int) -> Tree:
        middle = [Leaf("JJ", draw.choice(["red", "old"]))] if draw.random() < 0.4 else []
        noun = Tree("NP", (Leaf("DT", "the"), *middle, Leaf("NN", draw.choice(["dog", "cat", "king", "saw"]))))
        if depth and draw.random() < 0.5:
            return Tree("NP", (noun, Tree("PP", (Leaf("IN", "of"), noun_phrase(depth - 1)))))
        return noun

    for _ in range(count):
        verb: list[Tree | Leaf] = [Leaf("VBZ", draw.choice(["sees", "saw", "likes"])), noun_phrase(1)]
        if draw.random() < 0.5:
            verb.append(Tree("PP", (Leaf("IN", "with"), noun_phrase(0))))
        yield Tree("ROOT", (Tree("S", (noun_phrase(1), Tree("VP", tuple(verb)), Leaf(".", "."))),))


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


# Drawings.


def test_a_drawing_in_the_terminal() -> None:
    assert draw_text(read_one(SENTENCE)).splitlines() == [
        "TOP",
        "└─ S",
        "   ├─ NP",
        "   │  ├─ DT the",
        "   │  └─ NN dog",
        "   ├─ VP",
        "   │  ├─ VBZ runs",
        "   │  └─ ADVP",
        "   │     └─ RB away",
        "   └─ . .",
    ]


def test_a_picture_has_every_label_its_lines_and_no_overlap() -> None:
    tree = read_one("(TOP (S (NP (DT <b>) (NN R&D)) (VP (VBZ runs))))")
    picture = xml.etree.ElementTree.fromstring(draw_svg(tree))
    name = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in picture.iter(f"{name}text")]
    assert texts == ["TOP", "S", "NP", "DT", "<b>", "NN", "R&D", "VP", "VBZ", "runs"]
    assert len(list(picture.iter(f"{name}line"))) == len(texts) - 1
    words = [placed for placed in place(tree) if placed.kind == "word"]
    assert [p.text for p in sorted(words, key=lambda p: p.x)] == tree.words()
    assert len({p.row for p in words}) == 1


# The command line: a small grammar, learned.


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("trees")
    found = list(dict.fromkeys(grammar_trees(900, 2)))
    (directory / "train.mrg").write_text("\n".join(write_indented(tree) for tree in found[60:]))
    (directory / "valid.mrg").write_text("".join(f"{tree}\n" for tree in found[:60]))
    return directory


@pytest.fixture(scope="module")
def parser_run(cli: Callable[..., object], bank: Path, tiny_settings: list[str]) -> Path:
    changes = ["model.d_model=64", "model.d_ff=128", "model.num_heads=4", "model.decoder_layers=2"]
    changes += [
        "train.micro_batch_tokens=270",
        "train.warmup_steps=40",
        "train.peak_rate=0.01",
        "train.schedule=linear",
    ]
    changes += ["train.label_smoothing=0.0", "train.valid_steps=300", "search.beam=2", "search.max_extra_length=60"]
    ran = cli(
        *("parse", "train", "--trees", bank / "train.mrg", "--valid-trees", bank / "valid.mrg"),
        *(
            "--out",
            bank / "run",
            "--steps",
            "300",
            *tiny_settings,
            *(part for value in changes for part in ("--set", value)),
        ),
    )
    assert ran.code == 0, ran.stderr  # type: ignore[attr-defined]
    return bank / "run"


def test_a_grammar_is_learned(cli: Callable[..., object], parser_run: Path, bank: Path) -> None:
    ran = cli("parse", "evaluate", parser_run, "--trees", bank / "valid.mrg", "--compare", "--json")
    scores = json.loads(ran.stdout)  # type: ignore[attr-defined]
    assert scores["constrained"]["f1"] > 85
    assert (scores["constrained"]["errors"], scores["constrained"]["skipped"]) == (0, 0)
    assert scores["constrained"]["f1"] > scores["right-branching"]["f1"] + 30
    assert scores["constrained"]["f1_of_all"] >= scores["unconstrained"]["f1_of_all"] - 3


def test_parses_go_from_one_command_to_the_next(cli: Callable[..., object], parser_run: Path, bank: Path) -> None:
    gold = read_stripped(bank / "valid.mrg")
    text = "".join(" ".join(tree.words()) + "\n" for tree in gold)
    ran = cli("parse", "run", parser_run, stdin=text)
    lines = ran.stdout.splitlines()  # type: ignore[attr-defined]
    assert [read_one(line).words() for line in lines] == [tree.words() for tree in gold]
    (bank / "parsed.mrg").write_text(ran.stdout)  # type: ignore[attr-defined]
    scored = cli("parse", "evaluate", "--trees", bank / "valid.mrg", "--hypotheses", bank / "parsed.mrg", "--json")
    summary = EvalbSummary.of(score_lines(map(str, gold), lines))
    assert json.loads(scored.stdout)["hypotheses"]["f1"] == summary.f1  # type: ignore[attr-defined]


def test_a_sentence_like_none_before_still_gets_a_tree(cli: Callable[..., object], parser_run: Path) -> None:
    text = "Frabbling (wombats) zig-zag!\n\ndog\n" + "the dog " * 60 + "\n"
    ran = cli("parse", "run", parser_run, "--raw", "--format", "json", stdin=text)
    found = [json.loads(line) for line in ran.stdout.splitlines()]  # type: ignore[attr-defined]
    assert found.pop(1) == {"words": [], "symbols": [], "log_probability": 0.0, "tree": None}
    assert found[0]["words"] == ["Frabbling", "-LRB-", "wombats", "-RRB-", "zig-zag", "!"]
    for parse in found:
        assert read_one(parse["tree"]).words() == parse["words"]


# What a parser looked at.


def all_nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from all_nodes(child)


def check_steps(seen: ParseTrace) -> None:
    """Of every node the words and the steps are those of the tree, and every row of attention sums to one."""
    assert seen.tree is not None
    assert seen.parse.tree is not None
    words, symbols = seen.parse.words, seen.parse.symbols
    spans = {(node.label, words[node.first : node.last + 1]) for node in all_nodes(seen.tree)}
    below = [seen.parse.tree]
    while below:
        part = below.pop()
        assert (part.label, tuple(part.words())) in spans
        below += [child for child in part.children if isinstance(child, Tree)]
    steps = []
    for node in all_nodes(seen.tree):
        if node.opened is None or node.closed is None:
            assert node is seen.tree
        elif node.children:
            assert (symbols[node.opened], symbols[node.closed]) == (f"({node.label}", f"){node.label}")
            assert symbols[: node.opened].count(f"({node.label}") >= symbols[: node.opened].count(f"){node.label}")
            steps += [node.opened, node.closed]
        else:
            assert (symbols[node.opened], node.opened) == (f"({node.label})", node.closed)
            steps.append(node.opened)
    assert sorted(steps) == list(range(len(symbols)))
    for weights in seen.weights:
        assert weights.shape[1:] == (len(symbols) + 1, len(words) + 1)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:2]))


def test_every_bracket_knows_the_steps_that_wrote_it(cli: Callable[..., object], parser_run: Path) -> None:
    text = "the dog of the red king sees the cat with the old saw ."
    parser = Parser.load(parser_run)
    seen = trace_parse(parser, text.split())
    ran = cli("parse", "run", parser_run, stdin=f"{text}\n")
    assert f"{seen.parse.tree}\n" == ran.stdout  # type: ignore[attr-defined]
    assert seen.fault is None
    assert seen.log_probability == pytest.approx(seen.parse.log_probability, abs=1e-3)
    check_steps(seen)
    # The step that writes a symbol has been given what comes before it, and nothing later.
    model, tokenizer = parser.engine.models[0], parser.vocabulary.tokenizer
    assert isinstance(model, Transformer)
    source = [*tokenizer.encode(parser.vocabulary.source_text(text.split())), tokenizer.eos_id]
    assert seen.tree is not None
    inner = seen.tree.children[0].children[0]
    for step in (inner.opened, inner.closed):
        assert step is not None
        before = seen.parse.ids[: seen.parse.steps[step] + 1]
        weights = trace(model, source, [tokenizer.bos_id, *before]).weights[Site("cross", 1)][:, -1]
        alone = torch.cat((weights[:, :-1].unflatten(1, (-1, 2)).sum(dim=2), weights[:, -1:]), dim=1)  # mark and word
        torch.testing.assert_close(seen.weights[1][:, step], alone, atol=1e-5, rtol=0)
        assert seen.attended(step) == pytest.approx(alone.mean(dim=0).tolist(), abs=1e-5)
        assert seen.attended(step, layer=1, head=3) == pytest.approx(alone[3].tolist(), abs=1e-5)


def test_a_word_of_several_tokens_is_looked_at_as_all_of_them() -> None:
    bank = [tree for tree in map(strip_tree, grammar_trees(100, 1)) if tree is not None]
    tokenizer = learn_vocabulary(bank, "subwords", 500)
    torch.manual_seed(0)
    model = Transformer(ModelConfig(tokenizer.vocab_size, 1, 2, d_model=16, d_ff=16, num_heads=2))
    search = SearchConfig(beam=1, max_extra_length=12, max_source_length=30)
    parser = Parser(ReferenceEngine([model], tokenizer), Vocabulary(tokenizer), search)
    words = ["Frabbling", "dog", "(", "▁␛"]
    seen = trace_parse(parser, words)
    check_steps(seen)
    marked = parser.vocabulary.marked_words(seen.parse.words)
    lengths = [len(tokenizer.encode(word)) for word in marked]
    assert max(lengths) > 4
    source = tokenizer.encode(" ".join(marked))
    whole = trace(model, [*source, tokenizer.eos_id], [tokenizer.bos_id, *seen.parse.ids, tokenizer.eos_id])
    summed = [part.sum(dim=-1) for part in whole.weights[Site("cross", 0)].split([*lengths, 1], dim=-1)]
    steps = [*seen.parse.steps, len(seen.parse.ids)]
    torch.testing.assert_close(seen.weights[0], torch.stack(summed, dim=-1)[:, steps])
    free = trace_parse(parser, words, constrained=False)
    assert free.tree is None
    assert free.fault is not None
    assert free.weights[0].shape[1] == len(free.parse.symbols) + 1
    for wrong, message in (([], "a sentence of 0 tokens"), (["a"] * 31, "1 to 30 are parsed here")):
        with pytest.raises(UsageError, match=message):
            trace_parse(parser, wrong)
    with pytest.raises(UsageError, match="an ensemble of 2"):
        trace_parse(Parser(ReferenceEngine([model, model], tokenizer), parser.vocabulary, search), words)


def test_trees_are_drawn(cli: Callable[..., object], parser_run: Path, tmp_path: Path) -> None:
    command = ("parse", "run", parser_run, "--format", "drawing", "--drawings", tmp_path / "drawn")
    ran = cli(*command, stdin="the dog sees the cat .\n")
    assert ran.stdout.startswith("TOP\n└─ ")  # type: ignore[attr-defined]
    assert re.search(r">cat</text>", (tmp_path / "drawn" / "1.svg").read_text())


def test_an_ensemble_and_silver_trees(
    cli: Callable[..., object], parser_run: Path, bank: Path, tiny_settings: list[str], tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("the dog sees the cat .\n" * 3)
    silver = cli("parse", "run", parser_run, parser_run, "--input", tmp_path / "text")
    (tmp_path / "silver.mrg").write_text(silver.stdout)  # type: ignore[attr-defined]
    ran = cli(
        *("parse", "train", "--trees", bank / "train.mrg", "--valid-trees", bank / "valid.mrg", "--sentences", "50"),
        *("--silver", tmp_path / "silver.mrg", "--silver-weight", "0.5", "--out", tmp_path / "run", "--steps", "2"),
        *tiny_settings,
    )
    assert ran.code == 0, ran.stderr  # type: ignore[attr-defined]
    assert "53 pairs" in ran.stderr  # type: ignore[attr-defined]
    assert "BLEU of the tree's symbols (greedy; not bracket F1)" in ran.stderr  # type: ignore[attr-defined]
    assert f'echo "..." | dragoman parse run {tmp_path / "run"} --raw\n' in ran.stderr  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parse", "evaluate", "--trees", "x"], "give RUN to parse with, or --hypotheses"),
        (["parse", "train", "--trees", "no.mrg", "--valid-trees", "no.mrg", "--out", "o"], "no.mrg"),
        (["parse", "run", "nowhere"], "nowhere: no such run directory"),
    ],
)
def test_a_wrong_command_is_one_line(cli: Callable[..., object], arguments: list[str], message: str) -> None:
    ran = cli(*arguments)
    assert ran.code in (2, 3)  # type: ignore[attr-defined]
    assert message in ran.stderr  # type: ignore[attr-defined]
    assert ran.stderr.count("\n") == 1  # type: ignore[attr-defined]


def test_a_translator_is_not_a_parser(cli: Callable[..., object], tiny_run: Path) -> None:
    ran = cli("parse", "run", tiny_run, stdin="the dog\n")
    assert (ran.code, "not a parser's run" in ran.stderr) == (3, True)  # type: ignore[attr-defined]
