"""A good corpus is broken in every way: the right cause comes first, and nothing is said of the good one."""

import dataclasses
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import RunConfig, TrainConfig
from dragoman.data.corpus import SentencePair
from dragoman.diagnosis import run_checks as of_run
from dragoman.diagnosis.causes import ranked
from dragoman.diagnosis.corpus_checks import examine_text
from dragoman.diagnosis.machine_checks import examine_environment
from dragoman.diagnosis.output_checks import examine_outputs, loops

# A small language pair with real words, so that languages can be told apart and every word has one translation.
SUBJECTS = {
    "the teacher": "der Lehrer", "my neighbour": "mein Nachbar", "the old captain": "der alte Kapitän",
    "our doctor": "unser Arzt", "the student": "der Student", "her brother": "ihr Bruder", "the baker": "der Bäcker",
    "the farmer": "der Bauer", "his uncle": "sein Onkel", "the painter": "der Maler", "the judge": "der Richter",
}  # fmt: skip
VERBS = {
    "buys": "kauft", "sells": "verkauft", "finds": "findet", "forgets": "vergisst", "describes": "beschreibt",
    "paints": "malt", "carries": "trägt", "breaks": "zerbricht", "washes": "wäscht", "hides": "versteckt",
}  # fmt: skip
OBJECTS = {
    "bread": "Brot", "flowers": "Blumen", "books": "Bücher", "apples": "Äpfel", "letters": "Briefe", "chairs": "Stühle",
    "shoes": "Schuhe", "clocks": "Uhren", "pictures": "Bilder", "horses": "Pferde", "bottles": "Flaschen",
    "knives": "Messer", "keys": "Schlüssel", "windows": "Fenster", "tables": "Tische", "stamps": "Briefmarken",
    "candles": "Kerzen", "coats": "Mäntel", "carpets": "Teppiche", "baskets": "Körbe", "lamps": "Lampen",
    "umbrellas": "Regenschirme", "mirrors": "Spiegel", "hammers": "Hämmer", "guitars": "Gitarren",
}  # fmt: skip
PLACES = {
    "": "", " in the garden": " im Garten", " behind the church": " hinter der Kirche",
    " near the railway station": " in der Nähe des Bahnhofs", " at the market on Saturday": " am Samstag auf dem Markt",
    " while it is raining outside": ", während es draußen regnet",
    " because nobody else has the time for it": ", weil sonst niemand die Zeit dafür hat",
}  # fmt: skip


def good(count: int = 1500, seed: int = 1) -> list[SentencePair]:
    draw = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        (subject, wer), (verb, tut), (thing, was), (place, wo) = (
            draw.choice(list(words.items())) for words in (SUBJECTS, VERBS, OBJECTS, PLACES)
        )
        number = draw.randrange(2, 2000)
        found[f"{subject.capitalize()} {verb} {number} {thing}{place}."] = (
            f"{wer.capitalize()} {tut} {number} {was}{wo}."
        )
    return list(found.items())


GOOD = good()
TEST = good(1600, seed=1)[1500:]


def change(share: float, how: Callable[[str, str], SentencePair], seed: int = 3) -> list[SentencePair]:
    draw = random.Random(seed)
    return [how(source, target) if draw.random() < share else (source, target) for source, target in GOOD]


def shifted(pairs: list[SentencePair]) -> list[SentencePair]:
    return list(zip([s for s, _ in pairs], [pairs[-1][1], *(t for _, t in pairs[:-1])], strict=True))


FRENCH = "Le vieux capitaine achète des fleurs et des pommes au marché parce que personne n'a le temps."
BROKEN: dict[str, Callable[[], list[SentencePair]]] = {
    "misaligned": lambda: GOOD[:900] + shifted(GOOD[900:]),
    "duplicates": lambda: GOOD + GOOD[:700],
    "wrong language": lambda: change(0.2, lambda s, _: (s, FRENCH)),
    "encoding damage": lambda: change(0.5, lambda s, t: (s, t.encode().decode("cp1252", errors="replace"))),
    "casing": lambda: [(s, t.lower()) for s, t in GOOD],
    "untranslated copies": lambda: change(0.1, lambda s, _: (s, s)),
    "tokenised text": lambda: [(s.replace(".", " ."), t.replace(".", " .").replace(",", " ,")) for s, t in GOOD],
    "HTML entities": lambda: change(0.3, lambda s, t: (f"&quot;{s}&quot;", f"&quot;{t}&quot;")),
}


