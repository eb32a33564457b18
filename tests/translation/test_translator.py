"""Strings in, strings out: in order, line for line, nothing lost on the way."""

import io
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import dragoman
from dragoman.cli.terminal import LongWork
from dragoman.config import SearchConfig
from dragoman.data.segmentation import Fits, Segment, cut_to_fit, unwrapped
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import EngineName
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import ConfigError, DataError, UsageError
from dragoman.translation.line import cut_line, translate_lines
from dragoman.translation.result import Candidate, Translation
from dragoman.translation.sentence_decoder import SentenceDecoder
from dragoman.translation.translator import Translator

LINES = [
    "the dog sees the old house",
    "",
    "cat",
    "the small child finds the red tree near the river",
    "   ",
    "river",
    "cat",
    "garden sees garden hears garden finds garden",
]


@pytest.fixture(scope="module", params=["reference", "ctranslate2"])
def translator(tiny_run: Path, request: pytest.FixtureRequest) -> Translator:
    return Translator.load(tiny_run, engine=request.param)


def texts(found: Sequence[Translation]) -> list[list[str]]:
    return [[candidate.text for candidate in translation.candidates] for translation in found]


def engine_name(translator: Translator) -> EngineName:
    return "reference" if isinstance(translator.engine, ReferenceEngine) else "ctranslate2"


def close(a: Sequence[Translation], b: Sequence[Translation]) -> None:
    """The same texts, and the same scores but for rounding: batches of another size add up in another order."""
    assert texts(a) == texts(b)
    for x, y in zip(a, b, strict=True):
        for one, other in zip(x.candidates, y.candidates, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            if one.token_log_probabilities and other.token_log_probabilities:
                assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-4)


# The promises of the README.


def test_load_and_translate(tiny_run: Path) -> None:
    outputs = dragoman.Translator.load(str(tiny_run)).translate(["the dog sees the cat", "red house"])
    assert len(outputs) == 2
    assert "hundo" in outputs[0]
    assert "domo" in outputs[1]


def test_the_papers_base_model_is_one_line() -> None:
    with torch.device("meta"):  # its shape without its 250 MB
        model = dragoman.Transformer(dragoman.ModelConfig.base())
    assert model.output.weight.shape == (37_000, 512)
    assert len(model.encoder) == len(model.decoder) == 6


# Lines.


def test_outputs_stand_where_their_lines_stood(translator: Translator) -> None:
    found = list(translator.translate_stream(LINES))
    assert [translation.source for translation in found] == LINES
    assert [translation.text for translation in found] == translator.translate(LINES)
    one_by_one = [translator.translate([line])[0] for line in LINES]
    assert translator.translate(LINES) == one_by_one
    assert len(set(one_by_one)) >= 5  # had all been alike, their order would say nothing
    assert one_by_one[1] == one_by_one[4] == ""
    assert all(output for line, output in zip(LINES, one_by_one, strict=True) if line.strip())


def test_no_lines(translator: Translator) -> None:
    assert translator.translate([]) == []
    assert translator.translate([""]) == [""]
    assert translator.score([]) == []


def test_a_bare_string_is_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="got a string; give a list of lines"):
        translator.translate("the dog")


def test_whitespace_around_a_line_says_nothing(translator: Translator) -> None:
    plain, padded = translator.translate(["red house", " \t red house \r"])
    assert plain == padded


def test_an_empty_line_has_one_empty_translation(translator: Translator) -> None:
    (found,) = translator.translate_stream([""], n_best=3)
    assert found.candidates == (Candidate("", 0.0, 0.0, (), ()),)


@pytest.mark.parametrize("n_best", [1, 3])
def test_the_window_changes_nothing(translator: Translator, n_best: int) -> None:
    at_once = list(translator.translate_stream(LINES, n_best, window=2000))
    close(list(translator.translate_stream(LINES, n_best, window=1)), at_once)
    close(list(translator.translate_stream(LINES, n_best, window=3)), at_once)


def test_small_batches_change_nothing(tiny_run: Path, translator: Translator) -> None:
    small = Translator.load(tiny_run, engine=engine_name(translator), batch_tokens=1)
    close(list(small.translate_stream(LINES)), list(translator.translate_stream(LINES)))


