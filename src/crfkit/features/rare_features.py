"""Features that are seen too rarely to be kept: what `min_count` says of a training set."""

from crfkit.counts import check_count

AUTO_COUNT = "auto"
"""The `min_count` that goes by the number of positions of the training set."""
MANY_POSITIONS = 100_000  # from here on, it leaves out features that were seen once


def check_min_count(min_count: object) -> int | str:
    """A `min_count`: a whole number, or "auto"."""
    if isinstance(min_count, str) and min_count == AUTO_COUNT:
        return AUTO_COUNT
    return check_count("min_count", min_count)


def least_count(min_count: object, n_positions: int) -> int:
    """At how many positions of a training set of this size a feature must be seen to be kept."""
    if check_min_count(min_count) == AUTO_COUNT:
        return 1 if n_positions < MANY_POSITIONS else 2
    return check_count("min_count", min_count)
