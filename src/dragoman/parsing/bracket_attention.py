"""Traces a parser: the tree of a sentence, the decoding steps that wrote each bracket, and the attention of each step.

parser = Parser.load("runs/parser")
seen = trace_parse(parser, "the old man sat down".split())
noun = seen.tree.children[0].children[0]           # a node of the tree, below its root
seen.attended(noun.opened)                         # the attention of its opening bracket, a weight for each word
seen.attended(noun.closed, layer=0, head=3)        # that of its closing bracket, of one head
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from dragoman.errors import UsageError
from dragoman.inspection.attention_trace import trace
from dragoman.model.probe import Site
from dragoman.model.transformer import Transformer
from dragoman.parsing.linearise import fault, read_symbol
from dragoman.parsing.parser import Parse, Parser
from dragoman.parsing.trees import TOP


@dataclass(frozen=True)
class Node:
    """A bracket, or the tag of a word, and the steps that wrote it: rows of the attention."""

    label: str
    opened: int | None  # the step of the opening bracket; None: the root, which is the same in every tree
    closed: int | None  # the step of the closing bracket; for a tag, the same step as `opened`
    first: int  # the first word below it
    last: int  # the last word below it
    children: tuple["Node", ...]  # empty for a tag, which stands over its one word


@dataclass(frozen=True)
class ParseTrace:
    """The record of one teacher-forced pass over the parser's output. Step t wrote symbols[t]; the last step wrote the
    end symbol. Each step attends to the words and to the end of the sentence, with weights that sum to one. The place
    mark after a tag has no step of its own; its log-probability is counted with the symbol after it.
    """

    parse: Parse
    tree: Node | None
    fault: str | None  # why there is no tree
    log_probabilities: tuple[float, ...]  # one for each step
    weights: tuple[Tensor, ...]  # one for each layer: (heads, steps, words + 1)

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)

    def attended(self, step: int, layer: int = -1, head: int | None = None) -> tuple[float, ...]:
        """The attention of a step to each word: of one head, or the mean of all heads of the layer."""
        row = self.weights[layer][:, step]
        return tuple((row.mean(dim=0) if head is None else row[head]).tolist())


def trace_parse(parser: Parser, words: Sequence[str], constrained: bool = True) -> ParseTrace:
    """Parses a sentence and records the attention of each step."""
    if len(parser.engine.models) != 1:
        raise UsageError(f"an ensemble of {len(parser.engine.models)} parsers; only a single run can be looked into")
    model, tokenizer = parser.engine.models[0], parser.vocabulary.tokenizer
    if not isinstance(model, Transformer):
        raise UsageError(f"model.architecture = {model.config.architecture}; only a transformer can be looked into")
    source = tokenizer.encode(parser.vocabulary.source_text(words))
    limit, length = parser.search.max_source_length, len(source) - len(words)  # marks do not count
    if not 1 <= length <= limit:
        raise UsageError(
            f"a sentence of {length} tokens; 1 to {limit} are parsed here (search.max_source_length): give one "
            f"sentence at a time"
        )
    (parse,) = parser.parse([words], constrained)
    traced = trace(model, [*source, tokenizer.eos_id], [tokenizer.bos_id, *parse.ids, tokenizer.eos_id])
    owners = torch.tensor([*_owners(parser, parse.words, len(source)), len(parse.words)])
    steps = [*parse.steps, len(parse.ids)]  # the end symbol's too
    return ParseTrace(
        parse,
        None if parse.tree is None else _node(parse),
        fault(parse.symbols, parse.words),
        tuple(sum(traced.log_probabilities[before + 1 : step + 1]) for before, step in pairwise([-1, *steps])),
        tuple(
            _by_word(traced.weights[Site("cross", layer)][:, steps], owners, len(parse.words) + 1)
            for layer in range(len(model.decoder))
        ),
    )


def _owners(parser: Parser, words: Sequence[str], tokens: int) -> list[int]:
    """For each source token, the number of the word that it belongs to; a place mark belongs to its word."""
    lengths = map(len, parser.vocabulary.tokenizer.encode_batch(parser.vocabulary.marked_words(words)))
    owners = [number for number, length in enumerate(lengths) for _ in range(length)]
    assert len(owners) == tokens, (words, owners)
    return owners


def _by_word(weights: Tensor, owners: Tensor, count: int) -> Tensor:
    """Attention to words: the sum of the attention to their tokens."""
    found = torch.zeros(*weights.shape[:2], count, dtype=weights.dtype)
    return found.index_add_(2, owners, weights)


def _node(parse: Parse) -> Node:
    """The tree with the steps that wrote each node, from symbols that are known to be a well-formed tree."""
    below: list[list[Node]] = [[]]
    begun: list[tuple[int, int]] = []  # of each open bracket: its step, its first word
    placed = 0
    for step, symbol in enumerate(parse.symbols):
        kind, label = read_symbol(symbol) or ("word", symbol)
        match kind:
            case "open":
                begun.append((step, placed))
                below.append([])
            case "close":
                (opened, first), children = begun.pop(), below.pop()
                below[-1].append(Node(label, opened, step, first, placed - 1, tuple(children)))
            case "word":
                below[-1].append(Node(label, step, step, placed, placed, ()))
                placed += 1
    return Node(TOP, None, None, 0, placed - 1, tuple(below[0]))
