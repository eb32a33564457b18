"""One sentence splitter in a process of its own: splits texts when it is told to, and says what that took.

The protocol is that of worker.py. It runs in any environment that has its splitter, so it imports nothing else that is
not in the standard library.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence

Split = Callable[[str], Sequence[str]]


def dragoman(language: str) -> Split | None:
    from dragoman.data.segmentation import segments

    def split(text: str) -> list[str]:
        """Marks of list items stand outside the segments; here each is given to the segment that follows it."""
        ends = [part.end for part in segments(text, lambda _: True, language)]
        if not ends:
            return []
        return [text[start:end] for start, end in zip([0, *ends[:-1]], [*ends[:-1], len(text)], strict=True)]

    return split


def dragoman_unknown(_: str) -> Split | None:
    """Ours as it is when nobody has said which language a text is in."""
    from dragoman.data.segmentation import sentences

    return lambda text: [text[start:end] for start, end in sentences(text, 0, len(text), None)]


def pysbd(language: str) -> Split | None:
    from pysbd import Segmenter
    from pysbd.languages import LANGUAGE_CODES

    if language not in LANGUAGE_CODES:
        return None
    split: Split = Segmenter(language=language, clean=False).segment
    return split


def sentence_splitter(language: str) -> Split | None:
    from sentence_splitter import SentenceSplitter, SentenceSplitterException

    try:
        split: Split = SentenceSplitter(language=language).split
    except SentenceSplitterException:
        return None
    return split


def blingfire(_: str) -> Split | None:
    """One model for all languages."""
    from blingfire import text_to_sentences

    return lambda text: text_to_sentences(text).split("\n")


SPLITTERS = {
    "dragoman": dragoman,
    "dragoman-unknown": dragoman_unknown,
    "pysbd": pysbd,
    "sentence-splitter": sentence_splitter,
    "blingfire": blingfire,
}


def main() -> None:
    make = SPLITTERS[sys.argv[1]]
    print(json.dumps({"python": sys.version.split()[0]}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        split = make(command["language"])
        if split is None:
            print(json.dumps({"parts": None}), flush=True)
            continue
        split("One. Two.")  # what it loads or compiles at first use is not counted
        start = time.perf_counter()
        parts = [list(split(text)) for text in command["texts"]]
        seconds = time.perf_counter() - start
        print(json.dumps({"parts": parts, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
