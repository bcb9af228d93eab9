"""Column files as a model sees them: the input columns, and the label column apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crfkit.cli.streams import ArrivingLines, open_input
from crfkit.data import AttributeSequence, ColumnSequence, is_conllu, read_attributes, read_columns
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.features import ColumnRows

Row = tuple[str, ...]
Allowed = list[frozenset[str] | None]  # the labels allowed at each position; None: all
Input = str | Path | ArrivingLines  # what is read: a file, `-` for standard input, or lines as they arrive

_BLANK = re.compile(r"[ \t]")


class Example(NamedTuple):
    """One sequence of a column file, or of a file of attributes."""

    inputs: Sequence[Any]  # [T] the columns without the label (Row), or the attributes
    labels: list[str] | None  # [T], or None where the file has no label column
    origin: (
        ColumnSequence | AttributeSequence | ColumnPlace
    )  # where it was read, for complaints and for writing it again
    allowed: Allowed | None = None  # [T], or None where the file has no column of allowed labels


class ColumnPlace:
    """What a `ColumnSequence` says of itself, for a sequence of `ColumnRows`: looked up when it is asked for."""

    comments: Sequence[str] = ()
    lines: Sequence[str] = ()

    def __init__(self, rows: ColumnRows, n: int) -> None:
        self._rows = rows
        self._n = n

    @property
    def rows(self) -> list[Row]:
        """All columns of each position."""
        return self._rows.all_columns(self._n)

    @property
    def separator(self) -> str:
        """What separates the columns."""
        return self._rows.separator

    def place(self, position: int) -> str:
        """Where a position was read, as `file:line`."""
        return self._rows.place(self._n, position)


class _Inputs(Sequence[Any]):
    """The rows of one sequence of `ColumnRows`, made when one of them is asked for."""

    def __init__(self, rows: ColumnRows, n: int, length: int) -> None:
        self._rows, self._n, self._length = rows, n, length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows[self._n])

    def __getitem__(self, i: Any) -> Any:
        return self._rows[self._n][i]


class ColumnExamples(Sequence[Example]):
    """The sequences of a file with labels, read by the core; examples are made when they are asked for."""

    def __init__(self, rows: ColumnRows) -> None:
        self.rows = rows
        self.labels = rows.labels or []  # [N]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Example]:
        return map(self._example, range(len(self)))

    def __getitem__(self, n: Any) -> Any:
        if isinstance(n, slice):
            return [self._example(k) for k in range(*n.indices(len(self)))]
        return self._example(range(len(self))[n])

    def _example(self, n: int) -> Example:
        labels = self.labels[n]
        return Example(_Inputs(self.rows, n, len(labels)), labels, ColumnPlace(self.rows, n))


def read_column_examples(path: Path, *, separator: str | None, **options: Any) -> ColumnExamples:
    """What `read_labelled` gives, by the core; options and errors are the same."""
    from crfkit.features import ColumnRows

    rows = ColumnRows.read(path, separator=separator)
    return ColumnExamples(check_rows(rows, separator=separator, **options))


def check_rows(rows: ColumnRows, *, separator: str | None, label_column: int, **options: Any) -> ColumnRows:
    """The rows with their label column, checked as `read_labelled` does."""
    options = {**options, "separator": separator, "label_column": label_column}
    _check_labelled(rows.all_columns(0), rows.place(0), **options)
    labelled = rows.with_labels(label_column)
    if (empty := labelled.find_label("")) is not None:
        check_label("", rows.place(*empty))
    return labelled


def read_labelled(
    path: Input,
    *,
    label_column: int,
    separator: str | None = None,
    n_columns: int | None = None,
    conllu: bool = False,
) -> Iterator[Example]:
    """The sequences of a file with a label column, −1 being the last; all other columns are inputs.

    `n_columns` asks for as many columns as the training file has. What looks like CoNLL-U is refused unless it is
    expected (`conllu`).
    """
    for n, sequence in enumerate(_sequences(path, separator)):
        if n == 0:  # all rows have as many columns as the first one
            _check_labelled(
                sequence.rows,
                sequence.place(0),
                label_column=label_column,
                separator=separator,
                n_columns=n_columns,
                conllu=conllu,
            )
        example = _split(sequence, label_column % len(sequence.rows[0]))
        for position, label in enumerate(example.labels or ()):
            check_label(label, sequence.place(position))
        yield example


def _check_labelled(
    rows: list[Row],
    place: str,
    *,
    label_column: int,
    separator: str | None,
    n_columns: int | None = None,
    conllu: bool = False,
) -> None:
    """Refuse a file by the rows of its first sequence, which stands at `place`."""
    if not conllu and is_conllu(rows):
        raise InputError(
            f"{_looks_like_conllu(place)}: train on it with crfkit train-tagger (a tagger), train-parser "
            "(a parser) or pipeline train (both); --plain-columns reads it as columns like any other"
        )
    found = len(rows[0])
    separated = "" if separator is None else f", separated by {_name_separator(separator)}"
    if found == 1:
        raise InputError(
            f"{place}: found one column, expected one word a line, with input columns and a label column"
            f"{separated or ' between tabs or blanks (--separator names another separator)'}"
        )
    if n_columns is not None and found != n_columns:
        raise InputError(
            f"{place}: found {_columns(found)}, expected {n_columns} as in the training file{separated}"
        )
    if not -found <= label_column < found:
        raise InputError(f"{place}: there is no label column {label_column}, found {_columns(found)}")


def read_for_model(
    path: Input,
    *,
    n_inputs: int,
    label_column: int,
    separator: str | None = None,
    trained_separator: str | None = None,
    labels_required: bool = False,
) -> Iterator[Example]:
    """The sequences of a file that a model with `n_inputs` input columns is asked about.

    A file with one column more than that has labels, in `label_column` as when the model was trained. Columns are
    separated as in the training file, `trained_separator`, unless `separator` says otherwise.
    """
    return examples_for_model(
        _sequences(path, trained_separator if separator is None else separator),
        n_inputs=n_inputs,
        label_column=label_column,
        separator=separator,
        trained_separator=trained_separator,
        labels_required=labels_required,
    )


def examples_for_model(
    sequences: Iterable[ColumnSequence],
    *,
    n_inputs: int,
    label_column: int,
    separator: str | None = None,
    trained_separator: str | None = None,
    labels_required: bool = False,
) -> Iterator[Example]:
    """The same for sequences that were read with this separator."""
    as_trained = separator is None and trained_separator is not None
    for n, sequence in enumerate(sequences):
        found = len(sequence.rows[0])
        if as_trained and n == 0 and found == 1 and _BLANK.search(sequence.rows[0][0]):
            raise InputError(
                f"{sequence.place(0)}: the columns of the training file were separated by "
                f"{_name_separator(trained_separator)}, and this row has none but blanks; "
                "expected one word a line, or --separator, which says what separates its columns"
            )
        if found == n_inputs + 1:
            yield _split(sequence, label_column % found)
        elif found == n_inputs and not labels_required:
            yield Example(sequence.rows, None, sequence)
        else:
            if is_conllu(sequence.rows):
                raise InputError(_other_model(sequence.place(0)))
            expected = f"{_columns(n_inputs + 1)}, with a label"
            if not labels_required:
                expected = f"{_columns(n_inputs)}, or {n_inputs + 1} with a label"
            if as_trained:
                expected += f" (separated by {_name_separator(trained_separator)}, as in training, or as --separator says)"
            hint = "; a file has one word a line" if n_inputs == 1 and found > 2 else ""
            raise InputError(
                f"{sequence.place(0)}: found {_columns(found)}, the model expects {expected}{hint}"
            )


def read_ragged(
    path: Input,
    *,
    n_inputs: int,
    first_missed: Callable[[list[Row]], tuple[int, str] | None],
    separator: str | None,
    labelled: bool,
) -> Iterator[Example]:
    """The sequences of a file for a model of CRF++ or Wapiti, as these tools read it.

    A row has at least `n_inputs` columns, and each row another number if need be; `first_missed` finds the first one that
    has fewer than are read there. Where `labelled`, the last column is the label. No line is a comment.
    """
    for sequence in read_columns(_opened(path), separator=separator, comment=None, ragged=True):
        for position, row in enumerate(sequence.rows):
            if len(row) < n_inputs + labelled:
                expected = f"at least {n_inputs + labelled}{', the last one the label' * labelled}"
                raise InputError(
                    f"{sequence.place(position)}: found {_columns(len(row))}, the model expects {expected}"
                )
        inputs = [row[:-1] for row in sequence.rows] if labelled else sequence.rows
        missed = first_missed(inputs)
        if missed is not None:
            raise InputError(f"{sequence.place(missed[0])}: {missed[1]}")
        yield Example(inputs, [row[-1] for row in sequence.rows] if labelled else None, sequence)


def read_attribute_examples(path: Input) -> Iterator[Example]:
    """The sequences of a file of attributes, which has a label in front of each line."""
    for n, sequence in enumerate(read_attributes(_opened(path))):
        if n == 0 and not any(sequence.items) and any(map(_BLANK.search, sequence.labels)):
            raise InputError(
                f"{sequence.place(0)}: found no tab, expected a label and attributes with tabs between them"
            )
        if n == 0 and _may_be_conllu(sequence):
            raise InputError(_other_model(sequence.place(0)))
        yield Example(sequence.items, sequence.labels, sequence)


def _looks_like_conllu(place: str) -> str:
    return f"{place}: this looks like CoNLL-U (ten columns, the first one a number)"


def _other_model(place: str) -> str:
    return (
        f"{_looks_like_conllu(place)}, which the model was not trained on: expected a model of crfkit train-tagger or "
        "train-parser"
    )


def _may_be_conllu(sequence: AttributeSequence) -> bool:
    """Whether the labels are 1, 2, …, as in the first column of CoNLL-U, and all words have the attribute `_`."""
    rows = [
        (label, item)
        for label, item in zip(sequence.labels, sequence.items, strict=True)
        if not label.startswith("#")  # a comment of CoNLL-U
    ]
    words = [label for label, _ in rows if label.isdecimal()]  # no ranges or empty nodes
    counted = bool(words) and words == [str(n) for n in range(1, len(words) + 1)]
    return counted and all("_" in item for _, item in rows)


def check_label(label: str, place: str) -> None:
    """Refuse to learn a label that is empty."""
    if not label:
        raise InputError(f"{place}: the label is empty, expected one for every word")


def check_labels(example: Example, known: Collection[str], complaint: str) -> None:
    """Refuse a label that is not known."""
    labels = example.labels or []
    if not all(label in known for label in labels):
        position = next(position for position, label in enumerate(labels) if label not in known)
        raise InputError(
            f"{example.origin.place(position)}: {complaint} {labels[position]!r} "
            "(--allow-unknown counts such labels as errors)"
        )


def _sequences(path: Input, separator: str | None) -> Iterator[ColumnSequence]:
    return read_columns(_opened(path), separator=separator)


def _opened(path: Input) -> Path | ArrivingLines:
    return path if isinstance(path, ArrivingLines) else open_input(str(path))


def _split(sequence: ColumnSequence, label_column: int) -> Example:
    inputs = [row[:label_column] + row[label_column + 1 :] for row in sequence.rows]
    return Example(inputs, [row[label_column] for row in sequence.rows], sequence)


def _name_separator(separator: str | None) -> str:
    return {"\t": "tabs", " ": "blanks"}.get(separator or "", repr(separator))


def _columns(n: int) -> str:
    return f"{n} column{'s' * (n != 1)}"


def inputs_and_labels(examples: Sequence[Example]) -> tuple[Sequence[Any], list[list[str]]]:
    """X and y of all examples."""
    if isinstance(examples, ColumnExamples):
        return examples.rows, examples.labels
    return [example.inputs for example in examples], [example.labels or [] for example in examples]
