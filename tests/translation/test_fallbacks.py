"""What must come through comes through, in one way or another, or it is said; the rest of the sentence with it."""

from collections.abc import Callable, Sequence

import pytest

from dragoman.data.glossary import Required
from dragoman.data.protected_spans import difference, protected_spans
from dragoman.data.segmentation import segments
from dragoman.translation.defects import Defect
from dragoman.translation.fallbacks import translate_protected
from dragoman.translation.lengths import ANY_PAIR
from dragoman.translation.result import Candidate, SourceSentence, Translation


class Model:
    """Says what it is told to of each text, and of the others that they are French."""

    lengths = ANY_PAIR

    def __init__(
        self, said: dict[str, str], obeys: Callable[[str, list[str]], tuple[str, float]] | None = None
    ) -> None:
        self.said, self.obeys = said, obeys
        self.defects: dict[str, tuple[Defect, ...]] = {}
        self.asked: list[str] = []

    def translate(
        self, texts: Sequence[str], n_best: int = 1, required: Sequence[Sequence[Required]] | None = None
    ) -> list[Translation]:
        self.asked += texts
        terms = [[term.forms[0] for term in some] for some in required] if required else [[] for _ in texts]
        return [self._one(text, n_best, some) for text, some in zip(texts, terms, strict=True)]

    def _one(self, text: str, n_best: int, required: list[str]) -> Translation:
        said = self.said.get(text, f"fr({text})")
        each = -0.1
        if required and self.obeys is not None:
            said, each = self.obeys(text, required)
        several = said.split("|")[:n_best]
        tokens = tuple(said.split())
        candidates = tuple(Candidate(one, -1.0, each * (len(tokens) + 1), tokens, None) for one in several)
        return Translation(text, candidates, self.defects.get(text, ()))


def protected(model: Model, text: str, kept: tuple[str, ...] = ()) -> Translation:
    return translate_protected([SourceSentence(text, kept)], model)[0]


@pytest.mark.parametrize(
    ("source", "accepted", "lost", "added"),
    [
        ("{name} has %d", "[%d {{name}\" mit %.", [], ["[", "{", "%"]),
        ("Press C", "C'est la presse", ["C"], []),  # with C as a key
        ("See http://a.org/x?y=1 now", "Voir http://a.org/x?y=1/3/3/*. là", ["http://a.org/x?y=1"], []),
        ("Ask a@example.org", "Demande a@example.orge", ["a@example.org"], []),
        ("It rose by 4.5", "Il monte de 2.", ["4.5"], []),
        ("It is -4.5 degrees", "Il fait 4,5 degrés", ["-4.5"], []),
        ("It costs $1,234.56.", "Il coûte 30055.", ["$1,234.56"], []),
        ("Add ½ cup", "Ajoute une tasse", ["½"], []),
        ("Add 1½ cups", "Ajoute 1 tasse", ["1½"], []),
        ("Good 😀", "Bon", ["😀"], []),
        ("Hello 🇫🇷", "Salut 🇫🇮", ["🇫🇷"], ["🇫🇮"]),
        ("two {a} and {a}", "deux {a}", ["{a}"], []),
        ("one {a}", "un {a} {a}", [], ["{a}"]),
    ],
)  # fmt: skip
def test_tokens_are_compared_whole_and_by_their_number(
    source: str, accepted: str, lost: list[str], added: list[str]
) -> None:
    found = difference(source, accepted, ("C",) if source == "Press C" else ())
    assert found.lost == lost
    assert set(added) <= set(found.added)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It costs $1,234.56.", "Ça coûte 1 234,56 $."),
        ("at 9:05", "à 9 h 05"),
        ("½ of 1½ cups", "1/2 de 1 1/2 tasse"),
        ("on 07/04", "le 7/4"),
        ("It is -4.5 degrees", "Il fait −4,5 degrés"),
        ("up +3 to 20", "de 3 à 20"),
        ("50% of {n}", "50 % de {n}"),
        ("Ctrl C", "La touche Ctrl C."),
    ],
)
def test_a_language_writes_them_in_its_own_way(source: str, target: str) -> None:
    found = difference(source, target)
    assert (found.lost, found.added, found.numbers_added, found.signs_lost) == ([], [], [], [])


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("It costs $1,234.56.", ["$1,234.56"]),
        ("Call +33 1 23 45 67 89 before 17:30.", ["+33 1 23 45 67 89", "17:30"]),
        ("On 2024-03-15 he won 3-2.", ["2024-03-15", "3-2"]),
        ("1 234,50 € or € 12", ["1 234,50 €", "€ 12"]),
        ("-5 to +3, x=−2 (-$7)", ["-5", "+3", "−2", "-$7"]),
        ("COVID-19 in 10 - 12 or 3-4", ["19", "10", "12", "3-4"]),
        ("Press <kbd>C</kbd>!", ["<kbd>C</kbd>"]),
        ("👨‍👩‍👧‍👦 in 🇫🇷 1️⃣", ["👨‍👩‍👧‍👦", "🇫🇷", "1️⃣"]),
    ],
)
def test_what_belongs_together_is_one(text: str, spans: list[str]) -> None:
    assert [span.text for span in protected_spans(text)] == spans


