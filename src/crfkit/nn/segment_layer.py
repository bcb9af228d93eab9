"""A semi-Markov CRF layer: learned transitions and durations on top of emissions that a network computes."""

from collections.abc import Hashable, Sequence
from operator import index

import torch
from torch import Tensor, nn

from crfkit.errors import ArgumentError, ShapeError
from crfkit.nn.layer import REDUCTIONS
from crfkit.nn.problem.chain import constrain
from crfkit.nn.problem.constraints import BigramsLike, bigram_table
from crfkit.nn.problem.layout import check_emissions, check_layout, check_lengths, to_batch_first
from crfkit.nn.segments import SegmentDistribution


class SegmentCRF(nn.Module):
    """A semi-Markov CRF over emissions [B, T, L]: `forward` is the log-likelihood of tags, `decode` the best tags.

    Segments have 1 … `max_length` positions. Tags are those of `SegmentDistribution`: the label c where a segment begins,
    c + L at its other positions. Parameters: `transitions` [L, L] between the labels of neighbouring segments,
    `start_transitions` and `end_transitions` [L], `durations` [max_length, L]. `bigrams` says which labels may be
    neighbours, in training and in decoding alike, as in `ChainCRF`: `bigrams=~torch.eye(L).bool()` keeps two neighbouring
    segments from having the same label. With `batch_first=False`, emissions are [T, B, L] and tags and masks [T, B].

    >>> layer = SegmentCRF(2, max_length=3)
    >>> emissions = torch.tensor([[[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]]])
    >>> (layer.decode(emissions) % 2).tolist()
    [[0, 0, 1]]
    >>> bool(layer(emissions, torch.tensor([[0, 2, 1]])) < 0)
    True
    """

    def __init__(
        self,
        n_labels: int | None = None,
        *,
        max_length: int,
        labels: Sequence[Hashable] | None = None,
        bigrams: BigramsLike = None,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if n_labels is None and labels is None:
            raise ArgumentError("SegmentCRF: expected n_labels or the names of the labels, got neither.")
        L = len(labels or ()) if n_labels is None else index(n_labels)
        if L < 1:
            raise ArgumentError(f"SegmentCRF: n_labels is {L}, expected 1 or more.")
        if labels is not None and len(labels) != L:
            raise ShapeError(f"SegmentCRF: got the names of {len(labels)} labels, n_labels is {L}.")
        if index(max_length) < 1:
            raise ArgumentError(f"SegmentCRF: max_length is {max_length}, expected 1 or more.")
        self.n_labels, self.max_length, self.batch_first = L, index(max_length), batch_first
        self.transitions = nn.Parameter(torch.empty(L, L, device=device, dtype=dtype))
        self.start_transitions = nn.Parameter(torch.empty(L, device=device, dtype=dtype))
        self.end_transitions = nn.Parameter(torch.empty(L, device=device, dtype=dtype))
        self.durations = nn.Parameter(torch.empty(self.max_length, L, device=device, dtype=dtype))
        table = bigram_table(bigrams, L, labels, self.transitions.device)
        self.register_buffer("bigrams", None if table is None else table.clone(), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from the uniform distribution on [−0.1, 0.1]."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def distribution(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
        last: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> SegmentDistribution:
        """The distribution over segmentations that these emissions give, for all other questions; batch first.

        `first` and `last`, laid out as the emissions, score the first and last positions of segments.
        """
        check_emissions(emissions, self.n_labels, self.batch_first)
        given = {"mask": mask, "first": first, "last": last, "allowed": allowed}
        for name, part in given.items():
            check_layout(name, part, emissions, self.batch_first)
        check_lengths(lengths, emissions, self.batch_first)
        scores = (self.transitions, self.start_transitions, self.end_transitions)
        return SegmentDistribution(
            to_batch_first(emissions, self.batch_first),
            self.durations,
            *constrain(self.bigrams, *scores),
            lengths=lengths,
            **{name: to_batch_first(part, self.batch_first) for name, part in given.items()},
        )

    def forward(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
        last: Tensor | None = None,
        reduction: str = "sum",
        complete: bool | None = None,
    ) -> Tensor:
        """The log-likelihood of the tags: summed, or [B] with `reduction="none"`, or the mean by sequence or by token.

        The mean of nothing is 0. `tags` are negative (such as −100) where unknown, or bools [B, T, L]: the possible
        labels; then the likelihood is that of all segmentations that agree with them. Tags that are no segmentation, or
        that the bigrams exclude, are an error that says where. `complete=True` says that all are known and possible, which
        avoids a synchronisation with a GPU; if they are not, the log-likelihood is −inf.
        """
        if reduction not in REDUCTIONS:
            raise ArgumentError(f"reduction: got {reduction!r}, expected one of {', '.join(REDUCTIONS)}.")
        check_layout("tags", tags, emissions, self.batch_first)
        distribution = self.distribution(emissions, mask, lengths=lengths, first=first, last=last)
        tags = to_batch_first(tags, self.batch_first)
        found = distribution.log_prob(tags, complete=self._is_complete(distribution, tags, complete))
        if reduction == "none":
            return found
        count = {"sum": 1, "mean": max(len(found), 1)}.get(reduction)
        return found.sum() / (distribution.lengths.sum().clamp_min(1) if count is None else count)

    def _is_complete(
        self, distribution: SegmentDistribution, tags: Tensor, complete: bool | None
    ) -> bool | None:
        """Whether all tags are known; raises an error for impossible ones."""
        if complete or torch.compiler.is_compiling() or tags.dtype == torch.bool:
            return complete
        return not distribution.check_tags(tags, self.bigrams)

    @torch.no_grad()
    def loss_and_gradient(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        reduction: str = "sum",
        complete: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """−log-likelihood of the tags, and its gradient by the emissions; that by the parameters is added to their `.grad`.

        What `loss = -layer(emissions, tags, …); loss.backward()` does to the layer, without PyTorch's graph, as
        `ChainCRF.loss_and_gradient`: `emissions.backward(gradient)` then passes it on to the network.
        """
        if reduction == "none" or reduction not in REDUCTIONS:
            raise ArgumentError(f"reduction: got {reduction!r}, expected one of {', '.join(REDUCTIONS[1:])}.")
        check_layout("tags", tags, emissions, self.batch_first)
        distribution = self.distribution(emissions, mask, lengths=lengths)
        count = {"mean": len(distribution.lengths)}.get(reduction, 1)
        if reduction == "token_mean":
            count = int(distribution.lengths.sum())
        tags = to_batch_first(tags, self.batch_first)
        complete = self._is_complete(distribution, tags, complete)
        value, found = distribution.value_and_gradient(tags, share=-max(count, 1), complete=complete)
        gradient, *by_parameter = found[:5]
        parameters = (self.durations, self.transitions, self.start_transitions, self.end_transitions)
        exist = (None, None, None, None) if self.bigrams is None else (
            None, self.bigrams[:-1, :-1], self.bigrams[-1, :-1], self.bigrams[:-1, -1]
        )  # fmt: skip
        for parameter, part, exists in zip(parameters, by_parameter, exist, strict=True):
            if parameter.requires_grad and part is not None:
                part = part if exists is None else part.masked_fill(~exists, 0.0)
                parameter.grad = part if parameter.grad is None else parameter.grad.add_(part)
        assert gradient is not None
        return value, to_batch_first(gradient, self.batch_first)

    def decode(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
        last: Tensor | None = None,
    ) -> Tensor:
        """The tags of the best segmentations [B, T], or [T, B] with `batch_first=False`; −1 at masked positions."""
        tags = self.distribution(emissions, mask, lengths=lengths, first=first, last=last).argmax()
        return to_batch_first(tags, self.batch_first)

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"n_labels={self.n_labels}, max_length={self.max_length}" + (
            "" if self.batch_first else ", batch_first=False"
        )
