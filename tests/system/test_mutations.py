"""docs/paper-map.md names a test for each line of the paper, and that test fails if the code departs from the line.

For every row the code is changed in one place, in a copy, and the row's test is run against the copy: it must fail.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPER_MAP = ROOT / "docs" / "paper-map.md"


@dataclass(frozen=True)
class Mutation:
    row: str  # how the first cell of its row begins
    file: str  # of the package, or of recipes/
    before: str  # occurs once in the file
    after: str
    test: str  # the file; its stem stands in the row's last cell
    only: str = ""  # pytest's -k: the tests of the file that the row means


MODEL, PARITY, TRANSFORMER = "model/transformer.py", "model/test_parity.py", "model/test_transformer.py"
RECIPES, OPTIMIZER = "system/test_recipes.py", "training/test_optimizer.py"

MUTATIONS = {
    "the decoder's cross-attention is left out": Mutation(
        "3.1, figure 1", MODEL, "        if self.around_cross is not None:\n", "        if False:\n", PARITY, "stack"
    ),
    "no residual connection": Mutation(
        "3.1: LayerNorm",
        MODEL,
        "self.dropout(sublayer(x), onto=x)",
        "self.dropout(sublayer(x))",
        PARITY,
        "layer_equals",
    ),
    "no normalisation": Mutation(
        "3.1: LayerNorm",
        MODEL,
        "return self.norm(self.dropout(sublayer(x), onto=x))",
        "return self.dropout(sublayer(x), onto=x)",
        PARITY,
        "layer_equals",
    ),
    "scores are not scaled": Mutation(
        "3.2.1", MODEL, "torch.bmm(query * scale, key.mT)", "torch.bmm(query, key.mT)", PARITY, "equation_1"
    ),
    "scaled by 1/d_k": Mutation(
        "3.2.1",
        MODEL,
        "self.scale = d_k**-0.5 if scale is None",
        "self.scale = 1 / d_k if scale is None",
        PARITY,
        "equation_1",
    ),
    "values are the keys": Mutation(
        "3.2.2", MODEL, "self.split_heads(self.w_v(x))\n", "self.split_heads(self.w_k(x))\n", PARITY, "multi_head"
    ),
    "a position sees the next one": Mutation(
        "3.2.3", MODEL, "device=device).tril()", "device=device).tril(1)", TRANSFORMER, "bit_identical"
    ),
    "the fused attention is not causal": Mutation(
        "3.2.3", MODEL, "is_causal=causal", "is_causal=False", TRANSFORMER, "bit_identical"
    ),
    "no rectifier": Mutation(
        "3.3", MODEL, "F.linear(self.activation(hidden), self", "F.linear(hidden, self", PARITY, "layer_equals"
    ),
    "the projection is not shared": Mutation(
        "3.4", MODEL, "self.output.weight = target_tokens.weight", "pass", TRANSFORMER, "tied"
    ),
    "embeddings are not scaled": Mutation(
        "3.4",
        MODEL,
        "self.scale = math.sqrt(d_model) if scaled else 1.0",
        "self.scale = 1.0",
        TRANSFORMER,
        "embedding_is",
    ),
    "sine and cosine change places": Mutation(
        "3.5", MODEL, "(angle.sin(), angle.cos())", "(angle.cos(), angle.sin())", PARITY, "positions"
    ),
    "batches are not sorted by length": Mutation(
        "5.1", "data/batching.py", "    rows = _sort_by_length(rows, dataset)\n", "", "data/test_batching.py", "padding"
    ),
    "the rate falls with the step itself": Mutation(
        "5.3, equation 3",
        "training/schedule.py",
        "falling = step**-0.5",
        "falling = 1 / step",
        "training/test_schedule.py",
    ),
    "Adam has torch's epsilon": Mutation(
        "5.3: Adam",
        "training/optimizer.py",
        "eps=settings.adam_epsilon, ",
        "",
        "training/test_optimizer.py",
        "adam_steps",
    ),
    "Adam has torch's betas": Mutation(
        "5.3: Adam", "training/optimizer.py", "betas=betas, ", "", OPTIMIZER, "adam_steps"
    ),
    "base has another beta": Mutation(
        "5.3: Adam", "recipes/base.toml", "adam_beta2 = 0.98", "adam_beta2 = 0.999", RECIPES
    ),
    "no dropout on embeddings": Mutation(
        "5.4: residual dropout",
        MODEL,
        "return self.dropout(self.norm(x if rows is None else x + rows))",
        "return self.norm(x if rows is None else x + rows)",
        TRANSFORMER,
        "drop",
    ),
    "no dropout on sub-layers": Mutation(
        "5.4: residual dropout",
        MODEL,
        "self.norm(self.dropout(sublayer(x), onto=x))",
        "self.norm(x + sublayer(x))",
        TRANSFORMER,
        "drop",
    ),
    "dropout after the normalisation": Mutation(
        "5.4: residual dropout",
        MODEL,
        "self.norm(self.dropout(sublayer(x), onto=x))",
        "self.dropout(self.norm(x + sublayer(x)))",
        TRANSFORMER,
        "drop",
    ),
    "what is kept is not scaled up": Mutation(
        "5.4: residual dropout", "model/dropout.py", ".mul_(256 / (256 - threshold))", "", "model/test_dropout.py"
    ),
    "smoothing is left out": Mutation(
        "5.4: label smoothing",
        "model/loss.py",
        "        vocab_size = weight.shape[0]\n",
        "        vocab_size, smoothing = weight.shape[0], 0.0\n",
        "model/test_loss.py",
        "torchs",
    ),
    "the last checkpoint counts alone": Mutation(
        "6.1: average",
        "model/checkpoint.py",
        "total += _read_tensor(file, name)",
        "total = _read_tensor(file, name).double() * len(files)",
        "model/test_checkpoint.py",
        "average",
    ),
    "the length penalty forgets its five": Mutation(
        "6.1: beam 4",
        "decoding/hypothesis.py",
        "((5 + length) / 6)",
        "(length / 6)",
        "decoding/test_beam_search.py",
        "penalty",
    ),
    "brackets are closed without their label": Mutation(
        "6.3: words",
        "parsing/linearise.py",
        'symbols.append(symbol_of("close", node.label))',
        'symbols.append(symbol_of("close", ""))',
        "parsing/test_linearise.py",
        "survives_its_sequence",
    ),
    "a beam of 4 for parsing": Mutation("6.3: words", "recipes/parsing.toml", "beam = 21", "beam = 4", RECIPES),
    "F1 is the precision": Mutation(
        "6.3, Table 4",
        "parsing/evalb.py",
        "f1=2 * precision * recall / (precision + recall) if matched else 0.0",
        "f1=precision",
        "parsing/test_evalb.py",
    ),
    "row C5 is as wide as base": Mutation(
        "Table 3", "recipes/table3-C5.toml", "d_model = 1024", "d_model = 512", RECIPES
    ),
}


def rows() -> dict[str, str]:
    """The first and the last cell of each row of the map's table."""
    text = PAPER_MAP.read_text(encoding="utf-8")
    table = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): cells[-1] for cells in table[1:]}


