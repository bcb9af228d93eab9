#include "evaluator.hpp"

#include <algorithm>

#include "threads.hpp"

namespace crfkit {
namespace {

// How many outer products of messages are added in the kernel's precision before they are added to doubles:
// bounds the rounding of long sequences.
constexpr std::int64_t kPairsPerFlush = 2048;

}  // namespace

template <class Real>
Evaluator<Real>::Evaluator(const Layout& layout, const Design& design, const Annotation& gold,
                           const std::vector<Block>& blocks)
    : layout_(layout),
      design_(design),
      gold_(gold),
      blocks_(blocks),
      tables_(layout, WeightTables<Real>::kNever),
      direction_tables_(layout, Real(0)),
      scorer_(layout, design, tables_),
      direction_(layout, design, direction_tables_),
      some_arcs_missing_(layout.bigrams && !layout.bigrams->soft),
      row_values_(blocks.size()),
      entry_values_(blocks.size()),
      arc_values_(blocks.size()),
      dense_(design.dense.size()),
      losses_(static_cast<std::size_t>(design.n_sequences())),
      observed_(static_cast<std::size_t>(layout.n_labels) * tables_.stride, 0.0),
      start_(tables_.stride),
      end_(tables_.stride) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        row_values_[i].of(blocks[i].rows.values);
        entry_values_[i].of(blocks[i].entries.values);
        arc_values_[i].of(blocks[i].arcs.values);
    }
    for (std::size_t k = 0; k < dense_.size(); ++k) dense_[k].of(design.dense[k]);
    for (std::int64_t n = 0; n < design.n_sequences(); ++n) {
        const std::int64_t first = design.sequence_ptr[n], last = design.sequence_ptr[n + 1];
        if (gold.complete(first, last))
            for (std::int64_t t = first + 1; t < last; ++t)
                observed_[static_cast<std::int64_t>(gold.labels[t - 1]) * tables_.stride + gold.labels[t]] +=
                    gold.weights[n];
    }
}

template <class Real>
double Evaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    tangent_ = v != nullptr;
    tables_.set(w, n_threads);
    unsafe = !(tables_.arc_spread <= WeightTables<Real>::kSafeSpread);
    if (unsafe && std::is_same_v<Real, float>) return std::numeric_limits<double>::quiet_NaN();
    if (tangent_) direction_tables_.set(v, n_threads);
    arcs_.set(tables_, layout_.n_labels, tangent_ ? &direction_tables_ : nullptr);
    arcs_.table.some_missing = some_arcs_missing_;
    expected_.assign(observed_.size(), 0.0);
    if (!tangent_)
        for (std::size_t i = 0; i < observed_.size(); ++i) expected_[i] = -observed_[i];
    std::fill(start_.begin(), start_.end(), 0.0);
    std::fill(end_.begin(), end_.end(), 0.0);
    std::fill(out, out + layout_.n_weights(), 0.0);
    row_sums_.assign(static_cast<std::int64_t>(layout_.row_features.size()) * tables_.stride, 0.0);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const Block& block = blocks_[i];
        const auto n_chunks = static_cast<std::int64_t>(block.chunks.size()) - 1;
        residuals_.resize((block.last_site - block.first_site) * tables_.stride);
        own_residuals_.assign(block.n_own * layout_.n_labels * tables_.stride, 0);
        if (static_cast<std::int64_t>(pairs_.size()) < n_chunks)
            pairs_.resize(static_cast<std::size_t>(n_chunks));
        const auto n_workers = static_cast<std::size_t>(std::clamp<std::int64_t>(n_threads, 1, n_chunks));
        if (work_.size() < n_workers) work_.resize(n_workers);
        parallel_for(n_chunks, n_threads,
                     [&](std::int64_t chunk, int worker) { run_chunk(block, chunk, worker); });
        collect(block);
        parallel_for(static_cast<std::int64_t>(block.tasks.size()), n_threads,
                     [&](std::int64_t task, int) { gather(block, i, block.tasks[task], out); });
    }
    write_rows(out, n_threads);
    write_arcs(out);
    double value = 0;
    for (const double loss : losses_) value += loss;
    return value;
}

