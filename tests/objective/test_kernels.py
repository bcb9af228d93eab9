"""The scaled kernels against plain log space, for every number of labels: rows are padded to whole vectors.

A small model with all kinds of weights is evaluated twice: by the core (scores from features, messages in exp
space, gradient by features), and from the definition with dense NumPy arrays.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import _core
from tests.oracles.oracle import Floats, LogSpaceChain

Ints = Any


@dataclass(frozen=True)
class Model:
    """A data set and its features, as flat arrays for the core and as dense ones for the definition.

    F state features, each with weights for some of the labels; K dense columns; G arc features, each with
    weights for some arcs. Weights in the core's order: pairs, dense block, arcs, start, end, arc triples.
    """

    n_labels: int
    sequence_ptr: Ints  # [N + 1]
    pairs: Ints  # [F, L] bool: feature f has a weight for label b
    states: Floats  # [T, F] value of feature f at position t, 0 where it does not fire
    dense: Floats  # [T, K]
    triples: Ints  # [G, L, L] bool
    arcs: Floats  # [T, G]
    labels: Ints  # [T] −1: unknown
    allowed: Ints  # [T, L] bool, all True where nothing is known
    weights: Floats  # [N] of the sequences

    def layout(self) -> Any:
        """Where the weights lie."""
        L = self.n_labels
        before, after = np.divmod(np.arange(L * L), L)
        every, last = np.arange(L), np.full(L, L)
        return _core.Layout(
            L,
            _pointers(self.pairs),
            np.nonzero(self.pairs)[1].astype(np.int32),
            np.array([self.dense.shape[1]]),
            np.concatenate([before, last, every]).astype(np.int32),
            np.concatenate([after, every, last]).astype(np.int32),
            _pointers(self.triples.reshape(-1, L * L)),
            np.nonzero(self.triples.reshape(-1, L * L))[1].astype(np.int32),
        )

    def design(self, layout: Any, purpose: str = "training") -> Any:
        """What is active where."""
        position, feature = np.nonzero(self.states)
        arc_position, arc_feature = np.nonzero(self.arcs)
        return _core.Design(
            layout,
            self.sequence_ptr,
            _pointers(self.states != 0),
            feature.astype(np.int32),
            self.states[position, feature],
            _pointers(self.arcs != 0),
            arc_feature.astype(np.int32),
            self.arcs[arc_position, arc_feature],
            [self.dense],
            1,
            purpose=purpose,
        )

    def objective(self, *, single: bool, n_threads: int = 1) -> Any:
        """The core's objective, without penalty."""
        return _core.Objective(self.loss(self.layout(), single=single, n_threads=n_threads), np.zeros(1))

    def loss(self, layout: Any, *, single: bool, n_threads: int = 1) -> Any:
        """The loss, with weights that lie as in `layout`."""
        sets = np.where((self.labels < 0) & ~self.allowed.all(axis=1), 1, 0)[:, None] & self.allowed
        return _core.chain_loss(
            layout,
            self.design(layout),
            self.labels,
            _pointers(sets),
            np.nonzero(sets)[1].astype(np.int32),
            self.weights,
            single,
            n_threads,
        )

    def n_weights(self) -> int:
        """D."""
        L = self.n_labels
        return int(self.pairs.sum() + self.dense.shape[1] * L + L * L + 2 * L + self.triples.sum())

    def tables(self, w: Any) -> tuple[Any, ...]:
        """A weight vector as dense tables: [F, L], [K, L], [L, L], start [L], end [L], [G, L, L]."""
        L, K = self.n_labels, self.dense.shape[1]
        sizes = np.cumsum([self.pairs.sum(), K * L, L * L, L, L])
        pairs, dense, arcs, start, end, triples = np.split(w, sizes)
        rows, cubes = np.zeros(self.pairs.shape, w.dtype), np.zeros(self.triples.shape, w.dtype)
        rows[self.pairs], cubes[self.triples] = pairs, triples
        return rows, dense.reshape(K, L), arcs.reshape(L, L), start, end, cubes

    def gradient(self, w: Any) -> tuple[Any, Any]:
        """Value and gradient from the definition; w may be complex."""
        rows, dense, arcs, start, end, cubes = self.tables(w)
        value, total = 0.0, [np.zeros_like(table) for table in (rows, dense, arcs, start, end, cubes)]
        for n, weight in enumerate(self.weights):
            here = slice(self.sequence_ptr[n], self.sequence_ptr[n + 1])
            x, z, g = self.states[here], self.dense[here], self.arcs[here]
            if len(x) == 0:
                continue
            scores = x @ rows + z @ dense
            pair_scores = arcs + np.tensordot(g[1:], cubes, axes=1)  # [T − 1, L, L]
            for sign, mask in ((weight, None), (-weight, self.possible()[here])):
                chain = LogSpaceChain(
                    scores if mask is None else np.where(mask, scores, -np.inf), pair_scores, start, end
                )
                states, pairs = chain.marginals()
                value = value + sign * chain.log_partition
                parts = (x.T @ states, z.T @ states, pairs.sum(axis=0), states[0], states[-1])
                for sums, part in zip(total, (*parts, np.tensordot(g[1:].T, pairs, axes=1)), strict=True):
                    sums += sign * part
        total[0], total[5] = total[0][self.pairs], total[5][self.triples]
        return value, np.concatenate([table.ravel() for table in total])

    def part(self, first: int, last: int) -> Model:
        """The same model on the sequences from `first` up to `last`."""
        begin, end = self.sequence_ptr[first], self.sequence_ptr[last]
        by_position = {
            name: getattr(self, name)[begin:end] for name in ("states", "dense", "arcs", "labels", "allowed")
        }
        return replace(
            self,
            sequence_ptr=self.sequence_ptr[first : last + 1] - begin,
            weights=self.weights[first:last],
            **by_position,
        )

    def possible(self) -> Any:
        """The labels that agree with the annotation [T, L]."""
        known = self.labels >= 0
        return np.where(known[:, None], np.arange(self.n_labels) == self.labels[:, None], self.allowed)


