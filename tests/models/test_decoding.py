"""`CRF.predict(decode=…)`: Viterbi, marginals, expected F1, likely spans, against the enumeration of all label sequences."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Bigrams, Chain, Segments
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.evaluation import spans as spans_of
from crfkit.models.decoding import DECODINGS
from crfkit.structures import Lattice, WordLattice
from tests.models.test_costs import corpus

SCHEMES = {
    "bio": [["B-P", "I-P", "O"], ["O", "B-P"], ["B-Q", "I-Q"], ["O", "B-P", "B-P"]],
    "iob1": [["I-P", "I-P", "O"], ["O", "I-P"], ["I-Q", "I-Q"], ["O", "I-P", "B-P"]],
    "iobes": [["B-P", "E-P", "O"], ["O", "S-P"], ["B-Q", "I-Q", "E-Q"], ["O", "S-P", "S-P"]],
    "plain": [["P", "P", "O"], ["O", "P"], ["Q", "Q"], ["O", "P", "Q"]],
}


def model(scheme: str, structure: Any = None) -> tuple[CRF, Any]:
    """A model of few data, so that nothing is sure, and new input."""
    random, y = np.random.default_rng(5), SCHEMES[scheme] * 4
    X = [[[str(random.choice(list("abc"))), "bias"] for _ in labels] for labels in y]
    crf = CRF(Chain() if structure is None else structure, l2=0.1).fit(X, y)
    new = [[[str(random.choice(list("abcd"))), "bias"] for _ in range(n)] for n in [0, 1, 2, *[4] * 20]]
    return crf, new


def every(crf: CRF, x: Any) -> dict[tuple[str, ...], float]:
    """All label sequences that exist, with their probabilities."""
    found = {tuple(y): p for p, y in crf.predict_nbest([x], 10**6)[0]}
    assert sum(found.values()) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize(
    "structure", [None, Chain(bigrams="bio"), Segments()], ids=["chain", "bio", "segments"]
)
def test_labels_of_marginals_have_the_most_right_as_expected(structure: Any) -> None:
    crf, new = model("bio", structure)
    changed = 0
    for x, labels in zip(new, crf.predict(new, decode="marginal"), strict=True):
        found = every(crf, x)
        right = Counter[tuple[int, str]]()  # the probability of each label at each position
        for y, p in found.items():
            right.update(dict.fromkeys(enumerate(y), p))
        possible = found if structure is not None else product(crf.classes_, repeat=len(x))
        most = max(sum(right[place] for place in enumerate(y)) for y in possible)
        assert sum(right[place] for place in enumerate(labels)) == pytest.approx(most)
        changed += labels != list(max((p, y) for y, p in found.items())[1])
    assert changed  # Viterbi's are others
    assert all(np.isfinite(crf.log_probability(new, crf.predict(new, decode="marginal"))))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("as_segments", [False, True])
def test_spans_of_the_highest_expected_f1_are_written_as_labels(scheme: str, as_segments: bool) -> None:
    if as_segments and scheme == "plain":
        pytest.skip("runs of O are segments too")
    crf, new = model(scheme, Segments(scheme=scheme) if as_segments else None)
    found = crf.predict(new, decode="f1")
    expected = crf.predict_spans(new, decode="f1")
    for labels, spans in zip(found, expected, strict=True):
        assert [(s.start, s.end, s.label) for s in spans] == [tuple(s)[:3] for s in spans_of(labels, scheme)]
    assert any(expected)
    assert found != crf.predict(new)


def test_constraints_hold_for_every_decoding() -> None:
    """Where labels that are chosen one by one break them, too."""
    y = [["B-P", "O", "B-Q"], ["B-Q", "I-Q"], ["O", "O"], ["B-P", "I-P", "O"]] * 5
    random = np.random.default_rng(0)
    X = [[[str(random.choice(list("ab")))] for _ in labels] for labels in y]
    chain = Chain(bigrams=Bigrams.observed(y))
    crf = CRF(chain, l2=0.1).fit(X, y)
    new = [[[str(random.choice(list("ab")))] for _ in range(n)] for n in random.integers(1, 6, 60)]
    allowed = [[{"B-P", "B-Q", "I-Q"} if random.random() < 0.2 else None for _ in x] for x in new]
    keep = [n for n, (x, a) in enumerate(zip(new, allowed, strict=True)) if _possible(crf, x, a)]
    new, allowed = [new[n] for n in keep], [allowed[n] for n in keep]
    for decode in DECODINGS:
        found = crf.predict(new, decode=decode, allowed=allowed)
        assert np.isfinite(crf.log_probability(new, found, allowed=allowed)).all()


@pytest.mark.parametrize(
    ("decode", "expected"),
    [("viterbi", ["B-P", "B-Q"]), ("marginal", ["B-R", "B-S"]), ("f1", ["B-P", "B-Q"])],
)
def test_parts_that_do_not_go_together(decode: str, expected: list[str]) -> None:
    """The likeliest first and the likeliest second span are no label sequence; marginals have a second choice."""
    y = [["B-P", "B-Q"]] * 40 + [["B-R", "B-S"]] * 31 + [["B-T", "B-S"]] * 29 + [["O"]]
    X = [[[f"p{t}"] for t in range(len(labels))] for labels in y]
    free, bound = (CRF(Chain(bigrams=pairs), l2=1e-3).fit(X, y) for pairs in (None, "observed"))
    x = [[["p0"], ["p1"]]]
    marginals = [row.argmax() for row in bound.predict_marginals(x)[0]]
    assert [bound.classes_[b] for b in marginals] == ["B-P", "B-S"]
    assert bound.predict(x, decode=decode) == [expected]
    if decode != "viterbi":
        assert free.predict(x, decode=decode) == [["B-P", "B-S"]]


def _possible(crf: CRF, x: Any, allowed: Any) -> bool:
    try:
        crf.predict([x], allowed=[allowed])
    except ValueError:
        return False
    return True


def test_score_takes_a_decoding() -> None:
    X, y = corpus()
    crf = CRF().fit(X, y)
    for decode in DECODINGS:
        found = crf.predict(X, decode=decode)
        right = sum(a == b for g, p in zip(y, found, strict=True) for a, b in zip(g, p, strict=True))
        expected = right / sum(map(len, y))
        assert crf.score(X, y, decode=decode, metric="accuracy") == pytest.approx(expected)


@pytest.mark.parametrize("ask", ["predict", "score"])
def test_what_is_no_decoding(ask: str) -> None:
    X, y = corpus()
    crf = CRF().fit(X, y)
    given = (X,) if ask == "predict" else (X, y)
    with pytest.raises(
        ArgumentError, match="decode is 'best', expected 'viterbi', 'marginal', 'f1', 'spans'"
    ):
        getattr(crf, ask)(*given, decode="best")


def test_without_a_label_outside_what_spans_do_not_cover_keeps_its_best_labels() -> None:
    y = [["B", "E"], ["S"], ["S", "B", "E"], ["B", "E", "S"]] * 2
    random = np.random.default_rng(2)
    X = [[[str(random.choice(list("ab")))] for _ in labels] for labels in y]
    crf = CRF(Chain(bigrams="bmes"), l2=0.1).fit(X, y)
    new = [[[str(random.choice(list("ab")))] for _ in range(n)] for n in (1, 2, 3, 4, 4, 4, 5, 5)]
    found, best = crf.predict(new, decode="f1"), crf.predict(new)
    for labels, others, some in zip(found, best, crf.predict_spans(new, decode="f1"), strict=True):
        covered = sum(span.end - span.start for span in some) == len(labels)
        assert covered or labels == others
    assert np.isfinite(crf.log_probability(new, found)).all()


@pytest.mark.parametrize("decode", ["marginal", "f1", "spans"])
def test_word_lattices_have_paths(decode: str) -> None:
    X = [WordLattice(2, [(0, 1, "N", ["a"]), (1, 2, "N", ["b"]), (0, 2, "V", ["ab"])])]
    crf: CRF[Any] = CRF(Lattice()).fit(X, [[(0, 2, "V")]])
    with pytest.raises(UnsupportedError, match="paths of word lattices"):
        crf.predict(X, decode=decode)


COST = 0.3  # of a span that is chosen


@pytest.mark.parametrize("scheme", SCHEMES)
def test_likely_spans_gain_most_in_each_sequence(scheme: str) -> None:
    """Σ (probability − 0.3) over the spans of a label sequence, by the enumeration of all of them."""
    crf, new = model(scheme)
    found = crf.predict(new, decode="spans")
    for x, labels in zip(new, found, strict=True):
        mass = Counter[tuple[Any, ...]]()  # the probability of each span
        sequences = every(crf, x)
        for y, p in sequences.items():
            mass.update(dict.fromkeys((tuple(s)[:3] for s in spans_of(list(y), scheme)), p))

        def gain(y: Any, mass: Counter[tuple[Any, ...]] = mass) -> float:
            return sum(mass[tuple(s)[:3]] - COST for s in spans_of(list(y), scheme))

        assert gain(labels) == pytest.approx(max(map(gain, sequences)))
    assert any(found != crf.predict(new, decode=other) for other in ("viterbi", "f1"))
    assert crf.predict_spans(new, decode="spans") == [crf.predict_spans([x], decode="spans")[0] for x in new]


def test_likely_spans_do_not_depend_on_other_sequences() -> None:
    crf, new = model("bio")
    assert crf.predict(new, decode="spans") == [crf.predict([x], decode="spans")[0] for x in new]
    assert crf.predict(new, decode="f1") != [crf.predict([x], decode="f1")[0] for x in new]


def test_a_model_has_a_decoding_of_its_own(tmp_path: Path) -> None:
    crf, new = model("bio")
    assert (crf.decode, crf.decode_) == ("viterbi", "viterbi")
    gold = crf.predict(new, decode="viterbi")
    crf.decode = "spans"
    assert crf.predict(new) == crf.predict(new, decode="spans") != gold
    assert crf.score(new, gold) == crf.score(new, gold, decode="spans") < 1.0
    crf.save(tmp_path / "spans.crf")
    loaded = crfkit.load(tmp_path / "spans.crf")
    assert (loaded.decode, loaded.predict(new)) == ("spans", crf.predict(new))


@pytest.mark.parametrize(
    ("labels", "expected"), [(["B-P", "I-P", "O"], "spans"), (["PER", "PER", "O"], "viterbi")]
)
def test_auto_is_about_the_labels(labels: list[str], expected: str) -> None:
    crf = CRF(features="names").fit([["Ann", "Lee", "slept"]], [labels])
    assert (crf.decode, crf.decode_) == ("auto", expected)
    assert (
        CRF(features="names", decode="viterbi").fit([["Ann", "Lee", "slept"]], [labels]).decode_ == "viterbi"
    )
    assert len(crf.predict([["Ann", "slept"]])[0]) == 2


@pytest.mark.parametrize("decode", ["marginal", "f1", "best", 1])
def test_what_no_model_decodes_by(decode: Any) -> None:
    X, y = corpus()
    with pytest.raises(ArgumentError, match="expected one of 'viterbi', 'spans', 'auto'"):
        CRF(decode=decode).fit(X, y)
    crf = CRF().fit(X, y).set_params(decode=decode)
    with pytest.raises(ArgumentError, match="expected one of 'viterbi', 'spans', 'auto'"):
        crf.predict(X)
