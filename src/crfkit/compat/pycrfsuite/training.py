"""A training run as CRFsuite would do it, and its log."""

import operator
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s
from crfkit.compat.pycrfsuite.calibration import calibrate
from crfkit.compat.pycrfsuite.heldout import HeldOut
from crfkit.compat.pycrfsuite.instances import Examples, Instances, feature_map
from crfkit.compat.pycrfsuite.parameters import ALGORITHMS, UNLIMITED
from crfkit.features import FeatureMap, MergedFeatures
from crfkit.models import choose_objective
from crfkit.objective import Loss, Objective
from crfkit.optimizers import (
    AROW,
    LBFGS,
    SGD,
    AveragedPerceptron,
    Outcome,
    PassiveAggressive,
    Step,
    StopReason,
)

Say = Callable[[str], None]

MOST_PASSES = 100  # of l2sgd: its rate falls to 0 over the passes it is given
_TITLES = {
    "averaged-perceptron": "Averaged perceptron",
    "passive-aggressive": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}
_LOG_NAMES = {"period": "stop", "max_linesearch": "linesearch.max_iterations"}
_ENDINGS = {  # of L-BFGS, as CRFsuite's log says them
    StopReason.CALLBACK: "resulted in convergence",
    StopReason.NO_CHANGE: "terminated with the stopping criteria",
    StopReason.MAX_ITERATIONS: "terminated with the maximum number of iterations",
}


class Learned(NamedTuple):
    """The result of a training run."""

    feature_map: FeatureMap
    weights: Float64s  # [D]


