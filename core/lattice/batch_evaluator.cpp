#include "lattice/batch_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "data/blocks.hpp"
#include "data/position_scores.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr BlockSizes kPositions{512, 2048, 4096};  // of a block

}  // namespace

std::vector<BatchBlock> cut_into_batches(const Layout& layout, const Design& design, BlockUse use,
                                         int n_threads) {
    std::vector<BatchBlock> blocks;
    const auto& ptr = design.sequence_ptr;
    const std::int64_t most = kPositions.size(design.n_positions(), use);
    for (std::int64_t first = 0, last = 0; first < design.n_sequences(); first = last) {
        while (last < design.n_sequences() && (last == first || ptr[last + 1] - ptr[first] <= most)) ++last;
        BatchBlock block{ptr[first], ptr[last], {}, first, last, {}, {}};
        block.sequences.resize(static_cast<std::size_t>(last - first));
        std::iota(block.sequences.begin(), block.sequences.end(), static_cast<std::int32_t>(first));
        std::stable_sort(block.sequences.begin(), block.sequences.end(), [&](std::int32_t a, std::int32_t b) {
            return ptr[a + 1] - ptr[a] > ptr[b + 1] - ptr[b];
        });
        blocks.push_back(std::move(block));
    }
    parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads, [&](std::int64_t i, int) {
        BatchBlock& block = blocks[i];
        std::vector<std::int32_t> scratch(static_cast<std::size_t>(layout.n_features()), 0);
        block.features = invert(design.features, block.first_position, block.last_position, scratch);
    });
    cut_ranges(blocks, &BatchBlock::features, layout.n_features(), &BatchBlock::ranges);
    return blocks;
}

template <class Real>
BatchEvaluator<Real>::BatchEvaluator(const Layout& layout, const Design& design, const Annotation& gold,
                                     const ArcModel& model, const std::vector<BatchBlock>& blocks)
    : BlockedEvaluator(layout, design, gold),
      model_(model),
      bigrams_(model.bigrams),
      blocks_(blocks),
      kernels_(kernels_for<Real>(layout.n_labels)),
      stride_(stride_for(kernels_, layout.n_labels)) {}

template <class Real>
void BatchEvaluator<Real>::set(const double* w, Scores& scores) const {
    const auto n_pairs = static_cast<std::int64_t>(layout_.pair_labels.size());
    scores.pairs.resize(n_pairs);
    for (std::int64_t p = 0; p < n_pairs; ++p) scores.pairs[p] = static_cast<Real>(w[p]);
    model_.score(w, scores.tables);
}

// The arcs as the kernels read them. With unlisted arcs of one weight u (policy soft; else u = 0), a push is
//   Σ_a forward(a) W(a, b) = u Σ_a forward(a) + Σ_{listed arcs a → b} forward(a) (W(a, b) − u),
// so that its cost is that of the listed arcs alone.
template <class Real>
void BatchEvaluator<Real>::set_arcs() {
    const Bigrams& bigrams = bigrams_;
    const ArcScores& arcs = scores_.tables.arcs;
    const std::int64_t n = bigrams.n_arcs();
    for (Buffer<Real>* weights : {&in_weight_, &in_moved_, &out_weight_, &out_moved_}) weights->resize(n);
    // An arc that exists never becomes 0.
    const double least = std::numeric_limits<Real>::min();
    const double unlisted = bigrams.soft ? std::max(arcs.unlisted, least) : 0.0;
    for (std::int64_t k = 0; k < n; ++k) {
        in_weight_[k] = static_cast<Real>(std::max(arcs.weights[k], least) - unlisted);
        in_moved_[k] =
            hessian_vector_ ? static_cast<Real>(arcs.weights[k] * direction_.tables.arcs.scores[k]) : Real(0);
    }
    for (std::int64_t k = 0; k < n; ++k) {
        out_weight_[k] = in_weight_[bigrams.out_arc[k]];
        out_moved_[k] = in_moved_[bigrams.out_arc[k]];
    }
    sparse_ = {layout_.n_labels,  bigrams.in_ptr.data(),      bigrams.in_before.data(), in_weight_.data(),
               in_moved_.data(),  bigrams.out_ptr.data(),     bigrams.out_after.data(), out_weight_.data(),
               out_moved_.data(), static_cast<Real>(unlisted)};
}

