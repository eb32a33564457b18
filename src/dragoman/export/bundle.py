"""Packs a run into one zip file: its weights, the files needed to use them, and a model card.

README.md   the card for people       card.json   the same for programs, with the hash of every file
run/        config.json, tokenizer.model, model.safetensors, model.json, cleaning.json, metrics.jsonl ...
text/       the training and validation files, if they are asked for

`dragoman translate my.zip` and every other command that takes a run takes a bundle as well.
"""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, RunConfig
from dragoman.data.corpus import file_digest
from dragoman.data.language_codes import language_name, languages_of
from dragoman.data.tokenizer import load_tokenizer
from dragoman.decoding.engines.ct2_cache import processor
from dragoman.errors import DataError, UsageError
from dragoman.files import read_json, read_manifest, replacing, sha256
from dragoman.importing.model_card import read_card
from dragoman.run_directory import (
    BUNDLE_CARD,
    CLEANING,
    CONFIDENCE,
    CONFIG,
    ENGINE,
    LANGUAGES,
    METRICS,
    MODEL_CARD,
    ORIGINAL_CARD,
    ORIGINAL_LICENCE,
    TOKENIZER,
    WEIGHTS,
    RunDirectory,
)

FORMAT = 1
NEEDED = (CONFIG, TOKENIZER, WEIGHTS)
USEFUL = (MODEL_CARD, CLEANING, METRICS, ENGINE, LANGUAGES, CONFIDENCE, ORIGINAL_CARD, ORIGINAL_LICENCE)


@dataclass(frozen=True)
class About:
    """The part of a model card that only its author can write."""

    title: str = ""
    author: str = ""
    licence: str = ""  # of the weights, as an SPDX name: Apache-2.0, CC-BY-4.0
    data_licence: str = ""  # of the text that they were trained on
    notes: str = ""


