"""Damaged input to every reader: each must end in success or in a DragomanError of one line.

python tests/support/fuzz.py --inputs 200000

Inputs are mutated from good ones by a seed, the same each time. `--coverage-guided` lets atheris (pip install atheris)
choose them by the branches they reach. What fails is printed and kept in the file named.
"""

import argparse
import contextlib
import gzip
import io
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, DataConfig, ModelConfig, RunConfig, recipes
from dragoman.errors import DragomanError

PAIRS = "".join(f"the {a} dog sees {b}\tla {a} hundo vidas {b}\n" for a in ("red", "old") for b in range(30))
RECIPE = """extends = "small"
[model]
d_model = 64
num_heads = 4
dropout = 0.1
positions = "learned"
[data]
train = [{pairs = "a.tsv", weight = 2.0}, {source = "a.en", target = "a.de"}]
[train]
minutes = 1.5
"""
# What a blind mutation hardly ever writes.
TOKENS = [
    b"\t", b"\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\x1f\x8b", b"\xe2\x96\x81",
    b"\xe2\x90\x9b", b"\xe2\x80\xa8", b'"', b"{", b"}", b"[", b"]", b",", b"-1", b"0", b"1e999", b"NaN", b"null",
    b"18446744073709551615", b"9223372036854775808", b"[data]\n", b"=", b"'", b"#", b"\\", b"\\ud800", b"F16", b"I64",
    b"BF16", b"BOOL", b"U8", b"\x00" * 8, b"\xff" * 8,
]  # fmt: skip
SLOW = {"text.json", "optimizer", "progress.json"}  # each of their inputs takes as long as five of the others
ENDLESS = [b"[" * 5000, b'{"a":' * 3000, b"9" * 5000, b"x" * 1_100_000]


@dataclass(frozen=True)
class Target:
    """A reader: good inputs, what is done with an input that was written to the path, and tokens to insert."""

    seeds: list[bytes]
    read: Callable[[Path], object]
    tokens: list[bytes]


def targets(directory: Path) -> dict[str, Target]:
    """All readers. `directory`: where they may write."""
    from dragoman.data.tokenizer import Tokenizer

    tokenizer = Tokenizer.learn(PAIRS.splitlines(), 300)
    text = [PAIRS.encode(), b"a\tb\n", b"one\ttwo\tthree\r\n\xe2\x80\xa8\t\xc3\xa9\n"]
    packed = [gzip.compress(seed) for seed in text]
    endless = TOKENS + ENDLESS
    return {
        "lines": Target(text + packed, _read_lines, endless),
        "pairs": Target(text + packed, _read_pairs, endless),
        "corpus": Target(text + packed, _check_corpus, endless),
        "two files": Target([text[0] + b"\x01" + text[0], packed[1] + b"\x01" + text[1]], _check_two_files, endless),
        "recipe": Target([RECIPE.encode()], lambda path: recipes.load(str(path)), endless),
        "setting": Target(
            [b"train.minutes=30", b"model.norm=batch", b'data.train=[{pairs="a"}]', b"model.d_k=1_0"],
            lambda path: recipes.load(None, [recipes.parse_set(_text(path))]),
            endless,
        ),
        "tokenizer": Target([tokenizer.model_bytes, *_other_tokenizers()], _read_tokenizer, TOKENS),
        **_prepared_targets(directory, tokenizer.model_bytes, endless),
        **_run_targets(directory),
    }


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def _read_lines(path: Path) -> None:
    from dragoman.data.corpus import read_lines

    for _ in read_lines(path):
        pass


def _read_pairs(path: Path) -> None:
    from dragoman.data.corpus import read_pairs

    for _ in read_pairs(path):
        pass


def _check_corpus(path: Path) -> None:
    _check(CorpusConfig(pairs=str(path)))


def _check_two_files(path: Path) -> None:
    source, _, target = path.read_bytes().partition(b"\x01")
    files = (path.with_name("two.source"), path.with_name("two.target"))
    for file, content in zip(files, (source, target), strict=True):
        file.write_bytes(content)
    _check(CorpusConfig(source=str(files[0]), target=str(files[1])))


