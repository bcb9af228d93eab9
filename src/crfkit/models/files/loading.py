"""From a model file to the estimator."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import FeatureFunctions, FunctionMap, MissingResource, Resource, Template
from crfkit.models.constraints import asked_bigrams
from crfkit.models.crf import CRF
from crfkit.models.files import (
    crf_file,
    disk,
    factor_file,
    function_file,
    model_file,
    parser_file,
    resource_file,
    segmenter_file,
)
from crfkit.models.files.crf_file import Contents
from crfkit.models.files.file_arrays import flag, name_damage, setting
from crfkit.models.files.function_file import StoredFunctions
from crfkit.models.files.function_list import choose_functions
from crfkit.models.files.model_file import ModelFile
from crfkit.models.graph_crf import GraphCRF
from crfkit.models.kinds import StoredModel, StructureKind, kind_in
from crfkit.models.parser import Parser
from crfkit.models.parser_model import ParserModel
from crfkit.models.potentials import NOT_LOCAL
from crfkit.models.recommended import as_arguments
from crfkit.models.settings import CRFSettings, Learned, ParserSettings, find_template
from crfkit.models.training.data_warnings import shares_from_json
from crfkit.models.training.graph_task import FactorModel
from crfkit.models.training.pruning import PROJECTIVE, SPANNING
from crfkit.optimizers import History
from crfkit.structures import Chain

MAX_COLUMNS = 1_000_000
Functions = FeatureFunctions | Sequence[Any] | None
Resources = Mapping[str, Resource | MissingResource] | None


def load(
    path: str | os.PathLike[str],
    functions: Functions = None,
    *,
    trust_functions: bool = False,
    resources: Resources = None,
) -> Any:
    """Read a model file that `save` wrote: a `CRF`, a `Parser`, a `WordSegmenter` or a `GraphCRF`.

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
    data = disk.read_bytes(path)
    return from_bytes(data, str(path), functions, trust_functions=trust_functions, resources=resources)


def from_bytes(
    data: bytes,
    source: str,
    functions: Functions = None,
    *,
    trust_functions: bool = False,
    resources: Resources = None,
) -> Any:
    """The estimator in the bytes of a model file; InputError for any other bytes."""
    file = model_file.decode(data, source)
    return from_file(file, source, functions, trust_functions=trust_functions, resources=resources)


def from_file(
    file: ModelFile,
    source: str,
    functions: Functions = None,
    *,
    trust_functions: bool = False,
    resources: Resources = None,
) -> Any:
    """The estimator of a model file that has been read, or of one of its parts; InputError where it is damaged."""
    if resources is not None and file.type not in (crf_file.TYPE, parser_file.TYPE):
        raise ArgumentError(f"{source}: resources were given, but a {file.type} has none")
    estimator: CRF[Any] | Parser | GraphCRF
    if file.type == factor_file.TYPE:
        estimator = _read_graph_crf(file, source, functions, trust=trust_functions)
    elif file.type == parser_file.TYPE:
        if functions is not None:
            raise ArgumentError(f"{source}: functions were given, but a parser has none")
        estimator = _read_parser(file, source, resources)
    else:
        is_segmenter = file.type == segmenter_file.TYPE
        crf_only = file._replace(type=crf_file.TYPE) if is_segmenter else file
        estimator = _read_crf(crf_only, source, functions, resources, trust=trust_functions)
    with name_damage(source):
        estimator.n_iter_ = setting(file.settings, "n_iter", int)
        estimator.stop_message_ = setting(file.settings, "stop_reason", str)
        estimator._metadata = model_file.metadata_of(file.settings)
        return segmenter_file.assemble(file, estimator) if file.type == segmenter_file.TYPE else estimator


def _read_graph_crf(file: ModelFile, source: str, functions: Functions, *, trust: bool) -> GraphCRF:
    with name_damage(source):
        contents = factor_file.unpack(file)
    given = contents.parameters
    [template] = choose_functions([given.graph_template], functions, "graph template", trust=trust)
    model = GraphCRF(**vars(replace(given, graph_template=template)))
    model._set_model(FactorModel(contents.factor_map), contents.weights)
    model.history_ = History.from_array(contents.history)
    return model


def _read_parser(file: ModelFile, source: str, resources: Resources) -> Parser:
    with name_damage(source, "parser"):
        contents = parser_file.unpack(file)
        settings = ParserSettings.from_json(setting(contents.settings, "parameters", dict))
    chosen: dict[str, Any] = resource_file.choose(contents.resources, resources, source)
    with name_damage(source, "parser"):
        return _assemble_parser(contents, Parser(**vars(replace(settings, **chosen))))


