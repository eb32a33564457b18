"""Styles of code and fonts of fixed width are known by their names."""

import pytest

from dragoman.documents.office_styles import is_code_style, is_fixed_width


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("Code", "Source Code", "source_code", "HTML Code", "Preformatted Text")),
        *((name, True) for name in ("Preformatted_20_Text", "Code Char", "Code Zchn", "CodeBlock 2", "Verbatim Char")),
        *((name, False) for name in ("Heading 1", "Normal", "Postal Code", "Code of Conduct", "Body Text", "Quote")),
    ],
)
def test_styles_of_code_are_known_by_name(name: str, is_one: bool) -> None:
    assert is_code_style(name) == is_one


@pytest.mark.parametrize(
    ("font", "is_one"),
    [
        *((font, True) for font in ("Courier", "Courier New", "CourierNewPSMT", "Consolas", "Menlo", "SF Mono")),
        *((font, True) for font in ("LiberationMono", "DejaVu Sans Mono", "monospace", "Source Code Pro", "Monaco")),
        *((font, False) for font in ("Arial", "Monotype Corsiva", "Kimono", "Calibri", "Hacker", "Times New Roman")),
    ],
)
def test_fonts_of_fixed_width_are_known_by_name(font: str, is_one: bool) -> None:
    assert is_fixed_width(font) == is_one
