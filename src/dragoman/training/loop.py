"""Training (section 5): batch, forward, loss, backward, step, log, save; one visible loop."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.config import RunConfig, TrainConfig
from dragoman.data.batching import micro_batches_per_step, plan_epoch
from dragoman.data.dataset import Dataset, Prepared
from dragoman.data.objectives import labels_in, make_batch_for
from dragoman.errors import DragomanError
from dragoman.evaluation.metrics import LEAST_TELLING_BLEU
from dragoman.files import read_json
from dragoman.model.checkpoint import (
    TrainingProgress,
    average,
    last_sound_checkpoint,
    optimizer_state_of,
    promote,
    save_checkpoint,
    weights_of,
    write_card,
)
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.lstm import make_model
from dragoman.model.transformer import Transformer
from dragoman.processes import keep_freed_memory
from dragoman.progress import clock
from dragoman.run_directory import RunDirectory, step_of
from dragoman.training.distributed import (
    Ranks,
    ShardedGradients,
    launch,
    processes_for,
    require_room,
    started_by_torchrun,
)
from dragoman.training.log import NoLog
from dragoman.training.recovery import (
    SKIPS_BEFORE_A_SETBACK,
    Interruption,
    after_a_setback,
    is_about_memory,
    largest_batch,
    longest,
    passes,
    record_skipped,
    smaller_passes,
)
from dragoman.training.schedule import learning_rate, linear_rate
from dragoman.training.setup import (
    Training,
    already_finished,
    begin,
    budget_used,
    go_back,
    log_checkpoint,
    nothing_left,
    say_start,
    use_threads,
)
from dragoman.training.validation import perplexity, rank, validate

LOG_EVERY = 50  # steps between two lines of measurements


@dataclass(frozen=True)
class Replay:
    """A stretch of a run to do again as it was: up to a step, at the logged rates where time decided them, in the
    passes that memory allowed after so many steps."""

    until: int
    rates: Mapping[int, float]
    pass_tokens: Mapping[int, int]


def train(config: RunConfig, run: RunDirectory, again: str, replay: Replay | None = None) -> None:
    """Train a run, or go on with it from its last checkpoint. `again`: the command line that would go on with it."""
    settings = config.train
    require_room(0 if started_by_torchrun() else settings.processes, settings.threads)
    if replay is None and already_finished(run, config):
        return
    if not started_by_torchrun():
        micro_batches = micro_batches_per_step(settings.batch_tokens, settings.micro_batch_tokens)
        if (processes := processes_for(settings.processes, micro_batches, settings.threads)) > 1:
            launch(processes, train_as_rank, config, run, again, replay)
            return
    train_as_rank(config, run, again, replay)


def train_as_rank(
    config: RunConfig,
    run: RunDirectory,
    again: str,
    replay: Replay | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Transformer:
    """This process's part of a training, alone or among others; the model as it leaves this process. `now`: seconds,
    of which only the first rank's are ever used."""
    settings = config.train
    keep_freed_memory()
    ranks = Ranks(settings.answer_seconds)
    use_threads(settings.threads, ranks)
    with ExitStack() as stack:
        if ranks.leads:
            stack.enter_context(run.lock())
        stack.enter_context(ranks.together("starting"))  # wherever a rank is lost, the error says which
        at_work = begin(config, run, ranks, now)
        log, interruption = stack.enter_context(at_work.log), stack.enter_context(Interruption())
        say_start(at_work)
        try_largest_batch(at_work)
        config, model, optimizer, gradients = at_work.config, at_work.model, at_work.optimizer, at_work.gradients
        progress, prepared, tokenizer = at_work.progress, at_work.prepared, at_work.prepared.tokenizer
        on_gpu = ranks.device.type == "cuda"
        states = torch.compile(model.states, dynamic=True) if on_gpu else model.states
        precision = torch.autocast("cuda", torch.bfloat16) if on_gpu else nullcontext()

        meter, stop = Meter(progress, settings, now), False
        for step_rows in steps_from(prepared, settings, progress):
            data = prepared.view(progress.epoch)
            done = budget_used(settings, progress.step, progress.seconds)
            if stop or (nothing_left(settings, progress) if replay is None else progress.step >= replay.until):
                break
            tokens = sum(labels_in(data, rows, config.model.task) for rows in step_rows)
            rate = rate_at(config, progress.step + 1, done) * progress.rate_factor
            if replay is not None:
                rate = replay.rates.get(progress.step + 1, rate)
                if (then := replay.pass_tokens.get(progress.step)) is not None:
                    progress.pass_tokens = min(then, progress.pass_tokens or then)  # it never grows
            model.train()
            short_of_memory = False
            try:
                with ranks.together(f"step {progress.step}"):  # a divided model is put together as it is used
                    for number, rows, weight in ranks.share_evenly(step_rows):
                        # Random numbers belong to the batch: whoever computes it, whenever, drops the same units.
                        torch.manual_seed(seed_of(settings.seed, progress.step, number))
                        for part in passes(data, rows, progress.pass_tokens):
                            batch = make_batch_for(config.model, data, part, tokenizer).to(ranks.device)
                            with precision:
                                hidden = states(batch.source, batch.target, batch.source_mask)
                            loss, nll = smoothed_cross_entropy(
                                batch.real_states(hidden).float(), model.output.weight, batch.labels,
                                settings.label_smoothing,
                            )  # fmt: skip
                            # The mean over the tokens of the whole step, however it is split.
                            (loss * (weight * gradients.factor / tokens)).backward()  # type: ignore[no-untyped-call]
                            gradients.extra[:2] += weight * torch.stack((loss.detach(), nll))
            except (RuntimeError, MemoryError) as error:
                require_about_memory(at_work, error)
                short_of_memory = True
            gradients.extra[2] = at_work.clock.part()
            gradients.extra[3] = interruption.asked or log.unheard
            gradients.extra[4] = short_of_memory
            gradients.sum_over(ranks, progress.step)
            step_loss, step_nll, seconds, asked, ranks_short_of_memory = gradients.extra.tolist()
            progress.seconds, stop = seconds, asked > 0
            if ranks_short_of_memory:
                make_room(at_work, data, step_rows)
                continue  # the same step again, on all ranks
            meter.note(rate)
            gradient_norm = gradients.norm()
            if not math.isfinite(step_loss) or not math.isfinite(gradient_norm):
                skip(at_work, data, step_rows, step_loss, gradient_norm)
                continue
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            gradients.clear()

            progress.advance()
            meter.add(step_loss, step_nll, tokens)
            validates = progress.step % settings.valid_steps == 0
            # Soon after the start, so that one sees it go; and before a validation, whose checkpoint ends a stretch.
            if progress.step % LOG_EVERY == 0 or progress.step in (1, 10) or validates:
                meter.report(log, rate, gradient_norm)
            if validates and replay is None:
                validate_and_save(at_work)

        if replay is not None:
            save(at_work)
        elif stop:
            if not progress.validated:  # else it is saved
                save(at_work)
            log.say(f"stopped at step {progress.step}, everything saved; go on with:\n  {again}")
            raise KeyboardInterrupt
        else:
            if not progress.validated:  # the budget ended between two validations
                validate_and_save(at_work)
            finish(at_work)
            if interruption.asked:  # too late to stop this, in time for what would come next
                raise KeyboardInterrupt
        return model


