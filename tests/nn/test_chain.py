"""`crfkit.nn.ChainDistribution` against brute force: every question and kind of problem, by every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, LabelError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainDistribution
from crfkit.nn.backends import choice, core
from crfkit.nn.backends.core import CORE
from crfkit.nn.backends.torch_chain import TORCH
from crfkit.nn.problem.chain import explicit
from tests.oracles.chain_batches import KINDS, ChainBatch, batch

TOLERANCE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=["core", "torch"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every backend of a CPU, forced for all problems that it has an answer for."""

    def choose(problem: Any, lists: bool = False) -> Any:
        problem = explicit(problem)
        return CORE if request.param == "core" and problem.transitions.ndim < 4 else TORCH, problem

    monkeypatch.setattr(choice, "choose", choose)
    return request.param


@pytest.fixture(params=KINDS)
def given(request: pytest.FixtureRequest) -> ChainBatch:
    """A batch of each kind."""
    return batch(sum(map(ord, request.param)), **KINDS[request.param])


def possible(given: ChainBatch) -> list[int]:
    """The sequences that have a label sequence."""
    return [b for b in range(len(given.emissions)) if given.oracle(b).outputs]


@pytest.mark.usefixtures("backend")
def test_log_partition(given: ChainBatch) -> None:
    expected = [given.oracle(b).log_partition for b in range(len(given.emissions))]
    np.testing.assert_allclose(given.distribution().log_partition(), expected, **TOLERANCE)


@pytest.mark.usefixtures("backend")
def test_marginals(given: ChainBatch) -> None:
    """Of labels and of transitions; 0 at masked positions."""
    T, L = given.emissions.shape[1:]
    distribution = given.distribution()
    found, by_transition = distribution.marginals().numpy(), distribution.transition_marginals().numpy()
    for b in possible(given):
        at, oracle = given.positions(b), given.oracle(b)
        emissions = oracle.marginals[: len(at) * L].reshape(len(at), L)
        expected = np.zeros((T, L))
        expected[at] = emissions
        np.testing.assert_allclose(found[b], expected, **TOLERANCE)
        transitions = oracle.marginals[len(at) * L :][: max(len(at) - 1, 0) * L * L].reshape(-1, L, L)
        expected = np.zeros((max(T - 1, 0), L, L))
        expected[at[1:] - 1] = transitions
        np.testing.assert_allclose(by_transition[b], expected, **TOLERANCE)


@pytest.mark.usefixtures("backend")
def test_gradients_are_marginals_weighted_by_what_comes_back(given: ChainBatch) -> None:
    tensors = given.tensors()
    weights = torch.linspace(0.5, 2.0, len(given.emissions), dtype=torch.float64)
    distribution = ChainDistribution(**tensors)
    (distribution.log_partition() * weights).nan_to_num(neginf=0.0).sum().backward()
    exact = given.distribution()
    marginals, transitions = exact.marginals() * weights[:, None, None], exact.transition_marginals()
    transitions = transitions * weights[:, None, None, None]
    np.testing.assert_allclose(tensors["emissions"].grad, marginals, **TOLERANCE)
    by_shape = {2: (0, 1), 3: (1,), 4: ()}[given.transitions.ndim]
    summed = transitions.sum(by_shape) if by_shape else transitions
    np.testing.assert_allclose(tensors["transitions"].grad, summed, **TOLERANCE)
    for name, place in (("start", 0), ("end", -1)):
        if tensors[name] is not None:
            rows = [
                marginals[b, given.positions(b)[place]] for b in possible(given) if len(given.positions(b))
            ]
            np.testing.assert_allclose(tensors[name].grad, torch.stack(rows).sum(0), **TOLERANCE)


