"""The fast engine against the reference: the same model, the same search, or a line that says why not."""

import json
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dragoman.config import ModelConfig, RunConfig, SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import CannotServeError, batches_of_like_length, even_batches
from dragoman.decoding.engines.ct2_cache import Threads, remembered_threads
from dragoman.decoding.engines.ct2_convert import convert
from dragoman.decoding.engines.ct2_specification import SpecificationBuilder
from dragoman.decoding.engines.ctranslate2 import CTranslate2Engine, best_threads, thread_choices
from dragoman.decoding.engines.numpy_weights import position_table
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.engines.vocabulary_map import VocabularyMap, write
from dragoman.decoding.hypothesis import Hypothesis, paper_length_penalty
from dragoman.errors import DataError, UsageError
from dragoman.model.checkpoint import load_model, save_weights, weights_of
from dragoman.model.transformer import Transformer, sinusoids
from dragoman.processes import threads_allowed
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator

TEXT = [
    "Two dogs play in the snow.",
    "A man in a red jacket is climbing a rock.",
    "Children are sitting at a table.",
    "The small boat has left the harbour early in the morning.",
]
SEARCH = SearchConfig(max_extra_length=8)
SHAPE: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 16, "d_ff": 24, "num_heads": 4}
# What a run can be that CTranslate2 has to be told in its own words, and what it cannot be told.
SERVED: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm_order": "pre"},
    "untied": {"tie_embeddings": False, "norm_order": "pre"},
    "unscaled": {"scale_embeddings": False},
    "d_k under d_v": {"d_k": 2, "d_v": 7},
    "d_k over d_v": {"d_k": 9, "d_v": 3, "norm_order": "pre"},
    "heads wider than the model": {"d_k": 8, "d_v": 8},
    "scale 1/d_k": {"attention_scale": "1/d_k"},
    "scale 1": {"attention_scale": "1", "d_k": 2},
    "learned positions": {"positions": "learned", "max_positions": 40},
    "positions by index": {"positions": "index"},
    "no positions": {"positions": "none"},
    "as Marian": {"activation": "swish", "attention_bias": True, "output_bias": True},
    "as M2M100": {"norm_order": "pre", "attention_bias": True, "positions": "sinusoidal-fairseq"},
    "as BART": {"activation": "gelu", "attention_bias": True, "embedding_norm": True, "positions": "learned"},
    "biases of narrow keys": {"attention_bias": True, "d_k": 2, "d_v": 5},
    "output apart": {"tie_embeddings": False, "tied_pair": "source-target"},
    "source apart": {"tie_embeddings": False, "tied_pair": "target-output"},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "batch norm": ({"norm": "batch"}, "no batch normalisation"),
    "no residual": ({"residual": False}, "always has residual connections"),
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(TEXT * 3, 320)


@pytest.fixture(scope="module")
def sources(tokenizer: Tokenizer) -> list[list[int]]:
    draw = random.Random(5)
    pieces = [index for index in range(tokenizer.vocab_size) if index not in (0, tokenizer.bos_id, tokenizer.eos_id)]
    return [draw.choices(pieces, k=draw.randint(1, 12)) for _ in range(300)]


def make(tokenizer: Tokenizer, seed: int = 0, ending: float = 1.5, std: float = 0.3, **changes: Any) -> Transformer:
    """Random, but lively: every parameter matters, outputs differ between sources and end now and then."""
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(vocab_size=tokenizer.vocab_size, **(SHAPE | changes)))
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=std)
        if "norm" in name and name.endswith("weight"):
            parameter.data += 1
    decoder: Any = model.decoder
    last: Any = model.decoder_norm if model.config.norm_order == "pre" else decoder[-1].around_feed_forward.norm
    getattr(last, "norm", last).bias.data += ending * model.output.weight[tokenizer.eos_id].detach()
    return model.eval()


def save(path: Path, tokenizer: Tokenizer, model: Transformer, search: SearchConfig = SEARCH) -> RunDirectory:
    path.mkdir(exist_ok=True)
    run = RunDirectory(path)
    run.write_config(RunConfig(model=model.config, search=search))
    tokenizer.save(run.tokenizer_path)
    save_weights(run.model_path, weights_of(model))
    return run


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return make(tokenizer)


