"""How often a tag lands on the right word: words whose translation is known, tagged in real sentences.

    python bench/tags.py RUN --target fr     # a run from English; its validation sentences, or --input FILE

A sentence counts if it holds exactly one of the words below, once, and its translation exactly one of the forms that
the word has in the target language, once: then it is known where the tag belongs. Right: the tag is around that form
and nothing else; near: around it and words beside it; else wrong. Beside the alignment: the order of the words alone.
"""

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from dragoman.documents import tags
from dragoman.documents.flow import sentences_of
from dragoman.documents.html import html_pieces
from dragoman.documents.interpreter import RunInterpreter
from dragoman.documents.tags import place_marks, without_alignment

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
    parser.add_argument("--most", type=int, default=300, help="sentences [300]")
    parser.add_argument("--share", type=float, help="the share of attention from which a word counts [as in tags.py]")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    given = parser.parse_args()
    if given.share is not None:
        tags.SHARE = given.share
    forms = {entry.split()[0]: entry.split()[1:] for entry in WORDS[given.target].split("|")}
    if given.input:
        lines = given.input.read_text(encoding="utf-8").splitlines()
    else:
        (kept, *_) = sorted(given.run.glob("data/*/valid/text.json"))
        lines = [source for source, _ in json.loads(kept.read_text(encoding="utf-8"))]
    interpreter = RunInterpreter.load(given.run, language="en")
    chosen = []
    for line in dict.fromkeys(lines):
        held = [word for word in re.findall(r"\w+", line) if word in forms]
        if len(held) == 1 and len(line.split()) >= 4:
            chosen.append((line, held[0]))
    chosen = chosen[: 3 * given.most]
    counts: dict[str, Counter[str]] = {"alignment": Counter(), "order of words": Counter()}
    said = interpreter.translate([line for line, _ in chosen])
    for (line, word), translation in zip(chosen, said, strict=True):
        candidate = translation.candidates[0]
        pattern = r"(?<!\w)(" + "|".join(map(re.escape, forms[word])) + r")(?!\w)"
        places = list(re.finditer(pattern, candidate.text))
        if len(places) != 1 or sum(counts["alignment"].values()) >= given.most:
            continue
        tagged = re.sub(rf"(?<!\w){word}(?!\w)", f"<b>{word}</b>", line)
        (flow,) = html_pieces([tagged])
        found = sentences_of(flow, lambda _: True)
        if len(found) != 1 or found[0].text != line:
            continue
        alignment = interpreter.align(line, candidate)
        assert alignment is not None
        ways = {
            "alignment": (alignment.source_words, alignment.target_words, alignment.weights),
            "order of words": without_alignment(found[0], candidate.text),
        }
        for way, words in ways.items():
            if not found[0].marks:  # the word is the sentence
                continue
            placed = place_marks(flow, found[0], candidate.text, *words)
            shown = "".join(i if isinstance(i, str) else "".join(flow.marks[i].raw) for i in placed.items)
            inner = shown.partition("<b>")[2].partition("</b>")[0]
            right = inner == places[0][0]
            near = not right and re.search(pattern, inner) is not None
            counts[way]["right" if right else "near" if near else "wrong"] += 1
            if given.show and way == "alignment" and not right:
                print(f"{tagged} -> {shown}")
    for way, found_so in counts.items():
        total = sum(found_so.values())
        shares = "  ".join(f"{name} {found_so[name] / max(total, 1):.1%}" for name in ("right", "near", "wrong"))
        print(f"{way:<15} {total} tags: {shares}")


if __name__ == "__main__":
    main()
