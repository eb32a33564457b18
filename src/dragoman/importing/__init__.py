"""Makes runs from public models: Hugging Face directories, Marian's own archives, Argos packages, CTranslate2 models.

What comes in is a directory, an archive or a name on a hub; what goes out is a run's directory like any other. Weights
are read without executing anything that a file may hold. Imports no torch until a pickled file asks for it.
"""
