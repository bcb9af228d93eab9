"""The type of a model's labels, for type checkers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # `typing` has TypeVars with a default from Python 3.13 on

    Label = TypeVar("Label", bound=Hashable, default=str)
else:
    from typing import TypeVar

    Label = TypeVar("Label", bound=Hashable)
