"""A run for other programs to translate with, their models as runs, and a run as one file."""
