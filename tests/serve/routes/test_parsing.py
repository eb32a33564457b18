"""/api/v1/parse answers what the Python API says; where only a parser is served, nothing is translated."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from dragoman.parsing.bracket_attention import Node, trace_parse
from dragoman.parsing.parser import Parser
from dragoman.serve.app import served_in_words
from dragoman.serve.pairs import ServedPair, is_parser
from dragoman.serve.routes.parsing import DEEPEST, _tree
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from support.serving import Running, running
from support.uint16 import unpack

SENTENCE = "The king sees the old dog."
WORDS = ["The", "king", "sees", "the", "old", "dog", "."]


def nested(node: Node) -> dict[str, Any]:
    return {**vars(node), "children": [nested(child) for child in node.children]}


def test_a_tree_and_its_attention(served_parser: Running, tiny_parser: Path, cli: Callable[..., Any]) -> None:
    answer = served_parser.post("/api/v1/parse", {"text": SENTENCE}).json
    seen = trace_parse(Parser.load(tiny_parser), WORDS)
    assert seen.tree is not None
    assert (answer["words"], answer["symbols"]) == (WORDS, list(seen.parse.symbols))
    assert (answer["tree"], answer["fault"], answer["constrained"]) == (nested(seen.tree), None, True)
    assert f"{answer['brackets']}\n" == cli("parse", "run", tiny_parser, "--raw", stdin=SENTENCE).stdout
    assert answer["log_probability"] == pytest.approx(seen.log_probability, abs=1e-4)
    assert answer["log_probabilities"] == pytest.approx(seen.log_probabilities, abs=1e-4)
    assert (answer["layers"], answer["heads"], answer["layer"]) == (2, 2, 1)
    first = served_parser.post("/api/v1/parse", {"text": SENTENCE, "layer": 0}).json
    for given, layer in ((answer, 1), (first, 0)):
        header, weights = unpack(base64.b64decode(given["attention"]))
        assert header["shape"] == [2, len(answer["symbols"]) + 1, len(WORDS) + 1]
        assert numpy.abs(weights - seen.weights[layer].numpy()).max() < 1e-4
        assert numpy.abs(weights.sum(-1) - 1).max() < 1e-3


def test_without_the_constraint(served_parser: Running, tiny_parser: Path) -> None:
    answer = served_parser.post("/api/v1/parse", {"text": SENTENCE, "constrained": False}).json
    seen = trace_parse(Parser.load(tiny_parser), WORDS, constrained=False)
    assert answer["symbols"] == list(seen.parse.symbols)
    assert (answer["tree"] is None, answer["fault"]) == (seen.tree is None, seen.fault)


@pytest.mark.parametrize(
    ("question", "status", "said"),
    [
        ({"text": ""}, 422, "text"),
        ({}, 422, "text"),
        ({"text": " \n"}, 400, "a sentence of 0 tokens"),
        ({"text": "a " * 2501}, 422, "5002; at most 5000"),
        ({"text": "a " * 300}, 400, "a sentence of 300 tokens; 1 to 256 are parsed here"),
        ({"text": "\ud800"}, 422, "unicode"),
        ({"text": "a", "layer": 2}, 400, "the run has layers 0 to 1"),
        ({"text": "a", "layer": -1}, 422, "layer"),
        ({"text": "a", "language": "en"}, 422, "language"),
    ],
)
def test_what_cannot_be_is_refused(served_parser: Running, question: Any, status: int, said: str) -> None:
    answer = served_parser.post("/api/v1/parse", question)
    assert (answer.status, said in answer.json["error"]) == (status, True), answer.json


def test_a_tree_too_deep_to_be_written_is_told() -> None:
    node = Node("NN", 0, 0, 0, 0, ())
    for _ in range(DEEPEST):
        node = Node("X", 0, 0, 0, 0, (node,))
    assert _tree(node).model_dump_json()
    with pytest.raises(Exception, match="more than 200 brackets in each other"):
        _tree(Node("X", 0, 0, 0, 0, (node,)))


def test_where_only_a_parser_is_served_nothing_is_translated(served_parser: Running) -> None:
    about = served_parser.ask("GET", "/api/v1/service").json
    assert (about["pairs"], about["waiting"], about["parser"]) == ([], [], {"name": "parser", "has_model": True})
    asked = {"text": "the dog", "source": "en", "target": "de"}
    said = "nothing is translated here: the run parser is a parser; ask it with POST /api/v1/parse"
    for path in ("translate", "translate/stream", "explain", "alternatives", "beam", "inside", "inside/effects"):
        answer = served_parser.post(f"/api/v1/{path}", asked)
        assert (answer.status, answer.json["error"]) == (404, f"en-de is not served; {said}")
    for source in ("en", "auto"):
        answer = served_parser.post("/translate", {"q": "the dog", "source": source, "target": "de"})
        assert (answer.status, answer.json["error"]) == (400, said)
    assert served_parser.ask("GET", "/frontend/settings").json == {"error": said}
    assert served_parser.ask("GET", "/languages").json == []
    assert served_parser.post("/detect", {"q": "the dog"}).status == 200
    (run,) = served_parser.ask("GET", "/api/v1/runs").json
    assert (run["name"], run["source"], run["target"], run["serves"]) == ("parser", "words", "trees", True)
    assert served_in_words(served_parser.service).startswith("a parser (")


def test_beside_a_translator(served: Running, served_run: Path, tiny_parser: Path, tmp_path: Path) -> None:
    assert (is_parser(tiny_parser), is_parser(served_run)) == (True, False)
    assert "no parser is served here" in served.post("/api/v1/parse", {"text": "a"}).json["error"]
    settings = Settings(port=0, rate_limit=0, api_keys=("0123456789abcdef",))
    for name in ("config.json", "tokenizer.model"):
        (tmp_path / name).write_bytes((tiny_parser / name).read_bytes())
    with running(Service([ServedPair("en", "eo", served_run)], settings, parsers=[tmp_path])) as server:
        about = server.ask("GET", "/api/v1/service").json
        assert (len(about["pairs"]), about["parser"]["has_model"]) == (1, False)
        assert server.post("/api/v1/parse", {"text": "a"}).status == 401
        key = {"Authorization": "Bearer 0123456789abcdef"}
        answer = server.ask("POST", "/api/v1/parse", {"text": "a"}, key)
        assert (answer.status, "has no model yet" in answer.json["error"]) == (404, True)
        asked = {"text": "the dog", "source": "en", "target": "eo"}
        assert server.ask("POST", "/api/v1/translate", asked, key).status == 200