template <class Real>
double BatchEvaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    hessian_vector_ = v != nullptr;
    set(w, scores_);
    if (hessian_vector_) set(v, direction_);
    set_arcs();
    arcs_.assign(static_cast<std::size_t>(bigrams_.n_arcs()), 0.0);
    std::fill(out, out + layout_.n_weights(), 0.0);
    return run_blocks(blocks_.size(), out, n_threads);
}

template <class Real>
void BatchEvaluator<Real>::open(std::size_t n_slots, std::size_t n_workers) {
    slots_.resize(std::max(slots_.size(), n_slots));
    work_.resize(std::max(work_.size(), n_workers));
}

template <class Real>
void BatchEvaluator<Real>::run_block(std::size_t i, std::size_t slot_number, std::size_t worker) {
    const BatchBlock& block = blocks_[i];
    Slot& slot = slots_[slot_number];
    slot.residuals.resize((block.last_position - block.first_position) * stride_);
    slot.arcs.assign(arcs_.size(), 0.0);
    slot.ends.clear(layout_.n_labels);
    for (std::int64_t batch = 0; batch < n_batches(block); ++batch) {
        check_interruption();
        run_batch(block, batch, slot, work_[worker]);
    }
    for (std::int64_t n = block.first_sequence; n < block.last_sequence; ++n) {
        const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
        if (first < last) slot.ends.add_rows(residuals(block, first, slot), last - first, stride_);
    }
    slot.sums.sum(layout_, block.features, slot.residuals.data(), stride_, 0);
}

template <class Real>
void BatchEvaluator<Real>::merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) {
    const BatchBlock& block = blocks_[i];
    const Slot& slot = slots_[slot_number];
    slot.sums.merge(layout_, block.features, block.ranges[range], block.ranges[range + 1], out);
    const Part part(static_cast<std::int64_t>(arcs_.size()), range);
    for (std::int64_t k = part.begin; k < part.end; ++k) arcs_[k] += slot.arcs[k];
    if (range == 0) ends_.add(slot.ends);
}

// The scores of one position for all labels [S], start and end folded in; `pad` in the padding. Labels that
// may not start or end are closed, when the pad closes too.
template <class Real>
void BatchEvaluator<Real>::score_position(const Scores& scores, std::int64_t n, std::int64_t position,
                                          double pad, Real* row) const {
    const std::int32_t L = layout_.n_labels;
    std::fill(row, row + L, Real(0));
    std::fill(row + L, row + stride_, static_cast<Real>(pad));
    add_position_scores(layout_, design_.features, position, scores.pairs.data(), 0, row);
    const auto fold = [&](const std::vector<double>& ends, const std::vector<std::uint8_t>& possible) {
        for (std::int32_t b = 0; b < L; ++b)
            row[b] = pad == kNever && !possible[b] ? static_cast<Real>(kNever)
                                                   : row[b] + static_cast<Real>(ends[b]);
    };
    if (position == design_.sequence_ptr[n]) fold(scores.tables.start, bigrams_.can_start);
    if (position + 1 == design_.sequence_ptr[n + 1]) fold(scores.tables.end, bigrams_.can_end);
}

