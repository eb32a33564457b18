"""Reads the vocabularies of a CTranslate2 model, and makes its tokenizer of the sentencepiece models beside it.

A vocabulary is a list of tokens, the first of which has id 0. CTranslate2 keeps no sentencepiece model, so whoever
wants to translate text puts it there, under one of the names that converters and their users give it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.data.imported_tokenizer import (
    MAGIC,
    ONE_MODEL,
    SOURCE_MODEL,
    TARGET_MODEL,
    TARGET_VOCABULARY,
    VOCABULARY,
    AboutTokenizer,
    ImportedKind,
    pack,
)
from dragoman.data.piece_codec import load_sentencepiece
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError
from dragoman.files import read_json
from dragoman.importing.ctranslate2_file import CTranslate2File
from dragoman.run_directory import TOKENIZER

ONE_MODELS = (TOKENIZER, "sentencepiece.model", ONE_MODEL, "spm.model", "spiece.model")
STORED_SETTINGS = 6  # the first binary version that has its settings in config.json
M2M_LANGUAGE, NLLB_LANGUAGE = re.compile(r"__([a-z]{2,3})__"), re.compile(r"([a-z]{3}_[A-Z][a-z]{3})")
BEGINNINGS = ("<pad>", "<start>")  # names for the token that a model with none begins with
LEAST_SHARE = 0.5  # of the vocabulary's tokens that are pieces of the sentencepiece model


@dataclass(frozen=True)
class Vocabularies:
    """The tokens of both sides, and which of them are special."""

    source: Sequence[str]
    target: Sequence[str]
    unk: str
    eos: str
    start: str  # what the decoder is fed first
    given: str  # what every target begins with; empty: nothing
    ends_source: bool
    settings: Mapping[str, Any]  # what config.json says; empty: it is an older model, which has none

    def with_start(self, of_source: bool) -> "Vocabularies":
        """The same with a token more, which the decoder is fed first."""
        name = next(name for name in (*BEGINNINGS, f"<start-{len(self.target)}>") if name not in self.target)
        source = [*self.source, name] if of_source else self.source
        return replace(self, source=source, target=[*self.target, name], start=name)

    def files(self, positions: int) -> dict[str, bytes]:
        """The files beside the model when it is kept in a run. `positions`: rows of its table."""
        names = {"source": self.source, "target": self.target}
        names = {"shared": self.source} if self.source == self.target else names
        settings = {**self.settings, "add_source_eos": self.ends_source, "positions": positions}
        return {
            "config.json": (json.dumps(settings, indent=2) + "\n").encode(),
            **{f"{name}_vocabulary.json": json.dumps(tokens).encode() for name, tokens in names.items()},
        }


def read_vocabularies(directory: Path, file: CTranslate2File, given: str, as_given: bool) -> Vocabularies:
    """Reads the vocabularies and the settings about special tokens."""
    settings = _settings(directory, file)
    unk, eos, start = (str(settings[name]) for name in ("unk_token", "eos_token", "decoder_start_token"))
    source, target = (_tokens(directory, side, unk) for side in ("source", "target"))
    zero_start = bool(file.number("decoder/start_from_zero_embedding", 0))
    for name, token in (("eos_token", eos), ("decoder_start_token", eos if zero_start else start)):
        if token not in target:
            raise DataError(
                f"{directory}/config.json: {name} = {token}, which is not in the vocabulary; models that have it "
                f"can be imported"
            )
    if given and given not in target:
        raise DataError(f"{directory}: every translation is to begin with {given}, which is not in its vocabulary")
    # transformers' tokenizers put the end symbol there, and its converter leaves that to them.
    by_tokenizer = zero_start or bool(_languages(target)) or settings["bos_token"] == "<pad>"
    ends_source = bool(settings["add_source_eos"]) or (by_tokenizer and not as_given)
    if settings["add_source_bos"] or (start == eos and not ends_source):
        key = "add_source_bos = true" if settings["add_source_bos"] else f"decoder_start_token = {start}"
        raise DataError(
            f"{directory}/config.json: {key} as in BART; models whose source begins with text can be imported"
        )
    if ends_source and (eos not in source or source.index(eos) != target.index(eos)):
        raise DataError(f"{directory}: {eos} has another id in the source's vocabulary than in the target's")
    stored = settings if file.binary_version >= STORED_SETTINGS else {}
    return Vocabularies(source, target, unk, eos, eos if zero_start else start, given, ends_source, stored)


def _settings(directory: Path, file: CTranslate2File) -> dict[str, Any]:
    """What config.json says of special tokens; of older models, what is said among the variables."""
    if file.binary_version < STORED_SETTINGS:
        bos, eos = file.text("bos_token", "<s>"), file.text("eos_token", "</s>")

        start = bos if file.number("with_target_bos", 1) else eos
        return {
            "unk_token": file.text("unk_token", "<unk>"), "bos_token": bos, "eos_token": eos,
            "decoder_start_token": None if file.number("user_decoder_start_tokens", 0) else start,
            "add_source_bos": bool(file.number("with_source_bos", 0)),
            "add_source_eos": bool(file.number("with_source_eos", 0)),
        }  # fmt: skip
    found = read_json(directory / "config.json")
    epsilon = found.get("layer_norm_epsilon")
    if epsilon not in (None, 1e-5):
        raise DataError(f"{directory}/config.json: layer_norm_epsilon = {epsilon}; models with 1e-05 can be imported")
    defaults = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "decoder_start_token": "<s>"}
    return defaults | {"add_source_bos": False, "add_source_eos": False} | found


def _tokens(directory: Path, side: str, unk: str) -> list[str]:
    """The tokens of a side. As in CTranslate2, the unknown symbol comes last where a vocabulary lacks it."""
    for path in (directory / f"{name}_vocabulary{end}" for name in ("shared", side) for end in (".json", ".txt")):
        if path.is_file():
            tokens = _listed(path)
            return tokens if unk in tokens else [*tokens, unk]
    raise DataError(
        f"{directory}: neither shared_vocabulary.json nor {side}_vocabulary.json is there; fetch the model again "
        f"(models with further source features cannot be imported)"
    )


def _listed(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode()
        tokens = json.loads(text) if path.suffix == ".json" else text.removesuffix("\n").split("\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); fetch the model again") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: no vocabulary ({error}); fetch the model again") from None
    if not isinstance(tokens, list) or any(not isinstance(token, str) for token in tokens):
        raise DataError(f"{path}: not a list of tokens; fetch the model again")
    if path.suffix == ".txt" and all(token.endswith("\r") for token in tokens):
        return [token[:-1] for token in tokens]
    return tokens


def _languages(tokens: Sequence[str]) -> dict[str, int]:
    """The languages that are tokens of M2M100 or NLLB, with their ids."""
    for form in (M2M_LANGUAGE, NLLB_LANGUAGE):
        found = {match[1]: index for index, token in enumerate(tokens) if (match := form.fullmatch(token))}
        if len(found) > 1:
            return found
    return {}


def tokenizer_of(directory: Path, vocabularies: Vocabularies) -> Tokenizer:
    """The tokenizer: of the sentencepiece models that are in the directory, with the ids of the vocabularies."""
    if all((directory / name).is_file() for name in (SOURCE_MODEL, TARGET_MODEL)):
        models = {name: _read(directory / name) for name in (SOURCE_MODEL, TARGET_MODEL)}
    else:
        path = next((directory / name for name in ONE_MODELS if (directory / name).is_file()), None)
        if path is None:
            raise DataError(
                f"{directory}: no sentencepiece model is beside the model, and CTranslate2 keeps none; put "
                f"{SOURCE_MODEL} and {TARGET_MODEL} there, or the one of both sides as sentencepiece.model"
            )
        models = {ONE_MODEL: _read(path)}
    own = _own_tokenizer(models, vocabularies)
    if own is not None:
        return own
    for name, content in models.items():
        if content.startswith(MAGIC):
            raise DataError(f"{directory}: {TOKENIZER} is of another model; export the run again")
        known = vocabularies.target if name == TARGET_MODEL else vocabularies.source
        _require_its_own(load_sentencepiece(content, f"{directory}/{name}"), known, f"{directory}/{name}")
    kind: ImportedKind = "marian" if SOURCE_MODEL in models else "sentencepiece"
    languages = _languages(vocabularies.target)
    if languages and kind == "sentencepiece":
        return _with_languages(directory, models[ONE_MODEL], vocabularies, languages)
    files = models | {VOCABULARY: _table(vocabularies.source)}
    if vocabularies.source != vocabularies.target:
        files[TARGET_VOCABULARY] = _table(vocabularies.target)
    return _packed(_about(kind, vocabularies), files, directory)


def _own_tokenizer(models: Mapping[str, bytes], vocabularies: Vocabularies) -> Tokenizer | None:
    """The tokenizer of a run that was exported; None: the model is of another origin."""
    model, *others = models.values()
    if any(model != other for other in others) or vocabularies.given:
        return None
    try:
        tokenizer = Tokenizer(model)
    except DataError:  # it has no end symbol, or is none at all
        return None
    source = [tokenizer.source_piece(index) for index in range(tokenizer.source_vocab_size)]
    target = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
    if [source, target] != [list(vocabularies.source), list(vocabularies.target)]:
        return None
    if tokenizer.ends_source != vocabularies.ends_source:
        return None
    special = [target[token] for token in (tokenizer.unk_id, tokenizer.eos_id, tokenizer.bos_id)]
    return tokenizer if special == [vocabularies.unk, vocabularies.eos, vocabularies.start] else None


def _require_its_own(model: Any, tokens: Sequence[str], name: str) -> None:
    """Raises if the vocabulary is of another sentencepiece model: its texts would become unknown symbols."""
    pieces = {model.id_to_piece(index) for index in range(model.vocab_size())}
    named = [token for token in tokens if not (token.startswith("<") and token.endswith(">"))]
    found = sum(token in pieces for token in named)
    if found < LEAST_SHARE * len(named):
        raise DataError(
            f"{name}: {found:,} of the vocabulary's {len(named):,} tokens are pieces of this sentencepiece model, so "
            f"it is of another one; put the model's own there"
        )


def _with_languages(
    directory: Path, model: bytes, vocabularies: Vocabularies, languages: Mapping[str, int]
) -> Tokenizer:
    """The tokenizer of M2M100 or NLLB, whose languages are tokens before both sides."""
    tokens = vocabularies.target
    if NLLB_LANGUAGE.fullmatch(next(iter(languages))):
        about = _about("nllb", vocabularies, languages=languages)
        if "<mask>" in tokens:
            about = replace(about, mask_id=tokens.index("<mask>"))
        tokenizer = _packed(about, {ONE_MODEL: model}, directory)
        for index in range(len(tokens)):
            if not tokenizer.piece(index).startswith("<unused-") and tokenizer.piece(index) != tokens[index]:
                raise DataError(
                    f"{directory}: token {index} is {tokens[index]!r}, and {tokenizer.piece(index)!r} in NLLB's order; "
                    f"import the directory that it was converted from"
                )
        return tokenizer
    names = [token for token in tokens if not M2M_LANGUAGE.fullmatch(token)]
    ids = {token: index for index, token in enumerate(tokens) if token in set(names)}
    files = {ONE_MODEL: model, VOCABULARY: json.dumps(ids, ensure_ascii=False).encode()}
    return _packed(_about("m2m100", vocabularies, languages=languages), files, directory)


def _about(kind: ImportedKind, vocabularies: Vocabularies, **more: Any) -> AboutTokenizer:
    target = vocabularies.target
    # Any token that both sides have: what is padded is masked.
    names = (name for name in ("<pad>", "<blank>", vocabularies.eos, vocabularies.unk) if name in target)
    padding = next(index for name in names if (index := target.index(name)) < len(vocabularies.source))
    return AboutTokenizer(
        kind=kind,
        vocab_size=len(target),
        source_vocab_size=len(vocabularies.source),
        bos_id=target.index(vocabularies.start),
        eos_id=target.index(vocabularies.eos),
        pad_id=padding,
        unk=vocabularies.unk,
        ends_source=vocabularies.ends_source,
        given=(target.index(vocabularies.given),) if vocabularies.given else (),
        **more,
    )


def _packed(about: AboutTokenizer, files: Mapping[str, bytes], directory: Path) -> Tokenizer:
    try:
        about.checked()
    except ValueError as error:
        raise DataError(f"{directory}: its vocabulary does not fit ({error}); fetch the model again") from None
    return Tokenizer(pack(about, files), str(directory))


def _table(tokens: Sequence[str]) -> bytes:
    """A vocabulary as the archive of a tokenizer has it; of a token that is there twice, the first counts."""
    ids = {token: index for index, token in reversed(list(enumerate(tokens)))}
    return json.dumps(ids, ensure_ascii=False).encode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); fetch the model again") from None
