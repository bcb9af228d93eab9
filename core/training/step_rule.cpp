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

std::optional<PenaltyGroups> PenaltyGroups::find(std::span<const double> strengths) {
    PenaltyGroups found;
    std::vector<double>& l2 = found.l2;
    const auto place_of = [&](double strength) { return std::lower_bound(l2.begin(), l2.end(), strength); };
    for (std::size_t d = 0; d < strengths.size(); ++d) {
        if (d > 0 && strengths[d] == strengths[d - 1]) continue;
        const auto place = place_of(strengths[d]);
        if (place != l2.end() && *place == strengths[d]) continue;
        if (l2.size() == kMost) return std::nullopt;
        l2.insert(place, strengths[d]);
    }
    if (l2.size() == 1) return found;
    found.groups_.resize(strengths.size());
    for (std::size_t d = 0; d < strengths.size(); ++d)
        found.groups_[d] = d > 0 && strengths[d] == strengths[d - 1]
                               ? found.groups_[d - 1]
                               : static_cast<std::uint8_t>(place_of(strengths[d]) - l2.begin());
    return found;
}

PenaltyGroups::PenaltyGroups(std::span<const double> strengths) {
    std::optional<PenaltyGroups> found = find(strengths);
    if (!found)
        throw std::invalid_argument("l2 has more than " + std::to_string(kMost) +
                                    " different strengths, expected at most " + std::to_string(kMost) +
                                    " for stochastic steps");
    *this = std::move(*found);
}

void check_order(std::span<const std::int32_t> order, std::int64_t n_sequences, std::int32_t least) {
    for (const std::int32_t n : order)
        if (n < least || n >= n_sequences)
            throw std::invalid_argument("order names sequence " + std::to_string(n) + ", expected 0 to " +
                                        std::to_string(n_sequences - 1));
}

}  // namespace crfkit
