"""The model that a configuration asks for."""

from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.model.incremental import DecodingState
from dragoman.model.lstm import AttentionalLSTM, RecurrentState
from dragoman.model.transformer import Transformer

SequenceModel = Transformer | AttentionalLSTM  # what is trained, saved and decoded with
SearchState = DecodingState | RecurrentState  # what each of them keeps between target positions


def make_model(config: ModelConfig) -> SequenceModel:
    """A new model with random weights."""
    match config.architecture:
        case "transformer":
            return Transformer(config)
        case "lstm":
            return AttentionalLSTM(config)


def next_logits(model: SequenceModel, ids: Tensor, state: SearchState) -> Tensor:
    """One more target position for each of (B, K) beams, `state` growing by it: logits (B, K, V)."""
    if isinstance(model, Transformer) and isinstance(state, DecodingState):
        return model.step(ids, state)
    if isinstance(model, AttentionalLSTM) and isinstance(state, RecurrentState):
        return model.step(ids, state)
    raise TypeError(f"{type(state).__name__} is not the state of a {type(model).__name__}")
