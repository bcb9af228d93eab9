"""`python -m benchmarks.neural`: crfkit.nn beside pytorch-crf, torch-struct and SuPar, on a GPU where there is one.

Loss and gradient, best label sequences, peak memory and errors against float64; log Z and gradient of trees and of
projective trees, best trees. On a GPU each step is timed as a user calls it (wall clock until the device is idle), in a
loop (the device is idle after the last step alone, as when a network is trained), and as a CUDA graph is replayed,
which leaves out what Python and PyTorch need to launch it. *Floor* is the first for an operation of nothing with the
same inputs, its sum and its gradient: what PyTorch itself takes; `loss_and_gradient` gives loss and gradient without
its graph. On a CPU: one thread, the least CPU time of several runs, all ways in turn. A rival that is not installed, or
that runs out of memory, is said to be so. The benchmark fails where a kernel should have run and did not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks.machine import machine
from benchmarks.neural_agreement import agreement
from benchmarks.neural_bigrams import bigram_errors, bigram_steps
from benchmarks.neural_trees import KINDS, tree_errors, tree_steps
from crfkit.nn import ChainCRF, ChainDistribution

Step = Callable[[], Any]
GPU_SIZES = ((32, 128, 9), (64, 128, 45), (256, 512, 64), (32, 64, 512))
CPU_SIZES = ((32, 50, 9), (32, 50, 45), (32, 50, 200))
DIRECT = "crfkit's loss_and_gradient"
WITH_BIGRAMS = "crfkit with bigrams"  # which no rival keeps to in training: they are the yardstick without
MOST_MILLISECONDS = 2_000  # of one way on a GPU, after three steps
GPU_BIGRAMS = ((16, 40, 1400), 30_000)  # B, T, L, and how many pairs of labels exist
GPU_TREES, CPU_TREES = ((64, 30), (64, 60), (256, 100)), ((32, 40),)


def milliseconds(steps: dict[str, Step], device: str, repeats: int) -> dict[str, float | None]:
    """The median wall time of each step on a GPU, its least CPU time on a CPU; None where it ran out of memory."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for name in list(steps):
        try:
            for _ in range(3):
                steps[name]()
        except torch.OutOfMemoryError:
            times[name].append(float("nan"))
            torch.cuda.empty_cache()
            steps = {other: step for other, step in steps.items() if other != name}
    rounds, turns = (repeats, 1) if device == "cpu" else (1, repeats)  # on a GPU one way after the other
    for _ in range(rounds):
        for name, step in steps.items():
            for _ in range(turns):
                begin = _now(device)
                step()
                times[name].append(1e3 * (_now(device) - begin))
                if device != "cpu" and len(times[name]) > 2 and sum(times[name]) > MOST_MILLISECONDS:
                    break
    found = {
        name: sorted(values)[0 if device == "cpu" else len(values) // 2] for name, values in times.items()
    }
    return {name: None if value != value else value for name, value in found.items()}


def _now(device: str) -> float:
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def looped(step: Step, repeats: int) -> float:
    """Milliseconds of a step among many, the device being waited for at the end."""
    begin = _now("cuda")
    for _ in range(10 * repeats):
        step()
    return 1e3 * (_now("cuda") - begin) / (10 * repeats)


class _Nothing(torch.autograd.Function):
    """An operation with gradients of the right sizes and no work."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Any:
        ctx.save_for_backward(*given)
        return given[0].new_empty(given[0].shape[0])

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> tuple[Any, ...]:
        return tuple(torch.empty_like(part) for part in ctx.saved_tensors)


def floor(layer: ChainCRF, emissions: Any) -> Step:
    """A step of loss and gradient in which nothing is computed."""

    def step() -> None:
        emissions.grad = None
        layer.zero_grad()
        _Nothing.apply(emissions, *layer.parameters()).sum().backward()

    return step


def replayed(step: Step, repeats: int) -> float:
    """Milliseconds of a step captured as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / repeats


def span_bigrams(n_labels: int) -> Any:
    """Bools [L + 1, L + 1] for the labels O, B-1, I-1, B-2 …, START and END: I-k follows B-k or I-k alone."""
    table = torch.ones(n_labels + 1, n_labels + 1, dtype=torch.bool)
    for inside in range(2, n_labels, 2):
        table[:, inside] = False
        table[inside - 1 : inside + 1, inside] = True
    return table


def chain_steps(
    size: tuple[int, int, int], device: str
) -> tuple[dict[str, Step], dict[str, Step], ChainCRF, Any]:
    """Loss and gradient, and best label sequence, of each way; the layer and its emissions."""
    B, T, L = size
    layer = ChainCRF(L, device=device)
    emissions = torch.randn(B, T, L, device=device, requires_grad=True)
    tags = torch.randint(0, L, (B, T), device=device)

    def training(model: Any, tags: Any = tags, **options: Any) -> Step:
        def step() -> None:
            emissions.grad = None
            model.zero_grad()
            model(emissions, tags, **options).backward()

        return step

    def directly() -> None:
        emissions.grad = None
        layer.zero_grad()
        _, emissions.grad = layer.loss_and_gradient(emissions, tags, complete=True)

    losses: dict[str, Step] = {"crfkit": training(layer, complete=True), DIRECT: directly}
    if L > 2:
        spans = ChainCRF(L, bigrams=span_bigrams(L), device=device)
        losses[WITH_BIGRAMS] = training(spans, spans.decode(emissions), complete=True)
    bests: dict[str, Step] = {"crfkit": lambda: layer.decode(emissions)}
    if find_spec("torchcrf"):
        import torchcrf

        rival = torchcrf.CRF(L, batch_first=True).to(device)
        rival.load_state_dict(layer.state_dict())
        losses["pytorch-crf"], bests["pytorch-crf"] = training(rival), lambda: rival.decode(emissions)
    if find_spec("torch_struct") and (
        device != "cpu" or L < 45
    ):  # its scan multiplies matrices: minutes on a CPU
        import torch_struct

        def struct() -> None:
            emissions.grad = None
            layer.zero_grad()
            scores = layer.transitions.T + emissions[:, 1:, :, None]  # [B, T − 1, after, before]
            torch_struct.LinearChainCRF(scores).partition.sum().backward()

        losses["torch-struct"] = struct
    if find_spec("supar"):
        losses["SuPar"], bests["SuPar"] = supar_steps(layer, emissions, tags)
    return losses, bests, layer, emissions


def supar_steps(layer: ChainCRF, emissions: Any, tags: Any) -> tuple[Step, Step]:
    """Loss and gradient, and best label sequence, by SuPar."""
    from supar.structs import LinearChainCRF

    def distribution() -> Any:
        nothing = emissions.new_zeros(1, 1)
        arcs = torch.cat([layer.transitions, layer.end_transitions[:, None]], 1)
        first = torch.cat([layer.start_transitions[None], nothing], 1)
        return LinearChainCRF(
            emissions, torch.cat([arcs, first])
        )  # the last row begins, the last column ends

    def loss() -> None:
        emissions.grad = None
        layer.zero_grad()
        distribution().log_prob(tags).sum().backward()

    return loss, lambda: distribution().argmax


def chains(size: tuple[int, int, int], device: str, repeats: int) -> bool:
    """One size; whether the path that belongs to the device ran."""
    losses, bests, layer, emissions = chain_steps(size, device)
    usual = device == "cpu" or layer.distribution(emissions)._chosen[0].name in ("dense", "wide", "sparse")
    print(f"\n## chains, B, T, L = {size}" + ("" if usual else ": NO KERNEL RAN"))
    _compare(losses, bests, layer, emissions, device, repeats)
    _errors(size, device)
    return usual


def few_bigrams(size: tuple[int, int, int], n_bigrams: int, device: str, repeats: int) -> bool:
    """One size with few pairs of labels that exist; whether lists of them were used, where they should be."""
    losses, bests, layer, emissions, listed = bigram_steps(size, n_bigrams, device)
    usual = device == "cpu" or listed
    print(f"\n## chains, B, T, L = {size}, {n_bigrams:,} bigrams" + ("" if usual else ": NO KERNEL RAN"))
    _compare(losses, bests, layer, emissions, device, repeats)
    print(bigram_errors(size, n_bigrams, device))
    return usual


def _compare(
    losses: dict[str, Step],
    bests: dict[str, Step],
    layer: ChainCRF,
    emissions: Any,
    device: str,
    repeats: int,
) -> None:
    """Times and, on a GPU, peak memory of each way."""
    tables = (("loss + gradient", losses), ("best label sequence", bests))
    for what, steps in tables:
        found = milliseconds(steps, device, repeats)
        line = ", ".join(f"{name} {_shown(value)}" for name, value in found.items())
        print(f"{what}, ms: {line}", flush=True)
        rest = [value for name, value in found.items() if not name.startswith("crfkit") and value]
        for name in (name for name in found if name.startswith("crfkit")):
            times = {name: found[name] or float("nan")}
            if device != "cpu":
                times |= {
                    "in a loop": looped(steps[name], repeats),
                    "as a graph": replayed(steps[name], repeats),
                }
            faster = (f"{how} {min(rest) / value:.1f}" for how, value in times.items())
            shown = ", ".join(f"{how} {value:.3g}" for how, value in times.items())
            print(
                f"  {shown} ms; times faster than the best rival: {', '.join(faster) if rest else 'no rival'}"
            )
    if device != "cpu":
        nothing = milliseconds({"floor": floor(layer, emissions)}, device, repeats)["floor"]
        print(f"floor of loss + gradient with PyTorch's graph, ms: {_shown(nothing)}")
        for name, step in losses.items():
            print(f"peak memory beyond the input, {name}: {_peak(step, emissions):.2f} × the emissions")


def _peak(step: Step, emissions: Any) -> float:
    try:
        step()
        emissions.grad = None
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
    except torch.OutOfMemoryError:
        return float("inf")
    return (torch.cuda.max_memory_allocated() - before) / (emissions.numel() * emissions.element_size())


def _errors(size: tuple[int, int, int], device: str) -> None:
    """log Z and marginals of scores of spread 3 against float64."""
    _, T, L = size
    emissions, arcs = 3 * torch.randn(2, T, L, device=device), torch.randn(L, L, device=device)
    found = ChainDistribution(emissions, arcs)
    exact = ChainDistribution(emissions.double().cpu(), arcs.double().cpu())
    log_z = exact.log_partition()
    relative = ((found.log_partition().cpu() - log_z) / log_z).abs().max()
    absolute = (found.marginals().cpu() - exact.marginals()).abs().max()
    print(f"errors against float64: log Z {relative:.1e} (relative), marginals {absolute:.1e}")


def trees(size: tuple[int, int], device: str, repeats: int, kind: str = "trees") -> bool:
    """log Z and gradient, and best trees, of B sentences with n words; whether the path that belongs to the device ran."""
    sums, bests, usual = tree_steps(size, device, kind)
    print(f"\n## {kind}, B, n = {size}" + ("" if usual else ": NO KERNEL RAN"), flush=True)
    for what, steps in (("log Z + gradient", sums), ("best trees", bests)):
        slow = {name: step for name, step in steps.items() if what == "best trees" and name != "crfkit"}
        found = milliseconds(
            {name: step for name, step in steps.items() if name not in slow}, device, repeats
        )
        for name, step in slow.items():  # seconds: once is enough
            begin = _now(device)
            step()
            found[name] = 1e3 * (_now(device) - begin)
        line = ", ".join(f"{name} {_shown(value)}" for name, value in found.items())
        rest = [value for name, value in found.items() if name != "crfkit" and value]
        ours = found["crfkit"] or float("nan")
        print(
            f"{what}, ms: {line}"
            + (f"; best rival {min(rest) / ours:.1f} times slower" if rest else "; no rival"),
            flush=True,
        )
        if device != "cpu":
            print(
                f"{what}, crfkit in a loop, ms: {looped(steps['crfkit'], repeats):.3g}, as a graph: "
                f"{replayed(steps['crfkit'], repeats):.3g}",
                flush=True,
            )
    print(tree_errors(size, device, kind), flush=True)
    return usual


def _shown(value: float | None) -> str:
    return "out of memory or not possible" if value is None else f"{value:.3g}"


def all_chains(options: argparse.Namespace) -> list[bool]:
    """Chains of all sizes; whether the path that belongs to the device ran."""
    if not options.smoke:
        agreement(options.device)
    sizes = ((2, 5, 3),) if options.smoke else CPU_SIZES if options.device == "cpu" else GPU_SIZES
    ran = [chains(size, options.device, options.repeats) for size in sizes]
    if options.smoke:
        few_bigrams((2, 3, 140), 1_000, options.device, 1)
    elif options.device != "cpu":
        ran.append(few_bigrams(*GPU_BIGRAMS, options.device, options.repeats))
    return ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", choices=("chains", *KINDS), help="measure this alone")
    parser.add_argument("--smoke", action="store_true", help="one small size, once")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.device == "cpu":
        torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if options.device != "cpu" else "1 thread"
    print(f"{machine()}\nPyTorch {torch.__version__}, {options.device}: {name}")
    ran = []
    if options.only in (None, "chains"):
        ran += all_chains(options)
    sizes = ((2, 4),) if options.smoke else CPU_TREES if options.device == "cpu" else GPU_TREES
    for kind in KINDS:
        if options.only in (None, kind):
            ran += [trees(size, options.device, options.repeats, kind) for size in sizes]
    if not all(ran):
        sys.exit("A kernel should have run, and a slower path did.")


if __name__ == "__main__":
    main()
