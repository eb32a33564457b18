"""DeepL's clients work unchanged: its own Python client, and requests as Weblate sends them."""

import io
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import deepl
import pytest
from deepl import http_client
from deepl.api_data import ModelType, MultilingualGlossaryDictionaryEntries
from lxml import etree

from dragoman.data.glossary import Glossary
from dragoman.serve import terms
from dragoman.serve.pairs import ServedPair
from dragoman.serve.routes.deepl_request import served_code
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.texts import BatchKey, RequestOptions, Terms
from dragoman.translation.translator import Translator
from support.serving import Running, running
from support.waiting import until

KEY, OTHER = "0123456789abcdef", "fedcba9876543210"
SENTENCES = ["the old dog sees the red house", "a cat"]


@pytest.fixture(scope="module")
def server(served_run: Path) -> Iterator[Running]:
    """Both directions, so that English is a target too; it needs a key."""
    pairs = [ServedPair("en", "eo", served_run), ServedPair("eo", "en", served_run)]
    with running(Service(pairs, Settings(port=0, rate_limit=0, api_keys=(KEY, OTHER)))) as found:
        yield found


@pytest.fixture(scope="module")
def expected(served_run: Path) -> list[str]:
    return Translator.load(served_run).translate(SENTENCES)


@pytest.fixture
def client(server: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[deepl.DeepLClient]:
    monkeypatch.setattr(http_client, "max_network_retries", 0)
    with_key = deepl.DeepLClient(KEY, server_url=server.url)
    yield with_key
    with_key.close()  # type: ignore[no-untyped-call]


def test_texts(client: deepl.DeepLClient, expected: list[str]) -> None:
    one = client.translate_text(SENTENCES[0], target_lang="EO")
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang, one.billed_characters) == (expected[0], "EN", len(SENTENCES[0]))
    two = client.translate_text(["the cat is sleeping on the sofa", "la hundo kuras en la ĝardeno"], target_lang="EO")
    assert isinstance(two, list)
    assert [result.detected_source_lang for result in two] == ["EN", "EO"]  # each text by itself
    assert two[1].text == "la hundo kuras en la ĝardeno"
    several = client.translate_text(
        SENTENCES,
        source_lang="EN",
        target_lang="eo",
        context="About animals.",
        formality=deepl.Formality.PREFER_MORE,
        split_sentences=deepl.SplitSentences.ALL,
        preserve_formatting=True,
        model_type=ModelType.PREFER_QUALITY_OPTIMIZED,
    )
    assert isinstance(several, list)
    assert [result.text for result in several] == expected
    assert {result.model_type_used for result in several} == {"latency_optimized"}


@pytest.mark.parametrize("target", ["EN-GB", "EN-US", "en-us"])
def test_variants_of_a_language(client: deepl.DeepLClient, target: str) -> None:
    found = client.translate_text("la hundo", source_lang="EO", target_lang=target)
    assert isinstance(found, deepl.TextResult)
    assert found.text
    same = client.translate_text("a dog", source_lang="EN", target_lang=target)
    assert isinstance(same, deepl.TextResult)
    assert same.text == "a dog"  # it is in that language already


@pytest.mark.parametrize(
    ("wanted", "served", "found"),
    [
        ("PT-BR", ["pt", "pt-br"], "pt-br"),
        ("PT-BR", ["pt"], "pt"),
        ("PT", ["pt-br"], "pt-br"),
        ("ZH-HANS", ["zh"], "zh"),
        ("NB", ["no"], "no"),
        ("XX", ["en"], None),
    ],
)
def test_a_code_stands_for_the_nearest_language(wanted: str, served: list[str], found: str | None) -> None:
    assert served_code(wanted, served) == found


def test_languages_and_usage(client: deepl.DeepLClient) -> None:
    assert [(one.code, one.name) for one in client.get_source_languages()] == [("EN", "English"), ("EO", "Esperanto")]
    targets = [(one.code, one.supports_formality) for one in client.get_target_languages()]
    assert targets == [("EN-GB", False), ("EN-US", False), ("EO", False)]
    before = client.get_usage().character.count or 0
    client.translate_text(SENTENCES[0], target_lang="EO")
    after = client.get_usage()
    assert after.character.count == before + len(SENTENCES[0])
    assert not after.any_limit_reached


