"""Which heads align, measured where the alignment is known because the corpus was made so.

    python bench/alignment.py invented OUT                      # an invented language, neighbours swapped
    python bench/alignment.py multi30k OUT --data DIR           # Multi30k's commonest words in a cipher, reordered

Both make pairs whose word alignment is known, train a small model on them for a minute (a run in OUT, used again if it
is there), and print for every cross-attention head the share of held-out target words whose true source word gets the
most weight: in the row that produces the word's tokens, and in the next one, which is fed them. Then the same for what
Dragoman shows, which it chooses without knowing any alignment (docs/decisions/008), and for two means that need no
choice.
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
from pathlib import Path

import torch
from torch import Tensor

from dragoman.data.corpus import read_lines
from dragoman.inspection.alignment import by_word
from dragoman.inspection.attention_trace import trace
from dragoman.inspection.explain import Explainer
from dragoman.model.probe import Site

HELD_OUT = 200
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Pair:
    source: list[str]
    target: list[str]
    origins: list[int]  # of each target word, the place of its source word


def word_for(word: str) -> str:
    """An invented word, always the same for the same word, with nothing of its letters."""
    digest = hashlib.sha256(word.encode()).digest()
    return "".join(SYLLABLES[byte % len(SYLLABLES)] for byte in digest[: 2 + digest[-1] % 2])


def translated(words: Sequence[str], order: Sequence[int]) -> Pair:
    return Pair(list(words), [word_for(words[place]) for place in order], list(order))


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


def train(pairs: list[Pair], out: Path, minutes: float) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", pairs[HELD_OUT:]), ("valid", pairs[:HELD_OUT])):
        lines = "".join(f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n" for pair in part)
        (out / f"{name}.tsv").write_text(lines, encoding="utf-8")
    shape = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 4, "vocab_size": 600}
    # Small steps and no dropout: a minute must be enough for the model to know its words and their order.
    training = {"batch_tokens": 800, "micro_batch_tokens": 800, "warmup_steps": 100, "peak_rate": 0.005, "threads": 1}
    values = {f"model.{name}": value for name, value in {**shape, "dropout": 0.0}.items()}
    values |= {f"train.{name}": value for name, value in training.items()}
    command = [sys.executable, "-m", "dragoman", "train", "--pairs", out / "train.tsv", "--valid-pairs"]
    command += [out / "valid.tsv", "--out", out / "run", "--minutes", str(minutes)]
    command += [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    subprocess.run(list(map(str, command)), check=True)


def word_weights(explainer: Explainer, pair: Pair) -> Tensor | None:
    """(2, layers, heads, target words, source words), the first for the row that produces, the second for the next."""
    tokenizer, model = explainer.tokenizer, explainer.model
    source, target = (tokenizer.encode(" ".join(words)) for words in (pair.source, pair.target))
    sources, targets = explainer.words(source), explainer.words(target)
    if [word.text for word in sources] != pair.source or [word.text for word in targets] != pair.target:
        return None
    traced = trace(model, [*source, tokenizer.eos_id], [tokenizer.bos_id, *target, tokenizer.eos_id])
    found = torch.zeros(2, len(model.decoder), model.config.num_heads, len(targets), len(sources))
    for shift in (0, 1):
        for layer in range(len(model.decoder)):
            for head, weights in enumerate(traced.weights[Site("cross", layer)]):
                rows = weights[shift : shift + len(target), : len(source)]
                found[shift, layer, head] = torch.tensor(by_word(rows, targets, sources))
    return found


def measure(explainer: Explainer, pairs: list[Pair]) -> None:
    layers, heads = len(explainer.model.decoder), explainer.model.config.num_heads
    chosen = explainer.alignment_heads
    right = torch.zeros(2, layers, heads)
    shown = every = middle = words = 0
    middle_layer = max(0, layers - 2)
    for pair in pairs:
        weights = word_weights(explainer, pair)
        if weights is None:
            continue
        truth = torch.tensor(pair.origins)
        right += (weights.argmax(-1) == truth).sum(-1)
        mean = torch.stack([weights[chosen.shift, layer, head] for layer, head in chosen.heads]).mean(0)
        shown += int((mean.argmax(-1) == truth).sum())
        every += int((weights[0].flatten(0, 1).mean(0).argmax(-1) == truth).sum())
        middle += int((weights[0, middle_layer].mean(0).argmax(-1) == truth).sum())
        words += len(pair.origins)
    right /= words
    print(f"{words} words of {len(pairs)} held-out pairs; share whose true source word gets the most weight\n")
    print("| layer | row | " + " | ".join(f"head {head}" for head in range(heads)) + " |")
    print("|---|---|" + "---|" * heads)
    for layer in range(layers):
        for shift, row in ((0, "produces"), (1, "is fed")):
            print(f"| {layer} | {row} | " + " | ".join(f"{value:.3f}" for value in right[shift, layer].tolist()) + " |")
    shift, layer, head = (int(part) for part in torch.unravel_index(right.argmax(), right.shape))
    best = right.max().item()
    names = ", ".join(f"{layer}.{head}" for layer, head in chosen.heads)
    print(f"\nbest by the truth: {layer}.{head} in the row that {('produces', 'is fed')[shift]}: {best:.3f}")
    print(f"shown, chosen without it: {names}, row that {('produces', 'is fed')[chosen.shift]}: {shown / words:.3f}")
    print(f"mean of layer {middle_layer} (the fallback): {middle / words:.3f}; mean of all heads: {every / words:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=("invented", "multi30k"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "multi30k")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--words", type=int, default=150, help="of Multi30k: so many of its commonest")
    arguments = parser.parse_args()
    pairs = invented(6000) if arguments.corpus == "invented" else from_multi30k(arguments.data, arguments.words)
    random.Random(2).shuffle(pairs)
    run = arguments.out / "run"
    if not (run / "model.safetensors").exists():
        train(pairs, arguments.out, arguments.minutes)
    print(f"{arguments.corpus}: {len(pairs)} pairs", flush=True)
    measure(Explainer.load(run), pairs[:HELD_OUT])


if __name__ == "__main__":
    main()
