#include "patterns/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interruption.hpp"
#include "base/subnormals.hpp"
#include "base/threads.hpp"

namespace crfkit {

template <class Real>
PatternEvaluator<Real>::PatternEvaluator(const Trellises& trellises, const Annotation& gold,
                                         const FeatureGroups& groups, const std::vector<Block>& blocks,
                                         const PatternBatches& batches, std::int64_t n_weights)
    : DataEvaluator(*trellises.layout, *trellises.design, gold),
      trellises_(trellises),
      table_(trellises.table),
      blocks_(blocks),
      batches_(batches),
      n_weights_(n_weights),
      model_(layout_),
      tables_(layout_, WeightTables<Real>::kNever, &groups),
      direction_tables_(layout_, Real(0), &groups),
      scorer_(layout_, design_, tables_),
      direction_(layout_, design_, direction_tables_),
      sums_(layout_, design_, blocks, tables_),
      arcs_(table_, tables_.kernels),
      gold_scores_(losses_.size(), 0.0) {}

template <class Real>
double PatternEvaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    hessian_vector_ = v != nullptr;
    tables_.set(w, n_threads);
    arc_scores_.score_weights(trellises_, model_, w);
    exponentiated_.reset();
    arcs_.set(arc_scores_, n_threads);
    if (v) {
        direction_tables_.set(v, n_threads);
        arc_direction_.score_weights(trellises_, model_, v);
    }
    chunks_.resize(static_cast<std::size_t>(batches_.n_chunks()));
    for (ChunkSums& sums : chunks_) {
        sums.products.assign(static_cast<std::size_t>(table_.n_arcs()), 0.0);
        sums.direct.clear();
    }
    std::fill(losses_.begin(), losses_.end(), 0.0);
    sums_.clear(out, SumGrid(), n_threads);
    std::fill(out + layout_.n_weights(), out + n_weights_, 0.0);
    reserve(work_, batches_.n_chunks(), n_threads);
    ends_.clear(layout_.n_labels);
    for (std::size_t i = 0; i < blocks_.size(); ++i) run_block(i, out, n_threads);
    finish(out, n_threads);
    return total_loss() - gold_arc_score_;
}

// A block by all threads: the expectations of arcs, of which a trellis has many, are kept once for each chunk
// and not for each block.
template <class Real>
void PatternEvaluator<Real>::run_block(std::size_t i, double* out, int n_threads) {
    residuals_.assign((blocks_[i].last_position - blocks_[i].first_position) * tables_.stride, 0);
    parallel_for(batches_.n_chunks(), n_threads, [&](std::int64_t chunk, int worker) {
        const FlushSubnormals flush;
        run_chunk(i, chunk, worker);
    });
    subtract_gold(i);
    sums_.open(i, block_sums_);
    parallel_for(kRanges, n_threads, [&](std::int64_t range, int) {
        const FlushSubnormals flush;
        sums_.add(i, range, residuals_.data(), nullptr, block_sums_, out);
    });
}

template <class Real>
void PatternEvaluator<Real>::run_chunk(std::size_t i, std::int64_t chunk, int worker) {
    const auto [first, last] = batches_.chunk(i, chunk);
    for (std::int64_t batch = first; batch < last; ++batch) {
        check_interruption();
        run_batch(blocks_[i], batches_.sequences(batch), chunks_[chunk], work_[worker]);
    }
}

// The sequences of a batch, as many at once as a vector has lanes.
template <class Real>
void PatternEvaluator<Real>::run_batch(const Block& block, std::span<const std::int32_t> sequences,
                                       ChunkSums& sums, Workspace& work) {
    const auto steps = trellises_.steps_of_sequence(sequences[0]);
    const bool wide =
        std::any_of(steps.begin(), steps.end(), [&](std::int32_t step) { return arcs_.is_wide(step); });
    std::vector<std::int32_t> partial;
    for (const std::int32_t n : sequences)
        if (!gold_.complete(design_.sequence_ptr[n], design_.sequence_ptr[n + 1])) partial.push_back(n);
    for (const bool admitted : {false, true}) {
        auto left = admitted ? std::span<const std::int32_t>(partial) : sequences;
        while (!left.empty()) {
            const auto n = std::min<std::size_t>(left.size(), kBatch<Real>);
            const Lanes lanes{left.first(n), admitted};
            left = left.subspan(n);
            if (!wide && !hessian_vector_) {
                run_lanes(block, lanes, steps, sums, work);
                continue;
            }
            for (const std::int32_t sequence : lanes.sequences)
                losses_[sequence] += run_alone(block, sequence, admitted, sums, work);
        }
    }
}

