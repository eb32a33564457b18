"""What is explained is what the model did: probabilities, alignment, the beam."""

import math
from pathlib import Path

import pytest

from dragoman.decoding.alignment import AlignmentHeads
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import paper_length_penalty
from dragoman.documents.aligner import explainer_of
from dragoman.errors import UsageError
from dragoman.importing.read import import_model
from dragoman.inspection.alignment import find_alignment_heads, links_of
from dragoman.inspection.explain import Explainer, Explanation
from dragoman.inspection.inspector import Inspector
from dragoman.translation.translator import Translator
from support.lexicon import lexicon_pairs
from support.model_directories import marian_directory


@pytest.fixture(scope="module")
def explainer(tiny_run: Path) -> Explainer:
    return Explainer.load(tiny_run)


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, engine="reference")


SENTENCE = "the old dog sees the red house"


def test_an_explanation_is_of_the_translation_that_the_translator_gives(
    explainer: Explainer, translator: Translator
) -> None:
    (translation,) = translator.translate_stream([SENTENCE])
    best = translation.candidates[0]
    explained = explainer.explain(SENTENCE)
    assert (explained.target, explained.tokens) == (best.text, best.tokens)
    assert explained.score == pytest.approx(best.score, abs=1e-4)
    assert best.token_log_probabilities is not None
    probabilities = [position.probability for position in explained.positions]
    assert probabilities == pytest.approx([math.exp(value) for value in best.token_log_probabilities], abs=1e-4)
    assert explainer.explain(SENTENCE, translation=best.tokens) == explained


def test_any_translation_can_be_explained(explainer: Explainer, translator: Translator) -> None:
    tokens = explainer.explain("the cat").tokens
    explained = explainer.explain("the old river", translation=tokens)
    (scores,) = translator.score([("the old river", explained.target)])
    assert explained.log_probability == pytest.approx(sum(scores), abs=1e-3)


def test_alternatives_at_each_position_are_the_most_probable_tokens(explainer: Explainer) -> None:
    explained = explainer.explain(SENTENCE, alternatives=4)
    assert len(explained.positions) == len(explained.tokens) + 1
    for position in explained.positions:
        values = [choice.probability for choice in position.alternatives]
        assert len(values) == 4
        assert values == sorted(values, reverse=True)
        assert sum(values) <= 1 + 1e-5
        assert position.probability <= values[0] + 1e-6
        shared = [c.probability for c in position.alternatives if c.token == position.token]
        assert shared == pytest.approx([position.probability] * len(shared), abs=1e-5)


def share_on_the_diagonal(explainer: Explainer) -> float:
    """The tiny language is translated word by word, so the true alignment is the diagonal."""
    right = total = 0
    for source, target in lexicon_pairs(20, seed=5):
        explained = explainer.explain(source, translation=explainer.pieces(explainer.tokenizer.encode(target)))
        assert [word.text for word in explained.source_words] == source.split()
        assert [word.text for word in explained.target_words] == target.split()
        for row, weights in enumerate(explained.alignment):
            assert sum(weights) <= 1 + 1e-5
            right += max(range(len(weights)), key=weights.__getitem__) == row
            total += 1
    return right / total


def test_the_heads_chosen_without_a_true_alignment_are_the_best_by_one(explainer: Explainer) -> None:
    chosen = explainer.alignment_heads
    assert chosen.agreement is not None
    found = share_on_the_diagonal(explainer)
    others = []
    try:
        for shift in (0, 1):
            for heads in (((0, 0),), ((0, 1),)):
                explainer.alignment_heads = AlignmentHeads(heads, shift, None)
                others.append(share_on_the_diagonal(explainer))
    finally:
        explainer.alignment_heads = chosen
    assert found >= max(others) - 0.02
    assert found > 2 * min(others)


def test_links_are_the_strongest_and_those_near_it() -> None:
    assert links_of([[0.6, 0.3, 0.1], [0.0, 0.0, 0.2], [0.0, 0.0, 0.0]]) == ((0, 0), (0, 1), (1, 2))


def test_without_validation_sentences_the_heads_are_measured_on_words_of_the_vocabulary(explainer: Explainer) -> None:
    without = Explainer(explainer.engine, explainer.search)
    assert without.alignment_heads.agreement is not None
    assert share_on_the_diagonal(without) > 0.4  # heads that do not align: 8 to 17 %


def test_without_anything_to_measure_on_a_layer_is_taken(explainer: Explainer) -> None:
    heads = find_alignment_heads(explainer.model, explainer.tokenizer, ())
    assert heads == AlignmentHeads(((0, 0), (0, 1)), 0, None)


def test_an_imported_run_begins_with_a_start(tmp_path: Path) -> None:
    """Its first token is <pad>, which would say nothing to a reader."""
    inspector = Inspector.load(import_model(marian_directory(tmp_path / "opus-mt-en-fr"), tmp_path / "run"))
    seen = inspector.inspect("old harbour")
    assert seen.fed[0] == "<s>"
    assert seen.fed[1:] == seen.tokens
    assert inspector.contrast("old harbour", position=0).before[0].token == "<s>"


def test_a_chosen_beginning_is_kept_and_the_rest_follows(explainer: Explainer) -> None:
    plain = explainer.explain(SENTENCE)
    word = plain.target_words[1]
    before = plain.tokens[: word.first_token]
    choices = explainer.alternatives(SENTENCE, before, 5)
    assert len(choices) > 1
    assert [c.probability for c in choices] == sorted((c.probability for c in choices), reverse=True)
    assert word.text in [choice.text for choice in choices]
    other = next(choice for choice in choices if choice.text != word.text)
    prefix = [*before, *other.tokens]
    again = explainer.explain(SENTENCE, prefix=prefix)
    assert list(again.tokens[: len(prefix)]) == prefix
    assert again.target_words[1].text == other.text
    # The offered probability is that of its tokens, given what stands before.
    product = math.prod(p.probability for p in again.positions[len(before) : len(prefix)])
    assert other.probability == pytest.approx(product, abs=1e-4)


