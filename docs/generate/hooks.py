"""What MkDocs calls while it builds the site: generated pages are added, and links that leave docs/ find their page.

The generated pages are written at build time from the code that they describe, so that they cannot fall behind it.
Texts that a reader of the repository expects at its root (CHANGELOG.md, CONTRIBUTING.md, ...) stay there, and are pages
of the site as well.
"""

import html
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import commands
import config_keys
import http_api
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# A page of the site for each of these files of the repository.
ELSEWHERE = {
    "bench/results.md": "reference/bench-results.md",
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "docs/lab/report.html": "lab/report-in-one-file.html",  # report.md becomes a page of the name report.html
}
TREE = re.compile(r"^<!-- tree: .*? -->\n```\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)\s#]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Every decision is in the navigation, in the order of its number."""
    decisions = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    dict(_sections(config.nav))["Decisions"].extend(f"decisions/{name}" for name in decisions)
    return config


def _sections(entries: Any) -> Iterator[tuple[str, list[Any]]]:
    """The title and the entries of each section of the navigation, at any depth."""
    for entry in entries:
        for title, below in entry.items() if isinstance(entry, dict) else ():
            if isinstance(below, list):
                yield title, below
                yield from _sections(below)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    generated = {
        "reference/commands.md": commands.page(),
        "reference/config.md": config_keys.page(),
        "reference/http-api.md": http_api.page(),
        "reference/openapi.json": http_api.text(),
    }
    for name, content in generated.items():
        files.append(File.generated(config, name, content=content))
    for path, name in ELSEWHERE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links to files of the repository that are no pages become what they are called, or the page made of them."""
    at = page.file.src_uri
    home = {site: path for path, site in ELSEWHERE.items()}.get(at, f"docs/{at}")

    def follow(found: re.Match[str]) -> str:
        picture, text, target, anchor = found[1], found[2], found[3], found[4] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        if path in ELSEWHERE:
            return f"[{text}]({_relative(ELSEWHERE[path], at)}{anchor})"
        if path.startswith("docs/"):
            return f"{picture}[{text}]({_relative(path.removeprefix('docs/'), at)}{anchor})"
        return text if (ROOT / path).exists() else found[0]  # what is nowhere is left for the strict build to find

    markdown = TREE.sub(lambda found: _tree(found[1]), markdown)
    return _outside_code(markdown, lambda part: LINK.sub(follow, part))


def _relative(path: str, page: str) -> str:
    return posixpath.relpath(path, posixpath.dirname(page) or ".")


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """The text with its fenced blocks as they are."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def _tree(picture: str) -> str:
    """The picture of the house as lists that open, each package with its files: its lines are too wide for a page."""
    entries: list[tuple[int, str, str]] = []
    for line in picture.splitlines()[1:]:
        name, about = line[:29], line[29:].strip()
        if name.strip():
            # A name of 29 characters or more pushes its sentence to the right.
            name, _, rest = line.rstrip().strip().partition(" ")
            entries.append(((len(line) - len(line.lstrip())) // 2, name, rest.strip()))
        else:
            depth, own, begun = entries[-1]
            entries[-1] = (depth, own, f"{begun} {about}")
    return '<div class="house">' + _nested(entries, 1)[0] + "</div>"


def _nested(entries: list[tuple[int, str, str]], depth: int) -> tuple[str, list[tuple[int, str, str]]]:
    """The lists of the entries that are as deep, and the entries that are not."""
    parts: list[str] = []
    while entries and entries[0][0] >= depth:
        (_, name, about), entries = entries[0], entries[1:]
        words = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(about, quote=False))
        head = f"<code>{name}</code> {words}"
        if name.endswith("/"):
            inside, entries = _nested(entries, depth + 1)
            parts.append(f"<details><summary>{head}</summary>{inside}</details>")
        else:
            parts.append(f"<ul><li>{head}</li></ul>")
    return "".join(parts).replace("</ul><ul>", ""), entries
