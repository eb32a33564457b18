"""Teach a trained run new text, and measure what it learned and what it forgot.

The vocabulary is the old run's and so are the weights to begin with; pairs of the old training are mixed in, so that
what was known stays known. Two sets of pairs that neither training has seen are translated before and after:
one of the new domain, one of the old. They choose nothing: the weights are chosen by two other sets. The rest is
`train()`: a stopped run goes on with the same command.

In the new run's directory, finetune/ holds what it was made from:

plan.json               which weights, which text, which settings: another plan is another run
new.source, new.target  the new pairs to learn from
old-0.source, ...       what the old run was trained on, corpus by corpus
new-valid.source, ...   what the weights are chosen by, of the new domain   old-valid.source, ...  of the old
valid.source, ...       the pairs of these two by turns
new-test.source, ...    what is measured with, of the new domain            old-test.source, ...   of the old
result.json             the scores before and after
"""

import dataclasses
import heapq
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig, RunConfig, with_overrides
from dragoman.data.cleaning import check_corpora
from dragoman.data.corpus import Corpus, SentencePair, file_digest, read_lines
from dragoman.data.dataset import Dataset, prepared_directory, read_text
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.errors import DataError, UsageError
from dragoman.evaluation import metrics
from dragoman.files import read_json, replacing, sha256, write_atomically
from dragoman.model.checkpoint import begin_with, load_model, weights_of
from dragoman.run_directory import RunDirectory, require_task
from dragoman.training.distributed import started_by_torchrun
from dragoman.training.loop import train
from dragoman.training.schedule import rate_at
from dragoman.translation.translator import Translator

RATE = 0.2  # of the old training's highest
WARMUP_STEPS = 50  # Adam knows nothing of these weights yet
EPOCHS = 8  # over the mixed text, where no number of steps is given
FEWEST_STEPS, MOST_STEPS = 100, 20_000
VALIDATIONS = 5
MEASURED = 1000  # pairs at most in each of the two measures, and in each of the two sets to choose by
FEWEST_DIVIDED = 100  # pairs of old validation text: of fewer, neither half would tell a difference
CHUNK = 10_000  # pairs decoded at a time
FORMAT = 2  # of plan.json; raised when a fine-tuning begun before can no longer go on


@dataclass(frozen=True)
class Text:
    """What there is to learn from and to measure with: pairs that the one has, the other has not."""

    train: CorpusConfig
    train_pairs: int
    train_tokens: int
    left_out: int  # new pairs that share a side with one that is held out
    new_test: CorpusConfig
    old_test: CorpusConfig | None
    old: tuple[tuple[CorpusConfig, int], ...]  # with the weight it had, and its number of pairs
    caveats: tuple[str, ...]  # why the measures may say too much


@dataclass(frozen=True)
class FineTuned:
    """A run before and after, on both domains. `old` is None where the old run left no text to measure with."""

    run: Path
    new: metrics.Comparison
    old: metrics.Comparison | None
    caveats: tuple[str, ...]  # why these figures may say too much; mostly none

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run),
            "new": self.new.to_dict(),
            "old": None if self.old is None else self.old.to_dict(),
            "caveats": list(self.caveats),
        }

    def lines(self) -> list[str]:
        """A table for the terminal."""
        rows = [("domain", "metric", "before", "after", "change", "p", "")]
        for domain, found in (("new", self.new), ("old", self.old)):
            if found is None:
                rows.append((domain, "not measured: the old run left no validation text", "", "", "", "", ""))
                continue
            for metric in (found.bleu, found.chrf):
                verdict = "significant" if metric.significant else "no significant difference"
                figures = (f"{metric.a:.2f}", f"{metric.b:.2f}", f"{metric.b - metric.a:+.2f}", f"{metric.p_value:.4f}")
                rows.append((domain, metric.label, *figures, verdict))
        widths = [max(len(row[column]) for row in rows if row[2]) for column in range(7)]
        aligned = ["  ".join(_aligned(cell, widths[i], i) for i, cell in enumerate(row)).rstrip() for row in rows]
        counts = [f"{found.sentences} {name}" for name, found in (("new", self.new), ("old", self.old)) if found]
        method = f"paired bootstrap, {self.new.samples} resamples; sentences: {', '.join(counts)}"
        return [*aligned, method, *(f"but {caveat}" for caveat in self.caveats)]


