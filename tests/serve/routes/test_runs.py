"""Runs over HTTP: their logs as they grow, replays, comparisons, results, and a run without a model."""

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.dataset import validation_pairs
from dragoman.inspection.inspector import Inspector
from dragoman.model.probe import Site
from dragoman.run_directory import RunDirectory
from dragoman.serve.pairs import ServedPair
from dragoman.serve.results import read_results
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.training.log_reader import read_history
from dragoman.translation.translator import Translator
from support.serving import Running, running
from support.uint16 import unpack
from support.waiting import PATIENCE, until

SENTENCE = "the old dog sees the red house"


class Events:
    """Server-sent events as they come."""

    def __init__(self, server: Running, method: str, path: str, body: Any = None) -> None:
        self.connection = server.connect()
        headers = {"Content-Type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        self.response = self.connection.getresponse()

    def close(self) -> None:
        self.response.close()
        self.connection.close()

    def __iter__(self) -> "Events":
        return self

    def __next__(self) -> tuple[str, Any]:
        name = ""
        while line := self.response.readline().decode():
            if line.startswith("event: "):
                name = line[7:].strip()
            elif line.startswith("data: "):
                return name, json.loads(line[6:])
        self.close()
        raise StopIteration


def copy_of(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to))


def service_of(*runs: Path, **more: Any) -> Service:
    return Service([ServedPair("en", "eo", run) for run in runs], Settings(port=0, rate_limit=0), **more)


def test_runs_are_described(served: Running, served_run: Path) -> None:
    (run,) = served.ask("GET", "/api/v1/runs").json
    history = read_history(RunDirectory(served_run))
    assert (run["name"], run["state"], run["checkpoints"], run["serves"]) == ("tiny", "finished", [30, 60, 90], True)
    assert run["best_bleu"] == max(point["bleu"] for point in history.valid)
    assert served.ask("GET", "/api/v1/runs/other/events").status == 404


def test_a_log_is_told_whole_and_then_as_it_grows(tiny_run: Path, tmp_path: Path) -> None:
    run = copy_of(tiny_run, tmp_path / "run")
    log = run / "metrics.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:3]))
    with running(service_of(run)) as server:
        events = Events(server, "GET", "/api/v1/runs/run/events")
        name, state = next(events)
        assert (name, state["state"], state["checkpoints"]) == ("state", "stopped", [30, 60, 90])
        assert (state["memory"], state["end"]) == (None, None)
        name, update = next(events)
        assert name == "log"
        told = update["train"]
        with log.open("ab") as file:
            file.write(b"".join(whole[3:]))
        while (name, state.get("state")) != ("log", "finished"):  # the log of the look that found it finished
            name, said = next(events)
            if name == "state":
                state = said
            else:
                update = said
                told += said["train"]
        assert state["end"]["average_bleu"] == pytest.approx(json.loads(whole[-1])["average_bleu"])
        assert told == read_history(RunDirectory(tiny_run)).train
        assert update["valid"][-1]["bleu"] == read_history(RunDirectory(tiny_run)).valid[-1]["bleu"]
        # Left open: a service that stops does not wait for it for ever.
    events.close()
    assert not server.thread.is_alive()


def test_a_replay_is_what_python_sees_in_that_checkpoint(served: Running, served_run: Path) -> None:
    said = []
    for step in (30, 90):
        answer = served.post("/api/v1/runs/tiny/replay", {"text": SENTENCE, "step": step})
        header, weights = unpack(answer.body)
        seen = Inspector.load(served_run, checkpoint=f"step-{step:08d}").inspect(SENTENCE)
        assert header["translation"] == seen.translation
        assert (tuple(header["source"]), tuple(header["produced"])) == (seen.source, seen.produced)
        assert header["log_probability"] == pytest.approx(seen.log_probability, abs=1e-4)
        assert weights[0] == pytest.approx(seen.weights[Site("cross", 0)].numpy(), abs=2e-5)
        said.append(seen.translation)
    assert said[0] != said[1]
    unkept = served.post("/api/v1/runs/tiny/replay", {"text": SENTENCE, "step": 31})
    assert (unkept.status, unkept.json["error"]) == (400, "tiny does not keep step 31; kept: 30, 60, 90")


