"""Semi-Markov chains with unknown tags against brute force, and tags that no segmentation has."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.errors import LabelError
from crfkit.nn import SegmentCRF, SegmentDistribution
from tests.nn.test_segments import at_positions, possible, tensors
from tests.oracles.segment_batches import KINDS, SegmentBatch, segment_batch

CASES = ("plain", "whole segments", "masked", "own transitions", "forbidden", "length one")


def partly_known(given: SegmentBatch, seed: int) -> tuple[Any, list[float]]:
    """Tags of one segmentation each, some of them unknown, and log p of all that agree, by enumeration."""
    rng, (B, T, _) = np.random.default_rng(seed), given.scores["emissions"].shape
    tags, expected = torch.full((B, T), -100), [0.0] * B
    for b in possible(given):
        oracle = given.oracle(b)
        y = np.array(oracle.outputs[rng.integers(len(oracle.outputs))], dtype=np.int64)
        known = rng.random(len(y)) < 0.6
        agree = [np.array_equal(np.array(other)[known], y[known]) for other in oracle.outputs]
        expected[b] = float(np.log(oracle.probabilities[agree].sum()))
        tags[b] = torch.tensor(at_positions(given, b, np.where(known, y, -100), -7))
    return tags, expected


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_unknown_tags(kind: str, seed: int) -> None:
    given = segment_batch(seed, **KINDS[kind])
    tags, expected = partly_known(given, seed)
    scores = tensors(given, differentiated=True)
    chains, rows = SegmentDistribution(**scores), possible(given)
    found = chains.log_prob(tags)
    np.testing.assert_allclose(
        found.detach()[rows], np.array(expected)[rows], rtol=1e-9, atol=1e-9, err_msg=str(tags)
    )
    if len(rows) < len(tags):
        return
    wanted = [scores[name] for name in given.scores]
    by_graph = torch.autograd.grad(found.sum() / 3, wanted)
    value, gradients = chains.value_and_gradient(tags, share=3)
    torch.testing.assert_close(value, found.sum() / 3)
    names = ("emissions", "durations", "transitions", "start", "end", "first", "last", "segments")
    by_name = dict(zip(names, gradients, strict=True))
    for name, right in zip(given.scores, by_graph, strict=True):
        torch.testing.assert_close(by_name[name], right, msg=name)


def test_sets_of_labels() -> None:
    given = segment_batch(1, shape=(2, 4, 3, 3))
    sets = torch.tensor(np.random.default_rng(1).random((2, 4, 3)) < 0.7)
    sets[..., 0] = True
    found = SegmentDistribution(**tensors(given)).log_prob(sets)
    for b in range(2):
        oracle = given.oracle(b)
        agree = [all(sets[b, t, tag % 3] for t, tag in enumerate(y)) for y in oracle.outputs]
        np.testing.assert_allclose(found[b], np.log(oracle.probabilities[agree].sum()), rtol=1e-9)
    with pytest.raises(ValueError, match="bools with shape"):
        SegmentDistribution(**tensors(given)).log_prob(sets[:, :3])


def test_all_tags_unknown_or_known() -> None:
    given = segment_batch(2, shape=(3, 5, 3, 2))
    chains = SegmentDistribution(**tensors(given))
    torch.testing.assert_close(
        chains.log_prob(torch.full((3, 5), -100)), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-12
    )
    best = chains.argmax()
    torch.testing.assert_close(chains.log_prob(best, complete=False), chains.log_prob(best, complete=True))


def test_a_layer_learns_from_unknown_tags() -> None:
    torch.manual_seed(0)
    layer = SegmentCRF(3, max_length=4).double()
    emissions = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    tags = torch.tensor([[0, 3, -100, 2, 5], [-100, 5, 5, 0, -100]])
    loss = -layer(emissions, tags)
    expected = layer.distribution(emissions).log_prob(tags).sum()
    torch.testing.assert_close(-loss, expected)
    [gradient] = torch.autograd.grad(loss, [emissions])
    value, found = layer.loss_and_gradient(emissions, tags)
    torch.testing.assert_close(value, loss.detach())
    torch.testing.assert_close(found, gradient)


NOT_THE_SAME = ~torch.eye(3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("tags", "bigrams", "complaint"),
    [
        ([0, 3, 6, 1, 2], None, r"the tag 6 in sequence 1 at position 2, expected 0 to 5, or a negative"),
        ([3, 3, 0, 1, 2], None, r"tag 3 in sequence 1 at position 0, which continues a segment of label 0"),
        ([0, 3, 4, 1, 2], None, r"tag 4 in sequence 1 at position 2, which continues a segment of label 1"),
        ([0, 3, 3, 3, 2], None, r"position 3, which makes its segment longer than 3 positions"),
        ([-1, 3, 3, 3, 2], None, r"position 3, which makes its segment longer than 3 positions"),
        ([0, 3, 0, 3, 2], NOT_THE_SAME, r"position 2, but the bigrams forbid label 0 after label 0"),
    ],
)
def test_impossible_tags_are_an_error_that_says_where(tags: Any, bigrams: Any, complaint: str) -> None:
    layer = SegmentCRF(3, max_length=3, bigrams=bigrams)
    both = torch.tensor([[0, 3, 1, 4, 2], tags])
    for question in (layer, layer.loss_and_gradient):
        with pytest.raises(LabelError, match=complaint):
            question(torch.zeros(2, 5, 3), both)
    mask = torch.tensor([[True] * 6, [True, False, True, True, True, True]])
    spread = torch.cat([both[:, :1], torch.full((2, 1), 99), both[:, 1:]], 1)
    spread[0] = torch.tensor([0, 3, 1, 4, 2, 5])
    with pytest.raises(LabelError, match="in sequence 1 at position"):
        layer(torch.zeros(2, 6, 3), spread, mask)


def test_ends_that_the_bigrams_forbid() -> None:
    table = torch.ones(3, 3, dtype=torch.bool)
    table[2, 0] = table[1, 2] = False
    layer = SegmentCRF(2, max_length=3, bigrams=table)
    for tags, complaint in (([0, 2, 2], "label 0 after the begin"), ([1, 0, 1], "label 1 at the end")):
        with pytest.raises(LabelError, match=complaint):
            layer(torch.zeros(1, 3, 2), torch.tensor([tags]))
    assert torch.isfinite(layer(torch.zeros(1, 3, 2), torch.tensor([[1, 3, 0]])))
    assert layer(torch.zeros(1, 3, 2), torch.tensor([[0, 2, 2]]), complete=True) == -torch.inf
