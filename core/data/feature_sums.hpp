// Second half of an evaluation where every feature has its own weights: Φᵀ residuals of one block, feature by
// feature.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

class FeatureSums {
  public:
    // Sums up rows of residuals [positions, stride]: the weight of a feature and outcome b gets column b −
    // shift. `lists` are the positions of each feature.
    template <class Real>
    void sum(const Layout& layout, const Inverted& lists, const Real* residuals, std::int64_t stride,
             std::int32_t shift) {
        begin_.resize(static_cast<std::size_t>(lists.n()));
        std::int64_t n = 0;
        for (std::int64_t list = 0; list < lists.n(); ++list) {
            begin_[list] = n;
            n += n_weights(layout, lists.ids[list]);
        }
        sums_.assign(n, 0.0);
        for (std::int64_t list = 0; list < lists.n(); ++list) {
            const std::int64_t first = layout.pair_ptr[lists.ids[list]],
                               n_pairs = n_weights(layout, lists.ids[list]);
            const std::int32_t* outcomes = layout.pair_labels.data() + first;
            double* sums = sums_.data() + begin_[list];
            for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i) {
                const Real* row = residuals + lists.positions[i] * stride;
                const double value = lists.values.size() > 0 ? lists.values[i] : 1.0;
                for (std::int64_t p = 0; p < n_pairs; ++p) sums[p] += value * row[outcomes[p] - shift];
            }
        }
    }

    // Adds those of lists first..last−1 to out[D].
    void merge(const Layout& layout, const Inverted& lists, std::int64_t first, std::int64_t last,
               double* out) const {
        for (std::int64_t list = first; list < last; ++list) {
            const double* sums = sums_.data() + begin_[list];
            double* to = out + layout.pair_ptr[lists.ids[list]];
            for (std::int64_t p = 0; p < n_weights(layout, lists.ids[list]); ++p) to[p] += sums[p];
        }
    }

  private:
    static std::int64_t n_weights(const Layout& layout, std::int32_t feature) {
        return layout.pair_ptr[feature + 1] - layout.pair_ptr[feature];
    }

    std::vector<std::int64_t> begin_;  // [lists]
    Buffer<double> sums_;              // [weights of all lists]
};

}  // namespace crfkit