def _pointers(active: Any) -> Any:
    """Offsets of the lists of True entries, row by row."""
    return np.concatenate([[0], np.cumsum(np.sum(active, axis=1))]).astype(np.int64)


def draw(
    n_labels: int,
    *,
    partial: bool = False,
    own_arcs: bool = False,
    lengths: Ints = np.array([1, 17, 0, 2, 5, 9]),  # noqa: B008
) -> Model:
    """A random model with sequences of these lengths."""
    random = np.random.default_rng([n_labels, partial, own_arcs])
    T, F, K, G = int(lengths.sum()), 12, 2, 3
    pairs = random.random((F, n_labels)) < np.linspace(0.02, 1.0, F)[:, None]  # few labels … all labels
    sequence_ptr = np.concatenate([[0], np.cumsum(lengths)])
    arcs = random.normal(size=(T, G)) * (random.random((T, G)) < 0.2 * own_arcs)
    arcs[sequence_ptr[:-1][lengths > 0]] = 0.0
    allowed = random.random((T, n_labels)) < 0.5
    allowed[np.arange(T), random.integers(n_labels, size=T)] = True
    labels = random.integers(n_labels, size=T)
    if partial:
        labels[random.random(T) < 0.5] = -1
        allowed[random.random(T) < 0.3] = True
    return Model(
        n_labels=n_labels,
        sequence_ptr=sequence_ptr,
        pairs=pairs,
        states=random.normal(size=(T, F)) * (random.random((T, F)) < 0.4),
        dense=random.normal(size=(T, K)),
        triples=random.random((G, n_labels, n_labels)) < 0.3,
        arcs=arcs,
        labels=labels.astype(np.int32),
        allowed=allowed,
        weights=np.resize([1.0, 1.0, 1.0, 0.5, 2.0, 0.0], len(lengths)),
    )