def _assemble_parser(contents: parser_file.ParserContents, parser: Parser) -> Parser:
    kept = {"structure": "spanning", "structure_reason": ""} | contents.settings
    structure, reason = setting(kept, "structure", str), setting(kept, "structure_reason", str)
    if (structure, contents.pruner is None) not in ((SPANNING, True), (SPANNING, False), (PROJECTIVE, False)):
        raise FileFormatError(f"its structure is {structure[:40]!r}, expected spanning or projective trees")
    columns = shares_from_json(contents.settings.get("columns"))
    model = ParserModel(contents.arc_map, columns, structure, reason, contents.pruner)
    parser._set_model(model, contents.weights)
    parser.history_ = History.from_array(contents.history)
    return parser


def _read_crf(
    file: ModelFile, source: str, functions: Functions, resources: Resources, *, trust: bool
) -> CRF[Any]:
    with name_damage(source):
        kind = kind_in(file.settings)
        contents = crf_file.unpack(file, kind.key, kind.unpack)
        needed = resource_file.read(file, setting(contents.settings, "parameters", dict))
    chosen = resource_file.choose(needed, resources, source)
    own, of_structure = _split_functions(functions, contents, kind)
    stored = function_file.read(contents.settings, contents.output_names, source, own, trust=trust)
    with name_damage(source):
        labels, n_columns = contents.labels, contents.encoder.n_columns
        facets = contents.feature_map.facets
        given = setting(contents.settings, "parameters", dict)
        asked = setting(given, "structure", dict).get("bigrams")
        learned = Learned(
            asked_bigrams(labels, contents.feature_map.bigrams, asked),
            None if facets is None else facets.of(labels.classes),
            contents.dictionary,
            chosen,
        )
        parameters = CRFSettings.from_json(given, n_columns, learned)
        if stored is not None:
            parameters = replace(parameters, features=stored.functions)
        template = find_template(parameters.features, n_columns, chosen)
        if template is not None and contents.counts is not None:
            template = replace(template, counts=contents.counts)
        _check_columns(n_columns, template)
        local = _read_local(contents, kind, stored)
        contents = contents._replace(encoder=replace(contents.encoder, template=template))
        map_ = None
        if stored is not None:
            map_ = FunctionMap(*stored, labels.classes, parameters.chain, contents.feature_map)
        found = StoredModel(contents, parameters.chain, template, map_, local, chosen, of_structure, trust)
        structure, potentials = kind.open(found)
        crf: CRF[Any] = CRF(**as_arguments(vars(replace(parameters, structure=structure))))
        crf._set_model(kind.model(labels, structure.chain, potentials, learned.dictionary), contents.weights)
    crf.history_ = History.from_array(contents.history)
    return crf


def _split_functions(
    functions: Functions, contents: Contents, kind: StructureKind
) -> tuple[Functions, Functions]:
    """Feature functions, and what the structure needs: functions, or its class; the latter come last."""
    if functions is None or not kind.calls_functions:
        return functions, None
    stored = contents.settings.get("functions")
    if stored is None:
        return None, functions
    if isinstance(functions, FeatureFunctions):
        return functions, []
    listed = list(functions)
    if listed and isinstance(listed[0], FeatureFunctions):
        return listed[0], listed[1:]
    n = len(stored["functions"])
    return listed[:n], listed[n:]


def _read_local(contents: Contents, kind: StructureKind, stored: StoredFunctions | None) -> bool:
    """Whether the model is normalised at each position; FileFormatError where that, or a name of a weight, cannot be."""
    names = contents.structure_names
    if len(set(names)) != len(names) or (names and not kind.named_weights):
        raise FileFormatError("the names of the weights of its structure are damaged")
    local = flag(contents.settings, "local")
    if local and (stored or contents.dictionary or kind.structure is not Chain):
        raise FileFormatError(NOT_LOCAL)
    return local


def _check_columns(n_columns: int | None, template: Template | None) -> None:
    """Refuse columns that no template reads, and a template that reads columns which there are not."""
    if template is None:
        if n_columns is not None:
            raise FileFormatError("it has columns but no template")
    elif n_columns is None or not template.n_columns <= n_columns <= MAX_COLUMNS:
        raise FileFormatError(
            f"its positions have {n_columns} columns, its template reads {template.n_columns}"
        )
