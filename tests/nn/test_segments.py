"""`crfkit.nn.SegmentDistribution` against brute force over all segmentations: every question and kind of problem."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainDistribution, SegmentDistribution
from tests.oracles.segment_batches import KINDS, SegmentBatch, segment_batch

TOLERANCE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=KINDS)
def given(request: pytest.FixtureRequest) -> SegmentBatch:
    """A batch of each kind."""
    return segment_batch(sum(map(ord, request.param)), **KINDS[request.param])


def tensors(given: SegmentBatch, differentiated: bool = False, dtype: Any = torch.float64) -> dict[str, Any]:
    """The arguments of a distribution."""
    found = {
        name: torch.tensor(part, dtype=dtype).requires_grad_(differentiated)
        for name, part in given.scores.items()
    }
    return found if given.mask is None else {**found, "mask": torch.tensor(given.mask)}


def distribution(given: SegmentBatch) -> SegmentDistribution:
    return SegmentDistribution(**tensors(given))


def possible(given: SegmentBatch) -> list[int]:
    """The sequences that have a segmentation."""
    return [b for b in range(len(given.scores["emissions"])) if given.oracle(b).outputs]


def at_positions(given: SegmentBatch, b: int, values: Any, nothing: float = 0.0) -> Any:
    """Values at the tokens of a sequence, at their positions."""
    T = given.scores["emissions"].shape[1]
    found = np.full((T, *np.shape(values)[1:]), nothing)
    found[given.positions(b)] = values
    return found


def test_log_partition(given: SegmentBatch) -> None:
    expected = [given.oracle(b).log_partition for b in range(len(given.scores["emissions"]))]
    np.testing.assert_allclose(distribution(given).log_partition(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_marginals_weighted_by_what_comes_back(given: SegmentBatch, create_graph: bool) -> None:
    scores = tensors(given, differentiated=True)
    names = list(given.scores)
    B = len(given.scores["emissions"])
    weights = torch.linspace(0.5, 2.0, B, dtype=torch.float64)
    log_z = SegmentDistribution(**scores).log_partition()
    total = (log_z * weights).nan_to_num(neginf=0.0).sum()
    found = torch.autograd.grad(
        total, [scores[name] for name in names], create_graph=create_graph, materialize_grads=True
    )
    expected = {name: np.zeros_like(part) for name, part in given.scores.items()}
    for b in possible(given):
        for name, part in given.split(given.oracle(b).marginals, b).items():
            weighted = float(weights[b]) * part
            if name in ("emissions", "first", "last", "segments"):
                expected[name][b] += at_positions(given, b, weighted)
            elif name == "transitions" and given.scores[name].ndim == 3:
                expected[name][b] += weighted
            else:
                expected[name] += weighted
    for name, gradient in zip(names, found, strict=True):
        np.testing.assert_allclose(gradient.detach(), expected[name], **TOLERANCE, err_msg=name)


@pytest.mark.parametrize("differentiated", [False, True])
def test_marginals(given: SegmentBatch, differentiated: bool) -> None:
    found = SegmentDistribution(**tensors(given, differentiated)).marginals().detach()
    for b in possible(given):
        emissions = given.split(given.oracle(b).marginals, b)["emissions"]
        np.testing.assert_allclose(found[b], at_positions(given, b, emissions), **TOLERANCE)


def test_probabilities_of_segments_and_spans(given: SegmentBatch) -> None:
    """Dense, one by one, and those above a threshold."""
    chains = distribution(given)
    B, T, L = given.scores["emissions"].shape
    K = len(given.scores["durations"])
    dense = chains.segment_marginals()
    listed = [(b, s, e, c) for b in range(B) for s in range(T) for e in range(s + 1, T + 1) for c in range(L)]
    spans = torch.tensor([*listed, (B, 0, 1, 0), (0, -1, 1, 0), (0, 0, T + 1, 0), (0, 0, 0, 0), (0, 0, 1, L)])
    found = chains.span_probabilities(spans)
    assert (found[len(listed) :] == 0).all()
    exact: dict[tuple[int, ...], float] = {}
    for b in possible(given):
        oracle = given.oracle(b)
        for y, p in zip(oracle.outputs, oracle.probabilities, strict=True):
            tags = torch.tensor([at_positions(given, b, y, -1).tolist()]).long()
            for s, e, c in chains.segments_of(tags)[0]:
                exact[b, s, e, c] = exact.get((b, s, e, c), 0.0) + p
    np.testing.assert_allclose(found[: len(listed)], [exact.get(span, 0.0) for span in listed], **TOLERANCE)
    by_begin = np.zeros((B, T, K, L))
    for (b, s, e, c), p in exact.items():
        by_begin[b, s, len([t for t in given.positions(b) if s <= t < e]) - 1, c] = p
    np.testing.assert_allclose(dense, by_begin, **TOLERANCE)
    likely, probability = chains.spans(threshold=0.2)
    expected = sorted((span, p) for span, p in exact.items() if p >= 0.2)
    assert [tuple(span) for span in likely.tolist()] == [span for span, _ in expected]
    np.testing.assert_allclose(probability, [p for _, p in expected], **TOLERANCE)


def test_log_probabilities_and_scores(given: SegmentBatch) -> None:
    B, T, _ = given.scores["emissions"].shape
    tags, expected, scores = torch.full((B, T), -7), np.zeros(B), np.zeros(B)
    for b in possible(given):
        oracle = given.oracle(b)
        y = oracle.outputs[len(oracle.outputs) // 2]
        tags[b] = torch.tensor(at_positions(given, b, y, -7))
        expected[b], scores[b] = oracle.log_probability(y), oracle.score(y)
    rows, chains = possible(given), distribution(given)
    np.testing.assert_allclose(chains.log_prob(tags)[rows], expected[rows], **TOLERANCE)
    np.testing.assert_allclose(chains.score(tags)[rows], scores[rows], **TOLERANCE)
    again = chains.tags(chains.segments_of(tags))
    np.testing.assert_allclose(chains.log_prob(again)[rows], expected[rows], **TOLERANCE)


def test_what_is_no_segmentation_has_no_probability() -> None:
    chains = SegmentDistribution(torch.zeros(1, 4, 2), torch.zeros(2, 2))
    wrong = [[2, 0, 0, 0], [0, 3, 0, 0], [0, 2, 2, 0], [0, 2, 2, -100], [0, 0, 0, 4]]
    for tags in wrong:
        assert chains.log_prob(torch.tensor([tags])).item() == -np.inf
    assert chains.log_prob(torch.tensor([[0, 2, 1, 3]])).isfinite()


def test_best_and_k_best(given: SegmentBatch) -> None:
    k = 5
    chains = distribution(given)
    best = chains.argmax().numpy()
    scores, tags = (answer.numpy() for answer in chains.topk(k))
    for b in possible(given):
        at, oracle = given.positions(b), given.oracle(b)
        assert tuple(best[b][at].tolist()) in oracle.best_outputs(1e-9)
        assert set(np.delete(best[b], at).tolist()) <= {-1}
        expected = oracle.k_best[:k]
        np.testing.assert_allclose(scores[b][: len(expected)], [score for score, _ in expected], **TOLERANCE)
        found = [tuple(row[at].tolist()) for row in tags[b][: len(expected)]]
        assert len(set(found)) == len(expected)
        np.testing.assert_allclose([oracle.score(y) for y in found], [s for s, _ in expected], **TOLERANCE)
        assert (scores[b][len(expected) :] == -np.inf).all()
        assert (tags[b][len(expected) :] == -1).all()


def test_entropy_and_divergence(given: SegmentBatch) -> None:
    B, T, L = given.scores["emissions"].shape
    K = len(given.scores["durations"])
    for whole in (False, True):
        other = segment_batch(99, shape=(B, T, K, L), spread=0.5, whole=whole)
        other = SegmentBatch(other.scores, given.mask)
        entropy = distribution(given).entropy()
        divergence = distribution(given).kl(distribution(other))
        for b in possible(given):
            p, q = given.oracle(b), other.oracle(b)
            np.testing.assert_allclose(entropy[b], p.entropy, rtol=1e-7, atol=1e-7)
            log_q = np.array([q.log_probability(y) for y in p.outputs])
            log_p = np.array([p.log_probability(y) for y in p.outputs])
            np.testing.assert_allclose(divergence[b], p.probabilities @ (log_p - log_q), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["plain", "whole segments", "forbidden and masked"])
def test_frequencies_of_samples_approach_the_marginals(kind: str) -> None:
    given = segment_batch(5, **KINDS[kind])
    chains, n, L = distribution(given), 4000, given.scores["emissions"].shape[2]
    drawn = chains.sample(n, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn, chains.sample(n, generator=torch.Generator().manual_seed(0)))
    known = (drawn >= 0)[..., None]
    frequencies = torch.nn.functional.one_hot(drawn.clamp_min(0) % L, L) * known
    np.testing.assert_allclose(frequencies.double().mean(0), chains.marginals(), atol=0.04, rtol=0)
    begins = (
        torch.nn.functional.one_hot(drawn.clamp_min(0) % L, L) * (known & (drawn < L)[..., None])
    ).double()
    np.testing.assert_allclose(begins.mean(0), chains.segment_marginals().sum(2), atol=0.04, rtol=0)
    possible = torch.isfinite(chains.log_partition())
    assert torch.isfinite(chains.score(drawn[0])[possible]).all()


@pytest.mark.parametrize("share", [1, -3])
def test_value_and_gradient_are_those_of_a_backward_pass(given: SegmentBatch, share: int) -> None:
    scores = tensors(given, differentiated=True)
    chains, rows = SegmentDistribution(**scores), possible(given)
    if len(rows) < len(given.scores["emissions"]):
        return  # NaN where no segmentation is possible
    drawn = chains.sample(1, generator=torch.Generator().manual_seed(0))[0]
    names = ("emissions", "durations", "transitions", "start", "end", "first", "last", "segments")
    wanted = [scores[name] for name in names if name in scores]
    for tags, total in ((None, chains.log_partition()), (drawn, chains.log_prob(drawn))):
        expected = torch.autograd.grad(total.sum() / share, wanted)
        value, found = chains.value_and_gradient(tags, share=share)
        torch.testing.assert_close(value, total.sum() / share)
        assert [name for name, part in zip(names, found, strict=True) if part is not None] == [
            name for name in names if name in scores
        ]
        for part, right in zip((part for part in found if part is not None), expected, strict=True):
            torch.testing.assert_close(part, right)


@pytest.mark.parametrize("kind", ["plain", "whole segments", "own transitions"])
def test_gradients_and_second_gradients_by_differences(kind: str) -> None:
    given = segment_batch(11, **{**KINDS[kind], "shape": (3, 3, 2, 2)})
    scores = tensors(given, differentiated=True)
    mask = scores.pop("mask", None)
    tags = torch.zeros(3, 3, dtype=torch.int64)

    def value(*parts: Any) -> Any:
        chains = SegmentDistribution(**dict(zip(scores, parts, strict=True)), mask=mask)
        return chains.log_partition(), chains.log_prob(tags)

    def answers(*parts: Any) -> Any:
        chains = SegmentDistribution(**dict(zip(scores, parts, strict=True)), mask=mask)
        return chains.marginals(), chains.entropy()

    assert torch.autograd.gradcheck(value, list(scores.values()))
    assert torch.autograd.gradgradcheck(value, list(scores.values()), fast_mode=True)
    assert torch.autograd.gradcheck(answers, list(scores.values()), fast_mode=True)


def test_segments_of_one_position_are_a_chain() -> None:
    given = segment_batch(7, shape=(3, 6, 1, 4), masked=True)
    scores = tensors(given)
    durations = scores.pop("durations")
    scores["emissions"] = scores["emissions"] + durations
    chain = ChainDistribution(**scores)
    segments = distribution(given)
    np.testing.assert_allclose(segments.log_partition(), chain.log_partition(), **TOLERANCE)
    np.testing.assert_allclose(segments.marginals(), chain.marginals(), **TOLERANCE)
    assert torch.equal(segments.argmax(), chain.argmax())


def test_laws() -> None:
    """A constant at a position moves log Z; the reverse has the same one; marginals of a position sum to 1."""
    given = segment_batch(8, shape=(3, 12, 4, 3), edges=True, whole=True)
    scores = tensors(given)
    chains = SegmentDistribution(**scores)
    moved = {**scores, "emissions": scores["emissions"].clone()}
    moved["emissions"][:, 5] += 3.0
    np.testing.assert_allclose(
        SegmentDistribution(**moved).log_partition(), chains.log_partition() + 3, **TOLERANCE
    )
    np.testing.assert_allclose(SegmentDistribution(**moved).marginals(), chains.marginals(), **TOLERANCE)
    np.testing.assert_allclose(chains.marginals().sum(2), np.ones((3, 12)), **TOLERANCE)
    turned = {
        "emissions": scores["emissions"].flip(1),
        "first": scores["last"].flip(1),
        "last": scores["first"].flip(1),
        "transitions": scores["transitions"].T,
        "start": scores["end"],
        "end": scores["start"],
        "durations": scores["durations"],
        "segments": torch.zeros_like(scores["segments"]),
    }
    for s in range(12):
        for k in range(min(4, 12 - s)):
            turned["segments"][:, 11 - s - k, k] = scores["segments"][:, s, k]
    np.testing.assert_allclose(
        SegmentDistribution(**turned).log_partition(), chains.log_partition(), **TOLERANCE
    )
    order = [2, 0, 1]
    renamed = {name: part[..., order] for name, part in scores.items()}
    renamed["transitions"] = renamed["transitions"][order]
    np.testing.assert_allclose(
        SegmentDistribution(**renamed).marginals(), chains.marginals()[..., order], **TOLERANCE
    )
    best = chains.argmax()
    assert (chains.score(best) <= chains.log_partition()).all()


def test_long_sequences() -> None:
    """5,000 positions: probabilities stay what they are, in float64 and from scores in float32."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal((1, 500, 3))
    emissions = torch.tensor(np.tile(block, (1, 10, 1)))
    scores = {
        "durations": torch.tensor(rng.standard_normal((6, 3))),
        "transitions": torch.tensor(rng.standard_normal((3, 3))),
    }
    long = SegmentDistribution(emissions, **scores).marginals()
    np.testing.assert_allclose(long.sum(2), np.ones((1, 5000)), **TOLERANCE)
    np.testing.assert_allclose(long[:, 1000:1500], long[:, 3500:4000], **TOLERANCE)
    single = SegmentDistribution(emissions.float(), **{name: part.float() for name, part in scores.items()})
    np.testing.assert_allclose(single.marginals(), long, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("B", "T"), [(0, 3), (2, 0), (0, 0), (2, 1)])
