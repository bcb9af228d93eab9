"""`read_pieces`: the text of files and streams as it is."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from crfkit.data import read_pieces
from crfkit.errors import FileFormatError, InputError

TEXT = "a\r\nb\n\n\té" + "日本 " * 60_000 + "\x0b\u2028end"


def test_no_character_is_changed_and_pieces_are_short(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    for path in (tmp_path / "a.txt", tmp_path / "a.txt.gz"):
        pieces = list(read_pieces(path))
        assert "".join(pieces) == TEXT
        assert max(map(len, pieces)) <= 1 << 16
    assert "".join(read_pieces(io.BytesIO(TEXT.encode()))) == TEXT
    assert "".join(read_pieces(io.StringIO(TEXT, newline=""))) == TEXT
    assert "".join(read_pieces([bytes([byte]) for byte in "né".encode()])) == "né"


def test_a_byte_order_mark_is_dropped_at_the_start_alone() -> None:
    assert "".join(read_pieces([b"\xef\xbb\xbfa", "\ufeffb".encode()])) == "a\ufeffb"


@pytest.mark.parametrize("data", [b"a\xff", b"a\xc3", b"\x80"])
def test_what_is_no_utf8_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(FileFormatError, match=r"a\.txt:1: expected UTF-8"):
        list(read_pieces(tmp_path / "a.txt"))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        list(read_pieces(tmp_path / "absent.txt"))
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT.encode())[:-20])
    with pytest.raises(FileFormatError, match="damaged"):
        list(read_pieces(tmp_path / "a.gz"))
