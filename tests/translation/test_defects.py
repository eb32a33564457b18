"""What is plainly wrong with a translation is seen, and decoded again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.decoding.constraints import no_repeats
from dragoman.translation.defects import TokenizedText, copies, crowded, defects_of, loops
from dragoman.translation.translator import Translator


@pytest.mark.parametrize(
    ("target", "looping"),
    [
        ([1, 2, 3, 4, 5, 6], False),
        ([1, 2, 1, 2, 1, 2], True),  # a pair three times
        ([1, 2, 1, 2, 3], False),
        ([7, 7, 7, 7, 1], False),  # one token: "!!!!"
        ([7, 7, 7, 7, 7, 7], True),
        ([1, 2, 3, 4, 9, 1, 2, 3, 4, 8, 1, 2, 3, 4], True),  # in three places
        ([1, 2, 3, 4, 9, 1, 2, 3, 4, 8], False),
        ([], False),
    ],
)
def test_a_loop_is_what_the_source_does_not_repeat(target: list[int], looping: bool) -> None:
    assert loops([50, 51, 52], target) == looping
    assert not loops(target, target)


def test_a_copy_is_most_of_the_source_but_not_its_names() -> None:
    assert copies("the old dog sees the house", "the old dog sees the Haus")
    assert not copies("the old dog sees the house", "der alte dog sieht das Haus")
    assert not copies("Anna Maria Schmidt wohnt Berlin", "Anna Maria Schmidt lives in Berlin")
    assert not copies("OK", "OK")


@pytest.mark.parametrize(
    ("target", "crowd"),
    [
        ("La voiture est rouge rouge rouge rouge rouge rouge.", True),
        ("Le rouge rouge rouge rougit rouge rouge au rouge rouge.", True),  # nothing of it thrice in a row
        ("Très, très, très loin.", False),
        ("Les chats et les chiens et les oiseaux et les poissons sont dans les eaux.", False),
        ("", False),
    ],
)
def test_a_word_that_crowds_out_the_others_is_a_loop(target: str, crowd: bool) -> None:
    assert crowded("The car is red.", target) == crowd
    assert not crowded(target, target)
    assert defects_of(TokenizedText([1], "The car is red."), TokenizedText([4, 5], target or "x")) == (
        ("loop",) if crowd else ()
    )


def test_every_defect_has_its_name() -> None:
    source = TokenizedText([1, 2, 3], "deux trois quatre")
    assert defects_of(source, TokenizedText([4, 5], "one two")) == ()
    assert defects_of(source, TokenizedText([], "")) == ("empty",)
    assert defects_of(source, TokenizedText([4, 5], "one two"), finished=False) == ("runaway",)
    assert defects_of(source, TokenizedText(list(range(22)), "a long tale")) == ("runaway",)
    assert defects_of(source, TokenizedText([1, 2, 3], "deux trois quatre")) == ("copy",)
    assert defects_of(source, TokenizedText([4] * 30, "x" * 30)) == ("loop", "runaway")


def test_no_tokens_come_twice_but_the_end_may_come() -> None:
    constrain = no_repeats(2, 6, 0)
    assert constrain(0, []) is None
    assert constrain(0, [1]) is None
    assert constrain(0, [1, 2, 1]) == [0, 1, 3, 4, 5]
    assert no_repeats(2, 4, 0, [{(1, 3)}])(0, [1]) == [0, 1, 2]
    assert no_repeats(2, 3, 0, [{(1, 0)}])(0, [1]) is None


LINES = [
    "the old dog sees the red house under the tree near the river",
    "the dog the cat the dog the cat the child",
    "QZX JJW VVK WQ ZZZ",
    "a river",
    "qzx qzx qzx",
    "the small child hears the old cat near the small garden under the old tree",
]


@pytest.fixture(scope="module")
def weak_run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 30 steps, which says the same again and again."""
    run = Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("weak") / "run"))
    shutil.copyfile(run / "checkpoints" / "step-00000030" / "model.safetensors", run / "model.safetensors")
    return run


@pytest.mark.parametrize("engine", ["reference", "ctranslate2"])
def test_what_loops_is_decoded_again_and_said(weak_run: Path, engine: Any) -> None:
    translator = Translator.load(weak_run, engine=engine)
    plain = list(translator.translate_stream(LINES, repair=False, protect=False))
    mended = list(translator.translate_stream(LINES, protect=False))
    wrong = [number for number, translation in enumerate(plain) if translation.defects]
    assert wrong, [translation.text for translation in plain]
    assert not any(translation.repaired for translation in plain)
    assert sum(bool(mended[number].defects) for number in wrong) < len(wrong)
    for before, after in zip(plain, mended, strict=True):
        if not before.defects:
            assert after == before
        elif after.repaired:
            assert after.text != before.text
            assert set(after.repaired) <= set(before.defects)


def test_the_command_says_what_it_found(weak_run: Path, cli: Callable[..., Any]) -> None:
    shown = {}
    for flag in ("--repair", "--no-repair"):
        ran = cli("translate", weak_run, "--json", flag, stdin="\n".join(LINES) + "\n")
        assert ran.code == 0, ran.stderr
        shown[flag] = [json.loads(line) for line in ran.stdout.splitlines()]
    assert any(line["faults"] for line in shown["--no-repair"])
    assert any(line["repaired"] for line in shown["--repair"])
    assert not any(line["repaired"] for line in shown["--no-repair"])
