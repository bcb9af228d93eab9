"""What the core refuses where nodes and arcs have features of their own: arrays that do not fit together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit import _core

L = 2
EMPTY, ZERO = np.zeros(0, np.int32), np.zeros(1, np.int64)
ONES = np.ones(L, np.uint8)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def longs(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def lattices(allowed: list[int] | None = None, starts: Any = ONES) -> _core.Lattices:
    """Two sequences of 2 and of 1 positions, all pairs of two labels: 6 nodes, (2 + 4 + 2) + (2 + 2) arcs."""
    before, after = (part.astype(np.int32) for part in np.divmod(np.arange((L + 1) ** 2), L + 1))
    layout = _core.Layout(L, ZERO, EMPTY, longs(), EMPTY, EMPTY, ZERO, EMPTY, before, after, False)
    sets = None if allowed is None else (longs(0, len(allowed), len(allowed), len(allowed)), ints(*allowed))
    design = _core.Design(
        layout,
        longs(0, 2, 3),
        np.zeros(4, np.int64),
        EMPTY,
        None,
        None,
        None,
        None,
        [],
        1,
        *(sets or (None, None)),
    )
    return _core.Lattices(layout, design, starts, ONES, 1)


def test_parts_are_listed_position_by_position() -> None:
    found = lattices()
    assert found.position_ptr.tolist() == [0, 2, 4, 6]
    assert found.labels.tolist() == [0, 1] * 3
    assert found.arc_ptr.tolist() == [0, 8, 12]
    before, after, position = found.arcs(1)
    assert before.tolist() == [2, 2, 0, 1, 0, 1, 0, 1, 2, 2, 0, 1]
    assert after.tolist() == [0, 1, 0, 0, 1, 1, 2, 2, 0, 1, 2, 2]
    assert position.tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 0, 0, 1, 1]
    fewer = lattices([1], np.array([0, 1], np.uint8))
    assert [part.tolist() for part in fewer.arcs(2)] == [
        [2, 1, 1, 0, 1, 2, 0, 1],
        [1, 0, 1, 2, 2, 1, 2, 2],
        [0, 1, 1, 2, 2, 0, 1, 1],
    ]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"dense": np.zeros((3, 2))}, "expected a value for each part and weight"),
        ({"dense": np.zeros((4, 2)), "ids": ints(0)}, "dense values go without lists"),
        ({"ids": ints(0, 1, -1)}, "expected one weight for each part"),
        ({"ids": ints(0, 1, -1, 2)}, "weight 2 is out of range"),
        ({"ids": ints(0, 1, -2, 1)}, "weight -2 is out of range"),
        ({"ids": ints(0), "ptr": longs(0, 1)}, "one entry more than there are parts"),
        ({"ids": ints(0), "ptr": longs(0, 2, 1, 1, 1)}, "ptr must not decrease"),
        ({"ids": ints(-1), "ptr": longs(0, 1, 1, 1, 1)}, "weight -1 is out of range"),
        (
            {"ids": ints(0), "ptr": longs(0, 1, 1, 1, 1), "values": np.zeros(2)},
            "values and ids must have the same length",
        ),
    ],
)
def test_blocks_that_do_not_fit_are_refused(arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.ActiveFeatures(False, 0, 2, 4, **arrays)


def loss(
    found: _core.Lattices,
    active: list[_core.ActiveFeatures],
    *,
    last: int = 2,
    labels: Any = ints(0, 1, 0),  # noqa: B008
    weights: Any = np.ones(2),  # noqa: B008
) -> _core.Objective:
    """Of one slice with sequences of 2 and 1 positions."""

    def slice_(_: int) -> Any:
        return 0, last, found, active

    slices = _core.FunctionSlices(1, slice_, slice_)
    made = _core.function_loss(slices, longs(0, 2, 3), labels, None, None, weights, 2, 1)
    return _core.Objective(made, np.zeros(1))


def test_blocks_of_other_lattices_are_refused() -> None:
    found, w = lattices(), np.zeros(2)
    short = _core.ActiveFeatures(False, 0, 2, 5, np.zeros((5, 2)))
    beyond = _core.ActiveFeatures(True, 1, 2, 12, np.zeros((12, 2)))
    for block, message in (
        (short, "as many parts as the lattices have"),
        (beyond, "weights beyond the last one"),
    ):
        questions: list[Any] = [
            lambda block=block: found.score([block], w),
            lambda block=block: loss(found, [block]).value_and_gradient(w),
        ]
        for question in questions:
            with pytest.raises(ValueError, match=message):
                question()


def test_what_else_does_not_fit_is_refused() -> None:
    found, w = lattices(), np.zeros(2)
    with pytest.raises(ValueError, match="one entry for each label"):
        lattices(starts=np.ones(3, np.uint8))
    with pytest.raises(ValueError, match="one weight for each sequence"):
        loss(found, [], weights=np.ones(1))
    with pytest.raises(ValueError, match="sequence 0 with 2 positions: its labels are not possible"):
        loss(lattices([1]), []).value_and_gradient(w)
    with pytest.raises(ValueError, match="must have as many positions as the sequences, 3"):
        loss(found, [], labels=ints(0, 1))
    with pytest.raises(ValueError, match="must have the lattices of its sequences"):
        loss(found, [], last=1).value_and_gradient(w)
    with pytest.raises(ValueError, match="there are 2 labels for 3 positions"):
        found.score([], w).log_partitions(ints(0, 1), None, None, 1)
    with pytest.raises(ValueError, match="a uniform number for each sample and position"):
        found.score([], w).sample(2, np.zeros(3), 1)
