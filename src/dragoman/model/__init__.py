"""The Transformer and the LSTM as torch modules, their loss, and their weights on disk. Takes a configuration and
batches of ids; gives logits, losses and checkpoints. Knows nothing of search or of the training loop, and touches only
the files of weights.
"""
