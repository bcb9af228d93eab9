"""Chains computed side by side, and sums that go straight to the total: the same bits as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.objective.test_kernels import check_threads, draw


@pytest.mark.parametrize("n_labels", [1, 3, 9, 16, 17, 22, 33, 45, 65, 130])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("partial", [False, True])  # partial: plain sequences among others
def test_losses_of_sequences_are_those_of_each_alone(n_labels: int, single: bool, partial: bool) -> None:
    lengths = np.array([1, 17, 0, 2, 5, 9, 30, 1, 1, 4, 8])
    model = draw(n_labels, partial=partial, lengths=lengths)
    w = np.random.default_rng(0).normal(size=model.n_weights())
    alone = [model.part(n, n + 1).objective(single=single) for n in range(len(lengths))]
    losses = [objective.value_and_gradient(w)[0] for objective in alone]
    assert model.objective(single=single).value_and_gradient(w)[0] == sum(losses)


@pytest.mark.parametrize("n_labels", [3, 22, 65])
@pytest.mark.parametrize("single", [False, True])
def test_sums_of_plain_sequences_have_the_same_bits_for_any_number_of_threads(
    n_labels: int, single: bool
) -> None:
    """In single precision blocks are added to the total in any order, in double precision when their turn comes."""
    check_threads(draw(n_labels, lengths=np.arange(3000) % 13), single=single, numbers=(2, 3, 5))
