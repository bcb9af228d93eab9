"""From a model file of any type to what was saved."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crfkit.errors import ArgumentError
from crfkit.features import FeatureFunctions, Resource
from crfkit.models import ModelFile, from_file, read_model_file
from crfkit.pipeline import lemmatizer_file, pipeline_file, tagger_file, tokenizer_file

_READERS: dict[str, Callable[[ModelFile, str], Any]] = {
    tokenizer_file.TYPE: tokenizer_file.read,
    lemmatizer_file.TYPE: lemmatizer_file.read,
}
_RESOURCE_READERS: dict[str, Callable[[ModelFile, str, Mapping[str, Resource] | None], Any]] = {
    tagger_file.TYPE: tagger_file.read,
    pipeline_file.TYPE: pipeline_file.read,
}


def load(
    path: str | os.PathLike[str],
    functions: FeatureFunctions | Sequence[Any] | None = None,
    *,
    trust_functions: bool = False,
    resources: Mapping[str, Resource] | None = None,
) -> Any:
    """Read a model file that `save` wrote: a `CRF`, a `Parser`, a `Pipeline`, or whatever else it holds.

    Nothing in the file is executed, whatever it holds.

    A file that does not exist is a FileNotFoundError, one that is no model an InputError.

    A model with feature functions is given them again, in their order, as `functions`; functions that patterns call, or
    the class of a structure of your own, come behind them. With neither `functions` nor `trust_functions` the model can
    only be inspected.

    With `trust_functions=True` the file chooses any importable callable: the modules that it names are imported, which runs
    their code, and what it names is called with your input. Use it only for files that you would run as a program.

    A model with resources (lexicons, clusters, word vectors) that its file does not hold is given them again, by their
    names, as `resources`; without them it can only be inspected.
    """
    file = read_model_file(path)
    return load_file(file, str(path), functions, trust_functions=trust_functions, resources=resources)


def load_file(
    file: ModelFile,
    source: str,
    functions: FeatureFunctions | Sequence[Any] | None = None,
    *,
    trust_functions: bool = False,
    resources: Mapping[str, Resource] | None = None,
) -> Any:
    """What a model file that has been read, or a part of one, holds; `source` names it in complaints."""
    if file.type not in _READERS and file.type not in _RESOURCE_READERS:
        return from_file(file, source, functions, trust_functions=trust_functions, resources=resources)
    if functions is not None:
        raise ArgumentError(f"{source}: functions were given, but a {file.type} has none")
    if file.type in _RESOURCE_READERS:
        return _RESOURCE_READERS[file.type](file, source, resources)
    if resources is not None:
        raise ArgumentError(f"{source}: resources were given, but a {file.type} has none")
    return _READERS[file.type](file, source)