template <class Real>
void Evaluator<Real>::run_chunk(const Block& block, std::int64_t chunk, int worker) {
    const FlushSubnormals flush;
    const std::int64_t size = static_cast<std::int64_t>(tables_.stride) * tables_.stride;
    PairSums& pairs = pairs_[chunk];
    pairs.products.assign(size, 0);
    if (tangent_) pairs.changes.assign(size, 0);
    pairs.direct_used = false;
    pairs.n_terms = 0;
    for (std::int64_t n = block.chunks[chunk]; n < block.chunks[chunk + 1]; ++n)
        run_sequence(block, n, work_[worker], pairs);
}

// The residuals of one sequence: weight · (P(y_t) − gold), and its arcs' share of the expectations.
template <class Real>
void Evaluator<Real>::run_sequence(const Block& block, std::int64_t n, Workspace<Real>& work,
                                   PairSums& pairs) {
    const std::int64_t first = design_.sequence_ptr[n], n_sites = design_.sequence_ptr[n + 1] - first;
    const double weight = gold_.weights[n];
    losses_[n] = 0;
    if (n_sites == 0) return;
    const std::int32_t S = tables_.stride;
    Real* residuals = residuals_.data() + (first - block.first_site) * S;
    work.reserve(n_sites, S, tangent_);
    scorer_.score(n, work.states.data());
    close_labels(design_.allowed, first, n_sites, layout_.n_labels, S, work.states.data());
    if (tangent_) direction_.score(n, work.direction.data());
    bool safe = !unsafe;
    if (block.n_own > 0)
        safe &= prepare_own_arcs(scorer_, tangent_ ? &direction_ : nullptr, layout_.n_labels, first, n_sites,
                                 work);
    const bool complete = gold_.complete(first, first + n_sites);

    double loss = complete ? -gold_score(block, n, weight, work) : 0.0;
    if (!complete || !safe || some_arcs_missing_)
        std::copy_n(work.states.begin(), n_sites * S, work.scores.begin());
    loss += safe ? run_scaled(block, n, weight, true, work, pairs)
                 : run_in_log_space(block, n, weight, true, work, pairs);
    if (complete) {
        if (!tangent_)
            for (std::int64_t t = 0; t < n_sites; ++t)
                residuals[t * S + gold_.labels[first + t]] -= static_cast<Real>(weight);
    } else {
        for (std::int64_t t = 0; t < n_sites; ++t)
            gold_.forbidden(first + t, layout_.n_labels,
                            [&](std::int32_t b) { work.scores[t * S + b] = WeightTables<Real>::kNever; });
        std::copy_n(work.scores.begin(), n_sites * S, work.states.begin());
        loss -= safe ? run_scaled(block, n, -weight, false, work, pairs)
                     : run_in_log_space(block, n, -weight, false, work, pairs);
    }
    losses_[n] = weight * loss;
}

