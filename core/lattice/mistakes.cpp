#include "lattice/mistakes.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lattice/design_lattices.hpp"
#include "lattice/scored_lattice.hpp"
#include "paths/label_sequences.hpp"

namespace crfkit {
namespace {

class LatticeMistakes : public ChainMistakes {
  public:
    LatticeMistakes(const Layout& layout, const Design& design, const Annotation& gold, const ArcModel& arcs,
                    const double* w, int n_threads)
        : ChainMistakes(layout, design, gold, arcs, w),
          arc_version_(static_cast<std::size_t>(arcs.bigrams.n_arcs()), -1),
          source_(design_lattices(layout, design, arcs, tables_, w, n_threads)) {
        tables_.arcs.scores.resize(arc_version_.size());
        tables_.start.resize(static_cast<std::size_t>(layout.n_labels));
        tables_.end.resize(tables_.start.size());
    }

    void read_weights() override {
        ++version_;
        read_ends();
    }

    // Facets may let one weight score many labels, so all are summed up again where a first or last label is
    // wrong.
    void read_changes(const Difference&) override {
        ++version_;
        if (right_.front() != predicted_.front() || right_.back() != predicted_.back()) read_ends();
    }

  private:
    void predict(std::int64_t n) override {
        source_->load(n, scored_);
        for (const std::int32_t k : scored_.lattice.arc)
            if (k >= 0 && arc_version_[k] != version_) {
                tables_.arcs.scores[k] = sum_of(arcs_.of_arc(k), w_);
                arc_version_[k] = version_;
            }
        label(predicted_);
    }

    void correct(std::int64_t n) override {
        scored_.lattice.close(gold_, design_.sequence_ptr[n], scored_.nodes);
        label(right_);
    }

    void add_position(std::int64_t position, std::int32_t label, double sign,
                      Difference& difference) override {
        const ActiveIds& features = design_.features;
        const Facets& facets = layout_.facets;
        std::span<const std::int32_t> outcomes(&label, 1);
        if (!facets.empty())
            outcomes =
                std::span(facets.ids).subspan(facets.ptr[label], facets.ptr[label + 1] - facets.ptr[label]);
        const std::int32_t* pairs = layout_.pair_labels.data();
        for (std::int64_t i = features.ptr[position]; i < features.ptr[position + 1]; ++i) {
            const std::int32_t f = features.ids[i];
            const std::int32_t *begin = pairs + layout_.pair_ptr[f], *end = pairs + layout_.pair_ptr[f + 1];
            for (const std::int32_t outcome : outcomes) {
                begin = std::lower_bound(begin, end, outcome);
                if (begin != end && *begin == outcome)
                    difference.add(begin - pairs,
                                   features.values.size() > 0 ? sign * features.values[i] : sign);
            }
        }
    }

    void label(std::vector<std::int32_t>& labels) {
        const double score = decode(scored_.graph(), scored_.best, labels.data());
        if (!std::isfinite(score))  // that some label sequence is possible was seen to beforehand
            throw std::overflow_error(
                "the scores of a sequence left the range of numbers, expected smaller values of features");
    }

    void read_ends() {
        for (std::int32_t b = 0; b < layout_.n_labels; ++b) {
            tables_.start[b] = sum_of(arcs_.of_start(b), w_);
            tables_.end[b] = sum_of(arcs_.of_end(b), w_);
        }
    }

    ArcTables tables_;                       // start and end are up to date, arcs where arc_version_ says so
    std::int64_t version_ = 0;               // of the weights: changes with every mistake
    std::vector<std::int64_t> arc_version_;  // [A]
    std::unique_ptr<LatticeSource> source_;
    ScoredLattice scored_;
};

}  // namespace

std::unique_ptr<Mistakes> lattice_mistakes(const Layout& layout, const Design& design, const Annotation& gold,
                                           const ArcModel& arcs, const double* w, int n_threads) {
    return std::make_unique<LatticeMistakes>(layout, design, gold, arcs, w, n_threads);
}

}  // namespace crfkit
