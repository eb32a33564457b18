"""How far CTranslate2's search and ours agree on a run, number type by number type.

python bench/agreement.py RUN --source FILE [--reference FILE] [--beam 4] [--alpha 0.6]

First by one rule: our search with CTranslate2's normaliser (length^alpha) and stopping rule. At float32 at least 995
of 1,000 outputs should be identical, and where two differ our model should score them within 1e-4 of each other: then
only rounding decided. Then by the paper's length penalty: our exact search against CTranslate2's beam ranked again, the
share of identical outputs and, with --reference, both BLEU scores. Exits with 1 where float32 is not as it should be.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.config import SearchConfig
from dragoman.data.corpus import read_lines
from dragoman.decoding.beam_search import beam_search
from dragoman.decoding.engines import ComputeType, batches_of_like_length
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import DragomanError
from dragoman.evaluation.metrics import bleu, read_references
from dragoman.translation.translator import Translator

Ids = tuple[int, ...]
GAP = 1e-4
AGREEING = 0.995


def by_their_rule(engine: ReferenceEngine, sources: Sequence[Sequence[int]], search: SearchConfig) -> list[Hypothesis]:
    """Our search, told to normalise and stop as CTranslate2 does."""
    found: list[Hypothesis | None] = [None] * len(sources)
    [model] = engine.models
    for batch in batches_of_like_length([len(source) for source in sources], search.batch_tokens):
        ids, mask = engine._source_batch([sources[i] for i in batch])
        with torch.inference_mode():
            outputs = beam_search(
                lambda last, state: (model.step(last, state).log_softmax(dim=-1), state),
                model.eval().start(ids, mask),
                start_id=engine.tokenizer.bos_id,
                eos_id=engine.tokenizer.eos_id,
                max_lengths=[len(sources[i]) + search.max_extra_length for i in batch],
                beam=search.beam,
                length_penalty=lambda length: float(length**search.alpha),
                stop="first",
            )
        for index, [best] in zip(batch, outputs, strict=True):
            found[index] = best
    return [hypothesis for hypothesis in found if hypothesis is not None]


def exact(engine: ReferenceEngine, sources: Sequence[Sequence[int]], search: SearchConfig) -> list[Ids]:
    found: list[Ids] = [()] * len(sources)
    for batch in batches_of_like_length([len(source) for source in sources], search.batch_tokens):
        for index, [best] in zip(batch, engine.translate([sources[i] for i in batch], search), strict=True):
            found[index] = best.ids
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="How far CTranslate2's search and ours agree on a run.")
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE")
    parser.add_argument("--reference", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=0.6)
    options = parser.parse_args()
    settings = {"beam": options.beam, "alpha": options.alpha}
    lines = [line.strip() for line in read_lines(options.source)]
    reference = Translator.load(options.run, engine="reference", **settings)
    tokenizer, search, ours = reference.tokenizer, reference.search, reference.engine
    assert isinstance(ours, ReferenceEngine)
    encoded = tokenizer.encode_batch(lines)
    numbers = [number for number, ids in enumerate(encoded) if 0 < len(ids) <= search.max_source_length]
    sources = [encoded[number] for number in numbers]
    references = read_references(options.reference) if options.reference else None
    print(f"{options.run}: {len(sources):,} sentences, beam {search.beam}, alpha {search.alpha}")

    same_rule, exact_ids = by_their_rule(ours, sources, search), exact(ours, sources, search)

    def bleu_of(outputs: Sequence[Ids]) -> float | None:
        if references is None:
            return None
        return bleu(tokenizer.decode_batch(outputs), [references[number] for number in numbers]).value

    exact_bleu, kinds = bleu_of(exact_ids), ("float32", "int16", "int8")
    as_it_should_be = True
    for kind in kinds:
        compute_type: ComputeType = kind  # type: ignore[assignment]
        theirs = Translator.load(
            options.run, engine="ctranslate2", compute_type=compute_type, vocabulary_map=False, **settings
        ).engine
        beams = theirs.translate(sources, search, n_best=search.beam)
        # Of its beam, what it would itself put first.
        own = [max(some, key=lambda h: h.log_probability / (len(h.ids) + 1) ** search.alpha) for some in beams]
        different = [i for i, (a, b) in enumerate(zip(same_rule, own, strict=True)) if a.ids != b.ids]
        log_probs = ours.score([sources[i] for i in different], [own[i].ids for i in different]) if different else []
        gaps = [
            abs(same_rule[i].score - sum(row) / (len(own[i].ids) + 1) ** search.alpha)
            for i, row in zip(different, log_probs, strict=True)
        ]
        print(f"{kind}: by one rule {len(sources) - len(different):,} of {len(sources):,} identical")
        for i, gap in sorted(zip(different, gaps, strict=True), key=lambda pair: -pair[1])[:20]:
            print(f"    line {numbers[i] + 1}: score gap {gap:.2g}")
        if kind == "float32":
            enough = len(sources) - len(different) >= AGREEING * len(sources)
            as_it_should_be = enough and all(gap < GAP for gap in gaps)
        ranked = [some[0].ids for some in beams]
        identical = sum(a == b for a, b in zip(exact_ids, ranked, strict=True))
        line = f"    by the paper's penalty {identical:,} of {len(sources):,} identical to the exact search"
        ranked_bleu = bleu_of(ranked)
        if exact_bleu is not None and ranked_bleu is not None:
            line += f", BLEU {ranked_bleu:.2f} against {exact_bleu:.2f} ({ranked_bleu - exact_bleu:+.2f})"
        print(line, flush=True)
    if not as_it_should_be:
        raise DragomanError(f"float32: fewer than {AGREEING:.1%} identical, or a score gap of {GAP:g} or more")


if __name__ == "__main__":
    try:
        main()
    except DragomanError as error:
        sys.exit(f"agreement: {error}")
