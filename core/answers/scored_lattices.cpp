#include "answers/scored_lattices.hpp"

#include "answers/path_sequence.hpp"

namespace crfkit {
namespace {

class LatticeReader final : public PathSequence<LatticeReader> {
  public:
    explicit LatticeReader(const LatticeSource& source) : PathSequence(source.n_labels()), source_(source) {}

    void load(std::int64_t n) override {
        first_ = source_.sequence_ptr()[n];
        source_.load(n, scored_);
    }
    void restrict(const Annotation& allowed) override {
        scored_.lattice.close(allowed, first_, scored_.nodes);
    }
    LatticeGraph graph(bool) const { return scored_.graph(); }

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
