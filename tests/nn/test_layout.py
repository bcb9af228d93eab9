"""`batch_first=` of `crfkit.nn.ChainCRF`: the two layouts give the same answers, and mixing them up is an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from crfkit.errors import ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from torch import nn

from crfkit.nn import ChainCRF, CRFForTokenClassification

B, T, L = 2, 5, 3


@pytest.fixture(params=[None, "bigrams"])
def layers(request: pytest.FixtureRequest) -> tuple[ChainCRF, ChainCRF]:
    """A layer of each layout, with the same parameters."""
    torch.manual_seed(0)
    bigrams = None if request.param is None else torch.tensor([[1, 1, 0], [0, 1, 1], [1, 1, 1]]).bool()
    first, last = ChainCRF(L, bigrams=bigrams), ChainCRF(L, bigrams=bigrams, batch_first=False)
    last.load_state_dict(first.state_dict())
    return first, last


def inputs(n_sequences: int = B, n_positions: int = T) -> dict[str, Any]:
    """Emissions [B, T, L], tags [B, T] that the bigrams above allow, and a mask with a hole."""
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(n_sequences, n_positions, generator=generator) < 0.7
    mask[:, 0] = True
    return {
        "emissions": torch.randn(n_sequences, n_positions, L, generator=generator, requires_grad=True),
        "tags": torch.ones(n_sequences, n_positions, dtype=torch.int64),
        "mask": mask,
    }


def swapped(given: dict[str, Any]) -> dict[str, Any]:
    """The same, positions first."""
    return {
        name: part.detach().transpose(0, 1).clone().requires_grad_(part.requires_grad)
        for name, part in given.items()
    }


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
@pytest.mark.parametrize("n_positions", [T, B])
def test_log_likelihood(layers: tuple[ChainCRF, ChainCRF], reduction: str, n_positions: int) -> None:
    """Values and gradients, where all shapes are square too."""
    first, last = layers
    given = inputs(n_positions=n_positions)
    turned = swapped(given)
    expected, found = first(**given, reduction=reduction), last(**turned, reduction=reduction)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    expected.sum().backward()
    found.sum().backward()
    torch.testing.assert_close(turned["emissions"].grad.transpose(0, 1), given["emissions"].grad)
    torch.testing.assert_close(last.transitions.grad, first.transitions.grad)
    if n_positions != T:
        other = last(**{name: part.transpose(0, 1) for name, part in turned.items()}, reduction=reduction)
        assert not torch.allclose(
            other.sum(), expected.sum()
        )  # it is the argument that decides, not the shapes


def test_loss_and_gradient(layers: tuple[ChainCRF, ChainCRF]) -> None:
    first, last = layers
    for reduction in ("sum", "mean", "token_mean"):
        given = inputs()
        expected = first.loss_and_gradient(**given, reduction=reduction)
        found = last.loss_and_gradient(**swapped(given), reduction=reduction)
        torch.testing.assert_close(found[0], expected[0])
        torch.testing.assert_close(found[1].transpose(0, 1), expected[1])
    torch.testing.assert_close(last.end_transitions.grad, first.end_transitions.grad)


def test_decode_and_distribution(layers: tuple[ChainCRF, ChainCRF]) -> None:
    first, last = layers
    given = inputs()
    emissions, mask = given["emissions"].detach(), given["mask"]
    allowed = torch.ones(B, T, L).bool()
    allowed[:, 1, 0] = False
    lengths = torch.tensor([5, 2])
    for here, there in (
        ({"mask": mask}, {"mask": mask.T}),
        ({"lengths": lengths}, {"lengths": lengths}),
        ({"allowed": allowed}, {"allowed": allowed.transpose(0, 1)}),
    ):
        expected, found = first.decode(emissions, **here), last.decode(emissions.transpose(0, 1), **there)
        assert found.shape == (T, B)
        assert torch.equal(found.T, expected)
        marginals = last.distribution(emissions.transpose(0, 1), **there).marginals()  # batch first
        torch.testing.assert_close(marginals, first.distribution(emissions, **here).marginals())


def test_sets_of_tags(layers: tuple[ChainCRF, ChainCRF]) -> None:
    first, last = layers
    emissions, sets = inputs()["emissions"], torch.rand(B, T, L) < 0.9
    sets[..., 1] = True
    torch.testing.assert_close(last(emissions.transpose(0, 1), sets.transpose(0, 1)), first(emissions, sets))


@pytest.mark.parametrize("batch_first", [True, False])
def test_mixed_layouts_are_errors(batch_first: bool) -> None:
    layer = ChainCRF(L, batch_first=batch_first)
    shape, other = ([B, T], [T, B]) if batch_first else ([T, B], [B, T])
    emissions, tags = torch.zeros(*shape, L), torch.zeros(shape, dtype=torch.int64)
    layout = "B, T, L" if batch_first else "T, B, L"
    expected = (
        rf"shape \[{other[0]}, {other[1]}\], expected \[{shape[0]}, {shape[1]}\] as in emissions \[{layout}\]"
    )
    swapped = rf"\(batch_first={batch_first}\): batch and positions are swapped"
    for ask in (layer, layer.loss_and_gradient):
        with pytest.raises(ShapeError, match=rf"tags: got torch.int64 with {expected}.*{swapped}"):
            ask(emissions, tags.T)
        with pytest.raises(ShapeError, match=rf"mask: got torch.uint8 with {expected}.*{swapped}"):
            ask(emissions, tags, torch.ones(other, dtype=torch.uint8))
    with pytest.raises(ShapeError, match=rf"mask: .*{expected}"):
        layer.decode(emissions, torch.ones(other).bool())
    with pytest.raises(ShapeError, match="allowed"):
        layer.decode(emissions, allowed=torch.ones(*other, L).bool())
    with pytest.raises(ShapeError, match=rf"lengths: got those of {T} sequences, expected {B}.*swapped"):
        layer.decode(emissions, lengths=torch.ones(T, dtype=torch.int64))
    with pytest.raises(ShapeError, match="lengths"):
        layer.decode(emissions, lengths=torch.ones(4, dtype=torch.int64))
    with pytest.raises(
        ShapeError, match=rf"emissions: got shape \[4, 3\], expected \[{layout}\] with the layer's 3"
    ):
        layer.decode(torch.zeros(4, L))
    for given in (([[0.0]],), (emissions, [[True]])):
        with pytest.raises(ShapeError):
            layer.decode(*given)


def test_the_layout_is_shown() -> None:
    assert repr(ChainCRF(L)) == "ChainCRF(n_labels=3)"
    assert repr(ChainCRF(L, batch_first=False)) == "ChainCRF(n_labels=3, batch_first=False)"


def test_compiled_positions_first(layers: tuple[ChainCRF, ChainCRF]) -> None:
    """The program of `torch.compile` as `torch.export` sees it."""
    _, last = layers

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.crf = last

        def forward(self, emissions: Any, mask: Any) -> Any:
            return self.crf.decode(emissions, mask)

    given = swapped(inputs())
    emissions, mask = given["emissions"].detach(), given["mask"]
    batch, length = torch.export.Dim("B"), torch.export.Dim("T")
    program = torch.export.export(
        Decoder(), (emissions, mask), dynamic_shapes=({0: length, 1: batch}, {0: length, 1: batch})
    )
    assert torch.equal(program.module()(emissions, mask), last.decode(emissions, mask))
    longer = torch.cat([emissions, emissions]), torch.cat([mask, mask])
    assert torch.equal(program.module()(*longer), last.decode(*longer))


class Encoder(nn.Module):
    """Stands for a model of transformers."""

    config = SimpleNamespace(id2label={0: "O", 1: "B", 2: "I"})

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Embedding(10, L)

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        return SimpleNamespace(logits=self.scores(input_ids))


@pytest.mark.parametrize("name", ["attention_mask", "word_mask", "labels"])
def test_the_token_classifier_refuses_other_shapes(name: str) -> None:
    model = CRFForTokenClassification(Encoder())
    input_ids = torch.ones(B, T, dtype=torch.int64)
    for shape, swapped in (((T, B), ".*swapped"), ((1, T), ""), ((B, 1), "")):
        with pytest.raises(ShapeError, match=rf"{name}: got torch.int64 .* expected \[2, 5\] as in{swapped}"):
            model(input_ids, **{name: torch.ones(shape, dtype=torch.int64)})
