"""What became of the two halves: language models (GPT), masked models (BERT), and one model for many tasks (T5)."""
