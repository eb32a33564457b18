"""Text with XML tags as HTML with tags that the documents' HTML knows, and back: for the tag handling of DeepL's API.

To HTML an unknown tag is the end of a paragraph; in XML most tags stand within a sentence.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

_TAG = re.compile(r"</?[A-Za-z_:][^<>]*>|<!--|<!\[CDATA\[|<\?")
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}  # of what is copied as it is, whatever is in it
_NAME = re.compile(r"</?([A-Za-z_:][^\s/>]*)")
_OURS = re.compile(r'<(b|p|code) i="(\d+)">|</(b|p|code)>')


class MalformedTagsError(Exception):
    """A tag has no counterpart."""


@dataclass
class TaggedText:
    """A text in HTML, and the tags that stood there: those that open, and for each what closes it."""

    html: str = ""
    originals: list[tuple[str, str]] = field(default_factory=list)

    def restore(self, translation: str) -> str:
        """The translation of the HTML with the tags that the text had."""
        opened: list[str] = []

        def original(found: re.Match[str]) -> str:
            if found[2] is None:
                return opened.pop() if opened else found[0]
            start, end = self.originals[int(found[2])]
            opened.append(end)
            return start

        return _OURS.sub(original, translation)


def with_html_tags(text: str, ignored: Collection[str] = (), splitting: Collection[str] = ()) -> TaggedText:
    """The text with a tag that stands within a sentence for every element; `ignored`: names of elements that are copied
    as they are, `splitting`: of those at which a sentence ends."""
    found = TaggedText()
    parts: list[str] = []
    opened: list[tuple[str, int]] = []  # name and number of the elements that are open
    end = copied_from = copied_depth = 0
    for start, tag in _tags(text):
        named = _NAME.match(tag)
        if not copied_depth:
            parts.append(text[end:start])
        end = start + len(tag)
        if named is None or tag.endswith("/>"):  # nothing is in it
            if not copied_depth:
                parts.append(_copied(found, tag))
        elif tag.startswith("</"):
            if not opened or opened[-1][0] != named[1]:
                raise MalformedTagsError
            _, number = opened.pop()
            if not copied_depth:
                found.originals[number] = found.originals[number][0], tag
                parts.append("</p>" if named[1] in splitting else "</b>")
            elif len(opened) < copied_depth:
                copied_depth = 0
                parts.append(_copied(found, text[copied_from:end]))
        else:
            opened.append((named[1], len(found.originals)))
            if not copied_depth and named[1] in ignored:
                copied_depth, copied_from = len(opened), start
            elif not copied_depth:
                parts.append(f'<{"p" if named[1] in splitting else "b"} i="{len(found.originals)}">')
                found.originals.append((tag, ""))
    if opened:
        raise MalformedTagsError
    found.html = "".join([*parts, text[end:]])
    return found


def _tags(text: str) -> Iterator[tuple[int, str]]:
    """The tags, comments and the like, each with its place. What has no end is text; it is looked for once, so that a
    text of nothing but beginnings takes no longer than another."""
    endless: set[str] = set()
    free = 0
    for match in _TAG.finditer(text):
        start, beginning = match.start(), match[0]
        if start < free or beginning in endless:
            continue
        if beginning in _ENDS:
            place = text.find(_ENDS[beginning], match.end())
            if place < 0:
                endless.add(beginning)
                continue
            beginning = text[start : place + len(_ENDS[beginning])]
        free = start + len(beginning)
        yield start, beginning


def _copied(found: TaggedText, whole: str) -> str:
    found.originals.append((whole, ""))
    return f'<code i="{len(found.originals) - 1}"></code>'


def names_in(values: Sequence[str]) -> list[str]:
    """Names of tags, which come as a list or in one string with commas."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
