"""Reads the tokenizers of Marian, M2M100, NLLB and mBART-50 from Hugging Face directories.

Each keeps its own files: the tokenizer of the run is an archive of them, with the special ids and the languages. The
ids are those of transformers' MarianTokenizer, M2M100Tokenizer, NllbTokenizer and MBart50Tokenizer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.data.imported_tokenizer import (
    ONE_MODEL,
    SOURCE_MODEL,
    TARGET_MODEL,
    TARGET_VOCABULARY,
    VOCABULARY,
    AboutTokenizer,
    pack,
    read_vocabulary,
)
from dragoman.data.piece_codec import load_sentencepiece
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError
from dragoman.files import read_json

SETTINGS, FAST, GENERATION = "tokenizer_config.json", "tokenizer.json", "generation_config.json"
# The languages of M2M100's models, in the order of their tokens.
M2M_LANGUAGES = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}
# Those of mBART-50's, in the same way.
MBART_LANGUAGES = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN "
    "pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)


def marian_tokenizer(directory: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a Marian directory: source.spm and target.spm, and one vocabulary or two. `config`: what
    config.json holds. A directory that was exported from a run of ours has that run's tokenizer."""
    settings = _settings(directory)
    files = {name: _read(directory / name) for name in (SOURCE_MODEL, TARGET_MODEL, VOCABULARY)}
    size = _number(config, "vocab_size", directory)
    target_size = int(config.get("decoder_vocab_size") or size)
    if settings.get("separate_vocabs", False):
        files[TARGET_VOCABULARY] = _read(directory / TARGET_VOCABULARY)
    elif target_size != size:
        raise DataError(
            f"{directory}/config.json: decoder_vocab_size = {target_size} and vocab_size = {size}, and {SETTINGS} does "
            f"not say separate_vocabs = true; models with one vocabulary or with two can be imported"
        )
    unk = _token(settings, "unk_token", "<unk>")
    for name, most in ((VOCABULARY, size), (TARGET_VOCABULARY, target_size)):
        if name in files:
            require_vocabulary(directory / name, files[name], most, unk)
    eos_id, pad_id = (_number(config, name, directory) for name in ("eos_token_id", "pad_token_id"))
    start = config.get("decoder_start_token_id")
    about = AboutTokenizer(
        kind="marian",
        vocab_size=target_size,
        source_vocab_size=size,
        bos_id=pad_id if start is None else start,
        eos_id=eos_id,
        pad_id=pad_id,
        unk=unk,
        suppressed=_suppressed(directory, config),
    )
    own = _own_tokenizer(files, about, directory)
    return packed(about, files, directory) if own is None else own


