"""A document through an translator: sentences out of its flows, and what was said back into them."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from dragoman.documents.flow import Flow, Sentence, assemble, merged, nested, render, sentences_of, untranslated
from dragoman.documents.formats import DocumentFormat, pieces_of, rewrite
from dragoman.documents.report import DocumentReport
from dragoman.documents.sentence_translator import SentenceTranslator
from dragoman.documents.settings import DEFAULTS, FormatSettings
from dragoman.documents.tagged_sentences import TranslatedSentence, translate_sentences

# Sentences translated together: enough for batches of like length, few enough to lose little by a stop.
WINDOW = 500


def sentences_in(pieces: Iterable[str | Flow], translator: SentenceTranslator) -> Iterator[tuple[Flow, Sentence]]:
    """In the order in which they are written back: a flow's own, then those in its marks."""
    for piece in pieces:
        if isinstance(piece, Flow):
            for sentence in sentences_of(piece, translator.fits, translator.language):
                yield piece, sentence
            yield from sentences_in(nested(piece), translator)


def translated(
    sentences: Iterable[tuple[Flow, Sentence]], translator: SentenceTranslator, window: int = WINDOW
) -> Iterator[list[TranslatedSentence]]:
    """Window by window."""
    sentences = iter(sentences)
    while batch := list(islice(sentences, window)):
        yield translate_sentences(batch, translator)


def written(
    pieces: Iterable[str | Flow],
    said: Iterator[TranslatedSentence],
    translator: SentenceTranslator,
    report: DocumentReport,
) -> Iterator[str]:
    """The pieces again, with what was said in place of the sentences."""
    for piece in pieces:
        yield piece if isinstance(piece, str) else _written_flow(piece, said, translator, report)


def _written_flow(
    flow: Flow, said: Iterator[TranslatedSentence], translator: SentenceTranslator, report: DocumentReport
) -> str:
    sentences = sentences_of(flow, translator.fits, translator.language)
    own = [next(said) for _ in sentences]
    inner = {id(held): _written_flow(held, said, translator, report) for held in nested(flow)}
    items = assemble(flow, sentences, [one.items for one in own])
    as_it_was = assemble(flow, sentences, [untranslated(flow, sentence) for sentence in sentences])
    text: str | None = flow.raw
    if inner or merged(items) != merged(as_it_was):
        text = _sound_text(flow, lambda form, wrap: _joined(form, items, inner, wrap))
    for sentence, one in zip(sentences, own, strict=True):
        shown = "".join(item if isinstance(item, str) else _tag(flow, item) for item in one.items)
        if text is None:
            report.add("source", (*one.notes, "would be read as another structure"), sentence.text, shown, True)
        else:
            report.add(one.how, one.notes, sentence.text, shown, bool(sentence.tags))
    return flow.raw if text is None else text


def _sound_text(flow: Flow, joined: "Callable[[Flow, bool], str]") -> str | None:
    """As it should be; else on one line; else with every mark of the format's own escaped; None: not at all."""
    ways = [(flow, True), (flow, False)]
    if flow.strict_escape is not None:
        ways.append((replace(flow, escape=flow.strict_escape), False))
    return next((text for form, wrap in ways if flow.sound(text := joined(form, wrap))), None)


def _joined(flow: Flow, items: "list[str | int]", inner: dict[int, str], wrap: bool) -> str:
    column = len(flow.wrap.prefix) if flow.wrap is not None else 0
    pieces = render(flow, items, column, wrap)
    return flow.finish("".join(piece if isinstance(piece, str) else inner[id(piece)] for piece in pieces))


def _tag(flow: Flow, number: int) -> str:
    return "".join(raw if isinstance(raw, str) else raw.raw for raw in flow.tags[number].raw)


def translate_bytes(
    content: bytes, kind: DocumentFormat, name: str, translator: SentenceTranslator, settings: FormatSettings = DEFAULTS
) -> tuple[bytes, DocumentReport]:
    """A document that is in memory."""
    report = DocumentReport()
    found = sentences_in(pieces_of(lambda: io.BytesIO(content), kind, name, settings), translator)
    said = [one for window in translated(found, translator) for one in window]
    output = io.BytesIO()
    answers = iter(said)
    rewrite(
        lambda: io.BytesIO(content),
        kind,
        name,
        output,
        lambda pieces: written(pieces, answers, translator, report),
        settings,
    )
    return output.getvalue(), report
