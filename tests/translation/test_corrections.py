"""What people correct is kept, used, offered for similar sentences, and taught to a model that must prove itself."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError, UsageError
from dragoman.run import Run
from dragoman.training.promotion import BEFORE, promote
from dragoman.translation.corrections import corrections_for
from dragoman.translation.translation_memory import TranslationMemory, similarity
from dragoman.translation.translator import Translator
from support.lexicon import LEXICON, lexicon_pairs
from support.serving import Running, running, service_of

SENTENCE = "the old dog sees the red house"


LANGUAGES = ["--source-language", "en", "--target-language", "eo"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[TranslationMemory]:
    memory = TranslationMemory(tmp_path / "corrections.db")
    yield memory
    memory.close()


def test_the_newest_correction_counts_and_can_be_forgotten(memory: TranslationMemory) -> None:
    memory.store("en-eo", "the  dog\n", "la hundo", "la kato")
    memory.store("en-eo", "the dog", "la  hundego")
    assert memory.exact("en-eo", " the dog ") == "la hundego"
    assert memory.exact("en-fr", "the dog") is None
    assert memory.exact("en-eo", "The dog") is None
    assert len(memory) == 1
    assert memory.forget("en-eo", "the dog")
    assert not memory.forget("en-eo", "the dog")
    assert memory.exact("en-eo", "the dog") is None
    assert memory.similar("en-eo", "the dog sees") is None


def test_a_similar_sentence_is_found_among_many(memory: TranslationMemory) -> None:
    for number in range(300):
        memory.store("en-eo", f"sentence number {number} says nothing", str(number))
    memory.store("en-eo", SENTENCE, "la maljuna hundo")
    found = memory.similar("en-eo", "the old dog sees the blue house")
    assert found is not None
    assert (found.source, found.target) == (SENTENCE, "la maljuna hundo")
    assert found.score == similarity("the old dog sees the blue house", SENTENCE) > 0.8
    assert memory.similar("en-eo", SENTENCE) is None  # the same is no suggestion
    assert memory.similar("en-eo", "quite another thing") is None
    assert memory.similar("en-fr", SENTENCE + "!") is None
    assert memory.similar("en-eo", '"NEAR(* -') is None  # nothing of the query language gets through


def test_two_processes_share_the_file_and_another_file_is_refused(memory: TranslationMemory, tmp_path: Path) -> None:
    other = TranslationMemory(tmp_path / "corrections.db")
    memory.store("en-eo", "the dog", "la hundo")
    assert other.exact("en-eo", "the dog") == "la hundo"
    other.close()
    with sqlite3.connect(tmp_path / "corrections.db") as database:
        assert database.execute("SELECT machine FROM corrections").fetchall() == [("",)]
    (tmp_path / "text").write_text("no database, but long enough to be taken for one" * 50, encoding="utf-8")
    with pytest.raises(DataError, match="no file of corrections"):
        TranslationMemory(tmp_path / "text")
    with pytest.raises(UsageError, match="no such file"):
        TranslationMemory(tmp_path / "nowhere", must_exist=True)


# In the service.


@pytest.fixture(scope="module")
def correcting(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("corrections") / "corrections.db"
    with running(service_of(served_run, corrections=path)) as server:
        yield server


ASKED = {"text": SENTENCE, "source": "en", "target": "eo"}


def test_a_correction_is_used_at_once_and_offered_for_what_is_similar(correcting: Running) -> None:
    plain = correcting.post("/api/v1/translate", ASKED).json
    assert (plain["segments"][0]["corrected"], plain["segments"][0]["suggestion"]) == (False, None)
    answer = correcting.post("/api/v1/corrections", ASKED | {"translation": "Jen la vera!", "machine": plain["text"]})
    assert (answer.status, answer.json) == (200, {"stored": True})
    again = correcting.post("/api/v1/translate", ASKED).json
    assert again["text"] == "Jen la vera!"
    assert again["segments"][0]["corrected"]
    # By the other API too, and among other sentences.
    both = correcting.post("/translate", {"q": f"the dog.\n{SENTENCE}", "source": "en", "target": "eo"}).json
    assert both["translatedText"].endswith("\nJen la vera!")
    similar = correcting.post("/api/v1/translate", ASKED | {"text": f"{SENTENCE} near"}).json["segments"][0]
    assert similar["suggestion"]["target"] == "Jen la vera!"
    assert 0.9 < similar["suggestion"]["score"] < 1
    assert not similar["corrected"]
    # A request's own terms are stronger.
    terms = {"glossary": [{"source": "dog", "target": "Rekso"}]}
    assert "Rekso" in correcting.post("/api/v1/translate", ASKED | terms).json["text"]
    assert correcting.post("/api/v1/corrections", ASKED | {"translation": " "}).status == 200
    assert correcting.post("/api/v1/translate", ASKED).json["text"] == plain["text"]


def test_no_corrections_are_kept_where_nobody_asked_for_it(served: Running, correcting: Running) -> None:
    assert served.ask("GET", "/api/v1/service").json["corrections"] is False
    assert correcting.ask("GET", "/api/v1/service").json["corrections"] is True
    refused = served.post("/api/v1/corrections", ASKED | {"translation": "x"})
    assert refused.status == 404
    assert "--corrections FILE" in refused.json["error"]
    assert correcting.post("/api/v1/corrections", ASKED | {"target": "xx", "translation": "x"}).status == 404


def test_corrections_teach_a_run_and_the_better_one_takes_its_place(
    tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """People who want "domaĉo" for house, every time: the old model never says so."""
    file, run, new = tmp_path / "corrections.db", tmp_path / "run", tmp_path / "new"
    shutil.copytree(tiny_run, run)
    memory = TranslationMemory(file)
    for source, target in lexicon_pairs(800, seed=9):
        if "house" in source:
            memory.store("en-eo", source, target.replace(LEXICON["house"], "domaĉo"), target)
    memory.close()
    listed = [json.loads(line) for line in cli("corrections", "list", file, "--json").stdout.splitlines()]
    exported = cli("corrections", "export", file, *LANGUAGES).stdout.splitlines()
    assert exported == [f"{one['source']}\t{one['target']}" for one in listed]
    assert len(exported) > 30
    refused = cli("corrections", "export", file, "--source-language", "en", "--target-language", "fr")
    assert (refused.code, "there are some for: en-eo" in refused.stderr) == (3, True)
    ran = cli("corrections", "promote", run, tiny_run)
    assert (ran.code, "no finished training on corrections" in ran.stderr) == (3, True)

    ran = cli(
        "corrections",
        "train",
        file,
        run,
        "--source-language",
        "en",
        "--target-language",
        "eo",
        "--out",
        new,
        "--steps",
        "150",
        "--old",
        "1.0",
    )
    assert ran.code == 0, ran.stderr
    ran = cli("corrections", "promote", run, new, "--json")
    verdict = json.loads(ran.stdout)
    assert verdict["promoted"] is (ran.code == 0)
    assert verdict["promoted"], verdict
    assert (run / BEFORE).read_bytes() == (tiny_run / "model.safetensors").read_bytes()
    assert (run / "model.safetensors").read_bytes() == (new / "model.safetensors").read_bytes()
    assert json.loads((run / "model.json").read_text())["kind"] == "corrections"
    before, after = (
        Translator.load(which).translate([one["source"] for one in listed[:20]]) for which in (tiny_run, run)
    )
    assert not any("domaĉo" in text for text in before)
    assert sum("domaĉo" in text for text in after) > 2, after
    with pytest.raises(DataError, match="was not made from the weights"):
        promote(run, new)


def test_every_way_to_translate_uses_what_was_corrected(
    tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    (run / "languages.json").write_text('{"source": "en", "target": "eo"}', encoding="utf-8")
    kept = tmp_path / "corrections.db"
    memory = TranslationMemory(kept)
    memory.store("en-eo", "The dog sleeps.", "Dormas hundo.")
    memory.close()
    line = "The dog sleeps. The red dog sleeps."
    (tmp_path / "in.txt").write_text(f"{line}\n", encoding="utf-8")

    ran = cli("translate", run, "--corrections", kept, "--json", stdin=f"{line}\nThe dog sleeps.\n")
    both, alone = map(json.loads, ran.stdout.splitlines())
    assert both["translations"][0]["text"].startswith("Dormas hundo. ")
    assert (both["corrected"], alone["corrected"]) == (False, True)
    (suggestion,) = both["suggestions"]
    assert (suggestion["source"], suggestion["target"]) == ("The dog sleeps.", "Dormas hundo.")
    assert "suggestions" not in alone

    ran = cli("translate-file", run, tmp_path / "in.txt", "--out", tmp_path / "out.txt", "--corrections", kept)
    assert ran.code == 0, ran.stderr
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == f"{both['translations'][0]['text']}\n"
    assert Run(run, kept).translate(line) == both["translations"][0]["text"]
    assert not Run(run).translate(line).startswith("Dormas hundo.")


def test_corrections_that_are_not_there_are_one_line(tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    ran = cli("translate", tiny_run, "--corrections", tmp_path / "none.db", stdin="dog\n")
    assert (ran.code, ran.stdout) == (2, "")
    assert "none.db: no such file of corrections" in ran.stderr


# In TMX, which CAT tools exchange.

TMX = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en-US"/><body>
<tu><tuv xml:lang="en-US"><seg>the old dog sees the red house</seg></tuv>
<tuv xml:lang="eo"><seg>jen la hundo</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>a cat</seg></tuv><tuv xml:lang="eo"><seg>iu kato</seg></tuv></tu></body></tmx>"""


