"""More from the same machinery: a run taught new text, synthetic pairs, several languages in one model."""
