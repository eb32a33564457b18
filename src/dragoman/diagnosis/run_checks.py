"""Finds what is wrong with a run: its log, its settings, its vocabulary, its text, and what it writes."""

import math
import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import CorpusConfig, RunConfig
from dragoman.data.corpus import SentencePair, raw_pairs
from dragoman.data.dataset import Dataset, validation_pairs
from dragoman.data.tokenizer import choose_vocab_size, load_tokenizer
from dragoman.decoding.engines.vocabulary_map import training_pairs
from dragoman.diagnosis.causes import Cause, ranked
from dragoman.diagnosis.corpus_checks import MOST_PAIRS, examine_text
from dragoman.diagnosis.output_checks import examine_outputs
from dragoman.errors import DataError
from dragoman.evaluation.metrics import LEAST_TELLING_BLEU
from dragoman.files import read_json
from dragoman.progress import discard
from dragoman.run_directory import RunDirectory
from dragoman.training.log_reader import History
from dragoman.training.signatures import standstill, too_good
from dragoman.translation.translator import Translator

Event = dict[str, Any]
_TRANSLATED = 200  # validation sentences
ENOUGH_SEEN = 3  # epochs; with fewer, a model has hardly begun to learn
_LITTLE_SEEN = 2.0
MANY_PAIRS, _GOOD_BLEU = 20_000, 15.0  # fewer pairs are a cause if the score is also lower


def examine_run(path: Path) -> list[Cause]:
    """Runs all checks on a run; returns the causes found, ranked."""
    run = RunDirectory.open(path)
    name, config, events = shlex.quote(str(path)), run.read_config(), run.events()
    try:
        data = training_pairs(run)
    except DataError:
        data = None
    little = (
        None if data is None else too_little_training(times_seen(data, events), events, config, quickstart_command(run))
    )
    found = [little, *examine_log(events, config, name), averaging(run, events, config, name)]
    if little is not None:  # it says the same, and more
        found = [cause for cause in found if cause is None or cause.name != "too few steps"]
    if data is not None:
        found += [vocabulary_too_large(data, config, name), too_little_text(len(data), events, config)]
    train, valid = _text(config.data.train), validation_pairs(run.path)
    if train:
        named = config.data.train[0].pairs or f"{config.data.train[0].source} and {config.data.train[0].target}"
        found += examine_text(train, named, valid)
        found.append(vocabulary_too_small(run, train, config, name))
    if valid and run.model_path.exists():
        sources, references = zip(*valid[:_TRANSLATED], strict=True)
        outputs = Translator.load(path).translate(list(sources), warn=discard)
        found += examine_outputs(sources, outputs, references, name)
    return ranked(found)


def _text(corpora: Sequence[CorpusConfig]) -> list[SentencePair]:
    """Reads the beginning of the training text, from those of its files that still exist."""
    pairs: list[SentencePair] = []
    for corpus in corpora:
        try:
            lines = list(islice(raw_pairs(corpus), MOST_PAIRS - len(pairs)))
        except DataError:
            continue
        for columns in lines:
            if len(columns) > 1 and columns[0].strip() and columns[1].strip():
                pairs.append((columns[0].decode(errors="replace").strip(), columns[1].decode(errors="replace").strip()))
    return pairs


def examine_log(events: Sequence[Event], config: RunConfig, name: str) -> list[Cause]:
    """Runs the checks that need only the log."""
    slow = rate_too_high(events, config)
    found = (
        slow,
        too_few_steps(events, config, name),
        learned_by_heart(events, config),
        *(failure_signatures(events, config) if slow is None else []),
    )
    return ranked(found)


