"""`CRF(l2="auto")`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, SGD, AveragedPerceptron, Bigrams, Chain, Checkpoint, Patterns, Segments
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.models.training import held_out_split
from crfkit.models.training.penalty_search import GRID, PASSES
from crfkit.structures import END, START, Lattice
from tests.models.test_costs import corpus


def noisy(n: int = 60) -> tuple[list[Any], list[Any]]:
    """Labels that follow from one feature most of the time, beside many that say nothing."""
    random = np.random.default_rng(3)
    X, y = [], []
    for _ in range(n):
        bits = random.integers(2, size=4)
        X.append([[f"b{bit}", *(f"x{k}" for k in random.integers(200, size=3))] for bit in bits])
        y.append([str(bit if random.random() < 0.93 else 1 - bit) for bit in bits])
    return X, y


def held_out_likelihoods(X: Any, y: Any, dev: Any = None) -> dict[float, float]:
    """The log-likelihood of the last fifth after training on the rest at the best scale, by strength."""
    first = len(y) - (0 if dev else len(y) // 5)
    dev = dev or (X[first:], y[first:])
    found = {}
    for l2 in GRID:
        crf = CRF(l2=l2).fit(X[:first], y[:first])
        found[l2] = best_scaled_likelihood(crf, *dev)
    return found


def best_scaled_likelihood(crf: CRF, X: Any, y: Any) -> float:
    """The mean log-probability of y under the weights times the best number up to 1, by enumeration of all labels."""
    scales, total = np.geomspace(0.05, 1, 500), 0.0
    for x, labels in zip(X, y, strict=True):
        listed = crf.predict_nbest([x], len(crf.classes_) ** len(x))[0]
        scores = (
            np.log([p for p, _ in listed])[:, None] * scales
        )  # up to log Z, which is the same for all of them
        own = [tuple(found) for _, found in listed].index(tuple(labels))
        total = total + scores[own] - np.logaddexp.reduce(scores)
    return float(np.max(total)) / len(y)


def in_blocks(X: Any) -> Any:
    """The same features, in the blocks "b" and "x"."""
    return [[[f"{name[0]}={name[1:]}" for name in position] for position in x] for x in X]


def best_of_block(X: Any, y: Any, block: str, others: dict[str, float]) -> float:
    """The strongest of a block that comes near the highest likelihood of the last fifth, by training with each one."""
    first = len(y) - len(y) // 5
    found = {}
    for strength in GRID:
        crf = CRF(l2={**others, block: strength}).fit(X[:first], y[:first])
        found[strength] = best_scaled_likelihood(crf, X[first:], y[first:])
    return next(strength for strength in GRID if found[strength] >= 1.01 * max(found.values()))


@pytest.mark.parametrize("block", ["b", "x"])
def test_the_strength_of_a_block(block: str) -> None:
    X, y = noisy()
    X = in_blocks(X)
    crf = CRF(l2={"default": 2.0, block: "auto"}).fit(X, y)
    assert crf.l2_ == {"default": 2.0, block: best_of_block(X, y, block, {"default": 2.0})}
    assert crf.l2 == {"default": 2.0, block: "auto"}
    assert {trial.block for trial in crf.l2_search_.trials} == {block}
    assert crf.l2_search_.reason.startswith(f"l2 {block} {crf.l2_[block]:g} made 12 held-out sequences")
    assert np.array_equal(crf.weights_, CRF(l2=crf.l2_).fit(X, y).weights_)


def test_strengths_of_several_blocks_are_found_one_after_the_other() -> None:
    X, y = noisy()
    X = in_blocks(X)
    crf = CRF(l2={"default": "auto", "x": "auto"}).fit(X, y)
    x = best_of_block(X, y, "x", {"default": 1.0})
    assert crf.l2_ == {"default": best_of_block(X, y, "default", {"x": x}), "x": x}
    assert list(dict.fromkeys(trial.block for trial in crf.l2_search_.trials)) == ["x", "default"]


def test_methods_that_make_passes_make_few_of_them() -> None:
    X, y = noisy()
    crf = CRF(l2={"x": "auto"}, optimizer=SGD(7, rate=0.1)).fit(in_blocks(X), y)
    assert crf.n_iter_ == 7
    assert {trial.n_iterations for trial in crf.l2_search_.trials} == {PASSES}


@pytest.mark.filterwarnings("ignore::crfkit.models.SequencesSkipped")
def test_held_out_sequences_that_the_dictionary_excludes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that may have A alone, twice in a row, where bigrams do not allow that: the sequences do not count."""
    pairs: list[Any] = [(["a", "b"], ["A", "B"]), (["b", "a", "b"], ["B", "A", "B"])] * 18
    ends = [(START, "A"), (START, "B"), ("A", END), ("B", END)]
    settings: dict[str, Any] = {"features": "w=%x[0,0]\nB", "tag_dictionary": True, "l2": "auto"}
    settings["structure"] = Chain(bigrams=Bigrams([("A", "B"), ("B", "A"), ("B", "B"), *ends]), unseen="skip")
    sums = []
    for given in (pairs, [*pairs, *[(["a", "a"], ["A", "A"])] * 2]):
        monkeypatch.setattr(held_out_split, "HELD_OUT", len(given) - 30)
        monkeypatch.setattr(held_out_split, "_SHARE", 1)
        search = CRF(**settings).fit([x for x, _ in given], [y for _, y in given]).l2_search_
        assert search.n_trained == 30
        sums.append([trial.log_likelihood * search.n_held_out for trial in search.trials])
    assert sums[0] == pytest.approx(sums[1])


