"""The distribution over the label sequences of a batch of sequences, in the manner of torch.distributions."""

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from crfkit.errors import ArgumentError, LabelError, ShapeError
from crfkit.nn.backends import autograd, choice, ops
from crfkit.nn.backends.choice import Chosen
from crfkit.nn.backends.decode import NOTHING, k_best, sample
from crfkit.nn.backends.moments import expectations, moments
from crfkit.nn.distribution import Distribution, Result
from crfkit.nn.problem.chain import (
    ChainProblem,
    compact,
    compact_problem,
    explicit,
    kept_positions,
    to_positions,
    token_mask,
    transitions_to_positions,
)
from crfkit.nn.problem.checks import (
    check_device,
    check_ends,
    check_integers,
    check_scores,
    check_spans,
    check_threshold,
    fill_transitions,
    read_places,
)
from crfkit.nn.problem.constraints import BigramsLike, bigram_table
from crfkit.nn.problem.gold_score import Term, has_unknown, likelihood_terms, path_score, terms_within
from crfkit.nn.spans import ChainSpans
from crfkit.structures import Span, Threshold


class ChainDistribution(Distribution):
    """p(y) = exp(score(y)) / Z over label sequences y of each of B sequences; exact, on the device of the scores.

    score(y) = start[y_1] + Σ_t emissions[t, y_t] + Σ_{t≥2} transitions[y_{t−1}, y_t] + end[y_n]

    `emissions` [B, T, L]; `transitions` [L, L], [B, L, L], or [B, T − 1, L, L] with those into position t at t − 1;
    `start` and `end` [L]. Which positions belong to a sequence is said by `lengths` [B] or by `mask` [B, T]: any
    mask; masked positions are removed, and the positions on either side become adjacent. `bigrams` lists the allowed
    pairs of labels (a scheme such as "bio" with the names of the `labels`, `crfkit.Bigrams`, or bools), `allowed` [B,
    T, L] the allowed labels of each position. What is forbidden has probability 0 exactly, here and in training, and
    so has every part with the score −inf.

    >>> scores = torch.zeros(1, 3, 2)  # 2³ label sequences, each with the score 0
    >>> ChainDistribution(scores, torch.zeros(2, 2)).log_partition().exp().round()
    tensor([8.])
    """

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        lengths: Tensor | None = None,
        bigrams: BigramsLike = None,
        labels: Sequence[Hashable] | None = None,
        allowed: Tensor | None = None,
    ) -> None:
        check_scores("emissions", emissions)
        if emissions.ndim != 3 or emissions.shape[2] == 0:
            raise ShapeError(
                f"emissions: got {emissions.dtype} with shape {list(emissions.shape)}, expected numbers [B, T, L]."
            )
        L = emissions.shape[2]
        transitions = fill_transitions(transitions, emissions)
        check_ends(start, end, emissions)
        lengths, positions = read_places(emissions, mask, lengths)
        if allowed is not None:
            if allowed.dtype != torch.bool or allowed.shape != emissions.shape:
                raise ShapeError(
                    f"allowed: got {allowed.dtype} with shape {list(allowed.shape)}, expected bools "
                    f"[B, T, L] = {list(emissions.shape)}."
                )
            check_device("allowed", allowed, emissions.device)
            emissions = emissions.masked_fill(~allowed, -torch.inf)
        table = bigram_table(bigrams, L, labels, emissions.device)
        self._given = ChainProblem(emissions, transitions, start, end, lengths, positions, table)
        self._allowed = allowed
        self._lists = False  # a layer, whose table stays, sets it: tiles of the bigrams may pay
        self._explicit: ChainProblem | None = None
        self._choice: Chosen | None = None

    @property
    def _chosen(self) -> Chosen:
        """The backend, and the problem as the backend takes it: chosen once."""
        if self._choice is None:
            if self._given.bigrams is None:
                self._choice = choice.choose(self._given)
            else:  # scores are made explicit, and the next question may be differentiated
                with torch.enable_grad():
                    self._choice = choice.choose(self._given, self._lists)
        return self._choice

    @property
    def _problem(self) -> ChainProblem:
        """The scores, −inf for forbidden transitions."""
        if self._explicit is None:
            with torch.enable_grad():
                self._explicit = explicit(self._given)
        return self._explicit

    @property
    def _asked(self) -> ChainProblem:
        """The problem as the backend takes it, or, in a compiled program, as the operations take it."""
        if not torch.compiler.is_compiling():
            return self._chosen[1]
        return self._problem._replace(bigrams=self._given.bigrams if self._lists else None)

    @property
    def _scores(self) -> tuple[Tensor, ...]:
        return tuple(part for part in self._given[:4] if part is not None)

    @property
    def emissions(self) -> Tensor:
        """The scores of labels at positions [B, T, L], −inf where a label is not allowed."""
        return self._given.emissions

    @property
    def transitions(self) -> Tensor:
        """The scores of transitions, −inf for forbidden ones."""
        return self._problem.transitions

    @property
    def lengths(self) -> Tensor:
        """The number of positions that belong to each sequence, [B]."""
        return token_mask(self._given).sum(1)

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no label sequence is possible, 0 for an empty sequence."""
        return self._log_partition_of(self._asked)

    def _log_partition_of(self, problem: ChainProblem) -> Tensor:
        """log Z [B] of this problem with other emissions, by the same backend."""
        if torch.compiler.is_compiling():
            return ops.log_partition(problem)
        return autograd.log_partition(self._chosen[0], problem)

    def log_prob(self, tags: Tensor, *, complete: bool | None = None, total: bool = False) -> Tensor:
        """log p(tags) [B], or the logarithm of what all label sequences that agree with the tags have together.

        `tags` are label ids [B, T], negative (such as −100) where the label is unknown, or the possible labels as bools
        [B, T, L]. Tags at masked positions are ignored. `complete=True` says that no label is unknown, which avoids
        inspecting them (and, on a GPU, a synchronisation; if it is not true, the value there is NaN). `total=True` gives
        the sum over the sequences. NaN where no label sequence is possible at all.
        """
        if torch.compiler.is_compiling() and not _are_sets(tags):
            values = ops.log_prob(self._asked, self._label_ids(tags), complete)
            return values.sum() if total else values
        first, *rest = self._terms(tags, complete)
        if first.tags is not None:
            return autograd.log_likelihood(*self._chosen, first.tags, total)
        values = self._log_partition_of(first.problem)
        for term in rest:
            values = values + term.sign * self._log_partition_of(term.problem)
        return values.sum() if total else values

    @torch.no_grad()
    def value_and_gradient(
        self, tags: Tensor, *, complete: bool | None = None, share: int = 1
    ) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Σ_b log p(tags_b) / share, [], and its gradient by emissions, transitions, start and end.

        What `log_prob(tags, total=True)` and a backward pass give, without a graph: on a GPU most of the time of small
        batches goes into PyTorch's. Where something is forbidden, its gradient is 0; None by what was not given.
        """
        if torch.compiler.is_compiling():  # kernels are launched by addresses, which it does not have
            return torch.compiler.disable(self.value_and_gradient)(tags, complete=complete, share=share)
        backend = self._chosen[0]
        first, *rest = self._terms(tags, complete)
        value, gradient = backend.total(first.problem, first.tags, first.sign * share)
        for term in rest:
            part, by_scores = backend.total(term.problem, term.tags, term.sign * share)
            pairs = zip(gradient, by_scores, strict=True)
            value, gradient = value + part, [None if a is None or b is None else a + b for a, b in pairs]
        for exists, found in zip(self._existing(), gradient, strict=True):
            if exists is not None and found is not None:
                found.masked_fill_(~exists, 0.0)
        wanted = zip(gradient, self._given, strict=False)
        return value, tuple(found if score is not None else None for found, score in wanted)

    def _existing(self) -> tuple[Tensor | None, ...]:
        """Which emissions, transitions, first and last labels there are; None where all are, or gradients are 0 already."""
        backend, problem = self._chosen
        table = self._given.bigrams
        if table is None or (backend.masks_gradient and problem.bigrams is not None):
            return self._allowed, None, None, None
        return self._allowed, table[:-1, :-1], table[-1, :-1], table[:-1, -1]

    def _terms(self, tags: Tensor, complete: bool | None) -> list[Term]:
        """What the log-likelihood of the tags is added up from."""
        if _are_sets(tags):
            if tags.shape != self._given.shape:
                raise ShapeError(
                    f"tags: got bools with shape {list(tags.shape)}, expected {list(self._given.shape)}."
                )
            check_device("tags", tags, self._given.emissions.device)
            return terms_within(self._asked, tags)
        tags = self._label_ids(tags)
        if complete and tags.device.type == "cpu":
            self._check_known(tags)
        return likelihood_terms(self._asked, tags, complete)

    def score(self, tags: Tensor) -> Tensor:
        """score(tags) [B] of label ids [B, T] in float64, before it is normalised; differentiable."""
        tags = self._label_ids(tags)
        if not torch.compiler.is_compiling():
            self._check_known(tags)
        return path_score(self._problem, tags)

    def _label_ids(self, tags: Tensor) -> Tensor:
        """Tags of the right shape and place, as int64 without gaps in memory."""
        check_integers("tags", tags, self._given.shape[:2], "label ids")
        check_device("tags", tags, self._given.emissions.device)
        return tags.long().contiguous()

    def _check_known(self, tags: Tensor) -> None:
        """Raise an error for unknown labels at tokens, and for those that do not exist."""
        if has_unknown(self._given, tags):
            raise LabelError(
                f"tags: a label is negative, expected ids from 0 to {self._problem.shape[2] - 1} "
                "at all unmasked positions."
            )

    def marginals(self) -> Tensor:
        """P(y_t = label) [B, T, L], 0 at masked positions; differentiable where a gradient is wanted."""
        if self._differentiated:
            return to_positions(self._problem, self._moments()[1]).to(self._dtype)
        if torch.compiler.is_compiling():
            return ops.expectations(self._asked).emissions
        with torch.no_grad():
            backend, problem = self._chosen
            return backend.expectations(problem).emissions

    def transition_marginals(self) -> Tensor:
        """P(y_{t−1}, y_t) [B, T − 1, L, L] by the position t of the second label; 0 where that is masked or first."""
        problem = self._problem._replace(transitions=self._transitions_by_position())
        if self._differentiated:
            found = moments(compact_problem(problem), True)[2]
            return transitions_to_positions(problem, found).to(self._dtype)
        return expectations(problem).transitions

    def spans(
        self, labels: Sequence[Hashable], threshold: float = 0.5, *, scheme: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """All spans of probability `threshold` or more: [n, 4] sequence, start, end, type, and probabilities [n].

        The names of the `labels` say how label sequences are read as spans, by a `scheme` ("bio", "iobes", …, "plain";
        None: found); types are numbers in `crfkit.structures.SpanLabels.of(labels, scheme).types`. Exact, also for spans
        that are not in the best label sequence; in the order of sequences, starts, ends and types; `end` is exclusive.
        """
        check_threshold(threshold)
        found, probabilities = self._ask_spans(labels, scheme, lambda asked: asked.find(threshold))
        return found, probabilities.to(self._dtype)

    def span_probabilities(
        self, spans: Tensor, labels: Sequence[Hashable], *, scheme: str | None = None
    ) -> Tensor:
        """The exact probability [n] of each of the spans [n, 4]: sequence, start, end, type; see `spans`.

        One that begins or ends at a masked position, or outside of its sequence, has the probability 0.
        """
        check_spans(spans)
        found = self._ask_spans(labels, scheme, lambda asked: asked.probabilities(spans))
        return found.to(self._dtype)

    @torch.no_grad()
    def predict_spans(
        self,
        labels: Sequence[Hashable],
        threshold: Threshold = "auto",
        *,
        decode: str | None = None,
        scheme: str | None = None,
    ) -> list[list[Span]]:
        """The spans of each sequence with the names of their types, chosen as by `crfkit.CRF.predict_spans`."""
        return self._ask_spans(labels, scheme, lambda asked: asked.select(self.argmax, threshold, decode))

    def _ask_spans(
        self, labels: Sequence[Hashable], scheme: str | None, question: Callable[[ChainSpans], Result]
    ) -> Result:
        """The answer to a question about spans."""
        if torch.compiler.is_compiling():  # how many there are depends on the scores
            return torch.compiler.disable(self._ask_spans)(labels, scheme, question)
        with torch.set_grad_enabled(self._differentiated):
            return question(ChainSpans.of(self._problem, labels, scheme, self._differentiated))

    def argmax(self) -> Tensor:
        """The best label sequence [B, T] (Viterbi); −1 at masked positions, and where none is possible."""
        if torch.compiler.is_compiling():
            return ops.argmax(self._asked)
        with torch.no_grad():
            backend, problem = self._chosen
            return backend.argmax(problem)

    def _k_best(self, k: int) -> tuple[Tensor, Tensor]:
        scores, labels = k_best(*compact(self._problem), token_mask(self._problem), k)
        return scores, self._spread(labels)

    def _sample(self, n: int, generator: torch.Generator | None) -> Tensor:
        labels = sample(*compact(self._problem), token_mask(self._problem), n, generator)
        return self._spread(labels.transpose(0, 1)).transpose(0, 1)

    def _part_scores(self) -> tuple[Tensor, ...]:
        return compact(self._problem)

    def _log_partition_in_double(self) -> Tensor:
        problem = compact_problem(self._problem)
        if torch.compiler.is_compiling():
            return ops.log_partition(problem)
        return autograd.log_partition(*choice.choose(problem))

    def _check_same_outputs(self, other: "ChainDistribution") -> None:
        mine, theirs = self._problem, other._problem
        if theirs.shape != mine.shape:
            raise ShapeError(
                f"kl: the other distribution has shape {list(theirs.shape)}, expected {list(mine.shape)}."
            )
        if not torch.compiler.is_compiling() and not torch.equal(
            kept_positions(mine), kept_positions(theirs)
        ):
            raise ArgumentError("kl: the other distribution has another mask, expected the same.")

    def _transitions_by_position(self) -> Tensor:
        """The transitions as [B, T − 1, L, L], none of them copied."""
        B, T, L = self._problem.shape
        transitions = self._problem.transitions
        if transitions.ndim == 4:
            return transitions
        transitions = transitions if transitions.ndim == 2 else transitions[:, None]
        return transitions.expand(B, max(T - 1, 0), L, L)

    def _moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """log Z [B], P(y_i) [B, T, L] and the marginals of transitions, summed where tokens share them; in float64."""
        with torch.set_grad_enabled(self._differentiated):
            problem = compact_problem(self._problem)
        return moments(problem, self._differentiated)

    def _spread(self, labels: Tensor) -> Tensor:
        """Labels at tokens [B, n, T] moved to their positions."""
        if self._given.positions is None:
            return labels
        places = self._given.positions[:, None].expand(labels.shape)
        return torch.full_like(labels, NOTHING).scatter(2, places, labels)


def _are_sets(tags: Tensor) -> bool:
    """Whether tags are the possible labels as bools, and not label ids."""
    return isinstance(tags, Tensor) and tags.dtype == torch.bool
