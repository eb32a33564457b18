"""Makes configurations that train on plain text or on labelled text, as the pairs that the trainer takes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dragoman.config import CorpusConfig, RunConfig
from dragoman.data.corpus import read_pairs
from dragoman.data.tokenizer import load_tokenizer
from dragoman.errors import ConfigError, DataError
from dragoman.model.checkpoint import begin_with, load_model, weights_of
from dragoman.model.sequence_model import make_model
from dragoman.run_directory import RunDirectory, require_task


def with_text(config: RunConfig, train: Sequence[Path], valid: Path | None) -> RunConfig:
    """The configuration with plain text, one sentence in each line. Source and target are the same line; an encoder or
    a decoder alone uses one of them."""

    def own_pairs(path: Path) -> CorpusConfig:
        return CorpusConfig(source=str(path), target=str(path))

    valid_corpora = () if valid is None else (own_pairs(valid),)
    return replace(config, data=replace(config.data, train=tuple(map(own_pairs, train)), valid=valid_corpora))


def with_labels(config: RunConfig, train: Path, valid: Path | None) -> RunConfig:
    """The configuration with labelled text: a sentence, a tab and a label in each line."""
    classes = tuple(sorted({label.strip() for _, label in read_pairs(train)}))
    if len(classes) < 2:
        raise DataError(f"{train}: {len(classes)} labels ({', '.join(classes)}); a classifier needs at least 2")
    corpora = [() if path is None else (CorpusConfig(pairs=str(path)),) for path in (train, valid)]
    data = replace(config.data, train=corpora[0], valid=corpora[1])
    return replace(config, model=replace(config.model, classes=classes), data=data)


def continuing_from(masked: Path, config: RunConfig, out: Path) -> RunConfig:
    """Starts a classifier in `out` with the size, vocabulary and weights of a masked model; only its last projection is
    new. Returns the configuration that trains it."""
    before = RunDirectory.open(masked)
    require_task(before, "restore")
    masked_config = before.read_config().model
    model_config = replace(masked_config, classes=config.model.classes, dropout=config.model.dropout)
    config = replace(config, model=model_config, data=replace(config.data, tokenizer=str(before.tokenizer_path)))
    torch.manual_seed(config.train.seed)
    learned = {name: tensor for name, tensor in weights_of(load_model(before)).items() if not name.startswith("output")}
    weights = weights_of(make_model(model_config)) | learned
    begin_with(weights, before, RunDirectory(out), config, load_tokenizer(before.path))
    return config


def require_half(config: RunConfig, recipe: str, task: str) -> None:
    """Raises unless the recipe's model is trained for this task: an encoder alone, or a decoder alone."""
    if config.model.task != task:
        layers = f"encoder_layers = {config.model.encoder_layers}, decoder_layers = {config.model.decoder_layers}"
        none = "encoder_layers" if task == "continue" else "decoder_layers"
        raise ConfigError(f"{recipe}: {layers} makes a model that is trained to {config.model.task}; set {none} = 0")
