"""Text of many scripts, and sentencepiece models as public models have them."""

import io
import random
from pathlib import Path
from typing import Any

import sentencepiece

SCRIPTS = """
    house river snow children playing in front of the old harbour maison rivière neige enfants jouent devant vieux
    port Straße Fluß Schnee Kinder spielen vor dem alten Hafen дом река снег дети играют перед старым портом
    σπίτι ποτάμι χιόνι παιδιά παίζουν μπροστά στο παλιό λιμάνι בית נהר שלג ילדים منزل نهر ثلج أطفال يلعبون
    家 河 雪 孩子们 在 老 港口 前 玩 집 강 눈 아이들 बच्चे पुराने बंदरगाह के सामने खेल रहे हैं बर्फ ბავშვები თამაშობენ երեխաները
"""
WORDS = SCRIPTS.split()
ODD = [
    "  ", "\t", "\u00a0", "\u200b", "\u3000", "…", "“", "”", "’", "—", "😀", "👩‍👧", "ﬁ", "①", "é", "e\u0301", "ÅÅ",
    "🇫🇷", "<<", ">>", "&", "%d", "{name}", "https://example.org/a?b=1", "1,234.56", "٣", "ᚠ", "𝔘", "▁", "ẞ", "İ",
]  # fmt: skip


def lines(count: int, seed: int) -> list[str]:
    """Sentences of words of all scripts, with odd characters between them."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        words = draw.choices(WORDS, k=draw.randint(1, 12))
        for _ in range(draw.randint(0, 3)):
            words.insert(draw.randint(0, len(words)), draw.choice(ODD))
        made.append(
            draw.choice([" ", " ", "", "  "]).join(words).capitalize() + draw.choice([".", "!", "。", "", " ?"])
        )
    return made


def learned(path: Path, vocab_size: int, seed: int, **settings: Any) -> sentencepiece.SentencePieceProcessor:
    """A sentencepiece model as the public ones are: with normalisation, and without bytes for what it does not know."""
    written = io.BytesIO()
    known = [" ".join(random.Random(seed + index).choices(WORDS, k=8)) for index in range(600)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(known), model_writer=written, vocab_size=vocab_size, hard_vocab_limit=False,
        character_coverage=0.995, minloglevel=2, **settings,
    )  # fmt: skip
    path.write_bytes(written.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def pieces_of(model: sentencepiece.SentencePieceProcessor) -> list[str]:
    return [model.id_to_piece(index) for index in range(model.vocab_size())]
