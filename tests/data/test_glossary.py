"""Required words: where a glossary's terms match, and that a translation holds what it must."""

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from dragoman.data.glossary import Glossary, Required, all_required, kept_as_is, occurrences, requirements, unmet
from dragoman.decoding.beam_search import beam_search
from dragoman.decoding.hypothesis import paper_length_penalty
from dragoman.errors import DataError, UsageError
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from support.serving import Running


# What matches in the source.


def found(terms: Sequence[tuple[str, str]], text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(text[match.start : match.end], match.required.forms) for match in Glossary.of(terms).matches(text)]


def test_whole_words_match_and_parts_of_words_do_not() -> None:
    assert found([("dog", "Hund")], "A dog, a dogma and hotdog; dog.") == [("dog", ("Hund",)), ("dog", ("Hund",))]


def test_lower_case_matches_any_case_and_capitals_only_themselves() -> None:
    assert [match for match, _ in found([("dog", "Hund")], "Dog dog DOG")] == ["Dog", "dog", "DOG"]
    assert [match for match, _ in found([("US", "USA")], "US us Us")] == ["US"]


def test_of_overlapping_terms_the_first_and_longest_counts() -> None:
    terms = [("new", "neu"), ("New York", "Neuyork"), ("York City", "Yorkstadt")]
    assert [match for match, _ in found(terms, "New York City is new")] == ["New York", "new"]


def test_a_term_without_target_is_kept_as_it_stands() -> None:
    assert found([("zorblatt", "")], "Zorblatt and zorblatt") == [
        ("Zorblatt", ("Zorblatt",)),
        ("zorblatt", ("zorblatt",)),
    ]


def test_forms_and_repeated_lines_are_alternatives() -> None:
    assert found([("dog", "Hund| Hunde "), ("dog", "Rüde")], "dog") == [("dog", ("Hund", "Hunde", "Rüde"))]


def test_marks_and_scripts_without_spaces() -> None:
    assert [match for match, _ in found([("C++", ""), ("犬", "dog")], "I like C++, 黒い犬だ")] == ["C++", "犬"]


