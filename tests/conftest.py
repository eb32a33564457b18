"""What every test stands on: the same examples each time, no network, the same terminal everywhere."""

import os
from pathlib import Path

import hypothesis
import pytest

# A test that fails fails again: examples are drawn from the test itself, and a busy machine is not a failure.
hypothesis.settings.register_profile("dragoman", derandomize=True, deadline=None)
hypothesis.settings.load_profile("dragoman")

# Before anything reads them: libraries look at these when they are imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["NO_COLOR"] = "1"
os.environ["COLUMNS"] = "120"
for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that the tests run in."""
    return Path(__file__).parents[1]
