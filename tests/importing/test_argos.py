"""A package of Argos Translate becomes a run that translates as Argos Translate does with it."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pytest
from sentencepiece import SentencePieceProcessor

from dragoman.errors import DataError
from dragoman.export.formats import export
from dragoman.importing.read import import_model
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.ctranslate2_models import argos_files, opennmt
from support.public_models import lines

TEXT = lines(16, seed=9)


def packed(directory: Path, out: Path, root: str = "translate-en_es-1_0/") -> Path:
    """The package of a directory."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(directory.rglob("*")):
            archive.write(path, f"{root}{path.relative_to(directory)}")
    return out


def theirs(directory: Path, prefix: str = "") -> list[list[str]]:
    """The tokens that Argos Translate would join to each line's translation, but for the search: greedy, and one line
    at a time, so that nothing depends on rounding. https://github.com/argosopentech/argos-translate, translate.py"""
    model = SentencePieceProcessor(model_file=str(directory / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(directory / "model"), compute_type="int8")
    given = [[prefix]] if prefix else None
    found = [
        translator.translate_batch([tokens], given, beam_size=1, min_decoding_length=0, max_decoding_length=60)[0]
        for tokens in model.encode(TEXT, out_type=str)
    ]
    return [result.hypotheses[0][len(prefix) > 0 :] for result in found]


def ours(run: Path) -> list[list[str]]:
    translator = Translator.load(run, beam=1, alpha=0.0)
    tokenizer, made = translator.tokenizer, []
    for ids in tokenizer.encode_batch(TEXT):
        most = 60 - len(ids) - len(tokenizer.start_ids) + 1
        search = translator.search.__class__(beam=1, alpha=0.0, max_extra_length=most)
        made.append([tokenizer.piece(token) for token in translator.engine.translate([ids], search)[0][0].ids])
    return made


@pytest.mark.parametrize("form", ["file", "directory"])
def test_a_package_translates_as_argos_translate_does(form: str, tmp_path: Path) -> None:
    directory = argos_files(tmp_path / "unpacked")
    path = directory if form == "directory" else packed(directory, tmp_path / "translate-en_es.argosmodel")
    run = import_model(path, tmp_path / "run")
    assert ours(run) == theirs(directory)
    translator = Translator.load(run)
    pieces = SentencePieceProcessor(model_file=str(directory / "sentencepiece.model"))
    known = {translator.tokenizer.source_piece(token) for token in range(translator.tokenizer.source_vocab_size)}
    assert [list(map(translator.tokenizer.source_piece, ids)) for ids in translator.tokenizer.encode_batch(TEXT)] == [
        [piece if piece in known else "<unk>" for piece in line] for line in pieces.encode(TEXT, out_type=str)
    ]
    assert (translator.search.beam, translator.search.alpha) == (4, 0.2)
    assert json.loads((run / "languages.json").read_text()) == {"source": "en", "target": "es"}
    card = json.loads((run / "model.json").read_text())
    assert (card["from"], card["argos_version"], card["numbers"]) == (path.name, "1.5", "int8")


def test_text_is_joined_as_argos_translate_joins_it(tmp_path: Path) -> None:
    directory = argos_files(tmp_path / "unpacked")
    tokenizer = Translator.load(import_model(directory, tmp_path / "run")).tokenizer
    pieces = SentencePieceProcessor(model_file=str(directory / "sentencepiece.model"))
    for tokens in theirs(directory):
        known = [token for token in tokens if token != "<unk>"]
        joined = pieces.decode_pieces(known).replace("▁", " ")
        ids = [index for token in known for index in range(tokenizer.vocab_size) if tokenizer.piece(index) == token]
        assert tokenizer.decode(ids) == joined.strip()
    assert tokenizer.decode(tokenizer.encode_target(">>de<< house")) != tokenizer.decode(
        tokenizer.encode_target("house")
    )


def test_a_prefix_comes_before_every_translation_and_is_no_part_of_it(tmp_path: Path) -> None:
    directory = argos_files(tmp_path / "unpacked", target_prefix="▁house")
    run = import_model(directory, tmp_path / "run")
    found = ours(run)
    assert found == theirs(directory, "▁house")
    (directory / "metadata.json").write_text('{"from_code": "en", "to_code": "es"}')
    assert found != ours(import_model(directory, tmp_path / "without"))


def test_our_own_package_comes_back_as_the_run_that_it_was(tiny_run: Path, tmp_path: Path) -> None:
    path = export(tiny_run, "argos", tmp_path / "en_eo.argosmodel", languages=("en", "eo"), compute_type="int8")
    run = import_model(path, tmp_path / "run")
    assert (run / "tokenizer.model").read_bytes() == (tiny_run / "tokenizer.model").read_bytes()
    text = ["the dog sees a cat", "a king likes the old dog"]
    found = Translator.load(run, beam=4, alpha=0.6)
    expected = Translator.load(tiny_run, compute_type="int8", engine="ctranslate2", beam=4, alpha=0.6)
    assert found.engine.name == expected.engine.name == "ctranslate2 int8"
    assert found.translate(text) == expected.translate(text)


@pytest.mark.filterwarnings("ignore:line:UserWarning")  # a random model loses what must stay
def test_every_command_takes_it(tmp_path: Path, cli: Callable[..., Ran]) -> None:
    """Also those that need weights: its integers are numbers like others."""
    path = packed(argos_files(tmp_path / "unpacked"), tmp_path / "translate-en_es.argosmodel")
    out, pairs, source, target = (tmp_path / name for name in ("run", "pairs.tsv", "source", "target"))
    ran = cli("import", path, "--out", out)
    assert (ran.code, ran.stdout) == (0, f"{out}\n"), ran.stderr
    pairs.write_text("".join(f"{line.strip()}\t{line.strip()}\n" for line in lines(150, seed=8) if line.strip()))
    source.write_text("river snow\nold harbour\n")
    target.write_text("rivière neige\nvieux port\n")
    (tmp_path / "page.html").write_text("<p>old <b>harbour</b></p>\n")
    (tmp_path / "terms.tsv").write_text("river\tneige\n")
    for command in (
        ("translate", out, "--input", source, "--out", tmp_path / "translated"),
        ("translate", out, "--input", source, "--out", tmp_path / "terms", "--glossary", tmp_path / "terms.tsv"),
        ("translate-file", out, tmp_path / "page.html", "--out", tmp_path / "translated.html"),
        ("score", out, "--pairs", pairs),
        ("evaluate", out, "--source", source, "--reference", target),
        ("inspect", out, "river snow"),
        ("export", out, "--format", "ctranslate2", "--out", tmp_path / "ct2"),
        ("export", out, "--format", "onnx", "--out", tmp_path / "onnx"),
        ("bundle", out, "--out", tmp_path / "bundle.zip"),
        ("translate", tmp_path / "bundle.zip", "--input", source),
        ("import", tmp_path / "ct2", "--out", tmp_path / "again"),
        ("finetune", out, "--pairs", pairs, "--out", tmp_path / "tuned", "--set", "train.steps=2"),
    ):
        ran = cli(*command)
        assert ran.code == 0, (command, ran.stderr)
    assert json.loads((tmp_path / "ct2" / "config.json").read_text())["add_source_eos"] is False
    assert RunDirectory(tmp_path / "again").tokenizer_path.read_bytes() == (out / "tokenizer.model").read_bytes()
    for form in ("marian-hf", "argos"):
        refused = cli("export", out, "--format", form, "--out", tmp_path / form)
        assert (refused.code, refused.stderr.count("\n")) == (3, 1), refused.stderr


def bomb(directory: Path, path: Path) -> None:
    packed(directory, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("translate-en_es-1_0/model/shared_vocabulary.json", bytes(100 << 20))


def two_packages(directory: Path, path: Path) -> None:
    packed(directory, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/metadata.json", "{}")


def damaged(directory: Path, path: Path) -> None:
    content = bytearray(packed(directory, path).read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def changed(name: str, content: str | None) -> Callable[[Path, Path], None]:
    def make(directory: Path, path: Path) -> None:
        if content is None:
            (directory / name).unlink()
        else:
            (directory / name).write_text(content)
        packed(directory, path)

    return make


def no_archive(_directory: Path, path: Path) -> None:
    path.write_text("nothing")


def with_subword_nmt(directory: Path, path: Path) -> None:
    (directory / "sentencepiece.model").rename(directory / "bpe.model")
    packed(directory, path)


REFUSED: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "subword-nmt": (with_subword_nmt, r"its tokenizer is bpe.model \(subword-nmt\); packages with a sentence"),
    "no tokenizer": (changed("sentencepiece.model", None), "it has no tokenizer; packages with a sentencepiece.model"),
    "no tokens": (changed("sentencepiece.model", "nothing"), "not a sentencepiece model"),
    "a splitter": (changed("metadata.json", '{"type": "sbd"}'), "type = sbd; packages that translate"),
    "no metadata": (changed("metadata.json", None), "0 folders with a metadata.json"),
    "a prefix": (changed("metadata.json", '{"target_prefix": "__xx__"}'), "to begin with __xx__, which is not in its"),
    "no model": (changed("model/model.bin", None), "model.bin: cannot be read"),
    "two packages": (two_packages, "2 folders with a metadata.json"),
    "a bomb": (bomb, "far more than any model; do not trust this package"),
    "damaged": (damaged, "not a package of Argos Translate|not a whole model|not finite|cannot be"),
    "no archive": (no_archive, "not a package of Argos Translate"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_package_that_cannot_be_imported_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "translate-en_es.argosmodel"
    make, message = REFUSED[case]
    make(argos_files(tmp_path / "unpacked"), path)
    with pytest.raises(DataError, match=message) as refused:
        import_model(path, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert not (tmp_path / "run").exists()


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    path = packed(argos_files(tmp_path / "inside" / "unpacked"), tmp_path / "inside" / "en_es.argosmodel")
    with zipfile.ZipFile(path, "a") as archive:
        for name in ("../evil", "../../evil", "/evil", "translate-en_es-1_0/model/../../../evil"):
            archive.writestr(name, "evil")
    import_model(path, tmp_path / "inside" / "run")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["inside"]
    assert sorted(found.name for found in (tmp_path / "inside").iterdir()) == ["en_es.argosmodel", "run", "unpacked"]


def test_a_source_without_an_end_symbol_has_none_anywhere(tmp_path: Path) -> None:
    from dragoman.inspection.inspector import Inspector
    from dragoman.inspection.to_json import describe

    directory = opennmt(tmp_path / "model", None)
    (tmp_path / "sentencepiece.model").rename(directory / "sentencepiece.model")
    run = import_model(directory, tmp_path / "run")
    inspector = Inspector.load(run)
    seen = inspector.inspect("old harbour", "vieux port")
    assert "</s>" not in seen.source
    assert [word["text"] for word in describe(inspector, seen)["source_words"]] == ["old", "harbour"]
    assert all(head.end is None for heads in seen.statistics.values() for head in heads)
    # What was looked into is what CTranslate2 computes.
    named = [list(seen.source)], [list(seen.tokens)]
    found = ctranslate2.Translator(str(directory)).score_batch(*named)
    assert seen.log_probability == pytest.approx(sum(found[0].log_probs), rel=1e-4)
    assert inspector.tokenizer.encoder_ids([]) == [inspector.tokenizer.eos_id]
