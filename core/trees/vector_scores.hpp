// What the word vectors of one sentence add to the scores of its arcs.
//
// A block of weights meets few words of a sentence, and these in many arcs: each product w · v is computed
// once, and arcs add it up.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "trees/arc_layout.hpp"

namespace crfkit {

class VectorScores {
  public:
    explicit VectorScores(const ArcLayout& layout)
        : layout_(layout.vectors), n_labels_(layout.n_labels()), first_(layout.first_vector_weight()) {}

    bool is_empty() const { return layout_.size == 0; }
    // Goes to a sentence. Throws std::invalid_argument unless its vectors have the size of the layout's.
    void load(const Treebank& treebank, std::int64_t n);

    // The weights of the blocks that its arcs may have, one block after the other.
    std::int64_t n_weights() const { return n_weights_; }
    // Calls function(begin, end) for the places of these in w [D].
    template <class Function>
    void each_range(const Function& function) const {
        for (const std::int32_t b : blocks_)
            function(first_ + layout_.size * layout_.ptr[b], first_ + layout_.size * layout_.ptr[b + 1]);
    }
    // Products of all vectors with weights: [n_weights()] as each_range has them, or those of all blocks.
    void multiply(const double* weights) { multiply(weights, own_first_.data()); }
    void multiply_all(const double* weights);
    // row [R] += the scores of the labels of an arc.
    void add(std::int64_t head, std::int64_t dependent, double* row) const;

    // gradient [n_weights()] = Φᵀ residuals: clear, then the residuals [R] of each arc, then the sum.
    void clear_residuals() { sums_.assign(products_size_, 0.0); }
    void add_residuals(std::int64_t head, std::int64_t dependent, const double* row);
    void gradient(double* gradient) const;

    // Calls function(weight, value) for the weights that score an arc with a label, as places in w [D].
    template <class Function>
    void each_weight(std::int64_t head, std::int64_t dependent, std::int32_t label,
                     const Function& function) const {
        each_cell(head, dependent, [&](const VectorTemplate&, const Cell& cell, std::int64_t word) {
            for (std::int64_t row = layout_.ptr[cell.block]; row < layout_.ptr[cell.block + 1]; ++row)
                if (layout_.labels[row] == label || layout_.labels[row] == n_labels_)
                    for (std::int64_t k = 0; k < layout_.size; ++k)
                        function(first_ + row * layout_.size + k, vectors_[word][k]);
        });
    }
    // Calls function(number of the template, label, product) for the products of an arc; label R: of all
    // alike.
    template <class Function>
    void each_product(std::int64_t head, std::int64_t dependent, const Function& function) const {
        each_cell(head, dependent, [&](const VectorTemplate& pattern, const Cell& cell, std::int64_t word) {
            const double* product = products_.data() + bases_[word] + cell.place;
            for (std::int64_t row = layout_.ptr[cell.block]; row < layout_.ptr[cell.block + 1]; ++row)
                function(static_cast<std::int64_t>(pattern.number), layout_.labels[row], *product++);
        });
    }

  private:
    // A block, and where its products begin among those of a word.
    struct Cell {
        std::int32_t block, place;
    };
    // What words with one tag meet: cells by template, side and tag of the other word.
    struct OwnTag {
        std::vector<Cell> cells;    // [templates, 2, tags], block −1: none
        std::vector<Cell> present;  // those that are there
        std::int64_t n_products = 0;
    };

    void number_tags(const Treebank& treebank, std::int64_t n);
    void find_blocks(Key own, OwnTag& found);
    void multiply(const double* weights, const std::int64_t* first);
    std::size_t cell_of(std::size_t t, Side side, std::int32_t other) const {
        return (2 * t + static_cast<std::size_t>(side)) * tags_.size() + static_cast<std::size_t>(other);
    }
    // function(template, cell, word whose vector it is) for the blocks of an arc that have weights.
    template <class Function>
    void each_cell(std::int64_t head, std::int64_t dependent, const Function& function) const {
        const Side side = side_of(head, dependent);
        for (std::size_t t = 0; t < kVectorTemplates.size(); ++t) {
            const std::int64_t word = kVectorTemplates[t].of_head ? head : dependent,
                               other = kVectorTemplates[t].of_head ? dependent : head;
            if (!vectors_[word] || tag_[other] < 0) continue;
            const Cell& cell = own_tags_[tag_[word]].cells[cell_of(t, side, tag_[other])];
            if (cell.block >= 0) function(kVectorTemplates[t], cell, word);
        }
    }

    // Tags that a sentence has beyond these have no blocks.
    static constexpr std::size_t kMostTags = 64;

    const VectorLayout& layout_;
    const std::int32_t n_labels_;
    const std::int64_t first_;
    std::int64_t n_ = 0, n_weights_ = 0, products_size_ = 0;
    std::vector<Key> tags_;                // of the sentence, that of the root first
    std::vector<std::int32_t> tag_;        // [n + 1] number of each word's, −1: it is beyond the last
    std::vector<const double*> vectors_;   // [n + 1] null: none
    std::vector<OwnTag> own_tags_;         // [tags]
    std::vector<std::int64_t> bases_;      // [n + 1] where the products of a word begin
    std::vector<std::int32_t> blocks_;     // of the sentence, ascending
    std::vector<std::int64_t> own_first_;  // [blocks of the layout] where weights begin among n_weights()
    std::vector<std::int64_t> all_first_;  // the same among those of all blocks
    Buffer<double> products_, sums_;
};

}  // namespace crfkit
