"""What memory the questions on projective trees take, known before it is allocated.

The engine keeps numbers of every node of its graph (`core/trees/projective_graph.hpp`): 5 nodes for each span of words,
7 in the second order. Sentences of up to 340 words take some megabytes, and are not looked at.
"""

from collections.abc import Mapping

from crfkit.errors import SizeLimitError
from crfkit.inference.memory import default_memory_limit

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
BYTES_OF_A_BEST_SPAN = 6 * 8  # of a chart of the first order


def memory(question: str, n_words: int, order: int) -> float:
    """Bytes that a question takes on a sentence, beside its scores and its answer."""
    spans = (n_words + 1) * (n_words + 2) / 2
    if question == "decode":
        return spans * (BYTES_OF_A_BEST_SPAN if order == 1 else 7 * 8)
    weights = 16.0 * float((n_words + 1) ** (order + 1))
    return spans * (5 if order == 1 else 7) * BYTES_OF_A_NODE[question] + weights


def check_memory(question: str, n_words: int, order: int, n_threads: int) -> None:
    """SizeLimitError where a question takes more than half of the memory that this process may use."""
    if n_words <= SHORT:
        return
    needed, limit = memory(question, n_words, order) * max(1, n_threads), default_memory_limit()
    if needed > limit:
        raise SizeLimitError(
            f"ProjectiveTree: {question} on a sentence of {n_words} words takes {needed / 1e9:.1f} GB on {n_threads} "
            f"thread(s), expected at most {limit / 1e9:.1f} GB, half of the memory; SpanningTree takes less."
        )