// The messages of a batch; what they come to goes to residuals and sums, and sequences that scaled messages
// are not exact for are run once more, alone.
template <class Real>
void PatternEvaluator<Real>::run_lanes(const Block& block, const Lanes& lanes,
                                       std::span<const std::int32_t> steps, ChunkSums& sums,
                                       Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const auto T = static_cast<std::int64_t>(steps.size()) - 1;
    load(lanes, T, work);
    pass_forward(steps, work);
    alignas(64) Real largest[W] = {};
    pass_backward(steps, work, largest);
    alignas(64) Real weights[W] = {};
    for (std::size_t lane = 0; lane < lanes.sequences.size(); ++lane) {
        const std::int32_t n = lanes.sequences[lane];
        // weight · log Z over all paths, − weight · log Z_gold over the allowed ones.
        const double weight = lanes.admitted ? -gold_.weights[n] : gold_.weights[n];
        double log_partition = work.maxima[lane].value();
        for (std::int64_t s = 0; s <= T; ++s)
            log_partition +=
                arcs_.maximum(steps[s]) + std::log(static_cast<double>(work.mass[(s + 1) * W + lane]));
        if (largest[lane] <= kMostFollowing<Real> && std::isfinite(log_partition)) {
            losses_[n] += weight * log_partition;
            weights[lane] = static_cast<Real>(weight);
        } else {
            losses_[n] += run_alone(block, n, lanes.admitted, sums, work);
        }
    }
    add_products(steps, weights, sums, work);
    for (std::int64_t t = 0; t < T; ++t) add_residuals(block, lanes, t, weights, work);
}

// exp(score − maximum) of all positions, lanes innermost; 0 for labels that are closed and in lanes without a
// sequence.
template <class Real>
void PatternEvaluator<Real>::load(const Lanes& lanes, std::int64_t T, Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int64_t S = tables_.stride, L = layout_.n_labels;
    work.rows.assign(W * T * S, 0);
    work.maxima.assign(W, Total{});
    for (std::size_t lane = 0; lane < lanes.sequences.size(); ++lane) {
        const std::int32_t n = lanes.sequences[lane];
        Real* rows = work.rows.data() + static_cast<std::int64_t>(lane) * T * S;
        score(n, lanes.admitted, rows);
        for (std::int64_t t = 0; t < T; ++t)
            work.maxima[lane].add(tables_.kernels.exponentiate(rows + t * S, S));
    }
    work.states.resize(T * L * W);
    for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t b = 0; b < L; ++b)
            for (std::int64_t lane = 0; lane < W; ++lane)
                work.states[(t * L + b) * W + lane] = work.rows[(lane * T + t) * S + b];
}

// The position scores [T, S] of a sequence, −inf for labels that are not allowed or not admitted; those of
// its gold labels are noted.
template <class Real>
void PatternEvaluator<Real>::score(std::int64_t n, bool admitted, Real* rows) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    const std::int32_t S = tables_.stride;
    scorer_.score(n, rows);
    close_labels(design_.allowed, first, last - first, layout_.n_labels, S, rows);
    if (!admitted && gold_.complete(first, last)) {
        gold_scores_[n] = 0;
        for (std::int64_t t = first; t < last; ++t)
            gold_scores_[n] += rows[(t - first) * S + gold_.labels[t]];
    }
    if (!admitted) return;
    for (std::int64_t t = first; t < last; ++t)
        gold_.forbidden(t, layout_.n_labels,
                        [&](std::int32_t b) { rows[(t - first) * S + b] = WeightTables<Real>::kNever; });
}

// Forward messages of all levels: 0 the source, t + 1 position t, T + 1 the sink. With x = exp(score of the
// arc − maximum of the step) and U_t(b) = exp(score of label b at t − maximum at t), both ≤ 1,
//   forward_{s+1}(j) = U(label of j) Σ_{arcs i → j} x forward_s(i) / mass_s,     mass_s = Σ_j forward_s(j),
// and log Z = Σ_t maximum at t + Σ_s (maximum of step s + log mass_{s+1}).
template <class Real>
void PatternEvaluator<Real>::pass_forward(std::span<const std::int32_t> steps, Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const auto T = static_cast<std::int64_t>(steps.size()) - 1;
    work.forward_at.assign(1, 0);
    work.following_at.assign(1, 0);
    for (const std::int32_t i : steps) {
        const Step& step = table_.steps[i];
        work.forward_at.push_back(work.forward_at.back() + step.n_sources() * W);
        work.following_at.push_back(work.following_at.back() + step.n_destinations() * W);
    }
    work.forward.resize(work.forward_at.back() + W);
    work.mass.resize((T + 2) * W);
    work.inverse_mass.resize((T + 2) * W);
    std::fill_n(work.forward.begin(), W, Real(1));
    std::fill_n(work.inverse_mass.begin(), W, Real(1));
    for (std::int64_t s = 0; s <= T; ++s) {
        if (s % 64 == 63) check_interruption();
        const Real* states = s < T ? work.states.data() + s * layout_.n_labels * W : nullptr;
        tables_.kernels.trellis_forward(
            arcs_.of(table_.steps[steps[s]]), states, work.inverse_mass.data() + s * W,
            work.forward.data() + work.forward_at[s], work.forward.data() + work.forward_at[s + 1],
            work.mass.data() + (s + 1) * W, work.inverse_mass.data() + (s + 1) * W);
    }
}