def bundle(run: str | Path, out: str | Path, about: About | None = None, with_text: bool = False) -> Path:
    """Writes a run and its model card into one zip file."""
    directory, path, about = RunDirectory.open(run), Path(out), about or About()
    if path.exists():
        raise UsageError(f"bundle: {path} is there already; remove it, or give another --out")
    for name in NEEDED:
        if not (directory.path / name).is_file():
            raise DataError(f"{directory.path}: {name} is missing; train the run to its end first")
    from dragoman.model.checkpoint import load_model

    load_tokenizer(directory.path)  # a damaged run is reported now, not when someone unpacks it
    load_model(directory)
    card = make_card(directory, about)
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", "\n".join(card_lines(card)) + "\n")
        archive.writestr(BUNDLE_CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        for name in card["files"]:
            archive.write(directory.path / name, f"run/{name}")
        for digest, file in text_files(directory.read_config()) if with_text else ():
            archive.write(file, f"text/{digest}")
    return path


def text_files(config: RunConfig) -> Iterator[tuple[str, Path]]:
    """The files that the run was trained on, each once, with its hash."""
    seen = set()
    for corpus in (*config.data.train, *config.data.valid):
        for name in files_of(corpus):
            digest = file_digest(name)
            if digest not in seen:
                seen.add(digest)
                yield digest, Path(name)


def files_of(corpus: CorpusConfig) -> list[str]:
    return [name for name in (corpus.pairs, corpus.source, corpus.target) if name is not None]


def make_card(run: RunDirectory, about: About) -> dict[str, Any]:
    """The model card: everything that the run's own files record, and what its author adds."""
    config = run.read_config()
    found = [name for name in (*NEEDED, *USEFUL) if (run.path / name).is_file()]
    languages = languages_of(run)
    cleaning = read_json(run.cleaning_path) if CLEANING in found else {}
    inputs = cleaning.get("inputs", {})
    weights = read_json(run.model_card_path) if MODEL_CARD in found else {}
    original = read_card(run.path)
    return {
        "format": FORMAT,
        "about": vars(replace(about, licence=about.licence or original.licence)),
        "languages": None if languages is None else list(languages),
        "software": {"dragoman": _version(), "licence": "Apache-2.0"},
        "weights": weights,
        "original": {
            **{name: weights[name] for name in ("from", "hub", "revision", "commit") if name in weights},
            **{name: getattr(original, name) for name in ("licence", "languages", "tags", "datasets")},
        },
        "training": _training(run, config),
        "validation": _validation(run),
        "data": {
            "train": inputs.get("train", []),
            "valid": inputs.get("valid", []),
            "cleaning": cleaning.get("report", {}).get("corpora", []),
        },
        "config": json.loads(config.to_json()),
        "began_with": _began_with(run),
        "files": {name: sha256(run.path / name) for name in found},
    }


def _training(run: RunDirectory, config: RunConfig) -> dict[str, Any]:
    ends = [event for event in run.events() if event["event"] == "end"]
    checkpoints = run.checkpoints()
    made_by = read_manifest(checkpoints[-1]).get("made_by", {}) if checkpoints else {}
    return {
        "steps": ends[-1]["step"] if ends else None,
        "seconds": ends[-1]["seconds"] if ends else None,
        "seed": config.train.seed,
        "by_the_clock": config.train.minutes is not None,
        "processes": made_by.get("ranks"),
        "threads": made_by.get("threads"),
        "torch": made_by.get("torch"),
        "processor": processor(),  # of the machine on which the bundle is made
    }


def _validation(run: RunDirectory) -> dict[str, Any] | None:
    """BLEU of the bundle's weights by greedy search, as measured while training."""
    events = run.events()
    valid = [event for event in events if event["event"] == "valid"]
    ends = [event for event in events if event["event"] == "end"]
    if not valid or not ends:
        return None
    of_kind = {"average": "average_bleu", "last": "average_bleu", "ema": "ema_bleu"}
    bleu = ends[-1].get(of_kind.get(ends[-1]["kind"], "best_bleu"))
    if bleu is None:  # the run does not translate: it classifies, or continues text
        return None
    return {"bleu": bleu, "signature": valid[-1]["signature"], "search": "greedy"}


def _began_with(run: RunDirectory) -> str | None:
    """The hash of the weights that a fine-tuned run started from."""
    plan_path = run.finetune_plan_path
    return str(read_json(plan_path)["made_from"]["weights"]) if plan_path.is_file() else None


def _version() -> str:
    try:
        return metadata.version("dragoman")
    except metadata.PackageNotFoundError:
        return "from source"


@dataclass
class _CardPage:
    """The lines of a card in Markdown."""

    lines: list[str] = field(default_factory=list)

    def table(self, title: str, rows: list[tuple[str, Any]]) -> None:
        """Adds a heading and a table of the rows that have a value; nothing if none has."""
        known = [(name, value) for name, value in rows if value not in (None, "", [])]
        if known:
            self.lines += ["", f"## {title}", "", "| | |", "|---|---|"]
            self.lines += [f"| {name} | {_cell(value)} |" for name, value in known]


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def card_lines(card: dict[str, Any]) -> list[str]:
    """The card as a page of Markdown."""
    about, model = card["about"], card["config"]["model"]
    languages = card["languages"]
    direction = "" if languages is None else " to ".join(map(language_name, languages))
    page = _CardPage([f"# {about['title'] or direction or 'A translator'}"])
    if about["notes"]:
        page.lines += ["", about["notes"]]
    page.table("Use", _use_rows(card, direction))
    validation = card["validation"] or {}
    page.table(
        "Quality",
        [
            ("BLEU on the validation text", validation and f"{validation['bleu']:.2f}, {validation['search']}"),
            ("sacreBLEU signature", validation and f"`{validation['signature']}`"),
        ],
    )
    page.table("The public model that it was made of", _original_rows(card))
    page.table("Training", _training_rows(card))
    wanted = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads", "dropout", "norm_order", "vocab_size")
    page.table("Model", [(name, model[name]) for name in wanted])
    for corpus in card["data"]["cleaning"]:
        dropped = ", ".join(f"{count:,} {rule.replace('_', ' ')}" for rule, count in corpus["dropped"].items())
        rows = [("lines", f"{corpus['lines']:,}"), ("kept", f"{corpus['kept']:,}"), ("dropped", dropped)]
        page.table(f"Text for {corpus['role']}: {Path(corpus['name']).name}", rows)
    files = [
        (Path(file["path"]).name, f"`{file['sha256']}`") for role in ("train", "valid") for file in card["data"][role]
    ]
    page.table("Files of text, by SHA-256", files)
    page.lines += ["", "card.json has all of it, the whole configuration included."]
    return page.lines


def _use_rows(card: dict[str, Any], direction: str) -> list[tuple[str, Any]]:
    about, software = card["about"], card["software"]
    return [
        ("languages", direction),
        ("made by", about["author"]),
        ("licence of the weights", about["licence"] or "not stated"),
        ("licence of the text", about["data_licence"] or "not stated"),
        ("software", f"Dragoman {software['dragoman']}, {software['licence']}"),
        ("translate with it", "`dragoman translate THIS.zip`, or `dragoman unbundle THIS.zip --out RUN`"),
    ]


def _original_rows(card: dict[str, Any]) -> list[tuple[str, Any]]:
    original = card["original"]
    return [
        ("name", original.get("from")),
        ("commit", original.get("commit")),
        ("licence", original["licence"]),
        ("trained on", ", ".join(original["datasets"])),
        ("tags", ", ".join(original["tags"])),
        ("its own card", f"run/{ORIGINAL_CARD}" if ORIGINAL_CARD in card["files"] else None),
        ("text of the licence", f"run/{ORIGINAL_LICENCE}" if ORIGINAL_LICENCE in card["files"] else None),
    ]


def _training_rows(card: dict[str, Any]) -> list[tuple[str, Any]]:
    training, began_with = card["training"], card["began_with"]
    return [
        ("steps", training["steps"] and f"{training['steps']:,}"),
        ("time", training["seconds"] and f"{training['seconds'] / 60:.1f} minutes"),
        ("machine of the bundle", training["processor"]),
        ("threads", training["threads"]),
        ("torch", training["torch"]),
        ("seed", training["seed"]),
        ("began with the weights", began_with and f"`{began_with[:16]}`"),
        ("done again with", "`dragoman reproduce THIS.zip --out RUN`"),
    ]
