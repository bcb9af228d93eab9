"""Units of labels, the choice of patterns on samples, and the rounds of growth."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import crfkit
from crfkit import CRF, Growth, Patterns, StopReason
from crfkit.models import Progress, TrainingInterrupted
from crfkit.models.patterns.choice import Limits, choose_candidates
from crfkit.models.patterns.samples import Counts, SampledSequences, candidate_counts, label_sequences
from crfkit.models.training.training_set import Examples
from crfkit.structures import LabelUnits, Pattern, places

# ---- units


def counted(text: str, labels: list[str], run: tuple[int, ...]) -> int:
    """Intervals of a label sequence that a pattern matches, by its automaton, one interval after the other."""
    automaton = Pattern(text).automaton(labels)
    assert automaton is not None
    found = 0
    for begin in range(len(run)):
        state = 0
        for label in run[begin:]:
            after = [to for bits, to in automaton.arcs[state] if bits >> label & 1]
            if not after:
                break
            state = after[0]
            found += automaton.accepts[state]
    return found


@pytest.mark.parametrize(
    "labels",
    [
        ["B-X", "I-X", "B-Y", "O"],
        ["B-X", "E-X", "I-X", "O", "S-X"],
        ["B", "I", "O"],
        ["U-X", "L-X", "B-X", "I-X"],
        ["a", "b", "PRP$"],
    ],
)
def test_runs_of_units_match_as_often_as_they_are_counted(labels: list[str]) -> None:
    units = LabelUnits.of(labels)
    valid = all_units = 0
    for run in itertools.product(range(len(labels)), repeat=5):
        ids, ptr = np.array(run, np.int32), np.array([0, 5])
        kinds, unit_ptr = units.split(ids, ptr)
        assert unit_ptr.tolist() == [0, len(kinds)]
        all_units += 1
        if (kinds < 0).any():
            continue
        valid += 1
        if any(not units.text([kind, kind, kind]) for kind in kinds.tolist()):
            continue
        for length in (2, 3):
            runs, which, _ = places(kinds, unit_ptr, length)
            for i, kinds_of_run in enumerate(runs.tolist()):
                text = units.text(kinds_of_run)
                if _whole(labels, run):
                    assert counted(text or "", labels, run) == np.count_nonzero(which == i), (text, run)
    assert 0 < valid <= all_units


def _whole(labels: list[str], run: tuple[int, ...]) -> bool:
    """Whether spans of schemes with closing letters are closed: one that is not is no unit of the patterns."""
    letters = "".join(labels[label][0] for label in run)
    if not {"E", "L"} & {label[0] for label in labels}:
        return True
    closed = letters.replace("U", "S").replace("L", "E")
    while closed and closed[0] in "SO":
        closed = closed[1:]
    while "BE" in closed or "BIE" in closed or "BIIE" in closed or "BIIIE" in closed:
        for span in ("BIIIE", "BIIE", "BIE", "BE"):
            closed = closed.replace(span, "")
    return not set(closed) - set("SO")


def test_units_begin_where_sequences_do() -> None:
    units = LabelUnits.of(["B-X", "I-X", "O"])
    kinds, ptr = units.split(np.array([0, 1, 1, 2, 1, 0, 0, 2, 2], np.int32), np.array([0, 2, 2, 9]))
    assert kinds.tolist() == [0, -1, 1, -1, 0, 0, 1]
    assert ptr.tolist() == [0, 1, 1, 7]
    assert units.text([0, 0, 1]) == "B-X|I-X B-X I-X* O"
    assert LabelUnits.of(["B-X", "S-X"]).text([0, 0, 0]) == "S-X S-X B-X|S-X"
    assert LabelUnits.of(["B-X", "E-Y"]).text([0, 0, 0]) is None


# ---- the choice


def dense(seed: int) -> tuple[SampledSequences, Counts, np.ndarray]:
    """Some label sequences of 6 sequences, and counts of 5 candidates in them, F [R, C]."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 5, size=6)
    sequence = np.repeat(np.arange(6), sizes)
    share = random.random(len(sequence))
    share /= np.bincount(sequence, share)[sequence]
    right = np.concatenate([np.arange(size) == 0 for size in sizes])
    F = random.integers(0, 3, size=(len(sequence), 5)).astype(float)
    F[:, 4] = F[:, 1]  # says the same
    rows, columns = np.nonzero(F)
    found = SampledSequences(
        np.zeros(len(sequence), np.int32),
        np.arange(len(sequence) + 1),
        sequence,
        share,
        right,
        random.random(6) * 5,
    )
    return found, Counts(list("abcde"), rows, columns, F[rows, columns]), F


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_that_of_brute_force(seed: int) -> None:
    found, counts, F = dense(seed)
    limits = Limits(most=3, min_gain=1e-6, min_count=0, l1=0.0, l2=0.3)
    joined: list[int] = []
    for _ in range(3):
        shares = _best_shares(found, F[:, joined], limits.l2)
        gains = np.full(5, -1.0)
        for c in set(range(5)) - set(joined):
            slope = variance = 0.0
            for n in range(6):
                rows = found.sequence == n
                mean = shares[rows] @ F[rows, c]
                slope += found.weight[n] * (mean - F[rows & found.right, c][0])
                variance += found.weight[n] * (shares[rows] @ F[rows, c] ** 2 - mean**2)
            gains[c] = 0.5 * slope**2 / (variance + limits.l2)
        joined.append(int(np.argmax(gains.round(9))))
    assert choose_candidates(found, counts, (), limits) == ["abcde"[c] for c in joined]
    assert not {1, 4} <= set(joined)
    assert set(choose_candidates(found, counts, "abc", limits)) <= {"d", "e"}
    assert choose_candidates(found, counts, (), limits._replace(min_gain=1e6)) == []
    assert choose_candidates(found, counts, (), limits._replace(l1=1e6)) == []
    assert choose_candidates(found, counts, (), limits._replace(min_count=10**6)) == []