def test_a_dollar_may_become_a_word_but_not_without_one() -> None:
    masked = {f"It costs {word}.": "Rien." for word in ("10", "741", "Tom")}
    model = Model({"It costs $5.": "Ça coûte 5 dollars.", **masked})
    found = protected(model, "It costs $5.")
    assert (found.text, found.how, found.notes) == ("Ça coûte 5 dollars.", "plain", ("lost: $",))


def test_other_words_stand_in_where_the_model_copies_them() -> None:
    model = Model({"It costs $1,234.56.": "Il coûte 30055.", "It costs 10.": "Dix.", "It costs 741.": "Ça coûte 741."})
    found = protected(model, "It costs $1,234.56.")
    assert (found.text, found.how, found.repaired) == ("Ça coûte $1,234.56.", "stand-in", ("lost",))
    assert found.notes == ("lost: $1,234.56", "added: 30055", "lost: $")


def test_a_stand_in_that_brings_a_number_of_its_own_is_only_the_reserve() -> None:
    said = {"Say {a}.": "Rien.", "Say Tom.": "Dis Tom 40 fois."}
    assert protected(Model({**said, "Say 741.": "Dis 741."}), "Say {a}.").text == "Dis {a}."
    rest = {"Say 741.": "Rien."}
    found = protected(Model({**said, **rest}), "Say {a}.")
    assert (found.text, found.how) == ("Dis {a} 40 fois.", "stand-in")


MUTE = {f"It is {word}.": "Rien." for word in ("😀", "Tom", "741")}


def test_what_is_forced_must_be_believed() -> None:
    good = Model(MUTE, lambda _, required: (f"C'est {required[0]}.", -0.5))
    assert [protected(good, "It is 😀.").text, protected(good, "It is 😀.").how] == ["C'est 😀.", "required"]
    bad = Model(MUTE, lambda _, required: (f"Les chi chi {required[0]} chimes.", -3.0))
    found = protected(bad, "It is 😀.")
    assert (found.text, found.how) == ("fr(It is) 😀.", "pieces")


@pytest.mark.parametrize(
    ("source", "pieces"),
    [
        ("Set size=7 (wide) now.", "fr(Set size)=7 fr((wide) now.)"),
        ("He won (7) of them.", "fr(He won) (7) fr(of them.)"),
    ],
)
def test_pieces_do_not_run_into_what_stands_between_them(source: str, pieces: str) -> None:
    said = {source.replace("7", word): "Rien." for word in ("7", "10", "741", "Tom")}
    found = protected(Model(said, lambda *_: ("Rien.", 0.0)), source)
    assert (found.text, found.how) == (pieces, "pieces")


def test_what_loops_is_no_way_out() -> None:
    model = Model(MUTE | {"It is Tom.": "Tom est est est est."})
    model.defects["It is Tom."] = ("loop",)
    assert protected(model, "It is 😀.").how == "pieces"


