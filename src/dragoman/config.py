"""Configuration: frozen dataclasses, strict TOML in, JSON out.

Defaults are the paper's base model. A value's origin (default, recipe, `--set`, flag) is kept beside it,
so that `dragoman config show` can say where each one came from. Unknown keys are fatal. Imports no torch.
"""

import dataclasses
import difflib
import json
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from dragoman import config_ranges
from dragoman.config_ranges import Range
from dragoman.errors import ConfigError

Architecture = Literal["transformer", "lstm"]
NormOrder = Literal["post", "pre"]
Norm = Literal["layer", "batch"]
Positions = Literal["sinusoidal", "sinusoidal-2d", "learned", "index", "none"]
AttentionScale = Literal["1/sqrt(d_k)", "1/d_k", "1"]
RecurrentAttention = Literal["multiplicative", "additive", "none"]
Schedule = Literal["paper", "linear"]
Optimizer = Literal["adam", "muon"]
Stop = Literal["exact", "first"]
Task = Literal["translate", "continue", "restore", "classify"]
TEXT_CHANGES = ("upper_case", "title_case", "short_phrases", "typos")  # of [data]: shares of the pairs of a view


@dataclass(frozen=True)
class ModelConfig:
    """Section 3. The options beyond the paper's are those that the experiments compare."""

    vocab_size: int = 37_000  # tokens; 0: chosen from the amount of training data when the tokenizer is learned
    encoder_layers: int = 6  # N in the paper; 0: the decoder alone, a language model
    decoder_layers: int = 6  # N in the paper; 0: the encoder alone, which restores hidden tokens or classifies
    d_model: int = 512  # the width of every layer's output, and of the embeddings
    d_ff: int = 2048  # the width inside the feed-forward layers
    num_heads: int = 8  # h, attention heads of each layer
    d_k: int | None = None  # None: d_model / num_heads
    d_v: int | None = None  # None: d_model / num_heads
    dropout: float = 0.1  # on every sub-layer's output and on the embeddings, while training
    norm_order: NormOrder = "post"  # post: after the residual sum, as in the paper; pre: before each sub-layer
    norm: Norm = "layer"  # what normalises: each position by itself, or each feature over the batch
    positions: Positions = "sinusoidal"  # how a token's position is told to the model
    max_positions: int = 1024  # rows of the learned position table; the other kinds have no limit
    attention_scale: AttentionScale = "1/sqrt(d_k)"  # the factor of the products of queries and keys
    residual: bool = True  # add each sub-layer's input to its output
    tie_embeddings: bool = True  # one matrix for source, target and the projection before the softmax
    scale_embeddings: bool = True  # multiply embeddings by sqrt(d_model)
    embedding_norm: bool = False  # normalise what goes into the first layer, as BERT does
    classes: tuple[str, ...] = ()  # what an encoder alone tells apart, in place of the vocabulary
    patch: int = 0  # the source is a square picture, in patches of so many pixels a side; 0: it is text
    architecture: Architecture = "transformer"  # lstm: the baseline of model/lstm.py, which has no heads or norms
    recurrent_attention: RecurrentAttention = "multiplicative"  # how an lstm asks its memory; none: one vector is all

    def __post_init__(self) -> None:
        _require_ranges(self, "model", config_ranges.MODEL)
        for name, other in (("encoder_layers", "decoder_layers"), ("decoder_layers", "encoder_layers")):
            halves = self.architecture == "transformer" and getattr(self, other) >= 1
            limit = "at least 0" if halves else "at least 1"
            _require(getattr(self, name) >= (0 if halves else 1), "model", name, getattr(self, name), limit)
        for name in ("classes", "patch"):
            alone = self.decoder_layers == 0 or not getattr(self, name)
            _require(alone, "model", "decoder_layers", self.decoder_layers, f"0 where {name} is given")
        if self.positions == "sinusoidal":
            _require(self.d_model % 2 == 0, "model", "d_model", self.d_model, "even (each sine has its cosine)")
        if self.positions == "sinusoidal-2d":
            _require(self.d_model % 4 == 0, "model", "d_model", self.d_model, "a multiple of 4 (half for each axis)")
            _require(self.patch > 0, "model", "patch", self.patch, "at least 1 with positions in two dimensions")
        if self.architecture == "lstm":
            _require(self.d_model % 2 == 0, "model", "d_model", self.d_model, "even (half for each direction)")
        fits = self.d_model % self.num_heads == 0
        _require(fits, "model", "num_heads", self.num_heads, f"a divisor of d_model ({self.d_model})")

    @property
    def task(self) -> Task:
        """What such a model is trained to do."""
        if self.classes:
            return "classify"
        if not self.decoder_layers:
            return "restore"
        return "translate" if self.encoder_layers else "continue"

    @property
    def key_size(self) -> int:
        """d_k, resolved."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_size(self) -> int:
        """d_v, resolved."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v

    @classmethod
    def base(cls) -> Self:
        """The paper's base model (Table 3)."""
        return cls()

    @classmethod
    def big(cls) -> Self:
        """The paper's big model (Table 3)."""
        return cls(d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)


