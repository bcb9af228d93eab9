#include "lattice/design_lattices.hpp"

#include <span>
#include <vector>

#include "data/candidates.hpp"
#include "data/position_scores.hpp"
#include "lattice/data.hpp"
#include "lattice/scorer.hpp"

namespace crfkit {
namespace {

// The lattices of a design whose positions have few candidates, at given weights.
class DesignLattices : public LatticeSource {
  public:
    DesignLattices(const Layout& layout, const Design& design, const ArcModel& model, const ArcTables& tables,
                   const double* w, int n_threads)
        : design_(design), data_(layout, model, design, n_threads, false), scorer_(layout, design, data_) {
        scorer_.set(w, tables);
    }

    std::span<const std::int64_t> sequence_ptr() const override { return design_.sequence_ptr; }
    std::int32_t n_labels() const override { return data_.model.bigrams.n_labels; }
    void load(std::int64_t n, ScoredLattice& scored) const override {
        scored.lattice.build(data_.model.bigrams, data_.candidates, design_.sequence_ptr[n],
                             design_.sequence_ptr[n + 1]);
        scorer_.score(n, scored.nodes);
        scored.arcs = &scorer_.arcs();
    }

  private:
    const Design& design_;
    LatticeData data_;
    LatticeScorer<double> scorer_;
};

// The lattices of a design whose positions may have any label: each is made when it is asked for.
class OpenLattices : public LatticeSource {
  public:
    OpenLattices(const Layout& layout, const Design& design, const ArcModel& model, const ArcTables& tables,
                 const double* w)
        : layout_(layout), design_(design), model_(model), tables_(tables), w_(w) {}

    std::span<const std::int64_t> sequence_ptr() const override { return design_.sequence_ptr; }
    std::int32_t n_labels() const override { return layout_.n_labels; }
    void load(std::int64_t n, ScoredLattice& scored) const override {
        const std::int64_t first = design_.sequence_ptr[n], n_positions = design_.sequence_ptr[n + 1] - first;
        const Candidates candidates = candidates_of(model_.bigrams, design_, nullptr, n);
        Lattice& lattice = scored.lattice;
        lattice.build(model_.bigrams, candidates, 0, n_positions);
        scored.nodes.clear();
        std::vector<double> row;  // [L]
        for (std::int64_t t = 0; t < n_positions; ++t) {
            row.assign(static_cast<std::size_t>(layout_.n_labels), 0.0);
            add_position_scores(layout_, design_.features, first + t, w_, 0, row.data());
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j) {
                const std::int32_t label = lattice.labels[j];
                scored.nodes.push_back(row[label] + (t == 0 ? tables_.start[label] : 0.0) +
                                       (t + 1 == n_positions ? tables_.end[label] : 0.0));
            }
        }
        scored.arcs = &tables_.arcs;
    }

  private:
    const Layout& layout_;
    const Design& design_;
    const ArcModel& model_;
    const ArcTables& tables_;
    const double* w_;
};

}  // namespace

std::unique_ptr<LatticeSource> design_lattices(const Layout& layout, const Design& design,
                                               const ArcModel& model, const ArcTables& tables,
                                               const double* w, int n_threads) {
    if (design.as_batches) return std::make_unique<OpenLattices>(layout, design, model, tables, w);
    return std::make_unique<DesignLattices>(layout, design, model, tables, w, n_threads);
}

}  // namespace crfkit