def m2m_tokenizer(directory: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of an M2M100 directory: its language tokens come after the pieces of vocab.json, and after them
    words without a meaning."""
    settings = _settings(directory)
    files = {name: _read(directory / name) for name in (ONE_MODEL, VOCABULARY)}
    unk, which = _token(settings, "unk_token", "<unk>"), settings.get("language_codes", "m2m100")
    if not isinstance(which, str) or which not in M2M_LANGUAGES:
        raise DataError(
            f"{directory}/{SETTINGS}: language_codes = {which}; models with "
            f"{' or '.join(M2M_LANGUAGES)} can be imported"
        )
    size = _number(config, "vocab_size", directory)
    count = require_vocabulary(directory / VOCABULARY, files[VOCABULARY], size, unk)
    languages = {code: count + index for index, code in enumerate(M2M_LANGUAGES[which].split())}
    return packed(_with_languages("m2m100", config, languages, None, unk, directory), files, directory)


def nllb_tokenizer(directory: Path, config: Mapping[str, Any], known: str = "") -> Tokenizer:
    """The tokenizer of an NLLB directory: ids are sentencepiece's and one, after fairseq's four special symbols.
    `known`: the languages where no file names them. mBART-50's is the same, with `MBART_LANGUAGES`."""
    settings = _settings(directory)
    if settings.get("legacy_behaviour", False):
        raise DataError(
            f"{directory}/{SETTINGS}: legacy_behaviour = true, which puts the language after the source; only models "
            f"that have it before the source, as NLLB was trained, can be imported: set it to false if yours is one"
        )
    if not (directory / ONE_MODEL).is_file():
        raise DataError(
            f"{directory}: {ONE_MODEL} is not there, and {FAST} alone cannot be imported; fetch {ONE_MODEL} as well"
        )
    files = {ONE_MODEL: _read(directory / ONE_MODEL)}
    pieces = load_sentencepiece(files[ONE_MODEL], str(directory / ONE_MODEL)).vocab_size()
    added = _added_tokens(directory, settings, pieces + 1, known)
    languages = {token: number for token, number in added.items() if not token.startswith("<")}
    if not languages:
        raise DataError(
            f"{directory}: neither {FAST} nor {SETTINGS} names the languages; fetch one of them from where it came"
        )
    about = _with_languages("nllb", config, languages, added.get("<mask>"), "<unk>", directory)
    return packed(about, files, directory)


def _with_languages(
    kind: Any, config: Mapping[str, Any], languages: Mapping[str, int], mask: int | None, unk: str, directory: Path
) -> AboutTokenizer:
    size, eos_id = _number(config, "vocab_size", directory), _number(config, "eos_token_id", directory)
    start = config.get("decoder_start_token_id")
    return AboutTokenizer(
        kind=kind,
        vocab_size=size,
        source_vocab_size=size,
        bos_id=eos_id if start is None else start,
        eos_id=eos_id,
        pad_id=_number(config, "pad_token_id", directory),
        unk=unk,
        suppressed=_suppressed(directory, config),
        languages=languages,
        mask_id=mask,
    )


def _added_tokens(directory: Path, settings: Mapping[str, Any], first: int, known: str) -> dict[str, int]:
    """The tokens that NLLB has after its pieces, languages and <mask>, with their ids: as a file states them, or else
    in fairseq's order, the languages and then <mask>."""
    stated: dict[str, int] = {}
    try:
        if (directory / FAST).is_file():
            stated = {token["content"]: int(token["id"]) for token in read_json(directory / FAST)["added_tokens"]}
        elif "added_tokens_decoder" in settings:
            stated = {token["content"]: int(number) for number, token in settings["added_tokens_decoder"].items()}
        stated = {token: number for token, number in stated.items() if number >= first}
        if stated:
            return stated
        names = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
        named = [token if isinstance(token, str) else str(token["content"]) for token in names]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{directory}: its tokens cannot be read from {FAST} or {SETTINGS} ({error!r})") from None
    languages = [token for token in named if not token.startswith("<")] or known.split()
    return {token: first + index for index, token in enumerate([*languages, "<mask>"])}


def _own_tokenizer(files: Mapping[str, bytes], about: AboutTokenizer, directory: Path) -> Tokenizer | None:
    """The tokenizer of a run that was exported; None: the directory is of another origin."""
    model = files[SOURCE_MODEL]
    if model != files[TARGET_MODEL] or TARGET_VOCABULARY in files or about.suppressed:
        return None
    processor = load_sentencepiece(model, str(directory / SOURCE_MODEL))
    if processor.eos_id() != about.eos_id:
        return None
    tokenizer = Tokenizer(model, str(directory / SOURCE_MODEL))
    pieces = {tokenizer.piece(token): token for token in range(tokenizer.vocab_size)}
    same = pieces == read_vocabulary(files[VOCABULARY]) and len(pieces) == about.vocab_size
    return tokenizer if same and tokenizer.bos_id == about.bos_id else None


def packed(about: AboutTokenizer, files: Mapping[str, bytes], directory: Path) -> Tokenizer:
    """The tokenizer that these files make."""
    try:
        about.checked()
    except ValueError as error:
        raise DataError(f"{directory}: its settings do not fit ({error}); fetch the directory again") from None
    return Tokenizer(pack(about, files), str(directory))


def _suppressed(directory: Path, config: Mapping[str, Any]) -> tuple[int, ...]:
    """The tokens that the model's settings forbid: Marian's padding."""
    path = directory / GENERATION
    settings = {**config, **(read_json(path) if path.is_file() else {})}
    words = settings.get("bad_words_ids") or []
    if not isinstance(words, list) or any(not isinstance(word, list) or len(word) != 1 for word in words):
        raise DataError(f"{directory}: bad_words_ids = {words}; models that forbid single tokens can be imported")
    return tuple(sorted({token for (token,) in words}))


def _settings(directory: Path) -> dict[str, Any]:
    path = directory / SETTINGS
    return read_json(path) if path.is_file() else {}


def _token(settings: Mapping[str, Any], name: str, default: str) -> str:
    value = settings.get(name, default)
    return str(value.get("content", default) if isinstance(value, dict) else value)


def _number(config: Mapping[str, Any], name: str, directory: Path) -> int:
    value = config.get(name)
    if type(value) is not int:
        raise DataError(f"{directory}/config.json: {name} = {value}; a number is needed: fetch the directory again")
    return value


def require_vocabulary(path: Path | str, content: bytes, most: int, unk: str) -> int:
    """The number of pieces of a vocabulary, each with an id of its own that the model has."""
    try:
        ids = read_vocabulary(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}); fetch the directory again") from None
    if unk not in ids:
        raise DataError(f"{path}: the unknown symbol {unk} is not in it; fetch the directory again")
    if len(set(ids.values())) != len(ids) or not all(0 <= token < most for token in ids.values()):
        raise DataError(
            f"{path}: its {len(ids):,} pieces have ids up to {max(ids.values()):,}, and the model {most:,} tokens; "
            f"each needs one of its own: fetch the directory again"
        )
    return len(ids)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); fetch the directory again") from None
