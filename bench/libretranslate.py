"""LibreTranslate's own server with our Argos package, beside our server: the same model, machine and load.

    python -m venv .venv-libretranslate && .venv-libretranslate/bin/pip install libretranslate
    python bench/libretranslate.py RUN en-de sentences.en --python .venv-libretranslate/bin/python

The package is made by `dragoman export --format argos`, installed in a home of its own, and served by LibreTranslate as
its documentation says (waitress, no web page, no limits). Clients ask both by turns, a sentence a request, as many at a
time as the table says; ratios are within a round, the table has medians. Our cache is off; LibreTranslate's is for
whole paragraphs, and no line is asked twice within a round. CTranslate2 computes on both sides, with --threads each.
LibreTranslate's search is its own (beam 4, length penalty 0.2, one hypothesis); ours is the run's, by default beam 4.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from dragoman.export.formats import export


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextmanager
def running(name: str, command: list[str], port: int, environment: dict[str, str], log: Path) -> Iterator[str]:
    """A server that answers, until it is no longer needed."""
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            for _ in range(600):
                if process.poll() is not None:
                    raise SystemExit(f"{name} ended at its start:\n{log.read_text(errors='replace')[-2000:]}")
                try:
                    with urllib.request.urlopen(f"{address}/languages", timeout=5):
                        break
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    time.sleep(0.2)
            else:
                raise SystemExit(f"{name} did not answer within two minutes; see {log}")
            yield address
        finally:
            process.terminate()
            process.wait()


def ask(address: str, text: str, source: str, target: str) -> str:
    body = json.dumps({"q": text, "source": source, "target": target, "format": "text"}).encode()
    request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return str(json.load(answer)["translatedText"])


def asked(address: str, sentences: list[str], clients: int, pair: tuple[str, str]) -> tuple[float, float, list[str]]:
    """Sentences a second, the median wait in seconds, and the translations."""
    waits: list[float] = []

    def one(sentence: str) -> str:
        began = time.perf_counter()
        answer = ask(address, sentence, *pair)
        waits.append(time.perf_counter() - began)
        return answer

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(one, sentences))
    return len(sentences) / (time.perf_counter() - began), statistics.median(waits), answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("pair", help="en-de")
    parser.add_argument("sentences", type=Path, help="one a line")
    parser.add_argument("--python", required=True, help="of the environment that has libretranslate")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--count", type=int, default=200, help="sentences a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="keep the raw figures here")
    given = parser.parse_args()
    source, _, target = given.pair.partition("-")
    sentences = [line for line in given.sentences.read_text(encoding="utf-8").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        package = export(given.run, "argos", home / "model.argosmodel", languages=(source, target))
        apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        theirs_at = apart | {
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "ARGOS_PACKAGES_DIR": str(home / "packages"),
            "ARGOS_COMPUTE_TYPE": "float32",
            "ARGOS_PACKAGE_INDEX": "http://127.0.0.1:9/",  # nobody answers: it must not take its own model
            "ARGOS_INTRA_THREADS": str(given.threads),
        }
        install = "import sys; from argostranslate import package; package.install_from_path(sys.argv[1])"
        subprocess.run([given.python, "-c", install, str(package)], env=theirs_at, check=True)
        port, our_port = free_port(), free_port()
        theirs = [
            given.python, "-m", "libretranslate.main", "--host", "127.0.0.1", "--port", str(port), "--disable-web-ui",
            "--load-only", f"{source},{target}", "--threads", "32",
        ]  # fmt: skip
        ours = [
            sys.executable, "-m", "dragoman", "serve", "--pair", f"{given.pair}={given.run}", "--port", str(our_port),
            "--rate-limit", "0", "--cache-characters", "0", "--compute-type", "float32",
        ]  # fmt: skip
        our_environment = os.environ | {"OMP_NUM_THREADS": str(given.threads)}
        with (
            running("LibreTranslate", theirs, port, theirs_at, home / "theirs.log") as their_address,
            running("dragoman", ours, our_port, our_environment, home / "ours.log") as our_address,
        ):
            rows = []
            for clients in given.clients:
                rounds = []
                for number in range(given.rounds + 1):
                    start = number * given.count % max(1, len(sentences) - given.count)
                    part = sentences[start : start + given.count]
                    their_speed, their_wait, their_text = asked(their_address, part, clients, (source, target))
                    our_speed, our_wait, our_text = asked(our_address, part, clients, (source, target))
                    same = sum(a == b for a, b in zip(their_text, our_text, strict=True)) / len(part)
                    if number:  # the first loads the models
                        rounds.append((our_speed, their_speed, our_speed / their_speed, our_wait, their_wait, same))
                middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
                rows.append({"clients": clients, "rounds": rounds, "median": middle})
    print("| clients | ours, sentences/s | LibreTranslate | ratio | our median wait | theirs | same text |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        ours_s, theirs_s, ratio, our_wait, their_wait, same = row["median"]
        found = [one[2] for one in row["rounds"]]
        spread = f"{ratio:.2f} ({min(found):.2f} to {max(found):.2f})"
        waits = f"{1000 * our_wait:.0f} ms | {1000 * their_wait:.0f} ms"
        print(f"| {row['clients']} | {ours_s:.1f} | {theirs_s:.1f} | {spread} | {waits} | {same:.0%} |")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
