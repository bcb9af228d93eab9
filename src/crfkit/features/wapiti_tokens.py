"""Rows that are features already, as Wapiti reads data files without patterns.

The first character of a feature says what it belongs to, as that of a pattern does:

    u    labels        b    transitions        *    both

Such a row may have any number of features. Where `wapiti train --me` has trained the model, all of them are features of
labels, whatever they begin with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from crfkit.errors import FeatureError, InputError
from crfkit.features.templates import Program, Row, Template
from crfkit.features.wording import describe_value

_ON_LABELS, _ON_TRANSITIONS = ("u", "*"), ("b", "*")
_ALL_ON_LABELS = "u"


@dataclass(frozen=True)
class WapitiTokens(Template):
    """In the place of a template: the columns of a row are its features.

    The text is empty, or `u` where all of them are features of labels.

    >>> WapitiTokens("").expand([["u:the", "b"], ["u:dog", "b", "*:x"]], 1)
    (['u:dog', '*:x'], ['b', '*:x'])
    """

    LANGUAGE: ClassVar[str] = "wapiti-tokens"

    text: str = ""

    def _parsed(self) -> tuple[Program, tuple[int, ...]]:
        if self.text not in ("", _ALL_ON_LABELS):
            raise FeatureError(f"{self.source}: its text is {self.text[:40]!r}, expected none, or u")
        return Program((), ()), ()

    @property
    def has_plain_arcs(self) -> bool:
        """Whether transitions have weights that do not depend on the input: never, `b` is a feature as others are."""
        return False

    def unread_columns(self, n_columns: int) -> list[int]:
        """None: every column is a feature."""
        return []

    def expand(self, rows: Sequence[Row], i: int) -> tuple[list[str], list[str]]:
        """The features of position `i` and of the transition into it."""
        if not 0 <= i < len(rows):
            raise IndexError(f"position {i} of a sequence of {len(rows)}")
        row = rows[i]
        tokens = [row] if isinstance(row, str) else list(row)
        if self.text == _ALL_ON_LABELS:
            return tokens, []
        for token in tokens:
            if not token.startswith(("u", "b", "*")):
                raise FeatureError(
                    f"the feature {token[:40]!r} begins neither with u nor with b nor with *; the model has no "
                    "patterns, and takes every column for a feature"
                )
        on_labels = [token for token in tokens if token.startswith(_ON_LABELS)]
        return on_labels, [token for token in tokens if token.startswith(_ON_TRANSITIONS)] if i else []

    def split(self, sequences: Iterable[Any]) -> tuple[list[list[list[str]]], list[list[list[str]]]]:
        """The features on labels of all positions of all sequences, and those on transitions."""
        states: list[list[list[str]]] = []
        arcs: list[list[list[str]]] = []
        for n, sequence in enumerate(sequences):
            rows = [self._check(row, n, i) for i, row in enumerate(sequence)]
            expanded = []
            for i in range(len(rows)):
                try:
                    expanded.append(self.expand(rows, i))
                except InputError as error:
                    raise FeatureError(f"sequence {n}, position {i}: {error}") from None
            states.append([on_labels for on_labels, _ in expanded])
            arcs.append([on_transitions for _, on_transitions in expanded])
        return states, arcs

    @staticmethod
    def _check(row: Any, n: int, i: int) -> list[str]:
        tokens = [row] if isinstance(row, str) else row
        if not isinstance(tokens, list | tuple) or not all(isinstance(token, str) for token in tokens):
            raise FeatureError(
                f"sequence {n}, position {i}: expected a list of features, got {describe_value(row)}"
            )
        return list(tokens)
