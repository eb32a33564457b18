"""Serving where Python lacks what only POSIX systems have."""

import json
import subprocess
import sys
from pathlib import Path

SERVED_WITHOUT_POSIX = """
import signal, sys
# These choose by the system that they find, which is not Windows: they come before anything is taken away.
import asyncio, multiprocessing.pool, subprocess
import ctranslate2, fastapi, limits, numpy, prometheus_client, sacrebleu, sentencepiece, uvicorn
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None  # an import fails, as on Windows
for name in ("SIGHUP", "SIGQUIT", "SIGKILL", "SIGALRM", "SIGUSR1"):
    delattr(signal, name)
from pathlib import Path
from support.serving import running, service_of
run, corrections = map(Path, sys.argv[1:])
with running(service_of(run, corrections=corrections)) as server:
    question = {"text": "a dog", "source": "en", "target": "eo"}
    kept = server.post("/api/v1/corrections", {**question, "translation": "hundo!"})
    answers = [
        server.post("/translate", {"q": "a cat", "source": "en", "target": "eo"}),
        server.post("/api/v1/translate", question),
        server.post("/translate", {"q": "<b>a cat</b>", "source": "en", "target": "eo", "format": "html"}),
        server.ask("GET", "/api/v1/runs"),
    ]
print([answer.status for answer in (kept, *answers)], answers[1].json["text"])
"""


def test_a_run_is_served_without_what_windows_lacks(served_run: Path, tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    program = f"import sys; sys.path.insert(0, {json.dumps(str(tests))})\n{SERVED_WITHOUT_POSIX}"
    command = [sys.executable, "-c", program, str(served_run), str(tmp_path / "kept.sqlite")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "[200, 200, 200, 200, 200] hundo!\n"), ran.stderr
