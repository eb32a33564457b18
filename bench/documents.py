"""A long document through `dragoman translate-file`: sentences a second and peak memory, by the number of pages.

    python bench/documents.py RUN --pages 3 30 300 --format docx      # made here, of the run's validation sentences

A page is 40 sentences in 8 paragraphs, some of their words tagged. Each size is a process of its own. --stop kills the
largest half way, and goes on with it: the output must be the same.
"""

import argparse
import hashlib
import html
import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

PARAGRAPHS, SENTENCES = 8, 5
WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def paragraphs(lines: list[str], pages: int) -> Iterator[list[tuple[str, bool]]]:
    """Stretches of text, tagged or not."""
    draw = random.Random(1)
    for _ in range(pages * PARAGRAPHS):
        stretches: list[tuple[str, bool]] = []
        for _ in range(SENTENCES):
            words = f"{draw.choice(lines)} ".split(" ")
            at = draw.randrange(len(words)) if draw.random() < 0.2 else None
            stretches += (
                [(" ".join(words), False)]
                if at is None
                else [
                    (" ".join([*words[:at], ""]), False),
                    (words[at], True),
                    (" ".join(["", *words[at + 1 :]]), False),
                ]
            )
        yield stretches


def write(path: Path, kind: str, lines: list[str], pages: int) -> None:
    if kind == "docx":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                "[Content_Types].xml", '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
            )
            with archive.open("word/document.xml", "w") as body, io.TextIOWrapper(body, "utf-8") as text:
                text.write(f'<w:document xmlns:w="{WORDS}"><w:body>')
                for stretches in paragraphs(lines, pages):
                    runs = "".join(
                        f'<w:r>{"<w:rPr><w:b/></w:rPr>" if tagged else ""}<w:t xml:space="preserve">'
                        f"{html.escape(said)}</w:t></w:r>"
                        for said, tagged in stretches
                    )
                    text.write(f"<w:p>{runs}</w:p>")
                text.write("</w:body></w:document>")
        return
    marks = {"html": ("<b>", "</b>"), "md": ("**", "**"), "txt": ("", "")}[kind]
    with path.open("w", encoding="utf-8") as text:
        for stretches in paragraphs(lines, pages):
            said = "".join(f"{marks[0]}{s}{marks[1]}" if tagged and s else s for s, tagged in stretches).strip()
            text.write(f"<p>{said}</p>\n" if kind == "html" else f"{said}\n\n")


def run(command: list[str]) -> tuple[float, float, float]:
    """Seconds, those of the processor, and the peak of resident memory in MB."""
    began = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"bench: {command[3:]} failed: {process.stderr.read().decode()[-300:]}")  # type: ignore[union-attr]
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--pages", type=int, nargs="+", default=[3, 30, 300])
    parser.add_argument("--format", choices=["docx", "html", "md", "txt"], default="docx")
    parser.add_argument("--glossary", type=Path, help="terms that the translations must have")
    parser.add_argument("--work", type=Path, default=Path("build/bench/documents"))
    parser.add_argument("--stop", action="store_true", help="also stop the largest half way and go on")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    (kept, *_) = sorted(given.run.glob("data/*/valid/text.json"))
    lines = [source for source, _ in json.loads(kept.read_text(encoding="utf-8"))]
    print("| pages | sentences | size | seconds | of the processor | sentences/s | peak memory |\n" + "|---" * 7 + "|")
    for pages in given.pages:
        source, output = (given.work / f"{name}-{pages}.{given.format}" for name in ("in", "out"))
        write(source, given.format, lines, pages)
        report = given.work / "report.json"
        command = [
            sys.executable,
            "-m",
            "dragoman",
            "translate-file",
            str(given.run),
            str(source),
            "--out",
            str(output),
        ]
        command += ["--report", str(report), "--source-language", "en"]
        command += ["--glossary", str(given.glossary)] if given.glossary else []
        seconds, processor, peak = run(command)
        count = json.loads(report.read_text(encoding="utf-8"))["sentences"]
        size = f"{source.stat().st_size / 1e3:,.0f} kB"
        speed = f"{seconds:.1f} | {processor:.2f} | {count / seconds:.0f}"
        print(f"| {pages} | {count:,} | {size} | {speed} | {peak:.0f} MB |", flush=True)
    if given.stop:
        whole = digest(output)
        output.unlink()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        journal = output.parent / f"{output.name}.journal"
        left = 0
        while left < count // 3 and process.poll() is None:
            time.sleep(0.05)
            left = journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0
        process.kill()
        process.wait()
        assert not output.exists()
        run(command)
        same = "the same" if digest(output) == whole else "ANOTHER"
        print(f"\nKilled after {left:,} of {count:,} sentences; the same command went on, and its output is {same}.")


def digest(path: Path) -> str:
    """Of what is in it: an archive has times."""
    if path.suffix == ".docx":
        with zipfile.ZipFile(path) as archive:
            return hashlib.sha256(archive.read("word/document.xml")).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
