"""What a file of a model may ask for, whatever toolkit wrote it."""

from crfkit.errors import UnsavableError

MAX_WEIGHT = 1e100
"""The largest weight, in size, that a model file may have."""
MAX_LABELS = 8_192
"""The most labels that a model file may have: a table of all transitions [L, L] then takes half a gigabyte."""
_FREE_LABELS = 1_024  # its table takes 8 MB
_TRANSITIONS_A_WEIGHT = 1_024  # entries of a larger table for each weight, at most


def fewest_weights(n_labels: int) -> int:
    """Weights that a file with so many labels must have, so that no small file asks for much memory."""
    return 0 if n_labels <= _FREE_LABELS else -(-(n_labels**2) // _TRANSITIONS_A_WEIGHT)


def check_labels(n_labels: int, n_weights: int) -> None:
    """Refuse labels whose table of transitions is out of proportion to the weights."""
    if n_weights < fewest_weights(n_labels):
        raise UnsavableError(
            f"it has {n_weights:,} weights for {n_labels:,} labels, expected at least {fewest_weights(n_labels):,}"
        )
