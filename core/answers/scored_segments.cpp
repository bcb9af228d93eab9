#include "answers/scored_segments.hpp"

#include <algorithm>
#include <utility>

#include "answers/path_sequence.hpp"
#include "data/position_scores.hpp"
#include "data/scorer.hpp"
#include "segments/segment_pass.hpp"

namespace crfkit {

class ScoredSegments::Reader final : public ScoredSequence {
  public:
    Reader(const ScoredSegments& of, std::unique_ptr<ScoredSequence> by_parts)
        : of_(of), L_(of.layout().n_labels), pass_(*of.data_, of.segments_), by_parts_(std::move(by_parts)) {}

    void load(std::int64_t n) override {
        n_ = n;
        first_ = of_.design().sequence_ptr[n];
        T_ = of_.design().sequence_ptr[n + 1] - first_;
        loaded_ = false;
        restricted_ = nullptr;
        score();
        close_labels(of_.design().allowed, first_, T_, L_, static_cast<std::int32_t>(S_), states_.data());
        near_ = pass_.load(n) && of_.near_;
    }
    void restrict(const Annotation& allowed) override {
        restricted_ = &allowed;
        for (std::int64_t t = 0; t < T_; ++t)
            allowed.forbidden(first_ + t, L_, [&](std::int32_t b) { states_[t * S_ + b] = kAbsent; });
    }

    void decode(std::int32_t* labels) override { require_possible(pass_.decode(states_.data(), S_, labels)); }
    void marginals(double* probs) override {
        double log_partition = 0;
        if (!near_ || !pass_.run(states_.data(), S_, log_partition)) return parts().marginals(probs);
        pass_.add_probs(1.0, L_, probs);
    }
    double log_partition() override {
        double found = 0;
        return near_ && pass_.run(states_.data(), S_, found) ? found : parts().log_partition();
    }
    std::vector<ScoredLabels> k_best(std::int64_t k) override { return parts().k_best(k); }
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) override {
        parts().sample(n, uniforms, labels);
    }
    // Spans are segments where the labels are read by the scheme that segments have.
    void spans(const SpanLabels& labels, double threshold, std::vector<ScoredSpan>& found) override {
        if (!run_as_spans(labels)) return parts().spans(labels, threshold, found);
        each_type(labels, [&](std::int32_t c, std::int32_t type) {
            pass_.each_segment(c, threshold, [&](std::int64_t start, std::int64_t end, double probability) {
                found.push_back({start, end, type, probability});
            });
        });
    }
    void span_probabilities(const SpanLabels& labels, std::span<ScoredSpan> given) override {
        parts().span_probabilities(labels, given);
    }
    double n_spans(const SpanLabels& labels) override {
        if (!run_as_spans(labels)) return parts().n_spans(labels);
        double total = 0;
        each_type(labels, [&](std::int32_t c, std::int32_t) { total += pass_.n_segments(c); });
        return total;
    }

    ExplainedLabels explain(std::int64_t i, std::int32_t label, std::int32_t against) override {
        return parts().explain(i, label, against);
    }
    WindowContext explain_window(std::int64_t first, std::int64_t size) override {
        return parts().explain_window(first, size);
    }

  private:
    // Calls function(c, type of spans) for all types but those outside of spans.
    template <class Function>
    void each_type(const SpanLabels& labels, const Function& function) const {
        const SegmentModel& model = of_.data_->model;
        for (std::int32_t c = 0; c < model.n_types(); ++c)
            if (const std::int32_t type = labels.type(model.transition[c]); type >= 0) function(c, type);
    }
    // Forward–backward, where every segment inside is one span; false where that is not so, or not exact.
    bool run_as_spans(const SpanLabels& labels) {
        const SegmentModel& model = of_.data_->model;
        std::vector<std::uint8_t> met(static_cast<std::size_t>(labels.n_types()), 0);
        bool same = near_;
        each_type(labels, [&](std::int32_t c, std::int32_t type) {
            const std::int32_t first = model.first[c], inside = model.inside[c], last = model.last[c],
                               single = model.single[c];
            for (const std::int32_t b : {first, inside, last, single})
                same &= b < 0 || labels.type(b) == type;
            same &= !met[type];
            met[type] = 1;
            if (first >= 0) same &= labels.goes_on(first) && (!model.repeats || !labels.follows(first));
            if (single >= 0) same &= !model.repeats || !labels.follows(single);
            if (inside >= 0) same &= labels.goes_on(inside) && labels.follows(inside);
            if (last >= 0) same &= labels.follows(last);
        });
        double log_partition = 0;
        return same && pass_.run(states_.data(), S_, log_partition);
    }
    // Φ w of the features of positions, in rows that are padded with −inf.
    void score() {
        const Layout& layout = of_.layout();
        const Design& design = of_.design();
        states_.assign(T_ * S_, kAbsent);
        for (std::int64_t t = 0; t < T_; ++t) {
            double* const row = states_.data() + t * S_;
            std::fill_n(row, L_, 0.0);
            add_position_scores(layout, design.features, first_ + t, of_.w_.data(), 0, row);
            for (std::size_t block = 0; block < design.dense.size(); ++block) {
                const std::int64_t n_columns = layout.dense_columns[block];
                const double* const w = of_.w_.data() + layout.dense_begin(block);
                for (std::int64_t k = 0; k < n_columns; ++k)
                    for (std::int32_t b = 0; b < L_; ++b)
                        row[b] += design.dense[block][(first_ + t) * n_columns + k] * w[k * L_ + b];
            }
        }
    }
    // The same sequence, for the path engine.
    ScoredSequence& parts() {
        if (!loaded_) {
            by_parts_->load(n_);
            if (restricted_) by_parts_->restrict(*restricted_);
        }
        loaded_ = true;
        return *by_parts_;
    }

    const ScoredSegments& of_;
    const std::int32_t L_;
    const std::int64_t S_ = (L_ + 7) / 8 * 8;  // whole vectors
    SegmentPass pass_;
    std::unique_ptr<ScoredSequence> by_parts_;
    Buffer<double> states_;  // [T, S]
    std::int64_t n_ = 0, first_ = 0, T_ = 0;
    bool near_ = true, loaded_ = false;
    const Annotation* restricted_ = nullptr;
};

ScoredSegments::ScoredSegments(std::shared_ptr<const SegmentData> data,
                               std::shared_ptr<const SegmentParts> parts, std::vector<double> w)
    : ScoredParts(*data->layout, *data->design, std::move(parts), std::move(w)),
      data_(std::move(data)),
      arcs_(*data_->layout),
      segments_(*data_, arcs_),
      near_(segments_.set(w_.data())) {}

std::unique_ptr<ScoredSequence> ScoredSegments::reader() const {
    return std::make_unique<Reader>(*this, ScoredParts::reader());
}

}  // namespace crfkit