def test_what_ran_away_is_not_given() -> None:
    model = Model({"Stay here.": "Les tremblements de la manière qui se sont états|Reste ici."})
    model.defects["Stay here."] = ("runaway",)
    found = protected(model, "Stay here.")
    assert (found.text, found.how, found.defects, found.repaired) == ("Reste ici.", "other", (), ("runaway",))
    model.said["Stay here."] = "Les tremblements|" + "la " * 100 + "|"
    found = protected(model, "Stay here.")
    assert (found.text, found.how, found.defects) == ("Stay here.", "source", ("runaway",))
    (given,) = translate_protected([SourceSentence("Stay here.")], model, as_it_comes=lambda _: True)
    assert (given.text, given.how) == ("Les tremblements", "plain")


def test_nothing_helps_and_the_sentence_stays_and_is_named() -> None:
    said = dict.fromkeys(["See {a} now.", "See Tom now.", "See 741 now.", "See", "now."], "{}[")
    found = protected(Model(said), "See {a} now.")
    assert (found.text, found.how, found.defects) == ("See {a} now.", "source", ("lost",))
    assert "lost: {a}" in found.notes


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("👋 Hello, my friend!", ["Hello, my friend!"]),
        ("We won! 🎉🎉", ["We won!"]),
        ("→ Turn left ←", ["Turn left"]),
        ("1️⃣ Open it. 2️⃣ Close it.", ["Open it.", "Close it."]),
        ("😀😀", []),
        ("I love you 😀.", ["I love you 😀."]),
    ],
)
def test_emoji_around_a_sentence_are_no_part_of_it(line: str, texts: list[str]) -> None:
    assert [segment.text for segment in segments(line, lambda _: True)] == texts


def test_quotes_around_the_whole_sentence_stay_around_it() -> None:
    model = Model({'"I am tired."': "Je suis fatigué.", "I am tired.": "Je suis fatigué."})
    found = protected(model, '"I am tired."')
    assert (found.text, found.how, found.notes) == ('"Je suis fatigué."', "pieces", ("lost: quotes",))


def test_a_next_best_translation_that_kept_the_brackets_is_taken() -> None:
    model = Model({"Take it (now).": "Prends-le.|Prends-le (maintenant)."})
    found = protected(model, "Take it (now).")
    assert (found.text, found.how) == ("Prends-le (maintenant).", "other")


def test_quotes_that_no_translation_kept_are_said() -> None:
    found = protected(Model({'Buy "three" books.': "Achète trois livres."}), 'Buy "three" books.')
    assert (found.text, found.how, found.notes) == ("Achète trois livres.", "plain", ("lost: quotes",))


def test_a_name_in_a_script_of_neither_side_is_copied() -> None:
    lost = {"Ask Дмитрий.": "Demande à D.", "Ask Tom.": "Demande à Tom."}
    assert protected(Model(lost), "Ask Дмитрий.").text == "Demande à Дмитрий."
    into_russian = Model({"Ask Дмитрий.": "Спроси Дмитрия."})
    assert protected(into_russian, "Ask Дмитрий.").text == "Спроси Дмитрия."


LONG = "I came home very late last night, and all of you were already asleep."


def test_a_next_best_translation_that_is_not_short_is_taken() -> None:
    whole = "Je suis rentré très tard hier soir, et vous dormiez déjà tous."
    model = Model({LONG: f"Je suis rentré tard.|Je dors.|{whole}"})
    model.defects[LONG] = ("short",)
    found = protected(model, LONG)
    assert (found.text, found.how, found.defects) == (whole, "other", ())
    assert (found.notes, found.repaired) == (("short",), ("short",))


def test_what_is_short_is_translated_clause_by_clause() -> None:
    first, second = "I came home very late last night", "and all of you were already asleep."
    model = Model({LONG: "Je dors.", first: "Je suis rentré très tard hier.", second: "Et vous dormiez déjà tous."})
    model.defects[LONG] = ("short",)
    found = protected(model, LONG)
    assert (found.text, found.how) == ("Je suis rentré très tard hier, et vous dormiez déjà tous.", "pieces")
    assert (found.defects, found.repaired) == ((), ("short",))
    model.defects[second] = ("loop",)
    found = protected(model, LONG)
    assert (found.text, found.how, found.defects, found.notes) == ("Je dors.", "plain", ("short",), ("short",))
