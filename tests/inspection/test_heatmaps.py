"""Heat maps in the terminal."""

import torch

from dragoman.inspection.heatmaps import Heatmap, as_text


def test_columns_that_do_not_fit_follow_below() -> None:
    heatmap = Heatmap("title", ("a", "b"), tuple("cdefgh"), torch.tensor([[0.0, 0.3, 0.5, 0.7, 1.0, 0.1]] * 2))
    assert as_text(heatmap, 8).splitlines() == [
        "title", "", "  c d e", "a   ░░▒▒", "b   ░░▒▒", "", "  f g h", "a ▓▓██", "b ▓▓██",
    ]  # fmt: skip
