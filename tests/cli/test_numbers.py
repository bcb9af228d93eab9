"""Settings and values of features that no computer can work with: an error message, or the right answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import CRF, LBFGS, SAG, SGD
from crfkit.optimizers import DivergenceError, OptimizationError, Snapshot, Watch
from tests.cli.commands import complaint, run
from tests.models.small_corpus import corpus
from tests.oracles.problems import Problem, quadratic

pytestmark = pytest.mark.usefixtures("column_files")
HUGE = "A\tx:1e20\nB\tw=b\n\nB\tx:-1e20\nA\tx:1e20\n"


def test_a_minimisation_that_diverges() -> None:
    Path("huge.txt").write_text(HUGE)
    base = ("train", "huge.txt", "--attributes", "--model", "h.crf", "--quiet")
    assert complaint(*base, "--optimizer", "sgd", "--set", "rate=1e300") == (
        "crfkit: SGD diverged in pass 1; expected a rate below 1e+300."
    )
    assert complaint(*base, "--optimizer", "averaged_perceptron") == (
        "crfkit: AveragedPerceptron diverged in pass 2: the scores of a sequence left the range of numbers, "
        "expected smaller values of features"
    )
    for name in ("arow", "passive_aggressive", "lbfgs", "newton"):
        run(*base, "--optimizer", name)
        assert run("tag", "h.crf", "huge.txt").stdout == "A\nB\n\nB\nA\n\n"


def test_errors_of_optimizers_have_types() -> None:
    X, y = [[{"x": 1e20}, {"w": 1.0}], [{"x": -1e20}, {"x": 1e20}]], [["A", "B"], ["B", "A"]]
    for optimizer in (SGD(rate=1e300), "averaged_perceptron"):
        with pytest.raises(DivergenceError):
            CRF(optimizer=optimizer).fit(X, y)
    with pytest.raises(OptimizationError):
        CRF(optimizer=SAG(memory=1)).fit(*corpus())


def test_memory_for_more_pairs_than_there_are_iterations() -> None:
    run("train", "train.txt", "--model", "m.crf", "--set", "memory=1000000000", "--quiet")
    assert run("tag", "m.crf", "-", text="the\ndog\n").stdout == "the D\ndog N\n\n"


def test_any_number_of_pairs_is_kept_and_resumed() -> None:
    function, minimum = quadratic(1e2, 80, seed=0)
    saved: list[Snapshot] = []

    def found(memory: int, watch: Watch | None = None) -> npt.NDArray[np.float64]:
        optimizer = LBFGS(memory=memory, max_iterations=70, tolerance=0.0, change=0.0)
        return optimizer.minimize(Problem(function, 80), np.zeros(80), watch=watch).weights

    enough = found(70, Watch(save=saved.append, every=50))
    np.testing.assert_allclose(enough, minimum, atol=1e-3)
    np.testing.assert_array_equal(found(10**12), enough)
    np.testing.assert_array_equal(found(10**12, Watch(resume=saved[0])), enough)
    assert np.any(found(10) != enough)


def test_settings_that_ask_for_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*args: object, **kwargs: object) -> None:
        raise MemoryError("Unable to allocate 335. GiB")

    monkeypatch.setattr("crfkit.models.CRF.fit", exhaust)
    said = complaint("train", "train.txt", "--model", "m.crf", "--quiet")
    assert said == "crfkit: not enough memory (Unable to allocate 335. GiB)"
