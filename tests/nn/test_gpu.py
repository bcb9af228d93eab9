"""The kernels on a GPU, where there is one."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU on this machine", allow_module_level=True)

from tests.nn import gpu_graph_cases, gpu_projective_cases, gpu_segment_cases
from tests.nn.gpu_cases import (
    CASES,
    SPAN_CASES,
    STREAMS,
    TOLERANCE,
    TREE_TOLERANCE,
    TREES,
    check_chain,
    check_spans,
    check_streams,
    check_trees,
)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("size", "mask", "form"), CASES)
def test_chains_on_both_sides(size: tuple[int, int, int], mask: str, form: str, dtype: Any) -> None:
    check_chain(size, mask, form, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("size", "mask", "form"), SPAN_CASES)
def test_spans_on_both_sides(size: tuple[int, int, int], mask: str, form: str, dtype: Any) -> None:
    check_spans(size, mask, form, dtype)


@pytest.mark.parametrize("dtype", TREE_TOLERANCE)
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize(("B", "n", "spread", "holes"), TREES)
def test_trees_on_both_sides(
    B: int, n: int, spread: float, holes: float, single_root: bool, dtype: Any
) -> None:
    check_trees(B, n, spread, holes, single_root, dtype)


@pytest.mark.parametrize("dtype", gpu_projective_cases.TOLERANCE)
@pytest.mark.parametrize(("size", "single_root"), gpu_projective_cases.CASES)
def test_projective_trees_on_both_sides(
    size: tuple[int, int, float, float], single_root: bool, dtype: Any
) -> None:
    gpu_projective_cases.check_projective(size, single_root, dtype)


@pytest.mark.parametrize(("size", "share"), STREAMS)
def test_two_streams_do_not_block_each_other(size: tuple[int, int, int], share: float) -> None:
    check_streams(size, share)


@pytest.mark.parametrize("dtype", gpu_segment_cases.TOLERANCE)
@pytest.mark.parametrize(("size", "form"), gpu_segment_cases.CASES)
def test_segments_on_both_sides(size: tuple[int, int, int, int], form: str, dtype: Any) -> None:
    gpu_segment_cases.check_segments(size, form, dtype)


@pytest.mark.parametrize("dtype", gpu_graph_cases.TOLERANCE)
@pytest.mark.parametrize(("shape", "method"), gpu_graph_cases.CASES)
def test_factor_graphs_on_both_sides(shape: str, method: str, dtype: Any) -> None:
    gpu_graph_cases.check_graphs(shape, method, dtype)


@pytest.mark.parametrize("dtype", gpu_graph_cases.TOLERANCE)
@pytest.mark.parametrize("case", gpu_graph_cases.GRIDS)
def test_messages_are_the_same_on_both_sides(case: Any, dtype: Any) -> None:
    gpu_graph_cases.check_grid(*(*case, dtype))
