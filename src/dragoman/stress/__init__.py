"""How a run behaves where text is not as it was trained on."""
