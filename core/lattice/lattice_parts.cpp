#include "lattice/lattice_parts.hpp"

#include "lattice/lattice.hpp"
#include "training/chain_factors.hpp"

namespace crfkit {

class LatticeParts::Reader final : public PartReader {
  public:
    explicit Reader(const LatticeParts& source)
        : gold_(source.gold_),
          design_(source.design_),
          data_(source.data_),
          by_facet_(!source.layout_.facets.empty()),
          chain_(source.layout_, source.design_, source.data_.model),
          arcs_(source.data_.model.bigrams.n_arcs()) {}

    // Node j of the lattice is node j + 1 here, behind START.
    void load(std::int64_t n, Parts& parts) override {
        const std::int64_t first = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - first;
        parts.clear();
        arcs_.clear();
        chain_.load(n);
        if (T > 0) lattice_.build(data_.model.bigrams, data_.candidates, first, first + T);
        for (std::int64_t t = 0; t < T; ++t) {
            parts.begin_level();
            if (chain_.by_position()) arcs_.clear();
            for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j) {
                parts.add_node(lattice_.labels[j], !gold_ || gold_->possible(first + t, lattice_.labels[j]));
                parts.score_node(parts.add_factor());
                add_label(first, t, T, j, parts);
                if (t == 0) parts.add_arc(0);
                for (std::int64_t e = lattice_.in_ptr[j]; e < lattice_.in_ptr[j + 1]; ++e) {
                    parts.add_arc(lattice_.from[e] + 1);
                    if (const std::int32_t k = lattice_.arc[e]; k >= 0)
                        parts.score_arc(arcs_.of(k, parts, [&] { chain_.add_arc(t, k, parts); }));
                }
            }
        }
        parts.finish(T == 0 ? 0 : lattice_.position_ptr[T - 1] + 1, parts.n_nodes());
    }

  private:
    // The weights of each node are listed, unless they belong to facets.
    void add_label(std::int64_t first, std::int64_t t, std::int64_t T, std::int64_t j, Parts& parts) {
        const std::int32_t label = lattice_.labels[j];
        if (by_facet_) return chain_.add_label(t, label, parts);
        const ActiveIds& weights = data_.weights;
        const std::int64_t node = data_.candidates.position_ptr[first] + j;
        parts.add_features(weights, weights.ptr[node], weights.ptr[node + 1]);
        chain_.add_ends(t == 0, t + 1 == T, label, parts);
    }

    const Annotation* gold_;
    const Design& design_;
    const LatticeData& data_;
    const bool by_facet_;
    DesignFactors chain_;
    LazyFactors arcs_;
    Lattice lattice_;
};

std::unique_ptr<PartReader> LatticeParts::open() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
