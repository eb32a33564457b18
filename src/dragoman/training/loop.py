"""Trains a model (section 5) in one visible loop: batch, forward, loss, backward, reduce, step, log, save."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.config import RunConfig, TrainConfig
from dragoman.data.batching import Batch, micro_batches_per_step, plan_epoch
from dragoman.data.dataset import Dataset, Prepared
from dragoman.data.objectives import labels_in, make_batch_for
from dragoman.model.checkpoint import TrainingProgress
from dragoman.model.sequence_model import SequenceModel
from dragoman.model.transformer import count_parameters
from dragoman.processes import give_freed_memory_back, keep_freed_memory
from dragoman.progress import clock
from dragoman.run_directory import RunDirectory
from dragoman.training.consistency import loss_of, passes_of
from dragoman.training.distributed import Ranks, launch, processes_for, require_room, started_by_torchrun
from dragoman.training.gradients import StepTotals
from dragoman.training.log import NoLog
from dragoman.training.optimizer import update_ema
from dragoman.training.recovery import (
    Interruption,
    largest_batch,
    longest,
    make_room,
    passes,
    require_about_memory,
    skip,
)
from dragoman.training.saving import finish, save, validate_and_save
from dragoman.training.schedule import rate_at
from dragoman.training.setup import (
    Training,
    already_finished,
    begin,
    budget_used,
    nothing_left,
    require_memory,
    say_estimate,
    say_start,
    use_threads,
)
from dragoman.training.validation import perplexity

LARGE = 50_000_000  # parameters from which on memory is scarcer than the time to fault it in
LOG_EVERY = 50  # steps between two lines of the log
SHOW_EVERY = 30.0  # seconds between two signs of life, where steps are slow


@dataclass(frozen=True)
class Replay:
    """Some steps of a run to train again exactly as before: up to which step, with the logged rates where time decided
    them, and with the sizes of passes that memory allowed from which step on."""

    until: int
    rates: Mapping[int, float]
    pass_tokens: Mapping[int, int]


def train(config: RunConfig, run: RunDirectory, again: str, replay: Replay | None = None) -> None:
    """Trains a run, or goes on with it from its last checkpoint. `again`: the command that goes on with it."""
    settings = config.train
    require_room(0 if started_by_torchrun() else settings.processes, settings.threads)
    if replay is None and already_finished(run, config):
        return
    micro_batches = micro_batches_per_step(settings.batch_tokens, settings.micro_batch_tokens)
    processes = 1 if started_by_torchrun() else processes_for(settings.processes, micro_batches, settings.threads)
    require_memory(config, processes)
    if processes > 1:
        launch(processes, train_as_rank, config, run, again, replay)
    else:
        try:
            train_as_rank(config, run, again, replay)
        finally:
            give_freed_memory_back()


def train_as_rank(
    config: RunConfig,
    run: RunDirectory,
    again: str,
    replay: Replay | None = None,
    now: Callable[[], float] = time.monotonic,
) -> SequenceModel:
    """Runs this process's part of a training, alone or among others; returns the model as it is in this process.
    `now`: a clock in seconds; only the first rank's is used."""
    ranks = Ranks(config.train.answer_seconds)
    use_threads(config.train.threads, ranks)
    with ExitStack() as stack:
        if ranks.leads:
            stack.enter_context(run.lock())
        stack.enter_context(ranks.together("starting"))  # if a rank is lost anywhere, the error says which
        training = begin(config, run, ranks, now)
        keep_freed_memory(large_blocks=count_parameters(training.model) < LARGE)
        stack.enter_context(training.log)
        interruption = stack.enter_context(Interruption())
        say_start(training)
        seconds = try_largest_batch(training)
        say_estimate(training, seconds)
        stopped = run_steps(training, interruption, replay, now)
        if replay is not None:
            save(training)
        elif stopped:
            if not training.progress.validated:  # otherwise it is saved already
                save(training)
            training.log.say(f"stopped at step {training.progress.step}, everything saved; go on with:\n  {again}")
            raise KeyboardInterrupt
        else:
            if not training.progress.validated:  # the budget ended between two validations
                validate_and_save(training)
            finish(training)
            if interruption.asked:  # too late to stop the training, but not what would come next
                raise KeyboardInterrupt
        return training.model


class PlannedStep(NamedTuple):
    """The data and the learning rate of one step."""

    data: Dataset
    micro_batches: Sequence[np.ndarray]  # the rows of each
    tokens: int  # to predict, in all of them
    rate: float


