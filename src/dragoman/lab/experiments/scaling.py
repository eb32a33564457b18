"""Scaled against unscaled dot products.

Claim: Dot products of longer vectors have a larger variance, d_k for components of variance 1; that pushes the
softmax into regions of extremely small gradients; dividing by √d_k counteracts it, and at small d_k it matters little
(3.2.1 and its footnote 4). Without it the gradients collapse early in training and the loss stands still.

Method: (a) Random queries and keys of unit variance, d_k from 4 to 512, 8, 64 and 512 keys, five draws: variance of
the products, entropy of the softmax, and the norm of its Jacobian for scales 1/√d_k, 1 and 1/d_k: mean, median, and
the share of dead rows, whose norm is below 0.01. (b) A classification made for it: 16 pairs of a key and a class are
shown and one key is asked for; one attention layer with its projections, which make queries and keys of unit variance
at the start, learns to answer with the key's class. With and without the scale, d_k of 4, 64 and 512, highest rates
of 1e-3, 3e-3 and 1e-2, 400 steps, five seeds; by 1/d_k and by additive attention at 3e-3. The norm of the
projections' gradients over the first 20 steps, and steps until the loss is below half of a guess's. The rate at which
the fewest steps are needed counts, for each way its own. (c) Variance of the components of queries and of keys, and
of their products, in the heads of models that learned the synthetic task (sequences reversed).

Rule: Variance: the exponent of the variance over d_k is within ± 0.1 of 1. Gradients, at d_k = 512 for each number of
keys: the median of the Jacobian's norm is at least twice as large with the scale, and the share of dead rows at least
0.1 larger without. Small d_k: at d_k = 4 the median without the scale is within a factor of 2 of that with it.
Training, at d_k = 512: early gradients are at least twice as large with the scale; without it at least a quarter more
steps are needed, each at its own best rate; a plateau: in the first 100 steps the unscaled loss at the scaled model's
best rate falls by less than half. Small d_k: at d_k = 4 the steps needed are within a quarter of each other. 1/d_k
over-corrects: at d_k = 512 and one rate it needs at least a quarter more steps. Trained heads: the mean variance of a
component of queries and of keys is within ± 0.5 of 1.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import (
    alike_in_pairs,
    estimated,
    higher,
    mean,
    mean_or_none,
    not_measured,
    slope,
    spread,
    times_alike,
    times_higher,
)
from dragoman.lab.synthetic import draw_reversed, make_reverser, train_reverser
from dragoman.lab.tasks import fit, generator, one_thread, thinned, with_ends
from dragoman.model.probe import Probe

SCALES = {"1/√d_k": -0.5, "1": 0.0, "1/d_k": -1.0}
WAYS = (*SCALES, "additive")
KEYS = (8, 64, 512)  # keys that a random query chooses from
QUERIES, DEAD = 128, 0.01
RATES = (1e-3, 3e-3, 1e-2)
USUAL_RATE = 3e-3
SLOTS, SYMBOLS, CLASSES, D_MODEL = 16, 64, 10, 64
EARLY = 20  # steps


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    widths, learned = ((4, 512), (4, 512)) if smoke else ((4, 8, 16, 32, 64, 128, 256, 512), (4, 64, 512))
    keys = (8, 64) if smoke else KEYS
    steps, seeds = 3 if smoke else 400, settings.seed_list(5)
    found = [
        Arm("scaling", f"random, d_k {d_k}, seed {seed}",
            {"part": "products", "d_k": d_k, "seed": seed, "keys": list(keys)}, d_k / 1000)
        for d_k in widths
        for seed in seeds
    ]  # fmt: skip
    tried = [(way, rate) for way in ("1/√d_k", "1") for rate in RATES]
    found += [
        Arm("scaling", f"{way}, d_k {d_k}, rate {rate:g}, seed {seed}",
            {"part": "training", "way": way, "d_k": d_k, "rate": rate, "seed": seed, "steps": steps}, 1 + d_k / 200)
        for way, rate in (*tried, ("1/d_k", USUAL_RATE), ("additive", USUAL_RATE))
        for d_k in learned
        for seed in seeds
    ]  # fmt: skip
    found += [
        Arm("scaling", f"trained heads, seed {seed}", {"part": "heads", "seed": seed, "steps": steps}, 2.0)
        for seed in seeds
    ]
    return found


def measure(arm: Arm, settings: LabSettings) -> Measurements:  # noqa: ARG001
    values = arm.configuration
    with one_thread():
        if values["part"] == "products":
            return random_products(values["d_k"], values["seed"], values["keys"])
        if values["part"] == "heads":
            return trained_heads(values["seed"], values["steps"])
        return learn(values["way"], values["d_k"], values["rate"], values["seed"], values["steps"])


def random_products(d_k: int, seed: int, numbers: Sequence[int]) -> Measurements:
    found: Measurements = {}
    for keys in numbers:
        draw = generator(seed, d_k, keys)
        query, key = torch.randn(QUERIES, d_k, generator=draw), torch.randn(QUERIES, keys, d_k, generator=draw)
        products = (key @ query[:, :, None]).squeeze(2)  # (QUERIES, keys)
        found[f"variance, {keys} keys"] = float(products.var())
        for name, exponent in SCALES.items():
            weights = (products * d_k**exponent).softmax(dim=1)
            norms = jacobian_norms(weights)
            found |= {
                f"entropy {name}, {keys} keys": float(torch.special.entr(weights).sum(1).mean()),
                f"mean {name}, {keys} keys": float(norms.mean()),
                f"median {name}, {keys} keys": float(norms.median()),
                f"dead {name}, {keys} keys": float((norms < DEAD).float().mean()),
            }
    return {name: float(f"{value:.5g}") for name, value in found.items()}


def jacobian_norms(weights: Tensor) -> Tensor:
    """The Frobenius norm of the softmax's Jacobian, diag(w) - w wᵀ, of each row (N, S) of weights: (N,)."""
    weights = weights.double()
    squares = (weights**2).sum(1)
    return (squares - 2 * (weights**3).sum(1) + squares**2).clamp(min=0).sqrt()


