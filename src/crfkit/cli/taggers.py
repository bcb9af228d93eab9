"""A trained model as the commands use it: one that reads column files, or files of attributes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crfkit.cli.columns import Example, Input, read_attribute_examples, read_for_model
from crfkit.cli.constraints import check_known, label_column_among, take_allowed
from crfkit.data import InputError, read_bytes

if TYPE_CHECKING:
    from crfkit.models import CRF


CRFKIT, CRFSUITE = "crfkit", "crfsuite"


class Tagger(NamedTuple):
    """A model whose sites are rows of columns, or attributes."""

    crf: CRF
    n_inputs: int | None  # columns that a site has; None: it has attributes
    label_column: int  # where the label stands in files that have one
    separator: str | None  # of the columns of the training file; None where the model does not know


def read_model(path: Path, n_columns: int | None = None) -> tuple[CRF, str]:
    """A model and the toolkit whose file it is, which its first bytes tell."""
    from crfkit.compat import MAGIC, read_crfpp, read_crfsuite, read_wapiti
    from crfkit.models import load

    begins = read_bytes(path, 8) if path.is_file() else b""  # of anything else `load` complains
    toolkit = next((name for name, magic in MAGIC.items() if begins.startswith(magic)), CRFKIT)
    if n_columns is not None and toolkit != "wapiti":
        raise InputError(f"{path}: --columns is for models of Wapiti, and this is one of {toolkit}")
    if toolkit == "wapiti":
        return read_wapiti(path, n_columns=n_columns), toolkit
    readers = {CRFSUITE: read_crfsuite, "crf++": read_crfpp, CRFKIT: load}
    return readers[toolkit](path), toolkit


def load_tagger(path: Path, *, n_threads: int | None = None) -> Tagger:
    """Load a model of this package or of another toolkit that reads columns or attributes."""
    crf, _ = read_model(path)
    if crf.n_columns_ is None and (crf.features is not None or crf.encoder_.dense_sizes):
        raise InputError(
            f"{path}: the model was trained on features made in Python, not on columns or attributes; use it from Python"
        )
    crf.set_params(n_threads=n_threads)
    return Tagger(crf, crf.n_columns_, crf.label_column_, crf.separator_)


def read_for_tagger(
    tagger: Tagger,
    path: Input,
    *,
    separator: str | None = None,
    allowed_column: int | None = None,
    labels_required: bool = False,
) -> Iterator[Example]:
    """The sequences of a file that a model is asked about, with the labels that their column of allowed labels allows."""
    n_inputs, label_column = tagger.n_inputs, tagger.label_column
    if n_inputs is None:
        if allowed_column is not None or separator is not None:
            raise InputError(
                "--allowed-column and --separator are for columns, and the model reads attributes"
            )
        return read_attribute_examples(path)
    if allowed_column is not None:
        label_column = label_column_among(allowed_column, label_column, n_inputs + 2)
        n_inputs += 1
    examples = read_for_model(
        path,
        n_inputs=n_inputs,
        label_column=label_column,
        separator=separator,
        trained_separator=tagger.separator,
        labels_required=labels_required,
    )
    if allowed_column is None:
        return examples
    known = {str(label) for label in tagger.crf.classes_}
    return check_known(take_allowed(examples, allowed_column, label_column), known)
