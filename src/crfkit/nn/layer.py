"""A CRF layer: learned transitions on top of emissions that a network computes."""

from collections.abc import Hashable, Sequence
from operator import index

import torch
from torch import Tensor, nn

from crfkit.errors import ArgumentError
from crfkit.nn.chain import ChainDistribution
from crfkit.nn.problem.constraints import BigramsLike, bigram_table
from crfkit.nn.problem.layout import check_emissions, check_layout, check_lengths, to_batch_first
from crfkit.structures import Span, Threshold

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class ChainCRF(nn.Module):
    """A linear-chain CRF over emissions [B, T, L]: `forward` is the log-likelihood of tags, `decode` the best labels.

    With `batch_first=False`, emissions are [T, B, L], and tags, masks and decoded labels [T, B], as by default in
    pytorch-crf and in PyTorch's own recurrent layers. Where the shapes agree, only this argument tells which it is.

    Parameters: `transitions` [L, L], `start_transitions` [L] and `end_transitions` [L], under the names that pytorch-crf
    gives them. `bigrams` says which neighbours exist, in training and in decoding alike: a scheme of span labels ("bio",
    "iobes", …) with the names of the `labels`, a `crfkit.Bigrams`, or bools [L, L].

    >>> layer = ChainCRF(labels=["B", "I", "O"], bigrams="bio")
    >>> emissions = torch.tensor([[[0.0, 9.0, 1.0], [0.0, 9.0, 0.0]]])
    >>> layer.decode(emissions).tolist()  # I cannot begin
    [[0, 1]]
    >>> bool(layer(emissions, torch.tensor([[0, 1]])) < 0)
    True
    """

    def __init__(
        self,
        n_labels: int | None = None,
        *,
        labels: Sequence[Hashable] | None = None,
        bigrams: BigramsLike = None,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if n_labels is None and labels is None:
            raise ArgumentError("ChainCRF: expected n_labels or the names of the labels, got neither.")
        L = len(labels or ()) if n_labels is None else index(n_labels)
        if L < 1:
            raise ArgumentError(f"ChainCRF: n_labels is {L}, expected 1 or more.")
        if labels is not None and len(labels) != L:
            raise ArgumentError(f"ChainCRF: got the names of {len(labels)} labels, n_labels is {L}.")
        self.n_labels = L
        self.labels = None if labels is None else tuple(labels)
        self.batch_first = batch_first
        self.transitions = nn.Parameter(torch.empty(L, L, device=device, dtype=dtype))
        self.start_transitions = nn.Parameter(torch.empty(L, device=device, dtype=dtype))
        self.end_transitions = nn.Parameter(torch.empty(L, device=device, dtype=dtype))
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
        allowed: Tensor | None = None,
    ) -> ChainDistribution:
        """The distribution over label sequences that these emissions give, for all other questions.

        The emissions, the mask and the allowed labels are laid out as the layer has it (`batch_first`); the distribution
        has the batch first in any case, in the tags that it takes and in its answers.
        """
        check_emissions(emissions, self.n_labels, self.batch_first)
        check_layout("mask", mask, emissions, self.batch_first)
        check_layout("allowed", allowed, emissions, self.batch_first)
        check_lengths(lengths, emissions, self.batch_first)
        found = ChainDistribution(
            to_batch_first(emissions, self.batch_first),
            self.transitions,
            self.start_transitions,
            self.end_transitions,
            mask=to_batch_first(mask, self.batch_first),
            lengths=lengths,
            bigrams=self.bigrams,
            allowed=to_batch_first(allowed, self.batch_first),
        )
        found._lists = not getattr(self, "_is_replica", False)  # the table of a replica is new every time
        return found

    def forward(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        allowed: Tensor | None = None,
        reduction: str = "sum",
        complete: bool | None = None,
    ) -> Tensor:
        """The log-likelihood of the tags: summed, or [B] with `reduction="none"`, or the mean by sequence or by token.

        The mean of nothing is 0. `tags`, `complete` and masks as in `ChainDistribution`; tags that the bigrams exclude
        have the log-likelihood −inf.
        """
        if reduction not in REDUCTIONS:
            raise ArgumentError(f"reduction: got {reduction!r}, expected one of {', '.join(REDUCTIONS)}.")
        distribution = self.distribution(emissions, mask, lengths=lengths, allowed=allowed)
        check_layout("tags", tags, emissions, self.batch_first)
        tags = to_batch_first(tags, self.batch_first)
        found = distribution.log_prob(tags, complete=complete, total=reduction != "none")
        if reduction == "mean":
            return found / max(len(distribution.emissions), 1)
        return found / distribution.lengths.sum().clamp_min(1) if reduction == "token_mean" else found

    @torch.no_grad()
    def loss_and_gradient(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        allowed: Tensor | None = None,
        reduction: str = "sum",
        complete: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """−log-likelihood of the tags, and its gradient by the emissions; that by the parameters is added to their `.grad`.

        What `loss = -layer(emissions, tags, …); loss.backward()` does to the layer, without PyTorch's graph, which takes
        longer than small batches do on a GPU. `emissions.backward(gradient)` then passes it on to the network. Hooks on
        the parameters, such as those of DistributedDataParallel, do not run, and the factor of a GradScaler does not
        reach them: use `forward` there.

        >>> layer, emissions = ChainCRF(3), torch.randn(2, 4, 3)
        >>> loss, gradient = layer.loss_and_gradient(emissions, torch.zeros(2, 4, dtype=torch.int64))
        >>> bool(loss > 0), gradient.shape, layer.transitions.grad.shape
        (True, torch.Size([2, 4, 3]), torch.Size([3, 3]))
        """
        if reduction == "none" or reduction not in REDUCTIONS:
            raise ArgumentError(f"reduction: got {reduction!r}, expected one of {', '.join(REDUCTIONS[1:])}.")
        distribution = self.distribution(emissions, mask, lengths=lengths, allowed=allowed)
        check_layout("tags", tags, emissions, self.batch_first)
        tags = to_batch_first(tags, self.batch_first)
        B, T, _ = distribution.emissions.shape
        all_on = mask is None and lengths is None
        share = {"mean": B, "token_mean": B * T if all_on else 1}.get(reduction, 1)
        loss, found = distribution.value_and_gradient(tags, complete=complete, share=-max(share, 1))
        if reduction == "token_mean" and not all_on:
            n = distribution.lengths.sum().clamp_min(1)
            loss, found = loss / n, tuple(None if part is None else part / n for part in found)
        gradient, *by_parameter = found
        parameters = (self.transitions, self.start_transitions, self.end_transitions)
        for parameter, part in zip(parameters, by_parameter, strict=True):
            if parameter.requires_grad and part is not None:
                parameter.grad = part if parameter.grad is None else parameter.grad.add_(part)
        assert gradient is not None
        return loss, to_batch_first(gradient, self.batch_first)

    def decode(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """The best labels [B, T], or [T, B] with `batch_first=False`; −1 at masked positions."""
        labels = self.distribution(emissions, mask, lengths=lengths, allowed=allowed).argmax()
        return to_batch_first(labels, self.batch_first)

    def predict_spans(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        threshold: Threshold = "auto",
        decode: str | None = None,
        scheme: str | None = None,
        lengths: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> list[list[Span]]:
        """The spans (entities, chunks) of each sequence, sorted, with their exact probabilities.

            decode=None        all with a probability of at least `threshold` (0.5), also those outside of the best labels
            decode="viterbi"   those of the best labels, as `decode` gives them
            decode="f1"        those, none overlapping, with the highest expected F1 over the batch

        The layer must have the names of its `labels`. `threshold` and `scheme`, which says how labels are read, are those
        of `crfkit.CRF.predict_spans`. `start` and `end` (exclusive) are positions.
        """
        if self.labels is None:
            raise ArgumentError(
                "predict_spans: the names of the labels are not known, expected ChainCRF(labels=[…])."
            )
        distribution = self.distribution(emissions, mask, lengths=lengths, allowed=allowed)
        return distribution.predict_spans(self.labels, threshold, decode=decode, scheme=scheme)

    def extra_repr(self) -> str:
        """What `print` shows."""
        shown = f"n_labels={self.n_labels}{'' if self.batch_first else ', batch_first=False'}"
        if self.bigrams is None:
            return shown
        n = "some" if self.bigrams.is_meta else f"{int(self.bigrams[:-1, :-1].sum()):,}"
        return f"{shown}, {n} of {self.n_labels**2:,} bigrams exist"
