#include "text/brown_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace crfkit {

namespace {

constexpr std::size_t table_size = std::size_t{1} << 20;
constexpr int most_bits = 30;
constexpr std::int64_t free_slot = std::numeric_limits<std::int64_t>::max() / 2;  // the loss of no pair

// The bits of a fixed point for which sums of F(n) over a text of n tokens fit 62 bits.
int fixed_point_bits(std::int64_t n_tokens) {
    const double n = static_cast<double>(n_tokens) + 2;
    const int needed = static_cast<int>(std::ceil(std::log2(4 * n * std::log2(n))));
    return std::clamp(61 - needed, 0, most_bits);
}

// Four at a time, so that comparisons do not wait for each other.
std::int64_t least_of(std::span<const std::int64_t> values) {
    std::int64_t a = free_slot, b = free_slot, c = free_slot, d = free_slot;
    std::size_t j = 0;
    for (; j + 4 <= values.size(); j += 4) {
        a = std::min(a, values[j]);
        b = std::min(b, values[j + 1]);
        c = std::min(c, values[j + 2]);
        d = std::min(d, values[j + 3]);
    }
    for (; j < values.size(); ++j) a = std::min(a, values[j]);
    return std::min(std::min(a, b), std::min(c, d));
}

BigramLists lists_of(std::vector<std::pair<std::int32_t, std::int32_t>>& pairs, std::int32_t n_words) {
    std::sort(pairs.begin(), pairs.end());
    BigramLists out;
    out.ptr.assign(static_cast<std::size_t>(n_words) + 1, 0);
    for (std::size_t i = 0; i < pairs.size();) {
        std::size_t end = i;
        while (end < pairs.size() && pairs[end] == pairs[i]) ++end;
        out.others.push_back(pairs[i].second);
        out.counts.push_back(static_cast<std::uint32_t>(end - i));
        ++out.ptr[pairs[i].first + 1];
        i = end;
    }
    for (std::size_t w = 0; w + 1 < out.ptr.size(); ++w) out.ptr[w + 1] += out.ptr[w];
    return out;
}

}  // namespace

BrownClusters::BrownClusters(std::span<const std::int32_t> tokens, std::span<const std::int64_t> ptr,
                             std::int32_t n_words, std::int32_t n_classes)
    : n_words_(n_words),
      n_classes_(static_cast<std::size_t>(std::min(n_classes, n_words))),
      n_slots_(n_classes_ + 1) {
    if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
    if (tokens.size() >= (std::uint64_t{1} << 32)) throw std::invalid_argument("the text is too long");
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::size_t n = 0; n + 1 < ptr.size(); ++n) {
        if (ptr[n] < 0 || ptr[n + 1] < ptr[n] || ptr[n + 1] > static_cast<std::int64_t>(tokens.size()))
            throw std::invalid_argument("the sentences do not lie in the text");
        for (std::int64_t i = ptr[n]; i < ptr[n + 1]; ++i) {
            if (tokens[i] < 0 || tokens[i] >= n_words) throw std::invalid_argument("a token is no word");
            if (i + 1 < ptr[n + 1]) pairs.emplace_back(tokens[i], tokens[i + 1]);
        }
    }
    after_ = lists_of(pairs, n_words);
    for (auto& [first, second] : pairs) std::swap(first, second);
    before_ = lists_of(pairs, n_words);
    bits_ = fixed_point_bits(static_cast<std::int64_t>(tokens.size()));
    table_.reserve(table_size);
    const std::size_t n_known = std::min(table_size, tokens.size() + 1);
    for (std::size_t n = 0; n < n_known; ++n) table_.push_back(computed_information(n));
    slot_of_.assign(static_cast<std::size_t>(n_words), -1);
    members_.resize(n_slots_);
    first_word_.assign(n_slots_, -1);
    counts_.assign(n_slots_ * n_slots_, 0);
    transposed_ = counts_;
    left_.assign(n_slots_, 0);
    right_ = left_;
    more_left_.assign(n_slots_, 0);
    more_right_ = more_left_;
    losses_.assign(n_slots_ * n_slots_, free_slot);
    merges_.reserve(static_cast<std::size_t>(n_merges()));
}

BrownClusters::Loss BrownClusters::computed_information(std::uint64_t n) const {
    if (n < 2) return 0;
    const double x = static_cast<double>(n);
    return std::llround(std::ldexp(x * std::log2(x), bits_));
}

bool BrownClusters::run(std::int64_t n) {
    for (; n > 0 && static_cast<std::int64_t>(merges_.size()) < n_merges(); --n) {
        while (next_word_ < n_words_ && static_cast<std::size_t>(next_word_) < n_classes_)
            add_word(next_word_++);
        if (next_word_ < n_words_) add_word(next_word_++);
        merge_best();
    }
    return static_cast<std::int64_t>(merges_.size()) < n_merges();
}

void BrownClusters::add_word(std::int32_t word) {
    const auto free = std::find(first_word_.begin(), first_word_.end(), -1) - first_word_.begin();
    const auto slot = static_cast<std::size_t>(free);
    first_word_[slot] = word;
    members_[slot] = {word};
    slot_of_[word] = static_cast<std::int32_t>(slot);
    for (std::size_t j = 0; j < n_slots_; ++j)
        if (j != slot && first_word_[j] >= 0) loss(slot, j) = 0;  // of a class without bigrams
    std::vector<std::uint32_t> of_slots(n_slots_);
    for (std::int64_t k = after_.ptr[word]; k < after_.ptr[word + 1]; ++k)
        if (slot_of_[after_.others[k]] >= 0) of_slots[slot_of_[after_.others[k]]] += after_.counts[k];
    for (std::size_t b = 0; b < n_slots_; ++b)
        if (of_slots[b]) add(slot, b, of_slots[b]);
    std::fill(of_slots.begin(), of_slots.end(), 0);
    for (std::int64_t k = before_.ptr[word]; k < before_.ptr[word + 1]; ++k) {
        const std::int32_t a = slot_of_[before_.others[k]];
        if (a >= 0 && static_cast<std::size_t>(a) != slot) of_slots[a] += before_.counts[k];
    }
    for (std::size_t a = 0; a < n_slots_; ++a)
        if (of_slots[a]) add(a, slot, of_slots[a]);
    update_sums();
}