def test_a_mark_is_offered_with_the_words_that_it_capitalises(cased_run: Path) -> None:
    explainer = Explainer.load(cased_run)
    marks = [*explainer.tokenizer.case_marks]
    choices = explainer.alternatives("The dog sees the cat 12.", (), 6)
    assert len(choices) > 2
    capitals = [choice for choice in choices if choice.text[0].isupper()]
    assert len(capitals) > 1  # one mark, several words
    for choice in capitals:
        assert choice.tokens[0] in marks
        assert explainer.tokenizer.decode(explainer.token_ids(choice.tokens)) == choice.text
        again = explainer.explain("The dog sees the cat 12.", prefix=choice.tokens)
        assert again.target_words[0].text == choice.text
        assert again.tokens[: len(choice.tokens)] == choice.tokens
    assert [c.probability for c in choices] == sorted((c.probability for c in choices), reverse=True)
    assert all(word.text.strip() for word in explainer.explain("THE DOG", alternatives=2).source_words)


def test_the_recorded_beam_is_the_search(explainer: Explainer) -> None:
    assert isinstance(explainer.engine, ReferenceEngine)
    record = explainer.beam(SENTENCE, beam=3, alpha=0.8)
    plain = explainer.explain(SENTENCE, beam=3, alpha=0.8)
    assert (record.target, record.tokens) == (plain.target, plain.tokens)
    penalty = paper_length_penalty(0.8)
    for step in record.steps:
        kept = [candidate for candidate in step if candidate.fate == "kept"]
        assert len(kept) <= 3
        assert [candidate.row for candidate in kept] == list(range(len(kept)))
        for candidate in step:
            assert candidate.score == pytest.approx(candidate.log_probability / penalty(candidate.length))
        pruned = [c.log_probability for c in step if c.fate == "pruned"]
        assert not pruned or max(pruned) <= min(c.log_probability for c in kept)
    best = max(record.finished, key=lambda candidate: candidate.score)
    assert best.text == record.target
    assert best.score == pytest.approx(record.score)


def test_every_step_continues_a_row_of_the_step_before(explainer: Explainer) -> None:
    record = explainer.beam("the cat sees the tree")
    rows = {0: ""}
    for step in record.steps:
        for candidate in step:
            assert candidate.text.startswith(rows[candidate.parent].rstrip("\ufffd"))
        rows = {c.row: c.text for c in step if c.row is not None}


@pytest.mark.parametrize(
    "text", ["the dog", "  the   dog ", "dog,cat.", "ĝardeno 🙂🙂 dog", "a▁b ␛ c", "日本語。dog", "don't", "\u0301x"]
)
def test_words_cover_their_text(explainer: Explainer, text: str) -> None:
    ids = explainer.tokenizer.encode(text)
    words = explainer.words(ids)
    whole = explainer.tokenizer.decode(ids)
    assert [whole[word.start : word.end] for word in words] == [word.text for word in words]
    assert "".join(word.text for word in words) == "".join(whole.split())
    assert [word.first_token for word in words[1:]] == [word.last_token + 1 for word in words[:-1]]


def test_nothing_has_no_words(explainer: Explainer) -> None:
    explained = explainer.explain("dog", translation=[])
    assert (explained.target, explained.target_words, explained.links) == ("", (), ())
    assert [position.token for position in explained.positions] == ["</s>"]


def test_marks_stand_alone_and_apostrophes_do_not(explainer: Explainer) -> None:
    words = explainer.words(explainer.tokenizer.encode("don't, (dog)!"))
    assert [word.text for word in words] == ["don't", ",", "(", "dog", ")", "!"]


def test_what_cannot_be_explained_is_refused_in_a_line(explainer: Explainer) -> None:
    with pytest.raises(UsageError, match="token 'dögs' is not in the vocabulary"):
        explainer.explain("the dog", translation=["dögs"])
    with pytest.raises(UsageError, match="a sentence of 0 tokens"):
        explainer.explain("  ")
    with pytest.raises(UsageError, match="a beginning of 80 tokens; at most"):
        explainer.explain("dog", prefix=["a"] * 80)


def test_the_tag_of_a_language_is_no_word_of_the_source(tmp_path: Path) -> None:
    run = import_model(marian_directory(tmp_path / "opus-mt-en-mul", tags=[">>deu<<", ">>fra<<"]), tmp_path / "run")
    translator = Translator.load(run, engine="reference", to="de")
    shared = explainer_of(translator, run)
    assert shared is not None
    (scores,) = translator.score([("river snow", "vieux port")])  # of the source with its tag
    for explainer in (shared, Explainer.load(run, to="de")):
        said = explainer.pieces(explainer.tokenizer.encode_target("vieux port"))
        explained = explainer.explain("river snow", translation=said)
        assert explained.log_probability == pytest.approx(sum(scores), abs=1e-3)
        assert (explained.source, [word.text for word in explained.source_words]) == ("river snow", ["river", "snow"])
        assert {len(row) for row in explained.alignment} == {2}
        tag, *rest = explainer.source_ids("river snow")
        assert explainer.tokenizer.source_piece(tag) == ">>deu<<"
        assert [word.first_token for word in explained.source_words] == [1, 1 + len(rest) - _tokens_of_last(explained)]
    with pytest.raises(UsageError, match="a sentence of 0 tokens"):
        shared.source_ids(" ")


def _tokens_of_last(explained: Explanation) -> int:
    last = explained.source_words[-1]
    return last.last_token + 1 - last.first_token
