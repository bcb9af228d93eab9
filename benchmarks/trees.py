"""`python -m benchmarks.trees`: spanning trees beside other ways to find them, in CPU time on one thread.

The best tree: Chu–Liu–Edmonds of ufal.chu_liu_edmonds (C++, many roots only), sentence by sentence. log Z and marginals:
determinants and inverses of LAPACK through NumPy, whole batches at once, with many roots, and with one root (Koo et al.);
and torch-struct, which differentiates such a determinant, in its single precision and in double. A package that is
not installed is left out, and said to be. Also: how far these determinants are off, score by score spread.
Each figure is the best of some repeats, all ways in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from crfkit import SpanningTree
from crfkit.inference import TreeBatch

Floats = npt.NDArray[np.float64]
ONE, MANY = SpanningTree(), SpanningTree(single_root=False)
SPREADS = (1, 10, 20, 30, 60)


def determinants(scores: Floats, single_root: bool) -> tuple[Floats, Floats]:
    """Log Z [B] and marginals [B, T + 1, T] of a batch by slogdet and inverse; columns are shifted first."""
    inside = scores[:, :, 1:].copy()
    n = inside.shape[2]
    words = np.arange(n)
    inside[:, words + 1, words] = -np.inf
    shift = inside.max(axis=1, keepdims=True)
    weights = np.exp(inside - shift)  # [B, T + 1, T]
    root, between = weights[:, 0], weights[:, 1:]
    matrix = -between
    matrix[:, words, words] = between.sum(axis=1)
    if single_root:
        matrix[:, 0] = root
    else:
        matrix[:, words, words] += root
    log_determinant = np.linalg.slogdet(matrix)[1]
    inverse = np.linalg.inv(matrix)
    diagonal = inverse[:, words, words].copy()  # [B, T]
    by_root = inverse[:, :, 0].copy() if single_root else diagonal
    off_diagonal = inverse.transpose(0, 2, 1).copy()
    if single_root:
        diagonal[:, 0] = 0
        off_diagonal[:, 0] = 0
    slopes = np.concatenate([by_root[:, None], diagonal[:, None] - off_diagonal], axis=1)
    return log_determinant + shift.sum(axis=(1, 2)), weights * slopes


def ways_to_sum(scores: Floats) -> dict[str, Callable[[], Any]]:
    """Log Z and marginals of a batch."""
    lengths = np.full(len(scores), scores.shape[1] - 1)
    ways: dict[str, Callable[[], Any]] = {
        "crfkit, one root": lambda: TreeBatch(ONE, scores, lengths).log_partition_and_marginals(),
        "LAPACK, one root": lambda: determinants(scores, True),
        "crfkit, many roots": lambda: TreeBatch(MANY, scores, lengths).log_partition_and_marginals(),
        "LAPACK, many roots": lambda: determinants(scores, False),
    }
    if is_installed("torch") and is_installed("torch_struct"):
        for precision in ("float32", "float64"):
            for name, multiroot in (("one root", False), ("many roots", True)):
                ways[f"torch-struct {precision}, {name}"] = torch_struct_way(scores, precision, multiroot)
    return ways


def torch_struct_way(scores: Floats, precision: str, multiroot: bool) -> Callable[[], tuple[Any, Any]]:
    """Log Z [B] and its gradient [B, T, T], which has the arcs from the root on its diagonal."""
    import torch
    from torch_struct import NonProjectiveDependencyCRF

    torch.set_num_threads(1)
    torch.distributions.Distribution.set_default_validate_args(False)  # saves it time
    inside = scores[:, 1:, 1:].copy()
    words = np.arange(inside.shape[1])
    inside[:, words, words] = scores[:, 0, 1:]
    potentials = torch.tensor(inside, dtype=getattr(torch, precision), requires_grad=True)

    def way() -> tuple[Any, Any]:
        log_z = NonProjectiveDependencyCRF(potentials, multiroot=multiroot, args={}).partition
        (gradient,) = torch.autograd.grad(log_z.sum(), potentials)
        return log_z.detach(), gradient

    return way


def is_installed(package: str) -> bool:
    """Whether a package, perhaps one inside another, can be imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the one that it is inside of
        return False


