#include "training/step_rule.hpp"

#include <algorithm>
#include <stdexcept>

namespace crfkit {

std::span<double> RuleState::array(const std::string& name, std::int64_t size) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) throw std::invalid_argument("the state has no array " + name);
    if (static_cast<std::int64_t>(found->second.size()) != size)
        throw std::invalid_argument(name + " has " + std::to_string(found->second.size()) +
                                    " numbers, expected " + std::to_string(size));
    return found->second;
}

PenaltyGroups::PenaltyGroups(std::span<const double> strengths) {
    l2.assign(strengths.begin(), strengths.end());
    std::sort(l2.begin(), l2.end());
    l2.erase(std::unique(l2.begin(), l2.end()), l2.end());
    if (l2.size() > kMost)
        throw std::invalid_argument("l2 has " + std::to_string(l2.size()) +
                                    " different strengths, expected at most " + std::to_string(kMost) +
                                    " for stochastic steps");
    if (l2.size() == 1) return;
    groups_.reserve(strengths.size());
    for (const double strength : strengths)
        groups_.push_back(
            static_cast<std::uint8_t>(std::lower_bound(l2.begin(), l2.end(), strength) - l2.begin()));
}

void check_order(std::span<const std::int32_t> order, std::int64_t n_sequences, std::int32_t least) {
    for (const std::int32_t n : order)
        if (n < least || n >= n_sequences)
            throw std::invalid_argument("order names sequence " + std::to_string(n) + ", expected 0 to " +
                                        std::to_string(n_sequences - 1));
}

}  // namespace crfkit
