"""The command line: one file for each group of commands, and the only place that knows typer. Takes arguments, files
and standard input; gives results on stdout, progress on stderr, and an exit code. Heavy imports stand inside the
commands, so that `dragoman --help` is quick.
"""
