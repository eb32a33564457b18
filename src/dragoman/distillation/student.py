"""Chooses the student's shape: a deep encoder and a shallow decoder, as each token of a translation passes the decoder
by itself (Kasai et al. 2021); and gives it a teacher's layers to begin with. Imports torch only for these."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dragoman.config import TEXT_CHANGES, ModelConfig, RunConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.distillation import Begin, StudentVocabulary
from dragoman.errors import DataError, UsageError
from dragoman.quickstart.planning import SizeChoice
from dragoman.quickstart.sizing import Size
from dragoman.run_directory import RunDirectory

if TYPE_CHECKING:
    from torch import Tensor

# From the smallest to the largest, each with the pairs and the epochs from which on it is worth its time.
SIZES = (
    Size("tiny 6 + 1", 6, 1, 128, 512, 4, "muon", 8e-3, 0, 0.0),
    Size("small 6 + 1", 6, 1, 192, 768, 6, "muon", 6e-3, 20_000, 4.0),
    Size("medium 6 + 2", 6, 2, 256, 1024, 8, "muon", 4e-3, 100_000, 4.0),
    Size("base 12 + 1", 12, 1, 512, 2048, 8, "adam", 7e-4, 1_000_000, 4.0),
)
# What a student that begins with a teacher's layers has of it, beside their number.
_NOT_TAKEN = {"encoder_layers", "decoder_layers", "dropout", "vocab_size"}


def choice_for(
    teachers: Sequence[RunDirectory],
    run: RunDirectory,
    tokenizer: Tokenizer,
    vocabulary: StudentVocabulary,
    begin: Begin,
) -> SizeChoice:
    """Returns the sizes to choose among, none wider than the widest teacher, and what all of them have."""
    configs = [teacher.read_config() for teacher in teachers]
    first, widest = configs[0].model, max(config.model.d_model for config in configs)
    # The noise is in the text already: the teacher has translated it.
    settings: dict[str, Any] = {"search.beam": 1, "data.views": 1} | {f"data.{change}": 0.0 for change in TEXT_CHANGES}
    if vocabulary == "own":
        settings |= {"data.casing": configs[0].data.casing, "data.split_digits": configs[0].data.split_digits}
    else:
        _require_one_language(tokenizer)
        settings |= {
            "data.tokenizer": str(run.tokenizer_path),
            "model.source_vocab_size": first.source_vocab_size,
            "model.tie_embeddings": first.tie_embeddings,
            "model.tied_pair": first.tied_pair,
        }
    if begin == "scratch":
        return SizeChoice([size for size in SIZES if size.d_model <= widest] or SIZES[:1], settings)
    if vocabulary != "teacher":
        raise UsageError("distill: --begin teacher with a vocabulary of its own; add --vocabulary teacher")
    if first.architecture != "transformer":
        raise DataError(f"{teachers[0].path}: an LSTM, and a student is a Transformer; leave --begin teacher out")
    taken = {name: value for name, value in asdict(first).items() if name not in _NOT_TAKEN}
    settings |= {f"model.{name}": value for name, value in taken.items()}
    return SizeChoice([_like(first)], settings)


def _require_one_language(tokenizer: Tokenizer) -> None:
    if tokenizer.languages:
        raise UsageError(
            f"distill: the teacher's vocabulary is one of several languages ({', '.join(tokenizer.languages)}), and "
            f"the student translates into one; leave --vocabulary teacher out"
        )


def _like(teacher: ModelConfig) -> Size:
    """The teacher's widths, with six layers of the encoder at least as many as it has, and one of the decoder."""
    layers = min(6, teacher.encoder_layers)
    nearest = min(SIZES, key=lambda size: abs(size.d_model - teacher.d_model))
    name = f"teacher's width {layers} + 1"
    widths = teacher.d_model, teacher.d_ff, teacher.num_heads
    return Size(name, layers, 1, *widths, nearest.optimizer, nearest.peak_rate, 0, 0.0)


def layers_taken(student: int, teacher: int) -> list[int]:
    """Returns which of the teacher's layers each layer of the student begins as: evenly spaced, the first and the last
    among them; a single one is the first (Shleifer and Rush 2020)."""
    if student == 1:
        return [0]
    return [round(index * (teacher - 1) / (student - 1)) for index in range(student)]


def begin_with_teacher(teacher: RunDirectory, run: RunDirectory, config: RunConfig, tokenizer: Tokenizer) -> int:
    """Writes what a training at step 0 has, with weights of the teacher wherever shapes agree; returns how many
    parameters those are. A run that already has checkpoints is left as it is."""
    import torch

    from dragoman.model.checkpoint import begin_with, load_model, weights_of
    from dragoman.model.sequence_model import make_model

    if run.checkpoints():
        return 0
    torch.manual_seed(config.train.seed)
    weights, given = weights_of(make_model(config.model)), weights_of(load_model(teacher))
    shape = teacher.read_config().model
    taken = {
        "encoder": layers_taken(config.model.encoder_layers, shape.encoder_layers),
        "decoder": layers_taken(config.model.decoder_layers, shape.decoder_layers),
    }
    count = 0
    for name, weight in weights.items():
        found = given.get(_name_in_teacher(name, taken))
        if found is not None and found.shape == weight.shape:
            weights[name], count = _copied(found), count + found.numel()
    begin_with(weights, teacher, run, config, tokenizer)
    return count


def _name_in_teacher(name: str, taken: dict[str, list[int]]) -> str:
    """The name of the teacher's weight that this one begins as: encoder.1.… may be encoder.5.… there."""
    half, *rest = name.split(".")
    if half in taken and rest and rest[0].isdecimal():
        return ".".join([half, str(taken[half][int(rest[0])]), *rest[1:]])
    return name


def _copied(tensor: "Tensor") -> "Tensor":
    return tensor.detach().clone()
