"""A corpus without faults, which tests break in one way each."""

import random

from dragoman.data.corpus import SentencePair

# A small language pair with real words, so that languages can be told apart and every word has one translation.
SUBJECTS = {
    "the teacher": "der Lehrer", "my neighbour": "mein Nachbar", "the old captain": "der alte Kapitän",
    "our doctor": "unser Arzt", "the student": "der Student", "her brother": "ihr Bruder", "the baker": "der Bäcker",
    "the farmer": "der Bauer", "his uncle": "sein Onkel", "the painter": "der Maler", "the judge": "der Richter",
}  # fmt: skip
VERBS = {
    "buys": "kauft", "sells": "verkauft", "finds": "findet", "forgets": "vergisst", "describes": "beschreibt",
    "paints": "malt", "carries": "trägt", "breaks": "zerbricht", "washes": "wäscht", "hides": "versteckt",
}  # fmt: skip
OBJECTS = {
    "bread": "Brot", "flowers": "Blumen", "books": "Bücher", "apples": "Äpfel", "letters": "Briefe", "chairs": "Stühle",
    "shoes": "Schuhe", "clocks": "Uhren", "pictures": "Bilder", "horses": "Pferde", "bottles": "Flaschen",
    "knives": "Messer", "keys": "Schlüssel", "windows": "Fenster", "tables": "Tische", "stamps": "Briefmarken",
    "candles": "Kerzen", "coats": "Mäntel", "carpets": "Teppiche", "baskets": "Körbe", "lamps": "Lampen",
    "umbrellas": "Regenschirme", "mirrors": "Spiegel", "hammers": "Hämmer", "guitars": "Gitarren",
}  # fmt: skip
PLACES = {
    "": "", " in the garden": " im Garten", " behind the church": " hinter der Kirche",
    " near the railway station": " in der Nähe des Bahnhofs", " at the market on Saturday": " am Samstag auf dem Markt",
    " while it is raining outside": ", während es draußen regnet",
    " because nobody else has the time for it": ", weil sonst niemand die Zeit dafür hat",
}  # fmt: skip


def good(count: int = 1500, seed: int = 1) -> list[SentencePair]:
    draw = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        (subject, wer), (verb, tut), (thing, was), (place, wo) = (
            draw.choice(list(words.items())) for words in (SUBJECTS, VERBS, OBJECTS, PLACES)
        )
        number = draw.randrange(2, 2000)
        found[f"{subject.capitalize()} {verb} {number} {thing}{place}."] = (
            f"{wer.capitalize()} {tut} {number} {was}{wo}."
        )
    return list(found.items())


GOOD = good()
TEST = good(1600, seed=1)[1500:]
