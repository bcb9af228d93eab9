"""The native core: whole-dataset calls on flat arrays. Shapes are given where they are not obvious."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]
PairRows = npt.NDArray[Any]  # float32, or uint16: bfloat16, the upper halves of such numbers
Float64s = npt.NDArray[np.float64]
Floats = npt.NDArray[Any]  # of float32 or of float64
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

LARGEST_VALUE: float  # of a feature; more is refused

def available_threads() -> int:
    """How many cores this process may use: its affinity and the limits of its control group."""

def control_group_limit(root: str) -> int: ...
def instruction_set() -> str: ...

# vectors: l1 is [1] or [D]

def vector_products(a: Float64s, b: Float64s, n_threads: int) -> tuple[float, float]: ...
def vector_step(x: Float64s, direction: Float64s, t: float, n_threads: int) -> Float64s: ...
def vector_penalty(x: Float64s, l1: Float64s, n_threads: int) -> float: ...
def vector_pseudo_gradient(
    x: Float64s, gradient: Float64s, l1: Float64s, n_threads: int
) -> tuple[Float64s, float]: ...
def vector_orthant_step(
    x: Float64s,
    direction: Float64s,
    pseudo: Float64s,
    l1: Float64s,
    t: float,
    aligned: bool,
    n_threads: int,
) -> tuple[Float64s, float, float]: ...
def pairs_write(
    rows: PairRows,  # [R, D], with ids [R, C]
    n_rows: int,
    s_row: int,
    x: Float64s,
    x_before: Float64s,
    g: Float64s,
    g_before: Float64s,
    v: Float64s,
    n_threads: int,
    ids: Int64s | None = None,
) -> tuple[Float64s, Float64s, float, Float64s]: ...
def pairs_gram(rows: PairRows, n_rows: int, n_columns: int, n_threads: int) -> Float64s: ...
def pairs_products(rows: PairRows, n_rows: int, v: Float64s, n_threads: int) -> Float64s: ...
def pairs_combine(
    rows: PairRows,
    coefficients: Float64s,
    v: Float64s,
    factor: float,
    n_threads: int,
    ids: Int64s | None = None,
    n_weights: int = 0,
) -> tuple[Float64s, float]: ...

# questions on the outputs of one structure at its scores

class ScoredGraph(Protocol):
    def log_partition(self, in_log_space: bool = False) -> float: ...
    def marginals(self, in_log_space: bool = False) -> tuple[Float64s, ...]: ...
    def hessian_vector(
        self, direction: ScoredGraph, in_log_space: bool = False
    ) -> tuple[Float64s, ...]: ...  # direction: of the same class
    def entropy(self, in_log_space: bool = False) -> float: ...
    def decode(self) -> tuple[float, Int32s]: ...
    def k_best(self, k: int) -> list[tuple[float, Int32s]]: ...
    @property
    def n_uniforms(self) -> int: ...  # of one sample
    def sample(self, uniforms: Float64s) -> Int32s: ...  # uniforms [n, n_uniforms]

class ScoredChain(ScoredGraph):  # states [T, L] with start and end folded in, arcs [L, L] or [T − 1, L, L]
    def __init__(self, states: Float64s, arcs: Float64s) -> None: ...

# many chains: states [N, T, L], arcs [L, L] or [N, L, L], all of one precision

def chain_batch_expectations(
    states: Floats,
    arcs: Floats,
    start: Floats | None,
    end: Floats | None,
    lengths: Int64s,
    weights: Floats | None,
    marginals: bool,
    n_threads: int,
) -> tuple[Float64s, Floats, Floats]: ...
def chain_batch_best(
    states: Floats,
    arcs: Floats,
    start: Floats | None,
    end: Floats | None,
    lengths: Int64s,
    n_threads: int,
) -> Int64s: ...
def chain_batch_spans(
    states: Float64s,
    arcs: Float64s,
    start: Float64s | None,
    end: Float64s | None,
    lengths: Int64s,
    labels: SpanLabels,
    threshold: float,
    n_threads: int,
) -> tuple[Int64s, Int64s, Int64s, Int32s, Float64s]: ...
def chain_batch_span_probabilities(
    states: Float64s,
    arcs: Float64s,
    start: Float64s | None,
    end: Float64s | None,
    lengths: Int64s,
    labels: SpanLabels,
    rows: Int64s,
    starts: Int64s,
    ends: Int64s,
    types: Int64s,
    n_threads: int,
) -> Float64s: ...
def chain_batch_n_spans(
    states: Float64s,
    arcs: Float64s,
    start: Float64s | None,
    end: Float64s | None,
    lengths: Int64s,
    labels: SpanLabels,
    n_threads: int,
) -> Float64s: ...

# many semi-Markov chains: states [N, T, L], lengths [K, L], transitions [L, L] or [N, L, L], segments [N, T, K, L]

def segment_batch_expectations(
    states: Float64s,
    lengths: Float64s,
    transitions: Float64s,
    start: Float64s | None,
    end: Float64s | None,
    first: Float64s | None,
    last: Float64s | None,
    segments: Float64s | None,
    sequence_sizes: Int64s,
    n_threads: int,
) -> tuple[Any, ...]: ...
def segment_batch_best(
    states: Float64s,
    lengths: Float64s,
    transitions: Float64s,
    start: Float64s | None,
    end: Float64s | None,
    first: Float64s | None,
    last: Float64s | None,
    segments: Float64s | None,
    sequence_sizes: Int64s,
    n_threads: int,
) -> Int64s: ...

# trees: sentences one after the other, scores [Σ (T + 1)² R] with lengths T [N]

class ScoredTrees:  # siblings: of projective trees alone
    n_uniforms: int  # that `sample` takes for a word
    def __init__(
        self,
        scores: Float64s,
        lengths: Int64s,
        n_labels: int,
        one_root: bool,
        n_threads: int,
        siblings: Float64s | None = None,
    ) -> None: ...
    def log_partition(self) -> Float64s: ...
    # log Z [N], and numbers in the shapes of the scores; None where there are no siblings
    def marginals(self) -> tuple[Float64s, Float64s, Float64s | None]: ...
    def hessian_vector(
        self, direction: Float64s, siblings: Float64s | None = None
    ) -> tuple[Float64s, Float64s | None]: ...
    def entropy(self) -> Float64s: ...
    def decode(self) -> tuple[Float64s, Int32s, Int32s]: ...  # scores [N], heads and labels [Σ T]
    def k_best(self, k: int) -> list[list[tuple[float, Int32s, Int32s]]]: ...
    def sample(self, n: int, uniforms: Float64s) -> tuple[Int32s, Int32s]: ...  # uniforms [Σ n T n_uniforms]

class ScoredProjectiveTrees(ScoredTrees): ...
class ProjectiveTreesByEngine(ScoredTrees): ...  # the same without faster backends

# objective

class Layout:
    def __init__(
        self,
        n_labels: int,
        pair_ptr: Int64s,
        pair_labels: Int32s,
        dense_columns: Int64s,
        arc_before: Int32s,
        arc_after: Int32s,
        arc_ptr: Int64s,
        arc_triples: Int32s,
        allowed_before: Int32s | None = None,
        allowed_after: Int32s | None = None,
        soft: bool = False,
        facet_ptr: Int64s | None = None,
        facet_ids: Int32s | None = None,
        n_facets: int = 0,
    ) -> None: ...
    @property
    def n_weights(self) -> int: ...
    def feature_scores(
        self,
        w: Float64s,
        names: Vocabulary,
        ids: Int32s,
        values: Float64s | None,
        coefficients: Float64s,
    ) -> tuple[list[str], list[float]]: ...

class Design:
    def __init__(
        self,
        layout: Layout,
        sequence_ptr: Int64s,
        position_ptr: Int64s,
        ids: Int32s,
        values: Float64s | None,
        arc_position_ptr: Int64s | None,
        arc_ids: Int32s | None,
        arc_values: Float64s | None,
        dense: list[Float64s],
        n_threads: int,
        allowed_ptr: Int64s | None = None,
        allowed_labels: Int32s | None = None,
        purpose: str = "training",
    ) -> None: ...
    @property
    def as_batches(self) -> bool: ...

class DataLoss:  # Σ_n weight_n (log Z_n − log Z_gold,n)
    @property
    def n_weights(self) -> int: ...
    @property
    def n_sequences(self) -> int: ...
    @property
    def shard_ptr(self) -> list[int]: ...
    def set_shard(self) -> None: ...  # of a larger data set, before the first question
    def takes_any_order(self) -> bool: ...

def sharded_loss(losses: list[DataLoss]) -> DataLoss: ...  # added in the order of `objective.add_in_tree`

class PythonLoss(DataLoss):  # what Python functions compute
    def __init__(
        self,
        n_weights: int,
        n_sequences: int,
        n_threads: int,
        evaluate: Callable[[Float64s], tuple[float, Float64s]],
        hessian_vector: Callable[[Float64s, Float64s], Float64s],
        refine: Callable[[], bool],
    ) -> None: ...

# what an objective asks of a loss
def evaluate_loss(loss: DataLoss, w: Float64s, gradient: Float64s) -> float: ...  # fills the gradient
def loss_hessian_vector(loss: DataLoss, w: Float64s, v: Float64s, out: Float64s) -> None: ...
def refine_loss(loss: DataLoss) -> bool: ...
def stored_loss(  # shards whose losses are made when they are asked for, and kept in a scratch file
    shard_ptr: list[int], make: Callable[[int], DataLoss], n_weights: int, scratch: str, n_threads: int
) -> DataLoss: ...
def chain_loss(
    layout: Layout,
    design: Design,
    labels: Int32s,
    set_ptr: Int64s | None,
    set_labels: Int32s | None,
    weights: Float64s,
    single_precision: bool,
    n_threads: int,
) -> DataLoss: ...

class FunctionSlices:  # slices are (first and last sequence, lattices, features): number i, or one that has sequence n
    def __init__(
        self,
        n_slices: int,
        slice: Callable[[int], tuple[int, int, Lattices, list[ActiveFeatures]]],
        slice_of: Callable[[int], tuple[int, int, Lattices, list[ActiveFeatures]]],
    ) -> None: ...

def pattern_loss(  # of trellises over a design made for "patterns"; functions: in place of the features of the design
    trellises: Trellises,
    functions: FunctionSlices | None,
    labels: Int32s,
    set_ptr: Int64s | None,
    set_labels: Int32s | None,
    weights: Float64s,
    n_weights: int,
    single_precision: bool,
    n_threads: int,
) -> DataLoss: ...
def graph_loss(
    data: GraphData,
    labels: Int32s,
    set_ptr: Int64s | None,
    set_labels: Int32s | None,
    weights: Float64s,
    n_weights: int,
    n_threads: int,
) -> DataLoss: ...
def segment_loss(
    data: SegmentData,
    labels: Int32s,
    set_ptr: Int64s | None,
    set_labels: Int32s | None,
    weights: Float64s,
    single_precision: bool,
    n_threads: int,
) -> DataLoss: ...
def word_lattice_loss(
    data: WordLattices,
    labels: Int32s,
    weights: Float64s,
    n_weights: int,
    n_threads: int,
    by_parts: bool = False,  # by the path engine alone
) -> DataLoss: ...
def function_loss(
    slices: FunctionSlices,
    sequence_ptr: Int64s,
    labels: Int32s,
    set_ptr: Int64s | None,
    set_labels: Int32s | None,
    weights: Float64s,
    n_weights: int,
    n_threads: int,
) -> DataLoss: ...
def tree_loss(
    layout: ArcLayout,
    treebank: Treebank,
    heads: Int32s,
    labels: Int32s,
    weights: Float64s,
    one_root: bool,
    n_threads: int,
) -> DataLoss: ...
def second_order_loss(
    layout: ArcLayout,
    treebank: Treebank,
    heads: Int32s,
    labels: Int32s,
    weights: Float64s,
    candidates: CandidateArcs,
    projective: bool,
    one_root: bool,
    n_threads: int,
) -> DataLoss: ...
def fix_weights(  # the loss of its other weights, these being weights begin.. of it
    loss: DataLoss, begin: int, fixed: Float64s
) -> DataLoss: ...

class Objective:  # a loss with the penalty ½ Σ l2 w²; l2 [1] or [D]
    def __init__(self, loss: DataLoss, l2: Float64s) -> None: ...
    @property
    def l2(self) -> Float64s: ...  # not a copy, read-only
    def refine(self) -> bool: ...
    def value_and_gradient(self, w: Float64s) -> tuple[float, Float64s]: ...
    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s: ...

# stochastic training methods: rules, and the steps of one pass by one of them

class StepRule: ...
class GradientRule(StepRule): ...

class SGDRule(GradientRule):  # state: weights [D], total [D] where the sum of the weights is wanted
    def __init__(self, rates: Float64s, batch: int) -> None: ...  # rates [steps]

class AdaGradRule(GradientRule):  # state: weights, z, root [D]
    def __init__(self, rate: float, passes: float, batch: int) -> None: ...

class SAGRule(GradientRule):  # state: weights, gradient_sum [D], residuals, visits [4 N], n_losses [1]
    def __init__(self, uniforms: Float64s) -> None: ...  # [2 · steps]

class MistakeRule(StepRule): ...  # state: weights [D], time [1], weighted_steps [D] where a mean is wanted

class PerceptronRule(MistakeRule):
    def __init__(self) -> None: ...

class PassiveAggressiveRule(MistakeRule):
    def __init__(self, variant: int, aggressiveness: float, error_sensitive: bool) -> None: ...

class AROWRule(MistakeRule):  # state: weights, variances [D], time [1]
    def __init__(self, gamma: float) -> None: ...

class Dropout:  # features of single sequences are dropped with this probability, by (seed, sequence, feature)
    def __init__(
        self,
        features: Int32s,  # [D] of each weight; −1: never dropped
        rate: float,
        seed: int,
    ) -> None: ...

def run(
    objective: Objective,
    rule: StepRule,
    l1: Float64s,  # [1] or [D]
    state: dict[str, Float64s],  # changed in place
    order: Int32s,
    dropout: Dropout | None = None,  # for rules that go along gradients
) -> float: ...
def n_residuals(objective: Objective) -> int: ...

# treebanks: sentences of words, of which the first five texts are read; heads and labels [T], −1 where unknown

class Treebank:
    """Sentences with heads and relations, as the native module holds them."""

    def __init__(
        self,
        sentences: list[Any],
        paths: list[str] | None = None,
        vectors: Float64s | None = None,  # [·, K]
        vector_ids: Int32s | None = None,  # [T] rows of these, −1: none
    ) -> None: ...
    @property
    def n_sentences(self) -> int: ...
    @property
    def sentence_ptr(self) -> Int64s: ...  # [N + 1] words

class VectorLayout:
    """Blocks of weights of word vectors: K for each row, that of a label, or of all labels alike (n_labels)."""

    def __init__(self, size: int, keys: Int64s, ptr: Int64s, labels: Int32s, n_labels: int) -> None: ...
    @property
    def size(self) -> int: ...  # K, 0: there are none
    @property
    def n_weights(self) -> int: ...
    @property
    def keys(self) -> Int64s: ...
    @property
    def ptr(self) -> Int64s: ...  # [blocks + 1]
    @property
    def labels(self) -> Int32s: ...

class ArcLayout:
    def __init__(
        self,
        n_labels: int,
        arc_keys: Int64s,
        label_keys: Int64s,
        pair_ptr: Int64s,
        pair_labels: Int32s,
        coarse: bool = False,
        vectors: VectorLayout | None = None,
    ) -> None: ...
    @property
    def vectors(self) -> VectorLayout: ...
    @staticmethod
    def learn(
        treebank: Treebank, heads: Int32s, labels: Int32s, n_labels: int, min_count: int, order: int = 1
    ) -> ArcLayout: ...
    @staticmethod
    def learn_coarse(treebank: Treebank, heads: Int32s, min_count: int) -> ArcLayout: ...
    @property
    def is_coarse(self) -> bool: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_weights(self) -> int: ...
    @property
    def arc_keys(self) -> Int64s: ...
    @property
    def label_keys(self) -> Int64s: ...
    @property
    def pair_ptr(self) -> Int64s: ...
    @property
    def pair_labels(self) -> Int32s: ...

class TreeParser:
    def __init__(self, layout: ArcLayout, w: Float64s, one_root: bool) -> None: ...
    def decode(
        self, treebank: Treebank, minimum_risk: bool = False, n_threads: int = 1
    ) -> tuple[Int32s, Int32s]: ...
    def k_best(
        self, treebank: Treebank, k: int, n_threads: int = 1
    ) -> list[list[tuple[float, Int32s, Int32s]]]: ...
    def log_partitions(
        self,
        treebank: Treebank,
        heads: Int32s | None = None,
        labels: Int32s | None = None,
        n_threads: int = 1,
    ) -> Float64s: ...
    def marginals(
        self, treebank: Treebank, labelled: bool = False, n_threads: int = 1
    ) -> list[Float64s]: ...  # [T + 1, T + 1], labelled [T + 1, T + 1, R]
    def scores(self, treebank: Treebank, n_threads: int = 1) -> list[Float64s]: ...  # [T + 1, T + 1, R]
    def explain_arc(
        self, treebank: Treebank, n: int, head: int, dependent: int
    ) -> tuple[Int64s, Float64s, Float64s]: ...

class CandidateArcs:  # sentence_ptr [N + 1], arcs [A, 2] (head, dependent)
    def __init__(self, sentence_ptr: Int64s, heads: Int32s, dependents: Int32s) -> None: ...
    @property
    def sentence_ptr(self) -> Int64s: ...
    @property
    def arcs(self) -> Int32s: ...

class PruningModel:
    def __init__(self, layout: ArcLayout, w: Float64s, threshold: float, most: int) -> None: ...
    def candidates(
        self, treebank: Treebank, heads: Int32s, one_root: bool, n_threads: int
    ) -> CandidateArcs: ...

def lifted_heads(treebank: Treebank, heads: Int32s) -> Int32s: ...

class SecondOrderParser:
    def __init__(
        self, pruning: PruningModel, layout: ArcLayout, w: Float64s, projective: bool, one_root: bool
    ) -> None: ...
    def decode(
        self, treebank: Treebank, minimum_risk: bool = False, n_threads: int = 1
    ) -> tuple[Int32s, Int32s]: ...
    def bounded_decode(
        self, treebank: Treebank, most_iterations: int, n_threads: int = 1
    ) -> list[tuple[float, float, int, Int32s, Int32s]]: ...  # score, bound, iterations, heads, labels
    def k_best(
        self, treebank: Treebank, k: int, n_threads: int = 1
    ) -> list[list[tuple[float, Int32s, Int32s]]]: ...
    def log_partitions(self, treebank: Treebank, n_threads: int = 1) -> Float64s: ...
    def log_likelihoods(
        self, treebank: Treebank, heads: Int32s, labels: Int32s, add_arcs: bool = False, n_threads: int = 1
    ) -> Float64s: ...
    def marginals(
        self, treebank: Treebank, labelled: bool = False, n_threads: int = 1
    ) -> list[Float64s]: ...  # [T + 1, T + 1], labelled [T + 1, T + 1, R]
    # arcs [A, 2], parts of second order [P, 5], scores [A · R + P]
    def explain_arc(
        self, treebank: Treebank, n: int, head: int, dependent: int
    ) -> tuple[Int64s, Float64s, Float64s]: ...
    def explain_heads(
        self, treebank: Treebank, n: int, dependent: int, heads: Int32s
    ) -> list[tuple[float, float, float]]: ...
    def parts(self, treebank: Treebank, n: int) -> tuple[Int32s, Int32s, Float64s]: ...

# log p, own, before, after, left, right, label before, label after
LabelContext = tuple[float, float, float, float, float, float, int, int]

class ScoredSequences:  # a data set at the weights of a trained model
    @property
    def n_positions(self) -> int: ...
    @property
    def n_sequences(self) -> int: ...
    def decode(self, n_threads: int) -> Int32s: ...
    def marginals(self, n_threads: int) -> Float64s: ...
    def log_partitions(
        self, labels: Int32s | None, set_ptr: Int64s | None, set_labels: Int32s | None, n_threads: int
    ) -> Float64s: ...
    def k_best(self, k: int, n_threads: int) -> list[list[tuple[float, Int32s]]]: ...
    def sample(self, n: int, uniforms: Float64s, n_threads: int) -> Int32s: ...
    def explain(
        self, n: int, i: int, label: int, against: int
    ) -> tuple[int, int, LabelContext, LabelContext]: ...
    def explain_arcs(self, n: int, arc: int, against: int) -> tuple[LabelContext, LabelContext]: ...
    # log Z [E], log F, own [E, K], arcs [E, K + 1], probabilities [E, K, L] of E events
    def explain_windows(
        self, n: int, first: int, size: int, allowed: npt.NDArray[np.uint8]
    ) -> tuple[Float64s, Float64s, Float64s, Float64s, Float64s]: ...
    # ptr [N + 1], starts, ends, types, probabilities
    def spans(
        self, labels: SpanLabels, threshold: float, n_threads: int
    ) -> tuple[Int64s, Int64s, Int64s, Int32s, Float64s]: ...
    def decoded_spans(
        self, labels: SpanLabels, n_threads: int
    ) -> tuple[Int64s, Int64s, Int64s, Int32s, Float64s]: ...
    def n_spans(self, labels: SpanLabels, n_threads: int) -> Float64s: ...

class SpanLabels:  # [L] each; types: −1 outside of all spans
    def __init__(
        self, types: Int32s, goes_on: npt.NDArray[np.uint8], follows: npt.NDArray[np.uint8]
    ) -> None: ...

class ChainPotentials:  # local: normalised at each position
    def __init__(self, layout: Layout, w: Float64s, local: bool = False) -> None: ...
    def score(self, data: Design, n_threads: int) -> ScoredSequences: ...
    def scores(self, data: Design, n: int) -> tuple[Float64s, Float64s]: ...

class PatternPotentials:
    def __init__(self, layout: Layout, w: Float64s, first_weight: int) -> None: ...
    def score(self, trellises: Trellises, functions: FunctionSlices | None) -> ScoredSequences: ...

# lattices whose nodes and arcs have features of their own

class ActiveFeatures:  # dense [parts, n_weights]; or ptr [parts + 1], ids and values; or ids [parts] alone, −1: none
    def __init__(
        self,
        on_arcs: bool,
        first_weight: int,
        n_weights: int,
        n_parts: int,
        dense: Float64s | None = None,
        ptr: Int64s | None = None,
        ids: Int32s | None = None,
        values: Float64s | None = None,
    ) -> None: ...

class Lattices:  # starts, ends [L]: which arcs from the start and into the end are parts
    def __init__(
        self,
        layout: Layout,
        design: Design,
        starts: npt.NDArray[np.uint8],
        ends: npt.NDArray[np.uint8],
        n_threads: int,
    ) -> None: ...
    @property
    def position_ptr(self) -> Int64s: ...  # [T + 1] the nodes of each position
    @property
    def labels(self) -> Int32s: ...  # [nodes]
    @property
    def arc_ptr(self) -> Int64s: ...  # [N + 1] the arcs of each sequence
    def arcs(self, n_threads: int) -> tuple[Int32s, Int32s, Int32s]: ...  # before, after, position [A]
    def score(self, active: list[ActiveFeatures], w: Float64s) -> ScoredSequences: ...

# model files of CRFsuite

class CrfsuiteFile:
    def __init__(self, data: bytes, most_labels: int, largest_weight: float) -> None: ...
    @staticmethod
    def open(path: bytes, most_labels: int, largest_weight: float) -> CrfsuiteFile: ...
    @property
    def head(self) -> bytes: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def n_features(self) -> int: ...
    def read(
        self,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], Int64s, Int32s, Int32s, Int32s, Float64s]: ...
    def ask(self, positions: NamedPositions) -> tuple[ChainPotentials, Design]: ...
    def tag(
        self, positions: NamedPositions, labels: list[str]
    ) -> tuple[ChainPotentials, Design, list[str]]: ...

def write_crfsuite(layout: Layout, labels: list[str], attributes: Vocabulary, w: Float64s) -> bytes: ...
def write_empty_crfsuite() -> bytes: ...

# strings

class TemplateLike(Protocol):
    def program(self) -> Any: ...
    def transform(self, index: int, value: str, /) -> str | None: ...
    def check_columns(self, n_columns: int, /) -> None: ...
    # and `lexicon(index)`, (LexiconTable, number of a list), where a transform has the function `in`

class InvalidInput(ValueError): ...  # noqa: N818

class Vocabulary:
    """Names and their ids 0, 1, 2, … in order of first occurrence."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def add(self, name: str) -> int: ...
    def get(self, name: str) -> int: ...  # −1: not there
    def name(self, id: int) -> str: ...
    def names(self) -> list[str]: ...
    def keep(self, mask: npt.NDArray[np.bool_]) -> tuple[Vocabulary, Int32s]: ...
    def hashes(self) -> npt.NDArray[np.uint64]: ...
    def extend(self, other: Vocabulary, mask: npt.NDArray[np.bool_]) -> Int32s: ...
    def find(self, other: Vocabulary) -> Int32s: ...
    @property
    def hash_bits(self) -> int: ...
    def hash_features(self, bits: int) -> None: ...
    def name_of(self, feature: str) -> str: ...
    def to_bytes(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]: ...
    @staticmethod
    def from_bytes(blob: npt.NDArray[np.uint8], lengths: npt.NDArray[np.uint32]) -> Vocabulary: ...