// Backward messages, normalised such that P(node) = forward · backward and P(arc i → j) = forward(i) x
// following(j) without a further division; following is the backward message of j with its emission and the
// scale of the level multiplied in. P(label) adds the nodes of a position that have the label.
template <class Real>
void PatternEvaluator<Real>::pass_backward(std::span<const std::int32_t> steps, Workspace& work,
                                           Real* largest) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int64_t T = static_cast<std::int64_t>(steps.size()) - 1, L = layout_.n_labels;
    work.following.resize(work.following_at.back());
    work.probs.resize(T * L * W);
    const Real* last = work.inverse_mass.data() + T * W;
    for (std::int64_t lane = 0; lane < W; ++lane)  // P(sink) = 1
        work.following[work.following_at[T + 1] - W + lane] = last[lane] * last[W + lane];
    for (std::int64_t s = T; s >= 0; --s) {
        if (s % 64 == 63) check_interruption();
        const Step& step = table_.steps[steps[s]];
        const std::int64_t position = (s - 1) * L * W;
        const StepMessages<Real> messages{s > 0 ? work.states.data() + position : nullptr,
                                          s > 0 ? work.inverse_mass.data() + (s - 1) * W : nullptr,
                                          work.forward.data() + work.forward_at[s],
                                          work.following.data() + work.following_at[s]};
        Real* pushed = s > 0 ? work.following.data() + work.following_at[s] - step.n_before * W : nullptr;
        Real* probs = s > 0 ? work.probs.data() + position : nullptr;
        tables_.kernels.trellis_backward(arcs_.of(step), layout_.n_labels, messages, pushed, probs, largest);
    }
}

// Σ weight · forward · following of all arcs: what is left is to multiply by their weights.
template <class Real>
void PatternEvaluator<Real>::add_products(std::span<const std::int32_t> steps, const Real* weights,
                                          ChunkSums& sums, Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    // Lanes without a weight may hold anything.
    const auto multiply = [&](Buffer<Real>& rows, const auto& factor) {
        for (std::int64_t i = 0; i < rows.size(); i += W)
            for (std::int64_t lane = 0; lane < W; ++lane)
                rows[i + lane] = weights[lane] != 0 ? factor(lane) * rows[i + lane] : Real(0);
    };
    if (!std::all_of(weights, weights + W, [](Real x) { return x == Real(1); })) {
        multiply(work.forward, [&](std::int64_t lane) { return weights[lane]; });
        multiply(work.following, [](std::int64_t) { return Real(1); });
    }
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const Step& step = table_.steps[steps[s]];
        tables_.kernels.trellis_products(arcs_.of(step), work.forward.data() + work.forward_at[s],
                                         work.following.data() + work.following_at[s],
                                         sums.products.data() + step.first_arc);
    }
}

// Adds weight · P(label) of position t to the residuals of all lanes that have a weight, and takes the gold
// labels of completely labelled sequences off.
template <class Real>
void PatternEvaluator<Real>::add_residuals(const Block& block, const Lanes& lanes, std::int64_t t,
                                           const Real* weights, const Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int64_t L = layout_.n_labels;
    const Real* probs = work.probs.data() + t * L * W;
    for (std::size_t lane = 0; lane < lanes.sequences.size(); ++lane) {
        if (weights[lane] == 0) continue;
        Real* row = residuals(block, design_.sequence_ptr[lanes.sequences[lane]] + t);
        for (std::int64_t b = 0; b < L; ++b) row[b] += weights[lane] * probs[b * W + lane];
    }
}

