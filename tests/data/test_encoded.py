"""Files of arrays, and the folders of encoded data sets: read as they were written, damage is named."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit.data import EncodedDataset, open_dataset, read_arrays, read_pairs, write_arrays
from crfkit.errors import FileFormatError, FileVersionError, InputError, MissingFileError
from crfkit.features import encode_pairs

ARRAYS = {
    "a": np.arange(7, dtype=np.int32),
    "b": np.arange(6.0).reshape(2, 3),
    "none": np.zeros((0, 4), np.int64),
    "bytes": np.frombuffer(b"abc", np.uint8),
}


def written(folder: Path) -> EncodedDataset:
    pairs = [([["a", f"w{n}"]] * (n % 3 + 1), ["X"] * (n % 3 + 1)) for n in range(9)]
    return encode_pairs(pairs, folder, shard_size=6)


def test_arrays_are_read_as_they_were_written(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    path = tmp_path / "f"
    checksum = write_arrays(path, ARRAYS, {"n": 3, "names": ["ü"]})
    found = read_arrays(path, check=True)
    assert found.metadata == {"n": 3, "names": ["ü"], "checksum": checksum}
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)
        assert not found.arrays[name].flags.writeable
        assert np.array_equal(load_file(path)[name], array)


def test_any_damage_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_arrays(path, ARRAYS, {"n": 3})
    data, random = path.read_bytes(), np.random.default_rng(0)
    for size in range(0, len(data), 37):
        path.write_bytes(data[:size])
        with pytest.raises(FileFormatError):
            read_arrays(path, check=True)
    header = 8 + int.from_bytes(data[:8], "little")
    for place in random.integers(0, len(data), 300).tolist():
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        if place >= header:
            with pytest.raises(FileFormatError, match="checksum"):
                read_arrays(path, check=True)
            continue
        with suppress(InputError):
            read_arrays(path, check=True)


def test_what_a_data_set_says_of_itself(tmp_path: Path) -> None:
    dataset = written(tmp_path / "d")
    again = open_dataset(str(tmp_path / "d"))
    assert (again.n_sequences, again.n_positions, again.labels) == (9, 18, ["X"])
    assert again.shard_ptr == dataset.shard_ptr == [0, 3, 6, 9]
    assert "9 sequences, 18 positions, 1 labels" in repr(again)
    again.check()


def test_damaged_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    dataset = written(folder)
    shard = dataset.files.shard(1)
    data = shard.read_bytes()
    shard.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FileFormatError, match=r"shard-00001.*checksum"):
        open_dataset(folder).check()
    shard.write_bytes(data[:-8])
    with pytest.raises(FileFormatError, match="copied in part"):
        open_dataset(folder)
    shard.unlink()
    with pytest.raises(FileFormatError, match="is missing"):
        open_dataset(folder)
    other = written(tmp_path / "e")
    shard.write_bytes(other.files.shard(0).read_bytes())
    with pytest.raises(FileFormatError, match=r"damaged or was copied|not the one"):
        open_dataset(folder).check()
    with pytest.raises(MissingFileError):
        open_dataset(tmp_path / "nothing")
    with pytest.raises(MissingFileError, match="not an encoded data set"):
        open_dataset(tmp_path)
    with pytest.raises(FileFormatError, match="expected the folder"):
        open_dataset(dataset.files.head)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "newer"),
        ({"format": "?"}, "not the head"),
        ({"n_sequences": 8}, "as many sequences"),
        ({"n_positions": "8"}, "n_positions"),
        ({"labels": None}, "labels"),
        ({"shards": []}, "no shards"),
        ({"shards": [{"n_bytes": 3}]}, "shard 0"),
        ({"settings": {}}, "min_count"),
    ],
)
def test_a_damaged_head_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    dataset = written(tmp_path / "d")
    dataset.files.head.write_text(json.dumps(dataset.head | change))
    with pytest.raises((FileFormatError, FileVersionError), match=message):
        open_dataset(tmp_path / "d")


def test_pairs_of_column_files(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("the D DET\ndog N NOUN\n\nit P PRON\n")
    assert list(read_pairs(path)) == [
        ([("the", "D"), ("dog", "N")], ["DET", "NOUN"]),
        ([("it", "P")], ["PRON"]),
    ]
    assert next(read_pairs(path, label_column=0)) == ([("D", "DET"), ("N", "NOUN")], ["the", "dog"])
    with pytest.raises(FileFormatError, match="column 3"):
        list(read_pairs(path, label_column=3))
    path.write_text("word\n")
    with pytest.raises(FileFormatError, match="1 column,"):
        list(read_pairs(path))
    path.write_text("a\tb\tX\nc\td\t\n")
    with pytest.raises(FileFormatError, match=":2: the label is empty"):
        list(read_pairs(path))
