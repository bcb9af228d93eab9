#include "patterns/objective.hpp"

#include <algorithm>
#include <stdexcept>

#include "training/objective.hpp"

namespace crfkit {

PatternObjective::PatternObjective(std::shared_ptr<const Trellises> trellises, Annotation gold,
                                   std::vector<double> l2, std::int64_t n_weights, bool single_precision,
                                   int n_threads)
    : trellises_(std::move(trellises)),
      gold_(std::move(gold)),
      penalty_(std::move(l2), n_weights),
      single_precision_(single_precision),
      n_threads_(n_threads) {
    const Design& design = *trellises_->design;
    const Layout& layout = *trellises_->layout;
    if (!design.is_split()) throw std::invalid_argument("the design was not made for training with patterns");
    if (design.arcs.ptr.size() > 0) throw std::invalid_argument("features of arcs do not go with patterns");
    if (trellises_->first_weight < layout.n_weights() ||
        trellises_->first_weight + trellises_->book->n_weights > n_weights)
        throw std::invalid_argument("the weights of the patterns must follow those of the layout");
    check_for_training(layout, design, gold_, n_threads);
    blocks_ = cut_into_blocks(layout, design, n_threads);
    batches_ = std::make_unique<PatternBatches>(*trellises_, gold_, blocks_);
}

bool PatternObjective::refine() {
    const std::lock_guard one_at_a_time(mutex_);
    const bool change = single_precision_;
    single_precision_ = false;
    single_.reset();
    return change;
}

double PatternObjective::evaluate(const double* w, const double* v, double* out) {
    const std::lock_guard one_at_a_time(mutex_);
    const auto answer = [&]<class Evaluator>(std::unique_ptr<Evaluator>& evaluator) {
        if (!evaluator) evaluator = std::make_unique<Evaluator>(*trellises_, gold_, blocks_, *batches_);
        std::fill(out + trellises_->layout->n_weights(), out + n_weights(), 0.0);
        return evaluator->evaluate(w, v, out, n_threads_);
    };
    return single_precision_ ? answer(single_) : answer(double_);
}

double PatternObjective::value_and_gradient(const double* w, double* gradient) {
    const double loss = evaluate(w, nullptr, gradient);
    return loss + penalty_.add_gradient(w, gradient, n_threads_);
}

void PatternObjective::hessian_vector(const double* w, const double* v, double* out) {
    evaluate(w, v, out);
    penalty_.add_product(v, out, n_threads_);
}

}  // namespace crfkit
