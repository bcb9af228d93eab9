#include "trees/sentence_features.hpp"

#include <utility>

#include "base/interruption.hpp"

namespace crfkit {

// function(row of the arc, list of the dependent and its side, list of the head and this side) for all arcs.
template <class Function>
void SentenceFeatures::each_arc(const Function& function) const {
    if (parts_) {
        std::int64_t row = 0;
        for (const auto [h, m] : parts_->arcs()) {
            const std::int64_t right = side_of(h, m) == Side::right;
            function(row++, 2 * m + right, 2 * h + right);
        }
        return;
    }
    for (std::int64_t h = 0; h <= n_; ++h)
        for (std::int64_t m = 1; m <= n_; ++m) {
            if (h == m) continue;
            const std::int64_t right = side_of(h, m) == Side::right;
            function(h * side() + m, 2 * m + right, 2 * h + right);
        }
}

const FeatureStore::Stored* FeatureStore::find(std::int64_t n) const {
    const std::lock_guard one_at_a_time(mutex_);
    return stored_[n].get();
}

void FeatureStore::keep(std::int64_t n, Stored stored) {
    const std::size_t n_bytes = 4 * (stored.arc_ids.size() + stored.label_ids.size()) +
                                2 * (stored.lengths.size() + stored.features.size());
    const std::lock_guard one_at_a_time(mutex_);
    if (stored_[n] || n_bytes_ + static_cast<std::int64_t>(n_bytes) > kMostBytes) return;
    n_bytes_ += static_cast<std::int64_t>(n_bytes);
    stored_[n] = std::make_unique<const Stored>(std::move(stored));
}

void SentenceFeatures::load(const Treebank& treebank, std::int64_t n, const TreeParts* parts) {
    n_ = treebank.length(n);
    parts_ = parts;
    if (const FeatureStore::Stored* stored = store_.find(n)) {
        read(*stored);
    } else {
        find(treebank, n);
        keep(n);
    }
    first_.clear();
    n_weights_ = static_cast<std::int64_t>(arc_ids_.size());
    for (const std::int32_t f : label_ids_) {
        first_.push_back(n_weights_);
        n_weights_ += static_cast<std::int64_t>(layout_.labels_of(f).size());
    }
    first_vector_weight_ = n_weights_;
    if (vectors_.is_empty()) return;
    vectors_.load(treebank, n);
    n_weights_ += vectors_.n_weights();
}

void SentenceFeatures::find(const Treebank& treebank, std::int64_t n) {
    list_features(treebank, n);
    number({&arcs_, &second_order_}, arc_ids_);
    number({&dependents_, &heads_, &pairs_}, label_ids_);
}

void SentenceFeatures::read(const FeatureStore::Stored& stored) {
    arc_ids_ = stored.arc_ids;
    label_ids_ = stored.label_ids;
    const std::int64_t by_word = 2 * side(), by_arc = parts_ ? parts_->n_arcs() : n_ * n_,
                       of_second_order = parts_ ? parts_->n_parts() - by_arc : 0;
    const std::uint16_t *length = stored.lengths.data(), *feature = stored.features.data();
    for (auto [lists, n_lists] :
         {std::pair{&arcs_, by_arc}, std::pair{&pairs_, by_arc}, std::pair{&dependents_, by_word},
          std::pair{&heads_, by_word}, std::pair{&second_order_, of_second_order}}) {
        lists->ptr.resize(static_cast<std::size_t>(n_lists + 1));
        lists->ptr[0] = 0;
        for (std::int64_t i = 0; i < n_lists; ++i) lists->ptr[i + 1] = lists->ptr[i] + *length++;
        lists->features.assign(feature, feature + lists->ptr.back());
        feature += lists->ptr.back();
    }
}

// Sentences with more features than 16 bits count are found anew each time.
void SentenceFeatures::keep(std::int64_t n) const {
    constexpr std::size_t most = std::size_t(1) << 16;
    if (arc_ids_.size() > most || label_ids_.size() > most) return;
    FeatureStore::Stored stored{arc_ids_, label_ids_, {}, {}};
    for (const Lists* lists : {&arcs_, &pairs_, &dependents_, &heads_, &second_order_}) {
        for (std::size_t i = 0; i + 1 < lists->ptr.size(); ++i)
            stored.lengths.push_back(static_cast<std::uint16_t>(lists->ptr[i + 1] - lists->ptr[i]));
        stored.features.insert(stored.features.end(), lists->features.begin(), lists->features.end());
    }
    stored.lengths.shrink_to_fit();
    stored.features.shrink_to_fit();
    store_.keep(n, std::move(stored));
}

void SentenceFeatures::list_features(const Treebank& treebank, std::int64_t n) {
    features_.load(treebank, n);
    for (Lists* lists : {&arcs_, &pairs_, &dependents_, &heads_, &second_order_}) lists->clear();
    const bool has_labels = layout_.n_label_features() > 0;
    for (std::int64_t i = 0; i <= n_; ++i)
        for (const Side side : {Side::left, Side::right}) {
            if (i > 0 && has_labels) features_.label_of_dependent(i, side, keys_);
            add_list(index_.labels, dependents_);
            if (has_labels) features_.label_of_head(i, side, keys_);
            add_list(index_.labels, heads_);
        }
    const auto add_arc = [&](std::int64_t h, std::int64_t m) {
        layout_.is_coarse() ? features_.coarse_arc(h, m, keys_) : features_.arc(h, m, keys_);
        add_list(index_.arcs, arcs_);
        if (has_labels) features_.label_of_arc(h, m, keys_);
        add_list(index_.labels, pairs_);
    };
    if (parts_) {
        check_interruption();
        for (const auto [h, m] : parts_->arcs()) add_arc(h, m);
        list_second_order();
        return;
    }
    for (std::int64_t h = 0; h <= n_; ++h) {
        check_interruption();
        for (std::int64_t m = 1; m <= n_; ++m)
            if (h != m) add_arc(h, m);
    }
}

void SentenceFeatures::list_second_order() {
    for (const SecondOrderPart& part : parts_->second_order()) {
        add_keys(features_, part, keys_);
        add_list(index_.arcs, second_order_);
    }
}

// Features among keys_ that the index knows become a list.
void SentenceFeatures::add_list(const KeyTable<std::int32_t>& index, Lists& lists) {
    index.each(keys_, [&](std::int32_t feature) { lists.features.push_back(feature); });
    lists.close();
}

// Replaces features by numbers in the order of their first appearance; ids[number] is the feature.
void SentenceFeatures::number(std::initializer_list<Lists*> all, std::vector<std::int32_t>& ids) {
    std::size_t n_entries = 0;
    for (const Lists* lists : all) n_entries += lists->features.size();
    int bits = 6;
    while ((std::size_t(1) << bits) < 2 * n_entries) ++bits;
    places_.assign(std::size_t(1) << bits, Place{-1, 0});
    ids.clear();
    for (Lists* lists : all)
        for (std::int32_t& feature : lists->features) {
            std::size_t at = (static_cast<std::uint32_t>(feature) * 2654435769u) >> (32 - bits);
            while (places_[at].id >= 0 && places_[at].id != feature) at = (at + 1) & (places_.size() - 1);
            if (places_[at].id < 0) {
                places_[at] = {feature, static_cast<std::int32_t>(ids.size())};
                ids.push_back(feature);
            }
            feature = places_[at].number;
        }
}

void SentenceFeatures::read(const double* w, double* weights) const {
    each_range(
        [&](std::int64_t begin, std::int64_t end) { weights = std::copy(w + begin, w + end, weights); });
}

void SentenceFeatures::add_weights(const Lists& lists, std::int64_t list, const double* weights,
                                   double* row) const {
    for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i) {
        const std::int32_t f = lists.features[i];
        const double* from = weights + first_[f];
        for (const std::int32_t r : layout_.labels_of(label_ids_[f])) row[r] += *from++;
    }
}

