"""The numbers of docs/decisions/023 are counted right, on a small tree whose numbers are known."""

from pathlib import Path

from support.benches import load

house_numbers = load("house_numbers")

BRANCHES = """def choose(x):
    if x > 2:
        return 1
    for y in range(x):
        if y:
            return y
    return 0
"""
TWICE = "".join(f"value_{number} = {number}\n" for number in range(7))


def test_what_is_counted_of_a_small_tree(tmp_path: Path) -> None:
    package = tmp_path / "src" / "dragoman"
    (package / "data").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (package / "errors.py").write_text(BRANCHES + "class Kind:\n    pass\n\n\n" + TWICE)
    (package / "data" / "one.py").write_text(f"import sys\nKind = int\nLIMIT = 1\n{TWICE}# the end\n")
    (tmp_path / "tests" / "test_one.py").write_text("LIMIT = 1\n" + "def test_one():\n" + "    assert 1\n" * 61)
    found = house_numbers.numbers(tmp_path)
    assert found["entries in src/dragoman"] == "2"
    assert found["modules in src/dragoman itself"] == "1"
    assert found["lines of src"] == "29"
    assert found["lines of tests"] == "63"
    assert found["longest function, lines"] == "7 (`errors.choose`)"
    assert found["functions over 60 lines"] == "0"
    assert found["highest complexity"] == "4 (`errors.choose`)"
    assert found["names of classes and types that several modules define"] == "1"
    assert found["lines of src in runs of 6 or more that stand twice"] == "14"
    assert found["lines of tests in runs of 6 or more that stand twice"] == "61"


def test_long_and_complex_functions_are_counted(tmp_path: Path) -> None:
    package = tmp_path / "src" / "dragoman"
    package.mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    branches = "".join(f"    if x == {number}:\n        return {number + 1}\n" for number in range(30))
    (package / "long.py").write_text(f"def long(x):\n{branches}")
    found = house_numbers.numbers(tmp_path)
    assert found["functions over 60 lines"] == "1"
    assert found["functions of complexity over 12"] == "1"
    assert found["highest complexity"] == "31 (`long.long`)"
