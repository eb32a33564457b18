"""The views of `dragoman inspect` other than heads: in the terminal, as JSON and as a picture."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.inspection.html_tables import shown
from dragoman.inspection.inspector import Inspector
from dragoman.inspection.text_tables import contrast_as_text, lens_as_text
from dragoman.inspection.to_json import describe_contrast

SENTENCE = "the old dog sees the red house"


@pytest.fixture(scope="module")
def trained(tiny_run: Path) -> Inspector:
    return Inspector.load(tiny_run)


def test_the_lens_fits_the_terminal(trained: Inspector) -> None:
    lens = trained.lens(SENTENCE)
    for width in (60, 100):
        lines = lens_as_text(lens, width).splitlines()
        assert max(map(len, lines[2:])) <= width
    first = lens.positions[0][0]
    assert f"⟨start⟩ → {shown(lens.produced[0])}" in lines
    assert f"  layer 0  {first.probability:.3f}  rank {first.rank}" in lines[3]
    assert f" {shown(first.candidates[0].token)} {first.candidates[0].probability:.2f}," in lines[3]
    assert len(lens_as_text(lens, 60)) < len(lens_as_text(lens, 100))


def test_a_contrast_has_a_row_for_each_token(trained: Inspector) -> None:
    contrast = trained.contrast(SENTENCE)
    text = contrast_as_text(contrast)
    assert f"difference in log P {contrast.difference:+.4f}" in text
    lines = text.splitlines()[4:]
    tokens = [None, *contrast.source, None, *contrast.before]  # with two titles
    for line, one in zip(lines, tokens, strict=True):
        if one is not None:
            erasure = "–" if one.erasure is None else f"{one.erasure:+.3f}"
            assert line.split()[-4:] == [
                shown(one.token)[:14],
                f"{one.gradient_input:+.3f}",
                f"{one.gradient_norm:.2f}",
                erasure,
            ]


def test_every_view_is_shown(cli: Callable[..., Any], tiny_run: Path, trained: Inspector) -> None:
    lens = cli("inspect", tiny_run, SENTENCE, "--view", "lens")
    assert (lens.code, lens.stderr) == (0, "")
    assert lens_as_text(trained.lens(SENTENCE), 120) in lens.stdout
    assert "contributions of the source" in cli("inspect", tiny_run, SENTENCE, "--view", "contributions").stdout
    why = cli("inspect", tiny_run, SENTENCE, "--view", "contrast", "--instead", "kato", "--position", "1")
    assert contrast_as_text(trained.contrast(SENTENCE, "kato", 1)) in why.stdout
    found = json.loads(cli("inspect", tiny_run, SENTENCE, "--view", "contrast", "--json").stdout)
    expected = trained.contrast(SENTENCE)
    assert found["contrast"]["that"] == list(describe_contrast(expected)["that"])
    total = trained.contributions(SENTENCE).total
    assert found["contributions"]["total"][1] == pytest.approx(total[1].tolist(), abs=2e-6)
    assert len(found["lens"]) == len(found["produced"])


def test_contributions_as_a_picture(
    cli: Callable[..., Any], tiny_run: Path, tmp_path: Path, trained: Inspector
) -> None:
    from PIL import Image

    out = tmp_path / "a.png"
    assert cli("inspect", tiny_run, SENTENCE, "--view", "contributions", "--out", out).code == 0
    with Image.open(out) as image:
        colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    largest = trained.contributions(SENTENCE).total.max().item()
    assert tuple(round(255 + (dark - 255) * largest) for dark in (11, 74, 99)) in colours


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--instead", "kato"], "are for --view contrast"),
        (["--view", "contrast", "--change", "cross.0.0:off"], "of the unchanged model"),
        (["--view", "lens", "--out", "a.png"], "png shows heads or contributions"),
    ],
)
def test_what_a_view_cannot_do_is_one_line(
    cli: Callable[..., Any], tiny_run: Path, flags: list[str], said: str
) -> None:
    ran = cli("inspect", tiny_run, SENTENCE, *flags)
    assert (ran.code, len(ran.stderr.splitlines()), said in ran.stderr) == (2, 1, True), ran.stderr
