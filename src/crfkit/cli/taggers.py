"""A trained model as the commands use it: one that reads column files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crfkit.data import InputError

if TYPE_CHECKING:
    from crfkit.models import CRF


class Tagger(NamedTuple):
    """A model whose sites are rows of columns."""

    crf: CRF
    n_inputs: int  # columns that a site has
    label_column: int  # where the label stands in files that have one
    separator: str | None  # of the columns of the training file; None where the model does not know


def load_tagger(path: Path, *, n_threads: int | None = None) -> Tagger:
    """Load a model that was trained on columns."""
    from crfkit.models import load

    crf = load(path)
    if crf.n_columns_ is None:
        raise InputError(
            f"{path}: the model was trained on features made in Python, not on columns; use it from Python"
        )
    crf.set_params(n_threads=n_threads)
    return Tagger(crf, crf.n_columns_, crf.label_column_, crf.separator_)