def test_a_good_corpus_has_no_causes() -> None:
    assert examine_text(GOOD, "good.tsv", TEST) == []
    by_length = sorted(GOOD, key=lambda pair: len(pair[0]))  # lengths say nothing there
    assert examine_text(by_length, "good.tsv") == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_corpus_is_told_by_its_cause(name: str) -> None:
    causes = examine_text(BROKEN[name](), "broken.tsv", TEST)
    assert [cause.name for cause in causes[:1]] == [name]
    assert all(value for value in (causes[0].finding, causes[0].evidence, causes[0].cost))
    assert "broken.tsv" in causes[0].remedy or name in ("casing",)


def test_misaligned_lines_are_named_and_the_shift_too() -> None:
    (cause,) = examine_text(BROKEN["misaligned"](), "broken.tsv")
    first, last = (int(number.replace(",", "")) for number in cause.finding.split(" ")[1:4:2])
    assert abs(first - 900) <= 200
    assert last >= 1400
    assert "1 line too late" in cause.finding
    everything = shifted(GOOD)
    assert examine_text(everything, "broken.tsv")[0].name == "misaligned"


def test_leaked_sentences_come_first() -> None:
    leaked = [(source.upper(), target) for source, target in GOOD[:40]] + TEST[:60]
    causes = examine_text(GOOD, "good.tsv", leaked)
    assert [cause.name for cause in causes] == ["leakage"]
    assert "40 of 100 test sentences" in causes[0].finding


SOURCES = [source for source, _ in TEST]
REFERENCES = [target for _, target in TEST]


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("empty outputs", ["" if i % 10 == 0 else t for i, t in enumerate(REFERENCES)]),
        ("looping outputs", [f"{t} und und und und und und" if i % 5 == 0 else t for i, t in enumerate(REFERENCES)]),
        ("truncated outputs", [t.rsplit(" ", 1)[0] if i % 2 else t for i, t in enumerate(REFERENCES)]),
        ("brevity penalty", [f"{' '.join(t.split(' ')[:3])}." for t in REFERENCES]),
        ("untranslated outputs", [s if i % 4 == 0 else t for i, (s, t) in enumerate(TEST)]),
        ("BLEU on tokenised text", [t.replace(".", " .") for t in REFERENCES]),
    ],
)
def test_bad_outputs_are_told_by_their_cause(name: str, outputs: list[str]) -> None:
    assert examine_outputs(SOURCES, outputs, REFERENCES, "runs/my")[0].name == name


def test_good_outputs_have_no_causes() -> None:
    assert examine_outputs(SOURCES, REFERENCES, REFERENCES, "runs/my") == []
    assert loops("a b a b a b a b")
    assert not loops("so so la la")
    assert not loops("no no no")


# The log of a training.


def log(
    bleus: list[float], losses: list[float], nlls: list[float] | None = None, epoch: int = 5
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"event": "train", "step": 50 * i, "loss": loss, "epoch": epoch} for i, loss in enumerate(losses, start=1)
    ]
    nlls = nlls or [3.0] * len(bleus)
    events += [
        {"event": "valid", "step": 100 * i, "bleu": b, "nll": nll}
        for i, (b, nll) in enumerate(zip(bleus, nlls, strict=True), start=1)
    ]
    return events


STEADY = [7.0, 5.5, 4.5, 4.0, 3.7, 3.5, 3.4, 3.35, 3.3]
FLAT = [10.0, 20.0, 25.0, 27.0, 27.5, 27.4]


@pytest.mark.parametrize(
    ("name", "events"),
    [
        (None, log(FLAT, STEADY)),
        ("too few steps", log([2.0, 6.0, 11.0, 15.0, 19.0, 23.0], STEADY)),
        ("too few steps", log([2.0, 6.0, 6.1], STEADY, epoch=0)),
        ("too few steps", log([2.9, 0.1, 1.8, 2.0, 1.8], STEADY, [4.2, 3.9, 3.5, 3.3, 3.2])),  # BLEU tells nothing yet
        (None, log([2.9, 0.1, 1.8, 2.0, 1.8], STEADY, [4.2, 3.9, 3.21, 3.2, 3.2])),
        ("rate too high", log([1.0, 3.0, 0.1, 0.1], [7.0, 5.0, 4.5, 6.9, 7.2, 7.1])),
        ("rate too high", log([0.1, 0.1, 0.1], [7.0, 6.9, 6.8, 6.8, 6.7, 6.7, 6.7, 6.7])),
        ("rate too high", [*log(FLAT, STEADY), *({"event": "skipped", "step": i} for i in range(4))]),
        ("learned by heart", log(FLAT, STEADY, [3.0, 2.6, 2.5, 2.6, 2.8, 3.0])),
    ],
)
def test_a_training_that_went_wrong_is_told_by_its_log(name: str | None, events: list[dict[str, Any]]) -> None:
    causes = of_run.examine_log(events, RunConfig(), "runs/my")
    assert [cause.name for cause in causes[:1]] == ([] if name is None else [name])


