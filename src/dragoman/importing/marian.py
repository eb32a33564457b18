"""Reads Marian's own models: OPUS-MT's archives, unpacked ones, and the directories that Marian trains into.

The weights get the names that they have in transformers, so that the import is that of the directory which Hugging
Face's converter makes of the model: a token <pad> after all others, with an embedding of zeros, begins every
translation, and positions are spaced as in the paper. (Marian spaces their frequencies by 1 / (d_model / 2 - 1) in
place of 1 / (d_model / 2), and its layer norms have 1e-6 for 1e-5; transformers and CTranslate2 leave that out too.)
"""

import json
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dragoman.config import RunConfig, SearchConfig
from dragoman.data.imported_tokenizer import (
    SOURCE_MODEL,
    TARGET_MODEL,
    TARGET_VOCABULARY,
    VOCABULARY,
    AboutTokenizer,
    read_vocabulary,
)
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import ConfigError, DataError
from dragoman.importing.huggingface import OF_SOURCE, OF_TARGET, in_our_terms
from dragoman.importing.imported_model import ImportedModel
from dragoman.importing.marian_files import ModelFiles, files_of, readable, tensors_of
from dragoman.importing.marian_settings import Marian, represented, trained_to_align
from dragoman.importing.marian_tensors import their_tensors
from dragoman.importing.marian_text import MarianOptions, read_pieces, read_settings
from dragoman.importing.tokenizers import packed, require_vocabulary

EOS, UNK, PAD = "</s>", "<unk>", "<pad>"
_SETTINGS = "special:model.yml"  # in the .npz file


def read_marian(path: Path) -> ImportedModel:
    """Reads a Marian model: a zip archive, a directory, or an .npz file with its vocabularies beside it."""
    with files_of(path) as files:
        name, decoder = _model_and_decoder(files)
        with tensors_of(files, name) as tensors:
            content = tensors.text(_SETTINGS)
            if content is None:
                raise DataError(
                    f"{tensors.where}: holds no {_SETTINGS}; models that keep their settings in the .npz file, as "
                    f"Marian writes them, can be imported"
                )
            with readable(f"{tensors.where}: {_SETTINGS}"):
                settings = read_settings(content)
            marian = represented(settings, tensors.where, trained_to_align(name, settings, files))
            found = dict(their_tensors(tensors, marian))
            if tensors.left:
                raise DataError(
                    f"{tensors.where}: holds {min(tensors.left)}, which no Transformer that can be imported has"
                )
        sizes = len(found[OF_SOURCE]), len(found[OF_TARGET])
        values = {**marian.values, "vocab_size": sizes[0], "decoder_vocab_size": sizes[1]}
        config, weights = in_our_terms(marian.family, values, found, path)
        tokenizer = _tokenizer(files, _vocabulary_names(files, name, decoder), sizes, marian)
        run_config = RunConfig(model=replace(config, alignment_layer=marian.alignment_layer), search=_search(decoder))
        origin = {"from": path.name, "weights": name, "marian": settings.get("version", "unknown")}
        return ImportedModel(run_config, weights, tokenizer, _languages(files), origin)


def _model_and_decoder(files: ModelFiles) -> tuple[str, MarianOptions]:
    """The file with the weights, and what decoder.yml says: which files belong together, and how to search."""
    candidates = files.model_names()
    weights = files.chosen or (candidates[0] if len(candidates) == 1 else "")
    decoder: MarianOptions = {}
    for name in ("decoder.yml", f"{weights}.decoder.yml"):  # the second, as Marian writes it, if both are there
        if name in files.names:
            with readable(files.where(name)):
                decoder = read_settings(files.read(name))
    named = _names(decoder, "models")
    if not files.chosen and len(named) > 1:
        raise DataError(f"{files.origin}: decoder.yml names {len(named)} models, an ensemble; give one .npz file of it")
    if not files.chosen and named and named[0] in candidates:
        return named[0], decoder
    if weights:
        return weights, decoder
    if candidates:
        raise DataError(f"{files.origin}: holds {len(candidates)} models; give one of them, such as {candidates[0]}")
    there = f"{files.quantised_names()[0]}, quantised weights" if files.quantised_names() else "no .npz file"
    raise DataError(
        f"{files.origin}: holds {there}; models with their weights in an .npz file, not quantised, can be imported"
    )


def _names(decoder: MarianOptions, key: str) -> list[str]:
    """The files that decoder.yml names, without their directories, which are often of another machine."""
    named = decoder.get(key, [])
    return [PurePosixPath(name).name for name in ([named] if isinstance(named, str) else named)]


