"""The Triton kernels for projective trees on a CPU: run by `test_triton.py` in a process with TRITON_INTERPRET=1.

What the kernels answer is compared with brute force, and for sentences that are too long for it with plain PyTorch.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import torch

from crfkit.nn.backends.core_trees import PROJECTIVE_CORE
from crfkit.nn.backends.torch_projective import EISNER
from crfkit.nn.problem.tree import TreeProblem
from crfkit.nn.triton.projective import backend as kernels
from crfkit.nn.triton.projective.sums import projective_kernel
from tests.oracles.projective_instances import ProjectiveOracle

KERNELS = kernels.EisnerKernels()
SMALL_TILES = {1024: (1, 4, 8)}  # so that a sentence of 9 words needs several
# words, lengths, spread of the scores, share of arcs that do not exist
KINDS: list[tuple[int, list[int] | None, float, float]] = [
    (4, [4, 0, 1, 3], 2.0, 0.0),
    (4, [4, 4, 3], 1.0, 0.5),  # some have no tree
    (4, None, 1e4, 0.2),  # further apart than float64 reaches
    (9, [9], 3.0, 0.1),
]


def problem(kind: int, single_root: bool) -> TreeProblem:
    """A small batch of sentences; what lies beyond their ends is not a number, and means nothing."""
    n, lengths, spread, holes = KINDS[kind]
    rng = torch.Generator().manual_seed(kind)
    scores = spread * torch.randn(len(lengths or [0]), n + 1, n + 1, generator=rng)
    scores[torch.rand(scores.shape, generator=rng) < holes] = -torch.inf
    scores[:, :, 0] = torch.nan
    scores.diagonal(dim1=1, dim2=2).fill_(torch.nan)
    for b, length in enumerate(lengths or []):
        scores[b, length + 1 :] = scores[b, :, length + 1 :] = torch.nan
    return TreeProblem(scores, None if lengths is None else torch.tensor(lengths), single_root)


def expected(scores: Any, single_root: bool) -> tuple[float, Any, float]:
    """log Z, marginals and the score of the best tree of one sentence; zeros and −inf where there is no tree."""
    if len(scores) > 7:
        given = TreeProblem(torch.from_numpy(scores)[None], None, single_root)
        log_z, by_arc = EISNER.marginals(given)
        y = EISNER.argmax(given)[0].numpy()
        return log_z[0].item(), by_arc[0].numpy(), scores[y, np.arange(1, len(scores))].sum()
    oracle = ProjectiveOracle(np.where(np.isnan(scores), -np.inf, scores), None, single_root)
    if not oracle.outputs:
        return -np.inf, np.zeros(scores.shape), -np.inf
    return oracle.log_partition, oracle.marginals.reshape(scores.shape), max(oracle.scores)


def check(given: TreeProblem, name: str, dtype: torch.dtype = torch.float64) -> None:
    """Sums, probabilities and best trees of one batch."""
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    log_z, marginals = KERNELS.marginals(given, dtype)
    alone, heads = KERNELS.log_partition(given, dtype), KERNELS.argmax(given)
    for b, scores in enumerate(given.scores.double().numpy()):
        size = len(scores) if given.lengths is None else int(given.lengths[b]) + 1
        value, by_arc, top = expected(scores[:size, :size], given.single_root)
        whole = np.zeros(scores.shape)
        whole[:size, :size] = by_arc
        for what, found in (("log Z", log_z), ("log Z alone", alone)):
            np.testing.assert_allclose(
                found[b], value, rtol=tolerance, atol=tolerance, err_msg=f"{name}: {what}"
            )
        np.testing.assert_allclose(
            marginals[b], whole, atol=max(1e-9, tolerance), err_msg=f"{name}: marginals"
        )
        y = heads[b].numpy()
        assert (y[size - 1 :] == -1).all(), name
        found_score = (
            scores[y[: size - 1], np.arange(1, size)].sum() if (y[: size - 1] >= 0).all() else -np.inf
        )
        np.testing.assert_allclose(found_score, top, rtol=1e-12, atol=1e-12, err_msg=f"{name}: best tree")


def check_both_spaces() -> None:
    """What exp space answers alone; log space answers the same, and only where it has to."""
    given = problem(0, True)
    launched: list[bool] = []
    original = kernels._sums

    def only(most: int, gradient: bool, log: bool) -> Any:
        launch, tile = original(most, gradient, log)
        assert launch.kernel is projective_kernel
        launched.append(log)
        return (lambda *_: None) if log else launch, tile

    with mock.patch.object(kernels, "_sums", side_effect=only):
        alone = KERNELS.marginals(given)
    assert launched == [False, True]
    for mine, both in zip(alone, KERNELS.marginals(given), strict=True):
        assert torch.equal(mine, both), "exp space: made again, though its range was wide enough"
    scores = torch.zeros(1, 3, 3)
    scores[0, 0] = -800.0  # the best heads are a cycle, and every tree is unlikely
    with mock.patch.object(kernels, "_sums", side_effect=only):
        assert not KERNELS.marginals(TreeProblem(scores, None, True))[1].any(), "exp space: too small a Z"
    check(TreeProblem(scores, None, True), "too small a Z for exp space")


def check_no_numbers() -> None:
    """Scores that are no numbers make the sums of their sentence NaN, and no other; every entry, as in all backends."""
    given = problem(0, True)
    given.scores[0, 1, 2] = given.scores[3, 1, 2] = torch.nan
    log_z, found = KERNELS.marginals(given)
    undefined = [True, False, False, True]
    assert torch.isnan(log_z).tolist() == undefined
    for name, marginals in (
        ("kernels", found),
        ("plain PyTorch", EISNER.marginals(given)[1]),
        ("core", PROJECTIVE_CORE.marginals(given)[1]),
    ):
        for reduce in (torch.any, torch.all):
            assert reduce(torch.isnan(marginals).flatten(1), 1).tolist() == undefined, name
    assert (KERNELS.argmax(given)[[0, 3]] == -1).all()


def main() -> None:
    """All kinds of sentences, with one root and with any number."""
    with mock.patch.multiple(kernels, TILES=SMALL_TILES, LOG_TILES=SMALL_TILES):
        for kind in range(len(KINDS)):
            for single_root in (True, False):
                check(problem(kind, single_root), f"{KINDS[kind]}, single_root={single_root}")
        check(problem(0, True), "float32", torch.float32)
        check_both_spaces()
        check_no_numbers()
    print("all kernels agree")


if __name__ == "__main__":
    main()
