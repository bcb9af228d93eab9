"""CRFsuite's model files and what they mean, in plain Python: shares no code with the library.

Strings are found as CRFsuite finds them, through the hash tables of the file; probabilities by listing all label sequences.
"""

from __future__ import annotations

import math
import struct
from itertools import pairwise, product

WORD = 0xFFFFFFFF
Position = list[tuple[str, float]]


def numbers(data: bytes, at: int, n: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{n}I", data, at)


def lookup3(key: bytes) -> int:
    """Bob Jenkins' hashlittle with the initial value 0."""

    def rotated(x: int, k: int) -> int:
        return ((x << k) | (x >> (32 - k))) & WORD

    state = [(0xDEADBEEF + len(key)) & WORD] * 3
    while len(key) > 12:
        state = [(s + w) & WORD for s, w in zip(state, struct.unpack("<3I", key[:12]), strict=True)]
        for i, shift in enumerate((4, 6, 8, 16, 19, 4)):
            x, y, z = i % 3, (i + 1) % 3, (i + 2) % 3
            state[x] = ((state[x] - state[z]) & WORD) ^ rotated(state[z], shift)
            state[z] = (state[z] + state[y]) & WORD
        key = key[12:]
    if not key:
        return state[2]
    words = struct.unpack("<3I", key.ljust(12, b"\0"))
    state = [(s + w) & WORD for s, w in zip(state, words, strict=True)]
    turns = [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)]
    for x, y, shift in turns:
        state[x] = ((state[x] ^ state[y]) - rotated(state[y], shift)) & WORD
    return state[2]


class StringTable:
    """A table of strings that begins at `at`."""

    def __init__(self, data: bytes, at: int) -> None:
        assert data[at : at + 4] == b"CQDB"
        self.size, flag, order, n, index = numbers(data, at + 4, 5)
        assert flag == 0
        assert order == 0x62445371
        self.data = data[at : at + self.size]
        self.names = [self.record(offset)[1] for offset in numbers(self.data, index, n)]
        assert [self.record(offset)[0] for offset in numbers(self.data, index, n)] == list(range(n))

    def record(self, at: int) -> tuple[int, str]:
        i, length = numbers(self.data, at, 2)
        key = self.data[at + 8 : at + 8 + length]
        assert key.endswith(b"\0")
        return i, key[:-1].decode()

    def find(self, name: str) -> int | None:
        """As CRFsuite finds it: by its hash."""
        h = lookup3(name.encode() + b"\0")
        offset, n = numbers(self.data, 24 + 8 * (h % 256), 2)
        for step in range(n):
            seen, at = numbers(self.data, offset + 8 * (((h >> 8) + step) % n), 2)
            if at == 0:
                return None
            if seen == h and self.record(at)[1] == name:
                return self.record(at)[0]
        return None


class Model:
    """A model file, read chunk by chunk."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        assert data[:4] == b"lCRF"
        assert data[8:12] == b"FOMC"
        (size,) = numbers(data, 4, 1)
        assert size == len(data)
        version, _, n_labels, n_attributes, *offsets = numbers(data, 12, 9)
        assert version == 100
        self.labels = StringTable(data, offsets[1])
        self.attributes = StringTable(data, offsets[2])
        assert len(self.labels.names) == n_labels
        assert len(self.attributes.names) == n_attributes
        assert data[offsets[0] : offsets[0] + 4] == b"FEAT"
        self.features = [
            struct.unpack_from("<IIId", data, offsets[0] + 12 + 20 * i)
            for i in range(numbers(data, offsets[0] + 8, 1)[0])
        ]
        self.label_lists = self.lists(offsets[3], b"LFRF", n_labels)
        self.attribute_lists = self.lists(offsets[4], b"AFRF", n_attributes)

    def lists(self, at: int, name: bytes, n: int) -> list[tuple[int, ...]]:
        assert self.data[at : at + 4] == name
        assert numbers(self.data, at + 8, 1)[0] >= n
        offsets = numbers(self.data, at + 12, n)
        assert all(offsets), "CRFsuite follows the offset of every label and attribute"
        return [numbers(self.data, o + 4, numbers(self.data, o, 1)[0]) for o in offsets]

    def transitions(self) -> dict[tuple[str, str], float]:
        found = {}
        for before, ids in enumerate(self.label_lists):
            for i in ids:
                kind, source, label, weight = self.features[i]
                assert (kind, source) == (1, before)
                found[self.labels.names[before], self.labels.names[label]] = weight
        return found

    def score(self, x: list[Position], y: tuple[str, ...]) -> float:
        transitions = self.transitions()
        total = sum(transitions.get(pair, 0.0) for pair in pairwise(y))
        for position, label in zip(x, y, strict=True):
            for name, value in position:
                attribute = self.attributes.find(name)
                for i in () if attribute is None else self.attribute_lists[attribute]:
                    if self.labels.names[self.features[i][2]] == label:
                        total += value * self.features[i][3]
        return total

    def distribution(self, x: list[Position]) -> dict[tuple[str, ...], float]:
        """p(y | x) of every label sequence."""
        scores = {y: self.score(x, y) for y in product(self.labels.names, repeat=len(x))}
        top = max(scores.values())
        total = sum(math.exp(score - top) for score in scores.values())
        return {y: math.exp(score - top) / total for y, score in scores.items()}