void SentenceFeatures::add_residuals(const Lists& lists, std::int64_t list, const double* row,
                                     double* gradient) const {
    for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i) {
        const std::int32_t f = lists.features[i];
        double* to = gradient + first_[f];
        for (const std::int32_t r : layout_.labels_of(label_ids_[f])) *to++ += row[r];
    }
}

void SentenceFeatures::score(const double* weights, double* scores) {
    const std::int64_t R = layout_.n_labels(), n_lists = 2 * side();
    by_dependent_.assign(n_lists * R, 0.0);
    by_head_.assign(n_lists * R, 0.0);
    for (std::int64_t list = 0; list < n_lists; ++list) {
        add_weights(dependents_, list, weights, by_dependent_.data() + list * R);
        add_weights(heads_, list, weights, by_head_.data() + list * R);
    }
    std::fill_n(scores, n_scores(), 0.0);
    std::int64_t list = 0;
    each_arc([&](std::int64_t arc, std::int64_t of_dependent, std::int64_t of_head) {
        double sum = 0;
        for (std::int64_t i = arcs_.ptr[list]; i < arcs_.ptr[list + 1]; ++i)
            sum += weights[arcs_.features[i]];
        const double *a = by_dependent_.data() + of_dependent * R, *b = by_head_.data() + of_head * R;
        double* row = scores + arc * R;
        for (std::int64_t r = 0; r < R; ++r) row[r] = sum + a[r] + b[r];
        add_weights(pairs_, list++, weights, row);
    });
    if (!vectors_.is_empty()) {
        vectors_.multiply(weights + first_vector_weight_);
        each_arc([&](std::int64_t arc, std::int64_t of_dependent, std::int64_t of_head) {
            vectors_.add(of_head / 2, of_dependent / 2, scores + arc * R);
        });
    }
    if (!parts_) return;
    double* score = scores + parts_->n_arcs() * R;
    for (std::size_t part = 0; part + 1 < second_order_.ptr.size(); ++part) {
        double sum = 0;
        for (std::int64_t i = second_order_.ptr[part]; i < second_order_.ptr[part + 1]; ++i)
            sum += weights[second_order_.features[i]];
        *score++ = sum;
    }
}

