"""CRF++'s binary model files (`crf_learn`). All numbers are little-endian, nothing stands between two parts.

    unsigned 32     version: 100
    signed 32       kind: 0
    float 64        cost factor
    unsigned 32     number of weights D
    unsigned 32     number of columns that a row must have
    unsigned 32     bytes of the double array
    unsigned 32     bytes of the labels, and these: each ends with a zero byte
    unsigned 32     bytes of the template, and this: each line ends with a zero byte, more zeros fill it up
    the double array, which maps each feature to the number of its first weight
    float 32 [D]    the weights

The double array (Aoe 1989, as the library Darts lays it out) is a trie of bytes in units of two numbers, (base, check). A
node is known by its base b, that of the root is in unit 0. Its child by the byte c is unit b + c + 1, if check there is b;
the base of that unit is the child's. A feature that ends at the node has unit b, if check there is b: its base is
−1 − the number of its first weight. So every unit names its parent, and the features are read from their ends upwards.
"""

import struct

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int64s
from crfkit.compat.crfpp_model import CrfppParts
from crfkit.errors import FileFormatError

BINARY_MAGIC = struct.pack("<Ii", 100, 0)
_HEAD = struct.Struct("<IidIII")
_SIZE = struct.Struct("<I")
_UNIT = np.dtype([("base", "<i4"), ("check", "<u4")])
_MOST = 8  # bytes of all names of features for each byte of a file, at most
_FREE = 1 << 16  # beside these
_LONGEST_KEY = 1 << 16  # CRF++ reads lines of at most 8,192 bytes

Units = npt.NDArray[np.void]


def binary_parts(data: bytes, encoding: str) -> CrfppParts:
    """What a file holds; InputError for other bytes, UnicodeDecodeError where its texts have another encoding."""
    file = _File(data)
    _, _, cost_factor, n_weights, n_columns, n_bytes = _HEAD.unpack(file.take(_HEAD.size, "header"))
    if not 1 <= n_columns <= 10**6:
        raise FileFormatError(f"its rows have {n_columns:,} columns, expected 1 to 1,000,000")
    labels = _texts(file.take_sized("labels"), "labels")
    lines = [line for line in _texts(file.take_sized("template"), "template") if line]
    if n_bytes % _UNIT.itemsize:
        raise FileFormatError(
            f"its double array has {n_bytes:,} bytes, expected a multiple of {_UNIT.itemsize}"
        )
    units = np.frombuffer(file.take(n_bytes, "double array"), _UNIT)
    weights = np.frombuffer(file.take(4 * n_weights, "weights"), "<f4")
    if not np.isfinite(weights).all():
        raise FileFormatError("it has a weight that is no finite number")
    if file.place != len(data):
        raise FileFormatError(f"{len(data) - file.place:,} bytes follow after its {n_weights:,} weights")
    names, starts = trie_keys(units, _MOST * len(data) + _FREE)
    for name in names:
        if not name.startswith((b"U", b"B")):
            raise FileFormatError(f"the feature {name[:40]!r} begins neither with U nor with B")
    return CrfppParts(
        [label.decode(encoding) for label in labels],
        "\n".join(line.decode(encoding) for line in lines),
        n_columns,
        [name.decode(encoding) for name in names],
        starts,
        weights.astype(np.float64),
        cost_factor,
    )


def trie_keys(units: Units, most_bytes: int) -> tuple[list[bytes], Int64s]:
    """The keys of a double array, ascending, and their values [F]; InputError where it is damaged or has more bytes of keys.

    All keys are followed upwards from their last unit at the same time, one byte a step.
    """
    base, check = units["base"].astype(np.int64), units["check"].astype(np.int64)
    inner = np.flatnonzero(base > 0)
    owner = np.full(max(len(units), 1), -1, np.int64)  # node → the unit that has it as its base
    inside = inner[base[inner] < len(units)]
    owner[base[inside]] = inside
    if len(inside) != len(inner) or (owner >= 0).sum() != len(inner):
        raise FileFormatError("its double array is damaged: two units lead to one node, or to none")
    last = np.flatnonzero((base < 0) & (check == np.arange(len(units))))  # [F] where keys end
    steps: list[npt.NDArray[np.uint8]] = []  # the bytes of all keys that are as long, from the last one
    alive = [np.arange(len(last), dtype=np.int32)]
    at, n_bytes = owner[check[last]], 0
    while True:
        if (at < 0).any():
            raise FileFormatError("its double array is damaged: a key does not begin at the root")
        open_ = at != 0
        keys, at = alive[-1][open_], at[open_]
        n_bytes += len(keys)
        if n_bytes > most_bytes or len(steps) > min(len(units), _LONGEST_KEY):  # perhaps round in a circle
            raise FileFormatError("its double array is damaged: its keys are out of proportion to its size")
        if not len(keys):
            break
        byte = at - check[at] - 1
        if (byte < 1).any() or (byte > 255).any():
            raise FileFormatError("its double array is damaged: a unit is no child of the node that it names")
        steps.append(byte.astype(np.uint8))
        alive.append(keys)
        at = owner[check[at]]
    lengths = np.zeros(len(last), np.int64)
    for keys in alive[1:]:
        lengths[keys] += 1
    ends = np.cumsum(lengths)
    text = np.zeros(n_bytes, np.uint8)
    for step, (keys, byte) in enumerate(zip(alive[1:], steps, strict=True), 1):
        text[ends[keys] - step] = byte
    whole, begins = text.tobytes(), (ends - lengths).tolist()
    names = [whole[begin:end] for begin, end in zip(begins, ends.tolist(), strict=True)]
    order = sorted(range(len(names)), key=names.__getitem__)
    return [names[k] for k in order], -base[last[order]] - 1


def _texts(data: bytes, what: str) -> list[bytes]:
    if not data.endswith(b"\0"):
        raise FileFormatError(f"its {what} do not end with a zero byte")
    return data[:-1].split(b"\0")


class _File:
    """The bytes of a file, and how far they were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def take(self, n_bytes: int, what: str) -> bytes:
        """The next bytes."""
        if n_bytes > len(self.data) - self.place:
            raise FileFormatError(f"it ends within its {what}, of which there are {n_bytes:,} bytes")
        self.place += n_bytes
        return self.data[self.place - n_bytes : self.place]

    def take_sized(self, what: str) -> bytes:
        """The bytes of a part that begins with their number."""
        (n_bytes,) = _SIZE.unpack(self.take(_SIZE.size, what))
        return self.take(n_bytes, what)
