"""Sets up a training: the run's directory, data, model and optimiser, from the last checkpoint if there is one; and
tells whether there is anything left to do."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from dragoman.config import RunConfig, TrainConfig
from dragoman.config.recipes import flatten
from dragoman.data.dataset import Prepared, prepare
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.files import read_json
from dragoman.model.checkpoint import (
    TrainingProgress,
    begin_with,
    last_sound_checkpoint,
    link_of,
    load_model,
    load_training_state,
    read_progress,
    weights_of,
)
from dragoman.model.learned import Learned, learned_of
from dragoman.model.sequence_model import SequenceModel, make_model
from dragoman.model.transformer import count_parameters
from dragoman.processes import memory
from dragoman.progress import clock, to_stderr
from dragoman.run_directory import RunDirectory
from dragoman.training.distributed import Ranks, TrainingClock, in_words, leads, threads_for
from dragoman.training.gradients import Gradients, ShardedGradients, divide
from dragoman.training.log import NoLog, RunLog
from dragoman.training.optimizer import make_optimizer

_FLOAT = 4  # bytes of a number
SLOW_STEP = 2.0  # seconds; of steps that take longer, it is said how long all of them will take


@dataclass
class Training:
    """Everything that a training works on, passed from the loop to its functions. It has no behaviour of its own."""

    config: RunConfig
    run: RunDirectory
    ranks: Ranks
    prepared: Prepared
    model: SequenceModel
    learned: Learned  # what of the model the optimiser changes
    optimizer: torch.optim.Optimizer
    gradients: Gradients | ShardedGradients
    progress: TrainingProgress
    clock: TrainingClock
    log: NoLog


def begin(config: RunConfig, run: RunDirectory, ranks: Ranks, now: Callable[[], float]) -> Training:
    """Opens data, model and optimiser, from the last checkpoint if there is one."""
    config, prepared = ranks.first("prepare", lambda: open_run(config, run, ranks))
    torch.manual_seed(config.train.seed)
    model = make_model(config.model).to(ranks.device)
    learned = learned_of(model, config.train)
    learned.start(config.train.seed)
    optimizer = make_optimizer(model, config.train, learned, ranks)
    messages: list[str] = []
    checkpoint = ranks.first("checkpoint", lambda: last_sound_checkpoint(run, messages.append))
    progress = TrainingProgress()
    if checkpoint is not None:
        progress = load_training_state(checkpoint, model, optimizer, learned, config.train.seed)
    gradients: Gradients | ShardedGradients
    if config.train.shard and ranks.size > 1:
        divide(model, optimizer, ranks)
        learned = learned_of(model)  # the parameters are others now
        gradients = ShardedGradients(model, ranks)
    else:
        gradients = Gradients(list(learned.parameters.values()))
    log = RunLog(run, progress.log_bytes) if ranks.leads else NoLog()
    time = TrainingClock(ranks, progress.seconds, now)
    training = Training(config, run, ranks, prepared, model, learned, optimizer, gradients, progress, time, log)
    for message in messages:
        log.say(message)
    if checkpoint is not None and progress.validated:
        log_checkpoint(training, checkpoint)
    return training


def go_back(
    config: RunConfig,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    checkpoint: Path | None,
    learned: Learned | None = None,
) -> TrainingProgress:
    """Restores model and optimiser from a checkpoint (None: to the very beginning), on the device where they are."""
    if checkpoint is not None:
        return load_training_state(checkpoint, model, optimizer, learned, config.train.seed)
    torch.manual_seed(config.train.seed)
    model.load_state_dict(make_model(config.model).state_dict())
    if learned is not None:
        learned.start(config.train.seed)
    optimizer.state.clear()
    return TrainingProgress(validated=False)


def use_threads(asked: int, ranks: Ranks) -> None:
    """Divides the cores among the processes of this machine; leaves one process torch's own choice."""
    if asked or ranks.local_size > 1:
        torch.set_num_threads(threads_for(asked, ranks.local_size))


