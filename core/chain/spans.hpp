// Exact probabilities of spans in one dense chain, from its scaled messages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "kernels/kernels.hpp"
#include "paths/span_labels.hpp"

namespace crfkit {

// With the messages of kernels.hpp and W_t the arcs into position t, let m_t(a) be the part of forward_t(a)
// that has a span of type c which began at `start` and holds position t. m_t ≤ forward_t, and
//
//   m_start(b)   = Σ_a forward_{start−1}(a) W_start(a, b) · U_start(b) scale_start     b does not continue a
//   m_{t+1}(b)   = Σ_a m_t(a) W_{t+1}(a, b) · U_{t+1}(b) scale_{t+1}                   b continues a
//   P(start, t + 1, c) = Σ_a m_t(a) Σ_b W_{t+1}(a, b) pushed_{t+1}(b)                  b does not continue a
//
// What is still open, Σ_a m_t(a) backward_t(a), only falls with t, so that a threshold ends it: the cost is
// that of the spans that are found. Nothing is subtracted.
class ChainSpans {
  public:
    // After sum_product, with weight 1. All must outlive it.
    ChainSpans(const Messages<double>& messages, const ArcTable<double>& arcs,
               const PositionArcs<double>* position_arcs, std::int64_t n_positions, const SpanLabels& labels)
        : m_(messages),
          arcs_(arcs),
          position_arcs_(position_arcs),
          n_positions_(n_positions),
          stride_(arcs.stride),
          labels_(labels) {}

    // As PathSpans (paths/spans.hpp).
    void find(double threshold, std::vector<ScoredSpan>& found);
    void probabilities(std::span<ScoredSpan> given);
    double expected_number() const;

  private:
    template <class Report>
    void extend(std::int64_t start, std::int32_t type, std::int64_t end, double threshold,
                const Report& report);
    void begin(std::int64_t start, std::int32_t type);
    void advance(std::int64_t t, std::int32_t type);
    double closed(std::int64_t t, std::int32_t type) const;

    // W_t, row = label before.
    const double* arcs_into(std::int64_t t) const {
        return position_arcs_ && position_arcs_[t].weight ? position_arcs_[t].weight : arcs_.weight;
    }

    Pace pace_;
    const Messages<double>& m_;
    const ArcTable<double>& arcs_;
    const PositionArcs<double>* const position_arcs_;
    const std::int64_t n_positions_, stride_;
    const SpanLabels& labels_;
    std::vector<double> open_, next_;  // [labels of the type] m_t, m_{t+1}
};

}  // namespace crfkit
