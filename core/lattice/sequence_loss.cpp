#include "lattice/sequence_loss.hpp"

#include <algorithm>
#include <numeric>

#include "lattice/lattice_loss.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kAhead = 8;  // features or arcs that are prefetched

}  // namespace

LatticeSequences::LatticeSequences(const Layout& model, const Design& sequences, const Annotation& annotation,
                                   const LatticeData& lattices)
    : layout(model),
      design(sequences),
      gold(annotation),
      data(lattices),
      n_outcomes(model.facets.empty() ? model.n_labels : model.facets.n),
      first_outcome(model.facets.empty() ? 0 : model.n_labels + 1),
      row_bits(model, first_outcome, n_outcomes) {
    if (layout.facets.empty()) {
        outcome_ptr.resize(static_cast<std::size_t>(layout.n_labels) + 1);
        outcomes.resize(static_cast<std::size_t>(layout.n_labels));
        std::iota(outcome_ptr.begin(), outcome_ptr.end(), 0);
        std::iota(outcomes.begin(), outcomes.end(), 0);
        return;
    }
    outcome_ptr = layout.facets.ptr;
    outcomes = layout.facets.ids;
    for (std::int32_t& outcome : outcomes) outcome -= first_outcome;
}

void LatticeSequences::each_slot_range(const std::function<void(SlotRange)>& function) const {
    const auto each_of = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t d = begin; d < end; ++d) function({d, d + 1});
    };
    for (std::int32_t f = 0; f < layout.n_features(); ++f) {
        const std::int64_t begin = layout.pair_ptr[f], end = layout.pair_ptr[f + 1];
        if (!is_short(f))
            each_of(begin, end);
        else if (begin < end)
            function({begin, end});
    }
    each_of(layout.dense_begin(0), n_slots());
}

std::unique_ptr<SequenceLoss> LatticeSequences::open() const {
    return std::make_unique<LatticeSequence>(*this);
}

void LatticeSequence::WeightLists::clear() {
    ptr.assign(1, 0);
    ids.clear();
}

double LatticeSequence::WeightLists::sum(std::int64_t i, const double* weights) const {
    double total = 0;
    for (std::int64_t k = ptr[i]; k < ptr[i + 1]; ++k) total += weights[ids[k]];
    return total;
}

void LatticeSequence::WeightLists::spread(std::int64_t i, double residual, double* gradient) const {
    for (std::int64_t k = ptr[i]; k < ptr[i + 1]; ++k) gradient[ids[k]] += residual;
}

LatticeSequence::LatticeSequence(const LatticeSequences& source)
    : source_(source),
      arc_places_(static_cast<std::size_t>(source.data.model.bigrams.n_arcs()), -1),
      counts_(static_cast<std::size_t>(source.n_outcomes), 0),
      decides_(source.n_outcomes),
      by_outcome_(static_cast<std::size_t>(source.n_outcomes)) {
    places_.assign(source.n_slots(), -1);
}

void LatticeSequence::load(std::int64_t n) {
    const Design& design = source_.design;
    for (const SlotRange range : ranges()) places_[range.begin] = -1;
    for (const std::int32_t k : listed_) arc_places_[k] = -1;
    clear();
    listed_.clear();
    for (WeightLists* lists : {&arcs_, &starts_, &ends_}) lists->clear();
    entries_.clear();
    values_.clear();
    entry_ptr_.assign(1, 0);
    n_ = n;
    first_ = design.sequence_ptr[n];
    n_positions_ = design.sequence_ptr[n + 1] - first_;
    lattice_.labels.clear();
    if (n_positions_ == 0) return;
    lattice_.build(source_.data.model.bigrams, source_.data.candidates, first_, first_ + n_positions_);
    for (std::int64_t t = 0; t < n_positions_; ++t) load_position(t);
    load_arcs();
    load_ends();
}

// function(outcome) for those of the label of a node.
template <class Function>
void LatticeSequence::each_outcome(std::int64_t node, const Function& function) const {
    const std::int32_t b = lattice_.labels[node];
    for (std::int64_t i = source_.outcome_ptr[b]; i < source_.outcome_ptr[b + 1]; ++i)
        function(source_.outcomes[i]);
}

