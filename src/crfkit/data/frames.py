"""Sequences in data frames: one row for each position, of pandas, polars, PyArrow and whatever else narwhals reads."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from crfkit.data.frame_columns import read_features, read_labels, read_weights
from crfkit.errors import ArgumentError, EmptyDataError, ShapeError
from crfkit.lazy import lazy_property

Position = dict[str, Any]
Row = tuple[str, ...]


def from_frame(
    frame: Any,
    *,
    sequence: str | Sequence[str] | None,
    features: str | Sequence[str],
    label: str | None = None,
    weight: str | None = None,
) -> "SequenceFrame":
    """Read the rows of a data frame as the positions of sequences; `CRF.fit` and `CRF.predict` take the result.

    frame : a data frame of pandas, polars or PyArrow, or of another library that narwhals knows; it is not changed
    sequence : the column that tells sequences apart, or several of them, such as document and sentence; None: the whole
        frame is one sequence. Rows of a sequence keep their order and need not be adjacent; sequences come in the order of
        their first rows.
    features : the columns that positions are made of: text, numbers, booleans or lists of texts. A missing value is no
        feature, and an empty column for templates.
    label : the column of the labels. A missing one is unknown: the model sums over it.
    weight : a column with the weight of each sequence, the same in all of its rows

    >>> import polars
    >>> frame = polars.DataFrame({"sentence": [1, 1, 2], "word": ["the", "dog", "dogs"], "tag": ["D", "N", "N"]})
    >>> sequences = from_frame(frame, sequence="sentence", features=["word"], label="tag")
    >>> sequences.X
    [[{'word': 'the'}, {'word': 'dog'}], [{'word': 'dogs'}]]
    >>> sequences.y
    [['D', 'N'], ['N']]
    """
    found = _read_frame(frame)
    names = _as_names("features", features)
    keys = [] if sequence is None else _as_names("sequence", sequence)
    for argument, columns in (
        ("sequence", keys),
        ("features", names),
        ("label", [] if label is None else [label]),
        ("weight", [] if weight is None else [weight]),
    ):
        _check_columns(found, argument, columns)
    if len(found) == 0:
        raise EmptyDataError("the frame has no row, expected one for each position")
    if label is not None and label in names:
        raise ArgumentError(f"the label {label!r} is among the features, which new data do not have")
    return SequenceFrame(found, _gather(found, keys), names, label, weight)


class _Groups(NamedTuple):
    """Which rows are which sequences."""

    names: list[str]  # of the columns that tell sequences apart
    keys: list[tuple[Hashable, ...]]  # [N] their values
    rows: list[list[int]]  # [N] the rows of each, in order


class SequenceFrame:
    """The sequences of a data frame, and the way back: columns of answers beside the rows that they are for.

    Attributes
    ----------
    X : the positions of each sequence as dicts, {column: value}
    rows : the same as tuples of texts, as templates and presets read them
    y : the labels of each sequence, None where they are missing; no attribute of a frame without a label column
    sample_weight : the weights of the sequences [N], or None
    ids : what tells the sequences apart: values of the column, or tuples of several
    """

    def __init__(
        self, frame: Any, groups: _Groups, features: list[str], label: str | None, weight: str | None
    ) -> None:
        self._frame = frame  # narwhals' view of it
        self._groups = groups
        self._features = features
        self._label = label
        self._weight = weight

    def __len__(self) -> int:
        return len(self._groups.rows)

    def __repr__(self) -> str:
        n_rows = sum(map(len, self._groups.rows))
        label = "" if self._label is None else f", label={self._label!r}"
        return f"<{len(self):,} sequences with {n_rows:,} positions, features={self._features}{label}>"

    @property
    def has_labels(self) -> bool:
        """Whether the frame has a column of labels."""
        return self._label is not None

    @property
    def ids(self) -> list[Any]:
        """What tells the sequences apart, in their order."""
        single = len(self._groups.names) == 1
        return [key[0] if single else key for key in self._groups.keys]

    @lazy_property
    def X(self) -> list[list[Position]]:  # noqa: N802
        """The positions of each sequence, {column: value}; a missing value is no feature."""
        columns = read_features(self._frame, self._features)
        names, values = list(columns), zip(*columns.values(), strict=True)
        positions = [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in values
        ]
        return self._by_sequence(positions)

    @lazy_property
    def rows(self) -> list[list[Row]]:
        """The positions of each sequence as tuples of texts; a missing value is an empty text."""
        columns = read_features(self._frame, self._features, as_text=True)
        return self._by_sequence(list(zip(*columns.values(), strict=True)))

    @lazy_property
    def y(self) -> list[list[Any]]:
        """The labels of each sequence; None where one is missing."""
        if self._label is None:
            raise ArgumentError("the frame was read without labels, expected from_frame(…, label=…)")
        return self._by_sequence(read_labels(self._frame, self._label))

    @lazy_property
    def sample_weight(self) -> Any:
        """The weights of the sequences, float64[N]; None without a column of weights."""
        if self._weight is None:
            return None
        return read_weights(self._frame, self._weight, self._groups.rows, self.ids)

    def with_predictions(self, predictions: Sequence[Sequence[Any]], name: str = "predicted") -> Any:
        """The data frame with a column of labels, such as `CRF.predict` gives for it.

        It is of the same library, with the same rows in the same order and, in pandas, the same index.

        >>> import polars
        >>> frame = polars.DataFrame({"sentence": [1, 2, 1], "word": ["the", "dogs", "dog"]})
        >>> sequences = from_frame(frame, sequence="sentence", features="word")
        >>> sequences.with_predictions([["D", "N"], ["N"]])["predicted"].to_list()
        ['D', 'N', 'N']
        """
        return self.with_columns(**{name: predictions})

    def with_columns(self, /, **columns: Sequence[Any]) -> Any:
        """The data frame with more columns: for each sequence, one value for each position.

        A column of the same name is replaced.
        """
        import narwhals

        series = [
            narwhals.new_series(name, self._by_row(name, values), backend=self._frame.implementation)
            for name, values in columns.items()
        ]
        return self._frame.with_columns(*series).to_native()

    def span_table(self, spans: Sequence[Sequence[Any]], text: str | None = None) -> Any:
        """A data frame of the same library with one row for each span, such as `CRF.predict_spans` gives.

        Columns: those that tell sequences apart, start, end, label and probability; with the column `text` of the frame, its
        values joined by blanks.
        """
        import narwhals

        _check_lengths("spans", len(spans), len(self))
        if text is not None:
            _check_columns(self._frame, "text", [text])
            words = read_features(self._frame, [text], as_text=True)[text]
        names = self._groups.names
        added = ("start", "end", "label", "probability", *["text"] * (text is not None))
        if taken := [name for name in names if name in added]:
            raise ArgumentError(
                f"the column {taken[0]!r} of the sequences has the name of a column of the table of spans: "
                "rename it in the frame"
            )
        table: dict[str, list[Any]] = {name: [] for name in (*names, *added)}
        for key, rows, found in zip(self._groups.keys, self._groups.rows, spans, strict=True):
            for span in found:
                values: Iterable[Any] = (*key, span.start, span.end, span.label, span.probability)
                if text is not None:
                    values = (*values, " ".join(words[row] for row in rows[span.start : span.end]))
                for column, value in zip(table.values(), values, strict=True):
                    column.append(value)
        return narwhals.from_dict(table, backend=self._frame.implementation).to_native()

    def _by_sequence(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[values[row] for row in rows] for rows in self._groups.rows]

    def _by_row(self, name: str, values: Sequence[Any]) -> list[Any]:
        """One value for each row of the frame."""
        _check_lengths(name, len(values), len(self))
        found: list[Any] = [None] * len(self._frame)
        for n, (rows, given) in enumerate(zip(self._groups.rows, values, strict=True)):
            if len(given) != len(rows):
                raise ShapeError(
                    f"{name} has {len(given):,} values for sequence {n} ({self.ids[n]!r}), expected {len(rows):,}"
                )
            for row, value in zip(rows, given, strict=True):
                if getattr(value, "shape", ()) != ():
                    raise ShapeError(
                        f"{name} has an array of shape {value.shape} at a position of sequence {n} ({self.ids[n]!r}), "
                        "expected one value, such as table.max(axis=1) of each table of predict_marginals"
                    )
                found[row] = value.item() if hasattr(value, "item") else value
        return found


def _read_frame(frame: Any) -> Any:
    """narwhals' view of a data frame in memory."""
    try:
        import narwhals
    except ImportError:
        raise ImportError("data frames need narwhals: pip install narwhals") from None
    try:
        found = narwhals.from_native(frame, pass_through=True)
    except narwhals.exceptions.DuplicateError:
        raise ArgumentError("frame has several columns of the same name, expected different names") from None
    if isinstance(found, narwhals.DataFrame):
        return found
    if isinstance(found, narwhals.LazyFrame):
        raise ArgumentError(
            f"frame is a lazy {type(frame).__module__.partition('.')[0]} frame: call .collect()"
        )
    raise ArgumentError(
        f"frame is of type {type(frame).__name__}, expected a data frame of pandas, polars, PyArrow or the like"
    )


