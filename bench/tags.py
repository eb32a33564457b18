"""How often a tag lands on the right word: words whose translation is known, tagged in real sentences.

    python bench/tags.py RUN --target fr     # a run from English; its validation sentences, or --input FILE

A sentence counts if it holds one of the words below, once, and its translation one of the forms that the word has in
the target language, once: then it is known where the tag belongs. With two such words, the tag is around both and
what is between them. Right: the tag is around exactly that; near: around some of it, or more; else wrong. Beside the
alignment: the order of the words alone.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from dragoman.documents import word_alignment
from dragoman.documents.flow import sentences_of
from dragoman.documents.html import html_pieces
from dragoman.documents.sentence_translator import RunSentenceTranslator
from dragoman.documents.tag_placement import place_tags
from dragoman.documents.word_alignment import AlignedWords, Span, without_alignment
from dragoman.translation.result import SourceSentence

WORDS = {
    "fr": """dog chien chiens chienne|cat chat chats chatte|house maison maisons|car voiture voitures|book livre livres
    |father père|mother mère|brother frère frères|sister sœur sœurs|water eau|bread pain|coffee café|tea thé|milk lait
    |red rouge rouges|white blanc blanche blancs blanches|black noir noire noirs noires|money argent|school école
    |friend ami amie|friends amis amies|today aujourd'hui|tomorrow demain|yesterday hier|always toujours|never jamais
    |train train|door porte|window fenêtre fenêtres|hand main mains|eyes yeux|night nuit|morning matin|week semaine
    |year an année ans|English anglais anglaise|French français française|Mary Marie|Tom Tom|Boston Boston|music musique
    |doctor médecin docteur|children enfants|woman femme|man homme|tree arbre arbres|table table|letter lettre lettres
    |sleep dormir dort dors|eat manger mange manges|work travail travailler travaille|happy heureux heureuse
    |dead mort morte""",
    "de": """dog Hund Hunde Hunds Hundes|man Mann|men Männer Männern|woman Frau|women Frauen|boy Junge Jungen
    |girl Mädchen
    |child Kind|children Kinder Kindern|red rot rote roten roter rotes rotem|blue blau blaue blauen blauer blaues blauem
    |white weiß weiße weißen weißer weißes weißem|black schwarz schwarze schwarzen schwarzer schwarzes schwarzem
    |green grün grüne grünen grüner grünes grünem|water Wasser|snow Schnee|street Straße|beach Strand|ball Ball|hat Hut
    |shirt Hemd Shirt|horse Pferd|bicycle Fahrrad|grass Gras|tree Baum|car Auto|guitar Gitarre|mountain Berg|table Tisch
    |young junger junge junges jungen|old alter alte altes alten|two zwei|three drei|four vier|building Gebäude""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--target", choices=sorted(WORDS), required=True)
    parser.add_argument("--input", type=Path, help="sentences, one a line [the run's validation sources]")
    parser.add_argument("--most", type=int, default=300, help="a third of the sentences looked at [300]")
    parser.add_argument(
        "--share", type=float, help="the share of attention from which a word counts [as in word_alignment.py]"
    )
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    given = parser.parse_args()
    if given.share is not None:
        word_alignment.SHARE = given.share
    forms = {entry.split()[0]: entry.split()[1:] for entry in WORDS[given.target].split("|")}
    if given.input:
        lines = given.input.read_text(encoding="utf-8").splitlines()
    else:
        (kept, *_) = sorted(given.run.glob("data/*/valid/text.json"))
        lines = [source for source, _ in json.loads(kept.read_text(encoding="utf-8"))]
    translator = RunSentenceTranslator.load(given.run, language="en")
    chosen = [known for line in dict.fromkeys(lines) if (known := stretch(line, forms))][: 3 * given.most]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    translations = translator.translate([SourceSentence(line) for line, _, _ in chosen])
    for (line, place, words), translation in zip(chosen, translations, strict=True):
        candidate = translation.candidates[0]
        target = expected(candidate.text, [forms[word] for word in words])
        tagged = f"{line[: place.start]}<b>{line[place.start : place.end]}</b>{line[place.end :]}"
        (flow,) = html_pieces([tagged])
        found = sentences_of(flow, lambda _: True)
        if target is None or len(found) != 1 or found[0].text != line or not found[0].tags:
            continue
        alignment = translator.align(line, candidate)
        assert alignment is not None
        ways = {
            "alignment": AlignedWords(alignment.source_words, alignment.target_words, alignment.weights),
            "order of words": without_alignment(found[0], candidate.text),
        }
        kind = "a word" if len(words) == 1 else "several words"
        for way, aligned in ways.items():
            placed = place_tags(flow, found[0], candidate.text, aligned)
            shown = "".join(i if isinstance(i, str) else "".join(flow.tags[i].raw) for i in placed.items)
            start = shown.index("<b>")
            end = shown.index("</b>") - len("<b>")
            right = (start, end) == (target.start, target.end)
            near = start < target.end and end > target.start
            counts[kind, way]["right" if right else "near" if near else "wrong"] += 1
            if given.show and way == "alignment" and not right:
                print(f"{tagged} -> {shown}")
    for (kind, way), found_so in sorted(counts.items()):
        total = sum(found_so.values())
        shares = "  ".join(f"{name} {found_so[name] / total:.1%}" for name in ("right", "near", "wrong"))
        print(f"{kind:<14} {way:<15} {total} tags: {shares}")


def stretch(line: str, forms: dict[str, list[str]]) -> tuple[str, Span, list[str]] | None:
    """The one known word of a sentence, or its two with up to three words between them and all of those."""
    held = [word for word in re.finditer(r"\w+", line) if word[0] in forms]
    if len(line.split()) < 4 or not 1 <= len(held) <= 2 or len({word[0] for word in held}) < len(held):
        return None
    place = Span(held[0].start(), held[-1].end())
    if len(held) == 2 and len(line[place.start : place.end].split()) > 5:
        return None
    return line, place, [word[0] for word in held]


def expected(target: str, known: list[list[str]]) -> Span | None:
    """From the first to the last form; None: one of them is not there, or more than once."""
    places = []
    for forms in known:
        found = list(re.finditer(r"(?<!\w)(" + "|".join(map(re.escape, forms)) + r")(?!\w)", target))
        if len(found) != 1:
            return None
        places.append(found[0])
    return Span(min(place.start() for place in places), max(place.end() for place in places))


if __name__ == "__main__":
    main()
