#include "chain/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/interruption.hpp"

namespace crfkit {
template <class Real>
Evaluator<Real>::Evaluator(const Layout& layout, const Design& design, const Annotation& gold,
                           const GroupedBlocks& grouped)
    : BlockedEvaluator(layout, design, gold),
      blocks_(grouped.blocks),
      tables_(layout, WeightTables<Real>::kNever, &grouped.groups),
      direction_tables_(layout, Real(0), &grouped.groups),
      scorer_(layout, design, tables_),
      direction_(layout, design, direction_tables_),
      some_arcs_missing_(layout.bigrams && !layout.bigrams->soft),
      grid_(std::is_same_v<Real, float> ? gradient_grid(design, gold, grouped) : std::nullopt),
      sums_(layout, design, grouped.blocks, tables_),
      observed_(static_cast<std::size_t>(table_size()), 0.0) {
    for (std::int64_t n = 0; n < design.n_sequences(); ++n) {
        const std::int64_t first = design.sequence_ptr[n], last = design.sequence_ptr[n + 1];
        if (gold.complete(first, last))
            for (std::int64_t t = first + 1; t < last; ++t)  // Σ_n weight_n · count of the transition (a, b)
                observed_[static_cast<std::int64_t>(gold.labels[t - 1]) * tables_.stride + gold.labels[t]] +=
                    gold.weights[n];
    }
}

template <class Real>
double Evaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    const auto n_bytes = static_cast<std::size_t>(layout_.n_weights()) * sizeof(double);
    const bool ready = std::exchange(tables_of_question_, false);
    if (ready) tables_.add_up_groups(n_threads);
    if (ready && v) direction_tables_.add_up_groups(n_threads);
    if (v && !store_) store_ = std::make_unique<MessageStore<Real>>(design_, gold_, tables_.stride);
    if (!v || !known_ || std::memcmp(known_->data(), w, n_bytes) != 0) {
        known_.reset();
        hessian_vector_ = false;
        if (!ready) tables_.set(w, n_threads);
        unsafe = !(tables_.arc_spread <= WeightTables<Real>::kSafeSpread);
        if (unsafe && std::is_same_v<Real, float>) return std::numeric_limits<double>::quiet_NaN();
        arcs_.set(tables_, layout_.n_labels, nullptr);
        arcs_.table.some_missing = some_arcs_missing_;
        shared_.assign(observed_.size(), 0.0);
        expected_.assign(observed_.size(), 0.0);
        const double value = add_all(out, n_threads);
        if (store_) known_.emplace(w, w + layout_.n_weights());
        tables_of_known_ = true;
        if (!v) return value;
    }
    if (!ready && !tables_of_known_) tables_.set(w, n_threads);
    tables_of_known_ = true;
    hessian_vector_ = true;
    if (!ready) direction_tables_.set(v, n_threads);
    arcs_.set(tables_, layout_.n_labels, &direction_tables_);
    arcs_.table.some_missing = some_arcs_missing_;
    // Σ_t W'(a, b) forward_{t−1}(a) pushed_t(b) = (change of the arc) · Σ_t P(a, b)
    for (std::size_t i = 0; i < observed_.size(); ++i) expected_[i] = direction_tables_.arcs[i] * shared_[i];
    return add_all(out, n_threads);
}

template <class Real>
void Evaluator<Real>::hand_over(DataEvaluator& next, bool same_question) {
    auto* const other = dynamic_cast<Evaluator*>(&next);
    if (!other || &other->layout_ != &layout_ || tables_.arcs.size() == 0) return;
    other->tables_.take(tables_);
    other->direction_tables_.take(direction_tables_);
    other->sums_.take(sums_);
    other->work_ = std::exchange(work_, {});
    other->slots_ = std::exchange(slots_, {});
    other->tables_of_question_ = same_question;
    tables_of_question_ = tables_of_known_ = other->tables_of_known_ = false;
}

// Goes through the data once: residuals, and their sums in out[D].
template <class Real>
double Evaluator<Real>::add_all(double* out, int n_threads) {
    sums_.clear(out, grid(), n_threads);
    return run_blocks(blocks_.size(), out, n_threads);
}

