"""The paper's claims as experiments that run here: `dragoman lab`. Takes a time budget and earlier measurements; gives
verdicts, by rules that were fixed before the measurements, and a report with figures. Touches only the lab's own
directory.

An experiment is one file in experiments/. It says which arms it has (`arms`), what is measured of one (`measure`), and
by which rule the measurements become a verdict (`judge`, a pure function); `run` ties them together. The rest is
shared:

    result.py       what an experiment gives back, as JSON
    rules.py        the arithmetic of verdicts: means, spreads, slopes, ranks
    queue.py        arms that were measured are kept and never measured again; the budget; what is left
    tasks.py        small made-up tasks, and the loop that fits a model to them
    translation.py  arms that train a translator with `dragoman.training.loop`; variants.py compares them
    catalogue.py    the experiments, in the order in which they run
    report.py       the report as HTML and Markdown
"""
