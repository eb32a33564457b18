"""The logit lens and a contrast as tables of text, for a terminal."""

import math
from collections.abc import Sequence

from dragoman.inspection.contrast import Contrast, Influence
from dragoman.inspection.html_tables import shown
from dragoman.inspection.logit_lens import LogitLens


def lens_as_text(lens: LogitLens, width: int = 100) -> str:
    """A block for each token: what every layer would have said, as many candidates as fit."""
    blocks = []
    for fed, produced, layers in zip(lens.fed, lens.produced, lens.positions, strict=True):
        lines = [f"{shown(fed)} → {shown(produced)}"]
        for reading in layers:
            line = f"  layer {reading.layer}  {reading.probability:.3f}  rank {reading.rank:<5}"
            for one in reading.candidates:
                candidate = f" {shown(one.token)} {one.probability:.2f}"
                if len(line) + len(candidate) + 1 > width:
                    break
                line += f"{candidate}," if one is not reading.candidates[-1] else candidate
            lines.append(line.rstrip(","))
        blocks.append("\n".join(lines))
    heading = "Each layer's probability of the token, its rank there, and what it would rather have said"
    return f"{heading}\n\n" + "\n\n".join(blocks)


def contrast_as_text(contrast: Contrast) -> str:
    """The two continuations, and a row for each token that speaks for or against the first."""
    this, that = (_said(tokens) for tokens in (contrast.this, contrast.that))
    lines = [
        f"why “{this}” and not “{that}”, at {contrast.position}",
        f"P {math.exp(contrast.this_log_probability):.4f} and {math.exp(contrast.that_log_probability):.4f}; "
        f"difference in log P {contrast.difference:+.4f}, to which + speaks for “{this}”",
        "",
        f"{'':16}{'gradient × input':>18}{'|gradient|':>12}{'erasure':>12}",
    ]
    for title, tokens in (("source", contrast.source), ("said before", contrast.before)):
        lines += [title, *_rows(tokens)]
    return "\n".join(lines)


def _rows(tokens: Sequence[Influence]) -> list[str]:
    return [
        f"  {shown(one.token)[:14]:14}{one.gradient_input:>+18.3f}{one.gradient_norm:>12.2f}"
        + (f"{'–':>12}" if one.erasure is None else f"{one.erasure:>+12.3f}")
        for one in tokens
    ]


def _said(tokens: Sequence[str]) -> str:
    return " ".join(map(shown, tokens)).replace(" ·", "")