// Position t of all lanes: states (and direction), the maxima that were taken off, and the scores of the gold
// labels.
template <class Real>
void BatchEvaluator<Real>::load(const std::int32_t* sequences, int n_lanes, std::int64_t t, Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int64_t L = layout_.n_labels, S = stride_;
    // Lanes become the innermost axis: rows are read as W streams.
    const auto interleave = [&](Real* to) {
        for (std::int64_t b = 0; b < L; ++b)
            for (std::int64_t lane = 0; lane < W; ++lane) to[b * W + lane] = work.rows[lane * S + b];
    };
    work.rows.assign(W * S, 0);
    for (int lane = 0; lane < n_lanes; ++lane) {
        const std::int64_t n = sequences[lane], first = design_.sequence_ptr[n], position = first + t;
        if (position >= design_.sequence_ptr[n + 1]) continue;
        Real* row = work.rows.data() + lane * S;
        score_position(scores_, n, position, kNever, row);
        if (gold_.labels[position] >= 0) {
            work.gold[lane].add(row[gold_.labels[position]]);
            const std::int32_t k = t > 0 && gold_.labels[position - 1] >= 0
                                       ? bigrams_.find(gold_.labels[position - 1], gold_.labels[position])
                                       : -1;
            if (k >= 0) work.gold[lane].add(scores_.tables.arcs.scores[k]);
        }
        work.maxima[lane].add(kernels_.exponentiate(row, S));
        if (t > 0) work.maxima[lane].add(scores_.tables.arcs.maximum);
    }
    interleave(work.states.data() + t * L * W);
    if (!hessian_vector_) return;
    work.rows.assign(W * S, 0);
    for (int lane = 0; lane < n_lanes; ++lane) {
        const std::int64_t n = sequences[lane], position = design_.sequence_ptr[n] + t;
        if (position < design_.sequence_ptr[n + 1])
            score_position(direction_, n, position, 0.0, work.rows.data() + lane * S);
    }
    interleave(work.direction.data() + t * L * W);
}

template <class Real>
void BatchEvaluator<Real>::run_batch(const BatchBlock& block, std::int64_t batch, Slot& slot,
                                     Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int32_t* sequences = block.sequences.data() + batch * W;
    const int n_lanes = static_cast<int>(
        std::min<std::int64_t>(W, static_cast<std::int64_t>(block.sequences.size()) - batch * W));
    const auto length = [&](std::int64_t n) { return design_.sequence_ptr[n + 1] - design_.sequence_ptr[n]; };
    const std::int64_t T = length(sequences[0]), size = T * layout_.n_labels * W;
    for (int lane = 0; lane < n_lanes; ++lane) losses_[sequences[lane]] = 0;
    if (T == 0) return;
    work.maxima.assign(W, Total{});
    work.gold.assign(W, Total{});
    for (Buffer<Real>* rows : {&work.forward, &work.backward, &work.pushed, &work.probs}) rows->resize(size);
    work.states.resize(size);
    for (Buffer<Real>* masses : {&work.mass, &work.inverse_mass, &work.shift}) masses->resize(T * W);
    if (hessian_vector_) {
        for (Buffer<Real>* rows : {&work.d_forward, &work.d_backward, &work.d_pushed}) rows->resize(size);
        work.direction.resize(size);
        work.extra.resize(layout_.n_labels * W);
    }
    alignas(64) Real largest[W], cancelled[W];
    std::int32_t lengths[W] = {};
    for (int lane = 0; lane < n_lanes; ++lane)
        lengths[lane] = static_cast<std::int32_t>(length(sequences[lane]));
    for (std::int64_t t = 0; t < T; ++t) load(sequences, n_lanes, t, work);
    const BatchMessages<Real> messages{lengths,
                                       work.states.data(),
                                       work.forward.data(),
                                       work.backward.data(),
                                       work.pushed.data(),
                                       work.probs.data(),
                                       work.mass.data(),
                                       work.inverse_mass.data(),
                                       largest,
                                       cancelled};
    kernels_.batch_sum_product(sparse_, T, messages);
    const BatchHessianVectors<Real> hessian_vectors{work.direction.data(),  work.d_forward.data(),
                                                    work.d_backward.data(), work.d_pushed.data(),
                                                    work.shift.data(),      work.extra.data()};
    if (hessian_vector_) kernels_.batch_hessian_vectors(sparse_, T, messages, hessian_vectors);
    write_residuals(block, sequences, n_lanes, T, work, slot);

    for (int lane = 0; lane < n_lanes; ++lane) {
        const std::int64_t n = sequences[lane];
        if (lengths[lane] == 0) continue;
        bool exact = largest[lane] <= kMostFollowing<Real> && cancelled[lane] <= kMostCancelled<Real>;
        double log_partition = work.maxima[lane].value();
        for (std::int64_t t = 0; t < lengths[lane]; ++t) {
            exact &= work.mass[t * W + lane] > 0;
            log_partition += std::log(static_cast<double>(work.mass[t * W + lane]));
        }
        if (!exact || !std::isfinite(log_partition)) {
            Real* rows = residuals(block, design_.sequence_ptr[n], slot);
            std::fill(rows, rows + lengths[lane] * stride_, Real(0));
            log_partition = run_alone(block, n, gold_.weights[n], false, slot, work);
            for (std::int64_t i = lane; i < size; i += W) {  // leaves nothing in the batch
                work.forward[i] = work.pushed[i] = 0;
                if (hessian_vector_) work.d_forward[i] = work.d_pushed[i] = 0;
            }
        }
        if (gold_.complete(design_.sequence_ptr[n], design_.sequence_ptr[n + 1])) {
            losses_[n] = gold_.weights[n] * (log_partition - work.gold[lane].value());
            if (!hessian_vector_) take_gold(block, n, slot);
        } else {
            const double allowed = run_alone(block, n, -gold_.weights[n], true, slot, work);
            losses_[n] = gold_.weights[n] * (log_partition - allowed);
        }
    }
    add_products(T, sequences, n_lanes, slot.arcs.data(), work);
}

