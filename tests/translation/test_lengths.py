"""What is short is so for the length of its source, by what was measured or by a rule that holds for every pair."""

import random

import pytest

from dragoman.translation.lengths import ANY_PAIR, UsualLengths, letters


def test_a_chinese_character_counts_as_three_letters() -> None:
    assert [letters(text) for text in ("abc", "é à", "我很累。", "")] == [3, 3, 12, 0]


@pytest.mark.parametrize(
    ("source", "target", "short"),
    [
        ("Thank you very much.", "Merci.", False),
        ("He told me that he would come tomorrow.", "Il m'a dit", False),
        ("He told me that he would come tomorrow.", "Il a dit", True),
        ("The meeting that we planned is on Monday, and I hope you can come.", "我们计划的会议在周一，", False),
        ("The meeting that we planned is on Monday, and I hope you can come.", "会议在周一。", True),
        ("我们计划的会议在周一，希望你能来。", "The meeting", True),
    ],
)
def test_without_measurements_only_the_far_too_short_is_short(source: str, target: str, short: bool) -> None:
    assert ANY_PAIR.is_short(source, target) == short


def test_measured_ratios_are_those_of_the_source_s_length() -> None:
    draw = random.Random(2)
    pairs = []
    for _ in range(400):
        length = draw.choice((10, 60))
        spread = 0.4 if length == 10 else 0.05
        pairs.append(("s" * length, "t" * max(1, round(length * 1.2 * (1 + draw.uniform(-spread, spread))))))
    usual = UsualLengths.measure(pairs)
    assert [step.letters for step in usual.steps] == [10, 60]
    assert not any(usual.is_short(*pair) for pair in pairs)
    assert not usual.is_short("s" * 10, "t" * 6)
    assert usual.is_short("s" * 60, "t" * 36)  # the same ratio
    assert usual.is_short("s" * 500, "t" * 300)  # longer than all that were measured
    assert not ANY_PAIR.is_short("s" * 60, "t" * 36)
    assert UsualLengths.of([list(step) for step in usual.steps]) == usual
    assert UsualLengths.measure(pairs[:49]) == ANY_PAIR
