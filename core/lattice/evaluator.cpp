#include "lattice/evaluator.hpp"

#include <algorithm>

#include "base/interruption.hpp"
#include "lattice/lattice_loss.hpp"

namespace crfkit {

template <class Real>
LatticeEvaluator<Real>::LatticeEvaluator(const Layout& layout, const Design& design, const Annotation& gold,
                                         const LatticeData& data, const std::vector<LatticeBlock>& blocks)
    : BlockedEvaluator(layout, design, gold),
      data_(data),
      blocks_(blocks),
      scorer_(layout, design, data),
      direction_(layout, design, data) {}

template <class Real>
double LatticeEvaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    hessian_vector_ = v != nullptr;
    data_.model.score(w, tables_);
    scorer_.set(w, tables_);
    if (hessian_vector_) {
        data_.model.score(v, direction_tables_);
        direction_.set(v, direction_tables_);
    }
    arcs_.assign(static_cast<std::size_t>(data_.model.bigrams.n_arcs()), 0.0);
    std::fill(out, out + layout_.n_weights(), 0.0);
    return run_blocks(blocks_.size(), out, n_threads);
}

template <class Real>
void LatticeEvaluator<Real>::open(std::size_t n_slots, std::size_t n_workers) {
    slots_.resize(std::max(slots_.size(), n_slots));
    work_.resize(std::max(work_.size(), n_workers));
}

template <class Real>
void LatticeEvaluator<Real>::run_block(std::size_t i, std::size_t slot_number, std::size_t worker) {
    const LatticeBlock& block = blocks_[i];
    Slot& slot = slots_[slot_number];
    slot.residuals.resize(block.last_node - block.first_node);
    slot.facet_residuals.resize((block.last_position - block.first_position) * layout_.facets.n);
    slot.arcs.assign(arcs_.size(), 0.0);
    slot.ends.clear(layout_.n_labels);
    for (std::int64_t n = block.first_sequence; n < block.last_sequence; ++n)
        run_sequence(block, n, slot, work_[worker]);
    if (layout_.facets.empty())
        sum_weights(block, slot);
    else
        slot.facet_sums.sum(layout_, block.lists, slot.facet_residuals.data(), layout_.facets.n,
                            layout_.n_labels + 1);
}

// Residuals of the nodes, weight · (P − gold), and the sequence's share of the arcs' expectations.
template <class Real>
void LatticeEvaluator<Real>::run_sequence(const LatticeBlock& block, std::int64_t n, Slot& slot,
                                          Workspace& work) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    losses_[n] = 0;
    if (first == last) return;
    check_interruption();
    Real* residuals = slot.residuals.data() + (data_.candidates.position_ptr[first] - block.first_node);
    work.lattice.build(data_.model.bigrams, data_.candidates, first, last);
    std::fill(residuals, residuals + work.lattice.n_nodes(), Real(0));
    scorer_.score(n, work.scores);
    if (hessian_vector_) direction_.score(n, work.direction);
    const LatticeDirection direction{work.direction, direction_tables_.arcs.scores};
    losses_[n] = lattice_loss<Real>(work.lattice, work.engine, scorer_.arcs(), work.scores,
                                    hessian_vector_ ? &direction : nullptr, gold_, first, gold_.weights[n],
                                    {residuals, slot.arcs.data()});
    add_ends(block, n, slot);
    if (!layout_.facets.empty()) add_by_facet(block, n, slot);
}

// What the residuals of the nodes of a sequence come to, facet by facet.
template <class Real>
void LatticeEvaluator<Real>::add_by_facet(const LatticeBlock& block, std::int64_t n, Slot& slot) const {
    const Facets& facets = layout_.facets;
    const auto& [position_ptr, labels] = data_.candidates;
    for (std::int64_t t = design_.sequence_ptr[n]; t < design_.sequence_ptr[n + 1]; ++t) {
        Real* row = slot.facet_residuals.data() + (t - block.first_position) * facets.n;
        std::fill(row, row + facets.n, Real(0));
        for (std::int64_t node = position_ptr[t]; node < position_ptr[t + 1]; ++node)
            for (std::int64_t i = facets.ptr[labels[node]]; i < facets.ptr[labels[node] + 1]; ++i)
                row[facets.ids[i] - layout_.n_labels - 1] += slot.residuals[node - block.first_node];
    }
}

template <class Real>
void LatticeEvaluator<Real>::add_ends(const LatticeBlock& block, std::int64_t n, Slot& slot) const {
    const auto& [position_ptr, labels] = data_.candidates;
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    for (std::int64_t node = position_ptr[first]; node < position_ptr[first + 1]; ++node)
        slot.ends.start[labels[node]] += slot.residuals[node - block.first_node];
    for (std::int64_t node = position_ptr[last - 1]; node < position_ptr[last]; ++node)
        slot.ends.end[labels[node]] += slot.residuals[node - block.first_node];
}

// Second half: Φᵀ residuals.
template <class Real>
void LatticeEvaluator<Real>::sum_weights(const LatticeBlock& block, Slot& slot) const {
    const Inverted& lists = block.lists;
    slot.weight_sums.resize(lists.n());
    for (std::int64_t list = 0; list < lists.n(); ++list) {
        double sum = 0;
        if (lists.values.size() > 0)
            for (std::int64_t k = lists.ptr[list]; k < lists.ptr[list + 1]; ++k)
                sum += lists.values[k] * slot.residuals[lists.positions[k]];
        else
            for (std::int64_t k = lists.ptr[list]; k < lists.ptr[list + 1]; ++k)
                sum += slot.residuals[lists.positions[k]];
        slot.weight_sums[list] = sum;
    }
}

template <class Real>
void LatticeEvaluator<Real>::merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) {
    const LatticeBlock& block = blocks_[i];
    const Slot& slot = slots_[slot_number];
    const std::int64_t first = block.ranges[range], last = block.ranges[range + 1];
    if (layout_.facets.empty())
        for (std::int64_t list = first; list < last; ++list)
            out[block.lists.ids[list]] += slot.weight_sums[list];
    else
        slot.facet_sums.merge(layout_, block.lists, first, last, out);
    const Part part(static_cast<std::int64_t>(arcs_.size()), range);
    for (std::int64_t k = part.begin; k < part.end; ++k) arcs_[k] += slot.arcs[k];
    if (range == 0) ends_.add(slot.ends);
}

template class LatticeEvaluator<float>;
template class LatticeEvaluator<double>;

}  // namespace crfkit
