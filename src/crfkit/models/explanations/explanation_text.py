"""Explanations as plain text."""

import math
from collections.abc import Sequence

Part = tuple[str, float, str]  # name, value, group


def as_text(title: str, log_odds: float, parts: Sequence[Part], limit: int | None) -> str:
    """The title, the log-odds, and a line for each part, the largest first."""
    shown, others = largest(parts, limit)
    width = max((len(group) for _, _, group in shown), default=0)
    lines = [title, f"{signed(log_odds):>9}  log-odds", ""]
    lines += [f"{signed(value):>9}  {group:<{width}}  {name}" for name, value, group in shown]
    if others:
        lines.append(f"{signed(total(others)):>9}  {'':<{width}}  {len(others)} smaller parts")
    return "\n".join(line.rstrip() for line in lines)


def largest(parts: Sequence[Part], limit: int | None) -> tuple[list[Part], list[Part]]:
    """The `limit` parts that are largest by absolute value, largest first, and all others."""
    order = sorted(parts, key=lambda part: -abs(part[1]))
    at = len(order) if limit is None else max(limit, 0)
    if at + 1 == len(order):  # one line for one part
        at += 1
    return order[:at], order[at:]


def signed(value: float) -> str:
    """A number with its sign and three decimals."""
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:+.3f}".replace("-", "−")


def total(parts: Sequence[Part]) -> float:
    """The sum of the values."""
    return math.fsum(value for _, value, _ in parts)
