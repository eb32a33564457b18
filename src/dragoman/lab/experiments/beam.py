"""Beam width and length penalty.

Claim: Beam search with a beam of 4 and a length penalty α = 0.6 (6.1), chosen on the development set, is better than
greedy search; wider beams and longer outputs are a matter of α.

Method: The base row's translators (Multi30k, test set) with beams of 1, 2, 4, 8 and 16 and α of 0, 0.6, 1 and 1.5:
BLEU, and the length of the output over that of the reference.

Rule: Paired differences over the seeds. BLEU of beam 4, α 0.6 is above that of greedy search, by at least 0.1; the
output of α 1.5 at beam 4 is longer than that of α 0; a beam of 16 with α 0 is worse than one of 4 (BLEU, at least
0.1), and with α 1.5 it is not: within 0.5 BLEU.
"""

from collections.abc import Sequence

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import alike_in_pairs, higher_in_pairs, mean, spread
from dragoman.lab.translation import base_arms, bleu, run_of, test_set, translations

BEAMS, ALPHAS = (1, 2, 4, 8, 16), (0.0, 0.6, 1.0, 1.5)


def arms(settings: LabSettings) -> list[Arm]:
    beams, alphas = ((1, 4), (0.0, 0.6)) if settings.size == "smoke" else (BEAMS, ALPHAS)
    return [
        Arm("beam", arm.name, {**arm.configuration, "beams": list(beams), "alphas": list(alphas)})
        for arm in base_arms(settings)
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
    name = f"{what} {beam} {0.6 if beam == 1 else alpha}"
    return [one.measurements[name] for one in measured if name in one.measurements]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    def pair(claim: str, what: str, a: tuple[int, float], b: tuple[int, float], unit: str, least: float) -> Finding:
        values, names = (of(measured, what, *a), of(measured, what, *b)), (named(a), named(b))
        return higher_in_pairs(claim, *values, names, unit, least, 3 if what == "length" else 2)

    wide = of(measured, "bleu", 16, 1.5), of(measured, "bleu", 4, 1.5)
    return [
        pair("Beam 4 with α = 0.6 is better than greedy search.", "bleu", (4, 0.6), (1, 0.6), "BLEU", 0.1),
        pair("A larger α makes longer outputs.", "length", (4, 1.5), (4, 0.0), "of the reference's length", 0.0),
        pair("Without a length penalty a beam of 16 is worse than one of 4.", "bleu", (4, 0.0), (16, 0.0), "BLEU", 0.1),
        alike_in_pairs("With a large α it is not.", *wide, (named((16, 1.5)), named((4, 1.5))), "BLEU", 0.5),
    ]


def named(setting: tuple[int, float]) -> str:
    return "greedy" if setting[0] == 1 else f"beam {setting[0]}, α {setting[1]:g}"


def show(measured: Sequence[MeasuredArm]) -> Shown:
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
    return Shown(figures=figures, rows=rows)
