"""Table 2: training cost, as the paper estimates it and as it can be counted.

Claim: Training the base model took 3.3e18 floating-point operations and the big one 2.3e19, estimated as training
time × GPUs × sustained single-precision capacity, 9.5 TFLOP/s for a P100 (6.1, footnote 5). Eight heads of 64 cost
about as much as one of 512 (3.2.2). The base model has 65 million parameters (Table 3); the feed-forward layer has
twice attention's.

Method: The product (12 hours and 3.5 days, 8 GPUs). Beside it the count: 6 × parameters × tokens, each parameter with
the tokens that pass through it (25,000 of each side a step, 100,000 and 300,000 steps), and torch's operation counter
on one real forward and backward pass, without computing, scaled to the same tokens. Parameters by layer and kind. One
head of 512 and eight of 64 timed by turns at 25 positions, thirty times: the median of the ratios with the interval
that order statistics give it. BLEU of our own base rows beside their counted operations.

Rule: Paper's product: within 3 % of its figures. Count: the two ways to count are within 25 % of each other. Heads:
the median ratio of times (eight over one), whole interval, is within a factor of 1.25. Parameters: the base model at
37,000 pieces has 65 million, to the million; the feed-forward layer has 1.9 to 2.1 times the parameters of one
attention sub-layer.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ClaimVerdict, Finding
from dragoman.lab.rules import fact, not_measured
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import base_arms, measure_translation
from dragoman.model.probe import Site
from dragoman.model.transformer import FeedForward, MultiHeadAttention, Transformer

PAPER = {"base": 3.3e18, "big": 2.3e19}
HOURS = {"base": 12.0, "big": 3.5 * 24}
STEPS = {"base": 100_000, "big": 300_000}
GPUS, SUSTAINED, TOKENS = 8, 9.5e12, 25_000
LENGTH = 25  # positions of a side in the counted pass: about a sentence


def arms(settings: LabSettings) -> list[Arm]:
    models = ("base",) if settings.size == "smoke" else tuple(PAPER)
    own = [Arm("table2", name, {"part": "count", "model": name, "size": settings.size}) for name in models]
    rounds = 2 if settings.size == "smoke" else 30
    own.append(Arm("table2", "time of parts", {"part": "turns", "rounds": rounds, "size": settings.size}))
    own.append(Arm("table2", "parameters of the base model", {"part": "parameters"}, 0.01))
    return own + base_arms(settings)


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind == "translation":
        return measure_translation(arm, settings)
    with one_thread():
        if arm.configuration["part"] == "count":
            return count(arm.configuration["model"])
        if arm.configuration["part"] == "parameters":
            return parameters_by_layer()
        return time_parts(arm.configuration["rounds"])


def parameters_by_layer() -> Measurements:
    """Parameters of the base model's layers, and how many pieces make 65 million."""
    config = ModelConfig.base()
    with torch.device("meta"):
        model = Transformer(config)

    def size(part: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in part.parameters())

    layer, whole = model.encoder[0], size(model)
    without_table = whole - model.output.weight.numel()
    return {
        "parameters": whole,
        "attention_sublayer": size(layer.self_attention),  # type: ignore[arg-type]
        "feed_forward_sublayer": size(layer.feed_forward),  # type: ignore[arg-type]
        "pieces": config.vocab_size,
        "pieces_for_65_million": round((65e6 - without_table) / config.d_model),
    }


def count(name: str) -> Measurements:
    config = ModelConfig.base() if name == "base" else ModelConfig.big()
    with torch.device("meta"):  # shapes without numbers
        model = Transformer(config)
        ids = torch.zeros(1, LENGTH, dtype=torch.long)
        with FlopCounterMode(display=False) as counter:
            model(ids, ids).sum().backward()

    def size(part: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in part.parameters())

    layers = [layer for stack in (model.encoder, model.decoder) for layer in stack]
    feed_forward = sum(size(layer.feed_forward) for layer in layers)  # type: ignore[arg-type,misc]
    # Encoder weights work on source tokens, decoder weights and the last projection on target tokens, 25,000 each.
    working = size(model.encoder) + size(model.decoder) + model.output.weight.numel()
    tokens = TOKENS * STEPS[name]
    return {
        "gpu_time": HOURS[name] * 3600 * GPUS * SUSTAINED,
        "six_n_t": 6.0 * working * tokens,
        "counted": counter.get_total_flops() / LENGTH * tokens,
        "parameters": size(model),
        "feed_forward_parameters": feed_forward,
        "attention_parameters": size(model.encoder) + size(model.decoder) - feed_forward,
        "embedding_parameters": model.output.weight.numel(),
    }


def time_parts(rounds: int) -> Measurements:
    """Processor time of one training pass through each part, by turns; medians."""
    d_model = 512
    torch.manual_seed(1)
    x = torch.randn(16, LENGTH, d_model, requires_grad=True)
    eight, one = (MultiHeadAttention(d_model, heads, d_model // heads, d_model // heads)
                  for heads in (8, 1))  # fmt: skip
    feed_forward = FeedForward(d_model, 2048)
    parts: dict[str, Callable[[Tensor], Tensor]] = {
        "eight heads": lambda y: eight.attend(*eight.project(y), Site("encoder", 0)),
        "one head": lambda y: one.attend(*one.project(y), Site("encoder", 0)),
        "feed-forward": feed_forward,
    }
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds + 1):
        for name, part in parts.items():
            began = time.process_time()
            part(x).sum().backward()
            seconds[name].append(time.process_time() - began)
    found = {f"{name} ms": 1000 * statistics.median(several[1:]) for name, several in seconds.items()}
    pairs = zip(seconds["eight heads"][1:], seconds["one head"][1:], strict=True)
    ratios = sorted(a / b for a, b in pairs)
    low, high = median_interval(len(ratios))
    return found | {"eight_over_one": statistics.median(ratios), "low": ratios[low], "high": ratios[high]}


