"""Probabilities of spans of `ChainDistribution` and `CRFForTokenClassification` against sums over all label sequences."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from crfkit import CRF
from crfkit.errors import ArgumentError, ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainCRF, ChainDistribution, CRFForTokenClassification, spans
from crfkit.nn.backends import core
from crfkit.structures import SpanLabels, Threshold
from tests.oracles.chain_batches import KINDS, batch
from tests.oracles.conlleval import names, probabilities

SCHEMES = ["bio", "iob1", "iobes", "bilou", "bmes", "plain"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "kind",
    ["plain", "no ends", "masked", "by sequence", "by position", "forbidden", "restricted", "one position"],
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


@pytest.mark.parametrize("kind", ["masked", "by sequence", "by position", "forbidden"])
def test_probabilities_are_differentiable(kind: str) -> None:
    """By all scores, against differences; and the values are those without a graph."""
    given = batch(5, **{"shape": (4, 4, 5), **KINDS[kind]}).tensors()
    labels = names("iobes", 5)
    plain = {name: part if part is None else part.detach() for name, part in given.items()}
    found, exact = ChainDistribution(**plain).spans(labels, 1e-3)
    assert torch.equal(ChainDistribution(**given).spans(labels, 1e-3)[0], found)
    scores = [name for name in ("emissions", "transitions", "start", "end") if given[name] is not None]
    weights = torch.linspace(1.0, 2.0, len(found)).double()

    def total(**moved: Any) -> Any:
        return ChainDistribution(**{**given, **moved}).span_probabilities(found, labels) @ weights

    value = total()
    torch.testing.assert_close(value.detach(), exact @ weights)
    rng = torch.Generator().manual_seed(0)
    for name, gradient in zip(scores, torch.autograd.grad(value, [given[n] for n in scores]), strict=True):
        direction = torch.randn(gradient.shape, generator=rng, dtype=torch.float64)
        ahead, behind = (total(**{name: plain[name] + step * direction}) for step in (1e-5, -1e-5))
        torch.testing.assert_close(
            (ahead - behind) / 2e-5, (gradient * direction).sum(), atol=1e-8, rtol=1e-6
        )


def test_what_is_forbidden_has_no_probability_at_all() -> None:
    torch.manual_seed(0)
    labels = ["O", "B-x", "I-x", "E-x", "S-x"]
    chains = ChainDistribution(torch.randn(2, 6, 5), torch.randn(5, 5), bigrams="iobes", labels=labels)
    every = torch.tensor([(b, s, e, 0) for b in range(2) for s in range(6) for e in range(s + 1, 7)])
    assert bool((chains.span_probabilities(every, labels) > 0).all())
    allowed = torch.ones(2, 6, 5, dtype=torch.bool)
    allowed[:, 2, 2] = False  # no span goes through position 2
    chains = ChainDistribution(torch.randn(2, 6, 5), bigrams="iobes", labels=labels, allowed=allowed)
    through = (every[:, 1] < 2) & (every[:, 2] > 3)
    assert torch.equal(chains.span_probabilities(every, labels) == 0, through)
    never = ChainDistribution(torch.full((1, 2, 5), -torch.inf))
    assert never.predict_spans(labels, 1e-9) == never.predict_spans(labels, decode="viterbi") == [[]]


def test_spans_that_are_certain_reach_the_threshold_of_one() -> None:
    torch.manual_seed(0)
    labels = ["O", "B-x", "I-x"]
    allowed = torch.zeros(1, 30, 3, dtype=torch.bool)
    allowed[:, :, 2] = allowed[:, 0, 1] = True  # one span, which B-x or I-x begins
    chains = ChainDistribution(torch.randn(20, 30, 3).double(), allowed=allowed.expand(20, 30, 3))
    for decode in (None, "viterbi", "f1"):
        assert chains.predict_spans(labels, 1.0, decode=decode) == 20 * [[(0, 30, "x", 1.0)]]


def trained_chain() -> tuple[Any, list[Any], ChainDistribution]:
    """A trained model, inputs, and their scores as a batch, which is read from the weights."""
    rng = np.random.default_rng(3)
    X = [[[f"w={rng.integers(6)}"] for _ in range(n)] for n in (6, 0, 3, 7, 1, 5)]
    letters = ["O", "B-a", "I-a", "B-b", "I-b"]
    crf = CRF(l2=0.1).fit(X, [rng.choice(letters, len(x)).tolist() for x in X])
    features = crf.feature_map_
    by_name = np.zeros((crf.n_features_, len(crf.classes_)))
    for name, (begin, end) in enumerate(pairwise(features.pair_ptr.tolist())):
        by_name[name, features.pair_labels[begin:end]] = crf.weights_[begin:end]
    place = {crf.encoder_.vocabulary.name(i): i for i in range(crf.n_features_)}
    emissions = np.zeros((len(X), 7, len(crf.classes_)))
    for row, x in zip(emissions, X, strict=True):
        row[: len(x)] = by_name[[place[name] for [name] in x]]
    scores = (torch.from_numpy(part) for part in (emissions, *features.arc_weights(crf.weights_)))
    return crf, X, ChainDistribution(*scores, lengths=torch.tensor([len(x) for x in X]))


@pytest.mark.parametrize("decode", [None, "viterbi", "f1"])
@pytest.mark.parametrize("threshold", ["auto", 0.03, 1e-9])
def test_the_spans_of_a_trained_model(decode: str | None, threshold: Threshold) -> None:
    crf, X, chains = trained_chain()
    expected = crf.predict_spans(X, threshold, decode=decode)
    found = chains.predict_spans(crf.classes_, threshold, decode=decode)
    assert [[span[:3] for span in spans] for spans in found] == [
        [span[:3] for span in spans] for spans in expected
    ]
    np.testing.assert_allclose(
        [span.probability for spans in found for span in spans],
        [span.probability for spans in expected for span in spans],
        rtol=1e-9,
    )
    assert sum(map(len, found)) > 3


def test_spans_of_a_layer() -> None:
    """At positions of the batch, with the names of the layer's labels; masked positions lie within spans."""
    torch.manual_seed(0)
    layer = ChainCRF(labels=["O", "B-x", "I-x"], bigrams="bio", batch_first=False)
    emissions = torch.tensor([[0.0, 9, 0], [0, 0, 0], [0, 0, 9], [9, 0, 0], [0, 3, 0]])[:, None]  # [T, 1, L]
    mask = torch.tensor([[True], [False], [True], [True], [True]])
    [found] = layer.predict_spans(emissions, mask)
    assert [span[:3] for span in found] == [(0, 3, "x"), (4, 5, "x")]
    assert found == layer.predict_spans(emissions, mask, decode="viterbi")[0]
    assert [span[:3] for span in layer.predict_spans(emissions, mask, threshold=0.99)[0]] == [(0, 3, "x")]
    best = layer.decode(emissions, mask)[:, 0]
    assert best.tolist() == [1, -1, 2, 0, 1]
    allowed = torch.ones(5, 1, 3, dtype=torch.bool)
    allowed[4, 0, 1] = False
    assert [s[:3] for s in layer.predict_spans(emissions, mask, allowed=allowed)[0]] == [(0, 3, "x")]
    with pytest.raises(ArgumentError, match="names of the labels"):
        ChainCRF(3).predict_spans(emissions)
    with pytest.raises(ArgumentError, match="decode is 'best'"):
        layer.predict_spans(emissions, decode="best")
    with pytest.raises(ArgumentError, match="threshold is 0"):
        layer.predict_spans(emissions, threshold=0)


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


