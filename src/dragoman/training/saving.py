"""Validates a model during training, writes its checkpoints, and at the end chooses the weights to translate with."""

from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman.evaluation.metrics import LEAST_TELLING_BLEU
from dragoman.files import read_json
from dragoman.model.checkpoint import (
    average,
    optimizer_state_of,
    promote,
    save_checkpoint,
    weights_of,
    write_card,
)
from dragoman.model.sequence_model import SequenceModel, make_model
from dragoman.progress import clock
from dragoman.run_directory import step_of
from dragoman.training.gradients import ShardedGradients
from dragoman.training.optimizer import ema_of
from dragoman.training.setup import Training, log_checkpoint
from dragoman.training.validation import Validation, perplexity, rank, validate


def validate_and_save(training: Training) -> None:
    """Validates, makes the weights the run's own if they are the best so far, and writes a checkpoint."""
    progress, log, config = training.progress, training.log, training.config
    if len(training.prepared.valid):
        sample = progress.step // config.train.valid_steps
        result = validate(whole_model(training), training.prepared, config, training.ranks, sample)
        better = result.rank > rank(result.key, progress.best_score, progress.best_nll)
        remark = ("  best so far, by its loss" if result.by_loss else "  best so far") if better else ""
        log.say(
            f"step {progress.step:,}  valid loss {result.nll:.3f}  ppl {perplexity(result.nll):.2f}  "
            f"{result.measure} {result.score:.1f}{remark}\n"
            + "\n".join(f"  {name:<10} {clip(text)}" for name, text in result.example.items())
        )
        if better:
            progress.best_score, progress.best_nll = result.score, result.nll
            progress.best_step, progress.stale_validations = progress.step, 0
            weights = weights_of(training.model)
            if training.ranks.leads:
                promote(training.run, weights, "best", [progress.step])
        else:
            progress.stale_validations += 1
        log.write("valid", progress.step, nll=result.nll, perplexity=perplexity(result.nll),
                  **{result.key: result.score}, signature=result.signature, **result.example,
                  seconds=round(progress.seconds, 2))  # fmt: skip
    progress.validated = True
    progress.seconds = training.clock.agreed()
    save(training)
    log_checkpoint(training, training.run.checkpoints_path / f"step-{progress.step:08d}")


def whole_model(training: Training) -> SequenceModel:
    """Returns the model; if it is divided among the ranks, a whole copy of it, which decoding needs."""
    if not isinstance(training.gradients, ShardedGradients):
        return training.model
    with training.ranks.together("validation"):
        weights = weights_of(training.model)
    return model_with(weights, training)


def model_with(weights: Mapping[str, Tensor], training: Training) -> SequenceModel:
    """Makes another model with these weights; the model in training is not changed."""
    model = make_model(training.config.model).to(training.ranks.device)
    for name, tensor in weights_of(model).items():
        tensor.copy_(weights[name])
    return model


def save(training: Training) -> None:
    """Writes a checkpoint of weights, optimiser state and progress."""
    with training.ranks.together("writing a checkpoint"):
        weights = weights_of(training.model)
        state = optimizer_state_of(training.model, training.optimizer, training.learned)
    if training.ranks.leads:
        training.progress.log_bytes = training.log.sync()
        save_checkpoint(
            training.run,
            weights,
            state,
            training.progress,
            training.config.train.keep_checkpoints,
            ranks=training.ranks.size,
            threads=torch.get_num_threads(),
            torch=torch.__version__,
            tokenizer=training.prepared.tokenizer.digest,
        )


def validated(weights: Mapping[str, Tensor], training: Training) -> Validation | None:
    """Measures other weights than those in training; None: there is nothing to measure them with."""
    if not len(training.prepared.valid):
        return None
    return validate(model_with(weights, training), training.prepared, training.config, training.ranks, 0)


def clip(text: str, most: int = 120) -> str:
    """Shortens a text for the terminal: a model that has not learned to stop writes very long lines."""
    return text if len(text) <= most else f"{text[:most]}…"


def finish(training: Training) -> None:
    """Averages the last checkpoints (section 6.1) and uses the average, or the running average of all steps if there is
    one that is better, unless the best single checkpoint is better than both."""
    run, config, log, progress, ranks = training.run, training.config, training.log, training.progress, training.ranks
    ranks.gather("the last checkpoint is written")
    trained = [
        checkpoint for checkpoint in run.checkpoints() if step_of(checkpoint)
    ]  # not step 0: the weights that a run began with
    checkpoints = trained[-config.train.average_checkpoints :]
    weights, kind = average(checkpoints), "average" if len(checkpoints) > 1 else "last"
    steps = [step_of(checkpoint) for checkpoint in checkpoints]
    result, running = validated(weights, training), None
    averaged = result
    if config.train.ema:
        running_weights = ema_of(training.optimizer, weights_of(training.model), training.learned)
        running = validated(running_weights, training)
        if result is None or (running is not None and running.rank > result.rank):
            weights, kind, steps, result = running_weights, "ema", [progress.step], running
    if not ranks.leads:
        return
    if result is None or result.rank >= rank(result.key, progress.best_score, progress.best_nll):
        promote(run, weights, kind, steps)
    card = read_json(run.model_card_path)
    write_card(run, card | {"finished_at": progress.step})
    scores = (
        {f"average_{averaged.key}": averaged.score, f"best_{averaged.key}": progress.best_score} if averaged else {}
    )
    if running is not None:
        scores[f"ema_{running.key}"] = running.score
    log.write("end", progress.step, kind=card["kind"], steps=card["steps"], **scores,
              seconds=round(progress.seconds, 2))  # fmt: skip
    log.say(f"finished after {progress.step:,} steps in {clock(progress.seconds)}")
    if averaged is not None and result is not None:
        of_all = "" if running is None else f"{running.score:.1f} by the running average, "
        log.say(f"valid {result.measure}: {averaged.score:.1f} averaged over {len(checkpoints)} checkpoints, "
                f"{of_all}{progress.best_score:.1f} at the best, step {progress.best_step:,}")  # fmt: skip
        if len(checkpoints) > 1 and result.by_loss and progress.best_score < LEAST_TELLING_BLEU:
            log.say("such a low BLEU says little: the lower loss chose between them")
    log.say(f"{run.model_path} has the weights of: {card['kind']}, {', '.join(f'step {s:,}' for s in card['steps'])}")