// One sequence in double, by messages that lose nothing: weight · P (or its change) into residuals and sums.
// Returns weight · log Z.
template <class Real>
double PatternEvaluator<Real>::run_alone(const Block& block, std::int64_t n, bool admitted, ChunkSums& sums,
                                         Workspace& work) {
    const std::int64_t first = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - first;
    const std::int64_t S = tables_.stride, L = layout_.n_labels;
    const double weight = admitted ? -gold_.weights[n] : gold_.weights[n];
    const auto widen = [&](std::vector<double>& to) {
        to.resize(static_cast<std::size_t>(T * L));
        for (std::int64_t t = 0; t < T; ++t)
            for (std::int64_t b = 0; b < L; ++b) to[t * L + b] = work.rows[t * S + b];
    };
    work.rows.resize(std::max(work.rows.size(), T * S));
    score(n, admitted, work.rows.data());
    widen(work.scores);
    if (hessian_vector_) {
        direction_.score(n, work.rows.data());
        widen(work.direction);
    }
    exponentiated_.run([&] { arc_scores_.exponentiate(table_); });
    const ScoredTrellis trellis{
        table_, trellises_.steps_of_sequence(n), layout_.n_labels, work.scores.data(), arc_scores_, true};
    const TrellisGraph graph(trellis, work.places);
    const double log_partition = work.engine.marginals(graph);
    if (!std::isfinite(log_partition)) return std::numeric_limits<double>::quiet_NaN();
    if (hessian_vector_) {
        const ScoredTrellis direction{table_,         trellis.steps, layout_.n_labels, work.direction.data(),
                                      arc_direction_, false};
        work.engine.hessian_vector(graph, TrellisGraph(direction, work.places));
    }
    const auto& nodes = hessian_vector_ ? work.engine.node_changes : work.engine.node_probs;
    const auto& arcs = hessian_vector_ ? work.engine.arc_changes : work.engine.arc_probs;
    sums.direct.resize(sums.products.size(), 0.0);
    for (std::int64_t t = 0; t <= T; ++t) {
        const Step& step = trellis.step(t);
        for (std::int64_t e = 0; e < step.n_arcs; ++e)
            sums.direct[step.first_arc + e] += weight * arcs[work.places.arc_begin[t] + e];
        if (t == T) break;
        const auto labels = table_.labels(step.after);
        const double* after = nodes.data() + work.places.node_begin[t] + step.n_sources();
        for (std::int32_t j = 0; j < step.n_after; ++j)
            residuals(block, first + t)[labels[j]] += static_cast<Real>(weight * after[j]);
    }
    return weight * log_partition;
}

// Of completely labelled sequences log Z_gold is the score of the labels, and P_gold is 1 for these: both are
// taken off losses and residuals. What the labels' arcs score follows in `finish`, for all sequences at once.
template <class Real>
void PatternEvaluator<Real>::subtract_gold(std::size_t i) {
    const Block& block = blocks_[i];
    for (std::int64_t n = block.first_sequence; n < block.last_sequence; ++n) {
        const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
        losses_[n] -= gold_.weights[n] * gold_scores_[n];
        if (!hessian_vector_ && gold_.complete(first, last))
            for (std::int64_t t = first; t < last; ++t)
                residuals(block, t)[gold_.labels[t]] -= static_cast<Real>(gold_.weights[n]);
        if (first < last) ends_.add_rows(residuals(block, first), last - first, tables_.stride);
    }
}

// The gradient of arcs and patterns, summed in the order of the chunks:  W · Σ forward · following − gold.
template <class Real>
void PatternEvaluator<Real>::finish(double* out, int n_threads) {
    sums_.write_rows(out, n_threads);
    const auto gold = batches_.gold_arcs();
    std::vector<double> by_arc(static_cast<std::size_t>(model_.bigrams.n_arcs()), 0.0);
    std::vector<double> by_active(static_cast<std::size_t>(table_.n_active()), 0.0);
    gold_arc_score_ = 0;
    for (std::size_t i = 0; i < table_.steps.size(); ++i) {
        const Step& step = table_.steps[i];
        const double* scores = arc_scores_.scores(0, static_cast<std::int32_t>(i));
        for (std::int64_t k = step.first_arc; k < step.first_arc + step.n_arcs; ++k) {
            if (arcs_.is_silent(k)) continue;
            double residual = 0;
            for (const ChunkSums& sums : chunks_) {
                residual += arcs_.weight(k) * sums.products[k];
                if (!sums.direct.empty()) residual += sums.direct[k];
            }
            if (!hessian_vector_) {
                residual -= gold[k];
                gold_arc_score_ += gold[k] * scores[k - step.first_arc];
            }
            if (table_.arc[k] >= 0) by_arc[table_.arc[k]] += residual;
            if (table_.active[k] >= 0) by_active[table_.active[k]] += residual;
        }
    }
    model_.add_gradient(by_arc, ends_.start, ends_.end, out);
    table_.add_active(by_active, out + trellises_.first_weight);
}

template class PatternEvaluator<float>;
template class PatternEvaluator<double>;

}  // namespace crfkit
