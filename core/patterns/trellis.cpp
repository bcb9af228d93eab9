#include "patterns/trellis.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>

#include "base/interruption.hpp"
#include "patterns/trellis_reading.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kMostConfigurations = 1 << 16;  // to be turned round
// Reading from the last position is tried where the patterns add more than this share of nodes.
constexpr double kWorthTurning = 0.2;
constexpr double kWorthSaving = 0.05;  // share of the arcs; and done where it saves so many
constexpr std::size_t kTried = 32;     // inputs that are read from the last position before all are

// The inputs of a data set, each once.
class Inputs {
  public:
    Inputs(const PatternMatcher& matcher, const Bigrams& bigrams, const Design& design,
           const PatternStarts& starts, int n_threads)
        : starts_(starts), values_{1.0} {
        values_.insert(values_.end(), starts.values.begin(), starts.values.end());
        std::sort(values_.begin(), values_.end());
        values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
        forward_.emplace(matcher, bigrams, false, values_, label_sets_);
        std::int32_t common = -1;  // the start set of the positions where nothing else begins
        const auto start_set = [&](std::int64_t t) {
            if (starts.ptr[t] != starts.ptr[t + 1]) return forward_->start_set(starts_at(starts, values_, t));
            if (common < 0) common = forward_->start_set(starts_at(starts, values_, t));
            return common;
        };
        const Candidates candidates = find_candidates(bigrams, design, n_threads);
        InternedLists known;
        std::vector<std::int32_t> key;
        for (std::int64_t n = 0; n < design.n_sequences(); ++n) {
            check_interruption();
            TrellisInput input{{}, {}, n};
            for (std::int64_t t = design.sequence_ptr[n]; t < design.sequence_ptr[n + 1]; ++t) {
                const std::int64_t begin = candidates.position_ptr[t], end = candidates.position_ptr[t + 1];
                input.labels.push_back(
                    label_sets_.add(std::span(candidates.labels).subspan(begin, end - begin)));
                input.starts.push_back(start_set(t));
            }
            key = input.labels;
            key.insert(key.end(), input.starts.begin(), input.starts.end());
            of_sequence.push_back(known.add(key));
            if (of_sequence.back() == static_cast<std::int32_t>(inputs.size())) {
                inputs.push_back(std::move(input));
                first_positions_.push_back(design.sequence_ptr[n]);
            }
        }
    }

    TrellisReading& forward() { return *forward_; }
    // Makes ready to read from the last position; false where a pattern has a loop.
    bool can_turn(const PatternMatcher& matcher, const Bigrams& bigrams) {
        std::vector<std::uint8_t> begins(static_cast<std::size_t>(matcher.n_states()), 0);
        for (const auto& states : {starts_.states, starts_.common})
            for (const std::int32_t state : states) begins[state] = 1;
        reversed_ = reversed(matcher, begins, kMostConfigurations);
        if (reversed_) backward_.emplace(reversed_->matcher, bigrams, true, values_, label_sets_);
        return reversed_.has_value();
    }
    // Every so-many-th input, as read from the last position.
    std::vector<TrellisInput> turned(std::size_t stride) {
        std::vector<TrellisInput> out;
        for (std::size_t k = 0; k < inputs.size(); k += stride)
            out.push_back(turn(inputs[k], first_positions_[k]));
        return out;
    }
    TrellisReading& backward() { return *backward_; }
    std::size_t n_labels(std::int32_t label_set) const { return label_sets_[label_set].size(); }

    std::vector<TrellisInput> inputs;
    std::vector<std::int32_t> of_sequence;  // [N]

  private:
    TrellisInput turn(const TrellisInput& input, std::int64_t first_position) {
        const auto T = static_cast<std::int64_t>(input.labels.size());
        if (starts_.ptr[first_position] == starts_.ptr[first_position + T]) return turn_common(input);
        std::vector<std::vector<PatternStart>> starts(
            static_cast<std::size_t>(T));  // by the position they end at
        for (std::int64_t t = 0; t < T; ++t)
            for (const PatternStart& start : starts_at(starts_, values_, first_position + t))
                for (std::int64_t i = reversed_->ptr[start.state]; i < reversed_->ptr[start.state + 1]; ++i) {
                    const auto& [length, state, last_only] = reversed_->configurations[i];
                    const std::int64_t end = t + length - 1;
                    if (end < T && (!last_only || end == T - 1)) starts[end].push_back({state, start.value});
                }
        TrellisInput out{{input.labels.rbegin(), input.labels.rend()}, {}, input.sequence};
        for (std::int64_t t = T; t-- > 0;) out.starts.push_back(backward_->start_set(std::move(starts[t])));
        return out;
    }