def test_pinned_sentences_are_translated_and_their_references_scored(served: Running, served_run: Path) -> None:
    reference = "la malnova hundo vidas la rugan domon"
    sentences = [{"source": SENTENCE, "reference": reference}, {"source": "a cat"}]
    for step in (30, 90):
        inspector = Inspector.load(served_run, checkpoint=f"step-{step:08d}")
        first, second = served.post("/api/v1/runs/tiny/pinned", {"step": step, "sentences": sentences}).json
        assert first["translation"] == inspector.inspect(SENTENCE).translation
        scored = inspector.inspect(SENTENCE, reference)
        expected = scored.log_probability / len(scored.log_probabilities)
        assert first["reference_per_token"] == pytest.approx(expected, abs=1e-4)
        assert (second["translation"], second["reference_per_token"]) == (inspector.inspect("a cat").translation, None)
    header, _ = unpack(
        served.post("/api/v1/runs/tiny/replay", {"text": SENTENCE, "step": 90, "translation": reference}).body
    )
    assert header["log_probability"] == pytest.approx(scored.log_probability, abs=1e-4)


def test_five_sentences_of_the_validation_set_are_there_to_be_watched(served: Running, served_run: Path) -> None:
    offered = served.ask("GET", "/api/v1/runs/tiny/sentences").json
    assert len({one["source"] for one in offered}) == 5
    pairs = validation_pairs(served_run, 200)
    assert {(one["source"], one["reference"]) for one in offered} <= set(pairs)
    assert served.ask("GET", "/api/v1/runs/tiny/sentences").json == offered


def test_the_memory_of_a_training_is_told_while_it_goes_on(tiny_run: Path, tmp_path: Path) -> None:
    run = RunDirectory(copy_of(tiny_run, tmp_path / "run"))
    assert run.memory() is None
    with run.lock():  # this process trains in it
        found = run.memory()
        assert found is not None
        assert found % 2**24 == 0
        assert 2**24 < found < 2**40


