"""Back-translates: makes pairs from monolingual target text, with a run that translates the other way.

`make` writes raw.tsv: a synthetic source, the real target, and the log-probability per token; after a stop it goes on.
`sift` drops pairs that are no translations, counts them by rule, and writes the others to synthetic.tsv. recipe.toml
names the real pairs, and the synthetic ones with the tag <bt> before their sources, so that the model learns from both
and imitates the real ones (Caswell, Chelba and Grangier, 2019: Tagged Back-Translation).
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig
from dragoman.config.recipes import find_recipe
from dragoman.data.corpus import corpus_name, file_digest, raw_pairs, read_lines
from dragoman.errors import DataError, UsageError
from dragoman.files import directory_made, read_json, replacing, write_atomically
from dragoman.translation.file import identity_of, translate_file
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator

SYNTHETIC = "<bt>"
LONGEST_RATIO = 3.0  # of the longer side's characters to the shorter side's, unless both are short
SHORT = 20  # characters
MOST_REPEATS = 4  # of one word in a row, or of one pair of words


@dataclass(frozen=True)
class BackTranslated:
    """How many pairs were made, kept and dropped, and how they are mixed with the real pairs."""

    recipe: Path
    lines: int
    kept: int
    dropped: dict[str, int]
    real: int
    weight: float  # how often a synthetic pair is seen in an epoch
    ratio: float  # synthetic pairs seen for each real one

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "recipe": str(self.recipe)}

    def lines_to_show(self) -> list[str]:
        dropped = "".join(f"\n  dropped {count:,}: {rule}" for rule, count in self.dropped.items())
        return [
            f"{self.lines:,} lines back-translated, {self.kept:,} kept{dropped}",
            f"in an epoch, {self.ratio:.2f} synthetic pairs for each of {self.real:,} real ones",
            f"train with them: dragoman train {self.recipe}",
        ]


def backtranslate(
    reverse: str | Path,
    monolingual: str | Path,
    real: str | Path | CorpusConfig,
    out: str | Path,
    *,
    valid: CorpusConfig | None = None,
    recipe: str = "small",
    ratio: float = 1.0,
    drop: float = 0.05,
    sample: bool = False,
    to: str | None = None,
    tagged: bool = True,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    **search: float,
) -> BackTranslated:
    """Makes, filters and mixes synthetic pairs; `dragoman train OUT/recipe.toml` learns from them.

    `reverse` translates from the target language into the source language. `ratio`: at most so many synthetic pairs
    are seen for each real one. `drop`: this share, the least probable, is left out. `sample`: draw the sources at
    random instead of searching for the best, which is more varied. `tagged`: mark the synthetic sources with <bt>.
    """
    directory = Path(out)
    if not 0 <= drop < 1:
        raise UsageError(f"backtranslate: --drop {drop:g}; give a share of at least 0 and below 1")
    if ratio <= 0:
        raise UsageError(f"backtranslate: --ratio {ratio:g}; give a number above 0")
    corpus = real if isinstance(real, CorpusConfig) else CorpusConfig(pairs=str(real))
    base = find_recipe(recipe)  # raises an error now, not after hours; so do the next two checks
    if (pairs := sum(len(columns) > 1 for columns in raw_pairs(corpus))) == 0:
        raise DataError(f"{corpus_name(corpus)}: no pairs in it; give the real pairs that the synthetic ones go with")
    if sample:
        search = {**search, "sampling": True}
    raw = make(reverse, Path(monolingual), directory, to, seed, say, **search)
    lines, kept, dropped = sift(raw, directory / "synthetic.tsv", drop)
    if not kept:
        raise DataError(f"{monolingual}: nothing is left of {lines:,} lines; is {reverse} the other direction?")
    weight = min(1.0, ratio * pairs * corpus.weight / kept)
    path = directory / "recipe.toml"
    synthetic = CorpusConfig(pairs=str(directory / "synthetic.tsv"), weight=weight, tag=SYNTHETIC if tagged else None)
    write_atomically(path, _recipe(base, corpus, synthetic, valid).encode())
    seen = weight * kept / (pairs * corpus.weight)
    result = BackTranslated(path, lines, kept, dropped, pairs, weight, seen)
    write_atomically(directory / "report.json", (json.dumps(result.to_dict(), indent=2) + "\n").encode())
    return result


def make(
    reverse: str | Path,
    monolingual: Path,
    directory: Path,
    to: str | None,
    seed: int,
    say: Callable[[str], None],
    **search: float,
) -> Path:
    """Translates each line back, and writes one line of raw.tsv for it; returns the path of raw.tsv."""
    translator = Translator.load(
        reverse, checkpoint=None, engine="auto", compute_type=None, vocabulary_map=None, to=to, source=None, **search
    )

    def write(translation: Translation) -> str:
        best = translation.candidates[0]
        per_token = best.log_probability / (len(best.tokens) + 1)
        return f"{best.text}\t{translation.source.strip()}\t{per_token:.6f}\n".replace("\r", " ")

    raw, made_by_path = directory / "raw.tsv", directory / "raw.json"
    identity = [*identity_of([Path(reverse)], None), translator.engine.name, translator.tag]
    # What raw.tsv is made from, so that another --drop or --ratio does not translate everything again.
    made_by = {"identity": identity, "text": file_digest(str(monolingual)), "seed": seed, "search": search}
    if raw.exists() and made_by_path.exists() and read_json(made_by_path) == json.loads(json.dumps(made_by)):
        say(f"{raw}: translated before")
        return raw
    with directory_made(directory):
        made_by_path.unlink(missing_ok=True)
        translate_file(translator, monolingual, raw, write, identity=identity, seed=seed, scores=True, say=say)
        write_atomically(made_by_path, (json.dumps(made_by) + "\n").encode())
    return raw


def sift(raw: Path, out: Path, drop: float) -> tuple[int, int, dict[str, int]]:
    """Writes the pairs that may be translations; returns lines read, pairs kept, and pairs dropped by each rule."""
    counts: Counter[str] = Counter()
    scores = sorted(score for source, target, score in _raw(raw) if fault(source, target) is None)
    least = scores[math.floor(drop * len(scores))] if scores else -math.inf
    seen: set[int] = set()
    kept = lines = 0
    with replacing(out) as temporary, temporary.open("wb") as file:
        for source, target, score in _raw(raw):
            lines += 1
            wrong = fault(source, target)
            if wrong is None and score < least:
                wrong = "improbable"
            if wrong is None and hash((source, target)) in seen:
                wrong = "duplicate"
            if wrong is not None:
                counts[wrong] += 1
                continue
            seen.add(hash((source, target)))
            kept += 1
            file.write(f"{source}\t{target}\n".encode())
    return lines, kept, dict(counts.most_common())


def _raw(path: Path) -> Iterator[tuple[str, str, float]]:
    for line in read_lines(path):
        columns = line.split("\t")
        yield columns[0], columns[1] if len(columns) == 3 else "", float(columns[-1]) if len(columns) == 3 else 0.0


def fault(source: str, target: str) -> str | None:
    """Returns why a synthetic pair cannot be a translation; None if it may be one."""
    if not source.strip() or not target.strip():
        return "empty"
    if source.strip().lower() == target.strip().lower():
        return "copy"
    shorter, longer = sorted((len(source), len(target)))
    if longer > SHORT and longer > LONGEST_RATIO * shorter:
        return "length ratio"
    words = source.split()
    for width in (1, 2):
        groups = [tuple(words[i : i + width]) for i in range(len(words) - width + 1)]
        run = 1
        for i in range(width, len(groups)):
            run = run + 1 if groups[i] == groups[i - width] else 1
            if run > MOST_REPEATS * width:
                return "repetition"
    return None


def _recipe(base: Path, real: CorpusConfig, synthetic: CorpusConfig, valid: CorpusConfig | None) -> str:
    def table(corpus: CorpusConfig) -> str:
        values = {name: value for name, value in asdict(corpus).items() if value is not None}
        return (
            "{ "
            + ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
            + " }"
        )

    lines = [
        "# Real and back-translated pairs, by dragoman backtranslate.",
        f"extends = {json.dumps(str(base.resolve()))}",
        "",
        "[data]",
        f"train = [\n  {table(real)},\n  {table(synthetic)},\n]",
        *([f"valid = [{table(valid)}]"] if valid is not None else []),
    ]
    return "\n".join(lines) + "\n"