def try_largest_batch(at_work: Training) -> None:
    """An out-of-memory shows in the first seconds, and not after a night."""
    prepared, progress, model = at_work.prepared, at_work.progress, at_work.model
    settings = at_work.config.train
    data = max((prepared.train, *prepared.further_views), key=longest)
    rows = largest_batch(data, min(settings.micro_batch_tokens, settings.batch_tokens))
    in_state = model.state_dict()  # running statistics of batch norms; tables that grow on demand are not in it
    kept = {name: buffer.clone() for name, buffer in model.named_buffers() if name in in_state}
    model.train()
    while True:
        short_of_memory = False
        try:
            for part in passes(data, rows, progress.pass_tokens):
                batch = make_batch_for(at_work.config.model, data, part, prepared.tokenizer).to(at_work.ranks.device)
                hidden = model.states(batch.source, batch.target, batch.source_mask)
                loss, _ = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.1)
                loss.backward()  # type: ignore[no-untyped-call]
                break  # the others are no larger
        except (RuntimeError, MemoryError) as error:
            require_about_memory(at_work, error)
            short_of_memory = True
        if not any(at_work.ranks.gather(short_of_memory)):
            break
        make_room(at_work, data, [rows])
    at_work.gradients.clear()
    for name, buffer in model.named_buffers():
        if name in kept:
            buffer.copy_(kept[name])


def require_about_memory(at_work: Training, error: BaseException) -> None:
    """Any other error is not for us."""
    if not is_about_memory(error):
        raise error
    if at_work.config.train.shard:
        raise DragomanError("out of memory; lower train.micro_batch_tokens (divided models cannot split a batch)")


def make_room(at_work: Training, data: Dataset, rows: Sequence[np.ndarray]) -> None:
    """Memory did not suffice on some rank: smaller passes from now on, the same on all, so that one log has them."""
    progress, log = at_work.progress, at_work.log
    at_work.gradients.clear()
    progress.pass_tokens = smaller_passes(data, rows, progress.pass_tokens)
    log.write("memory", progress.step, pass_tokens=progress.pass_tokens)
    log.say(f"step {progress.step + 1}: out of memory; from now on in passes of at most "
            f"{progress.pass_tokens:,} tokens, more of them to a step")  # fmt: skip


