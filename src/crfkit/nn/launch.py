"""Launching Triton kernels with little ado.

`kernel[grid](…)` looks at every argument on every call, which takes longer than small kernels run. A `Launch` remembers what
was compiled for a kind of arguments, and hands the next ones of that kind to it directly. Where Triton is of a version
whose compiled kernels are not known here, or interprets them, launches are the ordinary ones.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

KNOWN_VERSIONS = ((3, 3), (3, 9))  # whose compiled kernels take arguments in the same way
ALIGNMENT = 16  # bytes: of pointers that Triton compiles for wide loads


def _is_known() -> bool:
    """Whether compiled kernels of this version may be launched directly."""
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    return KNOWN_VERSIONS[0] <= version <= KNOWN_VERSIONS[1]


class Launch:
    """A kernel of pointers, then integers that it does not specialise, then constants, in this order."""

    def __init__(self, kernel: Any, n_warps: int, **options: Any) -> None:
        self.kernel = kernel
        self.options = {"num_warps": n_warps, **options}
        self.direct = _is_known() and hasattr(kernel, "device_caches")
        self.compiled: dict[Any, Any] = {}

    def __call__(
        self,
        grid: tuple[int, int, int],
        kind: tuple[Any, ...],
        pointers: tuple[Tensor | None, ...],
        numbers: tuple[int | float, ...],
        constants: tuple[Any, ...],
    ) -> None:
        """Launch on the current stream of the current device, which has to be that of the tensors.

        `kind` says what the constants, the types of the tensors, and whether they are there, depend on.
        """
        if not self.direct:
            self.kernel[grid](*pointers, *numbers, *constants, **self.options)
            return
        addresses = [0 if tensor is None else tensor.data_ptr() for tensor in pointers]
        device = torch._C._cuda_getDevice()
        key = (device, kind)
        compiled = self.compiled.get(key)
        for address in addresses:
            if address % ALIGNMENT:
                compiled = None
        if compiled is None:
            found = self.kernel[grid](*pointers, *numbers, *constants, **self.options)
            if not any(address % ALIGNMENT for address in addresses):
                self.compiled[key] = (found.run, found.function, found.packed_metadata)
            return
        run, function, metadata = compiled
        stream = torch._C._cuda_getCurrentRawStream(device)
        run(*grid, stream, function, metadata, None, None, None, *addresses, *numbers, *constants)