// Adds weight · P(y_t) (or its change) to the residuals, or sets them when `first`. Returns log Z.
template <class Real>
double Evaluator<Real>::run_scaled(const Block& block, std::int64_t n, double weight, bool first,
                                   Workspace<Real>& work, PairSums& pairs) {
    const std::int64_t begin = design_.sequence_ptr[n], n_sites = design_.sequence_ptr[n + 1] - begin;
    const std::int64_t size = n_sites * tables_.stride;
    Real* residuals = residuals_.data() + (begin - block.first_site) * tables_.stride;
    const SiteArcs<Real>* site_arcs = block.n_own > 0 ? work.site_arcs.data() : nullptr;
    const Kernels<Real>& k = tables_.kernels;
    const Real factor = static_cast<Real>(weight);
    Real* target = first ? residuals : work.probs.data();
    const Messages<Real> messages = work.messages(target, factor);
    const double log_partition = k.sum_product(arcs_.table, site_arcs, n_sites, messages);
    if (some_arcs_missing_ && (!(log_partition > -INFINITY) ||
                               !messages_are_exact(work, n_sites, layout_.n_labels, tables_.stride)))
        return run_in_log_space(block, n, weight, first, work, pairs);
    if (!(log_partition > -INFINITY)) {  // only with weights that are not finite
        std::fill(residuals, residuals + size, Real(0));
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (tangent_) k.tangents(arcs_.table, site_arcs, n_sites, messages, work.tangents(target));
    if (!first)
        for (std::int64_t i = 0; i < size; ++i) residuals[i] += target[i];
    add_pairs(block, n, factor, work, pairs);
    return log_partition;
}

// Arc expectations of one sequence: by whole runs of sites that share their arcs, and one by one for the
// others.
template <class Real>
void Evaluator<Real>::add_pairs(const Block& block, std::int64_t n, Real weight, Workspace<Real>& work,
                                PairSums& pairs) {
    const Kernels<Real>& k = tables_.kernels;
    const std::int64_t first = design_.sequence_ptr[n], n_sites = design_.sequence_ptr[n + 1] - first;
    const std::int32_t S = tables_.stride, L = layout_.n_labels;
    const auto add = [&](const Real* left, const Real* right, std::int64_t length, Buffer<Real>& sums) {
        if (weight == Real(1)) return k.add_products(left, right, length, L, S, sums.data());
        work.products.assign(static_cast<std::int64_t>(S) * S, 0);
        k.add_products(left, right, length, L, S, work.products.data());
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(L) * S; ++i)
            sums[i] += weight * work.products[i];
    };
    const auto own = [&](std::int64_t t) { return block.n_own > 0 && work.site_arcs[t].weight; };
    std::vector<double> marginals;
    for (std::int64_t t = 1; t < n_sites;) {
        std::int64_t run = t;
        while (run < n_sites && run - t < kPairsPerFlush && !own(run)) ++run;
        const std::int64_t before = (t - 1) * S, here = t * S;
        if (run > t) {
            add(work.forward.data() + before, work.pushed.data() + here, run - t, pairs.products);
            if (tangent_) {
                add(work.forward.data() + before, work.d_pushed.data() + here, run - t, pairs.changes);
                add(work.d_forward.data() + before, work.pushed.data() + here, run - t, pairs.changes);
            }
            pairs.n_terms += run - t;
            if (pairs.n_terms >= kPairsPerFlush) flush(pairs);
            t = run;
            continue;
        }
        const SiteArcs<Real>& arcs = work.site_arcs[t];
        marginals.assign(static_cast<std::size_t>(L) * S, 0.0);
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b) {
                const std::int64_t at = static_cast<std::int64_t>(a) * S + b;
                const double left = work.forward[before + a], right = work.pushed[here + b];
                marginals[at] = tangent_ ? arcs.weight[at] * (left * work.d_pushed[here + b] +
                                                              work.d_forward[before + a] * right) +
                                               arcs.moved[at] * left * right
                                         : arcs.weight[at] * left * right;
            }
        add_own_pair(block, first + t, weight, marginals.data(), pairs);
        ++t;
    }
}

// Arc marginals [L, S] of one site that is not covered by `products`.
template <class Real>
void Evaluator<Real>::add_own_pair(const Block& block, std::int64_t site, double weight,
                                   const double* marginals, PairSums& pairs) {
    const std::int64_t size = static_cast<std::int64_t>(layout_.n_labels) * tables_.stride;
    double* direct = pairs.direct_sums(size);
    for (std::int64_t i = 0; i < size; ++i) direct[i] += weight * marginals[i];
    const std::int64_t own = block.n_own > 0 ? block.own[site - block.first_site] : -1;
    if (own < 0) return;
    Real* residuals = own_residuals_.data() + own * size;
    for (std::int64_t i = 0; i < size; ++i) residuals[i] += static_cast<Real>(weight * marginals[i]);
}

