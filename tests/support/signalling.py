"""Programs that run the command line and send a signal to themselves at a certain call of one of its functions.

A signal from outside could come too late, when the work is done.
"""

_PROGRAM = """
import os, pkgutil, signal
from dragoman.cli import main
owner = pkgutil.resolve_name({owner!r})
function, calls = getattr(owner, {name!r}), []
def signalled(*arguments, **named):
    calls.append(1)
    if len(calls) == {call} and {condition}:
        for number in {signals!r}:
            os.kill(os.getpid(), getattr(signal, number))
    return function(*arguments, **named)
setattr(owner, {name!r}, signalled)
if __name__ == "__main__":
    main.main()
"""


def program_that_signals(function: str, call: int, *signals: str, condition: str = "True") -> str:
    """The source of the program. `function` is named as its module sees it: "dragoman.training.loop.save"; before its
    `call`-th call the signals are sent, if the condition, a Python expression, is true."""
    owner, _, name = function.rpartition(".")
    return _PROGRAM.format(owner=owner, name=name, call=call, signals=signals, condition=condition)
