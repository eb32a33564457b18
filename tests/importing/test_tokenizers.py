"""The tokenizers of imported models give the ids that transformers gives, on text of many scripts."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.errors import DataError, UsageError
from dragoman.importing.read import import_model
from dragoman.importing.tokenizers import MBART_LANGUAGES, m2m_tokenizer, marian_tokenizer, nllb_tokenizer
from support.model_directories import mbart_directory
from support.public_models import ODD, learned, lines, pieces_of

TEXT = lines(1000, seed=1)


@pytest.fixture(params=["one vocabulary", "two vocabularies", "many targets"])
def marian(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A directory as OPUS-MT's are, and what its config.json says."""
    unigram: dict[str, Any] = {"model_type": "unigram", "bos_id": -1, "eos_id": 0, "unk_id": 1}
    models = [learned(tmp_path / f"{side}.spm", 300, seed, **unigram) for seed, side in enumerate(("source", "target"))]
    settings: dict[str, Any] = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": False}
    config: dict[str, Any] = {"eos_token_id": 0}
    sides = [pieces_of(model) for model in models]
    if request.param == "two vocabularies":
        vocabularies = {"vocab.json": [*sides[0], "<pad>"], "target_vocab.json": [*sides[1], "<pad>"]}
        # Both have their padding at one id.
        size = max(map(len, vocabularies.values()))
        for names in vocabularies.values():
            names[-1:] = [*(f"<filled-{index}>" for index in range(size - len(names))), "<pad>"]
        settings["separate_vocabs"] = True
        config["decoder_vocab_size"] = size
    else:
        tags = [">>deu<<", ">>fra<<", ">>ukr<<"] if request.param == "many targets" else []
        vocabularies = {"vocab.json": [*dict.fromkeys([*sides[0], *sides[1]]), *tags, "<pad>"]}
    for name, names in vocabularies.items():
        content = json.dumps({piece: index for index, piece in enumerate(names)}, ensure_ascii=False)
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    last = len(vocabularies["vocab.json"]) - 1
    config |= {"vocab_size": last + 1, "pad_token_id": last, "decoder_start_token_id": last, "bad_words_ids": [[last]]}
    return tmp_path, config


def theirs(name: str, directory: Path, **settings: Any) -> Any:
    import transformers

    with warnings.catch_warnings(action="ignore"):  # it recommends packages that it does not use here
        return getattr(transformers, name).from_pretrained(directory, **settings)


def test_marian_s_ids_are_those_of_transformers(marian: tuple[Path, dict[str, Any]]) -> None:
    directory, config = marian
    reference, ours = theirs("MarianTokenizer", directory), marian_tokenizer(directory, config)
    assert reference(TEXT).input_ids == [[*ids, 0] for ids in ours.encode_batch(TEXT)]
    targets = reference(text_target=TEXT).input_ids
    assert targets == [[*ids, 0] for ids in ours.encode_target_batch(TEXT)]
    assert [ours.decode(ids[:-1]) for ids in targets] == reference.batch_decode(targets, skip_special_tokens=True)
    pad = config["pad_token_id"]
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.start_ids, ours.suppressed) == (pad, 0, pad, (pad,), (pad,))
    if ours.languages:
        assert ours.languages == ["deu", "fra", "ukr"]
        tagged = [f">>fra<< {line}" for line in TEXT]
        assert reference(tagged).input_ids == [[*ids, 0] for ids in ours.encode_batch(tagged)]
        assert ours.source_piece(ours.encode(tagged[0])[0]) == ">>fra<<"


@pytest.mark.parametrize("marian", ["two vocabularies"], indirect=True)
def test_each_vocabulary_has_an_unknown_symbol_of_its_own(marian: tuple[Path, dict[str, Any]]) -> None:
    path = marian[0] / "target_vocab.json"
    ids = json.loads(path.read_bytes())
    other = next(piece for piece, token in ids.items() if token == 2)
    path.write_text(json.dumps(ids | {"<unk>": 2, other: 1}))
    ours = marian_tokenizer(*marian)
    assert (ours.source_unk_id, ours.unk_id) == (1, 2)


