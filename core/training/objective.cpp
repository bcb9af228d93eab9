#include "training/objective.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"
#include "chain/sequence_loss.hpp"
#include "lattice/sequence_loss.hpp"

namespace crfkit {

void check_annotation(const Layout& layout, const Design& design, const Annotation& gold) {
    const std::int64_t n_positions = design.n_positions();
    if (static_cast<std::int64_t>(gold.labels.size()) != n_positions)
        throw std::invalid_argument("there are " + std::to_string(gold.labels.size()) + " labels for " +
                                    std::to_string(n_positions) + " positions");
    for (const std::int32_t label : gold.labels)
        if (label < -1 || label >= layout.n_labels)
            throw std::invalid_argument("label id " + std::to_string(label) + " is out of range");
    if (gold.set_ptr.empty()) return;
    if (static_cast<std::int64_t>(gold.set_ptr.size()) != n_positions + 1 || gold.set_ptr.front() != 0 ||
        gold.set_ptr.back() != static_cast<std::int64_t>(gold.set_labels.size()))
        throw std::invalid_argument(
            "set_ptr must have one entry more than there are positions and end at the labels");
    for (std::int64_t t = 0; t < n_positions; ++t) {
        if (gold.set_ptr[t + 1] < gold.set_ptr[t]) throw std::invalid_argument("set_ptr must not decrease");
        for (std::int64_t i = gold.set_ptr[t]; i < gold.set_ptr[t + 1]; ++i)
            if (gold.set_labels[i] < 0 || gold.set_labels[i] >= layout.n_labels ||
                (i > gold.set_ptr[t] && gold.set_labels[i] <= gold.set_labels[i - 1]))
                throw std::invalid_argument("set_labels must be ascending label ids within each position");
    }
}

void check_for_training(const Layout& layout, const Design& design, const Annotation& gold, int n_threads) {
    design.check_layout(layout);
    if (!design.is_split() && !design.as_lattices && !design.as_batches)
        throw std::invalid_argument("the design was not made for training");
    check_annotation(layout, design, gold);
    if (static_cast<std::int64_t>(gold.weights.size()) != design.n_sequences())
        throw std::invalid_argument("there must be one weight for each sequence");
    if (layout.bigrams || !design.allowed.empty())
        check_possible(existing_bigrams(layout), design, &gold, n_threads);
}

Objective::Objective(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design,
                     Annotation gold, std::vector<double> l2, bool single_precision, int threads)
    : n_threads(threads),
      layout_(std::move(layout)),
      design_(std::move(design)),
      gold_(std::move(gold)),
      penalty_(std::move(l2), n_weights()),
      single_precision_(single_precision) {
    check_for_training(*layout_, *design_, gold_, n_threads);
    if (design_->as_lattices || design_->as_batches) arcs_ = std::make_unique<ArcModel>(*layout_);
    if (design_->as_batches) batches_ = cut_into_batches(*layout_, *design_, n_threads);
    if (design_->as_lattices)
        lattices_ = std::make_unique<LatticeData>(*layout_, *arcs_, *design_, n_threads);
}

bool Objective::refine() {
    const std::lock_guard one_at_a_time(mutex_);
    const bool change = single_precision_;
    single_precision_ = false;
    single_.reset();
    single_lattices_.reset();
    single_batches_.reset();
    return change;
}

double Objective::evaluate(const double* w, const double* v, double* out) {
    const std::lock_guard one_at_a_time(mutex_);
    const auto answer = [&]<class Evaluator>(std::unique_ptr<Evaluator>& evaluator, const auto&... data) {
        if (!evaluator) evaluator = std::make_unique<Evaluator>(*layout_, *design_, gold_, data...);
        return evaluator->evaluate(w, v, out, n_threads);
    };
    if (design_->as_batches)
        return single_precision_ ? answer(single_batches_, *arcs_, batches_)
                                 : answer(double_batches_, *arcs_, batches_);
    // Steps along single sequences need no blocks, so these are cut at the first question about all.
    if (lattices_) {
        if (lattice_blocks_.empty())
            lattice_blocks_ = cut_into_blocks(*layout_, *design_, *lattices_, n_threads);
        return single_precision_ ? answer(single_lattices_, *lattices_, lattice_blocks_)
                                 : answer(double_lattices_, *lattices_, lattice_blocks_);
    }
    if (blocks_.empty()) blocks_ = cut_into_blocks(*layout_, *design_, n_threads);
    if (single_precision_) {
        const double value = answer(single_, blocks_);
        if (!single_->unsafe) return value;
    }
    return answer(double_, blocks_);
}

double Objective::value_and_gradient(const double* w, double* gradient) {
    const double loss = evaluate(w, nullptr, gradient);
    return loss + penalty_.add_gradient(w, gradient, n_threads);
}

void Objective::hessian_vector(const double* w, const double* v, double* out) {
    evaluate(w, v, out);
    penalty_.add_product(v, out, n_threads);
}

const SequenceSource& Objective::sequences() {
    if (design_->as_batches)
        throw std::invalid_argument("a design in batches has no steps along single sequences");
    if (!sequences_ && lattices_)
        sequences_ = std::make_unique<LatticeSequences>(*layout_, *design_, gold_, *lattices_, n_threads);
    else if (!sequences_)
        sequences_ = std::make_unique<ChainSequences>(*layout_, *design_, gold_, n_threads);
    return *sequences_;
}

}  // namespace crfkit
