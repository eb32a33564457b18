"""Each bracket of a parse knows the steps that wrote it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from dragoman.config import ModelConfig, SearchConfig
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.errors import UsageError
from dragoman.inspection.attention_trace import trace
from dragoman.model.probe import Site
from dragoman.model.transformer import Transformer
from dragoman.parsing.bracket_attention import Node, ParseTrace, trace_parse
from dragoman.parsing.parser import Parser
from dragoman.parsing.trees import Tree, strip_tree
from dragoman.parsing.vocabulary import Vocabulary, learn_vocabulary
from support.trees import grammar_trees


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
