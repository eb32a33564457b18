"""Token ids on disk, memory-mapped; never the whole corpus in memory.

`prepare` is the whole way from files of text to ids: clean, learn the vocabulary, encode. What it writes is keyed by
content, so that a run started again opens it at once, and text that changed under a run is noticed.
"""

import hashlib
import itertools
import json
import math
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dragoman.config import CorpusConfig, DataConfig
from dragoman.corpus import CleaningReport, Corpus, Verdict, check_corpora, file_digest, require_pairs
from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer, choose_vocab_size

FORMAT = 1  # raised when cleaning or the files below change, so that older data is made anew
_CHUNK = 10_000  # pairs encoded at a time
_SAMPLE_PAIRS = 500_000  # to learn the vocabulary from
_SAMPLE_CHARACTERS = 150_000_000


@dataclass(frozen=True)
class Dataset:
    """Pairs of token ids, without begin and end symbols. The ids stay on disk; lengths and offsets are in memory."""

    source_ids: npt.NDArray[Any]
    target_ids: npt.NDArray[Any]
    source_lengths: npt.NDArray[np.int32]
    target_lengths: npt.NDArray[np.int32]
    source_offsets: npt.NDArray[np.uint64]  # pair i is ids[offsets[i] : offsets[i + 1]]
    target_offsets: npt.NDArray[np.uint64]
    corpus: npt.NDArray[np.uint16]  # which corpus each pair is from
    weights: tuple[float, ...]  # of each corpus

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> npt.NDArray[Any]:
        return self.source_ids[self.source_offsets[index] : self.source_offsets[index + 1]]

    def target(self, index: int) -> npt.NDArray[Any]:
        return self.target_ids[self.target_offsets[index] : self.target_offsets[index + 1]]

    @classmethod
    def open(cls, directory: Path, weights: Sequence[float]) -> Self:
        """What `encode_corpora` wrote."""
        try:
            about = json.loads((directory / "about.json").read_text(encoding="utf-8"))
            dtype, counts = np.dtype(about["dtype"]), about["counts"]
            arrays: dict[str, Any] = {}
            for side in ("source", "target"):
                lengths = np.fromfile(directory / f"{side}.lengths", dtype=np.int32, count=sum(counts))
                offsets = np.zeros(len(lengths) + 1, dtype=np.uint64)
                np.cumsum(lengths, out=offsets[1:])
                total = int(offsets[-1])
                arrays[f"{side}_lengths"], arrays[f"{side}_offsets"] = lengths, offsets
                # As a plain array over the map: slices of np.memmap itself are much slower. An empty file has no map.
                ids = (
                    np.memmap(directory / f"{side}.ids", dtype, mode="r", shape=total) if total else np.zeros(0, dtype)
                )
                arrays[f"{side}_ids"] = np.asarray(ids)
                if len(lengths) != sum(counts):
                    raise ValueError(f"{side}.lengths is too short")
        except (OSError, ValueError, KeyError) as error:
            raise DataError(
                f"{directory}: damaged ({error}); delete it and start again to encode the text anew"
            ) from None
        corpus = np.repeat(np.arange(len(counts), dtype=np.uint16), counts)
        return cls(corpus=corpus, weights=tuple(weights), **arrays)


@dataclass(frozen=True)
class Prepared:
    """All that training needs to know of its text."""

    tokenizer: Tokenizer
    train: Dataset
    valid: Dataset
    valid_pairs: list[tuple[str, str]]  # the text of `valid`, in its order
    report: CleaningReport