class Lookup(nn.Module):
    """One attention layer that looks up the class of a key among SLOTS keys, and a projection to classes."""

    def __init__(self, way: str, d_k: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, D_MODEL)  # of unit variance, as torch makes them
        self.classes = nn.Embedding(CLASSES, D_MODEL)
        self.projections = nn.ModuleList(nn.Linear(D_MODEL, d_k, bias=False) for _ in range(2))  # of queries, of keys
        self.w_score = nn.Linear(d_k, 1, bias=False) if way == "additive" else None
        self.scale = 1.0 if way == "additive" else d_k ** SCALES[way]
        self.output = nn.Linear(D_MODEL, CLASSES)
        for projection in self.projections:
            nn.init.normal_(projection.weight, std=D_MODEL**-0.5)  # type: ignore[arg-type]

    def forward(self, asked: Tensor, keys: Tensor, classes: Tensor) -> Tensor:
        of_query, of_key = self.projections
        query, key = of_query(self.symbols(asked))[:, None], of_key(self.symbols(keys))  # (B, 1, d_k), (B, S, d_k)
        if self.w_score is not None:
            scores = self.w_score(torch.tanh(query + key)).squeeze(-1)
        else:
            scores = (query * key).sum(-1) * self.scale
        return self.output((scores.softmax(1)[:, :, None] * self.classes(classes)).sum(1))  # type: ignore[no-any-return]


