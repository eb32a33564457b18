"""/api/v1/parse: a sentence, its tree, and what each step of writing it looked at."""

import base64
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import Field

from dragoman.errors import UsageError
from dragoman.serve.answers import ERRORS, key_check, while_connected
from dragoman.serve.routes.translation_models import ApiModel, QuestionText
from dragoman.serve.security import Keys
from dragoman.serve.service import Service
from dragoman.serve.texts import check_text

if TYPE_CHECKING:
    from dragoman.parsing.bracket_attention import Node, ParseTrace
    from dragoman.parsing.parser import Parser

KEPT = 4  # parses, for a client that asks for one layer after the other
DEEPEST = 200  # nested brackets; pydantic writes no more than 255


class ParseQuestion(ApiModel):
    text: QuestionText
    constrained: Annotated[bool, Field(description="Whether the search can only end in a tree over the words")] = True
    layer: Annotated[int | None, Field(ge=0, description="Of the attention, from 0; null: the last")] = None


class NodeAnswer(ApiModel):
    label: str
    opened: Annotated[int | None, Field(description="The step that wrote it; null: the root, which none did")]
    closed: Annotated[int | None, Field(description="The step that closed it; of a word's tag the same as opened")]
    first: Annotated[int, Field(description="The first of its words")]
    last: Annotated[int, Field(description="The last of them")]
    children: Annotated[list["NodeAnswer"], Field(description="None: the tag of one word")]


class ParseAnswer(ApiModel):
    words: list[str]
    symbols: Annotated[list[str], Field(description="What was written, a symbol a step")]
    constrained: bool
    tree: Annotated[NodeAnswer | None, Field(description="Null: the symbols are no tree; `fault` says why")]
    brackets: Annotated[str | None, Field(description="The same in Penn brackets")]
    fault: str | None
    log_probability: float
    log_probabilities: Annotated[list[float], Field(description="A step; the end symbol's last")]
    layers: int
    heads: int
    layer: int
    attention: Annotated[
        str,
        Field(
            description="Base64: a uint32 length, a JSON header, then uint16 numbers between its low and high, "
            "(heads, steps, words + 1). The last column is the end of the sentence; a row sums to one"
        ),
    ]


def make_router(service: Service, keys: Keys) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["Parsing"], responses=ERRORS, dependencies=[Depends(key_check(keys))])
    kept: OrderedDict[tuple[str, bool], ParseTrace] = OrderedDict()  # touched in one thread only

    def seen_by(parser: "Parser", question: ParseQuestion) -> "ParseTrace":
        from dragoman.parsing.bracket_attention import trace_parse
        from dragoman.parsing.words import split_words

        key = (question.text, question.constrained)
        if key not in kept:
            kept[key] = trace_parse(parser, split_words(question.text), question.constrained)
        kept.move_to_end(key)
        while len(kept) > KEPT:
            kept.popitem(last=False)
        return kept[key]

    @router.post("/parse")
    async def parse(question: ParseQuestion, request: Request) -> ParseAnswer:
        """One sentence's tree, as `dragoman parse run --raw` makes it, and the attention of one layer."""
        check_text(question.text)
        if len(question.text) > service.settings.character_limit:
            limit = service.settings.character_limit
            raise HTTPException(422, f"Invalid request: text: {len(question.text)}; at most {limit}")
        if service.parser_run is None:
            made = "make one with `dragoman parse train`, then `dragoman serve RUN`"
            raise HTTPException(404, f"no parser is served here; {made}")
        if not service.models.has_parser:
            raise HTTPException(
                404, f"{service.parser_run.name} has no model yet: it has one after its first validation"
            )
        return await while_connected(
            request, service.parse(lambda parser: _answer(seen_by(parser, question), question))
        )

    return router


def _answer(seen: "ParseTrace", question: ParseQuestion) -> ParseAnswer:
    from dragoman.inspection.uint16_codec import pack

    layers = len(seen.weights)
    layer = layers - 1 if question.layer is None else question.layer
    if layer >= layers:
        raise UsageError(f"Invalid request: layer: {layer}; the run has layers 0 to {layers - 1}")
    weights = seen.weights[layer]
    return ParseAnswer(
        words=list(seen.parse.words),
        symbols=list(seen.parse.symbols),
        constrained=question.constrained,
        tree=None if seen.tree is None else _tree(seen.tree),
        brackets=None if seen.parse.tree is None else str(seen.parse.tree),
        fault=seen.fault,
        log_probability=seen.log_probability,
        log_probabilities=list(seen.log_probabilities),
        layers=layers,
        heads=len(weights),
        layer=layer,
        attention=base64.b64encode(pack(weights, 0.0, 1.0)).decode(),
    )


def _tree(node: "Node", depth: int = 0) -> NodeAnswer:
    if depth > DEEPEST:
        raise UsageError(f"a tree of more than {DEEPEST} brackets in each other; this service answers with none deeper")
    return NodeAnswer(
        label=node.label,
        opened=node.opened,
        closed=node.closed,
        first=node.first,
        last=node.last,
        children=[_tree(child, depth + 1) for child in node.children],
    )