class Training:
    """One training run: the data, an algorithm and its parameters; `say` is called with each message of the log."""

    def __init__(
        self, instances: Instances, algorithm: str, params: dict[str, Any], say: Say, n_threads: int
    ) -> None:
        self._instances = instances
        self._algorithm = algorithm
        self._params = params
        self._say = say
        self._n_threads = n_threads
        self._labels = list(instances.label_ids)
        self._held_out: HeldOut | None = None
        self._last = (0.0, 0.0, np.zeros(0))  # seconds, passes and weights of the iteration before

    def run(self, holdout: int) -> Learned | None:
        """Train on all groups but `holdout`, and report on that one after each iteration; None where no label exists."""
        if holdout >= 0:
            self._say(f"Holdout group: {holdout + 1}\n")
            self._say("\n")
        examples = self._instances.without(holdout)
        built = self._generate_features(examples)
        if built is None:
            self._say("There is no data to train on\n")
            self._say(f"Total seconds required for training: {0.0:.3f}\n")
            self._say("\n")
            return None
        held_out = self._instances.only(holdout) if holdout >= 0 else None
        if held_out is not None and held_out.dataset.n_sequences:
            self._held_out = HeldOut(held_out, built, self._labels, self._n_threads)
        began = perf_counter()
        self._last = (0.0, 1.0, np.zeros(built.n_weights))  # the start took one pass
        minimize = {"lbfgs": self._lbfgs, "l2sgd": self._l2sgd}.get(self._algorithm, self._online)
        outcome = minimize(examples, built)
        if outcome.reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        self._say(f"Total seconds required for training: {perf_counter() - began:.3f}\n")
        self._say("\n")
        return Learned(built, outcome.weights)

    def _generate_features(self, examples: Examples) -> FeatureMap | None:
        """The features; None where no label exists."""
        params = self._params
        began = perf_counter()
        for line in (
            "Feature generation\n",
            "type: CRF1d\n",
            f"feature.minfreq: {params['feature.minfreq']:f}\n",
            f"feature.possible_states: {params['feature.possible_states']:d}\n",
            f"feature.possible_transitions: {params['feature.possible_transitions']:d}\n",
        ):
            self._say(line)
        built = None
        if self._labels:
            built = feature_map(
                examples,
                len(self._instances.vocabulary),
                len(self._labels),
                minfreq=params["feature.minfreq"],
                possible_states=params["feature.possible_states"],
                possible_transitions=params["feature.possible_transitions"],
            )
        for percent in range(0, 101, 2):
            self._say("." if percent % 10 else str(percent // 10))
        self._say("\n")
        self._say(f"Number of features: {0 if built is None else built.n_weights}\n")
        self._say(f"Seconds required: {perf_counter() - began:.3f}\n")
        self._say("\n")
        return built

    def _lbfgs(self, examples: Examples, built: FeatureMap) -> Outcome:
        params = self._params
        names = [name for name in ("c1", "c2", "num_memories", *params) if not name.startswith("feature.")]
        self._tell_settings(
            "L-BFGS optimization", {_LOG_NAMES.get(name, name): params[name] for name in names}
        )

        def loss(merged: MergedFeatures | None) -> Loss:
            if merged is None:
                return built.loss(*examples, n_threads=self._n_threads)
            return merged.feature_map.loss(merged.dataset, examples.annotation, n_threads=self._n_threads)

        start = np.zeros(built.n_weights)
        merged = MergedFeatures.of(built, examples.dataset)
        objective = choose_objective(loss, merged, start, l1=params["c1"], l2=2.0 * params["c2"])
        optimizer = LBFGS(
            max_iterations=max(1, params["max_iterations"] or UNLIMITED),
            tolerance=0.0,
            memory=_memory(params["num_memories"]),
            change=params["delta"],
            period=max(1, params["period"]),
        )

        def tell(step: Step) -> bool:
            norm, error = float(np.linalg.norm(step.weights)), step.gradient_norm
            _, passes, before = self._last
            self._tell_iteration(
                "Iteration",
                step,
                {
                    "Loss": f"{step.objective:f}",
                    "Feature norm": f"{norm:f}",
                    "Error norm": f"{error:f}",
                    "Active features": str(np.count_nonzero(step.weights)),
                    "Line search trials": str(max(1, round(step.passes - passes))),
                    "Line search step": f"{float(np.linalg.norm(step.weights - before)):f}",
                },
            )
            return bool(error < params["epsilon"] * max(1.0, norm))

        outcome: Outcome = objective.minimize(optimizer, start, callback=tell, n_threads=self._n_threads)
        self._say(f"L-BFGS {_ENDINGS.get(outcome.reason, f'terminated: {outcome.reason}')}\n")
        return outcome

    def _l2sgd(self, examples: Examples, built: FeatureMap) -> Outcome:
        params = self._params
        names = ("c2", "max_iterations", "period", "delta")
        self._tell_settings("Stochastic Gradient Descent (SGD)", {name: params[name] for name in names})
        objective = Objective(built.loss(*examples, n_threads=self._n_threads), l2=2.0 * params["c2"])
        calibration = {name: value for name, value in params.items() if name.startswith("calibration.")}
        calibration["calibration.samples"] = int(params["calibration.samples"])
        self._tell_settings("Calibrating the learning rate (eta)", calibration)
        rate = calibrate(objective, params, self._say)
        self._say("\n")
        losses: list[float] = []

        def tell(step: Step) -> bool:
            self._tell_iteration(
                "Epoch",
                step,
                {
                    "Loss": f"{step.objective:f}",
                    "Feature L2-norm": f"{float(np.linalg.norm(step.weights)):f}",
                    "Total number of feature updates": str(step.iteration * objective.n_sequences),
                },
            )
            losses.append(step.objective)
            fell = losses[-1 - params["period"]] - losses[-1] if len(losses) > params["period"] else np.inf
            return bool(fell < params["delta"] * abs(losses[-1]))

        passes = min(max(params["max_iterations"], 0), MOST_PASSES)
        outcome = SGD(passes, rate).minimize(objective, np.zeros(built.n_weights), callback=tell)
        self._say(f"SGD terminated: {outcome.reason}\n")
        return outcome

    def _online(self, examples: Examples, built: FeatureMap) -> Outcome:
        params, passes = self._params, max(self._params["max_iterations"], 0)
        optimizer = self._learner(passes)
        # Where every label sequence is right, AROW changes nothing more; the others still average.
        ends = operator.le if self._algorithm == "arow" else operator.lt
        self._tell_settings(
            _TITLES[self._algorithm],
            {name: value for name, value in params.items() if not name.startswith("feature.")},
        )
        objective = Objective(built.loss(*examples, n_threads=self._n_threads))

        def tell(step: Step) -> bool:
            norm = float(np.linalg.norm(step.weights))
            self._tell_iteration(
                "Iteration", step, {"Loss": f"{step.objective:f}", "Feature norm": f"{norm:f}"}
            )
            return bool(ends(step.objective, params["epsilon"] * max(objective.n_sequences, 1)))

        return optimizer.minimize(objective, np.zeros(built.n_weights), callback=tell)

    def _learner(self, passes: int) -> AveragedPerceptron | PassiveAggressive | AROW:
        params = self._params
        if self._algorithm == "averaged-perceptron":
            return AveragedPerceptron(passes)
        if self._algorithm == "arow":
            return AROW(passes, variance=params["variance"], gamma=params["gamma"])
        return PassiveAggressive(
            passes,
            variant=params["type"],
            aggressiveness=params["c"],
            error_sensitive=params["error_sensitive"],
            average=params["averaging"],
        )

    def _tell_settings(self, title: str, settings: dict[str, Any]) -> None:
        self._say(f"{title}\n")
        for name, value in settings.items():
            self._say(f"{name}: {_format(value)}\n")
        self._say("\n")

    def _tell_iteration(self, word: str, step: Step, numbers: dict[str, str]) -> None:
        self._say(f"***** {word} #{step.iteration} *****\n")
        for name, number in numbers.items():
            self._say(f"{name}: {number}\n")
        self._say(f"Seconds required for this iteration: {step.seconds - self._last[0]:.3f}\n")
        if self._held_out is not None:
            for line in self._held_out.report(step.weights):
                self._say(line)
        self._say("\n")
        self._last = (step.seconds, step.passes, step.weights)


def _memory(num_memories: int) -> int | None:
    """The pairs of L-BFGS that `num_memories` asks for; its default leaves their number to the optimizer."""
    return None if num_memories == ALGORITHMS["lbfgs"]["num_memories"].default else max(1, num_memories)


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:f}"
    return str(int(value)) if isinstance(value, bool) else str(value)
