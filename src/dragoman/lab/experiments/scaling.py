"""Scaled against unscaled dot products.

Claim: Dot products of longer vectors have a larger variance, d_k for components of variance 1; that pushes the
softmax into regions of extremely small gradients; dividing by √d_k counteracts it (3.2.1 and its footnote 4).

Method: Random queries and keys of unit variance, d_k from 4 to 512: variance of the products, entropy of the softmax
over 64 keys, and the norm of the softmax's Jacobian, for scales 1/√d_k, 1 and 1/d_k. Then a task made for it: 16
pairs of a key and a class are shown and one key is asked for; one attention layer with its projections, which make
queries and keys of unit variance at the start, learns to answer with the key's class, by each scale and by additive
attention, with the same number of steps of Adam.

Rule: Variance: the exponent of the variance over d_k is within 0.1 of 1. Gradients: at the largest d_k the Jacobian's
norm of unscaled products is below a half of that of scaled ones. Learning: a task counts as learned at the first ten
steps whose mean loss is below half of that of a guess; at the largest d_k, 1/√d_k needs fewer steps than no scale by
more than two standard errors and by at least a tenth (or, the other way round, does not hold here).
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher, mean, shown, slope, spread, yes
from dragoman.lab.tasks import fit, generator, one_thread, thinned

SCALES = {"1/√d_k": -0.5, "1": 0.0, "1/d_k": -1.0}
WAYS = (*SCALES, "additive")
KEYS = 64  # keys that a random query chooses from
SLOTS, SYMBOLS, CLASSES, D_MODEL = 16, 64, 10, 64


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    widths = (4, 64) if smoke else (4, 8, 16, 32, 64, 128, 256, 512)
    learned = (4, 32) if smoke else (4, 16, 64, 128, 256, 512)
    steps = 3 if smoke else 800
    found = [
        Arm("scaling", f"random, d_k {d_k}, seed {seed}", {"part": "random", "d_k": d_k, "seed": seed}, 0.02)
        for d_k in widths
        for seed in settings.seed_list(3)
    ]
    found += [
        Arm(
            "scaling",
            f"{way}, d_k {d_k}, seed {seed}",
            {"part": "task", "way": way, "d_k": d_k, "seed": seed, "steps": steps},
        )
        for way in WAYS
        for d_k in learned
        for seed in settings.seed_list(3)
    ]
    return found


def measure(arm: Arm) -> Measurements:
    values = arm.configuration
    with one_thread():
        if values["part"] == "random":
            return random_products(values["d_k"], values["seed"])
        return learn(values["way"], values["d_k"], values["seed"], values["steps"])


def random_products(d_k: int, seed: int) -> Measurements:
    draw = generator(seed, d_k)
    query, key = torch.randn(512, d_k, generator=draw), torch.randn(512, KEYS, d_k, generator=draw)
    products = (key @ query[:, :, None]).squeeze(2)  # (512, KEYS)
    found: Measurements = {"variance": float(products.var())}
    for name, exponent in SCALES.items():
        weights = (products * d_k**exponent).softmax(dim=1)
        found[f"entropy {name}"] = float(torch.special.entr(weights).sum(1).mean())
        jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
        found[f"jacobian {name}"] = float(jacobian.flatten(1).norm(dim=1).mean())
    return found


class Lookup(nn.Module):
    """One attention layer that looks up the class of a key among SLOTS keys, and a projection to classes."""

    def __init__(self, way: str, d_k: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, D_MODEL)  # of unit variance, as torch makes them
        self.classes = nn.Embedding(CLASSES, D_MODEL)
        self.w_q, self.w_k = (nn.Linear(D_MODEL, d_k, bias=False) for _ in range(2))
        self.w_score = nn.Linear(d_k, 1, bias=False) if way == "additive" else None
        self.scale = 1.0 if way == "additive" else d_k ** SCALES[way]
        self.output = nn.Linear(D_MODEL, CLASSES)
        for projection in (self.w_q, self.w_k):
            nn.init.normal_(projection.weight, std=D_MODEL**-0.5)

    def forward(self, asked: Tensor, keys: Tensor, classes: Tensor) -> Tensor:
        query, key = self.w_q(self.symbols(asked))[:, None], self.w_k(self.symbols(keys))  # (B, 1, d_k), (B, S, d_k)
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


def learn(way: str, d_k: int, seed: int, steps: int) -> Measurements:
    torch.manual_seed(seed)
    model = Lookup(way, d_k)

    def loss_at(step: int) -> Tensor:
        asked, keys, classes, right = draw_lookups(64, generator(seed, step))
        return F.cross_entropy(model(asked, keys, classes), right)

    losses = fit(model, loss_at, steps, peak_rate=3e-3, warmup_steps=20)
    asked, keys, classes, right = draw_lookups(2048, generator(seed, 0))
    with torch.inference_mode():
        accuracy = float((model(asked, keys, classes).argmax(1) == right).float().mean())
    return {
        "accuracy": accuracy,
        "steps_to_learn": steps_to_learn(losses),
        "final_loss": thinned(losses)[-1],
        "losses": thinned(losses),
    }


def steps_to_learn(losses: Sequence[float]) -> int:
    """Steps until the mean of ten losses is below half that of guessing, log CLASSES; all steps if it never is."""
    half = math.log(CLASSES) / 2
    return next((i for i in range(10, len(losses) + 1) if mean(losses[i - 10 : i]) < half), len(losses))


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    random = sorted({one.arm.configuration["d_k"] for one in measured if one.arm.configuration["part"] == "random"})
    variances = [mean(values_of(measured, "variance", part="random", d_k=d_k)) for d_k in random]
    exponent = slope(random, variances)
    scaled, unscaled = (
        mean(values_of(measured, f"jacobian {s}", part="random", d_k=random[-1])) for s in ("1/√d_k", "1")
    )
    widest = max(one.arm.configuration["d_k"] for one in measured if one.arm.configuration["part"] == "task")
    with_scale, without = (
        values_of(measured, "steps_to_learn", part="task", way=way, d_k=widest) for way in ("1/√d_k", "1")
    )
    return [
        Finding(
            "The variance of a dot product is d_k.",
            yes(abs(exponent - 1) <= 0.1),
            f"it grows as d_k to the power of {exponent:.3f}; at d_k = {random[-1]} it is {variances[-1]:.1f}",
        ),
        Finding(
            "Unscaled, the softmax's gradients become small.",
            yes(unscaled < scaled / 2),
            f"at d_k = {random[-1]} the Jacobian's norm is {unscaled:.4f} unscaled, {scaled:.4f} scaled",
        ),
        Finding(
            "Scaling by 1/√d_k helps learning at large d_k.",
            higher(without, with_scale, least=0.1 * mean(without)),
            f"steps to learn the task at d_k = {widest}: {shown(with_scale, 0)} scaled, {shown(without, 0)} unscaled",
        ),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), measure)
    random = sorted({one.arm.configuration["d_k"] for one in measured if one.arm.configuration["part"] == "random"})
    learned = sorted({one.arm.configuration["d_k"] for one in measured if one.arm.configuration["part"] == "task"})

    def drawn(name: str) -> list[float | None]:
        return [mean(values_of(measured, name, part="random", d_k=d_k)) for d_k in random]

    def task(way: str, d_k: int, name: str = "steps_to_learn") -> list[float]:
        return values_of(measured, name, part="task", way=way, d_k=d_k)

    figures = [
        Figure("Variance of a dot product", random, {"measured": drawn("variance"), "predicted: d_k": random},
               "d_k", "variance", log_x=True, log_y=True),
        Figure("Entropy of the softmax over 64 keys", random, {s: drawn(f"entropy {s}") for s in SCALES},
               "d_k", "nats", log_x=True),
        Figure("Norm of the softmax's Jacobian", random, {s: drawn(f"jacobian {s}") for s in SCALES},
               "d_k", "Frobenius norm", log_x=True),
        Figure("Steps until the lookup task is learned", learned,
               {way: [mean(task(way, d)) for d in learned] for way in WAYS}, "d_k", "steps", log_x=True, log_y=True,
               spread={way: [spread(task(way, d)) for d in learned] for way in WAYS}),
    ]  # fmt: skip
    widest = learned[-1]
    notes = [
        f"At d_k = {widest}, 1/d_k needs {shown(task('1/d_k', widest), 0)} steps and additive attention "
        f"{shown(task('additive', widest), 0)}: the first starts with weights that are nearly uniform, the second "
        f"needs no scale because its tanh bounds the scores."
    ]
    return conclude(
        "scaling",
        settings,
        measured,
        judge(measured),
        ("steps_to_learn", "accuracy", "final_loss", "variance"),
        figures,
        notes,
    )
