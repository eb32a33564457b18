"""What a student of several teachers keeps, and how much faster it is: teachers of several seeds, a student of their
ensemble by `dragoman distill`, and the student's shape trained on the same pairs without a teacher.

    .venv/bin/python bench/distillation.py --data multi30k --teacher-steps 12000 --student-steps 12000
    .venv/bin/python bench/distillation.py --data demo --student-steps 8000 --student model.d_model=128 model.d_ff=512
    .venv/bin/python bench/distillation.py --table                       # what was measured so far

Every run that is trained stays in --out, and a stopped one goes on; so the same command can be given again and again.
All that translates is then measured by turns in one process, on one core and on two: sentences a second, BLEU on the
test set, both with lines of one, two, four and eight sentences. That is a cell of bench/distillation.jsonl, and a cell
that is there is not measured again. The teachers' search has beam 4, the students' beam 1. CTranslate2 translates with
all but the ensemble, which is the reference engine's, and takes part in the first round alone.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import CorpusConfig, RunConfig
from dragoman.config.recipes import load, parse_set
from dragoman.data.corpus import read_lines
from dragoman.distillation.pipeline import distill
from dragoman.evaluation.metrics import References, bleu, compare, evaluate, read_references
from dragoman.evaluation.quantize import quantize
from dragoman.files import sha256, write_atomically
from dragoman.progress import discard, to_stderr
from dragoman.run_directory import RunDirectory, default_cache
from dragoman.training.loop import train
from dragoman.translation.translator import Translator
from rounds import Spread, ratios
from shapes import DATA, WORK

RESULTS = Path(__file__).parent / "distillation.jsonl"
OUT_OF_REACH = 100_000  # minutes: the steps end every training
BEAM = 4
MOST_VALID = 1000
LENGTHS = (1, 2, 4, 8)  # sentences on a line
ENSEMBLE, BEST = "ensemble", "best teacher int8"


class Text(NamedTuple):
    """The pairs to train on, to choose by and to test with."""

    train: CorpusConfig
    valid: CorpusConfig
    test: Path
    references: tuple[Path, ...]
    recipe: str  # of the teachers
    languages: tuple[str, str]


def multi30k() -> Text:
    def corpus(name: str) -> CorpusConfig:
        return CorpusConfig(source=str(DATA / f"{name}.en.gz"), target=str(DATA / f"{name}.de.gz"))

    test = DATA / "test_2016_flickr.en.gz", (DATA / "test_2016_flickr.de.gz",)
    return Text(corpus("train"), corpus("val"), *test, "multi30k-tiny", ("en", "de"))


def demo() -> Text:
    from dragoman.quickstart.tatoeba import prepare_demo

    found = prepare_demo(default_cache())
    pairs = CorpusConfig(pairs=str(found.train)), CorpusConfig(pairs=str(found.valid))
    return Text(*pairs, found.test_source, tuple(found.test_references), "demo", ("en", "fr"))


TEXTS: dict[str, Callable[[], Text]] = {"multi30k": multi30k, "demo": demo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(TEXTS), default="multi30k")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the teachers")
    parser.add_argument("--teacher-steps", type=int, default=12_000)
    parser.add_argument("--student-steps", type=int, default=12_000)
    parser.add_argument("--teacher", nargs="*", default=[], metavar="KEY=VALUE", help="settings of the teachers")
    parser.add_argument("--student", nargs="*", default=[], metavar="KEY=VALUE", help="settings of the student")
    parser.add_argument("--vocabulary", choices=["own", "teacher"], default="own")
    parser.add_argument("--begin", choices=["scratch", "teacher"], default="scratch")
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--text", type=Path, nargs="*", default=[], help="more sources, one a line")
    parser.add_argument("--n-best", type=int, default=4)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=0, help="of the training text, the first; 0: all")
    parser.add_argument("--sentences", type=int, default=1000, help="of the test set, at most")
    parser.add_argument("--out", type=Path, default=WORK / "distillation")
    parser.add_argument("--table", action="store_true", help="only print what was measured")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # a cell, in a process with so many cores
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured_here(json.loads(given.measure))))
        return
    if not given.table:
        run(given)
    print_table()


def run(given: argparse.Namespace) -> None:
    """Trains what is missing, and measures what is not measured."""
    text = TEXTS[given.data]()
    if given.pairs:
        text = text._replace(train=first_pairs(text.train, given))
    teachers = [teacher(text, seed, given) for seed in given.seeds]
    student = distilled(text, teachers, given)
    alone = without_teacher(text, student, given)
    cell = {
        "data": given.data,
        "pairs": given.pairs,
        "seeds": given.seeds,
        "teacher_steps": given.teacher_steps,
        "student_steps": given.student_steps,
        "teacher": given.teacher,
        "student": given.student,
        "vocabulary": given.vocabulary,
        "begin": given.begin,
        "noise": given.noise,
        "n_best": given.n_best,
        "text": [sha256(path)[:12] for path in given.text],
        "sentences": given.sentences,
        "rounds": given.rounds,
        "weights": digest([*teachers, student, alone]),
    }
    for cores in given.cores:
        if any((cell | {"cores": cores}).items() <= found.items() for found in results()):
            continue
        print(f"== measuring on {cores} cores", file=sys.stderr)
        asked = {
            "teachers": [str(path) for path in teachers],
            "student": str(student),
            "alone": str(alone),
            "data": given.data,
            "sentences": given.sentences,
            "rounds": given.rounds,
            "cores": cores,
        }
        command = [sys.executable, __file__, "--measure", json.dumps(asked)]
        environment = os.environ | {"OMP_NUM_THREADS": str(cores)}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        found = cell | {"cores": cores, **json.loads(done.stdout.splitlines()[-1])}
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found, ensure_ascii=False) + "\n")


def digest(runs: Sequence[Path]) -> str:
    """Of all weights: other weights are another cell."""
    weights = "".join(sha256(RunDirectory(path).model_path) for path in runs)
    return hashlib.sha256(weights.encode()).hexdigest()[:12]


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


# ----------------------------------------------------------------------------------------------------- the trainings


def directory(given: argparse.Namespace, what: str, *made: object) -> Path:
    """A directory for what is made in this way; another way has another."""
    way = hashlib.sha256(json.dumps([given.data, given.pairs, what, *map(str, made)]).encode()).hexdigest()[:8]
    path: Path = given.out / f"{given.data}-{what}-{way}"
    return path


def first_pairs(corpus: CorpusConfig, given: argparse.Namespace) -> CorpusConfig:
    """The first pairs of a corpus, in a file of their own."""
    path = given.out / f"{given.data}-{given.pairs}.tsv"
    if not path.exists():
        write_atomically(path, "".join(f"{s}\t{t}\n" for s, t in pairs_of(corpus, given.pairs)).encode())
    return CorpusConfig(pairs=str(path))


def pairs_of(corpus: CorpusConfig, most: int) -> list[tuple[str, str]]:
    if corpus.pairs is not None:
        lines = (line.split("\t") for line in read_lines(corpus.pairs))
        return [(columns[0], columns[1]) for columns in islice(lines, most)]
    assert corpus.source is not None
    assert corpus.target is not None
    both = zip(read_lines(corpus.source), read_lines(corpus.target), strict=True)
    return list(islice((pair for pair in both if all(pair)), most))


def teacher(text: Text, seed: int, given: argparse.Namespace) -> Path:
    """A run by the recipe; those of further seeds have the vocabulary of the first."""
    made = given.teacher_steps, given.teacher
    out = directory(given, f"teacher-{seed}", *made)
    first = directory(given, f"teacher-{given.seeds[0]}", *made)
    settings: list[tuple[str, Any, str]] = [
        *steps(given.teacher_steps),
        ("train.seed", seed, "bench"),
        ("search.beam", BEAM, "bench"),
        *map(parse_set, given.teacher),
    ]
    if out != first:
        settings.append(("data.tokenizer", str(RunDirectory(first).tokenizer_path), "bench"))
    config = load(text.recipe, settings).config
    go(out, replace(config, data=replace(config.data, train=(text.train,), valid=(text.valid,))))
    return out


def steps(count: int) -> list[tuple[str, Any, str]]:
    """Settings of a training that only its steps end."""
    return [
        ("train.steps", count, "bench"),
        ("train.minutes", OUT_OF_REACH, "bench"),
        ("train.valid_steps", max(1, count // 12), "bench"),
        ("train.warmup_steps", max(1, min(400, count // 10)), "bench"),
        ("train.schedule", "linear", "bench"),
        ("train.processes", 0, "bench"),
    ]


def go(out: Path, config: RunConfig) -> None:
    print(f"== {out.name}", file=sys.stderr)
    train(config, RunDirectory(out), "the same command")


def distilled(text: Text, teachers: Sequence[Path], given: argparse.Namespace) -> Path:
    """The student of the ensemble."""
    how = given.vocabulary, given.begin, given.noise, given.n_best, [sha256(path) for path in given.text]
    out = directory(given, "student", given.student_steps, given.student, *how, [path.name for path in teachers])
    print(f"== {out.name}", file=sys.stderr)
    result = distill(
        teachers,
        out,
        minutes=OUT_OF_REACH,
        pairs=text.train,
        valid=text.valid,
        text=given.text,
        vocabulary=given.vocabulary,
        begin=given.begin,
        noise=given.noise,
        n_best=given.n_best,
        changes=[
            *(change for change in steps(given.student_steps) if change[0] != "train.minutes"),
            *map(parse_set, given.student),
        ],
        again="the same command",
        say=to_stderr,
    )
    print("\n".join(result.lines), file=sys.stderr)
    return out


def without_teacher(text: Text, student: Path, given: argparse.Namespace) -> Path:
    """The student's shape, steps and settings on the pairs themselves."""
    out = student.with_name(f"{student.name}-alone")
    config = RunDirectory(student).read_config()
    own = replace(config.data, train=(text.train,), valid=(text.valid,), tokenizer=None)
    if given.vocabulary == "teacher":
        own = replace(own, tokenizer=str(RunDirectory(student).tokenizer_path))
    go(out, replace(config, data=own))
    run = RunDirectory(out)
    if not run.engine_path.exists() and not (out / "not-quantised").exists():
        pairs = pairs_of(text.valid, MOST_VALID)
        verdict = quantize(out, [source for source, _ in pairs], [[target] for _, target in pairs])
        print("\n".join(verdict.lines()), file=sys.stderr)
        if not verdict.kept:
            (out / "not-quantised").touch()
    return out