def _check(corpus: CorpusConfig) -> None:
    from dragoman.data.cleaning import check_corpora

    checked = check_corpora(DataConfig(train=(corpus,), hold_out=3, max_length=64), seed=1, processes=1)
    report = checked.report()
    report.summary()
    for part in (*checked.train, *checked.valid):
        assert len(list(part.pairs())) == len(part)
    assert sum(c.kept + c.held_out + sum(c.dropped.values()) for c in report.corpora) == report.corpora[0].lines


def _other_tokenizers() -> Iterator[bytes]:
    import sentencepiece

    for kind, size in (("unigram", 40), ("char", 30)):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(PAIRS.splitlines()),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        yield model.getvalue()


def _read_tokenizer(path: Path) -> None:
    from dragoman.data.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(path)
    ids = tokenizer.encode("the old dog ▁ é")
    tokenizer.decode(ids)
    for token in (0, tokenizer.vocab_size - 1):
        tokenizer.piece(token)


def _prepared_targets(directory: Path, model: bytes, tokens: list[bytes]) -> dict[str, Target]:
    """The files that preparing text leaves in a run's directory."""
    from dragoman.data.dataset import Dataset, prepare
    from dragoman.data.tokenizer import load_tokenizer

    text, run = directory / "text.tsv", directory / "prepared"
    text.write_text(PAIRS, encoding="utf-8")
    (directory / "given.model").write_bytes(model)
    config = DataConfig(train=(CorpusConfig(pairs=str(text)),), hold_out=3, tokenizer=str(directory / "given.model"))
    prepare(config, 0, 1, run, lambda _: None)
    (data,) = (run / "data").iterdir()

    def opened(_: Path) -> None:
        dataset = Dataset.open(data / "train", [1.0])
        for index in range(len(dataset)):
            dataset.source(index)

    def prepared_again(_: Path) -> None:
        prepare(config, 0, 1, run, lambda _: None)

    def in_place(file: Path, read: Callable[[Path], object]) -> Target:
        good = file.read_bytes()

        def read_there(path: Path) -> None:
            file.write_bytes(path.read_bytes())
            try:
                read(path)
            finally:
                file.write_bytes(good)

        return Target([good], read_there, tokens)

    return {
        "cleaning.json": in_place(run / "cleaning.json", lambda _: load_tokenizer(run)),
        "about.json": in_place(data / "train" / "about.json", opened),
        "ids": in_place(data / "train" / "source.ids", opened),
        "text.json": in_place(data / "valid" / "text.json", prepared_again),
    }


def _run_targets(directory: Path) -> dict[str, Target]:
    """What a run is read from: its configuration and its checkpoints."""
    import torch

    from dragoman.model.checkpoint import (
        TrainingProgress,
        load_training_state,
        load_weights,
        optimizer_state_of,
        save_checkpoint,
        save_weights,
        weights_of,
    )
    from dragoman.model.transformer import Transformer
    from dragoman.run_directory import RunDirectory

    small = ModelConfig(vocab_size=11, encoder_layers=1, decoder_layers=1, d_model=4, d_ff=4, num_heads=2)
    model = Transformer(small)
    optimizer = torch.optim.Adam(model.parameters())
    torch.stack([parameter.sum() for parameter in model.parameters()]).sum().backward()
    optimizer.step()
    run = RunDirectory(directory / "run")
    run.write_config(RunConfig(model=small))
    save_weights(run.model_path, weights_of(model))
    save_checkpoint(run, weights_of(model), optimizer_state_of(model, optimizer), TrainingProgress(step=1), keep=1)
    (checkpoint,) = run.checkpoints()
    config = run.config_path.read_bytes()

    def read_config(path: Path) -> None:
        run.config_path.write_bytes(path.read_bytes())
        run.read_config()

    def resumed(name: str) -> Target:
        good = (checkpoint / name).read_bytes()

        def resume(path: Path) -> None:
            (checkpoint / name).write_bytes(path.read_bytes())
            try:
                load_training_state(checkpoint, model, optimizer)
            finally:
                (checkpoint / name).write_bytes(good)

        return Target([good], resume, TOKENS)

    weights = run.model_path.read_bytes()
    return {
        "config.json": Target([config], read_config, TOKENS),
        "weights": Target([weights], lambda path: load_weights(path, model), TOKENS),
        "optimizer": resumed("optimizer.safetensors"),
        "progress.json": Target(
            [json.dumps(asdict(TrainingProgress())).encode()], resumed("progress.json").read, TOKENS
        ),
    }


