"""Kill a training again and again, at random moments and while it writes a checkpoint; it must end as if never killed.

    python tests/support/chaos.py --kills 50 --processes 1

Prints the kills it took, where they fell, and the hashes of both ends. Exit code 1 where they differ.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

WORDS = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"]
CLOCK = ("seconds", "tokens_per_second")
SECONDS = 120.0  # that a training may take to come further: more is no training but a hang
FAR = 1_000_000  # steps: a training that is to be killed must not end before, however late the killer comes


def write_pairs(path: Path) -> None:
    draw = random.Random(1)
    lines = {" ".join(draw.choices(WORDS, k=draw.randint(2, 9))) for _ in range(900)}
    path.write_text("".join(f"{line}\t{line}\n" for line in sorted(lines)), encoding="utf-8")


def command(pairs: Path, out: Path, steps: int, processes: int) -> list[str]:
    values = {
        "model.vocab_size": 300, "model.encoder_layers": 1, "model.decoder_layers": 1, "model.d_model": 32,
        "model.d_ff": 64, "model.num_heads": 4, "model.dropout": 0.1, "data.hold_out": 20, "train.batch_tokens": 400,
        "train.micro_batch_tokens": 200, "train.peak_rate": 1e-3, "train.warmup_steps": 20, "train.valid_steps": 5,
        "train.valid_sentences": 2, "train.patience": 0, "train.threads": 1, "train.processes": processes,
        "train.schedule": "paper", "train.steps": steps,
    }  # fmt: skip
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "dragoman", "train", "--pairs", str(pairs), "--out", str(out), *settings]


def state(out: Path) -> dict[str, object]:
    """All that must be the same: weights, optimiser, the log but for clock readings."""
    last = sorted((out / "checkpoints").glob("step-*"))[-1]
    files = json.loads((last / "manifest.json").read_text())["files"]
    log = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return {
        "step": last.name,
        "model": files["model.safetensors"],
        "optimizer": files["optimizer.safetensors"],
        "log": [{key: value for key, value in line.items() if key not in CLOCK} for line in log],
        "translates": (out / "model.safetensors").read_bytes(),
    }


def reached(out: Path) -> int:
    """The step of the last checkpoint; 0 where there is none yet."""
    checkpoints = out / "checkpoints"
    names = [path.name for path in checkpoints.iterdir()] if checkpoints.is_dir() else []
    return max([0, *(int(name[5:]) for name in names if name[:5] == "step-")])


def wait_for_a_moment(training: subprocess.Popen[bytes], out: Path, draw: random.Random, step: int) -> str:
    """Until the training did something new since it was started, and then a random while; or it is writing."""
    writing = draw.random() < 0.5
    checkpoints, until = out / "checkpoints", time.monotonic() + SECONDS
    while training.poll() is None:
        if time.monotonic() > until:
            kill_all(training)
            return "after it hung"
        if writing and checkpoints.is_dir():
            names = [path.name for path in checkpoints.iterdir()]
            if any(name.endswith((".partial", ".outdated")) for name in names):
                return "while a checkpoint was written"
        if not writing and reached(out) >= step:
            time.sleep(draw.random() * 0.5)
            return "between"
        time.sleep(0.0005)
    return "after the end"


def kill_all(training: subprocess.Popen[bytes]) -> None:
    """The whole group at once, as a power cut would."""
    training.send_signal(signal.SIGSTOP)  # or it might start another while these are listed
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(training.pid)], capture_output=True, text=True)
    for pid in (training.pid, *map(int, children.stdout.split())):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    training.wait(SECONDS)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        pairs = base / "pairs.tsv"
        write_pairs(pairs)
        moments: Counter[str] = Counter()
        while moments.total() < asked.kills:
            target = reached(base / "killed") + 10 if moments else 0
            with (
                (base / "said").open("wb") as said,
                subprocess.Popen(command(pairs, base / "killed", FAR, asked.processes), stderr=said) as training,
            ):
                moment = wait_for_a_moment(training, base / "killed", draw, target)
                if moment in ("after the end", "after it hung"):
                    break
                kill_all(training)
            moments[moment] += 1
        if moments.total() < asked.kills:
            print(f"the training ended or hung after {moments.total()} kills")
            print((base / "said").read_text(encoding="utf-8"))
            return 1
        steps = reached(base / "killed") + 10
        for name in ("killed", "whole"):
            left = SECONDS + steps  # a step takes some hundredths of a second
            arguments = command(pairs, base / name, steps, asked.processes)
            end = subprocess.run(arguments, stderr=subprocess.PIPE, timeout=left)
            if end.returncode:
                print(end.stderr.decode())
                return 1
        whole, killed = state(base / "whole"), state(base / "killed")
    for moment, count in moments.items():
        print(f"{count} kills {moment}")
    print(f"never killed: {whole['model']}\nkilled {moments.total()} times: {killed['model']}")
    differ = [name for name in whole if whole[name] != killed[name]]
    print(f"different: {', '.join(differ)}" if differ else "weights, optimiser and log are the same")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
