"""The structure that `crfkit train` is asked for: a chain, or one with label n-grams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from crfkit.data import InputError

if TYPE_CHECKING:
    from crfkit.models import CRF
    from crfkit.structures import Chain, Patterns

AUTO = "auto"
_MOST = 20  # labels before one that it may depend on
_SHOWN = 8  # patterns of a round that are named


def order_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options about runs of more than two labels."""
    command = click.option(
        "--ngram-count",
        default=3,
        show_default=True,
        type=click.IntRange(min=1),
        help="With --order: leave out runs of labels seen less often.",
    )(command)
    return click.option(
        "--order",
        default="1",
        show_default=True,
        metavar="N",
        help="Labels before one that it depends on; auto: find the patterns that pay.",
    )(command)


def structure_of(options: dict[str, Any]) -> Chain | Patterns:
    """The structure that the options ask for."""
    from crfkit.structures import Chain, Growth, Ngrams, Patterns

    chain = (options["start"], options["end"], options["bigrams"], options["unseen"])
    order, min_count = options["order"], options["ngram_count"]
    if order == AUTO:
        return Patterns([], *chain, grow=Growth(min_count=min_count))
    if not order.isdecimal() or not 1 <= int(order) <= _MOST:
        raise InputError(f"--order {order}: expected a number from 1 to {_MOST}, or {AUTO}")
    if int(order) == 1:
        return Chain(*chain)
    return Patterns([Ngrams(range(3, int(order) + 2), min_count=min_count)], *chain)


def grown_words(crf: CRF) -> Iterator[str]:
    """What is to be said of the rounds in which patterns grew, if they did."""
    for number, found in enumerate(getattr(crf, "growth_", ())):
        shown = "; ".join(found.joined[:_SHOWN]) + "; …" * (len(found.joined) > _SHOWN)
        joined = f", {len(found.joined):,} new: {shown}" if found.joined else ""
        yield (
            f"round {number}: {found.n_patterns:,} patterns, {found.n_states:.1f} states a position; "
            "held-out log-likelihood "
            f"{found.log_likelihood:.1f}, score {found.score:.4f}{joined}"
        )
