"""The Triton kernels on a CPU: run by `test_triton.py` in a process of its own, with TRITON_INTERPRET=1.

Everything that the kernels answer is compared with the plain path in float64, which brute force has checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch

from crfkit.nn import ChainCRF
from crfkit.nn.backends import choice
from crfkit.nn.backends import decode as chain_paths
from crfkit.nn.backends.base import Backend
from crfkit.nn.backends.torch_chain import TORCH
from crfkit.nn.problem.bigram_tiles import tiles_of
from crfkit.nn.problem.chain import (
    ChainProblem,
    explicit,
    kept_positions,
    to_positions,
    token_emissions,
    token_mask,
    token_transitions,
    tokens_first,
)
from crfkit.nn.problem.gold_score import add_path, path_score
from crfkit.nn.triton.dense.backend import DenseBackend, in_full
from crfkit.nn.triton.positional.backend import PositionalBackend
from crfkit.nn.triton.sparse import backend as sparse_backend
from crfkit.nn.triton.sparse.backend import SparseBackend
from crfkit.nn.triton.wide.backend import WideBackend


class AnyLists(SparseBackend):
    """Lists for whatever table a problem has, in small tiles."""

    def __init__(self) -> None:
        super().__init__(torch.zeros(0))

    def _lists(self, problem: ChainProblem) -> Any:
        assert problem.bigrams is not None
        self.tiles = torch.from_numpy(tiles_of(problem.bigrams[:-1, :-1].numpy(), size=64))
        return super()._lists(problem)


DENSE, WIDE, SPARSE, POSITIONAL = DenseBackend(), WideBackend(), AnyLists(), PositionalBackend()


def places(
    masks: str, B: int, T: int, rng: torch.Generator
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Lengths and tokens of B = 3 sequences."""
    if masks == "any":
        mask = torch.rand(B, T, generator=rng) < 0.6
        mask[0] = False
        return tokens_first(mask)
    return torch.tensor([1, 4, T]) if masks == "lengths" else None, None


def problem(
    seed: int, own_transitions: bool, masks: str, forbidden: bool, dtype: torch.dtype
) -> ChainProblem:
    """A small batch of chains."""
    rng = torch.Generator().manual_seed(seed)
    B, T, L = 3, 7, 5
    transitions = torch.randn(*([B] if own_transitions else []), L, L, generator=rng)
    if forbidden:
        transitions[..., 0, 1] = -torch.inf
    lengths, positions = places(masks, B, T, rng)
    emissions, ends = torch.randn(B, T, L, generator=rng), torch.randn(2, L, generator=rng)
    start, end = ends.to(dtype)
    return ChainProblem(emissions.to(dtype), transitions.to(dtype), start, end, lengths, positions)


def table(exists: torch.Tensor) -> torch.Tensor:
    """The pairs that exist [L, L], with all of START and END."""
    return torch.nn.functional.pad(exists, (0, 1, 0, 1), value=True)


def few_bigrams(masks: str) -> ChainProblem:
    """Chains of 20 labels, whose lists have from 0 to 20 labels.

    Where masks is "apart", two sets of labels have no bigrams between them: one scores 60 nats less at every token,
    and is all that is left, as the other cannot end (messages of −360 have four digits after the point).
    """
    rng = torch.Generator().manual_seed(4)
    B, T, L = 3, 6, 20
    exists = torch.rand(L, L, generator=rng) < 0.15
    exists[0] = exists[:, 1] = True
    exists[:, 5] = exists[6] = False  # no label before, none after
    transitions, emissions = torch.randn(L, L, generator=rng), torch.randn(B, T, L, generator=rng)
    start, end = torch.randn(2, L, generator=rng)
    lengths, positions = places(masks, B, T, rng)
    if masks == "apart":
        exists[:10, 10:] = exists[10:, :10] = False
        exists[10:, 12] = exists[12, 10:] = True
        emissions[:, :, 10:] -= 60.0
        end[:10] = -torch.inf
    return ChainProblem(emissions, transitions, start, end, lengths, positions, table(exists))


