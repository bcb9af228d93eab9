"""From training data to weights."""
