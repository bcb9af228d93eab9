"""The table structure × optimizer, complete: fit, dev set, going on after a kill, warm start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from crfkit import (
    CRF,
    LBFGS,
    Chain,
    Checkpoint,
    FeatureFunctions,
    Lattice,
    Parser,
    Patterns,
    Segments,
    WordLattice,
    optimizers,
)
from crfkit.errors import UnsupportedError
from crfkit.features import Template
from crfkit.models.kinds import KINDS as KINDS_OF_STRUCTURES
from crfkit.models.kinds import kind_of
from tests.models.first_order import first_order
from tests.models.test_new_structure import SecondOrder
from tests.oracles.treebanks import VECTORS, random_treebank

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UninformativeData"
)

PASSES = 5
NEVER = {"tolerance": 1e-300, "change": 0.0}  # settings with which a run never ends before `PASSES`


def without_end(kind: type[Any]) -> Any:
    """An optimizer that makes all its passes."""
    known = {field.name for field in fields(kind)}
    return kind(max_iterations=PASSES, **{name: NEVER[name] for name in NEVER.keys() & known})


OPTIMIZERS: dict[str, dict[str, Any]] = {
    **{kind.__name__: {"optimizer": without_end(kind)} for kind in optimizers.OPTIMIZERS.values()},
    "OWL-QN": {"optimizer": without_end(LBFGS), "l1": 0.01},
}
KINDS = {label: {"kind": kind, "label": label} for label, kind in (("A", "x"), ("B", "x"), ("C", "y"))}
PATTERNS = Patterns(["A . B", "^C", "B B* A"])


def word_is_label(x: Any, label: str, i: int) -> float:
    return float(x[i]["word"] == label.lower())


def pair(x: Any, before: Any, label: Any, i: int) -> dict[str, float]:
    return {f"{before} {label}": 1.0}


def turns(x: Any, before: Any, label: Any, i: int) -> list[float]:
    return [float(before == label), 0.5 * len(x)]


class Structure(NamedTuple):
    """A model without its optimizer, and data for it: what `fit` takes, and `dev`."""

    make: Callable[..., Any]
    data: tuple[Any, ...]
    dev: Any
    options: dict[str, Any]


def words(n: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Words a, b and c, which mostly say the label A, B or C."""
    random = np.random.default_rng(seed)
    Y = [[str(label) for label in random.choice(list("ABC"), 1 + k % 5)] for k in range(n)]
    noisy = [
        [y if random.random() < 0.8 else str(random.choice(list("ABC"))) for y in labels] for labels in Y
    ]
    return [[{"word": label.lower(), "u": label} for label in labels] for labels in noisy], Y


def with_labels(**settings: Any) -> Callable[[], Structure]:
    """A CRF on words."""
    return lambda: Structure(lambda **more: CRF(**settings, **more), words(16, 0), words(5, 1), {})


def with_columns(**settings: Any) -> Structure:
    """The same on rows of columns."""
    (X, Y), (dev_X, dev_Y) = words(16, 0), words(5, 1)
    rows, dev_rows = ([[(word["word"],) for word in x] for x in inputs] for inputs in (X, dev_X))
    return Structure(lambda **more: CRF(**settings, **more), (rows, Y), (dev_rows, dev_Y), {})


def with_many_labels(*, restricted: bool) -> Structure:
    """More labels than whole rows are taken for: as lattices where labels are restricted, else in batches."""
    Y = [[str((k + 3 * t) % 70) for t in range(4)] for k in range(70)]
    X = [[{"word": label} for label in labels] for labels in Y]
    near = [[{label, str((int(label) + 1) % 70)} for label in labels] for labels in Y]
    structure = Chain() if restricted else Chain(bigrams="observed")
    options = {"allowed": near} if restricted else {}
    dev = (X[:5], Y[:5], near[:5]) if restricted else (X[:5], Y[:5])
    return Structure(lambda **more: CRF(structure=structure, **more), (X, Y), dev, options)


def with_trees() -> Structure:
    """Sentences with trees."""
    return Structure(first_order, (random_treebank([2, 4, 3, 5], 0),), random_treebank([3, 4], 1), {})


def with_vectors() -> Structure:
    """The same with word vectors."""
    return with_trees()._replace(make=partial(Parser, order=1, structure="spanning", vectors=VECTORS))


def with_second_order() -> Structure:
    """The same, scored by siblings and grandparents too; dev sentences on which no first pass is the best one."""
    dev = random_treebank([3, 4], 3)
    return with_trees()._replace(make=partial(Parser, structure="projective", order=2), dev=dev)


def with_lattices() -> Structure:
    """Letters of which words of one or two make a path; the features of a word mostly say whether it is on it."""

    def data(n: int, seed: int) -> tuple[list[Any], list[Any]]:
        random = np.random.default_rng(seed)
        X, y = [], []
        for k in range(n):
            length, at, right = 3 + k % 4, 0, set()
            while at < length:
                end = min(length, at + int(random.integers(1, 3)))
                right.add((at, end, str(random.choice(["N", "V"]))))
                at = end
            ends = [(s, e) for s in range(length) for e in (s + 1, s + 2) if e <= length]
            words = [(s, e, label) for s, e in ends for label in "NV"]
            says = [f"{(word in right) ^ (random.random() < 0.1)}" for word in words]
            X.append(WordLattice(length, [(*word, [say]) for word, say in zip(words, says, strict=True)]))
            y.append(sorted(right))
        return X, y

    return Structure(lambda **more: CRF(structure=Lattice(), **more), data(16, 0), data(5, 1), {})