def test_a_translation_memory_goes_in_and_out(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "in.tmx").write_text(TMX, encoding="utf-8")
    kept, out = tmp_path / "kept.db", tmp_path / "out.tmx"
    TranslationMemory(kept).store("en-eo", "a cat", "old")
    ran = cli("corrections", "import", kept, tmp_path / "in.tmx", *LANGUAGES)
    assert (ran.code, ran.stdout) == (0, f"2 pairs are kept in {kept}\n")
    assert [(one.source, one.target) for one in TranslationMemory(kept)] == [
        (SENTENCE, "jen la hundo"),
        ("a cat", "iu kato"),
    ]
    assert cli("corrections", "export", kept, *LANGUAGES, "--out", out).code == 0
    again = cli("corrections", "import", tmp_path / "new.db", out, *LANGUAGES, "--json")
    assert json.loads(again.stdout) == {"imported": 2}
    both = [[(one.source, one.target) for one in TranslationMemory(path)] for path in (kept, tmp_path / "new.db")]
    assert both[0] == both[1]
    assert cli("corrections", "export", kept, *LANGUAGES, "--format", "tmx").stdout == out.read_text(encoding="utf-8")
    assert cli("corrections", "export", kept, *LANGUAGES, "--format", "tmx", "--json").code == 2


