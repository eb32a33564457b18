"""How many of tests/sentence_cases.py three splitters get right, and whether characters are lost.

pip install pysbd sentence-splitter    # in an environment of its own
python bench/splitters.py
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from sentence_cases import CASES

# What users paste: spaces of every kind, marks that regular expressions know, no last full stop.
AWKWARD = [
    "  two  spaces.  And a tab\there. ",
    "He said (see below) that a*b. Then c+d.",
    "One. one. One.",
    "... and then? ... nothing",
    "A sentence.\n\nAnother one. \n",
    "∯ and ȸ and &&* stay. Do they?",
    "It costs $5. \\1 is a group. [x] is not.",
    "a.\u00a0b.\u2009c. D.",
]


def ours(language: str) -> Callable[[str], list[str]]:
    from dragoman.sentences import sentences

    return lambda text: [text[start:end] for start, end in sentences(text, 0, len(text), language)]


def pysbd(language: str) -> Callable[[str], list[str]]:
    from pysbd import Segmenter

    return lambda text: [part.strip() for part in Segmenter(language=language, clean=False).segment(text)]


def sentence_splitter(language: str) -> Callable[[str], list[str]]:
    from sentence_splitter import split_text_into_sentences

    return lambda text: split_text_into_sentences(text, language)


def main() -> None:
    print("splitter            right   of those it has the language for   characters lost in (of all texts)")
    for make in (ours, pysbd, sentence_splitter):
        right = known = lost = 0
        wrong: dict[str, list[str]] = defaultdict(list)
        texts = [(language, case) for language, case in CASES] + [("en", text) for text in AWKWARD]
        for number, (language, case) in enumerate(texts):
            text = case.replace("|", "")
            try:
                found = [part for part in make(language)(text) if part]
            except Exception:  # a language that it does not have
                continue
            if sorted("".join(text.split())) != sorted("".join("".join(found).split())):
                lost += 1
            if number < len(CASES):
                known += 1
                expected = [part.strip() for part in case.split("|")]
                right += found == expected
                if found != expected:
                    wrong[language].append(f"{found}")
        print(f"{make.__name__:<18} {right:>3} of {len(CASES)}  {right} of {known:<30} {lost} of {len(texts)}")
        if "--wrong" in sys.argv:
            for language, cases in wrong.items():
                for case in cases:
                    print(f"    {language} {case}")


if __name__ == "__main__":
    main()
