// Exact samples of spanning trees.
#pragma once

#include <cstdint>

#include "trees/graph.hpp"

namespace crfkit {

// One tree from uniform numbers in [0, 1): for word i the head comes from uniforms[i], and the label from
// uniforms[n + i] where there is more than one. Heads [n] and labels [n] (may be null) come out. Throws
// NoTree.
//
// Word after word draws its head from its marginals given the heads drawn before: a word whose head is known
// is one with it, so the graph shrinks by a word each time, and what is left of its part is eliminated again.
// O(n⁴ / 12) multiplications, whatever the scores; a random walk (Wilson 1996) needs e^40 steps to leave a
// cycle that is 40 nats deep.
void tree_sample(const TreeView& tree, const double* uniforms, std::int32_t* heads, std::int32_t* labels);

}  // namespace crfkit
