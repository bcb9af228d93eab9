"""The loop that trains the networks of this folder, and the options of their scripts."""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from crfkit.data import Sentence
from examples.sentences import Batch, Vocabulary, batches, read

LARGEST_GRADIENT = 5.0


class Network(nn.Module):
    """A module that can be trained."""

    def loss(self, batch: Batch) -> Tensor:
        """What is to become small."""
        raise NotImplementedError


@dataclass(frozen=True)
class Settings:
    """How to train."""

    epochs: int = 20
    n_words: int = 2_000  # in a batch
    rate: float = 2e-3
    seed: int = 1
    device: str = "cpu"

    @classmethod
    def of(cls, given: argparse.Namespace) -> Self:
        """From the options of a script."""
        return cls(given.epochs, given.n_words, given.rate, seed=given.seed, device=given.device)


@torch.no_grad()
def move(average: nn.Module, network: nn.Module, step: int) -> None:
    """Move an average of networks towards the next one; those of the first steps are forgotten quickly."""
    share = max(0.01, 9 / (10 + step))
    for averaged, weights in zip(average.parameters(), network.parameters(), strict=True):
        averaged.lerp_(weights, share)


def train(
    network: Network,
    sentences: Sequence[Sentence],
    vocabulary: Vocabulary,
    score: Callable[[Network], float],
    settings: Settings,
) -> Network:
    """The averaged network that is best by `score`, which is asked after each epoch.

    Adam; its rate rises during the first twentieth of the steps and falls to 0 with the last one.
    """
    device = torch.device(settings.device)
    network.to(device)
    data = batches(sentences, vocabulary, settings.n_words, settings.device)
    optimizer = torch.optim.Adam(network.parameters(), settings.rate, betas=(0.9, 0.98))
    n_steps = settings.epochs * len(data)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, 20 * (step + 1) / n_steps) * (1 - step / n_steps)
    )
    order, begin = random.Random(settings.seed), time.perf_counter()
    average, best, best_score = copy.deepcopy(network).eval(), network, -1.0
    for epoch in range(1, settings.epochs + 1):
        network.train()
        order.shuffle(data)
        total = torch.zeros((), device=device)
        for batch in data:
            optimizer.zero_grad()
            loss = network.loss(batch)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
            optimizer.step()
            rate.step()
            move(average, network, rate.last_epoch)
            total += loss.detach()
        found = score(average)
        if found > best_score:
            best, best_score = copy.deepcopy(average), found
        seconds = time.perf_counter() - begin
        mean = float(total) / len(data)
        print(f"epoch {epoch:3}  loss {mean:9.4f}  dev {100 * found:6.2f}  {seconds:6.1f} s", flush=True)
    return best


def options(description: str, hidden: int) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    parser = argparse.ArgumentParser(description=description)
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--{name}", required=True, help="CoNLL-U file")
    parser.add_argument("--sentences", type=int, help="the first ones of each file only")
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--n-words", type=int, default=Settings.n_words, help="words in a batch")
    parser.add_argument("--hidden", type=int, default=hidden, help="units of the LSTM in each direction")
    parser.add_argument("--rate", type=float, default=Settings.rate)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def files(given: argparse.Namespace) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    """The sentences of the training, dev and test file."""
    torch.manual_seed(given.seed)
    learned, dev, test = (read(file, given.sentences) for file in (given.train, given.dev, given.test))
    return learned, dev, test