def _vocabulary_names(files: ModelFiles, model: str, decoder: MarianOptions) -> tuple[str, str]:
    """The vocabularies of source and target."""
    named = _names(decoder, "vocabs")
    if len(named) == 2 and files.names.issuperset(named):
        return named[0], named[1]
    for ends in (("vocab.yml",), (".src.vocab.yml", ".trg.vocab.yml"), (".src.vocab", ".trg.vocab")):
        found = [[name for name in sorted(files.names) if name.endswith(end)] for end in ends]
        if all(len(names) == 1 for names in found):
            return found[0][0], found[-1][0]
    what = f"decoder.yml names the vocabularies {' and '.join(named)}" if named else "no decoder.yml names vocabularies"
    raise DataError(
        f"{files.origin}: {what}, and no vocab.yml, or .src.vocab and .trg.vocab, is there beside {model}; fetch the "
        f"model again"
    )


def _tokenizer(files: ModelFiles, names: tuple[str, str], sizes: tuple[int, int], marian: Marian) -> Tokenizer:
    """The tokenizer of source.spm, target.spm and the vocabularies. `sizes`: with the token that is added."""
    for name in names:
        if not name.endswith((".yml", ".yaml", ".vocab")):
            raise DataError(f"{files.where(name)}: a vocabulary of this kind; those in .yml or .vocab can be imported")
    content = {name: files.read(name) for name in names}
    separate = content[names[0]] != content[names[1]]
    if separate and marian.shares_source_target:
        raise DataError(
            f"{files.origin}: {names[0]} and {names[1]} differ, and source and target have one embedding; give the "
            f"directory as it was trained"
        )
    parts = {
        VOCABULARY: _vocabulary(names[0], content[names[0]], sizes[0], files),
        TARGET_VOCABULARY: _vocabulary(names[1], content[names[1]], sizes[1], files),
    }
    eos_id, target_eos_id = (read_vocabulary(part).get(EOS) for part in parts.values())
    if eos_id is None or eos_id != target_eos_id:
        raise DataError(
            f"{files.origin}: {EOS} has the ids {eos_id} and {target_eos_id} in {names[0]} and {names[1]}; models in "
            f"which it has one, the same for source and target, can be imported"
        )
    if not separate:
        del parts[TARGET_VOCABULARY]
    for name in (SOURCE_MODEL, TARGET_MODEL):
        if name not in files.names:
            raise DataError(
                f"{files.origin}: {name} is missing; models whose text is cut by sentencepiece, with source.spm and "
                f"target.spm, can be imported"
            )
        parts[name] = files.read(name)
    start = sizes[1] - 1
    about = AboutTokenizer(
        kind="marian",
        vocab_size=sizes[1],
        source_vocab_size=sizes[0],
        bos_id=start,
        eos_id=eos_id,
        pad_id=start if sizes[0] == sizes[1] else eos_id,  # padding is masked, and must be a token of both
        unk=UNK,
        suppressed=(start,),
    )
    return packed(about, parts, files.origin)


def _vocabulary(name: str, content: bytes, size: int, files: ModelFiles) -> bytes:
    """A vocabulary as JSON, with the token that is added."""
    where = files.where(name)
    with readable(where):
        ids = read_pieces(name, content)
    ids.setdefault(PAD, size - 1)
    as_json = json.dumps(ids).encode()
    require_vocabulary(where, as_json, size, UNK)
    return as_json


def _search(decoder: MarianOptions) -> SearchConfig:
    """Beam and length penalty, as Marian has them."""
    try:
        beam, alpha = int(str(decoder["beam-size"])), float(str(decoder["normalize"]))
        return SearchConfig(beam=beam, alpha=alpha, penalty="length")
    except (ConfigError, KeyError, ValueError):
        return SearchConfig(alpha=1.0, penalty="length")  # as OPUS-MT's models have it


def _languages(files: ModelFiles) -> tuple[str, str] | None:
    """The languages that the README names, if each side has one; or else the directory, such as en-de."""
    readme = files.read("README.md").decode(errors="replace") if "README.md" in files.names else ""
    named = [
        set(re.findall(rf"^\* {side} language\(s\): *(.*\S)", readme, re.MULTILINE)) for side in ("source", "target")
    ]
    if all(named):
        codes = [next(iter(found)) for found in named if len(found) == 1]
        both = len(codes) == 2 and all(re.fullmatch("[a-z]{2,3}", code) for code in codes)
        return (codes[0], codes[1]) if both else None
    directory = files.origin.resolve()
    for place in (directory, directory.parent):
        if pair := re.fullmatch(r"(?:opus-mt-)?([a-z]{2,3})-([a-z]{2,3})", place.name):
            return pair[1], pair[2]
    return None
