"""From a model file to the estimator."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import FeatureFunctions, FunctionMap, GraphMap, LatticeMap, Template
from crfkit.models.chain_model import ChainModel
from crfkit.models.constraints import trained_bigrams
from crfkit.models.crf import CRF
from crfkit.models.files import (
    crf_file,
    disk,
    function_file,
    graph_file,
    model_file,
    parser_file,
    pattern_file,
    segment_file,
    segmenter_file,
)
from crfkit.models.files.crf_file import Contents
from crfkit.models.files.file_arrays import flag, name_damage, setting
from crfkit.models.files.function_file import StoredFunctions
from crfkit.models.files.graph_file import StoredStructure
from crfkit.models.files.model_file import ModelFile
from crfkit.models.lattice_model import LatticeModel
from crfkit.models.parser import Parser
from crfkit.models.parser_model import ParserModel
from crfkit.models.potentials import (
    NOT_LOCAL,
    FeaturePotentials,
    FunctionPotentials,
    GraphPotentials,
    LatticePotentials,
    LocalPotentials,
    PatternPotentials,
    SegmentPotentials,
)
from crfkit.models.settings import CRFSettings, Learned, ParserSettings, find_template
from crfkit.models.training.data_warnings import shares_from_json
from crfkit.optimizers import History
from crfkit.structures import GraphStructure, Lattice

MAX_COLUMNS = 1_000_000
Functions = FeatureFunctions | Sequence[Any] | None


def load(path: str | os.PathLike[str], functions: Functions = None, *, trust_functions: bool = False) -> Any:
    """Read a model file that `save` wrote: a `CRF` or a `Parser`. Nothing in the file is executed, whatever it holds.

    A file that does not exist is a FileNotFoundError, one that is no model an InputError.

    A model with feature functions is given them again, in their order, as `functions`; functions that patterns call, or
    the class of a structure of your own, come behind them. With neither `functions` nor `trust_functions` the model can
    only be inspected.

    With `trust_functions=True` the file chooses any importable callable: the modules that it names are imported, which runs
    their code, and what it names is called with your input. Use it only for files that you would run as a program.
    """
    return from_bytes(disk.read_bytes(path), str(path), functions, trust_functions=trust_functions)


def from_bytes(
    data: bytes, source: str, functions: Functions = None, *, trust_functions: bool = False
) -> Any:
    """The estimator in the bytes of a model file; InputError for any other bytes."""
    file = model_file.decode(data, source)
    estimator: CRF[Any] | Parser
    if file.type == parser_file.TYPE:
        if functions is not None:
            raise ArgumentError(f"{source}: functions were given, but a parser has none")
        with name_damage(source, "parser"):
            estimator = _read_parser(file)
    else:
        is_segmenter = file.type == segmenter_file.TYPE
        crf_only = file._replace(type=crf_file.TYPE) if is_segmenter else file
        estimator = _read_crf(crf_only, source, functions, trust=trust_functions)
    with name_damage(source):
        estimator.n_iter_ = setting(file.settings, "n_iter", int)
        estimator.stop_message_ = setting(file.settings, "stop_reason", str)
        estimator._metadata = model_file.metadata_of(file.settings)
        return segmenter_file.assemble(file, estimator) if file.type == segmenter_file.TYPE else estimator


def _read_parser(file: ModelFile) -> Parser:
    contents = parser_file.unpack(file)
    settings = ParserSettings.from_json(setting(contents.settings, "parameters", dict))
    parser = Parser(**vars(settings))
    model = ParserModel(contents.arc_map, shares_from_json(contents.settings.get("columns")))
    parser._set_model(model, contents.weights)
    parser.history_ = History.from_array(contents.history)
    return parser


def _read_crf(file: ModelFile, source: str, functions: Functions, *, trust: bool) -> CRF[Any]:
    with name_damage(source):
        contents = crf_file.unpack(file)
    own, of_structure = _split_functions(functions, contents)
    stored = function_file.read(contents.settings, contents.output_names, source, own, trust=trust)
    with name_damage(source):
        labels, n_columns = contents.labels, contents.encoder.n_columns
        facets = contents.feature_map.facets
        learned = Learned(
            trained_bigrams(labels, contents.feature_map.bigrams),
            None if facets is None else facets.of(labels.classes),
            contents.dictionary,
        )
        given = setting(contents.settings, "parameters", dict)
        parameters = CRFSettings.from_json(given, n_columns, learned)
        if isinstance(parameters.structure, StoredStructure):
            graph = parameters.structure.open(of_structure, trust=trust)
            parameters = replace(parameters, structure=graph)
        if stored is not None:
            parameters = replace(parameters, features=stored.functions)
        template = find_template(parameters.features, n_columns)
        _check_columns(n_columns, template)
        potentials = _read_potentials(contents, parameters, template, stored)
        if isinstance(potentials, PatternPotentials):
            structure = pattern_file.with_functions(potentials.patterns.structure, of_structure, trust=trust)
            patterns = replace(potentials.patterns, structure=structure)
            potentials = replace(potentials, patterns=patterns)
            parameters = replace(parameters, structure=structure)
        if isinstance(potentials, SegmentPotentials):
            whole = segment_file.with_functions(potentials.segments.structure, of_structure, trust=trust)
            potentials = replace(potentials, segments=replace(potentials.segments, structure=whole))
            parameters = replace(parameters, structure=whole)
        crf: CRF[Any] = CRF(**vars(parameters))
        kind = LatticeModel if isinstance(potentials, LatticePotentials) else ChainModel
        crf._set_model(kind(labels, parameters.chain, potentials, learned.dictionary), contents.weights)
    crf.history_ = History.from_array(contents.history)
    return crf


def _split_functions(functions: Functions, contents: Contents) -> tuple[Functions, Functions]:
    """Feature functions, and what the structure needs: functions, or its class; the latter come last."""
    if contents.segments is not None:
        return None, functions
    has_class = graph_file.has_class(contents.settings)
    if functions is None or (contents.patterns is None and not has_class):
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


def _read_potentials(
    contents: Contents, settings: CRFSettings, template: Template | None, stored: StoredFunctions | None
) -> FeaturePotentials:
    """The potentials of a file whose arrays have been checked."""
    encoder, feature_map = replace(contents.encoder, template=template), contents.feature_map
    classes, chain = contents.labels.classes, settings.chain
    local = flag(contents.settings, "local")
    graph = settings.structure if isinstance(settings.structure, GraphStructure) else None
    names = tuple(contents.structure_names)
    lattice = settings.structure if isinstance(settings.structure, Lattice) else None
    if len(set(names)) != len(names) or (names and graph is None and lattice is None):
        raise FileFormatError("the names of the weights of its structure are damaged")
    if local and (
        stored or contents.patterns or contents.dictionary or graph or lattice or contents.segments
    ):
        raise FileFormatError(NOT_LOCAL)
    if lattice is not None:
        if stored or contents.patterns or contents.dictionary or len(feature_map.arc_before):
            raise FileFormatError("it has a lattice, and what lattices have not")
        return LatticePotentials(encoder, feature_map, LatticeMap(lattice, names), contents.labels)
    map_ = None if stored is None else FunctionMap(*stored, classes, chain, feature_map)
    if contents.patterns is not None:
        patterns = contents.patterns.open(classes, chain, columns=template is not None)
        return PatternPotentials(encoder, feature_map, patterns, functions=map_)
    if graph is not None:
        return GraphPotentials(encoder, feature_map, GraphMap(graph, classes, names), functions=map_)
    if map_ is not None:
        return FunctionPotentials(encoder, feature_map, map_)
    if contents.segments is not None:
        return SegmentPotentials(encoder, feature_map, contents.segments)
    return (LocalPotentials if local else FeaturePotentials)(encoder, feature_map)


def _check_columns(n_columns: int | None, template: Template | None) -> None:
    """Refuse columns that no template reads, and a template that reads columns which there are not."""
    if template is None:
        if n_columns is not None:
            raise FileFormatError("it has columns but no template")
    elif n_columns is None or not template.n_columns <= n_columns <= MAX_COLUMNS:
        raise FileFormatError(
            f"its positions have {n_columns} columns, its template reads {template.n_columns}"
        )
