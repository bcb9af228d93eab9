"""The CPU backend of semi-Markov chains: the C++ core, which is imported when it is first needed."""

from collections.abc import Iterable
from math import prod
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.core import core_is_there
from crfkit.nn.backends.segments import TORCH, TorchSegments
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.segments import N_SCORES, SegmentProblem

MOST_SEGMENTS = 2**24  # of all begins, lengths and labels, whose probabilities are kept at once


class CoreSegments(TorchSegments):
    """Forward–backward and Viterbi of `crfkit.inference.SegmentBatch`.

    Sequences that the core leaves out, whose scores are too far apart for exp space or are no numbers, are summed by plain
    PyTorch in log space.
    """

    name = "core"

    def suits(self, problem: SegmentProblem) -> bool:
        """Whether the core answers for this problem."""
        return problem.emissions.device.type == "cpu" and core_is_there()

    def value(
        self, problem: SegmentProblem, keep: bool, in_double: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z; the probabilities of all parts are kept."""
        found = _batch(problem).expectations()
        log_z, *kept = map(torch.from_numpy, (found.log_partition, *found[2:]))
        if found.left_out.any():
            rows = torch.from_numpy(found.left_out).nonzero()[:, 0]
            values, parts = TORCH.value(_rows_of(problem, rows), keep, in_double=True)
            log_z[rows] = values
            for part, other in zip(kept, parts, strict=False):  # those that are kept here, and are there
                if len(part):
                    part[rows] = other
        dtype = torch.float64 if in_double else working_dtype(problem.emissions.dtype)
        return log_z.to(dtype), tuple(kept) if keep else ()

    def by_length(self, problem: SegmentProblem) -> Iterable[Tensor]:
        """The probability of each segment [B, T, L] by its begin, for the lengths 1 … K in turn."""
        found = self._each_segment(problem)
        return super().by_length(problem) if found is None else found.unbind(2)

    def span_probabilities(
        self, problem: SegmentProblem, row: Tensor, start: Tensor, last: Tensor, label: Tensor
    ) -> Tensor:
        """The probabilities [n] of the segments from position `start` to position `last`."""
        found = self._each_segment(problem)
        if found is None:
            return super().span_probabilities(problem, row, start, last, label)
        return found[row, start, last - start, label]

    def _each_segment(self, problem: SegmentProblem) -> Tensor | None:
        """The probabilities of all segments [B, T, K, L], as the gradient by their scores; None where these are many."""
        if prod(problem.shape) > MOST_SEGMENTS:
            return None
        if problem.segments is None:
            problem = problem._replace(segments=torch.zeros(problem.shape, dtype=torch.float64))
        return self.value(problem, True)[1][-1]

    def argmax(self, problem: SegmentProblem) -> Tensor:
        """Viterbi decoding."""
        return torch.from_numpy(_batch(problem).decode())


CORE = CoreSegments()


def _rows_of(problem: SegmentProblem, rows: Tensor) -> SegmentProblem:
    """The problem of some of the sequences."""
    shared = {"durations", "start", "end"} | ({"transitions"} if problem.transitions.ndim == 2 else set())
    parts = {
        name: part if part is None or name in shared else part[rows]
        for name, part in problem._asdict().items()
    }
    return SegmentProblem(**parts)


def _batch(problem: SegmentProblem) -> Any:
    """The problem as arrays of the core, which share the memory of the tensors where they can."""
    from crfkit.inference import SegmentBatch

    scores: list[Any] = [
        None if part is None else part.detach().double().numpy() for part in problem[:N_SCORES]
    ]
    lengths = None if problem.lengths is None else problem.lengths.numpy()
    return SegmentBatch(*scores, lengths=lengths, n_threads=torch.get_num_threads())
