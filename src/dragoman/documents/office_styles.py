"""Tells which text of a DOCX or ODT file is not translated: code, by the names of its styles and fonts, and what the
user names. A style inherits from the one that it is based on.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dragoman.documents.lexer import Token, attribute, element, xml_tokens
from dragoman.documents.settings import FormatSettings

# The names that Word, LibreOffice, Pandoc and others give to styles of code, without spaces and signs.
_CODE_STYLE = re.compile(
    "(?:html|source|inline|block|program|computer|example)?(?:code|listing|verbatim|preformatted|teletype|typewriter)"
    "(?:block|text|inline|snippet|example|line|listing)?"
    "|html(?:keyboard|sample|variable)|programlisting|macrotext|sourcetext|userentry|quelltext|quellcode|codesource"
)
# The endings that Word adds to the name of a paragraph style that is used for a run.
_RUN_OF_STYLE = re.compile(r"(?<=.)(?:char|character|zchn|car|\d+)+\Z")
_FIXED_WIDTH = re.compile(
    r"(?i:\A(?:courier|consolas|menlo|monaco|inconsolata|cousine|iosevka|fixedsys|lucida ?console|letter ?gothic"
    r"|lucida ?(?:sans )?typewriter|anonymous ?pro|(?:fira|cascadia|source) ?code|hack\Z|terminal\Z))"
    # Not Kimono, nor Monotype Corsiva.
    r"|(?:Mono|\bmono|MONO)(?!type|gram|line|TYPE|logue)"
)
_PLAIN_TEXT = "plain text"  # Word's style for text files: of fixed width by habit
_DEEPEST = 32  # styles that one may be based on, one upon the other


def is_code_style(name: str) -> bool:
    bare = re.sub(r"_20_|[\W_]", "", name).casefold()  # _20_ is how ODT writes a space
    return _CODE_STYLE.fullmatch(_RUN_OF_STYLE.sub("", bare)) is not None


def is_fixed_width(font: str | None) -> bool:
    return font is not None and _FIXED_WIDTH.search(font) is not None


@dataclass(frozen=True)
class Style:
    """A style of an office document: its names, the style that it is based on, its font."""

    names: tuple[str, ...]  # as the file calls it and as people see it
    parent: str | None = None
    font: str | None = None


@dataclass(frozen=True)
class Styles:
    """The styles of a document by their names in the file."""

    settings: FormatSettings
    styles: dict[str, Style]
    default: str | None = None  # the style of a paragraph that names none
    default_font: str | None = None
    theme: dict[str, str] = field(default_factory=dict)  # fonts by their places

    def stays(self, name: str | None) -> bool:
        """Whether the text of a style is left untranslated, by its name or by that of a style that it is based on."""
        chain = list(self._chain(name))
        return self.settings.protects(*(one for style in chain for one in style.names)) or any(
            is_code_style(one) for style in chain for one in style.names
        )

    def font_stays(self, *fonts: str | None) -> bool:
        """Whether the first of these fonts that is not None marks its text as code. In a document that is written in a
        font of fixed width, such a font marks nothing."""
        usual = self.font(self.default) or self.default_font
        font = next((font for font in fonts if font is not None), usual)
        return self.settings.protects(font) or (is_fixed_width(font) and not is_fixed_width(usual))

    def font(self, name: str | None) -> str | None:
        for style in self._chain(name):
            if _PLAIN_TEXT in (one.casefold() for one in style.names):
                return None
            if style.font is not None:
                return style.font
        return None

    def _chain(self, name: str | None) -> Iterator[Style]:
        for _ in range(_DEEPEST):
            style = self.styles.get(name) if name is not None else None
            if style is None:
                return
            yield style
            name = style.parent


def docx_styles(styles: Iterable[str], theme: Iterable[str], settings: FormatSettings) -> Styles:
    """Reads the styles of a DOCX file from word/styles.xml and word/theme/theme1.xml, of which either may be empty."""
    fonts = _theme_fonts(theme)
    found: dict[str, Style] = {}
    default = default_font = None
    tokens = xml_tokens(styles)
    for token in tokens:
        if token.kind != "start" or token.name not in ("w:style", "w:rPrDefault"):
            continue
        inner = {one.name: one.raw for one in reversed(element(tokens, token)) if one.kind != "end"}
        font = docx_font(inner.get("w:rFonts"), fonts)
        if token.name == "w:rPrDefault":
            default_font = font
            continue
        own = _value(token.raw, "w:styleId") or ""
        seen = _value(inner.get("w:name"), "w:val")
        found[own] = Style((own, seen or own), _value(inner.get("w:basedOn"), "w:val"), font)
        if _value(token.raw, "w:type") == "paragraph" and _value(token.raw, "w:default") in ("1", "true", "on"):
            default = own
    return Styles(settings, found, default, default_font, fonts)


def docx_font(tag: str | None, theme: dict[str, str]) -> str | None:
    """The font that a <w:rFonts> names, directly or by its place in the theme, which has precedence."""
    for name in ("w:ascii", "w:hAnsi"):
        place = _value(tag, f"{name}Theme")
        if place is not None and (font := theme.get(place[:5])) is not None:
            return font
        if (font := _value(tag, name)) is not None:
            return font
    return None


def _theme_fonts(theme: Iterable[str]) -> dict[str, str]:
    """The fonts of a theme by the first letters of their places: majorHAnsi and majorAscii have one for Latin text."""
    fonts: dict[str, str] = {}
    place = ""
    for token in xml_tokens(theme):
        if token.kind == "start" and token.name in ("a:majorFont", "a:minorFont"):
            place = token.name[2:7]
        elif token.name == "a:latin" and place and (font := _value(token.raw, "typeface")):
            fonts.setdefault(place, font)
    return fonts


def odt_styles(common: Iterable[str], own: Iterable[str], settings: FormatSettings) -> Styles:
    """Reads the styles of an ODT file from styles.xml and from the part that uses them, which has styles of its own."""
    faces: dict[str, str] = {}
    found: dict[str, Style] = {}
    default_font = None
    for chunks, automatic in ((common, False), (own, True)):
        section = ""
        tokens = xml_tokens(chunks)
        for token in tokens:
            if token.kind == "start" and token.name in ("office:styles", "office:automatic-styles"):
                section = token.name
            elif token.name in ("office:master-styles", "office:body"):
                break
            elif token.name == "style:font-face":
                faces[_value(token.raw, "style:name") or ""] = _value(token.raw, "svg:font-family") or ""
            elif token.name == "style:default-style" and _value(token.raw, "style:family") == "paragraph":
                default_font = _odt_font(_inner(tokens, token), faces)
            elif token.name == "style:style" and (section == "office:styles" or automatic):
                inner = _inner(tokens, token)
                family, name = _value(token.raw, "style:family"), _value(token.raw, "style:name") or ""
                names = (name, _value(token.raw, "style:display-name") or name)
                parent = _value(token.raw, "style:parent-style-name")
                # An automatic style has a number for a name, which says nothing.
                shown = names if section == "office:styles" else ()
                found[f"{family}:{name}"] = Style(shown, parent and f"{family}:{parent}", _odt_font(inner, faces))
    return Styles(settings, found, "paragraph:Standard", default_font)


def _inner(tokens: Iterator[Token], token: Token) -> dict[str, str]:
    return {one.name: one.raw for one in element(tokens, token)} if token.kind == "start" else {}


def _odt_font(inner: dict[str, str], faces: dict[str, str]) -> str | None:
    tag = inner.get("style:text-properties")
    face = _value(tag, "style:font-name")
    font = (faces.get(face) or face) if face is not None else _value(tag, "fo:font-family")
    return font and font.strip("'\"")


def _value(tag: str | None, name: str) -> str | None:
    value = None if tag is None else attribute(tag, name)
    return None if value is None else html.unescape(value)