def require_memory(config: RunConfig, processes: int) -> None:
    """Raises a ConfigError if weights, gradients and optimiser state of so many processes alone are more than this
    machine's memory. A GPU has its own, and says itself what does not fit."""
    available = memory()
    if available is None or torch.cuda.is_available():
        return
    with torch.device("meta"):  # of shapes alone
        # A vocabulary that the text decides is not known yet.
        model = make_model(replace(config.model, vocab_size=config.model.vocab_size or 1))
        learned = sum(parameter.numel() for parameter in learned_of(model, config.train).parameters.values())
    whole = count_parameters(model)
    beside = 3 if config.train.optimizer == "adam" else 2  # the gradient, and one or two moments
    needed = _FLOAT * (whole + learned * beside) * (1 if config.train.shard else processes)
    if needed > available:
        several = f" in {processes} processes" if processes > 1 else ""
        raise ConfigError(
            f"a model of {whole:,} parameters: training it{several} takes {needed / 1e9:,.1f} GB for weights and "
            f"optimiser alone, and this machine has {available / 1e9:,.1f}; make model.d_model or the layers smaller"
        )


def open_run(config: RunConfig, run: RunDirectory, ranks: Ranks) -> tuple[RunConfig, Prepared]:
    """Prepares the data; writes the configuration, or compares it with the one that this run began with."""
    if not config.data.train:
        raise ConfigError(
            "no training data: give --pairs my.tsv, or --source and --target, or [data] train in a recipe"
        )
    existing = next(path for path in (run.path, *run.path.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):  # said now, not after reading the text
        raise DragomanError(
            f"{run.path}: cannot be created, as {existing} is not a directory that can be written; give another --out"
        )
    if run.checkpoints() and not run.config_path.exists():
        raise DataError(f"{run.path}: has checkpoints but no config.json; restore it, or give a new --out")
    if run.config_path.exists():
        before = RunDirectory.open(run.path).read_config()
        require_same_run(before, config, run)
        config = replace(config, model=before.model)

    if config.train.begin_with is not None:
        config = begun_with(Path(config.train.begin_with), config, run)

    def say(line: str) -> None:
        if ranks.leads:
            to_stderr(line)

    prepared = prepare(config.data, config.model.vocab_size, config.train.seed, run.path, say)
    config = replace(config, model=replace(config.model, vocab_size=prepared.tokenizer.vocab_size))
    if ranks.leads:
        run.write_config(config)
    return config, prepared


def begun_with(other: Path, config: RunConfig, run: RunDirectory) -> RunConfig:
    """Puts the weights and the vocabulary of another run into a run that has no checkpoint yet; returns the
    configuration with that vocabulary, which is the run's own from then on."""
    if not run.checkpoints():
        before = RunDirectory.open(other)
        if before.path.resolve() == run.path.resolve():
            raise ConfigError(f"train.begin_with = {other}: is the run itself; give another --out")
        tokenizer, there = load_tokenizer(before.path), before.read_config().model
        given = config.data.tokenizer
        if given is not None and Tokenizer.load(given).digest != tokenizer.digest:
            raise ConfigError(f"data.tokenizer = {given}: is not the vocabulary of {other}; leave data.tokenizer out")
        # What may differ: the vocabulary's size is that of the other run, and dropout leaves no weights behind.
        for name, value in asdict(replace(there, vocab_size=config.model.vocab_size)).items():
            if name != "dropout" and value != getattr(config.model, name):
                raise ConfigError(
                    f"train.begin_with = {other}: model.{name} is {value} there and {getattr(config.model, name)} "
                    f"here; make them equal"
                )
        config = replace(config, model=replace(config.model, vocab_size=there.vocab_size))
        begin_with(weights_of(load_model(before)), before, run, config, tokenizer)
    learned = replace(config.data, tokenizer=str(run.tokenizer_path), casing="plain", split_digits=False)
    size = load_tokenizer(run.path).vocab_size
    return replace(config, data=learned, model=replace(config.model, vocab_size=size))


def require_same_run(before: RunConfig, now: RunConfig, run: RunDirectory) -> None:
    """Refuses a configuration that would change a run's numbers; budgets and intervals may change."""
    may_change = {
        "steps",
        "minutes",
        "patience",
        "valid_steps",
        "valid_sentences",
        "processes",
        "threads",
        "answer_seconds",
    }
    may_change |= {"keep_checkpoints", "average_checkpoints"}
    for (key, old), (_, new) in zip(flatten(before), flatten(now), strict=True):
        section, name = key.split(".")
        fixed = section == "model" or (section == "train" and name not in may_change)
        # 0 lets the text decide the size; it may have given fewer pieces than asked for, or needed more.
        as_asked = key == "model.vocab_size" and (new == 0 or new > old or load_tokenizer(run.path).is_alphabet())
        if fixed and old != new and not as_asked:
            raise ConfigError(f"{run.path}: {key} was {old} when this run began, is {new} now; give a new --out")


def already_finished(run: RunDirectory, config: RunConfig) -> bool:
    """Tells whether a run is finished and the same command has nothing to do; if so, also prints that."""
    if not run.checkpoints() or not run.model_card_path.exists() or not run.config_path.exists():
        return False
    require_same_run(RunDirectory.open(run.path).read_config(), config, run)
    progress = read_progress(run.checkpoints()[-1])
    if not nothing_left(config.train, progress) or read_json(run.model_card_path).get("finished_at") != progress.step:
        return False
    if leads():
        to_stderr(f"{run.path} is finished ({progress.step:,} steps); to go on, raise --steps or --minutes")
    return True


def budget_used(settings: TrainConfig, step: int, seconds: float) -> float:
    """Returns the share of the budget that is used up: of steps or of minutes, whichever is larger."""
    share = step / settings.steps
    return share if settings.minutes is None else max(share, seconds / (60 * settings.minutes))


def nothing_left(settings: TrainConfig, progress: TrainingProgress) -> bool:
    """Tells whether the budget or the patience is used up."""
    out_of_patience = settings.patience > 0 and progress.stale_validations >= settings.patience
    return out_of_patience or budget_used(settings, progress.step, progress.seconds) >= 1


def log_checkpoint(training: Training, checkpoint: Path) -> None:
    """Logs a checkpoint as a link of the chain of hashes. This comes after the checkpoint, which cannot hold its own
    hash; a run that goes on from the checkpoint writes the link again."""
    if training.ranks.leads:
        link = link_of(checkpoint, training.progress.chain)
        training.log.write("checkpoint", training.progress.step, **link)
        training.progress.chain = link["chain"]


def say_start(training: Training) -> None:
    """Prints the sizes of model and data, the budget, and how many processes and threads are used."""
    config, ranks, settings = training.config, training.ranks, training.config.train
    budget = f"{settings.steps:,} steps" if settings.minutes is None else f"{round(settings.minutes, 2):g} minutes"
    whole, learned = count_parameters(training.model), sum(p.numel() for p in training.learned.parameters.values())
    which = "" if settings.learn == "all" else f" ({learned:,} learn: {settings.learn})"
    training.log.say(
        f"{whole:,} parameters{which}, {len(training.prepared.train):,} pairs, "
        f"vocabulary {config.model.vocab_size:,}, {budget}, "
        f"{in_words(ranks.local_size, torch.get_num_threads(), chosen=settings.processes == 0)}"
    )
    if training.progress.step:
        training.log.say(f"going on from step {training.progress.step:,}")


def say_estimate(training: Training, token_seconds: float) -> None:
    """Prints how long the training will take, where its steps are slow: the first lines of progress are far off then.
    `token_seconds`: of a first pass, which is a little slower than those that follow."""
    settings, ranks, progress = training.config.train, training.ranks, training.progress
    step = token_seconds * settings.batch_tokens / ranks.size
    if step < SLOW_STEP or nothing_left(settings, progress):
        return
    steps = settings.steps - progress.step
    speed = f"{step:.0f} seconds a step of {settings.batch_tokens:,} tokens"
    if settings.minutes is None or steps * step < 60 * settings.minutes - progress.seconds:
        training.log.say(
            f"about {clock(steps * step)} for {steps:,} steps, and the validations ({speed}); --minutes sets a limit"
        )
    else:
        steps = int((60 * settings.minutes - progress.seconds) / step)
        epoch = training.prepared.train.target_lengths.sum() + len(training.prepared.train)
        training.log.say(
            f"at most {steps:,} steps in the minutes that are left ({speed}); each pair is seen about "
            f"{steps * settings.batch_tokens / epoch:.1f} times"
        )
