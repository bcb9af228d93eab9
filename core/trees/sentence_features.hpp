// The features of one sentence, and scores of its arcs by the weights of these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/buffer.hpp"
#include "base/forks.hpp"
#include "trees/arc_features.hpp"
#include "trees/arc_layout.hpp"
#include "trees/key_table.hpp"
#include "trees/tree_parts.hpp"
#include "trees/vector_scores.hpp"

namespace crfkit {

// Lists of features, one for each arc, or for each word and side.
struct FeatureLists {
    std::vector<std::int64_t> ptr;  // [lists + 1]
    std::vector<std::int32_t> features;
    void clear() {
        ptr.assign(1, 0);
        features.clear();
    }
    void close() { ptr.push_back(static_cast<std::int64_t>(features.size())); }
};

// The features of sentences that were found once, as far as memory allows. For several threads.
class FeatureStore {
  public:
    static constexpr std::int64_t kMostBytes = std::int64_t(1) << 30;
    explicit FeatureStore(std::int64_t n_sentences) : stored_(static_cast<std::size_t>(n_sentences)) {}

    // One sentence, compressed: numbers below 2^16 take two bytes.
    struct Stored {
        std::vector<std::int32_t> arc_ids, label_ids;
        std::vector<std::uint16_t> lengths, features;  // of all lists, one after the other
    };
    // Of sentence n, or none.
    const Stored* find(std::int64_t n) const;
    void keep(std::int64_t n, Stored stored);

  private:
    mutable ForkMutex mutex_;
    std::int64_t n_bytes_ = 0;
    std::vector<std::unique_ptr<const Stored>> stored_;  // [N]
};

// The numbers of the features of a layout by their keys.
struct FeatureIndex {
    explicit FeatureIndex(const ArcLayout& layout)
        : arcs(layout.arc_keys, number), labels(layout.label_keys, number) {}

    static std::int32_t number(std::size_t i) { return static_cast<std::int32_t>(i); }
    const KeyTable<std::int32_t> arcs, labels;
};

class SentenceFeatures {
  public:
    // What was found once is read from the store.
    SentenceFeatures(const ArcLayout& layout, const FeatureIndex& index, FeatureStore& store)
        : layout_(layout), index_(index), store_(store), vectors_(layout) {}

    // Goes to a sentence. Its features are numbered as they are met, those of arcs and those of labels; their
    // weights come one after the other in this order, those of arcs first, those of word vectors last.
    void load(const Treebank& treebank, std::int64_t n) { load(treebank, n, nullptr); }
    // The same for some of the arcs, and for parts of second order; the graph must outlive the questions
    // below. Rows of scores are then its arcs, not [n + 1, n + 1], and behind them comes one score for each
    // further part.
    void load(const Treebank& treebank, std::int64_t n, const TreeParts& parts) { load(treebank, n, &parts); }
    std::int64_t n_words() const { return n_; }
    std::int64_t side() const { return n_ + 1; }
    std::int64_t n_scores() const {
        return parts_ ? parts_->n_scores(layout_.n_labels()) : side() * side() * layout_.n_labels();
    }
    std::int64_t n_weights() const { return n_weights_; }
    // Calls function(begin, end) for the places of these weights in w [D], in their order.
    template <class Function>
    void each_range(const Function& function) const {
        for (const std::int32_t f : arc_ids_) function(f, f + 1);
        for (const std::int32_t f : label_ids_)
            function(layout_.first_weight(f), layout_.first_weight(f + 1));
        if (!vectors_.is_empty()) vectors_.each_range(function);
    }

    // weights [n_weights()] of these features out of w[D].
    void read(const double* w, double* weights) const;
    // scores [n + 1, n + 1, R] from these weights; 0 on the diagonal and in column 0.
    void score(const double* weights, double* scores);
    // The same at w[D]; both buffers are filled.
    void score_at(const double* w, Buffer<double>& weights, Buffer<double>& scores) {
        weights.resize(n_weights());
        read(w, weights.data());
        scores.resize(n_scores());
        score(weights.data(), scores.data());
    }
    // gradient [n_weights()] = Φᵀ residuals [n + 1, n + 1, R].
    void gradient(const double* residuals, double* gradient);

