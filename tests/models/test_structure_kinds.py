"""Nothing but the table of `crfkit.models.kinds` asks which structure a CRF has.

A structure that nothing but a new line in the table knows gets training, questions, checkpoints, pickles and model files.
"""

from __future__ import annotations

import ast
import pickle
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Chain, Checkpoint, load
from crfkit.errors import ArgumentError, FileFormatError, UnsupportedError
from crfkit.features import GraphMap
from crfkit.models import describe, kinds
from crfkit.models.kinds import KINDS, StoredModel, StructureKind
from crfkit.models.kinds.graphs import GraphPotentials
from crfkit.models.potentials import FeaturePotentials, Learning, TrainingData
from crfkit.structures import Arc, Bigrams, GraphStructure

PACKAGE = Path(crfkit.__file__).parent
CHAIN = Chain()


@dataclass(frozen=True)
class Runs:
    """Label sequences in which no label stands more than `most` times in a row; each length of a run has a weight."""

    most: int = 2
    chain: Chain = CHAIN

    @property
    def bigrams(self) -> Bigrams | str | None:
        return self.chain.bigrams


@dataclass(frozen=True)
class RunGraph(GraphStructure):
    """The same as a graph."""

    most: int

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterable[Arc]:
        for t in range(n_positions):
            for label in labels:
                yield from (
                    Arc(t, (other, k), (label, 1), [label])
                    for other in labels
                    if other != label
                    for k in range(1, self.most + 1)
                    if t
                )
                yield from (
                    Arc(t, (label, k), (label, k + 1), [label], [f"run of {k + 1}"])
                    for k in range(1, self.most)
                    if t
                )
                yield from () if t else (Arc(0, None, (label, 1), [label]),)


class RunPotentials(GraphPotentials):
    """Those of the graph."""

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        structure = RunGraph(given.settings.structure.most)  # type: ignore[attr-defined]
        return super().learn(given._replace(settings=replace(given.settings, structure=structure)))

    def trained_structure(self, chain: Chain) -> Any:
        return Runs(self.graphs.structure.most, chain)  # type: ignore[attr-defined]

    def find_unsavable(self) -> str | None:
        return self.beside.find_unsavable()


class RunKind(StructureKind):
    """All that crfkit knows of them."""

    structure = Runs
    written = "Runs(…)"
    potentials = RunPotentials
    key = "runs"
    named_weights = True

    def check(self, settings: Any) -> None:
        if settings.facets is not None:
            raise UnsupportedError("Runs do not go with facets")

    def to_json(self, structure: Runs) -> dict[str, Any]:
        return {"runs": structure.most}

    def open(self, stored: StoredModel) -> tuple[Runs, RunPotentials]:
        structure = Runs(stored.structure["runs"], stored.chain)
        names = tuple(stored.contents.structure_names)
        graphs = GraphMap(RunGraph(structure.most), stored.contents.labels.classes, names)
        return structure, RunPotentials(*stored.features, graphs, functions=stored.functions)


X = [[[f"w={letter}"] for letter in word] for word in ("abba", "aab", "cabb", "b", "bcca")]
Y = [[letter.upper() for letter in word] for word in ("abba", "aab", "cabb", "b", "bcca")]


@pytest.fixture(autouse=True)
def with_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, RunKind()))


def test_a_line_in_the_table_is_all_that_a_structure_needs(tmp_path: Path) -> None:
    crf: CRF = CRF(Runs(), l2=0.1).fit(X, Y, dev=(X, Y), checkpoint=Checkpoint(tmp_path / "c", every=1))
    same: CRF = CRF(RunGraph(2), l2=0.1).fit(X, Y, dev=(X, Y))
    np.testing.assert_array_equal(crf.weights_, same.weights_)
    assert (
        crf.structure_names_ == ["run of 2"] == [name for name, _ in describe(crf)["heaviest of structure"]]
    )
    crf.save(tmp_path / "m")
    resumed: CRF = CRF(Runs(), l2=0.1).fit(
        X, Y, dev=(X, Y), checkpoint=Checkpoint(tmp_path / "c", resume=True)
    )
    long = [[["w=a"]] * 3]
    for model in (crf, load(tmp_path / "m"), pickle.loads(pickle.dumps(crf)), resumed):
        assert model.structure_ == Runs()
        assert model.predict(X) == same.predict(X)
        np.testing.assert_array_equal(model.log_probability(X, Y), same.log_probability(X, Y))
        assert model.log_probability(long, [["A"] * 3]) == -np.inf
        assert model.predict_nbest(long, 100) == same.predict_nbest(long, 100)
    more = crf.partial_fit(X[:1], Y[:1])
    assert more.structure_ == Runs()


def test_its_checks_and_its_name_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Runs do not go with facets"):
        CRF(Runs(), facets="characters").fit(X, Y)
    with pytest.raises(ArgumentError, match=r"expected crfkit\.Chain\(…\), .* or Runs\(…\)"):
        CRF("chain").fit(X, Y)  # type: ignore[arg-type]


def test_a_file_with_two_structures_is_damaged() -> None:
    settings = {"patterns": {}, "parameters": {"structure": {"runs": 2}}}
    with pytest.raises(FileFormatError, match="several structures"):
        kinds.kind_in(settings)


# Files that may name any structure: they list public names, or are the tables.
TABLES = {"__init__.py", "structures/__init__.py", "features/__init__.py", "models/kinds/__init__.py"}
TABLES |= {"cli/structures.py"}
# Files that may name a structure: its own, which have its name in theirs, and what is built on it alone.
HOMES: dict[str, tuple[str, ...]] = {
    "Patterns": ("pattern",),
    "Segments": ("segment", "span_lists"),
    "Lattice": ("lattice", "models/word_segmenter.py", "segmenter_file.py", "features/words/"),
    "GraphStructure": ("graph",),
}


def names_in(text: str) -> Iterator[str]:
    """Identifiers of a program; comments and docstrings do not count."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name


def test_native_structures_are_named_in_their_own_files_alone() -> None:
    found = {
        (name, str(file.relative_to(PACKAGE)))
        for file in sorted(PACKAGE.rglob("*.py"))
        for name in {*names_in(file.read_text(encoding="utf-8"))} & HOMES.keys()
    }
    strangers = [
        (name, file)
        for name, file in sorted(found)
        if file not in TABLES and not any(part in file for part in HOMES[name])
    ]
    assert strangers == []
    assert {name for name, _ in found} == HOMES.keys()


def test_the_table_has_every_structure() -> None:
    assert {kind.structure.__name__ for kind in KINDS} == {"Chain", *HOMES}
