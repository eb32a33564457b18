"""Finds what is wrong with a corpus. Each check looks at pairs in their order and returns one cause or None.

The limits were set so that Multi30k and the demo's Tatoeba pairs pass, and the damaged corpora of
tests/diagnosis/test_corpus_checks.py do not.
"""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.data.corpus import SentencePair
from dragoman.data.language_id import LanguageDetector, detect_pair, known_languages
from dragoman.data.phrase_pairs import learn_lexicon, words_of
from dragoman.data.splitting import identity_of
from dragoman.diagnosis.causes import Cause, ranked

MOST_PAIRS = 500_000  # to read of a run's text
_LOOKED_AT = 16_000  # pairs, in evenly spread stretches of _WINDOW lines, as misalignment shows only in neighbours
_WINDOW = 200  # lines over which lengths are correlated
_TELLING_SPREAD = 0.2  # standard deviation of log lengths; with less, correlation says nothing
_LEAST_CORRELATION = 0.3
_LEAST_LINKS = 0.25
_LEAST_LEXICON = 20  # words with a known translation; any corpus of some size has more
_COMMON = 0.05  # a word in more than this share of sentences is too common to be evidence
_DETECTED = 400  # lines whose language is detected
_SHOWN = 60  # characters of a line in evidence

# UTF-8 that was read as Windows-1252 and written as UTF-8 again, and the sign for unreadable bytes.
_MOJIBAKE = re.compile(
    r"Ã[\x80-\xbf\u0152-\u2122]|â€[\u0153™œ˜“¦\x9d]|Â[\xa0-\xbf]|\ufffd|Ð[\x80-\xbfŸ°-¿]|Å[\x80-\xbf¡“]"
)
_MARKUP = re.compile(r"&(amp|lt|gt|quot|apos|nbsp|#\d+);")
_TOKENISED = re.compile(r"\w [.,](?= |$)")


@dataclass(frozen=True)
class CorpusName:
    """The name of a corpus in suggested commands."""

    paths: str  # quoted for a shell
    has_lines: bool  # whether each line is a pair, so that sort, awk and cut work on it

    def by_lines(self, command: str) -> str:
        """Returns a command with the corpus in place of `{}`; other formats are first written as lines."""
        if self.has_lines:
            return command.replace("{}", self.paths)
        return f"dragoman doctor {self.paths} --out pairs.tsv; " + command.replace("{}", "pairs.tsv")


