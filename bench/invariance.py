"""The same sentence in many random batchings: does it have the same translation, and what does it cost to see to that?

    python bench/invariance.py runs/demo TEXT [--sentences 10000] [--batchings 100] [--compute-type int8]

TEXT has a sentence on each line, or a pair with a tab between them; the first that differ are taken. Each is translated
alone, and then in random batchings, in batches of 1 to 64: with `search.batch_invariant` in all of them, without it in
the first `--rounds`, by turns, which gives the cost in processor time of one thread. Equal is equal to the bit: the
tokens and their log-probability.
"""

import argparse
import os
import random
import sys
import time
from pathlib import Path

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.translation.translator import Translator
from rounds import ratios

LARGEST = 64


class Batchings:
    """The sentences in one random batching after the other, and which of them ever differed from themselves alone."""

    def __init__(self, translator: Translator, sources: list[list[int]]) -> None:
        self.engine, self.search, self.sources = translator.engine, translator.search, sources
        self.alone = [self.engine.translate([source], self.search)[0][0] for source in sources]
        self.other_text: set[int] = set()
        self.other_score: set[int] = set()
        self.seconds: list[float] = []

    def translate(self, seed: int) -> None:
        draw = random.Random(seed)
        order = draw.sample(range(len(self.sources)), len(self.sources))
        began = time.process_time()
        while order:
            batch = [order.pop() for _ in range(min(len(order), draw.randint(1, LARGEST)))]
            found = self.engine.translate([self.sources[index] for index in batch], self.search)
            for index, [hypothesis] in zip(batch, found, strict=True):
                self._compare(index, hypothesis)
        self.seconds.append(time.process_time() - began)

    def _compare(self, index: int, hypothesis: Hypothesis) -> None:
        if hypothesis.ids != self.alone[index].ids:
            self.other_text.add(index)
        if hypothesis.log_probability != self.alone[index].log_probability:
            self.other_score.add(index)

    def __str__(self) -> str:
        return f"{len(self.seconds)} | {len(self.other_text):,} | {len(self.other_score):,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--batchings", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="batchings that are made without it as well")
    parser.add_argument("--compute-type", default="int8")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    plain = Translator.load(given.run, engine="ctranslate2", compute_type=given.compute_type)
    with given.text.open(encoding="utf-8") as file:
        texts = dict.fromkeys(line.partition("\t")[0].strip() for line in file)
    encoded = plain.tokenizer.encode_batch([text for text in texts if text][: given.sentences])
    without = Batchings(plain, encoded)
    invariant = Batchings(plain.with_search(batch_invariant=True), encoded)
    for seed in range(given.batchings):
        ways = [invariant, without] if seed < given.rounds else [invariant]
        for way in ways if seed % 2 else reversed(ways):
            way.translate(seed)
        print(f"{seed + 1} of {given.batchings}: with it {invariant}; without {without}", file=sys.stderr)
    print(f"{len(encoded):,} sentences, {given.compute_type}, alone and in random batches of 1 to {LARGEST}\n")
    print("| | batchings | sentences with another translation | with another log-probability |\n|---|---|---|---|")
    print(f"| with it | {invariant} |\n| without | {without} |")
    print(f"\ntime with it, against without: {ratios(invariant.seconds[: given.rounds], without.seconds)}")


if __name__ == "__main__":
    main()
