"""Finds the best output for a source: beam search, greedy search and sampling, and the engines that run them. Takes
source ids, search settings and constraints; gives hypotheses with their scores. The search knows no model, only a step
function; an engine joins a search and a model, in torch or in CTranslate2. Writes only converted models and what
belongs to them, into the run's directory.
"""
