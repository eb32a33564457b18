"""Removing heads from a trained model.

Claim: Readers of the paper found that many heads of a trained model can be removed with little loss, that some are
positional and that some attend to rare words; the paper itself shows heads with clear roles (section 4, its
appendix).

Method: Three of the quick family's base translators (Multi30k). Each head's importance is the rise of the loss on 150
validation pairs when it alone is off. Then heads are removed in order of importance, the least first, and in two
random orders: BLEU (greedy, 200 test sentences) against heads left. A head is positional if over half of its weight
lies on one fixed offset (-1, 0 or +1); it attends to rare words if its weight on the rarest tenth of the source
tokens is over 1.5 times their share.

Rule: Over the three models. Many can go: the loss of BLEU with a quarter of the heads removed by importance is within
± 5 % of the whole model's. Importance matters: with half removed, BLEU by importance is above the mean of random
orders by at least 1.0 (paired). Roles: at least one head of each model is positional, and at least one attends to
rare words.
"""

import random
from collections.abc import Iterable, Mapping, Sequence

import torch

from dragoman.config import SearchConfig
from dragoman.data.batching import make_batch
from dragoman.data.dataset import Prepared
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.evaluation.charts import Figure
from dragoman.inspection.attention_trace import trace
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import SEVERAL, alike_in_pairs, fact, higher_in_pairs, mean
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import base_arms, bleu, mean_nll, prepared_text, run_of, test_set
from dragoman.model.checkpoint import load_transformer
from dragoman.model.probe import Intervention, Probe, Site
from dragoman.model.transformer import Transformer

Head = tuple[Site, int]
SHARES = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)


def arms(settings: LabSettings) -> list[Arm]:
    sentences = 1 if settings.size == "smoke" else 200
    return [Arm("prune", arm.name, {**arm.configuration, "sentences": sentences}) for arm in base_arms(settings)[:3]]


def off(heads: Iterable[Head]) -> dict[Site, Intervention]:
    by_site: dict[Site, list[int]] = {}
    for site, head in heads:
        by_site.setdefault(site, []).append(head)
    return {site: Intervention(heads_off=tuple(several)) for site, several in by_site.items()}


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    model = load_transformer(run_of(arm, settings, "sentences"))
    heads, text = heads_of(model), prepared_text(settings)
    with one_thread(), torch.inference_mode():
        importance = importance_of(model, heads, text)
        sources, references = (side[: arm.configuration["sentences"]] for side in test_set(settings))
        orders = {"by importance": sorted(heads, key=lambda head: importance[head])}
        orders |= {f"random {seed}": random.Random(seed).sample(heads, len(heads)) for seed in (1, 2)}
        curves = {
            name: [
                bleu(translate_without(order[: round(share * len(heads))], model, text.tokenizer, sources), references)
                for share in SHARES
            ]
            for name, order in orders.items()
        }
    return {
        "heads": len(heads),
        "curves": curves,
        "importance": {f"{site.kind} {site.layer + 1}.{head + 1}": importance[site, head] for site, head in heads},
        "looks": looks_of(model, heads, settings),
    }


def heads_of(model: Transformer) -> list[Head]:
    """All heads of all attention sub-layers, in the order of the pass."""
    sites = [Site("encoder", layer) for layer in range(len(model.encoder))]
    for layer in range(len(model.decoder)):
        sites += [Site("decoder", layer), Site("cross", layer)]
    return [(site, head) for site in sites for head in range(model.config.num_heads)]


def importance_of(model: Transformer, heads: Sequence[Head], text: Prepared) -> dict[Head, float]:
    """How much the loss on 150 validation pairs rises when a head alone is off."""
    order = sorted(range(min(150, len(text.valid))), key=lambda i: int(text.valid.source_lengths[i]))
    batches = [make_batch(text.valid, torch.tensor(order[i : i + 30]).numpy(), text.tokenizer)
               for i in range(0, len(order), 30)]  # fmt: skip
    whole = mean_nll(model, batches, {})
    return {head: mean_nll(model, batches, off([head])) - whole for head in heads}


def translate_without(
    removed: Sequence[Head], model: Transformer, tokenizer: Tokenizer, sources: Sequence[str]
) -> list[str]:
    """Greedy translations with these heads off."""
    encoded = sorted(((i, tokenizer.encode(line)) for i, line in enumerate(sources)), key=lambda pair: len(pair[1]))
    engine = ReferenceEngine([model], tokenizer)
    outputs = [""] * len(sources)
    for start in range(0, len(encoded), 50):
        part = encoded[start : start + 50]
        found = engine.translate([ids for _, ids in part], SearchConfig(beam=1), probe=Probe(off(removed)))
        for (i, _), hypotheses in zip(part, found, strict=True):
            outputs[i] = tokenizer.decode(hypotheses[0].ids)
    return outputs


