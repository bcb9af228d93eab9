#include "chain/sequence_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crfkit {
namespace {

// The lists of things begin.. of a data set, as the kernels read them.
PositionLists<double> lists_from(const TouchedLists& lists, std::int64_t begin) {
    return {lists.ptr.data() + begin, lists.places.data(),
            lists.values.size() > 0 ? lists.values.data() : nullptr};
}

}  // namespace

ChainSequences::ChainSequences(const Layout& model, const Design& data, const Annotation& annotation,
                               int n_threads)
    : layout(model),
      design(data),
      gold(annotation),
      stride(stride_for(kernels_for<double>(model.n_labels), model.n_labels)) {
    const auto n_rows = static_cast<std::int64_t>(layout.row_features.size()),
               n_pairs = static_cast<std::int64_t>(layout.pair_labels.size());
    rows = TouchedLists(design.split.rows, design, n_rows, n_threads);
    singles = TouchedLists(design.split.entries, design, n_pairs, n_threads);
    if (design.arcs.ptr.size() > 0)
        arcs = TouchedLists(design.arcs, design, layout.n_arc_features(), n_threads);
    single_labels.resize(singles.ids.size());
    for (std::int64_t u = 0; u < single_labels.size(); ++u)
        single_labels[u] = layout.pair_labels[singles.ids[u]];
    exists.assign(first_slot(), 0);
    each_in_rows([&](std::int64_t slot, std::int64_t) { exists[slot] = 1; });
}

template <class Function>
void ChainSequences::each_in_rows(const Function& found) const {
    for (std::size_t r = 0; r < layout.row_features.size(); ++r) {
        const std::int64_t f = layout.row_features[r];
        for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p)
            found(static_cast<std::int64_t>(r) * stride + layout.pair_labels[p], p);
    }
}

void ChainSequences::pack(const double* w, double other, double* slots) const {
    std::fill_n(slots, first_slot(), other);
    each_in_rows([&](std::int64_t slot, std::int64_t p) { slots[slot] = w[p]; });
    std::copy_n(w, layout.n_weights(), slots + first_slot());
}

void ChainSequences::unpack(const double* slots, double* w) const {
    std::copy_n(slots + first_slot(), layout.n_weights(), w);
    each_in_rows([&](std::int64_t slot, std::int64_t p) { w[p] = slots[slot]; });
}

void ChainSequences::each_slot_range(const std::function<void(SlotRange)>& function) const {
    const std::int64_t weights = first_slot(), triples = weights + layout.triples_begin();
    for (std::int64_t slot = 0; slot < weights; slot += stride) function({slot, slot + stride});
    for (std::int64_t slot = weights; slot < weights + layout.dense_begin(0); ++slot)
        function({slot, slot + 1});
    if (weights + layout.dense_begin(0) < triples) function({weights + layout.dense_begin(0), triples});
    for (std::int64_t f = 0; f < layout.n_arc_features(); ++f)
        if (layout.arc_ptr[f] < layout.arc_ptr[f + 1])
            function({triples + layout.arc_ptr[f], triples + layout.arc_ptr[f + 1]});
}

std::unique_ptr<SequenceLoss> ChainSequences::open() const { return std::make_unique<ChainSequence>(*this); }

ChainSequence::ChainSequence(const ChainSequences& source)
    : source_(source),
      tables_(source.layout, WeightTables<double>::kNever),
      scorer_(source.layout, source.design, tables_),
      some_arcs_missing_(source.layout.bigrams && !source.layout.bigrams->soft) {
    tables_.triples.assign(static_cast<std::int64_t>(source.layout.arc_triples.size()), 0.0);
    products_.resize(stride() * stride());
}

// The weights come in this order: rows, single weights, dense blocks, arcs, features of arcs.
void ChainSequence::load(std::int64_t n) {
    const Layout& layout = source_.layout;
    const Design& design = source_.design;
    n_ = n;
    first_ = design.sequence_ptr[n];
    n_positions_ = design.sequence_ptr[n + 1] - first_;
    n_own_ = 0;
    clear();
    if (n_positions_ == 0) return;
    const std::int64_t S = stride(), weights = source_.first_slot();
    for (std::int64_t u = source_.rows.begin(n); u < source_.rows.end(n); ++u) {
        const std::int64_t row = source_.rows.ids[u];
        touch(row * S, (row + 1) * S);
    }
    for (std::int64_t u = source_.singles.begin(n); u < source_.singles.end(n); ++u)
        touch(weights + source_.singles.ids[u], weights + source_.singles.ids[u] + 1);
    touch(weights + layout.dense_begin(0), weights + layout.triples_begin());
    for (std::int64_t u = source_.arcs.begin(n); u < source_.arcs.end(n); ++u) {
        const std::int64_t f = source_.arcs.ids[u];
        const std::int64_t triples = weights + layout.triples_begin();
        touch(triples + layout.arc_ptr[f], triples + layout.arc_ptr[f + 1]);
    }
    if (design.arcs.ptr.size() > 0)
        for (std::int64_t t = 0; t < n_positions_; ++t) n_own_ += scorer_.has_own_arcs(first_ + t);
}

