"""/api/v1/learn answers what the Python API says, and BLEU is sacreBLEU's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from sacrebleu import sentence_bleu

from dragoman.inspection.inspector import Inspector
from dragoman.inspection.sublayer_trace import NormOrder, SubLayerTrace, head_vectors, trace_sublayers
from dragoman.model.probe import Site
from support.serving import Running

SENTENCE = "the old dog sees the red house"


@pytest.fixture(scope="module")
def inspector(served_run: Path) -> Inspector:
    return Inspector.load(served_run)


@pytest.fixture(scope="module")
def asked(inspector: Inspector) -> dict[str, Any]:
    tokens = inspector.inspect(SENTENCE).tokens
    return {"text": SENTENCE, "source": "en", "target": "eo", "translation": tokens}


@pytest.fixture(scope="module")
def traced(inspector: Inspector, asked: dict[str, Any]) -> SubLayerTrace:
    return trace_sublayers(inspector.model, *ids_of(inspector, asked))


def ids_of(inspector: Inspector, asked: dict[str, Any]) -> tuple[list[int], list[int]]:
    tokenizer, explainer = inspector.tokenizer, inspector.explainer
    target = [*tokenizer.start_ids, *explainer.token_ids(asked["translation"]), tokenizer.eos_id]
    return tokenizer.encoder_ids(explainer.source_ids(SENTENCE)), target


def ask(served: Running, path: str, question: Any) -> Any:
    answer = served.post(f"/api/v1/learn/{path}", question)
    assert answer.status == 200, answer.body
    return answer.json


def near(values: torch.Tensor) -> Any:
    return pytest.approx(values.tolist(), rel=1e-4, abs=1e-5)


def test_the_stream_of_a_token(
    served: Running, inspector: Inspector, asked: dict[str, Any], traced: SubLayerTrace
) -> None:
    for stack, row in ((traced.encoder, 2), (traced.decoder, 1)):
        name = stack.sublayers[0].stack
        answer = ask(served, "stream", {**asked, "stack": name, "row": row})
        assert answer["order"] == answer["own_order"] == traced.order
        assert answer["embedded"] == near(stack.embedded[row])
        assert answer["output"] == near(stack.output[row])
        assert [one["name"] for one in answer["sublayers"]] == [one.name for one in stack.sublayers]
        for one, expected in zip(answer["sublayers"], stack.sublayers, strict=True):
            assert one["received"] == near(expected.received[row])
            assert one["written"] == near(expected.written[row])
            assert one["stream"] == near(expected.stream[row])
            assert (one["hidden"] is None) == (expected.hidden is None)
        assert answer["log_probability"] == pytest.approx(sum(traced.log_probabilities), abs=1e-4)
    other: NormOrder = "post" if traced.order == "pre" else "pre"
    rearranged = trace_sublayers(inspector.model, *ids_of(inspector, asked), other)
    answer = ask(served, "stream", {**asked, "order": other})
    assert (answer["order"], answer["own_order"]) == (other, traced.order)
    assert answer["log_probability"] == pytest.approx(sum(rearranged.log_probabilities), abs=1e-4)


def test_the_vectors_of_a_head(
    served: Running, inspector: Inspector, asked: dict[str, Any], traced: SubLayerTrace
) -> None:
    answer = ask(served, "head", {**asked, "kind": "decoder", "layer": 0, "head": 1, "row": 2})
    expected = head_vectors(inspector.model, traced, Site("decoder", 0), 1, 2)
    assert answer["query"] == near(expected.query)
    assert answer["scores"][:3] == near(expected.scores[:3])
    assert set(answer["scores"][3:]) == {None}
    assert answer["weights"] == near(expected.weights)
    assert answer["context"] == near(expected.context)
    assert answer["scale"] == pytest.approx(expected.scale)
    for found, wanted in ((answer["keys"], expected.keys), (answer["values"], expected.values)):
        assert torch.allclose(torch.tensor(found), wanted, rtol=1e-4, atol=1e-5)


def test_the_machine(served: Running, inspector: Inspector, asked: dict[str, Any], traced: SubLayerTrace) -> None:
    answer = ask(served, "machine", {**asked, "numbers": 8, "candidates": 3})
    for name, stack in (("encoder", traced.encoder), ("decoder", traced.decoder)):
        assert torch.allclose(torch.tensor(answer[name]["embedded"]), stack.embedded[:, :8], rtol=1e-4, atol=1e-5)
        for stage, expected in zip(answer[name]["stages"], stack.sublayers, strict=True):
            assert torch.allclose(torch.tensor(stage["streams"]), expected.stream[:, :8], rtol=1e-4, atol=1e-5)
            if expected.weights is not None:
                weights = torch.tensor(stage["weights"])
                assert torch.allclose(weights, expected.weights.mean(dim=0), rtol=1e-4, atol=1e-5)
    for following, expected_row in zip(answer["next"], traced.log_probs.exp(), strict=True):
        top = expected_row.topk(3)
        assert [one["token"] for one in following] == list(inspector.explainer.pieces(top.indices.tolist()))
        assert [one["probability"] for one in following] == near(top.values)


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ("the cat sat on the mat", "the cat sat on a mat"),
        ("The cat.", "The cat sat down, didn't it?"),
        ("the the the the", "the cat"),
        ("one", "two"),
        ("", "two"),
        ("It cost $3,000.50 (about 2%) -- “really”", "It cost $3,000.50, about 2 %: “really”"),
        ("a b c d e f g", "a b c d e f g"),
    ],
)
def test_bleu_is_sacrebleus(served: Running, hypothesis: str, reference: str) -> None:
    answer = ask(served, "bleu", {"hypothesis": hypothesis, "reference": reference})
    expected = sentence_bleu(hypothesis, [reference], use_effective_order=True)
    assert answer["score"] == expected.score
    assert (answer["counts"], answer["totals"]) == (expected.counts, expected.totals)
    assert (answer["precisions"], answer["brevity_penalty"]) == (expected.precisions, expected.bp)
    assert (len(answer["hypothesis_tokens"]), len(answer["reference_tokens"])) == (expected.sys_len, expected.ref_len)
    assert "tok:13a" in answer["signature"]


def test_bad_questions(served: Running, asked: dict[str, Any]) -> None:
    for path, changes, said in (
        ("stream", {"row": 99}, "rows 0 to"),
        ("stream", {"order": "middle"}, "order"),
        ("head", {"kind": "cross", "layer": 7}, "no such layer"),
        ("head", {"head": 9}, "heads 0 to 1"),
        ("machine", {"numbers": 0}, "numbers"),
        ("machine", {"translation": ["nowhere in it"]}, "vocabulary"),
        ("machine", {"target": "de"}, "de"),
    ):
        answer = served.post(f"/api/v1/learn/{path}", {**asked, **changes})
        assert (400 <= answer.status < 500, said in answer.json["error"]) == (True, True), (path, answer.body)
    long = served.post("/api/v1/learn/bleu", {"hypothesis": "a" * 2001, "reference": "b"})
    assert long.status == 422
