"""The report on a document: one line for the terminal, and an explanation of every sentence to look at."""

from dragoman.documents.report import DocumentReport, ReportEntry


def test_one_line_counts_the_ways() -> None:
    report = DocumentReport()
    assert report.line() == "nothing to translate: what is code, protected or without letters stays"
    report.add("plain", (), "a", "b", False)
    assert report.line() == "1 sentence"
    report.add("stand-in", ("lost: 7",), "a 7", "b 7", False)
    report.add("source", (), "c", "c", True)
    assert report.line() == "3 sentences: 1 with stand-ins for what must be copied, 1 left untranslated"
    assert (report.listed, report.tagged) == (2, 1)


def test_an_entry_says_that_its_notes_are_about_attempts_before() -> None:
    entries: list[ReportEntry] = []
    report = DocumentReport(entries.append)
    report.add("plain", (), "a", "b", False)
    report.add("stand-in", ("lost: 7", "added: 8"), "a 7", "b 7", False)
    report.add("plain", ("1 tag holds no words",), "c", "d", True)
    report.add("source", (), "e", "e", False)
    assert [(entry.sentence, entry.explanation()) for entry in entries] == [
        (2, "translated with stand-ins for what must be copied, as an attempt before failed: lost: 7; added: 8"),
        (3, "translated, but look at it: 1 tag holds no words"),
        (4, "left untranslated"),
    ]
    assert entries[0].to_dict()["explanation"] == entries[0].explanation()
