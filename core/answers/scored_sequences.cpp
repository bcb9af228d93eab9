#include "answers/scored_sequences.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/interruption.hpp"
#include "base/subnormals.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

// What rounding takes from the probability of a span that is certain, or as likely as the threshold.
constexpr double kRounding = 1e-12;

double without_rounding(double probability) { return probability < 1 - kRounding ? probability : 1; }

}  // namespace

// Calls function(n, first position, sequence) for every sequence that is not empty.
template <class Function>
void ScoredSequences::each_sequence(int n_threads, const Function& function) const {
    constexpr std::int64_t per_task = 16;
    const auto& ptr = design_.sequence_ptr;
    const std::int64_t n = design_.n_sequences(), n_tasks = (n + per_task - 1) / per_task;
    std::vector<std::unique_ptr<ScoredSequence>> readers(
        static_cast<std::size_t>(std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(1, n_tasks))));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        const FlushSubnormals flush;
        Pace pace;
        for (std::int64_t i = task * per_task; i < std::min(n, (task + 1) * per_task); ++i) {
            if (ptr[i] == ptr[i + 1]) continue;
            if (!readers[worker]) readers[worker] = reader();
            readers[worker]->load(i);
            pace.work(4 * (ptr[i + 1] - ptr[i]) * n_labels() * n_labels());
            function(i, ptr[i], *readers[worker]);
        }
    });
}

void ScoredSequences::decode(std::int32_t* labels, int n_threads) const {
    each_sequence(n_threads, [&](std::int64_t, std::int64_t first, ScoredSequence& sequence) {
        sequence.decode(labels + first);
    });
}

void ScoredSequences::marginals(double* out, int n_threads) const {
    std::fill(out, out + design_.n_positions() * n_labels(), 0.0);
    each_sequence(n_threads, [&](std::int64_t, std::int64_t first, ScoredSequence& sequence) {
        sequence.marginals(out + first * n_labels());
    });
}

void ScoredSequences::log_partitions(const Annotation* allowed, double* out, int n_threads) const {
    std::fill(out, out + design_.n_sequences(), 0.0);
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t, ScoredSequence& sequence) {
        if (allowed) sequence.restrict(*allowed);
        out[n] = sequence.log_partition();
    });
}

std::vector<std::vector<ScoredLabels>> ScoredSequences::k_best(std::int64_t k, int n_threads) const {
    std::vector<std::vector<ScoredLabels>> out(static_cast<std::size_t>(design_.n_sequences()),
                                               {ScoredLabels{0, {}}});
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t, ScoredSequence& sequence) {
        out[n] = sequence.k_best(k);
    });
    return out;
}

void ScoredSequences::sample(std::int64_t n, const double* uniforms, std::int32_t* labels,
                             int n_threads) const {
    each_sequence(n_threads, [&](std::int64_t, std::int64_t first, ScoredSequence& sequence) {
        sequence.sample(n, uniforms + n * first, labels + n * first);
    });
}

void ScoredSequences::check(const SpanLabels& labels) const {
    if (labels.n_labels() != layout_.n_labels)
        throw std::invalid_argument("expected the spans of as many labels as the model has");
}

std::vector<std::vector<ScoredSpan>> ScoredSequences::spans(const SpanLabels& labels, double threshold,
                                                            int n_threads) const {
    check(labels);
    if (!(threshold > 0)) throw std::invalid_argument("the threshold of spans must be above 0");
    std::vector<std::vector<ScoredSpan>> out(static_cast<std::size_t>(design_.n_sequences()));
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t, ScoredSequence& sequence) {
        sequence.spans(labels, threshold * (1 - kRounding), out[n]);
        for (ScoredSpan& span : out[n])
            span.probability = std::max(threshold, without_rounding(span.probability));
        std::sort(out[n].begin(), out[n].end());
    });
    return out;
}

std::vector<std::vector<ScoredSpan>> ScoredSequences::decoded_spans(const SpanLabels& labels,
                                                                    int n_threads) const {
    check(labels);
    std::vector<std::vector<ScoredSpan>> out(static_cast<std::size_t>(design_.n_sequences()));
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t first, ScoredSequence& sequence) {
        std::vector<std::int32_t> decoded(static_cast<std::size_t>(design_.sequence_ptr[n + 1] - first));
        sequence.decode(decoded.data());
        out[n] = labels.read(decoded.data(), static_cast<std::int64_t>(decoded.size()));
        if (!out[n].empty()) sequence.span_probabilities(labels, out[n]);
        for (ScoredSpan& span : out[n]) span.probability = without_rounding(span.probability);
    });
    return out;
}

