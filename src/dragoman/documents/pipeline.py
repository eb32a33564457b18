"""Takes the sentences out of a document's flows, has them translated, and writes the translations back."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from dragoman.documents.flow import Flow, Sentence, assemble, merged, nested, raw_of, render, sentences_of, untranslated
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.formats import pieces_of, rewrite
from dragoman.documents.report import DocumentReport
from dragoman.documents.sentence_translator import SentenceTranslator
from dragoman.documents.settings import DEFAULTS, FormatSettings
from dragoman.documents.tagged_sentences import TranslatedSentence, translate_sentences

# Sentences translated together: enough for batches of like length, few enough to lose little by a stop.
WINDOW = 500


def sentences_in(pieces: Iterable[str | Flow], translator: SentenceTranslator) -> Iterator[tuple[Flow, Sentence]]:
    """The sentences in the order in which they are written back: those of a flow, then those in its tags."""
    for piece in pieces:
        if isinstance(piece, Flow):
            for sentence in sentences_of(piece, translator.fits, translator.language):
                yield piece, sentence
            yield from sentences_in(nested(piece), translator)


def translated(
    sentences: Iterable[tuple[Flow, Sentence]], translator: SentenceTranslator, window: int = WINDOW
) -> Iterator[list[TranslatedSentence]]:
    """Translates the sentences, a window at a time."""
    sentences = iter(sentences)
    while batch := list(islice(sentences, window)):
        yield translate_sentences(batch, translator)


def written(
    part: str,
    pieces: Iterable[str | Flow],
    translations: Iterator[TranslatedSentence],
    translator: SentenceTranslator,
    report: DocumentReport,
) -> Iterator[str]:
    """The text of the pieces, with translations in place of the sentences; reports on each sentence."""
    report.part = part
    for piece in pieces:
        yield piece if isinstance(piece, str) else _written_flow(piece, translations, translator, report)


def _written_flow(
    flow: Flow, translations: Iterator[TranslatedSentence], translator: SentenceTranslator, report: DocumentReport
) -> str:
    sentences = sentences_of(flow, translator.fits, translator.language)
    own = [next(translations) for _ in sentences]
    inner = {id(held): _written_flow(held, translations, translator, report) for held in nested(flow)}
    items = assemble(flow, sentences, [translation.items for translation in own])
    source_items = assemble(flow, sentences, [untranslated(flow, sentence) for sentence in sentences])
    text: str | None = flow.raw
    # A translation that is like its source (a name, "OK") fills an empty place; what was left does not.
    filled = flow.fills and any(one.how != "source" and "copy" not in one.notes for one in own)
    if inner or filled or merged(items) != merged(source_items):
        text = _sound_text(flow, lambda form, wrap: _joined(form, items, inner, wrap))
    for sentence, translation in zip(sentences, own, strict=True):
        output = "".join(item if isinstance(item, str) else raw_of(flow.tags[item].raw) for item in translation.items)
        how, notes = translation.how, translation.notes
        if text is None:
            how, notes = "source", (*notes, "would be read as another structure")
        report.add(how, notes, sentence.text, output, text is None or bool(sentence.tags))
    return flow.raw if text is None else text


def _sound_text(flow: Flow, joined: "Callable[[Flow, bool], str]") -> str | None:
    """The flow as usual; else on one line; else with every special character escaped. None: none of these is sound."""
    ways = [(flow, True), (flow, False)]
    if flow.strict_escape is not None:
        ways.append((replace(flow, escape=flow.strict_escape), False))
    return next((text for form, wrap in ways if flow.sound(text := joined(form, wrap))), None)


def _joined(flow: Flow, items: "list[str | int]", inner: dict[int, str], wrap: bool) -> str:
    column = len(flow.wrap.prefix) if flow.wrap is not None else 0
    # Text of one look is written as one run.
    pieces = render(flow, merged(items) if flow.styles else items, column, wrap)
    return flow.finish("".join(piece if isinstance(piece, str) else inner[id(piece)] for piece in pieces))


def translate_bytes(
    content: bytes,
    document_format: DocumentFormat,
    name: str,
    translator: SentenceTranslator,
    settings: FormatSettings = DEFAULTS,
) -> tuple[bytes, DocumentReport]:
    """Translates a document that is in memory."""
    settings = replace(settings, left=set())
    report = DocumentReport(left=settings.left)
    found = sentences_in(pieces_of(lambda: io.BytesIO(content), document_format, name, settings), translator)
    # All are translated before the first is written: what is refused on the way has written nothing.
    translations = iter([one for window in translated(found, translator) for one in window])
    output = io.BytesIO()
    rewrite(
        lambda: io.BytesIO(content),
        document_format,
        name,
        output,
        lambda part, pieces: written(part, pieces, translations, translator, report),
        settings,
    )
    return output.getvalue(), report