double ChainSequence::differentiate(const double* weights, double* residuals) {
    if (n_positions_ == 0) return 0;
    const FlushSubnormals flush;
    const std::int64_t S = stride();
    const Annotation& gold = source_.gold;
    const double weight = gold.weights[n_];
    score(weights);
    if (!std::isfinite(tables_.arc_spread)) {  // weights that have left the range of numbers
        std::fill_n(residuals, n_residuals(), 0.0);
        return std::numeric_limits<double>::quiet_NaN();
    }
    std::fill(arc_residuals(residuals), residuals + n_residuals(), 0.0);
    const bool complete = gold.complete(first_, first_ + n_positions_);
    double loss = complete ? -take_off_gold(arc_residuals(residuals)) : 0.0;
    if (!complete || !safe_ || some_arcs_missing_)
        std::copy_n(work_.states.begin(), n_positions_ * S, work_.scores.begin());
    loss += add_marginals(weight, true, residuals);
    if (complete) {
        for (std::int64_t t = 0; t < n_positions_; ++t) residuals[t * S + gold.labels[first_ + t]] -= weight;
    } else {
        for (std::int64_t t = 0; t < n_positions_; ++t)
            gold.forbidden(first_ + t, source_.layout.n_labels,
                           [&](std::int32_t b) { work_.scores[t * S + b] = WeightTables<double>::kNever; });
        std::copy_n(work_.scores.begin(), n_positions_ * S, work_.states.begin());
        loss -= add_marginals(-weight, false, residuals);
    }
    return weight * loss;
}

// States [T, S] and arcs at the weights of the sequence.
void ChainSequence::score(const double* weights) {
    const Layout& layout = source_.layout;
    const Design& design = source_.design;
    const std::int64_t S = stride();
    work_.reserve(n_positions_, S, false);
    const double* rows = weights;
    const double* singles = rows + (source_.rows.end(n_) - source_.rows.begin(n_)) * S;
    const double* dense = singles + (source_.singles.end(n_) - source_.singles.begin(n_));
    const double* arcs = dense + layout.arcs_begin() - layout.dense_begin(0);
    safe_ = true;
    score_arcs(arcs);
    const auto values = [](const Buffer<double>& of) { return of.size() > 0 ? of.data() : nullptr; };
    const PositionFeatures<double> features{design.split.rows.ptr.data() + first_,
                                            source_.rows.numbers.data(),
                                            values(design.split.rows.values),
                                            design.split.entries.ptr.data() + first_,
                                            source_.singles.numbers.data(),
                                            design.split.entry_labels.data(),
                                            values(design.split.entries.values),
                                            rows,
                                            singles};
    double* states = work_.states.data();
    tables_.kernels.score_positions(features, n_positions_, tables_.stride, tables_.base.data(), states);
    score_dense(dense);
    double* last = states + (n_positions_ - 1) * S;
    for (std::int32_t b = 0; b < layout.n_labels; ++b) {
        states[b] += tables_.start[b];
        last[b] += tables_.end[b];
    }
    close_labels(design.allowed, first_, n_positions_, layout.n_labels, tables_.stride, states);
}

const double* ChainSequence::score_dense(const double* weights) {
    const Layout& layout = source_.layout;
    const std::int64_t S = stride(), L = layout.n_labels;
    for (std::size_t k = 0; k < layout.dense_columns.size(); ++k) {
        const std::int64_t columns = layout.dense_columns[k];
        dense_.assign(columns * S, 0.0);
        for (std::int64_t c = 0; c < columns; ++c, weights += L)
            std::copy_n(weights, L, dense_.data() + c * S);
        tables_.kernels.score_dense(source_.design.dense[k].data() + first_ * columns, n_positions_, columns,
                                    dense_.data(), tables_.stride, work_.states.data());
    }
    return weights;
}

