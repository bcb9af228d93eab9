"""Lists of the allowed bigrams, for chains with many labels and few bigrams.

For each label the labels that may come before it, and for each those that may come after it, cut into tiles of equal
size: a tile has lists of one width, 8, 16, 32 …, padded to it, so that all of its numbers are worked on at once
whatever their lists' lengths.

    tiles [2, 1 + n, TILE + TILE / 8] int16: labels before, then labels after; [d, 0, c] is the first tile of width 8 · 2^c.
    [d, 1 + i]: TILE / width lists of tile i, one after the other, −1 in the padding; then the labels that have these lists.

Tiles are made on first use and kept as an attribute of the table's storage: they live as long as the table's memory, and
every view of it finds them. A table that is changed in place has a new version, and gets new tiles.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

SHORTEST = 8  # width of a list
TILE = 4096  # labels in the lists of a tile, where that holds the widest list
WIDTHS = 16  # widths that tiles may have
FEW_LABELS = 128  # up to which all pairs are faster
MOST_LABELS = 8192
ATTRIBUTE = "crfkit_bigram_tiles"  # of a storage: by offset and length of a table, its version and its tiles
FEW = 0.25  # share of the pairs up to which lists pay, for losses and best label sequences alike


def tiles_for(table: Tensor) -> Tensor | None:
    """Tiles of the bigrams of a table [L + 1, L + 1], without START and END; None where all pairs are as good as lists.

    None as well for tables whose changes PyTorch does not count, or with gaps in memory, and while a CUDA graph is
    captured that has not seen the table.
    """
    if not FEW_LABELS < len(table) - 1 <= MOST_LABELS or table.is_meta or table.is_inference():
        return None
    if not table.is_contiguous():
        return None
    storage: Any = table.untyped_storage()
    made: dict[tuple[int, int], tuple[int, Tensor | None]] = getattr(storage, ATTRIBUTE, {})
    key = table.storage_offset(), len(table)
    version, tiles = made.get(key, (None, None))
    if version == table._version:
        return tiles
    if table.is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    tiles = _tiles(table[:-1, :-1])
    setattr(storage, ATTRIBUTE, {**made, key: (table._version, tiles)})
    return tiles


def _tiles(exists: Tensor) -> Tensor | None:
    """Tiles of the allowed pairs [L, L] on their device, where they are few."""
    in_memory = exists.detach().cpu().numpy()
    if in_memory.sum() > FEW * in_memory.size:
        return None
    return torch.from_numpy(tiles_of(in_memory)).to(exists.device)


def tiles_of(exists: npt.NDArray[np.bool_], size: int = TILE) -> npt.NDArray[np.int16]:
    """Tiles of the allowed pairs [L, L], with `size` labels or, where a list may be longer, as many as that."""
    size = max(size, 1 << (len(exists) - 1).bit_length(), SHORTEST * WIDTHS)
    both = [_lists(exists.T, size), _lists(exists, size)]
    n_tiles = max(len(tiles) for _, tiles in both)
    found = np.full((2, 1 + n_tiles, size + size // SHORTEST), -1, dtype=np.int16)
    for direction, (bounds, tiles) in enumerate(both):
        found[direction, 0, : len(bounds)] = bounds
        found[direction, 1 : 1 + len(tiles)] = tiles
    return found


def _lists(exists: npt.NDArray[np.bool_], size: int) -> tuple[list[int], npt.NDArray[np.int16]]:
    """The first tile of each width [WIDTHS + 1], and tiles for the lists of True in each row of [L, L]."""
    lengths = exists.sum(1)
    bounds, tiles = [0], [np.empty((0, size + size // SHORTEST), dtype=np.int16)]
    for power in range(WIDTHS):
        width = SHORTEST << power
        least = width // 2 if power else -1
        owners = np.flatnonzero((lengths > least) & (lengths <= width))
        n_lists = max(size // width, 1)
        n_tiles = -(-len(owners) // n_lists)
        bounds.append(bounds[-1] + n_tiles)
        if n_tiles:
            lists = np.full((n_tiles * n_lists, width), -1, dtype=np.int16)
            row, other = np.nonzero(exists[owners])
            begins = np.cumsum(lengths[owners]) - lengths[owners]
            lists[row, np.arange(len(row)) - begins[row]] = other
            names = np.full(n_tiles * n_lists, -1, dtype=np.int16)
            names[: len(owners)] = owners
            tile = np.full((n_tiles, size + size // SHORTEST), -1, dtype=np.int16)
            tile[:, :size] = lists.reshape(n_tiles, size)
            tile[:, size : size + n_lists] = names.reshape(n_tiles, n_lists)
            tiles.append(tile)
    return bounds, np.concatenate(tiles)
