"""Semi-Markov chains through the core against plain PyTorch: every kind of problem, and larger ones."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import SegmentDistribution
from crfkit.nn.backends import core_segments
from crfkit.nn.backends.core_segments import CORE
from crfkit.nn.backends.segments import TORCH
from tests.nn.test_segments import tensors
from tests.oracles.segment_batches import KINDS, segment_batch

LARGER: dict[str, Any] = {
    "edges": {"shape": (3, 60, 9, 7), "edges": True},
    "whole": {"shape": (3, 40, 5, 9), "whole": True, "masked": True},
    "own": {"shape": (5, 50, 60, 5), "own_transitions": True, "masked": True},
    "no label follows itself": {"shape": (3, 60, 6, 17), "forbidden": True},
    "far": {"shape": (4, 30, 6, 5), "spread": 25.0, "edges": True},
}


@pytest.mark.parametrize("kind", [*KINDS, *LARGER])
def test_both_backends_agree(kind: str) -> None:
    given = tensors(segment_batch(2, **{**KINDS, **LARGER}[kind]))
    chains = SegmentDistribution(**given)
    assert chains._backend is CORE
    problem = chains._problem
    weights = torch.linspace(0.5, 2.0, len(problem.emissions))
    answers: list[Any] = []
    for backend in (CORE, TORCH):
        log_z, kept = backend.value(problem, True)
        alone = backend.value(problem, False)[0]
        gradients = [backend.gradient(problem, upstream, kept, -1) for upstream in (None, weights)]
        best = chains.score(chains._spread(backend.argmax(problem), -1))
        answers.append([log_z, alone, *gradients[0], *gradients[1], best, *backend.by_length(problem)])
    for found, expected in zip(*answers, strict=True):
        assert (found is None) == (expected is None)
        if found is not None:
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_spans_of_many_segments_come_from_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    chains = SegmentDistribution(**tensors(segment_batch(3, **LARGER["edges"])))
    spans, probabilities = chains.spans(0.3)
    single = chains.span_probabilities(spans)
    monkeypatch.setattr(core_segments, "MOST_SEGMENTS", 0)
    again, others = chains.spans(0.3)
    assert len(spans) > 5
    assert torch.equal(spans, again)
    for found in (others, single, chains.span_probabilities(spans)):
        torch.testing.assert_close(found, probabilities, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_of_less_precision(dtype: Any) -> None:
    given = tensors(segment_batch(4, shape=(3, 20, 4, 3), edges=True), True, dtype)
    log_z = SegmentDistribution(**given).log_partition()
    exact = {name: part.detach().double().requires_grad_() for name, part in given.items()}
    expected = SegmentDistribution(**exact).log_partition()
    assert log_z.dtype == torch.float32
    torch.testing.assert_close(log_z.double(), expected)
    for found, right in zip(
        torch.autograd.grad(log_z.sum(), list(given.values())),
        torch.autograd.grad(expected.sum(), list(exact.values())),
        strict=True,
    ):
        assert found.dtype == dtype
        torch.testing.assert_close(found, right.to(dtype), rtol=1e-2, atol=1e-5)
