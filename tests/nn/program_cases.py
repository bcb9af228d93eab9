"""Programs with a CRF, compiled, exported and neither, to be compared on any device.

`python -m tests.nn.program_cases` compares them on a GPU, where pytest need not be.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from crfkit.nn import ChainCRF

LABELS = ["O", "B-PER", "I-PER"]
SHAPES = [(3, 6), (2, 4)]


def layer_of(form: str, device: str = "cpu") -> Any:
    """A layer of three labels."""
    torch.manual_seed(0)
    layer = ChainCRF(labels=LABELS, bigrams="bio") if form == "bio" else ChainCRF(3)
    return layer.to(device)


def arguments(form: str, shape: tuple[int, int], device: str = "cpu") -> dict[str, Any]:
    """Emissions, tags and what says which positions and labels there are."""
    B, T = shape
    rng = torch.Generator().manual_seed(1)
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
    return {name: value.to(device) for name, value in {**given, "tags": tags}.items()}


FORMS = ("plain", "mask", "lengths", "bio", "allowed", "unknown", "sets")


def gradients(layer: Any, loss: Callable[..., Any], given: dict[str, Any]) -> list[Any]:
    """The value and its gradient by all scores."""
    emissions = given["emissions"].clone().requires_grad_()
    layer.zero_grad()
    value = loss(**{**given, "emissions": emissions})
    value.backward()
    return [value.detach(), emissions.grad, *(parameter.grad.clone() for parameter in layer.parameters())]


class Decoder(nn.Module):
    """Features in, labels out."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.crf = layer_of(form)

    def forward(self, emissions: Any, mask: Any = None, lengths: Any = None) -> Any:
        return self.crf.decode(self.linear(emissions), mask, lengths=lengths)


def compare_losses(form: str, device: str, **settings: Any) -> None:
    """A loss and its gradient, one graph for batches of any shape."""
    layer = layer_of(form, device)

    def loss(**given: Any) -> Any:
        return -layer(**given, reduction="token_mean") * 2

    compiled = torch.compile(loss, fullgraph=True, dynamic=True, **settings)
    for shape in SHAPES:
        given = arguments(form, shape, device)
        found, expected = (gradients(layer, function, given) for function in (compiled, loss))
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def compare_decoding(form: str, device: str, **settings: Any) -> None:
    """Decoding, one graph for batches of any shape."""
    layer = layer_of(form, device)
    compiled = torch.compile(layer.decode, fullgraph=True, dynamic=True, **settings)
    for shape in SHAPES:
        given = arguments(form, shape, device)
        del given["tags"]
        torch.testing.assert_close(compiled(**given), layer.decode(**given), rtol=0, atol=0)


def compare_exported(form: str, device: str) -> None:
    """Decoding, exported with dynamic shapes, written and read."""
    decoder = Decoder(form).eval().to(device)
    given = arguments(form, SHAPES[0], device)
    del given["tags"]
    B, T = torch.export.Dim("B"), torch.export.Dim("T")
    dynamic = {name: {0: B} if name == "lengths" else {0: B, 1: T} for name in given}
    program = torch.export.export(decoder, (), given, dynamic_shapes=dynamic)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for shape in SHAPES:
        given = arguments(form, shape, device)
        del given["tags"]
        torch.testing.assert_close(loaded(**given), decoder(**given), rtol=0, atol=0)


DECODED, EXPORTED = ("plain", "mask", "lengths", "bio", "allowed"), ("plain", "mask", "lengths", "bio")


def main() -> None:
    """On a GPU: every form without machine code, and one of each through the whole compiler."""
    wrong = n = 0
    plain = {"backend": "aot_eager"}
    cases: list[tuple[Callable[..., None], str, dict[str, Any]]] = [
        *((compare_losses, form, plain) for form in FORMS),
        *((compare_decoding, form, plain) for form in DECODED),
        *((compare_exported, form, {}) for form in EXPORTED),
        (compare_losses, "bio", {}),
        (compare_decoding, "bio", {}),
    ]
    for compare, form, settings in cases:
        n += 1
        try:
            compare(form, "cuda", **settings)
        except Exception as error:  # all of them are to be seen
            wrong += 1
            what = str(error)[:400].replace("\n", " ")
            print(compare.__name__, form, type(error).__name__, what, flush=True)
        torch.compiler.reset()
    print(f"{n - wrong} of {n} programs give on the GPU what eager mode gives")


if __name__ == "__main__":
    main()
