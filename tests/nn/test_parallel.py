"""Layers in several processes and threads, and with PyTorch's deterministic algorithms."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from torch import nn

from crfkit.nn import ChainCRF

LABELS = ["O", "B-PER", "I-PER"]


class Tagger(nn.Module):
    """A linear layer and a CRF; the log-likelihood is summed."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)
        self.crf = ChainCRF(labels=LABELS, bigrams="bio")

    def forward(self, inputs: Any, tags: Any, mask: Any) -> Any:
        return -self.crf(self.linear(inputs), tags, mask)


def whole_batch() -> tuple[Any, Any, Any]:
    """Inputs, tags and a mask of six sequences."""
    rng = torch.Generator().manual_seed(1)
    mask = torch.rand(6, 5, generator=rng) < 0.7
    return torch.randn(6, 5, 4, generator=rng), torch.randint(0, 2, (6, 5), generator=rng), mask


def expected_gradients() -> dict[str, Any]:
    tagger = Tagger()
    tagger(*whole_batch()).backward()
    return {name: parameter.grad for name, parameter in tagger.named_parameters()}


def one_process(rank: int, folder: str) -> None:
    """Its half of the batch; DistributedDataParallel takes the mean over processes."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    try:
        tagger = nn.parallel.DistributedDataParallel(Tagger())
        half = [part[3 * rank : 3 * rank + 3] for part in whole_batch()]
        tagger(*half).backward()
        gradients = {name: 2 * parameter.grad for name, parameter in tagger.module.named_parameters()}
        torch.save(gradients, f"{folder}/{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_two_processes_make_the_gradient_of_one(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(one_process, (str(tmp_path),), nprocs=2)
    expected = expected_gradients()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(found[name], gradient)


def replica_of(module: Any) -> Any:
    """A module as DataParallel makes them: parameters are copies with a graph, and nothing else is new."""
    replica = module._replicate_for_data_parallel()
    for name, parameter in module._parameters.items():
        setattr(replica, name, None if parameter is None else parameter.clone())
    for name, child in module._modules.items():
        setattr(replica, name, replica_of(child))
    return replica


def test_replicas_in_threads_make_the_gradient_of_one() -> None:
    tagger = Tagger()
    replicas = [replica_of(tagger) for _ in range(3)]
    values: list[Any] = [None] * 3

    def run(k: int) -> None:
        values[k] = replicas[k](*(part[2 * k : 2 * k + 2] for part in whole_batch()))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.stack(values).sum().backward()
    for name, gradient in expected_gradients().items():
        torch.testing.assert_close(dict(tagger.named_parameters())[name].grad, gradient)


def test_layers_have_no_state_of_their_own() -> None:
    """What a replica or a checkpoint would lose."""
    layer = ChainCRF(labels=LABELS, bigrams="bio")
    before = dict(vars(layer))
    inputs = torch.randn(2, 5, 3, requires_grad=True)
    layer(inputs, torch.zeros(2, 5, dtype=torch.int64)).backward()
    layer.decode(inputs)
    assert vars(layer) == before


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_deterministic_algorithms_do(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU on this machine")
    from tests.oracles.deterministic_cases import answers

    torch.use_deterministic_algorithms(True)
    try:
        first, again = answers(device), answers(device)
    finally:
        torch.use_deterministic_algorithms(False)
    assert first.keys() == again.keys()
    for name, value in first.items():
        assert torch.equal(value, again[name]), name
