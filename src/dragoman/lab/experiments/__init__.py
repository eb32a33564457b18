"""The experiments, one in each file; the docstring of a file is the description that the report prints."""
