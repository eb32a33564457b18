"""English constituency parsing (section 6.3): the same model, trainer and search, over trees written as sequences."""