KINDS: dict[str, dict[str, bool]] = {
    "complete": {},
    "partial": {"partial": True},
    "own arcs": {"own_arcs": True},
    "partial, own arcs": {"partial": True, "own_arcs": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_labels", [*range(1, 41), 45, 64, 65, 130])
def test_value_gradient_and_curvature(n_labels: int, kind: str) -> None:
    model = draw(n_labels, **KINDS[kind])
    check_derivatives(model, *np.random.default_rng(n_labels).normal(size=(2, model.n_weights())))


def check_derivatives(model: Model, w: Floats, v: Floats, in_single: float = 1e-4) -> None:
    """The core's value, gradient and Hessian · v at w are those of the definition."""
    expected, gradient = model.gradient(w)
    curvature = model.gradient(w + 1e-30j * v)[1].imag / 1e-30
    for single, tolerance in ((False, 1e-10), (True, in_single)):
        objective = model.objective(single=single)
        value, found = objective.value_and_gradient(w)
        assert value == pytest.approx(float(np.real(expected)), rel=tolerance / 10)
        np.testing.assert_allclose(found, gradient, rtol=0, atol=tolerance)
        np.testing.assert_allclose(objective.hessian_vector(w, v), curvature, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 9, 17, 22, 33, 45, 65, 130])
@pytest.mark.parametrize("own_arcs", [False, True])
@pytest.mark.parametrize(("purpose", "copies"), [("training", 1), ("questions", 1), ("questions", 30)])
def test_scored_sequences_answer_as_the_chain_does(
    n_labels: int, own_arcs: bool, purpose: str, copies: int
) -> None:
    model = draw(n_labels, own_arcs=own_arcs)  # with copies, more features than are looked up in one go
    model = replace(
        model, pairs=np.tile(model.pairs, (copies, 1)), states=np.tile(model.states, copies) / copies
    )
    w = np.random.default_rng(n_labels).normal(size=model.n_weights())
    layout = model.layout()
    scored = _core.ChainPotentials(layout, w).score(model.design(layout, purpose), 1)
    rows, dense, arcs, start, end, cubes = model.tables(w)
    scores = model.states @ rows + model.dense @ dense
    pair_scores = arcs + np.tensordot(model.arcs, cubes, axes=1)
    log_partitions = scored.log_partitions(None, None, None, 1)
    marginals, best = scored.marginals(1), scored.decode(1)
    for n, (first, last) in enumerate(zip(model.sequence_ptr[:-1], model.sequence_ptr[1:], strict=True)):
        if first == last:
            assert log_partitions[n] == 0.0
            continue
        chain = LogSpaceChain(scores[first:last], pair_scores[first + 1 : last], start, end)
        assert log_partitions[n] == pytest.approx(float(chain.log_partition), rel=1e-12)
        np.testing.assert_allclose(marginals[first:last], chain.marginals()[0], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(best[first:last], chain.best())


def draw_many(n_labels: int) -> Model:
    """A model of so many sequences that they fall into several blocks and chunks."""
    n_sequences = 2000 if n_labels < 30 else 400
    return draw(n_labels, partial=True, own_arcs=True, lengths=np.arange(n_sequences) % 13)


def check_threads(model: Model, *, single: bool, numbers: Sequence[int]) -> None:
    """All answers have the same bits for these numbers of threads as for one."""
    value, gradient, product = answers(model, single=single)
    for n_threads in numbers:
        again = answers(model, single=single, n_threads=n_threads)
        assert again[0] == value
        assert again[1].tobytes() == gradient.tobytes()
        assert again[2].tobytes() == product.tobytes()


def answers(model: Model, *, single: bool, n_threads: int = 1) -> tuple[float, Floats, Floats]:
    """Value, gradient and one Hessian · vector product at the same random weights."""
    w, v = np.random.default_rng(0).normal(size=(2, model.n_weights()))
    objective = model.objective(single=single, n_threads=n_threads)
    value, gradient = objective.value_and_gradient(w)
    return value, gradient, objective.hessian_vector(w, v)


@pytest.mark.parametrize("n_labels", [3, 22, 65])
@pytest.mark.parametrize("single", [False, True])
def test_the_same_bits_for_any_number_of_threads(n_labels: int, single: bool) -> None:
    check_threads(draw_many(n_labels), single=single, numbers=(2, 4))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1.0, 30.0])  # 30: many sequences are answered in log space
def test_a_product_has_the_same_bits_whatever_was_asked_before(single: bool, kind: str, size: float) -> None:
    """Messages are kept from one question to the next where the weights are the same."""
    model = draw(9, **KINDS[kind])
    w, other, v, u = np.random.default_rng(0).normal(size=(4, model.n_weights())) * size

    def fresh() -> Any:
        return model.objective(single=single)

    objective = fresh()
    questions = [(w, v), (w, u), (other, v), (w.copy(), v), (w, None), (w, u), (other, None), (w, u)]
    for weights, direction in questions:
        if direction is None:
            value, gradient = objective.value_and_gradient(weights)
            assert value == fresh().value_and_gradient(weights)[0]
            assert gradient.tobytes() == fresh().value_and_gradient(weights)[1].tobytes()
        else:
            product = objective.hessian_vector(weights, direction)
            assert product.tobytes() == fresh().hessian_vector(weights, direction).tobytes()


@pytest.mark.parametrize("n_labels", [3, 22, 65])
def test_answers_have_the_same_bits_for_any_number_of_threads(n_labels: int) -> None:
    model = draw_many(n_labels)
    layout = model.layout()
    w = np.random.default_rng(0).normal(size=model.n_weights())
    scored = _core.ChainPotentials(layout, w).score(model.design(layout), 1)
    for ask in (scored.decode, scored.marginals):
        assert ask(1).tobytes() == ask(2).tobytes() == ask(4).tobytes()


