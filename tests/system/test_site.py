"""The site builds strictly, holds every command, configuration key and route, and needs no network and no server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from bs4 import BeautifulSoup
from playwright.sync_api import expect
from starlette.testclient import TestClient

from dragoman import config
from dragoman.cli.main import command_line
from dragoman.config import recipes
from dragoman.serve.app import make_app
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from support.browsing import chromium

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return directory


def page(site: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for own, below in command.commands.items():
            yield from commands(f"{name} {own}", below)
    else:
        yield name, command


def test_every_command_and_each_of_its_options_is_in_the_reference(site: Path) -> None:
    sections: dict[str, str] = {}
    for heading in page(site, "reference/commands.html").find_all("h3"):
        texts = []
        for after in heading.find_next_siblings():
            if after.name in ("h2", "h3"):
                break
            texts.append(after.get_text(" "))
        sections[str(heading.find(string=True))] = "\n".join(texts)
    found = dict(commands("dragoman", typer.main.get_command(command_line())))
    assert len(found) > 40
    assert set(sections) == set(found)
    for name, command in found.items():
        words = re.split(r"[\s,/]+", sections[name])
        for parameter in command.params:
            if not getattr(parameter, "hidden", False) and parameter.param_type_name == "option":
                for option in (*parameter.opts, *parameter.secondary_opts):
                    assert option in words, f"{name}: {option}"


def test_every_configuration_key_is_in_the_reference_with_its_default_and_its_meaning(site: Path) -> None:
    rows = {}
    for row in page(site, "reference/config.html").find_all("tr"):
        cells = [cell.get_text() for cell in row.find_all("td")]
        if cells:
            rows[cells[0]] = cells[1:]
    keys = dict(recipes.flatten(config.RunConfig()))
    corpus = {"pairs", "source", "target", "weight", "tag", "back_tag"}
    assert set(rows) == set(keys) | corpus
    assert [name for name, (_, _, meaning) in rows.items() if len(meaning) < 10] == []
    assert rows["model.d_model"] == [
        "512",
        "whole number, at least 1 and at most 131,072",
        "the width of every layer's output, and of the embeddings",
    ]
    assert rows["model.norm_order"][:2] == ['"post"', "one of post, pre"]
    for name, value in keys.items():
        shown = rows[name][0]
        if value is None:
            assert shown == "none"
        elif isinstance(value, float):
            assert float(shown) == value
        elif not isinstance(value, tuple):
            assert shown in (str(value), str(value).lower(), f'"{value}"')


def test_every_route_of_the_service_is_in_the_reference(site: Path) -> None:
    with TestClient(make_app(Service([], Settings())), base_url="http://localhost") as client:
        described = client.get("/api/v1/openapi.json").json()
    routes = {f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods}
    assert {"POST /translate", "POST /api/v1/explain"} <= routes
    headings = {heading.find(string=True) for heading in page(site, "reference/http-api.html").find_all("h3")}
    assert headings == routes | set(described["components"]["schemas"])


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for path in pages:
        soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        loaded = [str(tag.get("src")) for tag in soup.find_all(src=True)]
        loaded += [str(tag.get("href")) for tag in soup.find_all("link") if tag.get("rel") != ["canonical"]]
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("width", [1280, 390])
def test_the_pages_open_as_files_fit_the_screen_and_can_be_searched(site: Path, width: int) -> None:
    asked: list[str] = []
    errors: list[str] = []
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": width, "height": 800})
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        for name in ("reference/commands", "reference/config", "reference/http-api", "architecture", "index"):
            tab.goto(f"file://{site}/{name}.html")
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        tab.locator("label[for=__search]").first.click() if width < 1000 else tab.locator(".md-search__input").click()
        tab.locator(".md-search__input").press_sequentially("quantize", delay=20)
        expect(tab.locator(".md-search-result__item").first).to_be_visible()
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
