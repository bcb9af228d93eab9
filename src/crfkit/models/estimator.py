"""What scikit-learn expects of an estimator, said without importing scikit-learn.

Its tools (`clone`, `GridSearchCV`, `Pipeline`) ask by name, not by type: `get_params`, `set_params`,
`__sklearn_tags__`. So an estimator here costs nobody the import, and works with those tools all the same.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Any, Self

from crfkit.optimizers import History


class NotFittedError(ValueError, AttributeError):
    """A question to a model that is not trained; scikit-learn's error of this name where that is loaded."""


class TrainingInterrupted(UserWarning):
    """Ctrl-C or SIGTERM ended the training early; the model has the best weights found until then."""


class CheckpointFailed(UserWarning):
    """A checkpoint could not be written, as on a full disk; the training run goes on without it."""


class UnsavableModel(UserWarning):
    """Said when the training begins: this model will answer questions, but no file can hold it."""


class UnknownLabels(UserWarning):
    """Held-out data has labels that the training data does not have: no model can give them."""


class Estimator:
    """Parameters by name: exactly the arguments of `__init__`, stored untouched."""

    history_: History

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {argument.name: argument.default for argument in arguments}

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
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}, expected one of {names}.")
        # Whole parameters first, so that a setting inside one is not lost when both are given.
        for name in sorted(params, key=lambda name: "__" in name):
            owner, _, setting = name.partition("__")
            value = (
                dataclasses.replace(getattr(self, owner), **{setting: params[name]})
                if setting
                else params[name]
            )
            setattr(self, owner, value)
        return self

    def _to_bytes(self, *, single_precision: bool = False) -> bytes:
        """The model file of the trained estimator."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: parameters, the model file, and the history with its seconds, which no file has."""
        state: dict[str, Any] = {"params": self.get_params(deep=False), "model": None}
        if self.__sklearn_is_fitted__():
            state |= {"model": self._to_bytes(), "history": History(self.history_).to_array()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What is left when an estimator has read the model of `state`."""
        if "history" in state:
            self.history_ = History.from_array(state["history"])
        self.__dict__.update(state["params"])

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name] and repr(value) != repr(defaults[name])
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

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
