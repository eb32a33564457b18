"""`dragoman config show`."""

import json
from typing import Annotated, Any

import typer

from dragoman.cli.options import AsJson, Overrides, changed
from dragoman.cli.registration import command, group
from dragoman.cli.terminal import show
from dragoman.config import RunConfig, recipes
from dragoman.errors import UsageError

config = group("Show a recipe's or a run's configuration.")


@command(config, "show")
def show_config(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE|RUN", help="A recipe, or a run's directory.")],
    changes: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show every value and where it came from."""
    from dragoman.run_directory import RunDirectory

    run = RunDirectory(recipe)
    if run.config_path.is_file():
        if changes:
            raise UsageError("config show: --set goes with a recipe; a run is what it is, so leave it out")
        found: RunConfig = run.read_config()
        origins = {key: str(run.config_path) for key, _ in recipes.flatten(found)}
    else:
        layered = recipes.load(recipe, changed(changes))
        found, origins = layered.config, dict(layered.origins)
    if as_json:
        show(found.to_json().rstrip("\n"))
        return
    values = [(key, _shown(value), origins[key]) for key, value in recipes.flatten(found)]
    widths = [max(len(row[column]) for row in values) for column in (0, 1)]
    for key, value, origin in values:
        show(f"{key:<{widths[0]}}  {value:<{min(widths[1], 24)}}  {origin}")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        named = ({k: v for k, v in vars(corpus).items() if v is not None} for corpus in value)
        return "[" + ", ".join(" ".join(f"{k}={v}" for k, v in corpus.items()) for corpus in named) + "]"
    return json.dumps(value)
