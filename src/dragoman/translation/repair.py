"""Decodes again what has defects: without repeats, and where it copied the source, without the source's own words."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby, product

from dragoman.decoding.constraints import ngrams, no_repeats
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.progress import Say, discard
from dragoman.translation.defects import Defect, TokenizedText, defects_of
from dragoman.translation.lengths import ANY_PAIR, UsualLengths
from dragoman.translation.sentence_decoder import EncodedSentence, SentenceDecoder

TOGETHER = 64  # sentences that are decoded again together
REPEATS = (3, 2)  # so many tokens in a row may not come twice: the first attempt, then the second


@dataclass(frozen=True)
class DecodedSentence:
    """A sentence with its hypotheses, best first, and what is plainly wrong with the first of them."""

    sentence: EncodedSentence
    hypotheses: list[Hypothesis]
    defects: tuple[Defect, ...]
    repaired: tuple[Defect, ...] = ()  # defects of an earlier hypothesis, which this one has no longer

    @classmethod
    def examine(
        cls,
        sentence: EncodedSentence,
        hypotheses: list[Hypothesis],
        text_of: Callable[[Hypothesis], str],
        case_marks: Set[int] = frozenset(),
        lengths: UsualLengths = ANY_PAIR,
    ) -> "DecodedSentence":
        """Looks for defects. `text_of` gives the text of a hypothesis; `case_marks`: the ids of those."""
        if not hypotheses:
            return cls(sentence, hypotheses, ("empty",))
        best = hypotheses[0]
        source, target = (
            TokenizedText([token for token in ids if token not in case_marks] if case_marks else ids, text)
            for ids, text in ((sentence.ids, sentence.text), (best.ids, text_of(best)))
        )
        return cls(sentence, hypotheses, defects_of(source, target, best.finished, lengths))

    @property
    def worse(self) -> list[Defect]:
        """The defects for which it is decoded again: no search makes a short one longer by repeating nothing."""
        return [defect for defect in self.defects if defect != "short"]


def repair(
    sentences: Sequence[DecodedSentence],
    decoder: SentenceDecoder,
    tell: Say = discard,
    lengths: UsualLengths = ANY_PAIR,
) -> list[DecodedSentence]:
    """Each sentence with the fewest defects that could be had. A better hypothesis comes first, and those that were
    found before come after it."""
    best = list(sentences)
    # Only the reference engine knows words that must be there and stretches of the source that must not.
    constrained = [bool(one.sentence.required) or "copy" in one.defects for one in sentences]
    for size, with_constraints in product(REPEATS, (False, True) if decoder.can_constrain else (False,)):
        defective = [i for i, one in enumerate(best) if one.worse and constrained[i] is with_constraints]
        done = 0
        for indices in _of_one_length(defective, lambda index: len(sentences[index].sentence.ids)):
            tell(f"{done:,} of {len(defective):,} sentences once more")
            done += len(indices)
            attempts = _without_repeats([sentences[i] for i in indices], decoder, size, with_constraints)
            for index, hypotheses in zip(indices, attempts, strict=True):
                best[index] = _better(best[index], sentences[index], hypotheses, decoder, lengths)
    return best


def _better(
    best: DecodedSentence,
    first: DecodedSentence,
    hypotheses: list[Hypothesis],
    decoder: SentenceDecoder,
    lengths: UsualLengths,
) -> DecodedSentence:
    """The new hypotheses if they have fewer defects, with those of the first attempt after them; else the best."""
    tokenizer = decoder.tokenizer
    found = DecodedSentence.examine(
        first.sentence,
        hypotheses,
        lambda hypothesis: tokenizer.decode(hypothesis.ids),
        frozenset(tokenizer.case_marks.values()),
        lengths,
    )
    if not hypotheses or len(found.worse) >= len(best.worse):
        return best
    return replace(
        found,
        hypotheses=[*hypotheses, *first.hypotheses[: len(first.hypotheses) - 1]],
        repaired=tuple(defect for defect in first.defects if defect not in found.defects),
    )


def _without_repeats(
    sentences: Sequence[DecodedSentence], decoder: SentenceDecoder, size: int, with_constraints: bool
) -> list[list[Hypothesis]]:
    """One hypothesis of each sentence, in which no `size` tokens in a row come twice. All sentences have one length."""
    sources = [one.sentence.ids for one in sentences]
    # Twice the source and some: long enough for every translation that is no runaway.
    longest = min(decoder.search.max_extra_length, len(sources[0]) + 10)
    search = replace(decoder.search, max_extra_length=longest)
    if not with_constraints:
        return decoder.engine.translate(sources, search, no_repeat=size)
    forbidden = [ngrams(one.sentence.ids, size) if "copy" in one.defects else set() for one in sentences]
    required = [one.sentence.required for one in sentences]
    return decoder.reference.translate(
        sources,
        search,
        constrain=no_repeats(size, decoder.tokenizer.vocab_size, decoder.tokenizer.eos_id, forbidden),
        require=[decoder.phrases(words) for words in required] if any(required) else None,
    )


def _of_one_length(indices: Sequence[int], length: Callable[[int], int]) -> list[list[int]]:
    """Groups of sentences of equal length, so that padding, and thus what a sentence is decoded with, changes nothing
    in its translation; none of them too large."""
    groups = [list(group) for _, group in groupby(sorted(indices, key=length), length)]
    return [group[first : first + TOGETHER] for group in groups for first in range(0, len(group), TOGETHER)]
