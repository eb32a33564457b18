"""Dragoman: the Transformer of "Attention Is All You Need", from parallel text to a translator.

The public names are imported when they are first used, so that `import dragoman` stays quick and needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.config import CorpusConfig, DataConfig, ModelConfig, RunConfig, SearchConfig, TrainConfig
    from dragoman.data.glossary import Glossary, Required
    from dragoman.data.tokenizer import Tokenizer
    from dragoman.distillation.pipeline import distill
    from dragoman.errors import DragomanError
    from dragoman.export.bundle import About
    from dragoman.export.reproduce import Reproduced, reproduce
    from dragoman.model.transformer import Transformer
    from dragoman.run import Run
    from dragoman.training.backtranslate import BackTranslated, backtranslate
    from dragoman.training.finetune import FineTuned, finetune
    from dragoman.translation.translator import Translator

    __version__: str

__all__ = [
    "About",
    "BackTranslated",
    "CorpusConfig",
    "DataConfig",
    "DragomanError",
    "FineTuned",
    "Glossary",
    "ModelConfig",
    "Reproduced",
    "Required",
    "Run",
    "RunConfig",
    "SearchConfig",
    "Tokenizer",
    "TrainConfig",
    "Transformer",
    "Translator",
    "__version__",
    "backtranslate",
    "distill",
    "finetune",
    "reproduce",
]

_HOME = {
    "About": "dragoman.export.bundle",
    "BackTranslated": "dragoman.training.backtranslate",
    "CorpusConfig": "dragoman.config",
    "DataConfig": "dragoman.config",
    "DragomanError": "dragoman.errors",
    "Glossary": "dragoman.data.glossary",
    "FineTuned": "dragoman.training.finetune",
    "ModelConfig": "dragoman.config",
    "Reproduced": "dragoman.export.reproduce",
    "Required": "dragoman.data.glossary",
    "Run": "dragoman.run",
    "RunConfig": "dragoman.config",
    "SearchConfig": "dragoman.config",
    "Tokenizer": "dragoman.data.tokenizer",
    "TrainConfig": "dragoman.config",
    "Transformer": "dragoman.model.transformer",
    "Translator": "dragoman.translation.translator",
    "backtranslate": "dragoman.training.backtranslate",
    "distill": "dragoman.distillation.pipeline",
    "finetune": "dragoman.training.finetune",
    "reproduce": "dragoman.export.reproduce",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # the next use finds it without coming here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dragoman")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+source"
