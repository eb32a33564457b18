"""Weights are loaded once however many pairs they serve; languages are reached through one pivot and no more."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import ComputeType
from dragoman.errors import UsageError
from dragoman.run_directory import TOKENIZER, RunDirectory
from dragoman.serve.model_pool import ModelPool, pivots_of
from dragoman.serve.pairs import ServedPair, pair_of, pairs_to_serve
from dragoman.serve.service import Service, load_translator, steady
from dragoman.serve.settings import Settings
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.serving import running


@pytest.fixture(scope="module")
def both_ways(
    tiny_text: Path, tiny_settings: list[str], tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Ran]
) -> Path:
    """English to Esperanto and back in one model that knows neither; it says its languages."""
    out = tmp_path_factory.mktemp("both") / "run"
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv", "--both-directions"]
    languages = ["--source-language", "en", "--target-language", "eo"]
    ran = cli("train", *data, *languages, "--out", out, "--steps", "4", "--set", "train.valid_steps=4", *tiny_settings)
    assert ran.code == 0, ran.stderr
    (out / "languages.json").write_text('{"source": "en", "target": "eo"}')
    return out


@pytest.fixture
def many(tiny_run: Path, tmp_path: Path) -> Path:
    """A run that has tags for these languages. It has no weights for them: only its pairs can be asked for."""
    run = Path(shutil.copytree(tiny_run, tmp_path / "many"))
    RunDirectory(run).model_path.unlink()
    for record in run.glob("*.json"):
        if record.name != "config.json":
            record.unlink()
    tags = [">>deu<<", ">>fra<<", ">>zho_Hans<<", ">>zho_Hant<<", ">>synthetic<<"]
    Tokenizer.learn(["the dog sees the cat", "la hundo vidas la katon"] * 9, 300, tags).save(run / TOKENIZER)
    return run


def names(pairs: list[ServedPair]) -> list[str]:
    return [pair.name for pair in pairs]


def test_the_shortest_way_and_at_most_one_pivot() -> None:
    a, b = Path("a"), Path("b")
    pairs = [ServedPair("en", "fr", a), ServedPair("fr", "de", b), ServedPair("de", "it", b), ServedPair("fr", "en", a)]
    found = pivots_of(pairs)
    assert {name: way.pivot for name, way in found.items()} == {"en-de": "fr", "fr-it": "de"}  # not en-it, nor en-en
    assert (found["en-de"].first, found["en-de"].second) == (pairs[0], pairs[1])
    assert "en-de" not in pivots_of([*pairs, ServedPair("en", "de", b)])
    two_ways = [ServedPair("en", "es", a), *pairs, ServedPair("es", "de", b)]
    assert pivots_of(two_ways)["en-de"].pivot == "es"  # the one that was given first


def test_two_hundred_languages_have_no_pivots_and_are_quick() -> None:
    codes = [f"{one}{other}" for one in "abcdefghijklmno" for other in "abcdefghijklm"][:190]
    pairs = [ServedPair(source, target, Path("x")) for source in codes for target in codes if source != target]
    assert pivots_of(pairs) == {}


def test_all_pairs_of_a_run_share_its_weights(both_ways: Path) -> None:
    loaded: list[str] = []

    def load(pair: ServedPair) -> Translator:
        loaded.append(pair.name)
        return load_translator(pair)

    pairs = pairs_to_serve([both_ways], [], None, None)
    assert names(pairs) == ["en-eo", "eo-en"]
    pool = ModelPool(pairs, load)
    assert loaded == ["en-eo"]
    there, back = pool.translator("en-eo"), pool.translator("eo-en")
    assert there.engine is back.engine
    assert (there.tag, back.tag) == (">>eo<<", ">>en<<")
    assert (there.language, back.language) == ("en", "eo")
    assert there.translate(["the dog"]) == Translator.load(both_ways, to="eo").translate(["the dog"])
    assert back.translate(["la hundo"]) == Translator.load(both_ways, to="en").translate(["la hundo"])
    pool.close()
    with pytest.raises(UsageError, match=r"translates into en, eo, not fr"):
        ModelPool([*pairs, ServedPair("en", "fr", both_ways)], load)


def test_a_run_of_several_languages_is_served_as_many_pairs(both_ways: Path) -> None:
    with running(Service(pairs_to_serve([both_ways], [], None, None), Settings(port=0, rate_limit=0))) as server:
        for source, target, text in (("en", "eo", "the dog"), ("eo", "en", "la hundo")):
            answer = server.post("/translate", {"q": text, "source": source, "target": target})
            expected = Translator.load(both_ways, to=target).translate([text])[0]
            assert (answer.status, answer.json) == (200, {"translatedText": expected})
        assert [row["targets"] for row in server.ask("GET", "/languages").json] == [["en", "eo"]] * 2


def test_patterns_of_pairs(many: Path, tiny_run: Path) -> None:
    served = pairs_to_serve([], [f"en-*={many}"], None, None)
    assert names(served) == ["en-de", "en-fr", "en-zh-hans", "en-zh-hant"]
    (many / "languages.json").write_text(json.dumps({"source": "en", "target": "fr"}))
    assert names(pairs_to_serve([many], [], None, None)) == ["en-fr", "en-de", "en-zh-hans", "en-zh-hant"]
    named_first = pairs_to_serve([], [f"en-*={many}", f"en-fr={tiny_run}"], None, None)
    assert [(pair.name, pair.run) for pair in named_first[:2]] == [("en-fr", tiny_run), ("en-de", many)]
    assert names(named_first).count("en-fr") == 1
    for wrong, said in (
        (f"en-*={tiny_run}", "has one target language; name both"),
        (f"*-it={many}", "does not translate into it; it does into de, fr"),
        ("en-*=", "write it as en-"),
    ):
        with pytest.raises(UsageError, match=said):
            pairs_to_serve([], [wrong], None, None)


def test_codes_with_a_script_stand_on_either_side() -> None:
    for text, source, target in (
        ("en-zh-hans", "en", "zh-hans"),
        ("zh-Hans-en", "zh-hans", "en"),
        ("pt-br-en", "pt-br", "en"),
        ("fr-br", "fr", "br"),
    ):
        assert pair_of(f"{text}=run") == ServedPair(source, target, Path("run"))


@pytest.mark.parametrize(("compute_type", "expected"), [("int8", True), ("float32", False)])
def test_answers_depend_on_no_batch_by_default_where_that_costs_little(
    compute_type: ComputeType, expected: bool, tiny_run: Path
) -> None:
    translator = steady(Translator.load(tiny_run, engine="ctranslate2", compute_type=compute_type))
    assert translator.search.batch_invariant is expected
