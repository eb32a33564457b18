import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import CorpusConfig, DataConfig, ModelConfig, RunConfig, TrainConfig, recipes
from dragoman.errors import ConfigError


def message(call: Callable[[], Any]) -> str:
    """What the user reads: always one line, always a configuration error."""
    with pytest.raises(ConfigError) as raised:
        call()
    text = str(raised.value)
    assert len(text.splitlines()) == 1
    assert raised.value.exit_code == 3
    return text


def recipe(directory: Path, content: str, name: str = "mine.toml") -> str:
    path = directory / name
    path.write_text(content, encoding="utf-8")
    return str(path)


def load_set(*texts: str, recipe: str | None = None) -> recipes.LayeredConfig:
    return recipes.load(recipe, [recipes.parse_set(text) for text in texts])


# What is wrong in a recipe is said in terms of the recipe.


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[model]\nnorm_ordre = 'pre'", 'unknown key "norm_ordre" in [model]; did you mean "norm_order"?'),
        ("[modle]\nd_ff = 1", 'unknown section "modle"; did you mean "model"?'),
        ("dropout = 0.2", 'unknown key "dropout"; did you mean "model.dropout"?'),
        ("labelsmoothing = 0.2", 'unknown key "labelsmoothing"; did you mean "train.label_smoothing"?'),
        ("[train]\nzzz = 1", 'unknown key "zzz" in [train]'),
        ("[data]\ntrain = [{ sorce = 'a' }]", 'unknown key "sorce" in [data.train]; did you mean "source"?'),
        ("[model]\nd_ff = '2048'", 'model.d_ff must be a whole number, found "2048"'),
        ("[model]\nd_ff = 2048.0", "model.d_ff must be a whole number, found 2048.0"),
        ("[model]\nd_ff = true", "model.d_ff must be a whole number, found true"),
        ("[model]\ndropout = 'much'", 'model.dropout must be a number, found "much"'),
        ("[model]\nresidual = 1", "model.residual must be true or false, found 1"),
        ("[data]\ntokenizer = 3", "data.tokenizer must be a string, found 3"),
        ("[data]\ntrain = 'a.tsv'", 'data.train must be a list, found "a.tsv"'),
        ("[data]\ntrain = ['a.tsv']", 'data.train must be a table, found "a.tsv"'),
        ("[model]\nd_ff = 2021-01-01", 'model.d_ff must be a whole number, found "2021-01-01"'),
        ("[model]\nnorm_order = 'Pre'", 'model.norm_order = "Pre"; allowed: "post", "pre"; did you mean "pre"?'),
        ("[train]\nschedule = 'cosine'", 'train.schedule = "cosine"; allowed: "paper", "linear"'),
        ("[model]\ndropout = 1.0", "model.dropout = 1.0; must be at least 0 and below 1"),
        ("[model]\ndropout = nan", "model.dropout = NaN; must be at least 0 and below 1"),
        ("[model]\nd_model = 100", "model.num_heads = 8; must be a divisor of d_model (100)"),
        ("[train]\nadam_beta2 = 1.0", "train.adam_beta2 = 1.0; must be at least 0 and below 1"),
        ("model = 3", '"model" is a section; name one of its keys: vocab_size, '),
        ("[model]\nd_ff = ", "not valid TOML: "),
        ("extends = 3", "extends must be a string, found 3"),
    ],
)
def test_a_mistake_in_a_recipe(tmp_path: Path, content: str, complaint: str) -> None:
    path = recipe(tmp_path, content)
    assert message(lambda: recipes.load(path)).startswith(f"{path}: {complaint}")


