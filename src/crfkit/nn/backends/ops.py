"""What compiled and exported programs compute, as operations that `torch.compile` treats as opaque.

Each takes the parts of a `ChainProblem`. Kernels and native code run inside as they do elsewhere, and may look at values;
the compiler sees shapes alone. A gradient is computed from the scores again: nothing is kept between the two passes. A
program that `torch.export` wrote needs them too: `import crfkit.nn` before it is loaded.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.base import Expectations, cast_like
from crfkit.nn.backends.choice import Chosen, choose, choose_lists
from crfkit.nn.problem.chain import ChainProblem, working_dtype
from crfkit.nn.problem.gold_score import Term, likelihood_terms

_SCORES = "Tensor emissions, Tensor transitions, Tensor? start, Tensor? end"
_PROBLEM = f"{_SCORES}, Tensor? lengths, Tensor? positions, Tensor? bigrams"
_TAGS = "Tensor? tags, bool complete"


def _operation(name: str, schema: str) -> Any:
    return torch.library.custom_op(f"crfkit::{name}", mutates_args=(), schema=schema)


def _chosen(parts: Sequence[Any]) -> Chosen:
    """The backend, and the problem that an operation is given: it has −inf already for what its table forbids."""
    problem = ChainProblem(*parts)
    return choose_lists(problem) or choose(problem._replace(bigrams=None))


def log_partition(problem: ChainProblem) -> Tensor:
    """log Z [B], differentiable by all scores."""
    return _value(*problem, None, True)


def log_prob(problem: ChainProblem, tags: Tensor, complete: bool | None) -> Tensor:
    """log p [B] of labels at positions [B, T], negative where unknown; differentiable by all scores."""
    return _value(*problem, tags, bool(complete))


def argmax(problem: ChainProblem) -> Tensor:
    """The labels of the best label sequence [B, T] by position; −1 at masked positions."""
    return _argmax(*problem)


def expectations(problem: ChainProblem) -> Expectations:
    """log Z and the marginals, without a graph."""
    return Expectations(*_expectations(*problem))


@_operation("chain_value", f"({_PROBLEM}, {_TAGS}) -> Tensor")
def _value(*given: Any) -> Tensor:
    *parts, tags, complete = given
    backend, problem = _chosen(parts)
    terms = _terms(problem, tags, complete)
    values = [term.sign * backend.value(term.problem, term.tags, False)[0] for term in terms]
    return values[0] if len(values) == 1 else values[0] + values[1]


@_operation("chain_gradient", f"({_PROBLEM}, {_TAGS}, Tensor upstream) -> Tensor[]")
def _gradient(*given: Any) -> list[Tensor]:
    """By those of emissions, transitions, start and end that there are."""
    *parts, tags, complete, upstream = given
    backend, problem = _chosen(parts)
    total: list[Tensor] = []
    for sign, term, known in _terms(problem, tags, complete):
        kept = backend.value(term, known, True)[1]
        found = cast_like(term, backend.gradient(term, known, sign * upstream, kept))
        present = [part.contiguous() for part in found if part is not None]
        total = [a + b for a, b in zip(total, present, strict=True)] if total else present
    return total


def _terms(problem: ChainProblem, tags: Tensor | None, complete: bool) -> list[Term]:
    """What has to be added up."""
    return [Term(1, problem, None)] if tags is None else likelihood_terms(problem, tags, complete or None)


@_operation("chain_best", f"({_PROBLEM}) -> Tensor")
def _argmax(*given: Any) -> Tensor:
    backend, problem = _chosen(given)
    return backend.argmax(problem)


@_operation("chain_expectations", f"({_PROBLEM}) -> (Tensor, Tensor, Tensor)")
def _expectations(*given: Any) -> tuple[Tensor, ...]:
    backend, problem = _chosen(given)
    return tuple(part.contiguous() for part in backend.expectations(problem))


@_value.register_fake
def _(*given: Any) -> Tensor:
    emissions = given[0]
    return emissions.new_empty(emissions.shape[0], dtype=working_dtype(emissions.dtype))


@_gradient.register_fake
def _(*given: Any) -> list[Tensor]:
    return [part.new_empty(part.shape) for part in given[:4] if part is not None]


@_argmax.register_fake
def _(*given: Any) -> Tensor:
    return given[0].new_empty(given[0].shape[:2], dtype=torch.int64)


@_expectations.register_fake
def _(*given: Any) -> tuple[Tensor, ...]:
    emissions, transitions = given[:2]
    dtype = working_dtype(emissions.dtype)
    log_z = emissions.new_empty(emissions.shape[0], dtype=torch.float64)
    return log_z, *(emissions.new_empty(part.shape, dtype=dtype) for part in (emissions, transitions))


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *parts, ctx.complete = inputs
    ctx.save_for_backward(*parts)


def _backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    found = iter(_gradient(*ctx.saved_tensors, ctx.complete, upstream))
    scores = [None if part is None else next(found) for part in ctx.saved_tensors[:4]]
    return (*scores, None, None, None, None, None)


_value.register_autograd(_backward, setup_context=_keep_inputs)
