"""Do similar words drift together?

Claim: Readers are told that training moves the embeddings of similar words together.

Method: Forty-odd English words of six groups (colours, numbers, people, animals, clothes, places) that are whole
pieces of the vocabulary of the base row's translators on Multi30k: cosine similarity within groups less that between
groups, and the share of words whose nearest neighbour among these words is of its group, before training and after.
The embedding is shared with the output, so its mean is taken off first. A map: the two main directions of the trained
embeddings of these words.

Rule: Paired differences over the seeds. After training, the difference of within and between is above that before by
at least 0.05, and so is the share of words whose nearest neighbour is of their group.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher_in_pairs, mean
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import base_arms, config_of, prepared_text, run_of
from dragoman.model.checkpoint import load_transformer
from dragoman.model.transformer import Transformer

GROUPS = {
    "colours": "red blue green yellow black white brown pink orange purple gray",
    "numbers": "two three four five six several many",
    "people": "man woman boy girl child men women people boys girls children",
    "animals": "dog cat horse bird dogs horses birds cow sheep",
    "clothes": "shirt hat jacket pants dress coat jeans sweater shorts helmet",
    "places": "street park beach field city room kitchen pool water grass snow",
}


def arms(settings: LabSettings) -> list[Arm]:
    return [Arm("embeddings", arm.name, arm.configuration, 0.1) for arm in base_arms(settings)[:3]]


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    tokenizer = prepared_text(settings).tokenizer
    words = {word: group for group, several in GROUPS.items() for word in several.split()}
    if settings.size == "smoke":  # its made-up text has none of them
        words = {f"{a}{b}": a for a in "bdf" for b in "aeio"}
    ids = {word: tokenizer.encode(word) for word in words}
    known = [word for word in words if len(ids[word]) == 1]
    rows = torch.tensor([ids[word][0] for word in known], dtype=torch.long)
    groups = [words[word] for word in known]
    with one_thread(), torch.inference_mode():
        torch.manual_seed(config_of(arm).train.seed)
        before = Transformer(config_of(arm).model)
        after = load_transformer(run_of(arm, settings))
        found: Measurements = {"words": known, "groups": groups}
        for when, model in (("before", before), ("after", after)):
            table = next(model.source_embedding.tokens.parameters())
            vectors = (table - table.mean(0))[rows]
            found |= {f"{name} {when}": value for name, value in closeness(vectors, groups).items()}
            found[f"neighbours {when}"] = neighbours(vectors, known)
        centred = vectors - vectors.mean(0)
        main = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
        found["map"] = [[round(float(v), 3) for v in row] for row in centred @ main.T]
    return found


def similarities(vectors: Tensor) -> Tensor:
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    return unit @ unit.T  # type: ignore[no-any-return]


def closeness(vectors: Tensor, groups: Sequence[str]) -> Measurements:
    similar = similarities(vectors)
    same = torch.tensor([[a == b for a in groups] for b in groups]) & ~torch.eye(len(groups), dtype=torch.bool)
    other = torch.tensor([[a != b for a in groups] for b in groups])
    nearest = similar.fill_diagonal_(-2).argmax(1).tolist()
    return {
        "within_less_between": float(similar[same].mean() - similar[other].mean()),
        "own_group": mean([float(groups[i] == groups[j]) for i, j in enumerate(nearest)]),
    }


def neighbours(vectors: Tensor, words: Sequence[str]) -> dict[str, str]:
    nearest = similarities(vectors).fill_diagonal_(-2).topk(min(3, len(words) - 1), dim=1).indices.tolist()
    return {word: ", ".join(words[j] for j in several) for word, several in zip(words, nearest, strict=True)}


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    findings = []
    for name, claim, unit in (
        ("within_less_between", "Words of a group come closer than others.", "cosine"),
        ("own_group", "A word's nearest neighbour is of its group more often.", "of the words"),
    ):
        before, after = values_of(measured, f"{name} before"), values_of(measured, f"{name} after")
        findings.append(higher_in_pairs(claim, after, before, ("after", "before"), unit, least=0.05, digits=3))
    return findings


def show(measured: Sequence[MeasuredArm]) -> Shown:
    first = measured[0].measurements
    groups = list(dict.fromkeys(first["groups"]))
    points, words = first["map"], first["words"]
    series = {
        group: [y if own == group else None for (_, y), own in zip(points, first["groups"], strict=True)]
        for group in groups
    }
    figures = [
        Figure("A map of the words after training, seed 1", [x for x, _ in points], series, "first main direction",
               "second", "points", point_labels=words),
    ]  # fmt: skip
    rows = [
        {
            "word": word,
            "nearest before": first["neighbours before"][word],
            "nearest after": first["neighbours after"][word],
        }
        for word in words
    ]
    notes = [f"{one.arm.name}: of {len(one.measurements['words'])} words, the nearest is of its group for "
             f"{one.measurements['own_group before']:.0%} before and {one.measurements['own_group after']:.0%} after."
             for one in measured]  # fmt: skip
    return Shown(figures=figures, notes=notes, rows=rows)
