"""Reads, cleans, splits and tokenises text, and makes batches of token ids from it. Takes files of sentence pairs in
any of the usual formats, or plain text; gives a dataset of ids on disk and the batches of each epoch. Also knows what
can be said about text without a model: its language, its sentences and words, glossary terms, and spans such as code
and addresses that must be copied. Touches only the files that it is given and the dataset that it writes.
"""