@pytest.mark.parametrize(("pairs", "best", "found"), [(1_275, 3.0, True), (1_275, 27.0, False), (30_000, 3.0, False)])
def test_a_bad_translator_of_few_pairs(pairs: int, best: float, found: bool) -> None:
    cause = of_run.too_little_text(pairs, log([1.0, best, 2.0], STEADY), RunConfig())
    assert (cause is not None) == found
    assert of_run.too_little_text(pairs, [], RunConfig()) is None


@pytest.mark.parametrize(
    ("seen", "best", "found"), [(0.3, 3.0, True), (0.3, 20.0, False), (5.0, 3.0, False), (0.0, 0.1, True)]
)
def test_too_little_training_for_so_much_text(seen: float, best: float, found: bool) -> None:
    events = [*log([1.0, best], STEADY), {"event": "end", "step": 200, "seconds": 120.0}]
    cause = of_run.too_little_training(seen, events, RunConfig(), "dragoman quickstart my.tsv --out runs/my")
    assert (cause is not None) == found
    if cause is not None and seen:
        assert "each pair was seen 0.3 times" in cause.finding
        assert cause.remedy.startswith("dragoman quickstart my.tsv --out runs/my --minutes 21 ")
        others = [of_run.rate_too_high(log([0.1], [7.0] * 9), RunConfig()), cause]
        assert ranked(others)[0] is cause  # whatever the outputs and the losses look like
    assert of_run.too_little_training(0.3, [], RunConfig()) is None


def test_a_run_that_hardly_saw_its_text_is_told_so_first(tiny_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    metrics = run / "metrics.jsonl"
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    for event in events:
        event |= {"tokens": 5} if event["event"] == "train" else {}
        event |= {"bleu": 1.0} if event["event"] == "valid" else {}
    metrics.write_text("".join(json.dumps(event) + "\n" for event in events))
    names = [cause.name for cause in of_run.examine_run(run)]
    assert names[0] == "too little training"
    assert "too few steps" not in names


def test_short_outputs_are_a_cause_only_where_longer_ones_would_score() -> None:
    references = ["the small dog sleeps in the garden of my old friend"] * 20
    [cause] = examine_outputs(references, ["the small dog sleeps in the garden"] * 20, references, "r")
    assert cause.name == "brevity penalty"
    assert examine_outputs(references, ["c'est bien."] * 20, references, "r") == []


def test_averaging_that_was_never_tried(tiny_run: Path, tmp_path: Path) -> None:
    from dragoman.run_directory import RunDirectory

    run = RunDirectory(shutil.copytree(tiny_run, tmp_path / "run"))
    config, events = run.read_config(), run.events()
    assert of_run.averaging(run, events, config, "r") is None
    unfinished = [event for event in events if event["event"] != "end"]
    card = json.loads(run.model_card_path.read_text()) | {"kind": "best"}
    run.model_card_path.write_text(json.dumps(card))
    assert of_run.averaging(run, events, config, "r") is None  # tried, and the best was better
    cause = of_run.averaging(run, unfinished, config, "r")
    assert cause is not None
    assert cause.remedy == "dragoman average r --last 3"
    one = dataclasses.replace(config, train=TrainConfig(average_checkpoints=1))
    assert of_run.averaging(run, events, one, "r") is not None


def test_a_vocabulary_that_does_not_suit(tmp_path: Path) -> None:
    from dragoman.config import CorpusConfig, DataConfig, ModelConfig
    from dragoman.data.dataset import prepare
    from dragoman.run_directory import RunDirectory

    path = tmp_path / "good.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in GOOD), encoding="utf-8")
    data = DataConfig(train=(CorpusConfig(pairs=str(path)),), hold_out=50)

    def of_size(size: int) -> list[str]:
        prepared = prepare(data, size, 1, tmp_path / str(size), lambda _: None)
        config = RunConfig(model=ModelConfig(vocab_size=prepared.tokenizer.vocab_size))
        found = (
            of_run.vocabulary_too_large(prepared.train, config, "r"),
            of_run.vocabulary_too_small(RunDirectory(tmp_path / str(size)), GOOD, config, "r"),
        )
        return [cause.name for cause in found if cause is not None]

    assert of_size(1000) == []
    assert of_size(340) == ["vocabulary too small"]
    many = [
        (f"{s} {i * 7919 % 99991} x{i * 104729 % 999983}y", f"{t} z{i * 1299709 % 9999991}q")
        for i, (s, t) in enumerate(GOOD)
    ]
    path.write_text("".join(f"{s}\t{t}\n" for s, t in many), encoding="utf-8")
    assert of_size(8000) == ["vocabulary too large"]


def test_the_command(cli: Callable[..., Any], tmp_path: Path) -> None:
    good_path, bad_path = tmp_path / "good.tsv", tmp_path / "bad.tsv"
    good_path.write_text("".join(f"{s}\t{t}\n" for s, t in GOOD), encoding="utf-8")
    bad_path.write_text("".join(f"{s}\t{t}\n" for s, t in BROKEN["untranslated copies"]()), encoding="utf-8")
    ran = cli("doctor", good_path)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "nothing found\n")
    ran = cli("doctor", bad_path)
    assert ran.code == 4
    assert ran.stdout.startswith("1. untranslated copies: ")
    assert [line.split()[0] for line in ran.stdout.splitlines()[1:4]] == ["evidence", "cost", "remedy"]
    ran = cli("doctor", bad_path, "--json")
    assert json.loads(ran.stdout)["causes"][0]["name"] == "untranslated copies"
    assert cli("doctor", tmp_path / "none.tsv").code == 3