def test_a_recipe_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes("# é".encode("latin-1"))
    assert "not UTF-8" in message(lambda: recipes.load(str(path)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("train.minuets=30", '--set train.minuets: unknown key "minuets" in [train]; did you mean "minutes"?'),
        ("minutes=30", '--set minutes: unknown key "minutes"; did you mean "train.minutes"?'),
        ("train.minutes=long", '--set train.minutes: train.minutes must be a number, found "long"'),
        ("train.minutes=", '--set train.minutes: train.minutes must be a number, found ""'),
        ("train.minutes=0", "--set train.minutes: train.minutes = 0.0; must be above 0"),
        ("train.minutes", "--set train.minutes: expected section.key=value, for example train.minutes=30"),
        ("model.d_ff.x=1", '--set model.d_ff.x: unknown key "d_ff.x" in [model]'),
    ],
)
def test_a_mistake_in_a_set(text: str, complaint: str) -> None:
    assert message(lambda: load_set(text)).startswith(complaint)


def test_a_limit_between_two_values_names_where_both_came_from(tmp_path: Path) -> None:
    path = recipe(tmp_path, "[model]\nnum_heads = 8\nd_ff = 64")
    found = message(lambda: load_set("model.d_model=100", recipe=path))
    assert found.startswith(f"--set model.d_model, {path}: model.num_heads = 8;")
    found = message(lambda: load_set("model.dropout=2", recipe=path))
    assert found.startswith("--set model.dropout: model.dropout = 2.0;")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"source": "a"},
        {"target": "a"},
        {"pairs": "p", "source": "a"},
        {"pairs": "p", "source": "a", "target": "b"},
    ],
)
def test_a_corpus_is_one_file_or_two(fields: dict[str, Any]) -> None:
    assert "either pairs = a TSV file, or source = and target = " in message(lambda: CorpusConfig(**fields))


def test_averaging_needs_checkpoints_to_average() -> None:
    found = message(lambda: TrainConfig(average_checkpoints=9))
    assert found == "train.average_checkpoints = 9; must be at most keep_checkpoints (5)"


# Layers: defaults, then the recipe that is extended, then the recipe, then what the command says.


def test_the_layers_and_where_each_value_came_from(tmp_path: Path) -> None:
    below = recipe(tmp_path, "[model]\nd_model = 64\nd_ff = 65\ndropout = 0.5", "below.toml")
    above = recipe(tmp_path, "extends = 'below.toml'\n[model]\nd_ff = 128\ndropout = 0.4\n", "above.toml")
    loaded = load_set("model.dropout=0.3", "train.minutes=30", recipe=above)

    model = loaded.config.model
    assert (model.num_heads, model.d_model, model.d_ff, model.dropout) == (8, 64, 128, 0.3)
    assert loaded.config.train.minutes == 30.0
    assert loaded.origins["model.num_heads"] == "default"
    assert loaded.origins["model.d_model"] == below
    assert loaded.origins["model.d_ff"] == above
    assert loaded.origins["model.dropout"] == "--set model.dropout"
    assert loaded.origins["train.minutes"] == "--set train.minutes"
    assert list(loaded.origins) == [key for key, _ in recipes.flatten(loaded.config)]


def test_the_later_of_two_sets_wins() -> None:
    assert load_set("train.seed=2", "train.seed=3").config.train.seed == 3


def test_without_anything_it_is_the_papers_base_model() -> None:
    loaded = recipes.load(None)
    assert loaded.config == RunConfig()
    assert loaded.config.model == ModelConfig.base()
    assert set(loaded.origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("data.tokenizer=my.model", "my.model"),
        ("data.tokenizer='my model'", "my model"),
        ("data.tokenizer=a=b", "a=b"),
        ("train.batch_tokens=25_000", 25_000),
        ("train.peak_rate=3e-3", 0.003),
        ("model.residual=false", False),
        ("model.norm_order=pre", "pre"),
        ("model.attention_scale=1", "1"),
        ("model.attention_scale=1/d_k", "1/d_k"),
    ],
)
def test_a_set_is_toml_or_a_bare_word(text: str, value: object) -> None:
    assert dict(recipes.flatten(load_set(text).config))[text.partition("=")[0]] == value


def test_a_set_can_give_a_corpus() -> None:
    loaded = load_set('data.train=[{ pairs = "my.tsv", weight = 2 }]')
    assert loaded.config.data.train == (CorpusConfig(pairs="my.tsv", weight=2.0),)


# Finding recipes.


