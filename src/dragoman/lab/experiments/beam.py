"""Beam width and length penalty.

Claim: Beam search with a beam of 4 and a length penalty α = 0.6 (6.1), chosen on the development set, is better than
greedy search; wider beams and longer outputs are a matter of α.

Method: The base row's translators (Multi30k, test set) with beams of 1, 2, 4, 8 and 16 and α of 0, 0.6, 1 and 1.5:
BLEU, and the length of the output over that of the reference.

Rule: BLEU of beam 4, α 0.6 is above that of greedy search by more than two standard errors over the seeds (paired
differences) and at least 0.1. A larger α makes longer outputs: at beam 4 the length ratio rises with every α.
"""

from collections.abc import Sequence

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher_in_pairs, mean, spread, yes
from dragoman.lab.translation import base_arms, bleu, run_of, test_set, translations

BEAMS, ALPHAS = (1, 2, 4, 8, 16), (0.0, 0.6, 1.0, 1.5)


def arms(settings: LabSettings) -> list[Arm]:
    beams, alphas = ((1, 4), (0.0, 0.6)) if settings.size == "smoke" else (BEAMS, ALPHAS)
    return [
        Arm("beam", arm.name, {**arm.configuration, "beams": list(beams), "alphas": list(alphas)})
        for arm in base_arms(settings)[:3]
    ]


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    run = run_of(arm, settings, "beams", "alphas")
    sources, references = test_set(settings)
    words = sum(len(reference.split()) for reference in references)
    found: Measurements = {}
    for beam in arm.configuration["beams"]:
        for alpha in arm.configuration["alphas"]:
            if beam == 1 and alpha != 0.6:  # one hypothesis has nothing to be ranked against
                continue
            outputs = translations(run, sources, beam=beam, alpha=alpha)
            found[f"bleu {beam} {alpha}"] = bleu(outputs, references)
            found[f"length {beam} {alpha}"] = sum(len(output.split()) for output in outputs) / words
    return found


def of(measured: Sequence[MeasuredArm], what: str, beam: int, alpha: float) -> list[float]:
    return [one.measurements[f"{what} {beam} {0.6 if beam == 1 else alpha}"] for one in measured]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    alphas = measured[0].arm.configuration["alphas"]
    usual, greedy = of(measured, "bleu", 4, 0.6), of(measured, "bleu", 1, 0.6)
    lengths = [mean(of(measured, "length", 4, alpha)) for alpha in alphas]
    return [
        higher_in_pairs("Beam 4 with α = 0.6 is better than greedy search.", usual, greedy, "BLEU", least=0.1),
        Finding(
            "A larger α makes longer outputs.",
            yes(lengths == sorted(lengths) and lengths[0] < lengths[-1]),
            "length ratios at beam 4: " + ", ".join(f"α {a:g}: {n:.3f}" for a, n in zip(alphas, lengths, strict=True)),
        ),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    beams, alphas = measured[0].arm.configuration["beams"], measured[0].arm.configuration["alphas"]
    figures = [
        Figure(title, beams, {f"α = {a:g}": [mean(of(measured, what, b, a)) for b in beams] for a in alphas},
               "beam", label, log_x=True,
               spread={f"α = {a:g}": [spread(of(measured, what, b, a)) for b in beams] for a in alphas})
        for what, title, label in (("bleu", "BLEU by beam and α", "BLEU"),
                                   ("length", "Length of the output by beam and α", "output over reference, words"))
    ]  # fmt: skip
    rows = [
        {"beam": b, "α": a, "BLEU": mean(of(measured, "bleu", b, a)), "length": mean(of(measured, "length", b, a))}
        for b in beams
        for a in (alphas if b > 1 else [0.6])
    ]
    return conclude("beam", settings, measured, judge(measured), (), figures, (), rows)
