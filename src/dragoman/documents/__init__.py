"""Translates whole documents and keeps their formatting. Takes a file in a known format and a sentence translator;
gives the same file with its text translated, everything else unchanged, and a report on the sentences. Writes the
output and, until that is complete, a journal beside it from which the work can be resumed.
"""
