"""The Triton kernels for trees on a CPU: run by `test_triton.py` in a process of its own, with TRITON_INTERPRET=1.

What the kernels answer is compared with brute force, and for sentences that are too long for it with the native core.
"""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import numpy as np
import torch

from crfkit.inference import TreeBatch
from crfkit.nn.backends.torch_tree import is_safe
from crfkit.nn.problem.tree import TreeProblem
from crfkit.nn.triton.trees import backend as tree_triton
from crfkit.nn.triton.trees.registers import register_kernel
from crfkit.structures import SpanningTree
from tests.oracles.oracle import TreeOracle

KERNELS = tree_triton.KernelTreeBackend()
# words, lengths, spread of the scores, share of arcs that do not exist
KINDS: list[tuple[int, list[int] | None, float, float]] = [
    (3, None, 2.0, 0.0),
    (4, [4, 0, 1], 2.0, 0.3),
    (4, [4, 4, 3], 1.0, 0.6),  # some have no tree, or one word that only the root can be the head of
    (4, [4, 3], 1e4, 0.3),  # further apart than float64 reaches
    (17, [17], 60.0, 0.0),
]


def problem(kind: int, single_root: bool) -> TreeProblem:
    """A small batch of sentences."""
    n, lengths, spread, holes = KINDS[kind]
    rng = torch.Generator().manual_seed(kind)
    scores = spread * torch.randn(len(lengths or [0, 0]), n + 1, n + 1, generator=rng)
    scores[torch.rand(scores.shape, generator=rng) < holes] = -torch.inf
    return TreeProblem(scores, None if lengths is None else torch.tensor(lengths), single_root)


def deep_cycle(single_root: bool) -> TreeProblem:
    """Three words, two of which lie in a cycle that is 800 nats deep: exp(−800) is 0 in float64."""
    scores = torch.full((1, 4, 4), -800.0)
    scores[0, 1, 2] = scores[0, 2, 1] = scores[0, 1, 3] = 0.0
    scores[0, 0, 1] = scores[0, 3, 2] = -801.0
    return TreeProblem(scores, None, single_root)


def expected(scores: Any, single_root: bool) -> tuple[float, Any, float]:
    """log Z, marginals and the score of the best tree of one sentence; zeros and −inf where there is no tree."""
    if len(scores) > 6:
        batch = TreeBatch(SpanningTree(single_root), [scores])
        return batch.log_partition()[0], batch.marginals()[0], batch.decode()[0].score
    oracle = TreeOracle(scores, single_root)
    if not oracle.outputs:
        return -np.inf, np.zeros(scores.shape), -np.inf
    return oracle.log_partition, oracle.marginals.reshape(scores.shape), max(oracle.scores)


def check(given: TreeProblem, name: str) -> None:
    """Sums, probabilities and best trees of one batch."""
    log_z, marginals = KERNELS.marginals(given)
    alone, heads = KERNELS.log_partition(given), KERNELS.argmax(given)
    for b, scores in enumerate(given.scores.double().numpy()):
        size = len(scores) if given.lengths is None else int(given.lengths[b]) + 1
        value, by_arc, top = expected(scores[:size, :size], given.single_root)
        whole = np.zeros(scores.shape)
        whole[:size, :size] = by_arc
        np.testing.assert_allclose(log_z[b], value, rtol=1e-12, atol=1e-12, err_msg=f"{name}: log Z")
        np.testing.assert_allclose(alone[b], value, rtol=1e-12, atol=1e-12, err_msg=f"{name}: log Z alone")
        np.testing.assert_allclose(marginals[b], whole, atol=1e-9, err_msg=f"{name}: marginals")
        y = heads[b].numpy()
        assert (y[size - 1 :] == -1).all(), name
        found = scores[y[: size - 1], np.arange(1, size)].sum() if (y[: size - 1] >= 0).all() else -np.inf
        np.testing.assert_allclose(found, top, rtol=1e-12, atol=1e-12, err_msg=f"{name}: best tree")


