"""From a file to a translator, its report, and the same again after a stop; and the sizing, which is arithmetic."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.splitting import identity_of
from dragoman.quickstart import sizing
from dragoman.quickstart.report import Code, Curve, Section, Table, markdown, page
from support.lexicon import lexicon_pairs

SMALL = [
    part
    for key, value in {
        "model.vocab_size": 300,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.num_heads": 2,
        "train.steps": 24,
        "train.valid_steps": 12,
        "search.max_extra_length": 5,
        "train.processes": 1,
        "train.threads": 1,
    }.items()
    for part in ("--set", f"{key}={value}")
]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Any]) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("quickstart")
    pairs = directory / "my.jsonl"
    lines = [{"en": source, "eo": target} for source, target in lexicon_pairs(400, seed=2)]
    lines += [lines[0], {"en": "left open", "eo": ""}]
    pairs.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    languages = ["--source-language", "en", "--target-language", "eo"]
    command = ["quickstart", pairs, "--out", directory / "run", "--minutes", "5", *languages, *SMALL]
    ran = cli(*command)
    assert ran.code == 0, ran.stderr
    return directory / "run", (ran, command)


def test_a_run_that_translates_and_knows_its_languages(started: tuple[Path, Any], cli: Callable[..., Any]) -> None:
    run, (ran, _) = started
    assert ran.stdout.startswith("Verdict: not usable.\n  - ")  # 24 steps
    assert re.search(r"BLEU \d+\.\d\d, a copy of the source\s+\d+\.\d\d, on the same", ran.stdout)
    assert "Now:" not in ran.stdout
    assert max(map(len, ran.stdout.split("\n\n")[0].splitlines())) <= 80 or "dragoman doctor" in ran.stdout
    assert "none of which is in the training text" in ran.stdout
    assert re.search(r"Estimated \d+\.\d minutes of training for \d+ steps; it took", ran.stdout)
    assert "quantising" not in ran.stderr.replace("length penalty and quantising: not measured", "")
    assert "1 left out: not translated" in ran.stderr
    translated = cli("translate", run, "--engine", "reference", stdin="the dog\n")
    assert (translated.code, len(translated.stdout.splitlines())) == (0, 1)
    assert json.loads((run / "languages.json").read_text()) == {"source": "en", "target": "eo"}
    about = json.loads((run / "text" / "about.json").read_text())
    assert (about["read"], about["dropped"]) == (401, {"duplicate": 1})
    assert sum(about["pairs"].values()) == 400


def test_nothing_leaks(started: tuple[Path, Any]) -> None:
    run, _ = started
    train = {identity_of(line.split("\t")[0]) for line in (run / "text" / "train.tsv").read_text().splitlines()}
    for part in ("valid", "test"):
        held_out = (run / "text" / f"{part}.source").read_text().splitlines()
        assert len(held_out) == 20
        assert not train & set(map(identity_of, held_out))


def test_the_report_is_one_page_in_two_forms(started: tuple[Path, Any]) -> None:
    run, _ = started
    text, html = (run / "report.md").read_text(), (run / "report.html").read_text()
    for said in (
        "BLEU (cased, raw text)",
        "estimated by the probe",
        "dropped: duplicate",
        "en to eo",
        "dragoman serve",
    ):
        assert said in text
        assert said in html
    assert "<svg" in html
    names_only = html.replace('xmlns="http://www.w3.org/2000/svg"', "")  # nothing is fetched by the name of a namespace
    assert not re.search(r"(src|href)=|url\(|https?://", names_only)


@pytest.mark.parametrize(
    ("scores", "chosen"), [((30.0, 31.0, 32.0), 1.4), ((30.0, 31.0, 30.5), 1.0), ((3.0, 4.0, 5.0), 0.6)]
)
def test_the_length_penalty_is_chosen_by_bleu_where_that_tells_anything(
    scores: tuple[float, ...], chosen: float, started: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.evaluation.metrics import Score
    from dragoman.quickstart import scoring
    from dragoman.quickstart.text import QuickstartText
    from dragoman.run_directory import RunDirectory

    run = RunDirectory(shutil.copytree(started[0], tmp_path / "run"))
    values = iter(scores)
    monkeypatch.setattr(scoring, "bleu", lambda *_: Score("BLEU", next(values), "a signature"))
    data = QuickstartText(run.path / "text", json.loads((run.path / "text" / "about.json").read_text()))
    found = scoring.choose_penalty(run, data, 300)
    assert found == dict(zip((0.6, 1.0, 1.4), scores, strict=True))
    assert run.read_config().search.alpha == chosen


def test_what_is_left_of_sentences_that_measure_is_not_told(
    started: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning, which is an error here, would name the line of a text that the user does not know."""
    from dragoman.quickstart import scoring
    from dragoman.quickstart.text import QuickstartText
    from dragoman.run_directory import RunDirectory
    from dragoman.translation.translator import Translator

    run = RunDirectory(shutil.copytree(started[0], tmp_path / "run"))
    data = QuickstartText(run.path / "text", json.loads((run.path / "text" / "about.json").read_text()))
    monkeypatch.setattr("dragoman.translation.fallbacks.FALLBACKS", ())
    (run.path / "text" / "valid.source").write_text("the {x} dog\n" * 20, encoding="utf-8")
    with pytest.warns(UserWarning, match="left in part as it was: lost: {x}"):
        Translator.load(run.path).translate(data.source("valid"))
    assert scoring.choose_penalty(run, data, 300)


