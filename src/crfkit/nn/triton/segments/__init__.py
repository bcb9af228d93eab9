"""Kernels for semi-Markov chains."""