def test_spans_in_characters() -> None:
    """A word goes on to the end of its last piece; special tokens end it."""
    torch.manual_seed(3)
    labels = ["O", "B-PER", "I-PER"]
    model = CRFForTokenClassification(Encoder(), labels=labels, bigrams="bio").eval()
    text = "Maryam Smith sings"  # [CLS] Mar ##yam Sm ##ith sings [SEP]
    input_ids = torch.tensor([[1, 5, 6, 7, 8, 9, 2]])
    words = torch.tensor([[0, 1, 0, 1, 0, 1, 0]]).bool()
    offsets = torch.tensor([[[0, 0], [0, 3], [3, 6], [7, 9], [9, 12], [13, 18], [0, 0]]])
    given = {"word_mask": words, "threshold": 1e-6}
    by_word = model.predict_spans(input_ids, **given)
    for mapping in (offsets, offsets.tolist()):
        found = model.predict_spans(input_ids, offset_mapping=mapping, **given)
        assert [(text[s.start : s.end], s.probability) for s in found[0]] == [
            (" ".join(text.split()[s.start : s.end]), s.probability) for s in by_word[0]
        ]
    assert len(found[0]) == 6
    with pytest.raises(ShapeError, match="offset_mapping"):
        model.predict_spans(input_ids, offset_mapping=offsets[:, 1:], **given)


@pytest.mark.parametrize("decode", ["viterbi", "f1"])
def test_decoded_spans_behind_an_encoder(decode: str) -> None:
    torch.manual_seed(0)
    model = CRFForTokenClassification(Encoder(), labels=["O", "B-PER", "I-PER"], bigrams="bio").eval()
    input_ids = torch.randint(10, (3, 8))
    found = model.predict_spans(input_ids, decode=decode)
    assert any(found)
    expected = model.crf.predict_spans(model.encoder(input_ids).detach(), decode=decode)
    assert found == expected


@pytest.mark.parametrize("scheme", ["bio", "iobes"])
@pytest.mark.parametrize("kind", ["masked", "by sequence", "forbidden"])
def test_the_core_and_the_marginals_of_states_agree(
    kind: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = batch(7, **{**KINDS[kind], "shape": (5, 30, 9)})
    labels, chains = names(scheme, 9), given.distribution()
    answers = []
    for by_core in (True, False):
        monkeypatch.setattr(core, "answers", lambda problem, is_used=by_core: is_used)
        found, probability = chains.spans(labels, 0.01, scheme=scheme)
        assert (
            isinstance(spans.ChainSpans.of(chains._problem, labels, scheme, False), spans.CoreSpans)
            == by_core
        )
        answers.append([found, probability, chains.span_probabilities(found.flip(0), labels, scheme=scheme)])
        answers[-1] += [
            chains.predict_spans(labels, decode=decode, scheme=scheme) for decode in ("viterbi", "f1")
        ]
    for mine, theirs in zip(*answers, strict=True):
        if isinstance(mine, list):
            assert [[span[:3] for span in listed] for listed in mine] == [
                [span[:3] for span in listed] for listed in theirs
            ]
        else:
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_scores_that_are_no_numbers_are_seen() -> None:
    emissions = torch.randn(2, 4, 3)
    emissions[1, 2, 0] = torch.nan
    found = ChainDistribution(emissions).span_probabilities(
        torch.tensor([[0, 0, 2, 0], [1, 0, 2, 0]]), ["O", "B-x", "I-x"]
    )
    assert found.isnan().tolist() == [False, True]
