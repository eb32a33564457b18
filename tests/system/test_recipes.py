"""The recipes that come with Dragoman are the paper's: its figures are entered here a second time, by hand."""

from pathlib import PurePath
from typing import Any

import pytest

from dragoman import config
from dragoman.config import recipes
from dragoman.model.transformer import Transformer, count_parameters

OTHERS = {"base", "big", "base-en-fr", "big-en-fr", "multi30k-tiny", "demo", "small", "parsing", "parsing-small"}
OTHERS |= {"lm", "mlm", "classify", "vit"}

# Table 3. Blank cells are the base row's, as in the paper; N stands for both stacks.
COLUMNS = ("N", "d_model", "d_ff", "h", "d_k", "d_v", "P_drop", "eps_ls", "steps")
TABLE_3: dict[str, tuple[float | None, ...]] = {
    "base": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100_000),
    "A1": (None, None, None, 1, 512, 512, None, None, None),
    "A2": (None, None, None, 4, 128, 128, None, None, None),
    "A3": (None, None, None, 16, 32, 32, None, None, None),
    "A4": (None, None, None, 32, 16, 16, None, None, None),
    "B1": (None, None, None, None, 16, None, None, None, None),
    "B2": (None, None, None, None, 32, None, None, None, None),
    "C1": (2, None, None, None, None, None, None, None, None),
    "C2": (4, None, None, None, None, None, None, None, None),
    "C3": (8, None, None, None, None, None, None, None, None),
    "C4": (None, 256, None, None, 32, 32, None, None, None),
    "C5": (None, 1024, None, None, 128, 128, None, None, None),
    "C6": (None, None, 1024, None, None, None, None, None, None),
    "C7": (None, None, 4096, None, None, None, None, None, None),
    "D1": (None, None, None, None, None, None, 0.0, None, None),
    "D2": (None, None, None, None, None, None, 0.2, None, None),
    "D3": (None, None, None, None, None, None, None, 0.0, None),
    "D4": (None, None, None, None, None, None, None, 0.2, None),
    "E": (None, None, None, None, None, None, None, None, None),
    "big": (6, 1024, 4096, 16, 64, 64, 0.3, None, 300_000),
}
KEYS = {
    "N": ("model.encoder_layers", "model.decoder_layers"),
    "d_model": ("model.d_model",),
    "d_ff": ("model.d_ff",),
    "h": ("model.num_heads",),
    "d_k": ("model.d_k",),
    "d_v": ("model.d_v",),
    "P_drop": ("model.dropout",),
    "eps_ls": ("train.label_smoothing",),
    "steps": ("train.steps",),
}


def cells(row: str) -> dict[str, Any]:
    return {
        key: value
        for column, value in zip(COLUMNS, TABLE_3[row], strict=True)
        if value is not None
        for key in KEYS[column]
    }


def values(recipe: str) -> dict[str, Any]:
    return dict(recipes.flatten(recipes.load(recipe).config))


def names() -> list[str]:
    return sorted(path.stem for path in recipes.recipes_dir().glob("*.toml"))


def test_every_row_of_the_table_and_nothing_unknown() -> None:
    assert set(names()) == OTHERS | {f"table3-{row}" for row in TABLE_3}


@pytest.mark.parametrize("name", names())
def test_a_recipe_parses_and_survives_json(name: str) -> None:
    loaded = recipes.load(name).config
    assert config.RunConfig.from_json(loaded.to_json(), "config.json") == loaded