@pytest.fixture
def run(tokenizer: Tokenizer, model: Transformer, tmp_path: Path) -> RunDirectory:
    return save(tmp_path / "run", tokenizer, model)


# The same answers


def test_by_its_rule_the_reference_engine_ranks_as_it_does(
    run: RunDirectory, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    by_rule = replace(SEARCH, stop="first", max_extra_length=30)
    found = CTranslate2Engine(run, tokenizer, SEARCH).translate(sources, by_rule)
    expected = ReferenceEngine([model], tokenizer).translate(sources, by_rule)
    for [ours], [wanted] in zip(found, expected, strict=True):
        assert ours.score == pytest.approx(wanted.score, abs=1e-4)
    assert sum(ours.ids == wanted.ids for [ours], [wanted] in zip(found, expected, strict=True)) >= 0.995 * len(sources)
    exact = ReferenceEngine([model], tokenizer).translate(sources, replace(by_rule, stop="exact"))
    assert sum(some[0].score for some in exact) > sum(some[0].score for some in expected)  # the rules do differ


@pytest.mark.parametrize("alpha", [0.6, 1.0])
@pytest.mark.parametrize("n_best", [1, 4])
def test_the_same_search_finds_the_same(
    run: RunDirectory, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]], alpha: float, n_best: int
) -> None:
    its_own = replace(SEARCH, alpha=alpha, penalty="length", stop="first", max_extra_length=30)
    found = CTranslate2Engine(run, tokenizer, SEARCH).translate(sources, its_own, n_best=n_best)
    expected = ReferenceEngine([model], tokenizer).translate(sources, its_own)
    for hypotheses, [wanted] in zip(found, expected, strict=True):
        assert len(hypotheses) == n_best
        assert hypotheses[0].score == pytest.approx(wanted.score, abs=1e-4)
        assert wanted.score == pytest.approx(wanted.log_probability / (len(wanted.ids) + 1) ** alpha)
    equal = sum(ours[0].ids == wanted.ids for ours, [wanted] in zip(found, expected, strict=True))
    assert equal >= 0.995 * len(sources)
    best = [wanted for [wanted] in expected]
    assert len({wanted.ids for wanted in best}) > 50  # the model is lively enough to tell
    assert len({len(wanted.ids) for wanted in best}) > 8


