"""Chains of up to 128 labels."""
