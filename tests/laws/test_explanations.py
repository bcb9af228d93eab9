"""Where the log-odds of labels come from, for every structure, against sums over all label sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.oracles.trained import ROWS, trained

STRUCTURES = [
    row for row in ROWS if not row.startswith(("trees", "word lattices"))
]  # which have no label sequences


@pytest.mark.parametrize("row", STRUCTURES)
def test_log_odds_of_every_structure(row: str) -> None:
    problem = trained(row)
    answerer, data, label_sequences = problem.answers
    n_labels = answerer.marginals(data).shape[1]
    random = np.random.default_rng(0)
    for n, (paths, outputs) in enumerate(zip(label_sequences, problem.outputs, strict=True)):
        scores = outputs.counts @ problem.w
        log_z = np.logaddexp.reduce(scores)
        for i in range(len(paths[0])):
            labels = np.array([y[i] for y in paths])
            exact = np.array(
                [np.logaddexp.reduce(scores[labels == b], initial=-np.inf) - log_z for b in range(n_labels)]
            )
            best, second = np.argsort(-exact, kind="stable")[:2].tolist()
            chosen = answerer.explain(data, n, i)
            assert exact[list(chosen[:2])] == pytest.approx(exact[[best, second]], abs=1e-12)
            for a, b in [(-1, -1), *random.permuted(np.tile(np.arange(n_labels), (2, 1)), axis=1)[:, :2]]:
                label, against, *contexts = answerer.explain(data, n, i, int(a), int(b))
                if a >= 0:
                    assert (label, against) == (a, b)
                for b, context in zip((label, against), contexts, strict=True):
                    assert context.log_probability == pytest.approx(float(exact[b]), abs=1e-9)
                if np.isfinite(exact[[label, against]]).all():
                    sums = [math.fsum(context[1:6]) for context in contexts]
                    assert sums[0] - sums[1] == pytest.approx(exact[label] - exact[against], abs=1e-9)
