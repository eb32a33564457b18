"""Loads the files of bench/, which are run and not installed."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).parents[2] / "bench"


def load(name: str) -> ModuleType:
    """A module of the bench, which is no package: its files are run, not installed."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def load_beside(name: str) -> ModuleType:
    """A module of the bench that imports others of it by their bare names."""
    sys.path.insert(0, str(BENCH))
    try:
        return load(name)
    finally:
        sys.path.remove(str(BENCH))
