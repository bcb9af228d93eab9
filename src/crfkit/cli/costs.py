"""Costs of mistakes as an option of commands: `--cost`."""

from collections.abc import Sequence
from typing import Any

import click

from crfkit.errors import InputError

cost_option = click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="COST",
    help="Costs of mistakes: a number (above 0 for more recall of spans, below 0 for more precision), missed=N, "
    "invented=N, confused=N, or GOLD>PREDICTED=N for two labels; repeatable.",
)

margin_option = click.option(
    "--margin",
    type=float,
    help="What every wrong label costs in training, so that right ones win by more.  [default: the preset's, else 0]",
)


def parse_costs(texts: Sequence[str]) -> Any:
    """`["missed=2", …]` as the `costs` of `CRF.fit`; None where there are none."""
    found = dict(map(_parse_cost, texts))
    if None not in found:
        return found or None
    if len(texts) > 1:
        raise InputError(
            f"--cost {found[None]:g} was given beside others, expected a single number, or names"
        )
    return found[None]


def _parse_cost(text: str) -> tuple[Any, float]:
    """What costs, and how much: None for a number alone, the name of a kind, or a pair of labels."""
    name, equals, number = text.rpartition("=")
    gold, between, predicted = name.partition(">")
    try:
        cost = float(number)
    except ValueError:
        gold, equals = "", "="
    if equals and not (gold and (predicted or not between)):
        raise InputError(
            f"--cost {text}: expected a number, or name=number, such as missed=2, or B-PER>O=2 for two labels"
        )
    return (gold, predicted) if between else name or None, cost
