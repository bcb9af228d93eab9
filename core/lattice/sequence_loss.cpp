#include "lattice/sequence_loss.hpp"

#include <algorithm>

#include "lattice/lattice_loss.hpp"

namespace crfkit {

LatticeSequences::LatticeSequences(const Layout& model, const Design& compiled, const Annotation& annotation,
                                   const LatticeData& lattices, int n_threads)
    : layout(model), design(compiled), gold(annotation), data(lattices) {
    const auto first_position = [&](std::int64_t n) { return design.sequence_ptr[n]; };
    const auto first_node = [&](std::int64_t n) { return data.candidates.position_ptr[first_position(n)]; };
    lists =
        layout.facets.empty()
            ? TouchedLists(data.weights, n_sequences(), first_node,
                           static_cast<std::int64_t>(layout.pair_labels.size()), n_threads)
            : TouchedLists(design.features, n_sequences(), first_position, layout.n_features(), n_threads);
}

void LatticeSequences::each_slot_range(const std::function<void(SlotRange)>& function) const {
    const bool by_feature = !layout.facets.empty();
    for (std::int64_t f = 0; by_feature && f < layout.n_features(); ++f)
        if (layout.pair_ptr[f] < layout.pair_ptr[f + 1])
            function({layout.pair_ptr[f], layout.pair_ptr[f + 1]});
    for (std::int64_t d = by_feature ? layout.arcs_begin() : 0; d < n_slots(); ++d) function({d, d + 1});
}

std::unique_ptr<SequenceLoss> LatticeSequences::open() const {
    return std::make_unique<LatticeSequence>(*this);
}

LatticeSequence::LatticeSequence(const LatticeSequences& source)
    : source_(source), arc_places_(source.layout.arc_before.size(), -1) {}

// The weights come in this order: those of features, those of arcs.
void LatticeSequence::load(std::int64_t n) {
    const Layout& layout = source_.layout;
    n_ = n;
    first_ = source_.design.sequence_ptr[n];
    n_positions_ = source_.design.sequence_ptr[n + 1] - first_;
    clear();
    if (n_positions_ == 0) return;
    lattice_.build(source_.data.model.bigrams, source_.data.candidates, first_, first_ + n_positions_);
    for (std::int64_t u = source_.lists.begin(n); u < source_.lists.end(n); ++u) {
        const std::int64_t id = source_.lists.ids[u];
        if (layout.facets.empty())
            touch(id, id + 1);
        else
            touch(layout.pair_ptr[id], layout.pair_ptr[id + 1]);
    }
    n_state_weights_ = n_weights();
    for (const std::int64_t id : arc_ids_) arc_places_[id - layout.arcs_begin()] = -1;
    arc_ids_.clear();
    each_boundary_node([&](std::int64_t, std::span<const std::int64_t> weights) { touch_arc(weights); });
    numbers_ = lattice_.arc;
    own_.resize(numbers_.size());
    for (std::size_t e = 0; e < numbers_.size(); ++e) {
        own_[e] = numbers_[e] < 0 ? -1 : static_cast<std::int32_t>(e);
        if (numbers_[e] >= 0) touch_arc(source_.data.model.of_arc(numbers_[e]));
    }
    lattice_.arc = own_;
    std::sort(arc_ids_.begin(), arc_ids_.end());
    for (std::size_t i = 0; i < arc_ids_.size(); ++i) {
        arc_places_[arc_ids_[i] - layout.arcs_begin()] = static_cast<std::int64_t>(i);
        touch(arc_ids_[i], arc_ids_[i] + 1);
    }
}

void LatticeSequence::touch_arc(std::span<const std::int64_t> weights) {
    for (const std::int64_t id : weights) {
        std::int64_t& place = arc_places_[id - source_.layout.arcs_begin()];
        if (place >= 0) continue;
        place = 0;
        arc_ids_.push_back(id);
    }
}

// function(node, weights) for the nodes of the first position with the weights of the arc from the start, and
// for those of the last position with the weights of the arc into the end.
template <class Function>
void LatticeSequence::each_boundary_node(const Function& function) const {
    const ArcModel& model = source_.data.model;
    for (std::int64_t j = 0; j < lattice_.position_ptr[1]; ++j)
        function(j, model.of_start(lattice_.labels[j]));
    for (std::int64_t j = lattice_.position_ptr[n_positions_ - 1]; j < lattice_.n_nodes(); ++j)
        function(j, model.of_end(lattice_.labels[j]));
}

double LatticeSequence::sum_of(std::span<const std::int64_t> weights, const double* of_arcs) const {
    double sum = 0;
    for (const std::int64_t id : weights) sum += of_arcs[arc_places_[id - source_.layout.arcs_begin()]];
    return sum;
}

double LatticeSequence::differentiate(const double* weights, double* residuals) {
    if (n_positions_ == 0) return 0;
    const ArcModel& model = source_.data.model;
    scores_.assign(static_cast<std::size_t>(lattice_.n_nodes()), 0.0);
    if (source_.layout.facets.empty())
        score_nodes(weights);
    else
        score_facets(weights);
    const double* of_arcs = weights + n_state_weights_;
    each_boundary_node(
        [&](std::int64_t j, std::span<const std::int64_t> ids) { scores_[j] += sum_of(ids, of_arcs); });
    arcs_.scores.assign(numbers_.size(), 0.0);
    for (std::size_t e = 0; e < numbers_.size(); ++e)
        if (numbers_[e] >= 0) arcs_.scores[e] = sum_of(model.of_arc(numbers_[e]), of_arcs);
    arcs_.exponentiate(model.bigrams.soft);
    std::fill_n(residuals, n_residuals(), 0.0);
    return lattice_loss<double>(lattice_, engine_, arcs_, scores_, nullptr, source_.gold, first_,
                                source_.gold.weights[n_], {residuals, residuals + lattice_.n_nodes()});
}

void LatticeSequence::score_nodes(const double* weights) {
    const TouchedLists& lists = source_.lists;
    for (std::int64_t u = lists.begin(n_); u < lists.end(n_); ++u, ++weights)
        for (std::int64_t i = lists.ptr[u]; i < lists.ptr[u + 1]; ++i)
            scores_[lists.places[i]] += lists.values.size() > 0 ? lists.values[i] * *weights : *weights;
}

// Features score the facets of their positions, and the facets of a node's label add up.
void LatticeSequence::score_facets(const double* weights) {
    const Layout& layout = source_.layout;
    const Facets& facets = layout.facets;
    const TouchedLists& lists = source_.lists;
    const std::int32_t shift = layout.n_labels + 1;
    by_facet_.assign(static_cast<std::size_t>(n_positions_ * facets.n), 0.0);
    for (std::int64_t u = lists.begin(n_); u < lists.end(n_); ++u) {
        const std::int64_t f = lists.ids[u], n = layout.pair_ptr[f + 1] - layout.pair_ptr[f];
        const std::int32_t* pairs = layout.pair_labels.data() + layout.pair_ptr[f];
        for (std::int64_t i = lists.ptr[u]; i < lists.ptr[u + 1]; ++i) {
            const double value = lists.values.size() > 0 ? lists.values[i] : 1.0;
            double* row = by_facet_.data() + static_cast<std::int64_t>(lists.places[i]) * facets.n;
            for (std::int64_t p = 0; p < n; ++p) row[pairs[p] - shift] += value * weights[p];
        }
        weights += n;
    }
    for (std::int64_t t = 0; t < n_positions_; ++t)
        for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j)
            for (std::int64_t i = facets.ptr[lattice_.labels[j]]; i < facets.ptr[lattice_.labels[j] + 1]; ++i)
                scores_[j] += by_facet_[t * facets.n + facets.ids[i] - shift];
}

