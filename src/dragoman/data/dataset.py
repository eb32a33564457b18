"""Turns files of text into token ids on disk, which are memory-mapped: the whole corpus is never in memory.

`prepare` does all of it: it cleans the text, learns the vocabulary and encodes. What it writes is named by a hash of
the content, so that a run that is started again opens it at once, and text that was changed meanwhile is noticed.
"""

import hashlib
import itertools
import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dragoman.config import TEXT_CHANGES, CorpusConfig, DataConfig
from dragoman.data.augmentation import chunks_of, encode_chunk, known_tags, require_bpe, split_tags
from dragoman.data.cleaning import CleanedCorpora, check_corpora, require_pairs
from dragoman.data.corpus import CleaningReport, Corpus, LineVerdict, file_digest
from dragoman.data.phrase_pairs import Lexicon, learn_lexicon
from dragoman.data.text_changes import NEED_LEXICON
from dragoman.data.tokenizer import Tokenizer, choose_vocab_size, load_tokenizer
from dragoman.errors import DataError, DragomanError
from dragoman.files import WriteError, replacing, write_atomically
from dragoman.processes import map_on_all_cores
from dragoman.run_directory import CLEANING, DATA, TOKENIZER

ABOUT, TEXT = "about.json", "text.json"  # what encoded text holds; the pairs of validation text, to be scored against
FORMAT = 2  # raised when cleaning or the files below change, so that older data is made anew
CHUNK_PAIRS = 10_000  # pairs encoded at a time
_ALWAYS_RECORDED = ("upper_case", "title_case", "short_phrases", "typos", "bpe_dropout")  # of views; others if not 0
_ID_TYPES = ("uint16", "uint32")
SAMPLE_PAIRS = 500_000  # that the vocabulary is learned from
_SAMPLE_CHARACTERS = 150_000_000


