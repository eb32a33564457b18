"""Where each module is tested: in the file of its name, in the same folder, or in the one that ELSEWHERE names.

So a reader who changes a module finds its tests, and a new module gets a test file of its own, or a line here.
"""

from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "dragoman"

# A test file of several modules: these belong to each other, and are tested by what they do together.
ELSEWHERE = {
    "cli/test_cli.py": ["cli/main", "cli/options", "cli/terminal", "cli/training", "cli/translation", "cli/evaluation",
                        "cli/finetune", "cli/export"],
    "cli/test_conventions.py": ["cli/registration", "cli/old_names", "cli/configurations"],
    "config/test_recipes.py": ["config/values"],
    "data/test_augmentation.py": ["data/phrase_pairs"],
    "data/test_language_names.py": ["data/language_codes"],
    "data/test_segmentation.py": ["data/abbreviations"],
    "data/test_tokenizer.py": ["data/piece_codec"],
    "decoding/engines/test_ctranslate2.py": ["decoding/engines/ct2_convert", "decoding/engines/ct2_specification",
                                              "decoding/engines/numpy_weights"],
    "decoding/engines/test_torch_engine.py": ["decoding/engines/select"],
    "decoding/test_beam_search.py": ["decoding/beam_rows", "decoding/hypothesis", "decoding/search_record",
                                     "decoding/topk"],
    "data/test_glossary.py": ["decoding/constrained_beam"],
    "descendants/test_digits.py": ["descendants/patch_attention", "cli/vision"],
    "descendants/test_masked_model.py": ["descendants/plain_text", "cli/language_models"],
    "descendants/test_halves.py": ["model/variants"],
    "diagnosis/test_corpus_checks.py": ["diagnosis/causes", "cli/doctor"],
    "diagnosis/test_stress.py": ["diagnosis/stress_cases", "cli/stress"],
    "distillation/test_pipeline.py": ["distillation/report", "distillation/stages", "cli/distill"],
    "documents/test_aligner.py": ["decoding/alignment"],
    "documents/test_docx.py": ["documents/office_runs", "documents/office_xml"],
    "documents/test_pptx.py": ["documents/drawing"],
    "documents/test_formats.py": ["documents/archive_file", "documents/flow", "documents/format_names",
                                  "documents/html", "documents/json_strings", "documents/lexer", "documents/pipeline",
                                  "documents/plain_text", "documents/subtitles", "documents/text_file"],
    "documents/test_markdown.py": ["documents/markdown_inline", "documents/markdown_rules"],
    "documents/test_program_strings.py": ["documents/android", "documents/apple_strings", "documents/properties",
                                          "documents/yaml_strings"],
    "documents/test_resumable_file.py": ["documents/from_run", "documents/settings", "documents/sentence_translator",
                                         "cli/documents"],
    "documents/test_tag_placement.py": ["documents/tagged_sentences", "documents/word_alignment"],
    "export/test_bundle.py": ["export/reproduce"],
    "export/test_formats.py": ["export/argos", "export/argos_segmenter", "export/marian", "export/onnx"],
    "importing/test_ctranslate2.py": ["importing/ctranslate2_*"],
    "importing/test_huggingface.py": ["importing/huggingface_tensors", "importing/imported_model"],
    "importing/test_marian.py": ["importing/marian_files", "importing/marian_settings", "importing/marian_tensors"],
    "importing/test_tokenizers.py": ["data/imported_tokenizer"],
    "inspection/test_explain.py": ["inspection/alignment"],
    "inspection/test_inspector.py": ["inspection/interventions", "inspection/to_json", "cli/inspection"],
    "browser/test_inside_page.py": ["inspection/html_page"],
    "lab/test_catalogue.py": ["lab/experiments/*", "lab/result", "lab/tasks", "lab/variants", "cli/lab",
                              "lab/translation", "lab/synthetic"],
    "model/test_parity.py": ["model/incremental"],
    "model/test_transformer.py": ["model/probe", "model/sequence_model"],
    "parsing/test_parser.py": ["cli/parsing"],
    "quickstart/test_pipeline.py": ["quickstart/finished", "quickstart/planning", "quickstart/probe",
                                    "quickstart/report", "quickstart/scoring", "quickstart/text", "cli/quickstart"],
    "serve/routes/test_inside.py": ["serve/routes/inside_models"],
    "serve/routes/test_deepl.py": ["serve/routes/deepl_*", "serve/terms", "serve/xml_tags"],
    "serve/routes/test_libretranslate.py": ["serve/routes/libretranslate_spec"],
    "serve/routes/test_runs.py": ["serve/results", "serve/runs"],
    "serve/routes/test_translation.py": ["serve/routes/translation_models", "serve/routes/request_values"],
    "serve/test_app.py": ["serve/answers", "serve/cache", "serve/service", "serve/texts", "serve/pages"],
    "serve/test_damaged_requests.py": ["serve/connection"],
    "serve/test_pairs.py": ["serve/settings", "data/language_id"],
    "serve/test_work.py": ["serve/documents"],
    "system/test_bad_input.py": ["errors"],
    "training/test_finetune.py": ["training/finetune_settings", "training/saving"],
    "training/test_finetune_measures.py": ["training/finetune_text"],
    "training/test_recovery.py": ["training/setup", "training/verify"],
    "translation/test_confidence.py": ["data/words", "evaluation/calibration", "evaluation/confidence_plots"],
    "translation/test_corrections.py": ["translation/translation_memory", "cli/corrections"],
    "translation/test_fallbacks.py": ["translation/masking"],
    "translation/test_translator.py": ["translation/line", "translation/result", "translation/search_settings",
                                       "translation/sentence_search"],
}  # fmt: skip

MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)


def own_file(module: str) -> Path:
    """The test file of a module's name: tests/data/test_corpus.py for data/corpus."""
    path = TESTS / module
    return path.with_name(f"test_{path.name}.py")


@pytest.mark.parametrize("module", MODULES)
def test_it_is_known_where_a_module_is_tested(module: str) -> None:
    named = [file for file, patterns in ELSEWHERE.items() for pattern in patterns if fnmatch(module, pattern)]
    if own_file(module).exists():
        assert named == [], f"{module} has a test file of its own: take it out of ELSEWHERE"
    else:
        assert len(named) == 1, f"{module}: write {own_file(module).relative_to(TESTS.parent)}, or name it in ELSEWHERE"


@pytest.mark.parametrize("file", ELSEWHERE)
def test_what_is_tested_elsewhere_is_there(file: str) -> None:
    assert (TESTS / file).is_file()
    assert [pattern for pattern in ELSEWHERE[file] if not any(fnmatch(module, pattern) for module in MODULES)] == []
