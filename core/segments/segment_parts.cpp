#include "segments/segment_parts.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "lattice/function_factors.hpp"
#include "training/chain_factors.hpp"

namespace crfkit {

class SegmentParts::Reader final : public PartReader {
  public:
    explicit Reader(const SegmentParts& source)
        : data_(*source.data_),
          types_(data_.model),
          gold_(source.gold_ ? &*source.gold_ : nullptr),
          arcs_(source.model_),
          chain_(*data_.layout, *data_.design, arcs_),
          functions_(data_.functions ? std::make_unique<FunctionFactors>(*data_.functions, arcs_.bigrams,
                                                                         source.n_weights)
                                     : nullptr),
          labels_(data_.layout->n_labels),
          pairs_(data_.of_pairs ? std::int64_t{data_.layout->n_labels} * data_.layout->n_labels : 0),
          transitions_(arcs_.bigrams.n_arcs()),
          starts_(types_.n_types()),
          ends_(types_.n_types()),
          own_(types_.n_own()),
          nodes_(static_cast<std::size_t>(types_.n_types())) {}

    void load(std::int64_t n, Parts& parts) override {
        const std::int64_t begin = data_.design->sequence_ptr[n];
        T_ = data_.design->sequence_ptr[n + 1] - begin;
        chain_.load(n);
        if (functions_) functions_->load(n);
        parts.clear();
        for (LazyFactors* factors : {&transitions_, &starts_, &ends_, &own_}) factors->clear();
        for (auto& nodes : nodes_) nodes.clear();
        for (std::int64_t t = 0; t < T_; ++t) {
            open_labels(begin + t);
            labels_.clear();
            pairs_.clear();
            if (chain_.by_position()) transitions_.clear();
            parts.begin_level();
            add_inner(t, parts);
            for (std::int32_t c = 0; c < types_.n_types(); ++c) add_type(t, begin + t, c, parts);
        }
        finish(parts);
    }

  private:
    struct Ending {
        std::int64_t node;
        std::int32_t label;
    };
    struct End {
        std::int32_t type, label;  // −1: any label
        std::int64_t node;
    };
    // The nodes of a type at the position read last, by k; those of the position before while it is read.
    struct Nodes {
        std::vector<std::int64_t> going;  // [k − 1] −1: none
        std::vector<Ending> ending;
        std::int64_t first = -1, single = -1;  // B(c), before a first and before a single position

        std::int64_t begin(bool goes_on) const { return goes_on ? first : single; }

        void clear() {
            going.clear();
            ending.clear();
        }
    };

    void open_labels(std::int64_t position) {
        const std::int32_t L = data_.layout->n_labels;
        open_.assign(static_cast<std::size_t>(L), 1);
        data_.design->allowed.forbidden(position, L, [&](std::int32_t b) { open_[b] = 0; });
    }
    bool is_open(std::int32_t label) const { return label >= 0 && open_[label]; }

    // E and B. Where functions look at two labels, each label that a segment ends or begins with has its own.
    void add_inner(std::int64_t t, Parts& parts) {
        ends_before_.clear();
        for (std::int32_t c = 0; c < types_.n_types(); ++c) {
            const std::int32_t single = types_.single[c], last = types_.last[c];
            if (!data_.of_pairs || single >= 0) add_end(c, data_.of_pairs ? single : -1, parts);
            if (data_.of_pairs && last >= 0 && last != single) add_end(c, last, parts);
        }
        for (std::int32_t c = 0; c < types_.n_types(); ++c) {
            const std::int32_t first = types_.first[c], single = types_.single[c];
            Nodes& nodes = nodes_[c];
            nodes.first = nodes.single = -1;
            if (data_.of_pairs && first != single) {
                if (is_open(first)) nodes.first = add_begin(t, c, first, parts);
                if (is_open(single)) nodes.single = add_begin(t, c, single, parts);
            } else if (is_open(first) || is_open(single)) {
                nodes.first = nodes.single = add_begin(t, c, single, parts);
            }
        }
    }
    // E(c) of the segments that end with a label; −1: with any.
    void add_end(std::int32_t c, std::int32_t label, Parts& parts) {
        bool added = false;
        for (const Ending& ending : nodes_[c].ending) {
            if (label >= 0 && ending.label != label) continue;
            if (!added) ends_before_.push_back({c, label, parts.add_node(-1, true, true)});
            added = true;
            parts.add_arc(ending.node, true, true);
        }
    }
    std::int64_t add_begin(std::int64_t t, std::int32_t c, std::int32_t label, Parts& parts) {
        const std::int64_t node = parts.add_node(-1, true, true);
        if (t == 0 && types_.follows(-1, c)) {
            parts.add_arc(0);
            parts.score_arc(
                starts_.of(c, parts, [&] { chain_.add_ends(true, false, types_.transition[c], parts); }));
        }
        for (const End& end : ends_before_) {
            if (!types_.follows(end.type, c)) continue;
            const std::int32_t k = arcs_.bigrams.find(types_.transition[end.type], types_.transition[c]);
            if (k < 0 && !arcs_.bigrams.soft) continue;  // it does not exist
            parts.add_arc(end.node);
            if (k >= 0) parts.score_arc(transitions_.of(k, parts, [&] { chain_.add_arc(t, k, parts); }));
            score_pair(t, end.label, label, parts);
        }
        return node;
    }
    // What functions of two labels give to the newest arc.
    void score_pair(std::int64_t t, std::int32_t a, std::int32_t b, Parts& parts) {
        if (data_.of_pairs)
            parts.score_arc(pairs_.of(a * data_.layout->n_labels + b, parts,
                                      [&] { functions_->add_pair(t, a, b, parts); }));
    }

