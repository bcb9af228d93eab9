"""Probabilities of spans of `ChainDistribution` and `CRFForTokenClassification` against sums over all label sequences."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainDistribution, CRFForTokenClassification
from crfkit.structures import SpanLabels
from tests.oracles.chain_batches import KINDS, batch
from tests.oracles.conlleval import names, probabilities

SCHEMES = ["bio", "iob1", "iobes", "bilou", "bmes", "plain"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "kind", ["plain", "masked", "by position", "forbidden", "restricted", "one position"]
)
def test_spans_are_those_of_all_label_sequences(kind: str, scheme: str) -> None:
    given = batch(3, **{"shape": (4, 4, 5), **KINDS[kind]})
    L = given.emissions.shape[2]
    labels, chains = names(scheme, L), given.distribution()
    types = list(SpanLabels.of(labels, scheme).types)
    expected = []
    for b in range(len(given.emissions)):
        oracle, at = given.oracle(b), given.positions(b)
        sequences = [[labels[k] for k in y] for y in oracle.outputs]
        exact = probabilities(zip(sequences, oracle.probabilities.tolist(), strict=True), scheme)
        expected += [
            ((b, int(at[start]), int(at[end - 1]) + 1, types.index(label)), p)
            for (start, end, label), p in exact.items()
        ]
    for threshold in (1e-12, 0.3):
        found, probability = chains.spans(labels, threshold, scheme=scheme)
        right = sorted(entry for entry in expected if entry[1] >= threshold)
        assert [tuple(span) for span in found.tolist()] == [span for span, _ in right]
        np.testing.assert_allclose(probability, [p for _, p in right], rtol=1e-9, atol=1e-12)
    B, T, _ = given.emissions.shape
    every = [
        (b, s, e, c)
        for b in range(B)
        for s in range(T)
        for e in range(s + 1, T + 1)
        for c in range(len(types))
    ]
    outside = [
        (B, 0, 1, 0),
        (0, -1, 1, 0),
        (0, 0, T + 1, 0),
        (0, 1, 1, 0),
        (0, 0, 1, len(types)),
        (-1, 0, 1, 0),
    ]
    one_by_one = chains.span_probabilities(torch.tensor([*every, *outside]), labels, scheme=scheme)
    by_span = dict(expected)
    np.testing.assert_allclose(
        one_by_one, [by_span.get(span, 0.0) for span in [*every, *outside]], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(("B", "T"), [(0, 3), (2, 0), (2, 1)])
def test_nothing_to_read(B: int, T: int) -> None:
    chains = ChainDistribution(torch.zeros(B, T, 3))
    spans, probability = chains.spans(["O", "B-x", "I-x"], 0.1)
    assert spans.shape == (B * T, 4)
    np.testing.assert_allclose(probability, np.full(B * T, 2 / 3), rtol=1e-6)
    assert chains.span_probabilities(torch.zeros(1, 4).long(), ["O", "B-x", "I-x"]).tolist() == [0.0]
    assert chains.span_probabilities(torch.zeros(0, 4).long(), ["O", "B-x", "I-x"]).shape == (0,)


def test_long_sequences_in_float32() -> None:
    torch.manual_seed(0)
    emissions = 3 * torch.randn(2, 2000, 5)
    labels = ["O", "B-x", "I-x", "B-y", "I-y"]
    single, double = (
        ChainDistribution(part, bigrams="bio", labels=labels).spans(labels, 0.4)
        for part in (emissions, emissions.double())
    )
    assert torch.equal(single[0], double[0])
    np.testing.assert_allclose(single[1], double[1], atol=1e-6)


def test_questions_that_do_not_fit_are_refused_with_a_message() -> None:
    chains = ChainDistribution(torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match="labels: got 2 of them, the scores have 3"):
        chains.spans(["O", "B-x"])
    with pytest.raises(ValueError, match="threshold: got 2"):
        chains.spans(["O", "B-x", "I-x"], 2)
    with pytest.raises(ValueError, match="spans: expected integers"):
        chains.span_probabilities(torch.zeros(2, 3), ["O", "B-x", "I-x"])


class Encoder(torch.nn.Module):  # type: ignore[name-defined]
    """Stands for a model of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = torch.nn.Embedding(10, 3)

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        return self.scores(input_ids)


def test_spans_of_words_behind_an_encoder() -> None:
    """Their starts and ends are numbers of words; masked pieces do not count."""
    torch.manual_seed(3)
    labels = ["O", "B-PER", "I-PER"]
    model = CRFForTokenClassification(Encoder(), labels=labels, bigrams="bio").eval()
    input_ids = torch.tensor([[1, 5, 6, 7, 8, 2], [1, 3, 9, 2, 0, 0]])
    words = torch.tensor([[0, 1, 0, 1, 1, 0], [0, 1, 1, 0, 0, 0]]).bool()
    found = model.predict_spans(input_ids, word_mask=words, threshold=0.05)
    for b, kept in enumerate(words):
        emissions = model.encoder(input_ids[b : b + 1, kept])
        spans, probability = model.crf.distribution(emissions).spans(labels, 0.05)
        assert [(span.start, span.end) for span in found[b]] == [(s, e) for _, s, e, _ in spans.tolist()]
        np.testing.assert_allclose([span.probability for span in found[b]], probability.detach(), rtol=1e-5)
        assert {span.label for span in found[b]} == {"PER"}
