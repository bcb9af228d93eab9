"""Chains with many labels."""
