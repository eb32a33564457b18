"""Fine-tunes a run on new text, and measures what it learned and what it forgot.

It starts from the vocabulary and the weights of the old run. Pairs of the old training are mixed in, so that the model
forgets less; of a run that left no text, its own translations of general sentences. Two sets of pairs that neither
training has seen are translated before and after: one of the new domain, one of the old. They only measure; two other
sets choose the weights. The rest is `train()`: the same command goes on with a stopped run.

In the new run's directory, finetune/ holds what it was made from:

plan.json               which weights, which text, which settings: another plan is another run
new.source, new.target  the new pairs to learn from
old-0.source, ...       what the old run was trained on, corpus by corpus
new-valid.source, ...   what the weights are chosen by, of the new domain   old-valid.source, ...  of the old
valid.source, ...       the pairs of these two by turns
new-test.source, ...    what is measured with, of the new domain            old-test.source, ...   of the old
result.json             the scores before and after

and general/ what the run translated itself, if it was given general text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig
from dragoman.errors import UsageError
from dragoman.evaluation import metrics
from dragoman.files import write_atomically
from dragoman.model.checkpoint import begin_with, load_model, weights_of
from dragoman.run_directory import RunDirectory, require_task
from dragoman.training.distributed import started_by_torchrun
from dragoman.training.finetune_languages import in_languages, name_languages, token_languages
from dragoman.training.finetune_scores import Domain, compare_domains
from dragoman.training.finetune_settings import fine_tuning_config
from dragoman.training.finetune_text import TextAsked, as_json, planned_text
from dragoman.training.loop import train


@dataclass(frozen=True)
class FineTuned:
    """The scores of a run before and after fine-tuning, on both domains. `old` is None if there is no text of the old
    domain to measure with."""

    run: Path
    new: metrics.Comparison
    old: metrics.Comparison | None
    caveats: tuple[str, ...]  # why these scores may be too good; usually none
    old_is_agreement: bool = False  # the old domain's references are the run's own translations, before

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run),
            "new": self.new.to_dict(),
            "old": None if self.old is None else self.old.to_dict(),
            "old_is_agreement": self.old_is_agreement,
            "caveats": list(self.caveats),
        }

    def lines(self) -> list[str]:
        """Returns a table for the terminal."""
        rows = [("domain", "metric", "before", "after", "change", "p", "")]
        for domain, found in (("new", self.new), ("old", self.old)):
            if found is None:
                rows.append(
                    (
                        domain,
                        "not measured: the run left no text to validate with; --general FILE gives it some",
                        "",
                        "",
                        "",
                        "",
                        "",
                    )
                )
                continue
            for metric in (found.bleu, found.chrf):
                verdict = "significant" if metric.significant else "no significant difference"
                figures = (f"{metric.a:.2f}", f"{metric.b:.2f}", f"{metric.b - metric.a:+.2f}", f"{metric.p_value:.4f}")
                rows.append((domain, metric.label, *figures, verdict))
        widths = [max(len(row[column]) for row in rows if row[2]) for column in range(7)]
        aligned = ["  ".join(_aligned(cell, widths[i], i) for i, cell in enumerate(row)).rstrip() for row in rows]
        counts = [f"{found.sentences} {name}" for name, found in (("new", self.new), ("old", self.old)) if found]
        method = f"paired bootstrap, {self.new.samples} resamples; sentences: {', '.join(counts)}"
        agreement = (
            ["old: agreement with what the run itself said before; not quality"] if self.old_is_agreement else []
        )
        return [*aligned, method, *agreement, *(f"but {caveat}" for caveat in self.caveats)]


def _aligned(cell: str, width: int, column: int) -> str:
    return f"{cell:>{width}}" if 2 <= column <= 5 else f"{cell:<{width}}"


def finetune(
    run: str | Path,
    pairs: str | Path | CorpusConfig,
    out: str | Path,
    *,
    valid: str | Path | CorpusConfig | None = None,
    old: float = 1.0,
    general: str | Path | None = None,
    overrides: Sequence[tuple[str, Any, str]] = (),
    language: str | None = None,
    source_language: str | None = None,
    again: str = "the same call",
    say: Callable[[str], None] = lambda _: None,
) -> FineTuned:
    """Trains `run` further on new pairs, into `out`; or goes on with that, if it was stopped.

    `old`: how many pairs of the old training to mix in for each new pair (at most all of them); with 0, only the new
    domain chooses the weights.
    `general`: sentences of the old domain in the source language, one a line, for a run that left no text: its own
    translations of them are the old pairs.
    `valid`: pairs to measure the new domain with; without it, up to 1,000 pairs, at most a tenth, are held out. In any
    case as many are held out to choose the weights.
    `language`, `source_language`: of the targets and of the sources; a run of several languages is asked for them.
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
    new, given, tokenizer = in_languages(before, new, given, source_language, language)
    languages = token_languages(tokenizer)
    asked = TextAsked(new, given, old, None if general is None else Path(general), languages)
    text = planned_text(before, after, asked, tokenizer, say)
    config = fine_tuning_config(old_config, text, old, after, overrides)
    begin_with(weights_of(load_model(before)), before, after, config, tokenizer)
    name_languages(before, after, languages)
    train(config, after, again)
    domains = {"new": Domain.read(text.new_test)} | (
        {} if text.old_test is None else {"old": Domain.read(text.old_test)}
    )
    found = compare_domains(before, after, domains, languages, language, say)
    result = FineTuned(after.path, found["new"], found.get("old"), text.caveats, text.old_is_agreement)
    write_atomically(after.finetune_result_path, as_json(result.to_dict()))
    return result


def corpus_of(text: str | Path | CorpusConfig) -> CorpusConfig:
    return text if isinstance(text, CorpusConfig) else CorpusConfig(pairs=str(text))
