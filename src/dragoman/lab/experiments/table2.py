"""Table 2: training cost, as the paper estimates it and as it can be counted.

Claim: Training the base model took 3.3e18 floating-point operations and the big one 2.3e19, estimated as training
time × GPUs × sustained single-precision capacity, 9.5 TFLOP/s for a P100 (6.1, footnote 5). Eight heads of 64 cost
about as much as one of 512 (3.2.2).

Method: The product (12 hours and 3.5 days, 8 GPUs). Beside it the count: 6 × parameters × tokens, each parameter with
the tokens that pass through it (25,000 of each side a step, 100,000 and 300,000 steps), and torch's operation counter
on one real forward and backward pass, without computing, scaled to the same tokens. Shares of parameters and,
measured on one core at d_model = 512 and 25 positions, of time; one head of 512 and eight of 64 timed by turns. BLEU
of our own base rows beside their counted operations.

Rule: Paper's product: within 3 % of its figures. Count: the two ways to count are within 25 % of each other. Heads:
the median ratio of times (eight over one) is between 0.8 and 1.25: holds; outside 0.5 to 2: does not hold here; else
undecided.
"""

import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ClaimVerdict, ExperimentResult, Finding
from dragoman.lab.rules import yes
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
    own.append(Arm("table2", "time of parts", {"part": "time", "rounds": rounds, "size": settings.size}))
    return own + base_arms(settings)


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind == "translation":
        return measure_translation(arm, settings)
    with one_thread():
        if arm.configuration["part"] == "count":
            return count(arm.configuration["model"])
        return time_parts(arm.configuration["rounds"])


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
    return found | {"eight_over_one": statistics.median(a / b for a, b in pairs)}


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    counted = {
        one.arm.configuration["model"]: one.measurements
        for one in measured
        if one.arm.configuration.get("part") == "count"
    }
    findings = []
    for name, found in counted.items():
        findings.append(
            Finding(
                f"The {name} model's figure is GPU time: hours × 8 × 9.5e12.",
                yes(abs(found["gpu_time"] / PAPER[name] - 1) <= 0.03),
                f"{found['gpu_time']:.2e}, the paper has {PAPER[name]:.1e}",
            )
        )
        findings.append(
            Finding(
                f"Both counts of the {name} model's operations agree.",
                yes(0.75 <= found["counted"] / found["six_n_t"] <= 1.25),
                f"6 × parameters × tokens {found['six_n_t']:.2e}, operation counter {found['counted']:.2e}; so the "
                f"GPUs were used at {found['counted'] / found['gpu_time']:.0%} of that capacity",
            )
        )
    ratio = next(one.measurements["eight_over_one"] for one in measured if "eight_over_one" in one.measurements)
    verdict: ClaimVerdict = (
        "holds" if 0.8 <= ratio <= 1.25 else "undecided" if 0.5 <= ratio <= 2 else "does not hold here"
    )
    findings.append(Finding("Eight heads of 64 cost about as much as one of 512.", verdict,
                            f"eight take {ratio:.2f} times as long as one"))  # fmt: skip
    return findings


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    counted = {
        one.arm.configuration["model"]: one.measurements
        for one in measured
        if one.arm.configuration.get("part") == "count"
    }
    timed = next(one.measurements for one in measured if "eight_over_one" in one.measurements)
    ours = [one for one in measured if one.arm.kind == "translation"]
    rows = [{"arm": name, **found} for name, found in counted.items()]
    rows.append({"arm": "time of parts", **timed})
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
    ]  # fmt: skip
    notes = [
        f"Time of one pass forward and back through 400 positions at d_model = 512: attention "
        f"{timed['eight heads ms']:.1f} ms, feed-forward {timed['feed-forward ms']:.1f} ms.",
        "Attention's count includes the normalisation weights of its layers. BLEU of ours is on Multi30k and that of "
        "the paper on WMT: set beside operations, the two are not one scale.",
    ]
    return conclude("table2", settings, measured, judge(measured), (), figures, notes, rows)
