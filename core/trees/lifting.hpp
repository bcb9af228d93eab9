// Trees without crossing arcs from trees with such (Nivre and Nilsson 2005).
#pragma once

#include <cstdint>
#include <span>

namespace crfkit {

// heads [n] of the words 1 … n, a tree. While an arc is not projective (its head does not dominate every word
// between), the shortest such arc is lifted: its dependent gets the head of its head. What hangs on the root
// stays the same. Returns how many words have another head now.
std::int64_t lift_crossing_arcs(std::span<std::int32_t> heads);

}  // namespace crfkit