@pytest.mark.parametrize("differentiated", [False, True])
def test_nothing_to_segment(B: int, T: int, differentiated: bool) -> None:
    L, K = 3, 4
    shapes = {"emissions": (B, T, L), "durations": (K, L), "transitions": (L, L), "start": (L,), "end": (L,)}
    shapes |= {"first": (B, T, L), "segments": (B, T, K, L)}
    scores = {name: torch.zeros(shape, requires_grad=differentiated) for name, shape in shapes.items()}
    chains = SegmentDistribution(**scores)
    tags = torch.zeros(B, T, dtype=torch.int64)
    torch.testing.assert_close(chains.log_partition(), torch.full((B,), T * float(np.log(L))))
    assert chains.marginals().shape == (B, T, L)
    assert chains.segment_marginals().shape == (B, T, K, L)
    assert chains.topk(2)[1].shape == (B, 2, T)
    assert chains.sample(2).shape == (2, B, T)
    assert chains.argmax().shape == (B, T)
    assert chains.spans()[0].shape == (0, 4)
    assert chains.span_probabilities(torch.zeros(2, 4).long()).tolist() == [0.0, 0.0]
    total = chains.log_prob(tags).sum() + chains.entropy().sum() + chains.kl(chains).sum()
    if differentiated:
        gradients = torch.autograd.grad(total, list(scores.values()), materialize_grads=True)
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_what_stands_at_masked_positions_means_nothing() -> None:
    given = segment_batch(4, **KINDS["whole segments"])
    scores, mask = tensors(given, differentiated=True), torch.tensor(given.mask)
    expected = SegmentDistribution(**scores)
    other = {name: part.detach().clone() for name, part in scores.items()}
    for name in ("emissions", "first", "last", "segments"):
        other[name][~mask] = torch.nan
        other[name].requires_grad_()
    found = SegmentDistribution(**other)
    torch.testing.assert_close(found.log_partition(), expected.log_partition())
    torch.testing.assert_close(found.marginals(), expected.marginals())
    [gradient] = torch.autograd.grad(found.log_partition().sum(), [other["emissions"]], create_graph=True)
    assert torch.isfinite(gradient).all()


