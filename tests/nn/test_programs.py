"""`torch.compile` and `torch.export` of programs with a CRF: one graph, any shape, the answers of eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainDistribution, TreeDistribution
from tests.nn.program_cases import (
    DECODED,
    EXPORTED,
    FORMS,
    arguments,
    compare_decoding,
    compare_exported,
    compare_losses,
    layer_of,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of the compiler, about itself


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("form", FORMS)
def test_a_loss_is_one_graph_of_any_shape(form: str) -> None:
    compare_losses(form, "cpu", backend="aot_eager")


@pytest.mark.parametrize("form", DECODED)
def test_decoding_is_one_graph_of_any_shape(form: str) -> None:
    compare_decoding(form, "cpu", backend="aot_eager")


@pytest.mark.parametrize("form", EXPORTED)
def test_decoding_is_exported_with_any_number_of_sequences_and_positions(form: str) -> None:
    compare_exported(form, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_machine_code_gives_the_same(form: str) -> None:
    """Through the whole compiler."""
    try:
        compare_losses(form, "cpu")
    except torch._inductor.exc.InductorError as error:
        pytest.skip(f"the compiler of PyTorch does not work here: {str(error)[:100]}")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU on this machine")
@pytest.mark.parametrize("form", FORMS)
def test_on_a_gpu(form: str) -> None:
    compare_losses(form, "cuda")
    if form in DECODED:
        compare_decoding(form, "cuda")
    if form in EXPORTED:
        compare_exported(form, "cuda")


QUESTIONS: dict[str, Callable[[ChainDistribution], Any]] = {
    "log_partition": lambda d: d.log_partition(),
    "marginals": lambda d: d.marginals(),
    "transition_marginals": lambda d: d.transition_marginals(),
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


TREES: dict[str, Callable[[TreeDistribution], Any]] = {
    "log_partition": lambda d: d.log_partition(),
    "log_prob": lambda d: d.log_prob(torch.tensor([[0, 1, 1], [2, 0, -100]])),
    "marginals": lambda d: d.marginals().square(),
    "entropy": lambda d: d.entropy(),
    "kl": lambda d: d.kl(d),
    "topk": lambda d: d.topk(2)[0],
    "argmax": lambda d: d.argmax().double(),
}


@pytest.mark.slow
@pytest.mark.parametrize("question", TREES)
def test_trees_may_stand_in_a_compiled_program(question: str) -> None:
    """Answers and their gradients."""

    def answer(scores: Any) -> Any:
        return TREES[question](TreeDistribution(2 * scores, lengths=torch.tensor([3, 2]))) + 0

    found = []
    for function in (torch.compile(answer, backend="aot_eager"), answer):
        scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
        value = function(scores)
        found.append([value.detach()])
        if value.requires_grad:
            found[-1] += torch.autograd.grad(value.sum(), [scores])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)
