"""Batches of chains and trees as every backend sees them."""
