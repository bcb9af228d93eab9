"""The parameters of `CRF` and `Parser` as typed values: checked when training begins, and as JSON in model files."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crfkit.counts import check_count
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import (
    COLUMNS,
    NAMED_LINE,
    PRESETS,
    RELATED,
    Clusters,
    FacetsOf,
    FeatureFunctions,
    MissingResource,
    OpenStrength,
    Resource,
    Strength,
    TagDictionary,
    Template,
    Treebank,
    WordVectors,
    bind_resources,
    check_hash_bits,
    check_min_count,
    check_resources,
    count_columns,
    encode_sentences,
    is_facet_name,
    least_count,
    list_facet_names,
    preset,
)
from crfkit.models.checks import (
    DEFAULT_DECODING,
    check_flag,
    check_model_decoding,
    check_optimizer,
    check_strength,
    count_threads,
)
from crfkit.models.files import resource_file, settings_file
from crfkit.models.files.file_arrays import current_names, hash_bits_of, setting
from crfkit.models.kinds import StructureKind, kind_of
from crfkit.models.span_states import check_span_states
from crfkit.optimizers import AUTO, LBFGS, AdaGrad, Optimizer
from crfkit.structures import Bigrams, Chain, SequenceStructure

RandomState = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None

DECODERS = ("best", "mbr")
DEFAULT_CHAIN = Chain()
DEFAULT_OPTIMIZER = LBFGS()
TREE_COLUMNS = COLUMNS
TREE_STRUCTURES = ("auto", "spanning", "projective")
PARSER_OPTIMIZER = AdaGrad(max_iterations=10, rate=0.1)
_ONE_LINE = re.compile(
    rf"[UB][0-9]*(:.*)?|[UB].*%.*|#.*|{NAMED_LINE.pattern}.*"
)  # a template without a line break, or what was meant as one
_FROM_FILE = "; crfkit.Template.read(path) reads a template from a file"


class Learned(NamedTuple):
    """What a model learned, or was given, that its parameters may refer to."""

    bigrams: Bigrams | None
    facets: dict[Hashable, dict[str, str]] | None  # of each label
    dictionary: TagDictionary | None
    resources: dict[str, Resource | MissingResource]


@dataclass(frozen=True)
class CRFSettings:
    """The parameters of a `CRF`, whose docstring explains them."""

    structure: SequenceStructure
    features: str | Template | FeatureFunctions | None
    optimizer: Optimizer | str
    l1: Strength
    l2: OpenStrength  # "auto": to be found
    all_possible_states: bool
    all_possible_transitions: bool
    min_count: int | str  # "auto": by the number of positions
    facets: str | Mapping[Any, Mapping[str, str]] | FacetsOf | bool | None
    tag_dictionary: bool | str | TagDictionary | None
    resources: Mapping[str, Resource | MissingResource] | None = None
    n_threads: int | None = None
    random_state: RandomState = None
    hash_bits: int | None = None
    decode: str = DEFAULT_DECODING
    margin: float = 0.0
    span_states: str | bool | None = None  # "auto": where the labels are BIO

    def check(self) -> None:
        """Refuse parameters that no CRF can be trained with. The strengths l1 and l2 are checked block by block later."""
        self.kind.check(self)
        check_optimizer(self.optimizer, self.l1)
        if isinstance(self.l2, str) and self.l2 != AUTO:
            raise ArgumentError(
                f"l2 is {self.l2!r}, expected a number, a dict of block names to numbers, or {AUTO!r}."
            )
        check_flag("all_possible_states", self.all_possible_states)
        check_flag("all_possible_transitions", self.all_possible_transitions)
        leaves_out = self.least_count(1) > 1
        if self.functions is not None and (self.all_possible_states or leaves_out):
            raise UnsupportedError(
                "all_possible_states and min_count are about counted features, not about feature functions"
            )
        check_hash_bits(self.hash_bits)
        check_strength("margin", self.margin)
        if self.hash_bits is not None and (self.functions is not None or not self.kind.adds_to_chain):
            what = "feature functions" if self.functions is not None else self.kind.written
            raise UnsupportedError(f"hash_bits is about features of positions in a chain, not about {what}")
        facets, dictionary = self.facets, self.tag_dictionary
        absent = facets is None or facets is False
        if not (absent or isinstance(facets, Mapping) or callable(facets) or is_facet_name(facets)):
            raise ArgumentError(
                f"facets is {facets!r}, expected None, False, {list_facet_names()}, a dict or a function of a label"
            )
        known = dictionary is None or isinstance(dictionary, bool | np.bool_ | TagDictionary)
        if not (known or (isinstance(dictionary, str) and dictionary == RELATED)):
            raise ArgumentError(
                f"tag_dictionary is {dictionary!r}, expected True, {RELATED!r}, None, False or a crfkit.TagDictionary"
            )
        check_resources(self.resources)
        check_model_decoding(self.decode)
        check_span_states(self)
        count_threads(self.n_threads)

    def least_count(self, n_positions: int) -> int:
        """At how many positions of a training set of this size a feature must be seen to be kept."""
        return least_count(self.min_count, n_positions)

    @property
    def kind(self) -> StructureKind:
        """What is known of structures of this kind; ArgumentError where the structure is none."""
        return kind_of(self.structure)

    @property
    def chain(self) -> Chain:
        """The structure without its patterns, or without the weights of its graph."""
        return self.structure.chain

    @property
    def reads_text(self) -> bool:
        """Whether positions are columns of text: those of a template."""
        return isinstance(self.features, str | Template)

    @property
    def functions(self) -> FeatureFunctions | None:
        """The feature functions, where `features` are such."""
        return self.features if isinstance(self.features, FeatureFunctions) else None

    def fit_template(self, X: Any) -> tuple[Any, Template | None]:
        """Training data X, still to be read, and the template: a preset fits itself to the columns of X."""
        if not isinstance(self.features, str) or self.features not in PRESETS:
            template = find_template(self.features, None, self.resources)
        else:
            X, n_columns = count_columns(X)
            template = find_template(self.features, n_columns, self.resources)
        check_used(self.resources, template, self.kind.used_resources(self.structure))
        return X, template

    def to_json(
        self, template: Template | None, resources: Mapping[str, Resource | MissingResource]
    ) -> dict[str, Any]:
        """What a model file keeps, with the names of the resources that the model reads.

        Threads and random numbers belong to the machine, not to the model.
        """
        is_preset = isinstance(self.features, str) and self.features in PRESETS
        return {
            "structure": settings_file.chain_to_json(self.chain) | self.kind.to_json(self.structure),
            "features": None if template is None else template.text,
            "language": None if template is None else template.LANGUAGE,
            "preset": self.features if is_preset else None,
            "optimizer": settings_file.optimizer_to_json(self.optimizer),
            "l1": settings_file.strength_to_json(self.l1),
            "l2": settings_file.strength_to_json(self.l2),
            "all_possible_states": bool(self.all_possible_states),
            "all_possible_transitions": bool(self.all_possible_transitions),
            "min_count": check_min_count(self.min_count),
            "facets": settings_file.name_or_listed(self.facets),
            "tag_dictionary": settings_file.name_or_listed(self.tag_dictionary),
            "resources": resource_file.to_json(resources),
            **({} if self.hash_bits is None else {"hash_bits": int(self.hash_bits)}),
            **({} if self.decode == DEFAULT_DECODING else {"decode": self.decode}),
            **({} if not self.margin else {"margin": float(self.margin)}),
            **({} if not self.span_states else {"span_states": self.span_states}),
        }

    @classmethod
    def from_json(cls, settings: dict[str, Any], n_columns: int | None, learned: Learned) -> "CRFSettings":
        """The parameters of a model with these columns, of its structure the chain; InputError for what cannot be any."""
        settings = current_names(settings)
        count = setting(settings, "min_count", (int, str))
        return cls(
            structure=settings_file.chain_from_json(setting(settings, "structure", dict), learned.bigrams),
            features=features_from_json(settings, n_columns, learned.resources),
            optimizer=settings_file.optimizer_from_json(settings, DEFAULT_OPTIMIZER),
            l1=settings_file.strength_from_json(settings, "l1"),
            l2=settings_file.strength_from_json(settings, "l2"),
            all_possible_states=setting(settings, "all_possible_states", bool),
            all_possible_transitions=setting(settings, "all_possible_transitions", bool),
            min_count=check_min_count(count),
            facets=settings_file.facets_from_json(settings, learned.facets),
            tag_dictionary=settings_file.dictionary_from_json(settings, learned.dictionary),
            resources=learned.resources or None,
            hash_bits=hash_bits_of(settings),
            decode=settings_file.decoding_from_json(settings),
            margin=setting({"margin": 0.0} | settings, "margin", (float, int)),
            span_states=settings_file.states_from_json(settings),
        )


@dataclass(frozen=True)
class ParserSettings:
    """The parameters of a `Parser`, whose docstring explains them."""

    optimizer: Optimizer | str
    l1: float
    l2: float
    single_root: bool
    decode: str
    min_count: int
    structure: str = "spanning"
    order: int = 1
    columns: Sequence[str] | None = None
    n_threads: int | None = None
    clusters: Clusters | None = None
    vectors: WordVectors | MissingResource | None = None

    def check(self) -> None:
        """Refuse parameters that no parser can be trained with."""
        check_optimizer(self.optimizer, self.l1)
        check_strength("l1", self.l1)
        check_strength("l2", self.l2)
        check_flag("single_root", self.single_root)
        check_decoder(self.decode)
        check_count("min_count", self.min_count)
        check_tree_structure(self.structure, self.order)
        check_columns(self.columns)
        if self.clusters is not None and not isinstance(self.clusters, Clusters):
            raise ArgumentError(f"clusters is {self.clusters!r}, expected crfkit.Clusters or None")
        if isinstance(self.vectors, MissingResource):
            raise self.vectors.complaint("vectors")
        if self.vectors is not None and not isinstance(self.vectors, WordVectors):
            raise ArgumentError(f"vectors is {self.vectors!r}, expected crfkit.WordVectors or None")
        count_threads(self.n_threads)

    def resources(self) -> dict[str, Resource | MissingResource]:
        """Those that a model with these settings reads, by the names that files have for them."""
        given = {"clusters": self.clusters, "vectors": self.vectors}
        return {name: resource for name, resource in given.items() if resource is not None}

    def encode(self, sentences: Sequence[Sentence]) -> Treebank:
        """The sentences as the native core reads them; NotLoadedError where word vectors are missing."""
        if isinstance(self.vectors, MissingResource):
            raise self.vectors.complaint("vectors")
        return encode_sentences(sentences, self.columns, self.clusters, self.vectors)

    def to_json(self) -> dict[str, Any]:
        """What a model file keeps beside clusters and vectors; threads belong to the machine, not to the model."""
        return {
            "optimizer": settings_file.optimizer_to_json(self.optimizer),
            "l1": float(self.l1),
            "l2": float(self.l2),
            "single_root": bool(self.single_root),
            "decode": self.decode,
            "min_count": int(self.min_count),
            "structure": self.structure,
            "order": int(self.order),
            "columns": None if self.columns is None else list(self.columns),
            "clusters": None if self.clusters is None else self.clusters.digest,
            "vectors": None if self.vectors is None else self.vectors.digest,
        }

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> "ParserSettings":
        """The inverse of `to_json`, without clusters and vectors; InputError for what cannot be parameters."""
        found = cls(
            optimizer=settings_file.optimizer_from_json(settings, PARSER_OPTIMIZER),
            l1=setting(settings, "l1", (float, int)),
            l2=setting(settings, "l2", (float, int)),
            single_root=setting(settings, "single_root", bool),
            decode=setting(settings, "decode", str),
            min_count=setting(settings, "min_count", int),
            structure=setting({"structure": "spanning"} | settings, "structure", str),
            order=setting({"order": 1} | settings, "order", int),
            columns=setting({"columns": None} | settings, "columns", (list, type(None))),
        )
        found.check()
        return found


def check_decoder(decode: object) -> None:
    """Refuse what is no decoder of trees."""
    if decode not in DECODERS:
        raise ArgumentError(f"decode is {decode!r}, expected {' or '.join(map(repr, DECODERS))}")


def check_tree_structure(structure: object, order: object) -> None:
    """Refuse what is no structure of trees, and what is no order."""
    if structure not in TREE_STRUCTURES:
        expected = " or ".join(map(repr, TREE_STRUCTURES))
        raise ArgumentError(f"structure is {structure!r}, expected {expected}")
    if isinstance(order, bool) or order not in (1, 2):
        raise ArgumentError(f"order is {order!r}, expected 1 or 2")


def check_columns(columns: object) -> None:
    """Refuse what are no columns that a parser reads."""
    if columns is None:
        return
    known = ", ".join(TREE_COLUMNS)
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise ArgumentError(f"columns is {columns!r}, expected None or a list of some of {known}")
    for name in columns:
        if name not in TREE_COLUMNS:
            raise ArgumentError(f"columns has {name!r}, expected some of {known}")


def check_used(
    resources: Mapping[str, Resource | MissingResource] | None,
    template: Template | None,
    of_structure: Mapping[str, Resource | MissingResource],
) -> None:
    """Refuse resources that no macro reads: none of the template, and none of the structure."""
    used = {**({} if template is None else template.used_resources()), **of_structure}
    for name in resources or {}:
        if name not in used:
            known = ", ".join(map(repr, used)) or "none"
            is_read = template is not None or of_structure
            what = f"the macros of the template read {known}" if is_read else "features is no template"
            raise ArgumentError(f"resources has {name!r}, but {what}")


def features_from_json(
    settings: dict[str, Any], n_columns: int | None, resources: Mapping[str, Resource | MissingResource]
) -> str | Template | None:
    """The parameter `features` of a model file: the name of a preset where that has the same lines."""
    features, name = settings_file.features_from_json(settings, n_columns), settings.get("preset")
    if isinstance(features, Template) and resources and isinstance(name, str) and name in PRESETS:
        template = find_template(name, n_columns, resources)
        return name if template == features else features
    return features


def find_template(
    features: object,
    n_columns: int | None = None,
    resources: Mapping[str, Resource | MissingResource] | None = None,
) -> Template | None:
    """The template that the parameter `features` stands for: itself, its text, or the preset of this name.

    With `n_columns`, a preset leaves out what reads columns beyond these. It has lines of its own for resources.
    """
    template = _find_template(features, n_columns)
    of_preset = isinstance(features, str) and features in PRESETS
    return None if template is None else bind_resources(template, resources, of_preset=of_preset)


def _find_template(features: object, n_columns: int | None) -> Template | None:
    if features is None or isinstance(features, Template):
        return features
    if isinstance(features, FeatureFunctions):
        return None
    if not isinstance(features, str):
        raise ArgumentError(
            f"features is {features!r}, expected None, the name of a preset, a Template or its text, or FeatureFunctions"
            f"{_FROM_FILE}"
        )
    if features in PRESETS:
        return preset(features, n_columns)
    if "\n" in features or _ONE_LINE.fullmatch(features):
        return Template.parse(features, source="features")
    raise ArgumentError(
        f"features is {features!r}, expected the name of a preset ({', '.join(PRESETS)}), or a template: "
        f"lines that begin with U or B, or with a name and ={_FROM_FILE}"
    )
