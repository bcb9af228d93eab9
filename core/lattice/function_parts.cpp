#include "lattice/function_parts.hpp"

#include <stdexcept>

namespace crfkit {

void FunctionReader::load(std::int64_t n) {
    if (!slice_ || n < slice_->first || n >= slice_->last) {
        slice_ = slices_.slice_of(n);
        if (n < slice_->first || n >= slice_->last || !slice_->lattices ||
            slice_->last - slice_->first != slice_->lattices->n_sequences())
            throw std::invalid_argument("a slice must have the lattices of its sequences");
        for (const ActiveFeatures& block : slice_->active) slice_->lattices->check(block, n_weights_);
    }
    const Lattices& lattices = *slice_->lattices;
    const std::int64_t i = n - slice_->first, first = lattices.design->sequence_ptr[i];
    first_node_ = lattices.candidates.position_ptr[first];
    first_arc_ = lattices.arc_ptr[i];
    if (first == lattices.design->sequence_ptr[i + 1]) {
        lattice = Lattice{};
        return;
    }
    lattices.build(i, lattice);
    n_starts_ = lattices.n_starts(lattice);
    boundary_.assign(static_cast<std::size_t>(lattice.n_nodes()), {});
    lattices.each_boundary_arc(i, lattice,
                               [&](std::int64_t k, std::int64_t j) { boundary_[j].push_back(k); });
}

void FunctionReader::add(bool on_arcs, std::int64_t part, Parts& parts) const {
    for (const ActiveFeatures& block : slice_->active)
        if (block.on_arcs == on_arcs)
            block.each(part, [&](std::int64_t weight, double value) {
                if (value != 0) parts.add_feature(weight, value);
            });
}

void FunctionReader::add_node(std::int64_t j, Parts& parts) const {
    add(false, first_node_ + j, parts);
    for (const std::int64_t k : boundary_[j]) add(true, first_arc_ + k, parts);
}

void FunctionReader::add_arc(std::int64_t e, Parts& parts) const {
    if (lattice.arc[e] >= 0) add(true, first_arc_ + n_starts_ + lattice.arc[e], parts);
}

class FunctionParts::Reader final : public PartReader {
  public:
    explicit Reader(const FunctionParts& source)
        : source_(source), functions_(source.slices_, source.n_weights) {}

    // Node j of the lattice is node j + 1 here, behind START.
    void load(std::int64_t n, Parts& parts) override {
        functions_.load(n);
        const Lattice& lattice = functions_.lattice;
        const std::int64_t first = source_.sequence_ptr_[n], T = source_.sequence_ptr_[n + 1] - first;
        if (T > 0 && lattice.n_positions() != T)
            throw std::invalid_argument("a slice must have the lattices of its sequences");
        parts.clear();
        for (std::int64_t t = 0; t < T; ++t) {
            parts.begin_level();
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j) {
                parts.add_node(lattice.labels[j], source_.gold_.possible(first + t, lattice.labels[j]));
                parts.score_node(parts.add_factor());
                functions_.add_node(j, parts);
                if (t == 0) parts.add_arc(0);
                for (std::int64_t e = lattice.in_ptr[j]; e < lattice.in_ptr[j + 1]; ++e) {
                    parts.add_arc(lattice.from[e] + 1);
                    if (lattice.arc[e] < 0) continue;
                    parts.score_arc(parts.add_factor());
                    functions_.add_arc(e, parts);
                }
            }
        }
        parts.finish(T == 0 ? 0 : lattice.position_ptr[T - 1] + 1, parts.n_nodes());
    }

  private:
    const FunctionParts& source_;
    FunctionReader functions_;
};

std::unique_ptr<PartReader> FunctionParts::open() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