template <class Real>
void Evaluator<Real>::open(std::size_t n_slots, std::size_t n_workers) {
    slots_.resize(std::max(slots_.size(), n_slots));
    work_.resize(std::max(work_.size(), n_workers));
    const std::int32_t n_chains = chains_side_by_side(tables_.stride / tables_.kernels.lanes);
    for (std::vector<Workspace<Real>>& work : work_) work.resize(static_cast<std::size_t>(n_chains));
}

template <class Real>
void Evaluator<Real>::run_block(std::size_t i, std::size_t slot_number, std::size_t worker) {
    const Block& block = blocks_[i];
    Slot& slot = slots_[slot_number];
    std::vector<Workspace<Real>>& work = work_[worker];
    const std::int64_t first = block.first_sequence, last = block.last_sequence;
    slot.clear(block, layout_.n_labels, tables_.stride);
    Pace pace;
    std::vector<std::int64_t> plain;
    for (std::int64_t n = first; n < last; ++n) {
        const Run run = run_of(block, slot, n);
        const std::int64_t n_positions = run.n_positions;
        losses_[n] = 0;
        if (n_positions == 0) continue;
        if (is_plain(run)) {
            plain.push_back(n);
            losses_[n] = -score(run, plain_messages(run, work[0]).states, work[0]);
            continue;
        }
        pace.work(4 * n_positions * table_size());
        work[0].reserve(n_positions, tables_.stride, hessian_vector_);
        if (hessian_vector_) direction_.score(n, work[0].direction.data());
        if (hessian_vector_ && store_->holds(n)) {
            if (n + 1 < last) store_->fetch(n + 1, design_.sequence_ptr[n + 2] - design_.sequence_ptr[n + 1]);
            run_kept(run, work[0]);
        } else {
            run_sequence(run, work[0]);
        }
        slot.ends.add_rows(residuals(run), n_positions, tables_.stride);
    }
    // Sequences of about the same length go side by side; their scores were taken in the order of the data,
    // in which neighbours share features.
    std::stable_sort(plain.begin(), plain.end(), [&](std::int64_t a, std::int64_t b) {
        return run_of(block, slot, a).n_positions < run_of(block, slot, b).n_positions;
    });
    std::vector<Run> group;
    for (const std::int64_t n : plain) {
        group.push_back(run_of(block, slot, n));
        pace.work(4 * group.back().n_positions * table_size());
        if (group.size() < work.size() && n != plain.back()) continue;
        run_plain(group, work);
        group.clear();
    }
    sums_.open(i, slot.sums);
}

// The same as run_sequence for sequences that need nothing but scaled messages, side by side. They are
// scored, and losses_ has −score(gold).
template <class Real>
void Evaluator<Real>::run_plain(std::span<const Run> runs, std::vector<Workspace<Real>>& work) {
    std::int64_t n_positions[kMostChains];
    Messages<Real> m[kMostChains];
    double log_partitions[kMostChains];
    for (std::size_t k = 0; k < runs.size(); ++k) {
        n_positions[k] = runs[k].n_positions;
        work[k].reserve(n_positions[k], tables_.stride, false);
        m[k] = plain_messages(runs[k], work[k]);
    }
    tables_.kernels.sum_products(arcs_.table, static_cast<std::int32_t>(runs.size()), n_positions, m,
                                 log_partitions);
    for (std::size_t k = 0; k < runs.size(); ++k) {
        const double log_partition = use_messages(runs[k], m[k], log_partitions[k], work[k]);
        subtract_gold(runs[k]);
        runs[k].slot.ends.add_rows(residuals(runs[k]), n_positions[k], tables_.stride);
        losses_[runs[k].n] = runs[k].weight * (log_partition + losses_[runs[k].n]);
    }
}

// Fills in the scores of a sequence. Returns that of its gold labels, 0 where some are unknown.
template <class Real>
double Evaluator<Real>::score(const Run& run, Real* states, Workspace<Real>& work) {
    scorer_.score(run.n, states);
    close_labels(design_.allowed, run.begin, run.n_positions, layout_.n_labels, tables_.stride, states);
    if (keeps(run.n)) store_->set(run.n, true);
    if (!gold_.complete(run.begin, run.begin + run.n_positions)) return 0.0;
    return gold_score(run, states, work);
}