const double* ChainSequence::score_arcs(const double* weights) {
    const Layout& layout = source_.layout;
    tables_.set_arcs(weights);
    shared_.set(tables_, layout.n_labels, nullptr);
    shared_.table.some_missing = some_arcs_missing_;
    safe_ = tables_.arc_spread <= WeightTables<double>::kSafeSpread;
    weights += layout.arc_before.size();
    if (n_own_ == 0) return weights;
    for (std::int64_t u = source_.arcs.begin(n_); u < source_.arcs.end(n_); ++u) {
        const std::int64_t f = source_.arcs.ids[u];
        for (std::int64_t p = layout.arc_ptr[f]; p < layout.arc_ptr[f + 1]; ++p)
            tables_.triples[p] = *weights++;
    }
    safe_ = prepare_own_arcs<double>(scorer_, nullptr, layout.n_labels, first_, n_positions_, work_) && safe_;
    return weights;
}

// Score of the labels of a completely labelled sequence; its arcs are taken off the residuals.
double ChainSequence::take_off_gold(double* arcs) const {
    const Annotation& gold = source_.gold;
    const std::int64_t S = stride();
    const double* own_scores = work_.own_scores.data();
    double* own = arcs + table_size();
    double score = 0;
    for (std::int64_t t = 0; t < n_positions_; ++t) {
        const std::int64_t label = gold.labels[first_ + t];
        score += work_.states[t * S + label];
        if (t == 0) continue;
        const std::int64_t pair = gold.labels[first_ + t - 1] * S + label;
        arcs[pair] -= gold.weights[n_];
        if (n_own_ > 0 && work_.position_arcs[t].weight) {
            score += own_scores[pair];
            own[pair] -= gold.weights[n_];
            own_scores += table_size();
            own += table_size();
        } else {
            score += tables_.arcs[pair];
        }
    }
    return score;
}

// Adds weight · P of positions and arcs to the residuals; those of positions are set when `first`. Returns
// log Z.
double ChainSequence::add_marginals(double weight, bool first, double* residuals) {
    if (!safe_) return add_in_log_space(weight, first, residuals);
    const std::int64_t S = stride();
    const Messages<double> m = work_.messages(first ? residuals : work_.probs.data(), weight);
    const PositionArcs<double>* position_arcs = n_own_ > 0 ? work_.position_arcs.data() : nullptr;
    const double log_partition = tables_.kernels.sum_product(shared_.table, position_arcs, n_positions_, m);
    const bool possible = log_partition > -INFINITY;
    if (some_arcs_missing_ &&
        !(possible && messages_are_exact(m, n_positions_, source_.layout.n_labels, tables_.stride)))
        return add_in_log_space(weight, first, residuals);
    if (!possible) return diverge(residuals);
    if (!first)
        for (std::int64_t i = 0; i < n_positions_ * S; ++i) residuals[i] += m.probs[i];
    add_pairs(m, weight, arc_residuals(residuals));
    return log_partition;
}

// The answer at weights that are not finite, or so large that their sums are not: that some label sequence is
// possible was checked beforehand.
double ChainSequence::diverge(double* residuals) const {
    std::fill_n(residuals, n_residuals(), 0.0);
    return std::numeric_limits<double>::quiet_NaN();
}

// P(y_{t−1} = a, y_t = b) = forward_{t−1}(a) W(a, b) pushed_t(b): W is the same for all positions without
// arcs of their own.
void ChainSequence::add_pairs(const Messages<double>& m, double weight, double* arcs) {
    const std::int64_t S = stride(), size = table_size();
    products_.assign(S * S, 0.0);
    double* own = arcs + size;
    for (std::int64_t t = 1; t < n_positions_;) {
        std::int64_t end = t;
        while (end < n_positions_ && !(n_own_ > 0 && work_.position_arcs[end].weight)) ++end;
        if (end > t) {
            tables_.kernels.add_products(m.forward + (t - 1) * S, m.pushed + t * S, end - t,
                                         source_.layout.n_labels, tables_.stride, products_.data());
            t = end;
            continue;
        }
        const double* W = work_.position_arcs[t].weight;
        for (std::int32_t a = 0; a < source_.layout.n_labels; ++a) {
            const double left = weight * m.forward[(t - 1) * S + a];
            for (std::int64_t b = 0; b < S; ++b) {
                const double marginal = left * W[a * S + b] * m.pushed[t * S + b];
                arcs[a * S + b] += marginal;
                own[a * S + b] += marginal;
            }
        }
        own += size;
        ++t;
    }
    for (std::int64_t i = 0; i < size; ++i) arcs[i] += weight * shared_.table.weight[i] * products_[i];
}