@dataclass(frozen=True)
class CorpusConfig:
    """One parallel corpus: a TSV of pairs, or two aligned files. `.gz` is read as it is."""

    pairs: str | None = None  # a file with a source, a tab and its translation on each line
    source: str | None = None  # a file of source sentences, one on each line
    target: str | None = None  # their translations, line by line
    weight: float = 1.0  # how often a pair is seen in an epoch; 0.5: another random half each epoch
    tag: str | None = None  # put before every source: `>>de<<` asks for German, `<bt>` says that it is synthetic
    back_tag: str | None = None  # each pair is learned the other way round as well, with this before its source

    def __post_init__(self) -> None:
        for name in ("tag", "back_tag"):
            value = getattr(self, name)
            plain = value is None or (value != "" and value == " ".join(value.split()) and "▁" not in value)
            _require(plain, "data", name, value, "words with a space between them, for example >>de<<")
        two_files = self.source is not None and self.target is not None
        one_side = (self.source is None) != (self.target is None)
        if one_side or (self.pairs is None) != two_files:
            raise ConfigError(
                f"data: a corpus is either pairs = a TSV file, or source = and target = two aligned files; "
                f"found pairs={self.pairs!r}, source={self.source!r}, target={self.target!r}"
            )
        _require_ranges(self, "data", config_ranges.CORPUS)


def language_tag(language: str) -> str:
    """What stands before a source to ask for a translation into a language: the convention of the OPUS models."""
    return f">>{language}<<"


@dataclass(frozen=True)
class DataConfig:
    """Where the text is and what of it is used."""

    train: tuple[CorpusConfig, ...] = ()  # the corpora to learn from
    valid: tuple[CorpusConfig, ...] = ()  # the corpora to validate with
    tokenizer: str | None = None  # an existing sentencepiece model, in place of learning one
    max_length: int = 256  # longest side of a training pair, in tokens; longer pairs are dropped and counted
    max_length_ratio: float = 9.0  # pairs where one side has this many times the other's characters are dropped
    drop_duplicates: bool = True  # of pairs that are equal on both sides, only the first is used
    hold_out: int = 1000  # sentence pairs taken from the training data for validation where `valid` is empty
    views: int = 1  # so many versions of the training text: the first as it is, each epoch the next, written anew
    bpe_dropout: float = 0.0  # of the merges of subwords, left out at random on both sides (Provilkov et al. 2020)
    upper_case: float = 0.0  # this share of the pairs, both sides
    title_case: float = 0.0  # this share of the pairs, both sides
    short_phrases: float = 0.0  # this share of the pairs: one to four words of them that translate each other
    typos: float = 0.0  # this share of the pairs, in the source

    def __post_init__(self) -> None:
        _require_ranges(self, "data", config_ranges.DATA)
        changes = [name for name in ("bpe_dropout", *TEXT_CHANGES) if getattr(self, name)]
        if bool(changes) != (self.views > 1):
            what = (
                f"with {changes[0]} = {getattr(self, changes[0])}" if changes else "with nothing that changes the text"
            )
            limit = (
                "at least 2 (8 is a good number)"
                if changes
                else f"1, or give one of bpe_dropout, {', '.join(TEXT_CHANGES)}"
            )
            raise ConfigError(f"data.views = {self.views} {what}; must be {limit}")
        shares = sum(getattr(self, name) for name in TEXT_CHANGES)
        _require(shares <= 1, "data", f"{' + '.join(TEXT_CHANGES)}", shares, "at most 1: a pair is changed in one way")

    @property
    def tags(self) -> list[str]:
        """The words of all tags, each once."""
        given = (tag for corpus in self.train for tag in (corpus.tag, corpus.back_tag) if tag is not None)
        return sorted({word for tag in given for word in tag.split()})

    @property
    def target_languages(self) -> list[str]:
        """The languages that tags ask for; none where there is only one, which goes without saying."""
        return [tag[2:-2] for tag in self.tags if tag.startswith(">>") and tag.endswith("<<")]


