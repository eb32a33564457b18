"""A line cut into the sentences that are translated one by one, and put together from their translations."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, get_args

from dragoman.data.segmentation import Segment, cut_to_fit, join, segments
from dragoman.translation.confidence import WordConfidence
from dragoman.translation.result import Candidate, How, SourceSentence, Translation


class CutLine(NamedTuple):
    """A line's segments, and whether some sentence was too long and had to be cut."""

    segments: list[Segment]
    too_long: bool


def cut_line(line: str, fits: Callable[[str], bool], language: str | None, whole: bool) -> CutLine:
    """Cuts a line into sentences, and those that do not fit into parts. whole: the line is one sentence."""
    if whole:
        parts = [Segment(*span, line[slice(*span)]) for span in cut_to_fit(line, 0, len(line), fits) if line]
        return CutLine(parts, len(parts) > 1)
    all_fit = True

    def fits_or_not(text: str) -> bool:
        nonlocal all_fit
        fit = fits(text)
        all_fit = all_fit and fit
        return fit

    parts = segments(line, fits_or_not, language)
    return CutLine(parts, not all_fit and len(parts) > len(segments(line, lambda _: True, language)))


def translate_lines(
    lines: Sequence[str],
    first_line: int,
    cut: Callable[[str, int], list[Segment]],
    translate: Callable[[list[SourceSentence]], list[Translation]],
    warn: Callable[[str], None],
) -> Iterator[Translation]:
    """Translates lines, the sentences of all of them together. first_line: the number of the first. `cut` gives the
    sentences of a line, which it is told the number of; `warn` is told of lines that were left in part as they were."""
    stripped = [line.strip() for line in lines]
    cut_lines = [cut(line, number) for number, line in enumerate(stripped, start=first_line)]
    found = iter(translate([SourceSentence(part.text) for own in cut_lines for part in own]))
    for number, (line, parts) in enumerate(zip(stripped, cut_lines, strict=True), start=first_line):
        translation = translation_of_line(line, parts, list(islice(found, len(parts))), lines[number - first_line])
        if translation.how == "source":
            warn(f"line {number}: left in part as it was: {'; '.join(translation.notes)}")
        yield translation


def translation_of_line(
    line: str, parts: Sequence[Segment], found: Sequence[Translation], given: str | None = None
) -> Translation:
    """Puts a line's translation together from those of its sentences: first the best of each, then the second best of
    each, and so on. `given`: the line with the space around it."""
    if given is None:
        given = line
    if not parts:
        return Translation(given, (Candidate(line, 0.0, 0.0, (), ()),))
    if len(parts) == 1 and parts[0].text == line and found[0].pivot_text is None:  # nothing is to put together
        [one] = found
        return Translation(
            given,
            one.candidates,
            one.defects,
            one.repaired,
            one.confidence,
            one.words,
            one.corrected,
            one.suggestions,
            one.how,
            one.notes,
        )
    candidates = []
    for rank in range(max(len(one.candidates) for one in found)):
        chosen = [one.candidates[min(rank, len(one.candidates) - 1)] for one in found]
        candidates.append(
            Candidate(
                join(line, parts, [candidate.text for candidate in chosen]),
                sum(candidate.score for candidate in chosen),
                sum(candidate.log_probability for candidate in chosen),
                tuple(token for candidate in chosen for token in candidate.tokens),
                _chain([candidate.token_log_probabilities for candidate in chosen]),
            )
        )
    return Translation(
        given,
        tuple(candidates),
        tuple(dict.fromkeys(defect for one in found for defect in one.defects)),
        tuple(dict.fromkeys(defect for one in found for defect in one.repaired)),
        # A line is as good as its worst sentence.
        min((one.confidence for one in found if one.confidence is not None), default=None),
        _words_of_line(parts, found),
        all(one.corrected for one in found),
        tuple(suggestion for one in found for suggestion in one.suggestions),
        max((one.how for one in found), key=get_args(How).index),
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        pivot_text=_pivot_text(line, parts, found),
    )


def _words_of_line(parts: Sequence[Segment], found: Sequence[Translation]) -> tuple[WordConfidence, ...]:
    """The words of a line's sentences at their places in its translation; none of a wrapped text, as words moved."""
    words: list[WordConfidence] = []
    moved = 0  # how much longer the translation is than the line, up to here
    for part, one in zip(parts, found, strict=True):
        if part.wrap is not None:
            return ()
        at = part.start + moved
        words += [word._replace(start=word.start + at, end=word.end + at) for word in one.words]
        moved += len(one.text) - (part.end - part.start)
    return tuple(words)


def _pivot_text(line: str, parts: Sequence[Segment], found: Sequence[Translation]) -> str | None:
    texts = [one.source if one.pivot_text is None else one.pivot_text for one in found]
    return join(line, list(parts), texts) if any(one.pivot_text is not None for one in found) else None


def _chain(parts: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    known = [part for part in parts if part is not None]
    return tuple(value for part in known for value in part) if len(known) == len(parts) else None
