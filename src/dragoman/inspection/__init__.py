"""Shows what happens inside a run when it translates a sentence. Takes a run and a sentence; gives the attention of
every head, the effect of changing heads, the alternatives at each position, word alignments, and all of it as JSON, as
a page or as pictures. Reads the run and changes nothing in it.
"""
