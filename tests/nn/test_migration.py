"""The tables of docs/neural.md, from other packages to this one: the same numbers from both sides, where both are there."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainCRF, ChainDistribution, TreeDistribution
from tests.needs import pytorch_crf

pytestmark = pytest.mark.filterwarnings("ignore")  # of the other packages, about themselves


def test_from_pytorch_crf() -> None:
    torch.manual_seed(0)
    theirs, ours = pytorch_crf().CRF(4, batch_first=True), ChainCRF(4)
    ours.load_state_dict(theirs.state_dict())
    emissions, tags = torch.randn(3, 6, 4), torch.randint(0, 4, (3, 6))
    mask = torch.arange(6) < torch.tensor([6, 2, 4])[:, None]
    for reduction in ("none", "sum", "mean", "token_mean"):
        torch.testing.assert_close(
            ours(emissions, tags, mask, reduction=reduction), theirs(emissions, tags, mask, reduction)
        )
    labels = ours.decode(emissions, mask)
    assert [row[row >= 0].tolist() for row in labels] == theirs.decode(emissions, mask)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32])
def test_masks_of_any_type(dtype: Any) -> None:
    """Such as pytorch-crf's ByteTensors; the first position may be off."""
    torch.manual_seed(3)
    layer, emissions, tags = ChainCRF(4), torch.randn(3, 6, 4), torch.randint(0, 4, (3, 6))
    mask = torch.rand(3, 6) < 0.5
    mask[:, 0] = False
    assert torch.equal(layer(emissions, tags, mask.to(dtype)), layer(emissions, tags, mask))
    assert torch.equal(layer.decode(emissions, mask.to(dtype)), layer.decode(emissions, mask))


def test_chains_from_torch_struct() -> None:
    struct = pytest.importorskip(
        "torch_struct", reason="torch-struct is not installed (pip install torch-struct)"
    )
    torch.manual_seed(1)
    potentials, others = torch.randn(2, 3, 5, 4, 4)  # [B, T − 1, after, before]
    lengths = torch.tensor([6, 3, 5])
    theirs = [struct.LinearChainCRF(part, lengths=lengths) for part in (potentials, others)]
    zeros = torch.zeros(3, 6, 4)
    ours = [ChainDistribution(zeros, part.mT, lengths=lengths) for part in (potentials, others)]
    torch.testing.assert_close(ours[0].log_partition(), theirs[0].partition)
    torch.testing.assert_close(ours[0].transition_marginals().mT, theirs[0].marginals, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(ours[0].entropy(), theirs[0].entropy, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours[0].kl(ours[1]), theirs[0].kl(theirs[1]), atol=1e-4, rtol=1e-4)
    labels = ours[0].argmax()
    torch.testing.assert_close(ours[0].score(labels.clamp_min(0)).float(), theirs[0].max)
    torch.testing.assert_close(ours[0].topk(3)[0].T, theirs[0].kmax(3))
    transitions = torch.zeros_like(potentials)
    for b, row in enumerate(labels.tolist()):
        for t in range(1, int(lengths[b])):
            transitions[b, t - 1, row[t], row[t - 1]] = 1
    torch.testing.assert_close(transitions, theirs[0].argmax)
    torch.testing.assert_close(ours[0].log_prob(labels), theirs[0].log_prob(transitions))


@pytest.mark.parametrize("multiroot", [False, True])
def test_trees_from_torch_struct(multiroot: bool) -> None:
    struct = pytest.importorskip(
        "torch_struct", reason="torch-struct is not installed (pip install torch-struct)"
    )
    torch.manual_seed(2)
    scores = torch.randn(2, 5, 5)  # [B, head, dependent], 0 is the root
    with_root = scores[:, 1:, 1:].clone()
    torch.diagonal(with_root, dim1=1, dim2=2)[:] = scores[:, 0, 1:]
    theirs: Any = struct.NonProjectiveDependencyCRF(with_root, multiroot=multiroot)
    ours = TreeDistribution(scores, single_root=not multiroot)
    torch.testing.assert_close(ours.log_partition(), theirs.partition, atol=1e-4, rtol=1e-4)
    found = ours.marginals()
    expected = theirs.marginals
    torch.testing.assert_close(
        found[:, 0, 1:], torch.diagonal(expected, dim1=1, dim2=2), atol=1e-4, rtol=1e-4
    )
    off = ~torch.eye(4, dtype=torch.bool)
    torch.testing.assert_close(found[:, 1:, 1:][:, off], expected[:, off], atol=1e-4, rtol=1e-4)
