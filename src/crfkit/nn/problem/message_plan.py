"""Which messages belief propagation on a factor graph has, arranged so that many are updated at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crfkit.arrays import Int64s


@dataclass(frozen=True)
class Group:
    """Tables with the same sizes; the messages to their variables follow each other, axis by axis."""

    sizes: tuple[int, ...]
    places: Int64s  # [G, entries] of their scores
    first: int  # of its messages


@dataclass(frozen=True)
class MessagePlan:
    """Which message goes where."""

    groups: list[Group]
    variable: Int64s  # [E] of each message
    order: Int64s  # [N] where the entries of all groups, one after the other, have each score
    incoming: Int64s  # [V, most messages to a variable], E where there are fewer

    @classmethod
    def of(
        cls, cardinalities: Sequence[int], scopes: Sequence[tuple[int, ...]], table_ptr: Sequence[int]
    ) -> "MessagePlan":
        """For tables over these variables, whose scores begin at `table_ptr`."""
        by_sizes: dict[tuple[int, ...], list[int]] = {}
        for number, scope in enumerate(scopes):
            by_sizes.setdefault(tuple(cardinalities[v] for v in scope), []).append(number)
        groups: list[Group] = []
        variables: list[int] = []
        for sizes, numbers in by_sizes.items():
            begins = np.array([table_ptr[number] for number in numbers], dtype=np.int64)
            entries = np.arange(int(np.prod(sizes, dtype=np.int64)))
            groups.append(Group(sizes, begins[:, None] + entries, len(variables)))
            variables += [scopes[number][axis] for axis in range(len(sizes)) for number in numbers]
        to: list[list[int]] = [[] for _ in cardinalities]
        for message, v in enumerate(variables):
            to[v].append(message)
        most = max(map(len, to), default=0)
        incoming = [[*messages, *[len(variables)] * (most - len(messages))] for messages in to]
        order = np.argsort(np.concatenate([np.zeros(0, np.int64), *(g.places.reshape(-1) for g in groups)]))
        return cls(
            groups,
            np.array(variables, np.int64),
            order,
            np.array(incoming, np.int64).reshape(len(to), most),
        )