def test_tags(client: deepl.DeepLClient) -> None:
    """Each tag is in the translation, around a word or between two; what is ignored is copied."""
    text = 'the <c2:b id="1">red house</c2:b> near<br/> the <x>Dog &amp; 7</x> tree<!-- a < b -->'
    found = client.translate_text(text, source_lang="EN", target_lang="EO", tag_handling="xml", ignore_tags=["x"])
    assert isinstance(found, deepl.TextResult)
    assert "<x>Dog &amp; 7</x>" in found.text
    assert sorted(re.findall(r"<[^>]*>", found.text)) == sorted(re.findall(r"<[^>]*>", text))
    assert found.text.index('<c2:b id="1">') < found.text.index("</c2:b>")
    page = "<p>the <b>red house</b></p><hr>"
    html = client.translate_text(page, source_lang="EN", target_lang="EO", tag_handling="html")
    assert isinstance(html, deepl.TextResult)
    assert sorted(re.findall(r"<[^>]*>", html.text)) == sorted(re.findall(r"<[^>]*>", page))
    with pytest.raises(deepl.DeepLException, match="Tag handling parsing failed, please check input"):
        client.translate_text("<a>a dog</b>", target_lang="EO", tag_handling="xml")


def test_xml_stays_xml(client: deepl.DeepLClient) -> None:
    """What XML has no name for is written as a character, and what the client's document declares is copied."""
    given = "<x>the house</x> 3\u00a0km &app; the <b>red</b> tree &lt; 7"
    found = client.translate_text(given, source_lang="EN", target_lang="EO", tag_handling="xml")
    assert isinstance(found, deepl.TextResult)
    assert "&app;" in found.text
    assert "&lt;" in found.text
    root = etree.fromstring(f'<!DOCTYPE r [<!ENTITY app "Foo">]><r>{found.text}</r>')
    assert "\u00a0" in "".join(root.itertext())


def test_errors_are_those_of_deepl(client: deepl.DeepLClient, server: Running) -> None:
    with pytest.raises(deepl.DeepLException, match="Value for 'target_lang' not supported"):
        client.translate_text("a dog", target_lang="XX")
    with pytest.raises(deepl.DeepLException, match="Value for 'source_lang' not supported"):
        client.translate_text("a dog", source_lang="XX", target_lang="EO")
    with pytest.raises(deepl.DeepLException, match="Target language 'EO' doesn't support formality"):
        client.translate_text("a dog", target_lang="EO", formality="more")
    with pytest.raises(deepl.DeepLException, match="Parameter 'style_id' is not supported by this service"):
        client.translate_text("a dog", target_lang="EO", style_rule="7ff9bfd6")
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary("no-such")
    with pytest.raises(deepl.DeepLException, match="Text has 5001 characters; at most 5000 are allowed"):
        client.translate_text("x" * 5001, target_lang="EO")
    with pytest.raises(deepl.AuthorizationException, match="Authorization failure, check auth_key"):
        deepl.DeepLClient("wrong", server_url=server.url).translate_text("a dog", target_lang="EO")
    assert server.post("/v2/translate", {"text": ["a dog"], "target_lang": "EO"}).status == 403
    refused = server.ask("POST", "/v2/translate", {"text": ["a dog"], "target_lang": "EO"}, {"Host": "evil.example"})
    assert (refused.status, list(refused.json)) == (421, ["message"])  # the guard speaks its language, too


def test_a_form_does_as_well_as_json(server: Running, expected: list[str]) -> None:
    body = f"auth_key={KEY}&text={SENTENCES[0]}&text={SENTENCES[1]}&target_lang=EO&source_lang=EN".replace(" ", "+")
    answer = server.post("/v2/translate", body, **{"Content-Type": "application/x-www-form-urlencoded"})
    assert [one["text"] for one in answer.json["translations"]] == expected
    assert "billed_characters" not in answer.json["translations"][0]


def test_glossaries(client: deepl.DeepLClient, server: Running) -> None:
    pairs = {(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()}
    assert pairs == {("en", "eo"), ("eo", "en")}
    made = client.create_glossary("animals", "EN", "EO", {"dog": "hundego", "cat": "katego"})
    assert (made.source_lang, made.target_lang, made.entry_count, made.ready) == ("EN", "EO", 2, True)
    assert client.get_glossary(made.glossary_id).name == "animals"
    assert client.get_glossary_entries(made) == {"dog": "hundego", "cat": "katego"}
    with_terms = client.translate_text("the dog sees", source_lang="EN", target_lang="EO", glossary=made)
    assert isinstance(with_terms, deepl.TextResult)
    assert "hundego" in with_terms.text
    tagged = client.translate_text(
        "the <b>dog</b> sees", source_lang="EN", target_lang="EO", glossary=made, tag_handling="xml"
    )
    assert isinstance(tagged, deepl.TextResult)
    assert "hundego" in tagged.text
    assert made.glossary_id in {one.glossary_id for one in client.list_glossaries()}
    other = deepl.DeepLClient(OTHER, server_url=server.url)
    assert other.list_glossaries() == []  # another key sees none of it
    with pytest.raises(deepl.GlossaryNotFoundException):
        other.get_glossary_entries(made.glossary_id)
    client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)
    from_csv = client.create_glossary_from_csv("csv", "EN", "EO", '"the, dog",hundo,en,eo\n')
    assert client.get_glossary_entries(from_csv) == {"the, dog": "hundo"}


