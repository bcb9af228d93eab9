"""The Triton kernel for best spanning trees: Chu–Liu–Edmonds in O(n²), one program for each sentence.

Every word takes its best head in turn, along a path from word to head. Where the path closes a cycle, the cycle
becomes one node: its row of scores is the largest, over its members, of score − score of the arc that the member
gives up. The path ends at the root, or at a node from which the root was reached before. Where exactly one word may
hang on the root, a node takes the root's arc only if no other is left: trees are compared by their number of arcs
from the root first, and by their scores then. In the end the arcs of the outermost nodes are in the tree, and within
a cycle those of all members but the one that is entered.

Words and heads are counted from 0 here, and the root is −1. What is known of the node of a word lies in vectors over the
words: `row` is the row that has its scores, and a name for the node. Buffers of a program: rows [n, N] of scores by head,
and for each node, words first and cycles then, its head, the word that is entered, and the cycle around it, [2 N] each.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, length_of

NEW, ON_PATH, REACHED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)


@triton.jit
def _at(vector, place, word):
    """The number of a vector at a place."""
    return tl.sum(tl.where(place == word, vector, 0), axis=0)


@triton.jit
def _transpose(scores, rows, n, size, N: tl.constexpr, TILE: tl.constexpr):
    """Writes the scores of the arcs into each word by head."""
    h = tl.arange(0, N)
    for first in range(0, n, TILE):
        m = first + tl.arange(0, TILE)
        exists = (m < n)[:, None] & (h < n)[None, :] & (m[:, None] != h[None, :])
        x = tl.load(scores + (h[None, :] + 1) * size + m[:, None] + 1, mask=exists, other=NEVER)
        tl.store(rows + m[:, None] * N + h[None, :], x.to(tl.float64), mask=(m < n)[:, None])
    tl.debug_barrier()


@triton.jit
def _open(heads, node_heads, entered, around, n, n_nodes, N: tl.constexpr):
    """Writes the heads, from the outermost nodes inwards. `around` is −1 for those, and −2 for nodes that lost their arc."""
    for i in range(n_nodes):
        node = n_nodes - 1 - i
        outer = tl.load(around + node)
        if outer > -2:
            word = tl.load(entered + node)
            tl.store(heads + word, (tl.load(node_heads + node) + 1).to(tl.int64))
            inner = word
            while inner != node:
                above = tl.load(around + inner)
                tl.debug_barrier()
                tl.store(around + inner, -2)
                inner = above
            tl.debug_barrier()


@triton.jit(do_not_specialize=["size", "one_root"])
def best_tree_kernel(
    scores, lengths, work, nodes, heads, size, one_root, N: tl.constexpr, TILE: tl.constexpr
):
    """Programs [B]: the heads of the best tree [B, n]; −1 beyond the end of a sentence, and where no tree exists."""
    sentence = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, sentence, size - 1)
    scores += sentence * size * size
    heads += sentence * (size - 1)
    rows = work + sentence * (size - 1) * N
    node_heads = nodes + sentence * 6 * N
    entered, around = node_heads + 2 * N, node_heads + 4 * N
    word = tl.arange(0, N)
    _transpose(scores, rows, n, size, N, TILE)
    root = tl.load(scores + word + 1, mask=word < n, other=NEVER).to(tl.float64)  # by row
    row, node = word, word  # of the node of each word
    state = tl.where(word < n, NEW, REACHED)
    spot = tl.zeros([N], dtype=tl.int32)  # on the path
    taken = tl.zeros([N], dtype=tl.float64)  # the score of the arc into the node
    replaced = tl.zeros([N], dtype=tl.float64)  # scores of arcs that an arc into the word would replace
    path = tl.zeros([N], dtype=tl.int32)  # the rows on it
    length, n_nodes, n_roots, possible = 0, n, 0, 0
    top = 0
    steps = 4 * n  # more than are taken, unless scores are no numbers
    while steps > 0:
        steps -= 1
        if length == 0:
            top = tl.min(tl.where(state == NEW, word, N), axis=0)
            state = tl.where((row == top) & (state == NEW), ON_PATH, state)
            spot = tl.where(row == top, 0, spot)
            path = tl.where(word == 0, top, path)
            length = 1
        if top == N:  # the root is reached from every word
            possible, steps = 1, 0
        else:
            x = tl.load(rows + top * N + word, mask=word < n, other=NEVER)
            score, head = tl.max(x, axis=0, return_indices=True, return_indices_tie_break_left=True)
            from_root = tl.sum(tl.where(word == top, root, 0.0), axis=0)
            by_root = (score == NEVER) | ((one_root == 0) & (from_root >= score))
            score, head = tl.where(by_root, from_root, score), tl.where(by_root, -1, head)
            n_roots += by_root.to(tl.int32)
            inside = row == top
            x = tl.load(scores + (head + 1) * size + word + 1, mask=inside & (word < n), other=NEVER).to(
                tl.float64
            )
            x = tl.where(inside & (word != head), x - replaced, NEVER)
            entry = tl.argmax(x, axis=0, tie_break_left=True)
            number = _at(node, word, top)
            tl.store(node_heads + number, head)
            tl.store(entered + number, entry)
            tl.store(around + number, -1)
            taken = tl.where(inside, score, taken)
            above = _at(row, word, head)
            above_state = tl.where(by_root, REACHED, _at(state, word, head))
            if (score == NEVER) | (score != score) | (n_nodes == 2 * n) | ((one_root != 0) & (n_roots > 1)):
                steps = 0
            elif above_state == REACHED:
                state = tl.where(state == ON_PATH, REACHED, state)
                length = 0
            elif above_state == NEW:
                state = tl.where(row == above, ON_PATH, state)
                spot = tl.where(row == above, length, spot)
                path = tl.where(word == length, above, path)
                length += 1
                top = above
            else:
                first = _at(spot, word, head)
                merged = tl.full([N], NEVER, dtype=tl.float64)
                for i in range(first, length):
                    member = _at(path, word, i)
                    less = _at(taken, word, member)
                    merged = tl.maximum(
                        merged, tl.load(rows + member * N + word, mask=word < n, other=NEVER) - less
                    )
                members = (state == ON_PATH) & (spot >= first)
                best_root = tl.max(tl.where(members & (row == word), root - taken, NEVER), axis=0)
                tl.store(around + node, tl.zeros([N], dtype=tl.int32) + n_nodes, mask=members)
                replaced += tl.where(members, taken, 0.0)
                tl.debug_barrier()
                tl.store(rows + above * N + word, tl.where(members, NEVER, merged), mask=word < n)
                row, node = tl.where(members, above, row), tl.where(members, n_nodes, node)
                spot = tl.where(members, first, spot)
                root = tl.where(word == above, best_root, root)
                n_nodes += 1
                length = first + 1
                top = above
                tl.debug_barrier()
    tl.debug_barrier()
    tl.store(heads + word, tl.full([N], -1, dtype=tl.int64), mask=word < size - 1)
    tl.debug_barrier()
    if possible:
        _open(heads, node_heads, entered, around, n, n_nodes, N)
