"""Makes an old domain for a run that left no text of its own: general sentences, translated by the run itself.

A model that goes on learning its own translations stays near what it was (self-distillation). In the new run's
directory, general/ holds the sentences that were drawn (chosen.txt) and their translations (raw.tsv); a stopped
translation goes on.
"""

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

from dragoman.data.corpus import SentencePair, file_digest, read_lines
from dragoman.errors import DataError
from dragoman.files import read_json, write_atomically
from dragoman.run_directory import RunDirectory
from dragoman.training.backtranslate import fault
from dragoman.training.finetune_languages import load_for_tagged
from dragoman.translation.file import identity_of, translate_file
from dragoman.translation.result import Translation

GENERAL = "general"  # the directory
FEWEST = 10  # pairs that are left, so that some can be learned and some held out


def own_translations(
    run: RunDirectory,
    general: Path,
    directory: Path,
    wanted: int,
    tag: str | None,
    languages: tuple[str, str] | None,
    seed: int,
    say: Callable[[str], None],
) -> list[SentencePair]:
    """Returns up to `wanted` sentences of `general`, drawn at random, each with the run's own translation of it.
    Translations with a defect are left out and counted. `tag`: put before every sentence;
    `languages`: source and target, of a model that has tokens for them."""
    directory.mkdir(exist_ok=True)
    chosen, raw, made_by_path = (directory / name for name in ("chosen.txt", "raw.tsv", "raw.json"))
    made_by = {
        "identity": [*map(str, identity_of([run.path], None))],
        "text": file_digest(str(general)),
        "drawn": [wanted, tag, seed, *(languages or ())],
    }
    if not raw.exists() or not made_by_path.exists() or read_json(made_by_path) != made_by:
        made_by_path.unlink(missing_ok=True)
        lines = "".join(f"{sentence}\n" for sentence in _drawn(general, wanted, tag, seed))
        write_atomically(chosen, lines.encode())
        translator = load_for_tagged(run, languages)
        identity = [*identity_of([run.path], None), translator.engine.name]
        say(f"{run.path} translates {lines.count(chr(10)):,} sentences of {general} for the old domain")
        translate_file(translator, chosen, raw, _line, identity=identity, scores=False, say=say)
        write_atomically(made_by_path, json.dumps(made_by).encode())
    pairs, dropped = sound_pairs(raw)
    for reason, count in dropped.most_common():
        say(f"  left out {count:,}: {reason}")
    if len(pairs) < FEWEST:
        raise DataError(
            f"{general}: {len(pairs)} sentences are left with a sound translation, at least {FEWEST} are needed; give "
            f"more text in the source language, one sentence a line"
        )
    return pairs


def _drawn(general: Path, wanted: int, tag: str | None, seed: int) -> list[str]:
    """Draws sentences, each once: those with the smallest seeded hashes, in the order of these."""
    salt = (seed % 2**64).to_bytes(8, "little")

    def hashed() -> Iterator[tuple[bytes, str]]:
        for line in read_lines(general):
            if sentence := " ".join(line.split()):
                yield blake2b(sentence.encode(), digest_size=8, salt=salt).digest(), sentence

    # Twice as many, as equal lines are drawn together.
    smallest = dict.fromkeys(sentence for _, sentence in heapq.nsmallest(2 * wanted, hashed()))
    return [sentence if tag is None else f"{tag} {sentence}" for sentence in list(smallest)[:wanted]]


def _line(translation: Translation) -> str:
    text = " ".join(translation.text.split())
    return f"{translation.source.strip()}\t{text}\t{' '.join(translation.defects)}\n"


def sound_pairs(raw: Path) -> tuple[list[SentencePair], Counter[str]]:
    """Returns the pairs that may be translations, and how many are not, by reason."""
    pairs, dropped = [], Counter[str]()
    for line in read_lines(raw):
        source, target, defects = line.split("\t")
        reason = defects.split()[0] if defects else fault(target, source)
        if reason is None:
            pairs.append((source, target))
        else:
            dropped[reason] += 1
    return pairs, dropped
