"""Reads a run's log, also while it trains: its curves, its samples, and alerts about them. Imports no torch.

The log can go back: after a stop it is cut to the checkpoint that the run goes on from, and after a setback steps are
repeated. So one rule merges points everywhere: new points replace all old ones from the first new step on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from dragoman.run_directory import RunDirectory, events_in, step_of
from dragoman.training.signatures import Signature, standstill, too_good

Point = dict[str, Any]
TrainingState = Literal["waiting", "training", "stopped", "finished"]
AlertKind = Literal[
    "skipped", "setback", "memory", "divergence", "overfitting", "gap", "plateau", "standstill", "leak"
]  # fmt: skip

# Thresholds of the alerts. Each needs several measurements in a row, as a single one may be noise.
DIVERGED_BY = 0.5  # nats a token above the lowest loss so far
DIVERGED_LINES = 3
OVERFIT_BY = 0.02  # share by which the validation loss is above its lowest while the training loss falls
OVERFIT_VALIDATIONS = 3
GAP_WIDER_BY = 0.1  # nats a token by which the validation loss is further above the training loss than at its closest
GAP_VALIDATIONS = 3
PLATEAU_VALIDATIONS = 5  # without a better BLEU or a better loss


@dataclass(frozen=True)
class Alert:
    """Something in the log that a person should look at."""

    kind: AlertKind
    step: int
    text: str


@dataclass(frozen=True)
class Update:
    """What is new in a log: points to merge, and all alerts as they are now."""

    train: tuple[Point, ...]
    valid: tuple[Point, ...]
    alerts: tuple[Alert, ...]
    restarted: bool = False  # earlier updates are no longer valid


@dataclass
class History:
    """Everything read from a log so far."""

    train: list[Point] = field(default_factory=list)
    valid: list[Point] = field(default_factory=list)
    troubles: list[Alert] = field(default_factory=list)  # that the training itself logged
    end: Point | None = None  # what the training wrote last: which weights translate, and what each way scored

    @property
    def ended(self) -> bool:
        return self.end is not None

    def add(self, events: Iterable[Point]) -> Update:
        """Adds new events; returns what they change."""
        train: list[Point] = []
        valid: list[Point] = []
        for event in events:
            name = event.get("event")
            step = event.get("step")
            if not isinstance(step, int):
                continue
            self.end = event if name == "end" else None
            point = {key: value for key, value in event.items() if key not in ("event", "rates", "signature")}
            if name == "train" and _is_number(point.get("loss")):
                merge(train, [point])
            elif name == "valid" and _is_number(point.get("nll")) and _is_number(point.get("bleu")):
                merge(valid, [point])
            elif (trouble := _trouble(event)) is not None:
                self.troubles.append(trouble)
        merge(self.train, train)
        merge(self.valid, valid)
        return Update(tuple(train), tuple(valid), self.alerts())

    def alerts(self) -> tuple[Alert, ...]:
        """Returns all alerts, oldest first."""
        found = [*self.troubles, *_divergence(self.train), *_plateau(self.valid)]
        found += _overfitting(self.train, self.valid) or _gap(self.train, self.valid)
        found += _signatures(self.train, self.valid, [alert.kind for alert in found])
        return tuple(sorted(found, key=lambda alert: alert.step))


def merge(points: list[Point], new: Sequence[Point]) -> None:
    """Adds new points, which replace all old ones from the first new step on."""
    if new:
        while points and points[-1]["step"] >= new[0]["step"]:
            points.pop()
        points.extend(new)


class LogFollower:
    """Follows metrics.jsonl as it grows, and as it is cut."""

    def __init__(self, run: RunDirectory) -> None:
        self._path = run.metrics_path
        self._position = 0
        self._before = b""  # the bytes just before the position: they differ if the log was cut and has grown again
        self.history = History()

    def read(self) -> Update | None:
        """Returns what is new since the last call, or None. A line that is still being written is left for the next
        call."""
        restarted = False
        try:
            with self._path.open("rb") as file:
                start = self._position - len(self._before)
                file.seek(start)
                if file.read(len(self._before)) != self._before:
                    self._position, self._before, self.history = 0, b"", History()
                    restarted = True
                    file.seek(0)
                new = file.read()
        except FileNotFoundError:
            return None
        whole = new[: new.rfind(b"\n") + 1]
        if not whole and not restarted:
            return None
        self._position += len(whole)
        self._before = (self._before + whole)[-64:]
        return replace(self.history.add(events_in(whole)), restarted=restarted)


def read_history(run: RunDirectory) -> History:
    """Reads the whole log of a run."""
    follower = LogFollower(run)
    follower.read()
    return follower.history


def state_of(run: RunDirectory, history: History) -> TrainingState:
    """Tells whether a run is training, finished, stopped, or has not begun."""
    if run.is_training():
        return "training"
    if history.ended:
        return "finished"
    return "stopped" if history.train else "waiting"


def kept_steps(run: RunDirectory) -> list[int]:
    """Returns the steps of the checkpoints that are kept."""
    return [step_of(path) for path in run.checkpoints()]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _trouble(event: Point) -> Alert | None:
    step = event["step"]
    match event["event"]:
        case "skipped":
            finding = f"loss {event.get('loss')}, gradient norm {event.get('gradient_norm')}"
            return Alert("skipped", step, f"{finding}: not finite, the step was skipped")
        case "setback":
            back = f"back from step {event.get('reached', step):,} to step {step:,}"
            return Alert("setback", step, f"{back}, at {event.get('rate_factor', 0):g} of the rate from there on")
        case "memory":
            return Alert(
                "memory", step, f"out of memory; in passes of {event.get('pass_tokens', 0):,} tokens since then"
            )
    return None


def _divergence(train: Sequence[Point]) -> list[Alert]:
    """Alerts if the loss is well above its lowest value: once, at the step where it rose, until it falls again."""
    lowest, above = float("inf"), 0
    began = 0
    for point in train:
        if point["loss"] > lowest + DIVERGED_BY:
            began = began if above else point["step"]
            above += 1
        else:
            above = 0
        lowest = min(lowest, point["loss"])
    if above < DIVERGED_LINES:
        return []
    return [
        Alert("divergence", began, f"the loss is {train[-1]['loss']:.2f} and was {lowest:.2f}; a lower rate may help")
    ]


def _overfitting(train: Sequence[Point], valid: Sequence[Point]) -> list[Alert]:
    """Alerts if the last validation losses are worse than the best one while the training loss still falls."""
    if len(valid) <= OVERFIT_VALIDATIONS:
        return []
    best = min(valid, key=lambda point: point["nll"])
    last = valid[-OVERFIT_VALIDATIONS:]
    if not all(point["step"] > best["step"] and point["nll"] > best["nll"] * (1 + OVERFIT_BY) for point in last):
        return []
    then = [point["loss"] for point in train if point["step"] <= best["step"]]
    if not then or train[-1]["loss"] >= then[-1]:
        return []
    finding = f"validation loss {last[-1]['nll']:.3f}, lowest {best['nll']:.3f} at step {best['step']:,}"
    return [
        Alert("overfitting", last[0]["step"], f"{finding}, while the training loss falls: more data or dropout helps")
    ]


def _gap(train: Sequence[Point], valid: Sequence[Point]) -> list[Alert]:
    """Alerts if the validation loss falls away from the training loss further at each of the last validations, although
    it may still fall: the model begins to learn its text by heart. The training loss is that of the label-smoothed
    targets, so its distance to the validation loss says nothing, but the change of it does."""
    losses = [(point["step"], point["loss"]) for point in train]
    gaps: list[tuple[int, float]] = []
    at = 0
    for point in valid:
        while at + 1 < len(losses) and losses[at + 1][0] <= point["step"]:
            at += 1
        if losses and losses[at][0] <= point["step"]:
            recent = [loss for _, loss in losses[max(0, at - 4) : at + 1]]
            gaps.append((point["step"], point["nll"] - sum(recent) / len(recent)))
    last = gaps[-GAP_VALIDATIONS - 1 :]
    if len(last) <= GAP_VALIDATIONS or any(later[1] <= earlier[1] for earlier, later in pairwise(last)):
        return []
    closest = min(gaps, key=lambda one: one[1])
    wider = last[-1][1] - closest[1]
    then = [loss for step, loss in losses if step <= closest[0]]
    if wider < GAP_WIDER_BY or losses[-1][1] >= then[-1]:
        return []
    finding = f"validation loss is {wider:.2f} further above training loss than at step {closest[0]:,}"
    return [Alert("gap", last[1][0], f"{finding}, and further at each of the last {GAP_VALIDATIONS} validations")]


def _signatures(train: Sequence[Point], valid: Sequence[Point], found: Sequence[AlertKind]) -> list[Alert]:
    """Alerts by the signatures of a model that cannot learn, or cheats. What another alert says already is not said
    again."""
    signs: list[tuple[AlertKind, AlertKind, Signature | None, str]] = [
        ("standstill", "divergence", standstill(train), "another rate may help"),
        ("leak", "leak", too_good(train, valid), "look for targets in the source, or a mask that is missing"),
    ]
    return [
        Alert(kind, sign.step, f"{sign.text}; {remedy}")
        for kind, unless, sign, remedy in signs
        if sign is not None and unless not in found
    ]


def _plateau(valid: Sequence[Point]) -> list[Alert]:
    if len(valid) <= PLATEAU_VALIDATIONS:
        return []
    earlier, last = valid[:-PLATEAU_VALIDATIONS], valid[-PLATEAU_VALIDATIONS:]
    best_bleu = max(point["bleu"] for point in earlier)
    if max(point["bleu"] for point in last) > best_bleu:
        return []
    if min(point["nll"] for point in last) < min(point["nll"] for point in earlier):
        return []
    finding = f"no better BLEU than {best_bleu:.1f} and no lower loss in {PLATEAU_VALIDATIONS} validations"
    return [Alert("plateau", last[0]["step"], finding)]
