// What scores the labels and the pairs of neighbouring labels of one sequence, as factors of its parts: the
// weights of its features, one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "data/arc_model.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "training/parts.hpp"

namespace crfkit {

// Questions are about the sequence loaded last. Features go to the newest factor of `parts`. One thread at a
// time.
class ChainFactors {
  public:
    virtual ~ChainFactors() = default;
    virtual void load(std::int64_t n) = 0;
    // Of label b at position t, with the arc out of the start where it comes first and into the end where it
    // comes last.
    virtual void add_label(std::int64_t t, std::int32_t b, Parts& parts) = 0;
    // Of the listed arc k between positions t − 1 and t.
    virtual void add_arc(std::int64_t t, std::int32_t k, Parts& parts) = 0;
    // Whether an arc has features that depend on the position.
    virtual bool by_position() const = 0;
};

// Features of positions, of labels or of their facets, dense blocks, transitions and features of transitions.
class DesignFactors final : public ChainFactors {
  public:
    // All must outlive it.
    DesignFactors(const Layout& layout, const Design& design, const ArcModel& model)
        : layout_(layout),
          design_(design),
          model_(model),
          by_outcome_(static_cast<std::size_t>(layout.n_outcomes())) {}

    void load(std::int64_t n) override {
        n_ = n;
        t_ = -1;
    }
    void add_label(std::int64_t t, std::int32_t b, Parts& parts) override;
    void add_arc(std::int64_t t, std::int32_t k, Parts& parts) override;
    bool by_position() const override { return design_.arcs.ptr.size() > 0; }
    // Of label b at position t, its features alone.
    void add_features(std::int64_t t, std::int32_t b, Parts& parts);
    // Of label b, only the arcs out of the start and into the end.
    void add_ends(bool first, bool last, std::int32_t b, Parts& parts) const;

  private:
    struct Feature {
        std::int64_t weight;
        double value;
    };
    struct ArcFeature {
        std::int32_t arc;
        Feature feature;
    };
    void go_to(std::int64_t t);
    void read_states(std::int64_t position);
    void read_arcs(std::int64_t position);

    const Layout& layout_;
    const Design& design_;
    const ArcModel& model_;
    std::int64_t n_ = 0, t_ = -1;                   // sequence, and the position that is read
    std::vector<std::vector<Feature>> by_outcome_;  // [outcomes] of the position
    std::vector<std::int32_t> outcomes_;            // those that have features there
    std::vector<ArcFeature> by_arc_;                // of the position, ascending by arc
};

// Factors that are made when something asks for them first.
class LazyFactors {
  public:
    explicit LazyFactors(std::int64_t n) : factor_(static_cast<std::size_t>(n), -1) {}

    void clear() {
        for (const std::int32_t i : made_) factor_[i] = -1;
        made_.clear();
    }
    // The factor of i; make() adds the features of a new one.
    template <class Make>
    std::int64_t of(std::int32_t i, Parts& parts, const Make& make) {
        if (factor_[i] < 0) {
            factor_[i] = parts.add_factor();
            made_.push_back(i);
            make();
        }
        return factor_[i];
    }

  private:
    std::vector<std::int64_t> factor_;  // −1: none yet
    std::vector<std::int32_t> made_;
};

}  // namespace crfkit
