"""Training sets of word lattices, with all paths of each and what these have of each weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crfkit import CRF, Lattice, WordLattice
from crfkit.models.training.training_set import TrainingInput
from tests.oracles.word_lattices import Path, active, all_paths, random_lattice

BOUNDARY = ("E", "*")
TEMPLATES: dict[str, Callable[[Any, Any], str | None]] = {  # and the names of their weights
    "%L[0]/%R[0]": lambda a, b: f"{a[0]}/{b[0]}",
    "%L[0],%L?[1]:%R[0]": lambda a, b: None if a[1] == "*" else f"{a[0]},{a[1]}:{b[0]}",
    "to %R[1]": lambda a, b: f"to {b[1]}",
}


class LatticeProblem:
    """Random lattices and paths; some of these unknown in part (`partial`), some arcs not allowed (`restrict`).

    `transitions`: "labels", None, or "templates", by which a pair of labels has several weights.
    """

    def __init__(
        self,
        *,
        transitions: str | None = "labels",
        crossed: bool = True,
        partial: bool = False,
        restrict: bool = False,
    ) -> None:
        random = np.random.default_rng(11)
        lattices = [random_lattice(random, int(length)) for length in (1, 2, 4, 5, 6, 3, 4)]
        fields: dict[Any, Any] = (
            {"X": ("A", "x"), "Y": ("B", "*"), "Z": ("A", "y")} if transitions == "templates" else {}
        )
        self.lattices = [
            (
                length,
                [(start, end, fields.get(label, label), features) for start, end, label, features in arcs],
            )
            for length, arcs in lattices
        ]
        self.paths = [list(all_paths(*lattice)) for lattice in self.lattices]
        gold = [paths[random.integers(len(paths))] for paths in self.paths]
        self.gold = gold
        self.partial = [partial and n % 2 == 1 and len(path) > 1 for n, path in enumerate(gold)]
        y = [
            [path[0], None, path[-1]] if unknown else list(path)
            for path, unknown in zip(gold, self.partial, strict=True)
        ]
        # Of some lattices only those paths exist that end as the gold one does.
        self.last = [path[-1] if restrict and n % 3 == 0 else None for n, path in enumerate(gold)]
        allowed = [None if last is None else [None, last] for last in self.last] if restrict else None
        structure = Lattice(
            list(TEMPLATES) if transitions == "templates" else transitions,
            crossed,
            BOUNDARY if transitions == "templates" else "BOS/EOS",
        )
        settings = CRF(structure, all_possible_states=True)._settings()
        X = [WordLattice(*lattice) for lattice in self.lattices]
        self.found = TrainingInput(X, y, allowed, settings).learn()
        self.crossed, self.transitions = crossed, transitions
        self.weight = random.uniform(0.5, 2, len(X))
        self.n_weights = self.found.model.n_weights
        self._numbers = self._number()

    def exists(self, n: int, path: Path) -> bool:
        """Whether a path is allowed."""
        return self.last[n] is None or path[-1] == self.last[n]

    def admits(self, n: int, path: Path) -> bool:
        """Whether the annotation admits a path."""
        gold = self.gold[n]
        if self.partial[n]:
            return (path[0], path[-1]) == (gold[0], gold[-1])
        return path == gold

    def counts(self, n: int, path: Path) -> Any:
        """How often each weight counts in the score of a path [D]."""
        out = np.zeros(self.n_weights)
        arcs = self.lattices[n][1]
        labels = [arcs[i][2] for i in path]
        for i in path:
            for name, value in active(arcs[i][3]).items():
                out[self._numbers["f", name, arcs[i][2] if self.crossed else "*"]] += value
        boundary: Any = BOUNDARY if self.transitions == "templates" else "BOS/EOS"
        for before, after in zip([boundary, *labels], [*labels, boundary], strict=True):
            for name in self._names(before, after):
                out[self._numbers["t", name]] += 1
        return out

    def _names(self, before: Any, after: Any) -> list[str]:
        if self.transitions is None:
            return []
        if self.transitions == "labels":
            return [f"{before} → {after}"]
        found = (name(before, after) for name in TEMPLATES.values())
        return [name for name in found if name is not None]

    def _number(self) -> dict[tuple[Any, ...], int]:
        """The number of each weight."""
        model: Any = self.found.model
        map_, numbers = model.potentials.feature_map, dict[tuple[Any, ...], int]()
        for f, name in enumerate(model.potentials.encoder.vocabulary.names()):
            for k in range(map_.pair_ptr[f], map_.pair_ptr[f + 1]):
                numbers["f", name, model.labels.classes[map_.pair_labels[k]]] = k
        for k, name in enumerate(model.potentials.structure_names):
            numbers["t", name] = map_.n_weights + k
        return numbers
