"""Chains whose transitions differ from position to position."""