def test_the_report_opens_with_the_verdict_and_says_what_was_not_measured(started: tuple[Path, Any]) -> None:
    text = (started[0] / "report.md").read_text()
    assert text.split("\n")[2:5] == ["## Verdict", "", "Not usable."]
    assert "a copy of the source" in text
    assert "- Length penalty and quantising: not measured, as the validation sentences are translated too badly" in text
    assert "- Not calibrated: 20 sentences to calibrate with" in text


def test_it_calibrates_by_itself_and_the_verdict_says_what_that_is_worth(
    started: tuple[Path, Any], tiny_run: Path, tiny_text: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """With a model that knows its words, sentences that it cannot know, and no time left for anything else."""
    from dragoman.quickstart import scoring
    from dragoman.quickstart.budget import TimeBudget
    from dragoman.quickstart.report import terminal_lines
    from dragoman.quickstart.text import QuickstartText
    from dragoman.run_directory import RunDirectory

    run = RunDirectory(shutil.copytree(tiny_run, tmp_path / "run"))
    data = QuickstartText(
        shutil.copytree(started[0] / "text", run.quickstart_text_path),
        json.loads((started[0] / "text" / "about.json").read_text()),
    )
    known = [line.split("\t") for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()]
    pairs = [*known[:60], *([f"qxz{number} wvk bdf", "io alia"] for number in range(60))]
    for part, taken in (("valid", pairs), ("test", [*known[60:80], *pairs[-10:]])):
        (data.directory / f"{part}.source").write_text("".join(f"{source}\n" for source, _ in taken), encoding="utf-8")
        (data.directory / f"{part}.reference.0").write_text("".join(f"{t}\n" for _, t in taken), encoding="utf-8")
    plan = sizing.Plan("tiny", 1000.0, 0.1, 90, 5.0, {})
    said: list[str] = []
    outcome = scoring.finish(run, data, plan, False, TimeBudget(0.1, before=1000), said.append)
    assert run.confidence_path.exists()
    assert outcome.calibration is not None
    assert outcome.quantised is None
    assert not any("not calibrated" in line for line in said)
    assert outcome.facts.sure is not None
    reason = f"with --min-confidence {outcome.facts.sure.confidence:.2f} it translates"
    assert reason in " ".join(" ".join(terminal_lines(outcome)).split())
    assert "confidence" in json.loads(cli("translate", run.path, "--json", stdin="the dog\n").stdout)


def test_a_finished_command_does_nothing_twice(
    started: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    run, (first, command) = started
    monkeypatch.setattr("dragoman.quickstart.pipeline.finish", lambda *_: pytest.fail("it is measured again"))
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    ran = cli(*command)
    assert (ran.code, ran.stdout) == (0, first.stdout), ran.stderr
    assert "nothing is left to do" in ran.stderr
    changed = [path.name for path, when in before.items() if path.stat().st_mtime_ns != when]
    assert [name for name in changed if name not in ("quickstart.json",)] == []
    content = json.loads(cli(*command, "--json").stdout)
    assert (content["kind"], content["plan"]["size"]) == ("not usable", "tiny")
    assert content["actual"]["all_minutes"] > content["actual"]["minutes"]


def test_another_command_is_not_taken_for_the_same(started: tuple[Path, Any], cli: Callable[..., Any]) -> None:
    run, (_, command) = started
    refused = cli(*[part if part != "5" else "4" for part in command])
    assert (refused.code, "planned with --minutes 5, not 4" in refused.stderr) == (3, True)
    refused = cli(*command, "--set", "model.dropout=0.3")
    assert (refused.code, "model.dropout=0.3; give another --out" in refused.stderr) == (3, True)
    other = [*command]
    other[1] = Path(str(command[1])).with_suffix(".tsv")
    assert "holds a quickstart of" in cli(*other).stderr
    pairs = Path(str(command[1]))
    content = pairs.read_bytes()
    pairs.write_bytes(content.replace(b"the", b"a"))
    refused = cli(*command)
    pairs.write_bytes(content)
    assert (refused.code, f"changed since {run} was begun with it" in refused.stderr) == (3, True)


def test_more_minutes_go_on_from_where_it_is(tmp_path: Path, cli: Callable[..., Any]) -> None:
    pairs = tmp_path / "my.tsv"
    pairs.write_text("".join(f"{s}\t{t}\n" for s, t in lexicon_pairs(400, seed=2)), encoding="utf-8")
    without_steps = [
        part
        for flag, part in zip(SMALL[::2], SMALL[1::2], strict=True)
        if "train.steps" not in part
        for part in (flag, part)
    ]
    command = ["quickstart", pairs, "--out", tmp_path / "run", *without_steps, "--minutes"]
    first = cli(*command, "0.1")
    assert first.code == 0, first.stderr
    assert "--minutes 0.1 is little: reading, probing and scoring alone take about" in first.stderr
    reached = json.loads((tmp_path / "run" / "model.json").read_text())["finished_at"]
    shutil.copy(tmp_path / "run" / "outcome.json", tmp_path / "first.json")
    longer = cli(*command, "0.4", "--json")
    assert longer.code == 0, longer.stderr
    assert "planned for 0.1 minutes before, going on to 0.4" in longer.stderr
    assert f"going on from step {reached:,}" in longer.stderr
    content = json.loads(longer.stdout)
    assert content["actual"]["steps"] > reached  # measured anew, whichever weights are the best
    assert (
        content["actual"]["minutes"] > json.loads((tmp_path / "first.json").read_text())["values"]["actual"]["minutes"]
    )
    assert json.loads((tmp_path / "run" / "quickstart.json").read_text())["minutes"] == 0.4


def test_a_new_file_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    from dragoman.errors import DataError
    from dragoman.quickstart.text import prepare_data
    from dragoman.run_directory import RunDirectory

    folder = tmp_path / "texts"
    folder.mkdir()
    run = RunDirectory(folder / "run")  # what it writes itself is none of the text
    lines = [f"{source}\t{target}\n" for source, target in lexicon_pairs(400, seed=2)]
    (folder / "a.tsv").write_text("".join(lines), encoding="utf-8")
    first = prepare_data([folder], run, ("en", "eo"), 1, lambda _: None)
    assert prepare_data([folder], run, ("en", "eo"), 1, lambda _: None).about == first.about
    (folder / "b.tsv").write_text(lines[0], encoding="utf-8")
    with pytest.raises(DataError, match=r"b\.tsv: is new since .*run was begun with its folder"):
        prepare_data([folder], run, ("en", "eo"), 1, lambda _: None)
    for name in ("a.tsv", "b.tsv"):  # what is gone is not needed any more
        (folder / name).unlink()
    assert prepare_data([folder], run, ("en", "eo"), 1, lambda _: None).about == first.about


def test_too_little_is_refused(tmp_path: Path, cli: Callable[..., Any]) -> None:
    (tmp_path / "few.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in lexicon_pairs(50, seed=1)), encoding="utf-8")
    ran = cli("quickstart", tmp_path / "few.tsv", "--out", tmp_path / "run")
    assert (ran.code, "50 of 50 pairs are left after cleaning" in ran.stderr) == (3, True)
    assert cli("quickstart", tmp_path / "few.tsv", "--source-language", "en").code == 2
    refused = cli("quickstart", tmp_path / "few.tsv", "--source-language", "en_US", "--target-language", "de")
    assert (refused.code, "language 'en_US'" in refused.stderr) == (2, True)


def test_a_model_that_no_memory_holds_is_one_line(tmp_path: Path, cli: Callable[..., Any]) -> None:
    (tmp_path / "my.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in lexicon_pairs(300, seed=1)), encoding="utf-8")
    ran = cli("quickstart", tmp_path / "my.tsv", "--out", tmp_path / "run", *SMALL, "--set", "model.d_model=131072")
    assert ran.code == 1
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("dragoman: ")]
    assert line == ran.stderr.splitlines()[-1]
    assert line.startswith("dragoman: the probe of a few training steps failed: a model of ")


def test_larger_models_for_more_text_and_time() -> None:
    speeds = {"tiny": 5000.0, "small": 3500.0, "medium": 1800.0}
    little, much = sizing.CorpusSize(2_000, 20_000), sizing.CorpusSize(300_000, 4_000_000)
    assert [size.name for size in sizing.candidates(little, 600)] == ["tiny"]
    # The largest first, and down to the smallest: where time is short, no other may see the text often enough.
    assert [size.name for size in sizing.candidates(much, 600)] == ["medium", "small", "tiny"]
    assert [size.name for size in sizing.candidates(much, 10)] == ["tiny"]
    hurried, patient = (
        sizing.choose(much, minutes, {size.name: speeds[size.name] for size in sizing.candidates(much, minutes)})
        for minutes in (10, 600)
    )
    assert (hurried.size, patient.size) == ("tiny", "medium")
    assert (hurried.settings["model.dropout"], patient.settings["model.dropout"]) == (0.0, 0.1)
    short = sizing.choose(little, 600, {"tiny": 5000.0})
    assert short.minutes < 10  # it is done long before: more would be learned by heart
    assert short.settings["train.steps"] == short.steps
    assert short.settings["model.dropout"] == 0.3
    adam = sizing.choose(much, 10, {"tiny": 5000.0}, optimizer="adam")
    assert adam.settings["train.peak_rate"] == hurried.settings["train.peak_rate"] / 2
    # A user who insists on larger steps gets fewer of them, and the plan says so.
    larger = sizing.choose(much, 10, {"tiny": 5000.0}, batch_tokens=4000)
    assert larger.steps == 750
    assert larger.epochs == pytest.approx(hurried.epochs, rel=0.01)


@pytest.mark.parametrize("pairs", [300, 2_000, 30_000, 300_000])
@pytest.mark.parametrize("minutes", [0.5, 10, 600])
def test_every_plan_is_a_configuration(pairs: int, minutes: float) -> None:
    from dragoman.config.recipes import load

    corpus = sizing.CorpusSize(pairs, 12 * pairs)
    speeds = {size.name: 4000.0 for size in sizing.candidates(corpus, minutes)}
    plan = sizing.choose(corpus, minutes, speeds)
    config = load(None, [(key, value, "plan") for key, value in plan.settings.items()]).config
    assert config.train.warmup_steps < max(21, plan.steps)
    assert plan.minutes <= minutes * 1.01
    assert 10 <= sizing.held_out(pairs) <= 1000


def test_what_users_wrote_is_text_in_both_forms() -> None:
    odd = "<script>|&"
    sections: list[Section] = [("Head", [odd, Table(("a",), [(odd,)]), Code([odd]), Curve([(1, 2.0)])])]
    assert "<script>" not in page("t", sections)
    assert r"\|" in markdown("t", sections)
