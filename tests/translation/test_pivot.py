"""A translation through a third language is the one of both steps, and loses nothing on the way."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data.glossary import Required
from dragoman.errors import UsageError
from dragoman.translation.confidence import WordConfidence
from dragoman.translation.pivot import PivotTranslator, through_pivot
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.translation_memory import TranslationMemory
from dragoman.translation.translator import Translator
from support.commands import Ran

LINES = ["the old dog sees the red house", "", "a cat", "The dog sees it. The cat sleeps."]


@pytest.fixture(scope="module")
def translator(served_run: Path) -> Translator:
    return Translator.load(served_run)


@pytest.fixture(scope="module")
def pivot(translator: Translator) -> PivotTranslator:
    return PivotTranslator(translator, translator)


def named(run: Path, directory: Path, source: str, target: str) -> Path:
    """A copy of a run that says its languages."""
    copy = Path(shutil.copytree(run, directory / f"{source}-{target}"))
    (copy / "languages.json").write_text(json.dumps({"source": source, "target": target}))
    return copy


def found(source: str, target: str, confidence: float | None = None, **more: object) -> Translation:
    return Translation(source, (Candidate(target, -1.0, -2.0, (target,), None),), confidence=confidence, **more)  # type: ignore[arg-type]


def test_it_is_both_steps_sentence_by_sentence(pivot: PivotTranslator, translator: Translator) -> None:
    pairs = list(pivot.translate_stream(LINES))
    assert [pair.source for pair in pairs] == LINES
    middle = translator.translate(["the old dog sees the red house", "a cat", "The dog sees it.", "The cat sleeps."])
    end = translator.translate(middle, whole=True)
    assert [pair.text for pair in pairs] == [end[0], "", end[1], f"{end[2]} {end[3]}"]
    assert [pair.pivot_text for pair in pairs] == [middle[0], None, middle[1], f"{middle[2]} {middle[3]}"]
    assert pivot.translate(LINES) == [pair.text for pair in pairs]
    with pytest.raises(UsageError, match="give a list of lines"):
        pivot.translate("the dog")


def test_what_must_come_through_does_or_the_sentence_stays(pivot: PivotTranslator) -> None:
    hard = ["the dog sees %s and 3.5 houses", "see https://example.org/a?b=1 and the cat", "the {name} dog 🙂"]
    for line, (kept, *_) in zip(hard, (["%s", "3.5"], ["https://example.org/a?b=1"], ["{name}", "🙂"]), strict=True):
        (translation,) = pivot.translate_stream([line], warn=lambda _: None)
        assert kept in translation.text
        assert translation.how != "source" or translation.text == line
    (kept_one,) = pivot.translate_sentences([SourceSentence("the ZORK dog", ("ZORK",))])
    assert "ZORK" in kept_one.text


def test_required_words_are_in_both_texts(pivot: PivotTranslator) -> None:
    (one,) = pivot.translate_sentences([SourceSentence("the old dog")], required=lambda _: [Required(("Bello",))])
    assert one.pivot_text is not None
    assert "Bello" in one.pivot_text
    assert "Bello" in one.text


def test_half_of_the_way_is_never_shown() -> None:
    left = found("fra", "fra", how="source", notes=("lost: 7",))
    for first, second in ((left, None), (found("eng", "fra"), left)):
        translation = through_pivot(first, second)
        assert (translation.text, translation.how, translation.pivot_text) == (first.source, "source", None)
        assert translation.notes == ("lost: 7",)


def test_confidences_are_multiplied_where_both_are_known() -> None:
    word = WordConfidence("deu", 0, 3, 0.5)
    both = through_pivot(found("eng", "fra", 0.5), found("fra", "deu", 0.8, words=(word,), how="other"))
    assert (both.confidence, both.words, both.how, both.pivot_text) == (
        0.4,
        (word._replace(confidence=0.25),),
        "other",
        "fra",
    )
    assert through_pivot(found("eng", "fra"), found("fra", "deu", 0.8)).confidence is None
    assert through_pivot(found("eng", "fra", 0.8), found("fra", "deu")).confidence is None
    by_hand = found("eng", "fra", corrected=True)
    assert through_pivot(by_hand, found("fra", "deu", 0.8)).confidence == 0.8
    assert not through_pivot(by_hand, found("fra", "deu", 0.8)).corrected
    assert through_pivot(by_hand, found("fra", "deu", corrected=True)).corrected
    assert through_pivot(by_hand, found("fra", "deu", corrected=True)).confidence is None


def test_corrections_of_each_step_are_used(translator: Translator, tmp_path: Path) -> None:
    memory = TranslationMemory(tmp_path / "corrections.db")
    memory.store("en-fr", "the dog", "le chien")
    memory.store("fr-de", "le chien", "der Hund")
    pivot = PivotTranslator(translator.with_corrections(memory, "en-fr"), translator.with_corrections(memory, "fr-de"))
    (one,) = pivot.translate_stream(["the dog"])
    assert (one.text, one.pivot_text, one.corrected) == ("der Hund", "le chien", True)
    memory.close()


def test_the_command_translates_on_with_another_run(
    served_run: Path, tmp_path: Path, cli: Callable[..., Ran], pivot: PivotTranslator
) -> None:
    first, second = named(served_run, tmp_path, "en", "fr"), named(served_run, tmp_path, "fr", "de")
    expected = pivot.translate(LINES)
    given = "".join(f"{line}\n" for line in LINES)
    ran = cli("translate", first, "--then", second, stdin=given)
    assert (ran.code, ran.stdout) == (0, "".join(f"{line}\n" for line in expected))
    ran = cli("translate", first, "--then", second, "--json", stdin=f"{LINES[0]}\n")
    values = json.loads(ran.stdout)
    assert (values["translations"][0]["text"], values["source"]) == (expected[0], LINES[0])
    assert values["pivot_text"] == next(pivot.translate_stream(LINES)).pivot_text
    (tmp_path / "in.txt").write_text(given)
    out = tmp_path / "out.txt"
    assert cli("translate", first, "--then", second, "--input", tmp_path / "in.txt", "--out", out).code == 0
    assert out.read_text() == "".join(f"{line}\n" for line in expected)
    wrong = cli("translate", second, "--then", second, stdin=given)
    assert (wrong.code, wrong.stderr) == (
        2,
        f"dragoman: translate: {second} translates into de, and --then {second} from fr; give a run from de\n",
    )
