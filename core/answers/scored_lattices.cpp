#include "answers/scored_lattices.hpp"

namespace crfkit {
namespace {

class LatticeReader : public ScoredSequence {
  public:
    explicit LatticeReader(const LatticeSource& source) : source_(source) {}

    void load(std::int64_t n) override {
        first_ = source_.sequence_ptr()[n];
        source_.load(n, scored_);
    }
    void restrict(const Annotation& allowed) override {
        scored_.lattice.close(allowed, first_, scored_.nodes);
    }
    void decode(std::int32_t* labels) override { crfkit::decode(scored_.graph(), scored_.best, labels); }
    void marginals(double* probs) override {
        const Lattice& lattice = scored_.lattice;
        scored_.engine.marginals(scored_.graph());
        for (std::int64_t t = 0; t < lattice.n_positions(); ++t)
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j)
                probs[t * source_.n_labels() + lattice.labels[j]] = scored_.engine.node_probs[j];
    }
    double log_partition() override { return scored_.engine.log_partition(scored_.graph()); }
    std::vector<ScoredLabels> k_best(std::int64_t k) override { return crfkit::k_best(scored_.graph(), k); }
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) override {
        scored_.engine.log_partition(scored_.graph());
        crfkit::sample(scored_.graph(), scored_.engine, n, uniforms, labels);
    }

  private:
    const LatticeSource& source_;
    std::int64_t first_ = 0;
    ScoredLattice scored_;
};

}  // namespace

std::unique_ptr<ScoredSequence> ScoredLattices::reader() const {
    return std::make_unique<LatticeReader>(*source_);
}

}  // namespace crfkit
