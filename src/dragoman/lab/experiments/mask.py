"""The mask of the decoder, and cheating without it.

Claim: Positions are kept from attending to later ones by setting those scores to -inf before the softmax; with the
output shifted by one position, predictions for position i depend only on outputs before i (3.1, 3.2.3). A decoder
that sees what it is to predict learns to copy it, and nothing that helps when it must write by itself.

Method: On a model of the base row, a pass over random ids: the scores that the softmax is given for later positions,
which weights lie there, and which logits change when a later token does. Then translators that are alike but for what
the decoder sees: masked and shifted as in the paper; shifted without the mask; masked but fed the very tokens that it
is to predict. (a) The synthetic task (sequences reversed), five seeds: training BLEU, of what the decoder says at
each position while it is fed in its own way, and BLEU of writing freely, both on the same sequences. (b) Multi30k,
the loss while training and BLEU of free-running greedy translations of the test set; three seeds, of which one is
recorded.

Rule: Exactness: every score of a later position is -inf, its weight exactly 0, and earlier logits are bit-identical.
Cheating, for each of the two ways, on the synthetic task: its training BLEU is at least that of the honest decoder
less 1, and its BLEU when writing freely is below half of its own training BLEU (paired over seeds) and below the
honest one's by at least 10. On Multi30k: its BLEU is lower by at least 10.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import fact, higher, higher_in_pairs, mean
from dragoman.lab.synthetic import (
    BATCH,
    LONGEST,
    RATE,
    SHORTEST,
    STEPS,
    WARMUP,
    draw_reversed,
    make_reverser,
)
from dragoman.lab.tasks import END, START, Pairs, fit, generator, one_thread, thinned, with_ends
from dragoman.lab.translation import bleu, prepared_text, scaled, test_set, translate_greedily
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.probe import Intervention, Probe, Site
from dragoman.model.sequence_model import next_logits
from dragoman.model.transformer import Transformer

WAYS = ("masked and shifted", "no mask", "not shifted")


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    return (
        [Arm("mask", "exactness", {"part": "exact scores", "size": settings.size}, 0.01)]
        + [
            Arm("mask", f"synthetic, {way}, seed {seed}",
                {"part": "reversal", "way": way, "seed": seed, "steps": 3 if smoke else STEPS}, 0.04)
            for way in WAYS
            for seed in settings.seed_list(5)
        ]
        + [
            Arm("mask", f"{way}, seed {seed}",
                {"part": "training", "way": way, "seed": seed, "steps": 2 if smoke else 800, "size": settings.size})
            for seed in settings.seed_list(3)
            for way in WAYS
        ]
    )  # fmt: skip


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    values = arm.configuration
    with one_thread():
        if values["part"] == "exact scores":
            return exactness(settings)
        if values["part"] == "reversal":
            return learn_to_reverse(values["way"], values["seed"], values["steps"])
        return train_and_translate(values["way"], values["seed"], values["steps"], settings)


@torch.inference_mode()
def exactness(settings: LabSettings) -> Measurements:
    torch.manual_seed(1)
    model = Transformer(scaled("table3-base", settings.size).model).eval()
    source, target = torch.randint(4, 300, (4, 9)), torch.randint(4, 300, (4, 12))
    probe = Probe()
    before = model(source, target, probe=probe)
    later = torch.ones(12, 12, dtype=torch.bool).triu(1)
    weights, scores = (
        [tensor for site, tensor in found.items() if site.kind == "decoder"]
        for found in (probe.weights, probe.masked_scores)
    )
    changed = target.clone()
    changed[:, 7] += 1
    after = model(source, changed, probe=Probe())
    return {
        "later_scores": sum(w[..., later].numel() for w in scores),
        "later_scores_that_are_minus_infinity": sum(int(w[..., later].isneginf().sum()) for w in scores),
        "earlier_scores_that_are_finite": all(bool(w[..., ~later].isfinite().all()) for w in scores),
        "largest_weight_on_later": max(float(w[..., later].max()) for w in weights),
        "largest_change_of_earlier_logits": float((after - before)[:, :7].abs().max()),
        "change_from_there_on": float((after - before)[:, 7:].abs().max()),
    }


def learn_to_reverse(way: str, seed: int, steps: int) -> Measurements:
    """Trains on sequences to be reversed; BLEU on 100 of them, as the decoder is fed in training and when it writes."""
    model = make_reverser(seed)
    open_eyes = {Site("decoder", layer): Intervention(drop_mask=True) for layer in range(len(model.decoder))}

    def logits_and_labels(pairs: Pairs) -> tuple[torch.Tensor, torch.Tensor]:
        source, fed, labels = with_ends(pairs)
        if way == "not shifted":
            fed = labels
        return model(source, fed, probe=Probe(open_eyes) if way == "no mask" else None), labels

    def loss_at(step: int) -> torch.Tensor:
        draw = generator(seed, step)
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=draw))
        logits, labels = logits_and_labels(draw_reversed(BATCH, length, draw))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    losses = fit(model, loss_at, steps, RATE, WARMUP)
    model.eval()
    pairs = draw_reversed(100, 8, generator(seed, 0))
    with torch.inference_mode():
        logits, labels = logits_and_labels(pairs)
        fed_outputs, references = texts(logits.argmax(-1)), texts(labels)
        state, last, written = model.start(with_ends(pairs)[0]), torch.full((len(labels), 1), START), []
        for _ in range(labels.shape[1]):
            last = next_logits(model, last, state).argmax(dim=-1)
            written.append(last)
    return {
        "final_loss": mean(losses[-20:]),
        "training_bleu": bleu(fed_outputs, references),
        "bleu": bleu(texts(torch.cat(written, 1)), references),
        "losses": thinned(losses),
    }


def texts(ids: torch.Tensor) -> list[str]:
    """Each row's symbols up to its end symbol, as words."""
    rows = [row[: row.index(END)] if END in row else row for row in ids.tolist()]
    return [" ".join(f"w{symbol}" for symbol in row) for row in rows]


