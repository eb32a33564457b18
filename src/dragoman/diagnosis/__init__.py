"""Finds out why a translator is worse than it could be. Takes a corpus, a run or the machine itself; gives ranked
causes, each with evidence, cost and remedy, and a test of how a run behaves on unusual text. Only reads.
"""