def failure_signatures(events: Sequence[Event], config: RunConfig) -> list[Cause | None]:
    """Finds a plateau of the loss, a training loss that is too good to be true, and a widening gap."""
    history = History()
    history.add(events)
    again = f"{train_command(config)} --out runs/other"
    found: list[Cause | None] = []
    if (sign := standstill(history.train)) is not None:
        scale = config.model.attention_scale
        suspect = "" if scale == "1/sqrt(d_k)" else f"; model.attention_scale is {scale!r}, the paper's is 1/sqrt(d_k)"
        peak = config.train.peak_rate or config.model.d_model**-0.5 * config.train.warmup_steps**-0.5
        remedy = f"--set train.peak_rate={peak / 3:.1e}" if not suspect else "--set 'model.attention_scale=1/sqrt(d_k)'"
        found.append(Cause("loss stands still", "the loss fell at first and then no more, far above what is usual",
                           f"from step {sign.step:,} on {sign.text}{suspect}",
                           "most of the score: the model has learned which words are frequent, and little else",
                           f"{again} {remedy}", 0.9))  # fmt: skip
    if (sign := too_good(history.train, history.valid)) is not None:
        found.append(Cause("too good to be true", "it predicts what it is shown and cannot write by itself",
                           f"from step {sign.step:,} on: {sign.text}",
                           "all of the score: with a leak or without the mask it learns to copy",
                           "look for the target in the source column, for pairs of equal sides, for a changed mask; "
                           "then train again", 0.98))  # fmt: skip
    gap = next((alert for alert in history.alerts() if alert.kind == "gap"), None)
    # The training loss is of smoothed targets, so that of a healthy training stays above the validation loss.
    if gap is not None and sign is None and history.valid[-1]["nll"] > history.train[-1]["loss"]:
        more = min(0.5, config.model.dropout + 0.1)
        found.append(Cause("widening gap", "the validation loss falls behind the training loss",
                           f"from step {gap.step:,} on {gap.text}", "what is learned now is the text by heart",
                           f"{again} --set model.dropout={more:g}   # or more text", 0.15))  # fmt: skip
    return found


def train_command(config: RunConfig) -> str:
    """Returns the beginning of a command that trains on the same text; the user adds the other settings of the run."""
    words = ["dragoman", "train"]
    for prefix, corpora in (("--", config.data.train), ("--valid-", config.data.valid)):
        if len(corpora) == 1:  # several can only be named in a recipe
            named = {"pairs": corpora[0].pairs, "source": corpora[0].source, "target": corpora[0].target}
            words += [word for name, path in named.items() if path for word in (f"{prefix}{name}", path)]
    return shlex.join(words)


def quickstart_command(run: RunDirectory) -> str | None:
    """Returns the command that goes on with a run, without its minutes, if quickstart made it; otherwise None."""
    about_path = run.about_quickstart_text_path
    if not run.quickstart_plan_path.is_file() or not about_path.is_file():
        return None
    asked = read_json(about_path)["asked"]
    words = ["dragoman", "quickstart", *asked["paths"], "--out", str(run.path)]
    if asked["wanted"]:
        words += ["--source-language", asked["wanted"][0], "--target-language", asked["wanted"][1]]
    return shlex.join(words + (["--seed", str(asked["seed"])] if asked["seed"] != 1 else []))


def times_seen(data: Dataset, events: Sequence[Event]) -> float:
    """Returns how often training went through the text, counted in target tokens."""
    trained = sum(event.get("tokens", 0) for event in events if event["event"] == "train")
    return float(trained) / max(1, int(data.target_lengths.sum()) + len(data))


def too_little_training(
    seen: float, events: Sequence[Event], config: RunConfig, quickstart: str | None = None
) -> Cause | None:
    """Finds a bad translator that hardly saw its text; other faults of its outputs follow from that."""
    valid = [event for event in events if event["event"] == "valid"]
    best = max((event.get("bleu", 0.0) for event in valid), default=None)
    seconds = max((event.get("seconds", 0.0) for event in events), default=0.0)
    if best is None or seen >= _LITTLE_SEEN or best >= _GOOD_BLEU:
        return None
    needed = math.ceil(seconds / 60 * ENOUGH_SEEN / max(seen, 0.01) + 1)
    longer = (
        f"{quickstart} --minutes {needed}   # goes on from where it is"
        if quickstart
        else f"{train_command(config)} --out runs/longer --minutes {needed}   # and what else it was trained with"
    )
    unstable = any(event["event"] in ("skipped", "setback") for event in events)
    return Cause(
        "too little training",
        f"too little training for so much text: each pair was seen {seen:.1f} times",
        f"{seconds / 60:.1f} minutes; validation BLEU was never above {best:.1f}; {ENOUGH_SEEN} times is where a model "
        "begins to be of use",
        "most of the score: what is wrong with the outputs most often goes away with more training",
        f"{longer}; or give it less text",
        0.9 if unstable else 1.0,
    )