def run_steps(training: Training, interruption: Interruption, replay: Replay | None, now: Callable[[], float]) -> bool:
    """Trains until the end of the budget or of the replay; returns whether it was asked to stop before that."""
    settings, progress, gradients = training.config.train, training.progress, training.gradients
    forward, meter, stop = forward_of(training), Meter(progress, settings, now), False
    for micro_batches in steps_from(training.prepared, settings, progress):
        if stop or (nothing_left(settings, progress) if replay is None else progress.step >= replay.until):
            break
        step = plan_step(training, micro_batches, replay)

        # ---- A single training step ----
        totals = compute_gradients(training, forward, step, interruption)
        progress.seconds, stop = totals.seconds, totals.stop_requests > 0
        if totals.out_of_memory:
            make_room(training, step.data, step.micro_batches)
            continue  # the same step again, on all ranks
        meter.note_rate(step.rate)
        gradient_norm = gradients.norm()
        if not math.isfinite(totals.loss) or not math.isfinite(gradient_norm):
            skip(training, step.data, step.micro_batches, totals.loss, gradient_norm)
            continue
        update_weights(training.optimizer, step.rate)
        training.learned.merge()  # of low-rank additions, into the weights
        update_ema(training.optimizer, settings.ema, progress.step)
        gradients.clear()
        progress.advance()
        meter.add(totals, step.tokens)

        # ---- Log, and save ----
        validates = progress.step % settings.valid_steps == 0
        # Also soon after the start, to show that it works; and before a validation, from which a replay may start.
        if progress.step % LOG_EVERY == 0 or progress.step in (1, 10) or validates:
            meter.report(training.log, step.rate, gradient_norm)
        elif meter.long_silent():
            meter.show(training.log, step.rate)
        if validates and replay is None:
            validate_and_save(training)
    return stop


def compute_gradients(
    training: Training, forward: Callable[[Batch], Tensor], step: PlannedStep, interruption: Interruption
) -> StepTotals:
    """Computes the gradients of a step, summed over all ranks, into their buffer; returns the step's totals."""
    model, gradients, ranks, number = training.model, training.gradients, training.ranks, training.progress.step
    out_of_memory = False
    model.train()
    try:
        with ranks.together(f"step {number}"):  # all ranks, as a divided model is gathered as it is used
            for batch, weight in batches_of(training, step):
                states = batch.real_states(forward(batch)).float()
                loss, nll = loss_of(states, batch, model.output, training.config.train)
                # The mean over the tokens of the whole step, however the step is split.
                (loss * (weight * gradients.loss_factor / step.tokens)).backward()
                gradients.totals.add_loss(loss, nll, weight)
    except (RuntimeError, MemoryError) as error:
        require_about_memory(training, error)
        out_of_memory = True
    gradients.totals.set_rest(training.clock.part(), interruption.asked or training.log.unheard, out_of_memory)
    gradients.sum_over(ranks, number)
    return gradients.totals.read()


def batches_of(training: Training, step: PlannedStep) -> Iterator[tuple[Batch, float]]:
    """Makes this rank's batches of a step, each with its weight, which is 0 if other ranks have one batch more."""
    progress, ranks, config = training.progress, training.ranks, training.config
    for number, rows, weight in ranks.share_evenly(step.micro_batches):
        # The seed depends on the micro-batch: dropout is the same on whichever rank computes it, and when.
        torch.manual_seed(seed_of(config.train.seed, progress.step, number))
        for part in passes(step.data, rows, progress.pass_tokens):
            batch = make_batch_for(config.model, step.data, part, training.prepared.tokenizer)
            yield passes_of(batch, config.train, training.prepared.tokenizer).to(ranks.device), weight


def forward_of(training: Training) -> Callable[[Batch], Tensor]:
    """Returns the function from a batch to the model's last states: on a GPU compiled, and in bfloat16."""
    on_gpu = training.ranks.device.type == "cuda"
    states = torch.compile(training.model.states, dynamic=True) if on_gpu else training.model.states
    precision = torch.autocast("cuda", torch.bfloat16) if on_gpu else nullcontext()

    def forward(batch: Batch) -> Tensor:
        with precision:
            return states(batch.source, batch.target, batch.source_mask)

    return forward


