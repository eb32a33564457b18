"""What a model is worth while it trains: loss and BLEU on the validation pairs, measured by all ranks together."""

import math
from dataclasses import dataclass, replace

import torch

from dragoman import evaluate
from dragoman.batching import make_batch, plan_epoch
from dragoman.config import RunConfig
from dragoman.dataset import Prepared
from dragoman.engines.reference import ReferenceEngine
from dragoman.loss import smoothed_cross_entropy
from dragoman.model import Transformer
from dragoman.ranks import Ranks
from dragoman.translate import Translator


@dataclass(frozen=True)
class Validation:
    """The plain loss a token, cased sacreBLEU, and one sentence to look at."""

    nll: float
    bleu: float
    signature: str
    source: str
    output: str
    reference: str


@torch.inference_mode()
def validate(model: Transformer, prepared: Prepared, config: RunConfig, ranks: Ranks, sample: int) -> Validation:
    """Loss over all validation pairs, BLEU of greedy translations of the first `valid_sentences` of them."""
    model.eval()
    nll = tokens = 0.0
    budget = min(config.train.micro_batch_tokens, 4096)
    plan = [rows for step in plan_epoch(prepared.valid, budget, budget, 0, 0) for rows in step]
    for rows in ranks.share(plan):
        batch = make_batch(prepared.valid, rows, prepared.tokenizer).to(model.output.weight.device)
        hidden = model.states(batch.source, batch.target, batch.source_mask)
        _, batch_nll = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.0)
        nll += float(batch_nll)
        tokens += batch.tokens
    pairs = prepared.valid_pairs[: config.train.valid_sentences]
    search = replace(
        config.search, beam=1, max_source_length=max(config.search.max_source_length, config.data.max_length)
    )
    translator = Translator(ReferenceEngine([model], prepared.tokenizer), prepared.tokenizer, search)
    mine = translator.translate([source for source, _ in ranks.share(pairs)])

    gathered = ranks.gather((nll, tokens, mine))
    outputs = [""] * len(pairs)
    for rank, (_, _, theirs) in enumerate(gathered):
        outputs[rank :: ranks.size] = theirs
    score = evaluate.bleu(outputs, [[target] for _, target in pairs])
    mean = math.fsum(part[0] for part in gathered) / sum(part[1] for part in gathered)
    shown = sample % len(pairs)
    return Validation(mean, score.value, score.signature, pairs[shown][0], outputs[shown], pairs[shown][1])


def perplexity(nll: float) -> float:
    return math.exp(min(nll, 700.0))
