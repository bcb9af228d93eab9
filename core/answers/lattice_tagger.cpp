#include "answers/lattice_tagger.hpp"

#include "lattice/arc_model.hpp"
#include "lattice/design_lattices.hpp"

namespace crfkit {

// What depends on the model alone.
struct LatticeTagger::Prepared {
    Prepared(const Layout& layout, const double* w) : model(layout) { model.score(w, tables); }
    ArcModel model;
    ArcTables tables;
};

LatticeTagger::LatticeTagger(const Layout& layout, const double* w) : layout_(layout), w_(w) {}

LatticeTagger::~LatticeTagger() = default;

std::unique_ptr<LatticeSource> LatticeTagger::source(const Design& design, int n_threads) const {
    once_.run([&] { prepared_ = std::make_unique<const Prepared>(layout_, w_); });
    const auto& [model, tables] = *prepared_;
    return design_lattices(layout_, design, model, tables, w_, n_threads);
}

void LatticeTagger::best(const Design& design, std::int32_t* labels, int n_threads) const {
    crfkit::best(*source(design, n_threads), labels, n_threads);
}

void LatticeTagger::marginals(const Design& design, double* out, int n_threads) const {
    crfkit::marginals(*source(design, n_threads), out, n_threads);
}

void LatticeTagger::log_partitions(const Design& design, const Annotation* allowed, double* out,
                                   int n_threads) const {
    crfkit::log_partitions(*source(design, n_threads), allowed, out, n_threads);
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
