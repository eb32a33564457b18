"""Measures how good translations are. Takes translations with references, or runs that make them; gives BLEU, chrF and
TER with their signatures, comparisons of two runs, calibrated confidences, and a decision whether a quantised model is
good enough. Writes its measurements into the run's directory.
"""
