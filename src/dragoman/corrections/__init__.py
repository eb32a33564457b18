"""From people's corrections to a model that takes the place of the old one only if it is shown to be better."""