// Only what tells candidates apart: an outcome that all of them have adds the same to log Z and to the score
// of the right labels, and the derivative of the loss is 0.
void LatticeSequence::load_position(std::int64_t t) {
    const ActiveIds& features = source_.design.features;
    const std::int64_t position = first_ + t, n = lattice_.position_ptr[t + 1] - lattice_.position_ptr[t];
    if (n == 1) return entry_ptr_.push_back(entry_ptr_.back());
    for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j)
        each_outcome(j, [&](std::int32_t outcome) {
            if (++counts_[outcome] < n)
                decides_.set(outcome);
            else
                decides_.reset(outcome);
        });
    const std::int64_t end = features.ptr[position + 1];
    for (std::int64_t i = features.ptr[position]; i < end; ++i) {
        if (i + kAhead < end) fetch_weights(features.ids[i + kAhead]);
        if (i + 2 * kAhead < end) __builtin_prefetch(&source_.layout.pair_ptr[features.ids[i + 2 * kAhead]]);
        const std::int32_t f = features.ids[i];
        if (source_.is_short(f))
            add_row(f);
        else
            add_single_weights(f);
        if (features.values.size() > 0) values_.resize(entries_.size(), features.values[i]);
    }
    entry_ptr_.push_back(static_cast<std::int64_t>(entries_.size()));
    for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j)
        each_outcome(j, [&](std::int32_t outcome) {
            counts_[outcome] = 0;
            decides_.reset(outcome);
        });
}

// Prefetches what is read of a feature.
void LatticeSequence::fetch_weights(std::int32_t f) const {
    const std::int64_t begin = source_.layout.pair_ptr[f];
    source_.row_bits.fetch(f);
    __builtin_prefetch(source_.layout.pair_labels.data() + begin);
    __builtin_prefetch(places_.data() + begin);
}

// The weights of a feature that tell candidates apart; all weights are touched.
void LatticeSequence::add_row(std::int32_t f) {
    const Layout& layout = source_.layout;
    const std::int64_t begin = layout.pair_ptr[f], end = layout.pair_ptr[f + 1];
    if (begin == end) return;
    if (places_[begin] < 0) {
        places_[begin] = static_cast<std::int32_t>(n_weights());
        touch(begin, end);
    }
    const std::int32_t place = places_[begin];
    for (std::int64_t p = begin; p < end; ++p) {
        const std::int32_t outcome = layout.pair_labels[p] - source_.first_outcome;
        if (decides_.has(outcome))
            entries_.push_back({place + static_cast<std::int32_t>(p - begin), outcome});
    }
}

// The same where only these are touched.
void LatticeSequence::add_single_weights(std::int32_t f) {
    const Layout& layout = source_.layout;
    if (source_.row_bits.has(f)) {
        const std::int64_t begin = layout.pair_ptr[f];
        source_.row_bits.each_shared(f, decides_, [&](std::int64_t i, std::int32_t outcome) {
            entries_.push_back({place_of(begin + i), outcome});
        });
        return;
    }
    for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p) {
        const std::int32_t outcome = layout.pair_labels[p] - source_.first_outcome;
        if (decides_.has(outcome)) entries_.push_back({place_of(p), outcome});
    }
}

std::int32_t LatticeSequence::place_of(std::int64_t slot) {
    if (places_[slot] < 0) {
        places_[slot] = static_cast<std::int32_t>(n_weights());
        touch(slot, slot + 1);
    }
    return places_[slot];
}

void LatticeSequence::add_list(WeightLists& lists, std::span<const std::int64_t> weights) {
    for (const std::int64_t slot : weights) lists.ids.push_back(place_of(slot));
    lists.ptr.push_back(static_cast<std::int64_t>(lists.ids.size()));
}