// weight · P(y_t) of all lanes (or its change) into the residuals of their positions.
template <class Real>
void BatchEvaluator<Real>::write_residuals(const BatchBlock& block, const std::int32_t* sequences,
                                           int n_lanes, std::int64_t n_positions, const Workspace& work,
                                           Slot& slot) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int64_t L = layout_.n_labels;
    for (std::int64_t t = 0; t < n_positions; ++t) {
        Real* rows[W];
        Real weights[W];
        int n_open = 0;  // longest first: the lanes that reach position t come first
        for (; n_open < n_lanes; ++n_open) {
            const std::int64_t n = sequences[n_open], position = design_.sequence_ptr[n] + t;
            if (position >= design_.sequence_ptr[n + 1]) break;
            rows[n_open] = residuals(block, position, slot);
            weights[n_open] = static_cast<Real>(gold_.weights[n]);
        }
        const Real* probs = work.probs.data() + t * L * W;
        for (std::int64_t b = 0; b < L; ++b)
            for (int lane = 0; lane < n_open; ++lane) rows[lane][b] = weights[lane] * probs[b * W + lane];
    }
}

// Arc expectations of a batch: weight · Σ forward_{t−1}(a) W(a, b) pushed_t(b), or their changes.
template <class Real>
void BatchEvaluator<Real>::add_products(std::int64_t n_positions, const std::int32_t* sequences, int n_lanes,
                                        double* arcs, Workspace& work) {
    constexpr std::int64_t W = kBatch<Real>;
    const std::int64_t size = n_positions * layout_.n_labels * W;
    alignas(64) Real weights[W] = {};
    bool all_one = true;
    for (int lane = 0; lane < n_lanes; ++lane) {
        weights[lane] = static_cast<Real>(gold_.weights[sequences[lane]]);
        all_one &= weights[lane] == Real(1);
    }
    if (!all_one)
        for (std::int64_t i = 0; i < size; ++i) {
            work.forward[i] *= weights[i % W];
            if (hessian_vector_) work.d_forward[i] *= weights[i % W];
        }
    work.plain.assign(arcs_.size(), 0.0);
    kernels_.batch_products(sparse_, n_positions, work.forward.data(), work.pushed.data(), work.plain.data());
    if (!hessian_vector_) {
        for (std::size_t k = 0; k < arcs_.size(); ++k)
            arcs[k] += scores_.tables.arcs.weights[k] * work.plain[k];
        return;
    }
    work.changes.assign(arcs_.size(), 0.0);
    kernels_.batch_products(sparse_, n_positions, work.forward.data(), work.d_pushed.data(),
                            work.changes.data());
    kernels_.batch_products(sparse_, n_positions, work.d_forward.data(), work.pushed.data(),
                            work.changes.data());
    for (std::size_t k = 0; k < arcs_.size(); ++k)
        arcs[k] += scores_.tables.arcs.weights[k] *
                   (work.changes[k] + direction_.tables.arcs.scores[k] * work.plain[k]);
}

