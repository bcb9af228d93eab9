// Labels read as spans of positions.
//
// A label is outside of all spans, or part of a span of its type. Two neighbouring positions with the labels
// a and b belong to the same span where a may go on, b may follow, and both are of one type. This reads every
// label sequence as conlleval does, ill-formed ones too:
//
//                  may go on    may follow
//   B              yes          no
//   I (M)          yes          yes
//   E (L)          no           yes
//   S (U)          no           no
//   plain labels   yes          yes             a span is a run of equal labels
#pragma once

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace crfkit {

// The positions start … end − 1 are one span of this type.
struct ScoredSpan {
    std::int64_t start, end;
    std::int32_t type;
    double probability;

    bool operator<(const ScoredSpan& other) const {
        return std::tie(start, end, type) < std::tie(other.start, other.end, other.type);
    }
};

class SpanLabels {
  public:
    // [L] each; types: −1 for labels outside of all spans.
    SpanLabels(std::vector<std::int32_t> types, std::vector<std::uint8_t> goes_on,
               std::vector<std::uint8_t> follows)
        : types_(std::move(types)), goes_on_(std::move(goes_on)), follows_(std::move(follows)) {
        if (goes_on_.size() != types_.size() || follows_.size() != types_.size())
            throw std::invalid_argument("types, goes_on and follows must have one entry for each label");
        for (std::int32_t b = 0; b < n_labels(); ++b) {
            if (types_[b] < -1 || types_[b] >= n_labels())
                throw std::invalid_argument("the types of spans must be from −1 to the number of labels − 1");
            if (types_[b] < 0) continue;
            if (types_[b] >= n_types()) members_.resize(static_cast<std::size_t>(types_[b]) + 1);
            members_[types_[b]].push_back(b);
        }
        for (std::int32_t a = 0; a < n_labels(); ++a)
            if (types_[a] >= 0)
                for (const std::int32_t b : members_[types_[a]])
                    if (continues(a, b)) pairs_.emplace_back(a, b);
    }

    std::int32_t n_labels() const { return static_cast<std::int32_t>(types_.size()); }
    std::int32_t n_types() const { return static_cast<std::int32_t>(members_.size()); }
    std::int32_t type(std::int32_t b) const { return types_[b]; }
    bool goes_on(std::int32_t b) const { return goes_on_[b]; }
    bool follows(std::int32_t b) const { return follows_[b]; }
    // Whether b continues the span of the label a before it.
    bool continues(std::int32_t a, std::int32_t b) const {
        return goes_on_[a] && follows_[b] && types_[a] == types_[b] && types_[a] >= 0;
    }
    // The labels of a type; all pairs (a, b) for which continues(a, b).
    const std::vector<std::int32_t>& members(std::int32_t type) const { return members_[type]; }
    const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs() const { return pairs_; }

    // The spans of a label sequence [T], in order, with probability 0.
    std::vector<ScoredSpan> read(const std::int32_t* labels, std::int64_t n_positions) const {
        std::vector<ScoredSpan> found;
        for (std::int64_t t = 0; t < n_positions; ++t) {
            if (types_[labels[t]] < 0) continue;
            if (t > 0 && continues(labels[t - 1], labels[t]))
                ++found.back().end;
            else
                found.push_back({t, t + 1, types_[labels[t]], 0});
        }
        return found;
    }

  private:
    std::vector<std::int32_t> types_;
    std::vector<std::uint8_t> goes_on_, follows_;
    std::vector<std::vector<std::int32_t>> members_;
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;
};

}  // namespace crfkit