def train_and_translate(way: str, seed: int, steps: int, settings: LabSettings) -> Measurements:
    config, prepared = scaled("table3-base", settings.size), prepared_text(settings)
    torch.manual_seed(seed)
    model = Transformer(replace(config.model, vocab_size=prepared.tokenizer.vocab_size))
    open_eyes = {Site("decoder", layer): Intervention(drop_mask=True) for layer in range(len(model.decoder))}
    tokens = config.train.batch_tokens
    batches = (
        make_batch(prepared.train, rows, prepared.tokenizer)
        for epoch in range(10_000)
        for step in plan_epoch(prepared.train, tokens, tokens, seed, epoch)
        for rows in step
    )

    def loss_at(_step: int) -> torch.Tensor:
        batch = next(batches)
        fed = batch.target
        if way == "not shifted":  # at each position the token that it is to predict
            fed = batch.target.roll(-1, dims=1)
            flat = fed.flatten()
            flat[slice(None) if batch.real is None else batch.real] = batch.labels
            fed = flat.view(fed.shape)
        hidden = model.states(batch.source, fed, batch.source_mask, Probe(open_eyes) if way == "no mask" else None)
        loss, _ = smoothed_cross_entropy(
            batch.real_states(hidden), model.output.weight, batch.labels, config.train.label_smoothing
        )
        return loss / batch.tokens

    losses = fit(model, loss_at, steps, peak_rate=3e-3, warmup_steps=max(2, steps // 5))
    sources, references = test_set(settings)
    outputs = translate_greedily(model, prepared.tokenizer, sources)
    return {
        "final_loss": thinned(losses)[-1],
        "bleu": bleu(outputs, references),
        "losses": thinned(losses),
        "sample": outputs[0][:120],
    }


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    exact = [one.measurements for one in measured if one.arm.configuration["part"] == "exact scores"]
    findings = exact_findings(exact[0]) if exact else []
    honest = WAYS[0]
    for way in WAYS[1:]:
        training, writing = (
            [values_of(measured, name, part="reversal", way=which) for which in (way, honest)]
            for name in ("training_bleu", "bleu")
        )
        findings += [
            higher(f"Synthetic task, {way}: training BLEU is as high as the honest decoder's, or higher.",
                   [value + 1 for value in training[0]], training[1], (f"{way}, plus 1", honest), "BLEU", 0.0),
            higher_in_pairs(f"Synthetic task, {way}: free running it is below half of that.",
                            [value / 2 for value in training[0]], writing[0],
                            ("half of its training BLEU", "free running"), "BLEU", 0.0),
            higher(f"Synthetic task, {way}: free running it is worse than the honest decoder.", writing[1], writing[0],
                   (honest, way), "BLEU", 10.0),
        ]  # fmt: skip
    for way in WAYS[1:]:
        masked, cheating = (values_of(measured, "bleu", part="training", way=which) for which in (honest, way))
        claim = f"Multi30k, {way}: free running it is worse."
        findings.append(higher(claim, masked, cheating, (honest, way), "BLEU", 10.0))
    return findings


def exact_findings(exact: Measurements) -> list[Finding]:
    count, infinite = exact["later_scores"], exact["later_scores_that_are_minus_infinity"]
    none_later = exact["largest_weight_on_later"] == 0 and exact["largest_change_of_earlier_logits"] == 0
    return [
        fact("Before the softmax every later score is -inf.", infinite == count > 0
             and bool(exact["earlier_scores_that_are_finite"]),
             f"{infinite:,} of {count:,} scores of later positions, and none of the others", infinite, "scores"),
        fact("Later positions have weight 0 and no influence.", none_later and exact["change_from_there_on"] > 0,
             f"largest weight on a later position {exact['largest_weight_on_later']:g}, largest change of an earlier "
             f"logit {exact['largest_change_of_earlier_logits']:g}", exact["largest_weight_on_later"], "weight"),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    figures, notes = [], []
    for part, title in (("reversal", "Synthetic task"), ("training", "Multi30k")):
        trained = [one for one in measured if one.arm.configuration["part"] == part
                   and one.arm.configuration["seed"] == 1]  # fmt: skip
        if not trained:
            continue
        steps, points = trained[0].arm.configuration["steps"], len(trained[0].measurements["losses"])
        at = [round((i + 1) * steps / points) for i in range(points)]
        kinds = (
            {"training": "training_bleu", "free running": "bleu"} if part == "reversal" else {"free running": "bleu"}
        )
        figures += [
            Figure(f"{title}: training loss", at,
                   {one.arm.configuration["way"]: one.measurements["losses"] for one in trained}, "step",
                   "loss a token"),
            Figure(f"{title}: BLEU", list(range(len(trained))),
                   {label: [mean(values_of(measured, name, part=part, way=one.arm.configuration["way"]))
                            for one in trained] for label, name in kinds.items()}, "", "BLEU", "bars",
                   labels=[one.arm.configuration["way"] for one in trained]),
        ]  # fmt: skip
        notes += [f"Multi30k, {one.arm.name} writes: “{sample}”"
                  for one in trained if (sample := one.measurements.get("sample")) is not None]  # fmt: skip
    notes.append("On Multi30k a perfect copier's smoothed loss is not 0: ε of the probability is asked for elsewhere.")
    columns = ("final_loss", "training_bleu", "bleu", "later_scores", "later_scores_that_are_minus_infinity")
    return Shown(columns, figures, notes)
