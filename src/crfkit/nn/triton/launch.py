"""Low-overhead kernel launches.

`kernel[grid](…)` inspects every argument on every call, which takes longer than small kernels run. A `Launch`
remembers what was compiled for a kind of arguments, and hands the next ones of that kind to it directly. Where Triton
is of a version whose compiled kernels are not known here, or interprets them, launches are the ordinary ones.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, wraps
from itertools import accumulate
from typing import Any, TypeVar

import torch
import triton
from torch import Tensor

Result = TypeVar("Result")
KNOWN_VERSIONS = ((3, 3), (3, 9))  # whose compiled kernels take arguments in the same way
ALIGNMENT = 16  # bytes: of pointers that Triton compiles for wide loads; and numbers between arrays


def _is_known() -> bool:
    """Whether compiled kernels of this version may be launched directly."""
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    return KNOWN_VERSIONS[0] <= version <= KNOWN_VERSIONS[1]


@cache
def programs_can_wait() -> bool:
    """Whether the programs of a launch can wait for each other: all of them, and only then, are on the device at once.

    Without that, the programs of two launches on two streams may each have a part of the device, and wait for ever.
    """
    try:
        from triton.backends.nvidia.compiler import CUDAOptions
    except ImportError:
        return False
    return hasattr(CUDAOptions, "launch_cooperative_grid")


@cache
def n_processors(device: torch.device) -> int:
    """How many programs are certain to be on a device at once; 0 where they cannot wait for each other."""
    if device.type != "cuda" or not programs_can_wait():
        return 0
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def on_its_device(method: Callable[..., Result]) -> Callable[..., Result]:
    """The same method of a backend, with the device of its problem's scores as the current one."""

    @wraps(method)
    def guarded(self: Any, problem: Sequence[Any], *given: Any, **options: Any) -> Result:
        place = problem[0].get_device()  # that of the emissions, or of the scores of trees; −1 in memory
        if place < 0 or place == torch._C._cuda_getDevice():
            return method(self, problem, *given, **options)
        with torch.cuda.device(place):
            return method(self, problem, *given, **options)

    return guarded


@lru_cache(maxsize=4096)
def begins_of(*sizes: int) -> tuple[int, ...]:
    """Where arrays of so many numbers begin in one allocation, each where wide loads can; last, the size of all."""
    return tuple(accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0))


class Launch:
    """A kernel of pointers, then integers that it does not specialise, then constants, in this order.

    `waits` says that its programs wait for each other: they have to be `n_processors` at most.
    """

    def __init__(self, kernel: Any, n_warps: int, *, waits: bool = False, **options: Any) -> None:
        self.kernel = kernel
        self.options = {"num_warps": n_warps, **options}
        if waits:
            self.options["launch_cooperative_grid"] = True
        self.direct = _is_known() and hasattr(kernel, "device_caches")
        self.compiled: dict[Any, Any] = {}

    def __call__(
        self,
        grid: tuple[int, int, int],
        kind: Any,
        pointers: Sequence[Any],
        numbers: tuple[int, ...],
        constants: tuple[Any, ...],
        *memory: Tensor,
    ) -> None:
        """Launch on the current stream of the current device, which has to be that of the tensors.

        `kind` says what the constants, the types of the tensors, and whether they are there, depend on. Pointers are
        tensors, None, or addresses in one of the tensors `memory`.
        """
        if self.direct:
            addresses = [
                0 if given is None else given if type(given) is int else given.data_ptr()
                for given in pointers
            ]
            together = 0
            for address in addresses:
                together |= address
            aligned = together % ALIGNMENT == 0
            device = torch._C._cuda_getDevice()
            compiled = self.compiled.get((device, kind))
            if compiled is not None and aligned:
                run, function, metadata = compiled
                stream = torch._C._cuda_getCurrentRawStream(device)
                run(*grid, stream, function, metadata, None, None, None, *addresses, *numbers, *constants)
                return
        tensors = (_tensor_at(given, *memory) if isinstance(given, int) else given for given in pointers)
        found = self.kernel[grid](*tensors, *numbers, *constants, **self.options)
        if self.direct and aligned:
            self.compiled[device, kind] = (found.run, found.function, found.packed_metadata)


def _tensor_at(address: int, *memory: Tensor) -> Tensor:
    """The numbers from an address on, in the one of the tensors that it lies in."""
    for numbers in memory:
        place = (address - numbers.data_ptr()) // numbers.element_size()
        if 0 <= place < numbers.numel():
            return numbers[place:]
    raise ValueError("the address lies in no memory that was given")