def test_lines_are_read_a_window_at_a_time(translator: Translator) -> None:
    read = []

    def lines() -> Iterator[str]:
        for line in ["cat", "dog", "river", "tree", "house"]:
            read.append(line)
            yield line

    stream = translator.translate_stream(lines(), window=2)
    assert next(stream).source == "cat"
    assert read == ["cat", "dog"]
    assert [translation.source for translation in stream] == ["dog", "river", "tree", "house"]


# Candidates.


def test_candidates_come_best_first_and_differ(translator: Translator) -> None:
    (found,) = translator.translate_stream(["the dog sees the old house"], n_best=4)
    assert len(found.candidates) == 4
    assert found.text == found.candidates[0].text
    scores = [candidate.score for candidate in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert len({candidate.tokens for candidate in found.candidates}) == 4
    for candidate in found.candidates:
        if candidate.token_log_probabilities is not None:
            assert len(candidate.token_log_probabilities) == len(candidate.tokens) + 1
            assert candidate.log_probability == pytest.approx(sum(candidate.token_log_probabilities))
        penalty = ((5 + len(candidate.tokens) + 1) / 6) ** translator.search.alpha
        assert candidate.score == pytest.approx(candidate.log_probability / penalty)
        assert candidate.text == "".join(candidate.tokens).replace("▁", " ").strip()


def test_more_candidates_than_the_beam_is_wide(tiny_run: Path) -> None:
    greedy = Translator.load(tiny_run, beam=1)
    (found,) = greedy.translate_stream(["red house"], n_best=5)
    assert len({candidate.tokens for candidate in found.candidates}) == 5


def test_scoring_a_translation_gives_what_the_search_reported(translator: Translator) -> None:
    found = list(translator.translate_stream([line for line in LINES if line.strip()], n_best=4))
    pairs, reported = [], []
    for translation in found:
        for candidate in translation.candidates:
            pieces = tuple(map(translator.tokenizer.piece, translator.tokenizer.encode(candidate.text)))
            if pieces == candidate.tokens:  # the search may spell a word in another way than the tokenizer does
                pairs.append((translation.source, candidate.text))
                reported.append(candidate)
    assert len(pairs) >= 12
    for log_probs, candidate in zip(translator.score(pairs), reported, strict=True):
        if candidate.token_log_probabilities is not None:
            assert log_probs == pytest.approx(candidate.token_log_probabilities, abs=1e-4)
        assert sum(log_probs) == pytest.approx(candidate.log_probability, abs=1e-4)


def test_scores_stand_where_their_pairs_stood(translator: Translator) -> None:
    pairs = [
        ("the dog", "la hundo"),
        ("cat", ""),
        ("", "kato"),
        ("small cat finds river", "malgranda kato trovas rivero"),
    ]
    together = translator.score(pairs)
    for pair, log_probs in zip(pairs, together, strict=True):
        assert len(log_probs) == len(translator.tokenizer.encode(pair[1])) + 1
        assert log_probs == pytest.approx(translator.score([pair])[0], abs=1e-4)
        assert max(log_probs) <= 0


def test_a_wider_beam_finds_nothing_less_probable_where_length_does_not_count(tiny_run: Path) -> None:
    lines = [line for line in LINES if line.strip()]
    narrow, wide = (Translator.load(tiny_run, beam=beam, alpha=0.0) for beam in (1, 8))
    gains = [
        w.candidates[0].score - n.candidates[0].score
        for n, w in zip(narrow.translate_stream(lines), wide.translate_stream(lines), strict=True)
    ]
    assert sum(gains) > -1e-4


def test_sampling_is_repeatable_and_random(tiny_run: Path) -> None:
    sampler = Translator.load(tiny_run, sampling=True, temperature=2.0)
    first, again, other = (texts(list(sampler.translate_stream(LINES, 2, seed=seed))) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    near_greedy = Translator.load(tiny_run, sampling=True, top_k=1)
    assert near_greedy.translate(LINES) == Translator.load(tiny_run, beam=1).translate(LINES)


# Ensembles and settings.


def test_a_run_twice_is_the_run(tiny_run: Path) -> None:
    once, twice = Translator.load(tiny_run, engine="reference"), Translator.load(tiny_run, tiny_run)
    assert len(twice.reference.models) == 2
    close(list(twice.translate_stream(LINES, 2)), list(once.translate_stream(LINES, 2)))


def test_an_ensemble_is_the_mean_of_its_members_probabilities(tiny_run: Path) -> None:
    early = Translator.load(tiny_run, checkpoint="step-00000030")
    late = Translator.load(tiny_run, checkpoint="step-00000090")
    both = Translator(
        ReferenceEngine([*early.reference.models, *late.reference.models], late.tokenizer),
        late.tokenizer,
        late.search,
    )
    pair = [("the dog sees the old house", "la hundo vidas la maljuna domo")]
    (a,), (b,), (mean,) = (torch.tensor(t.score(pair)).exp() for t in (early, late, both))
    torch.testing.assert_close(mean, (a + b) / 2, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(a, b, rtol=0.1)


def test_members_with_other_vocabularies_are_refused(tiny_run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(tiny_run, tmp_path / "other")
    Tokenizer.learn(["aa bb cc dd"] * 3, 290).save(other / "tokenizer.model")
    (other / "cleaning.json").unlink()  # the record of its tokenizer
    with pytest.raises(DataError, match=r"other: its vocabulary differs from that of .*tiny; .* --tokenizer"):
        Translator.load(tiny_run, other)


def test_a_tokenizer_that_does_not_match_the_weights_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(tiny_run, tmp_path / "other")
    Tokenizer.learn(["aa bb cc dd"] * 3, 290).save(other / "tokenizer.model")
    with pytest.raises(DataError, match="not the tokenizer that this run was begun with"):
        Translator.load(other)
    (other / "cleaning.json").unlink()  # the record of its tokenizer
    with pytest.raises(ConfigError, match="a model of 400 pieces and a tokenizer of"):
        Translator.load(other)


def test_settings_of_the_run_hold_unless_others_are_given(tiny_run: Path) -> None:
    assert Translator.load(tiny_run).search == SearchConfig()
    assert Translator.load(tiny_run, beam=7, alpha=1.0).search == SearchConfig(beam=7, alpha=1.0)
    with pytest.raises(UsageError, match="unknown search setting baem; known: beam, alpha"):
        Translator.load(tiny_run, baem=7)
    with pytest.raises(ConfigError, match=r"search\.beam = 0; must be at least 1"):
        Translator.load(tiny_run, beam=0)
    with pytest.raises(ConfigError, match=r'search\.stop = "never"; allowed: "exact", "first"'):
        Translator.load(tiny_run, stop="never")
    with pytest.raises(UsageError, match="at least one run"):
        Translator.load()


# What a model may write and must not: a second line.


class FixedEngine:
    """Translates everything into the same tokens, and remembers the lengths of what it was given together."""

    name = "fixed"
    forms_batches = False
    exact_products = False

    def for_tokenizer(self, tokenizer: Tokenizer) -> "FixedEngine":  # noqa: ARG002 the protocol's
        return self

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = tuple(ids)
        self.batches: list[list[int]] = []

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,  # noqa: ARG002 the protocol's, as what follows
        n_best: int = 1,  # noqa: ARG002
        seed: int = 0,  # noqa: ARG002
        scores: bool = True,  # noqa: ARG002
        no_repeat: int = 0,  # noqa: ARG002
    ) -> list[list[Hypothesis]]:
        self.batches.append([len(source) for source in sources])
        log_probs = (-1.0,) * (len(self.ids) + 1)
        return [[Hypothesis(self.ids, sum(log_probs), sum(log_probs), log_probs, True)] for _ in sources]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:  # noqa: ARG002
        return [[-1.0] * (len(target) + 1) for target in targets]


def test_a_line_feed_in_the_output_is_a_space(translator: Translator) -> None:
    tokenizer = translator.tokenizer
    ids = tokenizer.encode("la\nhundo")
    assert tokenizer.decode(ids) == "la\nhundo"
    assert Translator(FixedEngine(ids), tokenizer, SearchConfig()).translate(["dog"]) == ["la hundo"]


def test_lines_of_like_length_go_together_within_the_budget(translator: Translator) -> None:
    engine = FixedEngine([5])
    lines = [" ".join(["cat"] * (1 + 7 * number % 12)) for number in range(40)]
    Translator(engine, translator.tokenizer, SearchConfig(batch_tokens=30)).translate(lines, protect=False)
    lengths = [length for batch in engine.batches for length in batch]
    assert lengths == sorted((len(translator.tokenizer.encode(line)) for line in lines), reverse=True)
    sizes = [len(batch) * (max(batch) + 1) for batch in engine.batches]  # with the end symbols
    assert max(sizes) <= 30
    assert len(sizes) < 15  # and they are filled


# Lines over the limit.


def parts_that_fit(text: str, fits: Fits) -> list[str]:
    """The texts of the spans that `cut_to_fit` gives."""
    parts = (unwrapped(text[start:end]).strip() for start, end in cut_to_fit(text, 0, len(text), fits))
    return [part for part in parts if part]


def test_a_line_over_the_limit_is_split_with_one_warning(tiny_run: Path) -> None:
    short = Translator.load(tiny_run, max_source_length=6)
    long_line = "the dog sees the cat. the old child hears the river, near the garden. red tree"
    warned: list[str] = []
    lines = ["cat", "", long_line, "river"]
    found = list(short.translate_stream(lines, n_best=2, window=2, warn=warned.append))
    tokens = len(short.tokenizer.encode(long_line))
    parts = parts_that_fit(long_line, lambda text: len(short.tokenizer.encode(text)) <= 6)
    assert warned == [
        f"line 3: {tokens} tokens, more than 6 (search.max_source_length): translated in {len(parts)} parts"
    ]
    assert len(found) == 4
    of_parts = list(short.translate_stream(parts, n_best=2))
    for rank, candidate in enumerate(found[2].candidates):
        pieces = [part.candidates[rank] for part in of_parts]
        assert candidate.text == " ".join(piece.text for piece in pieces)
        assert candidate.log_probability == pytest.approx(sum(piece.log_probability for piece in pieces), abs=1e-3)
        assert candidate.tokens == tuple(token for piece in pieces for token in piece.tokens)


def test_from_python_the_warning_is_a_warning(tiny_run: Path) -> None:
    short = Translator.load(tiny_run, max_source_length=4)
    with pytest.warns(UserWarning, match=r"line 1: \d+ tokens, more than 4"):
        short.translate(["the dog sees the cat near the old river"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short.translate(["cat"])


def test_text_is_cut_at_the_best_place_there_is() -> None:
    def up_to(limit: int) -> Callable[[str], bool]:
        return lambda text: len(text) <= limit

    text = "One two, three four. Five six; seven."
    assert parts_that_fit(text, up_to(100)) == [text]
    assert parts_that_fit(text, up_to(20)) == ["One two, three four.", "Five six; seven."]
    assert parts_that_fit(text, up_to(12)) == ["One two,", "three four.", "Five six;", "seven."]
    assert parts_that_fit(text, up_to(6)) == ["One", "two,", "three", "four.", "Five", "six;", "seven."]
    assert parts_that_fit("abcdefgh", up_to(3)) == ["abc", "def", "gh"]
    assert parts_that_fit("一二三。 四五", up_to(4)) == ["一二三。", "四五"]
    # Small sentences go together as long as they fit.
    assert parts_that_fit("A b. C d. E f. G h.", up_to(10)) == ["A b. C d.", "E f. G h."]


anything = st.text(
    st.one_of(st.sampled_from(" .,!?;:\n\t—…。a"), st.characters(exclude_categories=["Cs"])), max_size=80
)


@given(text=anything, limit=st.integers(1, 30))
def test_splitting_loses_nothing_and_every_part_fits(text: str, limit: int) -> None:
    parts = parts_that_fit(text, lambda part: len(part) <= limit)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(part) <= limit for part in parts)


@given(text=anything, limit=st.integers(12, 40))
@settings(max_examples=50)
def test_splitting_by_tokens_loses_nothing_and_every_part_fits(text: str, limit: int, translator: Translator) -> None:
    def fits(part: str) -> bool:
        return len(translator.tokenizer.encode(part)) <= limit

    parts = parts_that_fit(text.strip(), fits)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(map(fits, parts))


# However long a line is.


def test_a_long_line_asks_for_its_sentences_and_no_more(translator: Translator) -> None:
    def asked(lines: Sequence[str]) -> list[int]:
        engine = FixedEngine([5])
        search = SearchConfig(batch_tokens=200)
        list(Translator(engine, translator.tokenizer, search).translate_stream(lines, repair=False, protect=False))
        return sorted(length for batch in engine.batches for length in batch)

    sentences = [f"The dog {number} sees {number} cats." for number in range(300)]
    assert asked([" ".join(sentences)]) == asked(sentences)


def test_how_far_a_long_line_is_is_told(translator: Translator) -> None:
    told: list[str] = []
    line = " ".join(["The dog sees the cat."] * 30 + ["The old cat is here."] * 30)
    small = Translator(FixedEngine([5]), translator.tokenizer, SearchConfig(batch_tokens=60))
    list(small.translate_stream([line], repair=False, protect=False, tell=told.append))
    counts = [int(found[1]) for text in told if (found := re.fullmatch(r"(\d+) of 60 sentences", text))]
    assert counts == sorted(set(counts))
    assert (counts[0], counts[-1]) == (0, 60)
    assert len(counts) > 5


def test_an_engine_that_forms_batches_is_given_a_long_line_in_portions(translator: Translator) -> None:
    engine = FixedEngine([5])
    engine.forms_batches = True
    small = Translator(engine, translator.tokenizer, SearchConfig(batch_tokens=20))
    few, many = ["The dog sees the cat."] * 4, ["The dog sees the cat."] * 400
    small.translate(few, protect=False)
    assert len(engine.batches) == 1
    small.translate([" ".join(many)], protect=False)
    assert len(engine.batches) > 5
    assert sum(map(len, engine.batches)) == 404


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_wait_shows_how_far_it_is(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(LongWork, "FIRST", 0.01)
    monkeypatch.setattr(LongWork, "FIRST_ELSEWHERE", 0.1)
    with LongWork() as work:
        work.at("3 of 977 sentences")
        ends = time.monotonic() + 60
        while "3 of 977 sentences" not in stream.getvalue():
            assert time.monotonic() < ends
            time.sleep(0.01)
        work.interrupt()
        if stream.isatty():
            assert stream.getvalue().endswith("\r\x1b[K")
        work.at("")


def test_nothing_is_said_of_a_short_wait(tiny_run: Path, cli: Callable[..., Any]) -> None:
    assert cli("translate", tiny_run, stdin="dog\n").stderr == ""


def test_the_command_shows_how_far_a_long_line_is(
    tiny_run: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LongWork, "FIRST_ELSEWHERE", 0.1)
    decode = SentenceDecoder.decode

    def slow(self: SentenceDecoder, *given: Any) -> Any:
        done = decode(self, *given)
        time.sleep(0.2)
        return done

    monkeypatch.setattr(SentenceDecoder, "decode", slow)
    ran = cli("translate", tiny_run, stdin="The dog sees the cat. " * 20 + "\n")
    assert ran.code == 0
    assert re.search(r"translating: \d+ of \d+ sentences", ran.stderr)


def test_a_line_of_one_sentence_is_put_together_as_any_other() -> None:
    sentence = Candidate("Un chien .", -0.5, -1.5, ("▁Un", "▁chien", "▁."), (-0.5, -0.5, -0.25, -0.25))
    found = Translation("A dog .", (sentence,), ("loop",), ("copy",), 0.5, notes=("lost: 1",), how="pieces")
    part = Segment(0, 7, "A dog .")
    [alone] = translate_lines([" A dog .\t"], 1, lambda *_: [part], lambda _: [found], lambda _: None)
    assert alone == replace(found, source=" A dog .\t")
    # The same sentence in a line that has more than it.
    [more] = translate_lines(["- A dog ."], 1, lambda *_: [replace(part, start=2, end=9)], lambda _: [found], print)
    assert more == replace(found, source="- A dog .", candidates=(replace(sentence, text="- Un chien ."),))


def test_a_line_is_cut_once_and_says_whether_a_sentence_was_too_long() -> None:
    asked: list[str] = []

    def fits(text: str) -> bool:
        asked.append(text)
        return len(text) < 12

    assert not cut_line("A dog. A cat.", fits, "en", whole=False).too_long
    assert asked == ["A dog.", "A cat."]
    cut = cut_line("A dog. A cat and a dog.", fits, "en", whole=False)
    assert (len(cut.segments), cut.too_long) == (3, True)