template <class Real>
void Evaluator<Real>::sum(std::size_t i, std::size_t slot_number, std::int64_t range) {
    Slot& slot = slots_[slot_number];
    sums_.sum(i, range, slot.residuals.data(), slot.own_residuals.data(), slot.sums);
}

// loss = weight · (log Z − score(gold)), or log Z − log Z_gold where labels are unknown, and its derivatives
// by the scores: residuals weight · (P(y_t = b) − [gold_t = b]) of emissions, P(y_{t−1} = a, y_t = b) of
// transitions. For Hessian–vector products, how both change along the direction.
template <class Real>
void Evaluator<Real>::run_sequence(const Run& run, Workspace<Real>& work) {
    const std::int32_t S = tables_.stride;
    const std::int64_t first = run.begin, n_positions = run.n_positions;
    const bool safe = prepare_arcs(run, work) && !unsafe;
    const bool complete = gold_.complete(first, first + n_positions);
    double loss = -score(run, messages(run, work).states, work);
    if (!complete || !safe || some_arcs_missing_)
        std::copy_n(messages(run, work).states, n_positions * S, work.scores.begin());
    loss += safe ? run_scaled(run, work) : run_in_log_space(run, work);
    if (complete) {
        if (!hessian_vector_) subtract_gold(run);
    } else {
        for (std::int64_t t = 0; t < n_positions; ++t)
            gold_.forbidden(first + t, layout_.n_labels,
                            [&](std::int32_t b) { work.scores[t * S + b] = WeightTables<Real>::kNever; });
        const Run allowed = run.allowed();
        std::copy_n(work.scores.begin(), n_positions * S, messages(allowed, work).states);
        loss -= safe ? run_scaled(allowed, work) : run_in_log_space(allowed, work);
    }
    losses_[run.n] = run.weight * loss;
}

// The same for changes, with messages that are known.
template <class Real>
void Evaluator<Real>::run_kept(const Run& run, Workspace<Real>& work) {
    prepare_arcs(run, work);
    finish_scaled(run, messages(run, work), work);
    if (gold_.complete(run.begin, run.begin + run.n_positions)) return;
    const Run allowed = run.allowed();
    finish_scaled(allowed, messages(allowed, work), work);
}

// Fills in the arcs of positions that have their own; false where they are too far apart for scaled messages.
template <class Real>
bool Evaluator<Real>::prepare_arcs(const Run& run, Workspace<Real>& work) {
    return run.block.n_own == 0 || prepare_own_arcs(scorer_, hessian_vector_ ? &direction_ : nullptr,
                                                    layout_.n_labels, run.begin, run.n_positions, work);
}

// Where the messages of a run are, or are to be written; weight · P(y_t) goes to the residuals when `first`.
template <class Real>
Messages<Real> Evaluator<Real>::messages(const Run& run, Workspace<Real>& work) {
    const Real weight = static_cast<Real>(run.weight);
    Real* target = run.first ? residuals(run) : work.probs.data();
    if (keeps(run.n) || (hessian_vector_ && store_->holds(run.n)))
        return store_->messages(run.n, run.n_positions, run.first, work.pushed.data(), target, weight);
    return work.messages(target, weight);
}

// Adds weight · P(y_t) (or its change) to the residuals, or sets them when `first`. Returns log Z.
template <class Real>
double Evaluator<Real>::run_scaled(const Run& run, Workspace<Real>& work) {
    const Messages<Real> m = messages(run, work);
    const PositionArcs<Real>* position_arcs = run.block.n_own > 0 ? work.position_arcs.data() : nullptr;
    return use_messages(run, m, tables_.kernels.sum_product(arcs_.table, position_arcs, run.n_positions, m),
                        work);
}