def test_where_no_segmentation_is_possible() -> None:
    durations = torch.tensor([[-torch.inf], [0.0]], requires_grad=True)  # an odd number of positions has none
    emissions = torch.zeros(3, 4, 1, requires_grad=True)
    chains = SegmentDistribution(emissions, durations, lengths=torch.tensor([3, 4, 0]))
    assert chains.log_partition().tolist() == [-torch.inf, 0.0, 0.0]
    assert chains.argmax().tolist() == [[-1] * 4, [0, 1, 0, 1], [-1] * 4]
    assert chains.sample(1)[0].tolist() == chains.argmax().tolist()
    with torch.no_grad():
        assert (chains.marginals()[0] == 0).all()
    for create_graph in (False, True):
        gradients = torch.autograd.grad(
            chains.log_partition().sum(), [emissions, durations], create_graph=create_graph
        )
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_a_score_that_is_no_number_is_seen() -> None:
    scores = tensors(segment_batch(5), differentiated=True)
    with torch.no_grad():
        scores["emissions"][1, 1, 1] = torch.nan
    log_z = SegmentDistribution(**scores).log_partition()
    assert log_z.isnan().tolist() == [False, True, False]
    [gradient] = torch.autograd.grad(log_z.sum(), [scores["emissions"]])
    assert gradient.isnan().flatten(1).any(1).tolist() == [False, True, False]


