"""Chains at the edges: nothing in a batch, odd memory, odd numbers, no label sequence at all; on both paths of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import LabelError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainCRF, ChainDistribution
from crfkit.nn.backends import core
from tests.oracles.chain_batches import KINDS, batch

SCORES = ("emissions", "transitions", "start", "end")


@pytest.fixture(params=["core", "torch"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once by the native core, where it answers, and once without it."""
    if request.param == "torch":
        monkeypatch.setattr(core, "answers", lambda problem: False)
        monkeypatch.setattr(core, "suits", lambda problem: False)
    return str(request.param)


def answers(distribution: ChainDistribution, tags: Any) -> dict[str, Any]:
    """Every question."""
    scores, labels = distribution.topk(3)
    return {
        "log_partition": distribution.log_partition(),
        "log_prob": distribution.log_prob(tags),
        "of unknown": distribution.log_prob(torch.full_like(tags, -100)),
        "score": distribution.score(tags),
        "marginals": distribution.marginals(),
        "transition_marginals": distribution.transition_marginals(),
        "entropy": distribution.entropy(),
        "kl": distribution.kl(distribution),
        "argmax": distribution.argmax(),
        "topk": scores,
        "labels": labels,
        "sample": distribution.sample(2, generator=torch.Generator().manual_seed(0)),
    }


@pytest.mark.parametrize("transitions", ["shared", "by sequence", "by position"])
@pytest.mark.parametrize("L", [1, 3])
@pytest.mark.parametrize(("B", "T"), [(0, 3), (2, 0), (0, 0), (2, 1)])
@pytest.mark.parametrize("differentiated", [False, True])
def test_nothing_to_label(B: int, T: int, L: int, transitions: str, differentiated: bool) -> None:
    shapes = {"shared": (L, L), "by sequence": (B, L, L), "by position": (B, max(T - 1, 0), L, L)}
    scores = [
        torch.zeros(shape, requires_grad=differentiated)
        for shape in ((B, T, L), shapes[transitions], (L,), (L,))
    ]
    tags = torch.zeros(B, T, dtype=torch.int64)
    found = answers(ChainDistribution(*scores), tags)
    values = ("log_partition", "log_prob", "of unknown", "score", "entropy", "kl")
    expected: dict[str, tuple[int, ...]] = dict.fromkeys(values, (B,))
    expected |= {"marginals": (B, T, L), "transition_marginals": (B, max(T - 1, 0), L, L), "argmax": (B, T)}
    expected |= {"topk": (B, 3), "labels": (B, 3, T), "sample": (2, B, T)}
    assert {name: tuple(value.shape) for name, value in found.items()} == expected
    torch.testing.assert_close(found["log_partition"], torch.full((B,), T * float(np.log(L))))
    if differentiated:
        total = found["log_prob"].sum() + found["marginals"].sum() + found["entropy"].sum()
        gradients = torch.autograd.grad(total, scores, materialize_grads=True)
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


def transposed(part: Any) -> Any:
    """The same numbers in another order of memory."""
    return part.transpose(0, 1).contiguous().transpose(0, 1) if part.ndim > 1 else part


def with_gaps(part: Any) -> Any:
    """The same numbers, every other place of memory."""
    return torch.stack([part, part], -1)[..., 0]


