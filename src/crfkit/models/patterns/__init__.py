"""Patterns that training finds: candidates from samples of the model, chosen greedily, round after round."""