@dataclass(frozen=True)
class Sample:
    """Stretches of lines of a corpus, with their line numbers."""

    pairs: Sequence[SentencePair]
    lines: Sequence[int]  # numbers, from 1
    window: int  # lines in each stretch

    @classmethod
    def of(cls, pairs: Sequence[SentencePair]) -> "Sample":
        """Takes evenly spread stretches of neighbouring pairs."""
        window = min(_WINDOW, max(50, len(pairs) // 8))
        stretches = max(1, min(len(pairs), _LOOKED_AT) // window)
        starts = [round(i * (len(pairs) - window) / max(1, stretches - 1)) for i in range(stretches)]
        places = sorted({place for start in starts for place in range(max(0, start), min(start + window, len(pairs)))})
        return cls([pairs[place] for place in places], [place + 1 for place in places], window)


def examine_text(
    pairs: Sequence[SentencePair],
    paths: str | Sequence[str],
    test: Sequence[SentencePair] | None = None,
    has_lines: bool = True,
) -> list[Cause]:
    """Runs all checks on a corpus; returns the causes found, ranked.

    `paths`: its files; `test`: pairs that the model is scored on; `has_lines`: each line of its one file is a pair.
    """
    name = CorpusName(shlex.join([paths] if isinstance(paths, str) else paths), has_lines)
    sample = Sample.of(pairs)
    checks = (misaligned, wrong_language, encoding_damage, casing, copies, tokenised, markup)
    found = [check(sample, name) for check in checks]
    found.append(duplicates(pairs, name))
    if test is not None:
        found.append(leakage(pairs, test, name))
    return ranked(found)


def misaligned(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds lines that do not translate each other: their lengths do not correlate, and the words of one side have no
    translation on the other. Lengths are no evidence where all neighbours are equally long, as in a sorted file."""
    pairs, window = sample.pairs, sample.window
    if len(pairs) < 2 * window:
        return None
    lengths = np.log([[len(source), len(target)] for source, target in pairs])
    linked = _linked(pairs)
    starts = list(range(0, len(pairs) - window + 1, window // 2))
    correlations = np.array([_correlation(lengths[start : start + window]) for start in starts])
    telling = np.array([lengths[start : start + window].std(axis=0).min() >= _TELLING_SPREAD for start in starts])
    links = np.array([_mean(linked[start : start + window]) for start in starts])
    usual, usual_links = (float(np.quantile(values, 0.75)) for values in (correlations, links))
    bad = links < max(0.5 * usual_links, _LEAST_LINKS)
    bad &= ~telling | (correlations < max(0.5 * usual, _LEAST_CORRELATION))
    share = float(bad.mean())
    if share < 0.05 or (share < 0.5 and bad.sum() < 2):
        return None
    places = np.flatnonzero(bad)
    begin, end = starts[places[0]], min(len(pairs), starts[places[-1]] + window)
    first, last = sample.lines[begin], sample.lines[end - 1]
    shift = _best_shift(lengths[begin:end]) if telling[bad].any() else 0
    lines = f"{abs(shift)} line{'s' * (abs(shift) > 1)}"
    moved = f"; the target seems {lines} too {'late' if shift > 0 else 'early'}" if shift else ""
    return Cause(
        "misaligned",
        f"lines {first:,} to {last:,} do not translate each other{moved}",
        f"in {bad.sum()} of {len(starts)} windows of {window} lines their lengths correlate by "
        f"{np.median(correlations[bad]):.2f} (at best {usual:.2f}) and {np.median(links[bad]):.0%} of the words with a "
        f"known translation have it opposite (at best {usual_links:.0%})",
        f"about {share:.0%} of the pairs teach the model that any translation will do",
        name.by_lines(f"awk 'NR < {first} || NR > {last}' {{}} > aligned.tsv   # or align these lines again"),
        min(1.0, 0.5 + share),
    )


def _linked(pairs: Sequence[SentencePair]) -> npt.NDArray[np.float64]:
    """Returns for each pair: of the source words with a known translation, the share that have it in the target. Very
    common words do not count, as they match whatever the alignment."""
    frequency = Counter(word for source, _ in pairs for word in set(words_of(source)))
    common = _COMMON * len(pairs)
    lexicon = {word: other for word, other in learn_lexicon(pairs).items() if frequency[word] <= common}
    found = np.zeros(len(pairs))
    if len(lexicon) < _LEAST_LEXICON:
        return found  # all zero: no word has a regular translation
    for index, (source, target) in enumerate(pairs):
        words = [word for word in words_of(source) if word in lexicon]
        target_words = set(words_of(target))
        found[index] = np.mean([lexicon[word] in target_words for word in words]) if words else np.nan
    return found


def _mean(values: npt.NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 1.0  # no evidence: counts as aligned


def _correlation(lengths: npt.NDArray[np.float64]) -> float:
    source, target = (lengths - lengths.mean(axis=0)).T
    scale = float(np.sqrt((source @ source) * (target @ target)))
    return float(source @ target) / scale if scale > 1e-9 else 0.0


def _best_shift(lengths: npt.NDArray[np.float64]) -> int:
    """Returns by how many lines the target is late (negative: early); 0 if no shift fits."""
    best, found = 0.5, 0
    for shift in (*range(-5, 0), *range(1, 6)):
        source, target = (
            (lengths[:-shift, 0], lengths[shift:, 1]) if shift > 0 else (lengths[-shift:, 0], lengths[:shift, 1])
        )
        if len(source) > 30 and (value := _correlation(np.stack((source, target), axis=1))) > best:
            best, found = value, shift
    return found


def duplicates(pairs: Sequence[SentencePair], name: CorpusName) -> Cause | None:
    """Finds pairs that occur more than once."""
    counts = Counter(pairs)
    extra = len(pairs) - len(counts)
    share = extra / max(1, len(pairs))
    if share < 0.05:
        return None
    pair, times = counts.most_common(1)[0]
    return Cause(
        "duplicates",
        f"{extra:,} of {len(pairs):,} pairs are repeats of earlier ones",
        f"{times:,} times: {_clip(pair[0])} | {_clip(pair[1])}",
        f"training drops them unless told not to, so that {len(counts):,} pairs are left; a split by hand leaks them",
        name.by_lines("sort -u {} > once.tsv") + "   # quickstart and train drop them by themselves",
        0.3 * share,
    )


def leakage(pairs: Sequence[SentencePair], test: Sequence[SentencePair], name: CorpusName) -> Cause | None:
    """Finds test sentences that are also in the training text; case and punctuation may differ."""
    known = {identity_of(source) for source, _ in pairs}
    leaked = [pair for pair in test if identity_of(pair[0]) in known and len(pair[0].split()) > 2]
    share = len(leaked) / max(1, len(test))
    if share < 0.02:
        return None
    return Cause(
        "leakage",
        f"{len(leaked):,} of {len(test):,} test sentences are in the training text",
        f"for example: {_clip(leaked[0][0])}",
        f"the score measures memory, not translation: about {share:.0%} of the test is known by heart",
        f"dragoman quickstart {name.paths}   # splits without such sentences",
        min(1.0, 0.6 + share),
    )


def wrong_language(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds lines in a third language, or in that of the other side."""
    pairs = sample.pairs
    languages = detect_pair(pairs)
    if languages is None:
        return None
    long_enough = [i for i, pair in enumerate(pairs) if min(map(len, pair)) >= 30]
    if len(long_enough) < 50:
        return None
    sampled = long_enough[:: max(1, len(long_enough) // _DETECTED)]
    detector = LanguageDetector(known_languages())
    worst: tuple[float, int, list[tuple[int, str]]] = (0.0, 0, [])
    for side in (0, 1):
        others = []
        for line in sampled:
            found = detector.detect([pairs[line][side]])[0]
            if found.language != languages[side] and found.confidence >= 97:
                others.append((line, found.language))
        worst = max(worst, (len(others) / len(sampled), side, others))
    share, side, others = worst
    named = Counter(language for _, language in others).most_common(1)
    # Names and short sentences are often detected as some other language: one language must stand out.
    if share < 0.05 or named[0][1] < 0.4 * len(others):
        return None
    which = ("source", "target")[side]
    line, language = next((line, language) for line, language in others if language == named[0][0])
    return Cause(
        "wrong language",
        f"about {share:.0%} of the {which} lines are not {languages[side]}, most of them {named[0][0]}",
        f"line {sample.lines[line]:,}: {_clip(pairs[line][side])} ({language})",
        f"the model learns to write {named[0][0]} now and then"
        if side
        else "the model learns from text that its users will not write",
        f"dragoman quickstart {name.paths} --source-language {languages[0]} --target-language {languages[1]}   "
        f"# after removing those lines",
        min(1.0, 0.3 + share),
    )


def encoding_damage(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds text that was decoded with the wrong encoding."""
    pairs = sample.pairs
    damaged = [i for i, pair in enumerate(pairs) if _MOJIBAKE.search(pair[0]) or _MOJIBAKE.search(pair[1])]
    share = len(damaged) / max(1, len(pairs))
    if share < 0.005:
        return None
    line = damaged[0]
    shown = next(side for side in pairs[line] if _MOJIBAKE.search(side))
    return Cause(
        "encoding damage",
        f"{share:.1%} of the pairs were decoded with the wrong encoding",
        f"line {sample.lines[line]:,}: {_clip(shown)}",
        "damaged words are learned, and written, as garbage",
        name.by_lines("iconv -f UTF-8 -t WINDOWS-1252 {} > mended.tsv   # UTF-8 that was once taken for Windows-1252"),
        min(1.0, 0.45 + share),
    )


def casing(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds a side without capitals, or with much text in capitals only."""
    pairs = sample.pairs
    for side, which in ((1, "target"), (0, "source")):
        lines = [pair[side] for pair in pairs if any(c.isalpha() and c.lower() != c.upper() for c in pair[side])]
        if len(lines) < 20:
            continue  # a script without case
        lower = sum(line == line.lower() for line in lines) / len(lines)
        upper = sum(line == line.upper() and len(line) > 10 for line in lines) / len(lines)
        share, form = (lower, "lower-cased") if lower > upper else (upper, "in capitals")
        if (form == "lower-cased" and share > 0.6) or (form == "in capitals" and share > 0.2):
            what = (
                "cannot write capitals, and a cased score counts each as an error"
                if side
                else "treats Tom and tom as different words"
            )
            return Cause(
                "casing",
                f"{share:.0%} of the {which} lines are {form}",
                f"for example: {_clip(next(line for line in lines if line in (line.lower(), line.upper())))}",
                f"a model of such text {what}",
                f"dragoman quickstart ORIGINAL   # {name.paths} as it was written, before its case was taken away",
                (0.35 if side else 0.25) * share,
            )
    return None


def copies(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds untranslated lines: names and numbers may be the same in two languages, but not whole sentences."""
    pairs = sample.pairs
    same = [
        i for i, pair in enumerate(pairs) if len(pair[0].split()) > 2 and identity_of(pair[0]) == identity_of(pair[1])
    ]
    share = len(same) / max(1, len(pairs))
    if share < 0.02:
        return None
    return Cause(
        "untranslated copies",
        f"{share:.1%} of the pairs have the source as their target",
        f"line {sample.lines[same[0]]:,}: {_clip(pairs[same[0]][1])}",
        f"the model learns to leave about {share:.0%} of its input untranslated",
        name.by_lines("awk -F '\\t' '$1 != $2' {} > translated.tsv"),
        min(1.0, 0.35 + share),
    )


def tokenised(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds tokenised text, by the spaces before its punctuation."""
    pairs = sample.pairs
    for side, which in ((1, "target"), (0, "source")):
        marked = [pair[side] for pair in pairs if re.search(r"\w ?[.,](?= |$)", pair[side])]
        apart = [line for line in marked if _TOKENISED.search(line)]
        share = len(apart) / max(1, len(marked))
        if len(marked) >= 20 and share > 0.3:
            return Cause(
                "tokenised text",
                f"{share:.0%} of the {which} lines have spaces before their punctuation",
                f"for example: {_clip(apart[0])}",
                "BLEU of tokenised text cannot be compared with that of raw text; and the model writes spaces before "
                "its full stops",
                name.by_lines(f"cut -f {side + 1} {{}} | sacremoses -l XX detokenize > raw.{which}"),
                0.4 * share,
            )
    return None


def markup(sample: Sample, name: CorpusName) -> Cause | None:
    """Finds characters written as HTML entities."""
    pairs = sample.pairs
    found = [i for i, pair in enumerate(pairs) if _MARKUP.search(pair[0]) or _MARKUP.search(pair[1])]
    share = len(found) / max(1, len(pairs))
    if share < 0.02:
        return None
    shown = next(side for side in pairs[found[0]] if _MARKUP.search(side))
    return Cause(
        "HTML entities",
        f"{share:.1%} of the pairs have characters written as HTML",
        f"line {sample.lines[found[0]]:,}: {_clip(shown)}",
        "the model writes &quot; where people expect a quotation mark",
        name.by_lines(
            'python -c "import html, sys; sys.stdout.writelines(map(html.unescape, sys.stdin))" < {} > plain.tsv'
        ),
        min(1.0, 0.2 + 0.5 * share),
    )


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
