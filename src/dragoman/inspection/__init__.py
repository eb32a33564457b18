"""Looking inside a run: every head's attention, what it does to the translation, and files to keep of it."""