def draw_lookups(count: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The key asked for, all keys (different from each other), their classes, and the right class."""
    keys = torch.rand(count, SYMBOLS, generator=draw).argsort(dim=1)[:, :SLOTS]
    classes = torch.randint(CLASSES, (count, SLOTS), generator=draw)
    place = torch.randint(SLOTS, (count, 1), generator=draw)
    return keys.gather(1, place)[:, 0], keys, classes, classes.gather(1, place)[:, 0]


def learn(way: str, d_k: int, rate: float, seed: int, steps: int) -> Measurements:
    torch.manual_seed(seed)
    model = Lookup(way, d_k)

    def loss_at(step: int) -> Tensor:
        asked, keys, classes, right = draw_lookups(64, generator(seed, step))
        return F.cross_entropy(model(asked, keys, classes), right)

    norms: list[float] = []
    losses = fit(model, loss_at, steps, rate, 20, norms, model.projections)
    asked, keys, classes, right = draw_lookups(2048, generator(seed, 0))
    with torch.inference_mode():
        accuracy = float((model(asked, keys, classes).argmax(1) == right).float().mean())
    hundredth = losses[max(0, min(100, steps) - 10) : 100]
    return {
        "accuracy": accuracy,
        "steps_to_learn": steps_to_learn(losses),
        "early_gradient": float(f"{mean(norms[:EARLY]):.5g}"),
        "loss_after_100": round(mean(hundredth), 4),
        "gradient_norms": thinned(norms),
        "losses": thinned(losses),
    }


def steps_to_learn(losses: Sequence[float]) -> int:
    """Steps until the mean of ten losses is below half that of guessing, log CLASSES; all steps if it never is."""
    half = math.log(CLASSES) / 2
    return next((i for i in range(10, len(losses) + 1) if mean(losses[i - 10 : i]) < half), len(losses))


def trained_heads(seed: int, steps: int) -> Measurements:
    """Variance of queries, keys and their products in a model that learned to reverse, over all of its heads."""
    model = make_reverser(seed)
    train_reverser(model, seed, steps)
    source, fed, _ = with_ends(draw_reversed(64, 8, generator(seed, 0)))
    found: dict[str, list[float]] = {"queries": [], "keys": []}
    hooks = [
        projection.register_forward_hook(
            lambda _part, _given, made, name=name: found[name].append(float(made.flatten(0, 1).var(0).mean()))
        )
        for part in model.modules()
        for name, projection in (("queries", getattr(part, "w_q", None)), ("keys", getattr(part, "w_k", None)))
        if isinstance(projection, nn.Linear)
    ]
    probe = Probe()
    with torch.inference_mode():
        model.eval()
        model(source, fed, probe=probe)
    for hook in hooks:
        hook.remove()
    scores = [float(scores.var()) for scores in probe.scores.values()]
    return {f"variance of {name}": mean(values) for name, values in found.items()} | {
        "variance of scaled products": mean(scores)
    }


def part_of(measured: Sequence[MeasuredArm], part: str) -> list[MeasuredArm]:
    return [one for one in measured if one.arm.configuration["part"] == part]


def at_best(measured: Sequence[MeasuredArm], way: str, d_k: int) -> tuple[float, list[float]]:
    """The rate at which a way needs the fewest steps, and these."""
    rates = RATES if way in ("1/√d_k", "1") else (USUAL_RATE,)
    found = {rate: values_of(measured, "steps_to_learn", way=way, d_k=d_k, rate=rate) for rate in rates}
    if not all(found.values()):
        return USUAL_RATE, []
    best = min(found, key=lambda rate: mean(found[rate]))
    return best, found[best]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [*judge_products(part_of(measured, "products")), *judge_training(part_of(measured, "training")),
            *judge_heads(part_of(measured, "heads"))]  # fmt: skip


def judge_products(measured: Sequence[MeasuredArm]) -> list[Finding]:
    variance = "The variance of a dot product is d_k."
    if not measured:
        return [not_measured(variance, "waits for: random products")]
    widths = sorted({one.arm.configuration["d_k"] for one in measured})
    numbers = measured[0].arm.configuration["keys"]
    narrow, wide = widths[0], widths[-1]
    middle = numbers[len(numbers) // 2]
    exponent = slope(widths, [mean(values_of(measured, f"variance, {middle} keys", d_k=d)) for d in widths])
    found = [estimated(variance, exponent, f"it grows as d_k to the power of {exponent.value:.3f}", "exponent",
                       tolerance=0.1, predicted=1.0)]  # fmt: skip
    sides = ("scaled", "unscaled")
    for keys in numbers:
        (scaled, unscaled), (few, many) = (
            [values_of(measured, f"{what} {s}, {keys} keys", d_k=wide) for s in ("1/√d_k", "1")]
            for what in ("median", "dead")
        )
        where = f"d_k = {wide}, {keys} keys"
        small = f"{where}: unscaled, the softmax's gradients become small (median)."
        found += [
            times_higher(small, scaled, unscaled, sides, 2.0, 4),
            higher(f"{where}: unscaled, more rows are dead.", many, few, sides[::-1], "of the rows", 0.1, 3),
        ]
    scaled, unscaled = (values_of(measured, f"median {s}, {middle} keys", d_k=narrow) for s in ("1/√d_k", "1"))
    little = f"At d_k = {narrow} the scale changes little ({middle} keys, median)."
    found.append(times_alike(little, scaled, unscaled, sides, 2.0, 4))
    return found


def judge_training(measured: Sequence[MeasuredArm]) -> list[Finding]:
    widths = sorted({one.arm.configuration["d_k"] for one in measured}) or [4, 512]
    narrow, wide = widths[0], widths[-1]
    (rate, scaled), (other_rate, unscaled) = (at_best(measured, way, wide) for way in ("1/√d_k", "1"))
    small, small_unscaled = (at_best(measured, way, narrow)[1] for way in ("1/√d_k", "1"))

    def of(name: str, way: str, at: float = USUAL_RATE) -> list[float]:
        return values_of(measured, name, way=way, d_k=wide, rate=at)

    guess, late = math.log(CLASSES), of("loss_after_100", "1", rate)
    return [
        times_higher(f"Training, d_k = {wide}: early gradients are larger with the scale.",
                     of("early_gradient", "1/√d_k"), of("early_gradient", "1"), ("scaled", "unscaled"), 2.0, 4),
        times_higher(f"Training, d_k = {wide}: the scale saves steps, each way at its own best rate.", unscaled, scaled,
                     (f"steps unscaled at {other_rate:g}", f"scaled at {rate:g}"), 1.25, 0),
        higher(f"Training, d_k = {wide}: unscaled, the loss stands still in the first 100 steps.", late,
               [guess / 2] * len(late), ("unscaled after 100 steps", "half of a guess"), "nats", 0.0),
        times_alike(f"Training, d_k = {narrow}: the scale changes little.", small_unscaled, small,
                    ("steps unscaled", "scaled"), 1.25, 0),
        times_higher(f"Training, d_k = {wide}: 1/d_k over-corrects.", of("steps_to_learn", "1/d_k"),
                     of("steps_to_learn", "1/√d_k"), ("steps by 1/d_k", "by 1/√d_k"), 1.25, 0),
    ]  # fmt: skip


def judge_heads(measured: Sequence[MeasuredArm]) -> list[Finding]:
    found = []
    for name in ("queries", "keys"):
        values = values_of(measured, f"variance of {name}")
        found.append(alike_in_pairs(f"In trained heads the components of {name} have unit variance.", values,
                                    [1.0] * len(values), ("variance", "assumed"), "variance", 0.5))  # fmt: skip
    return found


def show(measured: Sequence[MeasuredArm]) -> Shown:
    random, trained = part_of(measured, "products"), part_of(measured, "training")
    widths, learned = (sorted({one.arm.configuration["d_k"] for one in part}) for part in (random, trained))
    figures = []
    if random:
        numbers = random[0].arm.configuration["keys"]
        middle = numbers[len(numbers) // 2]

        def drawn(name: str, keys: int) -> list[float | None]:
            return [mean(values_of(random, f"{name}, {keys} keys", d_k=d_k)) for d_k in widths]

        figures += [
            Figure("Variance of a dot product", widths,
                   {"measured": drawn("variance", middle), "predicted: d_k": widths}, "d_k", "variance", log_x=True,
                   log_y=True),
            Figure(f"Entropy of the softmax over {middle} keys", widths,
                   {s: drawn(f"entropy {s}", middle) for s in SCALES}, "d_k", "nats", log_x=True),
            *(Figure(f"Norm of the softmax's Jacobian, {keys} keys: median", widths,
                     {s: drawn(f"median {s}", keys) for s in SCALES}, "d_k", "Frobenius norm", log_x=True)
              for keys in numbers),
            Figure("Share of dead rows of the Jacobian, unscaled, by the number of keys", widths,
                   {f"{keys} keys": drawn("dead 1", keys) for keys in numbers}, "d_k", "share", log_x=True),
        ]  # fmt: skip
    if trained:
        figures.append(training_figure(trained, learned))
    columns = ("steps_to_learn", "accuracy", "early_gradient", "loss_after_100", "variance of queries",
               "variance of keys", "variance of scaled products")  # fmt: skip
    return Shown(columns, figures, notes_on(random, widths))


def training_figure(trained: Sequence[MeasuredArm], learned: Sequence[int]) -> Figure:
    def steps(way: str, d_k: int) -> list[float]:
        return at_best(trained, way, d_k)[1]

    return Figure("Steps until the classification is learned, each way at its best measured rate", learned,
                  {way: [mean_or_none(steps(way, d)) for d in learned] for way in WAYS}, "d_k", "steps", log_x=True,
                  log_y=True, spread={way: [spread(steps(way, d)) for d in learned] for way in WAYS})  # fmt: skip


def notes_on(random: Sequence[MeasuredArm], widths: Sequence[int]) -> list[str]:
    if not random:
        return []
    numbers, wide = random[0].arm.configuration["keys"], widths[-1]
    return [
        f"At d_k = {wide} with {keys} keys the mean of the unscaled Jacobian's norm is "
        f"{mean(values_of(random, f'mean 1, {keys} keys', d_k=wide)):.4f}, its median "
        f"{mean(values_of(random, f'median 1, {keys} keys', d_k=wide)):.4f}: few rows with two keys near the top make "
        f"the mean, so the median is judged."
        for keys in numbers
    ]