def _aligned(cell: str, width: int, column: int) -> str:
    return f"{cell:>{width}}" if 2 <= column <= 5 else f"{cell:<{width}}"


def finetune(
    run: str | Path,
    pairs: str | Path | CorpusConfig,
    out: str | Path,
    *,
    valid: str | Path | CorpusConfig | None = None,
    old: float = 1.0,
    overrides: Sequence[tuple[str, Any, str]] = (),
    language: str | None = None,
    again: str = "the same call",
    say: Callable[[str], None] = lambda _: None,
) -> FineTuned:
    """Train `run` further on new pairs, into `out`; or go on with it, if it was stopped.

    `old`: so many pairs of the old training for each new one (never more than the old training had); 0: none, and the
    weights are chosen by the new domain alone.
    `valid`: pairs to measure the new domain with; else up to 1,000, a tenth at most, are held out. As many are held out
    in any case to choose the weights by.
    """
    if started_by_torchrun():
        raise UsageError("finetune: does not run under torchrun; ask for processes with --set train.processes=N")
    if old < 0:
        raise UsageError(f"finetune: {old:g} old pairs for a new one; ask for 0 or more")
    before, after = RunDirectory.open(run), RunDirectory(out)
    require_task(before, "translate")
    if before.path.resolve() == after.path.resolve():
        raise UsageError(f"finetune: {out} is the run to begin with; give another --out")
    new = corpus_of(pairs)
    given = None if valid is None else corpus_of(valid)
    old_config = before.read_config()
    tokenizer = load_tokenizer(before.path)
    if tokenizer.languages and new.tag is None:
        known = ", ".join(tokenizer.languages)
        raise UsageError(
            f"finetune: {run} translates into {known}; say which the new pairs are in: --target-language, or a tag"
        )
    text = _planned_text(before, after, new, given, old, tokenizer, say)
    config = with_overrides(fine_tuning_config(old_config, text, old, after), overrides)
    begin_with(weights_of(load_model(before)), before, after, config, tokenizer)
    train(config, after, again)
    result = _measure(before, after, text, language, say)
    write_atomically(after.path / "finetune" / "result.json", _json(result.to_dict()))
    return result


def corpus_of(text: str | Path | CorpusConfig) -> CorpusConfig:
    return text if isinstance(text, CorpusConfig) else CorpusConfig(pairs=str(text))


