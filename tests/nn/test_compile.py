"""Triton compiles the kernels for a GPU, which takes none: every combination of what a problem may have (slow)."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')
triton = pytest.importorskip("triton", reason="needs Triton: pip install triton")

pytestmark = pytest.mark.slow

INTEGERS = {
    "B",
    "T",
    "L",
    "own_transitions",
    "n_chunks",
    "chunk",
    "n_tables",
    "transitions_stride",
    "first",
    "stop",
    "n_parts",
}
INTEGERS |= {
    "upstream_stride",
    "stride",
    "group",
    "n_transitions",
    "size",
    "n_rows",
    "one_root",
    "flagged",
    "share",
    "n_tiles",
}
INTEGERS |= {"by_row", "by_position", "by_before", "by_after"}
POINTERS = {"lengths": "*i64", "positions": "*i64", "tags": "*i64", "labels": "*i64"}
POINTERS |= {
    "counters": "*i32",
    "counts": "*i32",
    "pointers": "*i16",
    "enough": "*i8",
    "nodes": "*i32",
    "heads": "*i64",
    "neighbours": "*i16",
    "bigrams": "*i1",
}


def compile_kernel(
    kernel: Any, known: dict[str, Any], absent: list[str], pointer: str, n_warps: int = 4
) -> None:
    """Machine code for compute capability 9.0."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    absent = [*absent, *(["gold"] if "tags" in absent else [])]
    known = {name: value for name, value in known.items() if name in kernel.arg_names} | dict.fromkeys(absent)
    known = {name: value for name, value in known.items() if name in kernel.arg_names}
    signature = {
        name: "constexpr" if name in known else "i32" if name in INTEGERS else POINTERS.get(name, pointer)
        for name in kernel.arg_names
    }
    target = GPUTarget("cuda", 90, 32)
    triton.compile(ASTSource(kernel, signature, known, {}), target=target, options={"num_warps": n_warps})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    "absent",
    [[], ["positions"], ["positions", "lengths"], ["tags", "bigrams"], ["start", "end", "d_start", "d_end"]],
    ids=str,
)
def test_chain_kernels(absent: list[str], precision: str) -> None:
    import triton.language as tl

    from crfkit.nn.triton.dense.constraints import explicit_kernel
    from crfkit.nn.triton.dense.gradient import gradient_kernel, sums_kernel
    from crfkit.nn.triton.dense.messages import messages_kernel
    from crfkit.nn.triton.dense.tables import tables_kernel
    from crfkit.nn.triton.dense.viterbi import best_kernel

    real = getattr(tl, precision)
    known: dict[str, Any] = {"BLOCK": 16, "L": 11, "STEP": 32, "REAL": real, "DOT": precision == "float32"}
    known |= {"WARPS": 1, "LANES": 2, "CHUNKS": 16, "BEHIND": 8}
    pointer = "*fp32" if precision == "float32" else "*fp64"
    for kernel in (messages_kernel, tables_kernel, gradient_kernel, sums_kernel, best_kernel):
        compile_kernel(kernel, known, absent, pointer, 1)
    compile_kernel(messages_kernel, known, [*absent, "forward", "backward", "scale", "total"], pointer, 1)
    compile_kernel(explicit_kernel, known, [part for part in absent if part != "bigrams"], pointer, 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("absent", [[], ["positions", "lengths"], ["tags"], ["start", "end"]], ids=str)
@pytest.mark.parametrize("best", [False, True])
def test_kernels_by_position(absent: list[str], best: bool) -> None:
    import triton.language as tl

    from crfkit.nn.triton.positional.kernels import position_gradient_kernel, position_messages_kernel

    known: dict[str, Any] = {"BLOCK": 16, "L": 11, "REAL": tl.float32}
    left_out = "messages" if best else "pointers"
    for kernel in (position_messages_kernel, position_gradient_kernel):
        compile_kernel(
            kernel, known, absent if kernel is position_gradient_kernel else [*absent, left_out], "*fp32", 1
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "absent", [[], ["positions", "lengths"], ["tags", "counts"], ["start", "end"]], ids=str
)
def test_wide_kernels(absent: list[str]) -> None:
    from crfkit.nn.triton.wide import gradient as gradient
    from crfkit.nn.triton.wide import messages as messages
    from crfkit.nn.triton.wide import viterbi as best

    known: dict[str, Any] = {"L": 200, "WAIT": True}
    for kernel, sizes in (
        (messages.wide_tables_kernel, {"BLOCK": 256, "STEP": 16}),
        (messages.wide_messages_kernel, {"ROWS": 16, "BLOCK": 16, "SPLIT": 4, "WIDTH": 64, "TURNS": 1}),
        (messages.wide_messages_kernel, {"ROWS": 64, "BLOCK": 64, "SPLIT": 4, "WIDTH": 16, "TURNS": 4}),
        (messages.wide_values_kernel, {"BLOCK": 256}),
        (gradient.wide_gradient_kernel, {"BLOCK": 256, "STEP": 16}),
        (gradient.wide_transitions_kernel, {"ROWS": 64, "COLUMNS": 32, "STEP": 32, "BLOCK": 256}),
        (best.wide_best_kernel, {"ROWS": 8, "BLOCK": 16, "STEP": 32}),
        (best.wide_follow_kernel, {"BLOCK": 256}),
    ):
        compile_kernel(kernel, known | sizes, absent, "*fp32")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("absent", [[], ["lengths"]], ids=str)
def test_tree_kernels(absent: list[str], precision: str) -> None:
    from crfkit.nn.triton.trees.argmax import best_tree_kernel
    from crfkit.nn.triton.trees.registers import register_kernel

    known = {"N": 16, "BITS": 4, "TILE": 16, "FLOAT32": precision == "float32"}
    for kernel in (register_kernel, best_tree_kernel):
        compile_kernel(kernel, known, absent, "*fp32" if precision == "float32" else "*fp64", 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("gradient", [False, True])
def test_tree_kernels_through_memory(gradient: bool, log: bool) -> None:
    from crfkit.nn.triton.trees.elimination import elimination_kernel

    known = {"N": 16, "LEVELS": 4, "TILE": 4, "GRADIENT": gradient, "LOG": log}
    compile_kernel(elimination_kernel, known, [], "*fp64", 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("absent", [[], ["positions", "lengths"], ["tags"], ["start", "end"]], ids=str)
def test_sparse_kernels(absent: list[str]) -> None:
    from crfkit.nn.triton.sparse import backend as chain_sparse
    from crfkit.nn.triton.sparse.gradient import sparse_transitions_kernel
    from crfkit.nn.triton.sparse.messages import (
        sparse_best_kernel,
        sparse_messages_kernel,
        sparse_scores_kernel,
    )

    known: dict[str, Any] = {"L": 200, "BLOCK": 256, "TILE": 4096, "POWERS": 6}
    known |= {"PARTS": 4, "WAIT": True}
    for kernel, sizes, n_warps in (
        (sparse_scores_kernel, {"STEP": 128}, 4),
        (sparse_messages_kernel, {}, chain_sparse.WARPS),
        (sparse_best_kernel, {}, chain_sparse.WARPS),
        (sparse_transitions_kernel, {"TRANSITIONS": 64, "STEP": 16}, 4),
    ):
        compile_kernel(kernel, known | sizes, absent, "*fp32", n_warps)
