"""What the Transformer's two halves became: language models (GPT), masked models (BERT), one model for many tasks
(T5), and image patches in place of words (ViT). Takes plain text, labelled text or scikit-learn's digits; gives pairs
that the trainer of translators accepts, and the answers of the trained models. Touches their run directories.
"""
