"""LibreTranslate's clients work unchanged: its own Python client, and plain HTTP in every form it takes."""

import io
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit

import pytest
from libretranslatepy import LibreTranslateAPI

from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.translation.translator import Translator
from support.serving import Running, running, service_of

SENTENCES = ["the old dog sees the red house", "a cat", "the child hears the river near the tree"]


@pytest.fixture(scope="module")
def expected(served_run: Path) -> list[str]:
    return Translator.load(served_run).translate(SENTENCES)


def test_the_real_client(served: Running, expected: list[str]) -> None:
    client = LibreTranslateAPI(served.url)
    assert client.translate(SENTENCES[0], "en", "eo") == expected[0]
    assert client.translate(SENTENCES[0], "auto", "eo") == expected[0]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["en", "eo"]},
        {"code": "eo", "name": "Esperanto", "targets": ["eo"]},
    ]
    (first, *_) = client.detect("the cat is sleeping on the sofa")
    assert first["language"] == "en"
    assert 50 < first["confidence"] <= 100
    with pytest.raises(HTTPError, match="400"):
        client.translate("dog", "zz", "eo")


@pytest.mark.parametrize("form", ["json", "form", "query", "multipart", "mixed"])
def test_every_form_of_a_request(served: Running, expected: list[str], form: str) -> None:
    values = {"q": SENTENCES[0], "source": "en", "target": "eo"}
    if form == "json":
        answer = served.post("/translate", values)
    elif form == "form":
        answer = served.post("/translate", urlencode(values), **{"Content-Type": "application/x-www-form-urlencoded"})
    elif form == "query":
        answer = served.post(f"/translate?{urlencode(values)}", "")
    elif form == "mixed":
        body = urlencode({"q": SENTENCES[0]})
        answer = served.post(
            "/translate?source=en&target=eo", body, **{"Content-Type": "application/x-www-form-urlencoded"}
        )
    else:
        parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in values.items())
        answer = served.post("/translate", f"{parts}--x--\r\n", **{"Content-Type": "multipart/form-data; boundary=x"})
    assert (answer.status, answer.json) == (200, {"translatedText": expected[0]})


def test_a_list_gives_a_list(served: Running, expected: list[str]) -> None:
    answer = served.post("/translate", {"q": SENTENCES, "source": "en", "target": "eo"})
    assert answer.json == {"translatedText": expected}


def test_lines_and_sentences_stay_where_they_are(served: Running, expected: list[str]) -> None:
    text = f"  {SENTENCES[0]}\n\n{SENTENCES[1]}\n"
    answer = served.post("/translate", {"q": text, "source": "en", "target": "eo"})
    assert answer.json == {"translatedText": f"  {expected[0]}\n\n{expected[1]}\n"}


def test_alternatives_come_when_asked_for(served: Running, served_run: Path) -> None:
    answer = served.post("/translate", {"q": SENTENCES[0], "source": "en", "target": "eo", "alternatives": 3}).json
    (best,) = Translator.load(served_run).translate_stream([SENTENCES[0]], n_best=4)
    assert [answer["translatedText"], *answer["alternatives"]] == [candidate.text for candidate in best.candidates]
    many = served.post("/translate", {"q": SENTENCES[:2], "source": "en", "target": "eo", "alternatives": "2"}).json
    assert [len(some) for some in many["alternatives"]] == [2, 2]


def test_a_detected_language_is_told(served: Running) -> None:
    one = served.post("/translate", {"q": "the cat is sleeping on the sofa", "source": "auto", "target": "eo"}).json
    assert one["detectedLanguage"]["language"] == "en"
    assert 0 < one["detectedLanguage"]["confidence"] <= 100
    two = served.post("/translate", {"q": [SENTENCES[0], "a cat"], "source": "auto", "target": "eo"}).json
    assert two["detectedLanguage"] == [two["detectedLanguage"][0]] * 2


@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_a_form_that_is_not_percent_encoded_is_utf_8(served: Running, path: str) -> None:
    """As `curl -d` sends it."""
    typed, form = "ĉu ĝi estas ŝi? 🙂", {"Content-Type": "application/x-www-form-urlencoded"}
    answer = served.ask("POST", path, f"q={typed}&source=eo&target=eo".encode(), form)
    assert answer.status == 200
    assert answer.json == ({"translatedText": typed} if path == "/translate" else served.post(path, {"q": typed}).json)


