"""Trains a run, fine-tunes it, and checks it. Takes a configuration and a dataset; gives a run directory with weights,
checkpoints and a log. There is one training loop, for one process or several; fine-tuning, back-translation and
learning from corrections all use it. Touches only run directories and, for back-translation, the file of pairs that it
writes.
"""
