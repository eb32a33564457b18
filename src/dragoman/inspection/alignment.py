"""Word alignment from attention: which heads show it, and how much each target word looks at each source word.

Which heads are good for that is measured on validation sentences, without any gold alignment: docs/decisions/008. A run
that has none, such as an import, is measured on sentences made of its own vocabulary.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dragoman.data.tokenizer import Tokenizer
from dragoman.data.words import Word
from dragoman.decoding.alignment import Alignment, AlignmentHeads
from dragoman.model.probe import Probe, Site
from dragoman.model.transformer import Transformer

# A target word is linked to the source word it looks at most, and to others that get at least this share of that.
LINK_SHARE = 0.5
# Validation sentences on which the alignment's heads are chosen: more change nothing, fewer are too few.
CALIBRATION_SENTENCES = 16
WORDS = 6  # of a sentence that is made of the vocabulary
# So much a hidden source token must cost a target token, in nats, to count as what it came from.
NOTICEABLE = 0.5


def find_alignment_heads(
    model: Transformer, tokenizer: Tokenizer, calibration: Sequence[tuple[str, str]]
) -> AlignmentHeads:
    """The cross-attention heads that look at the token without which the translation suffers most.

    Hiding each source token in turn says, without any gold alignment, which one a target token came from. A head is as
    good as the share of target tokens for which it looks most at that one. The best heads are averaged, as many as
    agree best together: they err in different places. A head that was trained to align is taken unmeasured.
    """
    if model.config.alignment_layer:
        return AlignmentHeads(((model.config.alignment_layer - 1, 0),), 0, None)
    layers, heads = len(model.decoder), model.config.num_heads
    seen: list[tuple[Tensor, Tensor]] = []  # (shift, heads of all layers, tokens, S) and the tokens' origins
    for source, target in calibration:
        ids, fed = tokenizer.encode(source), tokenizer.encode_target(target)
        if not 2 <= len(ids) <= 40 or not 1 <= len(fed) <= 60:
            continue
        cost, weights = _cost_of_hiding(model, tokenizer, ids, fed)  # (T, S), (layers, heads, T + 1, S)
        tokens = (cost.amax(dim=1) > NOTICEABLE).nonzero().flatten()
        rows = torch.stack([weights[:, :, tokens + shift].flatten(0, 1) for shift in (0, 1)])
        seen.append((rows, cost[tokens].argmax(dim=1)))
    counted = sum(len(origins) for _, origins in seen)
    if not counted:
        # Without sentences to measure on: the layer before the last, where alignment is found most often.
        return AlignmentHeads(tuple((max(0, layers - 2), head) for head in range(heads)), 0, None)

    def hits(weights: Tensor, origins: Tensor) -> Tensor:
        return (weights.argmax(dim=-1) == origins).sum(dim=-1)

    alone = torch.stack([hits(rows, origins) for rows, origins in seen]).sum(dim=0)  # (2, heads of all layers)
    shift = int(alone.amax(dim=1).argmax())
    order = alone[shift].argsort(descending=True, stable=True)
    together = torch.stack(
        # The sum over the first n heads looks where their mean does.
        [hits(rows[shift, order].cumsum(dim=0), origins) for rows, origins in seen]
    ).sum(dim=0)
    count = int(together.argmax()) + 1  # of equal ones the fewest
    chosen = tuple(divmod(int(index), heads) for index in sorted(order[:count].tolist()))
    return AlignmentHeads(chosen, shift, together[count - 1].item() / counted)


def made_up_sentences(tokenizer: Tokenizer) -> list[str]:
    """Lines of a source vocabulary's first whole words, which are mostly its most frequent ones. They mean nothing, but
    a model translates them by looking at them, and that is what its heads are measured by."""
    pieces = list(map(tokenizer.source_piece, range(tokenizer.source_vocab_size)))
    words = [piece[1:] for piece in pieces if piece.startswith("▁") and len(piece) > 3]
    if sum(map(str.isalpha, words)) < CALIBRATION_SENTENCES:  # written without spaces
        words = [piece.removeprefix("▁") for piece in pieces]
    words = [word for word in words if word.isalpha() and word == word.lower()][: CALIBRATION_SENTENCES * WORDS]
    return [" ".join(words[first : first + WORDS]) + "." for first in range(0, len(words), WORDS)]


@torch.inference_mode()
def _cost_of_hiding(
    model: Transformer, tokenizer: Tokenizer, source: list[int], target: list[int]
) -> tuple[Tensor, Tensor]:
    """The log-probability that each target token loses without each source token, and all cross-attention."""
    model.eval()
    device = model.output.weight.device
    count = len(source)
    labels = torch.tensor([target], device=device)
    fed = torch.tensor([[*tokenizer.start_ids, *target]], device=device)
    given = len(tokenizer.start_ids) - 1  # rows whose output is given: a language token
    ids = torch.tensor([tokenizer.encoder_ids(source)], device=device)
    probe = Probe()
    plain = model(ids, fed, probe=probe)[:, given:-1].log_softmax(dim=-1)  # (1, T, V)
    seen = ~torch.eye(count, ids.shape[1], dtype=torch.bool, device=device)  # row s hides source token s
    hidden = model(ids.expand(count, -1), fed.expand(count, -1), seen)[:, given:-1].log_softmax(dim=-1)
    picked = labels[..., None].expand(count, -1, -1)
    loss = plain.gather(2, labels[..., None]).squeeze(2) - hidden.gather(2, picked).squeeze(2)  # (S, T)
    layers = range(len(model.decoder))
    weights = torch.stack([probe.weights[Site("cross", layer)][0, :, given:, :count] for layer in layers])
    return loss.T.cpu(), weights.cpu()


def align_words(
    weights: Mapping[Site, Tensor], chosen: AlignmentHeads, source_words: Sequence[Word], target_words: Sequence[Word]
) -> Alignment:
    """The alignment of two sentences from the attention of one pass over them."""
    rows = torch.stack([weights[Site("cross", layer)][head] for layer, head in chosen.heads]).mean(dim=0)  # (T, S)
    by_words = by_word(rows[chosen.shift :], target_words, source_words)
    return Alignment(tuple(source_words), tuple(target_words), by_words)


def by_word(weights: Tensor, targets: Sequence[Word], sources: Sequence[Word]) -> tuple[tuple[float, ...], ...]:
    """Weights between words: a word looks at another as much as its tokens do, on average, at all tokens of it."""
    return tuple(
        tuple(
            weights[target.first_token : target.last_token + 1, source.first_token : source.last_token + 1]
            .sum(dim=1)
            .mean()
            .item()
            for source in sources
        )
        for target in targets
    )


def links_of(alignment: Sequence[Sequence[float]]) -> tuple[tuple[int, int], ...]:
    """Pairs (target word, source word) that belong together, by the weights between them."""
    return tuple(
        (target, source)
        for target, row in enumerate(alignment)
        for source, weight in enumerate(row)
        if weight > 0 and weight >= LINK_SHARE * max(row)
    )