// The same as run_scaled, for arcs so far apart that scaled messages would underflow.
template <class Real>
double Evaluator<Real>::run_in_log_space(const Block& block, std::int64_t n, double weight, bool first,
                                         Workspace<Real>& work, PairSums& pairs) {
    const std::int64_t begin = design_.sequence_ptr[n], n_sites = design_.sequence_ptr[n + 1] - begin;
    const std::int32_t S = tables_.stride, L = layout_.n_labels;
    static const std::vector<SiteArcs<Real>> none;
    const auto& site_arcs = block.n_own > 0 ? work.site_arcs : none;
    const PlainChain chain(work.scores.data(), tables_.arcs, work.own_scores, site_arcs, n_sites, L, S);
    std::vector<double> states(static_cast<std::size_t>(n_sites) * L), arcs(states.size() * L);
    const double log_partition = log_marginals(chain.view, states.data(), arcs.data());
    if (tangent_) {
        const PlainChain direction(work.direction.data(), direction_tables_.arcs, work.own_direction,
                                   site_arcs, n_sites, L, S);
        log_tangent(chain.view, direction.view, states.data(), arcs.data());
    }
    Real* residuals = residuals_.data() + (begin - block.first_site) * S;
    if (first) std::fill(residuals, residuals + n_sites * S, Real(0));
    std::vector<double> padded(static_cast<std::size_t>(L) * S);
    for (std::int64_t t = 0; t < n_sites; ++t) {
        for (std::int32_t b = 0; b < L; ++b)
            residuals[t * S + b] += static_cast<Real>(weight * states[t * L + b]);
        if (t == 0) continue;
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b) padded[a * S + b] = arcs[((t - 1) * L + a) * L + b];
        add_own_pair(block, begin + t, weight, padded.data(), pairs);
    }
    return log_partition;
}

// Score of the gold labels of a completely labelled sequence; takes them off the residuals of own arcs.
template <class Real>
double Evaluator<Real>::gold_score(const Block& block, std::int64_t n, double weight, Workspace<Real>& work) {
    const std::int64_t first = design_.sequence_ptr[n], n_sites = design_.sequence_ptr[n + 1] - first;
    const std::int64_t S = tables_.stride, size = layout_.n_labels * S;
    double score = 0;
    const Real* own = work.own_scores.data();
    for (std::int64_t t = 0; t < n_sites; ++t) {
        const std::int64_t label = gold_.labels[first + t];
        score += work.states[t * S + label];
        if (t == 0) continue;
        const std::int64_t pair = gold_.labels[first + t - 1] * S + label;
        if (block.n_own > 0 && work.site_arcs[t].weight) {
            score += own[pair];
            own += size;
            if (!tangent_)
                own_residuals_[block.own[first + t - block.first_site] * size + pair] -=
                    static_cast<Real>(weight);
        } else {
            score += tables_.arcs[pair];
        }
    }
    return score;
}

// Element i of the arc marginals (or their changes) whose messages are summed up in `products`.
template <class Real>
double Evaluator<Real>::shared_sum(const PairSums& pairs, std::int64_t i) const {
    const ArcTable<Real>& table = arcs_.table;
    return tangent_ ? static_cast<double>(table.weight[i]) * pairs.changes[i] +
                          static_cast<double>(table.moved[i]) * pairs.products[i]
                    : static_cast<double>(table.weight[i]) * pairs.products[i];
}

// Moves what is summed up in `products` to `direct`.
template <class Real>
void Evaluator<Real>::flush(PairSums& pairs) {
    const std::int64_t size = static_cast<std::int64_t>(layout_.n_labels) * tables_.stride;
    double* direct = pairs.direct_sums(size);
    for (std::int64_t i = 0; i < size; ++i) direct[i] += shared_sum(pairs, i);
    pairs.products.assign(pairs.products.size(), 0);
    if (tangent_) pairs.changes.assign(pairs.changes.size(), 0);
    pairs.n_terms = 0;
}

// After the first half of a block: arc expectations in the order of the chunks, start and end in that of the
// sequences.
template <class Real>
void Evaluator<Real>::collect(const Block& block) {
    const std::int32_t S = tables_.stride, L = layout_.n_labels;
    for (std::size_t chunk = 0; chunk + 1 < block.chunks.size(); ++chunk) {
        const PairSums& pairs = pairs_[chunk];
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(L) * S; ++i) {
            expected_[i] += shared_sum(pairs, i);
            if (pairs.direct_used) expected_[i] += pairs.direct[i];
        }
    }
    for (std::int64_t n = block.chunks.front(); n < block.chunks.back(); ++n) {
        const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
        if (first == last) continue;
        for (std::int32_t b = 0; b < L; ++b) {
            start_[b] += residuals_[(first - block.first_site) * S + b];
            end_[b] += residuals_[(last - 1 - block.first_site) * S + b];
        }
    }
}