    // Calls function(weight, value) for the weights that score a part of second order, by its number among
    // these.
    template <class Function>
    void each_weight(std::int64_t part, const Function& function) const {
        for (std::int64_t i = second_order_.ptr[part]; i < second_order_.ptr[part + 1]; ++i)
            function(static_cast<std::int64_t>(arc_ids_[second_order_.features[i]]), 1.0);
    }
    // Calls function(weight, value) for the weights that score an arc with a label, as places in w[D]; some
    // may come several times.
    template <class Function>
    void each_weight(std::int64_t head, std::int64_t dependent, std::int32_t label,
                     const Function& function) const {
        const std::int64_t right = side_of(head, dependent) == Side::right;
        const std::int64_t list = arc_list(head, dependent);
        for (std::int64_t i = arcs_.ptr[list]; i < arcs_.ptr[list + 1]; ++i)
            function(static_cast<std::int64_t>(arc_ids_[arcs_.features[i]]), 1.0);
        const auto of_label = [&](const Lists& lists, std::int64_t at) {
            for (std::int64_t i = lists.ptr[at]; i < lists.ptr[at + 1]; ++i) {
                const std::int32_t f = label_ids_[lists.features[i]];
                const auto labels = layout_.labels_of(f);
                const auto found = std::lower_bound(labels.begin(), labels.end(), label);
                if (found != labels.end() && *found == label)
                    function(layout_.first_weight(f) + (found - labels.begin()), 1.0);
            }
        };
        of_label(pairs_, list);
        of_label(dependents_, 2 * dependent + right);
        of_label(heads_, 2 * head + right);
        if (!vectors_.is_empty()) vectors_.each_weight(head, dependent, label, function);
    }

  private:
    using Lists = FeatureLists;

    // The place of an arc in the order of each_arc.
    std::int64_t arc_list(std::int64_t head, std::int64_t dependent) const {
        if (parts_)
            return find_arc(parts_->arcs(),
                            {static_cast<std::int32_t>(head), static_cast<std::int32_t>(dependent)});
        return head == 0 ? dependent - 1 : n_ + (head - 1) * (n_ - 1) + dependent - 1 - (dependent > head);
    }

    void load(const Treebank& treebank, std::int64_t n, const TreeParts* parts);
    void find(const Treebank& treebank, std::int64_t n);
    void read(const FeatureStore::Stored& stored);
    void keep(std::int64_t n) const;
    void list_features(const Treebank& treebank, std::int64_t n);
    void list_second_order();
    void add_list(const KeyTable<std::int32_t>& index, Lists& lists);
    void number(std::initializer_list<Lists*> lists, std::vector<std::int32_t>& ids);
    template <class Function>
    void each_arc(const Function& function) const;
    void add_weights(const Lists& lists, std::int64_t list, const double* weights, double* row) const;
    void add_residuals(const Lists& lists, std::int64_t list, const double* row, double* gradient) const;

    const ArcLayout& layout_;
    const FeatureIndex& index_;
    FeatureStore& store_;
    const TreeParts* parts_ = nullptr;
    ArcFeatures features_;
    VectorScores vectors_;
    std::int64_t n_ = 0, n_weights_ = 0, first_vector_weight_ = 0;
    KeyList keys_;
    Lists arcs_, pairs_;        // [arcs] in the order of each_arc: features of the arc, of its label
    Lists dependents_, heads_;  // [2 (n + 1)] features of labels by one word and side
    Lists second_order_;        // [parts of second order]; their features are among those of arcs
    std::vector<std::int32_t> arc_ids_, label_ids_;  // features by their numbers
    std::vector<std::int64_t> first_;                // where the weights of each feature of labels begin
    struct Place {
        std::int32_t id, number;
    };
    std::vector<Place> places_;              // of the table that numbers features
    Buffer<double> by_dependent_, by_head_;  // [2 (n + 1), R]
};

}  // namespace crfkit
