"""The lab at its smallest."""

import pytest

from dragoman.lab.queue import LabSettings, Queue


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> LabSettings:
    """One queue for all of them: they share arms, as in a real run."""
    out = tmp_path_factory.mktemp("lab")
    return LabSettings(Queue(out, say=lambda _: None), out / "models", None, "smoke")
