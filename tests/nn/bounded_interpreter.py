"""Chains with forbidden transitions, in the Triton kernels on a CPU: run by `test_triton.py` with TRITON_INTERPRET=1.

Where exp space is chosen is compared with powers of matrices in NumPy, and what it gives with log space in float64.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from crfkit.nn.backends import decode as chain_paths
from crfkit.nn.backends.torch_chain import TORCH
from crfkit.nn.problem.chain import (
    ChainProblem,
    constrain,
    to_positions,
    token_emissions,
    token_mask,
    token_transitions,
    tokens_first,
)
from crfkit.nn.problem.constraints import bigram_table
from crfkit.nn.problem.gold_score import add_path, path_score
from crfkit.nn.triton.dense.backend import Workspace, _Pass
from tests.nn.triton_interpreter import DENSE, close

BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]
IOBES = ["O", *(f"{part}-{kind}" for kind in "XY" for part in "BIES")]
NATS = {torch.float32: 69.0, torch.float64: 670.0}
LENGTHS = torch.tensor([0, 1, 2, 3, 4, 11])


def exact(given: ChainProblem) -> ChainProblem:
    """The same in float64."""
    return ChainProblem(*(part if i > 3 or part is None else part.double() for i, part in enumerate(given)))


def steps_to_all(transitions: np.ndarray, start: torch.Tensor | None, end: torch.Tensor | None) -> int:
    """The least k ≤ 4 for which A^k has no zero, if ends can be reached in 1 … k − 1 steps from every label; else 0."""
    A = (transitions > -np.inf).astype(int)
    ends = [np.ones(len(A), int) if x is None else (x > -torch.inf).numpy().astype(int) for x in (start, end)]
    for k in range(1, 5):
        power = np.linalg.matrix_power(A, k)
        if (power > 0).all():
            return k
        if (ends[0] @ power == 0).any() or (power @ ends[1] == 0).any():
            return 0
    return 0


def expected_periods(given: ChainProblem) -> list[int]:
    """Tokens from division to division, for tables that do not allow everything."""
    truth = exact(given)
    with_ends, alone = (
        token_emissions(one, torch.float64) for one in (truth, truth._replace(start=None, end=None))
    )
    periods = []
    for b, n in enumerate(token_mask(given).sum(1).tolist()):
        transitions = (truth.transitions if truth.transitions.ndim == 2 else truth.transitions[b]).numpy()
        k = steps_to_all(transitions, given.start, given.end)
        rows = [x[x > -np.inf] for x in (transitions, *alone[b, :n].numpy(), *with_ends[b, :n].numpy())]
        far = np.ptp(rows[0]) + max((np.ptp(row) for row in rows[1:]), default=0.0)
        if not torch.isfinite(alone[b, :n]).all():
            far = np.inf
        nats = NATS[given.emissions.dtype] - 4.86 * k
        fits = [p for p in (1, 2, 4, 8) if k and n and (k + p - 1) * far <= nats]
        periods.append(max(fits, default=0))
    return periods


def check(given: ChainProblem, name: str, tolerance: float = 1e-5, periods: list[int] | None = None) -> None:
    """The choice, and the log-likelihood of the best label sequence with its gradient."""
    B, truth = len(given.emissions), exact(given)
    upstream = torch.rand(B, generator=torch.Generator().manual_seed(0)).double() + 0.5
    expected = TORCH.expectations(truth, upstream if given.transitions.ndim == 2 else None)
    best = chain_paths.viterbi(
        token_emissions(truth, torch.float64), token_transitions(truth, torch.float64), token_mask(given)
    )
    tags = to_positions(given, best).clamp_min(0)
    value, kept = DENSE.value(given, tags, keep=True)
    chosen = stored(given, kept[0], "periods", B).int().tolist()
    if chosen != (expected_periods(given) if periods is None else periods):
        sys.exit(f"{name}: chose {chosen}, expected {expected_periods(given)}")
    check_divisions(given, kept[0], chosen, name)
    log_p = path_score(truth, tags) - expected.log_partition
    close(f"{name}: value", value, log_p, max(10.0, path_score(truth, tags).abs().max().item()) * tolerance)
    emissions = (-expected.emissions * upstream[:, None, None]).contiguous()
    transitions = -expected.transitions * (upstream[:, None, None] if given.transitions.ndim == 3 else 1.0)
    add_path(truth, tags, upstream, emissions, transitions)
    found = DENSE.gradient(given, tags, upstream.to(given.transitions.dtype), kept)
    close(f"{name}: emissions", found[0], emissions, tolerance)
    close(f"{name}: transitions", found[1], transitions, tolerance)
    if bool((found[1][given.transitions == -torch.inf] != 0).any()):
        sys.exit(f"{name}: a transition that does not exist has a gradient")


def stored(given: ChainProblem, memory: torch.Tensor, name: str, size: int) -> torch.Tensor:
    """One of the arrays of a workspace."""
    begin = _Pass(given, None).begins(keep=True, gradient=False)[Workspace._fields.index(name)]
    return memory[begin : begin + size]


def check_divisions(given: ChainProblem, memory: torch.Tensor, periods: list[int], name: str) -> None:
    """The largest number of a message is between ½ and 1 where it is divided: forward from the first token, and backward."""
    B, T, L = given.shape
    forward, backward = (
        stored(given, memory, name, B * T * L).reshape(B, T, L) for name in ("forward", "backward")
    )
    for b, n in enumerate(token_mask(given).sum(1).tolist()):
        if periods[b]:
            tops = [forward[b, : n : periods[b]], backward[b, : max(n - 1, 0)].flip(0)[:: periods[b]]]
            if any(not 0.499 < top <= 1.001 for top in torch.cat(tops).amax(1).tolist()):
                sys.exit(f"{name}: messages are not divided")


def check_total(given: ChainProblem, name: str) -> None:
    """The sum of values, made together with its gradient."""
    tags = DENSE.argmax(given).clamp_min(0)
    values, kept = DENSE.value(given, tags, keep=True)
    total, found = DENSE.total(given, tags)
    close(f"{name}: total", total, values.double().sum(), 1e-4)
    expected = DENSE.gradient(given, tags, torch.ones(()), kept)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine is not None
        assert theirs is not None
        close(f"{name}: gradient of the total", mine, theirs, 1e-6)


def scheme(
    labels: list[str],
    name: str,
    seed: int,
    masks: str,
    dtype: torch.dtype = torch.float32,
    own_transitions: bool = False,
) -> ChainProblem:
    """Random scores under a scheme of span labels."""
    rng = torch.Generator().manual_seed(seed)
    L, (B, T) = len(labels), (len(LENGTHS), int(LENGTHS.max()))
    lengths = positions = None
    if masks == "lengths":
        lengths = LENGTHS
    elif masks == "any":
        lengths, positions = tokens_first(torch.rand(B, T, generator=rng) < torch.linspace(0, 1, B)[:, None])
    transitions = torch.randn(*([B] if own_transitions else []), L, L, generator=rng)
    start, end = torch.randn(2, L, generator=rng)
    table = bigram_table(name, L, labels)
    transitions, start_scores, end_scores = constrain(table, transitions, start, end)
    assert start_scores is not None
    assert end_scores is not None
    emissions = torch.randn(B, T, L, generator=rng)
    return ChainProblem(
        emissions.to(dtype),
        transitions.to(dtype),
        start_scores.to(dtype),
        end_scores.to(dtype),
        lengths,
        positions,
    )


def check_random_tables() -> None:
    """Every label reaches every label in two, three or four steps, or never, or not where an end forbids it."""
    seen = set()
    for seed in (1, 2, 7, 10, 14, 35):
        rng = torch.Generator().manual_seed(seed)
        L = 3 + seed % 4
        transitions = torch.randn(L, L, generator=rng)
        transitions[torch.rand(L, L, generator=rng) < 0.5] = -torch.inf
        start, end = torch.randn(2, L, generator=rng)
        if seed % 3 == 1:
            end[torch.rand(L, generator=rng) < 0.5] = -torch.inf
        if seed % 3 == 2:
            start[torch.rand(L, generator=rng) < 0.5] = -torch.inf
        start[0] = end[0] = transitions[0, 0] = 0.0  # there is a label sequence
        seen.add(
            (steps_to_all(transitions.numpy(), None, None), steps_to_all(transitions.numpy(), start, end))
        )
        given = ChainProblem(
            torch.randn(2, 6, L, generator=rng), transitions, start, end, torch.tensor([6, 3]), None
        )
        check(given, f"random table {seed}")
    if seen != {(0, 0), (2, 2), (3, 0), (3, 3), (4, 4)}:
        sys.exit(f"random tables: only {seen} were seen")


def check_spreads(dtype: torch.dtype, spreads: dict[float, int], tolerance: float) -> None:
    """States that are 0 or far below, at the edge of what each period allows."""
    table = bigram_table("bio", 5, BIO)
    transitions, start, end = constrain(table, torch.zeros(5, 5, dtype=dtype), None, None)
    for spread, period in spreads.items():
        rng = torch.Generator().manual_seed(7)
        emissions = -spread * torch.randint(0, 2, (1, 19, 5), generator=rng).to(dtype)
        check(
            ChainProblem(emissions, transitions, start, end, None, None),
            f"spread {spread}",
            tolerance,
            [period],
        )


def check_what_never_meets() -> None:
    """Two sets of labels: the one that is better at first falls behind, when exp space has lost the other."""
    transitions = torch.full((4, 4), -torch.inf)
    transitions[:2, :2] = transitions[2:, 2:] = 0.0
    emissions = torch.zeros(1, 21, 4)
    emissions[:, :11, 2:], emissions[:, 11:, :2] = -12.0, -14.0
    given = ChainProblem(emissions, transitions, None, None, None, None)
    check(given, "two sets of labels", 3e-5, [0])
    shared = transitions.clone()
    shared[1, 2] = 0.0  # a transition to the other set, and none back
    check(given._replace(transitions=shared), "no transition back", 3e-5, [0])


def check_far_transitions() -> None:
    """All transitions exist, and lie farther apart tha transitions alone may; and labels that tokens do not allow."""
    rng = torch.Generator().manual_seed(3)
    transitions = 40 * torch.rand(4, 4, generator=rng)
    transitions[0, 0], transitions[1, 1] = 0.0, 40.0
    emissions = torch.randn(2, 11, 4, generator=rng)
    check(
        ChainProblem(emissions, transitions, None, None, torch.tensor([11, 4]), None), "far transitions", 3e-5
    )
    given = scheme(BIO, "bio", 4, "any")
    assert given.positions is not None
    assert given.lengths is not None
    before = expected_periods(given)
    given.emissions[3, given.positions[3, -1], 2] = -torch.inf  # no token of its sequence
    given.emissions[4, given.positions[4, given.lengths[4] - 1], 2] = -torch.inf
    check(given, "labels that are not allowed", periods=[*before[:4], 0, before[5]])


def main() -> None:
    """Schemes of labels, random tables, and emissions at the edge of what is safe."""
    for labels, name in ((BIO, "bio"), (IOBES, "iobes")):
        check(scheme(labels, name, 1, "lengths"), name)
        check(scheme(labels, name, 2, "any"), f"{name}, any mask")
    check(scheme(BIO, "bio", 3, "any", torch.float64), "bio, float64", 1e-10)
    check(scheme(BIO, "bio", 4, "lengths", own_transitions=True), "bio, own transitions")
    check_total(scheme(BIO, "bio", 5, "lengths"), "bio")
    check_random_tables()
    check_spreads(torch.float32, {6.5: 8, 6.7: 4, 12.0: 2, 19.9: 1, 29.5: 1, 29.8: 0, 200.0: 0}, 1e-5)
    check_spreads(torch.float64, {330.0: 1, 331.0: 0}, 1e-10)
    check_what_never_meets()
    check_far_transitions()
    print("all kernels agree")


if __name__ == "__main__":
    main()
