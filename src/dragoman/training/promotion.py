"""Fine-tunes a copy of a run on user corrections, and promotes the copy only if it is measurably better.

Some corrections are held out. The new model is promoted if it is significantly better on those, by paired bootstrap,
and not significantly worse on the validation text of the old one, or on another test set that is given.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig
from dragoman.errors import DataError
from dragoman.evaluation import metrics
from dragoman.files import read_json, replacing, sha256, write_atomically
from dragoman.model.checkpoint import promote as use_weights
from dragoman.model.checkpoint import read_tensors
from dragoman.progress import discard
from dragoman.run_directory import RunDirectory
from dragoman.training.finetune import FineTuned, finetune
from dragoman.translation.translation_memory import Correction, TranslationMemory
from dragoman.translation.translator import Translator

HELD_OUT = 0.3  # share of the corrections; so large because a difference must show on few sentences
FEWEST = 20  # corrections, those to learn from and those to measure with together
BEFORE = "before-corrections.safetensors"  # the weights that a promotion replaced


def of_pair(memory: TranslationMemory, pair: str) -> list[Correction]:
    """Returns the corrections of a language pair; raises a DataError if there are none."""
    found = [correction for correction in memory if correction.pair == pair]
    if not found:
        others = sorted({correction.pair for correction in memory})
        raise DataError(f"no corrections for {pair}; there are some for: {', '.join(others) or 'no language pair'}")
    return found


def train_on(
    memory: TranslationMemory,
    pair: str,
    run: Path,
    out: Path,
    *,
    old: float = 1.0,
    overrides: Sequence[tuple[str, Any, str]] = (),
    language: str | None = None,
    again: str = "the same call",
    say: Callable[[str], None] = lambda _: None,
) -> FineTuned:
    """Fine-tunes a copy of the run on the corrections. A hash of the source decides which are held out, so they are the
    same each time."""
    text = out.with_name(f"{out.name}.corrections")
    if not text.exists():  # a stopped training goes on with the corrections that it began with
        _write(of_pair(memory, pair), text)
    learned, measured = (
        CorpusConfig(source=str(text / f"{name}.source"), target=str(text / f"{name}.target"))
        for name in ("learned", "measured")
    )
    return finetune(
        run,
        learned,
        out,
        valid=measured,
        old=old,
        overrides=overrides,
        language=language,
        source_language=None if language is None else pair.removesuffix(f"-{language}"),
        again=again,
        say=say,
    )


def _write(corrections: Sequence[Correction], directory: Path) -> None:
    if len(corrections) < FEWEST:
        raise DataError(
            f"{len(corrections)} corrections; at least {FEWEST} are needed, some to learn from and some to measure with"
        )
    drawn = sorted(corrections, key=lambda correction: blake2b(correction.source.encode(), digest_size=8).digest())
    cut = round(HELD_OUT * len(drawn))
    with replacing(directory) as temporary:
        temporary.mkdir()
        for name, part in (("measured", drawn[:cut]), ("learned", drawn[cut:])):
            for side in ("source", "target"):
                lines = "".join(f"{getattr(correction, side)}\n" for correction in part)
                (temporary / f"{name}.{side}").write_bytes(lines.encode())


@dataclass(frozen=True)
class PromotionDecision:
    """Whether the new model may take the old one's place, and why."""

    promoted: bool
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"promoted": self.promoted, "reasons": list(self.reasons)}


def promote(
    run: Path,
    new: Path,
    test: tuple[Sequence[str], metrics.References] | None = None,
    language: str | None = None,
) -> PromotionDecision:
    """Replaces the weights of `run` by those of `new` if the new run is better; the old weights are kept beside them.

    `test`: sources and references to compare the two runs on, instead of the old run's validation text.
    """
    before, after = RunDirectory.open(run), RunDirectory.open(new)
    if not after.finetune_result_path.is_file():
        raise DataError(f"{new}: no finished training on corrections; run `dragoman corrections train` first")
    if read_json(after.finetune_plan_path)["made_from"]["weights"] != sha256(before.model_path):
        raise DataError(f"{new}: was not made from the weights that {run} has now; train on the corrections again")
    result = read_json(after.finetune_result_path)
    old_text = result["old"]
    if test is not None:
        outputs = [Translator.load(tested.path).translate(list(test[0]), warn=discard) for tested in (before, after)]
        old_text = metrics.compare(outputs[0], outputs[1], test[1], language).to_dict()
    decision = judge(result["new"], old_text)
    if decision.promoted:
        with replacing(before.path / BEFORE) as aside:
            shutil.copyfile(before.model_path, aside)
        use_weights(before, read_tensors(after.model_path), "corrections", [])
        card = {**read_json(before.model_card_path), "corrections": {"new": result["new"], "old": old_text}}
        write_atomically(before.model_card_path, (json.dumps(card, indent=2) + "\n").encode())
    return decision


def judge(new: dict[str, Any], old: dict[str, Any] | None) -> PromotionDecision:
    """Decides on a promotion. `new`, `old`: comparisons on new and old text, as `evaluation.metrics.Comparison.to_dict`
    gives them, with A before and B after."""
    chrf = new["chrf"]
    better = chrf["significant"] and chrf["b"] > chrf["a"]
    reasons = [f"corrections: {_told(chrf)}, {'significantly better' if better else 'not significantly better'}"]
    if old is None:
        return PromotionDecision(False, (*reasons, "old text: not measured; give a test with --source and --reference"))
    worse = [old[name] for name in ("bleu", "chrf") if old[name]["significant"] and old[name]["b"] < old[name]["a"]]
    finding = "significantly worse" if worse else "not significantly worse"
    return PromotionDecision(
        better and not worse, (*reasons, f"old text: {_told((worse or [old['chrf']])[0])}, {finding}")
    )


def _told(metric: dict[str, Any]) -> str:
    return f"{metric['label']} {metric['a']:.2f} before, {metric['b']:.2f} after, p = {metric['p_value']:.4f}"