def rate_too_high(events: Sequence[Event], config: RunConfig) -> Cause | None:
    """Finds steps that were not finite, or a loss that rose again and stayed high."""
    losses = [event["loss"] for event in events if event["event"] == "train"]
    skipped = sum(event["event"] == "skipped" for event in events)
    setbacks = sum(event["event"] == "setback" for event in events)
    lowest = min(losses, default=0.0)
    risen = losses[-1] - lowest if losses else 0.0
    stuck = len(losses) >= 8 and losses[-1] > 0.85 * losses[0]
    if not (skipped >= 3 or setbacks or (len(losses) >= 5 and risen > 0.5) or stuck):
        return None
    peak = config.train.peak_rate or config.model.d_model**-0.5 * config.train.warmup_steps**-0.5
    evidence = [f"{skipped} steps skipped as not finite, {setbacks} setbacks"] if skipped or setbacks else []
    if losses:
        evidence.append(f"loss {losses[0]:.2f} at first, {lowest:.2f} at its lowest, {losses[-1]:.2f} at the end")
    return Cause(
        "rate too high",
        f"the loss did not fall steadily at a rate of up to {peak:.1e}",
        "; ".join(evidence),
        "most of the score, where the loss never recovers",
        f"{train_command(config)} --out runs/slower --set train.peak_rate={peak / 3:.1e} "
        f"--set train.warmup_steps={2 * config.train.warmup_steps}",
        0.95,
    )


def too_little_text(pairs: int, events: Sequence[Event], config: RunConfig) -> Cause | None:
    """Finds a bad translator that had few pairs to learn from."""
    best = max((event["bleu"] for event in events if event["event"] == "valid"), default=None)
    if best is None or best >= _GOOD_BLEU or pairs >= MANY_PAIRS:
        return None
    return Cause(
        "too little text",
        f"{pairs:,} pairs to learn from",
        f"validation BLEU was never above {best:.1f}; docs/guides/your-data.md shows what to expect of so much text",
        "most of the score: some ten thousand pairs are where a translator of everyday sentences begins",
        f"{train_command(config)} --out runs/more   # and more pairs; or text of the target language alone: "
        "dragoman backtranslate",
        0.65 if pairs < MANY_PAIRS / 4 else 0.45,
    )