// The same for arcs so far apart that scaled messages would underflow.
double ChainSequence::add_in_log_space(double weight, bool first, double* residuals) {
    const std::int64_t S = stride();
    const std::int32_t L = source_.layout.n_labels;
    const std::vector<PositionArcs<double>> none;
    const auto& position_arcs = n_own_ > 0 ? work_.position_arcs : none;
    const PlainChain chain(work_.scores.data(), tables_.arcs, work_.own_scores, position_arcs, n_positions_,
                           L, S);
    std::vector<double> states(static_cast<std::size_t>(n_positions_) * L), pairs(states.size() * L);
    const double log_partition = log_marginals(chain.view, states.data(), pairs.data());
    if (!(log_partition > -INFINITY)) return diverge(residuals);
    if (first) std::fill_n(residuals, n_positions_ * S, 0.0);
    double* arcs = arc_residuals(residuals);
    double* own = arcs + table_size();
    const double* marginal = pairs.data();
    for (std::int64_t t = 0; t < n_positions_; ++t) {
        for (std::int32_t b = 0; b < L; ++b) residuals[t * S + b] += weight * states[t * L + b];
        if (t == 0) continue;
        const bool mine = n_own_ > 0 && work_.position_arcs[t].weight;
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b, ++marginal) {
                arcs[a * S + b] += weight * *marginal;
                if (mine) own[a * S + b] += weight * *marginal;
            }
        if (mine) own += table_size();
    }
    return log_partition;
}

void ChainSequence::gradient(const double* residuals, double* gradient) {
    if (n_positions_ == 0) return;
    const std::int64_t S = stride(), begin = source_.rows.begin(n_), n_rows = source_.rows.end(n_) - begin;
    tables_.kernels.sum_rows(lists_from(source_.rows, begin), 0, n_rows, nullptr, residuals, tables_.stride,
                             SumGrid(), gradient);
    step_kernels().close_gaps(source_.rows.ids.data() + begin, n_rows, tables_.stride, source_.exists.data(),
                              gradient);
    gradient += n_rows * S;
    const std::int64_t single = source_.singles.begin(n_), n_singles = source_.singles.end(n_) - single;
    tables_.kernels.sum_entries(lists_from(source_.singles, single), 0, n_singles, nullptr,
                                source_.single_labels.data() + single, residuals, tables_.stride, SumGrid(),
                                gradient);
    gradient = sum_dense(residuals, gradient + n_singles);
    sum_arcs(residuals, gradient);
}

double* ChainSequence::sum_dense(const double* residuals, double* gradient) {
    const Layout& layout = source_.layout;
    const std::int64_t S = stride(), L = layout.n_labels;
    for (std::size_t k = 0; k < layout.dense_columns.size(); ++k) {
        const std::int64_t columns = layout.dense_columns[k];
        dense_.assign(columns * S, 0.0);
        tables_.kernels.sum_dense(source_.design.dense[k].data() + first_ * columns, n_positions_, columns, 0,
                                  columns, residuals, tables_.stride, dense_.data());
        for (std::int64_t c = 0; c < columns; ++c, gradient += L)
            std::copy_n(dense_.data() + c * S, L, gradient);
    }
    return gradient;
}

double* ChainSequence::sum_arcs(const double* residuals, double* gradient) const {
    const Layout& layout = source_.layout;
    const std::int64_t S = stride(), L = layout.n_labels;
    const double* last = residuals + (n_positions_ - 1) * S;
    const double* arcs = residuals + n_positions_ * S;
    for (std::size_t i = 0; i < layout.arc_before.size(); ++i) {
        const std::int64_t a = layout.arc_before[i], b = layout.arc_after[i];
        *gradient++ = a == L ? residuals[b] : b == L ? last[a] : arcs[a * S + b];
    }
    if (n_own_ == 0) return gradient;
    std::vector<std::int64_t> number(
        static_cast<std::size_t>(n_positions_));  // among the positions with own arcs
    for (std::int64_t t = 0, own = 0; t < n_positions_; ++t)
        if (scorer_.has_own_arcs(first_ + t)) number[t] = own++;
    const TouchedLists& lists = source_.arcs;
    for (std::int64_t u = lists.begin(n_); u < lists.end(n_); ++u) {
        const std::int64_t f = lists.ids[u];
        for (std::int64_t p = layout.arc_ptr[f]; p < layout.arc_ptr[f + 1]; ++p) {
            const std::int64_t at = layout.arc_triples[p] / L * S + layout.arc_triples[p] % L;
            double sum = 0;
            for (std::int64_t i = lists.ptr[u]; i < lists.ptr[u + 1]; ++i)
                sum += (lists.values.size() > 0 ? lists.values[i] : 1.0) *
                       arcs[(1 + number[lists.places[i]]) * table_size() + at];
            *gradient++ = sum;
        }
    }
    return gradient;
}

}  // namespace crfkit