// Takes the labels of a completely labelled sequence off residuals and arcs.
template <class Real>
void BatchEvaluator<Real>::take_gold(const BatchBlock& block, std::int64_t n, Slot& slot) {
    for (std::int64_t t = design_.sequence_ptr[n]; t < design_.sequence_ptr[n + 1]; ++t) {
        residuals(block, t, slot)[gold_.labels[t]] -= static_cast<Real>(gold_.weights[n]);
        if (t == design_.sequence_ptr[n]) continue;
        const std::int32_t k = bigrams_.find(gold_.labels[t - 1], gold_.labels[t]);
        if (k >= 0) slot.arcs[k] -= gold_.weights[n];
    }
}

// One sequence as a lattice, in double: where lanes are not exact, and for the label sequences that an
// incomplete annotation admits. Adds weight · P (or its change) to residuals and arcs. Returns log Z.
template <class Real>
double BatchEvaluator<Real>::run_alone(const BatchBlock& block, std::int64_t n, double weight, bool gold_only,
                                       Slot& slot, Workspace& work) {
    const std::int64_t first = design_.sequence_ptr[n];
    const Candidates candidates = candidates_of(bigrams_, design_, gold_only ? &gold_ : nullptr, n);
    Lattice& lattice = work.lattice;
    lattice.build(bigrams_, candidates, 0, design_.sequence_ptr[n + 1] - first);
    work.node_scores.clear();
    work.node_direction.clear();
    for (std::int64_t t = 0; t < lattice.n_positions(); ++t) {
        const auto copy = [&](const Scores& scores, double pad, std::vector<double>& to) {
            score_position(scores, n, first + t, pad, work.rows.data());
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j)
                to.push_back(work.rows[lattice.labels[j]]);
        };
        copy(scores_, kNever, work.node_scores);
        if (hessian_vector_) copy(direction_, 0.0, work.node_direction);
    }
    PathEngine& engine = work.engine;
    const LatticeGraph graph(lattice, scores_.tables.arcs, work.node_scores);
    const double log_partition = engine.marginals(graph);
    if (!std::isfinite(log_partition)) return std::numeric_limits<double>::quiet_NaN();
    if (hessian_vector_)
        engine.hessian_vector(graph,
                              LatticeGraph(lattice, direction_.tables.arcs.scores, work.node_direction));
    const auto& nodes = hessian_vector_ ? engine.node_changes : engine.node_probs;
    const auto& links = hessian_vector_ ? engine.arc_changes : engine.arc_probs;
    for (std::int64_t t = 0; t < lattice.n_positions(); ++t)
        for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j)
            residuals(block, first + t, slot)[lattice.labels[j]] += static_cast<Real>(weight * nodes[j]);
    for (std::int64_t e = 0; e < lattice.n_arcs(); ++e)
        if (lattice.arc[e] >= 0) slot.arcs[lattice.arc[e]] += weight * links[e];
    return log_partition;
}

template class BatchEvaluator<float>;
template class BatchEvaluator<double>;

}  // namespace crfkit
