"""A translation with a defect is decoded again, and the better one is taken."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.translation.repair import DecodedSentence, repair
from dragoman.translation.sentence_decoder import EncodedSentence, SentenceDecoder
from dragoman.translation.translator import Translator

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
    # What no longer loops may be short: that is another matter.
    assert sum(bool(set(mended[number].defects) - {"short"}) for number in wrong) < len(wrong)
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


class LoopingEngine:
    """Loops in every search that does not forbid what `ends_at` says."""

    name = "looping"
    forms_batches = False
    exact_products = False

    def for_tokenizer(self, tokenizer: Tokenizer) -> "LoopingEngine":  # noqa: ARG002 the protocol's
        return self

    def __init__(self, looping: Hypothesis, better: Hypothesis, ends_at: int) -> None:
        self.looping, self.better, self.ends_at = looping, better, ends_at
        self.asked: list[tuple[int, int]] = []  # no_repeat, sentences

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,  # noqa: ARG002 the protocol's, as what follows
        n_best: int = 1,  # noqa: ARG002
        seed: int = 0,  # noqa: ARG002
        scores: bool = True,  # noqa: ARG002
        no_repeat: int = 0,
    ) -> list[list[Hypothesis]]:
        self.asked.append((no_repeat, len(sources)))
        return [[self.better if no_repeat == self.ends_at else self.looping] for _ in sources]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:  # noqa: ARG002
        return [[-1.0] * (len(target) + 1) for target in targets]


@pytest.fixture(scope="module")
def tokenizer(tiny_run: Path) -> Tokenizer:
    return load_tokenizer(tiny_run)


def hypothesis(tokenizer: Tokenizer, text: str) -> Hypothesis:
    ids = tuple(tokenizer.encode(text))
    return Hypothesis(ids, -1.0, -1.0, None, True)


@pytest.mark.parametrize(("ends_at", "asked"), [(3, [3]), (2, [3, 2]), (1, [3, 2])])
def test_first_three_tokens_may_not_come_twice_then_two(tokenizer: Tokenizer, ends_at: int, asked: list[int]) -> None:
    looping, better = hypothesis(tokenizer, "la hundo " * 9), hypothesis(tokenizer, "la hundo vidas")
    engine = LoopingEngine(looping, better, ends_at)
    decoder = SentenceDecoder(engine, tokenizer, SearchConfig())
    sentence = EncodedSentence("the dog sees", tokenizer.encode("the dog sees"))
    first = DecodedSentence.examine(sentence, [looping, better], lambda one: tokenizer.decode(one.ids))
    assert "loop" in first.defects
    (found,) = repair([first], decoder)
    assert engine.asked == [(size, 1) for size in asked]
    if ends_at in asked:
        assert found.hypotheses == [better, looping]  # as many as before, and the better one first
        assert (found.defects, found.repaired) == ((), first.defects)
    else:
        assert found == first


def test_sentences_of_one_length_are_decoded_together(tokenizer: Tokenizer) -> None:
    looping, better = hypothesis(tokenizer, "la hundo " * 9), hypothesis(tokenizer, "la hundo vidas")
    engine = LoopingEngine(looping, better, 3)
    decoder = SentenceDecoder(engine, tokenizer, SearchConfig())
    sentences = [EncodedSentence("x", [5] * length) for length in (4, 6, 4, 6, 6)]
    decoded = [DecodedSentence(sentence, [looping], ("loop",)) for sentence in sentences]
    assert [found.hypotheses[0] for found in repair(decoded, decoder)] == [better] * 5
    assert engine.asked == [(3, 2), (3, 3)]
