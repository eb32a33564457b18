"""How the service bears load: sentences a second and waiting times, overload, memory.

    python bench/serve.py load RUN en-de sentences.en     # needs wrk (Debian: apt install wrk)
    python bench/serve.py overload RUN en-de sentences.en
    python bench/serve.py soak RUN en-de sentences.en --minutes 10

`load` starts two servers on free ports of this machine: ours as it is, and one that takes one request at a time (one
worker, one sentence a batch). wrk asks them in turn, a sentence a request, each of its clients the next line of the
file; the cache is off. Ratios are within a round, so that a busy machine tells on both sides; the table has medians.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

CLIENTS = (1, 8, 64, 256)
ONE_AT_A_TIME = ("--workers", "1", "--batch-tokens", "1", "--batch-wait", "0")

# wrk runs this in each of its threads. A request's latency is the client's own, from its first byte to the last.
SCRIPT = r"""
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at = math.random(#bodies)
wrk.headers["Content-Type"] = "application/json"
request = function()
  at = at %% #bodies + 1
  return wrk.format("POST", "/translate", nil, bodies[at])
end
done = function(summary, latency)
  local lost = summary.errors.timeout + summary.errors.connect + summary.errors.read
  io.write(string.format("RESULT %%d %%d %%d %%d %%d %%d\n", summary.requests, summary.duration, summary.errors.status,
    lost, latency:percentile(50), latency:percentile(99)))
end
"""


@contextmanager
def served(run: str, pair: str, *options: str) -> Iterator[tuple[str, int]]:
    """The command as anyone would run it: its address, and its process."""
    command = [sys.executable, "-m", "dragoman", "serve", "--pair", f"{pair}={run}", "--port", "0", "--rate-limit", "0"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+?(?=/$)", said.strip())
        if found is None:
            sys.exit(said + process.stderr.read())
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait()


def bodies(sentences: Path, pair: str) -> list[bytes]:
    source, _, target = pair.partition("-")
    lines = sentences.read_text(encoding="utf-8").splitlines()
    return [json.dumps({"q": line, "source": source, "target": target}).encode() for line in lines if line.strip()]


def ask(address: str, body: bytes) -> tuple[int, str | None]:
    request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
            return answer.status, None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("Retry-After")


def wrk(address: str, script: Path, clients: int, seconds: int) -> dict[str, float]:
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "120s", "-s", str(script), address]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", said)
    if found is None:
        sys.exit(said)
    requests, micros, wrong, lost, p50, p99 = map(int, found.groups())
    if requests == 0:
        sys.exit(f"bench: no answer within {seconds} s; give more --seconds, or a machine that is less busy")
    return {"rate": requests / micros * 1e6, "p50": p50 / 1000, "p99": p99 / 1000, "errors": wrong + lost}


def load(arguments: argparse.Namespace) -> None:
    if shutil.which("wrk") is None:
        sys.exit("bench: wrk is missing; install it (Debian: apt install wrk)")
    with tempfile.TemporaryDirectory() as directory:
        lines, script = Path(directory) / "bodies", Path(directory) / "load.lua"
        lines.write_bytes(b"\n".join(bodies(arguments.sentences, arguments.pair)) + b"\n")
        script.write_text(SCRIPT % lines)
        uncached = ("--cache-characters", "0")
        with (
            served(arguments.run, arguments.pair, *uncached) as (together, _),
            served(arguments.run, arguments.pair, *uncached, *ONE_AT_A_TIME) as (single, _),
        ):
            sides = "sentences/s | p50 ms | p99 ms"
            print(f"| clients | together: {sides} | one at a time: {sides} | ratio |")
            print("|---|---|---|---|---|---|---|---|", flush=True)
            for clients in CLIENTS:
                rounds = [
                    (wrk(together, script, clients, arguments.seconds), wrk(single, script, clients, arguments.seconds))
                    for _ in range(arguments.rounds)
                ]
                ratios = [ours["rate"] / other["rate"] for ours, other in rounds]
                cells = [
                    f"{statistics.median(one[side][name] for one in rounds):.{digits}f}"
                    for side in (0, 1)
                    for name, digits in (("rate", 1), ("p50", 0), ("p99", 0))
                ]
                spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                print(f"| {clients} | {' | '.join(cells)} | {spread} |", flush=True)
                if errors := sum(one["errors"] for both in rounds for one in both):
                    print(f"{errors:.0f} requests failed at {clients} clients")


def overload(arguments: argparse.Namespace) -> None:
    """Far more clients than the queue holds, then one."""
    given = bodies(arguments.sentences, arguments.pair)
    with served(arguments.run, arguments.pair, "--queue-limit", "16", "--cache-characters", "0") as (address, _):
        with ThreadPoolExecutor(128) as pool:
            answers = list(pool.map(lambda body: ask(address, body), (given * 2)[:1500]))
        statuses = Counter(status for status, _ in answers)
        unsaid = sum(status == 503 and not (retry or "").isdecimal() for status, retry in answers)
        afterwards = [ask(address, body)[0] for body in given[:20]]
        print(f"1,500 requests by 128 clients, a queue of 16: {dict(statuses)}; 503 without Retry-After: {unsaid}")
        print(f"20 requests afterwards: {dict(Counter(afterwards))}")
        if unsaid or set(statuses) - {200, 503} or 503 not in statuses or set(afterwards) != {200}:
            sys.exit("overload: not as it should be")


def resident(process: int) -> float:
    """Memory of the process in MiB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def soak(arguments: argparse.Namespace) -> None:
    """Different sentences all the time from eight clients; the memory of the second half against the first."""
    given = [json.loads(body) for body in bodies(arguments.sentences, arguments.pair)]
    samples: list[tuple[float, float]] = []
    counts: Counter[int] = Counter()
    with served(arguments.run, arguments.pair, "--cache-characters", "100000") as (address, process):
        began, seconds = time.monotonic(), arguments.minutes * 60

        def client(number: int) -> None:
            asked = 0
            while time.monotonic() - began < seconds:
                one = given[(number * 7919 + asked) % len(given)]
                # A number makes each sentence new, so that nothing but the cache's own bound keeps memory flat.
                body = {**one, "q": f"{one['q']} {number}{asked}", "alternatives": asked % 4}
                status, _ = ask(address, json.dumps(body).encode())
                counts[status] += 1
                asked += 1

        threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        step = max(1.0, seconds / 40)
        while (elapsed := time.monotonic() - began) < seconds:
            samples.append((elapsed, resident(process)))
            print(f"{elapsed:6.0f} s  {samples[-1][1]:7.1f} MiB  {sum(counts.values()):7d} requests", flush=True)
            time.sleep(step)
        for thread in threads:
            thread.join()
    # The first tenth is the warming up.
    steady = [memory for elapsed, memory in samples if elapsed > seconds / 10]
    half = len(steady) // 2
    first, second = statistics.median(steady[:half]), statistics.median(steady[half:])
    print(f"{sum(counts.values()):,} requests ({dict(counts)}); median memory {first:.1f} MiB in the first half, "
          f"{second:.1f} MiB in the second: {second - first:+.1f} MiB")  # fmt: skip
    if second > 1.05 * first:
        sys.exit("soak: memory grew by more than 5 %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("load", "overload", "soak"))
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("pair", help="its languages, for example en-de")
    parser.add_argument("sentences", type=Path, help="one a line")
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement of load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10.0, help="of the soak")
    arguments = parser.parse_args()
    {"load": load, "overload": overload, "soak": soak}[arguments.what](arguments)


if __name__ == "__main__":
    main()
