"""Probabilities of spans, for every structure and scheme, against sums over all label sequences, read as conlleval does."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit.structures import SpanLabels
from tests.oracles.conlleval import names, probabilities, read
from tests.oracles.trained import ROWS, trained

STRUCTURES = [
    row for row in ROWS if not row.startswith(("trees", "word lattices"))
]  # which have no label sequences
SCHEMES = ["bio", "iob1", "iobes", "bilou", "bmes", "plain"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("row", STRUCTURES)
def test_spans_of_every_structure(row: str, scheme: str) -> None:
    problem = trained(row)
    answerer, data, label_sequences = problem.answers
    label_names = names(scheme, answerer.marginals(data).shape[1])
    labels = SpanLabels.of(label_names, scheme)
    every, likely = (answerer.spans(data, labels, threshold, 2) for threshold in (1e-12, 0.2))
    decoded, numbers = answerer.decoded_spans(data, labels, 2), answerer.n_spans(data, labels, 2)
    best, at = answerer.decode(data), 0
    for n, (paths, outputs) in enumerate(zip(label_sequences, problem.outputs, strict=True)):
        scores = outputs.counts @ problem.w
        p = np.exp(scores - np.logaddexp.reduce(scores))
        sequences = [[label_names[b] for b in y] for y in paths]
        expected = probabilities(zip(sequences, p.tolist(), strict=True), scheme)
        found = {(start, end, kind): p for start, end, kind, p in every[n]}
        assert found == pytest.approx({span: p for span, p in expected.items() if p >= 1e-12}, abs=1e-9)
        assert [span[:3] for span in every[n]] == sorted(found)
        assert likely[n] == [span for span in every[n] if span.probability >= 0.2]
        assert numbers[n] == pytest.approx(sum(expected.values()), abs=1e-9)
        y = [label_names[b] for b in best[at : at + len(paths[0])]]
        assert [span[:3] for span in decoded[n]] == read(y, scheme)
        exact = [expected[span[:3]] for span in decoded[n]]
        assert [span.probability for span in decoded[n]] == pytest.approx(exact, abs=1e-9)
        at += len(paths[0])
