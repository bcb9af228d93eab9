"""Triton compiles the kernels for a GPU, which takes none: every combination of what a problem may have (slow)."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "crfkit[torch]"')
triton = pytest.importorskip("triton", reason="needs Triton: pip install triton")

pytestmark = pytest.mark.slow

INTEGERS = {
    "B",
    "T",
    "L",
    "own_arcs",
    "n_chunks",
    "chunk",
    "n_tables",
    "arcs_stride",
    "first",
    "stop",
    "n_parts",
}
INTEGERS |= {"upstream_stride"}
POINTERS = {"lengths": "*i64", "sites": "*i64", "tags": "*i64", "labels": "*i64"}
POINTERS |= {"counters": "*i32"}


def compile_kernel(
    kernel: Any, known: dict[str, Any], absent: list[str], pointer: str, n_warps: int = 4
) -> None:
    """Machine code for compute capability 9.0."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

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
@pytest.mark.parametrize("absent", [[], ["sites"], ["sites", "lengths"], ["tags"], ["start", "end"]], ids=str)
def test_chain_kernels(absent: list[str], precision: str) -> None:
    import triton.language as tl

    from crfkit.nn.best_kernel import best_kernel
    from crfkit.nn.chain_kernels import tables_kernel
    from crfkit.nn.gradient_kernel import gradient_kernel, sums_kernel
    from crfkit.nn.messages_kernel import messages_kernel

    parts = ("START", "END", "LENGTHS", "SITES", "TAGS")
    known: dict[str, Any] = {f"HAS_{part}": part.lower() not in absent for part in parts}
    real = getattr(tl, precision)
    known |= {"BLOCK": 16, "L": 11, "STEP": 32, "REAL": real, "KEEP": True, "DOT": precision == "float32"}
    known |= {"ADD_UP": True, "WARPS": 1, "LANES": 2, "CHUNKS": 16, "BEHIND": 8}
    for kernel in (messages_kernel, tables_kernel, gradient_kernel, sums_kernel, best_kernel):
        compile_kernel(kernel, known, absent, "*fp32" if precision == "float32" else "*fp64", 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wait", [True, False])
def test_wide_kernel(wait: bool) -> None:
    from crfkit.nn.wide_kernel import wide_kernel

    compile_kernel(wide_kernel, {"ROWS": 16, "BLOCK": 16, "STEP": 64, "WAIT": wait}, [], "*fp32")
