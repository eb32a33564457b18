"""Recall over a distance, and the two sides of parallelism.

Claim: Paths of constant length make dependencies over a distance easier to learn than a recurrent layer's (section
4); and training is parallel over positions where a recurrent model's is not (section 1), while generation is one
token at a time for both.

Method: The target begins with a symbol; noise follows, then a sign that asks for the symbol, 10 to 500 positions
after it. The source says nothing. A Transformer and an LSTM with attention to its source (1 + 2 layers each, the same
number of parameters; the LSTM's forget gates begin open) are trained for each distance with equal steps, on the
answer alone: at that distance from the start, and with a curriculum, in which the distance grows from 2 over the
first half of the training. Then processor time of one training pass over 16 targets of T tokens at width d, below and
above T = d, and of writing T tokens one at a time; the longest chain of operations that need each other's results,
counted in the graph that automatic differentiation records of a pass (torch's own loop over positions; its fused
kernel has the same chain inside); and how much quicker a pass is with two threads than with one, by turns, least
times on the wall clock.

Rule: Recall, at 500 back without and 100 back with the curriculum: the Transformer's accuracy is above the LSTM's by
at least 0.1, if both have 0.9 at the shortest distance. The curriculum helps the LSTM: at 30 back its accuracy is
higher with it by at least 0.1. Chain: from the shortest to the longest T the Transformer's does not grow and the
LSTM's grows as T (exponent within 0.2 of 1). Training time: at d = 256 and T = 64 (n < d) the Transformer's pass
takes less than the LSTM's, by the least times; at d = 64 and T = 256 (n > d) it takes more. Threads: the Transformer
gains more from the second thread than the LSTM, by at least a tenth (a ratio of least times). Generation: for both
models one token at a time takes at least three times one pass forward over the same tokens.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import estimated, fact, higher, mean, mean_or_none, not_measured, not_testable, slope, spread
from dragoman.lab.tasks import END, FIRST, START, fit, generator, one_thread, thinned
from dragoman.model.sequence_model import SequenceModel, make_model, next_logits
from dragoman.model.transformer import count_parameters

SYMBOLS = 12
NOISE_FROM = FIRST + SYMBOLS
ASK = NOISE_FROM + SYMBOLS
MODELS: tuple[str, str] = ("transformer", "lstm")


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    distances, steps, tested = ((10, 20), 2, 4) if smoke else ((10, 30, 100, 250, 500), 1000, 300)
    lengths = [8, 16] if smoke else [16, 64, 128, 256]
    recorded = [
        Arm("distance", f"{model}, {distance} back, seed {seed}",
            {"part": "recall", "model": model, "distance": distance, "seed": seed, "steps": steps,
             "tested": tested}, distance / 100)
        for distance in distances
        for model in MODELS
        for seed in settings.seed_list(2)
    ]  # fmt: skip
    grown = [
        Arm("distance", f"{model}, {distance} back, curriculum, seed {seed}",
            {"part": "recall", "model": model, "distance": distance, "seed": seed, "steps": steps, "tested": tested,
             "curriculum": True}, distance / 100)
        for distance in ((10,) if smoke else (30, 100))
        for model in MODELS
        for seed in settings.seed_list(3)
    ]  # fmt: skip
    timed = [
        Arm(
            "distance", f"time of {model}, d = {d}", {"part": "passes", "model": model, "lengths": lengths, "d": d}, 0.5
        )
        for d in ((16, 32) if smoke else (64, 256))
        for model in MODELS
    ]
    timed += [
        Arm("distance", f"{what} of {model}", {"part": what, "model": model, "lengths": lengths}, 0.1)
        for what in ("chain", "threads")
        for model in MODELS
    ]
    return recorded + timed + grown


def measure(arm: Arm, settings: LabSettings) -> Measurements:  # noqa: ARG001
    values = arm.configuration
    with one_thread():
        if values["part"] == "recall":
            return recall(
                values["model"], values["distance"], values["seed"], values["steps"], values["tested"],
                values.get("curriculum", False),
            )  # fmt: skip
        if values["part"] == "passes":
            return times(values["model"], values["lengths"], values["d"])
        return parallel(values["part"], values["model"], values["lengths"])


def model_of(name: str, d_model: int = 64) -> SequenceModel:
    """Both have about 160,000 parameters, embeddings included."""
    shape: dict[str, Any] = {"vocab_size": ASK + 1, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
    if name == "transformer":
        return make_model(ModelConfig(**shape, d_model=d_model, d_ff=3 * d_model, num_heads=4, norm_order="pre"))
    model = make_model(ModelConfig(**shape, architecture="lstm", d_model=d_model + 8, num_heads=1))
    for parameter_name, parameter in model.named_parameters():
        if "bias_hh" in parameter_name:  # torch's order of gates: input, forget, cell, output
            torch.nn.init.ones_(parameter.detach().chunk(4)[1])
    return model


def draw_recall(count: int, distance: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, decoder inputs (B, distance + 2), and the right answer after the last token (B)."""
    asked = torch.randint(FIRST, FIRST + SYMBOLS, (count, 1), generator=draw)
    noise = torch.randint(NOISE_FROM, NOISE_FROM + SYMBOLS, (count, distance - 1), generator=draw)
    start, ask, source = (torch.full((count, 1), symbol) for symbol in (START, ASK, END))
    return source, torch.cat((start, asked, noise, ask), dim=1), asked[:, 0]