    void add_type(std::int64_t t, std::int64_t position, std::int32_t c, Parts& parts) {
        Nodes& nodes = nodes_[c];
        const std::int64_t K = types_.n_lengths[c], longest = K + (types_.unlimited[c] ? 1 : 0);
        before_.swap(nodes.going);
        nodes.clear();
        const auto before = [&](std::int64_t k) {
            return k <= static_cast<std::int64_t>(before_.size()) ? before_[k - 1] : -1;
        };
        for (std::int64_t k = 1; k <= std::min(t + 1, longest); ++k) {
            nodes.going.push_back(-1);
            const std::int64_t same = k > K ? before(k) : -1;
            const auto from = [&](bool goes) { return k == 1 ? nodes.begin(goes) : before(k - 1); };
            const auto entered = [&](bool goes) { return from(goes) >= 0 || same >= 0; };
            const auto enter = [&](bool goes, std::int32_t label) {
                if (const std::int64_t node = from(goes); node >= 0) {
                    parts.add_arc(node, true, k == 1);
                    if (k > 1) score_pair(t, k == 2 ? types_.first[c] : types_.inside[c], label, parts);
                }
                if (same >= 0) {
                    parts.add_arc(same);
                    score_pair(t, types_.inside[c], label, parts);
                }
            };
            const std::int32_t goes_on = k == 1 ? types_.first[c] : types_.inside[c],
                               ends = k == 1 ? types_.single[c] : types_.last[c];
            if (t + 1 < T_ && (k < longest || k > K) && is_open(goes_on) && entered(true)) {
                nodes.going.back() = add_label(t, position, goes_on, parts);
                if (k > K) score_length(c, k, parts);
                enter(true, goes_on);
            }
            if (is_open(ends) && entered(false)) {
                nodes.ending.push_back({add_label(t, position, ends, parts), ends});
                score_length(c, k, parts);
                if (k <= K) score_features(position, c, k, parts);
                enter(false, ends);
            }
        }
    }

    std::int64_t add_label(std::int64_t t, std::int64_t position, std::int32_t b, Parts& parts) {
        const std::int64_t node = parts.add_node(b, !gold_ || gold_->possible(position, b));
        parts.score_node(labels_.of(b, parts, [&] {
            if (functions_)
                functions_->add_label(t, b, parts);
            else
                chain_.add_features(t, b, parts);
        }));
        return node;
    }
    void score_length(std::int32_t c, std::int64_t k, Parts& parts) {
        const std::int64_t own = types_.length_weight(c, k);
        if (own < 0) return;
        parts.score_node(own_.of(static_cast<std::int32_t>(own), parts,
                                 [&] { parts.add_feature(data_.own_begin() + own, 1); }));
    }
    // Those of the segment of k positions that ends here.
    void score_features(std::int64_t position, std::int32_t c, std::int64_t k, Parts& parts) {
        const SegmentFeatures& features = data_.features;
        if (features.empty()) return;
        const auto begin = features.lengths.begin() + features.cell_ptr[position],
                   end = features.lengths.begin() + features.cell_ptr[position + 1];
        const auto cell = std::lower_bound(begin, end, static_cast<std::int32_t>(k));
        if (cell == end || *cell != k) return;
        const std::int64_t i = cell - features.lengths.begin();
        bool added = false;
        for (std::int64_t j = features.ptr[i]; j < features.ptr[i + 1]; ++j) {
            const std::int64_t own = types_.feature_weight(features.ids[j], c);
            if (own < 0) continue;
            if (!added) parts.score_node(parts.add_factor());
            added = true;
            parts.add_feature(data_.own_begin() + own, features.values[j]);
        }
    }