FUNCTIONS = FeatureFunctions([word_is_label, turns])
READS_WORDS = Template.parse("U:%x[0,0]\nB", "words")
READS_PAIRS = Template.parse("U:%x[0,0]\nB\nB:%x[0,0]", "pairs")
STRUCTURES: dict[str, Callable[[], Structure]] = {
    "chain": with_labels(),
    "transition features": lambda: with_columns(features=READS_PAIRS),
    "bigrams": with_labels(structure=Chain(bigrams="observed")),
    "lattice": lambda: with_many_labels(restricted=True),
    "batches": lambda: with_many_labels(restricted=False),
    "tag dictionary": lambda: with_columns(features=READS_WORDS, tag_dictionary=True),
    "facets": with_labels(facets=KINDS),
    "facets, transition features": lambda: with_columns(features=READS_PAIRS, facets=KINDS),
    "functions": with_labels(features=FUNCTIONS),
    "functions out of memory": with_labels(features=FeatureFunctions([word_is_label, pair], memory=0)),
    "patterns": with_labels(structure=PATTERNS),
    "patterns, functions": with_labels(structure=PATTERNS, features=FUNCTIONS),
    "patterns, facets": with_labels(structure=PATTERNS, facets=KINDS),
    "patterns, transition features": lambda: with_columns(structure=PATTERNS, features=READS_PAIRS),
    "patterns, tag dictionary": lambda: with_columns(
        structure=PATTERNS, features=READS_WORDS, tag_dictionary=True
    ),
    "graphs": with_labels(structure=SecondOrder()),
    "graphs, functions": with_labels(structure=SecondOrder(), features=FUNCTIONS),
    "segments": with_labels(structure=Segments()),
    "segments, transition features": lambda: with_columns(
        structure=Segments(longest_weighted=2), features=READS_PAIRS
    ),
    "word lattices": with_lattices,
    "trees": with_trees,
    "trees, vectors": with_vectors,
    "trees, second order": with_second_order,
}
CELLS = [(structure, optimizer) for structure in STRUCTURES for optimizer in OPTIMIZERS]


@cache
def of(structure: str) -> Structure:
    return STRUCTURES[structure]()


def made(structure: str, optimizer: str) -> Any:
    return of(structure).make(**{"l2": 0.1, "n_threads": 1, **OPTIMIZERS[optimizer]})


def fitted(structure: str, optimizer: str, **options: Any) -> Any:
    found = of(structure)
    return made(structure, optimizer).fit(*found.data, **found.options, **options)


@cache
def whole(structure: str, optimizer: str) -> Any:
    """The run that nothing interrupts."""
    return fitted(structure, optimizer, dev=of(structure).dev)


@pytest.mark.parametrize(("structure", "optimizer"), CELLS)
def test_fit_with_a_dev_set(structure: str, optimizer: str) -> None:
    """It learns, and keeps the weights of the highest dev score."""
    model, found = whole(structure, optimizer), of(structure)
    scores = [record.dev_score for record in model.history_]
    assert scores[model.n_iter_] == max(scores[1:])
    assert scored(model, found.dev) == scores[model.n_iter_]
    assert scored(model, (*found.data, *found.options.values())) > 0.6


def scored(model: Any, data: Any) -> float:
    if isinstance(model, Parser):
        return model.score(data if isinstance(data, list) else data[0])
    X, y, *allowed = data
    return float(model.score(X, y, allowed=allowed[0] if allowed else None))


class Killed(BaseException):
    """As a kill ends a run: nothing is kept but what the checkpoint has."""


@pytest.mark.parametrize(("structure", "optimizer"), CELLS)
def test_a_killed_run_goes_on_with_the_same_bits(structure: str, optimizer: str, tmp_path: Path) -> None:
    def kill(progress: Any) -> None:
        if progress.iteration == 3:
            raise Killed

    path, dev, seen = tmp_path / "c", of(structure).dev, []
    with pytest.raises(Killed):
        fitted(structure, optimizer, dev=dev, checkpoint=Checkpoint(path, every=2), callback=kill)
    again = fitted(
        structure,
        optimizer,
        dev=dev,
        checkpoint=Checkpoint(path, resume=True),
        callback=lambda progress: seen.append(progress.iteration),
    )
    assert seen[0] == 3
    expected = whole(structure, optimizer)
    assert again.weights_.tobytes() == expected.weights_.tobytes()
    assert [r.dev_score for r in again.history_] == [r.dev_score for r in expected.history_]


@pytest.mark.parametrize(("structure", "optimizer"), CELLS)
def test_a_warm_start_begins_where_the_other_ended(structure: str, optimizer: str) -> None:
    trained = fitted(structure, "LBFGS")
    model = made(structure, optimizer)
    model.optimizer = replace(model.optimizer, max_iterations=0)
    found = of(structure)
    model.fit(*found.data, **found.options, start=trained)
    assert model.weights_.tobytes() == trained.weights_.tobytes()
    warm = fitted(structure, optimizer, start=trained, dev=found.dev)
    assert warm.weights_.tobytes() != whole(structure, optimizer).weights_.tobytes()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_what_stays_impossible_is_mathematics(structure: str) -> None:
    """A penalty l1 is not smooth, and Newton's methods look at second derivatives."""
    for optimizer in ("TRON", "Newton"):
        with pytest.raises(UnsupportedError, match="l1"):
            made(structure, optimizer).set_params(l1=0.1).fit(*of(structure).data)


def test_every_kind_of_structure_has_a_row() -> None:
    models = [of(structure).make() for structure in STRUCTURES]
    assert {kind_of(model.structure) for model in models if isinstance(model, CRF)} == {*KINDS_OF_STRUCTURES}
