"""Image patches in place of words (ViT, Dosovitskiy et al. 2021): the encoder alone, on scikit-learn's digits."""
