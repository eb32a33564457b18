"""PO files for tests, and what becomes of one."""

from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.settings import DEFAULTS, FormatSettings
from support.scripted_translator import Scripted, careful

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: {language}\\n"\n\n'


def through(content: str, translator: Scripted | None = None, settings: FormatSettings = DEFAULTS) -> str:
    return translate_bytes(content.encode(), "po", "x.po", translator or Scripted(careful), settings)[0].decode()
