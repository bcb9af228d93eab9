"""Semi-Markov chains as models: what is refused, files, growing models, and what the lengths of segments are good for.

That all numbers are right is shown in tests/laws/test_losses.py, against the enumeration of all segmentations.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError, SegmentMatches, Segments, load
from crfkit.errors import LabelError
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
        (Segments(scheme="bio"), ["A", "B-X", "O"], "label 'A' is none of the scheme bio"),
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


WORDS = [["we", "flew", "to", "New", "York"], ["York", "is", "old"], ["Paris", "and", "New", "York"]]
SPANS: list[list[tuple[int, int, str]]] = [[(3, 5, "LOC")], [(0, 1, "LOC")], [(2, 4, "LOC"), (0, 1, "LOC")]]
CITIES = {"cities": ["New York", ("Rio", "Branco"), "Paris"]}


def capitals(x: Any, start: int, end: int) -> Any:
    return {"capitals": sum(word.istitle() for word in x[start:end]), "whole": 1.0}


def last_word(x: Any, start: int, end: int) -> Any:
    return [f"last={x[end - 1].lower()}"] if end - start > 1 else None


def test_spans_are_labels() -> None:
    crf = CRF(Segments(scheme="iobes"), features="names").fit(WORDS, SPANS, dev=(WORDS, SPANS))
    assert crf.predict(WORDS)[0] == ["O", "O", "O", "B-LOC", "E-LOC"]
    assert crf.score(WORDS, SPANS) == 1.0
    assert (
        crf.log_probability(WORDS[:1], SPANS[:1]) == crf.log_probability(WORDS[:1], crf.predict(WORDS[:1]))
    ).all()
    with pytest.raises(InputError, match="dev sequence 0: the span"):
        crf.fit(WORDS, SPANS, dev=(WORDS, [[(0, 9, "LOC")], [], []]))
    with pytest.raises(InputError, match=r"sequence 2: the span \(1, 3, 'LOC'\) of 4 positions"):
        crf.fit(WORDS, [[], [], [(0, 2, "LOC"), (1, 3, "LOC")]])


def test_spans_may_be_lists() -> None:
    listed = [[[*span] for span in spans] for spans in SPANS]
    first, second = (CRF(Segments(), features="pos").fit(WORDS, y) for y in (SPANS, listed))
    assert np.array_equal(first.weights_, second.weights_)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(0, 1, "A")], ["O", "O"]], r"sequence 1: y has 'O' beside the span \(0, 1, 'A'\), expected spans"),
        ([["O", "O"], [[0, 1, "A"]]], r"sequence 0: y has 'O' beside the span \[0, 1, 'A'\], expected spans"),
        ([[("A", 0, 1)], []], r"sequence 0: y has \('A', 0, 1\), expected spans \(start, end, type\)"),
        ([[["A", 0, 1]], []], r"sequence 0: y has \['A', 0, 1\], expected spans"),
        ([[(0.0, 1.0, "A")], []], r"sequence 0: y has \(0.0, 1.0, 'A'\), expected spans"),
        ([[{"start": 0, "end": 1}], []], "sequence 0: y has {'start': 0, 'end': 1}, expected spans"),
        ([[(0, 1, "A"), None], ["O", "O"]], r"sequence 1: y has 'O' beside the span"),
        ([[(0, 1, 7)], []], r"sequence 0: the span \(0, 1, 7\), expected a text as type"),
        ([[(0, 1, None)], []], r"sequence 0: the span \(0, 1, None\), expected a text as type"),
        ([[(0, 1, "O")], []], "type of the label 'B-O' is O, which is what positions outside are called"),
        (["OO", ["O", "O"]], "y of sequence 0 is 'OO', expected a list of labels"),
    ],
)
def test_what_is_neither_spans_nor_labels(y: Any, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        CRF(Segments(), features="pos").fit([["a", "b"], ["c", "d"]], y)


def test_labels_of_any_kind() -> None:
    x = [["a", "b"], ["c", "d"]]
    spans = [[(0, 1, 7)], [(0, 2, (8,))]]
    assert {*CRF(Segments(scheme="plain"), features="pos").fit(x, spans).classes_} == {"O", 7, (8,)}
    labels = [[(0, 1, "a"), ("b",)], [("b",), None]]  # the first looks like a span
    crf: CRF[Any] = CRF(Segments(), features="pos")
    assert {*crf.fit(x, labels).classes_} == {(0, 1, "a"), ("b",)}


def test_features_of_segments(tmp_path: Path) -> None:
    structure = Segments(4, segment_features=[capitals, 0, last_word], dictionaries=CITIES)
    crf = CRF(structure, features="U:%x[0,0]\nB", l2=0.1).fit(WORDS, SPANS)
    assert {"LOC in cities", "LOC 0=New York", "LOC capitals", "LOC last=york", "O whole"} <= {
        *crf.structure_names_
    }
    assert "O in cities" not in crf.structure_names_
    crf.save(tmp_path / "m")
    with pytest.raises(InputError, match="not loaded"):
        load(tmp_path / "m").predict(WORDS)
    given = load(tmp_path / "m", [capitals, last_word])
    trusted = load(tmp_path / "m", trust_functions=True)
    for copy in (given, trusted, pickle.loads(pickle.dumps(crf))):
        assert copy.structure == structure
        assert copy.predict_nbest(WORDS, 3) == crf.predict_nbest(WORDS, 3)
    sparse = CRF(structure, features="U:%x[0,0]\nB", l1=0.3, l2=0.1).fit(WORDS, SPANS)
    assert 0 < len(sparse.structure_names_) < len(crf.structure_names_)
    assert crf.predict([["in", "Rio", "Branco"]]) == [["O", "B-LOC", "I-LOC"]]


def test_features_that_do_not_occur_keep_their_weights() -> None:
    structure = Segments(4, segment_features=[capitals], dictionaries=CITIES)
    crf = CRF(structure, features="U:%x[0,0]\nB").fit(WORDS, SPANS)

    def weights() -> dict[str, float]:
        own = crf.weights_[-len(crf.structure_names_) :]
        return dict(zip(crf.structure_names_, own.tolist(), strict=True))

    before = weights()
    after = (crf.partial_fit([["they", "ran"]] * 5, [["O", "O"]] * 5), weights())[1]
    assert before["LOC in cities"] == after["LOC in cities"] != 0
    assert before["O whole"] != after["O whole"]


def test_spans_join_a_model_in_its_scheme() -> None:
    labels = [["O", "O", "O", "B-LOC", "E-LOC"], ["S-LOC", "O", "O"], ["S-LOC", "O", "B-LOC", "E-LOC"]]
    crf = CRF(Segments(), features="pos").fit(WORDS, labels)
    assert crf.partial_fit(WORDS, SPANS).classes_ == ["B-LOC", "E-LOC", "O", "S-LOC"]


@pytest.mark.parametrize("spans", [[(0, 1, "A"), (1, 2, "A")], [(0, 2, "O"), (2, 3, "A")]])
def test_spans_without_plain_labels_of_their_own_are_refused(spans: list[tuple[int, int, str]]) -> None:
    x = [["a", "b", "c"]]
    with pytest.raises(InputError, match=r"sequence 0: the span .* are runs of equal labels"):
        CRF(Segments(scheme="plain"), features="pos").fit(x, [spans])
    assert CRF(Segments(), features="pos").fit(x, [spans]).classes_
    apart = [(0, 1, "A"), (1, 2, "B"), (2, 3, "A")]
    assert CRF(Segments(scheme="plain"), features="pos").fit(x, [apart]).classes_ == ["A", "B"]


def all_matches(x: Any) -> Any:
    """What `capitals` and `last_word` say of each segment, those of more than 4 words too."""
    for end in range(len(x), 0, -1):
        for start in range(end):
            yield start, end, last_word(x, start, end)
            yield start, end, capitals(x, start, end)


def title_matches(x: Any) -> Any:
    for start, word in enumerate(x):
        if word.istitle():
            yield start, start + 1, f"title {word}"
            yield start, start + 2 if start + 2 <= len(x) else start + 1, {"two": 2.0}


def title_of(x: Any, start: int, end: int) -> Any:
    found: dict[str, float] = {}
    for s, e, names in title_matches(x):
        if (s, e) == (start, end):
            found.update({names: 1.0} if isinstance(names, str) else names)
    return found


@pytest.mark.parametrize("dense", [[], [0]])
@pytest.mark.parametrize("dictionaries", [{}, CITIES])
def test_matches_of_segments_are_features_of_segments(
    dense: list[int], dictionaries: dict[str, Any], tmp_path: Path
) -> None:
    models = [
        CRF(
            Segments(4, "bio", segment_features=[*dense, *features], dictionaries=dictionaries), "pos", l2=0.1
        ).fit(WORDS, SPANS)
        for features in (
            [SegmentMatches(all_matches), SegmentMatches(title_matches)],
            [last_word, capitals, title_of],
        )
    ]
    sparse, called = models
    assert sparse.structure_names_ == called.structure_names_
    assert np.array_equal(sparse.weights_, called.weights_)
    assert sparse.predict_nbest(WORDS, 3) == called.predict_nbest(WORDS, 3)
    sparse.save(tmp_path / "m")
    with pytest.raises(InputError, match="not loaded"):
        load(tmp_path / "m").predict(WORDS)
    for copy in (
        load(tmp_path / "m", [all_matches, title_matches]),
        load(tmp_path / "m", trust_functions=True),
    ):
        assert copy.structure == sparse.structure
        assert copy.predict_nbest(WORDS, 3) == sparse.predict_nbest(WORDS, 3)


def test_matches_that_no_segment_of_the_training_data_has(tmp_path: Path) -> None:
    names = {}
    for unseen in (False, True):
        structure = Segments(segment_features=SegmentMatches(all_matches, unseen=unseen))
        crf = CRF(structure, "pos", l2=0.1).fit(WORDS, SPANS)
        names[unseen] = {*crf.structure_names_}
        crf.save(tmp_path / "m")
        assert load(tmp_path / "m").structure.segment_features[0].unseen == unseen
    assert names[True] - names[False] == {
        f"LOC last={word}" for word in ("flew", "to", "new", "is", "old", "and")
    }
    assert "O last=york" not in names[True]  # outside is one position each


@pytest.mark.filterwarnings("ignore::crfkit.models.UnsavableModel")
def test_matches_that_are_none_are_refused() -> None:
    for wrong, message in (
        ([(0, 9, "a")], r"sequence 0: the segment feature '<lambda>' gives the segment \(0, 9\)"),
        ([(1, 1, "a")], r"gives the segment \(1, 1\), expected a start and an end within its 5 positions"),
        ([(0, 1, [3])], "expected names or {name: number}"),
        ([(0, 1)], r"the segment feature '<lambda>' failed \(ValueError"),
    ):
        listed: Any = wrong
        structure = Segments(3, segment_features=SegmentMatches(lambda x, listed=listed: listed))  # type: ignore[misc]
        with pytest.raises(InputError, match=message):
            CRF(structure, features="pos").fit(WORDS, SPANS)
    with pytest.raises(InputError, match="expected a function of x"):
        SegmentMatches("a")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::crfkit.models.UnsavableModel")
def test_functions_that_give_nonsense_are_named() -> None:
    for wrong in (
        lambda x, s, e: [3],
        lambda x, s, e: True,
        lambda x, start, end: {"a": "b"},
        lambda x, start, end: x[99],
    ):
        with pytest.raises(InputError, match=r"sequence 0, positions 0 to 0: the segment feature '<lambda>'"):
            CRF(Segments(3, segment_features=wrong), features="pos").fit(WORDS, SPANS)
    with pytest.raises(InputError, match="a dictionary needs a word"):
        CRF(Segments(3, dictionaries=CITIES)).fit([[{"w": 1}]], [["B-X"]])
    with pytest.raises(InputError, match="has no import path"):
        CRF(Segments(2, segment_features=lambda x, s, e: "a"), features="pos").fit(WORDS, SPANS).save("m")


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