# -------------------------------------------------------------------------------------------------- the measurements


def measured_here(asked: dict[str, Any]) -> dict[str, Any]:
    """Measures everything by turns, on so many cores of this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked["cores"]])
    text = TEXTS[asked["data"]]()
    sources = list(read_lines(text.test))[: asked["sentences"]]
    references = read_references(text.references)[: asked["sentences"]]
    teachers = [Path(path) for path in asked["teachers"]]
    scores = {path: of_teacher(path, text) for path in teachers}
    best = max(teachers, key=lambda path: scores[path])
    everyone = contestants(teachers, best, Path(asked["student"]), Path(asked["alone"]))
    outputs: dict[str, list[str]] = {}
    speeds: dict[str, list[float]] = {name: [] for name in everyone}
    for translator in everyone.values():
        translate(translator, sources[:20])  # loads what is loaded at the first call
    for number in range(asked["rounds"]):
        for name, translator in everyone.items():
            if number and name == ENSEMBLE:
                continue
            began = time.perf_counter()
            outputs[name] = translate(translator, sources)
            speeds[name].append(len(sources) / (time.perf_counter() - began))
        print(f"round {number + 1} of {asked['rounds']}", file=sys.stderr)
    return {
        "machine": machine(),
        "best": best.name,
        "speeds": speeds,
        "scores": {name: scored(outputs, name, references, text.languages[1]) for name in everyone},
        "teachers": {path.name: score for path, score in scores.items()},
        "signature": bleu(outputs[BEST], references, text.languages[1]).signature,
        "megabytes": {name: megabytes(translator) for name, translator in everyone.items()},
        "lengths": {name: by_length(translator, sources) for name, translator in everyone.items() if name != ENSEMBLE},
    }


def of_teacher(run: Path, text: Text) -> float:
    """BLEU on validation sentences, by which the best teacher is chosen."""
    pairs = pairs_of(text.valid, MOST_VALID)
    outputs = translate(Translator.load(run, beam=BEAM), [source for source, _ in pairs])
    return bleu(outputs, [[target] for _, target in pairs], text.languages[1]).value


def contestants(teachers: Sequence[Path], best: Path, student: Path, alone: Path) -> dict[str, Translator]:
    """All that is compared; what `quantize` did not keep of a student is what it translates with instead."""
    kept = {"vocabulary_map": None, "compute_type": None}
    return {
        ENSEMBLE: Translator.load(*teachers, beam=BEAM),
        "best teacher float32": Translator.load(best, beam=BEAM, compute_type="float32", vocabulary_map=False),
        BEST: Translator.load(best, beam=BEAM, compute_type="int8", vocabulary_map=False),
        "student float32": Translator.load(student, compute_type="float32", vocabulary_map=False),
        "student int8": Translator.load(student, compute_type="int8", vocabulary_map=False),
        "student as quantised": Translator.load(student, **kept),  # type: ignore[arg-type]
        "without a teacher, as quantised": Translator.load(alone, **kept),  # type: ignore[arg-type]
    }


def translate(translator: Translator, lines: Sequence[str]) -> list[str]:
    return translator.translate(lines, whole=True, protect=False, warn=discard)


def scored(outputs: dict[str, list[str]], name: str, references: References, language: str) -> dict[str, Any]:
    """BLEU and chrF, and whether BLEU differs from that of the ensemble."""
    found = evaluate(outputs[name], references, language, 0)
    compared = compare(outputs[ENSEMBLE], outputs[name], references, language)
    return {"bleu": found.bleu.value, "chrf": found.chrf.value, "p": compared.bleu.p_value}


def megabytes(translator: Translator) -> float:
    """Of the files that CTranslate2 translates with; 0 of the ensemble."""
    path = getattr(getattr(translator.engine, "_model", None), "path", None)
    return sum(file.stat().st_size for file in path.iterdir()) / 1e6 if path else 0.0


def by_length(translator: Translator, sources: Sequence[str]) -> dict[str, float]:
    """Sentences a second where so many of them are one line, which is translated as one."""
    found = {}
    for together in LENGTHS:
        lines = [" ".join(sources[i : i + together]) for i in range(0, len(sources) - together + 1, together)]
        began = time.perf_counter()
        translate(translator, lines)
        found[str(together)] = len(lines) * together / (time.perf_counter() - began)
    return found


def machine() -> str:
    from dragoman.decoding.engines.ct2_cache import processor

    return processor()


def print_table() -> None:
    for cell in results():
        made = (
            f"{cell['data']}, teachers {cell['seeds']} of {cell['teacher_steps']:,} steps {' '.join(cell['teacher'])}"
        )
        student = (
            f"student of {cell['student_steps']:,} steps, {cell['vocabulary']} vocabulary, begun from {cell['begin']}"
        )
        print(f"\n{made}; {student} {' '.join(cell['student'])}; {cell['cores']} cores; {cell['machine']}")
        alone = ", ".join(f"{value:.2f}" for value in cell["teachers"].values())
        print(f"BLEU of each teacher on the validation sentences: {alone}; {cell['signature']}\n")
        lengths = " | ".join(f"{count} on a line" for count in LENGTHS)
        print(f"| | BLEU | chrF2 | against the ensemble | p | MB | sentences/s | × {BEST} | {lengths} |")
        print(f"|---|---|---|---|---|---|---|---|{'---|' * len(LENGTHS)}")
        for name, score in cell["scores"].items():
            speeds = cell["speeds"][name]
            ratio = ratios(speeds, cell["speeds"][BEST][: len(speeds)])
            grown = [f"{speed:,.0f}" for speed in cell["lengths"].get(name, {}).values()] or [""] * len(LENGTHS)
            difference = score["bleu"] - cell["scores"][ENSEMBLE]["bleu"]
            print(
                f"| {name} | {score['bleu']:.2f} | {score['chrf']:.2f} | {difference:+.2f} | {score['p']:.3f} | "
                f"{cell['megabytes'][name]:.1f} | {Spread.of(speeds)} | {ratio} | {' | '.join(grown)} |"
            )


if __name__ == "__main__":
    main()
