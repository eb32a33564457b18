"""Builds the flow of a paragraph that is divided into runs: text with the same properties is joined. The look that most
of the text has is the paragraph's own; runs of other looks are elements in it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.html import LONGEST_COPIED
from dragoman.documents.office_xml import escape_xml, split_spaces


class RunsBuilder:
    """Takes the runs in the order of the document. `around` gives what is written before and after the text of a look,
    `is_code` tells which looks mark code."""

    def __init__(
        self, around: Callable[[str], tuple[str, str]], is_code: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._around, self._is_code = around, is_code
        self._builder = FlowBuilder()
        self._looks: Counter[str] = Counter()
        self._stretches: dict[int, str] = {}  # the look of each element that is there only for its look
        self._look: str | None = None  # of the stretch of text that is open
        self._code: list[str] | None = None  # its text, where that is not to be translated

    def add_text(self, text: str, look: str) -> None:
        if not text:
            return
        # Spaces have no look of their own.
        if (text.strip() or self._look is None) and look != self._look:
            self._end_look()
            self._look = look
            if self._is_code(look):
                self._code = []
            else:
                self._stretches[self._builder.open("look", [""])] = look
        if self._code is not None:
            self._code.append(text)
            return
        if text.strip():
            self._looks[look] += len(text.strip())
        self._builder.add_text(text, text)

    def add_point(self, raw: list[str | Flow], breaks: bool = False) -> None:
        self._end_look()
        self._builder.add_point(raw, breaks=breaks)

    def open(self, name: str, raw: str) -> None:
        self._end_look()
        self._builder.open(name, [raw])

    def close(self, name: str, raw: str) -> None:
        self._end_look()
        self._builder.close(name, raw)

    def flow(self) -> Flow:
        self._end_look()
        base = self._looks.most_common(1)[0][0] if self._looks else ""
        flow = self._builder.flow(escape_xml)
        styles: dict[int | None, tuple[str, str]] = {None: self._around(base)}
        styles |= {number: self._around(look) for number, look in self._stretches.items()}
        # What has the paragraph's look needs no element.
        plain = {number for number, look in self._stretches.items() if look == base}
        tags = tuple(tag for tag in flow.tags if tag.element is None or tag.element not in plain)
        return replace(flow, styles=styles, tags=tags)

    def _end_look(self) -> None:
        if self._look is not None and self._code is not None:
            self._add_code("".join(self._code), self._look)
        elif self._look is not None:
            self._builder.close("look", "")
        self._look = self._code = None

    def _add_code(self, text: str, look: str) -> None:
        """Adds code, which the model reads and must copy; where it is long, it is one tag."""
        before, code, after = split_spaces(text)
        self._builder.add_text(before, before)
        if len(code) > LONGEST_COPIED:
            self._builder.add_point([escape_xml(code).join(self._around(look))])
        elif code:
            self._stretches[self._builder.open("look", [""])] = look
            self._builder.add_text(code, code, keep=True)
            self._builder.close("look", "")
            self._looks[look] += len(code)
        self._builder.add_text(after, after)
