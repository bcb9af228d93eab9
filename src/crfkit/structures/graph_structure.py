"""Structures of your own: label sequences as the paths of a graph, which a small class lists arc by arc.

    score(y) = Σ over positions (features of the position and its label)
             + Σ over neighbouring positions (transitions, as in a chain) + Σ over the arcs of its path (their own weights)

Letters: T positions, S states, A arcs.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.errors import ArgumentError
from crfkit.structures.bigrams import Bigrams
from crfkit.structures.chain import Chain


class Arc(NamedTuple):
    """An arc that gives `labels` to the positions from `position` on, with weights of its own, which are named.

    It leads from the state `source` before these positions to the state `target` behind them. States are any hashable
    values, distinguished by position too, and a state is always entered with the same label. All arcs from position 0 begin
    at the start, whatever their source; all states behind the last position may be the end. No two arcs have the same
    states and labels. Where several paths give one label sequence, `predict` finds the best path, and `predict_nbest` lists
    paths.
    """

    position: int
    source: Hashable
    target: Hashable
    labels: Sequence[Hashable]
    weights: Sequence[str] = ()


class GraphStructure(ABC):
    """Which label sequences exist, and which weights they have beside those of features and transitions.

    Of a subclass that is a dataclass, a model file keeps the import path of the class and its fields, which must be JSON
    values; a field `chain` says which transitions have weights, and which exist.

    >>> class Rising(GraphStructure):  # labels never go back in their order
    ...     def arcs(self, n_positions, labels):
    ...         for t in range(n_positions):
    ...             for i, before in enumerate(labels if t else labels[:1]):
    ...                 for label in labels[i:]:
    ...                     yield Arc(t, before, label, [label], [f"{label} again"] if t and label == before else [])
    >>> Rising().compile(2, ["a", "b"]).names
    ('a again', 'b again')
    """

    chain: Chain = Chain()

    @property
    def bigrams(self) -> Bigrams | str | None:
        """The only pairs of neighbouring labels that exist; None: all."""
        return self.chain.bigrams

    @abstractmethod
    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterable[Arc]:
        """The arcs of all label sequences of this length, in any order."""

    def compile(self, n_positions: int, labels: Sequence[Hashable]) -> "OutputGraph":
        """The same as a graph; ValueError where the arcs do not make one."""
        ids = {label: i for i, label in enumerate(labels)}
        states: dict[Hashable, tuple[int, int]] = {}  # (position, id of the label) of each
        steps: list[tuple[Hashable, Hashable, Sequence[str]]] = []  # from, to, own weights
        met: set[Hashable] = set()
        for e, arc in enumerate(self.arcs(n_positions, labels)):
            last = arc.position + len(arc.labels) - 1
            if not 0 <= arc.position <= last < n_positions or not ids.keys() >= set(arc.labels):
                raise ArgumentError(
                    f"{arc}: expected labels of the model for positions from 0 to {n_positions - 1}."
                )
            if isinstance(arc.weights, str) or not all(isinstance(name, str) for name in arc.weights):
                raise ArgumentError(f"{arc}: expected a list of names as its weights.")
            source: Hashable = (arc.position - 1, arc.source if arc.position else None)
            if (same := (source, arc.target, *arc.labels)) in met:
                raise ArgumentError(f"{arc}: expected that no two arcs have the same states and labels.")
            met.add(same)
            for t, label in enumerate(arc.labels, arc.position):
                target = (t, arc.target) if t == last else (t, e, "inside")
                if states.setdefault(target, (t, ids[label]))[1] != ids[label]:
                    raise ArgumentError(f"{arc}: expected that the state {arc.target!r} has one label only.")
                steps.append((source, target, arc.weights if t == arc.position else ()))
                source = target
        number = {state: i for i, state in enumerate(sorted(states, key=lambda state: states[state][0]))}
        steps = [step for step in steps if step[0] in number or states[step[1]][0] == 0]
        steps.sort(key=lambda step: number[step[1]])
        positions = [states[state][0] for state in number]
        return OutputGraph(
            offsets(np.bincount(np.array(positions, np.int64), minlength=n_positions)),
            np.array([states[state][1] for state in number], np.int32),
            offsets(
                np.bincount(np.array([number[to] for _, to, _ in steps], np.int64), minlength=len(number))
            ),
            np.array([number.get(source, -1) for source, _, _ in steps], np.int64),
            offsets([len(weights) for _, _, weights in steps]),
            tuple(name for _, _, weights in steps for name in weights),
        )


@dataclass(frozen=True, eq=False)
class OutputGraph:
    """The label sequences of one length as the paths of a graph.

    States are numbered position by position, and arcs, each over one position, by the state they lead to.
    """

    level_ptr: Int64s  # [T + 1] the states of position t are level_ptr[t]:level_ptr[t + 1]
    labels: Int32s  # [S] the label that each state gives its position
    in_ptr: Int64s  # [S + 1] the arcs into state j are in_ptr[j]:in_ptr[j + 1]
    sources: Int64s  # [A] −1: the start
    weight_ptr: Int64s  # [A + 1] arc e has the weights names[weight_ptr[e]:weight_ptr[e + 1]]
    names: tuple[str, ...]
