"""Column files read by the core: against `read_columns`, line by line, with its errors; and as X of a model."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crfkit import CRF
from crfkit.arrays import offsets
from crfkit.data import AUTO, read_columns
from crfkit.errors import (
    ArgumentError,
    FeatureError,
    FileFormatError,
    InputError,
    MissingFileError,
    ShapeError,
)
from crfkit.features import ColumnRows, Encoder, Template, cut_shards, preset

LINES = st.sampled_from(
    [
        *(b"", b" \t", b"\t", b"\r", b"a b", b"a  b ", b"\ta\tb", b"a\tb", b"# a", b"# # x", b"# text = a b"),
        *(b"#key = v", b"## = ", b"a b c", b"a", b"a|b", b"a||b", b"//c", b"\xc3\xa9 \xe2\x82\xac", b"\xed\xa0\x80 b"),
        *(b"\xff b", b"\xef\xbb\xbfa b", b"\xef\xbb\xbf", b"a b\r\r", b"a\xc2\xa0b c"),
    ]
)  # fmt: skip
FILES = st.builds(
    lambda lines, ends, last: (
        b"".join(line + (b"\r\n" if end else b"\n") for line, end in zip(lines, ends, strict=False)) + last
    ),
    st.lists(LINES, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
    LINES,
)


def outcome(read: Any) -> Any:
    """What reading gives, or its error."""
    try:
        return read()
    except InputError as error:
        return type(error), str(error)


def read_lines(data: bytes, **options: Any) -> Any:
    sequences = list(read_columns(io.BytesIO(data), **options))
    places = [[sequence.place(i) for i in range(len(sequence.rows))] for sequence in sequences]
    return [sequence.rows for sequence in sequences], places, sequences[0].separator


def read_natively(data: bytes, n_threads: int = 1, **options: Any) -> Any:
    rows = ColumnRows.read(io.BytesIO(data), n_threads=n_threads, **options)
    found = list(rows)
    places = [[rows.place(n, i) for i in range(len(sequence))] for n, sequence in enumerate(found)]
    return found, places, rows.separator


@given(FILES, st.sampled_from([None, " ", "\t", "|", "||"]), st.sampled_from([AUTO, None, "#", "//"]))
@example(b"#key = v\na b c\n\n#key = v\nd e f\n", None, AUTO)  # comments that have as many columns as rows
@example(b"# # x\na b c\n\n# # x\nd e f\n", None, AUTO)  # rows that begin with #
@settings(max_examples=400, deadline=None)
def test_any_file_is_read_as_line_by_line(data: bytes, separator: str | None, comment: str | None) -> None:
    options: dict[str, Any] = {"separator": separator, "comment": comment}
    assert outcome(lambda: read_natively(data, **options)) == outcome(lambda: read_lines(data, **options))


def read_in_shards(data: bytes, shard_size: int, n_threads: int = 1, **options: Any) -> Any:
    """What `read_natively` gives, and where the shards end."""
    found, places, separators, ends = [], [], [], []
    for rows in ColumnRows.read_shards(io.BytesIO(data), shard_size, n_threads=n_threads, **options):
        found += list(rows)
        places += [[rows.place(n, i) for i in range(len(rows[n]))] for n in range(len(rows))]
        separators.append(rows.separator)
        ends.append(len(found))
    return (found, places, separators[0]), ends


@given(FILES, st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_shards_of_any_file(data: bytes, shard_size: int) -> None:
    whole = outcome(lambda: read_natively(data))
    found = outcome(lambda: read_in_shards(data, shard_size))
    if isinstance(whole[0], type):
        assert found == whole
        return
    ptr = cut_shards(offsets(np.array([*map(len, whole[0])])), shard_size)
    assert found == (whole, ptr[1:].tolist())


@pytest.mark.parametrize(("n_threads", "shard_size"), [(1, 100), (2, 5_000), (3, 20_001), (1, 10**6)])
def test_shards_of_many_chunks(n_threads: int, shard_size: int) -> None:
    data = long_file(n_threads)
    found, ends = read_in_shards(data, shard_size, n_threads)
    assert found == read_lines(data)
    assert [0, *ends] == cut_shards(offsets(np.array([*map(len, found[0])])), shard_size).tolist()


def test_shards_before_an_error_are_given() -> None:
    data = long_file(5)
    broken = data + b"\nx\ty\n"
    shards = ColumnRows.read_shards(io.BytesIO(broken), 1000)
    assert len(next(shards)) > 100
    line = broken.count(b"\n")
    with pytest.raises(FileFormatError, match=f":{line}: found 2 tab-separated columns"):
        list(shards)


def long_file(seed: int, n: int = 12_000) -> bytes:
    """A file of several chunks, with comments, blank lines and carriage returns."""
    random_lines = random.Random(seed)
    lines = ["# newdoc"]
    for _ in range(n):
        lines += [
            f"w{random_lines.randrange(500)}é\tP{random_lines.randrange(9)}\tL{random_lines.randrange(5)}"
            for _ in range(random_lines.randint(1, 9))
        ]
        lines += random_lines.choice([[""], ["", ""], ["\r"], ["", "# text = x"]])
    return "\n".join(lines).encode()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_files_of_many_chunks(n_threads: int) -> None:
    data = long_file(n_threads)
    assert len(data) > 5 * 2**17
    assert read_natively(data, n_threads) == read_lines(data)


@pytest.mark.parametrize(
    "bad", [b"\xff\tP\tL\n", b"one column\n", b"a\tb\n", b"\xe2\x82\n", b"\xed\xb0\x80\tP\tL\n"]
)
def test_the_first_error_of_a_long_file_has_its_line(bad: bytes) -> None:
    data = long_file(3)
    middle = data.index(b"\n\n", len(data) // 2) + 2
    last = data.index(b"\n\n", len(data) - 5000) + 2
    broken = data[:middle] + bad + data[middle:last] + b"\xfe\n" + data[last:]
    expected = outcome(lambda: read_lines(broken))
    assert outcome(lambda: read_natively(broken, 2)) == expected
    assert isinstance(expected[1], str)


def test_a_first_row_that_is_not_utf8_is_the_error_even_behind_comments() -> None:
    data = b"# b\n# k = v\n\na b\xff\n"
    with pytest.raises(FileFormatError, match="<stream>:4: expected UTF-8"):
        list(read_columns(io.BytesIO(data)))
    with pytest.raises(FileFormatError, match="<stream>:4: expected UTF-8"):
        ColumnRows.read(io.BytesIO(data))


def test_one_sequence_longer_than_a_chunk_and_pieces_that_cut_anywhere() -> None:
    class Slow(io.BytesIO):
        def read(self, n: int | None = -1) -> bytes:
            return super().read(7)

    data = b"".join(b"word%d X\n" % n for n in range(40_000)) + b"\n# a b\nlast Y\n"
    assert read_natively(data) == read_lines(data)
    short = data[-2000:]
    rows = ColumnRows.read(Slow(short))
    assert list(rows) == read_lines(short)[0]


def test_labels_packed_files_and_places(tmp_path: Path) -> None:
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(b"# a = b\na X 1\nb Y 2\n\nc X 3\n"))
    rows = ColumnRows.read(path, label_column=1)
    assert (rows.labels, rows[0], rows[-1], rows[0:1]) == (
        [["X", "Y"], ["X"]],
        [("a", "1"), ("b", "2")],
        [("c", "3")],
        [[("a", "1"), ("b", "2")]],
    )
    assert rows.place(1) == f"{path}:5"
    assert (rows.n_columns, rows.n_positions, rows.sequence_ptr.tolist()) == (2, 3, [0, 2, 3])
    assert ColumnRows.read(path).labels is None
    with pytest.raises(IndexError):
        rows[2]
    with pytest.raises(ShapeError, match="there is no label column 3, found 3 columns"):
        ColumnRows.read(path, label_column=3)
    with pytest.raises(ArgumentError, match="must not be empty"):
        ColumnRows.read(path, separator="")
    with pytest.raises(MissingFileError):
        ColumnRows.read(tmp_path / "missing")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match="damaged"):
        ColumnRows.read(path)


def rows_of(n: int, seed: int = 0) -> list[list[tuple[str, str]]]:
    words = ["Rome", "is", "1999", "McDonald's-27", "são", "ß", "İ", "😀", "x", "UPPER", "a-b", "Zürich"]
    source = random.Random(seed)
    return [
        [
            (source.choice(words) + str(source.randrange(40)), source.choice("NVP"))
            for _ in range(source.randint(1, 12))
        ]
        for _ in range(n)
    ]


def written(sequences: Sequence[Sequence[Sequence[str]]]) -> io.BytesIO:
    return io.BytesIO("\n\n".join("\n".join(map("\t".join, rows)) for rows in sequences).encode())


@pytest.mark.parametrize("name", ["names", "chunks", "morphology", "references"])
@pytest.mark.parametrize("n_threads", [2, 7])
def test_ids_do_not_depend_on_the_number_of_threads_nor_on_the_form_of_the_rows(
    name: str, n_threads: int
) -> None:
    template = Template.parse(preset(name).within_columns(2).text + "\ntransition t=%x[-1,1]%lower[0,0]")
    train, test = rows_of(3000), rows_of(2500, 1)
    plain = Encoder(template)
    expected = [plain.fit_encode(train), plain.encode(test)]
    for X, Y in ((train, test), (ColumnRows.read(written(train)), ColumnRows.read(written(test)))):
        encoder = Encoder(template)
        found = [encoder.fit_encode(X, n_threads), encoder.encode(Y, n_threads)]
        assert encoder.vocabulary.names() == plain.vocabulary.names()
        assert encoder.arc_vocabulary.names() == plain.arc_vocabulary.names()
        assert encoder.n_columns == 2
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.sequence_ptr, other.sequence_ptr)
            for features, wanted in ((one.states, other.states), (one.arcs, other.arcs)):
                assert features is not None
                assert wanted is not None
                np.testing.assert_array_equal(features.position_ptr, wanted.position_ptr)
                np.testing.assert_array_equal(features.ids, wanted.ids)
        more = [encoder.extend_encode(test, n_threads), plain.extend_encode(test)]
        np.testing.assert_array_equal(more[0].states.ids, more[1].states.ids)
        plain = Encoder(template)
        plain.fit_encode(train)


@given(
    st.lists(
        st.text(st.characters(codec="utf-8") | st.sampled_from("aZ09-É.,(_$ \n"), max_size=6), max_size=8
    )
)
@settings(max_examples=200, deadline=None)
def test_functions_of_the_core_are_those_of_templates(values: list[str]) -> None:
    names = ["lower", "bare", "shape", "short_shape", "digits", "length", "has_digit", "has_hyphen"]
    names += ["has_upper", "is_title", "is_upper", "is_character", "stripped", "outside"]
    lengths = [f"{b}{e}fix" for b in ("", "lower_", "bare_", "stripped_") for e in ("pre", "suf")]
    lines = (
        [f"U{n}=%{n}[0,0]" for n in names]
        + ["Uends=%outside[-2,0]|%outside[1,0]"]
        + [f"U{n}{k}=%{n}[0,0,{k}]" for n in lengths for k in (1, 3)]
    )
    template = Template.parse("\n".join(lines))
    encoder = Encoder(template)
    dataset = encoder.fit_encode([values])
    found = encoder.vocabulary.names()
    ptr, ids = dataset.states.position_ptr, dataset.states.ids
    for i in range(len(values)):
        assert [found[f] for f in ids[ptr[i] : ptr[i + 1]]] == template.expand(values, i)[0]


def test_a_model_takes_a_column_file_for_a_list_of_rows() -> None:
    train, test = rows_of(60), rows_of(20, 1)
    X = [[row[:1] for row in rows] for rows in train]
    y = [[row[1] for row in rows] for rows in train]
    file = ColumnRows.read(written(train), label_column=-1)
    options: dict[str, Any] = {"features": "pos", "optimizer": "lbfgs"}
    plain = CRF(**options, n_threads=1).fit(X, y, dev=(X, y))
    native = CRF(**options, n_threads=2).fit(file, dev=file)
    assert native.weights_.tobytes() == plain.weights_.tobytes()
    asked = ColumnRows.read(written(test), label_column=-1)
    rows = [[row[:1] for row in sequence] for sequence in test]
    assert native.predict(asked) == plain.predict(rows)
    np.testing.assert_array_equal(native.predict_marginals(asked)[3], plain.predict_marginals(rows)[3])
    assert native.score(asked) == plain.score(rows, asked.labels)
    with pytest.raises(FeatureError, match=r"<stream>:1: the row has 2 columns, expected 1 as in training"):
        native.predict(ColumnRows.read(written(test)))
    with pytest.raises(FeatureError, match="the template reads column 3"):
        CRF(features="U:%x[0,3]").fit(file)


def test_a_model_of_features_made_in_python_reads_the_rows_as_lists() -> None:
    file = ColumnRows.read(io.BytesIO(b"a b X\nc d Y\n\ne f X\n"), label_column=-1)
    crf = CRF().fit(file)
    assert crf.predict(file) == CRF().fit(list(file), file.labels).predict(list(file))