def update_weights(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Takes one step of the optimiser at this rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def plan_step(training: Training, micro_batches: Sequence[np.ndarray], replay: Replay | None) -> PlannedStep:
    """Counts a step's tokens and sets its rate: by the schedule, or in a replay from the log."""
    config, progress = training.config, training.progress
    data = training.prepared.view(progress.epoch)
    tokens = sum(labels_in(data, rows, config.model.task) for rows in micro_batches)
    done = budget_used(config.train, progress.step, progress.seconds)
    rate = rate_at(config, progress.step + 1, done) * progress.rate_factor
    if replay is not None:
        rate = replay.rates.get(progress.step + 1, rate)
        if (logged := replay.pass_tokens.get(progress.step)) is not None:
            progress.pass_tokens = min(logged, progress.pass_tokens or logged)  # it never grows
    return PlannedStep(data, micro_batches, tokens, rate)


def steps_from(prepared: Prepared, settings: TrainConfig, progress: TrainingProgress) -> Iterator[Sequence[np.ndarray]]:
    """Yields the micro-batches of the next step by `progress`, which the loop moves on, or back after a setback."""
    planned = None
    while True:
        if planned != progress.epoch:
            planned, data = progress.epoch, prepared.view(progress.epoch)
            plan = plan_epoch(data, settings.batch_tokens, settings.micro_batch_tokens, settings.seed, planned)
        if progress.position < len(plan):
            yield plan[progress.position]
        else:
            progress.epoch += 1
            progress.position = 0


def seed_of(seed: int, step: int, number: int) -> int:
    """Returns a 63-bit seed for a micro-batch; neighbouring ones get unrelated seeds."""
    return int(np.random.SeedSequence([seed, step, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def try_largest_batch(training: Training) -> float:
    """Computes the gradients of the largest batch, so that a lack of memory shows in the first seconds. Returns how
    many seconds a token took, padding included."""
    prepared, progress, model = training.prepared, training.progress, training.model
    settings = training.config.train
    data = max((prepared.train, *prepared.further_views), key=longest)
    rows = largest_batch(data, min(settings.micro_batch_tokens, settings.batch_tokens))
    in_state = model.state_dict()  # has the running statistics of batch norms, but not the tables that grow on demand
    kept = {name: buffer.clone() for name, buffer in model.named_buffers() if name in in_state}
    model.train()
    while True:
        short_of_memory, began, tokens = False, time.monotonic(), 1
        try:
            for part in passes(data, rows, progress.pass_tokens):
                single = make_batch_for(training.config.model, data, part, prepared.tokenizer)
                batch = passes_of(single, settings, prepared.tokenizer).to(training.ranks.device)
                hidden = model.states(batch.source, batch.target, batch.source_mask)
                loss, _ = loss_of(batch.real_states(hidden), batch, model.output, settings)
                loss.backward()
                tokens = max(single.source.numel(), single.target.numel())  # one side of half a model has nothing
                break  # the others are no larger
        except (RuntimeError, MemoryError) as error:
            require_about_memory(training, error)
            short_of_memory = True
        if not any(training.ranks.gather(short_of_memory)):
            break
        make_room(training, data, [rows])
    seconds = time.monotonic() - began
    training.gradients.clear()
    for name, buffer in model.named_buffers():
        if name in kept:
            buffer.copy_(kept[name])
    return seconds / tokens


class Meter:
    """Sums up losses between two lines of the log. The sums are part of the progress, and so of a checkpoint."""

    def __init__(self, progress: TrainingProgress, settings: TrainConfig, now: Callable[[], float]) -> None:
        self.progress, self.settings, self.now = progress, settings, now
        self.since, self.shown, self.tokens_here = now(), time.monotonic(), 0

    def note_rate(self, rate: float) -> None:
        """Records the rate of a step, skipped or not, if the clock decided it: a replay needs it."""
        if self.settings.minutes is not None:
            self.progress.pending_rates.append(rate)

    def add(self, totals: StepTotals, tokens: int) -> None:
        """Adds a step that was taken."""
        self.progress.pending_loss += totals.loss
        self.progress.pending_nll += totals.nll
        self.progress.pending_tokens += tokens
        self.tokens_here += tokens

    def report(self, log: NoLog, rate: float, gradient_norm: float) -> None:
        """Writes a line of the log, shows the progress, and starts the sums again."""
        progress = self.progress
        loss, nll, speed = self.show(log, rate)
        log.write(
            "train",
            progress.step,
            epoch=progress.epoch,
            loss=loss,
            perplexity=perplexity(nll),
            rate=rate,
            gradient_norm=gradient_norm,
            tokens=progress.pending_tokens,
            tokens_per_second=round(speed, 1),
            seconds=round(progress.seconds, 2),
            **({"rates": progress.pending_rates} if progress.pending_rates else {}),
        )
        progress.pending_loss = progress.pending_nll = 0.0
        progress.pending_tokens, progress.pending_rates = 0, []
        self.since, self.tokens_here = self.now(), 0

    def long_silent(self) -> bool:
        """Whether a person has waited long for a sign: where steps are slow, few of them come to a line of the log."""
        return time.monotonic() - self.shown > SHOW_EVERY

    def show(self, log: NoLog, rate: float) -> tuple[float, float, float]:
        """Shows the progress; returns the losses a token, smoothed and plain, and the speed since the last line."""
        progress, self.shown = self.progress, time.monotonic()
        # The speed is only for display: nothing in training depends on it.
        speed = self.tokens_here / max(self.now() - self.since, 1e-9)
        loss, nll = progress.pending_loss / progress.pending_tokens, progress.pending_nll / progress.pending_tokens
        done = budget_used(self.settings, progress.step, progress.seconds)
        left = progress.seconds / max(done, 1e-9) - progress.seconds
        log.show(
            min(1.0, done),
            f"step {progress.step:,}  loss {loss:.3f}  ppl {perplexity(nll):.2f}  rate {rate:.1e}  "
            f"{speed:,.0f} tok/s  {clock(left)} left",
        )
        return loss, nll, speed
