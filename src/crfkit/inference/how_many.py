"""How many outputs a question asks for: refused in the same words for every structure."""

from __future__ import annotations


def check_k(k: int) -> None:
    """Of `k_best`."""
    if k < 1:
        raise ValueError(f"k_best: k is {k}, expected 1 or more.")


def check_n(n: int) -> None:
    """Of `sample`."""
    if n < 0:
        raise ValueError(f"sample: n is {n}, expected 0 or more.")