def skip(at_work: Training, data: Dataset, rows: Sequence[np.ndarray], loss: float, gradient_norm: float) -> None:
    """A loss or gradient that is not finite never reaches the weights. A few in a row, and the run goes back."""
    progress, run, log, ranks = at_work.progress, at_work.run, at_work.log, at_work.ranks
    at_work.gradients.clear()
    if ranks.leads:
        record_skipped(run, data, at_work.prepared.tokenizer, progress.step + 1, rows)
    in_a_row = progress.skipped_in_a_row + 1
    progress.advance()
    progress.skipped_in_a_row = in_a_row
    log.write("skipped", progress.step, loss=str(loss), gradient_norm=str(gradient_norm))
    log.say(f"step {progress.step:,}: loss {loss}, gradient norm {gradient_norm}: not finite; skipped, "
            f"its pairs are in {run.skipped_path}")  # fmt: skip
    if in_a_row < SKIPS_BEFORE_A_SETBACK:
        return
    if at_work.config.train.shard:
        raise DragomanError(f"{in_a_row} steps in a row were not finite; lower train.peak_rate in a new --out "
                            f"(divided models cannot go back by themselves)")  # fmt: skip
    reached = progress.step
    checkpoint = ranks.first(f"setback {progress.setbacks}", lambda: last_sound_checkpoint(run, log.say))
    good = go_back(at_work.config, at_work.model, at_work.optimizer, checkpoint)
    vars(progress).update(vars(after_a_setback(progress, good, run)))
    log.write("setback", progress.step, reached=reached, rate_factor=progress.rate_factor)
    log.say(f"{in_a_row} steps in a row were not finite: back to step {progress.step:,}, from here on at "
            f"{progress.rate_factor:g} of the rate")  # fmt: skip
    ranks.gather("all have read the checkpoint")
    save(at_work)  # what was decided is not forgotten when the run is killed now
    if checkpoint is not None:
        log_checkpoint(at_work, checkpoint)


def steps_from(prepared: Prepared, settings: TrainConfig, progress: TrainingProgress) -> Iterator[Sequence[np.ndarray]]:
    """The step at which the progress stands, each time anew: the loop moves it on."""
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


def rate_at(config: RunConfig, step: int, done: float) -> float:
    settings = config.train
    paper_peak = learning_rate(settings.warmup_steps, config.model.d_model, settings.warmup_steps)
    peak = paper_peak if settings.peak_rate is None else settings.peak_rate
    match settings.schedule:
        case "paper":
            return learning_rate(step, config.model.d_model, settings.warmup_steps) * peak / paper_peak
        case "linear":
            return linear_rate(step, settings.warmup_steps, peak, done)


