"""Writing encoded data sets: features and labels as ids, in shards, with bounded memory; a killed run goes on.

0. Where the template asks how often words occur (`%rare`), they are counted first, in a pass of its own; pairs, which can be
   read only once, are kept in a file until then.
1. Sequences are read and encoded shard by shard, each with a vocabulary of its own: a part, which is written to disk.
2. The vocabularies of all parts become one, in the order of first occurrence. With `min_count` above 1 names are first
   counted in a table of hashes of fixed size: what it counts too seldom is rare for certain, so rare names take no memory;
   the others are counted exactly.
3. Each part becomes a shard, with the ids of that vocabulary.

So features, labels and their order are those that training in memory finds. Parts and shards that a killed run has written
are kept, if their checksums are right; those of a file that has changed since, and of all after it, are written anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from crfkit.data import ArrayFile, DatasetFolder, EncodedDataset, read_arrays, write_arrays, write_file
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, ShapeError, UnwritableFileError
from crfkit.features.column_rows import ColumnRows
from crfkit.features.frequent_words import WordCounter
from crfkit.features.joint_parts import JointParts, join_parts, make_head
from crfkit.features.pair_sources import Pair, PairSource, cut_pairs, keep_pairs, mark_last, number_from
from crfkit.features.part_encoding import EncodingSettings, encode_part
from crfkit.features.templates import Template

_SHARDS_AT_ONCE = 2  # that are written; each takes memory

Counted = Callable[[Iterable[Any], Callable[[Any], int]], Iterable[Any]]


class DatasetWriter:
    """One run; see `encode_sources` for the arguments."""

    def __init__(
        self,
        folder: Path,
        sources: list[PairSource],
        settings: EncodingSettings,
        stage: Callable[[str], None],
        counted: Counted,
        n_threads: int,
    ) -> None:
        self.folder, self.sources, self.settings = folder, sources, settings
        self.files = DatasetFolder(folder)
        self.stage, self.counted, self.n_threads = stage, counted, n_threads
        self.n_columns: int | None = None
        given = settings.to_json(settings.features if isinstance(settings.features, Template) else None)
        self.plan = {
            "format": DatasetFolder.FORMAT,
            "version": DatasetFolder.VERSION,
            "settings": given,
            "shard_size": settings.shard_size,
            "sources": [[source.name, source.identity] for source in sources],
        }

    @contextmanager
    def begin(self) -> Iterator[EncodedDataset | None]:
        """Takes the folder, which must be new or that of a run with the same plan; gives a data set that is complete."""
        plan = self.files.plan
        if self.files.head.exists():
            found = EncodedDataset(self.folder)
            if found.head.get("plan") != json.loads(json.dumps(self.plan)):
                raise ArgumentError(
                    f"{self.folder}: there is another data set already, of other files or with other features or options; "
                    "choose another folder, or delete this one"
                )
            yield found
            return
        draft = f".{plan.name}.part"  # of a run that was killed while it wrote its plan
        if self.folder.exists() and not plan.exists() and {p.name for p in self.folder.iterdir()} - {draft}:
            raise ArgumentError(
                f"{self.folder}: the folder holds something else, expected a new or empty folder"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnwritableFileError(f"{self.folder}: cannot be written ({error.strerror})") from None
        if not plan.exists():
            self._write_plan()
        with plan.open("rb") as stream:
            _lock(stream, self.folder)
            n_kept = self._compare_plan(plan)
            if n_kept is None:
                yield None
                return
            self._forget_sources(n_kept)
            self._write_plan()
            with plan.open("rb") as new:
                _lock(new, self.folder)
                yield None

    def _write_plan(self) -> None:
        write_file(self.files.plan, [json.dumps(self.plan).encode()])

    def _compare_plan(self, path: Path) -> int | None:
        """How many sources, from the first one on, are those of the unfinished run, None: all; refuse other options.

        A file that could not be read may have been mended or left out since: the run goes on there. Once all files are
        read there are no parts left to go on from.
        """
        try:
            found, plan = json.loads(path.read_bytes()), json.loads(json.dumps(self.plan))
        except ValueError:
            found, plan = {}, self.plan
        if found == plan:
            return None
        what = "with other files or options is there: repeat that one"
        if found == plan | {"sources": found.get("sources")}:
            before, now = found["sources"], plan["sources"]
            same = [old == new for old, new in zip(before, now, strict=False)]
            n_kept = same.index(False) if False in same else len(same)
            same_names = [name for name, _ in before] == [name for name, _ in now]
            if (n_kept or same_names) and not self.files.vocabulary.exists():
                return n_kept
            if same_names:
                changed = [new[0] for old, new in zip(before, now, strict=True) if old != new]
                what = f"is there that has read all files, and {', '.join(changed)} has changed since: restore it"
        raise ArgumentError(
            f"{self.folder}: an unfinished run {what}, choose another folder, or remove this one"
        )

    def _forget_sources(self, n_kept: int) -> None:
        """Remove the parts of all sources but the first ones."""
        number = 0
        while (part := self._read(self.files.part(number))) is not None and part.metadata["source"] < n_kept:
            number += 1
        self._remove_parts(number)

    def _remove_parts(self, first: int) -> None:
        for path in map(self.files.part, count(first)):
            if not path.exists():
                break
            path.unlink()

    def finish(self) -> EncodedDataset:
        """All steps that are left."""
        names = self.files.vocabulary
        known = self._read(names)
        if known is None:
            self._count_words()
            n_parts = self._write_parts()
            self.stage("joining the vocabularies of all shards")
            self._join(n_parts)
            known = self._read(names)
            assert known is not None
        self.stage("writing shards")
        shards = self._write_shards(known)
        head = make_head(known, shards, self.settings.shard_size) | {"plan": self.plan}
        text = json.dumps(head, ensure_ascii=False, indent=1).encode()
        write_file(self.files.head, [text])
        self.files.plan.unlink()
        return EncodedDataset(self.folder)

    @staticmethod
    def _read(path: Path) -> ArrayFile | None:
        """A file that a killed run has written; None where there is none, or a damaged one."""
        try:
            return read_arrays(path, check=True) if path.exists() else None
        except FileFormatError:
            return None

    def _count_words(self) -> None:
        """Step 0, where the template asks how often words occur: a pass over all sequences, those of pairs in a file."""
        asked = self.settings.asked_counts
        if not asked:
            return
        self.stage("counting words")
        counter = WordCounter(asked)
        for s, source in enumerate(self.sources):
            if source.rows is not None:
                for rows in source.rows(self.settings.shard_size, self.n_threads):
                    counter.add(rows)
            else:
                self.sources[s] = keep_pairs(source, self.folder / f"pairs-{s}", counter)
        self.settings = replace(self.settings, counts=counter.finish())

    def _write_parts(self) -> int:
        """Step 1; returns the number of parts."""
        number = 0
        for s, source in enumerate(self.sources):
            skipped, complete = 0, False
            while not complete and (part := self._read(self.files.part(number))) is not None:
                if part.metadata["source"] != s:
                    break
                self._check_columns(part.metadata["n_columns"], source, skipped)
                skipped += part.metadata["n_sequences"]
                complete = part.metadata["last"]
                number += 1
            if complete:
                continue
            self._remove_parts(number)  # what follows a damaged part
            self.stage(f"encoding {source.name}")
            for part, last in self._encode(source, skipped):
                self._check_columns(part.metadata["n_columns"], source, skipped)
                facts = {"source": s, "last": last, **part.metadata}
                write_arrays(self.files.part(number), part.arrays, facts)
                number += 1
                skipped += part.metadata["n_sequences"]
        if not number:
            raise EmptyDataError("there is no sequence to encode, expected at least one")
        return number

    def _check_columns(self, n_columns: int | None, source: PairSource, first: int) -> None:
        """Refuse a part, from this sequence of a source on, whose rows have other columns than those before."""
        if n_columns is None:  # no rows at all: sequences are empty, or of features
            return
        if self.n_columns is not None and n_columns != self.n_columns:
            if source.rows is None:
                columns = f"{n_columns} column{'s' * (n_columns != 1)}"
                raise ShapeError(
                    f"the rows from sequence {first} on have {columns}, expected {self.n_columns} as before"
                )
            found = "1 input column" if n_columns == 1 else f"{n_columns} input columns"
            name = self.sources[0].name
            raise ShapeError(
                f"{source.name}: found {found} besides the label, expected {self.n_columns} as in {name}"
            )
        self.n_columns = n_columns

    def _encode(self, source: PairSource, skipped: int) -> Iterator[tuple[ArrayFile, bool]]:
        """The parts of a source after the first sequences, and whether each is the last one."""
        size = self.settings.shard_size
        shards: Iterable[tuple[list[Pair] | ColumnRows, bool]]
        if source.rows is None:
            pairs = islice(iter(source.read()), skipped, None)
            shards = cut_pairs(self.counted(pairs, lambda _: 1), size)
        else:
            rows = source.rows(size, self.n_threads)
            shards = mark_last(skip_sequences(self.counted(rows, len), skipped))
        for shard, last in shards:
            with number_from(skipped if source.rows is None else 0):  # those of files have a line
                part = encode_part(shard, self.settings, self.n_threads)
            skipped += part.metadata["n_sequences"]
            yield part, last

    def _parts(self, n_parts: int) -> Iterator[ArrayFile]:
        return (read_arrays(self.files.part(i), check=False) for i in range(n_parts))

    def _join(self, n_parts: int) -> None:
        """Step 2."""
        known = join_parts(partial(self._parts, n_parts), self.settings)
        write_arrays(self.files.vocabulary, known.arrays, known.metadata)

    def _write_shards(self, known: ArrayFile) -> list[dict[str, int]]:
        """Step 3, for several shards at the same time; what the head says of them."""
        n_parts = known.metadata["n_parts"]
        if not any(self.files.part(i).exists() for i in range(n_parts)):
            return [self._describe(i) for i in range(n_parts)]
        joint = JointParts(known)

        def write(i: int) -> dict[str, int]:
            if self.files.part(i).exists():
                part = read_arrays(self.files.part(i), check=True)
                write_arrays(self.files.shard(i), joint.renumber(part), {})
                self.files.part(i).unlink()
            return self._describe(i)

        with ThreadPoolExecutor(min(self.n_threads, _SHARDS_AT_ONCE)) as pool:
            try:
                return list(pool.map(write, range(n_parts)))
            finally:
                pool.shutdown(cancel_futures=True)

    def _describe(self, i: int) -> dict[str, int]:
        """What the head says of a shard that is written."""
        path = self.files.shard(i)
        file = self._read(path)
        if file is None:
            raise FileFormatError(
                f"{path}: the file is missing or damaged: remove {self.folder} and begin anew"
            )
        return {
            "n_sequences": len(file.arrays["sequence_ptr"]) - 1,
            "n_positions": int(file.arrays["sequence_ptr"][-1]),
            "n_bytes": path.stat().st_size,
            "checksum": file.metadata["checksum"],
        }


def skip_sequences(shards: Iterable[ColumnRows], skipped: int) -> Iterator[ColumnRows]:
    """The shards after the first sequences, which are whole shards."""
    for rows in shards:
        if skipped > 0:
            skipped -= len(rows)
        else:
            yield rows


def _lock(stream: Any, folder: Path) -> None:
    """Refuse a folder that another process is writing."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UnwritableFileError(f"{folder}: another process is writing this data set") from None
