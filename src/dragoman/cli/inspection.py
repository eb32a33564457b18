"""`dragoman inspect`. Heavy imports inside, as in the command line that this is part of."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from dragoman.cli.options import (
    AsJson,
    Checkpoint,
    RunPath,
    SearchOptions,
    SourceLanguage,
    TargetLanguage,
    language_asked_for,
    out_option,
    whole,
)
from dragoman.cli.terminal import named_file, say, show
from dragoman.errors import UsageError

if TYPE_CHECKING:
    from dragoman.inspection.inspector import Inspection, Inspector

InspectionFormat = Literal["text", "html", "json", "pharaoh", "png"]
_SUFFIXES: dict[str, InspectionFormat] = {
    ".html": "html", ".htm": "html", ".json": "json", ".jsonl": "json", ".png": "png", ".txt": "text",
    ".pharaoh": "pharaoh", ".align": "pharaoh",
}  # fmt: skip


@dataclass(frozen=True)
class ViewOptions:
    """What is shown."""

    view: Annotated[
        Literal["heads", "lens", "contributions", "contrast"],
        typer.Option(
            help="Show attention, what each layer would have said, what each token comes from, or why one word and "
            "not another."
        ),
    ] = "heads"
    position: Annotated[
        int | None,
        typer.Option(parser=whole(0, 1000), help="Contrast: at this token, from 0 [default: the least probable]."),
    ] = None
    instead: Annotated[str | None, typer.Option(help="Contrast: with these words [default: the next best token].")] = (
        None
    )
    kind: Annotated[Literal["encoder", "decoder", "cross"], typer.Option(help="Which attention text and png show.")] = (
        "cross"
    )
    layer: Annotated[
        int | None,
        typer.Option(parser=whole(0, 1000), help="Show this layer, from 0 [default: the heads that align best]."),
    ] = None
    head: Annotated[
        int | None, typer.Option(parser=whole(0, 1000), help="Show this head, from 0 [default: the mean].")
    ] = None


def inspect(
    run: RunPath,
    view: ViewOptions,
    search: SearchOptions,
    sentence: Annotated[
        str | None, typer.Argument(metavar="SENTENCE", help="Left out: lines of stdin, for json and pharaoh.")
    ] = None,
    translation: Annotated[
        str | None, typer.Option(help="Look into this translation [default: the run's own].")
    ] = None,
    out: Annotated[Path | None, out_option("File to write [default: stdout].")] = None,
    form: Annotated[
        InspectionFormat | None,
        typer.Option("--format", help="What to write [default: by the name of --out, else text, a heat map]."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANGE",
            help="For example cross.0.3:off, cross.0.3:pin@4 or decoder.*:unmask; several times for several.",
        ),
    ] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="Also switch every head off alone, and rank them.")
    ] = False,
    checkpoint: Checkpoint = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Look inside a translation: every head's attention, and what happens without it.

    A heat map in the terminal; with --out page.html one file for a browser, which needs no network. pharaoh has
    word alignments (source-target, from 0), json everything. Lines of stdin may have a translation after a tab.
    """
    if as_json and form not in (None, "json"):
        raise UsageError(f"inspect: --json and --format {form}; leave one out")
    out = named_file(out)
    chosen = "json" if as_json else form or (_form_of(out) if out else "text")
    if sentence is None and chosen not in ("json", "pharaoh"):
        raise UsageError(f"inspect: SENTENCE is missing; only json and pharaoh read lines of stdin, not {chosen}")
    if chosen in ("html", "png") and out is None:
        raise UsageError(f"inspect: --format {chosen} needs --out FILE")
    if view.view == "contrast" and change:
        raise UsageError("inspect: --view contrast is of the unchanged model; leave --change out")
    if view.view != "contrast" and not (view.instead is None and view.position is None):
        raise UsageError("inspect: --position and --instead are for --view contrast; add it")
    if chosen == "pharaoh" and change:
        raise UsageError("inspect: pharaoh has the unchanged model's alignment; leave --change out, or use json")
    from dragoman.files import write_atomically
    from dragoman.inspection.inspector import Inspector

    into = language_asked_for(run, target_language)
    inspector = Inspector.load(run, checkpoint, into, source_language, **search.given())
    changes = change or []
    if chosen in ("html", "png"):
        assert sentence is not None
        content = _drawn(inspector, sentence, translation, changes, chosen, view)
    else:
        given = iter([(sentence, translation)]) if sentence is not None else _lines()
        lines = (
            line for text, said in given for line in _written(inspector, text, said, changes, chosen, effects, view)
        )
        if out is None:
            for line in lines:
                show(line)
            return
        content = "".join(f"{line}\n" for line in lines).encode()
    assert out is not None
    write_atomically(out, content)
    say(f"{out}: written")


def _form_of(out: Path) -> InspectionFormat:
    if out.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"inspect: --out {out}; name it .html, .json, .png, .pharaoh or .txt, or give --format")
    return _SUFFIXES[out.suffix.lower()]


def _lines() -> Iterator[tuple[str, str | None]]:
    from dragoman.data.corpus import read_lines

    if sys.stdin is None:
        raise UsageError("inspect: stdin is closed; give a SENTENCE")
    for line in read_lines(sys.stdin.buffer):
        text, tab, translation = line.partition("\t")
        yield text, translation if tab else None


