#include "trees/vector_scores.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/tree_rows.hpp"

namespace crfkit {

void VectorScores::load(const Treebank& treebank, std::int64_t n) {
    if (treebank.vector_size != layout_.size)
        throw std::invalid_argument("word vectors have " + std::to_string(treebank.vector_size) +
                                    " numbers, expected " + std::to_string(layout_.size));
    number_tags(treebank, n);
    own_tags_.resize(tags_.size());
    own_first_.assign(static_cast<std::size_t>(layout_.n_blocks()), -1);
    for (std::size_t a = 0; a < tags_.size(); ++a) find_blocks(tags_[a], own_tags_[a]);
    blocks_.clear();
    n_weights_ = 0;
    for (std::int32_t b = 0; b < layout_.n_blocks(); ++b)
        if (own_first_[b] >= 0) {
            blocks_.push_back(b);
            own_first_[b] = n_weights_;
            n_weights_ += layout_.size * layout_.n_rows(b);
        }
    products_size_ = 0;
    bases_.assign(static_cast<std::size_t>(n_ + 1), 0);
    for (std::int64_t i = 0; i <= n_; ++i)
        if (vectors_[i]) {
            bases_[i] = products_size_;
            products_size_ += own_tags_[tag_[i]].n_products;
        }
}

void VectorScores::number_tags(const Treebank& treebank, std::int64_t n) {
    const std::int64_t first = treebank.sentence_ptr[n] - 1;  // of the root
    n_ = treebank.length(n);
    tags_.assign(1, kRootTag);
    tag_.assign(static_cast<std::size_t>(n_ + 1), 0);
    vectors_.assign(static_cast<std::size_t>(n_ + 1), nullptr);
    for (std::int64_t i = 1; i <= n_; ++i) {
        const Key tag = treebank.words[first + i].upos;
        const auto found = std::find(tags_.begin(), tags_.end(), tag);
        tag_[i] = found == tags_.end() && tags_.size() == kMostTags
                      ? -1
                      : static_cast<std::int32_t>(found - tags_.begin());
        if (tag_[i] < 0) continue;
        if (found == tags_.end()) tags_.push_back(tag);
        vectors_[i] = treebank.vector(first + i);
    }
}

// The blocks that words with this tag meet in arcs of the sentence; own_first_ is set to 0 for each.
void VectorScores::find_blocks(Key own, OwnTag& found) {
    found.cells.assign(kVectorTemplates.size() * 2 * tags_.size(), Cell{-1, 0});
    found.present.clear();
    found.n_products = 0;
    for (std::size_t t = 0; t < kVectorTemplates.size(); ++t)
        for (const Side side : {Side::left, Side::right})
            for (std::size_t other = 0; other < tags_.size(); ++other) {
                const VectorTemplate& pattern = kVectorTemplates[t];
                const ArcTags tags =
                    pattern.of_head ? ArcTags{own, tags_[other]} : ArcTags{tags_[other], own};
                Cell& cell = found.cells[cell_of(t, side, static_cast<std::int32_t>(other))];
                cell.block = layout_.find(block_key(pattern, side, tags));
                if (cell.block < 0) continue;
                cell.place = static_cast<std::int32_t>(found.n_products);
                found.present.push_back(cell);
                found.n_products += layout_.n_rows(cell.block);
                own_first_[cell.block] = 0;
            }
}

void VectorScores::multiply(const double* weights, const std::int64_t* first) {
    const std::int64_t K = layout_.size;
    products_.resize(products_size_);
    for (std::int64_t i = 1; i <= n_; ++i) {
        if (!vectors_[i]) continue;
        for (const Cell& cell : own_tags_[tag_[i]].present)
            tree_kernels().multiply(weights + first[cell.block], K, layout_.n_rows(cell.block), vectors_[i],
                                    K, products_.data() + bases_[i] + cell.place);
    }
}

void VectorScores::multiply_all(const double* weights) {
    if (all_first_.empty())
        for (std::int64_t b = 0; b < layout_.n_blocks(); ++b)
            all_first_.push_back(layout_.size * layout_.ptr[b]);
    multiply(weights, all_first_.data());
}

void VectorScores::add(std::int64_t head, std::int64_t dependent, double* row) const {
    each_product(head, dependent, [&](std::int64_t, std::int32_t label, double product) {
        if (label < n_labels_)
            row[label] += product;
        else
            for (std::int32_t r = 0; r < n_labels_; ++r) row[r] += product;
    });
}

void VectorScores::add_residuals(std::int64_t head, std::int64_t dependent, const double* row) {
    double all = 0;
    for (std::int32_t r = 0; r < n_labels_; ++r) all += row[r];
    each_cell(head, dependent, [&](const VectorTemplate&, const Cell& cell, std::int64_t word) {
        double* sum = sums_.data() + bases_[word] + cell.place;
        for (std::int64_t i = layout_.ptr[cell.block]; i < layout_.ptr[cell.block + 1]; ++i)
            *sum++ += layout_.labels[i] < n_labels_ ? row[layout_.labels[i]] : all;
    });
}

void VectorScores::gradient(double* gradient) const {
    const std::int64_t K = layout_.size;
    std::fill_n(gradient, n_weights_, 0.0);
    for (std::int64_t i = 1; i <= n_; ++i) {
        if (!vectors_[i]) continue;
        for (const Cell& cell : own_tags_[tag_[i]].present)
            tree_kernels().add(gradient + own_first_[cell.block], K, layout_.n_rows(cell.block),
                               sums_.data() + bases_[i] + cell.place, vectors_[i], K);
    }
}

}  // namespace crfkit
