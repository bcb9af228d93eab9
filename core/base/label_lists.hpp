// Ascending lists of label ids.
#pragma once

#include <cstdint>
#include <span>

namespace crfkit {

// Calls missing(b) for every label 0..n_labels−1 that is not in the list.
template <class Function>
void each_missing(std::span<const std::int32_t> list, std::int32_t n_labels, const Function& missing) {
    std::size_t i = 0;
    for (std::int32_t b = 0; b < n_labels; ++b) {
        if (i < list.size() && list[i] == b)
            ++i;
        else
            missing(b);
    }
}

}  // namespace crfkit
