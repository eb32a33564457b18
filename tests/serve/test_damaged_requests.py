"""Requests that are damaged on their way: each has an answer, and none is an error of the service."""

import json
import random
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.serving import Running, running, service_of

LONGEST_WAIT = 60.0  # seconds for an answer
TOKENS = [
    b"\r\n", b"\n", b"\r", b"\0", b"\xff", b" ", b"\t", b":", b"\r\n\r\n", b"HTTP/1.1", b"HTTP/2.0", b"GET ",
    b"POST ", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: x\r\n",
    b"Content-Length: 99999999999\r\n", b"Content-Length: 5, 6\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n", b"Expect: 100-continue\r\n", b"Host: localhost\r\n", b"Host: evil.example\r\n",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Connection: close\r\n", b"X: " + b"y" * 70_000 + b"\r\n",
    b"a: b\r\n" * 300, b"%00", b"%ff", b"..%2f", b"?q=%zz", b"\xc3\xa9", b"{", b"}", b"[" * 3000, b'"\\ud800"',
    b"null", b"1e999", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"5\r\nabcde\r\n", b"ffffffffff\r\n",
]  # fmt: skip

GLOSSARY = {"name": "x", "source_lang": "en", "target_lang": "eo", "entries": "dog\tx", "entries_format": "tsv"}


def request(method: str, path: str, body: bytes = b"", kind: str = "application/json", chunked: bool = False) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    if chunked:
        return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def seeds() -> list[bytes]:
    question = json.dumps({"q": "the dog", "source": "en", "target": "eo"}).encode()
    own = json.dumps({"text": "the dog", "source": "en", "target": "eo"}).encode()
    file = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nthe dog\r\n'
        b'--x\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n'
        b'--x\r\nContent-Disposition: form-data; name="target"\r\n\r\neo\r\n--x--\r\n'
    )
    return [
        request("GET", "/health"),
        request("GET", "/languages?a=b"),
        request("HEAD", "/health"),
        request("OPTIONS", "/translate"),
        request("POST", "/translate", question),
        request("POST", "/translate", question, chunked=True),
        request("POST", "/translate", b"q=the+dog&source=en&target=eo", "application/x-www-form-urlencoded"),
        request("POST", "/translate_file", file, "multipart/form-data; boundary=x"),
        request("POST", "/api/v1/translate", own),
        request("POST", "/api/v1/translate/stream", own),
        request("POST", "/v2/translate", json.dumps({"text": ["the dog"], "target_lang": "EO"}).encode()),
        request("POST", "/v2/glossaries", json.dumps(GLOSSARY).encode()),
        request("GET", "/v2/languages?type=target"),
        request("GET", "/MTRestService/TranslateJson?input=a&srcLangCode=en&trgLangCode=eo"),
        request("GET", "/api/v1/service") + request("GET", "/health"),
    ]


def damaged(draw: random.Random, good: list[bytes]) -> bytes:
    data = bytearray(draw.choice(good))
    for _ in range(draw.choice((1, 1, 2, 3))):
        head = data.find(b"\r\n\r\n") + 4
        at = draw.randrange((head if draw.random() < 0.7 else len(data)) + 1)
        match draw.randrange(7):
            case 0:
                data[at : at + 1] = draw.randbytes(1)
            case 1:
                del data[at : at + draw.choice((1, 4, 40))]
            case 2:
                data[at:at] = draw.randbytes(draw.choice((1, 8, 2000)))
            case 3:
                del data[at:]
            case 4:
                data += draw.choice(good)
            case 5 if (line := data.rfind(b"\r\n", 0, at) + 2) > 1:
                data[line:line] = draw.choice(TOKENS)
            case _:
                data[at:at] = draw.choice(TOKENS)
    return bytes(data)


def answer_to(server: Running, data: bytes) -> str:
    """The status of the first answer, or how it ended without one. As most clients do it says all, and then listens."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LONGEST_WAIT) as connection:
        found = b""
        try:
            connection.sendall(data)
            while len(found) < 12 and (part := connection.recv(4096)):
                found += part
        except (ConnectionResetError, BrokenPipeError):
            return "reset"
        return found[9:12].decode("latin-1") if found.startswith(b"HTTP/1.") else "closed"


@pytest.fixture(scope="module")
def impatient(served_run: Path) -> Iterator[Running]:
    """Gives up soon what does not come: half of a request is not completed by anyone here."""
    with running(service_of(served_run, header_seconds=1.0, body_seconds=1.0, body_limit=100_000)) as server:
        yield server


def ask_all(server: Running, count: int, seed: int) -> Counter[str]:
    good = seeds()
    requests = [damaged(random.Random(f"{seed} {number}"), good) for number in range(count)]
    asked = [data for data in requests if data.strip(b"\r\n")]  # of an empty line nothing can be answered
    with ThreadPoolExecutor(8) as pool:
        return Counter(pool.map(lambda data: answer_to(server, data), asked))


def test_a_good_request_is_answered(impatient: Running) -> None:
    assert {answer_to(impatient, data) for data in seeds()} == {"200", "201", "405"}


@pytest.mark.filterwarnings("ignore:Exception ignored in. <function SpooledTemporaryFile")
def test_every_damaged_request_has_an_answer(impatient: Running) -> None:
    answers = ask_all(impatient, 200, seed=1)
    assert set(answers) <= {"100", "200", "201", "400", "403", "404", "405", "408", "413", "415", "421", "422", "499"}
    assert answers["200"]
    assert answers["400"]
    assert impatient.ask("GET", "/health").status == 200


# A form that ends in the middle of a file: starlette leaves that to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function SpooledTemporaryFile")
@pytest.mark.full
def test_so_have_many(impatient: Running) -> None:
    answers = ask_all(impatient, 1500, seed=2)
    assert not {"closed", "reset", "500"} & set(answers)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"A" * 1_000_000, "400"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 5_000_000 + b"\r\n\r\n", "400"),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000, "413"),
        (b"POST /translate HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 900000\r\n\r\n" + b"x" * 900_000, "421"),
        (request("POST", "/translate", b"{}", chunked=True).replace(b"2\r\n", b"zz\r\n"), "400"),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{", "408"),
        (b"GET /health HTT", "408"),
    ],
    ids=["no HTTP", "long header", "long body", "body for another", "bad chunk", "half a body", "half a line"],
)
def test_who_is_refused_half_way_can_read_why(data: bytes, status: str, impatient: Running) -> None:
    """Although it goes on sending: a connection closed before all of that was read would lose the answer."""
    for _ in range(3):
        assert answer_to(impatient, data) == status


def test_a_client_that_breaks_off_disturbs_nobody(impatient: Running, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(60):
        connection = socket.create_connection(("127.0.0.1", impatient.port), timeout=LONGEST_WAIT)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
        connection.sendall((b"nonsense\r\n\r\n", seeds()[4], seeds()[4][:-3])[number % 3])
        connection.close()
    assert impatient.ask("GET", "/health").status == 200
    assert capfd.readouterr().err == ""
