"""Who waits sees it go on."""

import io
import sys
import time

import pytest

from dragoman.progress import waiting


def test_who_waits_sees_it_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    deadline = time.monotonic() + 10
    with waiting("counting", first=0.02):
        while "so far" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert stream.getvalue().startswith("counting\n  counting: 0:00 so far\n")
    stream.isatty = lambda: True  # type: ignore[method-assign]
    stream.truncate(0)
    with waiting("moving", first=0.02):
        while "\r" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "\r  moving 0:00" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