@pytest.mark.parametrize("changes", SERVED.values(), ids=SERVED.keys())
def test_every_model_is_computed_as_it_is(
    tokenizer: Tokenizer, sources: list[list[int]], changes: dict[str, Any], tmp_path: Path
) -> None:
    model = make(tokenizer, seed=3, **changes)
    engine = CTranslate2Engine(save(tmp_path / "run", tokenizer, model), tokenizer, SEARCH)
    reference = ReferenceEngine([model], tokenizer)
    some, targets = sources[:24], sources[24:48]
    for scores, expected_scores in zip(engine.score(some, targets), reference.score(some, targets), strict=True):
        assert scores == pytest.approx(expected_scores, abs=1e-4)
    greedy = replace(SEARCH, beam=1)
    for found, expected in zip(engine.translate(some, greedy), reference.translate(some, greedy), strict=True):
        assert found[0].ids == expected[0].ids
        assert found[0].finished == expected[0].finished
        assert found[0].score == pytest.approx(expected[0].score, abs=1e-4)


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_it_cannot_compute_is_left_to_the_reference(
    tokenizer: Tokenizer, changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    run = save(tmp_path / "run", tokenizer, make(tokenizer, **changes))
    assert isinstance(Translator.load(run.path).engine, ReferenceEngine)
    with pytest.raises(CannotServeError, match=f"ctranslate2 cannot compute this model: it .*{reason.split()[-1]}"):
        Translator.load(run.path, engine="ctranslate2")


def test_what_is_reported_is_what_scoring_says_and_ranked_by_the_paper(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    for n_best, search in ((4, SEARCH), (6, SEARCH), (2, replace(SEARCH, alpha=0.0)), (1, replace(SEARCH, beam=2))):
        for source, hypotheses in zip(sources[:40], engine.translate(sources[:40], search, n_best), strict=True):
            assert len(hypotheses) == n_best
            assert len({h.ids for h in hypotheses}) == n_best
            scores = engine.score([source] * n_best, [h.ids for h in hypotheses])
            for h, log_probs in zip(hypotheses, scores, strict=True):
                assert len(h.ids) <= len(source) + 8
                assert h.finished == (len(h.ids) < len(source) + 8)
                assert h.log_probability == pytest.approx(sum(log_probs), abs=1e-4)
                assert h.score == h.log_probability / paper_length_penalty(search.alpha)(len(h.ids) + 1)
            assert hypotheses == sorted(hypotheses, key=lambda h: -h.score)


def test_each_sentence_keeps_its_own_maximum_length(
    tokenizer: Tokenizer, sources: list[list[int]], tmp_path: Path
) -> None:
    """Of a model that hardly ever ends, nearly all outputs are cut, each where alone it would be."""
    model = make(tokenizer, seed=1, ending=-6.0)
    engine = CTranslate2Engine(save(tmp_path / "run", tokenizer, model), tokenizer, SEARCH)
    search = replace(SEARCH, max_extra_length=2)
    found = engine.translate(sources[:60], search)
    alone = [engine.translate([source], search)[0][0] for source in sources[:60]]
    assert [(h[0].ids, h[0].finished) for h in found] == [(h.ids, h.finished) for h in alone]
    assert sum(not hypotheses[0].finished for hypotheses in found) > 50
    reference, greedy = ReferenceEngine([model], tokenizer), replace(search, beam=1)
    cut, expected = (e.translate(sources[:60], greedy) for e in (engine, reference))
    assert [h[0].ids for h in cut] == [h[0].ids for h in expected]
    for h, wanted in zip(cut, expected, strict=True):
        assert h[0].log_probability == pytest.approx(wanted[0].log_probability, abs=1e-4)


@pytest.mark.parametrize(("compute_type", "bound"), [("int16", 0.02), ("int8", 0.15)])
def test_smaller_numbers_are_nearly_right(
    tokenizer: Tokenizer, sources: list[list[int]], compute_type: Any, bound: float, tmp_path: Path
) -> None:
    model = make(tokenizer, std=0.1)  # a smoother one: a wild model multiplies every rounding
    engine = CTranslate2Engine(save(tmp_path / "run", tokenizer, model), tokenizer, SEARCH, compute_type)
    expected = ReferenceEngine([model], tokenizer).score(sources[:50], sources[50:100])
    found = engine.score(sources[:50], sources[50:100])
    errors = torch.tensor([a - b for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)])
    assert 1e-5 < errors.abs().mean() < bound
    assert all(engine.translate(sources[:20], SEARCH))


# What is kept on disk


def converted(run: RunDirectory) -> dict[str, int]:
    return {path.name: (path / "model.bin").stat().st_mtime_ns for path in run.converted_path.iterdir()}


def test_a_model_is_converted_once_and_a_changed_one_again(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    first = CTranslate2Engine(run, tokenizer, SEARCH).score(sources[:4], sources[4:8])
    before = converted(run)
    assert CTranslate2Engine(run, tokenizer, SEARCH).score(sources[:4], sources[4:8]) == first
    assert converted(run) == before
    CTranslate2Engine(run, tokenizer, SEARCH, "int8")
    assert [name.split("-")[0] for name in sorted(converted(run))] == ["float32", "int8"]
    other = make(tokenizer, seed=9)
    save_weights(run.model_path, weights_of(other))
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    assert not converted(run).keys() & before.keys()
    assert len(converted(run)) == 1  # of the old weights, int8 went too
    expected = ReferenceEngine([other], tokenizer).score(sources[:4], sources[4:8])
    for found, wanted in zip(engine.score(sources[:4], sources[4:8]), expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)


def test_several_who_need_it_at_once_convert_it_once(
    run: RunDirectory, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    build = SpecificationBuilder.build

    def noted(self: SpecificationBuilder, tokenizer: Tokenizer) -> Any:
        made.append(threading.current_thread().name)
        return build(self, tokenizer)

    monkeypatch.setattr(SpecificationBuilder, "build", noted)
    with ThreadPoolExecutor(4) as pool:
        engines = [pool.submit(CTranslate2Engine, run, tokenizer, SEARCH) for _ in range(4)]
        assert [engine.result()._model.positions for engine in engines] == [512] * 4
    assert len(made) == 1


def test_the_table_of_positions_is_ours_and_grows(run: RunDirectory, model: Transformer, tokenizer: Tokenizer) -> None:
    table = torch.from_numpy(position_table(model.config, 700))
    torch.testing.assert_close(table, sinusoids(700, model.config.d_model), rtol=0, atol=1e-7)
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    assert engine._model.positions == 512
    long = [[5, 6, 7] * 200]
    found, expected = engine.score(long, long)[0], ReferenceEngine([model], tokenizer).score(long, long)[0]
    assert found == pytest.approx(expected, abs=1e-3)
    assert engine._model.positions == 1024
    # Enough is enough: a shorter wish finds the longer table.
    assert CTranslate2Engine(run, tokenizer, SEARCH)._model.positions == 1024


def test_learned_positions_come_to_an_end(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = make(tokenizer, ending=-6.0, positions="learned", max_positions=20)
    engine = CTranslate2Engine(save(tmp_path / "run", tokenizer, model), tokenizer, SEARCH)
    assert engine.translate([[5, 6]], SEARCH)
    for sources, length in (([[5] * 20], 21), ([[5] * 15], 21)):  # the source itself; what is written for it
        with pytest.raises(DataError, match=f"a sequence of {length} tokens; the model has 20 learned positions"):
            engine.translate(sources, SEARCH)


def test_weights_of_another_run_are_named(run: RunDirectory, tokenizer: Tokenizer) -> None:
    save_weights(run.model_path, weights_of(make(tokenizer, d_ff=20)))
    with pytest.raises(
        DataError, match=r"encoder\.0\.feed_forward\.w_1\.weight has shape \(20, 16\), .* says \(24, 16\)"
    ):
        CTranslate2Engine(run, tokenizer, SEARCH)
    save_weights(run.model_path, weights_of(make(tokenizer, tie_embeddings=False)))
    with pytest.raises(DataError, match=r"output\.weight is missing from the configuration's model"):
        CTranslate2Engine(run, tokenizer, SEARCH)
    assert not run.converted_path.exists()  # nothing is left of the attempt


# Who serves


def test_auto_takes_the_fast_engine_where_it_can_serve(run: RunDirectory, model: Transformer) -> None:
    assert isinstance(Translator.load(run.path).engine, CTranslate2Engine)
    assert isinstance(Translator.load(run.path, engine="reference").engine, ReferenceEngine)
    checkpoint = run.checkpoints_path / "step-00000001"
    checkpoint.mkdir(parents=True)
    save_weights(checkpoint / "model.safetensors", weights_of(model))
    requests: list[tuple[tuple[Path, ...], dict[str, Any], str]] = [
        ((run.path, run.path), {}, "with one run, not 2"),
        ((run.path,), {"sampling": True}, "does not sample"),
        ((run.path,), {"checkpoint": "step-00000001"}, "only, not step-00000001"),
    ]
    for runs, options, reason in requests:
        assert isinstance(Translator.load(*runs, **options).engine, ReferenceEngine)
        with pytest.raises(CannotServeError, match=reason):
            Translator.load(*runs, engine="ctranslate2", **options)
        with pytest.raises(CannotServeError, match=reason):  # the reference has no int8 to fall back on
            Translator.load(*runs, compute_type="int8", **options)
    run.model_path.unlink()
    assert isinstance(Translator.load(run.path).engine, ReferenceEngine)


def test_names_that_are_not_known(run: RunDirectory) -> None:
    with pytest.raises(UsageError, match="engine fast; allowed: auto, reference, ctranslate2"):
        Translator.load(run.path, engine="fast")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="compute type int4; allowed: float32, int16, int8"):
        Translator.load(run.path, compute_type="int4")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the reference engine has float32 only"):
        Translator.load(run.path, engine="reference", compute_type="int8")


def test_what_the_engine_is_asked_later_it_may_still_refuse(run: RunDirectory, tokenizer: Tokenizer) -> None:
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    with pytest.raises(CannotServeError, match="does not sample"):
        engine.translate([[5]], replace(SEARCH, sampling=True))
    with pytest.raises(CannotServeError, match="a source without tokens"):
        engine.translate([[5], []], SEARCH)
    assert engine.translate([], SEARCH) == []
    assert engine.score([], []) == []


def test_translator_gives_the_same_text_with_either_engine(run: RunDirectory) -> None:
    lines = [*TEXT, "", "  ", TEXT[0]]
    fast, reference = (Translator.load(run.path, engine=e, beam=1) for e in ("ctranslate2", "reference"))
    assert fast.translate(lines) == reference.translate(lines)
    pairs = [(TEXT[0], TEXT[1]), ("", TEXT[2]), (TEXT[3], "")]
    for found, expected in zip(fast.score(pairs), reference.score(pairs), strict=True):
        assert found == pytest.approx(expected, abs=1e-4)
    [translation] = fast.translate_stream(TEXT[:1], repair=False)
    assert translation.candidates[0].token_log_probabilities is None


@pytest.mark.parametrize("size", [2, 3])
def test_without_repeats_it_finds_what_the_reference_finds(
    run: RunDirectory, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]], size: int
) -> None:
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    greedy = replace(SEARCH, beam=1)
    found = engine.translate(sources, greedy, no_repeat=size)
    expected = ReferenceEngine([model], tokenizer).translate(sources, greedy, no_repeat=size)
    assert [some[0].ids for some in found] == [some[0].ids for some in expected]
    assert found != engine.translate(sources, greedy)
    for [hypothesis], source in zip(found, sources, strict=True):
        stretches = [hypothesis.ids[start : start + size] for start in range(len(hypothesis.ids) - size + 1)]
        assert len(stretches) == len(set(stretches))
        assert hypothesis.log_probability == pytest.approx(sum(engine.score([source], [hypothesis.ids])[0]), abs=1e-3)


def use_cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(count)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_cores_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    use_cores(monkeypatch, 6)
    assert threads_allowed() == 6
    assert thread_choices(6) == [Threads(6, 1), Threads(3, 2), Threads(2, 3), Threads(1, 6)]
    for said, meant in (("3", 3), ("9", 6), ("many", 6), ("0", 6)):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert threads_allowed() == meant


def test_a_batch_is_shared_among_threads_only_where_that_is_much_quicker() -> None:
    apart, shared = thread_choices(2)
    assert best_threads({apart: 100.0, shared: 115.0}) == apart
    assert best_threads({apart: 100.0, shared: 130.0}) == shared
    assert best_threads({apart: 100.0, shared: 40.0}) == apart


@pytest.mark.parametrize(
    ("number", "least", "expected"),
    [("float32", 64_000_000, Threads(2, 1)), ("float32", 1, Threads(1, 2)), ("int8", 1, Threads(2, 1))],
)
def test_threads_share_a_single_sentence_only_where_that_is_quicker(
    number: Any, least: int, expected: Threads, run: RunDirectory, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cores(monkeypatch, 2)
    monkeypatch.setattr("dragoman.decoding.engines.ctranslate2.SHARED_FROM", least)
    asked: list[Threads] = []
    load = CTranslate2Engine._translator

    def noting(engine: CTranslate2Engine, threads: Threads, *lengths: int) -> Any:
        asked.append(threads)
        return load(engine, threads, *lengths)

    monkeypatch.setattr(CTranslate2Engine, "_translator", noting)
    engine = CTranslate2Engine(run, tokenizer, SEARCH, number)
    engine.translate([[5, 6, 7]], SEARCH)
    engine.score([[5, 6, 7]], [[8, 9]])
    assert {asked[0], asked[-1]} == {expected}  # in between, what was cut is scored, as many at a time


def test_the_translations_are_the_same_whichever_threads_are_chosen(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cores(monkeypatch, 2)
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    side_by_side, together = (engine._search(sources[:60], SEARCH, 2, threads) for threads in thread_choices(2))
    assert side_by_side == together


def test_threads_are_measured_once_for_a_machine_and_only_when_the_input_is_large(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cores(monkeypatch, 2)
    monkeypatch.setattr("dragoman.decoding.engines.ctranslate2.LARGE", 70)
    sources = sources[:40]
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    name = engine.name
    before = engine.translate(sources, SEARCH)
    assert remembered_threads(run, name) is None  # 40 sentences so far
    assert engine.translate(sources, SEARCH) == before
    chosen = remembered_threads(run, name)
    assert chosen in thread_choices(2)
    assert engine.translate(sources, SEARCH) == before
    measured: list[object] = []
    monkeypatch.setattr(CTranslate2Engine, "measure_threads", lambda *_: measured.append(1))
    again = CTranslate2Engine(run, tokenizer, SEARCH)
    for _ in range(2):
        assert again.translate(sources, SEARCH) == before
    assert measured == []
    # Other numbers, and another machine, are to be measured for themselves.
    assert remembered_threads(run, "ctranslate2 int8") is None
    use_cores(monkeypatch, 3)
    assert remembered_threads(run, name) is None


def test_a_damaged_note_of_threads_is_measured_again(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cores(monkeypatch, 2)
    engine = CTranslate2Engine(run, tokenizer, SEARCH)
    (run.converted_path / "threads.json").write_text("{ half", encoding="utf-8")
    assert remembered_threads(run, engine.name) is None
    speeds = engine.measure_threads(sources[:20], SEARCH, rounds=1)
    assert remembered_threads(run, engine.name) == best_threads(speeds)
    assert set(speeds) == set(thread_choices(2))


def test_with_a_vocabulary_map_only_likely_tokens_are_written_and_scores_stay_true(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    free = CTranslate2Engine(run, tokenizer, SEARCH)
    assert not free.vocabulary_map
    size = tokenizer.vocab_size
    everything = VocabularyMap(tuple(range(size)), tuple((piece,) for piece in range(size)))
    half = VocabularyMap((), tuple((piece, *range(4, size, 2)) for piece in range(size)))
    path = run.converted_path / f"float32-{free.digest}" / "vmap.txt"
    write(path, everything, tokenizer)
    mapped = CTranslate2Engine(run, tokenizer, SEARCH, vocabulary_map=True)
    assert (mapped.vocabulary_map, mapped.name) == (True, "ctranslate2 float32 with a vocabulary map")
    same = list(zip(free.translate(sources, SEARCH), mapped.translate(sources, SEARCH), strict=True))
    assert sum(a[0].ids == b[0].ids for a, b in same) >= 297  # other batches round otherwise
    write(path, half, tokenizer)
    found = CTranslate2Engine(run, tokenizer, SEARCH, vocabulary_map=True).translate(sources[:50], SEARCH, n_best=2)
    copied = {piece for source in sources[:50] for piece in source}
    for source, hypotheses in zip(sources, found, strict=False):
        for hypothesis in hypotheses:
            assert all(token % 2 == 0 or token in copied or token < 4 for token in hypothesis.ids)
            [log_probs] = free.score([source], [hypothesis.ids])
            assert hypothesis.log_probability == pytest.approx(sum(log_probs), abs=1e-4)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
    # A longer table of positions converts again, and keeps the map.
    convert(run, tokenizer, "float32", free.digest, 5000)
    assert path.is_file()


def in_random_batches(
    engine: CTranslate2Engine | ReferenceEngine, sources: list[list[int]], search: SearchConfig, seed: int
) -> list[list[Hypothesis]]:
    """What the engine finds when the sentences come in another order, some at a time."""
    draw = random.Random(seed)
    order = draw.sample(range(len(sources)), len(sources))
    found: list[list[Hypothesis]] = [[] for _ in sources]
    while order:
        batch = [order.pop() for _ in range(min(len(order), draw.randint(1, 60)))]
        for index, hypotheses in zip(batch, engine.translate([sources[i] for i in batch], search, 2), strict=True):
            found[index] = hypotheses
    return found


@pytest.mark.parametrize("kind", ["float32", "int8", "int8 with a map", "reference"])
def test_a_sentence_has_the_same_translation_to_the_bit_in_any_batch(
    kind: str, run: RunDirectory, model: Transformer, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    search = replace(SEARCH, batch_invariant=True)
    engine: CTranslate2Engine | ReferenceEngine = ReferenceEngine([model], tokenizer)
    if kind != "reference":
        number: Any = kind.split()[0]
        engine = fast = CTranslate2Engine(run, tokenizer, search, number)
        if kind.endswith("map"):
            likely = tuple(
                (piece, *range(4 + piece % 3, tokenizer.vocab_size, 3)) for piece in range(tokenizer.vocab_size)
            )
            write(run.converted_path / f"int8-{fast.digest}" / "vmap.txt", VocabularyMap((), likely), tokenizer)
            engine = CTranslate2Engine(run, tokenizer, search, "int8", vocabulary_map=True)
            assert engine.vocabulary_map
    some = sources if kind != "reference" else sources[:40]
    alone = [engine.translate([source], search, 2)[0] for source in some]
    for seed in range(3):
        assert in_random_batches(engine, some, search, seed) == alone


def test_without_asking_for_it_a_score_depends_on_the_batch(
    run: RunDirectory, tokenizer: Tokenizer, sources: list[list[int]]
) -> None:
    """What the test above compares does see the difference that it says is not there."""
    engine = CTranslate2Engine(run, tokenizer, SEARCH, "int8")
    alone = [engine.translate([source], SEARCH, 2)[0] for source in sources]
    assert in_random_batches(engine, sources, SEARCH, 0) != alone


@pytest.mark.full
@pytest.mark.parametrize("number", ["float32", "int8"])
def test_ten_thousand_sentences_have_the_same_translations_in_a_hundred_batchings(
    number: Any, run: RunDirectory, tokenizer: Tokenizer
) -> None:
    search = replace(SEARCH, batch_invariant=True)
    engine = CTranslate2Engine(run, tokenizer, search, number)
    draw = random.Random(7)
    many = [draw.choices(range(4, tokenizer.vocab_size), k=draw.randint(1, 12)) for _ in range(10_000)]
    alone = [engine.translate([source], search, 2)[0] for source in many]
    for seed in range(100):
        assert in_random_batches(engine, many, search, seed) == alone


def test_even_batches_are_as_many_for_each_core() -> None:
    lengths = [random.Random(4).randint(1, 30) for _ in range(100)]
    for cores in (1, 2, 3):
        batches = even_batches(lengths, 200, cores)
        assert sorted(index for batch in batches for index in batch) == list(range(100))
        sizes = [len(batch) * (max(lengths[i] for i in batch) + 1) for batch in batches]
        assert max(sizes) <= 200
        assert len(batches) <= -(-len(list(batches_of_like_length(lengths, 200))) // cores) * cores
    assert [len(batch) for batch in even_batches([9] * 33, 320, 1)] == [33 - 16, 16]
    assert even_batches([], 200, 2) == []


def test_batches_hold_like_lengths_and_everything_once() -> None:
    lengths = [random.Random(3).randint(1, 30) for _ in range(100)]
    batches = list(batches_of_like_length(lengths, 64))
    assert sorted(index for batch in batches for index in batch) == list(range(100))
    assert all(len(batch) * (max(lengths[i] for i in batch) + 1) <= 64 or len(batch) == 1 for batch in batches)


# Without torch


def test_the_command_line_translates_without_torch(run: RunDirectory) -> None:
    program = (
        "import sys; from dragoman.cli import main as cli\n"
        "try: cli.main()\n"
        "finally: print('torch' in sys.modules, 'ctranslate2' in sys.modules, file=sys.stderr)"
    )
    # An untrained model loops: decoding again does not need torch either.
    repaired = list(Translator.load(run.path, engine="reference", beam=1).translate_stream(TEXT))
    assert any(translation.repaired for translation in repaired)
    expected = [translation.text for translation in repaired]
    for _ in range(2):  # the first converts
        done = subprocess.run(
            [sys.executable, "-c", program, "translate", str(run.path), "--beam", "1"],
            input="".join(f"{line}\n" for line in TEXT),
            capture_output=True,
            encoding="utf-8",
        )
        assert (done.returncode, done.stderr) == (0, "False True\n")
        assert done.stdout.split("\n")[:-1] == expected
    refused = subprocess.run(
        [sys.executable, "-m", "dragoman", "translate", str(run.path), "--engine", "ctranslate2", "--sample"],
        input="",
        capture_output=True,
        encoding="utf-8",
    )
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "ctranslate2 does not sample" in refused.stderr


def test_converting_leaves_no_specifications_that_know_no_torch(run: RunDirectory) -> None:
    """Whoever else in the process wants them imports them anew, and whole."""
    program = (
        "import sys; from dragoman import Translator; Translator.load(sys.argv[1])\n"
        "import ctranslate2\n"
        "print('torch' in sys.modules, 'specs' in vars(ctranslate2), any('specs' in name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(run.path)], capture_output=True, encoding="utf-8")
    assert (done.stdout, done.stderr) == ("False False False\n", "")
    assert len(converted(run)) == 1


def test_a_run_that_cannot_be_written_is_left_to_the_reference(
    run: RunDirectory, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert isinstance(Translator.load(run.path).engine, ReferenceEngine)
    with pytest.raises(CannotServeError, match="cannot be written, and ctranslate2 keeps its own form"):
        convert(run, tokenizer, "float32", "0", 10)
    monkeypatch.undo()
    assert isinstance(Translator.load(run.path).engine, CTranslate2Engine)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert isinstance(Translator.load(run.path).engine, CTranslate2Engine)  # converted before


def test_the_loaded_model_is_the_runs(run: RunDirectory, model: Transformer) -> None:
    """What these tests compare with: the reference engine reads the same file."""
    for ours, theirs in zip(load_model(run).parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert json.loads(run.config_path.read_text())["search"]["max_extra_length"] == 8


def multilingual(tokenizer: Tokenizer) -> Tokenizer:
    """As M2M100's: the decoder is given a language's symbol after the start symbol."""
    of_many = Tokenizer(tokenizer.model_bytes)
    of_many.start_ids = (tokenizer.bos_id, 7)
    return of_many


def suppressing(tokenizer: Tokenizer) -> Tokenizer:
    """As Marian's, which never writes its padding."""
    other = Tokenizer(tokenizer.model_bytes)
    other.suppressed = (78, 131, 201)  # what the model likes best
    return other


@pytest.mark.parametrize("beam", [1, 4])
def test_what_the_decoder_is_given_first_is_given_by_both_engines(
    beam: int, tokenizer: Tokenizer, sources: list[list[int]], tmp_path: Path
) -> None:
    of_many = multilingual(tokenizer)
    model = make(of_many, ending=2.5)
    search = replace(SEARCH, beam=beam, stop="first")
    converted = CTranslate2Engine(save(tmp_path / "run", of_many, model), of_many, search)
    reference = ReferenceEngine([model], of_many)
    ours, theirs = reference.translate(sources[:80], search), converted.translate(sources[:80], search)
    without = ReferenceEngine([model], tokenizer).translate(sources[:80], search)
    # CTranslate2 ends no output at once where it was given a beginning.
    rows = [row for row, found in enumerate(ours) if found[0].ids]
    assert len(rows) > 70
    assert [ours[row][0].ids for row in rows] == [theirs[row][0].ids for row in rows]
    assert sum(found[0].ids != other[0].ids for found, other in zip(ours, without, strict=True)) > 20
    for row in rows:
        assert theirs[row][0].log_probability == pytest.approx(ours[row][0].log_probability, abs=1e-3)
    targets = [found[0].ids for found in ours]
    for engine in (reference, converted):
        for log_probs, found in zip(engine.score(sources[:80], targets), ours, strict=True):
            assert len(log_probs) == len(found[0].ids) + 1
            assert sum(log_probs) == pytest.approx(found[0].log_probability, abs=1e-3)


@pytest.mark.parametrize("beam", [1, 4])
def test_what_may_not_be_written_is_written_by_neither_engine(
    beam: int, tokenizer: Tokenizer, sources: list[list[int]], tmp_path: Path
) -> None:
    other = suppressing(tokenizer)
    model = make(other)
    search = replace(SEARCH, beam=beam, alpha=0.0, stop="first")
    converted = CTranslate2Engine(save(tmp_path / "run", other, model), other, search)
    reference = ReferenceEngine([model], other)
    written = {
        token for found in ReferenceEngine([model], tokenizer).translate(sources, search) for token in found[0].ids
    }
    assert written >= set(other.suppressed)
    outputs = [engine.translate(sources, search) for engine in (reference, converted)]
    for found in outputs:
        assert not {token for best in found for token in best[0].ids} & set(other.suppressed)
        # Their probability is not divided among the others: it is the model's.
        log_probs = reference.score(sources, [best[0].ids for best in found])
        for best, exact in zip(found, log_probs, strict=True):
            assert best[0].log_probability == pytest.approx(sum(exact), abs=1e-3)
    if beam == 1:
        assert [best[0].ids for best in outputs[0]] == [best[0].ids for best in outputs[1]]