def test_what_needs_no_translation_comes_back(served: Running) -> None:
    digits = served.post("/translate", {"q": "12 + 3 = 15", "source": "auto", "target": "eo"}).json
    assert digits == {"translatedText": "12 + 3 = 15", "detectedLanguage": {"confidence": 0.0, "language": "en"}}
    marks = served.post("/translate", {"q": ["12.5 %", "🙂 ..."], "source": "en", "target": "eo", "alternatives": 2})
    assert marks.json == {"translatedText": ["12.5 %", "🙂 ..."], "alternatives": [[], []]}
    same = served.post("/translate", {"q": "la hundo", "source": "eo", "target": "eo"})
    assert same.json == {"translatedText": "la hundo"}


def test_html_keeps_its_tags(served: Running, expected: list[str]) -> None:
    body = {
        "q": f"<p class='x'>{SENTENCES[0]}</p><hr>",
        "source": "en",
        "target": "eo",
        "format": "html",
        "alternatives": 1,
    }
    assert served.post("/translate", body).json == {
        "translatedText": f"<p class='x'>{expected[0]}</p><hr>",
        "alternatives": [],
    }


GOOD: dict[str, Any] = {"q": "a dog", "source": "en", "target": "eo"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": ""}, "Invalid request: missing target parameter"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": "zz"}, "zz is not supported"),
        ({"source": "eo", "target": "en"}, "English (en) is not available as a target language from Esperanto (eo)"),
        ({"format": "pdf"}, "pdf format is not supported"),
        ({"alternatives": "x"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 9}, "Invalid request: alternatives parameter must be <= 8"),
        ({"q": "x" * 5001}, "Invalid request: request (5001) exceeds text limit (5000)"),
        ({"q": ["x"] * 65}, "Invalid request: request (65) exceeds text limit (64)"),
        ({"q": 7}, "Invalid request: q parameter is not a text or a list of texts"),
        ({"q": ["a", None]}, "Invalid request: q parameter is not a text or a list of texts"),
        ({"q": "\ud800"}, "Invalid request: character 1 is a lone surrogate, which no Unicode text holds"),
    ],
)
def test_errors_in_its_own_words(served: Running, change: dict[str, Any], error: str) -> None:
    body = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    answer = served.post("/translate", body)
    assert (answer.status, answer.json) == (400, {"error": error})


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{", "The browser (or proxy) sent a request that this server could not understand."),
        ("[" * 100_000, "The browser (or proxy) sent a request that this server could not understand."),
        ('"q"', "Invalid JSON format"),
    ],
)
def test_json_that_is_none(served: Running, body: str, error: str) -> None:
    answer = served.post("/translate", body, **{"Content-Type": "application/json"})
    assert (answer.status, answer.json) == (400, {"error": error})


def test_detect(served: Running) -> None:
    answer = served.post("/detect", {"q": "the cat is sleeping on the sofa"})
    assert answer.status == 200
    assert answer.json[0]["language"] == "en"
    assert served.post("/detect", {}).json == {"error": "Invalid request: missing q parameter"}


