"""The demo's packages, made up and small."""

import pytest

from dragoman.quickstart import tatoeba
from dragoman.quickstart.corpora import CORPORA
from support.demo_packages import DemoPackages, demo_packages


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> DemoPackages:
    """Small distributions in place of the real ones, whose corpora are the demo's."""
    made_up = demo_packages()
    for name, corpus in made_up.corpora.items():
        monkeypatch.setitem(CORPORA, name, corpus)
    monkeypatch.setattr(tatoeba, "TEST_SENTENCES", 10)
    monkeypatch.setattr(tatoeba, "VALID_SENTENCES", 5)
    return made_up
