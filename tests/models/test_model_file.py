"""The model file as a container: what is written comes back, and what cannot be read raises a clear error."""

from __future__ import annotations

import json
import os
import pickle
import stat
import zlib
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from crfkit.data import InputError, check_writable, replacing
from crfkit.errors import FileFormatError, MissingFileError, UnsavableError, UnwritableFileError
from crfkit.features import Encoder, FeatureMap, Labels, Vocabulary
from crfkit.models.files.crf_file import Contents, pack, unpack
from crfkit.models.files.disk import read_bytes
from crfkit.models.files.model_file import VERSION, ModelFile, compress, decode, decompress, encode

MODEL = ModelFile(
    "CRF",
    {"labels": ["a", "ß"], "l2": 0.1},
    {
        "weights": np.array([1.5, -2.0]),
        "ids": np.arange(6, dtype=np.uint16).reshape(2, 3),
        "none": np.zeros(0, np.uint8),
    },
)


def with_metadata(**metadata: str) -> bytes:
    return safetensors.numpy.save(
        {"weights": np.zeros(2)}, metadata={f"crfkit.{k}": v for k, v in metadata.items()}
    )


def test_what_is_written_comes_back() -> None:
    back = decode(encode(MODEL))
    assert back.type == MODEL.type
    assert back.settings == MODEL.settings
    assert back.arrays.keys() == MODEL.arrays.keys()
    for name, array in MODEL.arrays.items():
        assert back.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(back.arrays[name], array)


def test_half_a_surrogate_pair_is_refused_with_a_message() -> None:
    with pytest.raises(UnsavableError):
        encode(MODEL._replace(settings={"labels": ["\ud800"]}))


def test_the_same_model_gives_the_same_bytes() -> None:
    shuffled = ModelFile(MODEL.type, MODEL.settings, dict(reversed(MODEL.arrays.items())))
    assert encode(MODEL) == encode(shuffled)


def test_other_readers_of_the_format_can_open_it(tmp_path: Path) -> None:
    path = tmp_path / "m.crf"
    path.write_bytes(encode(MODEL))
    with safetensors.safe_open(path, framework="numpy") as opened:
        assert opened.metadata()["crfkit.type"] == "CRF"
        assert opened.metadata()["crfkit.version"] == str(VERSION)
        np.testing.assert_array_equal(opened.get_tensor("weights"), MODEL.arrays["weights"])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"\x00", "not a crfkit model file"),
        (b"hello world, this is a text", "not a crfkit model file"),
        (pickle.dumps({"a": 1}), "looks like a pickle"),
        (b"lCRF" + bytes(100), "looks like a CRFsuite model"),
        (b"PK\x03\x04" + bytes(100), "looks like a zip archive"),
        (b"\x1f\x8b" + bytes(100), "looks like a gzip archive"),
        (encode(MODEL)[:-1], "truncated or damaged"),
        (encode(MODEL)[:100], "truncated: it has 100 bytes"),
        (safetensors.numpy.save({"weights": np.zeros(2)}), "not of crfkit"),
        (with_metadata(type="CRF"), "not of crfkit"),
        (
            with_metadata(type="CRF", version="2"),
            "newer crfkit .file version 2; this one reads up to 1",
        ),
        (with_metadata(type="CRF", version="-1"), "'-1', expected a whole number"),
        (with_metadata(type="CRF", version="٣"), "expected a whole number"),
        (with_metadata(type="CRF", version="1" * 5000), "expected a whole number"),
        (with_metadata(type="CRF", version="1", settings="{"), "settings of the model file are damaged"),
        (with_metadata(type="CRF", version="1", settings="[]"), "not an object"),
        (with_metadata(type="CRF", version="1", settings='{"l2": NaN}'), "NaN is not a number"),
        (
            with_metadata(type="CRF", version="1", settings='{"labels": ["\\ud800"]}'),
            "surrogates not allowed",
        ),
        (
            with_metadata(type="CRF", version="1", settings='{"a":' * 100_000),
            "settings of the model file are damaged",
        ),
        (
            with_metadata(type="CRF", version="1", settings='{"a":' + "9" * 5000 + "}"),
            "settings .* are damaged",
        ),
    ],
)
def test_what_is_no_model_file_is_refused_with_a_message(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        decode(data, "my.crf")
    assert str(caught.value).startswith("my.crf: ")


def test_a_type_of_number_that_models_do_not_use_is_refused() -> None:
    data = safetensors.numpy.save(
        {"weights": np.zeros(2, np.float16)}, metadata={"crfkit.type": "CRF", "crfkit.version": "1"}
    )
    with pytest.raises(FileFormatError, match="'weights' has type F16, expected one of F64"):
        decode(data)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2**62]},
        {"shape": [0, 2**62]},
        {"shape": [-1]},
        {"data_offsets": [0, 2**63]},
        {"dtype": "Q8"},
        {"shape": []},
    ],
)
def test_declared_shapes_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    data = encode(MODEL)
    n_header = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n_header])
    header["weights"].update(change)
    text = json.dumps(header).encode()
    with pytest.raises(FileFormatError, match="truncated or damaged"):
        decode(len(text).to_bytes(8, "little") + text + data[8 + n_header :])