// What follows from the messages that a kernel has filled in, if they are of use. Returns log Z.
template <class Real>
double Evaluator<Real>::use_messages(const Run& run, const Messages<Real>& m, double log_partition,
                                     Workspace<Real>& work) {
    const bool possible = log_partition > -INFINITY;
    if (some_arcs_missing_ &&
        !(possible && messages_are_exact(m, run.n_positions, layout_.n_labels, tables_.stride)))
        return run_in_log_space(run, work);
    if (!possible) {  // only with weights that are not finite
        if (keeps(run.n)) store_->set(run.n, false);
        std::fill_n(residuals(run), run.n_positions * tables_.stride, Real(0));
        return std::numeric_limits<double>::quiet_NaN();
    }
    finish_scaled(run, m, work);
    return log_partition;
}

// What follows from the messages of a run.
template <class Real>
void Evaluator<Real>::finish_scaled(const Run& run, const Messages<Real>& m, Workspace<Real>& work) {
    const PositionArcs<Real>* position_arcs = run.block.n_own > 0 ? work.position_arcs.data() : nullptr;
    if (hessian_vector_)
        tables_.kernels.hessian_vectors(arcs_.table, position_arcs, run.n_positions, m,
                                        work.hessian_vectors(m.probs));
    if (!run.first)
        for (std::int64_t i = 0; i < run.n_positions * tables_.stride; ++i) residuals(run)[i] += m.probs[i];
    add_pairs(run, m, work);
}

// Adds Σ_t P(y_{t−1} = a, y_t = b) to the sums of transitions.
template <class Real>
void Evaluator<Real>::add_pairs(const Run& run, const Messages<Real>& m, Workspace<Real>& work) {
    const std::int32_t S = tables_.stride, L = layout_.n_labels;
    const HessianVectors<Real> d = work.hessian_vectors(m.probs);
    const auto own = [&](std::int64_t t) { return run.block.n_own > 0 && work.position_arcs[t].weight; };
    std::vector<double> marginals;
    Pace pace;
    for (std::int64_t t = 1; t < run.n_positions;) {
        std::int64_t end = t;
        while (end < run.n_positions && end - t < TransitionSums<Real>::kMostTerms && !own(end)) ++end;
        pace.work((end - t + 1) * table_size());
        if (end > t) {
            run.slot.transitions.add(tables_.kernels, m, hessian_vector_ ? &d : nullptr, t, end - t,
                                     arcs_.table.weight);
            t = end;
            continue;
        }
        const std::int64_t before = (t - 1) * S, here = t * S;
        const PositionArcs<Real>& arcs = work.position_arcs[t];
        marginals.assign(static_cast<std::size_t>(table_size()), 0.0);
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b) {
                const std::int64_t at = static_cast<std::int64_t>(a) * S + b;
                const double left = m.forward[before + a], right = m.pushed[here + b];
                marginals[at] =
                    hessian_vector_
                        ? arcs.weight[at] * (left * d.pushed[here + b] + d.forward[before + a] * right) +
                              arcs.moved[at] * left * right
                        : arcs.weight[at] * left * right;
            }
        add_own_pair(run, run.begin + t, marginals.data());
        ++t;
    }
}

// Arc marginals [L, S] of one position that is not covered by `products`.
template <class Real>
void Evaluator<Real>::add_own_pair(const Run& run, std::int64_t position, const double* marginals) {
    run.slot.transitions.add_direct(marginals, run.weight);
    const std::int64_t own = run.block.n_own > 0 ? run.block.own[position - run.block.first_position] : -1;
    if (own < 0) return;
    Real* sums = run.slot.own_residuals.data() + own * table_size();
    for (std::int64_t i = 0; i < table_size(); ++i) sums[i] += static_cast<Real>(run.weight * marginals[i]);
}

