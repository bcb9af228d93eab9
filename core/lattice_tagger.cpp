#include "lattice_tagger.hpp"

#include <span>

#include "lattice_data.hpp"
#include "lattice_questions.hpp"
#include "lattice_scorer.hpp"

namespace crfkit {
namespace {

// The lattices of a design at given weights.
class DesignLattices : public LatticeSource {
  public:
    DesignLattices(const Layout& layout, const Design& design, const double* w, int n_threads)
        : design_(design), data_(layout, design, n_threads), scorer_(layout, design, data_) {
        scorer_.set(w);
    }

    std::span<const std::int64_t> sequence_ptr() const override { return design_.sequence_ptr; }
    std::int32_t n_labels() const override { return data_.bigrams.n_labels; }
    void load(std::int64_t n, ScoredLattice& room) const override {
        room.lattice.build(data_.bigrams, data_.candidates, design_.sequence_ptr[n],
                           design_.sequence_ptr[n + 1]);
        scorer_.score(n, room.nodes);
        room.arcs = &scorer_.arcs;
    }

  private:
    const Design& design_;
    LatticeData data_;
    LatticeScorer<double> scorer_;
};

}  // namespace

void LatticeTagger::best(const Design& design, std::int32_t* labels, int n_threads) const {
    crfkit::best(DesignLattices(layout_, design, w_, n_threads), labels, n_threads);
}

void LatticeTagger::marginals(const Design& design, double* out, int n_threads) const {
    crfkit::marginals(DesignLattices(layout_, design, w_, n_threads), out, n_threads);
}

void LatticeTagger::log_partitions(const Design& design, const Annotation* evidence, double* out,
                                   int n_threads) const {
    crfkit::log_partitions(DesignLattices(layout_, design, w_, n_threads), evidence, out, n_threads);
}

std::vector<std::vector<ScoredLabels>> LatticeTagger::k_best(const Design& design, std::int64_t k,
                                                             int n_threads) const {
    return crfkit::k_best(DesignLattices(layout_, design, w_, n_threads), k, n_threads);
}

void LatticeTagger::sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                           int n_threads) const {
    crfkit::sample(DesignLattices(layout_, design, w_, n_threads), n, uniforms, labels, n_threads);
}

}  // namespace crfkit
