"""Finds the best ways to continue the rows of a beam: arrays in, arrays out; knows neither search nor model.

Letters in shape comments are beam_search.py's: B sentences, K rows of each, C candidates of each.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CHUNK = 64  # tokens of the vocabulary whose maximum is found at once: the quickest of 16 to 250 at 5,000 tokens


class Candidates(NamedTuple):
    """Ways to continue, (B, C) each; those with a total of -inf do not exist."""

    totals: Floats  # log-probability of the whole
    origins: Ints  # the row continued
    tokens: Ints
    log_probs: Floats  # of the token

    def take(self, chosen: Ints) -> "Candidates":
        sentences = np.arange(len(chosen))[:, None]
        return Candidates(
            self.totals[sentences, chosen],
            self.origins[sentences, chosen],
            self.tokens[sentences, chosen],
            self.log_probs[sentences, chosen],
        )


def best_first(totals: Floats) -> Ints:
    """The order of each sentence's candidates, (B, C); equal ones stay in the order they have."""
    return np.argsort(-totals, axis=1, kind="stable")


def best_of_chunks(living: Floats, log_probs: Tensor, peaks: npt.NDArray[np.float32], count: int) -> Candidates:
    """What `merge` finds, without sorting over the vocabulary: the `count` best tokens lie in the `count` chunks with
    the highest peaks, or in what is left over after the last chunk."""
    num_sentences, rows, vocabulary = log_probs.shape
    chunks, left_over = peaks.shape[2], vocabulary % CHUNK
    sentences = np.arange(num_sentences)[:, None]
    origins, chosen = np.divmod(_largest((living[:, :, None] + peaks).reshape(num_sentences, -1), count), chunks)
    # Places are counted over all of log_probs.
    first = (sentences * rows + origins) * vocabulary + chosen * CHUNK  # (B, count)
    last = (sentences * rows + np.arange(rows) + 1) * vocabulary - left_over  # (B, K)
    inside = (first[:, :, None] + np.arange(CHUNK)).reshape(num_sentences, -1)
    after = (last[:, :, None] + np.arange(left_over)).reshape(num_sentences, -1)
    places = np.concatenate((inside, after), axis=1)
    before = np.concatenate(
        (living[sentences, origins].repeat(CHUNK, axis=1), living.repeat(left_over, axis=1)), axis=1
    )
    values = log_probs.numpy().reshape(-1).take(places)
    totals = before + values
    best = _largest(totals, count)
    # Equal ones by row and then by id, which is by place.
    order = np.lexsort((places[sentences, best], -totals[sentences, best]), axis=1)
    best = best[sentences, order]
    found, values = places[sentences, best], values[sentences, best]
    return Candidates(
        totals[sentences, best], found // vocabulary % rows, found % vocabulary, values.astype(np.float64)
    )


def _largest(numbers: Floats, count: int) -> Ints:
    """The places of the `count` largest numbers of each row, (B, count), in no order. By torch: twice as quick."""
    found: Ints = torch.from_numpy(numbers).topk(count, sorted=False).indices.numpy()
    return found


def merge(living: Floats, values: Floats, tokens: Ints, count: int, filler: int) -> Candidates:
    """The `count` best continuations of each sentence over all its rows, best first."""
    # In the order of their ids within a row, so that the stable sort leaves equal ones in that order.
    order = tokens.argsort(axis=-1, kind="stable")
    num_sentences, rows, width = tokens.shape
    flat_tokens = np.take_along_axis(tokens, order, -1).reshape(num_sentences, -1)
    values = np.take_along_axis(values, order, -1)
    totals = (living[:, :, None] + values).reshape(num_sentences, -1)
    origins = np.tile(np.repeat(np.arange(rows), width), (num_sentences, 1))
    everything = Candidates(totals, origins, flat_tokens, values.reshape(num_sentences, -1))
    found = everything.take(best_first(totals)[:, :count])
    missing = ((0, 0), (0, max(0, count - found.totals.shape[1])))  # of a small vocabulary, at the first position
    return Candidates(
        np.pad(found.totals, missing, constant_values=-math.inf),
        np.pad(found.origins, missing),
        np.pad(found.tokens, missing, constant_values=filler),
        np.pad(found.log_probs, missing, constant_values=-math.inf),
    )
