"""English constituency parsing (section 6.3): the same model, trainer and search, over trees written as sequences.
Takes treebanks to train on, or sentences; gives a trained parser, trees, their F1 as EVALB computes it, and drawings.
Touches the parser's run directory.
"""
