"""pytorch-crf's interface, on the distributions of `crfkit.nn`: `from crfkit.compat.torchcrf import CRF`."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from crfkit.nn import ChainDistribution

__all__ = ["CRF"]

__version__ = "0.7.2"
"""The version of pytorch-crf whose interface this is."""

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class CRF(nn.Module):
    """A linear-chain CRF with the parameters, arguments, errors and answers of pytorch-crf 0.7.2.

    Emissions are [T, B, L], tags and masks [T, B]; with `batch_first`, [B, T, L] and [B, T]. The parameters have
    pytorch-crf's names, order and initial values for a given seed: state dicts and optimizer states are interchangeable, and
    pickled models of pytorch-crf open after `crfkit.compat.install()`.

    What is different: masks may have holes, and masked positions are then removed; tags at masked positions may have
    any value, and tags that do not exist elsewhere are always an error; half precision is summed in float32.

    >>> crf = CRF(3, batch_first=True)
    >>> crf.decode(torch.tensor([[[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]]]))
    [[0, 2]]
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        if num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from the uniform distribution on [−0.1, 0.1]."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def forward(
        self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum"
    ) -> Tensor:
        """The log-likelihood of the tags: [B] with `reduction="none"`, its sum, or its mean by sequence or by token."""
        self._validate(emissions, tags, mask)
        if reduction not in REDUCTIONS:
            raise ValueError(f"invalid reduction: {reduction}")
        distribution = self._distribution(emissions, mask)
        try:
            values = distribution.log_prob(
                self._to_batch_first(tags), complete=True, total=reduction != "none"
            )
        except ValueError as error:  # where tags are no labels, indexing fails in pytorch-crf
            raise IndexError(str(error)) from None
        if reduction == "mean":
            return values / len(distribution.emissions)
        return values / distribution.lengths.sum() if reduction == "token_mean" else values

    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """The best tags of each sequence, at the positions that the mask has."""
        self._validate(emissions, None, mask)
        distribution = self._distribution(emissions, mask)
        labels = distribution.argmax().clamp_min(
            0
        )  # scores that are NaN or −inf get tags too, as in pytorch-crf
        if mask is None:
            return labels.tolist()
        on = self._to_batch_first(mask).to(labels.device).bool()
        ends = [0, *on.sum(1).cumsum(0).tolist()]
        kept = labels[on].tolist()  # of all sequences, one after the other
        return [kept[begin:end] for begin, end in pairwise(ends)]

    def _validate(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> None:
        """The checks of pytorch-crf, with its messages."""
        if emissions.dim() != 3:
            raise ValueError(f"emissions must have dimension of 3, got {emissions.dim()}")
        if emissions.size(2) != self.num_tags:
            raise ValueError(
                f"expected last dimension of emissions is {self.num_tags}, got {emissions.size(2)}"
            )
        for name, given in (("tags", tags), ("mask", mask)):
            if given is not None and given.shape != emissions.shape[:2]:
                raise ValueError(
                    f"the first two dimensions of emissions and {name} must match, "
                    f"got {tuple(emissions.shape[:2])} and {tuple(given.shape)}"
                )
        if mask is None or torch.compiler.is_compiling():  # whose programs do not look at values
            return
        if not self._to_batch_first(mask)[:, :1].all():
            raise ValueError("mask of the first timestep must all be on")

    def _distribution(self, emissions: Tensor, mask: Tensor | None) -> ChainDistribution:
        """The distribution over tag sequences, in the precision that emissions and parameters have together."""
        precision = torch.promote_types(emissions.dtype, self.transitions.dtype)
        return ChainDistribution(
            self._to_batch_first(emissions).to(precision),
            self.transitions,
            self.start_transitions,
            self.end_transitions,
            mask=None if mask is None else self._to_batch_first(mask),
        )

    def _to_batch_first(self, given: Tensor) -> Tensor:
        return given if self.batch_first else given.transpose(0, 1)
