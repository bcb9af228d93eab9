"""Chains with many labels and few bigrams."""
