"""Encoded data sets hold what training in memory finds, however often the run that writes them is killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit.data import EncodedDataset, open_dataset, read_arrays, read_pairs, write_arrays
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, ShapeError, UnwritableFileError
from crfkit.features import (
    Annotation,
    Dataset,
    Encoder,
    EncodingSettings,
    Labels,
    PairSource,
    Template,
    cut_shards,
    dataset_writer,
    encode_files,
    encode_pairs,
    encode_sources,
    part_encoding,
    read_shard,
)

TEMPLATE = "U0:%x[0,0]\nU2:%x[1,1]\nU1:%x[-1,0]/%x[0,0]\nB\nB1:%x[0,0]\n"


def words(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    """Sequences of rows, with labels of which some are unknown or sets."""
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        length = int(random.integers(1, 6))
        ids = random.zipf(1.6, length) % 40
        labels: list[Any] = [f"L{i % 3}" for i in ids]
        for t in np.flatnonzero(random.random(length) < 0.2).tolist():
            labels[t] = None if random.random() < 0.5 else {"L0", "L2"}
        pairs.append(([(f"w{i}", "c") for i in ids], labels))
    return pairs


def positions(n: int) -> list[tuple[Any, Any]]:
    """Positions in every form: features with values, and dense blocks that some lack."""
    random = np.random.default_rng(1)
    return [
        (
            [
                {"w": str(random.integers(9)), "v": float(t), "d": random.normal(size=2)}
                if k % 4
                else {"w": "0"}
                for t in range(3)
            ],
            ["A", "B", "A"],
        )
        for k in range(n)
    ]


def in_memory(pairs: list[tuple[Any, Any]], template: Template | None, min_count: int) -> Any:
    """The encoder of all sequences at once, its labels, and the data in numbers."""
    encoder = Encoder(template)
    dataset = encoder.fit_encode([x for x, _ in pairs])
    if min_count > 1:
        dataset = encoder.cut(dataset, min_count)
    y = [labels for _, labels in pairs]
    labels = Labels.learn(y)
    return encoder, labels, dataset, labels.encode(y, np.diff(dataset.sequence_ptr))


def same(found: tuple[Dataset, Annotation], dataset: Dataset, annotation: Annotation) -> None:
    """All numbers are equal."""
    assert found[0].dense.keys() == dataset.dense.keys()
    for lists, others in ((found[0].states, dataset.states), (found[0].arcs, dataset.arcs)):
        assert (lists is None) == (others is None)
        for one, other in zip(lists or (), others or (), strict=True):
            assert (one is None) == (other is None)
            assert np.array_equal(np.asarray(one), np.asarray(other))
    for name, block in dataset.dense.items():
        assert np.array_equal(found[0].dense[name], block)
    assert np.array_equal(found[0].sequence_ptr, dataset.sequence_ptr)
    assert np.array_equal(found[1].labels, annotation.labels)
    if annotation.sets is not None and len(annotation.sets.labels):
        assert found[1].sets is not None
        assert np.array_equal(found[1].sets.labels, annotation.sets.labels)
        assert np.array_equal(found[1].sets.position_ptr, annotation.sets.position_ptr)


@pytest.mark.parametrize("min_count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["rows", "positions"])
def test_it_is_what_training_in_memory_finds(tmp_path: Path, kind: str, min_count: int) -> None:
    template = Template.parse(TEMPLATE) if kind == "rows" else None
    pairs = words(60) if kind == "rows" else positions(30)
    found = encode_pairs(iter(pairs), tmp_path / "d", features=template, min_count=min_count, shard_size=17)
    encoder, labels, dataset, annotation = in_memory(pairs, template, min_count)
    names = found.vocabulary()
    for prefix, vocabulary in (("", encoder.vocabulary), ("arc_", encoder.arc_vocabulary)):
        for name, array in zip(("names", "lengths"), vocabulary.to_bytes(), strict=True):
            assert np.array_equal(names[prefix + name], array)
    assert Labels.from_json(found.labels).classes == labels.classes
    ptr = cut_shards(dataset.sequence_ptr, 17)
    assert found.shard_ptr == ptr.tolist()
    assert found.n_shards > 3
    for i, (first, last) in enumerate(pairwise(ptr.tolist())):
        begin, end = dataset.sequence_ptr[[first, last]].tolist()
        same(read_shard(found.shard(i)), dataset.between(first, last), annotation.between(begin, end))


class Killed(BaseException):
    """As a kill ends a run."""


def contents(dataset: EncodedDataset) -> dict[str, bytes]:
    """All files, byte by byte."""
    return {path.name: path.read_bytes() for path in sorted(dataset.path.iterdir())}


def sources(fail_at: int | None = None) -> list[PairSource]:
    """Two sources; reading fails at some sequence."""
    count = iter(range(10**9))

    def read(pairs: list[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        for pair in pairs:
            if next(count) == fail_at:
                raise Killed
            yield pair

    return [
        PairSource("a", lambda: read(words(40, 1)), [1]),
        PairSource("b", lambda: read(words(25, 2)), [2]),
    ]


SETTINGS = EncodingSettings(Template.parse(TEMPLATE), 2, 40)


def test_a_killed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while it reads, and at every file that it writes."""
    whole = encode_sources(sources(), tmp_path / "whole", SETTINGS)
    assert whole.shard_ptr[-2] > 39
    assert 40 in whole.shard_ptr  # no shard has sequences of both
    expected = contents(whole)
    for fail_at in (3, 30, 50):
        out = tmp_path / f"read{fail_at}"
        with pytest.raises(Killed):
            encode_sources(sources(fail_at), out, SETTINGS)
        with pytest.raises(FileFormatError, match="not complete"):
            open_dataset(out)
        assert contents(encode_sources(sources(), out, SETTINGS)) == expected
    write, n_files = write_arrays, 2 * whole.n_shards + 1
    for last in range(n_files):
        left = iter(range(last))

        def stop(*given: Any, left: Iterator[int] = left) -> int:
            if next(left, None) is None:
                raise Killed
            return write(*given)

        out = tmp_path / f"write{last}"
        with monkeypatch.context() as patch:
            patch.setattr(dataset_writer, "write_arrays", stop)
            with pytest.raises(Killed):
                encode_sources(sources(), out, SETTINGS)
        assert contents(encode_sources(sources(), out, SETTINGS)) == expected