// The same as run_scaled, for arcs so far apart that scaled messages would underflow.
template <class Real>
double Evaluator<Real>::run_in_log_space(const Run& run, Workspace<Real>& work) {
    if (keeps(run.n)) store_->set(run.n, false);
    const std::int64_t n_positions = run.n_positions;
    const std::int32_t S = tables_.stride, L = layout_.n_labels;
    const std::vector<PositionArcs<Real>> none;
    const auto& position_arcs = run.block.n_own > 0 ? work.position_arcs : none;
    const PlainChain chain(work.scores.data(), tables_.arcs, work.own_scores, position_arcs, n_positions, L,
                           S);
    std::vector<double> states(static_cast<std::size_t>(n_positions) * L), arcs(states.size() * L);
    const double log_partition = log_marginals(chain.view, states.data(), arcs.data());
    require_possible(log_partition);
    if (hessian_vector_) {
        const PlainChain direction(work.direction.data(), direction_tables_.arcs, work.own_direction,
                                   position_arcs, n_positions, L, S);
        log_hessian_vector(chain.view, direction.view, states.data(), arcs.data());
    }
    Real* out = residuals(run);
    if (run.first) std::fill_n(out, n_positions * S, Real(0));
    std::vector<double> padded(static_cast<std::size_t>(table_size()));
    for (std::int64_t t = 0; t < n_positions; ++t) {
        for (std::int32_t b = 0; b < L; ++b)
            out[t * S + b] += static_cast<Real>(run.weight * states[t * L + b]);
        if (t == 0) continue;
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b) padded[a * S + b] = arcs[((t - 1) * L + a) * L + b];
        add_own_pair(run, run.begin + t, padded.data());
    }
    return log_partition;
}

// Score of the gold labels of a completely labelled sequence; takes them off the residuals of own arcs.
template <class Real>
double Evaluator<Real>::gold_score(const Run& run, const Real* states, Workspace<Real>& work) {
    const std::int64_t S = tables_.stride;
    double score = 0;
    const Real* own = work.own_scores.data();
    for (std::int64_t t = 0; t < run.n_positions; ++t) {
        const std::int64_t label = gold_.labels[run.begin + t];
        score += states[t * S + label];
        if (t == 0) continue;
        const std::int64_t pair = gold_.labels[run.begin + t - 1] * S + label;
        if (run.block.n_own > 0 && work.position_arcs[t].weight) {
            score += own[pair];
            own += table_size();
            if (!hessian_vector_)
                run.slot
                    .own_residuals[run.block.own[run.begin + t - run.block.first_position] * table_size() +
                                   pair] -= static_cast<Real>(run.weight);
        } else {
            score += tables_.arcs[pair];
        }
    }
    return score;
}

template <class Real>
void Evaluator<Real>::merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) {
    const Slot& slot = slots_[slot_number];
    sums_.merge(i, slot.sums, range, slot.residuals.data(), out);
    merge_transitions(slot, range);
}

template <class Real>
void Evaluator<Real>::add(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) {
    Slot& slot = slots_[slot_number];
    sums_.add(i, range, slot.residuals.data(), slot.own_residuals.data(), slot.sums, out);
    merge_transitions(slot, range);
}

// Adds one range of the sums of a block over transitions.
template <class Real>
void Evaluator<Real>::merge_transitions(const Slot& slot, std::int64_t range) {
    const TransitionSums<Real>& sums = slot.transitions;
    const Part part(table_size(), range);
    for (std::int64_t k = part.begin; k < part.end; ++k) {
        const double shared = grid().round(sums.shared(k, arcs_.table.weight));
        if (!hessian_vector_) shared_[k] += shared;
        expected_[k] += sums.has_direct() ? shared + grid().round(sums.direct(k)) : shared;
    }
    if (range == 0) ends_.add(slot.ends, grid());
}

template <class Real>
void Evaluator<Real>::finish(double* out, int n_threads) {
    sums_.write_rows(out, n_threads);
    const std::int64_t S = tables_.stride, L = layout_.n_labels;
    if (!hessian_vector_)  // the gradient by transitions is expected − observed counts
        for (std::size_t i = 0; i < observed_.size(); ++i) expected_[i] -= observed_[i];
    double* arcs = out + layout_.arcs_begin();
    for (std::size_t i = 0; i < layout_.arc_before.size(); ++i) {
        const std::int64_t a = layout_.arc_before[i], b = layout_.arc_after[i];
        arcs[i] = a == L ? ends_.start[b] : b == L ? ends_.end[a] : expected_[a * S + b];
    }
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace crfkit