def row_of(mutation: Mutation) -> str:
    (row,) = [row for row in rows() if row.startswith(mutation.row)]
    return row


def test_every_row_has_a_mutation_and_names_the_test_that_kills_it() -> None:
    assert {row_of(mutation) for mutation in MUTATIONS.values()} == rows().keys()
    for mutation in MUTATIONS.values():
        assert Path(mutation.test).stem in rows()[row_of(mutation)]


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_a_mutation_changes_is_there_once(name: str) -> None:
    mutation = MUTATIONS[name]
    text = changed_file(mutation, ROOT).read_text(encoding="utf-8")
    assert text.count(mutation.before) == 1, f"{mutation.file}: {mutation.before!r}"


def copied(directory: Path) -> Path:
    """The package and its recipes, where they may be changed."""
    shutil.copytree(
        ROOT / "src" / "dragoman", directory / "src" / "dragoman", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / "recipes", directory / "recipes")
    return directory


def changed_file(mutation: Mutation, directory: Path) -> Path:
    inside = () if mutation.file.startswith("recipes/") else ("src", "dragoman")
    return directory.joinpath(*inside, mutation.file)


def run_tests(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The tests of this checkout against the copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(directory / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.full
def test_the_tests_pass_against_an_unchanged_copy(tmp_path: Path) -> None:
    """And it is the copy that they run against."""
    copied(tmp_path)
    where = "import dragoman; print(dragoman.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    shown = subprocess.run([sys.executable, "-c", where], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith(str(tmp_path))
    files = sorted({f"tests/{mutation.test}" for mutation in MUTATIONS.values()})
    everywhere = {Path(mutation.test).stem for mutation in MUTATIONS.values() if not mutation.only}
    only = sorted({mutation.only for mutation in MUTATIONS.values()} - {""})
    ran = run_tests(tmp_path, *files, "-k", " or ".join([*only, *sorted(everywhere)]))
    assert ran.returncode == 0, ran.stdout[-2000:]


@pytest.mark.full
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_departure_from_the_paper_fails_the_row_s_test(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    file = changed_file(mutation, copied(tmp_path))
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
    ran = run_tests(tmp_path, f"tests/{mutation.test}", "-k", mutation.only)
    assert ran.returncode == 1, ran.stdout[-2000:]  # 1: a test failed; others: none ran, or the change is no Python
