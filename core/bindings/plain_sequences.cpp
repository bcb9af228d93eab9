#include "bindings/plain_sequences.hpp"

#include <algorithm>
#include <memory>

#include "base/threads.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/position_reader.hpp"
#include "text/row_extraction.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t positions_between_signals = 1 << 16;  // of each thread; how often Ctrl-C is looked for
constexpr std::int64_t positions_per_task = 512;

// The sequence that a position is in.
Py_ssize_t find_sequence(const std::vector<std::int64_t>& sequence_ptr, std::int64_t position) {
    return std::upper_bound(sequence_ptr.begin(), sequence_ptr.end(), position) - sequence_ptr.begin() - 1;
}

// Positions of sequences, one after the other; null after the last one of a range.
class Cursor {
  public:
    Cursor(PyObject* sequences, const std::vector<std::int64_t>& sequence_ptr, std::int64_t first,
           std::int64_t last)
        : next_sequence_(items_of(sequences).first + find_sequence(sequence_ptr, first)),
          n_left_(last - first) {
        enter(first - sequence_ptr[find_sequence(sequence_ptr, first)]);
    }
    PyObject* next() {
        if (n_left_ == 0) return nullptr;
        --n_left_;
        while (item_ == end_) enter(0);
        return *item_++;
    }

  private:
    void enter(std::int64_t position) {
        const auto [items, n] = items_of(*next_sequence_++);
        item_ = items + position;
        end_ = items + n;
    }
    PyObject* const* next_sequence_;
    std::int64_t n_left_;
    PyObject *const *item_, *const *end_;
};

// The lengths of all sequences, or nothing if one is no list or tuple.
std::optional<std::vector<std::int64_t>> find_lengths(PyObject* sequences) {
    const auto [items, n] = items_of(sequences);
    std::vector<std::int64_t> sequence_ptr{0};
    sequence_ptr.reserve(static_cast<std::size_t>(n) + 1);
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (i + 8 < n) __builtin_prefetch(items[i + 8]);
        if (!is_list_or_tuple(items[i])) return std::nullopt;
        sequence_ptr.push_back(sequence_ptr.back() + items_of(items[i]).second);
    }
    return sequence_ptr;
}

class PlainReading {
  public:
    PlainReading(PyObject* sequences, std::vector<std::int64_t> sequence_ptr, Vocabulary& vocabulary,
                 int n_threads)
        : sequences_(sequences), sequence_ptr_(std::move(sequence_ptr)) {
        const std::int64_t n_tasks = (sequence_ptr_.back() + positions_per_task - 1) / positions_per_task;
        for (std::int64_t k = 0;
             k < std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(n_tasks, 1)); ++k)
            readers_.push_back(std::make_unique<PositionReader>(vocabulary, false));
    }

    // Whether all positions were plain.
    bool read() {
        const std::int64_t n = sequence_ptr_.back(), per_round = positions_between_signals * n_threads();
        try {
            for (std::int64_t first = 0; first < n; first += per_round) {
                const std::int64_t last = std::min(n, first + per_round);
                if (first > 0) {
                    if (PyErr_CheckSignals() < 0) throw nanobind::python_error();
                    if (!is_unchanged(first, last)) return false;
                }
                read_round(first, last);
            }
        } catch (const PositionReader::NotPlain&) {
            return false;
        }
        if (n_threads() == 1) parts_.push_back(readers_[0]->take());
        return true;
    }
    PlainSequences take() {
        FeatureArrays all = unlocked([&] { return joined(std::move(parts_), n_threads()); });
        return {std::move(sequence_ptr_), std::move(all)};
    }

  private:
    int n_threads() const { return static_cast<int>(readers_.size()); }

    // Whether the positions from first to last are where they were before a signal handler ran. Sequences
    // that have been read are not looked at again, so that all rounds together look at each sequence twice.
    bool is_unchanged(std::int64_t first, std::int64_t last) const {
        const auto [items, n] = items_of(sequences_);
        if (static_cast<std::size_t>(n) + 1 != sequence_ptr_.size()) return false;
        for (Py_ssize_t i = find_sequence(sequence_ptr_, first); i < n && sequence_ptr_[i] < last; ++i) {
            if (i + 8 < n) __builtin_prefetch(items[i + 8]);
            if (!is_list_or_tuple(items[i])) return false;
            if (items_of(items[i]).second != sequence_ptr_[i + 1] - sequence_ptr_[i]) return false;
        }
        return true;
    }

    void read_round(std::int64_t first, std::int64_t last) {
        if (n_threads() == 1) {
            read_positions(*readers_[0], first, last);
            readers_[0]->flush();
            return;
        }
        const std::int64_t n_tasks = (last - first + positions_per_task - 1) / positions_per_task;
        const std::size_t n_before = parts_.size();
        parts_.resize(n_before + static_cast<std::size_t>(n_tasks));
        parallel_for_under_lock(n_tasks, n_threads(), [&](std::int64_t task, int worker) {
            const std::int64_t begin = first + task * positions_per_task;
            read_positions(*readers_[worker], begin, std::min(last, begin + positions_per_task));
            parts_[n_before + static_cast<std::size_t>(task)] = readers_[worker]->take();
        });
    }

    // Objects are prefetched in steps: a position, its list of strings, the strings.
    void read_positions(PositionReader& reader, std::int64_t first, std::int64_t last) const {
        Cursor cursor(sequences_, sequence_ptr_, first, last);
        PyObject *position = cursor.next(), *next = cursor.next(), *second = cursor.next();
        for (std::int64_t t = first; t < last; ++t) {
            PyObject* third = cursor.next();
            __builtin_prefetch(third);
            if (second && is_list_or_tuple(second)) {
                const auto* items = reinterpret_cast<const char*>(items_of(second).first);
                for (int line = 0; line < 3; ++line) __builtin_prefetch(items + 64 * line);
            }
            reader.read_plain(position, next);
            position = next, next = second, second = third;
        }
    }

    PyObject* sequences_;
    std::vector<std::int64_t> sequence_ptr_;
    std::vector<std::unique_ptr<PositionReader>> readers_;  // one for each thread
    std::vector<FeatureArrays> parts_;
};

}  // namespace

std::optional<PlainSequences> read_plain_sequences(PyObject* sequences, Vocabulary& vocabulary,
                                                   int n_threads) {
    if (!is_list_or_tuple(sequences)) return std::nullopt;
    auto sequence_ptr = find_lengths(sequences);
    if (!sequence_ptr) return std::nullopt;
    PlainReading reading(sequences, std::move(*sequence_ptr), vocabulary, n_threads);
    if (!reading.read()) return std::nullopt;
    return reading.take();
}

}  // namespace crfkit