def test_glossaries_of_several_languages(client: deepl.DeepLClient) -> None:
    first = MultilingualGlossaryDictionaryEntries("EN", "EO", {"dog": "hundego"})
    back = MultilingualGlossaryDictionaryEntries("EO", "EN", {"hundo": "hound"})
    made = client.create_multilingual_glossary("both", [first, back])
    assert {(one.source_lang, one.entry_count) for one in made.dictionaries} == {("EN", 1), ("EO", 1)}
    assert client.get_multilingual_glossary(made.glossary_id).name == "both"
    assert made.glossary_id in {one.glossary_id for one in client.list_multilingual_glossaries()}
    assert client.update_multilingual_glossary_name(made, "two").name == "two"
    more = MultilingualGlossaryDictionaryEntries("EN", "EO", {"cat": "katego", "dog": "hundino"})
    client.update_multilingual_glossary_dictionary(made, more)

    (entries,) = client.get_multilingual_glossary_entries(made, "EN", "EO").dictionaries
    assert set(str(entries.entries).split("\n")) == {"dog\thundino", "cat\tkatego"}
    assert client.replace_multilingual_glossary_dictionary(made, first).entry_count == 1
    with_terms = client.translate_text("the dog sees", source_lang="EN", target_lang="EO", glossary=made.glossary_id)
    assert isinstance(with_terms, deepl.TextResult)
    assert "hundego" in with_terms.text
    client.delete_multilingual_glossary_dictionary(made, source_lang="EO", target_lang="EN")
    with pytest.raises(deepl.DeepLException, match="Glossary has no dictionary from 'EO' to 'EN'"):
        client.translate_text("la hundo", source_lang="EO", target_lang="EN-GB", glossary=made.glossary_id)
    client.delete_multilingual_glossary(made)


@pytest.mark.parametrize(
    ("entries", "detail"),
    [
        ("dog hundo", "Key with the index 0 misses tab separator"),
        ("dog\thundo\ndog\tx", "Key with the index 1 duplicates another key"),
        ("dog\t", "Key with the index 0 has no target term"),
        ("x" * 600 + "\ty", "Key with the index 0 is longer than 500 characters"),
    ],
)
def test_entries_that_cannot_be_read(server: Running, entries: str, detail: str) -> None:
    body = {"name": "x", "source_lang": "EN", "target_lang": "EO", "entries": entries, "entries_format": "tsv"}
    answer = server.post("/v2/glossaries", body, Authorization=f"DeepL-Auth-Key {KEY}")
    assert (answer.status, answer.json) == (400, {"message": "Invalid glossary entries provided", "detail": detail})


@pytest.mark.parametrize("broken", ["name", "entries"])
def test_a_glossary_that_is_not_unicode_is_not_kept(server: Running, broken: str) -> None:
    """It could not be listed: every later answer with it would be an error of the service."""
    headers = {"Authorization": f"DeepL-Auth-Key {OTHER}"}
    languages = {"source_lang": "en", "target_lang": "eo", "entries_format": "tsv"}
    good = languages | {"name": "x", "entries": "dog\thundo"}
    damaged = good | {broken: f"{good[broken]}\ud800"}
    made = server.ask("POST", "/v3/glossaries", {"name": "y", "dictionaries": [good]}, headers).json["glossary_id"]
    answers = [
        server.ask("POST", "/v2/glossaries", damaged, headers),
        server.ask("POST", "/v3/glossaries", {"name": damaged["name"], "dictionaries": [damaged]}, headers),
        server.ask("PATCH", f"/v3/glossaries/{made}", {"name": damaged["name"], "dictionaries": [damaged]}, headers),
    ]
    assert [(answer.status, list(answer.json)) for answer in answers] == [(400, ["message"])] * 3
    listed = server.ask("GET", "/v3/glossaries", headers=headers)
    assert (listed.status, [one["name"] for one in listed.json["glossaries"]]) == (200, ["y"])
    assert server.ask("DELETE", f"/v3/glossaries/{made}", headers=headers).status == 204