def seed_of(seed: int, step: int, number: int) -> int:
    """One 63-bit seed a micro-batch, well mixed, so that neighbours do not draw alike."""
    return int(np.random.SeedSequence([seed, step, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Meter:
    """Sums since the last line of measurements, kept in the progress and so in a checkpoint."""

    def __init__(self, progress: TrainingProgress, settings: TrainConfig, now: Callable[[], float]) -> None:
        self.progress, self.settings, self.now = progress, settings, now
        self.since, self.tokens_here = now(), 0

    def note(self, rate: float) -> None:
        """The rate of a step, whatever becomes of it: where the clock decided it, it is kept for doing that again."""
        if self.settings.minutes is not None:
            self.progress.pending_rates.append(rate)

    def add(self, loss: float, nll: float, tokens: int) -> None:
        self.progress.pending_loss += loss
        self.progress.pending_nll += nll
        self.progress.pending_tokens += tokens
        self.tokens_here += tokens

    def report(self, log: NoLog, rate: float, gradient_norm: float) -> None:
        progress, now = self.progress, self.now()  # for the eye alone: nothing in training follows from it
        speed = self.tokens_here / max(now - self.since, 1e-9)
        loss, nll = progress.pending_loss / progress.pending_tokens, progress.pending_nll / progress.pending_tokens
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
        done = budget_used(self.settings, progress.step, progress.seconds)
        left = progress.seconds / max(done, 1e-9) - progress.seconds
        log.show(
            min(1.0, done),
            f"step {progress.step:,}  loss {loss:.3f}  ppl {perplexity(nll):.2f}  rate {rate:.1e}  "
            f"{speed:,.0f} tok/s  {clock(left)} left",
        )
        progress.pending_loss = progress.pending_nll = 0.0
        progress.pending_tokens, progress.pending_rates = 0, []
        self.since, self.tokens_here = now, 0


def validate_and_save(at_work: Training) -> None:
    """Measure, keep the best for translating, write a checkpoint."""
    progress, log, config = at_work.progress, at_work.log, at_work.config
    if len(at_work.prepared.valid):
        sample = progress.step // config.train.valid_steps
        result = validate(whole_model(at_work), at_work.prepared, config, at_work.ranks, sample)
        better = result.rank > rank(result.key, progress.best_score, progress.best_nll)
        said = ("  best so far, by its loss" if result.by_loss else "  best so far") if better else ""
        log.say(
            f"step {progress.step:,}  valid loss {result.nll:.3f}  ppl {perplexity(result.nll):.2f}  "
            f"{result.measure} {result.score:.1f}{said}\n"
            + "\n".join(f"  {name:<10} {clip(text)}" for name, text in result.example.items())
        )
        if better:
            progress.best_score, progress.best_nll = result.score, result.nll
            progress.best_step, progress.stale_validations = progress.step, 0
            weights = weights_of(at_work.model)
            if at_work.ranks.leads:
                promote(at_work.run, weights, "best", [progress.step])
        else:
            progress.stale_validations += 1
        log.write("valid", progress.step, nll=result.nll, perplexity=perplexity(result.nll),
                  **{result.key: result.score}, signature=result.signature, **result.example,
                  seconds=round(progress.seconds, 2))  # fmt: skip
    progress.validated = True
    progress.seconds = at_work.clock.agreed()
    save(at_work)
    log_checkpoint(at_work, at_work.run.checkpoints_path / f"step-{progress.step:08d}")


def whole_model(at_work: Training) -> Transformer:
    """The model, or a copy of one that is divided among the ranks: searching takes it apart in other ways."""
    if not isinstance(at_work.gradients, ShardedGradients):
        return at_work.model
    with at_work.ranks.together("validation"):
        weights = weights_of(at_work.model)
    return model_with(weights, at_work)


def model_with(weights: Mapping[str, Tensor], at_work: Training) -> Transformer:
    """A model of its own with these weights: the one that was trained stays as it is."""
    model = make_model(at_work.config.model).to(at_work.ranks.device)
    for name, tensor in weights_of(model).items():
        tensor.copy_(weights[name])
    return model


def save(at_work: Training) -> None:
    with at_work.ranks.together("writing a checkpoint"):
        weights, state = weights_of(at_work.model), optimizer_state_of(at_work.model, at_work.optimizer)
    if at_work.ranks.leads:
        at_work.progress.log_bytes = at_work.log.sync()
        save_checkpoint(
            at_work.run,
            weights,
            state,
            at_work.progress,
            at_work.config.train.keep_checkpoints,
            ranks=at_work.ranks.size,
            threads=torch.get_num_threads(),
            torch=torch.__version__,
            tokenizer=at_work.prepared.tokenizer.digest,
        )


def clip(text: str, most: int = 120) -> str:
    """For the terminal: a model that has not learned to end writes lines without end."""
    return text if len(text) <= most else f"{text[:most]}…"


def finish(at_work: Training) -> None:
    """Average the last checkpoints (6.1); the average translates unless the best single checkpoint did better."""
    run, config, log, progress, ranks = at_work.run, at_work.config, at_work.log, at_work.progress, at_work.ranks
    ranks.gather("the last checkpoint is written")
    trained = [checkpoint for checkpoint in run.checkpoints() if step_of(checkpoint)]  # step 0: what a run began with
    checkpoints = trained[-config.train.average_checkpoints :]
    weights = average(checkpoints)
    model = model_with(weights, at_work)
    result = validate(model, at_work.prepared, config, ranks, 0) if len(at_work.prepared.valid) else None
    if not ranks.leads:
        return
    if result is None or result.rank >= rank(result.key, progress.best_score, progress.best_nll):
        kind = "average" if len(checkpoints) > 1 else "last"
        promote(run, weights, kind, [step_of(checkpoint) for checkpoint in checkpoints])
    card = read_json(run.model_card_path)
    write_card(run, card | {"finished_at": progress.step})
    scores = {f"average_{result.key}": result.score, f"best_{result.key}": progress.best_score} if result else {}
    log.write("end", progress.step, kind=card["kind"], steps=card["steps"], **scores,
              seconds=round(progress.seconds, 2))  # fmt: skip
    log.say(f"finished after {progress.step:,} steps in {clock(progress.seconds)}")
    if result is not None:
        log.say(f"valid {result.measure}: {result.score:.1f} averaged over {len(checkpoints)} checkpoints, "
                f"{progress.best_score:.1f} at the best, step {progress.best_step:,}")  # fmt: skip
        if len(checkpoints) > 1 and result.by_loss and progress.best_score < LEAST_TELLING_BLEU:
            log.say("so low a BLEU tells little: the lower loss chose between them")
    log.say(f"{run.model_path} has the weights of: {card['kind']}, {', '.join(f'step {s:,}' for s in card['steps'])}")
