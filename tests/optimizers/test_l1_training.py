"""Training with l1, beside CRFsuite at the settings that its users have: few iterations, far from the minimum."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import crfkit.cli
from crfkit import CRF, LBFGS, Chain
from crfkit.data import read_conllu

# Objectives of python-crfsuite 0.9.12 after 10, 30 and 100 iterations on the sentences below, with c2 = 0.1.
MARKS = (10, 30, 100)
CRFSUITE = {
    0.01: (1969.49, 994.07, 990.43),
    0.1: (2324.41, 1460.12, 1454.76),
    1.0: (4325.15, 3827.52, 3812.22),
}


def features(forms: list[str]) -> list[list[str]]:
    ends = ["<", *forms, ">"]
    return [
        [
            f"w={form}",
            f"low={form.lower()}",
            f"s3={form[-3:]}",
            f"s2={form[-2:]}",
            f"p1={form[:1]}",
            f"before={before}",
            f"after={after}",
        ]
        for before, form, after in zip(ends, forms, ends[2:], strict=False)
    ]


@cache
def sentences() -> tuple[list[list[list[str]]], list[list[str]]]:
    """400 sentences of the bundled sample, with universal tags."""
    path = Path(crfkit.cli.__file__).parent / "demo_data" / "train.conllu.xz"
    read = list(read_conllu(path))[:400]
    X = [features([word.form for word in sentence.words]) for sentence in read]
    return X, [[word.upos for word in sentence.words] for sentence in read]


@pytest.mark.parametrize("c1", CRFSUITE)
def test_the_objective_is_never_above_that_of_crfsuite(c1: float) -> None:
    X, y = sentences()
    model = CRF(
        Chain(start=False, end=False),
        optimizer=LBFGS(max_iterations=100, change=0.0, tolerance=0.0),
        l1=c1,
        l2=0.2,
        all_possible_transitions=False,
    ).fit(X, y)
    objectives = [record.objective for record in model.history_]
    for iteration, theirs in zip(MARKS, CRFSUITE[c1], strict=True):
        assert objectives[min(iteration, len(objectives) - 1)] <= theirs
