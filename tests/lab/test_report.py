"""The report of the lab: one offline page, and the same in Markdown."""

import re
from pathlib import Path

from dragoman.lab.catalogue import describe
from dragoman.lab.queue import LabSettings
from dragoman.lab.report import write_report
from support.lab import kept_result


def test_the_report_is_one_offline_page_and_the_same_in_markdown(smoke: LabSettings, tmp_path: Path) -> None:
    out = tmp_path
    (out / "arms").symlink_to(smoke.queue.directory / "arms")
    ran = ["beam", "warmup"]
    for name in ran:
        kept_result(name, out, smoke)
    page, markdown = (path.read_text(encoding="utf-8") for path in write_report(out))
    assert not re.search(r"""(src|href)=["']?(http|//|/)""", page)
    for name in ran:
        assert f'<a href="#{name}">{name}</a>' in page
        assert f"| [{name}](#{name}) | {describe(name).title} | A smoke run, which has no verdict. |" in markdown
    assert not re.search("✓|✗", page)
    assert "embeddings</td><td" in page
    assert f"| embeddings | {describe('embeddings').title} | not run" in markdown
    for picture in re.findall(r"\]\((figures/[^)]+)\)", markdown):
        assert (out / picture).is_file()
