#include "lattice_evaluator.hpp"

#include <algorithm>

#include "lattice_loss.hpp"
#include "threads.hpp"

namespace crfkit {

template <class Real>
LatticeEvaluator<Real>::LatticeEvaluator(const Layout& layout, const Design& design, const Annotation& gold,
                                         const LatticeData& data, const std::vector<LatticeBlock>& blocks)
    : layout_(layout),
      design_(design),
      gold_(gold),
      data_(data),
      blocks_(blocks),
      scorer_(layout, design, data),
      direction_(layout, design, data),
      losses_(static_cast<std::size_t>(design.n_sequences())) {}

template <class Real>
double LatticeEvaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    tangent_ = v != nullptr;
    data_.model.score(w, tables_);
    scorer_.set(w, tables_);
    if (tangent_) {
        data_.model.score(v, direction_tables_);
        direction_.set(v, direction_tables_);
    }
    const auto n_arcs = static_cast<std::size_t>(data_.model.bigrams.n_arcs());
    arcs_.assign(n_arcs, 0.0);
    start_.assign(static_cast<std::size_t>(layout_.n_labels), 0.0);
    end_ = start_;
    std::fill(out, out + layout_.n_weights(), 0.0);
    for (const LatticeBlock& block : blocks_) {
        const auto n_chunks = static_cast<std::int64_t>(block.chunks.size()) - 1;
        residuals_.resize(block.last_node - block.first_node);
        chunk_arcs_.resize(std::max(chunk_arcs_.size(), static_cast<std::size_t>(n_chunks)));
        work_.resize(std::max(work_.size(), static_cast<std::size_t>(std::max(n_threads, 1))));
        parallel_for(n_chunks, n_threads, [&](std::int64_t chunk, int worker) {
            chunk_arcs_[chunk].assign(n_arcs, 0.0);
            for (std::int64_t n = block.chunks[chunk]; n < block.chunks[chunk + 1]; ++n)
                run_sequence(block, n, work_[worker], chunk_arcs_[chunk].data());
        });
        collect(block);
        parallel_for(static_cast<std::int64_t>(block.tasks.size()) - 1, n_threads,
                     [&](std::int64_t task, int) { gather(block, task, out); });
    }
    data_.model.add_gradient(arcs_, start_, end_, out);
    double value = 0;
    for (const double loss : losses_) value += loss;
    return value;
}

// Residuals of the nodes, weight · (P − gold), and the sequence's share of the arcs' expectations.
template <class Real>
void LatticeEvaluator<Real>::run_sequence(const LatticeBlock& block, std::int64_t n, Workspace& work,
                                          double* arc_sums) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    losses_[n] = 0;
    if (first == last) return;
    Real* residuals = residuals_.data() + (data_.candidates.site_ptr[first] - block.first_node);
    work.lattice.build(data_.model.bigrams, data_.candidates, first, last);
    std::fill(residuals, residuals + work.lattice.n_nodes(), Real(0));
    scorer_.score(n, work.scores);
    if (tangent_) direction_.score(n, work.direction);
    const LatticeDirection direction{work.direction, direction_tables_.arcs.scores};
    losses_[n] =
        lattice_loss<Real>(work.lattice, scorer_.arcs(), work.scores, tangent_ ? &direction : nullptr, gold_,
                           first, gold_.weights[n], {residuals, arc_sums});
}

// After the first half of a block: arcs in the order of the chunks, start and end in that of the sequences.
template <class Real>
void LatticeEvaluator<Real>::collect(const LatticeBlock& block) {
    for (std::size_t chunk = 0; chunk + 1 < block.chunks.size(); ++chunk)
        for (std::size_t i = 0; i < arcs_.size(); ++i) arcs_[i] += chunk_arcs_[chunk][i];
    const auto& [site_ptr, labels] = data_.candidates;
    for (std::int64_t n = block.chunks.front(); n < block.chunks.back(); ++n) {
        const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
        if (first == last) continue;
        for (std::int64_t node = site_ptr[first]; node < site_ptr[first + 1]; ++node)
            start_[labels[node]] += residuals_[node - block.first_node];
        for (std::int64_t node = site_ptr[last - 1]; node < site_ptr[last]; ++node)
            end_[labels[node]] += residuals_[node - block.first_node];
    }
}

// Second half: Φᵀ residuals for some of the weights.
template <class Real>
void LatticeEvaluator<Real>::gather(const LatticeBlock& block, std::int64_t task, double* out) const {
    const Inverted& lists = block.weights;
    for (std::int64_t list = block.tasks[task]; list < block.tasks[task + 1]; ++list) {
        double sum = 0;
        if (lists.values.size() > 0)
            for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i)
                sum += lists.values[i] * residuals_[lists.sites[i]];
        else
            for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i)
                sum += residuals_[lists.sites[i]];
        out[lists.ids[list]] += sum;
    }
}

template class LatticeEvaluator<float>;
template class LatticeEvaluator<double>;

}  // namespace crfkit
