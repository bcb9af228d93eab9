"""Attributes that are worked out when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeVar

Value = TypeVar("Value")


class lazy_property(cached_property[Value]):  # noqa: N801
    """`functools.cached_property` without its lock, which Python 3.11 still has.

    A child that `fork()` makes while another thread works such an attribute out would wait for this lock for ever. Two
    threads may now work it out at the same time; both get the same.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        super().__init__(function)
        self.lock = nullcontext()
