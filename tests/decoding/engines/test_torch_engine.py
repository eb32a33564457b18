"""The reference engine: whatever way a sentence comes through it, alone or among others, the answer is the same."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from dragoman.config import ModelConfig, SearchConfig
from dragoman.data.glossary import Required
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.constraints import forced_prefix
from dragoman.decoding.engines import Engine
from dragoman.decoding.engines import torch_engine as reference_module
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import Hypothesis, paper_length_penalty
from dragoman.decoding.phrase_automaton import Borders, Phrases
from dragoman.decoding.search_record import BeamStep
from dragoman.errors import ConfigError
from dragoman.model.probe import Intervention, Override, Probe, Site
from dragoman.model.transformer import Transformer

TEXT = [
    "Two dogs play in the snow.",
    "A man in a red jacket is climbing a rock.",
    "Children are sitting at a table.",
    "A woman sings.",
    "The small boat has left the harbour early in the morning.",
    "Snow.",
    "A red boat is in the snow.",
    "Two men climb.",
]
SEARCH = SearchConfig(max_extra_length=8)
GREEDY = replace(SEARCH, beam=1)
SAMPLING = replace(SEARCH, sampling=True)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(TEXT * 3, 320)


@pytest.fixture(scope="module")
def sources(tokenizer: Tokenizer) -> list[list[int]]:
    return [*tokenizer.encode_batch(TEXT), []]


def make(tokenizer: Tokenizer, seed: int, **changes: Any) -> Transformer:
    """Random, but lively: outputs differ between sources, and end now and then."""
    torch.manual_seed(seed)
    shape: dict[str, Any] = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 16, "d_ff": 24, "num_heads": 4}
    model = Transformer(ModelConfig(vocab_size=tokenizer.vocab_size, **(shape | changes))).double()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=1.0 if name.endswith("norm.weight") else 0.2)
    last: Any = model.decoder[-1]
    last.around_feed_forward.norm.bias.data += 1.5 * model.output.weight[tokenizer.eos_id].detach()
    return model


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return make(tokenizer, seed=7)


@pytest.fixture(scope="module")
def engine(model: Transformer, tokenizer: Tokenizer) -> ReferenceEngine:
    return ReferenceEngine([model], tokenizer)


@pytest.fixture(scope="module")
def ensemble(model: Transformer, tokenizer: Tokenizer) -> ReferenceEngine:
    """Two models that share nothing but the vocabulary."""
    other = make(tokenizer, seed=1, encoder_layers=2, decoder_layers=1, d_model=8, num_heads=2, norm_order="pre")
    return ReferenceEngine([model, other], tokenizer)


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[h.ids for h in some] for some in found] == [[h.ids for h in some] for some in expected]
    for some, others in zip(found, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            assert one.finished == other.finished
            assert one.score == pytest.approx(other.score, rel=1e-5)
            assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, rel=1e-4, abs=1e-6)


def test_the_test_has_something_to_get_wrong(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    found = [some[0] for some in engine.translate(sources, SEARCH)]
    assert len({hypothesis.ids for hypothesis in found}) == len(sources)
    assert {hypothesis.finished for hypothesis in found} == {True, False}
    assert len({len(hypothesis.ids) for hypothesis in found}) >= 4
    assert len({len(source) for source in sources}) >= 6  # so that there is padding


# A sentence by itself and among others


@pytest.mark.parametrize("search", [SEARCH, GREEDY], ids=["beam", "greedy"])
@pytest.mark.parametrize("members", ["engine", "ensemble"])
def test_together_as_one_by_one(
    search: SearchConfig, members: str, sources: list[list[int]], request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(members)
    together = engine.translate(sources, search)
    assert_same(together, [engine.translate([source], search)[0] for source in sources])


def test_all_of_the_n_best_too(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    together = engine.translate(sources, SEARCH, n_best=4)
    assert_same(together, [engine.translate([source], SEARCH, n_best=4)[0] for source in sources])


def test_in_any_order(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    expected = engine.translate(sources, SEARCH, n_best=2)
    for seed in range(3):
        order = torch.randperm(len(sources), generator=torch.Generator().manual_seed(seed)).tolist()
        found = engine.translate([sources[i] for i in order], SEARCH, n_best=2)
        assert_same(found, [expected[i] for i in order])


def test_scores_together_as_one_by_one(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    targets = sources[::-1]
    together = engine.score(sources, targets)
    for source, target, found in zip(sources, targets, together, strict=True):
        assert len(found) == len(target) + 1
        assert found == pytest.approx(engine.score([source], [target])[0], rel=1e-5)


# What is reported


@pytest.mark.parametrize("search", [SEARCH, GREEDY, SAMPLING], ids=["beam", "greedy", "sampling"])
@pytest.mark.parametrize("members", ["engine", "ensemble"])
def test_the_score_of_a_translation_is_the_one_that_the_search_reported(
    search: SearchConfig, members: str, sources: list[list[int]], request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(members)
    n_best = 1 if search is GREEDY else 3
    for source, some in zip(sources, engine.translate(sources, search, n_best), strict=True):
        assert len(some) == n_best
        scored = engine.score([source] * n_best, [hypothesis.ids for hypothesis in some])
        for hypothesis, log_probs in zip(some, scored, strict=True):
            assert hypothesis.token_log_probabilities == pytest.approx(log_probs, rel=1e-4, abs=1e-6)
            assert hypothesis.log_probability == pytest.approx(sum(log_probs), rel=1e-5)
            penalty = 1.0 if search is SAMPLING else paper_length_penalty(0.6)(len(hypothesis.ids) + 1)
            assert hypothesis.score == pytest.approx(sum(log_probs) / penalty, rel=1e-5)


def test_scores_are_the_models_log_probabilities(
    engine: ReferenceEngine, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    source, target = sources[0], sources[1]
    fed = torch.tensor([[tokenizer.bos_id, *target]])
    logits = model.eval()(torch.tensor([[*source, tokenizer.eos_id]]), fed)[0]
    labels = [*target, tokenizer.eos_id]
    expected = [row.log_softmax(0)[label].item() for row, label in zip(logits, labels, strict=True)]
    assert engine.score([source], [target])[0] == pytest.approx(expected, rel=1e-5)


def test_the_n_best_are_distinct_and_the_best_comes_first(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    for n_best in (2, 4, 6):  # of a beam of 4, which widens to 6
        for some in engine.translate(sources, SEARCH, n_best):
            assert len(some) == len({hypothesis.ids for hypothesis in some}) == n_best
            scores = [hypothesis.score for hypothesis in some]
            assert scores == sorted(scores, reverse=True)


def test_a_beam_of_one_takes_the_most_probable_token_each_time(
    engine: ReferenceEngine, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    model.eval()
    for source, [found] in zip(sources, engine.translate(sources, GREEDY), strict=True):
        ids: list[int] = []
        while len(ids) < len(source) + 8:
            fed = torch.tensor([[tokenizer.bos_id, *ids]])
            logits = model(torch.tensor([[*source, tokenizer.eos_id]]), fed)[0, -1]
            if (token := int(logits.argmax())) == tokenizer.eos_id:
                break
            ids.append(token)
        assert found.ids == tuple(ids)
        assert found.finished == (len(ids) < len(source) + 8)


def test_a_wider_beam_finds_better_ones(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    narrow, wide = (
        sum(some[0].score for some in engine.translate(sources, replace(SEARCH, beam=beam))) for beam in (1, 8)
    )
    assert wide > narrow + 0.1


# Ensembles


def test_an_ensemble_of_a_model_and_itself_is_the_model(
    engine: ReferenceEngine, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    twice = ReferenceEngine([model, model], tokenizer)
    assert_same(twice.translate(sources, SEARCH, 3), engine.translate(sources, SEARCH, 3))
    for ours, expected in zip(twice.score(sources, sources), engine.score(sources, sources), strict=True):
        assert ours == pytest.approx(expected, rel=1e-5)


def test_an_ensemble_is_the_mean_of_probabilities(
    ensemble: ReferenceEngine, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    targets = sources[1:] + sources[:1]
    alone = [ReferenceEngine([member], tokenizer).score(sources, targets) for member in ensemble.models]
    for found, first, second in zip(ensemble.score(sources, targets), *alone, strict=True):
        expected = [math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(first, second, strict=True)]
        assert found == pytest.approx(expected, rel=1e-4)
        assert found != pytest.approx(first, rel=1e-2)


def test_every_member_has_the_tokenizers_vocabulary(model: Transformer, tokenizer: Tokenizer) -> None:
    other = Transformer(replace(model.config, vocab_size=tokenizer.vocab_size + 1))
    with pytest.raises(ConfigError, match=rf"a model of {tokenizer.vocab_size + 1} pieces and a tokenizer of"):
        ReferenceEngine([model, other], tokenizer)


# Sampling


def test_a_seed_decides_what_is_drawn(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    first, again, other = (engine.translate(sources, SAMPLING, 3, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert [[h.ids for h in some] for some in first] != [[h.ids for h in some] for some in other]
    torch.manual_seed(1)  # which is torch's own, and none of ours
    assert engine.translate(sources, SAMPLING, 3, seed=5) == first


@pytest.mark.parametrize("changes", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}], ids=str)
def test_sampling_without_chance_is_greedy(
    engine: ReferenceEngine, sources: list[list[int]], changes: dict[str, Any]
) -> None:
    found = engine.translate(sources, replace(SAMPLING, **changes), seed=3)
    greedy = engine.translate(sources, GREEDY)
    assert [some[0].ids for some in found] == [some[0].ids for some in greedy]


# What else goes through


def test_an_output_is_at_most_so_much_longer_than_its_source(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    for source, [found] in zip(sources, engine.translate(sources, SEARCH), strict=True):
        assert len(found.ids) <= len(source) + 8
        assert found.finished or len(found.ids) == len(source) + 8


def test_a_constraint_holds_for_the_sentence_it_names(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    beginnings = [[10 + i, 30 + i] for i in range(len(sources))]
    for search in (SEARCH, GREEDY, SAMPLING):
        found = engine.translate(sources, search, constrain=forced_prefix(beginnings))
        assert [list(some[0].ids[:2]) for some in found] == beginnings


def test_a_constraint_holds_for_the_sentence_it_names_where_each_is_searched_for_alone(
    engine: ReferenceEngine, sources: list[list[int]]
) -> None:
    prefixes = [[10 + number] for number in range(len(sources))]
    alone = replace(SEARCH, batch_invariant=True)
    found = engine.translate(sources, alone, constrain=forced_prefix(prefixes))
    assert [one[0].ids[0] for one in found] == [prefix[0] for prefix in prefixes]


def test_required_words_of_a_sentence_do_not_widen_the_search_for_its_neighbours(
    engine: ReferenceEngine, sources: list[list[int]], tokenizer: Tokenizer
) -> None:
    borders = Borders.of(tokenizer)
    words = [["snow"], ["red"], ["a"], ["climbing", "table"], [], ["red"], ["boat", "snow", "morning"], ["a"]]
    require = [Phrases([Required((word,)) for word in some], tokenizer, borders) for some in words]
    found = engine.translate(sources[:8], SEARCH, require=require)
    alone = [engine.translate([s], SEARCH, require=[r])[0] for s, r in zip(sources, require, strict=False)]
    assert_same(found, alone)
    assert len({one.missing(one.start) for one in require}) > 2


def test_the_recorder_sees_every_step_of_every_sentence(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    steps: list[BeamStep] = []
    found = engine.translate(sources[:3], SEARCH, recorder=steps.append)
    for sentence, [best] in enumerate(found):
        positions = [step.position for step in steps if step.sentence == sentence]
        assert positions == list(range(len(positions)))
        assert len(positions) >= len(best.ids) + 1


def test_interventions_reach_the_model_and_do_not_stay(engine: ReferenceEngine, sources: list[list[int]]) -> None:
    before = engine.translate(sources, SEARCH)
    during = engine.translate(sources, SEARCH, probe=Probe({Site("cross", 0): Intervention(heads_off=(0, 1, 2, 3))}))
    assert [some[0].log_probability for some in during] != [some[0].log_probability for some in before]
    # A head that attends to nothing is off; weights are changed without a cache, heads switched off with one.
    nothing = Intervention(overrides=tuple(Override(head, None, torch.zeros(40)) for head in range(4)))
    without_cache = engine.translate(sources, SEARCH, probe=Probe({Site("cross", 0): nothing}))
    assert [some[0].ids for some in without_cache] == [some[0].ids for some in during]
    for [one], [other] in zip(without_cache, during, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-9)
    assert engine.translate(sources, SEARCH) == before


def test_translating_never_drops_out(tokenizer: Tokenizer, sources: list[list[int]]) -> None:
    model = make(tokenizer, seed=7, dropout=0.5)
    found = []
    for _ in range(2):
        model.train()
        engine = ReferenceEngine([model], tokenizer)
        found.append((engine.translate(sources, SEARCH), engine.score(sources, sources)))
    assert found[0] == found[1]


@pytest.fixture
def threads() -> Iterator[None]:
    """Two of them, which is what makes the engine share work out; CI's workers have one."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("search", [SEARCH, GREEDY, SAMPLING])
