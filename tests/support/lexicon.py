"""Makes sentence pairs of a small invented parallel language: English words, each with one Esperanto word."""

import random

LEXICON = {
    "the": "la", "dog": "hundo", "cat": "kato", "house": "domo", "red": "ruĝa", "old": "maljuna",
    "small": "malgranda", "sees": "vidas", "finds": "trovas", "hears": "aŭdas", "under": "sub", "near": "apud",
    "tree": "arbo", "garden": "ĝardeno", "child": "infano", "river": "rivero",
}  # fmt: skip


def lexicon_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Word by word translations of random sentences, all different."""
    draw = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        words = draw.choices(list(LEXICON), k=draw.randint(2, 8))
        pairs[" ".join(words)] = " ".join(LEXICON[word] for word in words)
    return list(pairs.items())
