"""Lists of the bigrams that exist: every pair once, from both sides, and a layer that has them where they pay."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainCRF, ChainDistribution
from crfkit.nn.backends import choice
from crfkit.nn.backends.torch_chain import TORCH
from crfkit.nn.problem.bigram_tiles import ATTRIBUTE, TILE, tiles_for, tiles_of


def pairs(tiles: npt.NDArray[np.int16], n_labels: int) -> tuple[set[tuple[int, int]], list[int]]:
    """All (label, label in its list), in order within lists, and the labels that have lists, of one direction."""
    size = tiles.shape[1] * 8 // 9
    found, owners = [], []
    for power in range(16):
        for tile in range(tiles[0, power], tiles[0, power + 1]):
            width = 8 << power
            for i in range(size // width):
                owner = int(tiles[1 + tile, size + i])
                others = tiles[1 + tile, i * width : (i + 1) * width]
                others = others[others >= 0]
                assert (np.diff(others) > 0).all()
                if owner >= 0:
                    owners.append(owner)
                else:
                    assert len(others) == 0
                found += [(owner, int(other)) for other in others]
    assert len(found) == len(set(found))
    return set(found), owners


@pytest.mark.parametrize(("n_labels", "share", "size"), [(3, 0.5, 64), (40, 0.2, 64), (300, 0.02, TILE)])
def test_every_pair_is_in_one_list_of_each_side(n_labels: int, share: float, size: int) -> None:
    rng = np.random.default_rng(n_labels)
    exists = rng.random((n_labels, n_labels)) < share
    exists[1], exists[:, 2] = True, True
    exists[0], exists[:, 0] = False, False
    before, after = tiles_of(exists, size)
    expected = {(int(a), int(b)) for a, b in zip(*np.nonzero(exists), strict=True)}
    found, owners = pairs(before, n_labels)
    assert {(a, b) for b, a in found} == expected
    assert sorted(owners) == list(range(n_labels))
    found, owners = pairs(after, n_labels)
    assert found == expected
    assert sorted(owners) == list(range(n_labels))


def table(n_labels: int, share: float) -> Any:
    """Random bigrams with all of START and END [L + 1, L + 1]."""
    exists = torch.rand(n_labels + 1, n_labels + 1, generator=torch.Generator().manual_seed(0)) < share
    exists[-1] = exists[:, -1] = True
    return exists


@pytest.mark.parametrize(
    ("n_labels", "share", "listed"), [(150, 0.1, True), (150, 0.5, False), (100, 0.1, False)]
)
def test_tables_have_lists_where_they_pay(n_labels: int, share: float, listed: bool) -> None:
    given = table(n_labels, share)
    assert (tiles_for(given) is not None) == listed
    assert tiles_for(given) is tiles_for(given.detach())  # made once


def lists_are_right(given: Any) -> bool:
    """Whether the lists of a table are those of its pairs now."""
    found = tiles_for(given)
    return found is not None and np.array_equal(found.numpy(), tiles_of(given[:-1, :-1].numpy()))


def test_lists_follow_what_happens_to_a_table() -> None:
    layer = ChainCRF(150, bigrams=table(150, 0.1))
    assert lists_are_right(layer.bigrams)
    layer.bigrams[3, 7:100] = False
    assert lists_are_right(layer.bigrams)
    layer.bigrams = layer.bigrams.flip(0)
    assert lists_are_right(layer.bigrams)
    layer.to_empty(device="cpu").bigrams.copy_(table(150, 0.05))
    assert lists_are_right(layer.bigrams)
    assert lists_are_right(copy.deepcopy(layer).half().bigrams)
    assert tiles_for(layer.to("meta").bigrams) is None
    assert list(layer.state_dict()) == ["transitions", "start_transitions", "end_transitions"]


def test_tables_of_one_storage_have_lists_of_their_own() -> None:
    both = torch.stack([table(150, 0.1), table(150, 0.1).T])
    assert lists_are_right(both[0])
    assert lists_are_right(both[1])
    assert tiles_for(both[0].T) is None


def test_lists_live_as_long_as_the_memory_of_their_table() -> None:
    """They are an attribute of its storage: no other table finds them, and there is no cache of the process."""
    given = table(150, 0.1)
    tiles = weakref.ref(tiles_for(given))
    assert tiles_for(given.detach()) is tiles()
    assert not hasattr(given.clone().untyped_storage(), ATTRIBUTE)
    del given
    gc.collect()
    assert tiles() is None


def test_tables_whose_changes_are_not_counted_have_none() -> None:
    with torch.inference_mode():
        assert tiles_for(table(150, 0.1)) is None


def test_questions_without_lists_are_answered_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose scores are masked when they are first asked for, without a graph or with one."""
    monkeypatch.setattr(choice, "choose", lambda problem, lists=False: (TORCH, problem))
    layer, emissions = ChainCRF(4, bigrams=table(4, 0.6)), torch.randn(2, 5, 4)
    assert not bool(layer.bigrams.all())
    found = layer.distribution(emissions)
    expected = ChainDistribution(emissions, *layer.parameters(), bigrams=layer.bigrams)
    drawn = found.sample(20).reshape(-1, 5)
    assert bool(layer.bigrams[drawn[:, :-1], drawn[:, 1:]].all())
    assert torch.equal(found.transitions, expected.transitions)
    other = ChainDistribution(emissions, bigrams=layer.bigrams)
    answers = [(d.entropy() + d.kl(other) + d.topk(2)[0].sum(1)).sum() for d in (found, expected)]
    gradients = [torch.autograd.grad(answer, list(layer.parameters())) for answer in answers]
    for mine, theirs in zip(*gradients, strict=True):
        assert torch.equal(mine, theirs)


def test_answers_are_those_without_lists() -> None:
    """In memory, where they are not used."""
    layer, tags = ChainCRF(150, bigrams=table(150, 0.2)), torch.zeros(2, 1, dtype=torch.int64)
    emissions = torch.randn(2, 4, 150)
    expected = ChainDistribution(emissions, *layer.parameters(), bigrams=layer.bigrams)
    assert torch.equal(layer.decode(emissions), expected.argmax())
    assert torch.equal(layer.distribution(emissions).log_partition(), expected.log_partition())
    assert layer(emissions[:, :1], tags).isfinite()
