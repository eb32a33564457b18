"""The mark of a key stands on one letter of a label, in the translation as well."""

import re

import polib
import pytest

from dragoman.documents.accelerators import DOUBLED, Accelerator, accelerator_in, with_accelerator
from support.po_files import HEADER, through
from support.scripted_translator import Scripted


@pytest.mark.parametrize(
    ("label", "translated"),
    [
        ("&file", "&FILE"),
        ("e&xit", "E&XIT"),
        ("&never ask again.", "&NEVER ASK AGAIN."),
        ("Save _As...", "SAVE _AS..."),
        ("E_xit", "E_XIT"),
        ("~edit", "~EDIT"),
        ("For~mat", "FOR~MAT"),
        ("&open %s", "&OPEN %s"),
        ("%s: &save", "%s: &SAVE"),
        ("<b>&save</b> it", "<b>&SAVE</b> IT"),
        ("q && &answer", "Q && &ANSWER"),
        ("q && a", "Q && A"),
        ("a__b _cat", "A__B _CAT"),
        ("go to AT&T now", "GO TO AT&T NOW"),
        ("see https://a.b/c?d=e&fg=h now", "SEE https://a.b/c?d=e&fg=h NOW"),
        ("dogs &amp; cats", "DOGS &amp; CATS"),
        ("~5 dogs", "~5 DOGS"),
    ],
)
def test_a_label_has_the_mark_of_its_key_once(label: str, translated: str) -> None:
    assert polib.pofile(through(f'msgid "{label}"\nmsgstr ""\n'))[0].msgstr == translated
    if accelerator_in(label) or DOUBLED.search(label):
        # A model that writes none of these marks, nor what it is given to copy.
        forgets = Scripted(lambda text: re.sub(r"[&_~%]\w?", "", text.upper().replace("TOM", "Tom")))
        read = polib.pofile(through(f'msgid "{label}"\nmsgstr ""\n', forgets))
        assert read[0].msgstr == translated


@pytest.mark.parametrize(
    ("translation", "accelerator", "placed"),
    [
        ("Fichier", Accelerator("&", "F"), "&Fichier"),
        ("Modifier", Accelerator("~", "e"), "Modifi~er"),
        ("Un autre ami", Accelerator("_", "A"), "Un _autre ami"),  # where a word begins
        ("Enregistrer sous", Accelerator("_", "A"), "_Enregistrer sous"),
        ("Ouvrir %s", Accelerator("&", "S"), "&Ouvrir %s"),
        ("{name} : <b>ok</b>", Accelerator("&", "n"), "{name} : <b>&ok</b>"),
        ("3 chiens", Accelerator("&", "x"), "3 &chiens"),
        ("&Une &autre", Accelerator("&", "A"), "Une &autre"),
        ("Q && A", Accelerator("&", "A"), "Q && &A"),
        ("開く...", Accelerator("&", "o"), "開く(&O)..."),
        ("42", Accelerator("&", "F"), "42"),
    ],
)
def test_a_translation_gets_the_mark_on_a_letter_of_its_own(
    translation: str, accelerator: Accelerator, placed: str
) -> None:
    assert with_accelerator(translation, accelerator) == placed


def test_where_a_mark_is_that_of_a_key() -> None:
    assert accelerator_in("Save _As") == (("_", "A"), "Save As")
    assert accelerator_in("開く(&O)...") == (("&", "O"), "開く...")
    for text in ("file_name", "Use file_name", "the _id and the _rev", "R&D", "AT&T", "a & b", "&&", "Set _x to it."):
        assert accelerator_in(text) is None
    # The file says which mark it has; then no other is one, and that one is wherever it is.
    assert accelerator_in("file_name", "_") == (("_", "n"), "filename")
    assert accelerator_in("&File", "~") is None
    header = HEADER.format(language="").replace("Language: ", "X-Accelerator-Marker: ~")
    assert 'msgstr "_FILE"' in through(header + 'msgid "_file"\nmsgstr ""\n')
    assert 'msgstr "DOG~S"' in through(header + 'msgid "dog~s"\nmsgstr ""\n')
    assert 'msgstr "_FILE"' in through(header.replace("~", "?") + 'msgid "_file"\nmsgstr ""\n')
