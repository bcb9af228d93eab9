"""Features: what is seen in the input, as strings and as flat arrays."""

from crfkit._core import ColumnChunk, ColumnCutter, Treebank, Vocabulary, available_threads
from crfkit.features.allowed import encode_allowed, first_of
from crfkit.features.arc_map import FEATURE_SET, ArcMap, VectorLayout
from crfkit.features.arc_pruner import ArcPruner, crossing_share, lift_crossing_arcs
from crfkit.features.arc_template_names import ARC_TEMPLATES
from crfkit.features.column_rows import ColumnRows
from crfkit.features.costs import (
    CostFeatures,
    Costs,
    check_costs,
    fix_margin,
    mark_right_labels,
    read_costs,
    with_margin_features,
)
from crfkit.features.dataset import Annotation, Dataset, FeatureList
from crfkit.features.dictionary_words import DictionaryWords, WordCounts
from crfkit.features.encoded_data import encode_files, encode_pairs, encode_sources
from crfkit.features.encoding import Encoder, check_hash_bits
from crfkit.features.facets import (
    LABEL_KIND,
    NAMED_FACETS,
    WITH_LABELS,
    Facets,
    FacetsOf,
    guess_facets,
    is_facet_name,
    list_facet_names,
)
from crfkit.features.factor_data import GraphAnswers, check_possible, graph_loss, read_outputs, scored_graph
from crfkit.features.factor_map import FactorKind, FactorMap, learn_factors
from crfkit.features.feature_map import FeatureMap
from crfkit.features.frequent_words import FREQUENT_WORD_ARRAYS, FrequentWords
from crfkit.features.function_data import FunctionData, Slice
from crfkit.features.function_map import FunctionMap
from crfkit.features.function_values import Outputs
from crfkit.features.functions import FeatureFunction, FeatureFunctions
from crfkit.features.graph_map import GraphMap
from crfkit.features.graph_template import GraphInput, GraphTemplate, read_input
from crfkit.features.hunspell import HunspellForm, hunspell_forms
from crfkit.features.import_paths import import_path, load_function, placeholder
from crfkit.features.joint_parts import (
    PART_NAMES,
    JointParts,
    describe_shard,
    join_parts,
    make_head,
    read_counts,
)
from crfkit.features.knowledge import (
    ClusteredWord,
    Clusters,
    Lexicon,
    Match,
    MissingResource,
    Resource,
    WordVectors,
    check_resources,
    learn_clusters,
    open_resource,
    open_vectors,
    resource_from_bytes,
    resource_lines,
)
from crfkit.features.labels import Labels, check_lists
from crfkit.features.lattice_map import (
    OFF_PATH,
    ON_PATH,
    UNKNOWN,
    LatticeDataset,
    LatticeMap,
    read_lattices,
    with_arcs,
)
from crfkit.features.lattice_paths import encode_paths, gold_triples, path_numbers, path_spans, path_triples
from crfkit.features.merged_features import Coordinates, MergedFeatures
from crfkit.features.pair_sources import PairSource, cut_pairs, file_source, read_row_shards
from crfkit.features.part_encoding import ENCODED_SHARD_SIZE, EncodingSettings, encode_part
from crfkit.features.pattern_map import PatternData, PatternMap
from crfkit.features.penalties import (
    DEFAULT_BLOCK,
    OpenStrength,
    Strength,
    block_of,
    open_blocks,
    penalty_vector,
)
from crfkit.features.position_words import Column, check_word_column, read_once
from crfkit.features.presets import (
    PRESETS,
    bind_resources,
    count_columns,
    preset,
    preset_note,
    recommend_encoding,
)
from crfkit.features.rare_features import check_min_count, least_count
from crfkit.features.related_forms import RelatedForms
from crfkit.features.sampled_parts import SampledDataset, open_part, sample_part
from crfkit.features.segment_features import SegmentCells
from crfkit.features.segment_map import SegmentMap
from crfkit.features.segment_templates import SegmentTemplate
from crfkit.features.shard_arrays import read_shard
from crfkit.features.shards import SHARD_SIZE, ShardCutter, cut_shards
from crfkit.features.span_lists import without_spans
from crfkit.features.span_states import IOBES, StateLabels
from crfkit.features.tag_dictionary import RELATED, Coverage, TagDictionary
from crfkit.features.templates import NAMED_LINE, Template
from crfkit.features.treebank import (
    COLUMNS,
    KnownTrees,
    check_sentences,
    check_trees,
    encode_sentences,
    known_trees,
    labels_of,
)
from crfkit.features.wapiti_patterns import WapitiPatterns
from crfkit.features.wapiti_tokens import WapitiTokens
from crfkit.features.words import (
    WORD_COST,
    Candidate,
    CharacterClass,
    CharacterClasses,
    Entry,
    Rewriting,
    WordDictionary,
    WordTemplates,
    as_fields,
    join_fields,
    read_word,
    split_fields,
)

