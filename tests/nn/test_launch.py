"""Launches whose programs wait for each other: all of them, and no more than the device holds at once."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')
pytest.importorskip("triton", reason="needs Triton")

from crfkit.nn.triton import launch
from crfkit.nn.triton.positional import backend as chain_positions
from crfkit.nn.triton.sparse import backend as chain_sparse
from crfkit.nn.triton.wide import backend as chain_wide

LABELS = (129, 200, 512, 1400, 8192)
BATCHES = (1, 7, 32, 100, 1000)


@pytest.mark.parametrize("at_once", [0, 1, 20, 132])
def test_programs_that_wait_are_no_more_than_the_device_holds(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kernels in (chain_wide, chain_sparse):
        monkeypatch.setattr(kernels, "n_processors", lambda device: at_once)
    where = torch.zeros(1)
    tiles = ((chain_wide.TILES, 2), (chain_wide.TILES, 1), (chain_wide.BEST_TILES, 1))
    for B, L, (sizes, directions) in itertools.product(BATCHES, LABELS, tiles):
        (rows, _), n_blocks, n_groups = chain_wide._tile(sizes, B, L, directions, where)
        assert n_blocks * directions * n_groups <= at_once  # none wait where no group fits
        assert n_groups <= -(-B // rows)
    for n_chains, n_tiles in itertools.product(BATCHES, (1, 3, 14, 200)):
        parts = chain_sparse._parts(n_chains, n_tiles, where.device)
        assert parts == 1 or parts * n_chains <= at_once
        assert parts <= n_tiles


def test_they_are_launched_together_or_not_at_all() -> None:
    assert launch.Launch(None, 4, waits=True).options == {"num_warps": 4, "launch_cooperative_grid": True}
    assert launch.Launch(None, 4).options == {"num_warps": 4}
    assert launch.n_processors(torch.device("cpu")) == 0


def test_an_option_that_triton_does_not_know_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = pytest.importorskip("triton.backends.nvidia.compiler")
    assert launch.programs_can_wait() == hasattr(compiler.CUDAOptions, "launch_cooperative_grid")
    monkeypatch.setattr(compiler, "CUDAOptions", object)
    launch.programs_can_wait.cache_clear()
    launch.n_processors.cache_clear()
    assert launch.n_processors(torch.device("cuda", 0)) == 0  # nobody asks for its processors
    launch.programs_can_wait.cache_clear()
    launch.n_processors.cache_clear()


def test_transitions_that_lie_farther_apart_than_32_bits_reach_are_left_to_others() -> None:
    shape = (2, 3, 100, 100)
    assert chain_positions.are_near(torch.empty(shape, device="meta"))
    assert chain_positions.are_near(torch.empty(1, 1, 1, 1, device="meta").expand(shape))
    for strides in ((2**31, 1, 1, 1), (1, 2**31, 1, 1), (1, 1, 2**26, 1), (1, 1, 1, 2**26)):
        assert not chain_positions.are_near(torch.empty_strided(shape, strides, device="meta"))


def test_kernels_specialise_no_integer() -> None:
    """A compiled kernel is launched again with other integers, so their names have to be right."""
    from crfkit.nn.triton.dense import gradient as dense_gradient
    from crfkit.nn.triton.dense import messages, tables, viterbi
    from crfkit.nn.triton.positional import kernels
    from crfkit.nn.triton.sparse import gradient as sparse_gradient
    from crfkit.nn.triton.sparse import messages as sparse_messages
    from crfkit.nn.triton.trees import argmax, elimination, registers
    from crfkit.nn.triton.wide import gradient
    from crfkit.nn.triton.wide import messages as wide_messages
    from crfkit.nn.triton.wide import viterbi as wide_viterbi

    modules = (dense_gradient, messages, tables, viterbi, kernels, sparse_gradient, sparse_messages, argmax)
    found = 0
    for module in (*modules, elimination, registers, gradient, wide_viterbi, wide_messages):
        for name, kernel in vars(module).items():
            if name.endswith("_kernel"):
                assert set(kernel.do_not_specialize or ()) <= set(kernel.arg_names), name
                found += 1
    assert found >= 20