def _best_shares(found: SampledSequences, F: np.ndarray, l2: float) -> np.ndarray:
    """The shares of the label sequences where the weights of some candidates are the best ones."""

    def objective(theta: np.ndarray) -> float:
        raw = np.bincount(found.sequence, found.share * np.exp(F @ theta))
        right = F[found.right] @ theta
        return float(found.weight @ (np.log(raw) - right) + 0.5 * l2 * theta @ theta)

    theta = minimize(objective, np.zeros(F.shape[1]), tol=1e-12).x if F.shape[1] else np.zeros(0)
    raw: np.ndarray = found.share * np.exp(F @ theta)
    return raw / np.bincount(found.sequence, raw)[found.sequence]


def test_samples_count_as_the_model_expects() -> None:
    random = np.random.default_rng(0)
    y = [list(random.choice(["A", "C"], p=[0.7, 0.3], size=4)) for _ in range(300)]
    y[7][2] = None
    X = [[{"bias": True}] * 4 for _ in y]
    crf = CRF(n_threads=1).fit(X, y)
    found = label_sequences(crf._model, crf.weights_, Examples(X, y, None, None), None, 1)
    counts = candidate_counts(found, crf._model, Growth(order=2, units=3))
    assert np.allclose(np.bincount(found.sequence, found.share), 1)
    assert (np.bincount(found.sequence, found.right) == 1).all()
    names = counts.names
    assert {"A A C", "A C+ A"} <= set(names)
    entries = counts.candidate == names.index("A A C")
    rows = counts.label_sequence[entries]
    expected = found.share[rows] @ counts.times[entries]
    exact = sum(
        np.exp(crf.log_probability(X[:1], [list(labels)])[0]) * "".join(labels).count("AAC")
        for labels in itertools.product("AC", repeat=4)
    )
    assert expected / len(found.weight) == pytest.approx(exact, abs=0.05)
    observed = sum("".join(labels).count("AAC") for labels in y if None not in labels)
    assert found.right[rows] @ counts.times[entries] == observed


