// One sequence of a data set at the current weights: scores, messages, marginals and their Hessian–vector
// products, by the scaled kernels where these are exact and in log space elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/subnormals.hpp"
#include "chain/log_chain.hpp"
#include "data/scorer.hpp"

namespace crfkit {

// The arcs that hold at every position, as the kernels want them; with a direction, its product with them
// too.
template <class Real>
class SharedArcs {
  public:
    void set(const WeightTables<Real>& tables, std::int32_t n_labels, const WeightTables<Real>* direction) {
        const std::int64_t S = tables.stride, L = n_labels;
        const Real maximum = static_cast<Real>(tables.arc_maximum);
        weight_.resize(L * S);
        transposed_.assign(L * S, 0);
        tables.kernels.exp_shifted(tables.arcs.data(), maximum, weight_.data(), L * S);
        if (direction) {
            moved_.resize(L * S);
            moved_transposed_.assign(L * S, 0);
            for (std::int64_t i = 0; i < L * S; ++i) moved_[i] = weight_[i] * direction->arcs[i];
        }
        for (std::int64_t a = 0; a < L; ++a)
            for (std::int64_t b = 0; b < L; ++b) {
                transposed_[b * S + a] = weight_[a * S + b];
                if (direction) moved_transposed_[b * S + a] = moved_[a * S + b];
            }
        table = {n_labels,           tables.stride, static_cast<double>(maximum), weight_.data(),
                 transposed_.data(), moved_.data(), moved_transposed_.data()};
    }
    ArcTable<Real> table;

  private:
    Buffer<Real> weight_, transposed_, moved_, moved_transposed_;
};

// The workspace of one sequence; each thread has one.
template <class Real>
struct Workspace {
    Buffer<Real> scores, states, forward, backward, pushed, probs,
        scale;  // scores: only where they are needed twice
    Buffer<Real> direction, d_forward, d_backward, d_pushed, shift, extra;
    Buffer<Real> own_scores, own_weight, own_direction, own_moved, products;
    std::vector<PositionArcs<Real>> position_arcs;

    void reserve(std::int64_t n_positions, std::int64_t stride, bool hessian_vector) {
        for (Buffer<Real>* rows : {&scores, &states, &forward, &backward, &pushed, &probs})
            rows->resize(n_positions * stride);
        scale.resize(n_positions);
        if (!hessian_vector) return;
        for (Buffer<Real>* rows : {&direction, &d_forward, &d_backward, &d_pushed})
            rows->resize(n_positions * stride);
        shift.resize(n_positions);
        extra.resize(stride);
    }
    // weight · P(y_t) goes to `out` [T, S].
    Messages<Real> messages(Real* out, Real weight) {
        return {states.data(), forward.data(), backward.data(), pushed.data(), scale.data(), out, weight};
    }
    HessianVectors<Real> hessian_vectors(Real* out) {
        return {direction.data(), d_forward.data(), d_backward.data(), d_pushed.data(), shift.data(), out,
                extra.data()};
    }
    // After prepare_own_arcs: the arc scores into each position, tables of `size` numbers (null: the shared
    // ones).
    std::vector<const Real*> arc_scores(std::int64_t n_positions, std::int64_t size) const {
        std::vector<const Real*> tables(static_cast<std::size_t>(n_positions), nullptr);
        const Real* own = own_scores.data();
        for (std::int64_t t = 1; t < n_positions; ++t)
            if (position_arcs[t].weight) {
                tables[t] = own;
                own += size;
            }
        return tables;
    }
};

// Whether scaled messages have lost nothing that matters, where some arcs do not exist (see kMostFollowing).
template <class Real>
bool messages_are_exact(const Messages<Real>& messages, std::int64_t n_positions, std::int32_t n_labels,
                        std::int32_t stride) {
    constexpr Real most = kMostFollowing<Real>;
    for (std::int64_t t = 0; t < n_positions; ++t)
        for (std::int32_t b = 0; b < n_labels; ++b) {
            const std::int64_t i = t * stride + b;
            if (messages.states[i] > 0 &&
                !(messages.backward[i] <= most && (t == 0 || messages.pushed[i] <= most)))
                return false;
        }
    return true;
}

// Fills in the arcs of the positions that have their own. Returns whether all of them are safe for scaled
// arithmetic.
template <class Real>
bool prepare_own_arcs(const Scorer<Real>& scorer, const Scorer<Real>* direction, std::int32_t n_labels,
                      std::int64_t first_position, std::int64_t n_positions, Workspace<Real>& work) {
    const std::int64_t size = static_cast<std::int64_t>(n_labels) * scorer.tables().stride;
    work.position_arcs.assign(static_cast<std::size_t>(n_positions), PositionArcs<Real>{0, nullptr, nullptr});
    std::int64_t n_own = 0;
    for (std::int64_t t = 1; t < n_positions; ++t) n_own += scorer.has_own_arcs(first_position + t);
    for (Buffer<Real>* tables : {&work.own_scores, &work.own_weight}) tables->resize(n_own * size);
    if (direction)
        for (Buffer<Real>* tables : {&work.own_direction, &work.own_moved}) tables->resize(n_own * size);
    bool safe = true;
    for (std::int64_t t = 1, at = 0; t < n_positions; ++t) {
        if (!scorer.has_own_arcs(first_position + t)) continue;
        Real* scores = work.own_scores.data() + at;
        Real* weight = work.own_weight.data() + at;
        scorer.score_arcs(first_position + t, scores);
        const auto [maximum, spread] = scorer.tables().range(scores);
        safe = safe && spread <= WeightTables<Real>::kSafeSpread;
        scorer.tables().kernels.exp_shifted(scores, static_cast<Real>(maximum), weight, size);
        work.position_arcs[t] = {static_cast<double>(static_cast<Real>(maximum)), weight, nullptr};
        if (direction) {
            direction->score_arcs(first_position + t, work.own_direction.data() + at);
            for (std::int64_t i = at; i < at + size; ++i)
                work.own_moved[i] = work.own_weight[i] * work.own_direction[i];
            work.position_arcs[t].moved = work.own_moved.data() + at;
        }
        at += size;
    }
    return safe;
}

// The scores of a sequence without padding, in double, for the questions in log space.
struct PlainChain {
    std::vector<double> states, arcs;
    ChainView view;

    PlainChain(const PlainChain&) = delete;
    template <class Real>
    PlainChain(const Real* padded_states, const Buffer<Real>& shared_arcs, const Buffer<Real>& own_arcs,
               const std::vector<PositionArcs<Real>>& position_arcs, std::int64_t n_positions, std::int32_t L,
               std::int64_t stride) {
        const bool by_position = !position_arcs.empty();
        for (std::int64_t t = 0; t < n_positions; ++t)
            for (std::int32_t b = 0; b < L; ++b) states.push_back(padded_states[t * stride + b]);
        const Real* own = own_arcs.data();
        for (std::int64_t t = 1; t < (by_position ? n_positions : 2); ++t) {
            const bool mine = by_position && position_arcs[t].weight;
            const Real* table = mine ? own : shared_arcs.data();
            for (std::int32_t a = 0; a < L; ++a)
                for (std::int32_t b = 0; b < L; ++b) arcs.push_back(table[a * stride + b]);
            if (mine) own += L * stride;
        }
        view = {n_positions, L, states.data(), arcs.data(), by_position};
    }
};

}  // namespace crfkit
