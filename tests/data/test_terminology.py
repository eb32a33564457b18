"""Terms come from the files that other programs write: TBX of both versions, and CSV."""

from pathlib import Path

import pytest

from dragoman.data.glossary import Glossary
from dragoman.data.terminology import terms_in
from dragoman.errors import DataError

TBX_2 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><martifHeader><fileDesc/></martifHeader><text><body>
<termEntry id="c1"><descrip type="subjectField">animals</descrip>
 <langSet xml:lang="en-US"><tig><term>dog</term></tig><tig><term>hound</term></tig></langSet>
 <langSet xml:lang="eo"><tig><term>hundo</term></tig>
  <ntig><termGrp><term>hundaĉo</term>
   <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termGrp></ntig>
  <ntig><termGrp><term>dombesto  &amp; hundo</term></termGrp></ntig></langSet>
 <langSet xml:lang="de"><tig><term>Hund</term></tig></langSet></termEntry>
<termEntry id="c2"><langSet xml:lang="en"><tig><term>cat</term></tig></langSet></termEntry>
</body></text></martif>"""
TBX_3 = """<?xml version="1.0" encoding="UTF-8"?>
<tbx type="TBX-Basic" style="dca" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1"><langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>
<langSec xml:lang="eo"><termSec><term>hundo</term></termSec>
<termSec><term>hundaĉo</term><min:administrativeStatus xmlns:min="http://www.tbxinfo.net/ns/min">
supersededTerm-admn-sts</min:administrativeStatus></termSec></langSec></conceptEntry>
</body></text></tbx>"""


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_tbx_of_version_2(tmp_path: Path) -> None:
    path = written(tmp_path, "terms.tbx", TBX_2)
    both = [("dog", "hundo|dombesto & hundo"), ("hound", "hundo|dombesto & hundo")]
    assert terms_in(path, ("en", "eo")) == both
    assert terms_in(path, ("de", "en")) == [("Hund", "dog|hound")]
    assert [entry.forms for entry in Glossary.load(path, ("en", "eo")).entries] == [("hundo", "dombesto & hundo")] * 2


def test_tbx_of_version_3(tmp_path: Path) -> None:
    path = written(tmp_path, "terms.tbx", TBX_3)
    assert terms_in(path, ("en", "eo")) == [("dog", "hundo")]
    assert terms_in(path) == [("dog", "hundo")]  # it has two languages, and nothing else says which


@pytest.mark.parametrize(
    ("text", "languages", "error"),
    [
        (TBX_2, None, r"terms in 4 languages \(en-US, eo, de, en\); .*give --source-language and --target-language"),
        (TBX_2, ("en", "fr"), "no terms in fr; it has en-US, eo, de, en"),
        (TBX_3.replace("tbx", "tmx"), None, "its first element is <tmx>, and in a file of this kind it is <tbx>"),
        (TBX_3[:200], None, "cannot be read"),
        ('<!DOCTYPE tbx [<!ENTITY a "b">]><tbx>&a;</tbx>', None, "declares entities of its own"),
    ],
)
def test_what_is_wrong_with_a_tbx_is_said(
    text: str, languages: tuple[str, str] | None, error: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "terms.tbx", text)
    with pytest.raises(DataError, match=error) as raised:
        Glossary.load(path, languages)
    assert str(raised.value).count(str(path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        'dog,hundo\n"the, cat",kato\n',
        'source;target\ndog;hundo\n"the, cat";kato\n',
        'dog,hundo,en,eo\n\n"the, cat",kato,en,eo\n',  # as DeepL's files are
    ],
)
def test_csv(text: str, tmp_path: Path) -> None:
    assert terms_in(written(tmp_path, "terms.csv", text)) == [("dog", "hundo"), ("the, cat", "kato")]


@pytest.mark.parametrize(("text", "error"), [(",hundo\n", "row 1: no source term"), ('"dog\n', "not valid CSV")])
def test_what_is_wrong_with_a_csv_is_said(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=error):
        terms_in(written(tmp_path, "terms.csv", text))
