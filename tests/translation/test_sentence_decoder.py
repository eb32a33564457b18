"""Required words are searched for only where the best translation lacks them."""

from pathlib import Path

import pytest

from dragoman.data.glossary import Required
from dragoman.translation.sentence_decoder import EncodedSentence, SentenceDecoder
from dragoman.translation.translator import Translator


class SearchedError(Exception):
    pass


def search() -> None:
    raise SearchedError


def test_what_the_best_translation_has_is_not_searched_for(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, engine="ctranslate2")
    decoder = SentenceDecoder(translator.engine, translator.tokenizer, translator.search, search)  # type: ignore[arg-type]
    texts = ["the old dog sees the red house", "the cat hears the river"]
    plain = decoder.engine.translate(decoder.encode(texts), decoder.search)
    words = [translator.tokenizer.decode(best[0].ids).split()[1] for best in plain]
    sentences = [
        EncodedSentence(text, ids, (Required((word,)),))
        for text, ids, word in zip(texts, decoder.encode(texts), words, strict=True)
    ]
    assert [best[0].ids for best in decoder.decode_required(sentences, 1)] == [best[0].ids for best in plain]
    part = sentences[0]._replace(required=(Required((words[0][:-1],)),))  # a part of a word is not the word
    for asked, n_best in (([part], 1), (sentences, 2)):
        with pytest.raises(SearchedError):
            decoder.decode_required(asked, n_best)