def test_an_empty_array_of_an_impossible_shape_is_refused() -> None:
    data = encode(MODEL)
    n_header = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n_header])
    header["none"]["shape"] = [0, 2**62, 4]
    text = json.dumps(header).encode()
    with pytest.raises(FileFormatError, match="array 'none' has the shape"):
        decode(len(text).to_bytes(8, "little") + text + data[8 + n_header :])


@pytest.mark.parametrize("data", [b"", b"word\n" * 1000, bytes(range(256)), bytes(6_000_000)])
def test_compressed_text_comes_back(data: bytes) -> None:
    assert decompress(compress(data), len(data), "names") == data


def test_a_compressed_text_never_unfolds_beyond_what_it_declares() -> None:
    bomb = np.frombuffer(zlib.compress(bytes(4_000_000)), np.uint8)
    for size in (0, 10, 3_999_999, 4_000_001):
        with pytest.raises(FileFormatError, match="do not unfold to the declared"):
            decompress(bomb, size, "names")
    for size in (-1, 2**31, 2**63):
        with pytest.raises(FileFormatError, match="may not unfold to"):
            decompress(bomb, size, "names")
    with pytest.raises(FileFormatError, match="3 compressed bytes may not unfold to 5,000,000"):
        decompress(bomb[:3], 5_000_000, "names")


def test_a_compressed_text_unfolds_to_a_bounded_multiple_of_its_length() -> None:
    size = 20_000_000
    bomb = np.frombuffer(zlib.compress(bytes(size), 9), np.uint8)
    assert len(bomb) < 20_000
    with pytest.raises(FileFormatError, match="compressed bytes may not unfold to 20,000,000"):
        decompress(bomb, size, "names")


def test_damaged_compressed_text_is_refused() -> None:
    good = zlib.compress(b"word\n" * 100)
    for data in (b"", b"xx", good[:-1], good + b"x", good[:10] + b"\xff" + good[11:]):
        with pytest.raises(FileFormatError, match="names"):
            decompress(np.frombuffer(data, np.uint8), 500, "names")
    with pytest.raises(FileFormatError, match="expected a list of bytes"):
        decompress(np.zeros((2, 2), np.uint8), 4, "names")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "m.crf"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), replacing(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["m.crf"]


def test_ctrl_c_before_the_first_byte_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(stream: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("crfkit.data.drafts._lock", interrupt)
    for attempt in (lambda path: replacing(path).__enter__(), check_writable):
        with pytest.raises(KeyboardInterrupt):
            attempt(tmp_path / "m.crf")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    with replacing(tmp_path / "m.crf") as stream:
        stream.write(b"new")
    assert stat.S_IMODE((tmp_path / "m.crf").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "usual").stat().st_mode
    )


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "m.crf")
    with replacing(tmp_path / "link") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "m.crf").read_bytes() == b"new"


