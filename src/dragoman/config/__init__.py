"""Configuration: frozen dataclasses, read from TOML recipes and written as JSON; an unknown key is an error.

The defaults are the paper's base model. Here is every key; `ranges` says which numbers it may have, `values` builds the
dataclasses from plain values, `recipes` puts a configuration together. Imports no torch.
"""

import dataclasses
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from dragoman.config.ranges import CORPUS, DATA, MODEL, SEARCH, TRAIN, Range
from dragoman.config.values import build, quoted
from dragoman.errors import ConfigError

Architecture = Literal["transformer", "lstm"]
NormOrder = Literal["post", "pre"]
Norm = Literal["layer", "batch"]
Positions = Literal["sinusoidal", "sinusoidal-2d", "sinusoidal-fairseq", "learned", "index", "none"]
Activation = Literal["relu", "swish", "gelu"]
TiedPair = Literal["none", "target-output", "source-target"]
AttentionScale = Literal["1/sqrt(d_k)", "1/d_k", "1"]
RecurrentAttention = Literal["multiplicative", "additive", "none"]
Schedule = Literal["paper", "linear"]
Optimizer = Literal["adam", "muon"]
Learn = Literal["all", "top", "low-rank"]
Consistency = Literal["none", "r-drop", "simcut-unk"]
Stop = Literal["exact", "first"]
Penalty = Literal["paper", "length"]
Casing = Literal["plain", "inline"]
Task = Literal["translate", "continue", "restore", "classify"]
TextChange = Literal[
    "upper_case", "title_case", "short_phrases", "typos", "lower_case", "no_end_punctuation", "inline_noise",
    "inline_tags", "joined",
]  # fmt: skip
# Keys of [data]: shares of a view's pairs. New ones come last: the draws of the others stay what they were.
TEXT_CHANGES: tuple[TextChange, ...] = get_args(TextChange)


