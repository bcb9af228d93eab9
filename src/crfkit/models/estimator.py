"""What scikit-learn expects of an estimator, said without importing scikit-learn.

Its tools (`clone`, `GridSearchCV`, `Pipeline`) ask by name, not by type: `get_params`, `set_params`,
`__sklearn_tags__`. So an estimator here costs nobody the import, and works with those tools all the same.
"""

import dataclasses
import os
import sys
from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Self

from crfkit.arrays import Float64s
from crfkit.data import replacing
from crfkit.errors import ArgumentError
from crfkit.models.files import model_file
from crfkit.models.notebook_view import ParameterView
from crfkit.models.training.endings import warn_of_ending
from crfkit.models.training.train import Trained, Weighted
from crfkit.optimizers import History, Optimizer, StopReason


class NotFittedError(ValueError, AttributeError):
    """A question to a model that is not trained; scikit-learn's error of this name where that is loaded."""


class Estimator(ParameterView):
    """Parameters by name: exactly the arguments of `__init__`, stored untouched."""

    history_: History
    n_iter_: int
    stop_message_: str
    optimizer_: Optimizer
    optimizer_reason_: str
    _model: Any  # what training fixed besides the weights
    _weights: Float64s
    _metadata: Mapping[str, Any] = MappingProxyType({})  # of the file that the model was read from

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; `deep` adds the settings inside them, as in `optimizer__tolerance`."""
        params = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(params.items()):
                if dataclasses.is_dataclass(value) and not isinstance(value, type):
                    for field in dataclasses.fields(value):
                        if field.init:
                            params[f"{name}__{field.name}"] = getattr(value, field.name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters: `l2=0.1`, or a setting inside one, `optimizer__tolerance=1e-6`."""
        known = self.get_params()
        for name in params:
            if name not in known:
                names = ", ".join(sorted(known))
                raise ArgumentError(
                    f"{type(self).__name__} has no parameter {name!r}, expected one of {names}."
                )
        # Whole parameters first, so that a setting inside one is not lost when both are given.
        for name in sorted(params, key=lambda name: "__" in name):
            owner, _, setting = name.partition("__")
            value = params[name]
            if setting:
                value = dataclasses.replace(getattr(self, owner), **{setting: value})
            setattr(self, owner, value)
        return self

    @classmethod
    def _read_start(cls, start: object) -> Weighted[Any]:
        """The trained model to begin with, or the one of its file, and its weights."""
        if isinstance(start, str | os.PathLike):
            from crfkit.models.files.loading import load  # which makes models of all classes

            start = load(start)
        if not isinstance(start, cls):
            raise ArgumentError(
                f"start is of type {type(start).__name__}, expected a trained {cls.__name__} or the path of its file"
            )
        weights = start.weights_  # which an untrained one does not have
        return Weighted(start._model, weights)

    def _keep(self, trained: Trained[Any]) -> None:
        """Make the result of a training run this estimator's own."""
        self._set_model(trained.model, trained.weights)
        self.history_ = trained.history
        self.n_iter_ = trained.n_iter
        self.stop_message_ = trained.reason
        self.optimizer_, self.optimizer_reason_ = trained.choice
        warn_of_ending(self.stop_message_, self.history_, self.optimizer_, self.n_iter_, stacklevel=3)

    def _set_model(self, model: Any, weights: Float64s) -> None:
        self._model = model
        self._weights = weights.view()
        self._weights.flags.writeable = False

    @property
    def weights_(self) -> Float64s:
        """The weights [D], read-only."""
        self._check_fitted()
        return self._weights

    @property
    def stop_reason_(self) -> StopReason | str:
        """Why the training run ended; any text where it took place elsewhere."""
        self._check_fitted()
        return StopReason.parse(self.stop_message_)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        single_precision: bool = False,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> None:
        """Write the model file; `crfkit.load` reads it. An existing file is replaced in one step.

        `single_precision` rounds the weights to seven digits and makes the file of a large model almost half as long.
        `metadata` are JSON values of the caller's own that the file is to keep; `crfkit.models.read_metadata` gives them
        back. Without it the file has those of the file that the model was read from, if it was. `bundle` puts the resources
        that a model reads (lexicons, clusters, word vectors) into its file; else the file names them alone.
        """
        file = self.to_file(single_precision=single_precision, metadata=metadata, bundle=bundle)
        data = model_file.encode(file)
        with replacing(path) as stream:
            stream.write(data)

    def _to_bytes(self) -> bytes:
        """The bytes of the model file."""
        return model_file.encode(self.to_file())

    def to_file(
        self,
        *,
        single_precision: bool = False,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> model_file.ModelFile:
        """What the model file of the trained estimator holds, for a file that has it as a part."""
        self._check_fitted()
        settings = {
            "n_iter": self.n_iter_,
            "stop_reason": self.stop_message_,
            "metadata": dict(self._metadata if metadata is None else metadata),
        }
        history = History(self.history_).to_array(seconds=False)
        file = self._pack(settings, history, single_precision=single_precision)
        return self._bundle(file) if bundle else file

    def _pack(
        self, settings: dict[str, Any], history: Float64s, *, single_precision: bool
    ) -> model_file.ModelFile:
        """What the model file holds."""
        raise NotImplementedError

    def _bundle(self, file: model_file.ModelFile) -> model_file.ModelFile:
        """The model file with the resources that the model reads."""
        return file

    def _functions(self, params: dict[str, Any]) -> Any:
        """The functions that a model with these parameters calls, which no file holds."""

    def _model_resources(self) -> Any:
        """The resources that the trained model reads, which its file names alone."""

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: parameters, the model file, and the history with its seconds, which no file has."""
        state: dict[str, Any] = {"params": self.get_params(deep=False), "model": None}
        if self.__sklearn_is_fitted__():
            state |= {"model": self._to_bytes(), "history": History(self.history_).to_array()}
            state["resources"] = self._model_resources()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["model"] is not None:
            from crfkit.models.files.loading import from_bytes  # which makes models of all classes

            functions = self._functions(state["params"])
            given = state.get("resources")
            loaded = from_bytes(state["model"], "pickled model", functions, resources=given)
            self.__dict__.update(loaded.__dict__)
            self.history_ = History.from_array(state["history"])
        self.__dict__.update(state["params"])
        for name, value in self._defaults().items():  # which the pickle of an earlier version may lack
            self.__dict__.setdefault(name, deepcopy(value))

    def _facts(self) -> dict[str, object] | None:
        if not self.__sklearn_is_fitted__():
            return None
        optimizer = getattr(self, "optimizer_", None)
        last = next(reversed(self.history_), None) if getattr(self, "history_", None) else None
        scores = (
            record.dev_score for record in getattr(self, "history_", ()) if record.iteration == self.n_iter_
        )
        best = next(scores, None)
        return {
            "weights": f"{len(self._weights):,}",
            "training": f"iteration {self.n_iter_:,}: {self.stop_message_}",
            "optimizer": None
            if optimizer is None
            else f"{type(optimizer).__name__}: {self.optimizer_reason_}",
            "objective": None if last is None else f"{last.objective:,.4f}",
            "dev score": None if best is None else f"{best:.4f}",
        }

    def _views(self) -> list[tuple[str, Any]]:
        history = getattr(self, "history_", None)
        return [("History", history)] if history else []

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a trained model to ask."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        """An estimator of sequences: no classifier, no regressor, and its input is no table of numbers."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, single_output=False, multi_output=True),
            input_tags=InputTags(two_d_array=False, three_d_array=True, sparse=True, string=True, dict=True),
        )

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            sklearn = sys.modules.get("sklearn.exceptions")
            error: type[Exception] = sklearn.NotFittedError if sklearn is not None else NotFittedError
            raise error(f"This {type(self).__name__} is not trained: call fit, or load a trained one.")
