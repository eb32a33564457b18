"""Time to quality: minutes of training until greedy translations of Multi30k's validation set reach 35 cased BLEU.

All contestants train on the same steps, several lengths in each, one vocabulary of 8,000; only training is timed, and
translating for the score is not. Ours has the optimiser and rate of recipes/multi30k-tiny.toml; Hugging Face's Marian,
which has no pre-norm, the schedule and rates that post-norm needs. The rate falls to zero at the end of a budget of
steps, each contestant's own, and none was tuned: results.md says what that leaves open. `--only` trains one of them, or
one of our other recipes, and prints its scores alone.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import report
from contestants import marian, ours
from contestants.batches import Step
from dragoman.config import NormOrder, Optimizer, SearchConfig, TrainConfig
from dragoman.data.batching import pad, plan_epoch
from dragoman.data.dataset import Prepared
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.evaluation import metrics
from dragoman.model.transformer import Transformer
from dragoman.processes import keep_freed_memory
from dragoman.training.gradients import Gradients
from dragoman.training.optimizer import make_optimizer
from dragoman.training.schedule import linear_rate
from dragoman.translation.translator import Translator
from shapes import SHAPES, WORK, multi30k

BATCH_TOKENS, MICRO_BATCH_TOKENS = 1500, 375
SHAPE = replace(SHAPES["tiny"], dropout=0.2, batch_tokens=BATCH_TOKENS)


class Ours:
    name, peak_rate, warmup_steps, steps = "dragoman, pre-norm, Muon", 8e-3, 300, 2400
    norm_order: NormOrder = "pre"
    optimizer: Optimizer = "muon"

    def __init__(self, text: Prepared) -> None:
        self.text = text
        self.loop = ours.Contestant(SHAPE, text)
        torch.manual_seed(1)
        config = replace(SHAPE.model_config(text.tokenizer.vocab_size), norm_order=self.norm_order)
        self.loop.model = Transformer(config).train()
        self.loop.optimizer = make_optimizer(self.loop.model, TrainConfig(optimizer=self.optimizer))
        self.loop.gradients = Gradients(list(self.loop.model.parameters()))

    def translate(self, lines: list[str]) -> list[str]:
        engine = ReferenceEngine([self.loop.model.eval()], self.text.tokenizer)
        found = Translator(engine, self.text.tokenizer, SearchConfig(beam=1)).translate(lines)
        self.loop.model.train()
        return found


class OursWithAdam(Ours):
    name, peak_rate = "dragoman, pre-norm, Adam", 4e-3
    optimizer = "adam"


class OursPostNorm(OursWithAdam):
    name, peak_rate, warmup_steps = "dragoman, post-norm, Adam", 1.5e-3, 1500
    norm_order = "post"


class HuggingFace:
    name, peak_rate, warmup_steps, steps = "Hugging Face Marian, post-norm", 1.5e-3, 1500, 4800

    def __init__(self, text: Prepared) -> None:
        self.text = text
        self.loop = marian.Contestant(SHAPE, text)

    @torch.inference_mode()
    def translate(self, lines: list[str]) -> list[str]:
        tokenizer, model = self.text.tokenizer, self.loop.model.eval()
        encoded = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(lines)]
        order = sorted(range(len(lines)), key=lambda i: len(encoded[i]))
        outputs: list[list[int]] = [[] for _ in lines]
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            source, mask = pad([encoded[i] for i in rows], tokenizer.pad_id)
            mask = torch.ones_like(source) if mask is None else mask.long()
            longest = source.shape[1] + 50
            found = model.generate(
                input_ids=source,
                attention_mask=mask,
                num_beams=1,
                do_sample=False,
                max_new_tokens=longest,
                use_cache=True,
            )
            for i, ids in zip(rows, found[:, 1:].tolist(), strict=True):
                outputs[i] = ids[: ids.index(tokenizer.eos_id)] if tokenizer.eos_id in ids else ids
        self.loop.model.train()
        return tokenizer.decode_batch(outputs)


def time_to(contestant: Any, text: Prepared, goal: float, every: int) -> dict[str, Any]:
    """Train with the rate rising, then falling straight to zero at the last step; stop when the goal is reached."""
    steps = contestant.steps
    lines, references = [pair[0] for pair in text.valid_pairs], [[pair[1]] for pair in text.valid_pairs]
    loop, seconds, done, curve, tokens = contestant.loop, 0.0, 0, [], 0
    set_rate = rate_setter(loop)
    epoch = 0
    while done < steps:
        plan: list[Step] = list(plan_epoch(text.train, BATCH_TOKENS, MICRO_BATCH_TOKENS, seed=1, epoch=epoch))
        epoch += 1
        for step in plan[: steps - done]:
            rate = linear_rate(done + 1, contestant.warmup_steps, contestant.peak_rate, done / steps)
            began = time.perf_counter()
            set_rate(rate)
            tokens += loop.train_step(step)
            seconds += time.perf_counter() - began
            done += 1
            if done % every == 0 or done == steps:
                bleu = metrics.bleu(contestant.translate(lines), references).value
                curve.append({"steps": done, "minutes": seconds / 60, "bleu": bleu})
                print(json.dumps({"contestant": contestant.name, **curve[-1]}), flush=True)
                if bleu >= goal:
                    return {"reached": seconds / 60, "curve": curve, "tokens": tokens}
    return {"reached": None, "curve": curve, "tokens": tokens}


def rate_setter(loop: Any) -> Callable[[float], None]:
    """Ours sets its rate in each step, from `loop.rate`; the peer's optimiser keeps what it is given."""

    def set_rate(rate: float) -> None:
        loop.rate = rate
        for group in loop.optimizer.param_groups:
            group["lr"] = rate

    return set_rate


