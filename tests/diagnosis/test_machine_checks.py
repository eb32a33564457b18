"""What is checked of the machine."""

from dragoman.diagnosis.machine_checks import examine_environment


def test_the_machine() -> None:
    lines = {line.name: line for line in examine_environment(least_free_gb=0.0)}
    assert list(lines) == ["versions", "threads", "disk", "one pass"]
    assert lines["one pass"].fault is None
    assert lines["disk"].fault is None
    (full,) = (line for line in examine_environment(least_free_gb=1e9) if line.name == "disk")
    assert "less than 1e+09 GB free" in str(full.fault)
