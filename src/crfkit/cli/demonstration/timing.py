"""One figure beside python-crfsuite, where it is installed: the same features, penalty and number of iterations."""

import warnings
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from crfkit.cli.demonstration.sample import Labelled
from crfkit.cli.demonstration.screen import CHANGED, PALE, Screen

if TYPE_CHECKING:
    from crfkit.models import CRF

L2 = 1.0
Features = list[list[list[str]]]


class Timing(NamedTuple):
    """A training run: from Python lists to a model file."""

    seconds: float
    objective: float  # −log-likelihood + ½·l2·|w|² after the last iteration
    n_iterations: int


def compare(screen: Screen, tagger: "CRF", data: Labelled, n_iterations: int) -> tuple[Timing, Timing] | None:
    """Train both on the tagger's features; python-crfsuite's figures and ours, or None where it is not installed."""
    if find_spec("pycrfsuite") is None:
        screen.say(
            ("python-crfsuite is not installed here: `pip install python-crfsuite` adds a comparison", PALE)
        )
        return None
    X = feature_lists(tagger, data.words)
    with TemporaryDirectory() as folder:
        with screen.training("python-crfsuite on the same features"):
            rival = train_rival(X, data.labels, n_iterations, Path(folder) / "rival.crfsuite")
        ours = train_ours(X, data.labels, n_iterations, Path(folder) / "ours.crf")
    screen.say(
        f"{n_iterations} iterations of L-BFGS on the tagger's features, l2 = {L2:g}, one thread, lists in, model file out:"
    )
    screen.say(
        f"python-crfsuite {version('python-crfsuite')}: {rival.seconds:.1f} s (objective {rival.objective:,.1f}); "
        f"crfkit: {ours.seconds:.1f} s (objective {ours.objective:,.1f}), ",
        (f"{rival.seconds / ours.seconds:.1f} times as fast", CHANGED),
    )
    return rival, ours


def feature_lists(crf: "CRF", X: list[list[str]]) -> Features:
    """The features that a model's template makes, as lists of strings."""
    names, found = crf.encoder_.vocabulary.names(), crf.encoder_.encode(X)
    ids, begins = found.states.ids.tolist(), found.states.position_ptr.tolist()
    positions = [[names[k] for k in ids[begin:end]] for begin, end in pairwise(begins)]
    ptr = found.sequence_ptr.tolist()
    return [positions[begin:end] for begin, end in pairwise(ptr)]


def train_rival(X: Features, y: list[list[str]], n_iterations: int, path: Path) -> Timing:
    """python-crfsuite; its c2·|w|² is ½·l2·|w|²."""
    import pycrfsuite

    settings = {"c1": 0.0, "c2": L2 / 2, "max_iterations": n_iterations, "feature.possible_transitions": True}
    began = perf_counter()
    trainer = pycrfsuite.Trainer("lbfgs", settings, verbose=False)
    for positions, labels in zip(X, y, strict=True):
        trainer.append(positions, labels)
    trainer.train(str(path))
    seconds = perf_counter() - began
    last = trainer.logparser.last_iteration
    return Timing(seconds, float(last["loss"]), int(last["num"]))


def train_ours(X: Features, y: list[list[str]], n_iterations: int, path: Path) -> Timing:
    """crfkit, on the same model: without weights at the ends of a sequence."""
    from crfkit.models import CRF
    from crfkit.optimizers import LBFGS
    from crfkit.structures import Chain

    optimizer = LBFGS(max_iterations=n_iterations)
    began = perf_counter()
    crf = CRF(Chain(start=False, end=False), optimizer=optimizer, l2=L2, n_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the limit on iterations is meant
        crf.fit(X, y)
    crf.save(path)
    seconds = perf_counter() - began
    return Timing(seconds, crf.history_[-1].objective, crf.history_[-1].iteration)