def test_a_glossary_file_is_read_and_its_faults_are_named(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# my terms\n\ndog\tHund|Hunde\nZorblatt\n", encoding="utf-8")
    assert Glossary.load(path) == Glossary.of([("dog", "Hund|Hunde"), ("Zorblatt", "")])
    path.write_text("dog\tHund\nno\ttoo\tmany\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"terms.tsv: line 2: 3 columns"):
        Glossary.load(path)
    path.write_text("dog\tHund\ndog\n", encoding="utf-8")
    with pytest.raises(DataError, match="both translated and not"):
        Glossary.load(path)
    path.write_text(f"dog\tHund\ncat\t{'Katze ' * 100_000}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"terms.tsv: term 2: 599,999 characters in 'cat'; a term has at most 500"):
        Glossary.load(path)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Hi {name}, you have %d of {{ total }} at https://a.org/x?y=1.", ["{name}", "%d", "{{ total }}", "https://a.org/x?y=1"]),
        ("Mail me@example.org (%1$s, ${USER}).", ["me@example.org", "%1$s", "${USER}"]),
        ("100% of dogs, 5% salt", []),
        ('<b>Bold</b> &amp; <x id="1"/>', ["<b>", "</b>", "&amp;", '<x id="1"/>']),
    ],
)  # fmt: skip
def test_what_is_copied_through(text: str, kept: list[str]) -> None:
    assert [term.forms[0] for term in kept_as_is()(text)] == kept


def test_numbers_are_kept_when_asked_for() -> None:
    assert [term.forms[0] for term in kept_as_is(("numbers",))("On 3.5 or 12:30, A4, 1,000.")] == [
        "3.5",
        "12:30",
        "1,000",
    ]
    with pytest.raises(UsageError, match="known: placeholders"):
        kept_as_is(("tags",))


def test_what_two_rules_ask_for_is_asked_for_once() -> None:
    both = all_required(Glossary.of([("{x}", "")]).required, kept_as_is())
    assert both("{x} {x}") == [Required(("{x}",))] * 2
    assert requirements(None) is None
    assert requirements(Glossary.of([])) is None


def test_what_is_not_there_is_named() -> None:
    assert occurrences("Haus Hausboot Häuser haus-Haus", "Haus") == 2
    hund = Required(("Hund", "Hunde"))
    assert unmet("Die Hunde", [hund]) == []
    assert unmet("Die Hunde", [hund, hund]) == [hund]


# The search, over a model drawn at random.


class Word:
    """A requirement that is easy to see through: these ids, one after the other, somewhere."""

    start = 0

    def __init__(self, *ids: int) -> None:
        self.ids = ids

    def advance(self, state: int, token: int) -> int:
        if state == len(self.ids):
            return state
        return state + 1 if token == self.ids[state] else int(token == self.ids[0])

    def missing(self, state: int) -> int:
        return len(self.ids) - state

    def missing_after(self, state: int, token: int) -> int:
        return self.missing(self.advance(state, token))

    def wanted(self, state: int) -> set[int]:
        return set(self.ids[state : state + 1])


class Prefixes:
    def __init__(self, rows: list[list[tuple[int, ...]]]) -> None:
        self.rows = rows

    def select(self, sentences: Tensor, beams: Tensor) -> "Prefixes":
        return Prefixes(
            [[self.rows[s][b] for b in chosen] for s, chosen in zip(sentences.tolist(), beams.tolist(), strict=True)]
        )


EOS, VOCABULARY = 1, 6


def table(prefix: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(hash(prefix) % 2**31)
    return (3 * torch.randn(VOCABULARY, generator=generator)).log_softmax(-1)


def table_step(ids: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
    rows = [
        [(*prefix, token) for prefix, token in zip(*both, strict=True)]
        for both in zip(state.rows, ids.tolist(), strict=True)
    ]
    return torch.stack([torch.stack([table(prefix) for prefix in row]) for row in rows]), Prefixes(rows)


@pytest.mark.parametrize("ids", [(4,), (4, 5), (2, 2, 3)])
@pytest.mark.parametrize("beam", [1, 4])
def test_every_output_holds_what_is_required(ids: tuple[int, ...], beam: int) -> None:
    found = beam_search(
        table_step, Prefixes([[()], [()]]), start_id=0, eos_id=EOS, max_lengths=[6, 3], beam=beam, n_best=2,
        length_penalty=paper_length_penalty(0.6), require=[Word(*ids), Word(5)],
    )  # fmt: skip
    for some, wanted in zip(found, (ids, (5,)), strict=True):
        assert some
        for hypothesis in some:
            there = [hypothesis.ids[i : i + len(wanted)] for i in range(len(hypothesis.ids))]
            assert wanted in there
            assert hypothesis.log_probability == pytest.approx(sum(hypothesis.token_log_probabilities or ()))


def test_a_wide_beam_finds_the_best_output_that_holds_it() -> None:
    most, penalty = 4, paper_length_penalty(0.6)
    scores = {}
    for length in range(most + 1):
        for ids in itertools.product([0, 2, 3, 4, 5], repeat=length):
            if (4, 5) in itertools.pairwise(ids):
                path = (*ids, EOS)
                total = sum(float(table((0, *ids[:i]))[token]) for i, token in enumerate(path))
                scores[ids] = total / penalty(length + 1)
    best = max(scores, key=scores.__getitem__)
    [[hypothesis]] = beam_search(
        table_step, Prefixes([[()]]), start_id=0, eos_id=EOS, max_lengths=[most], beam=1300, n_best=1,
        length_penalty=penalty, require=[Word(4, 5)],
    )  # fmt: skip
    assert hypothesis.ids == best
    assert hypothesis.score == pytest.approx(scores[best])
    assert math.isfinite(hypothesis.score)


# Translations.


@pytest.mark.parametrize("engine", ["reference", "ctranslate2"])
def test_a_hundred_lines_obey_terms_they_were_never_trained_on(tiny_run: Path, served_run: Path, engine: Any) -> None:
    draw = random.Random(5)
    translator = Translator.load(served_run if engine == "ctranslate2" else tiny_run, engine=engine)
    glossary = Glossary.of([("dog", "katido|leporo"), ("red house", "Ruĝdomo"), ("Zorblatt", ""), ("under", "super")])
    words = ["the", "dog", "red house", "Zorblatt", "sees", "under", "tree", "{count}"]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 7))) for _ in range(100)]
    required = all_required(glossary.required, kept_as_is())
    said = translator.translate(lines, required=required)
    assert [text for line, text in zip(lines, said, strict=True) if unmet(text, required(line))] == []
    free = [number for number, line in enumerate(lines) if not required(line)]
    assert [said[number] for number in free] == translator.translate([lines[number] for number in free])


