"""Do contributions say what matters? The rank correlation of ALTI+ with ablation, beside attention and rollout.

    python bench/contributions.py RUN SENTENCES            # a line each, for example the demo's test sentences
    python bench/contributions.py runs/demo ~/.cache/dragoman/demo-en-fr/test.en --count 200

The run translates each sentence. For every token that it produces, each token of the source is ablated, in two ways
(left out of the sentence; hidden from all attention, as padding is), and what that does is measured in two ways: how
much the log-probability of the produced token changes, up or down, and the divergence of the whole distribution from
what it was (KL). So is each token said before left out. Then the tokens are ranked by that and by each method:

    contributions         ALTI+, inspection/contributions.py
    rollout               attention, the mean of the heads, half of it the residual's, multiplied through the model
                          (Abnar and Zuidema 2020), by the same paths
    attention             the mean of all heads of all layers of cross-attention
    last layer            the mean of the heads of the last layer of cross-attention
    shown as alignment    the heads that docs/decisions/008 chooses, in the row that produces the token

Printed is Spearman's rank correlation, the mean over a sentence's produced tokens and then over the sentences, with a
95 % interval from 2,000 resamples of the sentences, and how much contributions lead each of the others, paired.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from dragoman.data.corpus import read_lines
from dragoman.inspection.contributions import rolled_out
from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.model.probe import Site

FEWEST, MOST = 5, 40  # tokens of a source that are ranked
RESAMPLES = 2000


def methods_for(inspector: Inspector, seen: Inspection) -> dict[str, Tensor]:
    """(T, S) each, or (T, S + T) where a method says something of what was said before, too."""
    layers = len(inspector.model.decoder)
    cross = torch.stack([seen.weights[Site("cross", layer)] for layer in range(layers)])  # (layers, H, T, S)
    chosen = inspector.explainer.alignment_heads
    return {
        "contributions": inspector.contributions(seen.text, seen.tokens).total,
        "rollout": rollout(seen),
        "attention": cross.mean(dim=(0, 1)),
        "last layer": cross[-1].mean(dim=0),
        "shown as alignment": torch.stack([cross[layer, head] for layer, head in chosen.heads]).mean(dim=0),
    }


def rollout(seen: Inspection) -> Tensor:
    halves: dict[Site, Tensor] = {}
    for site, weights in seen.weights.items():
        mean = weights.mean(dim=0) / 2
        residual = torch.full((mean.shape[0], 1), 0.5)
        halves[site] = torch.cat((mean, residual), dim=1) if site.kind == "cross" else mean + torch.diag(residual[:, 0])
    return rolled_out(halves, len(seen.source), len(seen.fed))


@torch.inference_mode()
def ablations_for(inspector: Inspector, seen: Inspection) -> dict[str, Tensor]:
    """What each token's absence does to each produced token: (T, S) or, where left out, (T, S + T)."""
    model, ids = inspector.model.eval(), inspector.explainer.token_ids
    source = torch.tensor([inspector.tokenizer.encoder_ids(inspector.explainer.source_ids(seen.text))])
    fed, produced = torch.tensor([ids(seen.fed)]), torch.tensor(ids(seen.produced))[:, None]
    (_, read), (_, rows) = source.shape, fed.shape
    plain = model(source, fed)[0].log_softmax(dim=-1)  # (T, V)

    def both(changed: Tensor, first: int = 0) -> tuple[Tensor, Tensor]:
        """For rows from `first` on."""
        before = plain[first:]
        moved = (before - changed).gather(1, produced[first:]).squeeze(1).abs()
        return moved, (before.exp() * (before - changed)).sum(dim=-1)

    everywhere = ~torch.eye(read, dtype=torch.bool)
    hidden = model(source.expand(read, -1), fed.expand(read, -1), everywhere).log_softmax(dim=-1)
    shorter = model(source.expand(read, -1)[everywhere].view(read, -1), fed.expand(read, -1)).log_softmax(dim=-1)
    found = {}
    for name, logs in (("hidden", hidden), ("left out", shorter)):
        moved, diverged = zip(*map(both, logs), strict=True)
        found[f"{name}, log P"], found[f"{name}, KL"] = torch.stack(moved, 1), torch.stack(diverged, 1)
    kept = ~torch.eye(rows, dtype=torch.bool)
    less = model(source.expand(rows, -1), fed.expand(rows, -1)[kept].view(rows, -1)).log_softmax(dim=-1)
    said = {name: torch.full((rows, rows), torch.nan) for name in ("log P", "KL")}
    for token in range(1, rows):  # without it, row t stands one further up
        said["log P"][token:, token], said["KL"][token:, token] = both(less[token, token - 1 :], token)
    for name, table in said.items():
        found[f"all left out, {name}"] = torch.cat((found[f"left out, {name}"], table), dim=1)
    return found


def ranks(values: Tensor) -> Tensor:
    """Equal values share their mean rank."""
    return (values[:, None] > values).sum(dim=1) + 0.5 * (values[:, None] == values).sum(dim=1)


def spearman(one: Tensor, other: Tensor) -> float:
    return torch.corrcoef(torch.stack((ranks(one), ranks(other))))[0, 1].nan_to_num(0.0).item()


def correlations(
    methods: Mapping[str, Tensor], ablations: Mapping[str, Tensor], read: int
) -> dict[tuple[str, str], float]:
    """Of one sentence: the mean over its produced tokens. The end symbol of the source is not ranked."""
    found = {}
    for ablation, measured in ablations.items():
        for method, given in methods.items():
            if measured.shape[1] > given.shape[1]:
                continue  # the method says nothing of what was said before
            every = []
            for row in range(measured.shape[0]):
                there = ~measured[row].isnan()
                there[read - 1] = False
                every.append(spearman(given[row, : measured.shape[1]][there].double(), measured[row][there].double()))
            found[ablation, method] = sum(every) / len(every)
    return found


def interval(values: Tensor) -> str:
    draws = values[torch.randint(len(values), (RESAMPLES, len(values)), generator=torch.Generator().manual_seed(1))]
    low, high = draws.mean(dim=1).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return f"{values.mean().item():.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    inspector = Inspector.load(arguments.run)
    of_sentences: list[dict[tuple[str, str], float]] = []
    tokens = 0
    for line in read_lines(arguments.sentences):
        seen = inspector.inspect(line)
        if FEWEST <= len(seen.source) - 1 <= MOST:
            found = correlations(methods_for(inspector, seen), ablations_for(inspector, seen), len(seen.source))
            of_sentences.append(found)
            tokens += len(seen.produced)
        if len(of_sentences) == arguments.count:
            break
    print(f"{len(of_sentences)} sentences, {tokens} produced tokens; Spearman's rank correlation\n")
    print("| ablation | method | correlation | contributions lead by |\n|---|---|---|---|")
    for ablation, method in of_sentences[0]:
        values = torch.tensor([one[ablation, method] for one in of_sentences], dtype=torch.float64)
        ours = torch.tensor([one[ablation, "contributions"] for one in of_sentences], dtype=torch.float64)
        lead = "" if method == "contributions" else interval(ours - values)
        print(f"| {ablation} | {method} | {interval(values)} | {lead} |")


if __name__ == "__main__":
    main()