def check_by_enumeration() -> None:
    """Lists of bigrams against all 20³ label sequences of three tokens."""
    given = few_bigrams("none")
    given = given._replace(emissions=given.emissions[:, :3].contiguous())
    emissions, transitions, start, end = (part.double() for part in explicit(given)[:4] if part is not None)
    paths = torch.cartesian_prod(*3 * [torch.arange(20)])  # [8000, 3]
    a, b, c = paths.T
    shared = start[a] + transitions[a, b] + transitions[b, c] + end[c]
    scores = shared + emissions[:, 0, a] + emissions[:, 1, b] + emissions[:, 2, c]  # [B, 8000]
    value, kept = SPARSE.value(given, None, keep=True)
    close("few bigrams, all label sequences: log Z", value, scores.logsumexp(1), 1e-5)
    middle = torch.zeros(3, 20, dtype=torch.float64).index_add(1, b, scores.softmax(1))
    found = SPARSE.gradient(given, None, torch.ones(3), kept)
    close("few bigrams, all label sequences: marginals", found[0][:, 1], middle, 1e-5)
    place = torch.cat([a * 20 + b, b * 20 + c])
    both = scores.softmax(1).sum(0).repeat(2)
    pairs = torch.zeros(400, dtype=torch.float64).index_add(0, place, both)
    close("few bigrams, all label sequences: transitions", found[1].reshape(-1), pairs, 1e-5)
    if not torch.equal(SPARSE.argmax(given), paths[scores.argmax(1)]):
        sys.exit("few bigrams, all label sequences: best")
    likely = torch.where(torch.isfinite(shared), 0.0, shared).argmin()  # a label sequence that does not exist
    if not bool((SPARSE.value(given, paths[likely].repeat(3, 1), keep=False)[0] == -torch.inf).all()):
        sys.exit("few bigrams, all label sequences: one that does not exist has a probability")


def check_few_bigrams() -> None:
    """Lists of bigrams; those of two tokens, where no program has to wait, shared by programs."""
    check_by_enumeration()
    for masks, tolerance in (("any", 1e-5), ("lengths", 1e-5), ("apart", 1e-4)):
        check(few_bigrams(masks), f"few bigrams, masks={masks}", tolerance, SPARSE)
    alone = sparse_backend._parts
    for parts in (2, 4):
        sparse_backend._parts = lambda *_, parts=parts: parts
        two = few_bigrams("none")
        two = two._replace(emissions=two.emissions[:, :2].contiguous())
        check(two, f"few bigrams, {parts} programs", 1e-5, SPARSE)
    sparse_backend._parts = alone
    check_total(few_bigrams("lengths"), "few bigrams", SPARSE)


def some_table() -> torch.Tensor:
    """Bigrams of five labels without three transitions, label 2 at the start and label 1 at the end."""
    return torch.arange(36).reshape(6, 6) % 7 != 4


def check_table() -> None:
    """Scores of what a table forbids mean nothing, and have no gradient, even for tags that have them."""
    for masks, dtype, tolerance in (("none", torch.float32, 1e-5), ("any", torch.float64, 1e-10)):
        given = problem(8, False, masks, False, dtype)._replace(bigrams=some_table())
        check(given, f"table of bigrams, masks={masks}", tolerance)
        check_total(given, f"table of bigrams, masks={masks}")
    given = given._replace(lengths=None, positions=None)
    tags = torch.tensor([[2, 3, 0, 4, 1, 0, 1]]).repeat(3, 1)  # START 2, 3 0, 0 4, 4 1 and 1 END do not exist
    total, found = DENSE.total(given, tags)
    kept = DENSE.value(given, tags, keep=True)[1]
    assert kept is not None
    again = DENSE.gradient(given, tags, torch.ones((), dtype=dtype), kept)
    if total != -torch.inf:
        sys.exit("table of bigrams: tags that it forbids have a probability")
    for _, transitions, start, end in (found, again):
        assert start is not None
        assert end is not None
        forbidden = torch.cat([transitions[~some_table()[:-1, :-1]], start[2:3], end[1:2]])
        if not torch.equal(forbidden, torch.zeros(5, dtype=dtype)):
            sys.exit("table of bigrams: what it forbids has a gradient")
    for kind in (torch.float16, torch.bfloat16):  # of parameters, beside emissions of another
        mixed = ChainProblem(
            *(part.to(kind) if 0 < i < 4 and part is not None else part for i, part in enumerate(given))
        )
        pairs = zip(in_full(mixed)[1:4], explicit(mixed)[1:4], strict=True)
        if not all(
            mine is not None and theirs is not None and torch.equal(mine, theirs) for mine, theirs in pairs
        ):
            sys.exit(f"table of bigrams: parameters in {kind} are not those that exist")
    bare = given._replace(start=None, end=None)
    by_value = DENSE.gradient(bare, tags, torch.ones((), dtype=dtype), kept)
    if by_value[2:] != (None, None) or DENSE.total(bare, tags)[1][2:] != (None, None):
        sys.exit("table of bigrams: ends that are absent have a gradient")
    exact = explicit(bare)
    assert exact.start is not None
    close(
        "table of bigrams, no ends",
        DENSE.value(bare, None, False)[0],
        TORCH.log_partition(exact),
        1e-10,
    )