def test_matches_of_a_translation_memory_have_their_scores(cli: Any, tiny_run: Path, tmp_path: Path) -> None:
    """The same sentence gets its translation; of a similar one the score is said."""
    memory, text = tmp_path / "memory.tmx", tmp_path / "in.txt"
    memory.write_text(TMX, encoding="utf-8")
    text.write_text(f"{SENTENCE}\nthe old dog sees the red tree\n", encoding="utf-8")
    ran = cli("translate", tiny_run, "--input", text, "--corrections", memory, "--json")
    same, similar = map(json.loads, ran.stdout.splitlines())
    assert (same["translations"][0]["text"], same["corrected"]) == ("jen la hundo", True)
    score = similarity("the old dog sees the red tree", SENTENCE)
    assert similar["suggestions"] == [{"source": SENTENCE, "target": "jen la hundo", "score": score}]
    out, report = tmp_path / "out.txt", tmp_path / "report.json"
    ran = cli("translate-file", tiny_run, text, "--out", out, "--corrections", memory, "--report", report)
    assert ran.code == 0, ran.stderr
    assert out.read_text(encoding="utf-8").splitlines()[0] == "jen la hundo"
    assert f"{score:.0%} like '{SENTENCE}', which was 'jen la hundo'" in report.read_text(encoding="utf-8")


def test_of_a_run_that_does_not_say_its_languages_the_memory_says_them(tiny_run: Path, tmp_path: Path) -> None:
    memory = TranslationMemory(tmp_path / "corrections.db")
    memory.store("en-eo", "a cat", "iu kato")
    found, pair = corrections_for(tiny_run, tmp_path / "corrections.db")
    assert (pair, found.exact(pair, "a cat")) == ("en-eo", "iu kato")
    memory.store("en-fr", "a cat", "un chat")
    with pytest.raises(UsageError, match=r"corrections of en-eo, en-fr, and .* does not say its languages; write"):
        corrections_for(tiny_run, tmp_path / "corrections.db")
    (tmp_path / "memory.tmx").write_text(TMX, encoding="utf-8")
    found, pair = corrections_for(tiny_run, tmp_path / "memory.tmx")
    assert found.exact(pair, "a cat") == "iu kato"


def test_a_test_of_promotion_is_given_whole(tiny_run: Path, cli: Any) -> None:
    ran = cli("corrections", "promote", tiny_run, tiny_run, "--source", "x")
    assert (ran.code, "--source and --reference go together" in ran.stderr) == (2, True)
