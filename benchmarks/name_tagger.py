"""A tagger of names for newspapers: the preset `names` with resources and the words around, and a second chain on top.

The second chain reads, beside all that the first one reads, what that finds in the sentence and in those nearby, and the
words and names of other training sentences. For training, each fifth of the training sentences is labelled by a chain that
learnt from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.nearby_names import (
    LEAST,
    Found,
    KnownTypes,
    NamesNearby,
    TypesNearby,
    Words,
    column_lines,
    label_lines,
    name_key,
    sure_labels,
)
from crfkit import CRF, LBFGS, Chain, Span
from crfkit.features import PRESETS, Resource, resource_lines

AROUND = "".join(
    f"near=%lower[{row},0]\n" for row in (*range(-10, 0), *range(1, 11))
)  # lines beside those of the preset
L2 = {"default": 1.0, "near": 5.0}
FOLDS, BLOCK = 5, 100  # of the training sentences for the second chain; neighbouring sentences in one of them
NEAR = (10, 60)  # sentences on each side in which words and names are looked for
COLUMNS = (
    "known",
    "known_name",
    "label",
    "sure",
    *(f"near{n}" for n in NEAR),
    "near_name",
)  # from the third on

Rows = list[list[tuple[str, ...]]]


class NameTagger:
    """The chain of a variant; with "second", one that reads what it finds."""

    def __init__(
        self,
        kinds: Sequence[str],
        resources: dict[str, Resource],
        X: Rows,
        y: list[list[str]],
        iterations: int,
    ) -> None:
        """Train, on words with their parts of speech and IOBES labels."""
        self._kinds, self._resources, self._iterations = kinds, resources, iterations
        self._first = self._train(X, y)
        self.chain = self._first
        if "second" in kinds:
            self._known = KnownTypes(_words(X), y)
            X = self._more_columns(X, self._found_by_others(X, y), train=True)
            self.chain = self._train(X, y, second=True)

    def _train(self, X: Rows, y: list[list[str]], *, second: bool = False) -> CRF:
        around = "around" in self._kinds
        lines = [
            PRESETS["names"],
            AROUND,
            resource_lines(self._resources),
            *(_second_lines() if second else ()),
        ]
        return CRF(
            Chain(bigrams="iobes"),
            "\n".join(lines) if around else "names",
            LBFGS(max_iterations=self._iterations),
            l2=L2 if around else 1.0,
            resources=self._resources or None,
            n_threads=1,
        ).fit(X, y)

    def _found_by_others(self, X: Rows, y: list[list[str]]) -> Found:
        """The spans of each part of the training sentences, by a chain that learnt from the other parts."""
        found: list[list[Span]] = [[] for _ in X]
        for fold in range(FOLDS):
            inside = [n for n in range(len(X)) if n // BLOCK % FOLDS == fold]
            outside = [n for n in range(len(X)) if n // BLOCK % FOLDS != fold]
            if inside and outside:
                chain = self._train([X[n] for n in outside], [y[n] for n in outside])
                for n, some in zip(inside, chain.predict_spans([X[n] for n in inside], LEAST), strict=True):
                    found[n] = some
        return found

    def _more_columns(self, X: Rows, found: Found, *, train: bool) -> Rows:
        """With the columns that the second chain reads."""
        sentences = _words(X)
        types = TypesNearby([[name_key(word) for word in words] for words in sentences], found)
        names = NamesNearby(sentences, found)
        rows = []
        for n, x in enumerate(X):
            known = self._known.columns(sentences[n], n if train else None)
            labels = sure_labels(len(x), found[n])
            near = (*(types.column(n, near) for near in NEAR), names.column(n, max(NEAR)))
            columns = zip(x, known, labels, *near, strict=True)
            rows.append([(*row, *some, *label, *others) for row, some, label, *others in columns])
        return rows

    def columns(self, X: Rows) -> Rows:
        """What the chain reads of sentences."""
        if self.chain is self._first:
            return X
        return self._more_columns(X, self._first.predict_spans(X, LEAST), train=False)


def _words(X: Rows) -> list[Words]:
    return [tuple(row[0] for row in x) for x in X]


def _second_lines() -> Iterator[str]:
    """Lines for the columns that the second chain reads."""
    for number, name in enumerate(COLUMNS, 2):
        yield from label_lines(name, number) if name in ("label", "sure") else column_lines(name, number)
