"""Data that workers read: column files, encoded data sets, bags and delayed objects."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dask.bag import from_sequence
from dask.delayed import delayed

from crfkit import CRF, LBFGS, Chain, Checkpoint, Pattern, Patterns, Template
from crfkit.data import open_dataset
from crfkit.distributed import MissingDataError, fit
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.worker_dataset import WorkerDataset
from crfkit.errors import EmptyDataError, FileFormatError, ShapeError
from crfkit.features import EncodingSettings, PairSource, encode_files, encode_sources
from tests.distributed.data import random_data
from tests.distributed.processes import wait_until

X, y = random_data()
TEMPLATE = Template("U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,0]/%x[0,0]\nB")
OPTIMIZER = LBFGS(max_iterations=5)


def write_columns(path: Path, first: int, last: int) -> Path:
    """Some of the sequences as a column file."""
    text = "".join(
        "".join(f"{p[1]}\t{p[2]}\t{label}\n" for p, label in zip(x, labels, strict=True)) + "\n"
        for x, labels in zip(X[first:last], y[first:last], strict=True)
    )
    path.write_text(text)
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    ends = (0, 13, 14, 40, len(X))
    return [write_columns(tmp_path / f"{i}.txt", ends[i], ends[i + 1]) for i in range(4)]


@pytest.mark.parametrize("min_count", [1, 2])
def test_files_have_the_ids_of_one_process(
    client: Any, files: list[Path], tmp_path: Path, min_count: int
) -> None:
    settings = EncodingSettings(TEMPLATE, min_count, 60)
    alone = encode_files(files, tmp_path / "alone", features=TEMPLATE, min_count=min_count, shard_size=60)
    together = WorkerDataset(Cluster(client), files, settings)
    assert together.n_shards > 4
    plan = {"plan": alone.head["plan"]}
    assert together.head | plan == alone.head  # with checksums
    for name, array in alone.vocabulary().items():
        assert together.vocabulary()[name].tobytes() == array.tobytes()
    for i in (0, 3):
        assert {name: array.tobytes() for name, array in together.shard(i).items()} == {
            name: array.tobytes() for name, array in alone.shard(i).items()
        }


def test_files_are_trained_on_with_the_bits_of_one_process(client: Any, files: list[Path]) -> None:
    alone = CRF(features=TEMPLATE, optimizer=OPTIMIZER).fit(files, shard_size=60)
    together = fit(client, CRF(features=TEMPLATE, optimizer=OPTIMIZER), files, shard_size=60)
    assert together.weights_.tobytes() == alone.weights_.tobytes()
    assert together.encoder_.vocabulary.names() == alone.encoder_.vocabulary.names()
    rows = [[tuple(p[1:]) for p in x] for x in X]
    assert together.predict(rows) == alone.predict(rows)


@pytest.mark.parametrize(
    "settings",
    [
        {"structure": Chain(bigrams="observed")},
        {"all_possible_states": True, "all_possible_transitions": True},
        {"min_count": 2, "l1": 0.1},
        {"hash_bits": 8},
        {"structure": Patterns(["B-X I-X O"])},
    ],
    ids=["bigrams", "all-possible", "rare", "hashing", "patterns"],
)
def test_settings_have_the_bits_of_one_process(
    client: Any, files: list[Path], settings: dict[str, Any]
) -> None:
    settings = {"features": TEMPLATE, "optimizer": OPTIMIZER, **settings}
    alone = CRF(**settings).fit(files, shard_size=60)
    together = fit(client, CRF(**settings), files, shard_size=60)
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_files_pass_neither_the_disk_nor_the_memory_of_the_client(
    client: Any, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client opens no file, and no array of a shard arrives there."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the client reads or writes")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    monkeypatch.setattr("crfkit.data.array_files.write_file", refuse)
    monkeypatch.setattr(WorkerDataset, "shard", refuse)
    monkeypatch.setattr("crfkit.distributed.encoding.read_row_shards", refuse)
    fit(client, CRF(features=TEMPLATE, optimizer=OPTIMIZER), files, shard_size=60)


def test_workers_forget_shards_that_are_loaded(client: Any, files: list[Path]) -> None:
    held: set[str] = set()

    def look(step: Any) -> None:
        if step.iteration == 5:
            wait_until(only_losses, "workers to forget shards")

    def only_losses() -> bool:
        held.clear()
        for keys in client.run(lambda dask_worker: list(dask_worker.data)).values():
            held.update(key.split("-")[0] for key in keys)
        return not held & {"encode", "renumber", "make_recipe", "JointParts"}

    fit(client, CRF(features=TEMPLATE, optimizer=OPTIMIZER), files, shard_size=60, callback=look)
    assert "crfkit_load" in held


def test_a_run_on_one_machine_goes_on_on_a_cluster(client: Any, files: list[Path], tmp_path: Path) -> None:
    def model(n: int) -> CRF[str]:
        return CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=n, tolerance=0.0))

    keep = Checkpoint(tmp_path / "run", every=2, resume=True)
    model(4).fit(files, shard_size=60, checkpoint=keep)
    together = fit(client, model(8), files, shard_size=60, checkpoint=keep)
    assert together.weights_.tobytes() == model(8).fit(files, shard_size=60).weights_.tobytes()


def test_models_that_look_at_the_sequences(client: Any, files: list[Path]) -> None:
    settings: dict[str, Any] = {"features": TEMPLATE, "optimizer": OPTIMIZER}
    gated = Patterns([Pattern(". .", when="%suffix[0,1,1]=3")])
    alone = CRF(gated, **settings).fit(files, shard_size=60)
    together = fit(client, CRF(gated, **settings), files, shard_size=60)
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_states_of_span_labels(client: Any, tmp_path: Path) -> None:
    """What the files of all workers hold decides: labels of BIO have states, those of IOB1 have none."""
    settings: dict[str, Any] = {"features": "chunks", "optimizer": OPTIMIZER}
    for first, states in (("B", "iobes"), ("I", None)):
        paths = []
        for name, begins in (("one", "B"), ("two", first)):
            paths.append(tmp_path / name)
            paths[-1].write_text(f"a {begins}-X\nb I-X\nc O\n\n" * 9 + "a B-X\na B-X\n\n", encoding="utf-8")
        together = fit(client, CRF(**settings), paths, shard_size=9)
        assert together.span_states_ == states
        assert together.weights_.tobytes() == CRF(**settings).fit(paths, shard_size=9).weights_.tobytes()


@pytest.mark.parametrize("own", [{"tag_dictionary": True}, {"margin": 1.5}], ids=str)
def test_tag_dictionaries_and_margins(
    client: Any, files: list[Path], tmp_path: Path, own: dict[str, Any]
) -> None:
    """Of files that workers read, and of a data set."""
    settings: dict[str, Any] = {"optimizer": OPTIMIZER, **own}
    alone = CRF(features=TEMPLATE, **settings).fit(files, shard_size=60)
    together = fit(client, CRF(features=TEMPLATE, **settings), files, shard_size=60)
    assert together.weights_.tobytes() == alone.weights_.tobytes()
    dataset = encode_files(files, tmp_path / "d", features=TEMPLATE, shard_size=60, word_column=0)
    together = fit(client, CRF(**settings), dataset)
    assert together.weights_.tobytes() == alone.weights_.tobytes()
    plain = CRF(features=TEMPLATE, optimizer=OPTIMIZER).fit(files, shard_size=60)
    assert plain.weights_.tobytes() != alone.weights_.tobytes()


def test_an_encoded_data_set_is_read_by_workers(client: Any, files: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "data"
    dataset = encode_files(files, folder, features=TEMPLATE, shard_size=60)
    alone = CRF(optimizer=OPTIMIZER).fit(dataset)
    together = fit(client, CRF(optimizer=OPTIMIZER), open_dataset(folder))
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_bags_and_delayed_objects(client: Any, tmp_path: Path) -> None:
    pairs = list(zip(X, y, strict=True))
    cut = [pairs[:20], pairs[20:45], pairs[45:]]
    sources = [PairSource(str(i), partial(list, part)) for i, part in enumerate(cut)]
    here = encode_sources(sources, tmp_path / "here", EncodingSettings(shard_size=70))
    there = fit(client, CRF(optimizer=OPTIMIZER), [delayed(part) for part in cut], shard_size=70)
    assert here.n_shards > 4
    assert there.weights_.tobytes() == CRF(optimizer=OPTIMIZER).fit(here).weights_.tobytes()
    # A shard ends where a part ends, as with files.
    alone = CRF(optimizer=OPTIMIZER)
    alone = fit(client, alone, [delayed(part) for part in cut], shard_size=10**6)
    sizes = [len(part) for part in cut]
    assert sizes == [20, 25, 15]
    together = fit(
        client, CRF(optimizer=OPTIMIZER), from_sequence(pairs, partition_size=20), shard_size=10**6
    )
    assert together.encoder_.vocabulary.names() == alone.encoder_.vocabulary.names()
    whole = CRF(optimizer=OPTIMIZER).fit(iter(pairs), shard_size=10**6)
    one = fit(client, CRF(optimizer=OPTIMIZER), from_sequence(pairs, npartitions=1), shard_size=10**6)
    assert one.weights_.tobytes() == whole.weights_.tobytes()
    assert abs(alone.weights_ - whole.weights_).max() < 1e-6
    assert abs(together.weights_ - whole.weights_).max() < 1e-6


def test_parts_of_empty_sequences(client: Any) -> None:
    """They say nothing of the number of columns."""
    some: tuple[Any, Any] = ([("a", "b"), ("c", "d")], ["X", "Y"])
    none: tuple[Any, Any] = ([], [])
    pairs = [none, some, none, some]
    settings: dict[str, Any] = {"features": "U0:%x[0,0]\nU1:%x[0,1]\nB", "optimizer": OPTIMIZER}
    together = fit(client, CRF(**settings), [delayed([pair]) for pair in pairs], shard_size=1)
    alone = CRF(**settings).fit(iter(pairs), shard_size=1)
    assert together.weights_.tobytes() == alone.weights_.tobytes()
    assert together.n_columns_ == 2


def test_a_file_that_a_worker_does_not_have(client: Any, files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"the worker tcp://\S+ .*absent\.txt"):
        fit(client, CRF(features=TEMPLATE), [*files, tmp_path / "absent.txt"])
    (tmp_path / "bad.txt").write_text("a b X\na X\n\n")
    with pytest.raises(FileFormatError, match=r"bad\.txt:2"):
        fit(client, CRF(features=TEMPLATE), [*files, tmp_path / "bad.txt"])
    (tmp_path / "wide.txt").write_text("a b c X\n\n")
    with pytest.raises(ShapeError, match=r"wide\.txt: rows have 3 columns, expected 2"):
        fit(client, CRF(features=TEMPLATE), [*files, tmp_path / "wide.txt"])
    (tmp_path / "empty.txt").touch()
    with pytest.raises((EmptyDataError, FileFormatError)):
        fit(client, CRF(features=TEMPLATE), [tmp_path / "empty.txt"])


def test_a_data_set_that_a_worker_does_not_have(
    client: Any, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = encode_files(files, tmp_path / "data", features=TEMPLATE, shard_size=60)
    elsewhere = Path("/proc/self/cwd/data")  # which is another folder in each process
    monkeypatch.chdir(tmp_path)
    assert open_dataset(elsewhere).n_shards == dataset.n_shards
    with pytest.raises(MissingDataError, match=r"the worker tcp://\S+ .*/proc/self/cwd/data"):
        fit(client, CRF(optimizer=OPTIMIZER), open_dataset(elsewhere))
    shutil.rmtree(tmp_path / "data")