def test_remedies_fit_the_format(cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sort, awk and iconv are for lines: a translation memory is written as lines first, and itself stays as it is."""
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv><tuv xml:lang="de"><seg>{t}</seg></tuv></tu>'
        for s, t in GOOD + GOOD[:700]
    )
    memory = tmp_path / "help.tmx"
    memory.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>', encoding="utf-8")
    (cause,) = json.loads(cli("doctor", memory, "--json").stdout)["causes"]
    assert cause["name"] == "duplicates"
    first, then = cause["remedy"].split("   #")[0].split("; ")
    assert (first, then) == (f"dragoman doctor {memory} --out pairs.tsv", "sort -u pairs.tsv > once.tsv")
    monkeypatch.chdir(tmp_path)
    cli(*first.split()[1:])
    subprocess.run(then, shell=True, check=True, timeout=60)
    assert len((tmp_path / "once.tsv").read_text(encoding="utf-8").splitlines()) == len(GOOD)
    with_heading = tmp_path / "a.tsv"  # its line numbers are not those of the pairs
    with_heading.write_text("".join(f"{s}\t{t}\n" for s, t in [("en", "de"), *GOOD, *GOOD]), encoding="utf-8")
    ran = cli("doctor", with_heading)
    assert "--out pairs.tsv" in ran.stdout
    assert "the first row is a heading (en, de)" in ran.stderr
    assert cli("doctor", tmp_path, "--out", "x.tsv").code == 4
    for name in BROKEN:
        for remedy in (c.remedy for c in examine_text(BROKEN[name](), ["a.xlsx", "b.po"], has_lines=False)):
            tools = re.findall(r"(?:sort -u|awk|iconv|cut|<)\b[^;>]*", remedy)
            assert not any("a.xlsx" in part for part in tools), remedy


def test_the_machine() -> None:
    lines = {line.name: line for line in examine_environment(least_free_gb=0.0)}
    assert list(lines) == ["versions", "threads", "disk", "one pass"]
    assert lines["one pass"].fault is None
    assert lines["disk"].fault is None
    (full,) = (line for line in examine_environment(least_free_gb=1e9) if line.name == "disk")
    assert "less than 1e+09 GB free" in str(full.fault)


def test_a_run_is_examined_from_its_directory(tiny_run: Path, cli: Callable[..., Any], tmp_path: Path) -> None:
    """The tiny run was stopped early and has seen sixteen words: whatever is found, each cause is whole."""
    run = shutil.copytree(tiny_run, tmp_path / "run")
    ran = cli("doctor", run, "--json")
    causes = json.loads(ran.stdout)["causes"]
    assert ran.code == (4 if causes else 0)
    assert all(cause["evidence"] and cause["remedy"] and 0 < cause["weight"] <= 1 for cause in causes)
    assert [cause["weight"] for cause in causes] == sorted((cause["weight"] for cause in causes), reverse=True)
    assert cli("doctor", run, "--test", "x.tsv").code == 2