def test_finished_parts_are_not_encoded_again_and_damaged_ones_are(tmp_path: Path) -> None:
    expected = contents(encode_sources(sources(), tmp_path / "whole", SETTINGS))
    out = tmp_path / "d"
    with pytest.raises(Killed):
        encode_sources(sources(50), out, SETTINGS)
    parts = sorted(out.glob("part-*"))
    times = {path: path.stat().st_mtime_ns for path in parts}
    with pytest.raises(Killed):
        encode_sources(sources(51 - 40), out, SETTINGS)  # the first source is not read again
    assert {path: path.stat().st_mtime_ns for path in parts} == times
    parts[1].write_bytes(parts[1].read_bytes()[:-3])
    assert contents(encode_sources(sources(), out, SETTINGS)) == expected


def test_a_source_that_changed_is_encoded_again_from_its_beginning(tmp_path: Path) -> None:
    """The run failed in the middle of it: parts of the sources before are kept, its own are not."""
    out = tmp_path / "d"
    first = sources()[0]
    changed = [first, PairSource("b", lambda: words(30, 3), [3])]
    expected = contents(encode_sources(changed, tmp_path / "whole", SETTINGS))
    with pytest.raises(Killed):
        encode_sources(sources(60), out, SETTINGS)
    parts = {path: read_arrays(path, check=True).metadata["source"] for path in sorted(out.glob("part-*"))}
    times = {path: path.stat().st_mtime_ns for path, source in parts.items() if source == 0}
    assert 0 < len(times) < len(parts)
    with pytest.raises(Killed):
        encode_sources([first, sources(3)[1]._replace(identity=[3])], out, SETTINGS)
    assert {path: path.stat().st_mtime_ns for path in sorted(out.glob("part-*"))} == times
    assert contents(encode_sources(changed, out, SETTINGS)) == expected
    shorter = contents(encode_sources([first], tmp_path / "first", SETTINGS))
    with pytest.raises(Killed):
        encode_sources(sources(60), tmp_path / "left", SETTINGS)
    assert contents(encode_sources([first], tmp_path / "left", SETTINGS)) == shorter  # without the other


def column_files(folder: Path) -> list[Path]:
    """Two files, with comments and empty columns."""
    files = [folder / "a.txt", folder / "b.txt"]
    for n, file in enumerate(files):
        sequences = [
            "# text = x\n" * (k % 3 == 0) + "".join(f"{w}\t{'' if k % 5 else c}\tL{w[-1]}\n" for w, c in x)
            for k, (x, _) in enumerate(words(50, n))
        ]
        file.write_text("\n".join(sequences))
    return files


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("features", [Template.parse(TEMPLATE), "pos", None])
def test_files_read_by_the_core_give_the_same_bytes(tmp_path: Path, features: Any, n_threads: int) -> None:
    files = column_files(tmp_path)
    options: dict[str, Any] = {"features": features, "shard_size": 23}
    found = encode_files(files, tmp_path / "rows", n_threads=n_threads, **options)
    settings = EncodingSettings(**options)
    by_line = [PairSource(file.name, partial(read_pairs, file)) for file in files]
    expected = contents(encode_sources(by_line, tmp_path / "lines", settings))
    assert found.n_shards > 8
    numbers = {name: data for name, data in contents(found).items() if name.startswith("shard")}
    assert numbers == {name: data for name, data in expected.items() if name.startswith("shard")}
    assert all(
        np.array_equal(array, open_dataset(tmp_path / "lines").vocabulary()[name])
        for name, array in found.vocabulary().items()
    )


