"""Semi-Markov chains as models: what is refused, files, growing models, and what the lengths of segments are good for.

That all numbers are right is shown in tests/laws/test_losses.py, against the enumeration of all segmentations.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError, Segments, load
from crfkit.models import transition_weights
from crfkit.structures import SegmentTypes
from tests.oracles.segment_problems import SegmentProblem
from tests.oracles.segmentations import labels_of, segmentations

X = [[["a"], ["b"], ["c"]], [["b"], ["a"]], [["a"], ["b"], ["b"], ["b"]], []]
Y = [["B-X", "I-X", "O"], ["O", "B-X"], ["B-X", "I-X", "I-X", "O"], []]


@pytest.mark.parametrize("scheme", ["bio", "iobes", "bilou", "bmes", "plain"])
def test_the_scheme_is_found(scheme: str) -> None:
    types = ["P", "Q"] if scheme in ("bmes", "plain") else ["O", "P", "Q"]
    every = segmentations(4, types, scheme, {})
    labels = sorted({label for segments in every for label in labels_of(segments, scheme)})
    found = Segments().types(labels)
    assert (found.scheme, [*found.names]) == (scheme, types)
    assert Segments(scheme=scheme).types(labels).first.tolist() == found.first.tolist()


def test_labels_that_no_data_has_make_no_longer_segments() -> None:
    found: SegmentTypes = Segments().types(["B-X", "E-X", "O", "S-Y"])
    assert [*zip(found.names, found.goes_on.tolist(), strict=True)] == [
        ("O", False),
        ("X", True),
        ("Y", False),
    ]
    crf = CRF(Segments()).fit([[["a"]] * 3], [["B-X", "E-X", "S-Y"]])
    with pytest.raises(InputError, match="sequence 0: there is no segmentation"):
        crf.predict([[["a"]] * 3], allowed=[[["B-X"], ["B-X"], None]])


@pytest.mark.parametrize(
    ("structure", "y", "message"),
    [
        (Segments(), ["I-X", "B-X", "O"], "sequence 0, position 0: the label 'I-X'"),
        (Segments(), ["B-X", "I-Y", "B-Y"], "sequence 0, position 1: the label 'I-Y'"),
        (Segments(), ["B-X", "O", "E-X"], "sequence 0, position 0: the label 'B-X'"),
        (
            Segments(2),
            ["B-X", "I-X", "I-X"],
            "position 0: a segment of type 'X' has 3 positions, expected at most 2",
        ),
        (Segments({"Y": 2}), ["B-X", "I-X", "I-X"], "max_length has the type 'Y'; the types are 'X'"),
        (Segments(scheme="bio"), ["A", "B-X", "O"], "label 'A' is none of the scheme bio.*have no scheme"),
        (Segments(), ["I-X", "I-X", "O"], "The labels of type 'X' have none"),
    ],
)
def test_labels_that_make_no_segments_are_refused(structure: Segments, y: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CRF(structure).fit([[["a"], ["b"], ["c"]]], [y])


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_length": 0},
        {"max_length": True},
        {"scheme": "iob3"},
        {"longest_weighted": 1.5},
        {"segment_features": 1.5},
        {"segment_features": None},
        {"dictionaries": {"a": 3}},
        {"dictionaries": {"a": [3]}},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Segments(**wrong)


def test_facets(tmp_path: Path) -> None:
    """Labels share weights through their facets, and so do transitions between types."""
    crf = CRF(Segments(), facets="characters", l2=0.1).fit(X, Y)
    assert crf.feature_map_.facets is not None
    shown = {(before, after) for before, after, _ in transition_weights(crf)}
    assert {("O", "X"), ("0=O", "0=B"), (None, "X")} <= shown
    assert ("0=B", "0=I") not in shown  # within a segment
    crf.save(tmp_path / "m")
    copy = load(tmp_path / "m")
    best = crf.predict_nbest(X, 1000)
    assert copy.predict_nbest(X, 1000) == best
    assert crf.predict(X) == [found[0][1] for found in best] == Y
    for x, found, marginals in zip(X, best, crf.predict_marginals(X), strict=True):
        for t in range(len(x)):
            expected = sum(p for p, labels in found if labels[t] == "B-X")
            assert marginals[t, crf.classes_.index("B-X")] == pytest.approx(expected, abs=1e-9)
    again = crf._get_model().transfer_weights(copy._get_model(), copy.weights_)
    assert np.array_equal(again, crf.weights_)
    assert crf.partial_fit([[["d"]]], [["B-Z"]]).predict([[["d"]]]) == [["B-Z"]]


@pytest.mark.parametrize("structure", [Segments(), Segments(5), Segments({"X": 4}, "bio", 2)])
def test_files(structure: Segments, tmp_path: Path) -> None:
    crf = CRF(structure, l2=0.1).fit(X, Y)
    crf.save(tmp_path / "m")
    for copy in (load(tmp_path / "m"), pickle.loads(pickle.dumps(crf))):
        assert copy.structure == structure
        assert copy.structure_names_ == crf.structure_names_
        assert copy.structure_.scheme == "bio"
        assert copy.predict(X) == crf.predict(X) == Y
        assert copy.predict_nbest(X, 3) == crf.predict_nbest(X, 3)


def test_a_model_that_grows() -> None:
    crf = CRF(Segments(), l2=0.1).partial_fit(X[:2], Y[:2])
    assert crf.structure_names_ == ["X length 1", "X length 2", "X longer"]
    crf.partial_fit([*X[2:], [["d"]]], [*Y[2:], ["B-Z"]])
    assert crf.structure_names_ == ["X length 1", "X length 2", "X length 3", "X longer"]
    assert crf.predict(X[2:3]) == Y[2:3]


@pytest.mark.parametrize("limit", [6, 10**9, 10**30])
def test_limits_above_all_lengths_of_the_training_data(limit: int, tmp_path: Path) -> None:
    """Lengths have weights as far as training sequences go; beyond, up to the limit, they exist without."""
    crf = CRF(Segments(limit), l2=0.1).fit(X, Y)
    assert crf.structure_names_ == [f"X length {k}" for k in range(1, 5)]
    crf.save(tmp_path / "m")
    x = [[["a"], *[["b"]] * 7]]
    every = [*segmentations(8, ["O", "X"], "bio", {"X": limit})]
    best = load(tmp_path / "m").predict_nbest(x, 10_000)[0]
    assert sorted(y for _, y in best) == sorted(labels_of(segments, "bio") for segments in every)
    assert sum(p for p, _ in best) == pytest.approx(1.0)
    spans = {(span.start, span.end): span.probability for span in crf.predict_spans(x, 1e-9)[0]}
    assert spans[0, 6] == pytest.approx(
        sum(p for p, y in best if y[:6] == ["B-X", *["I-X"] * 5] and y[6:7] != ["I-X"])
    )
    np.testing.assert_array_equal(crf.predict(x)[0], best[0][1])
    grown = crf.partial_fit(x, [["B-X", *["I-X"] * 5, "O", "O"]])
    assert f"X length {min(limit, 8)}" == grown.structure_names_[-1]


def test_lengths_tell_what_positions_cannot() -> None:
    """All words are the same: a chain cannot count to three, segments can."""
    inputs, labels = [[["w"]] * 6] * 4, [["B-X", "I-X", "I-X"] * 2] * 4
    assert CRF(Segments(), l2=0.01).fit(inputs, labels).predict(inputs) == labels
    assert CRF(l2=0.01).fit(inputs, labels).predict(inputs) != labels


def test_penalties_and_threads() -> None:
    crf = CRF(Segments(), l1={"lengths": 1e4, "default": 0.0}, l2=0.1).fit(X, Y)
    own = crf.weights_[-len(crf.structure_names_) :]
    assert not own.any()
    weights = [CRF(Segments(), n_threads=n).fit(X * 30, Y * 30).weights_ for n in (1, 3)]
    assert np.array_equal(weights[0], weights[1])


@pytest.mark.parametrize("scheme", ["bio", "iobes", "plain"])
@pytest.mark.parametrize("options", [{}, {"max_length": 3}, {"longest_weighted": 2, "of_segments": True}])
def test_probabilities_of_spans(scheme: str, options: dict[str, Any]) -> None:
    """Those of segments, from the enumeration of all segmentations."""
    problem = SegmentProblem(scheme, **options)
    crf = problem.crf.fit(problem.X, problem.Y)
    for n, spans in enumerate(crf.predict_spans(problem.X, threshold=1e-12)):
        every = problem.segmentations[n]
        scores = np.array([problem.counts(n, segments) @ crf.weights_ for segments in every])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        expected: dict[Any, float] = {}
        for segments, probability in zip(every, p.tolist(), strict=True):
            for segment in segments:
                if segment[2] != "O":
                    expected[segment] = expected.get(segment, 0.0) + probability
        found = {(span.start, span.end, span.label): span.probability for span in spans}
        assert found.keys() == expected.keys()
        np.testing.assert_allclose([found[key] for key in expected], [*expected.values()], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("scheme", "types"), [("bio", ["O", "P", "Q"]), ("iobes", ["O", "P"]), ("plain", ["A", "B"])]
)
@pytest.mark.parametrize("longest", [None, 2, 3])
def test_what_allowed_labels_leave(scheme: str, types: list[str], longest: int | None) -> None:
    """Nothing is refused that exists, and nothing else answered."""
    random, limits = np.random.default_rng(0), {} if longest is None else dict.fromkeys(types, longest)
    lengths = {kind: 1 if kind == "O" else longest or 4 for kind in types}
    labels = [labels_of([(0, n, kind)], scheme) for kind in types for n in range(1, lengths[kind] + 1)]
    crf = CRF(Segments(longest, scheme)).fit([[["w"]] * len(y) for y in labels], labels)
    for _ in range(60):
        n = int(random.integers(1, 6))
        allowed = [set(random.choice(crf.classes_, random.integers(1, 3)).tolist()) for _ in range(n)]
        every = [labels_of(segments, scheme) for segments in segmentations(n, types, scheme, limits)]
        left = [y for y in every if all(b in some for b, some in zip(y, allowed, strict=True))]
        if left:
            assert crf.predict([[["w"]] * n], allowed=[allowed])[0] in left
        else:
            with pytest.raises(InputError, match="sequence 0: there is no segmentation"):
                crf.predict([[["w"]] * n], allowed=[allowed])


@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
def test_marginals_and_best_labels_at_any_scale(scale: float) -> None:
    """Scaled passes, and the path engine where they would not be exact, against the list of all segmentations."""
    random = np.random.default_rng(1)
    inputs = [random.normal(size=(n, 3)) for n in (4, 5, 1, 3)]
    labels = [["B-X", "I-X", "O", "B-Y"], ["B-Y", "I-Y", "I-Y", "B-Y", "O"], ["B-X"], ["O", "O", "B-Y"]]
    crf = CRF(Segments(longest_weighted=2), l2=0.1).fit(inputs, labels)
    potentials, dataset = crf._get_model().potentials, crf._get_model().encode(inputs)
    weights = crf.weights_ * scale
    answerer, design = potentials.answerer(weights), potentials.design(dataset, 1)
    found, log_z = answerer.marginals(design), answerer.log_partitions(design)
    best, ptr = answerer.decode(design), dataset.sequence_ptr
    for n, listed in enumerate(answerer.k_best(design, 10_000)):
        scores = np.array([score for score, _ in listed])
        assert log_z[n] == pytest.approx(np.logaddexp.reduce(scores), rel=1e-12)
        assert best[ptr[n] : ptr[n + 1]].tolist() == listed[0][1].tolist()
        expected = np.zeros((len(inputs[n]), len(crf.classes_)))
        for score, y in listed:
            expected[np.arange(len(y)), y] += np.exp(score - log_z[n])
        np.testing.assert_allclose(found[ptr[n] : ptr[n + 1]], expected, rtol=0, atol=1e-9)
