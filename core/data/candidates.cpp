#include "data/candidates.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kSequencesPerTask = 64;

// The recursions for one sequence at a time; each task has one.
class Recursions {
  public:
    Recursions(const Bigrams& bigrams, const Design& design, const Annotation* gold)
        : bigrams_(bigrams),
          design_(design),
          gold_(gold),
          marks_(static_cast<std::size_t>(bigrams.n_labels), 0) {}

    // Appends the candidates of sequence n position by position: their number to counts, themselves to
    // labels.
    void run(std::int64_t n, std::vector<std::int64_t>& counts, std::vector<std::int32_t>& labels) {
        const std::int64_t first = design_.sequence_ptr[n], n_positions = design_.sequence_ptr[n + 1] - first;
        if (n_positions == 0) {
            if (!bigrams_.empty_exists) fail(n, 0);
            return;
        }
        sets_.resize(static_cast<std::size_t>(n_positions));
        for (std::int64_t i = 0; i < n_positions; ++i) {
            allow(first + i, sets_[i]);
            if (i == 0)
                keep(sets_[i], bigrams_.can_start);
            else if (!bigrams_.soft)
                follow(sets_[i - 1], sets_[i], bigrams_.out_ptr, bigrams_.out_after, true);
        }
        keep(sets_.back(), bigrams_.can_end);
        for (std::int64_t i = n_positions - 2; i >= 0 && !bigrams_.soft; --i)
            follow(sets_[i + 1], sets_[i], bigrams_.in_ptr, bigrams_.in_before, false);
        for (const auto& set : sets_) {
            if (set.empty()) fail(n, n_positions);
            counts.push_back(static_cast<std::int64_t>(set.size()));
            labels.insert(labels.end(), set.begin(), set.end());
        }
    }

  private:
    using Set = std::vector<std::int32_t>;

    [[noreturn]] void fail(std::int64_t n, std::int64_t n_positions) const {
        throw std::invalid_argument(
            "sequence " + std::to_string(n) + " with " + std::to_string(n_positions) +
            (n_positions == 1 ? " position: " : " positions: ") +
            (gold_ ? "its labels are not possible" : "no label sequence is possible") +
            " with these bigrams and allowed labels");
    }
    // P_t
    void allow(std::int64_t position, Set& set) const {
        set.clear();
        const auto& allowed = design_.allowed;
        if (!allowed.ptr.empty() && allowed.ptr[position + 1] > allowed.ptr[position]) {
            set.assign(allowed.labels.begin() + allowed.ptr[position],
                       allowed.labels.begin() + allowed.ptr[position + 1]);
        } else {
            for (std::int32_t b = 0; b < bigrams_.n_labels; ++b) set.push_back(b);
        }
        if (gold_) std::erase_if(set, [&](std::int32_t b) { return !gold_->possible(position, b); });
    }
    static void keep(Set& set, const std::vector<std::uint8_t>& flags) {
        std::erase_if(set, [&](std::int32_t b) { return !flags[b]; });
    }
    // Keeps in `set` what an arc links with a label of `from`: after it (forward) or before it.
    void follow(const Set& from, Set& set, const std::vector<std::int64_t>& ptr,
                const std::vector<std::int32_t>& linked, bool forward) {
        std::int64_t n_links = 0;
        for (const std::int32_t a : from) n_links += ptr[a + 1] - ptr[a];
        if (n_links <= static_cast<std::int64_t>(from.size() * set.size())) {
            for (const std::int32_t a : from)
                for (std::int64_t i = ptr[a]; i < ptr[a + 1]; ++i) marks_[linked[i]] = 1;
            keep(set, marks_);
            for (const std::int32_t a : from)
                for (std::int64_t i = ptr[a]; i < ptr[a + 1]; ++i) marks_[linked[i]] = 0;
        } else {
            std::erase_if(set, [&](std::int32_t b) {
                return std::none_of(from.begin(), from.end(), [&](std::int32_t a) {
                    return (forward ? bigrams_.find(a, b) : bigrams_.find(b, a)) >= 0;
                });
            });
        }
    }

    const Bigrams& bigrams_;
    const Design& design_;
    const Annotation* gold_;
    std::vector<std::uint8_t> marks_;
    std::vector<Set> sets_;
};

// Calls function(task, recursions, n) for every sequence n; tasks are runs of sequences.
template <class Function>
void each_sequence(const Bigrams& bigrams, const Design& design, const Annotation* gold, int n_threads,
                   const Function& function) {
    const std::int64_t n = design.n_sequences(), n_tasks = (n + kSequencesPerTask - 1) / kSequencesPerTask;
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        Recursions recursions(bigrams, design, gold);
        for (std::int64_t i = task * kSequencesPerTask; i < std::min(n, (task + 1) * kSequencesPerTask); ++i)
            function(task, recursions, i);
    });
}

}  // namespace

Bigrams existing_bigrams(const Layout& layout) {
    const std::int32_t L = layout.n_labels;
    const bool every = !layout.facets.empty() || !layout.arc_triples.empty();
    if (layout.bigrams && !(layout.bigrams->soft && every)) return *layout.bigrams;
    if (!every) return Bigrams(L, layout.arc_before, layout.arc_after, true);
    std::vector<std::int32_t> before, after;  // facets and features of arcs may link any two
    for (std::int32_t a = 0; a < L; ++a)
        for (std::int32_t b = 0; b < L; ++b) {
            before.push_back(a);
            after.push_back(b);
        }
    return Bigrams(L, before, after, true);
}

void check_possible(const Bigrams& bigrams, const Design& design, const Annotation* gold, int n_threads) {
    each_sequence(bigrams, design, gold, n_threads, [](std::int64_t, Recursions& recursions, std::int64_t n) {
        std::vector<std::int64_t> counts;
        std::vector<std::int32_t> labels;
        recursions.run(n, counts, labels);
    });
}

Candidates candidates_of(const Bigrams& bigrams, const Design& design, const Annotation* gold,
                         std::int64_t n) {
    Candidates found;
    std::vector<std::int64_t> counts;
    Recursions(bigrams, design, gold).run(n, counts, found.labels);
    found.position_ptr.push_back(0);
    for (const std::int64_t count : counts) found.position_ptr.push_back(found.position_ptr.back() + count);
    return found;
}

Candidates find_candidates(const Bigrams& bigrams, const Design& design, int n_threads) {
    const std::int64_t n_tasks = (design.n_sequences() + kSequencesPerTask - 1) / kSequencesPerTask;
    struct Part {
        std::vector<std::int64_t> counts;
        std::vector<std::int32_t> labels;
    };
    std::vector<Part> parts(static_cast<std::size_t>(n_tasks));
    each_sequence(bigrams, design, nullptr, n_threads,
                  [&](std::int64_t task, Recursions& recursions, std::int64_t n) {
                      recursions.run(n, parts[task].counts, parts[task].labels);
                  });
    Candidates found;
    found.position_ptr.reserve(static_cast<std::size_t>(design.n_positions()) + 1);
    found.position_ptr.push_back(0);
    for (Part& part : parts) {
        for (const std::int64_t count : part.counts)
            found.position_ptr.push_back(found.position_ptr.back() + count);
        found.labels.insert(found.labels.end(), part.labels.begin(), part.labels.end());
        part = Part{};
    }
    return found;
}

}  // namespace crfkit