// Second half: Φᵀ residuals for some of the weights.
template <class Real>
void Evaluator<Real>::gather(const Block& block, std::size_t block_number, const GatherTask& task,
                             double* out) {
    const FlushSubnormals flush;
    const Kernels<Real>& k = tables_.kernels;
    const std::int32_t S = tables_.stride, L = layout_.n_labels;
    std::vector<double> sums;
    if (task.kind == Gather::rows) {
        const SiteLists<Real> lists{block.rows.ptr.data(), block.rows.sites.data(),
                                    row_values_[block_number].data()};
        k.sum_rows(lists, task.first, task.last, block.rows.ids.data(), residuals_.data(), S,
                   row_sums_.data());
    } else if (task.kind == Gather::entries) {
        const SiteLists<Real> lists{block.entries.ptr.data(), block.entries.sites.data(),
                                    entry_values_[block_number].data()};
        sums.resize(static_cast<std::size_t>(task.last - task.first));
        k.sum_entries(lists, task.first, task.last, block.entry_labels.data(), residuals_.data(), S,
                      sums.data());
        for (std::int64_t i = task.first; i < task.last; ++i)
            out[block.entries.ids[i]] += sums[i - task.first];
    } else if (task.kind == Gather::dense) {
        const std::int64_t columns = layout_.dense_columns[task.index];
        sums.assign(static_cast<std::size_t>(columns * S), 0.0);
        k.sum_dense(dense_[task.index].data() + block.first_site * columns,
                    block.last_site - block.first_site, columns, task.first, task.last, residuals_.data(), S,
                    sums.data());
        double* block_out = out + layout_.dense_begin(task.index);
        for (std::int64_t c = task.first; c < task.last; ++c)
            for (std::int32_t b = 0; b < L; ++b) block_out[c * L + b] += sums[c * S + b];
    } else {
        const SiteLists<Real> lists{block.arcs.ptr.data(), block.arcs.sites.data(),
                                    arc_values_[block_number].data()};
        double* triples = out + layout_.triples_begin();
        const std::vector<std::int32_t> here(static_cast<std::size_t>(block.arcs.n()), 0);
        for (std::int64_t i = task.first; i < task.last; ++i) {
            sums.assign(static_cast<std::size_t>(L) * S, 0.0);
            k.sum_rows(lists, i, i + 1, here.data(), own_residuals_.data(), L * S, sums.data());
            const std::int64_t f = block.arcs.ids[i];
            for (std::int64_t p = layout_.arc_ptr[f]; p < layout_.arc_ptr[f + 1]; ++p)
                triples[p] += sums[layout_.arc_triples[p] / L * S + layout_.arc_triples[p] % L];
        }
    }
}

template <class Real>
void Evaluator<Real>::write_rows(double* out, int n_threads) const {
    constexpr std::int64_t per_task = 1024;
    const auto n_rows = static_cast<std::int64_t>(layout_.row_features.size());
    parallel_for((n_rows + per_task - 1) / per_task, n_threads, [&](std::int64_t task, int) {
        for (std::int64_t r = task * per_task; r < std::min(n_rows, (task + 1) * per_task); ++r) {
            const std::int64_t f = layout_.row_features[r];
            for (std::int64_t p = layout_.pair_ptr[f]; p < layout_.pair_ptr[f + 1]; ++p)
                out[p] = row_sums_[r * tables_.stride + layout_.pair_labels[p]];
        }
    });
}

template <class Real>
void Evaluator<Real>::write_arcs(double* out) const {
    const std::int64_t S = tables_.stride, L = layout_.n_labels;
    double* arcs = out + layout_.arcs_begin();
    for (std::size_t i = 0; i < layout_.arc_before.size(); ++i) {
        const std::int64_t a = layout_.arc_before[i], b = layout_.arc_after[i];
        arcs[i] = a == L ? start_[b] : b == L ? end_[a] : expected_[a * S + b];
    }
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace crfkit