def recall(name: str, distance: int, seed: int, steps: int, tested: int, curriculum: bool) -> Measurements:
    torch.manual_seed(seed)
    model = model_of(name)

    def answers(source: Tensor, fed: Tensor) -> Tensor:
        return model.output(model.states(source, fed)[:, -1])  # type: ignore[no-any-return]

    def loss_at(step: int) -> Tensor:
        now = min(distance, 2 + round((distance - 2) * step / (steps / 2))) if curriculum else distance
        source, fed, right = draw_recall(16, now, generator(seed, step))
        return F.cross_entropy(answers(source, fed), right)

    losses = fit(model, loss_at, steps, 2e-3, 50)
    model.eval()
    with torch.inference_mode():
        source, fed, right = draw_recall(tested, distance, generator(seed, 0))
        accuracy = float((answers(source, fed).argmax(-1) == right).float().mean())
    return {"accuracy": accuracy, "losses": thinned(losses), "parameters": count_parameters(model)}


def times(name: str, lengths: Sequence[int], d_model: int) -> Measurements:
    torch.manual_seed(1)
    model, source = model_of(name, d_model), torch.randint(FIRST, ASK, (16, 16))

    def train_pass(target: Tensor) -> None:
        logits = model(source, target)
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()

    def forward(target: Tensor) -> None:
        with torch.inference_mode():
            model(source, target)

    def write(target: Tensor) -> None:
        with torch.inference_mode():
            state, last = model.start(source), torch.full((16, 1), START)
            for _ in range(target.shape[1]):
                last = next_logits(model, last, state).argmax(-1)

    targets = [torch.randint(FIRST, ASK, (16, length)) for length in lengths]
    found: Measurements = {"lengths": list(lengths)}
    for label, work in (("train", train_pass), ("forward", forward), ("write", write)):
        found[f"{label} ms"] = [1000 * least(partial(work, target)) for target in targets]
    return found


def parallel(what: str, name: str, lengths: Sequence[int]) -> Measurements:
    """The chain of operations by length, or the gain from a second thread at the longest of them."""
    torch.manual_seed(1)
    model, source = model_of(name), torch.randint(FIRST, ASK, (16, 16))
    if what == "chain":
        model = model.double()  # in float32 oneDNN's fused LSTM is one operation in the graph
        targets = [torch.randint(FIRST, ASK, (16, length)) for length in lengths]
        return {"lengths": list(lengths), "chain": [longest_chain(model(source, target).sum()) for target in targets]}
    target = torch.randint(FIRST, ASK, (16, lengths[-1]))
    return {"two_threads": gain_from_two_threads(lambda: model(source, target).sum().backward(), 6)}


def longest_chain(result: Tensor) -> int:
    """The largest number of recorded operations of which each needs the one before: the depth of the graph."""
    order, seen, waiting = [], set(), [(result.grad_fn, False)]
    while waiting:  # a node after all that it depends on
        node, done = waiting.pop()
        if done:
            order.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(before, False) for before, _ in node.next_functions]
    depth: dict[object, int] = {}
    for node in order:
        assert node is not None
        depth[node] = 1 + max((depth[before] for before, _ in node.next_functions if before is not None), default=0)
    return max(depth.values())


def gain_from_two_threads(work: Callable[[], None], rounds: int) -> float:
    """The least time of the work with one thread over that with two, on the wall clock, by turns."""
    best = {1: float("inf"), 2: float("inf")}
    for _ in range(rounds):
        for threads in best:
            torch.set_num_threads(threads)
            began = time.perf_counter()
            work()
            best[threads] = min(best[threads], time.perf_counter() - began)
    torch.set_num_threads(1)
    return best[1] / best[2]


def least(work: Callable[[], None], rounds: int = 4) -> float:
    """The least processor time of several calls, in seconds."""
    took = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [*judge_recall(measured), *judge_times(measured)]


def accuracies(
    measured: Sequence[MeasuredArm], model: str, distance: int, curriculum: bool | None = None
) -> list[float]:
    return values_of(measured, "accuracy", part="recall", model=model, distance=distance, curriculum=curriculum)


def judge_recall(measured: Sequence[MeasuredArm]) -> list[Finding]:
    near = [accuracies(measured, model, 10) for model in MODELS]
    learned = all(values and mean(values) >= 0.9 for values in near)
    found = []
    for distance, curriculum in ((500, None), (100, True)):
        ours, theirs = (accuracies(measured, model, distance, curriculum) for model in MODELS)
        how = " with a curriculum" if curriculum else ""
        claim = f"{distance} back{how} the Transformer recalls more than the LSTM."
        finding = higher(claim, ours, theirs, MODELS, "of the answers right", 0.1, 3)
        if not learned and finding.verdict == "holds":
            finding = replace(finding, verdict="undecided", because=f"{finding.because}; not learned 10 back either")
        found.append(finding)
    grown, straight = accuracies(measured, "lstm", 30, True), accuracies(measured, "lstm", 30)
    return [*found, higher("30 back, the curriculum helps the LSTM.", grown, straight, ("with it", "without"),
                           "of the answers right", 0.1, 3)]  # fmt: skip


