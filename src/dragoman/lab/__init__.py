"""Tests the paper's claims by experiments that run here: `dragoman lab`. Takes a time budget and earlier measurements;
gives verdicts, by rules that were fixed before the measurements, and a report with figures. Touches only the lab's own
directory.

An experiment is one file in experiments/. It names its arms, the things to be measured (`arms`), measures one of them
(`measure`), and turns all measurements into findings (`judge`, a pure function: the decision rule); `run` ties these
together. What experiments share:

    result.py       the result of an experiment, as JSON
    rules.py        the arithmetic of verdicts: means, spreads, slopes, ranks
    queue.py        measures arms within a time budget, and never measures one twice
    tasks.py        small artificial tasks, and the loop that trains a model on them
    translation.py  arms that train a translator with `dragoman.training.loop`; variants.py compares them
    catalogue.py    the list of experiments, in the order in which they run
    report.py       the report as HTML and Markdown
"""
