"""How a pipeline and its components are saved and loaded."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from crfkit.errors import ArgumentError
from crfkit.models import ModelFile, ParameterView, write_model_file


class SavedModel(ParameterView, ABC):
    """A model that can be a part of another one's file."""

    _kind: ClassVar[str]  # what a message calls it

    @abstractmethod
    def to_file(
        self, *, single_precision: bool = True, metadata: Mapping[str, Any] | None = None
    ) -> ModelFile:
        """What the model file holds, for a file that has it as a part."""

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the model file; `crfkit.load` reads it. An existing file is replaced in one step.

        Weights are rounded to seven digits, which makes the file almost half as long, unless `single_precision` is False.
        """
        write_model_file(self.to_file(single_precision=single_precision, metadata=metadata), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file that `save` wrote."""
        from crfkit.pipeline.loading import load

        found = load(path)
        if not isinstance(found, cls):
            raise ArgumentError(f"{path}: a {type(found).__name__}, expected a {cls._kind}")
        return found