def test_a_glossary_is_made_ready_once(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not with each batch; again once it has changed."""
    made: list[int] = []
    make = Glossary.of

    def counted(terms: Sequence[tuple[str, str]]) -> Glossary:
        made.append(len(terms))
        return make(terms)

    headers = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    languages = {"source_lang": "en", "target_lang": "eo"}
    entries = languages | {"entries": "dog\thundego\ncat\tkatego", "entries_format": "tsv"}
    name = server.ask("POST", "/v3/glossaries", {"name": "x", "dictionaries": [entries]}, headers).json["glossary_id"]

    def translated(*texts: str) -> list[str]:
        body = languages | {"text": texts, "glossary_id": name}
        return [one["text"] for one in server.post("/v2/translate", body, **headers).json["translations"]]

    monkeypatch.setattr(Glossary, "of", counted)
    for texts in (("the dog sees", "a cat"), ("the cat sleeps", "the dog " * 30), ("the old dog",)):
        assert all("ego" in text for text in translated(*texts))
    assert made == [2]
    more = languages | {"entries": "dog\tvirhundo", "entries_format": "tsv"}
    assert server.ask("PATCH", f"/v3/glossaries/{name}", {"dictionaries": [more]}, headers).status == 200
    assert "virhundo" in translated("the dog sees")[0]
    assert made == [2, 2]


def test_a_dictionary_has_so_many_entries_at_most(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "MOST_ENTRIES", 2)
    detail = "The dictionary has 3 entries; at most 2 are kept; make several glossaries"
    headers = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    entries = {"entries_format": "tsv", "source_lang": "en", "target_lang": "eo", "entries": "a\tb\nc\td"}
    name = server.ask("POST", "/v3/glossaries", {"name": "x", "dictionaries": [entries]}, headers).json["glossary_id"]
    refused = [
        server.ask("POST", "/v2/glossaries", {**entries, "name": "x", "entries": "a\tb\nc\td\ne\tf"}, headers),
        server.ask("PATCH", f"/v3/glossaries/{name}", {"dictionaries": [entries | {"entries": "e\tf"}]}, headers),
    ]
    assert [(answer.status, answer.json["detail"]) for answer in refused] == [(400, detail)] * 2
    kept = server.ask("GET", f"/v3/glossaries/{name}", headers=headers).json["dictionaries"]
    assert [one["entry_count"] for one in kept] == [2]


def test_terms_are_known_by_a_digest() -> None:
    """A cache of answers holds no terms, and equal ones make the same batch."""
    first, again, other = (Terms([("dog", target)]) for target in ("hundo", "hundo", "hundego"))
    keys = [BatchKey("en-eo", 1, RequestOptions(terms=each)) for each in (first, again, other)]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0].cached_as == keys[1].cached_as != keys[2].cached_as
    assert not any(isinstance(part, Terms) and part for part in keys[0].cached_as)


def test_documents(client: deepl.DeepLClient, server: Running, expected: list[str]) -> None:
    """Sent, asked about and fetched; the client would wait five seconds between two questions."""
    handle = client.translate_document_upload(
        "\n".join(SENTENCES), source_lang="EN", target_lang="EO", filename="notes.txt"
    )
    until(lambda: client.translate_document_get_status(handle).done)
    status = client.translate_document_get_status(handle)
    assert (status.ok, status.billed_characters) == (True, sum(map(len, SENTENCES)))
    wrong = deepl.DocumentHandle(handle.document_id, "0" * 64)
    with pytest.raises(deepl.DeepLException, match="Document not found"):
        client.translate_document_get_status(wrong)
    with pytest.raises(deepl.DeepLException, match="Document not found"):
        deepl.DeepLClient(OTHER, server_url=server.url).translate_document_get_status(handle)
    fetched = io.BytesIO()
    client.translate_document_download(handle, fetched)
    assert fetched.getvalue().decode() == "\n".join(expected)
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_download(handle, io.BytesIO())  # it is given once


@pytest.mark.parametrize(
    ("name", "media_type"), [("a.xml", "application/octet-stream"), ("a.properties", "text/plain")]
)
def test_no_document_is_taken_for_a_page_of_ours(server: Running, name: str, media_type: str) -> None:
    """A browser would show XML as whatever it says that it is."""
    content = "<resources><string name='a'>a cat</string></resources>" if name == "a.xml" else "a=a cat"
    form = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{field}"{more}\r\n\r\n{value}\r\n'
        for field, more, value in (
            ("source_lang", "", "EN"),
            ("target_lang", "", "EO"),
            ("file", f'; filename="{name}"', content),
        )
    )
    headers = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    multipart = headers | {"Content-Type": "multipart/form-data; boundary=x"}
    sent = server.ask("POST", "/v2/document", f"{form}--x--\r\n", multipart).json
    path, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    until(lambda: server.ask("POST", path, key, headers).json["status"] == "done")
    assert server.ask("POST", f"{path}/result", key, headers).headers["content-type"].startswith(media_type)


def test_documents_that_are_refused(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="Invalid file data"):
        client.translate_document_upload(b"x", target_lang="EO", filename="a.exe")
    with pytest.raises(deepl.DeepLException, match="Value for 'output_format' not supported"):
        client.translate_document_upload(b"x", target_lang="EO", filename="a.txt", output_format="docx")
    with pytest.raises(deepl.DeepLException, match="Source and target language are equal"):
        client.translate_document_upload(b"x", source_lang="EO", target_lang="EO", filename="a.txt")
    with pytest.raises(deepl.DeepLException, match="Invalid file data"):
        client.translate_document_upload(b"PK no archive", source_lang="EN", target_lang="EO", filename="a.docx")


def test_requests_as_weblate_sends_them(server: Running) -> None:
    """Its DeepL backend: languages of both types, glossary languages, and texts whose placeholders stand as <x>."""
    headers = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    sources = server.ask("GET", "/v2/languages?type=source", headers=headers).json
    targets = server.ask("GET", "/v2/languages?type=target", headers=headers).json
    assert {one["language"] for one in sources} == {"EN", "EO"}
    assert {one["language"].upper() for one in targets} >= {"EO"}
    assert server.ask("GET", "/v2/glossary-language-pairs", headers=headers).json["supported_languages"]
    assert "glossaries" in server.ask("GET", "/v2/glossaries", headers=headers).json
    texts = ['the dog &amp; <x id="14"></x> near the house', "a cat"]
    body = {
        "text": texts,
        "source_lang": "EN",
        "target_lang": "EO",
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
    }
    found = [one["text"] for one in server.post("/v2/translate", body, **headers).json["translations"]]
    assert found[0].count('<x id="14"></x>') == 1
    assert "&amp;" in found[0] or "&" not in found[0]
    assert found[1]


VALUES = [None, "", "x", 7, -1, True, [], {}, [None], [["x"]], {"x": 1}, "EO", ["EO"], ["a", 7], "\0", "x" * 700, 1e400]
NAMES = [
    "text", "target_lang", "source_lang", "tag_handling", "ignore_tags", "splitting_tags", "glossary_id",
    "glossary_ids",
    "formality", "model_type", "style_id", "name", "entries", "entries_format", "dictionaries", "document_key", "type",
    "auth_key", "file", "show_billed_characters",
]  # fmt: skip
PLACES = [
    ("POST", "/v2/translate"), ("POST", "/v2/glossaries"), ("POST", "/v3/glossaries"), ("PATCH", "/v3/glossaries/{}"),
    ("PUT", "/v3/glossaries/{}/dictionaries"), ("DELETE", "/v3/glossaries/{}/dictionaries"), ("POST", "/v2/document"),
    ("POST", "/v2/document/x"), ("POST", "/v2/document/x/result"), ("GET", "/v2/languages"), ("GET", "/v2/usage"),
    ("GET", "/v3/glossaries/{}/entries"), ("GET", "/v2/glossaries/{}/entries"), ("DELETE", "/v2/glossaries/x"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "authorization", "status"),
    [({"auth_key": []}, "", 403), ({"file": [], "target_lang": "EO"}, f"DeepL-Auth-Key {KEY}", 400)],
)
def test_an_empty_list_is_no_value(server: Running, given: dict[str, object], authorization: str, status: int) -> None:
    answer = server.post("/v2/document", given, Authorization=authorization)
    assert (answer.status, list(answer.json)) == (status, ["message"])


def test_whatever_is_asked_the_service_does_not_fail(server: Running) -> None:
    """Values of every kind under every name: an answer with a message, and no error of the service."""
    headers, draw = {"Authorization": f"DeepL-Auth-Key {KEY}"}, random.Random(1)
    entries = {"entries": "dog\thundo", "entries_format": "tsv", "source_lang": "EN", "target_lang": "EO"}
    made = server.ask("POST", "/v3/glossaries", {"name": "x", "dictionaries": [entries]}, headers).json["glossary_id"]
    good = {"text": ["<b>a dog</b>"], "target_lang": "EO", "name": "y", **entries}
    for number in range(300):
        method, path = PLACES[number % len(PLACES)]
        given = good | {draw.choice(NAMES): draw.choice(VALUES) for _ in range(draw.randrange(4))}
        answer = server.ask(method, path.format(made), given, headers)
        assert answer.status < 500, (method, path, given, answer.body)
        assert answer.status < 400 or "message" in answer.json, (method, path, given, answer.body)
