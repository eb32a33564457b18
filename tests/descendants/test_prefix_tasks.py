"""One model of several tasks, each asked for by its prefix."""

from pathlib import Path

from dragoman.descendants.prefix_tasks import task_pairs
from support.descendants import Cli


def test_each_task_is_asked_for_by_its_prefix(tmp_path: Path, cli: Cli) -> None:
    pairs = [("Two dogs play outside.", "Deux chiens jouent dehors."), ("Where are you?", "Où êtes-vous ?")]
    made = list(task_pairs(pairs, ("forward", "backward", "spelling"), "English", "French"))
    assert [source.split(":")[0] for source, _ in made] == [
        "translate to French", "translate to English", "correct the spelling",
    ] * 2  # fmt: skip
    assert made[0] == ("translate to French: Two dogs play outside.", "Deux chiens jouent dehors.")
    assert made[1] == ("translate to English: Deux chiens jouent dehors.", "Two dogs play outside.")
    assert made[2][1] == pairs[0][0]  # English, then French, by turns
    assert made[5][1] == pairs[1][1]
    assert made[2][0] != f"correct the spelling: {pairs[0][0]}"
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    assert cli("tasks", "--pairs", file).stdout == "".join(f"{s}\t{t}\n" for s, t in made)
    only = cli("tasks", "--pairs", file, "--task", "backward").stdout
    assert only == "".join(f"{s}\t{t}\n" for s, t in (made[1], made[4]))
    assert (
        "--task sideways; known: forward, backward, spelling"
        in cli("tasks", "--pairs", file, "--task", "sideways").stderr
    )
