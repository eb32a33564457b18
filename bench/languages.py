"""The halves and the tasks, measured on the demo's sentences.

    python bench/languages.py --out runs/bench-languages --only lm

makes plain text of the demo's training pairs (`dragoman demo` fetches them) and then measures, each part kept in
results.json and left out when it is there:

lm        `dragoman lm train` on the English, against 5-grams with modified Kneser-Ney smoothing, over several
          vocabularies; in bits per byte over the held-out English, the newline of each line included
mlm       `dragoman mlm train` on the English, then a classifier with few labels, fine-tuned from it and from scratch
tasks     one model for three tasks against three models of its size, as many steps each

The classes: a sentence as it was written, and one in which two words were exchanged. Both are of the same words, so the
words alone tell nothing; the exchanged ones are small letters inside the sentence, so capitals and full stops tell
nothing either. What is left is English word order. Started again, it goes on where it was stopped.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NGRAM_VOCABULARIES = (1000, 4000, 8000, 16000, 24000)
RATES = ("2e-4", "5e-4")  # the highest rate of a classifier's training: each has its choice


def dragoman(*arguments: object) -> str:
    print("dragoman", *arguments, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def lines_of(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def plain_text(data: Path, out: Path) -> Path:
    """Every English sentence of the training pairs once."""
    pairs = (line.split("\t")[0].strip() for line in lines_of(data / "train.tsv"))
    return write(out / "train.en", dict.fromkeys(pairs))


def measure_lm(given: argparse.Namespace, text: Path) -> dict[str, Any]:
    data, run = given.data, given.out / "lm"
    began = time.monotonic()
    dragoman("lm", "train", "--text", text, "--valid-text", data / "valid.en", "--out", run, *given.more)
    minutes = (time.monotonic() - began) / 60
    held_out = data / "test.en"
    result = json.loads(dragoman("lm", "evaluate", run, "--text", held_out, "--json"))
    return {"lm": {"minutes": round(minutes, 1), **result}, "5-gram": measure_ngrams(text, held_out, 5)}


def measure_ngrams(text: Path, held_out: Path, order: int) -> dict[str, float]:
    """Bits per byte by the size of the vocabulary."""
    import math

    from dragoman.data.tokenizer import Tokenizer
    from kneser_ney import KneserNey

    sentences, unseen = lines_of(text), lines_of(held_out)
    size = sum(len(line.encode()) + 1 for line in unseen)
    found = {}
    for pieces in NGRAM_VOCABULARIES:
        tokenizer = Tokenizer.learn(sentences, pieces)
        ids = tokenizer.encode_batch(sentences)
        can_come = tokenizer.vocab_size - 3  # neither padding nor the unknown symbol nor the start
        model = KneserNey(ids, order, tokenizer.bos_id, tokenizer.eos_id, can_come)
        nll = sum(map(model.nll, tokenizer.encode_batch(unseen)))
        found[str(pieces)] = nll / math.log(2) / size
        print(f"{order}-gram, {pieces:,} pieces: {found[str(pieces)]:.4f} bits per byte", file=sys.stderr, flush=True)
    return found


def exchanged(sentence: str, draw: random.Random) -> str | None:
    """Two different words inside the sentence, of small letters, change places; None: there are no two."""
    words = sentence.split(" ")
    inner = [at for at in range(1, len(words) - 1) if re.fullmatch("[a-z]+", words[at])]
    choices = [(a, b) for a in inner for b in inner if a < b and words[a] != words[b]]
    if not choices:
        return None
    a, b = draw.choice(choices)
    words[a], words[b] = words[b], words[a]
    return " ".join(words)


def word_order(sentences: Iterable[str], count: int, seed: int) -> list[str]:
    """Sentences that could be either, by turns as they are and with two words exchanged; never both of one."""
    draw = random.Random(seed)
    usable = [(s, other) for s in sentences if (other := exchanged(s, draw)) is not None]
    chosen = draw.sample(usable, min(count, len(usable)))
    return [f"{pair[row % 2]}\t{('written', 'exchanged')[row % 2]}" for row, pair in enumerate(chosen)]


def measure_mlm(given: argparse.Namespace, text: Path) -> dict[str, Any]:
    data, out, run = given.data, given.out, given.out / "mlm"
    began = time.monotonic()
    dragoman("mlm", "train", "--text", text, "--valid-text", data / "valid.en", "--out", run, *given.more)
    minutes = (time.monotonic() - began) / 60
    train = write(out / f"order-train-{given.labels}.tsv", word_order(lines_of(text), given.labels, 1))
    valid = write(out / "order-valid.tsv", word_order(lines_of(data / "valid.en"), 1000, 2))
    test = write(out / "order-test.tsv", word_order(lines_of(data / "test.en"), 1000, 3))
    results: dict[str, Any] = {"minutes": round(minutes, 1), "labels": given.labels, "test": len(lines_of(test))}
    for name, flags in (
        ("scratch", ("--tokenizer", run / "tokenizer.model")),
        ("fine-tuned", ("--start-from", run)),
    ):
        found = []
        for rate in RATES:  # chosen by the validation set
            one = out / f"order-{name}-{given.labels}-{rate}"
            dragoman(
                *("mlm", "train", "--labelled", train, "--valid-labelled", valid, "--out", one, *flags),
                *("--set", f"train.peak_rate={rate}"),
            )
            scores = [
                json.loads(dragoman("mlm", "classify", one, "--labelled", part, "--json")) for part in (valid, test)
            ]
            found.append((scores[0]["accuracy"], scores[1]["accuracy"], rate))
        best = max(found)
        results[name] = {"test": best[1], "valid": best[0], "peak_rate": best[2], "all": found}
    return results


def measure_tasks(given: argparse.Namespace, _: Path) -> dict[str, Any]:
    """BLEU of each task's held-out part; of the spelling also the share of sentences restored to the letter."""
    data, out, results = given.data, given.out, {}
    names = ("forward", "backward", "spelling")
    test_pairs = write(
        out / "test.tsv", map("\t".join, zip(lines_of(data / "test.en"), lines_of(data / "test.fr.0"), strict=True))
    )
    parts = {"train": data / "train.tsv", "valid": data / "valid.tsv", "test": test_pairs}
    for chosen in (names, *((name,) for name in names)):
        label = "all" if len(chosen) > 1 else chosen[0]
        flags = [flag for name in chosen for flag in ("--task", name)]
        files = {}
        for part, pairs in parts.items():
            files[part] = out / f"tasks-{label}-{part}.tsv"
            files[part].write_text(dragoman("tasks", "--pairs", pairs, *flags), encoding="utf-8")
        run = out / f"tasks-{label}"
        dragoman(
            *("train", "demo", "--pairs", files["train"], "--valid-pairs", files["valid"], "--out", run),
            *("--steps", given.steps, "--set", "train.minutes=600", "--set", "train.processes=1"),
            *("--set", f"train.valid_steps={given.steps // 4}", *given.more),
        )
        for name in chosen:
            lines = dragoman("tasks", "--pairs", test_pairs, "--task", name).split("\n")[:-1]
            source = write(out / f"test-{name}.source", (line.split("\t")[0] for line in lines))
            right = write(out / f"test-{name}.target", (line.split("\t")[1] for line in lines))
            output = out / f"test-{name}-{label}.output"
            scores = json.loads(
                dragoman("evaluate", run, "--source", source, "--reference", right, "--out", output, "--json")
            )
            same = sum(a == b for a, b in zip(output.open(), right.open(), strict=True)) / len(lines)
            results.setdefault(name, {})[label] = {"bleu": scores["bleu"]["value"], "to the letter": same}
    return {"steps": given.steps, **results}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=Path.home() / ".cache/dragoman/demo-en-fr", help="of the demo")
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--only", choices=("lm", "mlm", "tasks"), nargs="*", default=("lm", "mlm", "tasks"))
    options.add_argument("--labels", type=int, default=20_000, help="labelled sentences for the classifiers")
    options.add_argument("--steps", type=int, default=3000, help="of each training of tasks")
    options.add_argument("more", nargs="*", help="after --: flags of the trainings of lm, mlm and tasks")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results_path = given.out / "results.json"
    text = plain_text(given.data, given.out)

    def kept() -> dict[str, Any]:
        return json.loads(results_path.read_text()) if results_path.exists() else {}

    for name, measure in (("lm", measure_lm), ("mlm", measure_mlm), ("tasks", measure_tasks)):
        if name in given.only and name not in kept():
            found = {name: measure(given, text)}  # hours may pass, and another part be written meanwhile
            results_path.write_text(json.dumps(kept() | found, indent=1) + "\n")
    print(results_path.read_text(), end="")


if __name__ == "__main__":
    main()
