// The features of a data set, compiled against a layout: what is active at each position, as rows and single
// weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/label_lists.hpp"
#include "base/scratch_memory.hpp"
#include "data/layout.hpp"

namespace crfkit {

// Features seen at each position, as the user's data has them. values is empty when all are 1.
struct FeatureList {
    std::span<const std::int64_t> position_ptr;  // [T + 1]
    std::span<const std::int32_t> ids;
    std::span<const double> values;
};

// The labels allowed at each position: labels[ptr[t]..ptr[t+1]−1], ascending; an empty list allows all. Both
// vectors are empty when nothing is restricted.
struct AllowedLabels {
    std::vector<std::int64_t> ptr;  // [T + 1]
    std::vector<std::int32_t> labels;

    bool empty() const { return ptr.empty(); }
    // Calls forbid(b) for every label b that is not allowed at position t.
    template <class Function>
    void forbidden(std::int64_t t, std::int32_t n_labels, const Function& forbid) const {
        if (ptr.empty() || ptr[t + 1] == ptr[t]) return;
        each_missing(std::span(labels).subspan(ptr[t], ptr[t + 1] - ptr[t]), n_labels, forbid);
    }
};

// A flat list per position.
struct ActiveIds {
    Buffer<std::int64_t> ptr;  // [T + 1]
    Buffer<std::int32_t> ids;
    Buffer<double> values;  // empty: all 1

    void move_to(ScratchMemory& memory) {
        memory.take(ptr);
        memory.take(ids);
        memory.take(values);
    }
};

// The same features divided by how they are scored.
struct SplitFeatures {
    ActiveIds rows;     // ids: rows of weights
    ActiveIds entries;  // ids: single weights
    Buffer<std::int32_t> entry_labels;

    void move_to(ScratchMemory& memory) {
        rows.move_to(memory);
        entries.move_to(memory);
        memory.take(entry_labels);
    }
};

// What a design is for: training, training with patterns (whole rows, whatever is restricted), or questions
// alone.
enum class Purpose { training, patterns, questions };

class Design {
  public:
    // Throws std::invalid_argument if the arrays do not fit together or name features that the layout lacks.
    Design(std::shared_ptr<const Layout> layout, std::span<const std::int64_t> sequence_ptr,
           const FeatureList& states, const FeatureList& arcs, std::vector<std::span<const double>> dense,
           AllowedLabels allowed, Purpose purpose, int n_threads);

    std::int64_t n_sequences() const { return static_cast<std::int64_t>(sequence_ptr.size()) - 1; }
    std::int64_t n_positions() const { return sequence_ptr.back(); }
    // Throws std::invalid_argument unless this is the layout that the data was compiled against, or one equal
    // to it.
    void check_layout(const Layout& layout) const;
    // The same data in whole rows, for a design that keeps `features` as they came.
    Design in_rows(int n_threads) const;
    // What is large is to be read from a file.
    void move_to(ScratchMemory& memory);

    std::vector<std::int64_t> sequence_ptr;  // [N + 1]
    AllowedLabels allowed;
    // Labels with facets, or many of which few are possible at a position: each sequence is a lattice. Many
    // labels that are all possible, but few arcs: sequences are trained in batches. Both keep `features` as
    // they came; otherwise positions are scored through `split`.
    bool as_lattices = false, as_batches = false;
    // Only a design for training has its features divided.
    bool is_split() const { return split.rows.ptr.size() > 0; }
    // Whether neither dense blocks nor features of transitions stand beside the features of positions.
    bool is_plain() const { return dense.empty() && arcs.ptr.size() == 0; }
    ActiveIds features;  // ids: state features
    SplitFeatures split;
    ActiveIds arcs;                     // ids: arc features; empty ptr when the data has none
    std::vector<Buffer<double>> dense;  // [T, K] each

  private:
    void split_states(const Layout& layout, const FeatureList& states, int n_threads);
    std::shared_ptr<const Layout> layout_;
};

// The same lists turned round: for each id that is active in positions first..last−1, the positions (counted
// from `first`).
struct Inverted {
    Buffer<std::int32_t> ids;
    Buffer<std::int64_t> ptr;  // [n + 1]
    Buffer<std::int32_t> positions;
    Buffer<double> values;
    std::int64_t n() const { return ids.size(); }
    void move_to(ScratchMemory& memory) {
        memory.take(ids);
        memory.take(ptr);
        memory.take(positions);
        memory.take(values);
    }
};

// Puts the lists ranges[r]..ranges[r+1]−1 of each range into the order of their lengths: loops over lists of
// the same length end when the processor expects it.
Inverted sort_by_length(const Inverted& lists, const std::vector<std::int64_t>& ranges);

// `scratch` has a 0 for every id that may fire.
Inverted invert(const ActiveIds& active, std::int64_t first, std::int64_t last,
                std::vector<std::int32_t>& scratch);

}  // namespace crfkit