def prepare(
    config: DataConfig, vocab_size: int, seed: int, run_directory: Path, say: Callable[[str], None]
) -> Prepared:
    """Clean, learn a vocabulary and encode; or open what an earlier call left in the run's directory.

    Writes tokenizer.model, cleaning.json and data/. With `vocab_size` 0 the size is chosen from the amount of text.
    A tokenizer that is there already is used and never learned anew: checkpoints may depend on it.
    """
    tokenizer_path, record_path = run_directory / "tokenizer.model", run_directory / "cleaning.json"
    inputs = _inputs(config, seed)
    record = _read_record(record_path) if record_path.exists() else None
    tokenizer = Tokenizer.load(tokenizer_path) if tokenizer_path.exists() else None
    if tokenizer is not None and record is not None:
        _require_same_inputs(record["inputs"], inputs, run_directory)
        directory = _data_directory(run_directory, inputs, tokenizer)
        if directory.is_dir():
            say(f"the text is unchanged: reading {directory}")
            return _open(directory, tokenizer, config, CleaningReport.from_dict(record["report"]))

    say(f"reading and cleaning {', '.join(file['path'] for file in (*inputs['train'], *inputs['valid']))}")
    checked = check_corpora(config, seed)
    run_directory.mkdir(parents=True, exist_ok=True)
    if tokenizer is None:
        if config.tokenizer is not None:
            tokenizer = Tokenizer.load(config.tokenizer)
        else:
            size = vocab_size or choose_vocab_size(sum(corpus.characters for corpus in checked.train))
            say(f"learning a vocabulary of {size:,} pieces")
            tokenizer = Tokenizer.learn(_sample(checked.train), size)
        # The record first: no tokenizer shall lie in a run's directory without a note of the text it belongs to.
        _write_json(record_path, {"inputs": inputs, "report": checked.report().to_dict()})
        tokenizer.save(tokenizer_path)

    directory = _data_directory(run_directory, inputs, tokenizer)
    partial = directory.with_name(directory.name + ".partial")
    shutil.rmtree(directory.parent, ignore_errors=True)  # the data of an earlier state, or half of it
    for name, corpora in (("train", checked.train), ("valid", checked.valid)):
        say(f"encoding {sum(map(len, corpora)):,} pairs for {name}")
        encode_corpora(corpora, tokenizer, partial / name, config.max_length, keep_text=name == "valid")
    require_pairs(checked.train)
    report = checked.report()
    _write_json(record_path, {"inputs": inputs, "report": report.to_dict()})
    partial.replace(directory)
    for line in report.summary():
        say(line)
    return _open(directory, tokenizer, config, report)


def encode_corpora(
    corpora: Sequence[Corpus], tokenizer: Tokenizer, directory: Path, max_length: int, keep_text: bool = False
) -> None:
    """Write the ids of the selected pairs. Pairs with a side of more than `max_length` tokens are dropped there."""
    directory.mkdir(parents=True)
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32)
    source_lengths, target_lengths = array("i"), array("i")
    counts: list[int] = []
    text: list[tuple[str, str]] = []
    with (directory / "source.ids").open("wb") as source_file, (directory / "target.ids").open("wb") as target_file:
        for corpus in corpora:
            already = len(source_lengths)
            dropped: dict[Verdict, list[int]] = {Verdict.TOO_LONG: [], Verdict.EMPTY: []}
            position = 0
            for chunk in _chunks(corpus.pairs()):
                encoded = tokenizer.encode_batch([side for pair in chunk for side in pair])
                sources, targets = [], []
                for pair, source, target in zip(chunk, encoded[::2], encoded[1::2], strict=True):
                    if max(len(source), len(target)) > max_length:
                        dropped[Verdict.TOO_LONG].append(position)
                    elif not source or not target:  # a given tokenizer may normalise all of a side away
                        dropped[Verdict.EMPTY].append(position)
                    else:
                        sources.append(source)
                        targets.append(target)
                        if keep_text:
                            text.append(pair)
                    position += 1
                for file, lengths, side in (
                    (source_file, source_lengths, sources),
                    (target_file, target_lengths, targets),
                ):
                    lengths.extend(map(len, side))
                    np.fromiter(itertools.chain.from_iterable(side), dtype).tofile(file)
            counts.append(len(source_lengths) - already)
            corpus.drop(dropped)
    np.array(source_lengths, np.int32).tofile(directory / "source.lengths")
    np.array(target_lengths, np.int32).tofile(directory / "target.lengths")
    if keep_text:
        _write_json(directory / "text.json", text)
    _write_json(directory / "about.json", {"dtype": dtype.name, "counts": counts})


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    while chunk := list(itertools.islice(pairs, _CHUNK)):
        yield chunk