def test_allowed_labels() -> None:
    allowed = torch.tensor([[[True, True], [False, True], [True, False]]])
    chains = SegmentDistribution(torch.zeros(1, 3, 2), torch.zeros(3, 2), allowed=allowed)
    assert (chains.marginals()[~allowed] == 0).all()
    assert chains.log_partition().exp().round().item() == 3  # 0 1 0, 1 1 0, 1-1 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"emissions": torch.zeros(2, 3)}, r"emissions: got torch.float32 with shape \[2, 3\]"),
        ({"durations": torch.zeros(0, 2)}, r"durations: got shape \[0, 2\], expected \[K, L\] with L = 2"),
        ({"durations": torch.zeros(4, 3)}, r"durations: got shape \[4, 3\]"),
        ({"durations": [1.0]}, "durations: got list"),
        ({"transitions": torch.zeros(2, 2, 2, 2)}, r"expected \[L, L\] or \[B, L, L\]"),
        ({"start": torch.zeros(3)}, "start: got shape"),
        ({"first": torch.zeros(2, 3, 1)}, r"first: got shape \[2, 3, 1\], expected \[2, 3, 2\]"),
        ({"segments": torch.zeros(2, 3, 2)}, r"segments: got shape \[2, 3, 2\], expected \[2, 3, 4, 2\]"),
        ({"allowed": torch.ones(2, 3)}, "allowed: got torch.float32"),
        ({"mask": torch.ones(2, 3), "lengths": torch.tensor([1, 2])}, "mask and lengths: got both"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_message(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SegmentDistribution(**{"emissions": torch.zeros(2, 3, 2), "durations": torch.zeros(4, 2), **changes})


def test_questions_that_do_not_fit_are_refused_with_a_message() -> None:
    chains = SegmentDistribution(torch.zeros(2, 3, 2), torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"tags: got torch\.float32"):
        chains.log_prob(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"tags: got the segment \(0, 4, 0\)"):
        chains.tags([[(0, 4, 0)], []])
    with pytest.raises(ValueError, match="spans: expected integers"):
        chains.span_probabilities(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="threshold: got 0"):
        chains.spans(0)
    with pytest.raises(ValueError, match=r"\[B, T, K, L\] = \[2, 3, 1, 2\]"):
        chains.kl(SegmentDistribution(torch.zeros(2, 3, 2), torch.zeros(1, 2)))
    with pytest.raises(ValueError, match="another mask"):
        chains.kl(SegmentDistribution(torch.zeros(2, 3, 2), torch.zeros(2, 2), lengths=torch.tensor([3, 2])))
