#include "lattice_tagger.hpp"

#include <span>

#include "arc_model.hpp"
#include "candidates.hpp"
#include "lattice_data.hpp"
#include "lattice_scorer.hpp"
#include "site_scores.hpp"

namespace crfkit {
namespace {

// The lattices of a design whose sites have few candidates, at given weights.
class DesignLattices : public LatticeSource {
  public:
    DesignLattices(const Layout& layout, const Design& design, const ArcModel& model, const ArcTables& tables,
                   const double* w, int n_threads)
        : design_(design), data_(layout, model, design, n_threads), scorer_(layout, design, data_) {
        scorer_.set(w, tables);
    }

    std::span<const std::int64_t> sequence_ptr() const override { return design_.sequence_ptr; }
    std::int32_t n_labels() const override { return data_.model.bigrams.n_labels; }
    void load(std::int64_t n, ScoredLattice& room) const override {
        room.lattice.build(data_.model.bigrams, data_.candidates, design_.sequence_ptr[n],
                           design_.sequence_ptr[n + 1]);
        scorer_.score(n, room.nodes);
        room.arcs = &scorer_.arcs();
    }

  private:
    const Design& design_;
    LatticeData data_;
    LatticeScorer<double> scorer_;
};

// The lattices of a design whose sites may have any label: each is made when it is asked for.
class OpenLattices : public LatticeSource {
  public:
    OpenLattices(const Layout& layout, const Design& design, const ArcModel& model, const ArcTables& tables,
                 const double* w)
        : layout_(layout), design_(design), model_(model), tables_(tables), w_(w) {}

    std::span<const std::int64_t> sequence_ptr() const override { return design_.sequence_ptr; }
    std::int32_t n_labels() const override { return layout_.n_labels; }
    void load(std::int64_t n, ScoredLattice& room) const override {
        const std::int64_t first = design_.sequence_ptr[n], n_sites = design_.sequence_ptr[n + 1] - first;
        const Candidates candidates = candidates_of(model_.bigrams, design_, nullptr, n);
        Lattice& lattice = room.lattice;
        lattice.build(model_.bigrams, candidates, 0, n_sites);
        room.nodes.clear();
        std::vector<double> row;  // [L]
        for (std::int64_t t = 0; t < n_sites; ++t) {
            row.assign(static_cast<std::size_t>(layout_.n_labels), 0.0);
            add_site_scores(layout_, design_.features, first + t, w_, 0, row.data());
            for (std::int64_t j = lattice.site_ptr[t]; j < lattice.site_ptr[t + 1]; ++j) {
                const std::int32_t label = lattice.labels[j];
                room.nodes.push_back(row[label] + (t == 0 ? tables_.start[label] : 0.0) +
                                     (t + 1 == n_sites ? tables_.end[label] : 0.0));
            }
        }
        room.arcs = &tables_.arcs;
    }

  private:
    const Layout& layout_;
    const Design& design_;
    const ArcModel& model_;
    const ArcTables& tables_;
    const double* w_;
};

}  // namespace

// What depends on the model alone.
struct LatticeTagger::Prepared {
    Prepared(const Layout& layout, const double* w) : model(layout) { model.score(w, tables); }
    ArcModel model;
    ArcTables tables;
};

LatticeTagger::LatticeTagger(const Layout& layout, const double* w) : layout_(layout), w_(w) {}

LatticeTagger::~LatticeTagger() = default;

std::unique_ptr<LatticeSource> LatticeTagger::source(const Design& design, int n_threads) const {
    std::call_once(once_, [&] { prepared_ = std::make_unique<const Prepared>(layout_, w_); });
    const auto& [model, tables] = *prepared_;
    if (design.as_batches) return std::make_unique<OpenLattices>(layout_, design, model, tables, w_);
    return std::make_unique<DesignLattices>(layout_, design, model, tables, w_, n_threads);
}

void LatticeTagger::best(const Design& design, std::int32_t* labels, int n_threads) const {
    crfkit::best(*source(design, n_threads), labels, n_threads);
}

void LatticeTagger::marginals(const Design& design, double* out, int n_threads) const {
    crfkit::marginals(*source(design, n_threads), out, n_threads);
}

void LatticeTagger::log_partitions(const Design& design, const Annotation* evidence, double* out,
                                   int n_threads) const {
    crfkit::log_partitions(*source(design, n_threads), evidence, out, n_threads);
}

std::vector<std::vector<ScoredLabels>> LatticeTagger::k_best(const Design& design, std::int64_t k,
                                                             int n_threads) const {
    return crfkit::k_best(*source(design, n_threads), k, n_threads);
}

void LatticeTagger::sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                           int n_threads) const {
    crfkit::sample(*source(design, n_threads), n, uniforms, labels, n_threads);
}

}  // namespace crfkit
