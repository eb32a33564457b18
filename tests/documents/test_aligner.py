"""Words are aligned without torch once a run knows which of its heads align, and as the explainer aligns them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.documents.aligner import NumpyAligner, aligner_of, explainer_of
from dragoman.translation.result import SourceSentence
from dragoman.translation.translator import Translator


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


def test_it_aligns_as_the_explainer_does(run: Path) -> None:
    translator = Translator.load(run, engine="ctranslate2")
    assert not isinstance(aligner_of(translator, run), NumpyAligner)  # the heads are chosen, and kept
    aligner, explainer = aligner_of(translator, run), explainer_of(translator, run)
    assert isinstance(aligner, NumpyAligner)
    assert explainer is not None
    assert aligner.heads == explainer.alignment_heads
    for text in ("the old dog sees the red house", "the child hears the river near the tree", "the cat"):
        tokens = translator.translate_sentences([SourceSentence(text)], scores=False)[0].candidates[0].tokens
        ours, theirs = aligner.align(text, tokens), explainer.align(text, tokens)
        assert (ours.source_words, ours.target_words) == (theirs.source_words, theirs.target_words)
        for row, other in zip(ours.weights, theirs.weights, strict=True):
            assert row == pytest.approx(other, abs=1e-5)
    kept = run / "ctranslate2" / "alignment.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "digest": "of other weights"}), encoding="utf-8")
    assert not isinstance(aligner_of(translator, run), NumpyAligner)


def test_the_second_document_with_tags_needs_no_torch(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>the old dog sees the <b>red house</b></p>", encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from dragoman.run import Run\n"
        "Run(sys.argv[1]).translate_document(sys.argv[2], sys.argv[3], say=None)\n"
        "print('torch' in sys.modules)"
    )
    said = []
    for name in ("first.html", "second.html"):
        command = [sys.executable, "-c", program, str(run), str(tmp_path / "a.html"), str(tmp_path / name)]
        said.append(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.strip())
    assert said == ["True", "False"]
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()
