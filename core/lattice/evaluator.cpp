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
std::int64_t LatticeEvaluator<Real>::open_block(std::size_t i, int n_threads) {
    const LatticeBlock& block = blocks_[i];
    const auto n_chunks = static_cast<std::int64_t>(block.chunks.size()) - 1;
    residuals_.resize(block.last_node - block.first_node);
    facet_residuals_.resize((block.last_position - block.first_position) * layout_.facets.n);
    chunk_arcs_.resize(std::max(chunk_arcs_.size(), static_cast<std::size_t>(n_chunks)));
    reserve(work_, n_chunks, n_threads);
    return n_chunks;
}

template <class Real>
void LatticeEvaluator<Real>::run_chunk(std::size_t i, std::int64_t chunk, int worker) {
    const LatticeBlock& block = blocks_[i];
    chunk_arcs_[chunk].assign(arcs_.size(), 0.0);
    for (std::int64_t n = block.chunks[chunk]; n < block.chunks[chunk + 1]; ++n)
        run_sequence(block, n, work_[worker], chunk_arcs_[chunk].data());
}

// Residuals of the nodes, weight · (P − gold), and the sequence's share of the arcs' expectations.
template <class Real>
void LatticeEvaluator<Real>::run_sequence(const LatticeBlock& block, std::int64_t n, Workspace& work,
                                          double* arc_sums) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    losses_[n] = 0;
    if (first == last) return;
    check_interruption();
    Real* residuals = residuals_.data() + (data_.candidates.position_ptr[first] - block.first_node);
    work.lattice.build(data_.model.bigrams, data_.candidates, first, last);
    std::fill(residuals, residuals + work.lattice.n_nodes(), Real(0));
    scorer_.score(n, work.scores);
    if (hessian_vector_) direction_.score(n, work.direction);
    const LatticeDirection direction{work.direction, direction_tables_.arcs.scores};
    losses_[n] = lattice_loss<Real>(work.lattice, work.engine, scorer_.arcs(), work.scores,
                                    hessian_vector_ ? &direction : nullptr, gold_, first, gold_.weights[n],
                                    {residuals, arc_sums});
    if (!layout_.facets.empty()) add_by_facet(block, n);
}

// What the residuals of the nodes of a sequence come to, facet by facet.
template <class Real>
void LatticeEvaluator<Real>::add_by_facet(const LatticeBlock& block, std::int64_t n) {
    const Facets& facets = layout_.facets;
    const auto& [position_ptr, labels] = data_.candidates;
    for (std::int64_t t = design_.sequence_ptr[n]; t < design_.sequence_ptr[n + 1]; ++t) {
        Real* row = facet_residuals_.data() + (t - block.first_position) * facets.n;
        std::fill(row, row + facets.n, Real(0));
        for (std::int64_t node = position_ptr[t]; node < position_ptr[t + 1]; ++node)
            for (std::int64_t i = facets.ptr[labels[node]]; i < facets.ptr[labels[node] + 1]; ++i)
                row[facets.ids[i] - layout_.n_labels - 1] += residuals_[node - block.first_node];
    }
}

template <class Real>
void LatticeEvaluator<Real>::collect(std::size_t i) {
    const LatticeBlock& block = blocks_[i];
    for (std::size_t chunk = 0; chunk + 1 < block.chunks.size(); ++chunk)
        for (std::size_t k = 0; k < arcs_.size(); ++k) arcs_[k] += chunk_arcs_[chunk][k];
    const auto& [position_ptr, labels] = data_.candidates;
    for (std::int64_t n = block.chunks.front(); n < block.chunks.back(); ++n) {
        const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
        if (first == last) continue;
        for (std::int64_t node = position_ptr[first]; node < position_ptr[first + 1]; ++node)
            start_[labels[node]] += residuals_[node - block.first_node];
        for (std::int64_t node = position_ptr[last - 1]; node < position_ptr[last]; ++node)
            end_[labels[node]] += residuals_[node - block.first_node];
    }
}

// Second half: Φᵀ residuals for some of the weights.
template <class Real>
void LatticeEvaluator<Real>::gather(std::size_t i, std::int64_t task, double* out) {
    const LatticeBlock& block = blocks_[i];
    if (!layout_.facets.empty()) return gather_by_facet(block, task, out);
    const Inverted& lists = block.lists;
    for (std::int64_t list = block.tasks[task]; list < block.tasks[task + 1]; ++list) {
        double sum = 0;
        if (lists.values.size() > 0)
            for (std::int64_t k = lists.ptr[list]; k < lists.ptr[list + 1]; ++k)
                sum += lists.values[k] * residuals_[lists.positions[k]];
        else
            for (std::int64_t k = lists.ptr[list]; k < lists.ptr[list + 1]; ++k)
                sum += residuals_[lists.positions[k]];
        out[lists.ids[list]] += sum;
    }
}

// The same for all weights of some features, which score facets.
template <class Real>
void LatticeEvaluator<Real>::gather_by_facet(const LatticeBlock& block, std::int64_t task,
                                             double* out) const {
    const Inverted& lists = block.lists;
    const std::int32_t* outcomes = layout_.pair_labels.data();
    const std::int32_t shift = layout_.n_labels + 1;
    for (std::int64_t list = block.tasks[task]; list < block.tasks[task + 1]; ++list) {
        const std::int64_t first = layout_.pair_ptr[lists.ids[list]],
                           last = layout_.pair_ptr[lists.ids[list] + 1];
        for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i) {
            const Real* row =
                facet_residuals_.data() + lists.positions[i] * static_cast<std::int64_t>(layout_.facets.n);
            const double value = lists.values.size() > 0 ? lists.values[i] : 1.0;
            for (std::int64_t p = first; p < last; ++p) out[p] += value * row[outcomes[p] - shift];
        }
    }
}

template class LatticeEvaluator<float>;
template class LatticeEvaluator<double>;

}  // namespace crfkit
