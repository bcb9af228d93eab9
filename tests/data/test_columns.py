"""Column files: what is read, what counts as a comment, and what is said about bad files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.corpora import find_corpus
from hypothesis import given
from hypothesis import strategies as st

from crfkit.data import AUTO, InputError, read_columns, write_columns
from crfkit.errors import (
    ArgumentError,
    FileFormatError,
    MissingFileError,
    UnreadableFileError,
    UnsavableError,
)


def rows(
    text: str, *, separator: str | None = None, comment: str | None = AUTO
) -> list[list[tuple[str, ...]]]:
    return [s.rows for s in read_columns(io.StringIO(text), separator=separator, comment=comment)]


def test_sequences_end_at_blank_lines() -> None:
    text = "\n\nthe DT B\ndog NN I\n \t\n\nbarks VBZ O\n"
    first, second = read_columns(io.StringIO(text))
    assert (first.rows, first.line, first.comments) == ([("the", "DT", "B"), ("dog", "NN", "I")], 3, [])
    assert (second.rows, second.line) == ([("barks", "VBZ", "O")], 7)
    assert first.source == "<stream>"
    assert second.place(0) == "<stream>:7"


def test_runs_of_blanks_separate() -> None:
    assert rows("  a   b\nc \t d  \ne\tf\n") == [[("a", "b"), ("c", "d"), ("e", "f")]]


def test_other_white_space_belongs_to_words() -> None:
    assert rows("20\u00a0000 CD\na\u2028b\u3000 X\n") == [[("20\u00a0000", "CD"), ("a\u2028b\u3000", "X")]]


def test_tabs_of_the_first_row_decide() -> None:
    assert rows("New York\tLOC\n\tO\n") == [[("New York", "LOC"), ("", "O")]]
    assert next(read_columns(io.StringIO("a\tb\n"))).separator == "\t"
    assert next(read_columns(io.StringIO("a b\n"))).separator == " "
    with pytest.raises(FileFormatError, match="<stream>:2"):
        rows("a\tb\nc d\n")


def test_a_given_separator() -> None:
    assert rows("a b|c\n|d", separator="|") == [[("a b", "c"), ("", "d")]]
    for bad in ({"separator": ""}, {"comment": ""}):
        with pytest.raises(ArgumentError, match="must not be empty"):
            rows("a", **bad)


def test_words_that_look_like_comments() -> None:
    # As in CoNLL-2000, also as the first row of a sequence and of the file.
    text = "# # B-NP\n5 CD I-NP\n\n# # B-NP\nin IN O\n# # O\n"
    for comment in (AUTO, None):
        assert rows(text, comment=comment) == [
            [("#", "#", "B-NP"), ("5", "CD", "I-NP")],
            [("#", "#", "B-NP"), ("in", "IN", "O"), ("#", "#", "O")],
        ]


def test_comments_before_a_sequence() -> None:
    text = "# one\n# text = a b\n#\n\na X Y Z\n\n# sent_id = 2\n#newpar\n# # # O\nb X Y Z\n# i = O\n\n# end\n"
    first, second = read_columns(io.StringIO(text))
    assert first.comments == ["# one", "# text = a b", "#"]  # a comment waits for the next sequence
    assert first.rows == [("a", "X", "Y", "Z")]
    assert second.comments == ["# sent_id = 2", "#newpar"]
    assert second.rows == [("#", "#", "#", "O"), ("b", "X", "Y", "Z"), ("#", "i", "=", "O")]
    assert second.line == 9


def test_comments_of_a_file_with_tabs() -> None:
    # Ten blank-separated pieces are still one column here, and not the ten of the file.
    ten = "\t".join("abcdefghij")
    text = f"# x one two three four five six seven eight\n{ten}\n"
    (sequence,) = read_columns(io.StringIO(text))
    assert len(sequence.comments) == len(sequence.rows) == 1


def test_a_named_prefix_is_a_comment_everywhere() -> None:
    text = "% head\na X\n% middle\nb X\n% twice\n% more\nc X\n"
    (sequence,) = read_columns(io.StringIO(text), comment="%")
    assert sequence.rows == [("a", "X"), ("b", "X"), ("c", "X")]
    assert sequence.comments == ["% head", "% middle", "% twice", "% more"]
    assert [sequence.place(i) for i in range(3)] == ["<stream>:2", "<stream>:4", "<stream>:7"]
    with pytest.raises(FileFormatError, match=r"<stream>:2: .*comment='#'"):
        rows("a b c\n# note\n")


@pytest.mark.parametrize(
    ("text", "comment", "words"),
    [
        ("", AUTO, "f.txt: the file is empty"),
        ("\n \n", AUTO, "f.txt: the file has only blank lines"),
        ("# a\n\n# b\n", AUTO, "f.txt: the file has only comments"),
        ("a b\nc\n", AUTO, "f.txt:2: found 1 column, expected 2 as in the first row of the file"),
        ("a\n\nb c d\n", AUTO, "f.txt:3: found 3 columns, expected 1"),
        ("# a b\nc\n", None, "f.txt:2: found 1 column, expected 3"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, comment: str | None, words: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError) as caught:
        list(read_columns(path, comment=comment))
    assert str(caught.value).startswith(f"{tmp_path}/{words}")


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"a X\n\ncaf\xe9 X\n")
    reader = read_columns(path)
    assert next(reader).rows == [("a", "X")]
    with pytest.raises(FileFormatError, match=r"latin\.txt:3"):
        next(reader)
    with (
        path.open(encoding="utf-8") as stream,
        pytest.raises(FileFormatError, match=r"latin\.txt: the text after line 0 is not UTF-8"),
    ):
        list(read_columns(stream))


def test_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbfa X\r\nb\rc Y\r\n\r\nd Z\r\n")
    wanted = [[("a", "X"), ("b\rc", "Y")], [("d", "Z")]]
    assert [s.rows for s in read_columns(path)] == wanted
    with path.open("rb") as stream:
        sequences = list(read_columns(stream))
    assert [s.rows for s in sequences] == wanted
    assert sequences[0].source == str(path)
    assert rows("\ufeffa X\n") == [[("a", "X")]]


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), ("", bytes)]
)
def test_packed_files(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack("é X\n\n".encode() * 1000)
    path = tmp_path / f"f.txt{ending}"
    path.write_bytes(packed)
    sequences = list(read_columns(path))
    assert len(sequences) == 1000
    assert sequences[-1].rows == [("é", "X")]
    if ending:
        path.write_bytes(packed[: len(packed) // 2])
        with pytest.raises(FileFormatError, match=r"f\.txt\.\w+: the compressed file is damaged"):
            list(read_columns(path))
        path.write_bytes(b"plain X\n")
        with pytest.raises(InputError, match=r"f\.txt\.\w+: (cannot be read|the compressed file is damaged)"):
            list(read_columns(str(path)))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        list(read_columns(tmp_path / "absent.txt"))
    with pytest.raises(UnreadableFileError):
        list(read_columns(tmp_path))


def test_reading_is_a_stream() -> None:
    taken: list[bytes] = []

    class Endless(io.BytesIO):
        def __next__(self) -> bytes:
            taken.append(b"a X\n" if len(taken) % 2 == 0 else b"\n")
            return taken[-1]

    assert len(list(islice(read_columns(Endless()), 3))) == 3
    assert len(taken) == 6


VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r \ufeff"), min_size=1, max_size=4)


@given(st.data(), st.integers(2, 4), st.sampled_from("\t "))
def test_what_is_written_is_read(data: st.DataObject, n_columns: int, separator: str) -> None:
    row = st.tuples(*[VALUES] * n_columns)
    sequences = data.draw(st.lists(st.lists(row, min_size=1, max_size=3), min_size=1, max_size=3))
    stream = io.StringIO(newline="\n")
    for sequence in sequences:
        write_columns(sequence, stream, separator=separator)
    assert rows(stream.getvalue(), separator="\t" if separator == "\t" else None, comment=None) == sequences


@pytest.mark.parametrize(("value", "separator"), [("a\tb", "\t"), ("a b", " "), ("", " "), ("a\nb", "\t")])
def test_what_cannot_be_written(value: str, separator: str) -> None:
    stream = io.StringIO()
    with pytest.raises(UnsavableError, match="position 1"):
        write_columns([("a", "b"), ("a", value)], stream, separator=separator)
    write_columns([("a b", "c")], stream := io.StringIO(), comments=["# x = y"])
    assert stream.getvalue() == "# x = y\na b\tc\n\n"


def test_arguments_in_the_wrong_order_are_an_error() -> None:
    with pytest.raises(InputError, match="type list, expected a file"):
        write_columns("out.txt", [("a", "b")])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("corpus", "file", "counts"),
    [
        # sequences, rows, columns, rows that begin with #, comments
        ("conll2000", "train.txt", (8936, 211727, 3, 36, 0)),
        ("conll2000", "test.txt", (2012, 47377, 3, 11, 0)),
        ("conll2002", "esp.testa", (1915, 52923, 3, 0, 0)),
        ("conll2002", "ned.testb", (5195, 68994, 3, 0, 0)),
        ("ud_english_ewt", "en_ewt-ud-dev.conllu", (2001, 25510, 10, 0, 5070)),
    ],
)
def test_real_corpora(corpus: str, file: str, counts: tuple[int, ...]) -> None:
    path = find_corpus(corpus, file)
    if path is None:
        pytest.skip(f"the corpus {corpus} is not on this machine")
    sequences = list(read_columns(path))
    assert counts == (
        len(sequences),
        sum(len(s.rows) for s in sequences),
        len(sequences[0].rows[0]),
        sum(row[0] == "#" for s in sequences for row in s.rows),
        sum(len(s.comments) for s in sequences),
    )


def test_a_ragged_file_keeps_its_lines() -> None:
    text = "a  b\nc\td e\n# f\n\n# key = value\ng\n"
    first, second = read_columns(io.StringIO(text), separator=" ", ragged=True)
    assert first.rows == [("a", "b"), ("c", "d", "e"), ("#", "f")]
    assert first.lines == ("a  b", "c\td e", "# f")
    assert (second.rows, second.comments) == ([("g",)], ["# key = value"])
    assert [
        len(found.rows) for found in read_columns(io.StringIO(text), separator=" ", ragged=True, comment=None)
    ] == [
        3,
        2,
    ]
