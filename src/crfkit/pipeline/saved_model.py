"""How a pipeline and its components are saved and loaded."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from crfkit.errors import ArgumentError
from crfkit.features import Resource
from crfkit.models import ModelFile, ParameterView, write_model_file


class SavedModel(ParameterView, ABC):
    """A model that can be a part of another one's file."""

    _kind: ClassVar[str]  # what a message calls it

    @abstractmethod
    def to_file(
        self,
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> ModelFile:
        """What the model file holds, for a file that has it as a part."""

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> None:
        """Write the model file; `crfkit.load` reads it. An existing file is replaced in one step.

        Weights are rounded to seven digits, which makes the file almost half as long, unless `single_precision` is False.
        `bundle` puts the resources that taggers read (lexicons, clusters, word vectors) into the file; else it names them
        alone.
        """
        file = self.to_file(single_precision=single_precision, metadata=metadata, bundle=bundle)
        write_model_file(file, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, resources: Mapping[str, Resource] | None = None) -> Self:
        """Read a model file that `save` wrote; `resources` are those that the file names alone."""
        from crfkit.pipeline.loading import load

        found = load(path, resources=resources)
        if not isinstance(found, cls):
            raise ArgumentError(f"{path}: a {type(found).__name__}, expected a {cls._kind}")
        return found
