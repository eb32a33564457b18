"""Documents in, documents out: what is text is translated, everything else comes back as it was."""
