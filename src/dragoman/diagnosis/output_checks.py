"""Finds what is wrong with translations, compared with their sources and references."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from dragoman.data.splitting import identity_of
from dragoman.diagnosis.causes import Cause, ranked
from dragoman.translation import defects

_LEAST_GAIN = 0.5  # BLEU points without the penalty; outputs with all words wrong gain none
_ENDS = ".!?…。！？؟।"


def examine_outputs(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], run: str) -> list[Cause]:
    """Runs all checks on translations; returns the causes found, ranked. `run`: its name in suggested commands."""
    checks = (empty, looping, truncated, too_short, untranslated, tokenised_outputs)
    return ranked(check(sources, outputs, references, run) for check in checks)


def loops(text: str, beside: str = "") -> bool:
    """Tells whether a text repeats its words in a loop. What also repeats in the text `beside` it does not count."""
    numbers: dict[str, int] = {}
    words, others = ([numbers.setdefault(word, len(numbers)) for word in side.split()] for side in (text, beside))
    return defects.loops(others, words)


def empty(sources: Sequence[str], outputs: Sequence[str], _: Sequence[str], run: str) -> Cause | None:
    """Finds empty translations of sentences that are not empty."""
    without_output = [i for i, output in enumerate(outputs) if not output.strip() and sources[i].strip()]
    if len(without_output) <= 0.01 * len(outputs):
        return None
    share = len(without_output) / len(outputs)
    return Cause(
        "empty outputs",
        f"{len(without_output):,} of {len(outputs):,} translations are empty",
        f"for example, that of: {_clip(sources[without_output[0]])}",
        f"about {share:.0%} of the score",
        f"dragoman translate {run} --beam 4 --alpha 2   # and look for empty lines in its training text",
        min(1.0, 0.5 + share),
    )


def looping(_: Sequence[str], outputs: Sequence[str], references: Sequence[str], run: str) -> Cause | None:
    """Finds translations that repeat themselves."""
    found = [i for i, output in enumerate(outputs) if loops(output, references[i])]
    share = len(found) / max(1, len(outputs))
    if share <= 0.02:
        return None
    return Cause(
        "looping outputs",
        f"{len(found):,} of {len(outputs):,} translations repeat themselves",
        f"for example: {_clip(outputs[found[0]])}",
        f"at least {share:.0%} of the score; most often the training was too short",
        f"dragoman doctor {run}   # causes in its training come first; a beam (--beam 4) loops less",
        min(1.0, 0.3 + share),
    )


def truncated(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], run: str) -> Cause | None:
    """Finds translations that stop in the middle: they lack the full stop that source and reference have."""
    ending = [
        i
        for i, (source, reference) in enumerate(zip(sources, references, strict=True))
        if source.rstrip()[-1:] in _ENDS and reference.rstrip()[-1:] in _ENDS and reference.strip()
    ]
    cut = [
        i
        for i in ending
        if outputs[i].strip()
        and outputs[i].rstrip()[-1:] not in _ENDS + "\"'»”’)"
        and not loops(outputs[i], references[i])
    ]
    share = len(cut) / max(1, len(ending))
    if len(ending) < 20 or share <= 0.1:
        return None
    return Cause(
        "truncated outputs",
        f"{len(cut):,} of {len(ending):,} translations stop before the end of their sentence",
        f"for example: {_clip(outputs[cut[0]], end=True)}",
        "what is cut off is missing from every sentence",
        f"dragoman evaluate {run} --alpha 2 --source F --reference F   # and raise search.max_extra_length",
        min(1.0, 0.35 + share),
    )


def too_short(_: Sequence[str], outputs: Sequence[str], references: Sequence[str], run: str) -> Cause | None:
    """Finds translations that are too short, by BLEU's brevity penalty. Empty ones do not count: they are a cause of
    their own."""
    kept = [i for i, output in enumerate(outputs) if output.strip()]
    if not kept:
        return None
    score = BLEU(force=True).corpus_score([outputs[i] for i in kept], [[references[i] for i in kept]])
    without = score.score / score.bp if score.bp else 0.0
    if score.bp >= 0.92 or without - score.score < _LEAST_GAIN:
        return None
    return Cause(
        "brevity penalty",
        f"translations are {score.sys_len / max(1, score.ref_len):.0%} as long as their references",
        f"brevity penalty {score.bp:.2f}",
        f"BLEU is {score.score:.1f}; without the penalty it would be {without:.1f}",
        f"dragoman evaluate {run} --alpha 2 --source F --reference F   # more than its own, in config.json",
        # If the words are wrong too, longer outputs would gain little.
        0.9 * (1 - score.bp) * min(1.0, without / 10),
    )


def untranslated(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], run: str) -> Cause | None:
    """Finds translations that are the same as their source."""
    same = [
        i
        for i, (source, output) in enumerate(zip(sources, outputs, strict=True))
        if len(source.split()) > 2 and identity_of(source) == identity_of(output) != identity_of(references[i])
    ]
    share = len(same) / max(1, len(outputs))
    if share <= 0.02:
        return None
    return Cause(
        "untranslated outputs",
        f"{len(same):,} of {len(outputs):,} translations are the same as their source",
        f"for example: {_clip(outputs[same[0]])}",
        f"about {share:.0%} of the score",
        f"dragoman doctor TRAINING_TEXT   # most often {run} learned it from untranslated pairs",
        min(1.0, 0.3 + share),
    )


def tokenised_outputs(_: Sequence[str], outputs: Sequence[str], references: Sequence[str], run: str) -> Cause | None:
    """Finds tokenised translations or references, by the spaces before their full stops."""

    def apart(lines: Sequence[str]) -> float:
        return sum(line.rstrip().endswith((" .", " ,")) for line in lines) / max(1, len(lines))

    if max(apart(outputs), apart(references)) < 0.3:
        return None
    which = "translations" if apart(outputs) > apart(references) else "references"
    return Cause(
        "BLEU on tokenised text",
        f"the {which} are tokenised: {max(apart(outputs), apart(references)):.0%} end in a space and a full stop",
        f"for example: {_clip((outputs if which == 'translations' else references)[0], end=True)}",
        "the score cannot be compared with any score of raw text",
        f"sacremoses -l XX detokenize < {which}.txt > raw.txt   # before training {run}, and before scoring",
        0.4,
    )


def _clip(text: str, end: bool = False) -> str:
    if len(text) <= 70:
        return text
    return f"…{text[-69:]}" if end else f"{text[:69]}…"