# ---- growth


def spans(n: int) -> tuple[list[list[dict[str, str]]], list[list[str]]]:
    """A span of X between two equal marks, however long it is; the first mark is plain, the last one is not."""
    random = np.random.default_rng(1)
    X, y = [], []
    for _ in range(n):
        mark, length = random.choice(["p", "q"]), int(random.integers(2, 6))
        X.append([{"w": mark}, *[{"w": "x"}] * length, {"w": "?"}])
        y.append([f"B-{mark}", "B-X", *["I-X"] * (length - 1), f"B-{mark}"])
    return X, y


def test_growth_finds_runs_of_units(tmp_path: Path) -> None:
    X, y = spans(80)
    crf = CRF(structure=Patterns(grow=Growth(order=2, min_gain=0.5)), n_threads=1).fit(X, y)
    assert {"B-p B-X I-X* B-p", "B-p B-X I-X* B-q"} & set(crf.pattern_names_)
    assert crf.predict(X) == y
    assert CRF(n_threads=1).fit(X, y).predict(X) != y
    assert crf.growth_[1].joined
    assert crf.growth_[1].n_states > crf.growth_[0].n_states == 4
    crf.save(tmp_path / "grown.crf")
    loaded = crfkit.load(tmp_path / "grown.crf")
    assert loaded.pattern_names_ == crf.pattern_names_
    assert loaded.structure == crf.structure
    assert loaded.predict(X) == y
    more = crf.partial_fit(X[:5], y[:5])
    assert more.pattern_names_ == loaded.pattern_names_
    assert more.predict(X) == y


def test_the_user_ends_growth() -> None:
    X, y = spans(80)
    seen: list[int] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress.iteration)
        return len(seen) == 3

    crf = CRF(structure=Patterns(grow=Growth(order=2, min_gain=0.5)), n_threads=1)
    crf.fit(X, y, callback=stop)
    assert len(seen) == 3
    assert crf.pattern_names_ == []
    assert len(crf.growth_) == 1

    def interrupt(progress: Progress) -> bool:
        raise KeyboardInterrupt

    with pytest.warns(TrainingInterrupted):
        crf.fit(X, y, callback=interrupt)
    assert crf.pattern_names_ == []
    assert len(crf.growth_) == 1


def test_growth_stays_within_its_states() -> None:
    X, y = spans(80)
    for structure in (
        Patterns(grow=Growth(order=2, min_gain=0.5, max_states=1.0)),
        Patterns(grow=Growth(order=2, min_gain=0.5), max_states=4),
    ):
        crf = CRF(structure=structure, n_threads=1).fit(X, y)
        assert crf.pattern_names_ == []


def test_ctrl_c_while_patterns_are_chosen_keeps_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = spans(80)

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("crfkit.models.patterns.growth.label_sequences", interrupt)
    crf = CRF(structure=Patterns(grow=Growth(order=2, min_gain=0.5)), n_threads=1)
    with pytest.warns(TrainingInterrupted):
        crf.fit(X, y)
    assert crf.stop_reason_ == StopReason.INTERRUPTED
    assert crf.n_iter_ > 0


def test_growth_goes_on_where_constraints_exclude_what_is_held_out() -> None:
    """The last sequence is held out, and has a bigram that no other one has."""
    X, y = spans(80)
    y[-1] = ["B-X", *["I-X"] * (len(X[-1]) - 2), "B-p"]
    structure = Patterns(grow=Growth(order=2, min_gain=0.5), bigrams="observed", unseen="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a sequence is skipped
        crf = CRF(structure=structure, n_threads=1).fit(X, y)
    assert all(np.isfinite(found.log_likelihood) for found in crf.growth_)
    assert crf.growth_[1].joined