@dataclass(frozen=True)
class TrainConfig:
    """Section 5. Budgets: whichever of `steps` and `minutes` is reached first ends the run."""

    seed: int = 1  # of the initial weights, the order of the pairs, and dropout
    steps: int = 100_000  # the most steps
    minutes: float | None = None  # the most minutes, over all stops; None: no limit
    batch_tokens: int = 25_000  # of a whole step, on each side
    micro_batch_tokens: int = 6_250  # of one forward and backward pass, on each side; a step accumulates several
    schedule: Schedule = "paper"  # linear: the same warm-up to `peak_rate`, then straight down to zero
    warmup_steps: int = 4000  # steps in which the learning rate rises
    peak_rate: float | None = None  # None: the paper's d_model^-0.5 * warmup_steps^-0.5
    optimizer: Optimizer = "adam"  # muon learns more from each step, for trainings of minutes: docs/decisions/019
    adam_beta1: float = 0.9  # decay of the mean of gradients
    adam_beta2: float = 0.98  # decay of the mean of squared gradients
    adam_epsilon: float = 1e-9  # added to the root of that mean, which it is divided by
    label_smoothing: float = 0.1  # the share of probability that the target spreads over all tokens alike
    valid_steps: int = 1000  # validate and write a checkpoint every so many steps
    valid_sentences: int = 500  # translated for BLEU at each validation; the loss is always over all of them
    patience: int = 0  # validations without a better score before stopping; 0: never
    keep_checkpoints: int = 5  # the newest so many stay
    average_checkpoints: int = 5  # the last so many are averaged at the end
    processes: int = 1  # on this machine; 0: what the cores (or GPUs) hold and a step has micro-batches for
    shard: bool = (
        False  # weights, gradients and optimiser divided among the processes (FSDP2), where one cannot hold all
    )
    threads: int = 0  # of each process; 0: the cores, divided among the processes
    answer_seconds: float = 600.0  # a process that lets the others wait longer is taken for hung, and named

    def __post_init__(self) -> None:
        _require_ranges(self, "train", config_ranges.TRAIN)
        if self.shard and self.optimizer == "muon":
            raise ConfigError(
                "train.optimizer = muon with train.shard; Muon needs whole matrices: use adam, or no shard"
            )
        _require(
            self.average_checkpoints <= self.keep_checkpoints,
            "train",
            "average_checkpoints",
            self.average_checkpoints,
            f"at most keep_checkpoints ({self.keep_checkpoints})",
        )


@dataclass(frozen=True)
class SearchConfig:
    """Section 6.1: beam 4, alpha 0.6, at most 50 tokens more than the source."""

    beam: int = 4  # hypotheses kept at each step; 1: greedy
    alpha: float = 0.6  # length penalty: 0 favours short translations
    max_extra_length: int = 50  # the most tokens of a translation beyond those of its source
    stop: Stop = "exact"  # "first": as soon as `beam` hypotheses have ended, as CTranslate2 and most others have it
    batch_tokens: int = 2048  # source tokens translated together
    max_source_length: int = 256  # in tokens; longer lines are split at sentence ends, with a warning
    sampling: bool = False  # draw translations at random in place of searching for the best
    temperature: float = 1.0  # of sampling: below 1 nearer to the most probable, above 1 more varied
    top_k: int = 0  # sample among the k most probable tokens; 0: among all
    top_p: float = 1.0  # sample among the fewest most probable tokens that together have this probability

    def __post_init__(self) -> None:
        _require_ranges(self, "search", config_ranges.SEARCH)
        _require(self.stop in typing.get_args(Stop), "search", "stop", self.stop, " or ".join(typing.get_args(Stop)))


