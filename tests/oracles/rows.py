"""The rows of the table of laws: random instances of every structure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from tests.oracles.graph_instances import GRAPHS, GraphInstance, draw_graph_instance
from tests.oracles.instances import CHAINS, ChainInstance, draw_chain
from tests.oracles.pattern_instances import with_patterns
from tests.oracles.projective_instances import PROJECTIVE, ProjectiveInstance, draw_projective
from tests.oracles.tree_instances import TREES, TreeInstance, draw_tree

Instance = ChainInstance | TreeInstance | ProjectiveInstance | GraphInstance

BASE = {"positions": (2, 5), "labels": (2, 4)}  # of the chains in which patterns begin
# what the chain is drawn with, and the patterns that begin in it
PATTERNS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "patterns": ({}, {}),
    "patterns, many": ({"positions": (4, 4), "labels": (4, 4)}, {"lines": 14}),
    "patterns, loops": ({}, {"lines": 2, "loops": 3}),
    "patterns, tied": ({"positions": (4, 6), "labels": (3, 3)}, {"tied": True, "weights": 2}),
    "patterns, endings": ({"positions": (4, 4), "labels": (4, 4)}, {"lines": 16, "endings": True}),
    "patterns, none begin": ({}, {"lines": 0}),
    "patterns, no arcs": ({"arcs": "none", "start": False, "end": False}, {}),
    "patterns, arcs by pair, allowed labels": ({"arcs": "pairs", "restricted": 0.4}, {"loops": 1}),
    "patterns, forbidden": ({"forbidden": 0.4}, {"loops": 1}),
    "patterns, bigrams": ({"bigrams": 0.5}, {"loops": 1}),
    "patterns, few bigrams, allowed labels": ({"bigrams": 0.2, "restricted": 0.3, "positions": (3, 6)}, {}),
    "patterns, soft bigrams": ({"bigrams": 0.3, "unseen": "soft"}, {}),
    "patterns, ties": ({"whole": True}, {"scale": 0.0}),
    "patterns, scores of 400": ({"scale": 400.0}, {"scale": 400.0, "loops": 1}),
    "patterns, scores of 1e4": ({"scale": 1e4, "restricted": 0.2}, {"scale": 1e4}),
    "patterns, one position": ({"positions": (1, 1)}, {"loops": 1}),
    "patterns, empty": ({"positions": (0, 0)}, {}),
}


def draw(row: str, random: np.random.Generator) -> Instance:
    """An instance of a row."""
    if row in TREES:
        return draw_tree(random, **TREES[row])
    if row in PROJECTIVE:
        return draw_projective(random, **PROJECTIVE[row])
    if row in GRAPHS:
        return draw_graph_instance(random, **GRAPHS[row])
    if row in CHAINS:
        return draw_chain(random, **CHAINS[row])
    chain, patterns = PATTERNS[row]
    return with_patterns(random, draw_chain(random, **{**BASE, **chain}), **patterns)


ROWS = (*CHAINS, *PATTERNS, *TREES, *PROJECTIVE, *GRAPHS)


@cache
def instances(row: str, n: int = 6) -> tuple[Instance, ...]:
    """The instances of one row: the same ones in every run."""
    return tuple(draw(row, np.random.default_rng([number, len(row)])) for number in range(n))
