// Word lattices: inputs that list arcs (start, end, label), of which an output is a path from 0 to the end.
//
// Arcs are the positions of a design: each has features of its own, which score it with one label of the
// layout. Two arcs that follow each other are scored by the weights of their transition, a list for each pair
// of labels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// The structure's own weights of each pair of labels: keys before · n_labels + after, ascending. Pairs that
// are not listed exist too and have no weights. The last label stands before the first arc and behind the
// last one.
struct WordTransitions {
    // −1: not listed.
    std::int64_t find(std::int32_t before, std::int32_t after) const;
    std::int32_t boundary() const { return n_labels - 1; }
    std::int64_t size() const { return static_cast<std::int64_t>(keys.size()); }

    std::int32_t n_labels = 1;
    std::vector<std::int64_t> keys;        // [pairs]
    std::vector<std::int64_t> weight_ptr;  // [pairs + 1]
    std::vector<std::int32_t> weights;
    std::vector<double> values;  // of the weights; empty: all 1
};

struct WordArcs {
    std::vector<std::int64_t> lengths;       // [N]
    std::vector<std::int64_t> starts, ends;  // [T] 0 <= start < end <= length
    std::vector<std::int32_t> labels;        // [T] of the transitions
    std::vector<std::int32_t> outcomes;      // [T] label of the layout that the features score; −1: none
    std::vector<std::uint8_t> exists;        // [T] or empty: all exist
};

// What an annotation says of an arc, as a label of Annotation: it is on the path, or not; −1: unknown.
inline constexpr std::int32_t kOffPath = 0, kOnPath = 1;

// A data set of lattices. Arcs that no path passes are left out; the boundaries of a sequence are the starts
// and ends of the others, which it counts from 0.
class WordLattices {
  public:
    // Throws std::invalid_argument where things do not fit together, and, naming the sequence and how far its
    // arcs lead, where a sequence has no path.
    WordLattices(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design, WordArcs arcs,
                 WordTransitions transitions);

    // Throws the same where no path of a sequence agrees with an annotation, which has labels for all arcs.
    void check_annotation(const Annotation& gold) const;

    std::int64_t n_sequences() const { return design->n_sequences(); }
    // Boundaries of sequence n less one; 0 where it has no arcs.
    std::int64_t n_steps(std::int64_t n) const { return step_ptr[n + 1] - step_ptr[n]; }
    // The arcs that leave boundary t of sequence n, ascending; those that enter boundary t + 1, by label.
    std::span<const std::int64_t> leaving(std::int64_t n, std::int64_t t) const {
        return between(by_start, start_ptr, step_ptr[n] + t);
    }
    std::span<const std::int64_t> entering(std::int64_t n, std::int64_t t) const {
        return between(by_end, end_ptr, step_ptr[n] + t);
    }

    const std::shared_ptr<const Layout> layout;
    const std::shared_ptr<const Design> design;
    const WordArcs arcs;
    const WordTransitions transitions;

    std::vector<std::int64_t> step_ptr;            // [N + 1]
    std::vector<std::int64_t> start_ptr, end_ptr;  // [steps + 1]
    std::vector<std::int64_t> by_start, by_end;    // [arcs on paths] their numbers in the data set
    std::vector<std::int32_t> end_step;            // [T] the boundary of its sequence where an arc ends

  private:
    static std::span<const std::int64_t> between(const std::vector<std::int64_t>& items,
                                                 const std::vector<std::int64_t>& ptr, std::int64_t i) {
        return std::span(items).subspan(ptr[i], ptr[i + 1] - ptr[i]);
    }
    void check() const;
    void compile(std::int64_t n);
};

}  // namespace crfkit