def mutated(target: Target, draw: random.Random) -> bytes:
    """A good input with one to four faults. Faults at the beginning come more often: headers are there."""
    data = bytearray(draw.choice(target.seeds))
    for _ in range(draw.choice((1, 1, 2, 4))):
        size = len(data)
        at = (
            min(draw.randrange(size + 1), draw.randrange(size + 1)) if draw.random() < 0.5 else draw.randrange(size + 1)
        )
        span = draw.choice((1, 2, 8, 100))
        match draw.randrange(7):
            case 0 if size:
                data[min(at, size - 1)] ^= 1 << draw.randrange(8)
            case 1:
                data[at : at + span] = draw.randbytes(span)
            case 2:
                del data[at : at + span]
            case 3:
                data[at:at] = data[at : at + span]
            case 4:
                del data[at:]
            case 5:
                other = draw.choice(target.seeds)
                data[at:] = other[draw.randrange(len(other) + 1) :]
            case _:
                data[at:at] = draw.choice(target.tokens)
    return bytes(data)


def outcome(target: Target, data: bytes, path: Path) -> str:
    """`read` or `refused`; anything else is raised."""
    path.write_bytes(data)
    try:
        target.read(path)
    except DragomanError as error:
        if len(str(error).splitlines()) != 1:
            raise
        return "refused"
    return "read"


def run(inputs: int, directory: Path, names: list[str] | None = None, seed: int = 0) -> dict[str, Counter[str]]:
    """So many inputs, dealt to the targets in turn, or as many as there are when Ctrl-C is pressed.

    An input that fails is left in the directory.
    """
    chosen = {name: target for name, target in targets(directory).items() if names is None or name in names}
    counts: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    turns = [name for turn in range(5) for name in chosen if turn == 0 or name not in SLOW]
    with contextlib.suppress(KeyboardInterrupt):
        for number, name in zip(range(inputs), itertools.cycle(turns), strict=False):
            data = mutated(chosen[name], random.Random(f"{seed} {name} {number}"))
            counts[name][outcome(chosen[name], data, directory / "input")] += 1
    return counts


def guided(inputs: int, directory: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["dragoman", "tomllib", "json", "safetensors"]):
        chosen = targets(directory)
    names, seeds = list(chosen), directory / "seeds"
    seeds.mkdir()
    for index, name in enumerate(names):
        for number, seed in enumerate(chosen[name].seeds):
            (seeds / f"{index}-{number}").write_bytes(bytes([index]) + seed)
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}

    def one(data: bytes) -> None:
        if data:
            name = names[data[0] % len(names)]
            counts[name][outcome(chosen[name], data[1:], directory / "input")] += 1
            if sum(counter.total() for counter in counts.values()) == inputs:
                report(counts)
                os._exit(0)  # atheris would go on, or leave without a word

    atheris.Setup([sys.argv[0], f"-runs={10 * inputs}", "-max_len=20000", "-rss_limit_mb=4000", str(seeds)], one)
    atheris.Fuzz()


def report(counts: dict[str, Counter[str]]) -> None:
    for name, counter in counts.items():
        print(f"{name:<14} {counter['read']:>9,} read {counter['refused']:>9,} refused", flush=True)
    total = sum(counter.total() for counter in counts.values())
    print(f"{total:,} inputs, each read or refused in one line", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="only these readers")
    parser.add_argument("--coverage-guided", action="store_true")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="fuzz-"))
    print(f"the input at work is {directory / 'input'}", file=sys.stderr)
    begin = time.monotonic()
    if options.coverage_guided:
        guided(options.inputs, directory)
    counts: dict[str, Any] = run(options.inputs, directory, options.target, options.seed)
    report(counts)
    print(f"{time.monotonic() - begin:.0f} seconds, {time.process_time():.0f} of CPU time", file=sys.stderr)


if __name__ == "__main__":
    main()
