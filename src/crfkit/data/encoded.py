"""Encoded data sets: features and labels as numbers in a folder, cut into shards, for training on more than memory holds.

    dataset.json               format, version, settings, labels, counts, and the shards with their checksums; written last
    vocabulary.safetensors     the names of the features, by id, and the words, where they were kept
    shard-00000.safetensors …  the shards, see `SHARD_ARRAYS`

`crfkit.features.encode_files` and `crfkit encode` write such a folder, `open_dataset` opens one.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from crfkit.data.array_files import Array, read_arrays
from crfkit.data.errors import make_read_error
from crfkit.errors import FileFormatError, FileVersionError, MissingFileError

Result = TypeVar("Result")
SHARD_ARRAYS = {
    "sequence_ptr": "[N + 1] the positions of sequence n are sequence_ptr[n]:sequence_ptr[n + 1]",
    "state_ptr": "[T + 1] the features of position i are state_ids[state_ptr[i]:state_ptr[i + 1]]",
    "state_ids": "[nnz]",
    "state_values": "[nnz], where some value is not 1",
    "arc_ptr, arc_ids, arc_values": "the same for features of transitions, where there are such",
    "labels": "[T] label ids, −1 where not exactly one is known",
    "set_ptr, set_labels": "where labels is −1: the labels that are possible, where some are sets",
    "words": "[T] ids of the words in lower case, where they were kept for a tag dictionary",
    "dense:NAME": "[T, K] a dense block",
}
_COUNTS = ("n_sequences", "n_positions", "n_features", "n_arc_features", "shard_size", "min_count")


@dataclass(frozen=True)
class DatasetFolder:
    """Where the files of an encoded data set are."""

    path: Path

    FORMAT: ClassVar[str] = "crfkit data set"
    VERSION: ClassVar[int] = 1

    @property
    def head(self) -> Path:
        """What the data set is; there is none before it is complete."""
        return self.path / "dataset.json"

    @property
    def plan(self) -> Path:
        """What it is to become, until it is complete."""
        return self.path / "unfinished.json"

    @property
    def vocabulary(self) -> Path:
        """The names of the features."""
        return self.path / "vocabulary.safetensors"

    def shard(self, i: int) -> Path:
        """Shard i."""
        return self.path / f"shard-{i:05d}.safetensors"

    def part(self, i: int) -> Path:
        """What shard i is made from, until it is."""
        return self.path / f"part-{i:05d}.safetensors"


class EncodedDataset:
    """An encoded data set on disk, which `CRF.fit` takes in place of X and y.

    path : the folder
    settings : what it was encoded with: features, language, preset, min_count, n_columns, word_column, label_column,
        separator
    labels : the labels, in the order of their ids, as JSON values
    n_sequences, n_positions, n_features, n_shards, shard_size : how large it is

    Nothing of it is in memory but this description; shards are mapped when they are used.
    """

    def __init__(self, path: str | os.PathLike[str], head: dict[str, Any] | None = None) -> None:
        """Opens the folder; with `head`, the shards are elsewhere: a subclass knows where."""
        self.path = Path(path)
        self.files = DatasetFolder(self.path)
        self.head = _read_head(self.files) if head is None else head
        self.settings: dict[str, Any] = self.head["settings"]
        self.labels: list[Any] = self.head["labels"]
        self.n_sequences: int = self.head["n_sequences"]
        self.n_positions: int = self.head["n_positions"]
        self.n_features: int = self.head["n_features"]
        self.n_arc_features: int = self.head["n_arc_features"]
        self.shard_size: int = self.head["shard_size"]
        self._checked: set[int] = set()
        if head is None:
            self._check_sizes()

    def _check_sizes(self) -> None:
        for i in range(self.n_shards):
            file, size = self.files.shard(i), self.head["shards"][i]["n_bytes"]
            found = file.stat().st_size if file.is_file() else None
            if found != size:
                state = "is missing" if found is None else f"has {found:,} bytes, expected {size:,}"
                raise FileFormatError(f"{file}: {state}: the data set is damaged or was copied in part")

    @property
    def n_shards(self) -> int:
        """How many shards there are."""
        return len(self.head["shards"])

    @property
    def shard_ptr(self) -> list[int]:
        """The first sequence of each shard, and N."""
        ptr = [0]
        for shard in self.head["shards"]:
            ptr.append(ptr[-1] + shard["n_sequences"])
        return ptr

    def shard(self, i: int) -> dict[str, Array]:
        """The arrays of shard i, mapped; its checksum is compared when it is opened first."""
        file = read_arrays(self.files.shard(i), check=i not in self._checked)
        if file.metadata.get("checksum") != self.head["shards"][i]["checksum"]:
            raise FileFormatError(f"{self.files.shard(i)}: the shard is not the one that the data set had")
        self._checked.add(i)
        return file.arrays

    def expect(self, i: int) -> None:
        """Shard i is opened soon: the system may read it meanwhile."""
        if hasattr(os, "posix_fadvise"):
            with self.files.shard(i).open("rb") as stream:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)

    def map_shards(self, function: Callable[[str, dict[str, Array]], Result]) -> Iterator[Result]:
        """What a function gives for the name and the arrays of each shard, in order."""
        for i in range(self.n_shards):
            if i + 1 < self.n_shards:
                self.expect(i + 1)
            yield function(str(self.files.shard(i)), self.shard(i))

    def vocabulary(self) -> dict[str, Array]:
        """The names of the features: `names` and `lengths`, and the same of features of transitions."""
        return read_arrays(self.files.vocabulary, check=True).arrays

    def check(self) -> None:
        """Read all of it, and compare the checksums; FileFormatError where something is damaged."""
        self.vocabulary()
        self._checked.clear()
        for i in range(self.n_shards):
            self.shard(i)

    def __repr__(self) -> str:
        counts = (
            f"{self.n_sequences:,} sequences, {self.n_positions:,} positions, {len(self.labels):,} labels"
        )
        return (
            f"<EncodedDataset {self.path}: {counts}, {self.n_features:,} features, {self.n_shards:,} shards>"
        )


def open_dataset(path: str | os.PathLike[str]) -> EncodedDataset:
    """Open a data set that `crfkit encode` wrote; the shards are looked at when they are used."""
    return EncodedDataset(path)


def _read_head(files: DatasetFolder) -> dict[str, Any]:
    """What `dataset.json` says, of the form that it must have."""
    folder, path = files.path, files.head
    if not folder.is_dir():
        error: OSError = FileNotFoundError(2, "No such file or directory")
        if folder.exists():
            raise FileFormatError(f"{folder}: a file, expected the folder of an encoded data set")
        raise make_read_error(folder, error)
    if not path.is_file():
        if files.plan.is_file():
            raise FileFormatError(
                f"{folder}: the data set is not complete: run crfkit encode with the same files and options again"
            )
        raise MissingFileError(f"{folder}: not an encoded data set of crfkit (it has no {path.name})")
    try:
        head = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: cannot be read ({error})") from None
    if not isinstance(head, dict) or head.get("format") != files.FORMAT:
        raise FileFormatError(f"{path}: not the head of an encoded data set of crfkit")
    if not isinstance(head.get("version"), int) or head["version"] > files.VERSION:
        raise FileVersionError(
            f"{path}: written by a newer crfkit (version {head.get('version')}; this one reads up to {files.VERSION})"
        )
    if problem := _find_problem(head):
        raise FileFormatError(f"{path}: damaged: {problem}")
    return head


def _find_problem(head: dict[str, Any]) -> str | None:
    settings, shards = head.get("settings"), head.get("shards")
    if not isinstance(settings, dict):
        return "it has no settings"
    for name in _COUNTS:
        number = settings.get(name) if name == "min_count" else head.get(name)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            return f"{name} is {number!r}, expected a number"
    if not isinstance(head.get("labels"), list):
        return "it has no labels"
    if not isinstance(shards, list) or not shards:
        return "it has no shards"
    for i, shard in enumerate(shards):
        fields = ("n_sequences", "n_positions", "n_bytes", "checksum")
        if not isinstance(shard, dict) or not all(isinstance(shard.get(name), int) for name in fields):
            return f"shard {i} is described by {str(shard)[:60]}"
    if sum(shard["n_sequences"] for shard in shards) != head["n_sequences"]:
        return "its shards do not have as many sequences as it says"
    return None
