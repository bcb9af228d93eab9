"""`python -m benchmarks.projective_trees`: projective trees beside torch-struct and SuPar, in CPU time on one thread.

log Z with marginals, and the best trees, of trees with one root: first order (Eisner's algorithm), and second order
(adjacent siblings; SuPar alone has it too). Rivals differentiate log Z, or the highest score, by autograd; in single and in
double precision. A package that is not installed is left out, and said to be. Before anything is timed, the rivals'
log Z are compared with ours. Each figure is the best of some repeats, all ways in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from benchmarks.trees import best_times, is_installed
from crfkit import ProjectiveTree, TreeParts
from crfkit.inference import SiblingTreeBatch, TreeBatch

Floats = npt.NDArray[np.float64]
Way = Callable[[], Any]
FIRST, SECOND = ProjectiveTree(), ProjectiveTree(order=2)


def gradient_way(log_partition: Callable[..., Any], *leaves: Any) -> Way:
    """Log Z and its gradients."""
    import torch

    def way() -> tuple[Any, Any]:
        value = log_partition(*leaves)
        return value.detach(), torch.autograd.grad(value.sum(), leaves)

    return way


def rivals(scores: Floats, siblings: Floats | None, precision: str) -> tuple[dict[str, Way], dict[str, Way]]:
    """Ways to sum and to find best trees, of the first order, or of the second if there are siblings."""
    import torch

    torch.set_num_threads(1)
    torch.distributions.Distribution.set_default_validate_args(False)  # saves time
    kind = getattr(torch, precision)
    sums: dict[str, Way] = {}
    bests: dict[str, Way] = {}
    if siblings is None and is_installed("torch_struct"):
        from torch_struct import DependencyCRF

        inside = scores[:, 1:, 1:].copy()  # the root's arcs are on the diagonal
        words = np.arange(inside.shape[1])
        inside[:, words, words] = scores[:, 0, 1:]
        arcs = torch.tensor(inside, dtype=kind, requires_grad=True)
        sums[f"torch-struct {precision}"] = gradient_way(
            lambda given: DependencyCRF(given, multiroot=False).partition, arcs
        )
        bests[f"torch-struct {precision}"] = lambda: DependencyCRF(arcs, multiroot=False).argmax
    if is_installed("supar"):
        from supar import structs

        turned = torch.tensor(
            scores.transpose(0, 2, 1).copy(), dtype=kind, requires_grad=True
        )  # [dependent, head]
        if siblings is None:
            sums[f"SuPar {precision}"] = gradient_way(
                lambda given: structs.DependencyCRF(given).log_partition, turned
            )
            bests[f"SuPar {precision}"] = lambda: structs.DependencyCRF(turned.detach().clone()).argmax
        else:
            # [dependent, head, sibling]; the first dependent on a side has no score
            pairs = torch.tensor(siblings.transpose(0, 3, 1, 2).copy(), dtype=kind, requires_grad=True)
            sums[f"SuPar {precision}"] = gradient_way(
                lambda *given: structs.Dependency2oCRF(given).log_partition, turned, pairs
            )
            bests[f"SuPar {precision}"] = lambda: (
                structs.Dependency2oCRF((turned.detach().clone(), pairs.detach().clone())).argmax
            )
    return sums, bests


def all_ways(scores: Floats, siblings: Floats | None) -> tuple[dict[str, Way], dict[str, Way]]:
    """Ours, and the rivals that are installed."""
    lengths = np.full(len(scores), scores.shape[1] - 1)

    def batch() -> TreeBatch:
        if siblings is None:
            return TreeBatch(FIRST, scores, lengths)
        return SiblingTreeBatch(SECOND, TreeParts(scores, siblings), lengths)

    ready = batch()
    sums: dict[str, Way] = {
        "crfkit": lambda: batch().log_partition_and_marginals(),
        "crfkit, scores checked before": ready.log_partition_and_marginals,
    }
    bests: dict[str, Way] = {
        "crfkit": lambda: batch().decode(),
        "crfkit, scores checked before": ready.decode,
        "crfkit, 10 best": lambda: ready.k_best(10),
    }
    if is_installed("torch"):
        for precision in ("float32", "float64"):
            more_sums, more_bests = rivals(scores, siblings, precision)
            sums.update(more_sums)
            bests.update(more_bests)
    return sums, bests


def check(sums: dict[str, Way]) -> None:
    """Raise an error if a rival's log Z is another one: then it computes something else."""
    expected = np.asarray(sums["crfkit"]()[0])
    for name, way in sums.items():
        found = np.asarray(way()[0], dtype=np.float64)
        if not np.allclose(found, expected, rtol=1e-4 if "32" in name else 1e-9):
            raise AssertionError(f"{name}: log Z {found[:3]}, expected {expected[:3]}")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few repeats of small batches")
    options = parser.parse_args(arguments)
    n_sentences, n_words, seconds = (4, 10, 0.05) if options.quick else (32, 40, 6.0)
    random, side = np.random.default_rng(0), n_words + 1
    scores = random.normal(size=(n_sentences, side, side))
    siblings = random.normal(size=(n_sentences, side, side, side))
    siblings[:, np.arange(side), np.arange(side)] = 0.0  # SuPar has no score for a first dependent
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"{n_sentences} sentences of {n_words} words, milliseconds of CPU time for all of them")
    for package in ("torch_struct", "supar"):
        if not is_installed(package):
            print(f"{package} is not installed: its rows are left out")
    with threadpool_limits(1):
        for order, given in (("first order", None), ("adjacent siblings", siblings)):
            sums, bests = all_ways(scores, given)
            check(sums)
            for title, ways in ((f"{order}: log Z and marginals", sums), (f"{order}: best trees", bests)):
                print(f"\n{title}")
                for name, best in best_times(ways, seconds).items():
                    print(f"  {name:34} {best * 1e3:9.2f}")


if __name__ == "__main__":
    main()