    // The same for an input in which nothing but the common patterns begins: what ends at a position depends
    // on how many positions there are up to it, and on whether it is the last one.
    TrellisInput turn_common(const TrellisInput& input) {
        const auto T = static_cast<std::int64_t>(input.labels.size());
        TrellisInput out{{input.labels.rbegin(), input.labels.rend()}, {}, input.sequence};
        for (std::int64_t t = T; t-- > 0;) {
            std::vector<std::int32_t>& sets = common_ends_[t == T - 1];
            if (static_cast<std::int64_t>(sets.size()) <= t) sets.resize(static_cast<std::size_t>(t) + 1, -1);
            if (sets[t] < 0) sets[t] = backward_->start_set(common_ends_at(t, t == T - 1));
            out.starts.push_back(sets[t]);
        }
        return out;
    }
    std::vector<PatternStart> common_ends_at(std::int64_t end, bool last) const {
        const auto one = std::lower_bound(values_.begin(), values_.end(), 1.0) - values_.begin();
        std::vector<PatternStart> out;
        for (const std::int32_t start : starts_.common)
            for (std::int64_t i = reversed_->ptr[start]; i < reversed_->ptr[start + 1]; ++i) {
                const auto& [length, state, last_only] = reversed_->configurations[i];
                if (length <= end + 1 && (!last_only || last))
                    out.push_back({state, static_cast<std::int32_t>(one)});
            }
        return out;
    }

    const PatternStarts& starts_;
    std::array<std::vector<std::int32_t>, 2>
        common_ends_;  // [last position or not] start sets by position; −1: not made
    std::vector<double> values_;
    InternedLists label_sets_;
    std::vector<std::int64_t> first_positions_;  // of the inputs
    std::optional<ReversedMatcher> reversed_;
    std::optional<TrellisReading> forward_, backward_;
};

using StepLists = std::vector<std::vector<std::int32_t>>;

std::int64_t n_arcs(const TrellisReading& reading, const std::vector<std::int32_t>& steps) {
    std::int64_t sum = 0;
    for (const std::int32_t s : steps) sum += reading.step(s).step.n_arcs;
    return sum;
}

// Copies the steps that are used into the table, in the order of their first use.
class TableWriter {
  public:
    explicit TableWriter(StepTable& table) : table_(table) {
        table_.level_ptr.assign(1, 0);
        table_.active_ptr.assign(1, 0);
    }

    // The numbers in the table of steps of a reading; readings must come one after the other.
    void begin(const TrellisReading& reading) {
        reading_ = &reading;
        steps_.assign(static_cast<std::size_t>(reading.n_steps()), -1);
        levels_.assign(static_cast<std::size_t>(reading.levels().size()), -1);
        active_.assign(static_cast<std::size_t>(reading.active().size()), -1);
    }
    std::int32_t write(std::int32_t number) {
        if (steps_[number] >= 0) return steps_[number];
        const SortedStep& sorted = reading_->step(number);
        Step step = sorted.step;
        step.before = write_level(step.before);
        step.after = write_level(step.after);
        step.first_arc = table_.n_arcs();
        step.first_in = static_cast<std::int64_t>(table_.in_ptr.size());
        step.first_out = static_cast<std::int64_t>(table_.out_ptr.size());
        const auto append = [](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from) {
            to.insert(to.end(), from.begin(), from.end());
        };
        append(table_.source, sorted.source);
        append(table_.destination, sorted.destination);
        append(table_.arc, sorted.arc);
        append(table_.in_ptr, sorted.in_ptr);
        append(table_.out_ptr, sorted.out_ptr);
        append(table_.out_arc, sorted.out_arc);
        for (const std::int32_t set : sorted.active)
            table_.active.push_back(set < 0 ? -1 : write_active(set));
        table_.steps.push_back(step);
        return steps_[number] = static_cast<std::int32_t>(table_.steps.size()) - 1;
    }

  private:
    std::int32_t write_level(std::int32_t number) {
        if (levels_[number] >= 0) return levels_[number];
        const auto level = reading_->levels()[number];
        for (std::size_t i = 0; i < level.size(); i += 2) table_.level_labels.push_back(level[i]);
        table_.level_ptr.push_back(static_cast<std::int64_t>(table_.level_labels.size()));
        return levels_[number] = static_cast<std::int32_t>(table_.level_ptr.size()) - 2;
    }
    std::int32_t write_active(std::int32_t number) {
        if (active_[number] >= 0) return active_[number];
        const auto list = reading_->active()[number];
        for (std::size_t i = 0; i < list.size(); i += 3) {
            table_.active_weights.push_back(list[i]);
            table_.active_values.push_back(std::bit_cast<double>(std::array{list[i + 1], list[i + 2]}));
        }
        table_.active_ptr.push_back(static_cast<std::int64_t>(table_.active_weights.size()));
        return active_[number] = static_cast<std::int32_t>(table_.n_active()) - 1;
    }

    StepTable& table_;
    const TrellisReading* reading_ = nullptr;
    std::vector<std::int32_t> steps_, levels_, active_;  // numbers of the reading → numbers in the table
};