def test_m2m100_s_ids_are_those_of_transformers(tmp_path: Path) -> None:
    model = learned(tmp_path / "sentencepiece.bpe.model", 400, 3, model_type="bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece in pieces_of(model) if not piece.startswith("<"))]
    (tmp_path / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "M2M100Tokenizer"}))
    reference = theirs("M2M100Tokenizer", tmp_path, src_lang="en", tgt_lang="fr")
    config = {"vocab_size": len(names) + 108, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
    ours = m2m_tokenizer(tmp_path, config).for_languages("en", "fr")
    assert reference(TEXT).input_ids == [[*ids, 2] for ids in ours.encode_batch(TEXT)]
    targets = reference(text_target=TEXT).input_ids
    assert targets == [[*ours.start_ids[1:], *ids, 2] for ids in ours.encode_target_batch(TEXT)]
    assert ours.start_ids == (2, reference.get_lang_id("fr"))
    words = [ids[1:] for ids in targets]
    assert [ours.decode(ids) for ids in targets] == reference.batch_decode(words, skip_special_tokens=True)
    assert len(ours.languages) == 100
    with pytest.raises(UsageError, match="language tlh is none of af, am, "):
        ours.for_languages("en", "tlh")


def test_nllb_s_ids_are_those_of_transformers(tmp_path: Path) -> None:
    model = learned(tmp_path / "sentencepiece.bpe.model", 400, 4, model_type="bpe")
    languages = ["ace_Arab", "deu_Latn", "eng_Latn", "fra_Latn", "ukr_Cyrl", "zho_Hans", "zho_Hant"]
    settings = {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": languages}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    reference = theirs("NllbTokenizer", tmp_path, src_lang="eng_Latn", tgt_lang="fra_Latn")
    config = {"vocab_size": model.vocab_size() + 10, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
    ours = nllb_tokenizer(tmp_path, config).for_languages("eng_Latn", "fr")
    # transformers has no sentencepiece in this one and rebuilds it: runs of odd spaces and of unknown characters come
    # out otherwise than from sentencepiece, which the model was trained with.
    same = [line for line in lines(8000, seed=2) if not any(odd in line for odd in ODD)]
    assert len(same) > 1000
    # Without the tokenizer.json of a real directory, transformers numbers the languages from <mask> on; fairseq, and
    # the weights, from the last piece on.
    assert ours.start_ids == (2, model.vocab_size() + 1 + languages.index("fra_Latn"))
    assert {ids[0] for ids in ours.encode_batch(same)} == {model.vocab_size() + 1 + languages.index("eng_Latn")}
    assert [ids[1:] for ids in reference(same).input_ids] == [[*ids[1:], 2] for ids in ours.encode_batch(same)]
    targets = [ids[1:] for ids in reference(text_target=same).input_ids]
    assert targets == [[*ids, 2] for ids in ours.encode_target_batch(same)]
    known = [ids for ids in targets if ours.unk_id not in ids]
    written = [" ".join(text.split()) for text in reference.batch_decode(known, skip_special_tokens=True)]
    assert [ours.decode(ids) for ids in known] == written
    assert len(known) > 50
    assert ours.languages == languages


def test_mbart_50_s_languages_have_the_ids_that_transformers_gives_them(tmp_path: Path) -> None:
    directory = mbart_directory(tmp_path / "mbart")
    reference = theirs("MBart50Tokenizer", directory, src_lang="en_XX", tgt_lang="de_DE")
    ours = load_tokenizer(import_model(directory, tmp_path / "run"))
    for code in MBART_LANGUAGES.split():
        assert ours.for_languages(code, code).start_ids == (2, reference.convert_tokens_to_ids(code))
    text = "children playing in front of the old harbour"
    assert reference(text).input_ids == [*ours.for_languages("en_XX", "de_DE").encode(text), 2]
    assert ours.for_languages("en", "zh").start_ids == (2, reference.convert_tokens_to_ids("zh_CN"))


def test_the_archive_is_the_same_every_time_and_a_damaged_one_is_said_in_a_line(
    marian: tuple[Path, dict[str, Any]],
) -> None:
    ours = marian_tokenizer(*marian)
    assert marian_tokenizer(*marian).model_bytes == ours.model_bytes
    again = Tokenizer(ours.model_bytes)
    assert again.encode_batch(TEXT[:50]) == ours.encode_batch(TEXT[:50])
    for damaged in (
        ours.model_bytes[:-40],
        ours.model_bytes[:200],
        ours.model_bytes.replace(b"suppressed", b"oppressed!"),
    ):
        with pytest.raises(DataError, match=r"here: a damaged tokenizer \(.+\); import the model again"):
            Tokenizer(damaged, "here")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"bad_words_ids": [[1, 2]]},
            r"bad_words_ids = \[\[1, 2\]\]; models that forbid single tokens can be imported",
        ),
        ({"vocab_size": 100, "decoder_vocab_size": 100}, "pieces have ids up to .* and the model 100 tokens"),
        ({"pad_token_id": 999_999}, "pad_token_id = 999999, and the model has"),
        ({"decoder_start_token_id": "x"}, "decoder_start_token_id = 'x', and the model has"),
        ({"eos_token_id": None}, "eos_token_id = None; a number is needed"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(
    changes: dict[str, Any], message: str, marian: tuple[Path, dict[str, Any]]
) -> None:
    directory, config = marian
    with pytest.raises(DataError, match=message):
        marian_tokenizer(directory, config | changes)
