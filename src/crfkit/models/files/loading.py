"""From a model file to the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crfkit.data import InputError
from crfkit.features import FeatureFunctions, Labels
from crfkit.models.chain_model import ChainModel, Columns, locally_normalised
from crfkit.models.constraints import trained_bigrams
from crfkit.models.crf import CRF
from crfkit.models.files import crf_file, disk, function_file, model_file, pattern_file
from crfkit.models.files.file_arrays import setting
from crfkit.models.training import parameters
from crfkit.optimizers import History, StopReason


def load(
    path: str | os.PathLike[str],
    functions: FeatureFunctions | Sequence[Any] | None = None,
    *,
    trust_functions: bool = False,
) -> CRF[Any]:
    """Read a model file that `CRF.save` wrote. Nothing in the file is executed, whatever it holds.

    A file that does not exist is a FileNotFoundError, one that is no model an InputError.

    A model with feature functions is given them again, in their order, as `functions`. With neither
    `functions` nor `trust_functions` the model can only be inspected.

    With `trust_functions=True` the file chooses any importable callable: the modules that it names are imported, which runs
    their code, and what it names is called with your input. Use it only for files that you would run as a program.
    """
    return from_bytes(disk.read_bytes(path), str(path), functions, trust_functions=trust_functions)


def from_bytes(
    data: bytes,
    source: str,
    functions: FeatureFunctions | Sequence[Any] | None = None,
    *,
    trust_functions: bool = False,
) -> CRF[Any]:
    """The CRF in the bytes of a model file; InputError for any other bytes."""
    contents = crf_file.unpack(model_file.decode(data, source), source)
    settings = contents.settings
    stored = None
    if contents.patterns is None:
        stored = function_file.read(settings, contents.output_names, source, functions, trust=trust_functions)
    try:
        n_columns = setting(settings, "n_columns", (int, type(None)))
        labels = Labels.from_json(contents.labels)
        learned = parameters.Learned(
            trained_bigrams(labels, contents.bigrams),
            None if contents.facets is None else contents.facets.of(labels.classes),
            None if contents.dictionary is None else contents.dictionary.opened(labels.classes),
        )
        params = parameters.from_json(setting(settings, "parameters", dict), n_columns, learned)
        crf = CRF(**params)
        if stored is not None:
            crf.features = stored.functions
        template = parameters.template_of(crf.features, n_columns)
        crf.label_column_ = parameters.label_column(settings, n_columns, template)
        crf.separator_ = parameters.separator(settings)
        columns = Columns(n_columns, parameters.flag(settings, "more_columns"))
        model = ChainModel.from_contents(
            contents, template, columns, params["structure"], stored, learned.dictionary
        )
        if parameters.flag(settings, "local"):
            model = locally_normalised(model)
        if model.patterns is not None:
            structure = pattern_file.with_functions(
                model.patterns.structure, functions, trust=trust_functions
            )
            model = replace(model, patterns=replace(model.patterns, structure=structure))
            crf.structure = structure
        crf._set_model(model, contents.weights)
        crf.n_iter_ = setting(settings, "n_iter", int)
        crf.stop_reason_ = StopReason.parse(setting(settings, "stop_reason", str))
    except (InputError, RecursionError) as error:
        raise InputError(f"{source}: not a usable model: {error}") from None
    crf.history_ = History.from_array(contents.history)
    return crf