def test_extending_in_a_circle(tmp_path: Path) -> None:
    recipe(tmp_path, "extends = 'two.toml'", "one.toml")
    recipe(tmp_path, "extends = 'one.toml'", "two.toml")
    assert message(lambda: recipes.load(str(tmp_path / "one.toml"))).endswith(
        "one.toml: extends itself; remove one `extends`"
    )


def test_a_recipe_of_ones_own_extends_one_of_dragomans(tmp_path: Path) -> None:
    loaded = recipes.load(recipe(tmp_path, "extends = 'big'\n[model]\ndropout = 0.2"))
    assert (loaded.config.model.d_model, loaded.config.model.dropout) == (1024, 0.2)


def test_extending_what_does_not_exist_names_the_recipe_that_says_so(tmp_path: Path) -> None:
    path = recipe(tmp_path, "extends = 'bsae.toml'")
    found = message(lambda: recipes.load(path))
    assert found.startswith(f'{path}: extends recipe bsae.toml: no such file; did you mean "base"?')


@pytest.mark.parametrize("name", ["base", "base.toml", "recipes/base.toml", "recipes/base"])
def test_a_recipe_by_name_from_anywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert recipes.find_recipe(name) == recipes.recipes_dir() / "base.toml"


def test_a_file_of_ones_own_comes_before_a_recipe_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe(tmp_path, "[model]\nd_ff = 7", "base.toml")
    assert recipes.load("base.toml").config.model.d_ff == 7


@pytest.mark.parametrize("name", ["tabel3-A1", "elsewhere/table3-A1.toml", "recipes"])
def test_a_missing_recipe_names_the_known_ones(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = message(lambda: recipes.load(name))
    assert found.startswith(f"recipe {name}: no such file")
    assert "known recipes: base, base-en-fr, big," in found
    assert ('did you mean "table3-A1"?' in found) == ("A1" in name)


# JSON: what a run keeps.


@given(
    model=st.builds(
        ModelConfig,
        vocab_size=st.integers(0, 10**6),
        d_model=st.integers(1, 16).map(lambda width: 8 * width),
        d_k=st.integers(1, 64),
        d_v=st.integers(1, 64),
        dropout=st.floats(0, 1, exclude_max=True),
        norm_order=st.sampled_from(["post", "pre"]),
        attention_scale=st.sampled_from(["1/sqrt(d_k)", "1/d_k", "1"]),
        residual=st.booleans(),
    ),
    data=st.builds(
        DataConfig,
        train=st.lists(
            st.builds(CorpusConfig, pairs=st.text(), weight=st.floats(0, 9, exclude_min=True))
            | st.builds(CorpusConfig, source=st.text(), target=st.text())
        ).map(tuple),
        tokenizer=st.none() | st.text(),
    ),
    minutes=st.none() | st.floats(0, 1e6, exclude_min=True),
)
def test_json_there_and_back(model: ModelConfig, data: DataConfig, minutes: float | None) -> None:
    run = RunConfig(model=model, data=data, train=TrainConfig(minutes=minutes))
    assert RunConfig.from_json(run.to_json(), "config.json") == run


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "config.json: not valid JSON ("),
        ("[]", "config.json: the top level must be a table, found []"),
        ('{"modle": {}}', 'config.json: unknown key "modle"; did you mean "model"?'),
        ('{"model": {"d_fff": 1}}', 'config.json: unknown key "d_fff" in [model]; did you mean "d_ff"?'),
        ('{"model": 3}', "config.json: model must be a table, found 3"),
        ('{"model": {"d_ff": 0}}', "config.json: model.d_ff = 0; must be at least 1"),
        ('{"model": {"d_ff": null}}', "config.json: model.d_ff must be a whole number, found null"),
    ],
)
def test_a_damaged_configuration_of_a_run(text: str, complaint: str) -> None:
    assert message(lambda: RunConfig.from_json(text, "config.json")).startswith(complaint)


def test_json_holds_every_value() -> None:
    kept = json.loads(RunConfig().to_json())
    assert [f"{section}.{key}" for section in kept for key in kept[section]] == [
        key for key, _ in recipes.flatten(RunConfig())
    ]