def _drawn(
    inspector: "Inspector",
    text: str,
    translation: str | None,
    changes: list[str],
    form: InspectionFormat,
    view: ViewOptions,
) -> bytes:
    """The page, or the heat map as a picture."""
    if form == "html":
        from dragoman.inspection.html_page import page_of

        state = {"kind": view.kind, "layer": str(view.layer or 0), "head": str(view.head or 0), "text": text}
        if view.view != "heads":
            state["view"] = view.view
        if view.position is not None:
            state["at"] = str(view.position)
        if view.instead is not None:
            state["instead"] = view.instead
        return page_of(inspector, text, translation, changes, state).encode()
    from dragoman.inspection.heatmaps import as_png, contributions_heatmap, heatmap_of

    if view.view == "contributions":
        return as_png(contributions_heatmap(inspector.contributions(text, translation, changes)))
    if view.view != "heads":
        raise UsageError(f"inspect: a picture of --view {view.view}; png shows heads or contributions, html everything")
    seen = inspector.inspect(text, translation, changes)
    return as_png(heatmap_of(inspector, seen, view.kind, view.layer, view.head))


def _written(
    inspector: "Inspector",
    text: str,
    translation: str | None,
    changes: list[str],
    form: InspectionFormat,
    effects: bool,
    view: ViewOptions,
) -> Iterator[str]:
    if form == "pharaoh" and not text.strip():
        yield ""  # a line stays a line
        return
    seen = inspector.inspect(text, translation, changes)
    match form:
        case "pharaoh":
            yield " ".join(f"{source}-{target}" for target, source in _links(inspector, text, seen))
        case "json":
            yield json.dumps(_everything(inspector, text, seen, effects, view), ensure_ascii=False)
        case "text" if view.view != "heads":
            yield f"{seen.text}\n{seen.translation}\n"
            yield _as_text(inspector, text, seen, changes, view)
        case "text":
            from dragoman.inspection.heatmaps import as_text, heatmap_of

            # First: what cannot be shown is refused before anything is.
            heatmap = heatmap_of(inspector, seen, view.kind, view.layer, view.head)
            yield f"{seen.text}\n{seen.translation}\nlog P {seen.log_probability:.4f}\n"
            if changes:
                outcome = inspector.intervene(text, changes, seen.tokens)
                changed = ", ".join(map(str, seen.changes))
                yield f"changed: {changed}; log P of this translation changes by {outcome.change:+.4f}"
                yield f"the changed model says: {outcome.translation}\n"
            yield as_text(heatmap, shutil.get_terminal_size((100, 24)).columns)
            if effects:
                yield "\nlog P when a head is switched off\n"
                for effect in inspector.effects(text, seen.tokens):
                    yield f"{effect.change:+9.4f}  {effect.kind}.{effect.layer}.{effect.head}"
        case _:
            raise UsageError(f"inspect: --format {form}; allowed: {', '.join(get_args(InspectionFormat))}")


def _as_text(inspector: "Inspector", text: str, seen: "Inspection", changes: list[str], view: ViewOptions) -> str:
    """Another view than heads."""
    from dragoman.inspection.heatmaps import as_text, contributions_heatmap
    from dragoman.inspection.text_tables import contrast_as_text, lens_as_text

    width = shutil.get_terminal_size((100, 24)).columns
    match view.view:
        case "lens":
            return lens_as_text(inspector.lens(text, seen.tokens, changes), width)
        case "contributions":
            return as_text(contributions_heatmap(inspector.contributions(text, seen.tokens, changes)), width)
        case _:
            return contrast_as_text(inspector.contrast(text, view.instead, view.position, seen.tokens))


def _links(inspector: "Inspector", text: str, seen: "Inspection") -> list[tuple[int, int]]:
    return sorted(inspector.explainer.explain(text, translation=seen.tokens).links, key=lambda link: (link[1], link[0]))


def _everything(
    inspector: "Inspector", text: str, seen: "Inspection", effects: bool, view: ViewOptions
) -> dict[str, Any]:
    from dragoman.inspection import to_json

    found: dict[str, Any] = {
        **to_json.describe(inspector, seen),
        "links": _links(inspector, text, seen),
        "attention": {
            f"{site.kind}.{site.layer}": [
                [[round(weight, 6) for weight in row] for row in one] for one in weights.tolist()
            ]
            for site, weights in seen.weights.items()
        },
        "lens": to_json.describe_lens(inspector.lens(text, seen.tokens, seen.changes))["positions"],
        "contributions": to_json.describe_contributions(inspector.contributions(text, seen.tokens, seen.changes)),
    }
    if view.view == "contrast":
        contrast = inspector.contrast(text, view.instead, view.position, seen.tokens)
        found["contrast"] = to_json.describe_contrast(contrast)
    if seen.changes:
        found["outcome"] = to_json.describe_outcome(inspector.intervene(text, seen.changes, seen.tokens))
    if effects:
        found["effects"] = [vars(effect) for effect in inspector.effects(text, seen.tokens)]
    return found
