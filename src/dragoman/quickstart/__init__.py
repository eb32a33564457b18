"""Makes a translator from any file of sentence pairs, in one command and a given time. Takes the file and a number of
minutes; gives a run and a report that says what it is good for. Also contains the demo, which does the same with
sentences of the Tatoeba project. Touches the run's directory; the demo also downloads its sentences.
"""
