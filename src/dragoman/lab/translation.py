"""Arms that train a translator with `dragoman.training.loop`, and the measurements of a trained one.

One rule makes a recipe of the paper's Table 3 small enough for one core: widths (d_model, d_ff, d_k, d_v) a
quarter, layers a half, steps a hundredth. Probabilities (dropout, label smoothing) and the number of heads stay.
Rows stay ratios of each other. For all alike: 1,000 tokens a step and a vocabulary of 4,000. Two families:

    quick    normalisation before the sub-layer, a rate that rises for 200 steps and falls straight to zero; the highest
             is 4e-3 at d_model = 128 and goes with d_model^-0.5, as in equation 3. Searched by CTranslate2. For
             questions about a trained translator, whatever trained it: kind "translation"
    paper    normalisation after the sub-layer and equation 3's form of rate, as the paper has it, with a warm-up of 300
             steps and a highest rate that was chosen on the validation set; whatever is compared with it has its own
             rate by the same number of trials. All are searched by the reference engine, exactly: kind "translator"

No comparison mixes the two.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from dragoman.config import CorpusConfig, DataConfig, ModelConfig, RunConfig, SearchConfig, TrainConfig, recipes
from dragoman.data.batching import Batch
from dragoman.data.corpus import raw_pairs, read_lines
from dragoman.data.dataset import Prepared, prepare
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import EngineName
from dragoman.errors import UsageError
from dragoman.evaluation import metrics
from dragoman.files import write_atomically
from dragoman.lab.bootstrap import sentence_statistics
from dragoman.lab.queue import Arm, LabSettings, LabSize, Measurements
from dragoman.lab.tasks import one_thread
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.probe import Intervention, Probe, Site
from dragoman.model.sequence_model import SequenceModel
from dragoman.model.transformer import count_parameters
from dragoman.run_directory import CLEANING, TOKENIZER, RunDirectory

BASE_SEEDS = 5  # of the base row: their spread is the noise band of all others


@dataclass(frozen=True)
class RecipeScale:
    """How a recipe of the paper is made smaller: divisors of its numbers, and what takes the place of others."""

    width: int
    layers: int
    steps: int
    batch_tokens: int
    vocab_size: int
    warmup_steps: int
    peak_rate: float  # at d_model 128


SCALES: Mapping[LabSize, RecipeScale] = {
    "small": RecipeScale(
        width=4, layers=2, steps=100, batch_tokens=1000, vocab_size=4000, warmup_steps=200, peak_rate=4e-3
    ),
    "smoke": RecipeScale(
        width=64, layers=6, steps=50_000, batch_tokens=400, vocab_size=320, warmup_steps=1, peak_rate=4e-3
    ),
}
TEXT = {"small": "Multi30k English-German", "smoke": "made-up sentences"}


def scaled(recipe: str, size: LabSize, **changes: Any) -> RunConfig:
    """A recipe made smaller by the rule above, then changed: `train__seed=2` sets the key train.seed."""
    scale, paper = SCALES[size], recipes.load(recipe).config

    def narrow(width: int) -> int:
        return max(1, width // scale.width)

    def shallow(layers: int) -> int:
        return max(1, layers // scale.layers)

    model = replace(
        paper.model,
        vocab_size=scale.vocab_size,
        d_model=narrow(paper.model.d_model),
        d_ff=narrow(paper.model.d_ff),
        d_k=narrow(paper.model.key_size),
        d_v=narrow(paper.model.value_size),
        encoder_layers=shallow(paper.model.encoder_layers),
        decoder_layers=shallow(paper.model.decoder_layers),
        norm_order="pre",
    )
    steps = max(2, paper.train.steps // scale.steps)
    train = replace(
        paper.train,
        steps=steps,
        batch_tokens=scale.batch_tokens,
        micro_batch_tokens=scale.batch_tokens // 4,
        schedule="linear",
        warmup_steps=scale.warmup_steps,
        valid_steps=steps,
        valid_sentences=1,  # the test set is translated afterwards, with a beam
        keep_checkpoints=1,
        average_checkpoints=1,
        threads=1,
    )
    values: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
    for name, value in changes.items():
        section, _, key = name.partition("__")
        values[section][key] = value
    if "steps" in values["train"]:
        values["train"].setdefault("valid_steps", values["train"]["steps"])
    model = replace(model, **values["model"])
    values["train"].setdefault("peak_rate", float(f"{scale.peak_rate * (128 / model.d_model) ** 0.5:.4g}"))
    return RunConfig(model, DataConfig(), replace(train, **values["train"]), paper.search)


def translation_arm(settings: LabSettings, name: str, seed: int, recipe: str = "table3-base", **changes: Any) -> Arm:
    """An arm that trains a translator of the quick family. Its configuration holds what differs from the paper's base
    model, so that equal trainings are the same arm, whichever experiment asks for them."""
    config = scaled(recipe, settings.size, **changes, train__seed=seed)
    return Arm(
        "translation", f"{name}, seed {seed}", {"text": TEXT[settings.size]} | different(config), cost_of(config)
    )


def paper_arm(
    settings: LabSettings, name: str, seed: int, recipe: str = "table3-base", pairs: int | None = None, **changes: Any
) -> Arm:
    """An arm that trains a translator of the paper's family, on all of the text or its first `pairs`."""
    steps = scaled(recipe, settings.size).train.steps
    paper = {"model__norm_order": "post", "train__schedule": "paper", "train__warmup_steps": max(1, steps * 3 // 10)}
    config = scaled(recipe, settings.size, **(paper | changes), train__seed=seed)
    text = {"text": TEXT[settings.size], "pairs": pairs, "search": "reference engine, beam 4, alpha 0.6"}
    return Arm("translator", f"{name}, seed {seed}", text | different(config), cost_of(config))


def different(config: RunConfig) -> dict[str, dict[str, Any]]:
    """What of model and training differs from the paper's base model; the seed always."""
    plain = {"model": dataclasses.asdict(ModelConfig()), "train": dataclasses.asdict(TrainConfig()) | {"seed": None}}
    sections = {"model": dataclasses.asdict(config.model), "train": dataclasses.asdict(config.train)}
    return {
        section: {key: value for key, value in values.items() if value != plain[section][key]}
        for section, values in sections.items()
    }


def cost_of(config: RunConfig) -> float:
    """Roughly: tokens times parameters that work on each."""
    model, layers = config.model, config.model.encoder_layers + config.model.decoder_layers
    width = model.num_heads * (model.key_size + model.value_size) * 2 + 2 * model.d_ff + 300
    return float(f"{config.train.steps * config.train.batch_tokens * layers * model.d_model * width / 1e12:.4g}")


Choice = TypeVar("Choice")


def chosen(settings: LabSettings, trials: Mapping[Choice, Arm]) -> Choice:
    """The setting whose trial has the lowest validation loss; while a trial is missing, the one in the middle, for a
    plan of what comes after."""
    found = {setting: settings.queue.find(arm) for setting, arm in trials.items()}
    losses = {setting: one.measurements["nll"] for setting, one in found.items() if one is not None}
    if len(losses) < len(trials):
        return list(trials)[len(trials) // 2]
    return min(losses, key=lambda setting: losses[setting])


PAPER_RATES = (5e-4, 1e-3, 2e-3, 4e-3)  # at d_model 128


def paper_trials(settings: LabSettings) -> dict[float, Arm]:
    """The base row of the paper's family at each rate, from which the rate of all rows is chosen."""
    rates = PAPER_RATES[:2] if settings.size == "smoke" else PAPER_RATES
    return {rate: paper_arm(settings, f"base, rate {rate:g}", 1, train__peak_rate=rate) for rate in rates}


def row_arm(settings: LabSettings, name: str, seed: int, recipe: str = "table3-base", **changes: Any) -> Arm:
    """A row of Table 3 in the paper's family: the chosen rate, by d_model^-0.5."""
    width = scaled(recipe, settings.size).model.d_model / scaled("table3-base", settings.size).model.d_model
    rate = chosen(settings, paper_trials(settings)) * width**-0.5
    return paper_arm(settings, name, seed, recipe, train__peak_rate=float(f"{rate:.4g}"), **changes)


def long_arm(settings: LabSettings, name: str, seed: int, recipe: str = "table3-base", **changes: Any) -> Arm:
    """The same for twenty epochs of Multi30k, where a regulariser has something to do: 11,300 steps of 1,000 tokens."""
    steps = 4 if settings.size == "smoke" else 11_300
    return row_arm(settings, name, seed, recipe, train__steps=steps, **changes)


def base_arms(settings: LabSettings) -> list[Arm]:
    """The base row of Table 3, with as many seeds as are needed to estimate the noise."""
    seeds = range(1, 1 + max(settings.seeds or 0, 1 if settings.size == "smoke" else BASE_SEEDS))
    return [translation_arm(settings, "base", seed) for seed in seeds]


def config_of(arm: Arm) -> RunConfig:
    """The whole configuration that an arm's training has, but for its text."""
    values = {section: dict(arm.configuration[section]) for section in ("model", "train")}
    return RunConfig.from_json(json.dumps(values), arm.name)


def measure_translation(arm: Arm, settings: LabSettings) -> Measurements:
    """Trains the arm's translator; perplexity on the validation set, BLEU on the test set with the paper's beam."""
    run = trained(arm, settings)
    sources, references = test_set(settings)
    outputs = translations(run, sources, engine="auto" if arm.kind == "translation" else "reference")
    events = run.events()
    losses = [round(event["loss"], 4) for event in events if event["event"] == "train"]
    valid = [event for event in events if event["event"] == "valid"]
    measurements: Measurements = {
        "bleu": bleu(outputs, references),
        "nll": valid[-1]["nll"],
        "perplexity": valid[-1]["perplexity"],
        "length_ratio": sum(len(o.split()) for o in outputs) / sum(len(r.split()) for r in references),
        "bleu_by_length": bleu_by_length(sources, outputs, references),
        "parameters": parameters_of(run),
        "tokens": sum(event["tokens"] for event in events if event["event"] == "train"),
        "losses": losses,
        "gradient_norms": [round(event["gradient_norm"], 4) for event in events if event["event"] == "train"],
        "validations": [[event["step"], event["nll"], event["bleu"]] for event in valid],
        "skipped_steps": sum(event["event"] == "skipped" for event in events),
        "seconds_in_all": max((event["seconds"] for event in events if "seconds" in event), default=0.0),
    }
    if config_of(arm).train.patience:  # systems that are compared within a seed, too
        measurements["sentence_statistics"] = sentence_statistics(outputs, references)
    if config_of(arm).train.keep_checkpoints == 1:  # the optimiser's state is three times the model
        shutil.rmtree(run.checkpoints_path, ignore_errors=True)
    return measurements


def trained(arm: Arm, settings: LabSettings) -> RunDirectory:
    """The run of an arm, trained now if it is not there; a training that was stopped is resumed."""
    from dragoman.training.loop import train

    run = RunDirectory(settings.work / "runs" / arm.key)
    if run.model_card_path.exists() and "finished_at" in json.loads(run.model_card_path.read_text()):
        return run
    pairs = arm.configuration.get("pairs")
    data, source = text_of(settings, pairs), text_directory(settings, pairs)
    prepared_text(settings, pairs)
    run.path.mkdir(parents=True, exist_ok=True)
    for name in (TOKENIZER, CLEANING):
        shutil.copy(source / name, run.path / name)
    if not (run.path / "data").exists():
        shutil.copytree(source / "data", run.path / "data", copy_function=os.link)
    log = (run.path / "training.txt").open("a", encoding="utf-8")
    # The caller may have switched gradients off, to look into the trained model.
    with log, contextlib.redirect_stderr(log), one_thread(), torch.inference_mode(mode=False):
        train(replace(config_of(arm), data=data), run, "dragoman lab run")
    return run


def run_of(arm: Arm, settings: LabSettings, *own: str) -> RunDirectory:
    """The run of the translator that an arm of another kind measures; `own` are the keys that only this arm has."""
    configuration = {key: value for key, value in arm.configuration.items() if key not in own}
    return trained(Arm("translation", arm.name, configuration), settings)


def text_directory(settings: LabSettings, pairs: int | None = None) -> Path:
    return settings.work / (f"text-{settings.size}" if pairs is None else f"text-{settings.size}-{pairs}")


def prepared_text(settings: LabSettings, pairs: int | None = None) -> Prepared:
    """The tokenised text and its tokenizer, made once for all arms of so many pairs."""
    size = SCALES[settings.size].vocab_size
    return prepare(text_of(settings, pairs), size, 1, text_directory(settings, pairs), lambda _: None)


def text_of(settings: LabSettings, pairs: int | None = None) -> DataConfig:
    """The training and validation text: Multi30k or its first pairs, or a few made-up sentences."""
    if settings.size == "smoke":
        made_up = _made_up_text(settings.work / "made-up")
        train, valid = (CorpusConfig(pairs=str(made_up / f"{part}.tsv")) for part in ("train", "valid"))
    else:
        directory = multi30k(settings)
        train, valid = (
            CorpusConfig(source=str(directory / f"{part}.en.gz"), target=str(directory / f"{part}.de.gz"))
            for part in ("train", "val")
        )
    if pairs is not None:
        train = CorpusConfig(pairs=str(_first_pairs(train, pairs, settings.work / f"first-{pairs}.tsv")))
    return DataConfig(train=(train,), valid=(valid,))


def _first_pairs(corpus: CorpusConfig, count: int, path: Path) -> Path:
    if not path.exists():
        lines = [b"\t".join(columns[:2]) for columns in itertools.islice(raw_pairs(corpus), count)]
        write_atomically(path, b"\n".join(lines) + b"\n")
    return path


def multi30k(settings: LabSettings) -> Path:
    if settings.data is None or not (settings.data / "train.en.gz").is_file():
        raise UsageError(
            f"lab: no Multi30k in {settings.data}; give --data DIRECTORY with train, val and test_2016_flickr, "
            f".en.gz and .de.gz each"
        )
    return settings.data


def test_set(settings: LabSettings) -> tuple[list[str], list[str]]:
    if settings.size == "smoke":
        lines = (_made_up_text(settings.work / "made-up") / "valid.tsv").read_text(encoding="utf-8").splitlines()
        pairs = [line.split("\t") for line in lines]
        return [source for source, _ in pairs], [target for _, target in pairs]
    directory = multi30k(settings)
    source, target = (list(read_lines(directory / f"test_2016_flickr.{side}.gz")) for side in ("en", "de"))
    return source, target


def translations(
    run: RunDirectory, sources: Sequence[str], beam: int = 4, alpha: float = 0.6, engine: EngineName = "auto"
) -> list[str]:
    """Translations by one engine; "auto" is CTranslate2 if it supports the model."""
    from dragoman.translation.translator import Translator

    with one_thread():
        return Translator.load(run.path, beam=beam, alpha=alpha, engine=engine).translate(
            sources, whole=True, protect=False
        )


def translate_greedily(model: SequenceModel, tokenizer: Tokenizer, sources: Sequence[str]) -> list[str]:
    """By the reference engine, for a model that is not a run's."""
    from dragoman.decoding.engines.torch_engine import ReferenceEngine
    from dragoman.translation.translator import Translator

    translator = Translator(ReferenceEngine([model], tokenizer), tokenizer, SearchConfig(beam=1))
    return translator.translate(sources, whole=True, protect=False)


def mean_nll(
    model: SequenceModel, batches: Iterable[Batch], interventions: Mapping[Site, Intervention] | None = None
) -> float:
    """Negative log-likelihood a target token, over all of the batches."""
    total = tokens = 0.0
    for batch in batches:
        probe = None if interventions is None else Probe(interventions)
        hidden = model.states(batch.source, batch.target, batch.source_mask, probe)
        _, nll = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.0)
        total, tokens = total + float(nll), tokens + batch.tokens
    return total / tokens


def bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    return metrics.bleu(outputs, [[reference] for reference in references]).value


LENGTHS = ((1, 8), (9, 12), (13, 17), (18, 999))  # words of the source


def bleu_by_length(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> list[float | None]:
    scores: list[float | None] = []
    for low, high in LENGTHS:
        rows = [i for i, source in enumerate(sources) if low <= len(source.split()) <= high]
        scores.append(bleu([outputs[i] for i in rows], [references[i] for i in rows]) if rows else None)
    return scores


def parameters_of(run: RunDirectory) -> int:
    from dragoman.model.sequence_model import make_model

    return count_parameters(make_model(run.read_config().model))


def _made_up_text(directory: Path) -> Path:
    """Writes pairs of sentences in two invented languages, word for word the same, so that no data is needed."""
    if not directory.exists():
        draw, words = random.Random(1), [f"{a}{b}" for a in "bdfgklmn" for b in ("a", "e", "i", "o")]
        lines = {" ".join(draw.choices(words, k=draw.randint(2, 9))) for _ in range(140)}
        pairs = [f"{line}\t{line.translate(str.maketrans('bdfgaeio', 'pzvkoiea'))}\n" for line in sorted(lines)]
        directory.mkdir(parents=True)
        (directory / "train.tsv").write_text("".join(pairs[:-12]), encoding="utf-8")
        (directory / "valid.tsv").write_text("".join(pairs[-12:]), encoding="utf-8")
    return directory