def _sample(corpora: Sequence[Corpus]) -> Iterator[str]:
    """Sentences of both languages, every n-th pair: as many as a vocabulary needs and memory bears."""
    pairs, characters = sum(map(len, corpora)), sum(corpus.characters for corpus in corpora)
    step = max(1, math.ceil(pairs / _SAMPLE_PAIRS), math.ceil(characters / _SAMPLE_CHARACTERS))
    for corpus in corpora:
        yield from itertools.chain.from_iterable(itertools.islice(corpus.pairs(), 0, None, step))


def _open(directory: Path, tokenizer: Tokenizer, config: DataConfig, report: CleaningReport) -> Prepared:
    train = Dataset.open(directory / "train", [corpus.weight for corpus in config.train])
    valid = Dataset.open(directory / "valid", [1.0] * len(config.valid or config.train))
    text = json.loads((directory / "valid" / "text.json").read_text(encoding="utf-8"))
    return Prepared(tokenizer, train, valid, [(source, target) for source, target in text], report)


def _inputs(config: DataConfig, seed: int) -> dict[str, Any]:
    """All that the prepared data depends on: settings by their full names, and the content of each file."""

    def files(corpora: Sequence[CorpusConfig]) -> list[dict[str, str]]:
        paths = [
            path for corpus in corpora for path in (corpus.pairs, corpus.source, corpus.target) if path is not None
        ]
        return [{"path": path, "sha256": file_digest(path)} for path in paths]

    settings = {
        "data.max_length": config.max_length,
        "data.max_length_ratio": config.max_length_ratio,
        "data.drop_duplicates": config.drop_duplicates,
        "data.tokenizer": None if config.tokenizer is None else Tokenizer.load(config.tokenizer).digest,
        "data.hold_out": 0 if config.valid else config.hold_out,
        "train.seed": None if config.valid else seed,  # it chooses what is held out
    }
    return {"settings": settings, "train": files(config.train), "valid": files(config.valid)}


def _data_directory(run_directory: Path, inputs: dict[str, Any], tokenizer: Tokenizer) -> Path:
    digests = [[file["sha256"] for file in inputs[role]] for role in ("train", "valid")]
    key = json.dumps([FORMAT, inputs["settings"], digests, tokenizer.digest])
    return run_directory / "data" / hashlib.sha256(key.encode()).hexdigest()[:16]


def _require_same_inputs(before: dict[str, Any], now: dict[str, Any], run_directory: Path) -> None:
    """A run keeps the training text it began with. Validation files may change: nothing was learned from them."""
    remedy = "its tokenizer and checkpoints belong to the text it began with; give a new --out, or restore it"
    for old, new in itertools.zip_longest(before["train"], now["train"]):
        if new is None:
            raise DataError(f"{run_directory}: was begun with {old['path']} too; {remedy}")
        if old is None or old["sha256"] != new["sha256"]:
            how = "was not part of this run" if old is None else "is not the file this run was begun with"
            raise DataError(f"{run_directory}: {new['path']} {how}; {remedy}")
    for name, new in now["settings"].items():
        old = before["settings"].get(name)
        if old != new:
            raise DataError(f"{run_directory}: {name} was {old} when this run began, is {new} now; {remedy}")


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {"inputs": record["inputs"], "report": record["report"]}
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}: damaged; restore it, or give a new --out") from None


def _write_json(path: Path, value: Any) -> None:
    """In one step: a reader finds the whole file or none."""
    partial = path.with_name(path.name + ".partial")
    # A path that is not UTF-8 has lone surrogates in it; a backslash and its number is how JSON writes those.
    partial.write_bytes((json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode(errors="backslashreplace"))
    partial.replace(path)
