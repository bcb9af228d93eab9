"""Sequences of a data frame where models take X, y and weights."""

from typing import Any

from crfkit.data import SequenceFrame
from crfkit.errors import UnsupportedError
from crfkit.features import ColumnRows


def read_positions(X: Any, *, as_text: bool) -> Any:
    """The positions of a `SequenceFrame`, as tuples of texts for templates, else as dicts; any other X as it is."""
    if not isinstance(X, SequenceFrame):
        return X
    return X.rows if as_text else X.X


def read_examples(X: Any, y: Any, sample_weight: Any, *, as_text: bool) -> tuple[Any, Any, Any]:
    """X, y and weights; those of a `SequenceFrame`, and the labels of `ColumnRows`, unless others are given."""
    if isinstance(X, ColumnRows) and y is None:
        y = X.labels
    if isinstance(X, SequenceFrame):
        y = X.y if y is None else y
        if sample_weight is None:
            sample_weight = X.sample_weight
        elif X.sample_weight is not None:
            raise UnsupportedError("sample_weight was given, and the frame has a column of weights")
    return read_positions(X, as_text=as_text), y, sample_weight


def read_dev(dev: Any, *, as_text: bool) -> Any:
    """The dev set (X, y) or (X, y, allowed), of which X may be a `SequenceFrame`; or a frame, or `ColumnRows`, alone."""
    if isinstance(dev, ColumnRows):
        dev = (dev, dev.labels)
    if isinstance(dev, SequenceFrame):
        dev = (dev, dev.y)
    if isinstance(dev, tuple) and dev and isinstance(dev[0], SequenceFrame):
        return (read_positions(dev[0], as_text=as_text), *dev[1:])
    return dev
