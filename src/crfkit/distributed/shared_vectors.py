"""Vectors in memory that the processes of one machine share, so that they are not copied from process to process.

The client makes the memory. It has no name in any file system, and is gone with the last process that has it open, however
that ends. Workers open it as a descriptor of the client's process, where the system has such (Linux), and know it by a
token: processes of other machines, or of other users, do not see it and get vectors in messages.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Hashable, Sequence
from secrets import token_bytes
from typing import NamedTuple

import numpy as np

from crfkit.arrays import Float64s

HEAD = 64  # bytes before the numbers, which begin with the token
TOKEN = 16
NAME = "crfkit"  # of the memory, for people
MOST_OPEN = 8  # vectors of clients that a shard has open: weights, a direction, answers


class Place(NamedTuple):
    """Where a vector is."""

    process: int
    descriptor: int
    token: bytes
    n_numbers: int


class SharedVectors:
    """Vectors [n_numbers] of a client, by name, which are made when they are asked for."""

    def __init__(self, n_numbers: int) -> None:
        self._n_numbers = n_numbers
        self._vectors: dict[Hashable, _SharedVector] = {}

    def __getitem__(self, name: Hashable) -> _SharedVector:
        if name not in self._vectors:
            self._vectors[name] = _SharedVector(self._n_numbers)
        return self._vectors[name]

    def try_out(self) -> Place | None:
        """Where the first vector is; None where the system does not share memory, or has none left."""
        try:
            return self[0].place
        except (AttributeError, OSError, ValueError):
            return None

    def discard(self) -> None:
        """Use none of these any more: somebody may still read or write them."""
        self._vectors.clear()


class _SharedVector:
    """A vector that was made here."""

    _descriptor: int | None = None  # where the system did not give any

    def __init__(self, n_numbers: int) -> None:
        self._descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, HEAD + 8 * n_numbers)
        memory = mmap.mmap(self._descriptor, 0)
        memory[:TOKEN] = token_bytes(TOKEN)
        self.place = Place(os.getpid(), self._descriptor, memory[:TOKEN], n_numbers)
        self.numbers: Float64s = np.frombuffer(memory, np.float64, n_numbers, HEAD)

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


class Nearby(NamedTuple):
    """Workers that see the memory of the client, and the vectors that are there."""

    workers: frozenset[str]
    vectors: SharedVectors

    def place(self, vectors: Sequence[Float64s], first: int) -> list[Place]:
        """Copies vectors to where these workers see them, numbered from `first` on."""
        if not self.workers:
            return []
        for i, vector in enumerate(vectors, first):
            np.copyto(self.vectors[i].numbers, vector)
        return [self.vectors[i].place for i in range(first, first + len(vectors))]


class OpenVectors:
    """Vectors that clients have shared, open in this process."""

    def __init__(self) -> None:
        self._vectors: dict[Place, Float64s] = {}

    def open(self, place: Place) -> Float64s:
        """The vector there; OSError where this process does not see it."""
        if place not in self._vectors:
            while len(self._vectors) >= MOST_OPEN:
                del self._vectors[next(iter(self._vectors))]
            self._vectors[place] = _open(place)
        return self._vectors[place]


def can_open(place: Place) -> bool:
    """Whether this process sees the memory of a client."""
    try:
        _open(place)
    except (OSError, ValueError):
        return False
    return True


def _open(place: Place) -> Float64s:
    path = f"/proc/{place.process}/fd/{place.descriptor}"
    if not os.readlink(path).startswith(f"/memfd:{NAME}"):
        raise OSError(f"{path} is another file")
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        memory = mmap.mmap(descriptor, HEAD + 8 * place.n_numbers)
    finally:
        os.close(descriptor)
    if memory[:TOKEN] != place.token:
        raise OSError(f"{path} is another vector")
    return np.frombuffer(memory, np.float64, place.n_numbers, HEAD)