def ways_to_decode(scores: Floats) -> dict[str, Callable[[], Any]]:
    """The best trees of a batch."""
    lengths = np.full(len(scores), scores.shape[1] - 1)
    ways: dict[str, Callable[[], Any]] = {
        "crfkit, one root": lambda: TreeBatch(ONE, scores, lengths).decode(),
        "crfkit, many roots": lambda: TreeBatch(MANY, scores, lengths).decode(),
        "crfkit, one root, 10 best": lambda: TreeBatch(ONE, scores, lengths).k_best(10),
    }
    if is_installed("ufal.chu_liu_edmonds"):
        from ufal.chu_liu_edmonds import chu_liu_edmonds

        turned = [np.ascontiguousarray(matrix.T) for matrix in scores]  # (dependent, head)
        for matrix in turned:
            matrix[0] = np.nan  # no arc into the root
        ways["ufal.chu_liu_edmonds, many roots"] = lambda: [chu_liu_edmonds(matrix) for matrix in turned]
    return ways


def best_times(ways: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """CPU seconds of each way, the best of as many rounds as fit."""
    best = dict.fromkeys(ways, float("inf"))
    end = time.process_time() + seconds
    while time.process_time() < end or not all(map(np.isfinite, best.values())):
        for name, way in ways.items():
            start = time.process_time()
            way()
            best[name] = min(best[name], time.process_time() - start)
    return best


def shares_wrong(n_words: int, n_graphs: int) -> dict[int, tuple[float, float]]:
    """By score spread: the share of graphs on which a determinant is off by more than 0.01 nats, one root and many."""
    shares = {}
    for spread in SPREADS:
        scores = np.random.default_rng(spread).normal(size=(n_graphs, n_words + 1, n_words + 1)) * spread
        lengths = np.full(n_graphs, n_words)
        wrong = []
        for structure in (ONE, MANY):
            with np.errstate(all="ignore"):
                try:
                    found = determinants(scores, structure.single_root)[0]
                except np.linalg.LinAlgError:  # a singular matrix ends the whole batch: one by one
                    found = np.array([_alone(matrix, structure.single_root) for matrix in scores])
            exact = TreeBatch(structure, scores, lengths).log_partition()
            wrong.append(float(np.mean(~(np.abs(found - exact) < 0.01))))
        shares[spread] = (wrong[0], wrong[1])
    return shares


def _alone(matrix: Floats, single_root: bool) -> float:
    try:
        return float(determinants(matrix[None], single_root)[0][0])
    except np.linalg.LinAlgError:
        return float("nan")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few repeats of small batches")
    options = parser.parse_args(arguments)
    n_sentences, n_words, seconds = (4, 10, 0.05) if options.quick else (32, 40, 6.0)
    scores = np.random.default_rng(0).normal(size=(n_sentences, n_words + 1, n_words + 1))
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"{n_sentences} sentences of {n_words} words, microseconds of CPU time for each sentence")
    for package in ("torch_struct", "ufal.chu_liu_edmonds"):
        if not is_installed(package):
            print(f"{package} is not installed: its rows are left out")
    with threadpool_limits(1):
        for title, ways in (
            ("log Z and marginals", ways_to_sum(scores)),
            ("best tree", ways_to_decode(scores)),
        ):
            print(f"\n{title}")
            for name, best in best_times(ways, seconds).items():
                print(f"  {name:34} {best / n_sentences * 1e6:8.1f}")
        print(
            "\nShare of graphs on which a determinant in doubles is off by more than 0.01: spread, one root, many roots"
        )
        for spread, (one, many) in shares_wrong(n_words, 10 if options.quick else 200).items():
            print(f"  {spread:4} {one:8.1%} {many:8.1%}")


if __name__ == "__main__":
    main()
