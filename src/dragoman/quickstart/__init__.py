"""From any file of pairs to a translator, in one command and the time that there is."""
