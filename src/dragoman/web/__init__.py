"""The web page as static files: HTML, CSS and JavaScript without a build step. The service shows it, and the one-file
exports are made of it. Takes nothing; gives the directory of these files. Imports nothing from the other packages.
"""

from pathlib import Path

WEB = Path(__file__).parent / "static"