@dataclass(frozen=True)
class RunConfig:
    """Everything that a run is made from."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, origin: str) -> Self:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{origin}: not valid JSON ({error}); restore the file or train again") from None
        return typing.cast(Self, _build(cls, values, origin, ""))


@dataclass(frozen=True)
class LayeredConfig:
    """A configuration, and for each of its values (`model.d_ff`) where it came from."""

    config: RunConfig
    origins: Mapping[str, str]


def load(recipe: str | None, overrides: Sequence[tuple[str, Any, str]] = ()) -> LayeredConfig:
    """Defaults, then the recipe (after the one it extends), then overrides: (key, value, origin) each."""
    layers: list[tuple[str, dict[str, Any]]] = [] if recipe is None else _recipe_layers(find_recipe(recipe), ())
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        for key, value in _flatten(layer):
            _check_key(key, origin)
            values[key], origins[key] = value, origin
    for key, value, origin in overrides:
        _check_key(key, origin)
        values[key], origins[key] = value, origin
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, name = key.split(".")
        nested.setdefault(section, {})[name] = value
    # With several layers no single file is to blame for a bad value: _build is told each value's own origin.
    config = _build(RunConfig, nested, origins, "")
    return LayeredConfig(config, {key: origins.get(key, "default") for key, _ in flatten(config)})


def with_overrides(config: RunConfig, overrides: Sequence[tuple[str, Any, str]]) -> RunConfig:
    """The configuration with some values changed: (key, value, origin) each, as for `load`."""
    return load(
        None, [*((key, value, "the run") for key, value in _flatten(dataclasses.asdict(config))), *overrides]
    ).config


def flatten(config: RunConfig) -> list[tuple[str, Any]]:
    """Each value with its full name, in the order of declaration."""
    return [
        (f"{section.name}.{item.name}", getattr(getattr(config, section.name), item.name))
        for section in dataclasses.fields(config)
        for item in dataclasses.fields(getattr(config, section.name))
    ]


def parse_set(text: str) -> tuple[str, Any, str]:
    """`train.minutes=30` as an override; the value is TOML, or a bare string."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: expected section.key=value, for example train.minutes=30")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    key = key.strip()
    # At once, not only when the text is read and the plan is made.
    _check_key(key, f"--set {key}")
    _check_value(key, parsed, f"--set {key}")
    return key, parsed, f"--set {key}"


def recipes_dir() -> Path:
    """The recipes that come with Dragoman: inside an installed package, or beside src/ in a checkout."""
    installed = Path(__file__).parent / "recipes"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "recipes"