def check_registers() -> None:
    """What the kernel in registers answers alone, without those that take over where its range ends."""
    given = TreeProblem(problem(4, True).scores / 40.0, torch.tensor([13]), False)
    value, by_arc, _ = expected(given.scores[0, :14, :14].double().numpy(), False)
    outside = torch.ones(given.scores.shape[1:], dtype=torch.bool)
    outside[:14, :14] = False
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        alone = tree_triton._steps(32, True, dtype)[:1]
        assert [(step.launch.kernel, step.real) for step in alone] == [(register_kernel, dtype)]
        with mock.patch.object(tree_triton, "_steps", return_value=alone):
            log_z, found = KERNELS.marginals(given, dtype)
        np.testing.assert_allclose(log_z[0], value, rtol=tolerance, err_msg="registers: log Z")
        np.testing.assert_allclose(found[0, :14, :14], by_arc, atol=tolerance, err_msg="registers: marginals")
        assert not found[0][outside].any(), "registers: words that are none"


def check_single_precision() -> None:
    """Probabilities in float32, where its range allows and where it does not; scores that are no numbers."""
    scores = problem(4, True).scores.repeat(4, 1, 1) / torch.tensor([40.0, 4.0, 1.0, 1.0])[:, None, None]
    scores[1, 2, 3], scores[3, 1, 2] = -torch.inf, torch.nan
    given = TreeProblem(scores, torch.tensor([17, 16, 17, 17]), True)
    log_z, found = KERNELS.marginals(given, torch.float32)
    with mock.patch.object(
        tree_triton, "_steps", return_value=tree_triton._steps(32, True, torch.float32)[:1]
    ):
        kept = KERNELS.marginals(TreeProblem(scores[:1], None, True), torch.float32)[1]
    assert torch.equal(found[0], kept[0]), "single precision: made again, though its range was wide enough"
    assert torch.isnan(log_z).tolist() == [False, False, False, True], (
        "single precision: scores that are no numbers"
    )
    for b in range(3):
        size = int(given.lengths[b]) + 1  # type: ignore[index]
        value, by_arc, _ = expected(scores[b, :size, :size].double().numpy(), True)
        np.testing.assert_allclose(log_z[b], value, rtol=1e-7, err_msg="single precision: log Z")
        np.testing.assert_allclose(
            found[b, :size, :size], by_arc, atol=1e-6, err_msg="single precision: marginals"
        )
    for depth in (800.0, 100.0):  # exp(−100) is not 0 in float64
        deep = deep_cycle(True)
        deep = deep._replace(scores=deep.scores * (depth / 800.0))
        value, by_arc, _ = expected(deep.scores[0].double().numpy(), True)
        log_z, found = KERNELS.marginals(deep, torch.float32)
        np.testing.assert_allclose(log_z[0], value, rtol=1e-7, err_msg="single precision: deep cycle")
        np.testing.assert_allclose(found[0], by_arc, atol=1e-6, err_msg="single precision: deep cycle")


def check_longer() -> None:
    """Sentences that count as long here: by a determinant, and corrected by elimination where it is not safe."""
    scores = torch.zeros(3, 4, 4)
    scores[:2], scores[2] = problem(0, True).scores, deep_cycle(True).scores[0]
    scores[1, 0, 1] = -torch.inf
    given = TreeProblem(scores, torch.tensor([2, 3, 3]), True)
    safe = is_safe(given)
    with mock.patch.dict(tree_triton.MOST_ELIMINATED, {torch.float64: 0}):
        sums = KERNELS.marginals(given)
    for found, exact in zip(sums, KERNELS.marginals(given), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12, err_msg="longer sentences")
    assert safe.tolist() == [True, False, False], "longer sentences: which are safe"


def main() -> None:
    """All kinds of sentences, with one root and with any number."""
    for single_root in (True, False):
        try:
            check(deep_cycle(single_root), f"deep cycle, single_root={single_root}")
            for kind in range(len(KINDS)):
                check(problem(kind, single_root), f"{KINDS[kind]}, single_root={single_root}")
        except AssertionError as error:
            sys.exit(str(error))
    check_registers()
    check_single_precision()
    check_longer()
    print("all kernels agree")


if __name__ == "__main__":
    main()