@pytest.mark.parametrize("name", names())
def test_a_recipe_says_what_it_is_and_names_no_place_of_its_own(name: str) -> None:
    lines = (recipes.recipes_dir() / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[0].endswith((".", ":"))
    data = recipes.load(name).config.data
    for corpus in (*data.train, *data.valid):
        for file in (corpus.pairs, corpus.source, corpus.target):
            assert file is None or not PurePath(file).is_absolute()


@pytest.mark.parametrize("row", TABLE_3)
def test_a_row_has_the_papers_values(row: str) -> None:
    found = values(f"table3-{row}")
    expected = cells("base") | cells(row) | {"model.positions": "learned" if row == "E" else "sinusoidal"}
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("row", [row for row in TABLE_3 if row not in ("base", "big")])
def test_a_row_changes_nothing_but_its_own_cells(row: str) -> None:
    base, found = values("table3-base"), values(f"table3-{row}")
    expected = cells(row) | ({"model.positions": "learned"} if row == "E" else {})
    assert {key: value for key, value in found.items() if value != base[key]} == expected


@pytest.mark.parametrize("row", TABLE_3)
def test_table_3_is_without_averaging_and_on_newstest2013(row: str) -> None:
    loaded = recipes.load(f"table3-{row}")
    assert loaded.config.train.average_checkpoints == 1
    assert [corpus.target for corpus in loaded.config.data.valid] == ["data/wmt14/en-de/newstest2013.de"]
    first_line = (recipes.recipes_dir() / f"table3-{row}.toml").read_text(encoding="utf-8").splitlines()[0]
    assert first_line.startswith((f"# Table 3, row {row}:", f"# Table 3, row ({row}):"))


@pytest.mark.parametrize(
    ("name", "vocabulary", "dropout", "steps", "average", "seconds_a_step"),
    [
        ("base", 37_000, 0.1, 100_000, 5, 0.4),
        ("big", 37_000, 0.3, 300_000, 20, 1.0),
        ("base-en-fr", 32_000, 0.1, 100_000, 5, 0.4),
        ("big-en-fr", 32_000, 0.1, 300_000, 20, 1.0),
    ],
)
def test_the_papers_four_systems(
    name: str, vocabulary: int, dropout: float, steps: int, average: int, seconds_a_step: float
) -> None:
    run = recipes.load(name).config
    assert (run.model.vocab_size, run.model.dropout) == (vocabulary, dropout)
    assert (run.train.steps, run.train.average_checkpoints) == (steps, average)
    assert run.train.valid_steps * seconds_a_step == 600  # checkpoints 10 minutes apart on the paper's machine
    assert (run.train.batch_tokens, run.train.warmup_steps, run.train.schedule) == (25_000, 4000, "paper")
    assert (run.train.adam_beta1, run.train.adam_beta2, run.train.adam_epsilon) == (0.9, 0.98, 1e-9)
    assert (run.train.label_smoothing, run.model.norm_order, run.model.tie_embeddings) == (0.1, "post", True)
    assert (run.search.beam, run.search.alpha, run.search.max_extra_length) == (4, 0.6, 50)
    language = "fr" if name.endswith("en-fr") else "de"
    assert [(corpus.source, corpus.target) for corpus in run.data.train] == [
        (f"data/wmt14/en-{language}/train.en", f"data/wmt14/en-{language}/train.{language}")
    ]


def test_base_and_big_are_the_same_in_python() -> None:
    for recipe, model in [("base", config.ModelConfig.base()), ("big", config.ModelConfig.big())]:
        found = recipes.load(recipe).config.model
        assert (found.key_size, found.value_size) == (model.key_size, model.value_size)
        differing = {key for key in vars(model) if getattr(found, key) != getattr(model, key)}
        assert differing == {"d_k", "d_v"}  # written out in the recipe, derived in Python


def test_base_leaves_nothing_of_the_papers_to_a_default() -> None:
    origins = recipes.load("base").origins
    by_default = {key for key, origin in origins.items() if origin == "default"}
    assert by_default & {key for keys in KEYS.values() for key in keys} == set()
    # No limit of the paper's sinusoids, and what only half a model or an LSTM has, or embeddings that are not tied; the
    # rest of the model is stated.
    of_others = {"model.classes", "model.patch", "model.embedding_norm", "model.recurrent_attention"}
    of_others |= {"model.tied_pair", "model.source_vocab_size", "model.alignment_layer"}
    assert {key for key in by_default if key.startswith("model.")} == {"model.max_positions", *of_others}


def test_multi30k_tiny_has_the_published_shape() -> None:
    model = recipes.load("multi30k-tiny").config.model
    assert (model.encoder_layers, model.decoder_layers) == (4, 4)
    assert (model.d_model, model.d_ff, model.num_heads) == (128, 256, 4)
    assert count_parameters(Transformer(model)) <= 2_600_000


def test_parsing_has_the_values_of_section_6_3() -> None:
    run = recipes.load("parsing").config
    assert (run.model.encoder_layers, run.model.decoder_layers, run.model.d_model) == (4, 4, 1024)
    assert run.model.vocab_size == 16_000
    assert (run.search.beam, run.search.alpha, run.search.max_extra_length) == (21, 0.3, 300)