@dataclass(frozen=True)
class ModelConfig:
    """The model (section 3 of the paper). Options that the paper does not have are those that the experiments compare,
    and those that public models need."""

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
    norm: Norm = "layer"  # layer: normalise each position by itself; batch: each feature over the batch
    positions: Positions = "sinusoidal"  # how the model gets to know a token's position
    max_positions: int = 1024  # rows of the learned position table; the other kinds have no limit
    attention_scale: AttentionScale = "1/sqrt(d_k)"  # what the products of queries and keys are multiplied by
    residual: bool = True  # add each sub-layer's input to its output
    tie_embeddings: bool = True  # one matrix for source, target and the projection before the softmax
    tied_pair: TiedPair = "none"  # with tie_embeddings = false: two of the three that are one matrix all the same
    source_vocab_size: int = 0  # tokens of a vocabulary of the source's own; 0: source and target share one
    scale_embeddings: bool = True  # multiply embeddings by sqrt(d_model)
    embedding_norm: bool = False  # normalise the input of the first layer, as BERT does
    activation: Activation = "relu"  # inside the feed-forward layers
    attention_bias: bool = False  # add a bias after each projection of attention
    output_bias: bool = False  # add a bias to the logits
    alignment_layer: int = 0  # the decoder layer whose first head was trained to show the alignment; 0: none was
    classes: tuple[str, ...] = ()  # of an encoder alone: the labels it predicts, in place of tokens
    patch: int = 0  # the source is a square picture, cut into square patches of this many pixels a side; 0: it is text
    architecture: Architecture = "transformer"  # lstm: the baseline of model/lstm.py, which has no heads or norms
    recurrent_attention: RecurrentAttention = "multiplicative"  # of an lstm; none: only the last states

    def __post_init__(self) -> None:
        _require_ranges(self, "model", MODEL)
        for name, other in (("encoder_layers", "decoder_layers"), ("decoder_layers", "encoder_layers")):
            may_be_left_out = self.architecture == "transformer" and getattr(self, other) >= 1
            least = 0 if may_be_left_out else 1
            _require(getattr(self, name) >= least, "model", name, getattr(self, name), f"at least {least}")
        for name in ("classes", "patch"):
            encoder_alone = self.decoder_layers == 0 or not getattr(self, name)
            _require(encoder_alone, "model", "decoder_layers", self.decoder_layers, f"0 where {name} is given")
        aligned = self.alignment_layer
        _require(aligned <= self.decoder_layers, "model", "alignment_layer", aligned, "a decoder layer's number, or 0")
        if self.tied_pair != "none":
            _require(not self.tie_embeddings, "model", "tied_pair", self.tied_pair, "none with tie_embeddings = true")
        if self.source_vocab_size:
            limit = "0 where source and target share a matrix"
            _require(not self.ties_source_target, "model", "source_vocab_size", self.source_vocab_size, limit)
        if self.positions in ("sinusoidal", "sinusoidal-fairseq"):
            _require(self.d_model % 2 == 0, "model", "d_model", self.d_model, "even (each sine has its cosine)")
        if self.positions == "sinusoidal-2d":
            _require(self.d_model % 4 == 0, "model", "d_model", self.d_model, "a multiple of 4 (half for each axis)")
            _require(self.patch > 0, "model", "patch", self.patch, "at least 1 with positions in two dimensions")
        if self.architecture == "lstm":
            _require(self.d_model % 2 == 0, "model", "d_model", self.d_model, "even (half for each direction)")
            _require(self.tied_pair == "none", "model", "tied_pair", self.tied_pair, "none in an lstm")
            _require(not self.source_vocab_size, "model", "source_vocab_size", self.source_vocab_size, "0 in an lstm")
        fits = self.d_model % self.num_heads == 0
        _require(fits, "model", "num_heads", self.num_heads, f"a divisor of d_model ({self.d_model})")

    @property
    def task(self) -> Task:
        """What a model of this shape is trained to do."""
        if self.classes:
            return "classify"
        if not self.decoder_layers:
            return "restore"
        return "translate" if self.encoder_layers else "continue"

    @property
    def source_tokens(self) -> int:
        """The size of the source's vocabulary, with its default filled in."""
        return self.source_vocab_size or self.vocab_size

    @property
    def ties_source_target(self) -> bool:
        return self.tie_embeddings or self.tied_pair == "source-target"

    @property
    def ties_target_output(self) -> bool:
        return self.tie_embeddings or self.tied_pair == "target-output"

    @property
    def key_size(self) -> int:
        """d_k, with its default filled in."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_size(self) -> int:
        """d_v, with its default filled in."""
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
    """One parallel corpus: a TSV file of pairs, or two aligned files. Files compressed with gzip are read as well."""

    pairs: str | None = None  # a file with a source, a tab and its translation on each line
    source: str | None = None  # a file of source sentences, one on each line
    target: str | None = None  # their translations, line by line
    weight: float = 1.0  # how often an epoch uses each pair; 0.5: each epoch uses another random half
    tag: str | None = None  # put before every source: `>>de<<` asks for German, `<bt>` says that it is synthetic
    back_tag: str | None = None  # also learn each pair in the other direction, with this tag before its source

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
        _require_ranges(self, "data", CORPUS)


def language_tag(language: str) -> str:
    """The tag before a source that asks for a translation into this language, as the OPUS models have it."""
    return f">>{language}<<"


@dataclass(frozen=True)
class DataConfig:
    """Where the text is, which of its pairs are used, and how they are varied in training."""

    train: tuple[CorpusConfig, ...] = ()  # the corpora to learn from
    valid: tuple[CorpusConfig, ...] = ()  # the corpora to validate with
    tokenizer: str | None = None  # an existing sentencepiece model, in place of learning one
    casing: Casing = "plain"  # of a vocabulary that is learned here; inline: lower case, with marks for capitals
    split_digits: bool = False  # of a vocabulary that is learned here: each digit is a token of its own
    max_length: int = 256  # longest side of a training pair, in tokens; longer pairs are dropped and counted
    max_length_ratio: float = 9.0  # pairs where one side has this many times the other's characters are dropped
    drop_duplicates: bool = True  # of pairs that are equal on both sides, only the first is used
    hold_out: int = 1000  # sentence pairs taken from the training data for validation where `valid` is empty
    views: int = 1  # versions of the training text; each epoch takes the next. Of several the first is not changed
    bpe_dropout: float = 0.0  # share of subword merges left out at random, on both sides (Provilkov et al. 2020)
    upper_case: float = 0.0  # share of pairs written in capitals, both sides
    title_case: float = 0.0  # share of pairs written In Title Case, both sides
    short_phrases: float = 0.0  # share of pairs replaced by one to four of their words that translate each other
    typos: float = 0.0  # share of pairs whose source gets spelling mistakes
    lower_case: float = 0.0  # share of pairs whose source is written without capitals; the target keeps its own
    no_end_punctuation: float = 0.0  # share of pairs that lose the . ! or ? at their ends, both sides
    inline_noise: float = 0.0  # share of pairs that get emoji, foreign words, codes or numbers, the same on both sides
    inline_tags: float = (
        0.0  # share of pairs with tags around words that translate each other, or a placeholder for them
    )
    joined: float = 0.0  # share of pairs that are joined with one to three that follow, to one line

    def __post_init__(self) -> None:
        _require_ranges(self, "data", DATA)
        if self.views > 1 and not self.changes:
            raise ConfigError(
                f"data.views = {self.views} with nothing that changes the text; must be 1, or give one of bpe_dropout, "
                f"{', '.join(TEXT_CHANGES)}"
            )
        shares = sum(getattr(self, name) for name in TEXT_CHANGES)
        added = " + ".join(name for name in TEXT_CHANGES if getattr(self, name))
        _require(shares <= 1, "data", added, shares, "at most 1: a pair is changed in one way")

    @property
    def changes(self) -> list[str]:
        """The names of what changes the training text."""
        return [name for name in ("bpe_dropout", *TEXT_CHANGES) if getattr(self, name)]

    @property
    def tags(self) -> list[str]:
        """The words of all tags of the training corpora, each once, sorted."""
        given = (tag for corpus in self.train for tag in (corpus.tag, corpus.back_tag) if tag is not None)
        return sorted({word for tag in given for word in tag.split()})

    @property
    def target_languages(self) -> list[str]:
        """The languages that tags ask for. Empty for a model with one target language, which needs no tags."""
        return [tag[2:-2] for tag in self.tags if tag.startswith(">>") and tag.endswith("<<")]


@dataclass(frozen=True)
class TrainConfig:
    """Training (section 5 of the paper). It ends at `steps` or `minutes`, whichever is reached first."""

    seed: int = 1  # decides the initial weights, the order of the pairs, and dropout
    steps: int = 100_000  # the most steps
    minutes: float | None = None  # the most minutes, over all interruptions; None: no limit
    batch_tokens: int = 25_000  # tokens of a whole step, on each side
    micro_batch_tokens: int = 6_250  # tokens of one forward and backward pass, on each side; a step adds up several
    schedule: Schedule = "paper"  # linear: the same warm-up to `peak_rate`, then a straight line down to zero
    warmup_steps: int = 4000  # steps in which the learning rate rises
    peak_rate: float | None = None  # None: the paper's d_model^-0.5 * warmup_steps^-0.5
    optimizer: Optimizer = "adam"  # muon learns more from each step, for trainings of minutes: docs/decisions/019
    learn: Learn = "all"  # top: the last layers alone; low-rank: thin matrices, added to the projections (LoRA)
    learn_layers: int = 2  # with learn = top: how many layers of the decoder; those below stay as they are
    learn_rank: int = 16  # with learn = low-rank: columns of the thin matrices
    adam_beta1: float = 0.9  # decay of the mean of gradients
    adam_beta2: float = 0.98  # decay of the mean of squared gradients
    adam_epsilon: float = 1e-9  # added to the root of that mean before dividing by it
    label_smoothing: float = 0.1  # the share of probability that the target spreads over all tokens alike
    consistency: Consistency = "none"  # each batch twice, to be predicted alike: docs/decisions/026
    consistency_weight: float = 3.0  # of the difference between the two predictions, in the loss
    cutoff: float = 0.05  # with consistency = simcut-unk: share of tokens that are <unk> in the second pass
    ema: float = 0.0  # decay of a running average of the weights, which may be chosen at the end; 0: none
    begin_with: str | None = None  # a run whose weights and vocabulary this one begins with; None: random weights
    valid_steps: int = 1000  # validate and write a checkpoint each time after this many steps
    valid_sentences: int = 500  # translated for BLEU at each validation; the loss is always over all of them
    patience: int = 0  # validations without a better score before stopping; 0: never
    keep_checkpoints: int = 5  # how many of the newest checkpoints are kept
    average_checkpoints: int = 5  # how many of the last checkpoints are averaged at the end
    processes: int = 1  # processes on this machine; 0: as many as cores (or GPUs), and as a step has micro-batches
    shard: bool = False  # divide weights, gradients and optimiser among the processes (FSDP2): for large models
    threads: int = 0  # threads of each process; 0: the cores, divided among the processes
    answer_seconds: float = 600.0  # a process that keeps the others waiting for longer is reported as hung

    def __post_init__(self) -> None:
        _require_ranges(self, "train", TRAIN)
        if self.shard and self.optimizer == "muon":
            raise ConfigError(
                "train.optimizer = muon with train.shard; Muon needs whole matrices: use adam, or no shard"
            )
        if self.shard and self.learn != "all":
            raise ConfigError(f"train.learn = {self.learn} with train.shard; only a whole model is divided: no shard")
        if self.learn == "low-rank" and self.optimizer == "muon":
            raise ConfigError(
                "train.optimizer = muon with train.learn = low-rank; Muon is for whole matrices: use adam"
            )
        if self.ema and (self.shard or self.learn == "low-rank"):
            other = "train.shard" if self.shard else "train.learn = low-rank"
            raise ConfigError(f"train.ema = {self.ema:g} with {other}; only whole weights are averaged: leave one out")
        _require(
            self.average_checkpoints <= self.keep_checkpoints,
            "train",
            "average_checkpoints",
            self.average_checkpoints,
            f"at most keep_checkpoints ({self.keep_checkpoints})",
        )


@dataclass(frozen=True)
class SearchConfig:
    """How translations are searched for (section 6.1 of the paper: beam 4, alpha 0.6, at most 50 tokens more than the
    source)."""

    beam: int = 4  # hypotheses kept at each step; 1: greedy
    alpha: float = 0.6  # length penalty: 0 favours short translations
    penalty: Penalty = "paper"  # paper: ((5 + length) / 6)^alpha; length: length^alpha, as most others have it
    max_extra_length: int = 50  # the most tokens of a translation beyond those of its source
    stop: Stop = "exact"  # first: stop as soon as `beam` hypotheses have ended, as CTranslate2 and most others do
    batch_tokens: int = 2048  # source tokens translated together
    max_source_length: int = 256  # in tokens; longer lines are split at sentence ends, with a warning
    batch_invariant: bool = False  # the same sentence, the same translation, whatever it is translated with; slower
    sampling: bool = False  # draw translations at random in place of searching for the best
    temperature: float = 1.0  # of sampling: below 1 nearer to the most probable, above 1 more varied
    top_k: int = 0  # sample among the k most probable tokens; 0: among all
    top_p: float = 1.0  # sample among the fewest most probable tokens that together have this probability

    def __post_init__(self) -> None:
        _require_ranges(self, "search", SEARCH)
        for name, allowed in (("stop", typing.get_args(Stop)), ("penalty", typing.get_args(Penalty))):
            _require(getattr(self, name) in allowed, "search", name, getattr(self, name), " or ".join(allowed))


@dataclass(frozen=True)
class RunConfig:
    """The whole configuration of a run, in four sections."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        consistency = self.train.consistency
        text = consistency == "none" or not self.model.patch
        _require(text, "train", "consistency", consistency, "none where the source is a picture")

    def to_json(self) -> str:
        """Writes the configuration as JSON, the way that a run keeps it."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, origin: str) -> Self:
        """Reads what `to_json` wrote. `origin`: the file, for messages."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{origin}: not valid JSON ({error}); restore the file or train again") from None
        return typing.cast(Self, build(cls, values, origin, ""))


def _require_ranges(config: object, section: str, allowed: Mapping[str, Range]) -> None:
    """Raises a ConfigError for the first number of a section that is outside of its range. None is always allowed."""
    for name, numbers in allowed.items():
        value = getattr(config, name)
        _require(value is None or value in numbers, section, name, value, str(numbers))


def _require(holds: bool, section: str, name: str, value: Any, limit: str) -> None:
    if not holds:
        raise ConfigError(f"{section}.{name} = {quoted(value)}; must be {limit}")
