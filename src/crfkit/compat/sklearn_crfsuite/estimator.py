"""sklearn-crfsuite's CRF."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crfkit import models
from crfkit.compat.crfsuite_file import CrfsuiteModel
from crfkit.compat.pycrfsuite import Tagger, Trainer
from crfkit.compat.pycrfsuite._dumpparser import ParsedDump
from crfkit.compat.pycrfsuite._logparser import TrainLogParser
from crfkit.compat.sklearn_crfsuite._fileresource import FileResource
from crfkit.compat.sklearn_crfsuite.compat import BaseEstimator
from crfkit.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from crfkit.errors import InputError, UnsupportedError
from crfkit.models import Estimator

# The names of parameters that CRFsuite calls otherwise.
_NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "calibration_eta": "calibration.eta",
    "calibration_rate": "calibration.rate",
    "calibration_samples": "calibration.samples",
    "calibration_candidates": "calibration.candidates",
    "calibration_max_trials": "calibration.max_trials",
    "pa_type": "type",
}
_NOT_OF_CRFSUITE = ("algorithm", "verbose", "model_filename", "keep_tempfiles", "trainer_cls")


Objects = npt.NDArray[np.object_]


class CRF(BaseEstimator, Estimator):
    """python-crfsuite as an estimator of scikit-learn, or of its kind where that is not installed.

    Parameters that are None are CRFsuite's defaults (`pycrfsuite.Trainer.help` explains them).

    algorithm : "lbfgs", "l2sgd", "ap", "pa" or "arow"
    verbose : print one line an iteration
    model_filename : where to keep the model file; one that is there already is opened when it is asked
    keep_tempfiles : leave the model file behind even if it has no name
    trainer_cls : a class to train with, in place of `pycrfsuite.Trainer`

    modelfile : the model file; `modelfile.name` is its path
    training_log_ : the parsed log of the training run; None before it
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: float | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: type[Trainer] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self._model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.training_log_: TrainLogParser | None = None
        self._take(self._new_file())

    @property
    def model_filename(self) -> str | None:
        """Where `fit` writes the model; an untrained CRF that is given a path opens the file there."""
        return self._model_filename

    @model_filename.setter
    def model_filename(self, path: str | None) -> None:
        self._model_filename = path
        if not self.modelfile.exists():
            self._take(self._new_file())

    def fit(
        self,
        X: Iterable[Sequence[Any]],
        y: Iterable[Sequence[str]],
        X_dev: Iterable[Sequence[Any]] | None = None,
        y_dev: Iterable[Sequence[str]] | None = None,
    ) -> Self:
        """Train on sequences of items and labels; after each iteration `training_log_` learns how the dev set does."""
        if (X_dev is None) != (y_dev is None):
            raise UnsupportedError("X_dev and y_dev go together, expected both or none")
        trainer = self._get_trainer()
        for xseq, yseq in zip(X, y, strict=True):
            trainer.append(xseq, yseq)
        if X_dev is not None and y_dev is not None:
            for xseq, yseq in zip(X_dev, y_dev, strict=True):
                trainer.append(xseq, yseq, 1)
        file = self._new_file()
        with file.writing() as path:
            trainer.train(path, holdout=-1 if X_dev is None else 1)
        self._take(file)
        self.training_log_ = trainer.logparser
        return self

    def _get_trainer(self) -> Trainer:
        params = {
            _NAMES.get(name, name): value
            for name, value in self.get_params(deep=False).items()
            if value is not None and name not in _NOT_OF_CRFSUITE
        }
        trainer_class = self.trainer_cls or LinePerIterationTrainer
        return trainer_class(algorithm=self.algorithm, params=params, verbose=self.verbose)

    def _new_file(self) -> FileResource:
        return FileResource(self.model_filename, self.keep_tempfiles, suffix=".crfsuite", prefix="model")

    def _take(self, file: FileResource) -> None:
        """Make `file` the file of this model; tagger and dump are made from it on demand."""
        self.modelfile = file
        self._native: models.CRF | None = None
        self._tagger: Tagger | None = None
        self._info: ParsedDump | None = None

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model file."""
        return self.modelfile.exists()

    def predict(self, X: Iterable[Sequence[Any]]) -> Objects:
        """The best labels of each sequence: [N] lists, or [N, T] where all sequences have T items."""
        return np.array(self._predict_lists(list(X)), dtype=object)

    def _predict_lists(self, sequences: list[Sequence[Any]]) -> list[list[str]]:
        self._check_fitted()
        try:
            return self._crf().predict(sequences)
        except InputError:  # items of a form that only python-crfsuite knows
            return [self.predict_single(xseq) for xseq in sequences]

    def predict_single(self, xseq: Sequence[Any]) -> list[str]:
        """The best labels of one sequence."""
        return self._open_tagger().tag(xseq)

    def predict_marginals(self, X: Iterable[Sequence[Any]]) -> Objects:
        """{label: probability} for each item of each sequence, in the form of `predict`."""
        return np.array([self.predict_marginals_single(xseq) for xseq in X], dtype=object)

    def predict_marginals_single(self, xseq: Sequence[Any]) -> list[dict[str, float]]:
        """{label: probability} for each item of one sequence."""
        tagger, items = self._open_tagger(), list(xseq)
        tagger.set(items)
        return [{label: tagger.marginal(label, i) for label in tagger.labels()} for i in range(len(items))]

    def score(self, X: Iterable[Sequence[Any]], y: Iterable[Sequence[str]]) -> float:
        """Share of right labels."""
        gold = np.array(list(chain.from_iterable(y)), dtype=object)
        found = np.array(list(chain.from_iterable(self._predict_lists(list(X)))), dtype=object)
        return float(np.mean(gold == found)) if len(gold) else 0.0

    @property
    def tagger_(self) -> Tagger | None:
        """A tagger with the model; None where there is none yet."""
        return self._open_tagger() if self.__sklearn_is_fitted__() else None

    @property
    def classes_(self) -> list[str] | None:
        """The labels; None before `fit`, as all attributes below."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """The size of the model file in bytes."""
        return int(self._dump().header["size"]) if self.__sklearn_is_fitted__() else None

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes that have weights."""
        return None if self.attributes_ is None else len(self.attributes_)

    @property
    def attributes_(self) -> list[str] | None:
        """The names of these attributes."""
        return list(self._dump().attributes) if self.__sklearn_is_fitted__() else None

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """{(attribute, label): weight}, with six digits."""
        return self._dump().state_features if self.__sklearn_is_fitted__() else None

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """{(label before, label after): weight}, with six digits."""
        return self._dump().transitions if self.__sklearn_is_fitted__() else None

    def _open_tagger(self) -> Tagger:
        if self._tagger is None:
            self._check_fitted()
            self._tagger = Tagger()
            self._tagger.open_inmemory(self._content())
        return self._tagger

    def _dump(self) -> ParsedDump:
        if self._info is None:
            self._info = self._open_tagger().info()
        return self._info

    def _crf(self) -> models.CRF:
        if self._native is None:
            self._native = CrfsuiteModel.from_bytes(
                self._content(), self.model_filename or "<model>"
            ).to_crf()
        return self._native

    def _content(self) -> bytes:
        content = self.modelfile.content
        assert content is not None
        return content

    def __getstate__(self) -> dict[str, Any]:
        made_again = ("_native", "_tagger", "_info")
        return {name: value for name, value in self.__dict__.items() if name not in made_again}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also the state in a pickle of sklearn-crfsuite, which lacks some of the parameters."""
        state = {**self._defaults(), **state}
        state.setdefault("_model_filename", state.pop("model_filename"))
        self.__dict__.update(state)
        self._take(state["modelfile"])