void ScoredSequences::n_spans(const SpanLabels& labels, double* out, int n_threads) const {
    check(labels);
    std::fill(out, out + design_.n_sequences(), 0.0);
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t, ScoredSequence& sequence) {
        out[n] = sequence.n_spans(labels);
    });
}

void choose_labels(const double* probs, std::int32_t n_labels, std::int32_t& label, std::int32_t& against) {
    const auto likeliest = [&](std::int32_t other) {
        std::int32_t best = -1;
        for (std::int32_t b = 0; b < n_labels; ++b)
            if (b != other && (best < 0 || probs[b] > probs[best])) best = b;
        return best;
    };
    if (label < 0) label = likeliest(against);
    if (against < 0) against = likeliest(label);
}

// A label that is hardly possible is asked for alone, in log Z(b) of its own.
ExplainedLabels ScoredSequences::explain(std::int64_t n, std::int64_t i, std::int32_t label,
                                         std::int32_t against) const {
    const auto& ptr = design_.sequence_ptr;
    if (n < 0 || n >= design_.n_sequences() || i < 0 || i >= ptr[n + 1] - ptr[n] || label >= n_labels() ||
        against >= n_labels() || n_labels() < 2)
        throw std::invalid_argument("there is no such position, or no such label");
    const FlushSubnormals flush;
    const auto sequence = explaining_reader();
    sequence->load(n);
    ExplainedLabels found = sequence->explain(i, label, against);
    if (found.contexts[0].log_probability > kAbsent && found.contexts[1].log_probability > kAbsent)
        return found;
    sequence->load(n);
    const double log_z = sequence->log_partition();
    for (int side = 0; side < 2; ++side) {
        Annotation only{
            std::vector<std::int32_t>(static_cast<std::size_t>(design_.n_positions()), -1), {}, {}, {}};
        only.labels[ptr[n] + i] = found.labels[side];
        sequence->load(n);
        sequence->restrict(only);
        const double log_z_label = sequence->log_partition();
        found.contexts[side] = {};
        if (log_z_label == kAbsent) continue;
        found.contexts[side] = sequence->explain(i, found.labels[side], found.labels[1 - side]).contexts[0];
        found.contexts[side].log_probability = std::min(log_z_label - log_z, 0.0);
    }
    return found;
}

std::vector<WindowContext> ScoredSequences::explain_windows(std::int64_t n, std::int64_t first,
                                                            std::int64_t size,
                                                            std::span<const std::uint8_t> allowed) const {
    const auto& ptr = design_.sequence_ptr;
    const std::int64_t L = n_labels();
    if (n < 0 || n >= design_.n_sequences() || first < 0 || size < 1 || first + size > ptr[n + 1] - ptr[n])
        throw std::invalid_argument("there are no such positions");
    if (static_cast<std::int64_t>(allowed.size()) % (size * L))
        throw std::invalid_argument("expected the labels of all positions for each event");
    const FlushSubnormals flush;
    const auto sequence = explaining_reader();
    std::vector<WindowContext> found;
    for (std::size_t at = 0; at < allowed.size(); at += static_cast<std::size_t>(size * L)) {
        Annotation only{std::vector<std::int32_t>(static_cast<std::size_t>(design_.n_positions()), -1),
                        std::vector<std::int64_t>(static_cast<std::size_t>(design_.n_positions()) + 1, 0),
                        {},
                        {}};
        bool possible = true;
        for (std::int64_t k = 0; k < size; ++k) {
            const std::size_t before = only.set_labels.size();
            for (std::int64_t b = 0; b < L; ++b)
                if (allowed[at + static_cast<std::size_t>(k * L + b)])
                    only.set_labels.push_back(static_cast<std::int32_t>(b));
            possible &= only.set_labels.size() > before;
            only.set_ptr[ptr[n] + first + k + 1] = static_cast<std::int64_t>(only.set_labels.size());
        }
        for (std::int64_t t = ptr[n] + first + size; t < design_.n_positions(); ++t)
            only.set_ptr[t + 1] = static_cast<std::int64_t>(only.set_labels.size());
        found.emplace_back();
        if (!possible) continue;
        sequence->load(n);
        sequence->restrict(only);
        found.back() = sequence->explain_window(first, size);
    }
    return found;
}

}  // namespace crfkit
