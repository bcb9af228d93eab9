"""Measurements of crfkit beside its rivals, and the corpora they use."""