def index_strings(
    strings: Vocabulary,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint8]]: ...

class StringTable:
    def __init__(
        self, slots: npt.NDArray[np.uint32], ends: npt.NDArray[np.uint32], blob: npt.NDArray[np.uint8]
    ) -> None: ...
    def __len__(self) -> int: ...
    def get(self, text: str) -> int: ...  # −1: not there
    def get_all(self, texts: Iterable[str]) -> Int64s: ...
    def name(self, id: int) -> str: ...

class BrownClusters:
    def __init__(self, tokens: Int32s, ptr: Int64s, n_words: int, n_classes: int) -> None: ...
    @property
    def n_merges(self) -> int: ...
    def run(self, n: int) -> bool: ...
    def merges(self) -> Int32s: ...  # [merges, 2]

class LexiconBuilder:
    def __init__(self) -> None: ...
    def add(self, tokens: Iterable[str], list: int) -> None: ...
    @property
    def n_entries(self) -> int: ...
    def tokens(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint8]]: ...
    def finish(self) -> tuple[npt.NDArray[np.uint32], ...]: ...

class LexiconTable:
    def __init__(
        self, tokens: StringTable, arrays: list[npt.NDArray[np.uint32]], lists: list[str]
    ) -> None: ...  # the arrays that `LexiconBuilder.finish` gives
    def find(self, tokens: Iterable[str]) -> list[int]: ...
    def states(self, tokens: Iterable[str]) -> npt.NDArray[np.uint8]: ...  # [lists, T]
    def values(self, tokens: Iterable[str], list: int) -> list[str | None]: ...

