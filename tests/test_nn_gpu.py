"""The kernels on a GPU, where there is one."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'crfkit[torch]')")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU on this machine", allow_module_level=True)

from tests.gpu_cases import CASES, TOLERANCE, check_chain, check_trees


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("size", "mask", "form"), CASES)
def test_chains_on_both_sides(size: tuple[int, int, int], mask: str, form: str, dtype: Any) -> None:
    check_chain(size, mask, form, dtype)


@pytest.mark.parametrize(("B", "n"), [(2, 1), (4, 6), (16, 40)])
def test_trees_on_both_sides(B: int, n: int) -> None:
    check_trees(B, n)
