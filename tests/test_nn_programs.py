"""`torch.compile` and `torch.export` of programs with a CRF: one graph, any shape, the answers of eager mode."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "crfkit[torch]"')

from torch import nn

from crfkit.nn import ChainCRF, ChainDistribution

LABELS = ["O", "B-PER", "I-PER"]
SHAPES = [(3, 6), (2, 4)]
pytestmark = pytest.mark.filterwarnings("ignore")  # of the compiler, about itself


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def layer_of(form: str) -> Any:
    torch.manual_seed(0)
    return ChainCRF(labels=LABELS, bigrams="bio") if form == "bio" else ChainCRF(3)


def arguments(form: str, shape: tuple[int, int], seed: int = 1) -> dict[str, Any]:
    """Emissions, tags and what says which positions and labels there are."""
    B, T = shape
    rng = torch.Generator().manual_seed(seed)
    given: dict[str, Any] = {"emissions": torch.randn(B, T, 3, generator=rng)}
    tags = torch.randint(0, 2, (B, T), generator=rng)
    if form == "unknown":
        tags[:, 1] = -100
    elif form == "sets":
        tags = torch.rand(B, T, 3, generator=rng) < 0.8
        tags[..., 0] = True
    elif form == "lengths":
        given["lengths"] = torch.randint(0, T + 1, (B,), generator=rng)
    elif form == "allowed":
        allowed = torch.rand(B, T, 3, generator=rng) < 0.7
        allowed[..., 0] = True
        given["allowed"], tags = allowed, torch.zeros_like(tags)
    if form in ("mask", "bio", "unknown"):
        mask = torch.rand(B, T, generator=rng) < 0.7
        mask[0, 0], mask[1] = False, False
        given["mask"] = mask
    return {**given, "tags": tags}


FORMS = ("plain", "mask", "lengths", "bio", "allowed", "unknown", "sets")


@pytest.mark.parametrize("form", FORMS)
def test_a_loss_is_one_graph_of_any_shape(form: str) -> None:
    layer = layer_of(form)

    def loss(**given: Any) -> Any:
        return -layer(**given, reduction="token_mean") * 2

    compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")
    for shape in SHAPES:
        given = arguments(form, shape)
        found, expected = (gradients(layer, function, given) for function in (compiled, loss))
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def gradients(layer: Any, loss: Callable[..., Any], given: dict[str, Any]) -> list[Any]:
    """The value and its gradient by all scores."""
    emissions = given["emissions"].clone().requires_grad_()
    layer.zero_grad()
    value = loss(**{**given, "emissions": emissions})
    value.backward()
    return [value.detach(), emissions.grad, *(parameter.grad.clone() for parameter in layer.parameters())]


@pytest.mark.parametrize("form", ["plain", "mask", "lengths", "bio", "allowed"])
def test_decoding_is_one_graph_of_any_shape(form: str) -> None:
    layer = layer_of(form)
    compiled = torch.compile(layer.decode, fullgraph=True, dynamic=True, backend="aot_eager")
    for shape in SHAPES:
        given = arguments(form, shape)
        del given["tags"]
        assert torch.equal(compiled(**given), layer.decode(**given))


QUESTIONS: dict[str, Callable[[ChainDistribution], Any]] = {
    "log_partition": lambda d: d.log_partition(),
    "marginals": lambda d: d.marginals(),
    "arc_marginals": lambda d: d.arc_marginals(),
    "entropy": lambda d: d.entropy(),
    "topk": lambda d: d.topk(3)[1],
    "score": lambda d: d.score(d.argmax().clamp_min(0)),
    "kl": lambda d: d.kl(d),
}


@pytest.mark.slow
@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_may_stand_in_a_compiled_program(question: str, differentiated: bool) -> None:
    layer, given = layer_of("bio"), arguments("bio", (3, 4))
    ask = QUESTIONS[question]

    def answer(emissions: Any, mask: Any) -> Any:
        return ask(layer.distribution(2 * emissions, mask)) + 0

    compiled = torch.compile(answer, backend="aot_eager")
    with torch.set_grad_enabled(differentiated):
        found, expected = (function(given["emissions"], given["mask"]) for function in (compiled, answer))
    torch.testing.assert_close(found, expected)


class Decoder(nn.Module):
    """Features in, labels out."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.crf = layer_of(form)

    def forward(self, emissions: Any, mask: Any = None, lengths: Any = None) -> Any:
        return self.crf.decode(self.linear(emissions), mask, lengths=lengths)


@pytest.mark.parametrize("form", ["plain", "mask", "lengths", "bio"])
def test_decoding_is_exported_with_any_number_of_sequences_and_positions(form: str) -> None:
    decoder = Decoder(form).eval()
    given = arguments(form, SHAPES[0])
    del given["tags"]
    B, T = torch.export.Dim("B"), torch.export.Dim("T")
    dynamic = {name: {0: B} if name == "lengths" else {0: B, 1: T} for name in given}
    program = torch.export.export(decoder, (), given, dynamic_shapes=dynamic)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for shape in SHAPES:
        given = arguments(form, shape)
        del given["tags"]
        assert torch.equal(loaded(**given), decoder(**given))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_machine_code_gives_the_same(form: str) -> None:
    """Through the whole compiler, with a network below."""
    layer, linear = layer_of(form), torch.nn.Linear(3, 3)

    def loss(emissions: Any, **given: Any) -> Any:
        return -layer(torch.tanh(linear(emissions)), **given)

    given = arguments(form, (3, 6))
    try:
        found = gradients(layer, torch.compile(loss, fullgraph=True), given)
    except torch._inductor.exc.InductorError as error:
        pytest.skip(f"the compiler of PyTorch does not work here: {str(error)[:100]}")
    for a, b in zip(found, gradients(layer, loss, given), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