def upload(name: str, content: bytes, **values: str) -> tuple[bytes, dict[str, str]]:
    head = "".join(f'--xx\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in values.items())
    head += f'--xx\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + content + b"\r\n--xx--\r\n", {"Content-Type": "multipart/form-data; boundary=xx"}


def test_a_preview_has_the_sentences_of_a_file(served: Running, expected: list[str]) -> None:
    body, headers = upload("notes.txt", "\n".join(SENTENCES).encode(), source="en", target="eo", preview="1")
    answer = served.post("/translate_file", body, **headers).json
    assert answer["sentences"] == len(SENTENCES)
    assert [(one["source"], one["output"]) for one in answer["preview"]] == list(zip(SENTENCES, expected, strict=True))
    assert {one["how"] for one in answer["preview"]} == {"plain"}
    body, headers = upload("notes.txt", b"the dog", source="en", target="eo")
    assert set(served.post("/translate_file", body, **headers).json) == {"translatedFileUrl"}


def test_a_file_is_translated_and_fetched(served: Running, expected: list[str]) -> None:
    text = "\n".join([*SENTENCES, ""])
    body, headers = upload("notes.TXT", text.encode(), source="en", target="eo")
    url = served.post("/translate_file", body, **headers).json["translatedFileUrl"]
    assert url.startswith(f"{served.url}download_file/")
    fetched = served.ask("GET", urlsplit(url).path)
    assert fetched.body.decode() == "\n".join([*expected, ""])
    assert fetched.headers["content-type"] == "text/plain; charset=utf-8"
    assert "attachment" in fetched.headers["content-disposition"]


def test_documents_are_translated_and_fetched(served: Running) -> None:
    page = f"<p class='x'>{SENTENCES[0]}</p><ul><li>the <b>red house</b> near the <i>tree</i></li></ul>"
    for source in ("en", "auto"):
        body, headers = upload("page.html", page.encode(), source=source, target="eo")
        url = served.post("/translate_file", body, **headers).json["translatedFileUrl"]
        assert url.endswith(".eo.html")
        fetched = served.ask("GET", urlsplit(url).path)
        text = fetched.body.decode()
        assert sorted(re.findall(r"<[^>]*>", text)) == sorted(re.findall(r"<[^>]*>", page))
        assert "domo" in text
        assert fetched.headers["content-disposition"] == 'attachment; filename="translated.html"'
        assert "html" not in fetched.headers["content-type"]  # a page of someone else is not one of ours


def test_messages_are_filled_and_those_of_another_language_refused(served: Running) -> None:
    messages = 'msgid ""\nmsgstr "Language: {}\\n"\n\nmsgid "&the house"\nmsgstr ""\n'
    for source in ("en", "auto"):
        body, headers = upload("x.po", messages.format("eo").encode(), source=source, target="eo")
        url = served.post("/translate_file", body, **headers).json["translatedFileUrl"]
        said = served.ask("GET", urlsplit(url).path).body.decode()
        assert re.search(r'\n#, fuzzy\nmsgid "&the house"\nmsgstr "[^"&]*&\w[^"&]*"', said), said
    body, headers = upload("x.po", messages.format("de").encode(), source="en", target="eo")
    answer = served.post("/translate_file", body, **headers)
    assert answer.status == 400
    assert "its header says Language: de" in answer.json["error"]


def test_an_archive_that_holds_far_more_than_it_seems_is_refused(served: Running) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * (33 << 20))
    body, headers = upload("bomb.docx", packed.getvalue(), source="en", target="eo")
    answer = served.post("/translate_file", body, **headers)
    assert answer.status == 400
    assert "exceeds size limit" in answer.json["error"]


def test_html_tags_go_with_their_words(served: Running) -> None:
    q = "the <b>red</b> house &amp; {name} <code>x</code>"
    answer = served.post("/translate", {"q": [q, "a dog"], "source": "en", "target": "eo", "format": "html"}).json
    first, second = answer["translatedText"]
    assert sorted(re.findall(r"<[^>]*>", first)) == sorted(re.findall(r"<[^>]*>", q))
    assert first.count("{name}") == 1
    assert "<code>x</code>" in first
    assert "<" not in second


