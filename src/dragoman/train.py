"""Training (section 5): batch, forward, loss, backward, step, log, save; one visible loop."""

import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import FrameType

import numpy as np
import torch
from torch import Tensor, nn

from dragoman import evaluate
from dragoman.batching import Batch, make_batch, plan_epoch
from dragoman.checkpoint import (
    Progress,
    average,
    load_training_state,
    promote,
    save_checkpoint,
    weights_of,
    write_card,
)
from dragoman.config import RunConfig, TrainConfig, flatten
from dragoman.dataset import Dataset, Prepared, prepare
from dragoman.engines.reference import ReferenceEngine
from dragoman.errors import ConfigError, DragomanError
from dragoman.loss import smoothed_cross_entropy
from dragoman.model import Transformer, count_parameters
from dragoman.rundir import RunDirectory, read_json, step_of
from dragoman.runlog import RunLog, clock
from dragoman.schedule import learning_rate, linear_rate
from dragoman.translate import Translator

LOG_EVERY = 50  # steps between two lines of measurements


def train(config: RunConfig, run: RunDirectory, again: str) -> None:
    """Train a run, or go on with it from its last checkpoint. `again`: the command line that would go on with it."""
    keep_freed_memory()
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    config, prepared = open_run(config, run)
    progress = Progress()
    settings, tokenizer, data = config.train, prepared.tokenizer, prepared.train
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(settings.seed)
    model = Transformer(config.model).to(device)
    optimizer = make_optimizer(model, settings)
    if run.checkpoints():
        progress = load_training_state(run.checkpoints()[-1], model, optimizer)
    if already_finished(run, settings, progress):
        print(
            f"{run.path} is finished ({progress.step:,} steps); to go on, raise --steps or --minutes", file=sys.stderr
        )
        return
    states = torch.compile(model.states, dynamic=True) if device.type == "cuda" else model.states
    precision = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()

    with RunLog(run, progress.log_bytes) as log, Interruption() as interruption:
        say_start(log, config, model, data, progress)
        meter, clock_start = Meter(), time.monotonic() - progress.seconds
        for step_rows in steps_from(data, settings, progress):
            done = budget_used(settings, progress.step, time.monotonic() - clock_start)
            if done >= 1 or interruption.asked or out_of_patience(settings, progress):
                break
            batches = [make_batch(data, rows, tokenizer).to(device) for rows in step_rows]
            tokens = sum(batch.tokens for batch in batches)
            rate = rate_at(config, progress.step + 1, done)
            model.train()
            for number, batch in enumerate(batches):
                # Random numbers belong to the batch: whoever computes it, whenever, drops the same units.
                torch.manual_seed(seed_of(settings.seed, progress.step, number))
                with precision:
                    hidden = states(batch.source, batch.target, batch.source_mask)
                loss, nll = smoothed_cross_entropy(
                    batch.real_states(hidden).float(), model.output.weight, batch.labels, settings.label_smoothing
                )
                # The mean over the tokens of the whole step, however it is split.
                (loss / tokens).backward()  # type: ignore[no-untyped-call]
                meter.add(loss, nll, batch.tokens)
            for group in optimizer.param_groups:
                group["lr"] = rate
            gradient_norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
            optimizer.step()
            optimizer.zero_grad()

            progress.step += 1
            progress.position += 1
            progress.validated = False
            progress.seconds = time.monotonic() - clock_start
            validates = progress.step % settings.valid_steps == 0
            # Soon after the start, so that one sees it go; and before a checkpoint, which keeps no half-filled sums.
            if progress.step % LOG_EVERY == 0 or progress.step in (1, 10) or validates:
                meter.report(log, progress, rate, float(gradient_norm), settings)
            if validates:
                validate_and_save(log, run, config, model, optimizer, prepared, progress)
                progress.seconds = time.monotonic() - clock_start

        progress.seconds = time.monotonic() - clock_start
        if interruption.asked:
            progress.log_bytes = log.sync()
            save_checkpoint(run, model, optimizer, progress, settings.keep_checkpoints)
            log.say(f"stopped at step {progress.step}, everything saved; go on with:\n  {again}")
            raise KeyboardInterrupt
        if not progress.validated:  # the budget ended between two validations
            validate_and_save(log, run, config, model, optimizer, prepared, progress)
        finish(log, run, config, model, prepared, progress)


def open_run(config: RunConfig, run: RunDirectory) -> tuple[RunConfig, Prepared]:
    """Prepare the data; write the configuration, or hold it against the one that this run began with."""
    if not config.data.train:
        raise ConfigError(
            "no training data: give --pairs my.tsv, or --source and --target, or [data] train in a recipe"
        )
    standing = next(path for path in (run.path, *run.path.parents) if path.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK):  # said now, not after the text was read
        raise DragomanError(
            f"{run.path}: cannot be made, as {standing} is no directory to write in; give another --out"
        )
    if run.config_path.exists():
        before = RunDirectory.open(run.path).read_config()
        require_same_run(before, config, run)
        config = replace(config, model=before.model)
    prepared = prepare(
        config.data, config.model.vocab_size, config.train.seed, run.path, lambda line: print(line, file=sys.stderr)
    )
    config = replace(config, model=replace(config.model, vocab_size=prepared.tokenizer.vocab_size))
    run.write_config(config)
    return config, prepared


