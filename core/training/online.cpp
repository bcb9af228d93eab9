#include "training/online.hpp"

#include <algorithm>

#include "base/interruption.hpp"

namespace crfkit {

double Online::run(const MistakeRule& rule, const RuleState& state, std::span<const std::int32_t> order) {
    check_order(order, mistakes_->n_sequences());
    const std::span<double> w = state.array("weights"), beside = rule.beside(state);
    double& time = state.array("time", 1)[0];
    difference_.clear();
    std::copy(w.begin(), w.end(), w_.begin());
    mistakes_->read_weights();
    constexpr std::int64_t kSequence = 1 << 16;  // operations: long ones look for themselves
    Pace pace;
    double loss = 0;
    try {
        for (std::size_t k = 0; k < order.size(); ++k) {
            pace.work(kSequence);
            const std::int32_t n = order[k];
            if (k + 1 < order.size()) mistakes_->expect(order[k + 1]);
            const double weight = mistakes_->weight(n);
            const std::int64_t n_wrong = weight == 0 ? 0 : mistakes_->find(n, difference_);
            if (n_wrong > 0) {
                loss +=
                    weight * rule.step({difference_, static_cast<double>(n_wrong), weight, time, w_}, beside);
                mistakes_->read_changes(difference_);
                difference_.clear();
            }
            time += weight;
        }
    } catch (...) {  // interrupted: the steps so far count
        std::copy(w_.begin(), w_.end(), w.begin());
        throw;
    }
    std::copy(w_.begin(), w_.end(), w.begin());
    return loss;
}

}  // namespace crfkit
