"""Translates strings and plain text files with a run. Takes text; gives translations with their candidates, their
confidence, and a note of what had to be repaired. Chooses the engine, keeps addresses, numbers and glossary terms, and
uses the corrections that people made (the translation memory). Imports no torch: a converted run translates without
it. Touches the files that it is asked to translate and the translation memory.
"""