def find_recipe(name: str) -> Path:
    """A path as given, or the name of a recipe that comes with Dragoman (`base`, `table3-A1`)."""
    path = Path(name)
    if _is_file(path):
        return path
    bundled = recipes_dir() / f"{path.stem}.toml"
    if path.name in (path.stem, bundled.name) and path.parent in (Path(), Path("recipes")) and _is_file(bundled):
        return bundled
    known = sorted(p.stem for p in recipes_dir().glob("*.toml"))
    meant = _did_you_mean(path.stem, known)
    raise ConfigError(f"recipe {name}: no such file{meant}; known recipes: {', '.join(known)}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long to be one
        return False


def _recipe_layers(path: Path, seen: tuple[Path, ...]) -> list[tuple[str, dict[str, Any]]]:
    if path.resolve() in seen:
        raise ConfigError(f"{path}: extends itself; remove one `extends`")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8; save the recipe as UTF-8") from None
    except (ValueError, RecursionError) as error:  # of tomllib, or of what it calls on numbers and nesting without end
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    parent = content.pop("extends", None)
    if parent is None:
        return [(str(path), content)]
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends must be a string, found {_quoted(parent)}")
    beside = path.parent / parent
    try:
        below = find_recipe(str(beside) if _is_file(beside) else parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: extends {error}") from None
    return [*_recipe_layers(below, (*seen, path.resolve())), (str(path), content)]


def _flatten(layer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    flat = []
    for section, values in layer.items():
        if isinstance(values, dict):
            flat += [(f"{section}.{name}", value) for name, value in values.items()]
        else:
            flat.append((section, values))
    return flat


def _check_key(key: str, origin: str) -> None:
    sections = {f.name: f.type for f in dataclasses.fields(RunConfig)}
    section, dot, name = key.partition(".")
    names = {s: [f.name for f in dataclasses.fields(typing.cast(type, kind))] for s, kind in sections.items()}
    if not dot and section in sections:
        raise ConfigError(
            f"{origin}: {_quoted(section)} is a section; name one of its keys: {', '.join(names[section])}"
        )
    if not dot:
        # A key without its section: the full name is what was meant.
        full = {n: f"{s}.{n}" for s in sections for n in names[s]} | {s: s for s in sections}
        close = difflib.get_close_matches(section, list(full), n=1)
        meant = f"; did you mean {_quoted(full[close[0]])}?" if close else ""
        raise ConfigError(f"{origin}: unknown key {_quoted(section)}{meant}")
    if section not in sections:
        raise ConfigError(f"{origin}: unknown section {_quoted(section)}{_did_you_mean(section, list(sections))}")
    if name not in names[section]:
        raise ConfigError(f"{origin}: unknown key {_quoted(name)} in [{section}]{_did_you_mean(name, names[section])}")


def _check_value(key: str, value: Any, origin: str) -> None:
    """What one value can be wrong in by itself; limits between several are those of the whole configuration."""
    section, name = key.split(".")
    kinds = {f.name: f.type for f in dataclasses.fields(typing.cast(type, type(getattr(RunConfig(), section))))}
    found = _convert(value, kinds[name], origin, key, origin)
    allowed = {
        "model": config_ranges.MODEL,
        "data": config_ranges.DATA,
        "train": config_ranges.TRAIN,
        "search": config_ranges.SEARCH,
    }[section]
    if name in allowed and found is not None and found not in allowed[name]:
        raise ConfigError(f"{origin}: {key} = {_quoted(found)}; must be {allowed[name]}")


def _build(kind: type, values: Any, origin: str | Mapping[str, str], where: str) -> Any:
    """A dataclass from plain values, each checked against its annotation."""

    def named(name: str) -> str:
        return origin if isinstance(origin, str) else origin.get(f"{where}{name}", "configuration")

    if not isinstance(values, dict):
        raise ConfigError(
            f"{named('')}: {where.rstrip('.') or 'the top level'} must be a table, found {_quoted(values)}"
        )
    fields = {f.name: f.type for f in dataclasses.fields(kind)}
    arguments = {}
    for name, value in values.items():
        if name not in fields:
            inside = f" in [{where.rstrip('.')}]" if where else ""
            raise ConfigError(f"{named(name)}: unknown key {_quoted(name)}{inside}{_did_you_mean(name, list(fields))}")
        arguments[name] = _convert(value, fields[name], origin, f"{where}{name}", named(name))
    try:
        return kind(**arguments)
    except ConfigError as error:
        # A limit may depend on several values, from several layers: name the origins of those that it speaks of.
        spoken_of = set(re.findall(r"\w+", str(error)))
        culprits = sorted({named(name) for name in values if name in spoken_of})
        raise ConfigError(f"{', '.join(culprits) or 'configuration'}: {error}") from None


def _convert(value: Any, kind: Any, origin: str | Mapping[str, str], key: str, named: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(type, kind), value, origin, f"{key}.")
    form, arguments = typing.get_origin(kind), typing.get_args(kind)
    if form in (types.UnionType, typing.Union):  # Python 3.14 made them one
        if value is None and type(None) in arguments:
            return None
        return _convert(value, next(a for a in arguments if a is not type(None)), origin, key, named)
    if form is Literal:
        if value in arguments:
            return value
        if type(value) is int and str(value) in arguments:  # `--set model.attention_scale=1` reads as a number
            return str(value)
        meant = _did_you_mean(str(value), [str(a) for a in arguments])
        raise ConfigError(f"{named}: {key} = {_quoted(value)}; allowed: {', '.join(map(_quoted, arguments))}{meant}")
    if form is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{named}: {key} must be a list, found {_quoted(value)}")
        if dataclasses.is_dataclass(arguments[0]):
            return tuple(_build(typing.cast(type, arguments[0]), item, named, f"{key}.") for item in value)
        return tuple(_convert(item, arguments[0], origin, key, named) for item in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{named}: {key} must be {_WORD_FOR[kind]}, found {_quoted(value)}")
    return value


_WORD_FOR = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {_quoted(close[0])}?" if close else ""


def _require_ranges(config: object, section: str, allowed: Mapping[str, Range]) -> None:
    """Every number of a section; None leaves the choice to others."""
    for name, numbers in allowed.items():
        value = getattr(config, name)
        _require(value is None or value in numbers, section, name, value, str(numbers))


def _require(holds: bool, section: str, name: str, value: Any, limit: str) -> None:
    if not holds:
        raise ConfigError(f"{section}.{name} = {_quoted(value)}; must be {limit}")
