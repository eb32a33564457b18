"""The tokenizer loses nothing, says what is wrong with a model, and learns the same from the same text."""

import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.tokenizer import Tokenizer, choose_vocab_size
from dragoman.errors import DataError

WORDS = ["the", "a", "dog", "cat", "runs", "big", "der", "die", "Hund", "Katze", "läuft", "große", "<s>", "▁", "1984"]
SENTENCES = [f"{a} {b} {c}, {d}." for a in WORDS for b in WORDS for c in WORDS[:4] for d in WORDS[:6]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(SENTENCES, 350)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
AWKWARD = st.sampled_from([" ", "  ", "▁", "␛", "_", "␛_", "\t", "\n", "\r", "\0", "<s>", "</s>", "<unk>", "<pad>"])
MORE_AWKWARD = st.sampled_from(
    ["<0x41>", "<0xE2>", "ﬁ", "ﬀ", "é", "e\u0301", "👩‍👩‍👧", "\ufeff", "\u2028", "\u3000", "⁇"]
)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(text=ANY_TEXT | st.lists(AWKWARD | MORE_AWKWARD | st.sampled_from(WORDS)).map("".join))
def test_decoding_gives_back_any_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id} & set(ids)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(texts=st.lists(ANY_TEXT))
def test_a_batch_is_encoded_as_its_texts_one_by_one(tokenizer: Tokenizer, texts: list[str]) -> None:
    batch = tokenizer.encode_batch(texts)
    assert batch == [tokenizer.encode(text) for text in texts]
    assert tokenizer.decode_batch(batch) == texts


def test_ordinary_text_has_the_ids_of_the_plain_library(tokenizer: Tokenizer) -> None:
    plain = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    for text in ("the dog runs", "", "Die große Katze schläft.", " two  spaces ", "日本"):
        assert tokenizer.encode(text) == plain.encode(text)


def test_a_stray_escape_in_a_models_output_is_left_as_it_is(tokenizer: Tokenizer) -> None:
    stray = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes).encode("a ␛ b")
    assert tokenizer.decode(stray) == "a ␛ b"


def test_special_ids_and_pieces(tokenizer: Tokenizer) -> None:
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    assert tokenizer.source_unk_id == tokenizer.unk_id
    ids = tokenizer.encode("the dog")
    assert "".join(map(tokenizer.piece, ids)) == "▁the▁dog"
    assert tokenizer.decode([2, *ids, 3, 0]) == "the dog"


def test_same_text_same_model(tokenizer: Tokenizer) -> None:
    again = Tokenizer.learn(iter(SENTENCES), 350)
    assert again.model_bytes == tokenizer.model_bytes
    assert again.digest == tokenizer.digest
    assert Tokenizer.learn(SENTENCES[:300], 350).digest != tokenizer.digest


def test_learning_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    Tokenizer.learn(SENTENCES, 300)
    assert capfd.readouterr() == ("", "")


def test_saved_and_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.model")
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]
    for loaded in (Tokenizer.load(tmp_path / "tokenizer.model"), Tokenizer.load(tokenizer.model_bytes)):
        assert loaded.digest == tokenizer.digest
        assert loaded.vocab_size == tokenizer.vocab_size == 350
        assert loaded.encode("the dog ▁") == tokenizer.encode("the dog ▁")


def test_the_vocabulary_is_as_large_as_the_text_supports() -> None:
    # 256 bytes, 4 special symbols, and of "a", "▁" and "▁a" all there is
    assert Tokenizer.learn(["a", "a a"], 1000).vocab_size == 263
    assert Tokenizer.learn(["a", "a a"], 0).vocab_size == 263


def test_an_alphabet_too_large_for_the_vocabulary_gets_the_smallest_that_holds_it() -> None:
    ideographs = [chr(c) for c in range(0x4E00, 0x4E00 + 500)]
    learned = Tokenizer.learn(["".join(ideographs[i::5]) for i in range(5)], 300)
    assert 256 + 4 + 490 <= learned.vocab_size <= 256 + 4 + 501
    assert learned.decode(learned.encode("".join(ideographs) + "€")) == "".join(ideographs) + "€"


@pytest.mark.parametrize("sentences", [[], [""], ["x" * 5000]])
def test_no_text_to_learn_from(sentences: list[str]) -> None:
    with pytest.raises(DataError, match=f"learned from {len(sentences)} lines"):
        Tokenizer.learn(sentences, 300)


def test_vocabulary_sizes_follow_the_amount_of_text() -> None:
    assert 5_000 <= choose_vocab_size(3_800_000) <= 8_000  # Multi30k
    assert 7_500 <= choose_vocab_size(11_000_000) <= 8_500  # Tatoeba English-French
    assert choose_vocab_size(1_200_000_000) == 37_000  # WMT14 English-German
    assert choose_vocab_size(10**12) == 37_000
    assert choose_vocab_size(0) == 1_000
    sizes = [choose_vocab_size(2**n) for n in range(40)]
    assert sizes == sorted(sizes)


def test_a_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"character 3 of .* lone surrogate \(U\+D83D\)"):
        tokenizer.encode("ab\ud83d")


def _given_model(**options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=50, minloglevel=2, **options
    )
    return model.getvalue()


def test_a_given_unigram_model_with_other_ids() -> None:
    given = Tokenizer.load(_given_model(model_type="unigram"))  # sentencepiece's own ids: <unk> 0, <s> 1, </s> 2
    assert (given.unk_id, given.bos_id, given.eos_id, given.pad_id) == (0, 1, 2, 2)
    assert given.decode(given.encode("the dog runs")) == "the dog runs"


def test_a_given_model_without_a_start_symbol_starts_with_the_end_symbol() -> None:
    given = Tokenizer.load(_given_model(bos_id=-1, unk_id=1, eos_id=0))
    assert (given.bos_id, given.eos_id, given.pad_id) == (0, 0, 0)


def test_a_given_model_without_an_end_symbol_is_refused() -> None:
    with pytest.raises(DataError, match="no end symbol"):
        Tokenizer.load(_given_model(eos_id=-1))


@pytest.mark.parametrize("content", [b"", b"hello\n", bytes(200), b"\x1f\x8b\x08\0", None])
def test_not_a_model(
    content: bytes | None, tokenizer: Tokenizer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.model"
    path.write_bytes(tokenizer.model_bytes[:-7] if content is None else content)
    with pytest.raises(DataError, match=r"some\.model: not a sentencepiece model"):
        Tokenizer.load(path)
    assert capfd.readouterr() == ("", "")


def test_no_such_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        Tokenizer.load(tmp_path / "none.model")
