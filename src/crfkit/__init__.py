"""Conditional random fields: exact, fast, constrained, and pleasant to use."""

__version__ = "0.1.0"
