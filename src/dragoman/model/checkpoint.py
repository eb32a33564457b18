"""Weights and training state on disk: safetensors and JSON, no pickle, tied weights once."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman.config import RunConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError, UsageError
from dragoman.files import (
    damage,
    discard,
    read_json,
    read_manifest,
    replacing,
    sha256,
    write_atomically,
    write_manifest,
)
from dragoman.model.learned import Learned, learned_of
from dragoman.model.sequence_model import SequenceModel, make_model
from dragoman.model.transformer import Transformer
from dragoman.run_directory import WEIGHTS, RunDirectory

# The files of a checkpoint, beside its weights.
OPTIMIZER = "optimizer.safetensors"
PROGRESS = "progress.json"
EMA = "ema"  # in the optimiser's state: a running average of the parameter


@dataclass
class TrainingProgress:
    """Where a training stands: all that is needed to resume it, beside the weights and the optimiser.

    Random numbers are not part of it: those of a step are drawn from (seed, step), those of an epoch's order from
    (seed, epoch).
    """

    step: int = 0  # steps done
    epoch: int = 0
    position: int = 0  # steps done in this epoch
    seconds: float = 0.0  # of training so far, validation included
    best_score: float = -1.0  # in the measure of the task: BLEU where it translates
    best_nll: float = 1e9  # its loss a token
    best_step: int = 0
    stale_validations: int = 0  # since the best
    validated: bool = True  # whether the step done last was followed by a validation
    log_bytes: int = 0  # how much of metrics.jsonl belongs to the steps done
    # Sums since the last line of measurements, so that the next one is the same after an interruption.
    pending_loss: float = 0.0
    pending_nll: float = 0.0
    pending_tokens: int = 0
    pending_rates: list[float] = field(default_factory=list)  # where the clock decides them
    chain: str = ""  # over the hashes of all checkpoints so far, in order; those of interruptions are not links of it
    # What went wrong so far, and what was done about it.
    skipped_in_a_row: int = 0  # steps whose loss or gradient was not finite
    setbacks: int = 0  # times the run went back to a checkpoint because of such steps
    rate_factor: float = 1.0  # lower after each of them
    pass_tokens: int = 0  # the most that one pass takes, where memory did not hold a micro-batch; 0: any

    def advance(self) -> None:
        """One step further."""
        self.step += 1
        self.position += 1
        self.validated = False
        self.skipped_in_a_row = 0


def weights_of(model: SequenceModel) -> dict[str, Tensor]:
    """Each parameter once, under the first name of those that share it, and the running statistics of batch norms."""
    kept: dict[str, Tensor] = dict(model.named_parameters())
    in_state = model.state_dict()
    kept.update((name, buffer) for name, buffer in model.named_buffers() if name in in_state)
    return {name: whole(tensor.detach()).contiguous() for name, tensor in kept.items()}


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself, or all of one that is divided among ranks: each of them has to ask for it."""
    # Asked for by its method: importing DTensor takes a second, and only a divided model has any.
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def optimizer_state_of(
    model: SequenceModel, optimizer: torch.optim.Optimizer, learned: Learned | None = None
) -> dict[str, Tensor]:
    """What a training needs to go on, beside the weights: the optimiser's state, and the factors of low-rank additions.
    `learned`: what of the model the optimiser changes; None: all."""
    learned = learned or learned_of(model)
    names: dict[Tensor, str] = {parameter: name for name, parameter in learned.parameters.items()}
    return learned.state() | {
        f"{names[parameter]}:{key}": whole(value).contiguous()
        for parameter, values in optimizer.state.items()
        for key, value in values.items()
    }


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    with replacing(path) as temporary:
        _write_tensors(temporary, weights)


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise OSError(str(error)) from None


def load_weights(path: Path, model: SequenceModel) -> None:
    """Fill the model from the file; names and shapes must be exactly the model's."""
    found, wanted = read_tensors(path), weights_of(model)
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found or name not in wanted:
            where = "the file" if name not in found else "the configuration's model"
            raise DataError(f"{path}: {name} is missing from {where}; weights and config.json are of different runs")
        if found[name].shape != wanted[name].shape:
            raise DataError(
                f"{path}: {name} has shape {tuple(found[name].shape)}, the configuration says "
                f"{tuple(wanted[name].shape)}; weights and config.json are of different runs"
            )
    for name, tensor in wanted.items():
        tensor.copy_(found[name])


