// Features that are active together.
//
// A word determines its affixes and its shape, and a pair of words each of them: where such a feature is
// active, so are those that it implies. The weights of a group of features that are active together at many
// positions are added up once in an evaluation, to one more row of weights, and each of these positions reads
// one row in place of many. Likewise residuals are summed up once for the group, and that sum is added to
// those of its features:
//
//   M[g, f] = 1 for the features f of group g
//   Φ w = Φ' (w, M w)
//   Φᵀ r = (Φ'ᵀ r)_features + Mᵀ (Φ'ᵀ r)_groups
//
// Which groups there are depends on the data alone. Features whose values are not all 1 are left as they are.
#pragma once

#include <cstdint>
#include <vector>

#include "base/scratch_memory.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

class FeatureGroups {
  public:
    // Both must outlive them. A design that is not divided into rows and single weights has no groups.
    FeatureGroups(const Layout& layout, const Design& design, int n_threads);

    // G
    std::int64_t n() const { return members_.rows.ptr.size() > 0 ? members_.rows.ptr.size() - 1 : 0; }
    // The rows of features, and behind them those of groups: what ids of rows mean in `features`.
    std::int64_t n_rows() const { return n_feature_rows_ + n(); }
    // What is active at each position.
    const SplitFeatures& features() const { return n() > 0 ? features_ : design_.split; }

    // From the weights of features, rows [n_rows, stride] and single ones, makes the last rows: those of
    // groups.
    template <class Real>
    void add_up(const Real* weights, std::int32_t stride, Real* rows, int n_threads) const;
    // Adds the last of sums [n_rows, stride], those of groups, to those of their features: to earlier rows,
    // and to out [pairs].
    void share_out(std::int32_t stride, double* sums, double* out, int n_threads) const;

    void move_to(ScratchMemory& memory);

  private:
    const Layout& layout_;
    const Design& design_;
    const std::int64_t n_feature_rows_;
    SplitFeatures features_;
    SplitFeatures members_;                                  // of groups, in place of positions
    Inverted rows_, entries_;                                // in which groups a row is, or a single weight
    std::vector<std::int32_t> entry_labels_;                 // [lists of entries_]
    std::vector<std::int64_t> row_cuts_{0}, entry_cuts_{0};  // where tasks of these lists begin
};

}  // namespace crfkit
