// The inside pass over the hyperpaths of one graph (graph.hpp): log Z, and what all other sums over
// hyperpaths are made of.
//
// Each node v gets its inside sum, and each edge its probability given its head:
//   I(v) = Σ_{e into v} exp(score e) · I(left e) · I(right e),   I(no tail) = 1,   Z = I(goal)
//   given(e) = P(e | head e) = exp(score e) · I(left e) · I(right e) / I(head e)
//
// Inside sums are numbers of any size (base/wide.hpp): all are ≥ 0, and nothing is subtracted, so that each
// has the digits of a double for all scores, and there is no second pass in log space. The exponents of the
// terms of a sum are nearly always equal. Then a term costs a comparison more than one of plain doubles does.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interruption.hpp"
#include "hyperpaths/graph.hpp"

namespace crfkit {

class InsidePass {
  public:
    // Returns log Z; −inf when there is no hyperpath.
    template <HyperpathGraph Graph>
    double run(const Graph& graph);

    // After run, for the edges into a node that has hyperpaths.
    class Given {
      public:
        Given(const Wide* sums, std::int64_t node)
            : sums_(sums), inverse_(1 / sums[node].mantissa), exponent_(sums[node].exponent) {}
        // given(e) of the edge with these tails.
        double operator()(std::int64_t left, std::int64_t right, Wide weight) const;

      private:
        const Wide* sums_;
        double inverse_, exponent_;
    };
    Given given(std::int64_t node) const { return {sums(), node}; }
    bool has_hyperpaths(std::int64_t node) const { return sums()[node].mantissa > 0; }

  private:
    template <HyperedgesIn Edges>
    static Wide sum_of(const Edges& edges, const Wide* sums);
    static void add_apart(Wide& sum, double term, double exponent);
    // I(v), where I(kNoTail) = 1.
    const Wide* sums() const { return sums_.data() + 1; }

    std::vector<Wide> sums_;  // [1 + nodes]
};

// Terms lie within 2^±768, three factors within 2^±256 each, and are added up as they are while their
// exponents agree.
template <HyperedgesIn Edges>
Wide InsidePass::sum_of(const Edges& edges, const Wide* sums) {
    Wide sum;
    for (std::int64_t k = 0; k < edges.n; ++k) {
        const Wide left = sums[edges.left(k)], right = sums[edges.right(k)], weight = edges.weight(k);
        const double term = left.mantissa * right.mantissa * weight.mantissa;
        const double exponent = left.exponent + right.exponent + weight.exponent;
        if (exponent == sum.exponent) [[likely]]
            sum.mantissa += term;
        else
            add_apart(sum, term, exponent);
    }
    return Wide::normal(sum.mantissa, sum.exponent);
}

// A term of another exponent than the sum so far.
inline void InsidePass::add_apart(Wide& sum, double term, double exponent) {
    if (term == 0) return;
    if (sum.mantissa == 0)
        sum = {term, exponent};
    else
        sum = Wide::normal(sum.mantissa, sum.exponent) + Wide::normal(term, exponent);
}

template <HyperpathGraph Graph>
double InsidePass::run(const Graph& graph) {
    const std::int64_t n = graph.n_nodes();
    sums_.resize(static_cast<std::size_t>(n) + 1);
    sums_[0] = {1.0, 0.0};
    Wide* const sums = sums_.data() + 1;
    Pace pace;
    for (std::int64_t node = 0; node < n; ++node) {
        const auto edges = graph.into(node);
        pace.work(4 * edges.n);
        sums[node] = sum_of(edges, sums);
    }
    return log_of(sums[n - 1]);
}

// The term, at most I(head) but for rounding, before it is divided: so it is brought to the head's exponent
// first. A term that is more than 2^1000 times smaller than the sum counts as 0.
inline double InsidePass::Given::operator()(std::int64_t left, std::int64_t right, Wide weight) const {
    double term = sums_[left].mantissa * sums_[right].mantissa * weight.mantissa;
    double apart = sums_[left].exponent + sums_[right].exponent + weight.exponent - exponent_;
    if (apart != 0) [[unlikely]] {
        if (apart < -4) return 0.0;
        for (; apart < 0; ++apart) term *= Wide::kDown;
        for (; apart > 0; --apart) term *= Wide::kUp;
    }
    return term * inverse_;
}

}  // namespace crfkit