@pytest.mark.parametrize("layout", [transposed, with_gaps])
@pytest.mark.parametrize("kind", ["plain", "masked", "by sequence", "by position", "restricted"])
def test_any_order_in_memory(kind: str, layout: Any) -> None:
    """Values and gradients, also where what comes back is not alike for all sequences."""
    given = batch(3, **KINDS[kind])
    tags = torch.zeros(given.emissions.shape[:2], dtype=torch.int64)
    weights = torch.linspace(0.5, 2, len(tags), dtype=torch.float64)
    found = []
    for change in (lambda part: part, layout):
        tensors = given.tensors()
        changed = {name: part if part is None else change(part) for name, part in tensors.items()}
        distribution = ChainDistribution(**changed)
        values = answers(distribution, change(tags))
        total = (weights * (values["log_prob"] + values["log_partition"])).sum() + values["entropy"].sum()
        found.append([*values.values(), *torch.autograd.grad(total, [tensors[name] for name in SCORES])])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_what_stands_at_positions_that_are_off_means_nothing() -> None:
    given = batch(4, **KINDS["masked"])
    tensors, mask = given.tensors(), torch.tensor(given.mask)
    tags = torch.zeros(mask.shape, dtype=torch.int64)
    expected = answers(ChainDistribution(**tensors), tags)
    with torch.no_grad():
        tensors["emissions"][~mask] = torch.nan
    tags[~mask] = 10**6
    found = answers(ChainDistribution(**tensors), tags)
    for name in expected.keys() - {"score", "of unknown"}:
        torch.testing.assert_close(found[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("place", ["emissions", "transitions"])
def test_a_score_that_is_no_number_is_seen(place: str) -> None:
    """In the sequence that has it; a network that has gone wrong must not go on in silence."""
    given = batch(5, arcs="by sequence").tensors()
    with torch.no_grad():
        given[place][1, 1, 1] = torch.nan
    log_z = ChainDistribution(**given).log_partition()
    assert log_z.isnan().tolist() == [False, True, False, False]
    [gradient] = torch.autograd.grad(log_z.sum(), [given["emissions"]])
    assert gradient.isnan().flatten(1).any(1).tolist() == [False, True, False, False]


@pytest.mark.parametrize("by_position", [True, False])
@pytest.mark.parametrize("nothing", [torch.nan, torch.inf])
def test_what_stands_at_transitions_that_nobody_takes_means_nothing(
    by_position: bool, nothing: float
) -> None:
    """In answers that are differentiated themselves: into positions that are off, and of sequences of one position."""
    rng = torch.Generator().manual_seed(0)
    shape = (2, 4, 3, 3) if by_position else (2, 3, 3)
    emissions, transitions = torch.randn(2, 5, 3, generator=rng), torch.randn(shape, generator=rng)
    other = transitions.clone()
    if by_position:
        other[0, 3:], other[1] = nothing, nothing
    else:
        other[1] = nothing
    found = []
    for scores in (transitions, other):
        given = emissions.clone().requires_grad_()
        chains = ChainDistribution(given, scores, lengths=torch.tensor([4, 1]))
        answers = [chains.marginals(), chains.transition_marginals(), chains.entropy(), chains.topk(2)[0]]
        answers += torch.autograd.grad(chains.log_partition().sum(), given, create_graph=True)
        slope = torch.autograd.grad(sum((part[part > -torch.inf] ** 2).sum() for part in answers), given)
        found.append([*answers, *slope, chains.sample(3, generator=torch.Generator().manual_seed(1))])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_where_no_label_sequence_is_possible() -> None:
    emissions = torch.zeros(3, 4, 2)
    distribution = ChainDistribution(
        emissions, torch.full((2, 2), -torch.inf), lengths=torch.tensor([4, 1, 0])
    )
    assert distribution.log_partition().isneginf().tolist() == [True, False, False]
    for labels in (distribution.argmax(), distribution.sample(1)[0], distribution.topk(1)[1][:, 0]):
        assert labels[0].tolist() == [-1] * 4
        assert (labels[1] >= 0).tolist() == [True, False, False, False]
    assert (distribution.marginals()[0] == 0).all()


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
def test_tags_of_any_integers(dtype: Any) -> None:
    distribution = batch(6).distribution()
    tags = torch.tensor([[0, 1, 2, 0]] * 4)
    assert torch.equal(distribution.log_prob(tags.to(dtype)), distribution.log_prob(tags))


@pytest.mark.parametrize("complete", [None, False])
def test_labels_that_do_not_exist_are_never_taken_for_others(complete: bool | None) -> None:
    distribution = ChainDistribution(torch.zeros(1, 2, 2))
    tags = torch.tensor([[0, 2]])
    if complete is None:
        with pytest.raises(LabelError):
            distribution.log_prob(tags)
    else:
        assert distribution.log_prob(tags, complete=False).isneginf().all()


@pytest.mark.parametrize("reduction", ["sum", "mean", "token_mean"])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 3)])
def test_the_mean_of_nothing_is_0(shape: tuple[int, int], reduction: str) -> None:
    layer = ChainCRF(3)
    emissions = torch.randn(*shape, 3, requires_grad=True)
    value = layer(
        emissions, torch.zeros(shape, dtype=torch.int64), torch.zeros(shape).bool(), reduction=reduction
    )
    value.backward()
    assert value == 0
    assert (emissions.grad == 0).all()
    assert (layer.transitions.grad == 0).all()