def test_a_block_that_no_feature_belongs_to() -> None:
    X, y = noisy()
    with pytest.raises(ArgumentError, match="l2 names the block 'near', which no feature belongs to"):
        CRF(l2={"near": "auto"}).fit(X, y)
    with pytest.raises(ArgumentError, match="the blocks are: B, end, start, transitions, w, and 'default'"):
        CRF(features="# Words\n\nw=%x[0,0]\nB\n", l2={"near": 1.0}).fit([["a"]] * 2, [["A"], ["B"]])
    with pytest.raises(ArgumentError, match=r"l2\['b0'\] is 'best', expected a number.*; 'auto' in place"):
        CRF(l2={"b0": "best"}).fit(X, y)


@pytest.mark.parametrize("with_dev", [False, True])
def test_the_strength_that_makes_held_out_data_most_likely(with_dev: bool) -> None:
    X, y = noisy()
    dev = noisy(90) if with_dev else None
    dev = (dev[0][60:], dev[1][60:]) if dev else None
    crf = CRF(l2="auto").fit(X, y, dev=dev)
    expected = held_out_likelihoods(X, y, dev)
    highest = max(expected.values())
    assert crf.l2_ == next(
        l2 for l2 in GRID if expected[l2] >= 1.01 * highest
    )  # the strongest that comes near
    assert crf.l2_ not in (GRID[0], GRID[-1])
    for trial in crf.l2_search_.trials:
        assert isinstance(trial.l2, float)
        assert trial.log_likelihood == pytest.approx(expected[trial.l2], rel=2e-3)
    assert len(crf.l2_search_.trials) < len(GRID)
    n_trained = 60 if with_dev else 48
    assert (crf.l2_search_.n_trained, crf.l2_search_.n_held_out) == (n_trained, 30 if with_dev else 12)
    assert crf.l2_search_.reason.startswith(
        f"l2 {crf.l2_:g} made {crf.l2_search_.n_held_out} held-out sequences"
    )


def test_the_model_is_that_of_the_strength_that_was_found() -> None:
    X, y = noisy()
    crf = CRF(l2="auto", n_threads=3).fit(X, y)
    assert crf.l2 == "auto"
    assert isinstance(crf.l2_, float)
    assert np.array_equal(crf.weights_, CRF(l2=crf.l2_, n_threads=1).fit(X, y).weights_)
    assert CRF(l2=0.5).fit(X, y).l2_ == 0.5


def test_files_and_pickles_have_the_strength(tmp_path: Path) -> None:
    X, y = noisy()
    crf = CRF(l2="auto").fit(X, y)
    crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert (loaded.l2, loaded.l2_) == (crf.l2_, crf.l2_)
    copied = pickle.loads(pickle.dumps(crf))
    assert (copied.l2, copied.l2_) == ("auto", crf.l2_)


def test_a_resumed_run_finds_the_same(tmp_path: Path) -> None:
    X, y = noisy()
    expected, path = CRF(l2="auto").fit(X, y), tmp_path / "run"
    CRF(l2="auto").fit(X, y, checkpoint=Checkpoint(path, every=1), callback=lambda step: step.iteration == 2)
    resumed = CRF(l2="auto").fit(X, y, checkpoint=Checkpoint(path, resume=True))
    assert np.array_equal(resumed.weights_, expected.weights_)