// F(n_ii + n_ij + n_ji + n_jj) − F(n_ii) − F(n_ij) − F(n_ji) − F(n_jj)
BrownClusters::Loss BrownClusters::diagonal(std::size_t i, std::size_t j) const {
    const std::uint64_t ii = count(i, i), ij = count(i, j), ji = count(j, i), jj = count(j, j);
    return information(ii + ij + ji + jj) - information(ii) - information(ij) - information(ji) -
           information(jj);
}

void BrownClusters::add_to_sum(std::vector<std::uint64_t>& sums, std::size_t a, std::int64_t more) {
    const std::uint64_t old = sums[a], now = old + more;
    for (std::size_t j = 0; j < n_slots_; ++j)
        if (j != a && sums[j]) loss(a, j) += joined(now, sums[j]) - joined(old, sums[j]);
    sums[a] = now;
}

// Loss of a pair (i, j):
//     joined(l_i, l_j) + joined(r_i, r_j) − diagonal(i, j) − Σ_{k ≠ i, j} joined(n_ik, n_jk) + joined(n_ki,
//     n_kj)
void BrownClusters::add(std::size_t a, std::size_t b, std::int64_t more) {
    pace_.work(static_cast<std::int64_t>(16 * n_slots_));
    const std::uint64_t old = count(a, b), now = old + more;
    const std::uint32_t* column = &transposed_[b * n_slots_];  // n_jb
    const std::uint32_t* row = &counts_[a * n_slots_];         // n_aj
    const Loss alone = information(now) - information(old);
    const auto change = [&](std::uint64_t other) {  // of joined(n_ab, other)
        return information(now + other) - information(old + other) - alone;
    };
    if (a != b) {
        for (std::size_t j = 0; j < n_slots_; ++j)
            if (column[j] && j != a && j != b) loss(a, j) -= change(column[j]);
        for (std::size_t j = 0; j < n_slots_; ++j)
            if (row[j] && j != a && j != b) loss(b, j) -= change(row[j]);
    }
    const auto add_diagonals = [&](Loss sign) {
        if (a != b) {
            loss(a, b) += sign * diagonal(a, b);
            return;
        }
        for (std::size_t j = 0; j < n_slots_; ++j)
            if (j != a && first_word_[j] >= 0) loss(a, j) += sign * diagonal(a, j);
    };
    add_diagonals(1);
    counts_[a * n_slots_ + b] = transposed_[b * n_slots_ + a] = static_cast<std::uint32_t>(now);
    add_diagonals(-1);
    more_left_[a] += more;
    more_right_[b] += more;
}

// Most bigrams of a merge only move from one class to another: what changes of the sums in the end is little.
void BrownClusters::update_sums() {
    for (std::size_t a = 0; a < n_slots_; ++a) {
        if (more_left_[a]) add_to_sum(left_, a, std::exchange(more_left_[a], 0));
        if (more_right_[a]) add_to_sum(right_, a, std::exchange(more_right_[a], 0));
    }
}

void BrownClusters::merge_best() {
    Loss least = free_slot;
    std::pair<std::int32_t, std::int32_t> words{};
    std::size_t kept = 0, gone = 0;
    for (std::size_t i = 1; i < n_slots_; ++i) {
        if (first_word_[i] < 0) continue;
        const Loss* row = &losses_[i * n_slots_];
        const Loss lowest = least_of({row, i});
        if (lowest > least || lowest >= free_slot / 2) continue;
        for (std::size_t j = 0; j < i; ++j) {
            if (row[j] != lowest) continue;
            const auto pair = std::minmax({first_word_[i], first_word_[j]});
            if (lowest < least || pair < words) {
                least = lowest;
                words = pair;
                std::tie(kept, gone) = first_word_[i] < first_word_[j] ? std::pair{i, j} : std::pair{j, i};
            }
        }
    }
    pace_.work(static_cast<std::int64_t>(n_slots_ * n_slots_ / 4));
    merges_.push_back(words);
    merge(kept, gone);
}

void BrownClusters::merge(std::size_t kept, std::size_t gone) {
    for (std::size_t k = 0; k < n_slots_; ++k) {
        if (const std::int64_t n = count(gone, k)) {  // gone → k becomes kept → k
            add(gone, k, -n);
            add(kept, k == gone ? kept : k, n);
        }
    }
    for (std::size_t k = 0; k < n_slots_; ++k) {
        if (const std::int64_t n = count(k, gone)) {
            add(k, gone, -n);
            add(k, kept, n);
        }
    }
    update_sums();
    for (const std::int32_t word : members_[gone]) slot_of_[word] = static_cast<std::int32_t>(kept);
    members_[kept].insert(members_[kept].end(), members_[gone].begin(), members_[gone].end());
    members_[gone].clear();
    first_word_[gone] = -1;
    for (std::size_t j = 0; j < n_slots_; ++j)
        if (j != gone) loss(gone, j) = free_slot;
}

}  // namespace crfkit