    void finish(Parts& parts) {
        parts.begin_level();
        parts.add_node(-1);
        if (T_ == 0) parts.add_arc(0);
        for (std::int32_t c = 0; c < types_.n_types(); ++c)
            for (const Ending& ending : nodes_[c].ending) {
                if (!types_.follows(c, -1)) continue;
                parts.add_arc(ending.node);
                parts.score_arc(
                    ends_.of(c, parts, [&] { chain_.add_ends(false, true, types_.transition[c], parts); }));
            }
        parts.finish();
    }

    const SegmentData& data_;
    const SegmentModel& types_;
    const Annotation* gold_;
    const ArcModel& arcs_;
    DesignFactors chain_;
    std::unique_ptr<FunctionFactors> functions_;  // null: none
    LazyFactors labels_, pairs_, transitions_, starts_, ends_, own_;
    std::int64_t T_ = 0;
    std::vector<Nodes> nodes_;          // [C]
    std::vector<End> ends_before_;      // E of the position before
    std::vector<std::int64_t> before_;  // going nodes of the position before
    std::vector<std::uint8_t> open_;    // [L] whether a label is allowed at the position
};

SegmentParts::SegmentParts(std::shared_ptr<const SegmentData> data, std::optional<Annotation> gold,
                           int n_threads)
    : PartSource(data->own_begin() + data->model.n_own(),
                 gold ? gold->weights
                      : std::vector<double>(static_cast<std::size_t>(data->design->n_sequences()), 1.0)),
      data_(std::move(data)),
      gold_(std::move(gold)),
      model_(*data_->layout) {
    const Design& design = *data_->design;
    design.check_layout(*data_->layout);
    data_->model.check(data_->layout->n_labels);
    if (data_->n_outputs < 0 || (data_->n_outputs > 0 && !data_->functions))
        throw std::invalid_argument("there are weights of feature functions without functions");
    data_->features.check(design.n_positions(), data_->model.n_features());
    if (gold_) check_annotation(*data_->layout, design, *gold_);
    if (static_cast<std::int64_t>(weights.size()) != design.n_sequences())
        throw std::invalid_argument("expected one weight for each sequence");
    check_possible(n_threads);
}

// Whether START leads to END, without the graph. Of the segments of a type that go on after a position, the
// one that began last has all its continuations open that others have.
bool SegmentParts::is_possible(std::int64_t n) const {
    const SegmentModel& types = data_->model;
    const std::int64_t begin = data_->design->sequence_ptr[n], T = data_->design->sequence_ptr[n + 1] - begin;
    const auto C = static_cast<std::size_t>(types.n_types());
    std::vector<std::uint8_t> open, ended(C), starts(C);
    std::vector<std::int64_t> going(C, -1);  // where it began, −1: none goes on
    for (std::int64_t t = 0; t < T; ++t) {
        open.assign(static_cast<std::size_t>(data_->layout->n_labels), 1);
        const auto close = [&](std::int32_t b) { open[b] = 0; };
        data_->design->allowed.forbidden(begin + t, data_->layout->n_labels, close);
        if (gold_) gold_->forbidden(begin + t, data_->layout->n_labels, close);
        const auto is_open = [&](std::int32_t b) { return b >= 0 && open[b]; };
        for (std::size_t c = 0; c < C; ++c) {
            const auto type = static_cast<std::int32_t>(c);
            starts[c] = t == 0 && types.follows(-1, type);
            for (std::size_t before = 0; before < C && t > 0 && !starts[c]; ++before)
                starts[c] = ended[before] && types.follows(static_cast<std::int32_t>(before), type);
        }
        for (std::size_t c = 0; c < C; ++c) {
            const std::int64_t length = going[c] < 0 ? 0 : t - going[c] + 1;
            const bool on = length > 0 && (types.unlimited[c] || length <= types.n_lengths[c]);
            ended[c] = (starts[c] && is_open(types.single[c])) || (on && is_open(types.last[c]));
            if (starts[c] && is_open(types.first[c]))
                going[c] = t;
            else if (!on || !is_open(types.inside[c]))
                going[c] = -1;
        }
    }
    for (std::int32_t c = 0; c < types.n_types(); ++c)
        if (ended[c] && types.follows(c, -1)) return true;
    return T == 0;
}

void SegmentParts::check_possible(int n_threads) const {
    parallel_for(n_sequences(), n_threads, [&](std::int64_t n, int) {
        if (!is_possible(n))
            throw std::invalid_argument("sequence " + std::to_string(n) +
                                        ": there is no segmentation that is allowed" +
                                        (gold_ ? " and agrees with its labels" : ""));
    });
}

std::unique_ptr<PartReader> SegmentParts::open() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
