"""Which heads align, measured where the alignment is known: made so, or written by hand.

    python bench/alignment.py invented OUT                      # an invented language, neighbours swapped
    python bench/alignment.py multi30k OUT --data DIR           # Multi30k's commonest words in a cipher, reordered
    python bench/alignment.py greek OUT --data DIR --minutes 20 # the Greek New Testament and English, aligned by hand

The first two make pairs whose word alignment is known; the third needs the package that gold_alignments.py names. A
small model is trained on all but 200 of them (a run in OUT, used again if it is there). For those 200 it prints for
every cross-attention head the share of target words whose true source word gets the most weight: in the row that
produces the word's tokens, and in the next one, which is fed them. Then the alignment error rate (Och and Ney 2003),
each target word being linked to the source word of most weight: of each head, of what Dragoman shows, which it chooses
without knowing any alignment (docs/decisions/008), of means that need no choice, of contributions
(inspection/contributions.py), and of hiding each source word in turn. A model with guided alignment shows its one head
that was taught to align; that is then what is shown.
"""

import argparse
import hashlib
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from dragoman.data.corpus import read_lines
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.words import Word
from dragoman.inspection.alignment import links_of
from dragoman.inspection.attention_trace import trace
from dragoman.inspection.inspector import Inspector
from dragoman.model.probe import Site
from dragoman.model.transformer import Transformer
from gold_alignments import Pair, verses

HELD_OUT = 200
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def word_for(word: str) -> str:
    """An invented word, always the same for the same word, with nothing of its letters."""
    digest = hashlib.sha256(word.encode()).digest()
    return "".join(SYLLABLES[byte % len(SYLLABLES)] for byte in digest[: 2 + digest[-1] % 2])


def translated(words: Sequence[str], order: Sequence[int]) -> Pair:
    return Pair(list(words), [word_for(words[place]) for place in order], frozenset(enumerate(order)))


def invented(count: int) -> list[Pair]:
    """Random words; every two neighbours change places."""
    draw = random.Random(1)
    lexicon = sorted({"".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(60)})
    pairs: dict[str, Pair] = {}
    while len(pairs) < count:
        words = draw.choices(lexicon, k=draw.randint(3, 10))
        order = [place ^ 1 if place ^ 1 < len(words) else place for place in range(len(words))]
        pairs[" ".join(words)] = translated(words, order)
    return list(pairs.values())


def from_multi30k(data: Path, most_words: int) -> list[Pair]:
    """English sentences without their rarer words; of every three words, those that sort first come first."""
    lines = [re.findall(r"[a-z]+", line.lower()) for line in read_lines(data / "train.en.gz")]
    common = {word for word, _ in Counter(word for words in lines for word in words).most_common(most_words)}
    pairs: dict[str, Pair] = {}
    for line in lines:
        words = [word for word in line if word in common]
        if 3 <= len(words) <= 20:
            thirds = [range(first, min(first + 3, len(words))) for first in range(0, len(words), 3)]
            order = [place for third in thirds for place in sorted(third, key=lambda at: (words[at], at))]
            pairs[" ".join(words)] = translated(words, order)
    return list(pairs.values())