CONTESTANTS = {"ours": Ours, "adam": OursWithAdam, "post-norm": OursPostNorm, "hugging-face": HuggingFace}


def run(threads: int, every: int, goal: float, only: str | None = None) -> None:
    about = report.machine() | {"command": report.command(), "threads": threads}
    keep_freed_memory()  # for both
    torch.set_num_threads(threads)
    text = multi30k()
    if only is not None:
        time_to(CONTESTANTS[only](text), text, goal, every)
        return
    results = {}
    for kind in (Ours, HuggingFace):
        results[kind.name] = time_to(kind(text), text, goal, every)
        WORK.mkdir(parents=True, exist_ok=True)
        report.write_raw("quality", {"about": about, "goal": goal, "results": results})
    from plots import lines

    curves = {name: [(p["minutes"], p["bleu"]) for p in found["curve"]] for name, found in results.items()}
    lines("quality.svg", curves, "minutes of training", "greedy BLEU on val", log_x=False)
    rows = [
        [name, "not reached" if found["reached"] is None else f"{found['reached']:.1f}",
         f"{max(p['bleu'] for p in found['curve']):.1f}", f"{found['curve'][-1]['steps']:,}",
         next(f"{kind.steps:,}" for kind in (Ours, HuggingFace) if kind.name == name), f"{found['tokens']:,}"]
        for name, found in results.items()
    ]  # fmt: skip
    page = "\n".join([
        "## Time to quality",
        "",
        report.heading(about),
        f"Minutes of training to {goal:g} cased BLEU (greedy) on Multi30k val, {threads} threads, tiny, "
        f"{BATCH_TOKENS:,} tokens a step in micro-batches of {MICRO_BATCH_TOKENS}, "
        f"measured every {every} (![BLEU against minutes](plots/quality.svg)); one seed each.",
        "",
        report.table(["", "minutes", "best BLEU", "steps", "of a budget of", "target tokens"], rows),
    ])  # fmt: skip
    report.write_section(report.PAGE, "quality", page)