def test_other_processes_find_the_same(
    ensemble: ReferenceEngine,
    tokenizer: Tokenizer,
    sources: list[list[int]],
    search: SearchConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = replace(search, batch_tokens=20)  # so small that there are many batches
    sharing = ReferenceEngine(ensemble.models, tokenizer, on_all_cores=True)
    monkeypatch.setattr(reference_module, "SECONDS_WORTH_SHARING", 1e9)
    here = sharing.translate(sources * 3, search, 2, seed=5)
    assert sharing._crew is None
    monkeypatch.setattr(reference_module, "SECONDS_WORTH_SHARING", 0.0)
    searches_here: list[str] = []
    for name in ("sample", "greedy_search", "beam_search"):
        searching = getattr(reference_module, name)

        def search_here(*args: Any, name: str = name, searching: Any = searching, **options: Any) -> Any:
            searches_here.append(name)
            return searching(*args, **options)

        monkeypatch.setattr(reference_module, name, search_here)
    there = sharing.translate(sources * 3, search, 2, seed=5)
    assert sharing._crew is not None
    assert len(searches_here) == 1, "the first batch is done here, to see how long one takes, and no other"
    assert_same(there, here)
    assert_same(sharing.translate(sources, search, 2, seed=5), ensemble_alone(ensemble, sources, search))


def ensemble_alone(ensemble: ReferenceEngine, sources: list[list[int]], search: SearchConfig) -> list[list[Hypothesis]]:
    """Batch by batch, as the other processes are asked."""
    return ReferenceEngine(ensemble.models, ensemble.tokenizer, on_all_cores=True).translate(sources, search, 2, seed=5)


def test_a_model_that_is_still_trained_stays_here(engine: ReferenceEngine) -> None:
    """Other processes would go on with the weights that they were given."""
    assert not engine.forms_batches
    assert ReferenceEngine(engine.models, engine.tokenizer, on_all_cores=True).forms_batches


def test_many_are_scored_as_one_by_one(engine: ReferenceEngine, sources: list[list[int]], monkeypatch: Any) -> None:
    targets = sources[::-1]
    monkeypatch.setattr(reference_module, "SCORED_TOKENS", 20)
    found = engine.score(sources, targets)
    assert [len(some) for some in found] == [len(target) + 1 for target in targets]
    for source, target, some in zip(sources, targets, found, strict=True):
        assert some == pytest.approx(engine.score([source], [target])[0], rel=1e-6)
