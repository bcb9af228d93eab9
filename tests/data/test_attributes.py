"""CRFsuite's attribute files."""

from __future__ import annotations

import io
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import CRF, InputError
from crfkit.data import AttributeSequence, read_attributes, write_attributes
from crfkit.errors import FileFormatError, UnsavableError

TEXT = "B-NP\tw=the\tlen:3\nI-NP\tw=a\\:b\tp\\\\q:0.5\tw=a\\:b\n\n\nO\n\nB-NP\tx\tx"


def read(text: str | bytes) -> list[AttributeSequence]:
    return list(read_attributes(io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text)))


def test_labels_attributes_and_values() -> None:
    first, second, third = read(TEXT)
    assert first.labels == ["B-NP", "I-NP"]
    assert first.items == [{"w=the": 1.0, "len": 3.0}, {"w=a:b": 2.0, "p\\q": 0.5}]
    assert (second.items, second.labels, second.line) == ([[]], ["O"], 5)
    assert third.items == [["x", "x"]]
    assert [sequence.line for sequence in (first, second, third)] == [1, 5, 7]


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("L\ta:1", ["a"]),
        ("L\ta:-1e3", {"a": -1000.0}),
        ("L\ta\\", ["a\\"]),
        ("L\t1\\/2", ["1\\/2"]),
        ("L\ta\\\\:2", {"a\\": 2.0}),
        ("L\ta\\\\\\:2", ["a\\:2"]),
        ("L\ta:", ["a"]),
        ("L\ta\r", ["a"]),
        ("L\t\t\tb\t", ["b"]),
        ("L\t:2", {"": 2.0}),
        ("L a\tb", ["b"]),
    ],
)
def test_corners(line: str, item: Any) -> None:
    assert read(line)[0].items == [item]


@pytest.mark.parametrize("value", ["x", "nan", "inf", "1e21", "1:2", "1_000", "３"])
def test_values_that_are_no_numbers_are_refused(value: str) -> None:
    with pytest.raises(FileFormatError, match="<stream>:2"):
        read(f"L\tb\nL\ta:{value}\n")


def test_files_train_a_model(tmp_path: Path) -> None:
    path = tmp_path / "train.crfsuite.txt"
    path.write_text("D\tw=the\nN\tw=dog\tlen:3\n\nD\tw=a\nN\tw=cat\n")
    sequences = list(read_attributes(path))
    X, y = [sequence.items for sequence in sequences], [sequence.labels for sequence in sequences]
    assert CRF(l2=0.1).fit(X, y).predict(X) == y


NAMES = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1)
ITEMS = st.one_of(
    st.lists(NAMES), st.dictionaries(NAMES, st.floats(-1e19, 1e19).filter(lambda x: x != 1.0), min_size=1)
)


@given(st.lists(st.tuples(NAMES, ITEMS), min_size=1))
def test_what_is_written_is_read_again(sequence: list[tuple[str, Any]]) -> None:
    labels, items = [label for label, _ in sequence], [item for _, item in sequence]
    stream = io.StringIO()
    write_attributes(items, labels, stream)
    stream.seek(0)
    if labels[0].startswith("\ufeff"):
        return  # a byte order mark at the start of a file is dropped
    [again] = read_attributes(stream)
    assert again.labels == labels
    assert again.items == items


def test_names_that_no_file_can_hold_are_refused() -> None:
    with pytest.raises(UnsavableError):
        write_attributes([["a\tb"]], ["L"], io.StringIO())


def mutants(n: int, seed: int) -> Any:
    r = random.Random(seed)
    original = (
        TEXT + "\n" + "".join(f"L{i % 5}\tw={i}\tn\\:{i}:{i}.5\n" + "\n" * (i % 7 == 0) for i in range(60))
    ).encode()
    pieces = [
        b"\t",
        b"\n",
        b":",
        b"\\",
        b"\xff",
        b"1e400",
        b"\xe2\x82",
        b"\0",
        b"::::",
        b"\r\n",
        b"\\\\\\",
        b"9" * 400,
    ]
    for _ in range(n):
        data = bytearray(original)
        for _ in range(r.choice([1, 2, 10])):
            at = r.randrange(len(data))
            data[at : at + r.randrange(12)] = (
                r.choice(pieces) if r.random() < 0.7 else r.randbytes(r.randrange(8))
            )
        yield bytes(data[: r.randrange(len(data))] if r.random() < 0.2 else data)


def fate(data: bytes) -> str:
    """What becomes of a file that is read sequence by sequence."""
    try:
        for _ in read_attributes(io.BytesIO(data)):
            pass
    except InputError as error:
        return "refused" if str(error).startswith("<stream>") else f"refused with {error!r}"
    return "read"


def check_mutants(n: int, seed: int) -> None:
    """Every file gives sequences or an InputError; every 50th is measured, and takes little memory."""
    answers = set()
    for i, data in enumerate(mutants(n, seed)):
        if i % 50:
            answers.add(fate(data))
            continue
        tracemalloc.start()
        answers.add(fate(data))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * len(data) + 2**16
    assert answers == {"read", "refused"}


def test_mutated_files_are_read_or_refused() -> None:
    check_mutants(2000, seed=1)


@pytest.mark.slow
def test_a_hundred_thousand_mutated_files_are_read_or_refused() -> None:
    check_mutants(100_000, seed=2)