def test_two_runs_are_compared(served_run: Path, tmp_path: Path) -> None:
    other = copy_of(served_run, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    config["train"]["seed"] = 7
    (other / "config.json").write_text(json.dumps(config))
    shutil.copy(other / "checkpoints" / "step-00000030" / "model.safetensors", other / "model.safetensors")
    with running(service_of(served_run, other)) as server:
        assert [run["serves"] for run in server.ask("GET", "/api/v1/runs").json] == [True, False]
        (difference,) = server.ask("GET", "/api/v1/compare/tiny/other").json
        assert difference["key"] == "train.seed"
        *progress, (last, report) = Events(server, "POST", "/api/v1/compare", {"a": "tiny", "b": "other"})
        assert [name for name, _ in progress] == ["progress"] * 2
        assert last == "done"
        assert report["scores"]["bleu"]["a"] > report["scores"]["bleu"]["b"]
        assert report["scores"]["sentences"] == 20
        for kept in other.glob("data/*/valid/text.json"):
            kept.write_text("[]")
        ((name, said),) = Events(server, "POST", "/api/v1/compare", {"a": "tiny", "b": "other"})
        assert (name, "share no validation pair" in said["error"]) == ("error", True)


def test_a_run_without_a_model_is_watched_and_served_when_it_has_one(tiny_run: Path, tmp_path: Path) -> None:
    run = copy_of(tiny_run, tmp_path / "run")
    model, checkpoints = run / "model.safetensors", run / "checkpoints"
    away = tmp_path / "away"
    away.mkdir()
    for path in (model, checkpoints):
        shutil.move(path, away)
    (run / "metrics.jsonl").unlink()
    with running(service_of(run)) as server:
        assert server.ask("GET", "/api/v1/service").json["pairs"] == []
        (watched,) = server.ask("GET", "/api/v1/runs").json
        assert (watched["state"], watched["has_model"], watched["step"]) == ("waiting", False, 0)
        asked = {"text": "the dog", "source": "en", "target": "eo"}
        assert server.post("/api/v1/translate", asked).status == 404
        assert server.ask("GET", "/").status == 200
        shutil.move(away / "model.safetensors", model)
        assert [pair["source"] for pair in server.ask("GET", "/api/v1/service").json["pairs"]] == ["en"]
        assert server.post("/api/v1/translate", asked).json["text"]


def test_a_newer_model_is_served_when_the_page_is_opened_again(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy_of(tiny_run, tmp_path / "run")
    first, *_, last = sorted((run / "checkpoints").iterdir())
    shutil.copy(first / "model.safetensors", run / "model.safetensors")
    asked = {"text": SENTENCE, "source": "en", "target": "eo"}

    def said(server: Running) -> tuple[str, float]:
        text = server.post("/api/v1/translate", asked).json["text"]
        return text, server.post("/api/v1/inside", {**asked, "translation": "la hundo"}).json["log_probability"]

    with running(service_of(run)) as server:
        before = said(server)
        server.ask("GET", "/api/v1/service")
        assert said(server) == before
        shutil.copy(last / "model.safetensors", tmp_path / "newer")
        (tmp_path / "newer").rename(run / "model.safetensors")
        assert said(server) == before  # from the cache, and from what is loaded
        until(lambda: server.ask("GET", "/api/v1/service") and said(server)[1] != before[1])
        newer = Inspector.load(run)
        after = Translator.load(run).translate([SENTENCE])[0]
        assert after != before[0]
        text, log_probability = said(server)
        assert text == after
        assert log_probability == pytest.approx(newer.inspect(SENTENCE, "la hundo").log_probability, abs=1e-4)
        (run / "model.safetensors").write_bytes(b"not a model")
        server.ask("GET", "/api/v1/service")
        until(lambda: f"dragoman: {run}/model.safetensors: " in capsys.readouterr().err)  # what it could not load
        assert said(server)[0] == after


def test_results_are_read_with_tolerance(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    files = {
        "one.json": {
            "experiment": "scaling",
            "claim": "c",
            "verdict": "held",
            "arms": [{"bleu": 3.0}, "odd"],
            "new": 1,
        },
        "deep/two.json": {"experiment": "bare"},
        "three.json": {"kind": "comparison", "a": "x", "b": "y", "sentences": []},
        "four.json": {"something": "else"},
        "five.json": [1, 2],
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "six.json").write_text("not json")
    found = read_results([tmp_path])
    assert {name: (one.kind, one.title, one.verdict) for name, one in found.items()} == {
        "one": ("experiment", "scaling", "held"),
        "two": ("experiment", "bare", ""),
        "three": ("comparison", "x and y", ""),
    }
    assert found["one"].content["arms"] == [{"bleu": 3.0}]
    assert (found["two"].content["arms"], found["two"].content["figures"]) == ([], [])


def test_a_key_is_asked_for_where_one_is_needed(served_run: Path) -> None:
    settings = Settings(port=0, api_keys=("0123456789abcdef",))
    with running(Service([ServedPair("en", "eo", served_run)], settings)) as server:
        for path in ("runs", "runs/tiny/events", "results"):
            assert server.ask("GET", f"/api/v1/{path}").status == 401
        answer = server.ask("GET", "/api/v1/runs", headers={"Authorization": "Bearer 0123456789abcdef"})
        assert answer.status == 200


def test_a_comparison_that_nobody_waits_for_stops(served_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.evaluation.compare.AT_A_TIME", 1)
    started, go_on, heard = threading.Event(), threading.Event(), []
    service = service_of(served_run)
    plain = service.models.translator_of

    def held(watched: Any) -> Any:
        started.set()
        assert go_on.wait(PATIENCE)
        return plain(watched)

    monkeypatch.setattr(service.models, "translator_of", held)
    original = service.runs.compare

    def watched_compare(*given: Any) -> Any:
        try:
            return original(*given)
        except Exception as error:
            heard.append(type(error).__name__)
            raise
        finally:
            heard.append("over")

    monkeypatch.setattr(service.runs, "compare", watched_compare)
    with running(service) as server:
        events = Events(server, "POST", "/api/v1/compare", {"a": "tiny", "b": "tiny"})
        assert started.wait(PATIENCE)
        events.close()
        # The request's own task ends when it knows that nobody listens.
        until(lambda: not server.server.server_state.tasks)
        go_on.set()
        until(lambda: "over" in heard)
    assert heard == ["NobodyWaitsError", "over"]