def _as_names(argument: str, names: str | Sequence[str]) -> list[str]:
    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not listed:
        raise ArgumentError(f"{argument} is empty, expected the name of a column, or a list of them")
    for name in listed:
        _check_name(argument, name)
    if len(set(listed)) < len(listed):
        raise ArgumentError(f"{argument} has a column twice: {', '.join(map(str, listed))}")
    return listed


def _check_name(argument: str, name: Any) -> None:
    """Refuse columns without names, which pandas numbers: a number means a row to narwhals."""
    if not isinstance(name, str):
        raise ArgumentError(f"{argument} has {name!r}, expected the name of a column, which is a text")


def _check_columns(frame: Any, argument: str, names: Sequence[str]) -> None:
    for name in names:
        _check_name(argument, name)
        if name not in frame.columns:
            known = ", ".join(map(repr, frame.columns)) or "none"
            raise ArgumentError(f"{argument}: the frame has no column {name!r}, only {known}")


def _check_lengths(name: str, given: int, expected: int) -> None:
    if given != expected:
        raise ShapeError(f"{name} has values for {given:,} sequences, expected {expected:,}")


def _gather(frame: Any, names: list[str]) -> _Groups:
    """The rows of each sequence; sequences in the order of their first rows."""
    if not names:
        return _Groups([], [()], [list(range(len(frame)))])
    for name in names:
        for row, missing in enumerate(frame[name].is_null().to_list()):
            if missing:
                raise ArgumentError(f"sequence: the column {name!r} has no value in row {row}")
        if not isinstance(frame[name].to_list()[0], Hashable):
            raise ArgumentError(
                f"sequence: the column {name!r} is of type {frame[name].dtype}, expected text or numbers"
            )
    groups: dict[tuple[Hashable, ...], list[int]] = {}
    for row, key in enumerate(zip(*(frame[name].to_list() for name in names), strict=True)):
        groups.setdefault(key, []).append(row)
    return _Groups(names, list(groups), list(groups.values()))
