"""Writes the Inside view of one sentence as a single HTML file that needs no network: code and numbers of the page."""

import base64
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.errors import UsageError
from dragoman.inspection.contrast import Contrast
from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.inspection.interventions import Change
from dragoman.inspection.to_json import (
    describe,
    describe_contrast,
    describe_lens,
    describe_outcome,
    pack_contributions,
)
from dragoman.inspection.uint16_codec import pack
from dragoman.web import WEB

_IMPORT = re.compile(r'(\bfrom\s+|\bimport\s+)"(\.{1,2}/[^"]+)"')


def page_of(
    inspector: Inspector,
    text: str,
    translation: str | Sequence[str] | None = None,
    changes: Sequence[Change | str] = (),
    state: Mapping[str, str] | None = None,
) -> str:
    """The file's content, with everything that the page can show: the attention and the measured effect of every head,
    the logit lens, contributions, and one contrast. `state` is what the page would have in its address bar:
    {"view": "contrast", "at": "3", "instead": "chats"}."""
    shown = dict(state or {})
    seen = inspector.inspect(text, translation, changes)
    outcome = inspector.intervene(text, changes, seen.tokens) if changes else None
    saved = {
        "state": shown,
        "seen": {"sentences": [seen.text], "sentence": 0, **describe(inspector, seen)},
        "outcome": describe_outcome(outcome) if outcome else None,
        "effects": [vars(effect) for effect in inspector.effects(text, seen.tokens)],
        "attention": {
            f"{site.kind}.{site.layer}": base64.b64encode(pack(weights, 0.0, 1.0)).decode()
            for site, weights in seen.weights.items()
        },
        "lens": describe_lens(inspector.lens(text, seen.tokens, changes)),
        "contributions": base64.b64encode(
            pack_contributions(inspector.contributions(text, seen.tokens, changes))
        ).decode(),
        "contrast": describe_contrast(_contrast(inspector, text, seen, shown)),
    }
    modules = _modules("saved.js")
    styles = "".join((WEB / name).read_text(encoding="utf-8") for name in ("style.css", "inside.css"))
    addresses = {name: f"data:text/javascript;base64,{_base64(code)}" for name, code in modules.items()}
    imports = json.dumps({"imports": addresses})
    start = 'import "dragoman/saved.js";'
    policy = (
        f"default-src 'none'; style-src {_hash(styles)}; script-src {_hash(imports)} {_hash(start)} data:; "
        f"base-uri 'none'; form-action 'none'"
    )
    # In a script's text only "</" and "<!" could end it or change how it is read.
    content = json.dumps(saved, ensure_ascii=False).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>Dragoman: inside a translation</title>\n'
        f"<style>{styles}</style>\n"
        f'<script type="application/json" id="kept">{content}</script>\n'
        f'<script type="importmap">{imports}</script>\n</head>\n<body>\n<div id="app"></div>\n'
        f'<script type="module">{start}</script>\n</body>\n</html>\n'
    )


@dataclass(frozen=True)
class NotebookPage:
    """The page in a frame of a notebook's cell; its scripts reach nothing but the page."""

    content: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.content)}" sandbox="allow-scripts" title="Inside a translation" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )


def display(
    inspector: Inspector,
    text: str,
    translation: str | Sequence[str] | None = None,
    changes: Sequence[Change | str] = (),
    height: int = 900,
    **state: str,
) -> NotebookPage:
    """All views of one sentence, for a notebook: display(inspector, "Two dogs play.", view="lens"). `state`: as for the
    page's address."""
    return NotebookPage(page_of(inspector, text, translation, changes, state), height)


def _contrast(inspector: Inspector, text: str, seen: Inspection, state: Mapping[str, str]) -> Contrast:
    """The one that the page's address asks for, if there is such a one; else of the least certain token and the next
    best one."""
    instead = [state["token"]] if state.get("token") else state.get("instead") or None
    position = int(state["at"]) if state.get("at", "").isdecimal() else None
    try:
        return inspector.contrast(text, instead, position, seen.tokens)
    except UsageError:
        return inspector.contrast(text, translation=seen.tokens)


def _modules(first: str) -> dict[str, str]:
    """The code of a module and of all that it imports, by names that do not depend on a place: from a data: address,
    a relative import cannot be resolved."""
    found: dict[str, str] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop()
        if f"dragoman/{path}" in found:
            continue

        def named(match: re.Match[str], path: str = path) -> str:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[2]))
            waiting.append(target)
            return f'{match[1]}"dragoman/{target}"'

        found[f"dragoman/{path}"] = _IMPORT.sub(named, (WEB / path).read_text(encoding="utf-8"))
    return found


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
