"""Languages are asked for by their usual codes, whatever a model calls them."""

import re

from dragoman.data.language_codes import NAMES, checked_code, language_name
from dragoman.data.language_names import MORE_NAMES, TWO_LETTERS, codes_of, own_code


def test_a_model_s_own_codes_have_usual_ones() -> None:
    assert codes_of(["de", "fr"]) == {"de": "de", "fr": "fr"}
    assert codes_of(["deu", "fra", "ceb"]) == {"de": "deu", "fr": "fra", "ceb": "ceb"}
    assert codes_of(["en_XX", "ro_RO"]) == {"en": "en_XX", "ro": "ro_RO"}
    of_nllb = codes_of(["eng_Latn", "zho_Hans", "zho_Hant", "ace_Arab", "ace_Latn", "kmr_Latn"])
    assert list(of_nllb) == ["en", "zh-hans", "zh-hant", "ace-arab", "ace-latn", "kmr"]
    assert all(checked_code(code) == code for code in of_nllb)


def test_any_of_its_codes_finds_a_language() -> None:
    known = ["eng_Latn", "zho_Hans", "zho_Hant", "deu_Latn"]
    for asked, own in (("en", "eng_Latn"), ("EN", "eng_Latn"), ("eng_Latn", "eng_Latn"), ("deu", "deu_Latn")):
        assert own_code(asked, known) == own
    assert own_code("zh-Hant", known) == "zho_Hant"
    assert own_code("zho_hans", known) == "zho_Hans"
    for unknown in ("", "fr", "zh", "latn"):
        assert own_code(unknown, known) is None


def test_languages_have_names() -> None:
    assert language_name("zh-hant") == "Chinese (traditional)"
    assert language_name("ceb") == "Cebuano"
    assert language_name("xx-yyyy") == "xx-yyyy"
    assert all(language_name(code) != code for code in TWO_LETTERS.values())
    assert not NAMES.keys() & MORE_NAMES.keys()
    assert all(re.fullmatch("[a-z]{2,3}", code) for code in MORE_NAMES)
