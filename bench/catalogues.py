"""A text of over 300,000 pairs: the demo's sentences and the message catalogues of Debian packages, English-French.

    python bench/catalogues.py --out build/bench/catalogues           # on Debian: apt-get and dpkg-deb; 230 MB to fetch
    python bench/quickstart.py --data build/bench/catalogues/all --pairs 300000

leaves two directories as bench/quickstart.py --data takes them (train.tsv, test.source, test.reference.0): `messages`,
the catalogues alone, a domain of its own; and `all`, with the demo's training pairs. No sentence of a test set is on
either side of its training text.
"""

import argparse
import subprocess
from pathlib import Path

from dragoman.data.corpus import SentencePair
from dragoman.data.pair_formats import read_any
from dragoman.data.splitting import Split, split_pairs
from dragoman.quickstart.tatoeba import prepare_demo
from dragoman.run_directory import default_cache

# Many messages for few megabytes.
PACKAGES = (
    "audacity-data", "binutils-common", "blender-data", "darktable", "digikam-data", "evolution-common", "freeciv-data",
    "gcc-12-locales", "geany-common", "gimp-data", "gnome-control-center-data", "gnucash-common",
    "gnumeric-common", "gramps", "hugin-data", "inkscape", "iso-codes", "kdenlive-data", "kicad", "kmymoney-common",
    "libreoffice-l10n-fr", "lyx-common", "pidgin-data", "siril-common", "util-linux-locales", "vlc-l10n",
)  # fmt: skip
HELD_OUT = 1000  # sentences each to validate and to test with


def fetch(package: str, out: Path) -> Path:
    """The French catalogues of a package, in a directory of its own."""
    directory = out / "packages" / package
    if not (directory / "done").exists():
        directory.mkdir(parents=True, exist_ok=True)
        if not list(directory.glob("*.deb")):
            subprocess.run(["apt-get", "-qq", "download", package], cwd=directory, check=True)
        [archive] = directory.glob("*.deb")
        unpack = f"dpkg-deb --fsys-tarfile {archive.name} | tar -x --wildcards '*/fr/LC_MESSAGES/*.mo'"
        subprocess.run(unpack, shell=True, cwd=directory, check=True)
        archive.unlink()
        (directory / "done").touch()
    return directory


def write(split: Split, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[str]] = {
        "train.tsv": ["\t".join(pair) for pair in split.train],
        "test.source": list(split.test),
        "test.reference.0": [references[0] for references in split.test.values()],
    }
    for name, lines in parts.items():
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{directory}: {len(split.train):,} pairs to train on, {len(split.test):,} sentences to test with")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/bench/catalogues"))
    given = parser.parse_args()
    found = read_any([fetch(package, given.out) for package in PACKAGES])
    # What is the same in both languages is a name or a key, and no translation.
    messages: list[SentencePair] = [pair for pair in dict.fromkeys(found.pairs) if pair[0] != pair[1]]
    demo = prepare_demo(default_cache()).train.read_text(encoding="utf-8").splitlines()
    sentences = [(source, target) for source, target in (line.split("\t")[:2] for line in demo)]
    write(split_pairs(messages, HELD_OUT, HELD_OUT, seed=1), given.out / "messages")
    write(split_pairs(messages + sentences, HELD_OUT, HELD_OUT, seed=1), given.out / "all")


if __name__ == "__main__":
    main()