def test_terms_are_obeyed_in_any_casing(cased_run: Path) -> None:
    translator = Translator.load(cased_run, engine="reference", beam=2, max_extra_length=12)
    terms = [("dog", "katido|leporo"), ("red house", "RuĝDomo"), ("Zorblatt", ""), ("under", "NUN")]
    lines = ["Dog under the tree", "the red house {count} sees", "Zorblatt DOG", "DOG'S UNDER (DOG)"]
    required = all_required(Glossary.of(terms).required, kept_as_is())
    stream = translator.translate_stream(lines, required=required, repair=False, protect=False)
    said = [translation.text for translation in stream]
    assert [text for line, text in zip(lines, said, strict=True) if unmet(text, required(line))] == []


def test_required_words_and_sampling_do_not_go_together(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, sampling=True)
    with pytest.raises(UsageError, match="a draw obeys nobody"):
        translator.translate(["the dog"], required=kept_as_is())


def test_the_command_obeys_a_file_and_begins_again_with_another(
    tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    (tmp_path / "terms.tsv").write_text("dog\tRekso\ncat\n", encoding="utf-8")
    (tmp_path / "in").write_text("the dog sees {0}\nthe red cat\n", encoding="utf-8")
    more = ["--glossary", tmp_path / "terms.tsv", "--keep", "placeholders"]
    ran = cli("translate", tiny_run, "--input", tmp_path / "in", "--out", tmp_path / "out", *more)
    assert (ran.code, ran.stdout) == (0, "")
    first, second = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert unmet(first, [Required(("Rekso",)), Required(("{0}",))]) == []
    assert unmet(second, [Required(("cat",))]) == []
    ran = cli("translate", tiny_run, "--glossary", tmp_path / "nowhere.tsv", stdin="the dog\n")
    assert ran.code == 3
    assert "nowhere.tsv" in ran.stderr


def test_a_request_brings_its_own_terms(served: "Running") -> None:
    question = {"text": "the dog sees {0}.", "source": "en", "target": "eo"}
    terms = {"glossary": [{"source": "dog", "target": "Rekso"}], "keep": ["placeholders"]}
    answer = served.post("/api/v1/translate", question | terms)
    assert answer.status == 200, answer.body
    assert unmet(answer.json["text"], [Required(("Rekso",)), Required(("{0}",))]) == []
    assert "Rekso" not in served.post("/api/v1/translate", question).json["text"]
    events = served.post("/api/v1/translate/stream", question | terms).body.decode()
    shown = json.loads(next(line for line in events.splitlines() if line.startswith("data: ")).removeprefix("data: "))
    assert "Rekso" in shown["candidates"][0]["text"]
    refused = served.post("/api/v1/translate", question | {"glossary": [{"source": " ", "target": "x"}]})
    assert (refused.status, refused.json["error"]) == (400, "term 1: no source term; write source, tab, target")
