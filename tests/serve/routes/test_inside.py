"""/api/v1/inside answers what the Python API says."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from dragoman.inspection.inspector import Inspector
from dragoman.inspection.to_json import describe_lens
from dragoman.model.probe import Site
from dragoman.translation.translator import Translator
from support.serving import Running, running, service_of
from support.uint16 import unpack

SENTENCE = "the old dog sees the red house"
ASKED = {"text": SENTENCE, "source": "en", "target": "eo"}


@pytest.fixture(scope="module")
def inspector(served_run: Path) -> Inspector:
    return Inspector.load(served_run)


@pytest.fixture(scope="module")
def shown(served_run: Path) -> tuple[str, ...]:
    (translation,) = Translator.load(served_run).translate_stream([SENTENCE])
    return translation.candidates[0].tokens


def ask(served: Running, path: str, **question: Any) -> Any:
    answer = served.post(f"/api/v1/inside{path}", {**ASKED, **question})
    assert answer.status == 200, answer.body
    return answer.json


def test_a_sentence_from_inside(served: Running, inspector: Inspector, shown: tuple[str, ...]) -> None:
    answer = ask(served, "")
    seen = inspector.inspect(SENTENCE, shown)
    assert (answer["text"], answer["translation"], answer["tokens"]) == (SENTENCE, seen.translation, list(shown))
    assert (answer["source"], answer["fed"], answer["produced"]) == tuple(
        map(list, (seen.source, seen.fed, seen.produced))
    )
    assert answer["log_probabilities"] == pytest.approx(seen.log_probabilities, abs=1e-5)
    assert [word["text"] for word in answer["source_words"]] == SENTENCE.split()
    for head in answer["heads"]:
        expected = vars(seen.statistics[Site(head["kind"], head["layer"])][head["head"]])
        assert {name: head[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert len(answer["heads"]) == 6
    assert (answer["num_heads"], answer["d_k"], answer["sentences"]) == (2, 16, [SENTENCE])


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_attention_in_two_bytes_a_number(
    served: Running, inspector: Inspector, shown: tuple[str, ...], kind: Any
) -> None:
    for values, changes in (("weights", []), ("scores", []), ("weights", [f"{kind}.0.0:pin@1"])):
        question = {**ASKED, "translation": shown, "kind": kind, "layer": 0, "values": values, "changes": changes}
        answer = served.post("/api/v1/inside/attention", question)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
        header, found = unpack(answer.body)
        expected = getattr(inspector.inspect(SENTENCE, shown, changes), values)[Site(kind, 0)].numpy()
        assert header["kind"] == kind
        assert len(answer.body) < 2 * expected.size + 200
        assert numpy.abs(found - expected).max() <= (header["high"] - header["low"]) / 65535
        if values == "weights":
            assert numpy.abs(found.sum(-1) - 1).max() < 1e-3


def test_changes_effects_neighbours_and_positions(
    served: Running, inspector: Inspector, shown: tuple[str, ...]
) -> None:
    changes = ["cross.0.1:off", "decoder.*:unmask"]
    answer = ask(served, "/intervene", changes=changes)
    outcome = inspector.intervene(SENTENCE, changes, shown)
    assert (answer["translation"], answer["changes"]) == (outcome.translation, changes)
    assert answer["change"] == pytest.approx(outcome.change, abs=1e-5)
    assert answer["after"] == pytest.approx(outcome.after.log_probabilities, abs=1e-5)
    unmasked = ask(served, "/intervene", changes=["decoder.*:unmask"], retranslate=False)
    assert (unmasked["translation"], unmasked["tokens"]) == (None, None)
    effects = ask(served, "/effects", translation="la kato")
    assert [effect["change"] for effect in effects] == pytest.approx(
        [effect.change for effect in inspector.effects(SENTENCE, "la kato")], abs=1e-4
    )
    near = served.post("/api/v1/inside/neighbours", {**ASKED, "text": "dog", "count": 3})
    assert [one["token"] for one in near.json] == [one.token for one in inspector.neighbours("dog", 3)]
    table = served.post("/api/v1/inside/positions", {"source": "en", "target": "eo", "count": 9})
    header, rows = unpack(table.body)
    assert (header["shape"], header["kind"]) == ([9, 32], "sinusoidal")
    assert numpy.abs(rows - inspector.positions(9).numpy()).max() < 1e-4


def test_what_layers_would_have_said_and_what_contributes(
    served: Running, inspector: Inspector, shown: tuple[str, ...]
) -> None:
    for changes in ([], ["cross.0.1:off"]):
        lens = ask(served, "/lens", count=3, changes=changes)
        expected = describe_lens(inspector.lens(SENTENCE, shown, changes, 3))
        assert lens == json.loads(json.dumps(expected), parse_float=lambda text: pytest.approx(float(text), abs=1e-5))
        answer = served.post("/api/v1/inside/contributions", {**ASKED, "changes": changes})
        header, numbers = unpack(answer.body)
        found = inspector.contributions(SENTENCE, shown, changes)
        assert [part["name"] for part in header["parts"]] == ["total", "encoder.0", "decoder.0", "cross.0"]
        for part in header["parts"]:
            kind, _, layer = part["name"].partition(".")
            table = found.total if kind == "total" else found.sublayers[Site(kind, int(layer))]
            assert part["shape"] == list(table.shape)
            values, numbers = numbers[: table.numel()].reshape(table.shape), numbers[table.numel() :]
            assert numpy.abs(values - table.numpy()).max() <= 1 / 65535
        assert numbers.size == 0


def test_why_this_and_not_that(served: Running, inspector: Inspector, shown: tuple[str, ...]) -> None:
    for asked in ({}, {"instead": "kato", "position": 2}, {"instead": [shown[0]], "position": 1}):
        found = ask(served, "/contrast", **asked)
        expected = inspector.contrast(SENTENCE, asked.get("instead"), asked.get("position"), shown)  # type: ignore[arg-type]
        assert (found["this"], found["that"]) == (list(expected.this), list(expected.that))
        assert found["difference"] == pytest.approx(expected.difference, abs=1e-4)
        for side in ("source", "before"):
            for one, other in zip(found[side], getattr(expected, side), strict=True):
                assert one["token"] == other.token
                for name in ("gradient_input", "gradient_norm"):
                    assert one[name] == pytest.approx(getattr(other, name), rel=1e-3, abs=1e-4)
                assert one["erasure"] == (None if other.erasure is None else pytest.approx(other.erasure, abs=1e-4))


def test_one_sentence_of_several(served: Running) -> None:
    answer = ask(served, "", text="The dog. A cat sees.", sentence=1)
    assert (answer["sentences"], answer["text"]) == (["The dog.", "A cat sees."], "A cat sees.")


@pytest.mark.parametrize(
    ("path", "question", "status", "said"),
    [
        ("", {"sentence": 1}, 422, "the text has 1"),
        ("", {"text": "  "}, 400, "a sentence of 0 tokens"),
        ("", {"target": "fr"}, 404, "en-fr is not served"),
        ("", {"changes": ["cross.0.7:off"]}, 400, "head 7"),
        ("", {"translation": "x" * 5001}, 422, "more than 5000"),
        ("", {"translation": "\ud800"}, 400, "lone surrogate"),
        ("/attention", {"kind": "cross", "layer": 5}, 400, "no such layer"),
        ("/effects", {"kind": "cross", "layer": 5}, 400, "cross layer 5"),
        ("/neighbours", {"text": " "}, 400, "give a word"),
        ("/lens", {"count": 11}, 422, "count"),
        ("/contrast", {"position": 99}, 400, "position 99; the translation has 0 to"),
        ("/contrast", {"instead": "x" * 5001}, 422, "more than 5000"),
        ("/contrast", {"instead": ["nothere"]}, 400, "not in the vocabulary"),
    ],
)
def test_what_cannot_be_is_refused(served: Running, path: str, question: Any, status: int, said: str) -> None:
    answer = served.post(f"/api/v1/inside{path}", {**ASKED, **question})
    assert (answer.status, said in answer.json["error"]) == (status, True), answer.json


def test_a_key_is_asked_for(served_run: Path) -> None:
    with running(service_of(served_run, api_keys=("0123456789abcdef",))) as server:
        assert server.post("/api/v1/inside", ASKED).status == 401
        assert server.ask("POST", "/api/v1/inside", ASKED, {"Authorization": "Bearer 0123456789abcdef"}).status == 200
