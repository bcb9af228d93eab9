"""What memory the questions on projective trees take, known before it is allocated.

The engine keeps numbers of every node of its graph (`core/trees/projective_graph.hpp`): 5 nodes for each span of words,
7 in the second order. Sentences of up to 340 words take some megabytes, and are not looked at.
"""

from collections.abc import Mapping

from crfkit.errors import SizeLimitError
from crfkit.inference.memory import default_memory_limit
from crfkit.structures import ProjectiveTree

SHORT = 340  # words
# Bytes of each node: an inside sum has 16; probabilities, slopes and changes 8 each; so have best scores and pointers.
BYTES_OF_A_NODE: Mapping[str, int] = {
    "log_partition": 16,
    "sample": 16,
    "marginals": 24,
    "entropy": 24,
    "hessian_vector": 40,
    "k_best": 16,
}
# Arrays of the charts that find best trees: of spans, and in the second order of all pairs of places.
ARRAYS_OF_SPANS, ARRAYS_OF_PAIRS = 6, 9


def memory(question: str, n_words: int, order: int, n_labels: int = 1) -> float:
    """Bytes that a question takes on a sentence, beside its scores and its answer."""
    side = float(n_words + 1)
    spans = side * (side + 1) / 2
    if question == "decode":
        if order == 1:
            return 8 * ARRAYS_OF_SPANS * spans
        return 8 * ARRAYS_OF_PAIRS * side**2 + 8 * side**3 / 3  # siblings of both directions
    nodes = spans * (5 if order == 1 else 7) * BYTES_OF_A_NODE[question]
    if question == "k_best":
        return nodes
    return nodes + 16 * side**2 * n_labels + (16 * side**3 if order == 2 else 0.0)  # exp(score) of parts


def check_memory(
    question: str, n_words: int, structure: ProjectiveTree, n_labels: int, n_threads: int
) -> None:
    """SizeLimitError where a question takes more than half of the memory that this process may use."""
    if n_words <= SHORT:
        return
    needed = memory(question, n_words, structure.order, n_labels) * max(1, n_threads)
    limit = default_memory_limit()
    if needed > limit:
        raise SizeLimitError(
            f"ProjectiveTree: {question} on a sentence of {n_words} words takes {needed / 1e9:.1f} GB on {n_threads} "
            f"thread(s), expected at most {limit / 1e9:.1f} GB, half of the memory; SpanningTree takes less."
        )
