"""`python -m benchmarks.neural_segments`: log Z and gradient of semi-Markov chains beside flash-semicrf and torch-struct.

On a GPU: milliseconds as a user calls it (wall clock until the device is idle; the median), and as a CUDA graph is replayed,
which leaves out what Python and PyTorch need to launch it; peak memory; errors against float64; whether two runs have the
same bits. At the end one sequence of 100,000 positions with segments of up to 1,000. A rival that is not installed, or that
runs out of memory, is said to be so.
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks.machine import machine
from benchmarks.neural import milliseconds, replayed
from crfkit.nn import SegmentDistribution

Step = Callable[[], Any]
SIZES = ((32, 128, 8, 9), (64, 1000, 16, 24), (64, 1000, 100, 24))  # B, T, K, L
LONG = (1, 100_000, 1000, 24)
SMALL = (4, 50, 4, 5)  # on a CPU


def scores_of(size: tuple[int, int, int, int], device: str) -> list[Any]:
    """Emissions, durations, transitions, start and end."""
    B, T, K, L = size
    rng = torch.Generator().manual_seed(0)
    shapes = ((B, T, L), (K, L), (L, L), (L,), (L,))
    return [torch.randn(shape, generator=rng).to(device).requires_grad_() for shape in shapes]


def ours(scores: list[Any]) -> Step:
    """log Z and gradient by crfkit."""

    def step() -> Any:
        return torch.autograd.grad(SegmentDistribution(*scores).log_partition().sum(), scores)

    return step


def rivals(scores: list[Any]) -> dict[str, Step]:
    """Those that are installed. They have no scores of the first and last label."""
    emissions, durations, transitions = scores[:3]
    B, T, _ = emissions.shape
    K = len(durations)
    lengths = torch.full((B,), T, device=emissions.device)
    found: dict[str, Step] = {}
    if find_spec("flash_semicrf"):
        from flash_semicrf.streaming import semi_crf_streaming_forward

        def flash() -> Any:
            sums = torch.nn.functional.pad(emissions.cumsum(1), (0, 0, 1, 0))
            bias = torch.nn.functional.pad(durations, (0, 0, 1, 0))  # by length, from 0 on
            value = semi_crf_streaming_forward(sums, transitions, bias, lengths, K + 1)
            return torch.autograd.grad(value.sum(), scores[:3])

        found["flash-semicrf"] = flash
    if find_spec("torch_struct"):
        import torch_struct

        def struct() -> Any:
            sums = torch.nn.functional.pad(emissions.cumsum(1), (0, 0, 1, 0))
            ends = torch.arange(T, device=lengths.device)[:, None] + torch.arange(
                1, K + 1, device=lengths.device
            )
            whole = sums[:, ends.clamp_max(T)] - sums[:, :-1, None] + durations
            whole = whole.masked_fill((ends > T)[None, :, :, None], -1e9)  # [B, T, K, L] by begin and length
            edges = torch.nn.functional.pad(whole[..., None] + transitions.T, (0, 0, 0, 0, 1, 0), value=-1e9)
            return torch.autograd.grad(torch_struct.SemiMarkovCRF(edges).partition.sum(), scores[:3])

        found["torch-struct"] = struct
    return found


def errors(scores: list[Any]) -> str:
    """Of log Z and gradients in float32, against float64 by plain PyTorch on the first two sequences."""
    few = [scores[0][:2].detach().requires_grad_(), *scores[1:]]
    exact = [part.detach().double().cpu().requires_grad_() for part in few]
    log_z, right = SegmentDistribution(*few).log_partition(), SegmentDistribution(*exact).log_partition()
    relative = ((log_z.cpu() - right) / right).abs().max().item()
    pairs = zip(torch.autograd.grad(log_z.sum(), few), torch.autograd.grad(right.sum(), exact), strict=True)
    worst = [float(((a.cpu() - b).abs() / b.abs().clamp_min(1.0)).max()) for a, b in pairs]
    return f"log Z {relative:.1e} (relative), gradients " + " ".join(f"{error:.1e}" for error in worst)


def report(size: tuple[int, int, int, int], device: str, repeats: int) -> None:
    """One size: a line for each library."""
    scores = scores_of(size, device)
    step = ours(scores)
    same = all(torch.equal(a, b) for a, b in zip(step(), step(), strict=True))
    direct = lambda: SegmentDistribution(*scores).value_and_gradient()  # noqa: E731
    steps = {"crfkit": step, "crfkit's value_and_gradient": direct, **rivals(scores)}
    print(f"\nB, T, K, L = {size}: backend {SegmentDistribution(*scores)._backend.name}, same bits: {same}")
    for name, found in milliseconds(steps, device, repeats).items():
        if device == "cpu" or found is None:
            print(f"  {name}: {'out of memory' if found is None else f'{found:.2f} ms of CPU time'}")
            continue
        torch.cuda.reset_peak_memory_stats()
        steps[name]()
        peak = torch.cuda.max_memory_allocated() / 2**20
        graph = f", {replayed(step, repeats):.3f} ms as a graph" if name == "crfkit" else ""
        print(f"  {name}: {found:.3f} ms{graph}, peak {peak:,.0f} MiB", flush=True)
    best = {"best": lambda: SegmentDistribution(*scores).argmax()}
    print(f"  crfkit, best segmentation: {milliseconds(best, device, repeats)['best']:.3f} ms")
    print(f"  errors against float64: {errors(scores)}", flush=True)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--no-long", action="store_true", help="leave out the sequence of 100,000 positions")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(torch.cuda.get_device_name() if device == "cuda" else machine())
    for size in SIZES if device == "cuda" else (SMALL,):
        report(size, device, given.repeats)
    if device == "cuda" and not given.no_long:
        scores = scores_of(LONG, device)
        found = milliseconds({"crfkit": ours(scores)}, device, 3)["crfkit"]
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        ours(scores)()
        peak = torch.cuda.max_memory_allocated() / 2**20
        print(f"\nB, T, K, L = {LONG}: {found:.0f} ms, peak {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
