"""Chooses what of a model a training changes: all of it, its top layers, or low-rank additions to its projections.

What is frozen has no gradient and no optimiser state. That is for fine-tuning large models: less memory, and less work
where the backward pass ends early.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from dragoman.config import TrainConfig
from dragoman.errors import ConfigError, DataError
from dragoman.model.low_rank import LowRankLinear, add_low_rank
from dragoman.model.sequence_model import SequenceModel
from dragoman.model.transformer import Transformer


@dataclass(frozen=True)
class Learned:
    """What a training changes: parameters by name, of the model or of low-rank additions."""

    parameters: dict[str, nn.Parameter]
    additions: dict[str, LowRankLinear] = field(default_factory=dict)  # by the name of the projection

    def start(self, seed: int) -> None:
        """Begins the additions: of nothing, to the weights that the model has now."""
        generator = torch.Generator().manual_seed(seed)
        for addition in self.additions.values():
            addition.start(generator)

    def merge(self) -> None:
        """Adds the additions to the frozen weights; to be done after every step."""
        for addition in self.additions.values():
            addition.merge()

    def state(self) -> dict[str, Tensor]:
        """Returns what a checkpoint needs beside weights and optimiser state: the factors and the frozen weights."""
        return {
            f"{name}.{part}": tensor.detach()
            for name, addition in self.additions.items()
            for part, tensor in addition.factors._asdict().items()
        }

    def load_state(self, tensors: dict[str, Tensor], origin: str) -> None:
        """Puts back what `state` returned. `origin`: the file, for messages."""
        for name, tensor in self.state().items():
            if name not in tensors or tensors[name].shape != tensor.shape:
                raise DataError(f"{origin}: not of these weights ({name}); restore it, or give a new --out")
            tensor.copy_(tensors[name])


def learned_of(model: SequenceModel, settings: TrainConfig | None = None) -> Learned:
    """Freezes what a training with these settings leaves as it is, and returns the rest. None: nothing is frozen."""
    learn = "all" if settings is None else settings.learn
    if learn == "all" or settings is None:
        return Learned(dict(model.named_parameters()))
    if not isinstance(model, Transformer):
        raise ConfigError(f"train.learn = {learn}; an LSTM learns as a whole: --set train.learn=all")
    match learn:
        case "top":
            return Learned(_top(model, settings.learn_layers))
        case "low-rank":
            additions = add_low_rank(model, settings.learn_rank)
            factors = {
                f"{name}.{part}": getattr(addition.factors, part)
                for name, addition in additions.items()
                for part in ("up", "down")
            }
            return Learned(factors, additions)


def _top(model: Transformer, layers: int) -> dict[str, nn.Parameter]:
    """Freezes all but the last layers of the decoder (of an encoder alone, its own) and the norm after them."""
    stack, norm, name = (
        (model.decoder, model.decoder_norm, "decoder")
        if len(model.decoder)
        else (model.encoder, model.encoder_norm, "encoder")
    )
    if layers > len(stack):
        raise ConfigError(f"train.learn_layers = {layers}; the {name} has {len(stack)} layers")
    kept = [*stack[len(stack) - layers :], norm]
    model.requires_grad_(False)
    for module in kept:
        module.requires_grad_(True)
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