def read_tensors(path: Path) -> dict[str, Tensor]:
    with _said_in_a_line(path):
        return load_file(path)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with _said_in_a_line(path), safe_open(path, "pt") as file:
        yield file


@contextlib.contextmanager
def _said_in_a_line(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; is the training finished, or was it stopped before it saved?") from None
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a readable safetensors file ({error}); use another checkpoint") from None


def load_model(run: RunDirectory, checkpoint: str | None = None) -> SequenceModel:
    """The run's model for translating: `model.safetensors`, or the weights of the checkpoint that is named."""
    path = run.model_path
    if checkpoint is not None:
        path = run.checkpoints_path / checkpoint / WEIGHTS
        if not path.is_file():
            known = ", ".join(p.name for p in run.checkpoints()) or "none"
            raise UsageError(f"{run.path} has no checkpoint {checkpoint}; kept: {known}")
    elif not path.is_file() and run.checkpoints():  # stopped before the first validation
        path = run.checkpoints()[-1] / WEIGHTS
    model = make_model(run.read_config().model)
    load_weights(path, model)
    return model.eval()


def load_transformer(run: RunDirectory, checkpoint: str | None = None) -> Transformer:
    """`load_model` for what needs attention heads or half a model; a UsageError if the run is an LSTM."""
    model = load_model(run, checkpoint)
    if not isinstance(model, Transformer):
        raise UsageError(f"{run.path}: an LSTM; use a run with model.architecture = transformer")
    return model


def save_checkpoint(
    run: RunDirectory,
    weights: dict[str, Tensor],
    optimizer_state: dict[str, Tensor],
    progress: TrainingProgress,
    keep: int,
    **made_by: Any,
) -> None:
    """Write a checkpoint, then remove what is no longer needed: the oldest, and the optimiser of all but the last two,
    so that a damaged one has a whole one before it.

    One that was written because of an interruption is not one of those to keep and to average: a run that was
    interrupted ends as one that was not.
    """
    with replacing(run.checkpoints_path / f"step-{progress.step:08d}") as directory:
        directory.mkdir()
        _write_tensors(directory / WEIGHTS, weights)
        _write_tensors(directory / OPTIMIZER, optimizer_state)
        (directory / PROGRESS).write_text(json.dumps(asdict(progress), indent=2) + "\n")
        write_manifest(directory, made_by=made_by)
    *older, _ = run.checkpoints()
    validated = [path for path in older if read_progress(path).validated]
    room = keep - 1 if progress.validated else keep
    kept = validated[max(0, len(validated) - room) :]
    for checkpoint in older:
        if checkpoint not in kept:
            discard(checkpoint)
        elif checkpoint != kept[-1]:
            (checkpoint / OPTIMIZER).unlink(missing_ok=True)


def begin_with(
    weights: dict[str, Tensor], before: RunDirectory, run: RunDirectory, config: RunConfig, tokenizer: Tokenizer
) -> None:
    """Writes what a training at step 0 has, with weights from another run: configuration, tokenizer and a checkpoint. A
    run that already has checkpoints is left as it is."""
    if run.checkpoints():
        return
    run.write_config(config)
    tokenizer.save(run.tokenizer_path)
    save_checkpoint(run, weights, {}, TrainingProgress(), 1, began_with=sha256(before.model_path))


def link_of(checkpoint: Path, chain: str) -> dict[str, str]:
    """A checkpoint as the next link of the chain: what the log says about it."""
    hashes = read_manifest(checkpoint)["files"]
    model, optimizer = hashes[WEIGHTS], hashes[OPTIMIZER]
    return {"model": model, "optimizer": optimizer, "chain": chained(chain, model, optimizer)}


def chained(chain: str, model: str, optimizer: str) -> str:
    """The chain one link longer: a hash over the chain so far and the hashes of a checkpoint's two files."""
    return hashlib.sha256(f"{chain}{model}{optimizer}".encode()).hexdigest()


def last_sound_checkpoint(run: RunDirectory, say: Callable[[str], None]) -> Path | None:
    """The last checkpoint that is as it was written. Damaged ones are named, and put aside."""
    found = run.checkpoints()
    for checkpoint in reversed(found):
        wrong = damage(checkpoint)
        if wrong is None and not (checkpoint / OPTIMIZER).exists():
            wrong = "its optimiser state is gone"
        if wrong is None:
            return checkpoint
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        discard(aside) if aside.exists() else None
        checkpoint.rename(aside)
        say(f"{checkpoint}: damaged ({wrong}); kept as {aside.name}, going back to the one before")
    if found:
        raise DataError(f"{run.checkpoints_path}: no checkpoint is whole; remove it to start from the beginning")
    return None


def load_training_state(
    checkpoint: Path,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    learned: Learned | None = None,
    seed: int = 0,
) -> TrainingProgress:
    """Put the model and the optimiser back to where the checkpoint was written, on the device where the model is.
    `learned`: what of the model the optimiser changes (None: all); `seed`: of low-rank additions at step 0."""
    learned = learned or learned_of(model)
    load_weights(checkpoint / WEIGHTS, model)
    state = read_tensors(checkpoint / OPTIMIZER)
    progress = read_progress(checkpoint)
    if progress.step:
        learned.load_state(state, str(checkpoint / OPTIMIZER))
    else:
        learned.start(seed)
    for name, parameter in learned.parameters.items():
        prefix = f"{name}:"
        values = {
            key.removeprefix(prefix): value.to(parameter.device, copy=True)
            for key, value in state.items()
            if key.startswith(prefix)
        }
        if progress.step and {tuple(value.shape) for value in values.values()} - {()} != {tuple(parameter.shape)}:
            file = checkpoint / OPTIMIZER
            raise DataError(f"{file}: not of these weights ({name}); restore it, or give a new --out")
        optimizer.state[parameter] = values
    return progress


def read_progress(checkpoint: Path) -> TrainingProgress:
    try:
        values = read_json(checkpoint / PROGRESS)
        if "best_bleu" in values:  # its name when all that was trained translated
            values["best_score"] = values.pop("best_bleu")
        return TrainingProgress(**values)
    except TypeError as error:
        raise DataError(f"{checkpoint / PROGRESS}: damaged ({error}); restore it, or give a new --out") from None


def average(checkpoints: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the checkpoints' weights (6.1). Summed in float64: the result does not depend on their order. One
    tensor after the other, so that no more of the checkpoints is in memory at a time."""
    files = [checkpoint / WEIGHTS for checkpoint in checkpoints]
    shapes = _shapes_in(files[0])
    for checkpoint, file in zip(checkpoints[1:], files[1:], strict=True):
        found = _shapes_in(file)
        for name in sorted(shapes.keys() | found.keys()):
            if shapes.get(name) != found.get(name):
                raise DataError(
                    f"{checkpoint}: {name} has another shape than in {checkpoints[0]}; they are of two runs"
                )

    def mean(name: str) -> Tensor:
        total = _read_tensor(files[0], name).double()
        for file in files[1:]:
            total += _read_tensor(file, name)
        return total.div_(len(files)).float()

    return {name: mean(name) for name in shapes}


def _shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    with _opened(path) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 no mapping


def _read_tensor(path: Path, name: str) -> Tensor:
    """One tensor of a file, which is mapped for as long as the tensor is kept."""
    with _opened(path) as file:
        return file.get_tensor(name)  # type: ignore[no-any-return]


def ema_in(state: Path) -> dict[str, Tensor]:
    """The running average of the weights in a file of a training's state; empty: it has none."""
    return {key.removesuffix(f":{EMA}"): value for key, value in read_tensors(state).items() if key.endswith(f":{EMA}")}


def promote(run: RunDirectory, weights: dict[str, Tensor], kind: str, steps: Sequence[int]) -> None:
    """Make these the weights that `translate` uses, and say in model.json which they are."""
    with replacing(run.model_path) as new_weights:
        _write_tensors(new_weights, weights)
        write_card(run, {"kind": kind, "steps": list(steps)})  # if it has no room, the old weights stay too


def write_card(run: RunDirectory, card: dict[str, Any]) -> None:
    write_atomically(run.model_card_path, (json.dumps(card, indent=2) + "\n").encode())
