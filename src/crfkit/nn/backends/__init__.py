"""Implementations of the sums and of decoding, and the choice among them."""
