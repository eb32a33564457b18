"""Converts runs for other programs, imports their models as runs, and packs a run into one file. Takes a run directory
or a foreign model; gives CTranslate2, Marian, ONNX and Argos files, bundles with a card, or a new run directory.
Touches only what it writes.
"""
