"""Reads scikit-learn's handwritten digits as lines of text: a pixel is a letter, a picture a word, its label another.

So the trainer of translators takes them as they are. There are 1,797 pictures of 8 × 8 pixels, in 17 levels of
brightness (E. Alpaydin and C. Kaynak, UCI); they come with scikit-learn, and nothing is fetched.
"""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sentencepiece

from dragoman.config import CorpusConfig, RunConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import UsageError
from dragoman.files import write_atomically

LEVELS = "0123456789abcdefg"  # a pixel's brightness from 0 to 16
SIDE = 8


@dataclass(frozen=True)
class Digits:
    """Pictures as lines with their labels. Test is a fifth of all; valid, to choose models by, a tenth of the rest."""

    train: Sequence[tuple[str, str]]
    valid: Sequence[tuple[str, str]]
    test: Sequence[tuple[str, str]]


def load_digits() -> Digits:
    """The digits, divided at random, always the same way. One writer can be in all parts: the data names none."""
    try:
        from sklearn import datasets
    except ImportError:
        raise UsageError("vit: the digits come with scikit-learn, which is not installed; pip install "
                         "'dragoman[vision]'") from None  # fmt: skip
    pixels, labels = datasets.load_digits(return_X_y=True)
    pairs = [
        ("".join(LEVELS[int(pixel)] for pixel in picture), str(label))
        for picture, label in zip(pixels, labels, strict=True)
    ]
    random.Random(0).shuffle(pairs)
    fifth = len(pairs) // 5
    tenth = (len(pairs) - fifth) // 10
    return Digits(train=pairs[fifth + tenth :], valid=pairs[fifth : fifth + tenth], test=pairs[:fifth])


def pixel_tokenizer() -> Tokenizer:
    """A tokenizer in which each level of brightness is a token, in order, after the special symbols."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([LEVELS]),
        model_writer=model,
        model_type="bpe",
        vocab_size=4 + len(LEVELS),
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        user_defined_symbols=list(LEVELS),
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return Tokenizer(model.getvalue())


def prepare_run(config: RunConfig, digits: Digits, out: Path) -> RunConfig:
    """Writes pictures and vocabulary into the run's directory; returns the configuration that trains on them."""
    directory = out / "digits"
    vocabulary_path = directory / "vocabulary.model"
    write_atomically(vocabulary_path, pixel_tokenizer().model_bytes)

    def corpus(name: str, pairs: Sequence[tuple[str, str]]) -> CorpusConfig:
        path = directory / f"{name}.tsv"
        write_atomically(path, "".join(f"{picture}\t{label}\n" for picture, label in pairs).encode())
        return CorpusConfig(pairs=str(path))

    train, valid = corpus("train", digits.train), corpus("valid", digits.valid)
    data = replace(config.data, train=(train,), valid=(valid,), tokenizer=str(vocabulary_path))
    return replace(config, model=replace(config.model, classes=tuple("0123456789")), data=data)
