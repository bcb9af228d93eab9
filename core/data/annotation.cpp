#include "data/annotation.hpp"

#include <stdexcept>
#include <string>

#include "base/lists.hpp"
#include "data/candidates.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

Annotation Annotation::between(std::int64_t first, std::int64_t last) const {
    Annotation part{{labels.begin() + first, labels.begin() + last}, {}, {}, {}};
    if (set_ptr.empty()) return part;
    for (std::int64_t t = first; t <= last; ++t) part.set_ptr.push_back(set_ptr[t] - set_ptr[first]);
    part.set_labels.assign(set_labels.begin() + set_ptr[first], set_labels.begin() + set_ptr[last]);
    return part;
}

void check_annotation(const Layout& layout, const Design& design, const Annotation& gold) {
    check_annotation(layout.n_labels, design, gold);
}

void check_annotation(std::int32_t n_labels, const Design& design, const Annotation& gold) {
    const std::int64_t n_positions = design.n_positions();
    if (static_cast<std::int64_t>(gold.labels.size()) != n_positions)
        throw std::invalid_argument("there are " + std::to_string(gold.labels.size()) + " labels for " +
                                    std::to_string(n_positions) + " positions");
    check_range(gold.labels, -1, n_labels, "labels");
    if (!gold.set_ptr.empty()) check_label_lists(gold.set_ptr, gold.set_labels, n_positions, n_labels, "set");
}

void check_for_training(const Layout& layout, const Design& design, const Annotation& gold, int n_threads) {
    design.check_layout(layout);
    if (!design.is_split() && !design.as_lattices && !design.as_batches)
        throw std::invalid_argument("the design was not made for training");
    check_annotation(layout, design, gold);
    if (static_cast<std::int64_t>(gold.weights.size()) != design.n_sequences())
        throw std::invalid_argument("there must be one weight for each sequence");
    if (layout.bigrams || !design.allowed.empty())
        check_possible(existing_bigrams(layout), design, &gold, n_threads);
}

}  // namespace crfkit
