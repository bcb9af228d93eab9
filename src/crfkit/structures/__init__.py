"""Structures: which outputs exist, the allowed labels that restrict them, and the scores of their parts."""

from crfkit.errors import NoOutputError
from crfkit.structures.annotation import Outside, observe_bigrams
from crfkit.structures.bigrams import END, START, Bigrams, Missing
from crfkit.structures.chain import (
    OBSERVED,
    UNSEEN,
    Chain,
    ChainMarginals,
    ChainScores,
    ScoredOutput,
    SequenceStructure,
)
from crfkit.structures.factor_graph import Assignment, FactorGraph, GraphMarginals, Variable
from crfkit.structures.factor_tables import FactorTables
from crfkit.structures.factors import CountFactor, EqualFactor, Factor, ListFactor, TableFactor
from crfkit.structures.gates import Condition, Gate, Macro, parse_gate
from crfkit.structures.graph_structure import Arc, GraphStructure, OutputGraph
from crfkit.structures.label_counts import ANYWHERE, FIRST, LAST, Affixes, Gram, Ngrams, places
from crfkit.structures.label_units import LabelUnits
from crfkit.structures.lattice import CostMatrix, Lattice, LatticeArc, WordLattice
from crfkit.structures.path_graph import PathGraph
from crfkit.structures.pattern_automaton import Automaton, Effort
from crfkit.structures.pattern_chain import PatternChain, PatternMarginals, PatternScores, PatternStarts
from crfkit.structures.pattern_matcher import MatcherState, MatcherWriter, PatternMatcher
from crfkit.structures.pattern_rules import Rule, write_grams, write_pattern
from crfkit.structures.patterns import Configurations, Growth, Pattern, Patterns, function_name, size_words
from crfkit.structures.projective_tree import (
    ProjectiveTree,
    TreeParts,
    adjacent_siblings,
    is_projective,
    possible_siblings,
    sibling_scores,
)
from crfkit.structures.schemes import PLAIN, SCHEMES, bio_to_iob1, find_scheme, iob1_to_bio, label_place
from crfkit.structures.score_arrays import numeric
from crfkit.structures.segments import (
    IOB1_HINT,
    SegmentExtractor,
    SegmentFeature,
    SegmentMatches,
    SegmentNames,
    Segments,
    SegmentTypes,
    segment_labels,
)
from crfkit.structures.spanning_tree import SpanningTree, allowed_arcs, is_tree, tree_output, tree_scores
from crfkit.structures.spans import Span, SpanLabels, Threshold
from crfkit.structures.structure import AllowedLabels, Structure
from crfkit.structures.support import Support

__all__ = [
    "ANYWHERE",
    "END",
    "FIRST",
    "IOB1_HINT",
    "LAST",
    "OBSERVED",
    "PLAIN",
    "SCHEMES",
    "START",
    "UNSEEN",
    "Affixes",
    "AllowedLabels",
    "Arc",
    "Assignment",
    "Automaton",
    "Bigrams",
    "Chain",
    "ChainMarginals",
    "ChainScores",
    "Condition",
    "Configurations",
    "CostMatrix",
    "CountFactor",
    "Effort",
    "EqualFactor",
    "Factor",
    "FactorGraph",
    "FactorTables",
    "Gate",
    "Gram",
    "GraphMarginals",
    "GraphStructure",
    "Growth",
    "LabelUnits",
    "Lattice",
    "LatticeArc",
    "ListFactor",
    "Macro",
    "MatcherState",
    "MatcherWriter",
    "Missing",
    "Ngrams",
    "NoOutputError",
    "OutputGraph",
    "Outside",
    "PathGraph",
    "Pattern",
    "PatternChain",
    "PatternMarginals",
    "PatternMatcher",
    "PatternScores",
    "PatternStarts",
    "Patterns",
    "ProjectiveTree",
    "Rule",
    "ScoredOutput",
    "SegmentExtractor",
    "SegmentFeature",
    "SegmentMatches",
    "SegmentNames",
    "SegmentTypes",
    "Segments",
    "SequenceStructure",
    "Span",
    "SpanLabels",
    "SpanningTree",
    "Structure",
    "Support",
    "TableFactor",
    "Threshold",
    "TreeParts",
    "Variable",
    "WordLattice",
    "adjacent_siblings",
    "allowed_arcs",
    "bio_to_iob1",
    "find_scheme",
    "function_name",
    "iob1_to_bio",
    "is_projective",
    "is_tree",
    "label_place",
    "numeric",
    "observe_bigrams",
    "parse_gate",
    "places",
    "possible_siblings",
    "segment_labels",
    "sibling_scores",
    "size_words",
    "tree_output",
    "tree_scores",
    "write_grams",
    "write_pattern",
]
