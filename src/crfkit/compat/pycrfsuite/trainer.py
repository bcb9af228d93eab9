"""python-crfsuite's Trainer."""

from collections.abc import Callable
from functools import partial
from os import PathLike, fsdecode
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np

from crfkit import _core
from crfkit.compat.crfsuite_file import check_names, write_crfsuite, write_empty_crfsuite
from crfkit.compat.pycrfsuite._logparser import TrainLogParser
from crfkit.compat.pycrfsuite.instances import Instances
from crfkit.compat.pycrfsuite.parameters import ALGORITHMS, ALIASES, GRAPHICAL_MODEL, defaults
from crfkit.compat.pycrfsuite.training import Learned, Training
from crfkit.errors import InputError
from crfkit.models import assemble, check_writable, save_elsewhere

_FIRST_CODE = -(2**31)


class CRFSuiteError(Exception):
    """An error that CRFsuite has a number for."""

    _messages: ClassVar[dict[int, str]] = {
        _FIRST_CODE: "Unknown error occurred",
        _FIRST_CODE + 1: "Insufficient memory",
        _FIRST_CODE + 2: "Unsupported operation",
        _FIRST_CODE + 3: "Incompatible data",
        _FIRST_CODE + 4: "Internal error",
        _FIRST_CODE + 5: "Overflow",
        _FIRST_CODE + 6: "Not implemented",
    }

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(self._messages.get(code, "Unexpected error"))


class BaseTrainer:
    """Collects instances and trains a model of CRFsuite on them.

    algorithm : "lbfgs", "l2sgd", "ap", "pa" or "arow"
    params : parameters of the algorithm, as for `set_params`
    verbose : print the log while training
    """

    verbose: bool | None = None  # of a trainer whose own `__init__` does not say
    _instances: Instances
    _algorithm: str
    _params: dict[str, Any]

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        """A trainer that works even if the `__init__` of its class never calls this one's."""
        trainer = super().__new__(cls)
        trainer._instances = Instances()
        trainer._algorithm = "lbfgs"
        trainer._params = defaults("lbfgs")
        return trainer

    def __init__(
        self, algorithm: str | None = None, params: dict[str, Any] | None = None, verbose: bool = True
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    def message(self, message: str) -> None:
        """Receives the log, piece by piece; prints it if `verbose`. To be overridden."""
        if self.verbose:
            print(message, end="")

    def append(self, xseq: Any, yseq: Any, group: int = 0) -> None:
        """Add an instance: items (or an `ItemSequence`), as many labels, and a group for held-out evaluation."""
        if not isinstance(group, int | np.integer):
            raise TypeError("an integer is required")
        self._instances.append(xseq, yseq, int(group))

    def select(self, algorithm: str, type: str = GRAPHICAL_MODEL) -> None:
        """Choose the algorithm; its parameters are then the defaults."""
        name = ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS or type != GRAPHICAL_MODEL:
            raise ValueError(f"Bad arguments: algorithm={name!r}, type={type!r}")
        self._algorithm = name
        self._params = defaults(name)

    def train(self, model: str | bytes | PathLike[str], holdout: int = -1) -> None:
        """Train, and write the model file; no file for an empty name.

        `holdout` is a group whose instances are held out, and tagged after each iteration for the log.
        Without any items there is a model without labels, which tags empty sequences only.
        """
        for name in ("c1", "c2"):
            if self._params.get(name, 0.0) < 0:
                raise ValueError(f"{name} is {self._params[name]}, expected a number that is not negative")
        path = fsdecode(model)
        if path:  # before the work rather than after it
            check_writable(path)
            check_names(list(self._instances.label_ids), self._instances.vocabulary)
        self._before_train()
        training = Training(
            self._instances, self._algorithm, self._params, self.message, _core.available_threads()
        )
        learned = training.run(holdout)
        if path:
            self._store(learned, path)

    def params(self) -> list[str]:
        """The names of the parameters of the algorithm."""
        return list(ALGORITHMS[self._algorithm])

    def set_params(self, params: dict[str, Any]) -> None:
        """Set parameters, {name: value}."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """All parameters, {name: value}."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str, value: Any) -> None:
        """Set a parameter; texts are read as numbers where the parameter is one."""
        if name not in self._params:
            raise ValueError(f"Parameter not found: {name} = {value}")
        self._params[name] = ALGORITHMS[self._algorithm][name].read(value)

    def get(self, name: str) -> Any:
        """The value of a parameter."""
        if name not in self._params:
            raise ValueError(f"Parameter not found: {name} = ")
        return self._params[name]

    def help(self, name: str) -> str:
        """What a parameter means."""
        if name not in self._params:
            raise ValueError(f"Parameter not found: {name}")
        return ALGORITHMS[self._algorithm][name].meaning

    def clear(self) -> None:
        """Forget all instances."""
        self._instances = Instances()

    def _before_train(self) -> None:
        """Called before each training run."""

    def _store(self, learned: Learned | None, path: str) -> None:
        """Write the model file, and log it; None: a model without labels."""
        began = perf_counter()
        instances = self._instances
        labels, n_attributes = list(instances.label_ids), len(instances.vocabulary)
        weights, active = np.zeros(0), np.zeros(0, np.int64)
        if learned is not None:
            weights = learned.weights
            pairs = np.flatnonzero(weights[: learned.feature_map.n_pairs])
            active = np.unique(np.searchsorted(learned.feature_map.pair_ptr, pairs, side="right"))
        self.message("Storing the model\n")
        self.message(f"Number of active features: {np.count_nonzero(weights)} ({len(weights)})\n")
        self.message(f"Number of active attributes: {len(active)} ({n_attributes})\n")
        self.message(f"Number of active labels: {len(labels)} ({len(labels)})\n")
        write: Callable[[str | PathLike[str]], None] = write_empty_crfsuite
        if learned is not None:
            write = partial(write_crfsuite, assemble(labels, instances.vocabulary, *learned))
        try:
            write(path)
        except InputError as error:  # such as a full disk
            if (other := save_elsewhere(write, path)) is None:
                raise
            raise InputError(f"{error}; the model is in {other}") from None
        for what in ("labels", "attributes", "feature references for transitions"):
            self.message(f"Writing {what}\n")
        self.message("Writing feature references for attributes\n")
        self.message(f"Seconds required: {perf_counter() - began:.3f}\n")
        self.message("\n")


class Trainer(BaseTrainer):
    """A trainer that reads its own log: override the methods `on_…` to follow a training run.

    `logparser` holds what the log of the last training run contained.
    """

    logparser: TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        """Read a message, and call the method of the event that it completes."""
        if self.logparser is None:
            self.logparser = TrainLogParser()
        event = self.logparser.feed(message)
        if event is None or not self.verbose:
            return
        log = self.logparser.last_log
        if event == "featgen_progress":
            self.on_featgen_progress(log, self.logparser.featgen_percent)
        elif event == "iteration":
            self.on_iteration(log, self.logparser.last_iteration or {})
        else:
            getattr(self, f"on_{event}")(log)

    def on_start(self, log: str) -> None:
        """The log begins. As all events: print the messages since the last one."""
        print(log, end="")

    on_featgen_end = on_prepared = on_prepare_error = on_optimization_end = on_end = on_start

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """So many percent of the features are there."""
        print(log, end="")

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """An iteration is done; `info` has its numbers (`TrainLogParser.last_iteration`)."""
        print(log, end="")
