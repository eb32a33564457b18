"""The range of numbers that each key of a configuration may have. Keys without an entry hold no number."""

from dataclasses import dataclass

MOST_SEED = 2**63 - 1  # the largest seed of a random number generator
MOST_BEAM = 256


@dataclass(frozen=True)
class Range:
    """A range of finite numbers, which are all that a key may have; NaN is outside of every range."""

    least: float
    most: float
    above: bool = False  # the least itself is not allowed
    below: bool = False  # the most itself is not allowed
    remark: str = ""  # put after the range in messages

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and not (
            (self.above and value == self.least) or (self.below and value == self.most)
        )

    def __str__(self) -> str:
        return (
            f"{'above' if self.above else 'at least'} {_plain(self.least)} and "
            f"{'below' if self.below else 'at most'} {_plain(self.most)}{self.remark}"
        )


def _plain(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


_COUNT = Range(1, 10**9)
_COUNT_OR_NONE = Range(0, 10**9)
_WIDTH = Range(1, 2**17)
_SHARE = Range(0, 1, below=True)

MODEL = {
    "vocab_size": Range(0, 10**6, remark=" (0: chosen from the data)"),
    "source_vocab_size": Range(0, 10**6, remark=" (0: source and target share one vocabulary)"),
    "encoder_layers": Range(0, 1000),
    "decoder_layers": Range(0, 1000),
    "d_model": _WIDTH,
    "d_ff": Range(1, 2**20),
    "num_heads": _WIDTH,
    "d_k": _WIDTH,
    "d_v": _WIDTH,
    "dropout": _SHARE,
    "max_positions": Range(1, 10**6),
    "alignment_layer": Range(0, 1000, remark=" (0: no head was trained to align)"),
    "patch": Range(0, 4096, remark=" (0: the source is text)"),
}

CORPUS = {"weight": Range(0, 1000, above=True)}

DATA = {
    "max_length": Range(2, 10**6),
    "max_length_ratio": Range(1, 10**6),
    "hold_out": _COUNT_OR_NONE,
    "views": Range(1, 1000),
    "bpe_dropout": _SHARE,
    "upper_case": _SHARE,
    "title_case": _SHARE,
    "short_phrases": _SHARE,
    "typos": _SHARE,
    "lower_case": _SHARE,
    "no_end_punctuation": _SHARE,
    "inline_noise": _SHARE,
    "inline_tags": _SHARE,
    "joined": _SHARE,
}

TRAIN = {
    "seed": Range(0, MOST_SEED),
    "steps": Range(1, 10**12),
    "minutes": Range(0, 10**6, above=True),
    "batch_tokens": _COUNT,
    "micro_batch_tokens": _COUNT,
    "warmup_steps": Range(1, 10**12),
    "peak_rate": Range(0, 1000, above=True),
    "learn_layers": Range(1, 1000),
    "learn_rank": _WIDTH,
    "adam_beta1": _SHARE,
    "adam_beta2": _SHARE,
    "adam_epsilon": Range(0, 1, above=True),
    "label_smoothing": _SHARE,
    "consistency_weight": Range(0, 1000),
    "cutoff": _SHARE,
    "ema": _SHARE,
    "valid_steps": Range(1, 10**12),
    "valid_sentences": _COUNT,
    "patience": _COUNT_OR_NONE,
    "keep_checkpoints": Range(1, 10**6),
    "average_checkpoints": Range(1, 10**6),
    # The machine may have room for fewer: require_room() in training/distributed.py checks that.
    "processes": Range(0, 4096, remark=" (0: one for each core)"),
    "threads": Range(0, 4096, remark=" (0: the cores, divided among the processes)"),
    "answer_seconds": Range(0, 10**6, above=True),
}

SEARCH = {
    "beam": Range(1, MOST_BEAM),
    "alpha": Range(0, 100),
    "max_extra_length": Range(1, 10**6),
    "batch_tokens": _COUNT,
    "max_source_length": Range(1, 10**6),
    "temperature": Range(0.0001, 100),
    "top_k": Range(0, 10**9, remark=" (0: all)"),
    "top_p": Range(0, 1, above=True),
}