__all__ = [
    "ARC_TEMPLATES",
    "COLUMNS",
    "DEFAULT_BLOCK",
    "ENCODED_SHARD_SIZE",
    "FEATURE_SET",
    "FREQUENT_WORD_ARRAYS",
    "IOBES",
    "LABEL_KIND",
    "NAMED_FACETS",
    "NAMED_LINE",
    "OFF_PATH",
    "ON_PATH",
    "PART_NAMES",
    "PRESETS",
    "RELATED",
    "SHARD_SIZE",
    "UNKNOWN",
    "WITH_LABELS",
    "WORD_COST",
    "Annotation",
    "ArcMap",
    "ArcPruner",
    "Candidate",
    "CharacterClass",
    "CharacterClasses",
    "ClusteredWord",
    "Clusters",
    "Column",
    "ColumnChunk",
    "ColumnCutter",
    "ColumnRows",
    "Coordinates",
    "CostFeatures",
    "Costs",
    "Coverage",
    "Dataset",
    "DictionaryWords",
    "Encoder",
    "EncodingSettings",
    "Entry",
    "Facets",
    "FacetsOf",
    "FactorKind",
    "FactorMap",
    "FeatureFunction",
    "FeatureFunctions",
    "FeatureList",
    "FeatureMap",
    "FrequentWords",
    "FunctionData",
    "FunctionMap",
    "GraphAnswers",
    "GraphInput",
    "GraphMap",
    "GraphTemplate",
    "HunspellForm",
    "JointParts",
    "KnownTrees",
    "Labels",
    "LatticeDataset",
    "LatticeMap",
    "Lexicon",
    "Match",
    "MergedFeatures",
    "MissingResource",
    "OpenStrength",
    "Outputs",
    "PairSource",
    "PatternData",
    "PatternMap",
    "RelatedForms",
    "Resource",
    "Rewriting",
    "SampledDataset",
    "SegmentCells",
    "SegmentMap",
    "SegmentTemplate",
    "ShardCutter",
    "Slice",
    "StateLabels",
    "Strength",
    "TagDictionary",
    "Template",
    "Treebank",
    "VectorLayout",
    "Vocabulary",
    "WapitiPatterns",
    "WapitiTokens",
    "WordCounts",
    "WordDictionary",
    "WordTemplates",
    "WordVectors",
    "as_fields",
    "available_threads",
    "bind_resources",
    "block_of",
    "check_costs",
    "check_hash_bits",
    "check_lists",
    "check_min_count",
    "check_possible",
    "check_resources",
    "check_sentences",
    "check_trees",
    "check_word_column",
    "count_columns",
    "crossing_share",
    "cut_pairs",
    "cut_shards",
    "describe_shard",
    "encode_allowed",
    "encode_files",
    "encode_pairs",
    "encode_part",
    "encode_paths",
    "encode_sentences",
    "encode_sources",
    "file_source",
    "first_of",
    "fix_margin",
    "gold_triples",
    "graph_loss",
    "guess_facets",
    "hunspell_forms",
    "import_path",
    "is_facet_name",
    "join_fields",
    "join_parts",
    "known_trees",
    "labels_of",
    "learn_clusters",
    "learn_factors",
    "least_count",
    "lift_crossing_arcs",
    "list_facet_names",
    "load_function",
    "make_head",
    "mark_right_labels",
    "open_blocks",
    "open_part",
    "open_resource",
    "open_vectors",
    "path_numbers",
    "path_spans",
    "path_triples",
    "penalty_vector",
    "placeholder",
    "preset",
    "preset_note",
    "read_costs",
    "read_counts",
    "read_input",
    "read_lattices",
    "read_once",
    "read_outputs",
    "read_row_shards",
    "read_shard",
    "read_word",
    "recommend_encoding",
    "resource_from_bytes",
    "resource_lines",
    "sample_part",
    "scored_graph",
    "split_fields",
    "with_arcs",
    "with_margin_features",
    "without_spans",
]