def fine_tuning_config(before: RunConfig, text: Text, old: float, after: RunDirectory) -> RunConfig:
    """The old run's configuration, with the mixed text, a lower rate and a budget for so much text."""
    known = sum(corpus.weight * pairs for corpus, pairs in text.old)
    share = min(1.0, old * text.train_pairs / known) if known else 0.0
    mixed = tuple(replace(corpus, weight=corpus.weight * share) for corpus, _ in text.old if share)
    seen = text.train_tokens * (1 + share * known / text.train_pairs)  # about as long, the old ones
    steps = round(EPOCHS * seen / before.train.batch_tokens)
    steps = min(MOST_STEPS, max(FEWEST_STEPS, steps))
    valid = _corpus(after.path / "finetune", "valid")
    peak = max(rate_at(before, step, 0.0) for step in (1, before.train.warmup_steps))
    return replace(
        before,
        data=replace(
            before.data, train=(text.train, *mixed), valid=(valid,), tokenizer=str(after.tokenizer_path), hold_out=0
        ),
        train=replace(
            before.train,
            steps=steps,
            minutes=None,
            schedule="linear",
            warmup_steps=WARMUP_STEPS,
            peak_rate=RATE * peak,
            valid_steps=max(1, steps // VALIDATIONS),
            patience=0,
        ),
    )


def _planned_text(
    before: RunDirectory,
    after: RunDirectory,
    new: CorpusConfig,
    given: CorpusConfig | None,
    old: float,
    tokenizer: Tokenizer,
    say: Callable[[str], None],
) -> Text:
    """The text in finetune/, written once: a run that goes on finds it there."""
    directory = after.path / "finetune"
    plan_path = directory / "plan.json"

    def digests(corpus: CorpusConfig | None) -> list[str]:
        files = () if corpus is None else (corpus.pairs, corpus.source, corpus.target)
        return [file_digest(file) for file in files if file is not None]

    made_from = {
        "weights": sha256(before.model_path),
        "tokenizer": tokenizer.digest,
        "new": [*digests(new), new.tag],
        "valid": digests(given),
        "with_old": old > 0,
    }
    if plan_path.exists():
        plan = read_json(plan_path)
        if plan.get("format") != FORMAT:
            raise DataError(
                f"{plan_path}: format {plan.get('format', 1)}, of another version of dragoman (this one writes format "
                f"{FORMAT}); give a new --out, or go on with that version"
            )
        for name, value in made_from.items():
            if plan["made_from"].get(name) != value:
                raise DataError(f"{after.path}: was begun with other {name.replace('_', ' ')}; give a new --out")
        return _text_from(plan["text"])
    # What is left of one that was killed here counts for nothing; `replacing` removes it.
    unfinished = {".lock", f".{directory.name}.partial"}
    if after.path.exists() and any(path.name not in unfinished for path in after.path.iterdir()):
        raise DataError(f"{after.path}: has files, and none of a fine-tuning; give a new --out")
    with after.lock(), replacing(directory) as temporary:  # locked: it may be of one that is still at work
        temporary.mkdir()
        text = _write_text(before, new, given, old > 0, tokenizer, temporary, directory, say)
        plan = {"format": FORMAT, "made_from": made_from, "text": dataclasses.asdict(text)}
        (temporary / "plan.json").write_bytes(_json(plan))
    return text


def _text_from(values: dict[str, Any]) -> Text:
    def corpus(found: dict[str, Any] | None) -> CorpusConfig | None:
        return None if found is None else CorpusConfig(**found)

    configs = {name: corpus(values[name]) for name in ("train", "new_test", "old_test")}
    old = tuple((CorpusConfig(**found), int(pairs)) for found, pairs in values["old"])
    return Text(**{**values, **configs, "old": old, "caveats": tuple(values["caveats"])})


def _write_text(
    before: RunDirectory,
    new: CorpusConfig,
    given: CorpusConfig | None,
    with_old: bool,
    tokenizer: Tokenizer,
    written: Path,
    final: Path,
    say: Callable[[str], None],
) -> Text:
    config = before.read_config()
    old_train, old_held_out, caveats = _old_text(before, config, tokenizer, with_old, say)
    old_valid, old_test = _divided(old_held_out)
    if not with_old:  # who mixes none in wants the new domain: the old sentences say what that cost, and choose nothing
        old_valid = []
    say(f"reading and cleaning {new.pairs or new.source}")
    rules = replace(config.data, train=(new,), valid=() if given is None else (given,), hold_out=0)
    checked = check_corpora(rules, config.train.seed)
    known = itertools.chain(old_held_out, itertools.chain.from_iterable(pairs() for pairs, _ in old_train))
    if given is not None:
        new_test = list(itertools.islice(_pairs(checked.valid), MEASURED))
        new_valid = _hold_out(checked.train, itertools.chain(new_test, known), 1, config.train.seed)
    else:
        held_out = _hold_out(checked.train, known, 2, config.train.seed)
        new_valid, new_test = held_out[1::2], held_out[::2]
    if not new_test:
        raise DataError(
            f"{new.pairs or new.source}: too few pairs that the old training has not seen to measure with; "
            f"give --valid-pairs"
        )
    new_valid = new_valid or new_test
    measured = _sides(new_test)
    old_valid = [pair for pair in old_valid if measured.isdisjoint(pair)]  # pairs that are given may be among them
    chosen_by = _sides(new_valid, old_valid)
    for domain, test in (("new", new_test), ("old", old_test)):
        if not chosen_by.isdisjoint(_sides(test)):
            caveats.append(
                f"the {domain} sentences also chose the weights, as too few others could be held out: "
                f"what is found on them may be a little too good"
            )
    # A pair that shares a side with one that is held out is not learned from: that would be learning the test.
    not_learned = _sides(new_valid, new_test, old_held_out)
    counts = {"all": 0, "kept": 0, "tokens": 0}

    def to_learn() -> Iterator[SentencePair]:
        for chunk in _chunks(_pairs(checked.train)):
            kept = [pair for pair in chunk if not_learned.isdisjoint(pair)]
            counts["all"] += len(chunk)
            counts["kept"] += len(kept)
            counts["tokens"] += sum(map(len, tokenizer.encode_batch([target for _, target in kept])))
            yield from kept

    _write_pairs(written, "new", to_learn())
    if not counts["kept"]:
        raise DataError(
            f"{new.pairs or new.source}: no pair is left to learn from once {len({*new_valid, *new_test})} are held out"
        )
    old = []
    for number, (pairs, weight) in enumerate(old_train if with_old else []):
        size = _write_pairs(written, f"old-{number}", (pair for pair in pairs() if not_learned.isdisjoint(pair)))
        if size:
            old.append((replace(_corpus(final, f"old-{number}"), weight=weight), size))
    _write_pairs(written, "new-valid", new_valid)
    _write_pairs(written, "old-valid", old_valid)
    _write_pairs(written, "new-test", new_test)
    _write_pairs(written, "old-test", old_test)
    by_turns = itertools.chain.from_iterable(itertools.zip_longest(new_valid, old_valid))
    _write_pairs(written, "valid", (pair for pair in by_turns if pair is not None))
    say(
        f"{counts['kept']:,} new pairs to learn from, {sum(size for _, size in old):,} old ones to mix in; "
        f"weights chosen by {len(new_valid):,} new and {len(old_valid):,} old pairs, "
        f"measured with {len(new_test):,} new and {len(old_test):,} old ones"
    )
    return Text(
        train=_corpus(final, "new"),
        train_pairs=counts["kept"],
        train_tokens=counts["tokens"],
        left_out=counts["all"] - counts["kept"],
        new_test=_corpus(final, "new-test"),
        old_test=_corpus(final, "old-test") if old_test else None,
        old=tuple(old),
        caveats=tuple(caveats),
    )


OldTrain = list[tuple[Callable[[], Iterator[SentencePair]], float]]


def _old_text(
    before: RunDirectory,
    config: RunConfig,
    tokenizer: Tokenizer,
    with_old: bool,
    say: Callable[[str], None],
) -> tuple[OldTrain, list[SentencePair], list[str]]:
    """What the old run was trained on, corpus by corpus with its weight, what it was validated with, and what could not
    be found out.

    From the ids in its own directory, which are all of that and no more, wherever the files have gone; a run without
    them is read from the files again. Without old text to mix in, it can do without the files, too.
    """
    directory = prepared_directory(before.path)
    if directory is None:
        say(f"{before.path} keeps no data of its own: reading the text it was trained on")
        try:
            checked = check_corpora(config.data, config.train.seed)
        except DataError as error:
            if with_old:
                raise DataError(f"{error}; or fine-tune without the old text: --old 0") from None
            return [], [], [f"the old run may have learned sentences that are measured with: {error}"]
        held_out = list(itertools.islice(_pairs(checked.valid), 2 * MEASURED))
        return [(corpus.pairs, corpus.config.weight) for corpus in checked.train], held_out, []
    weights = [corpus.weight for corpus in config.data.train]
    data = Dataset.open(directory / "train", weights)

    def decoded(number: int) -> Callable[[], Iterator[SentencePair]]:
        return lambda: _decoded(data, number, tokenizer)

    train_text = [(decoded(number), weight) for number, weight in enumerate(weights)]
    return train_text, read_text(directory)[: 2 * MEASURED], []


def _divided(pairs: list[SentencePair]) -> tuple[list[SentencePair], list[SentencePair]]:
    """Pairs to choose by and pairs to measure with, which share no side; of too few, all of them for both."""
    if len(pairs) < FEWEST_DIVIDED:
        return pairs, pairs
    # Two at a time: where a run translates both ways, one line of text is two pairs in a row.
    test = [pair for number, pair in enumerate(pairs) if number // 2 % 2 == 0]
    measured = _sides(test)
    return [pair for pair in pairs if measured.isdisjoint(pair)], test


def _decoded(data: Dataset, corpus: int, tokenizer: Tokenizer) -> Iterator[SentencePair]:
    rows = (data.corpus == corpus).nonzero()[0]
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        sources = tokenizer.decode_batch(data.source(int(row)).tolist() for row in chunk)
        yield from zip(sources, tokenizer.decode_batch(data.target(int(row)).tolist() for row in chunk), strict=True)


def _hold_out(corpora: Sequence[Corpus], known: Iterable[SentencePair], sets: int, seed: int) -> list[SentencePair]:
    """Pairs for so many sets, those with the smallest seeded hashes. No two share a side, and none has one that is
    known: what the old run was trained on would be measured by heart, before and after."""
    salt = (seed % 2**64).to_bytes(8, "little")
    wanted = sets * min(MEASURED, sum(map(len, corpora)) // 10)

    def drawn(pair: SentencePair) -> tuple[bytes, SentencePair]:
        return blake2b(pair[0].encode(), digest_size=8, salt=salt).digest(), pair

    # More than needed, as some will be known.
    candidates = [pair for _, pair in heapq.nsmallest(4 * wanted, map(drawn, _pairs(corpora)))]
    sides = _sides(candidates)
    taken = {side for pair in known for side in pair if side in sides}
    chosen: list[SentencePair] = []
    for pair in candidates:
        if len(chosen) < wanted and taken.isdisjoint(pair):
            chosen.append(pair)
            taken.update(pair)
    return chosen


def _sides(*sets: Iterable[SentencePair]) -> set[str]:
    return {side for pairs in sets for pair in pairs for side in pair}


def _measure(
    before: RunDirectory, after: RunDirectory, text: Text, language: str | None, say: Callable[[str], None]
) -> FineTuned:
    translators = [Translator.load(run.path, to="") for run in (before, after)]  # the text has its tags

    def compared(name: str, corpus: CorpusConfig) -> metrics.Comparison:
        say(f"translating the {name} domain before and after")
        assert corpus.source is not None
        assert corpus.target is not None
        sources, references = list(read_lines(corpus.source)), [[line] for line in read_lines(corpus.target)]
        outputs = [translator.translate(sources) for translator in translators]
        return metrics.compare(outputs[0], outputs[1], references, language)

    new = compared("new", text.new_test)
    old = None if text.old_test is None else compared("old", text.old_test)
    return FineTuned(after.path, new, old, text.caveats)


def _pairs(corpora: Sequence[Corpus]) -> Iterator[SentencePair]:
    return itertools.chain.from_iterable(corpus.pairs() for corpus in corpora)


def _chunks(pairs: Iterator[SentencePair]) -> Iterator[list[SentencePair]]:
    while chunk := list(itertools.islice(pairs, CHUNK)):
        yield chunk


def _corpus(directory: Path, name: str) -> CorpusConfig:
    return CorpusConfig(source=str(directory / f"{name}.source"), target=str(directory / f"{name}.target"))


def _write_pairs(directory: Path, name: str, pairs: Iterable[SentencePair]) -> int:
    """As two files: a side may hold a tab."""
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context((directory / f"{name}.{side}").open("wb")) for side in ("source", "target")]
        for pair in pairs:
            count += 1
            for file, side in zip(files, pair, strict=True):
                file.write(side.encode() + b"\n")
    return count


def _json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
