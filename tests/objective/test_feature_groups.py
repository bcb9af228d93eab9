"""Features that are active together are scored as one: the same values and derivatives as feature by feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crfkit import _core
from crfkit.objective import add_in_tree
from tests.objective.test_kernels import Model, answers, check_derivatives, check_threads, draw

MANY = np.arange(700) % 13  # lengths of sequences


class OneValued(Model):
    """A model whose features all have the value 1, which the core is not given."""

    def design(self, layout: Any, purpose: str = "training") -> Any:
        position, feature = np.nonzero(self.states)
        copies = self.states[position, feature].astype(int)
        arc_position, arc_feature = np.nonzero(self.arcs)
        return _core.Design(
            layout,
            self.sequence_ptr,
            np.concatenate([[0], np.cumsum(self.states.sum(axis=1))]).astype(np.int64),
            np.repeat(feature, copies).astype(np.int32),
            np.zeros(0),
            np.concatenate([[0], np.cumsum((self.arcs != 0).sum(axis=1))]).astype(np.int64),
            arc_feature.astype(np.int32),
            self.arcs[arc_position, arc_feature],
            [self.dense],
            1,
            purpose=purpose,
        )


def words(n_labels: int, n_words: int = 30, n_affixes: int = 6, **kind: Any) -> OneValued:
    """A model of words: each has affixes of its own, shares others, and is a feature of the next position too."""
    model = draw(n_labels, **kind)
    random = np.random.default_rng([n_labels, n_words, n_affixes])
    T = len(model.labels)
    word = np.minimum(random.geometric(0.15, T) - 1, n_words - 1)
    has = random.random((n_words, n_affixes * 4)) < 0.5  # affixes that words share
    own = np.repeat(np.eye(n_words), n_affixes, axis=1)
    features = np.hstack([np.eye(n_words), own, has])[word]
    pair = np.zeros((T, n_words))
    pair[1:] = np.eye(n_words)[(word[1:] + word[:-1]) % n_words]  # which implies nothing
    before = np.vstack([np.zeros(features.shape[1]), features[:-1]])
    states = np.hstack([features, before, pair, np.ones((T, 1))])
    pairs = random.random((states.shape[1], n_labels)) < random.random((states.shape[1], 1))
    return OneValued(**{**vars(model), "states": states, "pairs": pairs})


KINDS: dict[str, dict[str, bool]] = {
    "complete": {},
    "partial": {"partial": True},
    "partial, own arcs": {"partial": True, "own_arcs": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 9, 16, 17, 22, 33, 64, 65, 130])
def test_value_gradient_and_curvature_are_those_of_the_definition(n_labels: int, kind: str) -> None:
    model = words(n_labels, **KINDS[kind], lengths=np.array([1, 17, 0, 12, 5, 9]))
    w, v = np.random.default_rng(n_labels).normal(size=(2, model.n_weights())) / 3
    check_derivatives(model, w, v, in_single=2e-4)


def test_groups_are_made() -> None:
    """Features with values are not put into groups: sums in another order have other last digits."""
    model = words(9, lengths=MANY)
    together = answers(model, single=False)
    one_by_one = answers(Model(**vars(model)), single=False)
    for found, expected in zip(together[1:], one_by_one[1:], strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        assert np.mean(found != expected) > 0.5


@pytest.mark.parametrize("n_labels", [3, 22, 65])
@pytest.mark.parametrize("single", [False, True])
def test_the_same_bits_for_any_number_of_threads(n_labels: int, single: bool) -> None:
    check_threads(words(n_labels, lengths=np.arange(4000) % 13), single=single, numbers=(2, 3, 16))


@pytest.mark.parametrize(
    "n_affixes", [1, 9, 30, 70]
)  # up to 280 features at a position: more than are looked at
@pytest.mark.parametrize("n_threads", [1, 3])
def test_positions_of_many_features(n_affixes: int, n_threads: int) -> None:
    model = words(4, n_affixes=n_affixes, lengths=np.arange(60) % 13)
    w = np.random.default_rng(0).normal(size=model.n_weights()) / 10
    expected, gradient = model.gradient(w)
    value, found = model.objective(single=False, n_threads=n_threads).value_and_gradient(w)
    assert value == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(found, gradient, rtol=0, atol=1e-9)


def test_features_that_a_position_has_twice_count_twice() -> None:
    model = words(5, lengths=np.arange(60) % 13)
    random = np.random.default_rng(1)
    twice = random.random(model.states.shape[1]) < 0.3
    once = random.random(len(model.states)) < 0.5
    model = replace(model, states=model.states * np.where(twice & ~once[:, None], 2, 1))
    w = random.normal(size=model.n_weights()) / 5
    expected, gradient = model.gradient(w)
    value, found = model.objective(single=False).value_and_gradient(w)
    assert value == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(found, gradient, rtol=0, atol=1e-9)


@pytest.mark.parametrize("single", [False, True])
def test_shards_have_groups_of_their_own(single: bool) -> None:
    """Shards of one layout hand their tables of weights on, whose last rows are those of groups."""
    model, n = words(7, lengths=MANY), len(MANY)
    shards = [model.part(first, last) for first, last in ((0, 200), (200, 600), (600, n))]
    layout = model.layout()

    def losses() -> list[Any]:
        return [shard.loss(layout, single=single) for shard in shards]

    one_by_one = [_core.Objective(loss, np.zeros(1)) for loss in losses()]
    together = _core.Objective(_core.sharded_loss(losses()), np.zeros(1))
    for w, v in np.random.default_rng(0).normal(size=(3, 2, model.n_weights())):
        found = [objective.value_and_gradient(w) for objective in one_by_one]
        value, gradient = together.value_and_gradient(w)
        assert value == add_in_tree([loss for loss, _ in found])
        np.testing.assert_array_equal(gradient, add_in_tree([slope for _, slope in found]))
        products = [objective.hessian_vector(w, v) for objective in one_by_one]
        np.testing.assert_array_equal(together.hessian_vector(w, v), add_in_tree(products))
