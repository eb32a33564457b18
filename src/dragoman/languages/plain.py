"""From plain text, or labelled text, to the pairs that the trainer of translators takes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.config import CorpusConfig, RunConfig
from dragoman.corpus import read_pairs
from dragoman.errors import ConfigError, DataError
from dragoman.rundir import RunDirectory, require_task


def with_text(config: RunConfig, train: Sequence[Path], valid: Path | None) -> RunConfig:
    """Train on plain text, one sentence a line: each line is its own pair, of which half a model looks at one side."""

    def own_pairs(path: Path) -> CorpusConfig:
        return CorpusConfig(source=str(path), target=str(path))

    valid_corpora = () if valid is None else (own_pairs(valid),)
    return replace(config, data=replace(config.data, train=tuple(map(own_pairs, train)), valid=valid_corpora))


def with_labels(config: RunConfig, train: Path, valid: Path | None, start_from: Path | None) -> RunConfig:
    """Train on labelled text, a sentence, a tab and a label a line; perhaps from a masked model's weights, whose size
    and vocabulary the classifier then has."""
    classes = tuple(sorted({label.strip() for _, label in read_pairs(train)}))
    if len(classes) < 2:
        raise DataError(f"{train}: {len(classes)} labels ({', '.join(classes)}); a classifier needs at least 2")
    corpora = [() if path is None else (CorpusConfig(pairs=str(path)),) for path in (train, valid)]
    data = replace(config.data, train=corpora[0], valid=corpora[1])
    if start_from is None:
        return replace(config, model=replace(config.model, classes=classes), data=data)
    masked = RunDirectory.open(start_from)
    require_task(masked, "restore")
    model = replace(masked.read_config().model, classes=classes, dropout=config.model.dropout)
    data = replace(data, tokenizer=str(masked.tokenizer_path))
    return replace(config, model=model, data=data, train=replace(config.train, start_from=str(start_from)))


def require_half(config: RunConfig, recipe: str, task: str) -> None:
    """That a recipe's model is the half of one that a command trains."""
    if config.model.task != task:
        layers = f"encoder_layers = {config.model.encoder_layers}, decoder_layers = {config.model.decoder_layers}"
        none = "encoder_layers" if task == "continue" else "decoder_layers"
        raise ConfigError(f"{recipe}: {layers} makes a model that is trained to {config.model.task}; set {none} = 0")