def possible_tags(given: ChainProblem, rng: torch.Generator) -> torch.Tensor:
    """Labels at positions [B, T] that bigrams allow, 1 at those that are off."""
    exact = explicit(given)
    emissions, transitions = token_emissions(exact, torch.float64), token_transitions(exact, torch.float64)
    labels = chain_paths.sample(emissions, transitions, token_mask(given), 1, rng)[0]
    return torch.where(kept_positions(given), to_positions(given, labels), 1)


def close(what: str, found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Say what is not close, and stop."""
    error = (found.double() - expected.double()).abs().max().item()
    if not error < tolerance:
        sys.exit(f"{what}: off by {error}")


def check(given: ChainProblem, name: str, tolerance: float, kernels: Backend = DENSE) -> None:
    """Value, gradient and best label sequence of one problem."""
    exact = explicit(
        ChainProblem(*(part if i > 3 or part is None else part.double() for i, part in enumerate(given)))
    )
    B, T, L = given.shape
    rng = torch.Generator().manual_seed(0)
    tags, upstream = possible_tags(exact, rng), torch.rand(B, generator=rng).double() + 0.5
    expected = TORCH.expectations(exact, upstream if given.transitions.ndim == 2 else None)
    for tagged in (False, True):
        value, kept = kernels.value(given, tags if tagged else None, keep=True)
        plain, nothing = kernels.value(given, tags if tagged else None, keep=False)
        assert kept is not None
        assert nothing == ()
        sign = -1.0 if tagged else 1.0
        log_z = sign * expected.log_partition + (path_score(exact, tags) if tagged else 0.0)
        close(f"{name}: value", value, log_z, 10 * tolerance)
        close(f"{name}: value alone", plain, log_z, 10 * tolerance)
        emissions = (sign * expected.emissions * upstream[:, None, None]).contiguous()
        weights = (
            upstream.reshape(-1, *[1] * (given.transitions.ndim - 1)) if given.transitions.ndim > 2 else 1.0
        )
        transitions = (sign * expected.transitions * weights).contiguous()
        if tagged:
            add_path(exact, tags, upstream, emissions, transitions)
        found = kernels.gradient(given, tags if tagged else None, upstream.to(given.transitions.dtype), kept)
        close(f"{name}: emissions", found[0], emissions, tolerance)
        close(f"{name}: transitions", found[1], transitions, tolerance)
        by_position = (
            emissions
            if given.positions is None
            else emissions.gather(1, given.positions[:, :, None].expand(B, T, L))
        )
        close(f"{name}: start", found[2], by_position[:, 0].sum(0), tolerance)
        last = (token_mask(given).sum(1) - 1).clamp_min(0)
        close(f"{name}: end", found[3], by_position[torch.arange(B), last].sum(0), tolerance)
    emissions, transitions = token_emissions(exact, torch.float64), token_transitions(exact, torch.float64)
    best = to_positions(given, chain_paths.viterbi(emissions, transitions, token_mask(given)))
    if not torch.equal(kernels.argmax(given), best):
        sys.exit(f"{name}: best label sequence")


def check_absent_ends() -> None:
    """Ends that are not there have no gradient, as elsewhere."""
    given = problem(8, True, "none", False, torch.float32)._replace(start=None)
    _, kept = DENSE.value(given, None, keep=True)
    found = DENSE.gradient(given, None, torch.ones(3), kept)
    if [part is None for part in found] != [False, False, True, False]:
        sys.exit("own transitions: a start that is not there has a gradient")


def check_unused_transitions() -> None:
    """Those of a sequence of one token are no numbers, and have the gradient 0."""
    given = problem(10, True, "lengths", False, torch.float32)
    given.transitions[0] = torch.nan
    _, kept = DENSE.value(given, None, keep=True)
    found = DENSE.gradient(given, None, torch.ones(3), kept)
    if any(part is None or not part.isfinite().all() for part in found) or found[1][0].any():
        sys.exit("own transitions: those that are not used have a gradient")


def check_half_precision(kernels: Backend) -> None:
    """Marginals of scores in half precision have the digits of float32."""
    rng = torch.Generator().manual_seed(9)
    exists = torch.ones(5, 5, dtype=torch.bool)
    emissions, transitions = (
        torch.randn(2, 3, 5, generator=rng).half(),
        torch.randn(5, 5, generator=rng).half(),
    )
    given = ChainProblem(emissions, transitions, None, None, None, None, table(exists))
    exact = TORCH.expectations(explicit(given)._replace(emissions=emissions.double()))
    for what, found, expected in zip(
        ("log Z", "labels", "transitions"), kernels.expectations(given), exact, strict=True
    ):
        close(f"{kernels.name}: {what} in half precision", found, expected, 1e-5)


def check_total(given: ChainProblem, name: str, kernels: Backend = DENSE) -> None:
    """The sum of values with its gradient, scaled, as value and gradient give them."""
    tags = possible_tags(given, torch.Generator().manual_seed(1))
    values, kept = kernels.value(given, tags, keep=True)
    factor = torch.tensor(0.5)
    expected = kernels.gradient(given, tags, factor, kept)
    total, found = kernels.total(given, tags)
    close(f"{name}: total", total, values.double().sum(), 1e-4)
    kernels.scale(found, factor)
    for what, mine, theirs in zip(("emissions", "transitions", "start", "end"), found, expected, strict=True):
        close(f"{name}: scaled gradient of {what}", mine, theirs, 1e-6)
    loss, found = kernels.total(given, tags, -4)
    close(f"{name}: a quarter, negated", -4 * loss, values.double().sum(), 1e-4)
    for what, mine, theirs in zip(("emissions", "transitions", "start", "end"), found, expected, strict=True):
        close(f"{name}: gradient of a quarter, negated, by {what}", -2 * mine, theirs, 1e-6)


def by_position(given: ChainProblem, seed: int, forbidden: bool, shared: bool) -> ChainProblem:
    """The same with transitions of their own at each position, or with those of each sequence seen at each."""
    B, T, L = given.shape
    rng = torch.Generator().manual_seed(seed)
    transitions = torch.randn(B, 1 if shared else T - 1, L, L, generator=rng)
    if forbidden:
        transitions[:, :, 0, 1] = -torch.inf
    return given._replace(transitions=transitions.to(given.emissions.dtype).expand(B, T - 1, L, L))


def check_positions() -> None:
    """Transitions that differ from position to position."""
    for masks in ("none", "any", "lengths"):
        for forbidden, shared in ((False, False), (True, False), (True, True)):
            given = by_position(problem(4, False, masks, False, torch.float32), 5, forbidden, shared)
            check(given, f"by position, masks={masks}, {forbidden=}, {shared=}", 1e-5, POSITIONAL)
    exact = by_position(problem(6, False, "any", False, torch.float64), 7, True, False)
    check(exact, "by position, float64", 1e-10, POSITIONAL)
    bare = exact._replace(start=None, end=None)
    log_z = TORCH.log_partition(bare)
    close("by position, no ends", POSITIONAL.value(bare, None, keep=False)[0], log_z, 1e-10)


def check_impossible(kernels: Backend) -> None:
    """Two labels that cannot follow each other at all: no label sequence of two tokens."""
    never = torch.full((2, 2, 5, 5) if kernels is POSITIONAL else (5, 5), -torch.inf)
    lengths = torch.tensor([3, 1])
    given = ChainProblem(
        torch.zeros(2, 3, 5), never, None, None, lengths, None, table(torch.zeros(5, 5, dtype=torch.bool))
    )
    value, _ = kernels.value(given, None, keep=False)
    if value[0] != -torch.inf or kernels.argmax(given).tolist() != [[-1, -1, -1], [0, -1, -1]]:
        sys.exit("no label sequence: it has a value, or labels")


def check_divisions(kernels: Backend, transitions: torch.Tensor, likely: float, sizes: Iterable[int]) -> None:
    """Messages that become smaller, or larger, from token to token until they are divided; label 1 is likely everywhere."""
    for n in sizes:
        emissions = torch.zeros(1, n, len(transitions))
        emissions[:, :, 1] = likely
        given = ChainProblem(emissions, transitions, None, None, None, None)
        exact = ChainProblem(emissions.double(), transitions.double(), None, None, None, None)
        found, expected = kernels.expectations(given), TORCH.expectations(exact)
        for what, mine, theirs in zip(("log Z", "labels", "transitions"), found, expected, strict=True):
            close(f"{kernels.name}: {what} of {n} tokens", mine, theirs, 1e-4)


def check_large_scores(kernels: Backend) -> None:
    """Scores whose exp is infinite, of a label that cannot be the first."""
    emissions, start = torch.zeros(2, 3, 4), torch.zeros(4)
    emissions[:, :, 0], start[0] = 1000.0, -torch.inf
    lengths, exists = torch.tensor([3, 1]), torch.ones(4, 4, dtype=torch.bool)
    given = ChainProblem(emissions, torch.zeros(4, 4), start, None, lengths, None, table(exists))
    exact = ChainProblem(*(part if i > 3 or part is None else part.double() for i, part in enumerate(given)))
    found, expected = kernels.expectations(given), TORCH.expectations(exact)
    for what, mine, theirs in zip(("log Z", "labels", "transitions"), found, expected, strict=True):
        close(f"{kernels.name}: {what} of large scores", mine, theirs, 1e-3)


def check_wrong_labels(kernels: Backend) -> None:
    """Labels that do not exist make a value NaN, and no other."""
    lengths, exists = torch.tensor([4, 4, 3]), torch.ones(5, 5, dtype=torch.bool)
    transitions = torch.zeros((3, 3, 5, 5) if kernels is POSITIONAL else (5, 5))
    given = ChainProblem(torch.zeros(3, 4, 5), transitions, None, None, lengths, None, table(exists))
    tags = torch.zeros(3, 4, dtype=torch.int64)
    tags[0, 1], tags[1, 2], tags[2, 3] = -100, 5, 10**6  # the last is behind its sequence
    value, _ = kernels.value(given, tags, keep=False)
    if value.isnan().tolist() != [True, True, False]:
        sys.exit(f"{kernels.name}: labels that do not exist have a value")


def with_ends(given: ChainProblem) -> ChainProblem:
    """−inf for what a table forbids, which stays: the lists of bigrams are of no use without it."""
    return explicit(given)._replace(bigrams=given.bigrams)


def check_autograd(kernels: Backend) -> None:
    """A loss whose graph is retained, and second derivatives: as on the plain path."""
    torch.manual_seed(0)
    layer = ChainCRF(5, bigrams=some_table())
    emissions = torch.randn(2, 4, 5, requires_grad=True)
    tags = layer.distribution(emissions).sample()[0].T.contiguous().T  # not in the order of memory
    given = [emissions, *layer.parameters()]

    def derivatives() -> list[torch.Tensor]:
        loss = 0.5 * layer(emissions, tags, complete=True)
        first = torch.autograd.grad(loss, given, retain_graph=True)
        again = torch.autograd.grad(loss, given, create_graph=True)
        second = torch.autograd.grad(sum((part**2).sum() for part in again), given, retain_graph=True)
        retained = torch.autograd.grad(loss, given)
        values = layer(emissions, tags, reduction="none")
        twice = [torch.autograd.grad(values.sum(), given, retain_graph=True) for _ in range(2)]
        return [loss, *first, *again, *second, *retained, *twice[0], *twice[1]]

    expected = derivatives()
    usual = choice.choose
    choice.choose = lambda problem, lists=False: (
        kernels,
        problem if kernels is DENSE else with_ends(problem),
    )
    for found, exact in zip(derivatives(), expected, strict=True):
        close(f"{kernels.name}: derivatives of a layer", found, exact, 1e-5)
    choice.choose = usual


def main() -> None:
    """All kinds of problems in float32, some in float64."""
    kinds = [
        (False, "none", False),
        (False, "any", False),
        (False, "lengths", True),
        (True, "any", False),
        (True, "none", True),
    ]
    for own_transitions, masks, forbidden in kinds:
        name = f"own_transitions={own_transitions}, masks={masks}, forbidden={forbidden}"
        given = problem(1, own_transitions, masks, forbidden, torch.float32)
        check(given, name, 1e-5)
        if DENSE.has_total(given):
            check_total(given, name)
    check(problem(2, False, "any", False, torch.float64), "float64", 1e-10)
    for masks, forbidden in (("lengths", False), ("any", True)):
        name = f"wide, masks={masks}, forbidden={forbidden}"
        given = problem(3, False, masks, forbidden, torch.float32)
        check(given, name, 1e-5, WIDE)
        check_total(given, name, WIDE)
    check_absent_ends()
    check_unused_transitions()
    check_table()
    check_few_bigrams()
    for kernels in (DENSE, WIDE, SPARSE):
        check_impossible(kernels)
        check_wrong_labels(kernels)
        check_large_scores(kernels)
        check_half_precision(kernels)
        check_autograd(kernels)
    check_positions()
    check_impossible(POSITIONAL)
    check_wrong_labels(POSITIONAL)
    rare = torch.zeros(3, 3)
    rare[0, 0] = 7.4  # of a transition that is never taken
    check_divisions(DENSE, rare, 80.0, range(21, 25))
    check_divisions(WIDE, torch.full((130, 130), 7.9), 0.0, [11])
    print("all kernels agree")


if __name__ == "__main__":
    main()
