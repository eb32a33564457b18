"""What is held out gives nothing away."""

import os
import subprocess
import sys
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.splitting import identity_of, split_pairs

# Few words in many dresses, so that sentences meet often: some are equal, some equal but for the dress.
PLAIN = ["go", "run", "i go", "we run", "ou", "la", "ete", "va", "l ete", "3", "coeur"]
DRESSES = ["{}.", "{}!", "{} !", "{}\u202f?", "« {} »", "{}", "  {}…"]


def dressed(word: str, dress: int, upper: bool) -> str:
    text = DRESSES[dress].format(word)
    return text.upper() if upper else text.replace("ou", "où").replace("ete", "été").replace("oe", "œ")


def undressed(text: str) -> str:
    """The words alone, found in another way than the module finds them: by the short list of what there is."""
    for old, new in {"ù": "u", "é": "e", "œ": "oe"}.items():
        text = text.lower().replace(old, new)
    return "".join(c if c.isalnum() else " " for c in text).strip()


SENTENCES = st.builds(dressed, st.sampled_from(PLAIN), st.integers(0, len(DRESSES) - 1), st.booleans())
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), max_size=30, unique=True)


@given(PAIRS, st.integers(0, 6), st.integers(0, 6), st.integers(0, 3), st.randoms(use_true_random=False))
def test_split_never_leaks_and_loses_nothing(pairs: Any, valid: int, test: int, seed: int, rng: Any) -> None:
    split = split_pairs(pairs, valid, test, seed)
    parts = {
        "train": split.train,
        "valid": [(source, target) for source, targets in split.valid.items() for target in targets],
        "test": [(source, target) for source, targets in split.test.items() for target in targets],
    }
    assert Counter(pair for part in parts.values() for pair in part) == Counter(pairs)
    assert len(split.valid) <= valid
    assert len(split.test) <= test
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        for side in (0, 1):
            seen = {undressed(pair[side]) for pair in parts[one]}
            assert not seen & {undressed(pair[side]) for pair in parts[other]}
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    again = split_pairs(shuffled, valid, test, seed)
    assert {source: set(targets) for source, targets in again.test.items()} == {
        source: set(targets) for source, targets in split.test.items()
    }


def test_split_holds_out_whole_chains() -> None:
    chain = [("Go.", "Va !"), ("Go!", "Pars."), ("Leave.", "PARS !"), ("Leave?", "Sors.")]
    others = [(f"Sentence {number}.", f"Phrase {number}.") for number in range(20)]
    for seed in range(10):
        split = split_pairs(chain + others, 0, 12, seed)
        held_out = {source for source, _ in chain} & set(split.test)
        assert len(held_out) in (0, 4)
        assert len(split.test) == 12
    # A component larger than what is wanted is never held out, and the number is reached without it.
    assert not {source for source, _ in chain} & set(split_pairs(chain + others, 0, 3, 1).test)


def test_split_gives_all_references_and_depends_on_the_seed_alone() -> None:
    pairs = [(f"Sentence {number}.", f"{word} {number}.") for number in range(50) for word in ("Phrase", "Expression")]
    split = split_pairs(pairs, 5, 10, seed=1)
    assert len(split.test) == 10
    assert len(split.valid) == 5
    for source, targets in split.test.items():
        assert targets == [target for other, target in pairs if other == source]
    assert set(split_pairs(pairs, 5, 10, seed=2).test) != set(split.test)
    code = (
        "from dragoman.data.splitting import split_pairs\n"
        f"print(list(split_pairs({pairs!r}, 5, 10, 1).test) == {list(split.test)!r})"
    )
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        outcome = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        assert outcome.stdout.strip() == b"True"


def test_apostrophes_make_no_other_sentence() -> None:
    """Of the three that Ukrainian is written with, one is a letter by its category."""
    assert len({identity_of(f"Це п{apostrophe}ять.") for apostrophe in "'’ʼ"}) == 1