def train(pairs: list[Pair], out: Path, minutes: float, real: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", pairs[HELD_OUT:]), ("valid", pairs[:HELD_OUT])):
        lines = "".join(f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n" for pair in part)
        (out / f"{name}.tsv").write_text(lines, encoding="utf-8")
    shape = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 4, "vocab_size": 600}
    # Small steps and no dropout: a minute must be enough for the model to know its words and their order.
    training = {"batch_tokens": 800, "micro_batch_tokens": 800, "warmup_steps": 100, "peak_rate": 0.005, "threads": 1}
    values: dict[str, object] = {f"model.{name}": value for name, value in {**shape, "dropout": 0.0}.items()}
    values |= {f"train.{name}": value for name, value in training.items()}
    if real:  # more words, which occur more seldom
        shape |= {"d_model": 128, "d_ff": 512, "vocab_size": 4000}
        values = {f"model.{name}": value for name, value in {**shape, "dropout": 0.2}.items()}
        values |= {"train.threads": 1, "data.casing": "plain", "data.views": 1}
    command = [sys.executable, "-m", "dragoman", "train", "--pairs", out / "train.tsv", "--valid-pairs"]
    command += [out / "valid.tsv", "--out", out / "run", "--minutes", str(minutes)]
    command += [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    subprocess.run(list(map(str, command)), check=True)


@dataclass(frozen=True)
class Weighed:
    """What each way of aligning says of one pair: (target words, source words) each."""

    pair: Pair
    heads: Tensor  # (2, layers, heads, target words, source words): in the row that produces, and in the next one
    ways: dict[str, Tensor]


def weigh(inspector: Inspector, pair: Pair) -> Weighed | None:
    explainer = inspector.explainer
    tokenizer, model = explainer.tokenizer, explainer.model
    source, target = tokenizer.encode(" ".join(pair.source)), tokenizer.encode_target(" ".join(pair.target))
    sources, targets = explainer.source_words(source), explainer.words(target)
    if [word.text for word in sources] != pair.source or [word.text for word in targets] != pair.target:
        return None
    traced = trace(model, [*source, tokenizer.eos_id], [tokenizer.bos_id, *target, tokenizer.eos_id])

    # As inspection/alignment.py does for the page, for all heads at once: the mean over a target word's tokens of the
    # sum over a source word's.
    rows = torch.stack([membership(word, len(target)) / (word.last_token - word.first_token + 1) for word in targets])
    columns = torch.stack([membership(word, len(source)) for word in sources])

    def of_words(weights: Tensor) -> Tensor:
        return rows @ weights[..., : len(target), : len(source)].float() @ columns.T

    layers = range(len(model.decoder))
    cross = torch.stack([traced.weights[Site("cross", layer)] for layer in layers])  # (layers, heads, T + 1, S + 1)
    found = torch.stack([of_words(cross[:, :, shift:]) for shift in (0, 1)])
    chosen, middle = explainer.alignment_heads, max(0, len(layers) - 2)
    came = inspector.contributions(" ".join(pair.source), explainer.pieces(target)).total
    ways = {
        "shown": torch.stack([found[chosen.shift, layer, head] for layer, head in chosen.heads]).mean(0),
        f"mean of layer {middle} (the fallback)": found[0, middle].mean(0),
        "mean of all heads": found[0].flatten(0, 1).mean(0),
        "contributions": of_words(came),
        "hiding each source word": hidden_words(model, tokenizer, source, target, sources, targets),
    }
    return Weighed(pair, found, ways)


def membership(word: Word, tokens: int) -> Tensor:
    at = torch.arange(tokens)
    return ((at >= word.first_token) & (at <= word.last_token)).float()


@torch.inference_mode()
def hidden_words(
    model: Transformer,
    tokenizer: Tokenizer,
    source: list[int],
    target: list[int],
    sources: Sequence[Word],
    targets: Sequence[Word],
) -> Tensor:
    """The log-probability that each target word loses when each source word is hidden: (target words, source words)."""
    read = torch.tensor([[*source, tokenizer.eos_id]])
    fed = torch.tensor([[tokenizer.bos_id, *target]])
    seen = torch.ones(len(sources) + 1, read.shape[1], dtype=torch.bool)  # the last row hides nothing
    for row, word in enumerate(sources):
        seen[row, word.first_token : word.last_token + 1] = False
    count = len(seen)
    logits = model(read.expand(count, -1), fed.expand(count, -1), seen)[:, :-1]
    said = logits.log_softmax(-1).gather(2, fed[:, 1:, None].expand(count, -1, -1)).squeeze(2)  # (count, T)
    lost = said[-1] - said[:-1]
    return torch.stack([lost[:, word.first_token : word.last_token + 1].sum(1) for word in targets])


def error_rate(pairs: Sequence[Pair], links: Sequence[set[tuple[int, int]]]) -> float:
    """Och and Ney's, all gold links being sure."""
    right = sum(len(found & pair.links) for pair, found in zip(pairs, links, strict=True))
    return 1 - 2 * right / (sum(map(len, links)) + sum(len(pair.links) for pair in pairs))


def strongest(weights: Tensor) -> set[tuple[int, int]]:
    return set(enumerate(weights.argmax(dim=1).tolist()))


def measure(inspector: Inspector, pairs: list[Pair]) -> None:
    every = [one for one in (weigh(inspector, pair) for pair in pairs) if one is not None]
    kept = [one.pair for one in every]
    _, layers, heads = every[0].heads.shape[:3]
    right, rates, words = torch.zeros(2, layers, heads), torch.zeros(2, layers, heads), 0
    for one in every:
        truth = torch.zeros(len(one.pair.target), len(one.pair.source))
        for target, source in one.pair.links:
            truth[target, source] = 1
        linked = truth.sum(dim=1) > 0
        best = one.heads[..., linked, :].argmax(dim=-1, keepdim=True)
        right += truth[linked].expand(*best.shape[:-1], -1).gather(-1, best).sum(dim=(-1, -2))
        words += int(linked.sum())
    for shift, layer, head in product(range(2), range(layers), range(heads)):
        rates[shift, layer, head] = error_rate(kept, [strongest(one.heads[shift, layer, head]) for one in every])
    print(f"{words} words of {len(kept)} held-out pairs (of {len(pairs)}; the others are split into other words)\n")
    rows = list(product(range(layers), ((0, "produces"), (1, "is fed"))))
    for title, table in (("share whose true source word gets the most weight", right / words), ("error rate", rates)):
        print(f"{title}\n\n| layer | row | " + " | ".join(f"head {head}" for head in range(heads)) + " |")
        print("|---|---|" + "---|" * heads)
        for layer, (shift, row) in rows:
            print(f"| {layer} | {row} | " + " | ".join(f"{value:.3f}" for value in table[shift, layer].tolist()) + " |")
        print()
    chosen = inspector.explainer.alignment_heads
    names = ", ".join(f"{layer}.{head}" for layer, head in chosen.heads)
    taught = " (taught to align)" if inspector.model.config.alignment_layer else ""
    print(f"shown{taught}: {names}, in the row that {('produces', 'is fed')[chosen.shift]}\n")
    print("| | error rate, 95 % interval |\n|---|---|")
    shift, layer, head = (int(part) for part in torch.unravel_index(rates.argmin(), rates.shape))
    tables = {
        f"best single head, by the truth: {layer}.{head}": [strongest(one.heads[shift, layer, head]) for one in every]
    }
    tables |= {name: [strongest(one.ways[name]) for one in every] for name in every[0].ways}
    tables["shown, with the links of the page"] = [set(links_of(one.ways["shown"].tolist())) for one in every]
    for name, links in tables.items():
        print(f"| {name} | {with_interval(kept, links)} |")


def with_interval(pairs: Sequence[Pair], links: Sequence[set[tuple[int, int]]]) -> str:
    """With the 95 % interval over 1,000 resamples of the pairs."""
    draw = random.Random(1)
    drawn = (draw.choices(range(len(pairs)), k=len(pairs)) for _ in range(1000))
    rates = sorted(error_rate([pairs[at] for at in sample], [links[at] for at in sample]) for sample in drawn)
    return f"{error_rate(pairs, links):.3f} ({rates[25]:.3f} to {rates[974]:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=("invented", "multi30k", "greek"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "multi30k")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--words", type=int, default=150, help="of Multi30k: so many of its commonest")
    arguments = parser.parse_args()
    match arguments.corpus:
        case "invented":
            pairs = invented(6000)
        case "greek":
            pairs = verses(arguments.data)
        case _:
            pairs = from_multi30k(arguments.data, arguments.words)
    random.Random(2).shuffle(pairs)
    run = arguments.out / "run"
    if not (run / "model.safetensors").exists():
        train(pairs, arguments.out, arguments.minutes, real=arguments.corpus == "greek")
    print(f"{arguments.corpus}: {len(pairs)} pairs", flush=True)
    measure(Inspector.load(run), pairs[:HELD_OUT])


if __name__ == "__main__":
    main()
