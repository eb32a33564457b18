"""One way to translate, in a process of its own: translates when it is told to, and says what that took.

The protocol is that of worker.py. With `--once` it translates the lines of stdin and ends: a cold start.
"""

import argparse
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dragoman.processes import Crew

BATCH = 32
WIDE = 128  # sentences, some 2,048 tokens
Translate = Callable[[Sequence[str]], tuple[list[str], int]]  # lines to lines, and the number of tokens in them


def dragoman_engine(
    run: Path,
    engine: Any,
    compute_type: Any,
    extra_length: int,
    mean_length: float,
    vocabulary_map: bool = False,
    **changes: float | str,
) -> Translate:
    from dragoman.translation.translator import Translator

    # The search of the peers, whatever the run itself has.
    changes = {"beam": 4, "alpha": 0.6, "batch_tokens": max(1, round(BATCH * mean_length))} | changes
    if extra_length:
        changes["max_extra_length"] = extra_length
    translator = Translator.load(
        run, engine=engine, compute_type=compute_type, vocabulary_map=vocabulary_map, **changes
    )

    def translate(lines: Sequence[str]) -> tuple[list[str], int]:
        # Nobody else decodes again what loops, and the untrained base model loops in every line; nor cuts lines, nor
        # looks at what came through.
        found = list(translator.translate_stream(lines, repair=False, scores=False, whole=True, protect=False))
        return [translation.text for translation in found], sum(len(t.candidates[0].tokens) + 1 for t in found)

    return translate


def raw_ctranslate2(run: Path, compute_type: str, extra_length: int, threads: int) -> Translate:
    import ctranslate2

    from dragoman.data.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(run / "tokenizer.model")
    model = next(path.parent for path in sorted((run / "ctranslate2").rglob("model.bin")) if compute_type in str(path))
    translator = ctranslate2.Translator(str(model), compute_type=compute_type, inter_threads=threads, intra_threads=1)
    names = [tokenizer.piece(token) for token in range(tokenizer.vocab_size)]
    ids = {name: token for token, name in enumerate(names)}

    def translate(lines: Sequence[str]) -> tuple[list[str], int]:
        # The converted model adds the end symbol to the source by itself.
        sources = [[names[i] for i in encoded] for encoded in tokenizer.encode_batch(lines)]
        longest = max(map(len, sources)) + (extra_length or 50)
        results = translator.translate_batch(
            sources, beam_size=4, max_batch_size=BATCH, length_penalty=0.6, max_decoding_length=longest
        )
        outputs = [[ids[name] for name in result.hypotheses[0]] for result in results]
        return tokenizer.decode_batch(outputs), sum(len(output) + 1 for output in outputs)

    return translate


def hugging_face(
    run: Path, extra_length: int, processes: int = 1, size: int = BATCH, ordered: bool = True
) -> Translate:
    from contestants.generating import generate, marian

    _, tokenizer = marian(run)
    one_batch = functools.partial(generate, run, extra_length)
    crew = Crew(one_batch, processes) if processes > 1 else None

    def translate(lines: Sequence[str]) -> tuple[list[str], int]:
        encoded = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(lines)]
        order = sorted(range(len(lines)), key=lambda i: -len(encoded[i]) if ordered else i)
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        sources = [[encoded[i] for i in rows] for rows in batches]
        outputs: list[list[int]] = [[] for _ in lines]
        for rows, found in zip(batches, crew.map(sources) if crew else map(one_batch, sources), strict=True):
            for i, ids in zip(rows, found, strict=True):
                outputs[i] = ids
        return tokenizer.decode_batch(outputs), sum(len(output) + 1 for output in outputs)

    return translate


def open_engine(name: str, run: Path, extra_length: int, threads: int, mean_length: float) -> Translate:
    match name.split():
        case ["dragoman", "reference", *otherwise]:
            changes = {"wide": {"batch_tokens": 2048}, "first": {"stop": "first"}}
            merged: dict[str, Any] = {key: value for name in otherwise for key, value in changes[name].items()}
            return dragoman_engine(run, "reference", None, extra_length, mean_length, **merged)
        case ["dragoman", "ctranslate2", compute_type]:
            return dragoman_engine(run, "ctranslate2", compute_type, extra_length, mean_length)
        case ["dragoman", "ctranslate2", compute_type, "map"]:
            return dragoman_engine(run, "ctranslate2", compute_type, extra_length, mean_length, vocabulary_map=True)
        case ["ctranslate2", compute_type]:
            return raw_ctranslate2(run, compute_type, extra_length, threads)
        case ["hugging-face", "processes"]:
            return hugging_face(run, extra_length, threads)
        case ["hugging-face", "wide"]:
            return hugging_face(run, extra_length, size=WIDE)
        case ["hugging-face", "unsorted"]:
            return hugging_face(run, extra_length, ordered=False)
        case ["hugging-face", *_]:
            return hugging_face(run, extra_length)
    raise SystemExit(f"no engine is called {name!r}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine")
    parser.add_argument("run", type=Path)
    parser.add_argument("--extra-length", type=int, default=0, help="at most so much longer than the source; 0: 50")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mean-length", type=float, default=16.0, help="of the sources, in tokens")
    parser.add_argument("--once", action="store_true")
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if given.engine.startswith(("dragoman reference", "hugging-face")):
        import torch

        torch.set_num_threads(given.threads)
    if given.engine.startswith("dragoman reference") or given.engine == "hugging-face keeping memory":
        from dragoman.processes import keep_freed_memory

        keep_freed_memory()  # as `dragoman translate` does
    translate = open_engine(given.engine, given.run, given.extra_length, given.threads, given.mean_length)
    if given.once:
        lines, _ = translate([line.rstrip("\n") for line in sys.stdin])
        answers.write("\n".join(lines) + "\n")
        answers.flush()
        return
    answers.write(json.dumps({"ready": True}) + "\n")
    answers.flush()
    for command in map(json.loads, sys.stdin):
        began = time.perf_counter()
        lines, tokens = translate(command["lines"])
        seconds = time.perf_counter() - began
        answers.write(json.dumps({"outputs": lines, "tokens": tokens, "seconds": seconds}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
