"""Joins Marian's vocabulary files into one sentencepiece model: source.spm, target.spm, and vocab.json with all ids.

The joint model has the pieces in the order of vocab.json. It splits text as source.spm does: pieces that only the
target has are marked as unused, so they are decoded but never used to encode.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError, DragomanError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # sentencepiece's kinds of pieces


def joined_tokenizer(directory: Path, config: Mapping[str, Any], vocab_size: int) -> Tokenizer:
    """The tokenizer of a Marian directory, with start, end and padding symbols at the ids that the model expects."""
    source, target = (_read(directory / name) for name in ("source.spm", "target.spm"))
    try:
        vocabulary: dict[str, int] = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{directory / 'vocab.json'}: cannot be read ({error}); fetch the directory again") from None
    if sorted(vocabulary.values()) != list(range(vocab_size)):
        raise DataError(
            f"{directory}: vocab.json has {len(vocabulary)} pieces and config.json {vocab_size}; fetch it again"
        )
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    ids = {name: int(config[f"{name}_token_id"]) for name in ("eos", "pad")}
    start = int(config.get("decoder_start_token_id", ids["pad"]))
    if source == target:
        tokenizer = Tokenizer(source, str(directory / "source.spm"))
        own = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
        if own == names and (tokenizer.bos_id, tokenizer.eos_id) == (start, ids["eos"]):
            return tokenizer  # already as the model expects it
    return Tokenizer(_joined(names, source, target, start, ids["eos"], ids["pad"]), str(directory))


def _joined(names: list[str], source: bytes, target: bytes, start: int, eos: int, pad: int) -> bytes:
    try:
        from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]
    except ImportError:
        raise DragomanError("protobuf is not installed; pip install 'dragoman[export]'") from None
    of_source, of_target, joint = ModelProto(), ModelProto(), ModelProto()
    of_source.ParseFromString(source)
    of_target.ParseFromString(target)
    joint.CopyFrom(of_source)
    del joint.pieces[:]
    known = [{piece.piece: piece for piece in model.pieces} for model in (of_source, of_target)]
    unknown = next(piece.piece for piece in of_source.pieces if piece.type == UNKNOWN)
    for index, name in enumerate(names):
        piece = joint.pieces.add()
        piece.piece = name
        if name in known[0]:
            piece.score, piece.type = known[0][name].score, known[0][name].type
        elif name in known[1]:
            kind = known[1][name].type
            piece.score, piece.type = known[1][name].score, UNUSED if kind == NORMAL else kind
        else:  # language tags such as >>fr<< are part of the text
            piece.score, piece.type = 0.0, USER_DEFINED if name.startswith(">>") else CONTROL
        if index in (start, eos, pad) and name != unknown:
            piece.type = CONTROL
    trainer = joint.trainer_spec
    trainer.vocab_size = len(names)
    for symbol, index in (("bos", start), ("eos", eos), ("pad", pad)):
        setattr(trainer, f"{symbol}_piece", names[index])
        setattr(trainer, f"{symbol}_id", index)
    trainer.unk_piece, trainer.unk_id = unknown, names.index(unknown)
    content: bytes = joint.SerializeToString()
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); fetch the directory again") from None