void SentenceFeatures::gradient(const double* residuals, double* gradient) {
    const std::int64_t R = layout_.n_labels(), n_lists = 2 * side();
    std::fill_n(gradient, n_weights_, 0.0);
    by_dependent_.assign(n_lists * R, 0.0);
    by_head_.assign(n_lists * R, 0.0);
    std::int64_t list = 0;
    each_arc([&](std::int64_t arc, std::int64_t of_dependent, std::int64_t of_head) {
        const double* row = residuals + arc * R;
        double *a = by_dependent_.data() + of_dependent * R, *b = by_head_.data() + of_head * R, sum = 0;
        for (std::int64_t r = 0; r < R; ++r) {
            sum += row[r];
            a[r] += row[r];
            b[r] += row[r];
        }
        for (std::int64_t i = arcs_.ptr[list]; i < arcs_.ptr[list + 1]; ++i)
            gradient[arcs_.features[i]] += sum;
        add_residuals(pairs_, list++, row, gradient);
    });
    if (parts_) {
        const double* residual = residuals + parts_->n_arcs() * R;
        for (std::size_t part = 0; part + 1 < second_order_.ptr.size(); ++part, ++residual)
            for (std::int64_t i = second_order_.ptr[part]; i < second_order_.ptr[part + 1]; ++i)
                gradient[second_order_.features[i]] += *residual;
    }
    for (std::int64_t i = 0; i < n_lists; ++i) {
        add_residuals(dependents_, i, by_dependent_.data() + i * R, gradient);
        add_residuals(heads_, i, by_head_.data() + i * R, gradient);
    }
    if (vectors_.is_empty()) return;
    vectors_.clear_residuals();
    each_arc([&](std::int64_t arc, std::int64_t of_dependent, std::int64_t of_head) {
        vectors_.add_residuals(of_head / 2, of_dependent / 2, residuals + arc * R);
    });
    vectors_.gradient(gradient + first_vector_weight_);
}

}  // namespace crfkit
