// Flat lists that come from outside: copies, and what they must be like. Checks throw std::invalid_argument,
// which names the array.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace crfkit {

template <class Number>
std::vector<Number> copy(std::span<const Number> values) {
    return {values.begin(), values.end()};
}

// Offsets: list i has the items ptr[i] … ptr[i + 1] − 1.
inline void check_pointers(std::span<const std::int64_t> ptr, std::size_t n_items, const std::string& name) {
    if (ptr.empty() || ptr.front() != 0 || ptr.back() != static_cast<std::int64_t>(n_items) ||
        !std::is_sorted(ptr.begin(), ptr.end()))
        throw std::invalid_argument(name + " must rise from 0 to the number of its items, which is " +
                                    std::to_string(n_items));
}

// The same of n lists.
inline void check_pointers(std::span<const std::int64_t> ptr, std::int64_t n, std::size_t n_items,
                           const std::string& name) {
    if (static_cast<std::int64_t>(ptr.size()) != n + 1)
        throw std::invalid_argument(name + " has " + std::to_string(ptr.size()) + " entries, expected " +
                                    std::to_string(n + 1));
    check_pointers(ptr, n_items, name);
}

inline void check_range(std::span<const std::int32_t> values, std::int64_t first, std::int64_t end,
                        const std::string& name) {
    for (const std::int32_t value : values)
        if (value < first || value >= end)
            throw std::invalid_argument(name + " has the value " + std::to_string(value) + ", expected " +
                                        std::to_string(first) + " to " + std::to_string(end - 1));
}

// Items that rise within each list.
inline void check_ascending(std::span<const std::int64_t> ptr, std::span<const std::int32_t> values,
                            const std::string& name) {
    for (std::size_t i = 0; i + 1 < ptr.size(); ++i)
        for (std::int64_t k = ptr[i] + 1; k < ptr[i + 1]; ++k)
            if (values[k] <= values[k - 1])
                throw std::invalid_argument(name + " must be ascending within each list");
}

// Lists of labels, one for each of n positions.
inline void check_label_lists(std::span<const std::int64_t> ptr, std::span<const std::int32_t> labels,
                              std::int64_t n, std::int64_t n_labels, const std::string& name) {
    check_pointers(ptr, n, labels.size(), name + "_ptr");
    check_range(labels, 0, n_labels, name + "_labels");
    check_ascending(ptr, labels, name + "_labels");
}

}  // namespace crfkit