@pytest.mark.parametrize(
    ("name", "content", "values", "error"),
    [
        ("a.txt", b"dog", {"target": "eo"}, "Invalid request: missing source parameter"),
        ("a.txt", b"dog", {"source": "zz", "target": "eo"}, "zz is not supported"),
        ("a.pdf", b"dog", {"source": "en", "target": "eo"}, "Invalid request: file format not supported"),
        ("a.txt", b"\xff\xfd", {"source": "en", "target": "eo"}, "Invalid request: file format not supported"),
        ("", b"dog", {"source": "en", "target": "eo"}, "Invalid request: missing file parameter"),
    ],
)
def test_files_that_are_refused(served: Running, name: str, content: bytes, values: dict[str, str], error: str) -> None:
    body, headers = upload(name, content, **values)
    answer = served.post("/translate_file", body, **headers)
    assert (answer.status, answer.json) == (400, {"error": error})


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd.txt", "/etc/passwd.txt", "C:\\x.txt", "..%2f..%2fx.txt", "x\0.txt"]
)
def test_the_name_of_an_upload_is_never_a_path(served: Running, tmp_path: Path, name: str) -> None:
    before = set(tmp_path.parent.rglob("*"))
    body, headers = upload(name, b"a dog", source="en", target="eo")
    url = served.post("/translate_file", body, **headers).json["translatedFileUrl"]
    assert "passwd" not in url
    assert "%2f" not in url.lower()
    assert set(tmp_path.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    ["../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "nothing.txt", "%00", quote("/etc/passwd", safe="")],
)
def test_only_what_was_translated_can_be_fetched(served: Running, name: str) -> None:
    answer = served.ask("GET", f"/download_file/{name}")
    assert answer.status == 404
    assert set(answer.json) == {"error"}


def test_about_the_service(served: Running) -> None:
    assert served.ask("GET", "/health").json == {"status": "ok"}
    settings = served.ask("GET", "/frontend/settings").json
    assert settings["charLimit"] == 5000
    assert {".txt", ".md", ".html", ".docx", ".odt", ".srt", ".vtt", ".po", ".json"} <= set(
        settings["supportedFilesFormat"]
    )
    assert settings["language"]["target"] == {"code": "eo", "name": "Esperanto"}
    spec = served.ask("GET", "/spec").json
    assert {"/translate", "/detect", "/languages", "/translate_file", "/api/v1/explain"} <= set(spec["paths"])


def test_keys_as_it_takes_them(served_run: Path) -> None:
    with running(service_of(served_run, api_keys=("0123456789abcdef",))) as server:
        missing = server.post("/translate", GOOD)
        assert (missing.status, missing.json) == (
            400,
            {"error": "Please contact the server operator to get an API key"},
        )
        for wrong in ("0123456789abcdeX", "é", 7, ["0123456789abcdef"]):
            refused = server.post("/translate", {**GOOD, "api_key": wrong})
            assert (refused.status, refused.json) == (403, {"error": "Invalid API key"})
        assert server.post("/translate", {**GOOD, "api_key": "0123456789abcdef"}).status == 200
        assert LibreTranslateAPI(server.url, "0123456789abcdef").translate("a dog", "en", "eo")
        assert server.ask("GET", "/languages").status == 200


def test_several_runs_at_once(served_run: Path) -> None:
    pairs = [ServedPair("en", "eo", served_run), ServedPair("eo", "en", served_run)]
    with running(Service(pairs, Settings(port=0, rate_limit=0))) as server:
        there = server.post("/translate", {"q": "a dog", "source": "en", "target": "eo"})
        back = server.post("/translate", {"q": "hundo", "source": "eo", "target": "en"})
        assert (there.status, back.status) == (200, 200)
        assert [row["targets"] for row in server.ask("GET", "/languages").json] == [["en", "eo"], ["en", "eo"]]


def test_too_many_in_a_minute(served_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limits.storage.memory.time", SimpleNamespace(time=lambda: 1000.0))  # no minute passes
    with running(service_of(served_run, rate_limit=10)) as server:
        assert server.post("/translate", {**GOOD, "q": ["a dog"] * 8}).status == 200
        assert server.post("/translate", GOOD).status == 200
        assert server.post("/translate", GOOD).status == 200
        slow = server.post("/translate", GOOD)
        assert (slow.status, slow.json) == (429, {"error": "Slowdown: 10 per 1 minute"})
        assert int(slow.headers["retry-after"]) >= 1
        assert server.ask("GET", "/languages").status == 200


def test_suggestions_are_corrections(served_run: Path, tmp_path: Path) -> None:
    with running(service_of(served_run, corrections=tmp_path / "corrections.sqlite")) as server:
        assert server.ask("GET", "/frontend/settings").json["suggestions"] is True
        body = urlencode({"q": "a dog", "s": "iu hundo", "source": "en", "target": "eo"})
        kept = server.post("/suggest", body, **{"Content-Type": "application/x-www-form-urlencoded"})
        assert (kept.status, kept.json) == (200, {"success": True})
        assert server.post("/translate", GOOD).json == {"translatedText": "iu hundo"}
        for change, error in (
            ({"s": ""}, "Invalid request: missing s parameter"),
            ({"s": 7}, "Invalid request: s parameter is not a text"),
            ({"s": "x" * 5001}, "Invalid request: request (5001) exceeds text limit (5000)"),
            ({"target": "en"}, "en is not a target of en"),
        ):
            refused = server.post("/suggest", {**GOOD, "s": "iu hundo", **change})
            assert (refused.status, refused.json) == (400, {"error": error})


def test_without_corrections_no_suggestion_is_taken(served: Running) -> None:
    refused = served.post("/suggest", {**GOOD, "s": "iu hundo"})
    assert (refused.status, refused.json) == (403, {"error": "Suggestions are disabled on this server."})


def test_requests_as_weblate_sends_them(served: Running, expected: list[str]) -> None:
    assert [one["code"] for one in served.ask("GET", "/languages").json] == ["en", "eo"]
    answer = served.post("/translate", {"api_key": "", "q": SENTENCES, "source": "en", "target": "eo"})
    assert answer.json["translatedText"] == expected
