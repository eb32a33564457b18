"""The text of an HTML document, to be translated run by run; tags, comments and code stay as they are."""

import html
import re
from html.parser import HTMLParser

_UNTOUCHED = {"script", "style", "code", "pre", "kbd", "samp", "textarea", "svg", "math"}
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Markup(HTMLParser):
    """Pieces of a document: those at `texts` are to be translated, the others are given back as they came."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.texts: list[int] = []
        self._untouched: list[str] = []  # the open elements that hold nothing to translate
        self.feed(document)
        self.close()

    def fill(self, translations: list[str]) -> str:
        pieces = list(self.pieces)
        for place, translation in zip(self.texts, translations, strict=True):
            # Spaces at the edges stand between words of neighbouring runs.
            before, _, after = _edges(self.pieces[place])
            pieces[place] = before + translation + after
        escaped = {place: html.escape(pieces[place], quote=False) for place in self.texts}
        return "".join(escaped.get(place, piece) for place, piece in enumerate(pieces))

    def to_translate(self) -> list[str]:
        return [_edges(self.pieces[place])[1] for place in self.texts]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = tag in _UNTOUCHED or ("translate", "no") in attrs
        if tag not in _VOID and (kept or self._untouched):
            self._untouched.append(tag)
        self.pieces.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.pieces.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._untouched:
            while self._untouched.pop() != tag:
                pass
        self.pieces.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._untouched:
            raw = self._untouched[-1] in ("script", "style")
            self.pieces.append(data if raw else html.escape(data, quote=False))
            return
        if any(map(str.isalpha, data)):
            self.texts.append(len(self.pieces))
            self.pieces.append(data)
        else:
            self.pieces.append(html.escape(data, quote=False))

    def handle_comment(self, data: str) -> None:
        self.pieces.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.pieces.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.pieces.append(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self.pieces.append(f"<![{data}]>")


def _edges(text: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(\s*)(.*?)(\s*)", text, re.DOTALL)
    assert found is not None
    return found[1], found[2], found[3]
