"""Kernels for belief propagation on factor graphs of single variables and pairs."""
