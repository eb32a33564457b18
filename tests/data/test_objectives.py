"""What is hidden of a sentence, for a masked model to restore."""

import pytest
import torch

from dragoman.data.objectives import CHOSEN, EXCHANGED, HIDDEN, chosen_of, hide


class Symbols:
    vocab_size, pad_id, unk_id = 1000, 0, 1


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_of_hidden_tokens_the_shares_are_berts() -> None:
    lengths = torch.full((400,), 40)
    source = torch.randint(4, 1000, (400, 41))
    hidden, real = hide(source, lengths, Symbols())
    flat, before, rows = hidden.flatten(), source.flatten(), len(lengths)
    assert len(real) == rows * round(CHOSEN * 40)
    untouched = torch.ones(flat.shape, dtype=torch.bool)
    untouched[real] = False
    assert flat[untouched].equal(before[untouched])
    masked = flat[real] == Symbols.unk_id
    same = flat[real] == before[real]
    for share, expected in ((masked, HIDDEN), (same, 1 - HIDDEN - EXCHANGED), (~masked & ~same, EXCHANGED)):
        assert share.double().mean().item() == pytest.approx(expected, abs=0.03)  # 2,400 draws: 4 deviations are 0.033
    assert (real % 41 != 40).all()  # never the end symbol
    again, _ = hide(source, lengths, Symbols())
    assert not hidden.equal(again)


def test_a_short_sentence_hides_one_token_and_never_padding() -> None:
    lengths = torch.tensor([1, 2, 3, 7, 10])
    source = torch.randint(4, 1000, (5, 11))
    _, real = hide(source, lengths, Symbols())
    rows, places = real // 11, real % 11
    assert torch.bincount(rows).tolist() == chosen_of(lengths.numpy()).tolist() == [1, 1, 1, 1, 2]
    assert (places < lengths[rows]).all()
