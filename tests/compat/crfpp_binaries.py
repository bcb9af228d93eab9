"""Binary model files of CRF++, written from their layout, and the double array in them by first fit."""

from __future__ import annotations

import re
import struct


def double_array(keys: dict[bytes, int]) -> bytes:
    """The units (base, check) of a trie of these keys and values."""
    children: dict[bytes, set[int]] = {}
    for key in keys:
        for end in range(len(key) + 1):
            children.setdefault(key[:end], set()).add(key[end] + 1 if end < len(key) else 0)
    units: dict[int, tuple[int, int]] = {0: (1, 0)}
    used, taken = set(), {0}
    waiting = [(b"", 0)]
    while waiting:
        node, unit = waiting.pop()
        steps = sorted(children[node])
        base = 1
        while base in used or any(base + step in taken for step in steps):
            base += 1
        used.add(base)
        taken.update(base + step for step in steps)
        units[unit] = (base, units[unit][1])
        for step in steps:
            if step == 0:
                units[base] = (-keys[node] - 1, base)
            else:
                units[base + step] = (0, base)
                waiting.append((node + bytes([step - 1]), base + step))
    return b"".join(struct.pack("<iI", *units.get(unit, (0, 0))) for unit in range(max(units) + 1))


def binary_of(text: str, encoding: str = "utf-8") -> bytes:
    """The binary file of the model in a text file."""
    head, labels, template, features, numbers = text.split("\n\n", 4)
    cost_factor, xsize = (
        re.search(f"{name}: (.*)", head)[1]  # type: ignore[index]
        for name in ("cost-factor", "xsize")
    )
    keys = {}
    for line in features.split("\n"):
        number, name = line.split(" ", 1)
        keys[name.encode(encoding)] = int(number)
    weights = [float(number) for number in numbers.split()]
    listed, lines = (
        b"".join(line.encode(encoding) + b"\0" for line in part.split("\n")) for part in (labels, template)
    )
    lines += b"\0" * (-(len(listed) + len(lines)) % 4)
    array = double_array(keys)
    return (
        struct.pack("<IidIII", 100, 0, float(cost_factor), len(weights), int(xsize), len(array))
        + struct.pack("<I", len(listed))
        + listed
        + struct.pack("<I", len(lines))
        + lines
        + array
        + struct.pack(f"<{len(weights)}f", *weights)
    )