def require_same_run(before: RunConfig, now: RunConfig, run: RunDirectory) -> None:
    """Budgets and intervals may change between two stretches of a run; what makes its numbers what they are may not."""
    may_change = {"steps", "minutes", "patience", "valid_steps", "valid_sentences", "threads"}
    may_change |= {"keep_checkpoints", "average_checkpoints"}
    for (key, old), (_, new) in zip(flatten(before), flatten(now), strict=True):
        section, name = key.split(".")
        fixed = section == "model" or (section == "train" and name not in may_change)
        if fixed and old != new and not (key == "model.vocab_size" and new == 0):
            raise ConfigError(f"{run.path}: {key} was {old} when this run began, is {new} now; give a new --out")


def make_optimizer(model: Transformer, settings: TrainConfig) -> torch.optim.Optimizer:
    """Adam as in section 5.3; the rate is set before every step."""
    betas = (settings.adam_beta1, settings.adam_beta2)
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=betas, eps=settings.adam_epsilon, fused=True)


def steps_from(data: Dataset, settings: TrainConfig, progress: Progress) -> Iterator[Sequence[np.ndarray]]:
    """The steps that are left of this epoch, then those of the epochs after it, without end."""
    while True:
        plan = plan_epoch(data, settings.batch_tokens, settings.micro_batch_tokens, settings.seed, progress.epoch)
        yield from plan[progress.position :]
        progress.epoch += 1
        progress.position = 0


def budget_used(settings: TrainConfig, step: int, seconds: float) -> float:
    """The share of the budget that is used up: of steps or of minutes, whichever is more."""
    share = step / settings.steps
    return share if settings.minutes is None else max(share, seconds / (60 * settings.minutes))


def out_of_patience(settings: TrainConfig, progress: Progress) -> bool:
    return settings.patience > 0 and progress.stale_validations >= settings.patience


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
    """Sums since the last line of measurements."""

    def __init__(self) -> None:
        self.loss = self.nll = 0.0
        self.tokens = 0
        self.since = time.monotonic()

    def add(self, loss: Tensor, nll: Tensor, tokens: int) -> None:
        self.loss += float(loss.detach())
        self.nll += float(nll)
        self.tokens += tokens

    def report(self, log: RunLog, progress: Progress, rate: float, gradient_norm: float, settings: TrainConfig) -> None:
        now = time.monotonic()
        speed = self.tokens / max(now - self.since, 1e-9)
        loss, nll = self.loss / self.tokens, self.nll / self.tokens
        log.write(
            "train",
            progress.step,
            epoch=progress.epoch,
            loss=loss,
            perplexity=perplexity(nll),
            rate=rate,
            gradient_norm=gradient_norm,
            tokens=self.tokens,
            tokens_per_second=round(speed, 1),
            seconds=round(progress.seconds, 2),
        )
        done = budget_used(settings, progress.step, progress.seconds)
        left = progress.seconds / max(done, 1e-9) - progress.seconds
        log.show(
            min(1.0, done),
            f"step {progress.step:,}  loss {loss:.3f}  ppl {perplexity(nll):.2f}  rate {rate:.1e}  "
            f"{speed:,.0f} tok/s  {clock(left)} left",
        )
        self.__init__()  # type: ignore[misc]


def perplexity(nll: float) -> float:
    return math.exp(min(nll, 700.0))


@dataclass(frozen=True)
class Validation:
    """Of a model on the validation pairs: the plain loss a token, cased sacreBLEU, and one sentence to look at."""

    nll: float
    bleu: float
    signature: str
    source: str
    output: str
    reference: str


@torch.inference_mode()
def validate(model: Transformer, prepared: Prepared, config: RunConfig, sample: int) -> Validation:
    """Loss over all validation pairs, BLEU of greedy translations of the first `valid_sentences` of them."""
    model.eval()
    nll = tokens = 0.0
    budget = min(config.train.micro_batch_tokens, 4096)
    for rows in (rows for step in plan_epoch(prepared.valid, budget, budget, 0, 0) for rows in step):
        batch: Batch = make_batch(prepared.valid, rows, prepared.tokenizer).to(model.output.weight.device)
        hidden = model.states(batch.source, batch.target, batch.source_mask)
        _, batch_nll = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.0)
        nll += float(batch_nll)
        tokens += batch.tokens
    pairs = prepared.valid_pairs[: config.train.valid_sentences]
    search = replace(
        config.search, beam=1, max_source_length=max(config.search.max_source_length, config.data.max_length)
    )
    translator = Translator(ReferenceEngine([model], prepared.tokenizer), prepared.tokenizer, search)
    outputs = translator.translate([source for source, _ in pairs])
    score = evaluate.bleu(outputs, [[target] for _, target in pairs])
    shown = sample % len(pairs)
    return Validation(nll / tokens, score.value, score.signature, pairs[shown][0], outputs[shown], pairs[shown][1])