def test_a_device_is_written_not_replaced() -> None:
    with replacing("/dev/null") as stream:
        stream.write(b"new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_pipe_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a name and without; looking whether it can be written opens none: its reader would read the end."""
    os.mkfifo(tmp_path / "pipe")
    named = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    unnamed, end = os.pipe()
    for path, reader in ((tmp_path / "pipe", named), (Path(f"/dev/fd/{end}"), unnamed)):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", lambda *_: pytest.fail("opened"))
            check_writable(path)
        with replacing(path) as stream:
            stream.write(b"new")
        assert os.read(reader, 10) == b"new"
    assert os.listdir(tmp_path) == ["pipe"]
    for descriptor in (named, unnamed, end):
        os.close(descriptor)


@pytest.mark.parametrize("name", ["", "no/such/folder/m.crf", "file/m.crf", "x" * 300])
def test_an_unwritable_path_is_refused_before_any_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableFileError):
        check_writable(tmp_path / name)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["x" * 255, "字" * 85, "é" * 127])
def test_names_may_be_as_long_as_the_system_allows(tmp_path: Path, name: str) -> None:
    check_writable(tmp_path / name)
    with replacing(tmp_path / name) as stream:
        stream.write(b"new")
    assert os.listdir(tmp_path) == [name]


def test_looking_whether_a_path_is_writable_leaves_no_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "m.crf")
    (tmp_path / "old.crf").write_bytes(b"old")
    check_writable(tmp_path / "old.crf")
    assert os.listdir(tmp_path) == ["old.crf"]
    assert (tmp_path / "old.crf").read_bytes() == b"old"


def test_what_cannot_be_read_is_refused_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_bytes(tmp_path / "absent.crf")
    with pytest.raises(FileFormatError, match="not a file"):
        read_bytes(tmp_path)


def test_a_large_model_is_small_on_disk_and_quick_to_open(tmp_path: Path) -> None:
    """As many features and weights as CoNLL-2000 chunking has."""
    random = np.random.default_rng(0)
    n_features, n_labels, n_pairs = 335_000, 22, 453_000
    vocabulary = Vocabulary()
    for k in range(n_features):
        vocabulary.add(f"U{k % 20:02}:word{k // 20:x}/{k * 7919 % 5000:x}")
    counts = np.ones(n_features, np.int64)
    counts[: n_pairs - n_features] += 1
    labels = random.integers(0, n_labels - 1, n_pairs)
    labels[1 : 2 * (n_pairs - n_features) : 2] = labels[0 : 2 * (n_pairs - n_features) : 2] + 1  # ascending
    before, after = np.divmod(np.arange(n_labels**2), n_labels)
    none, zero = np.zeros(0, np.int32), np.zeros(1, np.int64)
    ptr, pairs = np.concatenate([[0], np.cumsum(counts)]), labels.astype(np.int32)
    arcs = (before.astype(np.int32), after.astype(np.int32))
    contents = Contents(
        settings={"parameters": {"structure": {}}, "functions": None},
        labels=Labels(f"L{k}" for k in range(n_labels)),
        encoder=Encoder(None, vocabulary),
        feature_map=FeatureMap(n_labels, ptr, pairs, {}, *arcs, zero, none),
        weights=random.normal(size=n_pairs + n_labels**2),
        history=np.zeros((0, 4)),
    )
    path = tmp_path / "m.crf"
    with replacing(path) as stream:
        stream.write(encode(pack(contents)))
    assert path.stat().st_size <= 10_000_000
    began = process_time()
    back = unpack(decode(read_bytes(path)))
    assert process_time() - began < 0.5
    np.testing.assert_array_equal(back.weights, contents.weights)
    assert back.encoder.vocabulary.names() == vocabulary.names()
    for name in ("pair_ptr", "pair_labels", "arc_before", "arc_after"):
        found, expected = (getattr(one.feature_map, name) for one in (back, contents))
        np.testing.assert_array_equal(found, expected)