def too_few_steps(events: Sequence[Event], config: RunConfig, name: str) -> Cause | None:
    """Finds a training that ended too early: BLEU was still rising, or the loss still falling where BLEU is too low to
    say much; or it ended within the first epoch."""
    valid = [event for event in events if event["event"] == "valid"]
    epochs = [event.get("epoch", 0) for event in events if event["event"] == "train"]
    if not valid:
        return None
    last, before = valid[-1], valid[max(0, len(valid) * 2 // 3 - 1)]
    rise, fall = last["bleu"] - before["bleu"], before["nll"] - last["nll"]
    score = max(1.0, last["bleu"])
    if len(valid) >= 3 and last["bleu"] >= max(event["bleu"] for event in valid) and rise > 0.08 * score:
        finding = "validation BLEU was still rising when training ended"
        cost = f"by that slope some {rise / 2:.1f} BLEU more for half as many steps again"
        weight = min(0.7, 0.25 + rise / score)
    elif len(valid) >= 3 and last["bleu"] < LEAST_TELLING_BLEU and fall > 0.02 * before["nll"]:
        finding = "validation loss was still falling when training ended"
        cost = "unknown: BLEU is still too low to tell"
        weight = 0.5
    elif epochs and epochs[-1] < 1:
        finding, cost, weight = "training ended within its first epoch", "unknown: it has not begun", 0.6
    else:
        return None
    budget = (
        f"--minutes {round(2 * config.train.minutes, 2):g}"
        if config.train.minutes
        else f"--steps {2 * config.train.steps}"
    )
    return Cause(
        "too few steps",
        finding,
        f"BLEU {rise:+.1f} and loss {-fall:+.2f} in the last third; BLEU {last['bleu']:.1f} at step {last['step']:,}, "
        f"epoch {(epochs or [0])[-1]}",
        cost,
        f"{train_command(config)} --out runs/longer {budget}   # and what else {name} was trained with",
        weight,
    )


def learned_by_heart(events: Sequence[Event], config: RunConfig) -> Cause | None:
    """Finds overfitting: a validation loss that rose again."""
    losses = [event["nll"] for event in events if event["event"] == "valid"]
    if len(losses) < 4 or losses[-1] < 1.08 * min(losses):
        return None
    more = min(0.5, config.model.dropout + 0.1)
    return Cause(
        "learned by heart",
        "validation loss rose again while training went on",
        f"{min(losses):.3f} at its lowest, {losses[-1]:.3f} at the end",
        "training after the lowest point was wasted",
        f"{train_command(config)} --out runs/other --set model.dropout={more:g}   # or data.bpe_dropout=0.1",
        0.2,
    )


def averaging(run: RunDirectory, events: Sequence[Event], config: RunConfig, name: str) -> Cause | None:
    """Finds a run whose last checkpoints were never averaged. An average that was tried and was worse is no fault."""
    checkpoints = run.checkpoints()
    ended = any(event["event"] == "end" for event in events)
    kind = read_json(run.model_card_path).get("kind") if run.model_card_path.exists() else None
    if kind == "average" or len(checkpoints) < 2 or (ended and config.train.average_checkpoints > 1):
        return None
    last = min(5, len(checkpoints))
    return Cause(
        "averaging not done",
        "what translates is one checkpoint, and no average was tried",
        f"{run.model_card_path.name} says {kind}; {len(checkpoints)} checkpoints are kept",
        "the paper's averages are worth about half a BLEU; with a rate that fell to zero, nothing or less",
        f"dragoman average {name} --last {last}",
        0.08,
    )


def vocabulary_too_large(data: Dataset, config: RunConfig, name: str) -> Cause | None:
    """Finds a vocabulary with many pieces that the training text hardly contains."""
    tokenizer_size = config.model.vocab_size
    counts = sum(np.bincount(ids, minlength=tokenizer_size) for ids in (data.source_ids, data.target_ids))
    assert isinstance(counts, np.ndarray)
    tokens = int(counts.sum())
    suited = choose_vocab_size(
        int(3.6 * tokens)
    )  # characters: about 3.6 per token with a vocabulary that suits the text
    rare = float((counts < 5).mean())
    if tokenizer_size < 3 * suited or rare < 0.35:
        return None
    return Cause(
        "vocabulary too large",
        f"{tokenizer_size:,} pieces for {len(data):,} pairs; about {suited:,} suit them",
        f"{rare:.0%} of the pieces occur fewer than five times",
        "rare pieces are never learned, and each piece makes the last layer slower",
        f"{train_command(config)} --out runs/other --set model.vocab_size={suited}   # in place of {name}",
        0.3,
    )


def vocabulary_too_small(
    run: RunDirectory, pairs: Sequence[SentencePair], config: RunConfig, name: str
) -> Cause | None:
    """Finds a vocabulary that cuts words into too many pieces."""
    tokenizer = load_tokenizer(run.path)
    sentences = [side for pair in pairs[:2000] for side in pair]
    words = sum(len(sentence.split()) for sentence in sentences)
    pieces = sum(map(len, tokenizer.encode_batch(sentences)))
    suited = choose_vocab_size(sum(map(len, (side for pair in pairs for side in pair))))
    if not words or pieces / words < 2.6 or tokenizer.vocab_size > 0.6 * suited:
        return None
    return Cause(
        "vocabulary too small",
        f"{tokenizer.vocab_size:,} pieces; about {suited:,} suit this text",
        f"{pieces / words:.1f} pieces per word",
        "sentences are long strings of letters: slow to train on, hard to learn from",
        f"{train_command(config)} --out runs/other --set model.vocab_size={suited}   # in place of {name}",
        0.3,
    )