def validate_and_save(
    log: RunLog,
    run: RunDirectory,
    config: RunConfig,
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    prepared: Prepared,
    progress: Progress,
) -> None:
    """Measure, keep the best for translating, write a checkpoint."""
    if len(prepared.valid):
        result = validate(model, prepared, config, sample=progress.step // config.train.valid_steps)
        better = result.bleu > progress.best_bleu
        log.say(
            f"step {progress.step:,}  valid loss {result.nll:.3f}  ppl {perplexity(result.nll):.2f}  "
            f"BLEU {result.bleu:.1f} (greedy){'  best so far' if better else ''}\n"
            f"  source     {clip(result.source)}\n"
            f"  output     {clip(result.output)}\n"
            f"  reference  {clip(result.reference)}"
        )
        if better:
            progress.best_bleu, progress.best_step, progress.stale_validations = result.bleu, progress.step, 0
            promote(run, weights_of(model), "best", [progress.step])
        else:
            progress.stale_validations += 1
        log.write("valid", progress.step, nll=result.nll, perplexity=perplexity(result.nll), bleu=result.bleu,
                  signature=result.signature, source=result.source, output=result.output, reference=result.reference,
                  seconds=round(progress.seconds, 2))  # fmt: skip
    progress.validated = True
    progress.log_bytes = log.sync()
    save_checkpoint(run, model, optimizer, progress, config.train.keep_checkpoints)


def clip(text: str, most: int = 120) -> str:
    """For the terminal: a model that has not learned to end writes lines without end."""
    return text if len(text) <= most else f"{text[:most]}…"


def finish(
    log: RunLog, run: RunDirectory, config: RunConfig, model: Transformer, prepared: Prepared, progress: Progress
) -> None:
    """Average the last checkpoints (6.1); the average translates unless the best single checkpoint did better."""
    checkpoints = run.checkpoints()[-config.train.average_checkpoints :]
    weights = average(checkpoints)
    for name, tensor in weights_of(model).items():
        tensor.copy_(weights[name])
    bleu = validate(model, prepared, config, 0).bleu if len(prepared.valid) else None
    if bleu is None or bleu >= progress.best_bleu:
        kind = "average" if len(checkpoints) > 1 else "last"
        promote(run, weights, kind, [step_of(checkpoint) for checkpoint in checkpoints])
    card = read_json(run.model_card_path)
    write_card(run, card | {"finished_at": progress.step})
    log.write("end", progress.step, kind=card["kind"], steps=card["steps"], average_bleu=bleu,
              best_bleu=progress.best_bleu, seconds=round(progress.seconds, 2))  # fmt: skip
    log.say(f"finished after {progress.step:,} steps in {clock(progress.seconds)}")
    if bleu is not None:
        log.say(f"valid BLEU (greedy): {bleu:.1f} averaged over {len(checkpoints)} checkpoints, "
                f"{progress.best_bleu:.1f} at the best, step {progress.best_step:,}")  # fmt: skip
    log.say(f"{run.model_path} has the weights of: {card['kind']}, {', '.join(f'step {s:,}' for s in card['steps'])}")


def already_finished(run: RunDirectory, settings: TrainConfig, progress: Progress) -> bool:
    """Whether the same command would only do the end of a run again."""
    if budget_used(settings, progress.step, progress.seconds) < 1 and not out_of_patience(settings, progress):
        return False
    return run.model_card_path.exists() and read_json(run.model_card_path).get("finished_at") == progress.step


def say_start(log: RunLog, config: RunConfig, model: Transformer, data: Dataset, progress: Progress) -> None:
    settings = config.train
    budget = f"{settings.steps:,} steps" if settings.minutes is None else f"{settings.minutes:g} minutes"
    log.say(
        f"{count_parameters(model):,} parameters, {len(data):,} pairs, vocabulary {config.model.vocab_size:,}, "
        f"{torch.get_num_threads()} threads, {budget}"
    )
    if progress.step:
        log.say(f"going on from step {progress.step:,}")


class Interruption:
    """Ctrl-C and SIGTERM ask the loop to stop after the step it is in; a second one stops at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> "Interruption":
        def ask(_number: int, _frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True

        try:
            self._before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread: whoever runs it there has other ways to stop it
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def keep_freed_memory() -> None:
    """Tell glibc not to hand freed memory back to the system: a training step frees and takes the same sizes again,
    and faulting the pages in anew costs a fifth of the time of a small model. Elsewhere there is nothing to tell."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block comes from mmap, which is unmapped when freed
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: the top of the heap stays
    except (OSError, AttributeError):
        pass
