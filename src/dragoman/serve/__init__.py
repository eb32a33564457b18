"""The HTTP service: translation, explanations, inspection, parsing, and the web page. Takes requests; gives JSON and
files. Reads the runs that it is given, and writes only the file of corrections, if it is given one.
"""