def test_a_killed_run_over_files_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = column_files(tmp_path)
    options: dict[str, Any] = {"features": SETTINGS.features, "shard_size": 23}
    whole = encode_files(files, tmp_path / "whole", **options)
    expected, encode_part = contents(whole), part_encoding.encode_part
    for last in range(0, whole.n_shards, 3):
        left = iter(range(last))

        def stop(*given: Any, left: Iterator[int] = left) -> Any:
            if next(left, None) is None:
                raise Killed
            return encode_part(*given)

        out = tmp_path / f"d{last}"
        with monkeypatch.context() as patch:
            patch.setattr(dataset_writer, "encode_part", stop)
            with pytest.raises(Killed):
                encode_files(files, out, **options)
        assert len([*out.glob("part-*")]) == last
        assert contents(encode_files(files, out, **options)) == expected


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a b\n\nc\n", {}, r"x.txt:3: found 1 column, expected 2"),
        ("a\n", {}, r"x.txt:1: found 1 column, expected input columns and the label"),
        ("a b\n", {"label_column": 2}, r"x.txt:1: found 2 columns, expected .* column 2"),
        ("a\tb\n\nc\td\ne\t\n", {}, r"x.txt:4: the label is empty"),
        ("", {}, r"x.txt: the file is empty"),
    ],
)
def test_errors_of_files_have_their_line(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        encode_files(
            [path], tmp_path / "d", features="pos", separator="\t" if "\t" in text else " ", **options
        )
    with pytest.raises(FileFormatError, match=message):
        list(read_pairs(path, separator="\t" if "\t" in text else " ", **options))


def test_a_complete_data_set_is_left_as_it_is(tmp_path: Path) -> None:
    first = encode_sources(sources(), tmp_path / "d", SETTINGS)
    before = contents(first)
    again = encode_sources(sources(fail_at=0), tmp_path / "d", SETTINGS)
    assert contents(again) == before
    with pytest.raises(ArgumentError, match="another data set"):
        encode_sources(sources(), tmp_path / "d", EncodingSettings(SETTINGS.features, 3, 40))


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArgumentError, match="something else"):
        encode_sources(sources(), tmp_path, SETTINGS)
    out = tmp_path / "d"
    with pytest.raises(Killed):
        encode_sources(sources(30), out, SETTINGS)
    with pytest.raises(ArgumentError, match="unfinished run with other"):
        encode_sources(sources()[1:], out, SETTINGS)
    fcntl = pytest.importorskip("fcntl")
    with (out / "unfinished.json").open("rb") as stream:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX)
        with pytest.raises(UnwritableFileError, match="another process"):
            encode_sources(sources(), out, SETTINGS)


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmptyDataError):
        encode_pairs([], tmp_path / "a")
    with pytest.raises(ArgumentError, match="item 1"):
        encode_pairs([([["a"]], ["A"]), 3], tmp_path / "b")  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="'nothing'"):
        encode_pairs([], tmp_path / "c", features="nothing")
    rows, template = [([("a", "b")], ["A"]), ([("a",)], ["A"])], Template.parse("U0:%x[0,0]\n")
    with pytest.raises(ShapeError, match="column"):
        encode_pairs(rows, tmp_path / "e", features=template, shard_size=1)


def test_column_files(tmp_path: Path) -> None:
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    files[0].write_text("the D DET\ndog N NOUN\n\nit P PRON\n")
    files[1].write_text("a D DET\n")
    found = encode_files(files, tmp_path / "d", features="pos")
    assert (found.n_sequences, found.n_positions, found.labels) == (3, 4, ["DET", "NOUN", "PRON"])
    assert found.shard_ptr == [0, 2, 3]  # a file is never joined with another
    assert found.settings["preset"] == "pos"
    files[1].write_text("another D DET\n")
    with pytest.raises(ArgumentError, match="another data set"):
        encode_files(files, tmp_path / "d", features="pos")
    with pytest.raises(FileNotFoundError):
        encode_files([tmp_path / "none"], tmp_path / "e")