def encode_positions(
    sequences: Iterable[Any], vocabulary: Vocabulary, grow: bool, n_threads: int = 1
) -> tuple[Int64s, Int64s, Int32s, Float64s | None, dict[str, tuple[list[int], list[npt.NDArray[Any]]]]]: ...

class NamedPositions:
    def __init__(self, sequence: Iterable[Any]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def n_names(self) -> int: ...
    def attributes(self) -> list[list[tuple[str, float]]]: ...
    def compact(self) -> None: ...
    def add_to(self, vocabulary: Vocabulary) -> tuple[Int64s, Int32s, Float64s | None]: ...

def design_of_names(layout: Layout, vocabulary: Vocabulary, positions: NamedPositions) -> Design: ...
def tag_names(
    potentials: ChainPotentials,
    layout: Layout,
    vocabulary: Vocabulary,
    positions: NamedPositions,
    labels: list[str],
) -> tuple[Design, list[str]]: ...
def label_lists(labels: tuple[Any, ...], ids: Int32s, sequence_ptr: Int64s) -> list[list[Any]]: ...

class Extractor:
    def __init__(self, template: TemplateLike, computed: bool = False) -> None: ...
    def extract(
        self,
        sequences: Iterable[Any],
        states: Vocabulary,
        arcs: Vocabulary,
        grow: bool,
        n_columns: int | None = None,
        more_columns: bool = False,
        n_threads: int = 1,
    ) -> tuple[Int64s, tuple[Int64s, Int32s, None], tuple[Int64s, Int32s, None] | None, int | None]: ...

class ColumnChunk:
    """Whole sequences of a column file, as bytes."""

    @property
    def bytes(self) -> bytes: ...
    @property
    def first_line(self) -> int: ...

class ColumnCutter:
    """Cuts the bytes of a column file, as they come, into chunks of whole sequences."""

    def __init__(self, separator: str, prefix: str, automatic: bool) -> None: ...
    def add(self, piece: bytes) -> None: ...
    def end(self) -> None: ...
    def take(self, size: int) -> ColumnChunk | None: ...
    @property
    def first_row(self) -> bytes: ...

def tag_chunk(
    potentials: ChainPotentials,
    layout: Layout,
    extractor: Extractor,
    states: Vocabulary,
    arcs: Vocabulary,
    labels: list[str],
    cutter: ColumnCutter,
    inputs: list[int],
    labels_only: bool,
    chunk: ColumnChunk,
) -> tuple[bytes, int] | None: ...

class ColumnShards:
    def __init__(
        self, separator: str, prefix: str, automatic: bool, shard_size: int, n_threads: int
    ) -> None: ...
    @property
    def first_row(self) -> bytes: ...
    @property
    def failed(self) -> tuple[bytes, int] | None: ...
    def add(self, piece: bytes) -> None: ...
    def end(self) -> None: ...
    def take(self) -> ColumnRows | None: ...

class ColumnRows:
    @property
    def n_sequences(self) -> int: ...
    @property
    def n_positions(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def separator(self) -> str: ...
    def sequence_ptr(self) -> Int64s: ...
    def rows(self, n: int, columns: list[int]) -> list[tuple[str, ...]]: ...
    def column(self, column: int) -> tuple[list[str], Int32s]: ...
    def line(self, n: int, i: int) -> int: ...
    def extract(
        self,
        extractor: Extractor,
        inputs: list[int],
        states: Vocabulary,
        arcs: Vocabulary,
        grow: bool,
        n_threads: int,
    ) -> tuple[Int64s, tuple[Int64s, Int32s, None], tuple[Int64s, Int32s, None] | None, int | None]: ...

def seen_pairs(  # with sequence_ptr, features are of the arcs into their positions, and labels are pairs
    position_ptr: Int64s,
    ids: Int32s,
    labels: Int32s,
    n_features: int,
    n_labels: int,
    set_ptr: Int64s | None = None,
    set_labels: Int32s | None = None,
    sequence_ptr: Int64s | None = None,
) -> tuple[Int64s, Int32s]: ...
def position_counts(position_ptr: Int64s, ids: Int32s, n_features: int) -> Int64s: ...
def first_equals(
    position_ptr: Int64s, ids: Int32s, values: Float64s | None, feature_ptr: Int64s, labels: Int32s
) -> Int32s: ...
def renamed_features(
    position_ptr: Int64s, ids: Int32s, values: Float64s | None, remap: Int32s
) -> tuple[Int64s, Int32s, Float64s | None]: ...

# patterns, and the trellises in which they fire

class TrellisSizeError(
    ValueError
):  # args: message, sequence, position, n_states, n_arcs, weights [alive patterns]
    ...

class PatternMatcher:  # see crfkit.structures.PatternMatcher
    def __init__(
        self,
        n_labels: int,
        set_ptr: Int64s,
        set_labels: Int32s,
        out_ptr: Int64s,
        out_set: Int32s,
        out_next: Int32s,
        activates: Int32s,
        last_only: npt.NDArray[np.uint8],
    ) -> None: ...
    @property
    def n_weights(self) -> int: ...

class OutputGraph:  # the label sequences of one length as the paths of a graph
    def __init__(
        self,
        level_ptr: Int64s,  # [T + 1] the states of each position
        labels: Int32s,  # [S] of each state
        in_ptr: Int64s,  # [S + 1] the arcs into each state
        sources: Int64s,  # [A] −1: the start
        weight_ptr: Int64s,  # [A + 1]
        weights: Int32s,  # own ones, counted from the first of them
    ) -> None: ...

class GraphData:  # a data set whose sequences are graphs
    def __init__(
        self,
        layout: Layout,
        design: Design,
        functions: FunctionSlices | None,  # in place of the features of the design
        first_weight: int,  # of the own ones of the graphs
        graphs: list[OutputGraph],
        graph_of: Int32s,
    ) -> None: ...
    def score(self, w: Float64s, n_threads: int) -> ScoredSequences: ...

class SegmentModel:  # types of segments, C, with their labels (−1: none), lengths and weights
    def __init__(
        self,
        first: Int32s,  # [C]
        inside: Int32s,
        last: Int32s,
        single: Int32s,
        transition: Int32s,  # [C] labels whose transitions are those of the types
        n_lengths: Int64s,  # [C]
        unlimited: npt.NDArray[np.uint8],  # [C]
        length_begin: Int64s,  # [C] own weights, counted from the end of the layout
        n_own_lengths: Int64s,  # [C] lengths that have such a weight, `longer` included
        exists: npt.NDArray[
            np.uint8
        ],  # [(C + 1)²] which types may follow which; the last row and column: start and end
        repeats: bool,
        pairs_begin: int,
        pair_ptr: Int64s,  # [F + 1] of each segment feature
        pair_types: Int32s,
    ) -> None: ...

class SegmentData:  # a data set of segmentations; cells: segments that end at each position, by their lengths
    def __init__(
        self,
        layout: Layout,
        design: Design,
        model: SegmentModel,
        cell_ptr: Int64s | None,  # [T + 1]
        lengths: Int32s | None,  # [cells]
        ptr: Int64s | None,  # [cells + 1]
        ids: Int32s | None,
        values: Float64s | None,
        functions: FunctionSlices | None,  # of labels, in place of the features of the design
        n_outputs: int,  # weights of functions, between those of the layout and the own ones of segments
        of_pairs: bool,  # whether some functions are of two labels
    ) -> None: ...
    def score(self, w: Float64s, n_threads: int) -> ScoredSequences: ...

class WordLattices:  # a data set whose inputs list arcs, which are the positions of the design
    def __init__(
        self,
        layout: Layout,
        design: Design,
        lengths: Int64s,
        starts: Int64s,
        ends: Int64s,
        labels: Int32s,
        outcomes: Int32s,
        exists: npt.NDArray[np.uint8] | None,
        n_labels: int,
        keys: Int64s,
        weight_ptr: Int64s,
        weights: Int32s,
        values: Float64s | None = None,
    ) -> None: ...
    def score(self, w: Float64s, n_threads: int) -> ScoredSequences: ...

class PathGraph:  # any acyclic graph from node 0, START, to node n_nodes − 1, END; every arc from a lower to a higher node
    def __init__(self, n_nodes: int, sources: Int64s, targets: Int64s) -> None: ...
    @property
    def n_levels(self) -> int: ...

class Hypergraph:  # any acyclic hypergraph; tails [2 E]: two lower nodes, or −1; the last node is the goal
    def __init__(self, edge_ptr: Int64s, tails: Int64s, scores: Float64s) -> None: ...
    def log_partition(self) -> float: ...
    def marginals(self) -> Float64s: ...  # [E]
    def hessian_vector(self, direction: Float64s) -> Float64s: ...
    def entropy(self) -> float: ...
    def decode(self) -> tuple[float, Int32s]: ...  # score, edges from the goal on
    def k_best(self, k: int) -> list[tuple[float, Int32s]]: ...
    def sample(self, uniforms: Float64s) -> Int32s: ...  # one hyperpath: edges from the goal on

class FactorGraph:  # by dense tables; within a table the last variable of its scope is the fastest
    def __init__(self, cardinalities: Int32s, scope_ptr: Int64s, scopes: Int32s) -> None: ...
    @property
    def n_scores(self) -> int: ...
    def score(self, scores: Float64s, assignment: Int32s) -> float: ...

class BeliefPropagation:  # the plan of one graph, for any number of runs
    def __init__(self, graph: FactorGraph, tree_reweighted: bool = False) -> None: ...
    @property
    def is_exact(self) -> bool: ...  # no cycles
    def run(  # allowed [values]; what is returned are the fields of `Beliefs` in belief_propagation.hpp
        self,
        scores: Float64s,
        allowed: npt.NDArray[np.bool_] | None,
        schedule: str,
        maximise: bool,
        damping: float | None,
        tolerance: float,
        max_iterations: int,
        n_threads: int = 1,
    ) -> dict[str, Any]: ...

class JunctionTree:  # a plan of exact inference; allowed [Σ cardinalities]
    # no value is removed because of −inf where there are no scores; those of the questions are −inf where these are
    def __init__(
        self,
        graph: FactorGraph,
        allowed: npt.NDArray[np.uint8] | None,
        scores: Float64s | None,
        most_bytes: float,
    ) -> None: ...
    @property
    def complete(self) -> bool: ...  # False: too large, nothing can be asked
    @property
    def n_free(self) -> int: ...  # variables with two or more values left
    @property
    def bytes(self) -> float: ...
    @property
    def bytes_of_log_partition(self) -> float: ...
    @property
    def bytes_of_hessian_vector(self) -> float: ...
    def bytes_of_k_best(self, k: int) -> float: ...
    @property
    def operations(self) -> float: ...
    @property
    def cliques(self) -> list[Int32s]: ...
    @property
    def largest_clique(self) -> Int32s: ...
    @property
    def largest_entries(self) -> float: ...
    def log_partition(self, scores: Float64s) -> float: ...
    # each begins with log Z; where it is −inf, the rest is unspecified
    def marginals(
        self, scores: Float64s
    ) -> tuple[float, Float64s, Float64s]: ...  # of values, of entries of tables
    def hessian_vector(self, scores: Float64s, direction: Float64s) -> tuple[float, Float64s, Float64s]: ...
    def entropy(self, scores: Float64s) -> tuple[float, float]: ...
    def k_best(self, scores: Float64s, k: int) -> list[tuple[float, Int32s]]: ...
    def sample(
        self, scores: Float64s, n: int, uniforms: Float64s
    ) -> tuple[float, Int32s]: ...  # uniforms [n · n_free] → [n, V]

# Approximate inference: the fields of the result's struct in the header of the same name; None: the search for a possible
# assignment was given up. allowed [values]

def mean_field(
    graph: FactorGraph,
    scores: Float64s,
    allowed: npt.NDArray[np.bool_] | None,
    tolerance: float,
    max_iterations: int,
) -> dict[str, Any] | None: ...
def gibbs(
    graph: FactorGraph,
    scores: Float64s,
    allowed: npt.NDArray[np.bool_] | None,
    n: int,
    burn_in: int,
    thin: int,
    n_chains: int,
    seed: int,
    blocked: bool,
    n_threads: int,
) -> dict[str, Any] | None: ...
def solve_map(
    graph: FactorGraph,
    scores: Float64s,
    allowed: npt.NDArray[np.bool_] | None,
    max_iterations: int,
    tolerance: float,
    cluster_size: float,
) -> dict[str, Any] | None: ...

class GraphShape:  # tables of single variables 0 … n_variables − 1 first; fixed: 0 or −inf for each configuration
    def __init__(
        self, cardinalities: Int32s, scope_ptr: Int64s, scopes: Int32s, n_variables: int, fixed: Float64s
    ) -> None: ...

class FactorData:  # graphs whose tables are scored by features
    def __init__(
        self,
        entry_ptr: Int64s,
        configurations: Int64s,
        entry_weights: Int64s,
        weight_ptr: Int64s,
        known: list[GraphShape],
        shapes: Int64s,
        first_table: Int64s,
        feature_ptr: Int64s,
        feature_ids: Int64s,
        values: Float64s,
        allowed_ptr: Int64s,
        allowed: npt.NDArray[np.uint8],
        weights: Float64s,
    ) -> None: ...

class FactorAnswers:  # criterion: "likelihood" (exact), "belief_propagation" or "tree_reweighted"
    def __init__(self, data: FactorData, criterion: str, memory_limit: int, n_threads: int) -> None: ...
    def decode(self, w: Float64s, n_threads: int) -> Int32s: ...  # values of variables, graph after graph
    def marginals(self, w: Float64s, n_threads: int) -> Float64s: ...  # of the values of variables

def factor_loss(data: FactorData, criterion: str, memory_limit: int, n_threads: int) -> DataLoss: ...

class ScoredPaths(
    ScoredGraph
):  # scores [A], −inf for an arc that is absent; marginals of arcs [A] and of nodes
    # outputs are arcs [n_levels], −1 for a level that a path jumps over
    def __init__(self, graph: PathGraph, scores: Float64s) -> None: ...
    def span_probability(  # that a path has a node of level `last` and enters levels first … last by allowed [A] arcs
        self, first: int, last: int, allowed: npt.NDArray[np.bool_], in_log_space: bool = False
    ) -> float: ...

class Trellises:  # position t of the data set has the starts start_ptr[t], …, start_ptr[t + 1] − 1; no values: all 1
    # common: states that begin at every position too
    def __init__(
        self,
        layout: Layout,
        design: Design,
        matcher: PatternMatcher,
        start_ptr: Int64s,
        start_states: Int32s,
        start_values: Float64s | None,
        first_weight: int,
        max_states: int,
        max_arcs: int,
        n_threads: int,
        common: Int32s | None = None,
    ) -> None: ...
    @property
    def n_trellises(self) -> int: ...  # different ones
    @property
    def n_steps(self) -> int: ...  # different ones
    @property
    def n_arcs(self) -> int: ...  # of the different steps
    @property
    def n_active(self) -> int: ...  # different sets of active weights
    @property
    def trellis_of(self) -> Int32s: ...  # [N]
    def sizes(
        self, sequence: int
    ) -> tuple[Int64s, Int64s, Int64s]: ...  # nodes [T], arcs and grouped transitions [T + 1]
    def turned(self, sequence: int) -> bool: ...  # whether it is read from its last position to its first
    def arcs(self) -> tuple[Int32s, Int32s]: ...  # before, after [A]

class ScoredTrellis(ScoredGraph):  # states [T, L] as of a chain, arcs [A] or [T − 1, A], weights [W]
    def __init__(
        self, trellises: Trellises, sequence: int, states: Float64s, arcs: Float64s, weights: Float64s
    ) -> None: ...

def pattern_partition(  # cells, grouped transitions and spans of each position of one sequence
    matcher: PatternMatcher,
    start_ptr: Int64s,
    start_states: Int32s,
    start_values: Float64s | None,
    max_states: int,
    max_arcs: int,
) -> tuple[Int64s, Int64s, Int64s]: ...