@dataclass(frozen=True)
class Dataset:
    """Pairs of token ids, without start and end symbols. All arrays but `corpus` stay on disk and are memory-mapped."""

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
        """Opens what `encode_corpora` wrote."""
        try:
            about = json.loads((directory / ABOUT).read_text(encoding="utf-8"))
            dtype, counts = about["dtype"], about["counts"]
            known = dtype in _ID_TYPES and len(counts) in (0, len(weights))  # none: there is no validation text
            if not known or any(type(count) is not int or count < 0 for count in counts):
                raise ValueError(f"{ABOUT} does not describe it")
            pairs = sum(counts)
            arrays: dict[str, Any] = {}
            for side in ("source", "target"):
                arrays[f"{side}_lengths"] = _mapped(directory / f"{side}.lengths", np.int32, pairs)
                arrays[f"{side}_offsets"] = offsets = _mapped(directory / f"{side}.offsets", np.uint64, pairs + 1)
                arrays[f"{side}_ids"] = _mapped(directory / f"{side}.ids", dtype, int(offsets[-1]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{directory}: damaged ({error}); delete it and start again to encode the text anew"
            ) from None
        corpus = np.repeat(np.arange(len(counts), dtype=np.uint16), counts)
        return cls(corpus=corpus, weights=tuple(weights), **arrays)


def _mapped(path: Path, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
    """Opens a file as a memory-mapped array of so many numbers; another size is a ValueError."""
    expected, found = count * np.dtype(dtype).itemsize, path.stat().st_size
    if found != expected:
        raise ValueError(f"{path.name} has {found:,} bytes, not {expected:,}")
    # A plain array over the map, because slices of np.memmap itself are much slower. An empty file cannot be mapped.
    return np.asarray(np.memmap(path, dtype, mode="r", shape=count)) if count else np.zeros(0, dtype)


@dataclass(frozen=True)
class Prepared:
    """The tokenizer and the encoded text of a training."""

    tokenizer: Tokenizer
    train: Dataset
    valid: Dataset
    valid_pairs: list[tuple[str, str]]  # the text of `valid`, in its order
    report: CleaningReport
    further_views: tuple[Dataset, ...] = ()  # other versions of `train`: the same pairs, row by row, changed

    def view(self, epoch: int) -> Dataset:
        """The version of the training text that an epoch uses: each the next."""
        views = (self.train, *self.further_views)
        return views[epoch % len(views)]


def prepare(
    config: DataConfig, vocab_size: int, seed: int, run_directory: Path, say: Callable[[str], None]
) -> Prepared:
    """Cleans the text, learns a vocabulary and encodes; or opens what an earlier call left in the run's directory.

    Writes tokenizer.model, cleaning.json and data/. With `vocab_size` 0 the size is chosen from the amount of text. A
    tokenizer that is already there is used and never learned again: checkpoints may depend on it.
    """
    tokenizer_path, record_path = run_directory / TOKENIZER, run_directory / CLEANING
    inputs = _inputs(config, seed)
    record = _read_record(record_path) if record_path.exists() else None
    tokenizer = load_tokenizer(run_directory) if tokenizer_path.exists() else None
    if tokenizer is not None and record is not None:
        _require_same_inputs(record["inputs"], inputs, run_directory)
        directory = _data_directory(run_directory, inputs, tokenizer)
        if directory.is_dir():
            say(f"the text is unchanged: reading {directory}")
            return _open(directory, tokenizer, config, record["report"])

    say(f"reading and cleaning {', '.join(dict.fromkeys(f['path'] for f in (*inputs['train'], *inputs['valid'])))}")
    checked = check_corpora(config, seed)
    if tokenizer is None and config.tokenizer is not None:
        tokenizer = Tokenizer.load(config.tokenizer)
    if tokenizer is None:
        size = vocab_size or choose_vocab_size(sum(corpus.characters for corpus in checked.train))
        say(f"learning a vocabulary of {size:,} pieces")
        tokenizer = Tokenizer.learn(
            _sample(checked.train), size, config.tags, casing=config.casing, split_digits=config.split_digits
        )
    elif config.casing == "inline" and not tokenizer.case_marks:
        say("the vocabulary that is given keeps its own casing, which is plain")

    def write_record(report: CleaningReport) -> None:
        record = {"tokenizer": tokenizer.digest, "inputs": inputs, "report": report.to_dict()}
        write_atomically(record_path, _to_json(record))

    directory = _data_directory(run_directory, inputs, tokenizer)
    try:
        run_directory.mkdir(parents=True, exist_ok=True)
        # The record first: a tokenizer in a run's directory must never be without a record of the text it belongs to.
        write_record(checked.report())
        tokenizer.save(tokenizer_path)
        shutil.rmtree(directory.parent, ignore_errors=True)  # the data of an earlier state, or half of it
        with replacing(directory) as unfinished:
            _encode_all(checked, tokenizer, unfinished, config, seed, say)
            report = checked.report()
            write_record(report)
    except (OSError, WriteError) as error:  # reading went well, but there is no room for the ids
        reason = error.reason if isinstance(error, WriteError) else error.strerror or error
        raise DragomanError(
            f"{run_directory}: cannot be written ({reason}); free some disk, or give another --out"
        ) from None
    for line in report.summary():
        say(line)
    return _open(directory, tokenizer, config, report)


def _encode_all(
    checked: CleanedCorpora,
    tokenizer: Tokenizer,
    directory: Path,
    config: DataConfig,
    seed: int,
    say: Callable[[str], None],
) -> None:
    """Writes train/ and valid/, and a directory for each further view of the training text. Where there is one view
    only, it is the changed one: a text that is seen hardly more than once would otherwise be learned as it is."""
    for name, corpora in (("train", checked.train), ("valid", checked.valid)):
        say(f"encoding {sum(map(len, corpora)):,} pairs for {name}")
        encode_corpora(corpora, tokenizer, directory / name, config.max_length, keep_text=name == "valid")
    require_pairs(checked.train)
    tags = known_tags(tokenizer, config)
    if config.bpe_dropout:
        sample = [side for pair in itertools.islice(_pairs(checked.train), CHUNK_PAIRS) for side in pair]
        require_bpe(tokenizer, sample, tags)
    sentences = ((split_tags(source, tags)[1], target) for source, target in _pairs(checked.train))
    lexicon = learn_lexicon(sentences) if any(getattr(config, change) for change in NEED_LEXICON) else {}
    if config.changes and config.views == 1:
        say("encoding the training text as it is changed")
        with replacing(directory / "train") as changed:
            encode_view(checked.train, tokenizer, lexicon, changed, config, seed, view=0)
    for view in range(1, config.views):
        say(f"encoding a changed version of the training text: view {view + 1} of {config.views}")
        encode_view(checked.train, tokenizer, lexicon, directory / _view_name(view), config, seed, view)


def encode_corpora(
    corpora: Sequence[Corpus], tokenizer: Tokenizer, directory: Path, max_length: int, keep_text: bool = False
) -> None:
    """Writes the ids of the corpora's selected pairs. Drops pairs with a side of more than `max_length` tokens."""
    directory.mkdir(parents=True)
    dtype = np.dtype(_ID_TYPES[max(tokenizer.vocab_size, tokenizer.source_vocab_size) > 2**16])
    counts: list[int] = []
    text: list[tuple[str, str]] = []
    with _SideWriter(directory, "source", dtype) as source_side, _SideWriter(directory, "target", dtype) as target_side:
        for corpus in corpora:
            counts.append(0)
            dropped: dict[LineVerdict, list[int]] = {LineVerdict.TOO_LONG: [], LineVerdict.EMPTY: []}
            position = 0
            for chunk in chunks_of(corpus.pairs(), CHUNK_PAIRS):
                sources, targets = [], []
                for pair, (source, target) in zip(chunk.pairs, tokenizer.encode_pairs(chunk.pairs), strict=True):
                    if max(len(source), len(target)) > max_length:
                        dropped[LineVerdict.TOO_LONG].append(position)
                    elif not source or not target:  # a tokenizer from elsewhere may normalise it to nothing
                        dropped[LineVerdict.EMPTY].append(position)
                    else:
                        sources.append(source)
                        targets.append(target)
                        if keep_text:
                            text.append(pair)
                    position += 1
                source_side.add(sources)
                target_side.add(targets)
                counts[-1] += len(sources)
            corpus.drop(dropped)
    if keep_text:
        (directory / TEXT).write_bytes(_to_json(text))
    (directory / ABOUT).write_bytes(_to_json({"dtype": dtype.name, "counts": counts}))


def encode_view(
    corpora: Sequence[Corpus],
    tokenizer: Tokenizer,
    lexicon: Lexicon,
    directory: Path,
    config: DataConfig,
    seed: int,
    view: int,
    processes: int | None = None,
) -> None:
    """Writes the ids of one view: the pairs that `encode_corpora` kept, in the same rows, changed as this view has
    them."""
    directory.mkdir(parents=True)
    dtype = np.dtype(_ID_TYPES[max(tokenizer.vocab_size, tokenizer.source_vocab_size) > 2**16])
    tags = known_tags(tokenizer, config)
    encode = partial(encode_chunk, tokenizer=tokenizer, lexicon=lexicon, tags=tags, config=config, seed=seed, view=view)
    with _SideWriter(directory, "source", dtype) as source_side, _SideWriter(directory, "target", dtype) as target_side:
        for ids in map_on_all_cores(encode, chunks_of(_pairs(corpora), CHUNK_PAIRS), processes):
            source_side.add(ids[::2])
            target_side.add(ids[1::2])
    about = {"dtype": dtype.name, "counts": [len(corpus) for corpus in corpora]}
    (directory / ABOUT).write_bytes(_to_json(about))


def _pairs(corpora: Sequence[Corpus]) -> Iterator[tuple[str, str]]:
    return itertools.chain.from_iterable(corpus.pairs() for corpus in corpora)


def _view_name(view: int) -> str:
    return f"train-view-{view}" if view else "train"


class _SideWriter:
    """Writes the files of one side, sequence by sequence."""

    def __init__(self, directory: Path, side: str, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._total = 0
        self._ids, self._lengths, self._offsets = (
            (directory / f"{side}.{kind}").open("wb") for kind in ("ids", "lengths", "offsets")
        )
        np.zeros(1, np.uint64).tofile(self._offsets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._ids, self._lengths, self._offsets):
            file.close()

    def add(self, sequences: Sequence[Sequence[int]]) -> None:
        """Appends the ids of some sentences."""
        lengths = np.fromiter(map(len, sequences), np.int32, len(sequences))
        ends = self._total + np.cumsum(lengths, dtype=np.uint64)
        np.fromiter(itertools.chain.from_iterable(sequences), self._dtype, int(lengths.sum())).tofile(self._ids)
        lengths.tofile(self._lengths)
        ends.astype(np.uint64).tofile(self._offsets)
        self._total = int(ends[-1]) if len(ends) else self._total


def _sample(corpora: Sequence[Corpus]) -> Iterator[str]:
    """Samples sentences of both languages, from every n-th pair: as many as a vocabulary needs and memory can hold."""
    pairs, characters = sum(map(len, corpora)), sum(corpus.characters for corpus in corpora)
    step = max(1, math.ceil(pairs / SAMPLE_PAIRS), math.ceil(characters / _SAMPLE_CHARACTERS))
    for corpus in corpora:
        yield from itertools.chain.from_iterable(itertools.islice(corpus.pairs(), 0, None, step))


def _open(directory: Path, tokenizer: Tokenizer, config: DataConfig, report: CleaningReport) -> Prepared:
    weights = [corpus.weight for corpus in config.train]
    train, *further_views = (Dataset.open(directory / _view_name(view), weights) for view in range(config.views))
    valid = Dataset.open(directory / "valid", [1.0] * len(config.valid or config.train))
    text = read_text(directory)
    if len(text) != len(valid):
        raise DataError(
            f"{directory}: damaged ({len(text):,} pairs of text for {len(valid):,} of ids); delete it and start again"
        )
    return Prepared(tokenizer, train, valid, text, report, tuple(further_views))


def prepared_directory(run_directory: Path) -> Path | None:
    """The directory with train/ and valid/ in which `prepare` left the data of a run; None if it is not there."""
    descriptions = run_directory.glob(f"{DATA}/*/train/{ABOUT}")
    found = [path.parents[1] for path in descriptions if path.parents[1].suffix == ""]
    return found[0] if len(found) == 1 else None


def read_text(directory: Path) -> list[tuple[str, str]]:
    """Reads the validation pairs of prepared data as text, in the order of their ids."""
    text_path = directory / "valid" / TEXT
    try:
        return [(source, target) for source, target in json.loads(text_path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{text_path}: damaged ({error}); delete {directory} and start again") from None


def validation_pairs(run_directory: Path, most: int | None = None) -> list[tuple[str, str]]:
    """Reads the first `most` pairs that a run is validated with; none if the run was moved without its data."""
    directory = prepared_directory(run_directory)
    return [] if directory is None else read_text(directory)[:most]


def _inputs(config: DataConfig, seed: int) -> dict[str, Any]:
    """Collects all that the prepared data depends on: settings by their full names, and the hash of each file."""

    def files(corpora: Sequence[CorpusConfig]) -> list[dict[str, str]]:
        paths = [
            path for corpus in corpora for path in (corpus.pairs, corpus.source, corpus.target) if path is not None
        ]
        return [{"path": path, "sha256": file_digest(path)} for path in paths]

    settings: dict[str, Any] = {
        "data.max_length": config.max_length,
        "data.max_length_ratio": config.max_length_ratio,
        "data.drop_duplicates": config.drop_duplicates,
        "data.tokenizer": None if config.tokenizer is None else Tokenizer.load(config.tokenizer).digest,
        "data.hold_out": 0 if config.valid else config.hold_out,
        "train.seed": None if config.valid else seed,  # it chooses what is held out
    }
    for name in ("casing", "split_digits"):  # only where asked for, so that data prepared before stays valid
        value = getattr(config, name)
        if config.tokenizer is None and value != getattr(DataConfig, name):
            settings[f"data.{name}"] = value
    if config.tags:  # only where there are any, so that data prepared before there were tags stays valid
        settings["data.tags"] = [[corpus.tag, corpus.back_tag] for corpus in config.train]
        settings["data.valid tags"] = [[corpus.tag, corpus.back_tag] for corpus in config.valid]
    if config.changes:  # only then, so that data prepared before there were views stays valid
        changes = {name: getattr(config, name) for name in ("views", "bpe_dropout", *TEXT_CHANGES)}
        settings |= {f"data.{name}": value for name, value in changes.items() if value or name in _ALWAYS_RECORDED}
        settings["train.seed"] = seed
    return {"settings": settings, "train": files(config.train), "valid": files(config.valid)}


def _data_directory(run_directory: Path, inputs: dict[str, Any], tokenizer: Tokenizer) -> Path:
    """The directory for these inputs: its name is a hash of them."""
    digests = [[file["sha256"] for file in inputs[role]] for role in ("train", "valid")]
    # The ids of a text depend on its languages where they are tokens.
    key = json.dumps([FORMAT, inputs["settings"], digests, tokenizer.digest, *tokenizer.chosen_languages])
    return run_directory / DATA / hashlib.sha256(key.encode()).hexdigest()[:16]


def _require_same_inputs(before: dict[str, Any], now: dict[str, Any], run_directory: Path) -> None:
    """Raises a DataError unless the run has the training text and settings that it began with. Validation files may
    change: nothing was learned from them."""
    remedy = "its tokenizer and checkpoints belong to the text it began with; give a new --out, or restore it"
    for old, new in itertools.zip_longest(before["train"], now["train"]):
        if new is None:
            raise DataError(f"{run_directory}: was begun with {old['path']} too; {remedy}")
        if old is None or old["sha256"] != new["sha256"]:
            how = "was not part of this run" if old is None else "is not the file this run was begun with"
            raise DataError(f"{run_directory}: {new['path']} {how}; {remedy}")
    plain = {f"data.{name}": value for name, value in vars(DataConfig()).items()}
    for name in now["settings"] | before["settings"]:
        old, new = (settings["settings"].get(name, plain.get(name)) for settings in (before, now))
        if old != new:
            raise DataError(f"{run_directory}: {name} was {old} when this run began, is {new} now; {remedy}")


def _read_record(path: Path) -> dict[str, Any]:
    """Reads a run's cleaning.json: the inputs, the cleaning report and the tokenizer's hash."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        files = [{"path": str(file["path"]), "sha256": file["sha256"]} for file in record["inputs"]["train"]]
        return {
            "inputs": {"train": files, "settings": dict(record["inputs"]["settings"])},
            "report": CleaningReport.from_dict(record["report"]),
            "tokenizer": record.get("tokenizer"),
        }
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: damaged; restore it, or give a new --out") from None


def _to_json(value: Any) -> bytes:
    # A path that is not UTF-8 has lone surrogates in it; a backslash and its number is how JSON writes those.
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode(errors="backslashreplace")
