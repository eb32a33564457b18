"""The mask of the decoder, and cheating without it.

Claim: Positions are kept from attending to later ones by setting those scores to -inf before the softmax; with the
output shifted by one position, predictions for position i depend only on outputs before i (3.1, 3.2.3). A decoder
that sees what it is to predict learns to copy it, and nothing that helps when it must write by itself.

Method: On a model of the base row, a pass over random ids: which weights lie on later positions, and which logits
change when a later token does. Then three translators on Multi30k, alike but for what the decoder sees: masked and
shifted as in the paper; shifted without the mask; masked but fed the very tokens that it is to predict. The loss
while training, and BLEU of free-running greedy translations of the test set.

Rule: Exactness: weights on later positions are exactly 0 and earlier logits bit-identical. Cheating, for each of the
two: holds if its final training loss is below half of the honest one's and its BLEU below half; does not hold here if
its BLEU is above 90 % of the honest one's; else undecided. If the honest BLEU is below 5, undecided: nothing was
learned.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ClaimVerdict, ExperimentResult, Finding
from dragoman.lab.rules import yes
from dragoman.lab.tasks import fit, one_thread, thinned
from dragoman.lab.translation import bleu, prepared_text, scaled, test_set, translate_greedily
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.probe import Intervention, Probe, Site
from dragoman.model.transformer import Transformer

WAYS = ("masked and shifted", "no mask", "not shifted")


def arms(settings: LabSettings) -> list[Arm]:
    steps = 2 if settings.size == "smoke" else 800
    return [Arm("mask", "exactness", {"part": "exactness", "size": settings.size}, 0.01)] + [
        Arm(
            "mask",
            f"{way}, seed {seed}",
            {"part": "training", "way": way, "seed": seed, "steps": steps, "size": settings.size},
        )
        for seed in settings.seed_list(1)
        for way in WAYS
    ]


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    values = arm.configuration
    with one_thread():
        if values["part"] == "exactness":
            return exactness(settings)
        return train_and_translate(values["way"], values["seed"], values["steps"], settings)


@torch.inference_mode()
def exactness(settings: LabSettings) -> Measurements:
    torch.manual_seed(1)
    model = Transformer(scaled("table3-base", settings.size).model).eval()
    source, target = torch.randint(4, 300, (4, 9)), torch.randint(4, 300, (4, 12))
    probe = Probe()
    before = model(source, target, probe=probe)
    later = torch.ones(12, 12, dtype=torch.bool).triu(1)
    weights = [w for site, w in probe.weights.items() if site.kind == "decoder"]
    changed = target.clone()
    changed[:, 7] += 1
    after = model(source, changed, probe=Probe())
    return {
        "largest_weight_on_later": max(float(w[..., later].max()) for w in weights),
        "largest_change_of_earlier_logits": float((after - before)[:, :7].abs().max()),
        "change_from_there_on": float((after - before)[:, 7:].abs().max()),
    }


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
    exact = next(one.measurements for one in measured if one.arm.configuration["part"] == "exactness")
    none_later = exact["largest_weight_on_later"] == 0 and exact["largest_change_of_earlier_logits"] == 0
    findings = [
        Finding(
            "Later positions have weight 0 and no influence.",
            yes(none_later and exact["change_from_there_on"] > 0),
            f"largest weight on a later position {exact['largest_weight_on_later']:g}, largest change of an "
            f"earlier logit {exact['largest_change_of_earlier_logits']:g}",
        )
    ]
    by_way = {way: [one.measurements for one in measured if one.arm.configuration.get("way") == way] for way in WAYS}
    honest_loss = min(one["final_loss"] for one in by_way[WAYS[0]])
    honest_bleu = min(one["bleu"] for one in by_way[WAYS[0]])
    for way in WAYS[1:]:
        loss = max(one["final_loss"] for one in by_way[way])
        score = max(one["bleu"] for one in by_way[way])
        verdict: ClaimVerdict = "undecided"
        if honest_bleu >= 5:
            if loss < honest_loss / 2 and score < honest_bleu / 2:
                verdict = "holds"
            elif score > 0.9 * honest_bleu:
                verdict = "does not hold here"
        findings.append(
            Finding(
                f"A decoder trained with {way!r} cheats: its loss collapses, and so does its BLEU.",
                verdict,
                f"training loss {loss:.2f} against {honest_loss:.2f}, BLEU {score:.1f} against {honest_bleu:.1f}",
            )
        )
    return findings


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    trained = [one for one in measured if one.arm.configuration["part"] == "training"]
    steps = trained[0].arm.configuration["steps"]
    points = len(trained[0].measurements["losses"])
    at = [round((i + 1) * steps / points) for i in range(points)]
    figures = [
        Figure("Training loss", at, {one.arm.name: one.measurements["losses"] for one in trained}, "step",
               "smoothed loss a token"),
        Figure("Free-running BLEU on the test set", list(range(len(trained))),
               {"BLEU": [one.measurements["bleu"] for one in trained]}, "", "BLEU", "bars",
               labels=[one.arm.name for one in trained]),
    ]  # fmt: skip
    notes = [f"{one.arm.name} writes: “{one.measurements['sample']}”" for one in trained]
    notes.append("The smoothed loss of a perfect copier is not 0: ε of the probability is asked for elsewhere.")
    columns = ("final_loss", "bleu", "largest_weight_on_later", "largest_change_of_earlier_logits")
    return conclude("mask", settings, measured, judge(measured), columns, figures, notes)
