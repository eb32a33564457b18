"""The plug-ins of OPUS-CAT work unchanged: requests as theirs for memoQ, Trados, OmegaT and Wordfast send them."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.translation.translator import Translator
from support.serving import Running, running, service_of

SENTENCE = "the old dog sees the red house"


@pytest.fixture(scope="module")
def expected(served_run: Path) -> str:
    return Translator.load(served_run).translate([SENTENCE])[0]


def query(**values: str) -> str:
    return urlencode({"srcLangCode": "en", "trgLangCode": "eo", **values})


def test_memoq(served: Running, expected: str) -> None:
    assert served.ask("GET", "/MtRestService/ListSupportedLanguagePairs?tokenCode=0").json == ["en-eo"]
    asked = query(tokenCode="0", input=SENTENCE, modelTag='""')
    answer = served.ask("GET", f"/MtRestService/TranslateJson?{asked}")
    assert (answer.status, answer.json["translation"]) == (200, expected)


def test_trados(served: Running, expected: str) -> None:
    """It says that its requests without a body are JSON, names countries, and orders sentences before it asks."""
    json = {"Content-Type": "application/json"}
    asked = query(tokenCode="0", srcLangCode="en-US", modelTag="")
    ordered = served.ask("POST", f"/MtRestService/PreOrderBatch?{asked}", [SENTENCE, "a cat"], json)
    assert (ordered.status, ordered.body) == (200, b"")
    assert served.ask("GET", f"/MtRestService/GetLanguagePairModelTags?{asked}", headers=json).json == []
    status = served.ask("GET", f"/MtRestService/CheckModelStatus?{asked}", headers=json)
    assert status.json == "Model for en-eo will be used."
    answer = served.ask("GET", f"/MtRestService/TranslateJson?{asked}&{urlencode({'input': SENTENCE})}", headers=json)
    assert answer.json["Translation"] == expected


def test_omegat_wordfast_and_browsers(served: Running, expected: str) -> None:
    asked = query(tokenCode="0", input=SENTENCE, modelTag="")
    assert served.ask("GET", f"/MTRestService/TranslateJson?{asked}").json["translation"] == expected
    assert served.ask("POST", f"/MTRestService/TranslatePost?{asked}").json["Translation"] == expected
    stream = served.ask("GET", f"/MTRestService/TranslateStream?{asked}")
    assert (stream.body.decode(), stream.headers["content-type"]) == (expected, "text/plain; charset=utf-8")
    assert served.ask("GET", f"/MTRestService/Translate?{asked}").json == expected


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (f"TranslateJson?{query(input='x' * 5001)}", None, 400),
        ("TranslateJson?input=a&srcLangCode=zz&trgLangCode=eo", None, 404),
        ("TranslateJson", None, 404),
        (f"PreOrderBatch?{query()}", "{", 400),
        (f"PreOrderBatch?{query()}", [7], 400),
        (f"PreOrderBatch?{query()}", [], 400),
        (f"PreOrderBatch?{query()}", ["a"] * 65, 400),
        ("Customize", {}, 404),
    ],
)
def test_what_is_refused(served: Running, path: str, body: object, status: int) -> None:
    answer = served.ask("GET" if body is None else "POST", f"/MTRestService/{path}", body)
    assert (answer.status, list(answer.json)) == (status, ["error"])


def test_a_pair_with_a_country_is_asked_for_as_it_is_listed(served_run: Path, expected: str) -> None:
    pairs = [ServedPair("en", "pt-br", served_run)]
    with running(Service(pairs, Settings(port=0, rate_limit=0))) as server:
        assert server.ask("GET", "/MTRestService/ListSupportedLanguagePairs").json == ["en-pt-br"]
        for code in ("pt-br", "pt_BR", "pt"):
            asked = query(trgLangCode=code, input=SENTENCE)
            assert server.ask("GET", f"/MTRestService/Translate?{asked}").json == expected


def test_sentences_that_are_ordered_are_counted_each(served_run: Path) -> None:
    with running(service_of(served_run, rate_limit=10)) as server:
        path = f"/MTRestService/PreOrderBatch?{query()}"
        answers = [server.ask("POST", path, [f"a cat {number}" for number in range(4)]).status for _ in range(3)]
        assert answers == [200, 200, 429]


def test_it_is_guarded_although_it_is_asked_with_get(served_run: Path) -> None:
    key = "0123456789abcdef"
    with running(service_of(served_run, api_keys=(key,))) as server:
        asked = f"/MTRestService/TranslateJson?{query(input='a dog')}"
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            assert server.ask("GET", f"{asked}&tokenCode={key}", headers=headers).status == 403
        assert server.ask("GET", f"{asked}&tokenCode=0").status == 401
        assert server.ask("GET", f"{asked}&tokenCode={key}").status == 200
        assert server.ask("GET", asked, headers={"Authorization": f"Bearer {key}"}).status == 200
        assert server.ask("GET", f"/MTRestService/Login?userName=x&password={key}").json == key
        assert server.ask("GET", "/MTRestService/Login?userName=x&password=y").json is None
