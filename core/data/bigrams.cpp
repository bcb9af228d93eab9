#include "data/bigrams.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace crfkit {
namespace {

constexpr std::int32_t kLargestTable = 2048;  // labels; a table of all pairs then takes 16 MB

// ptr[k + 1] counts the items of key k, summed up: where the items of each key begin.
std::vector<std::int64_t> pointers(const std::vector<std::int32_t>& keys, std::int32_t n_keys) {
    std::vector<std::int64_t> ptr(static_cast<std::size_t>(n_keys) + 1, 0);
    for (const std::int32_t key : keys) ++ptr[static_cast<std::size_t>(key) + 1];
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    return ptr;
}

}  // namespace

Bigrams::Bigrams(std::int32_t labels, std::span<const std::int32_t> before,
                 std::span<const std::int32_t> after, bool also_unlisted)
    : n_labels(labels),
      soft(also_unlisted),
      empty_exists(also_unlisted),
      can_start(static_cast<std::size_t>(labels), also_unlisted),
      can_end(static_cast<std::size_t>(labels), also_unlisted) {
    if (before.size() != after.size())
        throw std::invalid_argument("the lists of labels before and after must have the same length");
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;  // (after, before)
    for (std::size_t i = 0; i < before.size(); ++i) {
        const std::int32_t a = before[i], b = after[i];
        if (a < 0 || a > labels || b < 0 || b > labels)
            throw std::invalid_argument("a bigram names a label that does not exist");
        if (a == labels && b == labels)
            empty_exists = true;
        else if (a == labels)
            can_start[b] = true;
        else if (b == labels)
            can_end[a] = true;
        else
            pairs.emplace_back(b, a);
    }
    std::sort(pairs.begin(), pairs.end());
    if (std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end())
        throw std::invalid_argument("a bigram is listed twice");
    std::vector<std::int32_t> afters;
    for (const auto& [b, a] : pairs) {
        in_before.push_back(a);
        afters.push_back(b);
    }
    in_ptr = pointers(afters, labels);
    out_ptr = pointers(in_before, labels);
    out_after.resize(in_before.size());
    out_arc.resize(in_before.size());
    std::vector<std::int64_t> next = out_ptr;
    for (std::size_t i = 0; i < afters.size(); ++i) {
        const std::int64_t place = next[in_before[i]]++;
        out_after[place] = afters[i];
        out_arc[place] = static_cast<std::int32_t>(i);
    }
    if (labels > kLargestTable) return;
    table_.assign(static_cast<std::size_t>(labels) * labels, -1);
    for (std::size_t i = 0; i < afters.size(); ++i)
        table_[static_cast<std::size_t>(in_before[i]) * labels + afters[i]] = static_cast<std::int32_t>(i);
}

std::int32_t Bigrams::search(std::int32_t a, std::int32_t b) const {
    const auto first = in_before.begin() + in_ptr[b], last = in_before.begin() + in_ptr[b + 1];
    const auto found = std::lower_bound(first, last, a);
    return found != last && *found == a ? static_cast<std::int32_t>(found - in_before.begin()) : -1;
}

}  // namespace crfkit