def passes(measured: Sequence[MeasuredArm]) -> dict[tuple[str, int], Measurements]:
    """What was timed, by model and width."""
    return {(one.arm.configuration["model"], one.arm.configuration["d"]): one.measurements
            for one in measured if one.arm.configuration["part"] == "passes"}  # fmt: skip


def judge_times(measured: Sequence[MeasuredArm]) -> list[Finding]:
    timed = passes(measured)
    if len(timed) < 4:
        return [not_measured("A training pass is quicker where n < d.", "waits for: times"), *judge_parallel(measured)]
    narrow, wide = sorted({d for _, d in timed})
    lengths = timed["lstm", wide]["lengths"]

    def ratio(d: int, at: int) -> float:
        return float(timed["lstm", d]["train ms"][at] / timed["transformer", d]["train ms"][at])

    slower = {model: timed[model, narrow]["write ms"][-1] / timed[model, narrow]["forward ms"][-1] for model in MODELS}
    at_wide = max(at for at, length in enumerate(lengths) if length < wide / 2 or at == 0)
    return [
        *judge_parallel(measured),
        fact(f"n < d (T = {lengths[at_wide]}, d = {wide}): a training pass is quicker.", ratio(wide, at_wide) > 1,
             "one core, least of several", ratio(wide, at_wide), "times the Transformer's time"),
        fact(f"n > d (T = {lengths[-1]}, d = {narrow}): it is not.", ratio(narrow, -1) < 1,
             "one core, least of several", ratio(narrow, -1), "times the Transformer's time"),
        fact("Generation is one token at a time for both.", min(slower.values()) >= 3,
             ", ".join(f"{model}: writing takes {by:.1f} times a pass" for model, by in slower.items()),
             min(slower.values()), "times a pass"),
    ]  # fmt: skip


def judge_parallel(measured: Sequence[MeasuredArm]) -> list[Finding]:
    chains, gains = (
        {one.arm.configuration["model"]: one.measurements for one in measured if one.arm.configuration["part"] == part}
        for part in ("chain", "threads")
    )
    claims = "The Transformer's chain of operations does not grow with the length.", "The LSTM's grows as the length."
    found = [not_measured(claim, "waits for: chains") for claim in claims]
    if len(chains) == len(MODELS):
        ours, theirs = (chains[model]["chain"] for model in MODELS)
        lengths = chains["lstm"]["lengths"]
        ends = f"{{}} operations at {lengths[0]} tokens, {{}} at {lengths[-1]}"
        exponent = slope(lengths, theirs)
        found = [
            fact(claims[0], len(set(ours)) == 1, ends.format(ours[0], ours[-1])),
            estimated(
                claims[1], exponent, ends.format(theirs[0], theirs[-1]), "exponent", tolerance=0.2, predicted=1.0
            ),
        ]
    claim = "The Transformer gains more from a second thread."
    if len(gains) < len(MODELS):
        return [*found, not_measured(claim, "waits for: threads")]
    ours, theirs = (gains[model]["two_threads"] for model in MODELS)
    said = f"a pass is {ours:.2f} times as quick with two threads, the LSTM's {theirs:.2f}"
    if max(ours, theirs) < 1:
        return [*found, not_testable(claim, f"{said}: the second core was not free, so nothing can be gained from it")]
    return [*found, fact(claim, ours > 1.1 * theirs, said, ours / theirs, "times the LSTM's gain")]


def show(measured: Sequence[MeasuredArm]) -> Shown:
    distances = sorted({one.arm.configuration["distance"] for one in measured if "distance" in one.arm.configuration})
    timed, figures = passes(measured), []
    curves = {f"{m}{', curriculum' if grown else ''}": [accuracies(measured, m, d, grown) for d in distances]
              for m in MODELS for grown in (None, True)}  # fmt: skip
    curves = {name: several for name, several in curves.items() if any(several)}
    if curves:
        figures.append(
            Figure("Accuracy of recall by distance", distances,
                   {name: [mean_or_none(values) for values in several] for name, several in curves.items()},
                   "positions back", "accuracy", log_x=True,
                   spread={name: [spread(values) for values in several] for name, several in curves.items()})
        )  # fmt: skip
    for d in sorted({d for _, d in timed}):
        several = [model for model in MODELS if (model, d) in timed]
        figures.append(
            Figure(f"Time by target length, 16 sentences, d = {d}", timed[several[0], d]["lengths"],
                   {f"{model}, {what}": timed[model, d][f"{what} ms"] for model in several
                    for what in ("train", "write")},
                   "tokens", "milliseconds of one core", log_x=True, log_y=True)
        )  # fmt: skip
    notes = [
        "On one core nothing is parallel: what is left of the advantage in training is that of large matrix products. "
        "The chain says how far more cores could help; two threads say how far they do here."
    ]
    return Shown(("accuracy", "parameters", "two_threads"), figures, notes)