def looks_of(model: Transformer, heads: Sequence[Head], settings: LabSettings) -> dict[str, dict[str, float]]:
    """What each head attends to, over 60 test pairs: the offset with most of its weight and that weight, and its weight
    on rare words relative to their share of the words."""
    tokenizer = prepared_text(settings).tokenizer
    frequency = torch.zeros(tokenizer.vocab_size)
    pairs = list(zip(*test_set(settings), strict=True))[:60]
    encoded = [(tokenizer.encode(source), tokenizer.encode_target(target)) for source, target in pairs]
    for source, _ in encoded:
        frequency.scatter_add_(0, torch.tensor(source), torch.ones(len(source)))
    on_offset: dict[Head, dict[int, float]] = {head: {-1: 0.0, 0: 0.0, 1: 0.0} for head in heads}
    on_rare: dict[Head, float] = dict.fromkeys(heads, 0.0)
    rare_share = rows = 0.0
    everything = torch.tensor([i for source, _ in encoded for i in source])
    limit = frequency[everything].float().quantile(0.1)
    for source, target in encoded:
        ids = [*source, tokenizer.eos_id]
        seen = trace(model, ids, [tokenizer.bos_id, *target, tokenizer.eos_id])
        rare = torch.tensor([frequency[i] <= limit and i != tokenizer.eos_id for i in ids])
        rare_share, rows = rare_share + float(rare.float().mean()), rows + 1
        for site, head in heads:
            weights = seen.weights[site][head]  # (queries, keys)
            for offset in (-1, 0, 1):
                on_offset[site, head][offset] += float(weights.diagonal(offset).sum() / weights.shape[0])
            if site.kind != "decoder":
                on_rare[site, head] += float(weights[:, rare].sum(1).mean())

    found = {}
    for site, head in heads:
        looks: dict[str, float] = {}
        if site.kind != "cross":  # there an offset between the two languages means nothing
            offset, weight = max(on_offset[site, head].items(), key=lambda item: item[1])
            looks |= {"offset": offset, "weight on it": weight / rows}
        if site.kind != "decoder":  # it looks at the target
            looks["rare words"] = on_rare[site, head] / rare_share if rare_share else 0.0
        found[f"{site.kind} {site.layer + 1}.{head + 1}"] = looks
    return found


def role_of(looks: Mapping[str, float]) -> str:
    if looks.get("weight on it", 0.0) > 0.5:
        return f"positional ({looks['offset']:+.0f})"
    return "rare words" if looks.get("rare words", 0.0) > 1.5 else ""


def _curve(found: Mapping[str, Sequence[float]], share: float) -> tuple[float, float]:
    at = SHARES.index(share)
    return found["by importance"][at], mean([curve[at] for name, curve in found.items() if name != "by importance"])


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    curves = [one.measurements["curves"] for one in measured]
    whole = [curve["by importance"][0] for curve in curves]
    shares = [_curve(curve, 0.25)[0] / start if start else 0.0 for curve, start in zip(curves, whole, strict=True)]
    halves = [_curve(curve, 0.5) for curve in curves]
    counts = [count_roles(one) for one in measured]
    return [
        alike_in_pairs("A quarter of the heads can go.", shares, [1.0] * len(shares),
                       ("BLEU without a quarter", "whole"), "of the whole model's BLEU", 0.05, 3),
        higher_in_pairs("Which ones matters.", [by for by, _ in halves], [at for _, at in halves],
                        ("half removed by importance", "at random"), "BLEU", 1.0),
        *(roles(f"There are heads that {what}.", [count[at] for count in counts])
          for at, what in enumerate(("are positional", "attend to rare words"))),
    ]  # fmt: skip


def count_roles(one: MeasuredArm) -> tuple[int, int]:
    """Heads that are positional, and heads that attend to rare words."""
    found = [role_of(looks) for looks in one.measurements["looks"].values()]
    return sum(role.startswith("positional") for role in found), found.count("rare words")


def roles(claim: str, counts: Sequence[int]) -> Finding:
    if len(counts) < SEVERAL:
        return Finding(claim, "undecided" if counts else "not measured yet", f"one model: {counts[0] if counts else 0}")
    return fact(claim, min(counts) > 0, f"{', '.join(map(str, counts))} of them in the models", mean(counts), "heads")


def show(measured: Sequence[MeasuredArm]) -> Shown:
    found = measured[0].measurements
    left = [round(found["heads"] * (1 - share)) for share in SHARES]
    figures = [Figure(f"BLEU against heads left, {one.arm.name}", left, one.measurements["curves"], "heads left",
                      "BLEU (greedy)") for one in measured]  # fmt: skip
    looks, importance = found["looks"], found["importance"]
    by_name = {name: role_of(head_looks) for name, head_looks in looks.items()}

    def most(column: str, count: int) -> list[str]:
        return sorted(looks, key=lambda name: -looks[name].get(column, 0.0))[:count]

    by_importance = sorted(importance, key=lambda name: -importance[name])
    told = {*by_importance[:8], *most("weight on it", 3), *most("rare words", 3)}
    rows = [
        {"head": name, "loss when off": importance[name], **looks[name], "role": by_name[name]}
        for name in by_importance
        if by_name[name] or name in told
    ]
    positional, rarest = most("weight on it", 1)[0], most("rare words", 1)[0]
    notes = [
        f"Nearest to a role in the first model: {positional} has {looks[positional]['weight on it']:.0%} of its weight "
        f"at offset {looks[positional]['offset']:+.0f}, {rarest} puts {looks[rarest]['rare words']:.2f} times their "
        f"share on rare words. The table has its heads with a role, the eight most important, and the three nearest to "
        f"each."
    ]
    return Shown(figures=figures, notes=notes, rows=rows)
