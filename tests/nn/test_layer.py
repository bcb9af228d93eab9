"""`crfkit.nn.ChainCRF`: training, decoding under constraints, checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainCRF
from crfkit.structures import Bigrams

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def test_reductions() -> None:
    torch.manual_seed(0)
    layer = ChainCRF(3)
    emissions, tags = torch.randn(4, 5, 3), torch.randint(0, 3, (4, 5))
    mask = torch.rand(4, 5) < 0.6
    values = layer(emissions, tags, mask, reduction="none")
    assert values.shape == (4,)
    assert (values <= 0).all()
    for reduction, expected in (
        ("sum", values.sum()),
        ("mean", values.mean()),
        ("token_mean", values.sum() / mask.sum()),
    ):
        np.testing.assert_allclose(
            layer(emissions, tags, mask, reduction=reduction).item(), expected.item(), rtol=1e-6
        )
    with pytest.raises(ArgumentError, match="reduction"):
        layer(emissions, tags, reduction="avg")


@pytest.mark.parametrize("bigrams", ["bio", "table"])
def test_constraints_hold_in_training_and_in_decoding(bigrams: str) -> None:
    torch.manual_seed(1)
    known = Bigrams.scheme("bio", LABELS)
    layer = ChainCRF(labels=LABELS, bigrams=bigrams if bigrams == "bio" else known)
    emissions = 5 * torch.randn(20, 7, 5)
    for labels in layer.decode(emissions).tolist():
        assert known.allows([LABELS[label] for label in labels])
    transitions = layer.distribution(emissions).transition_marginals()
    forbidden = [(a, b) for a in range(5) for b in range(5) if (LABELS[a], LABELS[b]) not in known]
    assert forbidden
    assert all((transitions[:, :, a, b] == 0).all() for a, b in forbidden)
    layer(emissions, layer.decode(emissions)).backward()
    assert torch.isfinite(layer.transitions.grad).all()
    assert all(layer.transitions.grad[a, b] == 0 for a, b in forbidden)
    assert layer(emissions[:1], torch.tensor([[0, 2, 0, 0, 0, 0, 0]])) == -torch.inf  # I-PER after O


def test_it_learns() -> None:
    """Labels alternate; only the first can be read from its own position."""
    torch.manual_seed(2)
    first = torch.randint(0, 2, (32, 1))
    tags = (first + torch.arange(6)) % 2
    inputs = torch.zeros(32, 6, 2)
    inputs[:, 0] = torch.nn.functional.one_hot(first[:, 0], 2).float()
    layer, linear = ChainCRF(2), torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam([*linear.parameters(), *layer.parameters()], lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        loss = -layer(linear(inputs), tags, reduction="token_mean")
        loss.backward()
        optimizer.step()
    assert torch.equal(layer.decode(linear(inputs)), tags)


def test_checkpoints_of_pytorch_crf_fit() -> None:
    layer = ChainCRF(3, bigrams=torch.ones(3, 3).bool())
    assert set(layer.state_dict()) == {"transitions", "start_transitions", "end_transitions"}


def test_one_result_for_any_number_of_runs() -> None:
    torch.manual_seed(3)
    layer, emissions = ChainCRF(5), torch.randn(8, 30, 5)

    def gradients() -> Any:
        layer.zero_grad()
        layer(emissions, torch.zeros(8, 30, dtype=torch.int64)).backward()
        return layer.transitions.grad.clone()

    assert torch.equal(gradients(), gradients())


def test_labels_are_needed() -> None:
    with pytest.raises(ArgumentError, match="n_labels"):
        ChainCRF()
    with pytest.raises(ArgumentError, match="n_labels"):
        ChainCRF(0)
    with pytest.raises(ArgumentError, match="n_labels"):
        ChainCRF(3, labels=["a", "b"])
    with pytest.raises(ShapeError, match="emissions"):
        ChainCRF(3).decode(torch.zeros(1, 2, 4))


def test_the_layer_says_what_it_is() -> None:
    assert (
        repr(ChainCRF(labels=["B", "I", "O"], bigrams="bio")) == "ChainCRF(n_labels=3, 8 of 9 bigrams exist)"
    )
    assert "some of 9" in repr(ChainCRF(3, bigrams=np.ones((3, 3), dtype=np.bool_), device="meta"))


def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import neural, neural_bigrams, neural_trees

    for benchmark in (neural, neural_bigrams, neural_trees):
        monkeypatch.setattr(benchmark, "find_spec", lambda name: None)  # no rivals
    n_threads = torch.get_num_threads()
    monkeypatch.setattr("sys.argv", ["neural", "--device", "cpu", "--smoke", "--repeats", "1"])
    neural.main()
    torch.set_num_threads(n_threads)
    assert "loss + gradient, ms: crfkit" in capsys.readouterr().out