void LatticeSequence::load_arcs() {
    const ArcModel& model = source_.data.model;
    for (std::int64_t t = 1; t < n_positions_; ++t) {
        const std::int64_t begin = lattice_.in_ptr[lattice_.position_ptr[t]],
                           end = lattice_.in_ptr[lattice_.position_ptr[t + 1]];
        for (std::int64_t e = begin; e < end; ++e) {
            std::int32_t& arc = lattice_.arc[e];
            if (arc < 0) continue;
            std::int32_t& place = arc_places_[arc];
            if (place < 0) {
                place = static_cast<std::int32_t>(listed_.size());
                listed_.push_back(arc);
            }
            arc = place;
        }
    }
    const auto n = static_cast<std::int64_t>(listed_.size());
    for (std::int64_t k = 0; k < n; ++k) {
        if (k + kAhead < n) __builtin_prefetch(model.of_arc(listed_[k + kAhead]).data());
        add_list(arcs_, model.of_arc(listed_[k]));
    }
}

void LatticeSequence::load_ends() {
    const ArcModel& model = source_.data.model;
    for (std::int64_t j = 0; j < lattice_.position_ptr[1]; ++j)
        add_list(starts_, model.of_start(lattice_.labels[j]));
    for (std::int64_t j = lattice_.position_ptr[n_positions_ - 1]; j < lattice_.n_nodes(); ++j)
        add_list(ends_, model.of_end(lattice_.labels[j]));
}

// Zeros for all that the candidates of a position have.
void LatticeSequence::clear_outcomes(std::int64_t t) {
    for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j)
        each_outcome(j, [&](std::int32_t outcome) { by_outcome_[outcome] = 0; });
}

// A position's features score outcomes, and those of a candidate add up.
double LatticeSequence::differentiate(const double* weights, double* residuals) {
    std::fill_n(residuals, n_residuals(), 0.0);
    if (n_positions_ == 0) return 0;
    const bool valued = !values_.empty();
    scores_.resize(lattice_.labels.size());
    for (std::int64_t t = 0; t < n_positions_; ++t) {
        clear_outcomes(t);
        for (std::int64_t i = entry_ptr_[t]; i < entry_ptr_[t + 1]; ++i)
            by_outcome_[entries_[i].outcome] += (valued ? values_[i] : 1.0) * weights[entries_[i].weight];
        for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j) {
            double sum = 0;
            each_outcome(j, [&](std::int32_t outcome) { sum += by_outcome_[outcome]; });
            scores_[j] = sum;
        }
    }
    const std::int64_t last = lattice_.position_ptr[n_positions_ - 1];
    for (std::int64_t i = 0; i < starts_.size(); ++i) scores_[i] += starts_.sum(i, weights);
    for (std::int64_t i = 0; i < ends_.size(); ++i) scores_[last + i] += ends_.sum(i, weights);
    arc_scores_.scores.resize(static_cast<std::size_t>(arcs_.size()));
    for (std::int64_t k = 0; k < arcs_.size(); ++k) arc_scores_.scores[k] = arcs_.sum(k, weights);
    arc_scores_.exponentiate(source_.data.model.bigrams.soft);
    return lattice_loss<double>(lattice_, engine_, arc_scores_, scores_, nullptr, source_.gold, first_,
                                source_.gold.weights[n_], {residuals, residuals + lattice_.n_nodes()});
}

void LatticeSequence::gradient(const double* residuals, double* gradient) {
    std::fill_n(gradient, n_weights(), 0.0);
    if (n_positions_ == 0) return;
    const bool valued = !values_.empty();
    for (std::int64_t t = 0; t < n_positions_; ++t) {
        if (entry_ptr_[t] == entry_ptr_[t + 1]) continue;
        clear_outcomes(t);
        for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j)
            each_outcome(j, [&](std::int32_t outcome) { by_outcome_[outcome] += residuals[j]; });
        for (std::int64_t i = entry_ptr_[t]; i < entry_ptr_[t + 1]; ++i)
            gradient[entries_[i].weight] += (valued ? values_[i] : 1.0) * by_outcome_[entries_[i].outcome];
    }
    const std::int64_t last = lattice_.position_ptr[n_positions_ - 1];
    for (std::int64_t i = 0; i < starts_.size(); ++i) starts_.spread(i, residuals[i], gradient);
    for (std::int64_t i = 0; i < ends_.size(); ++i) ends_.spread(i, residuals[last + i], gradient);
    for (std::int64_t k = 0; k < arcs_.size(); ++k)
        arcs_.spread(k, residuals[lattice_.n_nodes() + k], gradient);
}

}  // namespace crfkit
