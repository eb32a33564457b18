"""Our own API says what the Python API says, and keeps to its own description of itself."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from dragoman.inspection.explain import Explainer
from dragoman.translation.translator import Translator
from support.serving import Running, running, service_of

SENTENCE = "the old dog sees the red house"
ASKED = {"text": SENTENCE, "source": "en", "target": "eo"}
PATIENCE = 600  # seconds: schemathesis would take a busy machine for a service that does not answer


def same(answer: Any, value: Any) -> bool:
    """Numbers to rounding: the service may compute with other threads."""
    return alike(answer, json.loads(json.dumps(dataclasses.asdict(value))))


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-5)
    return bool(one == other)


def test_translations_with_tokens_and_scores(served: Running, served_run: Path) -> None:
    text = f"{SENTENCE}.\nA cat."
    answer = served.post("/api/v1/translate", {**ASKED, "text": text, "n_best": 2}).json
    lines = [f"{SENTENCE}.", "A cat."]
    expected = list(Translator.load(served_run).translate_stream(lines, n_best=2))
    assert answer["text"] == "\n".join(translation.text for translation in expected)
    assert [text[s["start"] : s["end"]] for s in answer["segments"]] == lines
    for segment, translation in zip(answer["segments"], expected, strict=True):
        assert segment["source"] == translation.source
        for shown, candidate in zip(segment["candidates"], translation.candidates, strict=True):
            assert (shown["text"], tuple(shown["tokens"])) == (candidate.text, candidate.tokens)
            assert shown["score"] == pytest.approx(candidate.score, abs=1e-4)


def test_search_settings_are_the_requests_own(served: Running, served_run: Path) -> None:
    answer = served.post("/api/v1/translate", {**ASKED, "beam": 1, "alpha": 0.0}).json
    (greedy,) = Translator.load(served_run, beam=1, alpha=0.0).translate_stream([SENTENCE])
    assert answer["segments"][0]["candidates"][0]["score"] == pytest.approx(greedy.candidates[0].score, abs=1e-4)


def test_a_stream_brings_sentence_by_sentence(served: Running) -> None:
    text = "A dog. A cat. The river."
    streamed = served.post("/api/v1/translate/stream", {**ASKED, "text": text, "source": "auto"})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n") for event in streamed.body.decode().strip().split("\n\n")]
    assert [name for name, _ in events] == ["event: segment"] * 3 + ["event: done"]
    segments = [json.loads(data.removeprefix("data: ")) for _, data in events]
    whole = served.post("/api/v1/translate", {**ASKED, "text": text}).json
    assert segments[:3] == whole["segments"]
    assert segments[3]["source"] == "en"
    assert segments[3]["detected"]["language"] in ("en", "eo")


def test_a_stream_of_more_sentences_than_may_wait(served_run: Path) -> None:
    with running(service_of(served_run, queue_limit=8)) as server:
        text = "\n".join(f"a dog {number}" for number in range(30))
        streamed = server.post("/api/v1/translate/stream", {**ASKED, "text": text}).body.decode()
        assert streamed.count("event: segment") == 30
        assert streamed.count("event: done") == 1


def test_explanations_are_those_of_the_python_api(served: Running, served_run: Path) -> None:
    explainer = Explainer.load(served_run)
    assert same(
        served.post("/api/v1/explain", {**ASKED, "alternatives": 3}).json, explainer.explain(SENTENCE, alternatives=3)
    )
    plain = explainer.explain(SENTENCE)
    given = {**ASKED, "translation": plain.tokens[:-1]}
    assert same(served.post("/api/v1/explain", given).json, explainer.explain(SENTENCE, translation=plain.tokens[:-1]))
    forced = {**ASKED, "prefix": plain.tokens[1:2], "beam": 2}
    assert same(
        served.post("/api/v1/explain", forced).json, explainer.explain(SENTENCE, prefix=plain.tokens[1:2], beam=2)
    )
    words = served.post("/api/v1/alternatives", {**ASKED, "prefix": plain.tokens[:1], "alternatives": 4}).json
    assert words == [
        json.loads(json.dumps(dataclasses.asdict(w))) for w in explainer.alternatives(SENTENCE, plain.tokens[:1], 4)
    ]
    beam = served.post("/api/v1/beam", {**ASKED, "beam": 3, "alpha": 1.0}).json
    assert same(beam, explainer.beam(SENTENCE, beam=3, alpha=1.0))


def test_a_beginning_may_be_text_as_a_person_types_it(served: Running, served_run: Path) -> None:
    explainer = Explainer.load(served_run)
    plain = explainer.explain(SENTENCE)
    typed = plain.target.rsplit(" ", 1)[0]
    tokens = explainer.tokens_of(typed)
    begun = served.post("/api/v1/explain", {**ASKED, "prefix_text": typed}).json
    assert same(begun, explainer.explain(SENTENCE, prefix=tokens))
    assert begun["target"].startswith(typed)
    words = served.post("/api/v1/alternatives", {**ASKED, "prefix_text": typed}).json
    assert [word["text"] for word in words] == [word.text for word in explainer.alternatives(SENTENCE, tokens)]
    assert same(
        served.post("/api/v1/beam", {**ASKED, "prefix_text": typed}).json, explainer.beam(SENTENCE, prefix=tokens)
    )
    said = "la rugan hundo"
    given = served.post("/api/v1/explain", {**ASKED, "translation_text": said}).json
    assert same(given, explainer.explain(SENTENCE, translation=explainer.tokens_of(said)))
    assert given["target"] == said
    long = served.post("/api/v1/explain", {**ASKED, "translation_text": "x y " * 1000})
    assert (long.status, "shorten it" in long.json["error"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "change", "status", "error"),
    [
        ("translate", {"source": "zz"}, 404, "zz-eo is not served; served: en-eo"),
        ("translate", {"text": ""}, 422, "Invalid request: text: String should have at least 1 character"),
        ("translate", {"text": "x" * 5001}, 422, "Invalid request: text: 5001; at most 5000"),
        ("translate", {"beam": 17}, 422, "Invalid request: beam: 17; at most 16"),
        ("translate", {"n_best": 10}, 422, "Invalid request: n_best: 9; at most 8"),
        ("translate", {"txet": "x"}, 422, "Invalid request: txet: Extra inputs are not permitted"),
        ("translate", {"text": "\ud800"}, 422, "Invalid request: text: "),
        ("explain", {"text": "  "}, 400, "a sentence of 0 tokens"),
        ("explain", {"translation": ["nope!"]}, 400, "token 'nope!' is not in the vocabulary"),
        ("alternatives", {"alternatives": 9}, 422, "Invalid request: alternatives: 9; at most 8"),
        ("beam", {"alpha": -1}, 422, "Invalid request: alpha: Input should be greater than or equal to 0"),
    ],
)
def test_errors_are_one_sentence(served: Running, path: str, change: dict[str, Any], status: int, error: str) -> None:
    answer = served.post(f"/api/v1/{path}", {**ASKED, **change})
    assert answer.status == status
    assert set(answer.json) == {"error"}
    assert answer.json["error"].startswith(error)


def test_what_is_served(served: Running) -> None:
    about = served.ask("GET", "/api/v1/service").json
    assert about["pairs"][0]["source_name"] == "English"
    assert about["pairs"][0]["beam"] == 4
    assert about["key_required"] is False


def test_the_description_loads_nothing_from_elsewhere(served: Running) -> None:
    assert served.ask("GET", "/docs").status == 404
    assert served.ask("GET", "/redoc").status == 404
    assert served.ask("GET", "/api/v1/openapi.json").json["info"]["title"] == "Dragoman"


OPERATIONS = [
    "POST /translate", "POST /suggest", "POST /detect", "GET /languages", "POST /translate_file",
    "GET /download_file/{filename}",
    "GET /health", "GET /frontend/settings", "GET /api/v1/service", "POST /api/v1/translate",
    "POST /api/v1/translate/stream", "POST /api/v1/explain", "POST /api/v1/alternatives", "POST /api/v1/beam",
    "POST /api/v1/corrections", "POST /api/v1/parse",
    "POST /api/v1/inside", "POST /api/v1/inside/attention", "POST /api/v1/inside/intervene",
    "POST /api/v1/inside/effects", "POST /api/v1/inside/neighbours", "POST /api/v1/inside/positions",
    "POST /api/v1/inside/page", "GET /api/v1/runs", "GET /api/v1/runs/{name}/events",
    "POST /api/v1/runs/{name}/pinned", "GET /api/v1/runs/{name}/sentences",
    "POST /api/v1/runs/{name}/replay", "GET /api/v1/compare/{a}/{b}", "POST /api/v1/compare", "GET /api/v1/results",
    "GET /api/v1/results/{name}", "POST /api/v1/inside/contrast", "POST /api/v1/inside/contributions",
    "POST /api/v1/inside/lens", "POST /api/v1/learn/bleu", "POST /api/v1/learn/head", "POST /api/v1/learn/machine",
    "POST /api/v1/learn/stream",
]  # fmt: skip
# Of other systems, whose clients are the description: tests/serve/routes/test_deepl.py and test_opuscat.py.
FOREIGN = [
    "POST /v2/translate", "GET /v2/languages", "GET /v2/usage", "POST /v2/document", "POST /v2/document/{document_id}",
    "POST /v2/document/{document_id}/result", "GET /v2/glossary-language-pairs", "GET /v2/glossaries",
    "POST /v2/glossaries", "GET /v2/glossaries/{glossary_id}", "DELETE /v2/glossaries/{glossary_id}",
    "GET /v2/glossaries/{glossary_id}/entries", "GET /v3/glossaries", "POST /v3/glossaries",
    "GET /v3/glossaries/{glossary_id}", "PATCH /v3/glossaries/{glossary_id}", "DELETE /v3/glossaries/{glossary_id}",
    "GET /v3/glossaries/{glossary_id}/entries", "PUT /v3/glossaries/{glossary_id}/dictionaries",
    "DELETE /v3/glossaries/{glossary_id}/dictionaries", "GET /MTRestService/Login",
    "GET /MTRestService/ListSupportedLanguagePairs", "GET /MTRestService/GetLanguagePairModelTags",
    "GET /MTRestService/CheckModelStatus", "GET /MTRestService/Translate", "GET /MTRestService/TranslateParagraphJson",
    "GET /MTRestService/TranslateJson", "GET /MTRestService/TranslateStream", "POST /MTRestService/TranslatePost",
    "POST /MTRestService/PreOrderBatch",
]  # fmt: skip


@pytest.fixture(scope="module")
def described(served: Running) -> dict[str, Any]:
    schema = schemathesis.openapi.from_url(f"{served.url}api/v1/openapi.json", timeout=PATIENCE)
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    return {operation.label: operation for operation in operations}


def test_every_operation_is_tried(described: dict[str, Any]) -> None:
    assert sorted(described) == sorted(OPERATIONS + FOREIGN)


# Where nothing is sent, nothing about it can be wrong.
@pytest.mark.parametrize(
    ("label", "mode"),
    [
        *((label, GenerationMode.POSITIVE) for label in OPERATIONS),
        *((label, GenerationMode.NEGATIVE) for label in OPERATIONS if label.startswith("POST")),
    ],
)
def test_it_keeps_to_its_description(described: dict[str, Any], label: str, mode: GenerationMode) -> None:
    """Requests that fit the description, and requests that do not: no error of ours, always a described answer."""
    operation = described[label]

    @settings(max_examples=15, suppress_health_check=list(HealthCheck), database=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        # A text in a language that is not served fits the description and is refused all the same.
        case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=PATIENCE)

    check()
