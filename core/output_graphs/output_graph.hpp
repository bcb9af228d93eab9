// A structure of the user's own: the label sequences of one length as the paths of a graph.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// States are numbered position by position, and arcs by the state they lead to. Every state of the last
// position may be the last one.
struct OutputGraph {
    std::int64_t n_positions() const { return static_cast<std::int64_t>(level_ptr.size()) - 1; }  // T
    // Throws std::invalid_argument unless the arrays fit together, with L labels and W own weights.
    void check(std::int32_t n_labels, std::int64_t n_own) const;

    std::vector<std::int64_t> level_ptr;   // [T + 1] the states of each position
    std::vector<std::int32_t> labels;      // [S] the label that each state gives its position
    std::vector<std::int64_t> in_ptr;      // [S + 1] the arcs into each state
    std::vector<std::int64_t> sources;     // [A] a state of the position before; −1: the start
    std::vector<std::int64_t> weight_ptr;  // [A + 1]
    std::vector<std::int32_t> weights;     // the structure's own weights of each arc
};

}  // namespace crfkit
