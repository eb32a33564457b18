"""A request between languages that no run translates between is answered through a third, and says so."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.serve.app import served_in_words
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.texts import RequestOptions, Terms
from dragoman.translation.pivot import PivotTranslator
from dragoman.translation.translator import Translator
from support.serving import Running, running

QUESTION = {"source": "en", "target": "de"}
TEXT = "The dog sees it. The cat sleeps."


def pairs(run: Path) -> list[ServedPair]:
    return [ServedPair("en", "fr", run), ServedPair("fr", "de", run)]


@pytest.fixture(scope="module")
def server(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    corrections = tmp_path_factory.mktemp("memory") / "corrections.db"
    with running(Service(pairs(served_run), Settings(port=0, rate_limit=0, corrections=corrections))) as running_one:
        yield running_one


@pytest.fixture(scope="module")
def pivot(served_run: Path) -> PivotTranslator:
    return PivotTranslator(Translator.load(served_run), Translator.load(served_run))


def test_our_own_answer_names_the_pivot_and_its_text(server: Running, pivot: PivotTranslator) -> None:
    (expected,) = pivot.translate_stream([TEXT])
    answer = server.post("/api/v1/translate", {**QUESTION, "text": TEXT})
    assert (answer.status, answer.json["text"], answer.json["pivot"]) == (200, expected.text, "fr")
    segments = answer.json["segments"]
    assert " ".join(segment["pivot_text"] for segment in segments) == expected.pivot_text
    assert [segment["source"] for segment in segments] == TEXT.replace(". ", ".|").split("|")
    direct = server.post("/api/v1/translate", {"source": "en", "target": "fr", "text": TEXT}).json
    assert (direct["pivot"], direct["segments"][0]["pivot_text"]) == (None, None)
    stream = server.post("/api/v1/translate/stream", {**QUESTION, "text": TEXT}).body.decode()
    *_, done = [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]
    assert done == {"source": "en", "target": "de", "pivot": "fr", "detected": None}


def test_libretranslate_s_answer_has_one_key_more(server: Running, pivot: PivotTranslator) -> None:
    expected = pivot.translate([TEXT])[0]
    body = {**QUESTION, "q": TEXT}
    assert server.post("/translate", body).json == {"translatedText": expected, "pivot": "fr"}
    several = server.post("/translate", {**body, "q": [TEXT, "12.5 %"], "alternatives": 2}).json
    assert several["translatedText"] == [expected, "12.5 %"]
    assert (len(several["alternatives"]), several["pivot"]) == (2, "fr")
    page = server.post("/translate", {**body, "q": "<p>The <b>dog</b> sees 3.5 houses.</p>", "format": "html"}).json
    assert "3.5" in page["translatedText"]
    assert page["pivot"] == "fr"
    detected = server.post("/translate", {**body, "q": "the cat is sleeping on the sofa", "source": "auto"}).json
    assert (detected["pivot"], detected["detectedLanguage"]["language"]) == ("fr", "en")
    rows = {row["code"]: row["targets"] for row in server.ask("GET", "/languages").json}
    assert rows == {"de": ["de"], "en": ["de", "en", "fr"], "fr": ["de", "fr"]}


def test_a_document_goes_the_same_way(server: Running, pivot: PivotTranslator) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + TEXT.encode()
    for name, value in QUESTION.items():
        form += f'\r\n--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode()
    answer = server.ask(
        "POST", "/translate_file", form + b"\r\n--x--", {"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert (answer.status, answer.json["pivot"]) == (200, "fr")
    path = answer.json["translatedFileUrl"].partition(str(server.port))[2]
    assert server.ask("GET", path).body.decode() == pivot.translate([TEXT])[0]


def test_what_is_served_lists_the_pivots(server: Running) -> None:
    about = server.ask("GET", "/api/v1/service").json
    assert [(pair["source"], pair["target"]) for pair in about["pairs"]] == [("en", "fr"), ("fr", "de")]
    assert about["pivots"] == [
        {
            "source": "en",
            "target": "de",
            "pivot": "fr",
            "source_name": "English",
            "target_name": "German",
            "pivot_name": "French",
        }
    ]
    assert served_in_words(server.service).endswith(", en-de through fr")


@pytest.mark.parametrize("path", ["explain", "alternatives", "beam", "inside"])
def test_one_model_is_looked_into_and_not_two(server: Running, path: str) -> None:
    refused = server.post(f"/api/v1/{path}", {**QUESTION, "text": "a dog"})
    assert (refused.status, refused.json) == (
        404,
        {"error": "en-de is translated through fr; look into en-fr or fr-de"},
    )


def test_required_words_and_what_must_stay_come_through(server: Running) -> None:
    glossary = [{"source": "dog", "target": "Bello|Rex"}, {"source": "Zork", "target": ""}]
    question = {**QUESTION, "text": "the old dog sees {name} and Zork", "glossary": glossary, "keep": ["placeholders"]}
    (segment,) = server.post("/api/v1/translate", question).json["segments"]
    for text in (segment["pivot_text"], segment["candidates"][0]["text"]):
        assert "Bello" in text or "Rex" in text
        assert "Zork" in text
        assert "{name}" in text
    options = RequestOptions(terms=Terms([("dog", "Bello| Rex"), ("Zork", "")])).after_pivot()
    assert options.terms.pairs == (("Bello", ""), ("Rex", ""), ("Zork", ""))


def test_corrections_of_the_steps_and_of_the_whole_are_used(server: Running) -> None:
    def correct(source: str, target: str, text: str, translation: str) -> None:
        body = {"source": source, "target": target, "text": text, "translation": translation}
        assert server.post("/api/v1/corrections", body).json == {"stored": True}

    def answered() -> dict[str, Any]:
        segment: dict[str, Any] = server.post("/api/v1/translate", {**QUESTION, "text": "a red bird"}).json["segments"][
            0
        ]
        return segment

    correct("en", "fr", "a red bird", "un oiseau rouge")
    assert (answered()["pivot_text"], answered()["corrected"]) == ("un oiseau rouge", False)
    correct("fr", "de", "un oiseau rouge", "ein roter Vogel")
    assert (answered()["candidates"][0]["text"], answered()["corrected"]) == ("ein roter Vogel", True)
    correct("en", "de", "a red bird", "ein rotes Vögelchen")
    assert (answered()["candidates"][0]["text"], answered()["pivot_text"]) == ("ein rotes Vögelchen", None)


def test_a_direct_run_wins_and_pivoting_can_be_switched_off(served_run: Path) -> None:
    direct = [*pairs(served_run), ServedPair("en", "de", served_run)]
    with running(Service(direct, Settings(port=0, rate_limit=0))) as server:
        assert "pivot" not in server.post("/translate", {**QUESTION, "q": TEXT}).json
        assert server.ask("GET", "/api/v1/service").json["pivots"] == []
    with running(Service(pairs(served_run), Settings(port=0, rate_limit=0, pivot=False))) as server:
        refused = server.post("/translate", {**QUESTION, "q": TEXT})
        assert refused.status == 400
        assert "not available as a target language" in refused.json["error"]
        refused = server.post("/api/v1/translate", {**QUESTION, "text": TEXT})
        assert (refused.status, refused.json["error"]) == (404, "en-de is not served; served: en-fr, fr-de")
        assert {row["code"]: row["targets"] for row in server.ask("GET", "/languages").json}["en"] == ["en", "fr"]