@pytest.mark.usefixtures("backend")
def test_log_probabilities_of_complete_tags(given: ChainBatch) -> None:
    B, T, _ = given.emissions.shape
    tags = torch.full((B, T), -100)
    expected = np.zeros(B)
    for b in possible(given):
        oracle = given.oracle(b)
        chosen = oracle.outputs[len(oracle.outputs) // 2]
        tags[b, given.positions(b)] = torch.tensor(chosen, dtype=torch.int64)
        expected[b] = oracle.log_probability(chosen)
    found = given.distribution().log_prob(tags)
    np.testing.assert_allclose(found[possible(given)], expected[possible(given)], **TOLERANCE)


@pytest.mark.usefixtures("backend")
def test_log_probabilities_of_partial_tags(given: ChainBatch) -> None:
    B, T, L = given.emissions.shape
    rng = np.random.default_rng(1)
    sets = rng.random((B, T, L)) < 0.7
    sets[:, :, 0] = True
    tags = torch.where(torch.tensor(rng.random((B, T)) < 0.5), -100, torch.tensor(rng.integers(0, L, (B, T))))
    one_hot = np.where(tags.numpy()[:, :, None] < 0, True, np.arange(L) == tags.numpy()[:, :, None])
    for given_tags, within in ((torch.tensor(sets), sets), (tags, one_hot)):
        found = given.distribution().log_prob(given_tags).exp()
        for b in possible(given):
            rows, oracle = within[b][given.positions(b)], given.oracle(b)
            agree = [all(row[k] for row, k in zip(rows, y, strict=True)) for y in oracle.outputs]
            np.testing.assert_allclose(found[b], oracle.probabilities[agree].sum(), **TOLERANCE)


@pytest.mark.parametrize("by_core", [False, True])
def test_best_and_k_best(given: ChainBatch, by_core: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    k = 5
    if not by_core:
        monkeypatch.setattr(core, "answers", lambda problem: False)
    best = given.distribution().argmax().numpy()
    scores, labels = (answer.numpy() for answer in given.distribution().topk(k))
    for b in possible(given):
        at, oracle = given.positions(b), given.oracle(b)
        assert tuple(best[b][at].tolist()) in oracle.best_outputs(1e-9)
        assert set(np.delete(best[b], at).tolist()) <= {-1}
        expected = oracle.k_best[:k]
        np.testing.assert_allclose(scores[b][: len(expected)], [score for score, _ in expected], **TOLERANCE)
        found = [tuple(row[at].tolist()) for row in labels[b][: len(expected)]]
        assert len(set(found)) == len(expected)
        np.testing.assert_allclose([oracle.score(y) for y in found], [s for s, _ in expected], **TOLERANCE)
        assert (scores[b][len(expected) :] == -np.inf).all()
        assert (labels[b][len(expected) :] == -1).all()


def test_entropy_and_divergence(given: ChainBatch) -> None:
    other = batch(99, shape=given.emissions.shape, spread=0.5)
    other = ChainBatch(other.emissions, other.transitions, given.start, None, given.mask, None)
    entropy = given.distribution().entropy()
    divergence = given.distribution().kl(other.distribution())
    for b in possible(given):
        p, q = given.oracle(b), other.oracle(b)
        np.testing.assert_allclose(entropy[b], p.entropy, rtol=1e-7, atol=1e-7)
        log_q = np.array([q.log_probability(y) for y in p.outputs])
        log_p = np.array([p.log_probability(y) for y in p.outputs])
        np.testing.assert_allclose(divergence[b], p.probabilities @ (log_p - log_q), rtol=1e-7, atol=1e-7)


def test_divergence_from_what_is_impossible_is_infinite() -> None:
    everything = batch(3).distribution()
    assert torch.isinf(everything.kl(batch(3, forbidden=True).distribution())).all()
    assert torch.isfinite(batch(3, forbidden=True).distribution().kl(everything)).all()


@pytest.mark.parametrize("kind", ["masked", "by position", "forbidden"])
def test_frequencies_of_samples_approach_the_marginals(kind: str) -> None:
    given = batch(5, **KINDS[kind])
    distribution, n = given.distribution(), 4000
    drawn = distribution.sample(n, generator=torch.Generator().manual_seed(0))
    again = distribution.sample(n, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    frequencies = torch.nn.functional.one_hot(drawn.clamp_min(0), 3) * (drawn >= 0)[..., None]
    np.testing.assert_allclose(frequencies.double().mean(0), distribution.marginals(), atol=0.04, rtol=0)
    exact = torch.isfinite(distribution.score(drawn[0].clamp_min(0)))
    assert exact.all()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", ["plain", "masked", "by sequence", "by position", "restricted"])
def test_gradients_and_second_gradients_by_differences(kind: str) -> None:
    given = batch(11, **{"shape": (3, 3, 2), **KINDS[kind]})
    tensors = given.tensors()
    scores = [tensors[name] for name in ("emissions", "transitions", "start", "end")]
    tags = torch.zeros(given.emissions.shape[:2], dtype=torch.int64)

    def value(*scores: Any) -> Any:
        distribution = ChainDistribution(*scores, mask=tensors["mask"], allowed=tensors["allowed"])
        return distribution.log_partition(), distribution.log_prob(tags)

    assert torch.autograd.gradcheck(value, scores)
    assert torch.autograd.gradgradcheck(value, scores, fast_mode=True)


def test_derivatives_of_marginals_and_entropy_by_differences() -> None:
    given = batch(12, shape=(2, 3, 2), forbidden=False)
    tensors = given.tensors()
    scores = [tensors[name] for name in ("emissions", "transitions", "start", "end")]

    def answers(*scores: Any) -> Any:
        distribution = ChainDistribution(*scores)
        return distribution.marginals(), distribution.transition_marginals(), distribution.entropy()

    assert torch.autograd.gradcheck(answers, scores)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("create_graph", [False, True])
def test_forbidden_parts_have_finite_gradients(create_graph: bool) -> None:
    tensors = batch(13, forbidden=True, restricted=True, masked=True).tensors()
    distribution = ChainDistribution(**tensors)
    value = distribution.log_partition()
    wanted = [tensors[name] for name in ("emissions", "transitions", "start", "end")]
    gradients = torch.autograd.grad(value[torch.isfinite(value)].sum(), wanted, create_graph=create_graph)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert (gradients[1][..., 0, 1] == 0).all()
    assert (gradients[0][~tensors["allowed"]] == 0).all()


@pytest.mark.usefixtures("backend")
def test_what_is_impossible_has_no_probability_and_no_gradient() -> None:
    emissions = torch.zeros(2, 3, 2, requires_grad=True)
    never = torch.full((2, 2), -torch.inf)
    distribution = ChainDistribution(emissions, never, lengths=torch.tensor([3, 1]))
    value = distribution.log_partition()
    np.testing.assert_allclose(value.detach(), [-np.inf, np.log(2)], rtol=1e-6)
    value[1].backward()
    assert torch.isfinite(emissions.grad).all()
    assert (distribution.marginals()[0] == 0).all()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_long_sequences_keep_their_digits(dtype: Any) -> None:
    """float32 log Z within 1e-6 and marginals within 1e-5 at spread 3; half precision goes in, float32 comes out."""
    rng = torch.Generator().manual_seed(0)
    emissions = (3 * torch.randn(2, 512, 16, generator=rng)).to(dtype)
    transitions = torch.randn(16, 16, generator=rng)
    found = ChainDistribution(emissions, transitions)
    exact = ChainDistribution(emissions.double(), transitions.double())
    np.testing.assert_allclose(found.log_partition(), exact.log_partition(), rtol=1e-6)
    np.testing.assert_allclose(found.marginals(), exact.marginals(), atol=1e-5, rtol=0)
    assert found.log_partition().dtype == torch.float32


def test_lengths_are_the_mask_that_they_stand_for() -> None:
    given = batch(21).tensors()
    lengths = torch.tensor([4, 0, 2, 3])
    scores = {name: given[name].detach() for name in ("emissions", "transitions", "start", "end")}
    by_mask = ChainDistribution(**scores, mask=torch.arange(4) < lengths[:, None])
    by_length = ChainDistribution(**scores, lengths=lengths)
    assert torch.equal(by_mask.lengths, by_length.lengths)
    for answer in ("log_partition", "marginals", "transition_marginals", "argmax", "entropy"):
        np.testing.assert_allclose(getattr(by_mask, answer)(), getattr(by_length, answer)(), **TOLERANCE)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"emissions": torch.zeros(2, 3)}, r"emissions: .* \[2, 3\], expected numbers \[B, T, L\]"),
        ({"emissions": torch.zeros(2, 3, 2, dtype=torch.int64)}, "emissions: got torch.int64"),
        ({"transitions": torch.zeros(3, 3)}, r"transitions: got shape \[3, 3\]"),
        ({"start": torch.zeros(3)}, r"start: got shape \[3\], expected \[L\] = \[2\]"),
        ({"end": torch.zeros(1)}, "end: got shape"),
        ({"mask": torch.ones(2, 2)}, r"mask: got shape \[2, 2\], expected \[B, T\] = \[2, 3\]"),
        ({"lengths": torch.ones(3)}, "lengths: got torch.float32"),
        ({"lengths": torch.ones(2).long(), "mask": torch.ones(2, 3)}, "got both"),
        ({"allowed": torch.ones(2, 3).bool()}, "allowed: got torch.bool"),
        ({"emissions": [[[0.0]]]}, "emissions: got list, expected a tensor"),
        ({"transitions": torch.zeros(2, 2).long()}, "transitions: got torch.int64"),
        (
            {"transitions": torch.zeros(2, 2, device="meta")},
            "transitions: got a tensor on meta, expected cpu",
        ),
        ({"end": torch.zeros(2, device="meta")}, "end: got a tensor on meta"),
        ({"mask": [[1, 1, 1], [1, 1, 0]]}, "mask: got list"),
        ({"lengths": [3, 2]}, "lengths: got list"),
        ({"lengths": torch.tensor([4, 2])}, "lengths: there is a length 4, expected 0 to 3"),
        ({"lengths": torch.tensor([3, -1])}, "lengths: there is a length -1"),
        ({"allowed": torch.ones(2, 3, 2, device="meta").bool()}, "allowed: got a tensor on meta"),
        ({"bigrams": "bio"}, "pass labels"),
        ({"bigrams": torch.ones(4, 4).bool()}, "bigrams: got torch.bool"),
        ({"bigrams": "observed", "labels": "ab"}, "Bigrams.observed"),
        ({"bigrams": "bio", "labels": ["O"]}, "labels: got 1 of them, the scores have 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_message(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ChainDistribution(**{"emissions": torch.zeros(2, 3, 2), **changes})


@pytest.mark.parametrize(
    ("tags", "complaint"),
    [
        (torch.zeros(2, 2).long(), r"tags: got torch.int64 with shape \[2, 2\], expected label ids \[2, 3\]"),
        (torch.zeros(2, 3), "tags: got torch.float32"),
        (torch.full((2, 3), 2), "there is a label 2, expected ids from 0 to 1"),
        (torch.ones(2, 3).bool(), "tags: got bools"),
        ([[0, 0, 0], [0, 0, 0]], "tags: got list"),
        (torch.zeros(2, 3, device="meta").long(), "tags: got a tensor on meta, expected cpu"),
    ],
)
def test_tags_that_do_not_fit_are_refused_with_a_message(tags: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ChainDistribution(torch.zeros(2, 3, 2)).log_prob(tags)


@pytest.mark.parametrize("label", [-100, -1, 2])
def test_labels_that_have_to_be_known_are_refused_where_they_are_not(label: int) -> None:
    distribution = ChainDistribution(torch.zeros(2, 3, 2), lengths=torch.tensor([3, 1]))
    tags = torch.tensor([[0, 0, label], [0, 0, 0]])
    complaint = "label 2, expected" if label == 2 else "a label is negative"
    with pytest.raises(LabelError, match=complaint):
        distribution.log_prob(tags, complete=True)
    with pytest.raises(LabelError, match=complaint):
        distribution.score(tags)
    off = tags.flip(0)  # there, the label stands where the sequence has ended
    torch.testing.assert_close(distribution.log_prob(off, complete=True), distribution.log_prob(off))


def test_questions_that_do_not_fit_are_refused_with_a_message() -> None:
    distribution = ChainDistribution(torch.zeros(2, 3, 2))
    with pytest.raises(ArgumentError, match="n"):
        distribution.sample(-1)
    with pytest.raises(ArgumentError, match="mask"):
        distribution.kl(ChainDistribution(torch.zeros(2, 3, 2), lengths=torch.tensor([3, 2])))
    same = ChainDistribution(torch.zeros(2, 3, 2), mask=torch.ones(2, 3))
    assert distribution.kl(same).tolist() == [0, 0]