@pytest.mark.parametrize("structure", [None, Patterns(["B-PER I-PER O"]), Segments()])
@pytest.mark.parametrize("options", [{}, {"optimizer": SGD(5, rate=0.1)}])
def test_structures_costs_weights_and_allowed_labels(structure: Any, options: Any) -> None:
    X, y = corpus()
    crf = CRF(**({} if structure is None else {"structure": structure}), **options, l2="auto")
    allowed = [[None] * len(labels) for labels in y]
    crf.fit(X, y, sample_weight=[1.0, 2.0] * 30, allowed=allowed, costs=1.0)
    assert crf.l2_ in GRID


def test_labels_of_held_out_sequences_that_are_new() -> None:
    """They are taken for unknown in the search, and are labels of the model."""
    X, y = noisy()
    y[-1] = ["new"] * 4
    assert "new" in CRF(l2="auto").fit(X, y).classes_


@pytest.mark.parametrize("costs", [{("new", "0"): 2.0}, np.ones((3, 3)) - np.eye(3)])
def test_costs_of_labels_that_only_held_out_sequences_have(costs: Any) -> None:
    X, y = noisy()
    y[-1] = ["new"] * 4
    crf = CRF(l2="auto").fit(X, y, costs=costs)
    assert np.array_equal(crf.weights_, CRF(l2=crf.l2_).fit(X, y, costs=costs).weights_)


def test_sets_of_held_out_sequences_with_labels_that_are_new() -> None:
    """Of such a set, the labels that are known count."""
    X, y = noisy()
    y[-2], y[-1] = [{"0"}] * 4, [{"0", "1"}] * 4
    expected = CRF(l2="auto").fit(X, y).l2_search_.trials
    y[-2], y[-1] = [{"0", "new"}] * 4, [frozenset({"0", "1", "new"})] * 4
    assert CRF(l2="auto").fit(X, y).l2_search_.trials == expected


def test_a_fit_without_a_search_has_none() -> None:
    X, y = noisy()
    crf = CRF(l2="auto").fit(X, y).set_params(l2=1.0).fit(X, y)
    assert not hasattr(crf, "l2_search_")


def test_partial_fit_keeps_the_strength() -> None:
    X, y = noisy()
    crf = CRF(l2="auto").partial_fit(X, y)
    found = crf.l2_
    assert found in GRID
    assert crf.partial_fit(X[:3], y[:3]).l2_ == found


def test_time_budget_counts_the_search() -> None:
    X, y = noisy()
    crf = CRF(l2="auto").fit(X, y, time_budget=1e-6)
    assert crf.n_iter_ <= 1


@pytest.mark.parametrize(
    ("crf", "kind", "message"),
    [
        (
            CRF(l2="best"),
            ArgumentError,
            "l2 is 'best', expected a number, a dict of block names to numbers, or 'auto'",
        ),
        (CRF(l2="auto", optimizer=AveragedPerceptron()), UnsupportedError, "which has no penalty"),
        (CRF(Lattice(), l2="auto"), UnsupportedError, "which .*Lattice"),
    ],
)
def test_what_has_no_strength(crf: CRF, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        crf.fit(*noisy())


def test_too_few_sequences() -> None:
    X, y = noisy(9)
    with pytest.raises(ArgumentError, match="needs at least 10 sequences, got 9"):
        CRF(l2="auto").fit(X, y)
    with pytest.raises(ValueError, match="9 sequences but y has 8"):
        CRF(l2="auto").fit(X, y[:8])


def test_pieces_from_all_over_the_data_are_held_out() -> None:
    """Of a file that joins two kinds of text, both are."""
    trained, held_out = held_out_split._choose(1003, None)
    assert held_out == [i for end in (200, 401, 601, 802, 1003) for i in range(end - 40, end)]
    assert trained == [i for i in range(1003) if i not in held_out]
    trained, held_out = held_out_split._choose(50_000, None)
    assert (len(trained), len(held_out), held_out[199:201]) == (2000, 1000, [9999, 19800])
    assert not set(trained) & set(held_out)
    assert held_out_split._choose(100, None)[1] == list(range(80, 100))
    assert held_out_split._choose(100, ([], [])) == (list(range(100)), [])


def test_an_empty_dev_set_is_no_dev_set() -> None:
    X, y = noisy()
    assert CRF(l2="auto").fit(X, y, dev=([], [])).l2_ == CRF(l2="auto").fit(X, y).l2_
