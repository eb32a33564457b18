"""Translates a document of any length from file to file, with a journal of finished sentences beside the output, so
that the same command goes on after a stop.

The document is read three times, each time in constant memory: to count its sentences, to translate them into the
journal, and to write the output from the two. The first line of the journal is a fingerprint of the document, the
model and the settings; with another fingerprint the work begins again.
"""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from dragoman.documents.flow import Flow, Sentence
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.formats import pieces_of, rewrite
from dragoman.documents.pipeline import WINDOW, sentences_in, translated, written
from dragoman.documents.report import DocumentReport, ReportEntry, as_json_line
from dragoman.documents.sentence_translator import RunSentenceTranslator
from dragoman.documents.settings import DEFAULTS, FormatSettings
from dragoman.documents.tagged_sentences import TranslatedSentence
from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.files import flush_to_disk, open_exclusively, replacing, sha256
from dragoman.progress import ProgressLine


def translate_document(
    translator: RunSentenceTranslator,
    source: Path,
    output: Path,
    document_format: DocumentFormat,
    *,
    identity: Sequence[object],
    report_path: Path | None = None,
    say: Callable[[str], None],
    settings: FormatSettings = DEFAULTS,
    window: int = WINDOW,
) -> DocumentReport:
    """Translates a document, or what an earlier call with the same arguments left of it.

    `identity`: all that the output depends on beside the document, the settings, the window and the search.
    """
    _check(source, output)
    settings = dataclasses.replace(settings, left=set())

    def sentences() -> Iterator[tuple[Flow, Sentence]]:
        return sentences_in(pieces_of(lambda: source.open("rb"), document_format, str(source), settings), translator)

    total = sum(1 for _ in sentences())  # reads all of it: what cannot be read is refused before anything is written
    for told in sorted(settings.unchecked):
        say(
            f"{source}: {told}, and nothing says whether the run translates into that; --target-language has it checked"
        )
    search = dataclasses.asdict(translator.translator.search)
    asked = [settings.protect, settings.columns, settings.fuzzy, settings.target, document_format, window]
    everything = [search, *asked, translator.language, sha256(source), *map(str, identity)]
    fingerprint = hashlib.sha256(json.dumps(everything).encode()).hexdigest()
    journal = output.with_name(output.name + ".journal")
    with open_exclusively(journal) as file:
        done = _where_it_stopped(file, fingerprint)
        if done:
            say(f"{output}: going on after sentence {done:,}")
        windows = translated(islice(sentences(), done, None), translator, window)
        _add_to_journal(file, journal, windows, done, ProgressLine(total, done, say, "sentences"))
        with _listing(report_path) as list_one:
            report = DocumentReport(list_one, left=settings.left)
            with replacing(output) as temporary, temporary.open("wb") as stream:
                translations = _read(journal)
                rewrite(
                    lambda: source.open("rb"),
                    document_format,
                    str(source),
                    stream,
                    lambda part, pieces: written(part, pieces, translations, translator, report),
                    settings,
                )
            names = {"document": str(source), "output": str(output), "format": document_format}
            list_one.summary = names | report.to_dict()
    journal.unlink(missing_ok=True)
    for missing in settings.not_met:
        say(f"{source}: no style, font, class or tag {missing!r} in it; nothing was protected by that name")
    return report


def _add_to_journal(
    file: BinaryIO, journal: Path, windows: Iterator[list[TranslatedSentence]], done: int, progress: ProgressLine
) -> None:
    try:
        for translations in windows:
            file.write("".join(f"{_to_line(one)}\n" for one in translations).encode())
            flush_to_disk(file)
            done += len(translations)
            progress.show(done)
    except OSError as error:
        raise DragomanError(
            f"{journal}: cannot be written ({error.strerror}); the same command goes on after sentence {done:,}"
        ) from None
    finally:
        progress.close()


def _check(source: Path, output: Path) -> None:
    if not source.is_file():
        raise DataError(f"{source}: no such file; check the path")
    if output.is_dir():
        raise UsageError(f"--out {output}: a directory; name a file")
    if output.exists() and output.samefile(source):
        raise UsageError(f"--out {output}: the document itself; name another file")
    if not output.parent.is_dir():
        raise UsageError(f"--out {output}: no directory {output.parent}; make it first")


class _Lister:
    """Writes the entries of a report to a file as they come."""

    def __init__(self, stream: BinaryIO | None) -> None:
        self.stream = stream
        self.first = True
        self.summary: dict[str, object] = {}

    def __call__(self, listed: ReportEntry) -> None:
        if self.stream is not None:
            self.stream.write(f"{'' if self.first else ','}\n  {as_json_line(listed)}".encode())
            self.first = False


@contextlib.contextmanager
def _listing(path: Path | None) -> Iterator[_Lister]:
    if path is None:
        yield _Lister(None)
        return
    with replacing(path) as temporary, temporary.open("wb") as stream:
        stream.write(b'{"sentences_listed": [')
        lister = _Lister(stream)
        yield lister
        rest = json.dumps(lister.summary, ensure_ascii=False)[1:]
        stream.write(f"{'' if lister.first else chr(10)}],\n{rest}\n".encode())


def _to_line(sentence: TranslatedSentence) -> str:
    return json.dumps([sentence.how, sentence.items, sentence.notes], ensure_ascii=False)


def _read(journal: Path) -> Iterator[TranslatedSentence]:
    """The translated sentences of a journal."""
    with journal.open("rb") as lines:
        next(lines)
        for line in lines:
            how, items, notes = json.loads(line)
            yield TranslatedSentence(tuple(items), how, tuple(notes))


def _where_it_stopped(file: BinaryIO, fingerprint: str) -> int:
    """How many sentences of the journal are whole and have this fingerprint. Cuts off all that follows them."""
    file.seek(0)
    head = (json.dumps({"fingerprint": fingerprint}) + "\n").encode()
    if file.readline() != head:
        file.truncate(0)
        file.write(head)
        flush_to_disk(file)
        return 0
    done, end = 0, len(head)
    for line in file:
        try:
            _how, _items, _notes = json.loads(line)
        except (ValueError, TypeError):
            break
        if not line.endswith(b"\n"):
            break
        done, end = done + 1, end + len(line)
    file.truncate(end)
    file.seek(end)
    return done