@pytest.mark.parametrize("n_labels", [3, 22, 65])
def test_a_data_set_is_the_sum_of_its_halves(n_labels: int) -> None:
    model = draw_many(n_labels)
    whole = answers(model, single=False)
    halves = [
        answers(half, single=False) for half in (model.part(0, 150), model.part(150, len(model.weights)))
    ]
    for together, one, other in zip(whole, *halves, strict=True):
        np.testing.assert_allclose(together, one + other, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("instruction_set", ["baseline", "x86-64-v3"])
def test_every_instruction_set_gives_the_same_answers(tmp_path: Path, instruction_set: str) -> None:
    """The kernels are compiled once for each; a processor that lacks one falls back to what it has."""
    program = (
        "import sys, numpy, tests.objective.test_kernels as kernels\n"
        "numpy.savez(sys.argv[1], *kernels.answers_of_many_sizes())"
    )
    file = tmp_path / "answers.npz"
    subprocess.run(
        [sys.executable, "-c", program, str(file)],
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "CRFKIT_INSTRUCTION_SET": instruction_set},
    )
    with np.load(file) as found:
        for expected, name in zip(answers_of_many_sizes(), found.files, strict=True):
            np.testing.assert_allclose(found[name], expected, rtol=0, atol=1e-10)


def answers_of_many_sizes() -> list[Floats]:
    """Gradients and products for label counts around the widths of vectors."""
    sizes = (1, 2, 4, 5, 8, 9, 16, 17, 22, 32, 33, 45, 65)
    found = [answers(draw(n, partial=True, own_arcs=True), single=False) for n in sizes]
    return [array for _, gradient, product in found for array in (gradient, product)]


@pytest.mark.parametrize("by_pair", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 7, 8, 9, 16, 17, 22, 33, 45, 65, 130])
def test_scaled_and_log_space_agree(n_labels: int, by_pair: bool) -> None:
    """The fast twin and the slow one that takes over where scores lie far apart."""
    random = np.random.default_rng(n_labels)
    states, d_states = random.normal(size=(2, 14, n_labels)) * 3
    states[random.random(states.shape) < 0.2] = -np.inf
    states[:, 0] = 0.0
    arcs, d_arcs = random.normal(size=(2, 13, n_labels, n_labels) if by_pair else (2, n_labels, n_labels)) * 3
    chain, direction = _core.ScoredChain(states, arcs), _core.ScoredChain(d_states, d_arcs)
    assert chain.log_partition() == pytest.approx(chain.log_partition(in_log_space=True), rel=1e-13)
    fast, slow = (
        [*chain.marginals(in_log_space), *chain.hessian_vector(direction, in_log_space)]
        for in_log_space in (False, True)
    )
    for by_kernels, by_log in zip(fast, slow, strict=True):
        np.testing.assert_allclose(by_kernels, by_log, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 9, 22])
@pytest.mark.parametrize("spread", [5.0, 20.0, 30.0, 31.0, 45.0, 100.0, 230.0, 231.0, 400.0, 700.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.1, 2.0])
def test_arcs_that_outweigh_the_states(n_labels: int, spread: float, share: float) -> None:
    """At every other position label 1 scores 2 · spread · share less than label 0; the arcs around it, as much more.

    With a share near 1 both matter, though seen from the states alone label 1 rounds to nothing.
    """
    T = 11
    states = np.zeros((T, n_labels))
    states[:, 2:] = -10.0 * spread
    states[1::2, 1], states[::2, 1] = -2.0 * spread * share, -10.0 * spread
    arcs = np.full((n_labels, n_labels), -spread)
    arcs[0, 1] = arcs[1, 0] = 0.0
    model = Model(
        n_labels=n_labels,
        sequence_ptr=np.array([0, T]),
        pairs=np.zeros((0, n_labels), dtype=np.bool_),
        states=np.zeros((T, 0)),
        dense=np.eye(T),
        triples=np.zeros((0, n_labels, n_labels), dtype=np.bool_),
        arcs=np.zeros((T, 0)),
        labels=np.zeros(T, dtype=np.int32),
        allowed=np.ones((T, n_labels), dtype=np.bool_),
        weights=np.ones(1),
    )
    w = np.concatenate([states.ravel(), arcs.ravel(), np.zeros(2 * n_labels)])
    expected, gradient = model.gradient(w)
    for single, tolerance in ((False, 1e-9), (True, 1e-4)):
        value, found = model.objective(single=single).value_and_gradient(w)
        assert value == pytest.approx(expected, rel=1e-6 if single else 1e-12, abs=tolerance)
        np.testing.assert_allclose(found, gradient, rtol=0, atol=tolerance)