void LatticeSequence::gradient(const double* residuals, double* gradient) {
    if (n_positions_ == 0) return;
    if (source_.layout.facets.empty()) {
        const TouchedLists& lists = source_.lists;
        for (std::int64_t u = lists.begin(n_), k = 0; u < lists.end(n_); ++u, ++k) {
            double sum = 0;
            for (std::int64_t i = lists.ptr[u]; i < lists.ptr[u + 1]; ++i)
                sum += residuals[lists.places[i]] * (lists.values.size() > 0 ? lists.values[i] : 1.0);
            gradient[k] = sum;
        }
    } else {
        sum_facets(residuals, gradient);
    }
    double* of_arcs = gradient + n_state_weights_;
    std::fill_n(of_arcs, arc_ids_.size(), 0.0);
    const auto add = [&](std::span<const std::int64_t> ids, double residual) {
        for (const std::int64_t id : ids) of_arcs[arc_places_[id - source_.layout.arcs_begin()]] += residual;
    };
    each_boundary_node([&](std::int64_t j, std::span<const std::int64_t> ids) { add(ids, residuals[j]); });
    const double* arcs = residuals + lattice_.n_nodes();
    for (std::size_t e = 0; e < numbers_.size(); ++e)
        if (numbers_[e] >= 0) add(source_.data.model.of_arc(numbers_[e]), arcs[e]);
}

void LatticeSequence::sum_facets(const double* residuals, double* gradient) {
    const Layout& layout = source_.layout;
    const Facets& facets = layout.facets;
    const TouchedLists& lists = source_.lists;
    const std::int32_t shift = layout.n_labels + 1;
    by_facet_.assign(static_cast<std::size_t>(n_positions_ * facets.n), 0.0);
    for (std::int64_t t = 0; t < n_positions_; ++t)
        for (std::int64_t j = lattice_.position_ptr[t]; j < lattice_.position_ptr[t + 1]; ++j)
            for (std::int64_t i = facets.ptr[lattice_.labels[j]]; i < facets.ptr[lattice_.labels[j] + 1]; ++i)
                by_facet_[t * facets.n + facets.ids[i] - shift] += residuals[j];
    for (std::int64_t u = lists.begin(n_); u < lists.end(n_); ++u) {
        const std::int64_t f = lists.ids[u], n = layout.pair_ptr[f + 1] - layout.pair_ptr[f];
        const std::int32_t* pairs = layout.pair_labels.data() + layout.pair_ptr[f];
        std::fill_n(gradient, n, 0.0);
        for (std::int64_t i = lists.ptr[u]; i < lists.ptr[u + 1]; ++i) {
            const double value = lists.values.size() > 0 ? lists.values[i] : 1.0;
            const double* row = by_facet_.data() + static_cast<std::int64_t>(lists.places[i]) * facets.n;
            for (std::int64_t p = 0; p < n; ++p) gradient[p] += value * row[pairs[p] - shift];
        }
        gradient += n;
    }
}

}  // namespace crfkit