// Whether the patterns add so many nodes that the other direction may need fewer.
bool worth_turning(const Inputs& data, TrellisReading& forward, const StepLists& steps) {
    std::int64_t n_nodes = 0, n_labels = 0;
    for (std::size_t k = 0; k < steps.size(); ++k)
        for (std::size_t t = 0; t < data.inputs[k].labels.size(); ++t) {
            n_nodes += forward.step(steps[k][t]).step.n_after;
            n_labels += static_cast<std::int64_t>(data.n_labels(data.inputs[k].labels[t]));
        }
    return static_cast<double>(n_nodes) > (1 + kWorthTurning) * static_cast<double>(n_labels);
}

// The steps of all inputs read from the last position; none where that is not possible, or saves nothing
// among some that are tried first.
StepLists read_backwards(Inputs& data, const PatternMatcher& matcher, const Bigrams& bigrams,
                         const StepLists& forward, const TrellisLimits& limits, int n_threads) {
    if (!worth_turning(data, data.forward(), forward) || !data.can_turn(matcher, bigrams)) return {};
    const std::size_t stride = (forward.size() + kTried - 1) / kTried;
    try {
        const StepLists tried = data.backward().unroll(data.turned(stride), limits, n_threads);
        std::int64_t n_forward = 0, n_backward = 0;
        for (std::size_t i = 0; i < tried.size(); ++i) {
            n_forward += n_arcs(data.forward(), forward[i * stride]);
            n_backward += n_arcs(data.backward(), tried[i]);
        }
        if (static_cast<double>(n_backward) > (1 - kWorthSaving) * static_cast<double>(n_forward)) return {};
        return stride == 1 ? tried : data.backward().unroll(data.turned(1), limits, n_threads);
    } catch (const TrellisSizeError&) {  // the other direction is not too large
        return {};
    }
}

}  // namespace

TrellisSizeError::TrellisSizeError(std::int64_t n, std::int64_t t, std::int64_t states, std::int64_t arcs,
                                   std::vector<std::int32_t> alive)
    : std::runtime_error("sequence " + std::to_string(n) + ", position " + std::to_string(t) +
                         ": the trellis has too many states (" + std::to_string(states) +
                         " here so far) or arcs (" + std::to_string(arcs) + " so far)"),
      sequence(n),
      position(t),
      n_states(states),
      n_arcs(arcs),
      weights(std::move(alive)) {}

void StepTable::score_active(const double* w, std::vector<double>& scores) const {
    scores.assign(static_cast<std::size_t>(n_active()), 0.0);
    for (std::int64_t s = 0; s < n_active(); ++s)
        for (std::int64_t i = active_ptr[s]; i < active_ptr[s + 1]; ++i)
            scores[s] += active_values[i] * w[active_weights[i]];
}

void StepTable::add_active(const std::vector<double>& numbers, double* w) const {
    for (std::int64_t s = 0; s < n_active(); ++s)
        for (std::int64_t i = active_ptr[s]; i < active_ptr[s + 1]; ++i)
            w[active_weights[i]] += active_values[i] * numbers[s];
}

Trellises::Trellises(std::shared_ptr<const Layout> model, std::shared_ptr<const Design> data,
                     std::shared_ptr<const PatternMatcher> patterns, const PatternStarts& starts,
                     std::int64_t first, const TrellisLimits& limits, int n_threads)
    : layout(std::move(model)),
      design(std::move(data)),
      matcher(std::move(patterns)),
      bigrams(existing_bigrams(*layout)),
      first_weight(first) {
    design->check_layout(*layout);
    if (matcher->n_labels != layout->n_labels)
        throw std::invalid_argument("the pattern matcher is of another number of labels");
    if (first < 0) throw std::invalid_argument("first_weight must be 0 or more");
    check_starts(*matcher, design->n_positions(), starts);
    Inputs inputs(*matcher, bigrams, *design, starts, n_threads);
    const StepLists forward = inputs.forward().unroll(inputs.inputs, limits, n_threads);
    const StepLists backward = read_backwards(inputs, *matcher, bigrams, forward, limits, n_threads);
    TableWriter writer(table);
    StepLists chosen = forward;
    writer.begin(inputs.forward());
    const auto turns = [&](std::size_t k) {
        return !backward.empty() &&
               n_arcs(inputs.backward(), backward[k]) < n_arcs(inputs.forward(), forward[k]);
    };
    for (std::size_t k = 0; k < chosen.size(); ++k)
        if (!turns(k))
            for (std::int32_t& step : chosen[k]) step = writer.write(step);
    if (!backward.empty()) {
        writer.begin(inputs.backward());
        for (std::size_t k = 0; k < chosen.size(); ++k) {
            if (!turns(k)) continue;
            chosen[k] = backward[k];
            for (std::int32_t& step : chosen[k]) step = writer.write(step);
        }
    }
    InternedLists lists;
    for (const std::int32_t input : inputs.of_sequence) trellis_of.push_back(lists.add(chosen[input]));
    trellis_ptr.push_back(0);
    for (std::int32_t k = 0; k < lists.size(); ++k) {
        const auto steps = lists[k];
        trellis_steps.insert(trellis_steps.end(), steps.begin(), steps.end());
        trellis_ptr.push_back(static_cast<std::int64_t>(trellis_steps.size()));
    }
}

}  // namespace crfkit