@pytest.mark.parametrize("of_layer", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("of_emissions", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_precisions_may_differ(of_emissions: Any, of_layer: Any) -> None:
    torch.manual_seed(7)
    layer = ChainCRF(labels=["B", "I", "O"], bigrams="bio").to(of_layer)
    emissions = torch.randn(2, 4, 3).to(of_emissions).requires_grad_()
    tags = torch.tensor([[0, 1, 1, 2], [2, 2, 0, 1]])
    value = layer(emissions, tags)
    value.backward()
    exact = ChainCRF(labels=["B", "I", "O"], bigrams="bio").double()
    exact.load_state_dict(layer.state_dict())
    torch.testing.assert_close(value.double(), exact(emissions.detach().double(), tags), rtol=1e-5, atol=1e-5)
    assert emissions.grad.dtype == of_emissions
    assert layer.transitions.grad.dtype == of_layer
    assert all(
        v.is_floating_point() or v.dtype == torch.int64
        for v in answers(layer.distribution(emissions), tags).values()
    )


def test_without_gradients_and_in_inference_mode() -> None:
    layer, emissions, tags = ChainCRF(3), torch.randn(2, 4, 3), torch.zeros(2, 4, dtype=torch.int64)
    expected = answers(layer.distribution(emissions), tags)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found = answers(layer.distribution(emissions), tags)
        for name, value in found.items():
            assert not value.requires_grad
            torch.testing.assert_close(value, expected[name].detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("is_leaf", [True, False])
def test_one_tensor_for_start_and_end(is_leaf: bool) -> None:
    """Each use of it is counted once, with and without a graph of the gradient."""
    torch.manual_seed(4)
    emissions, transitions = torch.randn(2, 3, 4).double(), torch.randn(4, 4).double()
    given = torch.randn(4, dtype=torch.float64, requires_grad=True)
    ends = given if is_leaf else 1 * given
    apart = [ends.detach().clone().requires_grad_() for _ in range(2)]
    expected = sum(
        torch.autograd.grad(ChainDistribution(emissions, transitions, *apart).log_partition().sum(), apart)
    )
    for create_graph in (False, True):
        value = ChainDistribution(emissions, transitions, ends, ends).log_partition().sum()
        [found] = torch.autograd.grad(value, [given], retain_graph=True, create_graph=create_graph)
        torch.testing.assert_close(found.detach(), expected)
    assert torch.autograd.gradgradcheck(
        lambda ends: ChainDistribution(emissions, transitions, ends, ends).log_partition(), [given]
    )


@pytest.mark.parametrize(("has_start", "has_end"), [(False, False), (True, False), (False, True)])
def test_ends_that_were_not_given_have_no_gradient(has_start: bool, has_end: bool) -> None:
    exists = torch.tensor([[True, False], [True, True]])
    start, end = (torch.zeros(2) if has else None for has in (has_start, has_end))
    tags = torch.tensor([[0, 0, 0]])
    for bigrams in (None, exists):
        chains = ChainDistribution(torch.randn(1, 3, 2), torch.zeros(2, 2), start, end, bigrams=bigrams)
        for given in (tags, torch.tensor([[0, -100, 0]])):
            found = chains.value_and_gradient(given)[1]
            assert [part is not None for part in found] == [True, True, has_start, has_end]
