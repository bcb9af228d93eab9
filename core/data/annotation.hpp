// What is known of the right labels of a data set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/label_lists.hpp"

namespace crfkit {

class Design;
class Layout;

struct Annotation {
    std::vector<std::int32_t> labels;   // [T] the label, or −1 where not exactly one is known
    std::vector<std::int64_t> set_ptr;  // [T + 1] or empty; where labels is −1: the labels that are possible,
    std::vector<std::int32_t> set_labels;  //         none listed meaning all
    std::vector<double> weights;           // [N] weight of each sequence

    // Whether label b is possible at position t.
    bool possible(std::int64_t t, std::int32_t b) const {
        if (labels[t] >= 0) return labels[t] == b;
        if (set_ptr.empty() || set_ptr[t + 1] == set_ptr[t]) return true;
        return std::binary_search(set_labels.begin() + set_ptr[t], set_labels.begin() + set_ptr[t + 1], b);
    }
    // That of positions first..last−1, without weights.
    Annotation between(std::int64_t first, std::int64_t last) const;
    bool complete(std::int64_t first, std::int64_t last) const {
        for (std::int64_t t = first; t < last; ++t)
            if (labels[t] < 0) return false;
        return true;
    }
    // Calls forbid(b) for every label b that is not possible at position t.
    template <class Function>
    void forbidden(std::int64_t t, std::int32_t n_labels, Function forbid) const {
        if (labels[t] >= 0) {
            for (std::int32_t b = 0; b < n_labels; ++b)
                if (b != labels[t]) forbid(b);
        } else if (!set_ptr.empty() && set_ptr[t + 1] > set_ptr[t]) {
            each_missing(std::span(set_labels).subspan(set_ptr[t], set_ptr[t + 1] - set_ptr[t]), n_labels,
                         forbid);
        }
    }
};

// Throws std::invalid_argument where an annotation does not fit the data.
void check_annotation(const Layout& layout, const Design& design, const Annotation& gold);
// The same with n_labels outcomes of a position.
void check_annotation(std::int32_t n_labels, const Design& design, const Annotation& gold);
// Throws std::invalid_argument where nothing can be trained on a design with these gold labels.
void check_for_training(const Layout& layout, const Design& design, const Annotation& gold, int n_threads);

}  // namespace crfkit