def median_interval(count: int) -> tuple[int, int]:
    """The places of the order statistics between which the median lies in at least 95 % of samples, by the binomial."""
    low = 0
    while 2 * sum(math.comb(count, k) for k in range(low + 2)) / 2**count <= 0.05:
        low += 1
    return low, count - 1 - low


def counts(measured: Sequence[MeasuredArm]) -> dict[str, Measurements]:
    return {one.arm.configuration["model"]: one.measurements for one in measured
            if one.arm.configuration.get("part") == "count"}  # fmt: skip


def only(measured: Sequence[MeasuredArm], part: str) -> Measurements | None:
    return next((one.measurements for one in measured if one.arm.configuration.get("part") == part), None)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    findings = []
    for name, found in counts(measured).items():
        off, ratio = found["gpu_time"] / PAPER[name], found["counted"] / found["six_n_t"]
        findings += [
            fact(f"The {name} model's figure is GPU time: hours × 8 × 9.5e12.", abs(off - 1) <= 0.03,
                 f"{found['gpu_time']:.2e}, the paper has {PAPER[name]:.1e}", off, "times the paper's"),
            fact(f"Both counts of the {name} model's operations agree.", 0.75 <= ratio <= 1.25,
                 f"6 × parameters × tokens {found['six_n_t']:.2e}, operation counter {found['counted']:.2e}; so the "
                 f"GPUs were used at {found['counted'] / found['gpu_time']:.0%} of that capacity", ratio, "times"),
        ]  # fmt: skip
    claim = "Eight heads of 64 cost about as much as one of 512."
    timed = only(measured, "turns")
    if timed is None:
        findings.append(not_measured(claim, "waits for: time of parts"))
    else:
        low, high = timed["low"], timed["high"]
        verdict: ClaimVerdict = "undecided"
        if low >= 0.8 and high <= 1.25:
            verdict = "holds"
        elif low > 1.25 or high < 0.8:
            verdict = "does not hold here"
        findings.append(Finding(claim, verdict, "eight over one, medians of thirty turns", timed["eight_over_one"], low,
                                high, "times"))  # fmt: skip
    return findings + parameter_findings(only(measured, "parameters"))


def parameter_findings(found: Measurements | None) -> list[Finding]:
    claim = "The feed-forward layer has twice attention's parameters."
    if found is None:
        return [not_measured(claim, "waits for: parameters of the base model")]
    share = found["feed_forward_sublayer"] / found["attention_sublayer"]
    return [
        fact(claim, 1.9 <= share <= 2.1,
             f"{found['feed_forward_sublayer']:,} over {found['attention_sublayer']:,} in an encoder layer; a decoder "
             f"layer has two attention sub-layers", share, "times"),
        fact("The base model has 65 million parameters.", round(found["parameters"] / 1e6) == 65,
             f"{found['parameters']:,} with the {found['pieces']:,} pieces of 5.1; 65 million would be "
             f"{found['pieces_for_65_million']:,} pieces, so the paper's figure is of a larger table",
             found["parameters"] / 1e6, "million"),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    counted, timed = counts(measured), only(measured, "turns")
    ours = [one for one in measured if one.arm.kind == "translation"]
    rows = [{"arm": name, **found} for name, found in counted.items()]
    for name in ("turns", "parameters"):
        if (found := only(measured, name)) is not None:
            rows.append({"arm": "time of parts" if name == "turns" else "base, by layer", **found})
    for one in ours:
        operations = 6.0 * one.measurements["parameters"] * one.measurements["tokens"]
        rows.append(
            {
                "arm": f"ours: {one.arm.name}",
                "parameters": one.measurements["parameters"],
                "six_n_t": operations,
                "bleu": one.measurements["bleu"],
                "bleu_per_1e15": one.measurements["bleu"] / operations * 1e15,
            }
        )
    names = list(counted)
    figures = [
        Figure("Operations of a training", list(range(len(names))),
               {"GPU time": [counted[n]["gpu_time"] for n in names],
                "6 × parameters × tokens": [counted[n]["six_n_t"] for n in names],
                "operation counter": [counted[n]["counted"] for n in names]},
               "", "floating-point operations", "bars", labels=names, log_y=True),
        Figure("Where the parameters are", list(range(len(names))),
               {part: [counted[n][f"{part.replace('-', '_')}_parameters"] / 1e6 for n in names]
                for part in ("feed-forward", "attention", "embedding")},
               "", "million", "bars", labels=names),
    ] if names else []  # fmt: skip
    notes = [
        "Attention's count includes the normalisation weights of its layers. BLEU of ours is on Multi30k and that of "
        "the paper on WMT: set beside operations, the two are not one scale."
    ]
    if timed is not None:
        notes.append(
            f"Time of one pass forward and back through 400 positions at d_model = 512: attention "
            f"{timed['eight heads ms']:.1f} ms, feed-forward {timed['feed-forward ms']:.1f} ms."
        )
    return Shown(figures=figures, notes=notes, rows=rows)
