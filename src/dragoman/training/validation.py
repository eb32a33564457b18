"""Measures a model during training: its loss and score on the validation set, by all ranks together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from dragoman.config import RunConfig
from dragoman.data.batching import plan_epoch
from dragoman.data.dataset import Prepared
from dragoman.data.objectives import make_batch_for
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.evaluation import metrics
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.sequence_model import SequenceModel
from dragoman.training.distributed import Ranks
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class Validation:
    """The result of a validation: plain loss per token, a score (higher is better), and one example to look at."""

    nll: float
    score: float
    measure: str
    signature: str
    example: Mapping[str, str]

    @property
    def key(self) -> str:
        """The measure's name in the log."""
        return self.measure.split()[0].lower()

    @property
    def rank(self) -> tuple[float, float]:
        """The value by which validations are compared; see `rank` below."""
        return rank(self.key, self.score, self.nll)

    @property
    def by_loss(self) -> bool:
        """Whether BLEU is too low to choose by, so that the loss decides."""
        return self.key == "bleu" and self.score < metrics.LEAST_TELLING_BLEU


def rank(key: str, score: float, nll: float) -> tuple[float, float]:
    """Returns a value that is higher for a better model: by score, then by loss; by loss alone while BLEU is too
    low to say much."""
    return max(score, metrics.LEAST_TELLING_BLEU) if key == "bleu" else score, -nll


@torch.inference_mode()
def validate(model: SequenceModel, prepared: Prepared, config: RunConfig, ranks: Ranks, sample: int) -> Validation:
    """Computes the loss over the whole validation set, and BLEU of greedy translations of its first `valid_sentences`
    sentences; for a model that does not translate, the accuracy of its labels.

    `sample`: which example to show.
    """
    model.eval()
    nll = tokens = right = 0.0
    budget = min(config.train.micro_batch_tokens, 4096)
    plan = [rows for step in plan_epoch(prepared.valid, budget, budget, 0, 0) for rows in step]
    for rows in ranks.share(plan):
        torch.manual_seed(int(rows[0]))  # the same tokens are masked each time
        batch = make_batch_for(config.model, prepared.valid, rows, prepared.tokenizer).to(model.output.weight.device)
        states = batch.real_states(model.states(batch.source, batch.target, batch.source_mask))
        _, batch_nll = smoothed_cross_entropy(states, model.output.weight, batch.labels, 0.0, model.output.bias)
        nll += float(batch_nll)
        tokens += batch.tokens
        if config.model.task in ("restore", "classify"):
            right += int((model.output(states).argmax(dim=1) == batch.labels).sum())
    if config.model.task == "translate":
        return translations(model, prepared, config, ranks, sample, nll, tokens)

    gathered = np.sum(ranks.gather((nll, tokens, right)), axis=0)
    mean, accuracy = gathered[0] / gathered[1], 100 * gathered[2] / gathered[1]
    shown = sample % len(prepared.valid)
    match config.model.task:
        case "continue":  # the score is the geometric mean of the probabilities of the right tokens
            engine = ReferenceEngine([model], prepared.tokenizer)
            [[drawn]] = engine.translate([[]], replace(config.search, sampling=True), seed=sample)
            example = {"sample": prepared.tokenizer.decode(drawn.ids)}
            return Validation(mean, 100 * math.exp(-mean), "probability of a token (%)", "", example)
        case _:
            example = example_of(model, prepared, config, shown)
            return Validation(mean, accuracy, "accuracy (%)", "", example)


def example_of(model: SequenceModel, prepared: Prepared, config: RunConfig, row: int) -> dict[str, str]:
    """Returns a validation sentence with the model's output and the reference."""
    tokenizer, (text, target) = prepared.tokenizer, prepared.valid_pairs[row]
    torch.manual_seed(row)
    batch = make_batch_for(config.model, prepared.valid, np.array([row]), tokenizer).to(model.output.weight.device)
    found = model.output(batch.real_states(model.states(batch.source, batch.target, batch.source_mask))).argmax(dim=1)
    if config.model.task == "classify":
        return {"source": text, "output": config.model.classes[int(found[0])], "reference": target}
    assert batch.real is not None
    restored = batch.source.flatten().index_copy(0, batch.real, found).tolist()
    return {
        "source": tokenizer.decode_source(batch.source[0].tolist()),
        "output": tokenizer.decode(restored),
        "reference": text,
    }


def translations(
    model: SequenceModel, prepared: Prepared, config: RunConfig, ranks: Ranks, sample: int, nll: float, tokens: float
) -> Validation:
    """Translates the validation sentences and computes BLEU. `nll`, `tokens`: this rank's sums for the loss."""
    pairs = prepared.valid_pairs[: config.train.valid_sentences]
    search = replace(
        config.search, beam=1, max_source_length=max(config.search.max_source_length, config.data.max_length)
    )
    translator = Translator(ReferenceEngine([model], prepared.tokenizer), prepared.tokenizer, search)
    # Without repair: early in training most outputs loop, and decoding them again would cost more than training.
    stream = translator.translate_stream(
        [source for source, _ in ranks.share(pairs)], scores=False, repair=False, whole=True, protect=False
    )
    own_outputs = [translation.text for translation in stream]

    gathered = ranks.gather((nll, tokens, own_outputs))
    outputs = [""] * len(pairs)
    for number, (_, _, outputs_of_rank) in enumerate(gathered):
        outputs[number :: ranks.size] = outputs_of_rank
    score = metrics.bleu(outputs, [[target] for _, target in pairs])
    mean = math.fsum(part[0] for part in gathered) / sum(part[1] for part in gathered)
    shown = sample % len(pairs)
    example = {"source": pairs[shown][0], "output": outputs[shown], "reference": pairs[shown][1]}
    return Validation(mean, score.value, measure_of([target for _, target in pairs]), score.signature, example)


def measure_of(targets: Sequence[str]) -> str:
    """Names what BLEU is computed on. A parser's targets are symbols of trees, and their BLEU is not the bracket F1
    that `dragoman parse evaluate` computes."""
    words = [word for target in targets for word in target.split()]
    of_symbols = bool(words) and all(word[0] in "()" for word in words)
    return "BLEU of the tree's symbols (greedy; not bracket F1)" if of_symbols else "BLEU (greedy)"


def perplexity(nll: float) -> float:
    """Returns e to the loss per token, without overflow."""
    return math.exp(min(nll, 700.0))
