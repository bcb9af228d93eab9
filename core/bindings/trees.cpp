#include <nanobind/nanobind.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "trees/k_best.hpp"
#include "trees/sample.hpp"
#include "trees/sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// Sentences one after the other: scores [Σ (n + 1)² R], n = lengths[i].
class Sentences {
  public:
    Sentences(const Array<double>& scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
              bool one_root)
        : n_labels_(n_labels), one_root_(one_root), scores_(scores.data()), begins_{0}, words_{0} {
        if (n_labels < 1) throw std::invalid_argument("there must be at least one label");
        constexpr std::int64_t most = std::int64_t(1) << 20;
        for (const std::int64_t n : view(lengths)) {
            if (n < 0 || n > most) throw std::invalid_argument("a length is out of range");
            begins_.push_back(begins_.back() + (n + 1) * (n + 1) * n_labels);
            words_.push_back(words_.back() + n);
        }
        if (begins_.back() != static_cast<std::int64_t>(scores.size()))
            throw std::invalid_argument("the scores must have (n + 1)² R numbers for each sentence");
    }

    std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
    std::int64_t n_words() const { return words_.back(); }
    std::int64_t n_scores() const { return begins_.back(); }
    std::int64_t first_score(std::int64_t i) const { return begins_[i]; }
    std::int64_t first_word(std::int64_t i) const { return words_[i]; }
    TreeView operator[](std::int64_t i) const {
        return {words_[i + 1] - words_[i], n_labels_, scores_ + begins_[i], one_root_};
    }

    // Runs task(i) for every sentence; says which one it is that has no tree where there are several.
    template <class Task>
    void each(int n_threads, Task task) const {
        const LockRelease release;
        parallel_for(size(), n_threads, [&](std::int64_t i, int) {
            try {
                task(i);
            } catch (const NoTree& error) {
                if (size() == 1) throw;
                throw NoTree("sentence " + std::to_string(i) + ": " + error.what());
            }
        });
    }

  private:
    std::int64_t n_labels_;
    bool one_root_;
    const double* scores_;
    std::vector<std::int64_t> begins_, words_;  // [N + 1]
};

// −inf where no tree exists.
nb::object log_partition(const Array<double>& scores, const Array<std::int64_t>& lengths,
                         std::int64_t n_labels, bool one_root, int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    NewArray<double> out({static_cast<std::size_t>(sentences.size())});
    sentences.each(n_threads, [&](std::int64_t i) {
        try {
            out.data()[i] = tree_log_partition(sentences[i]);
        } catch (const NoTree&) {
            out.data()[i] = kNever;
        }
    });
    return out.take();
}

nb::tuple marginals(const Array<double>& scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
                    bool one_root, int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    NewArray<double> log_z({static_cast<std::size_t>(sentences.size())});
    NewArray<double> out({static_cast<std::size_t>(sentences.n_scores())});
    sentences.each(n_threads, [&](std::int64_t i) {
        log_z.data()[i] = tree_marginals(sentences[i], out.data() + sentences.first_score(i));
    });
    return nb::make_tuple(log_z.take(), out.take());
}

nb::object hessian_vector(const Array<double>& scores, const Array<double>& direction,
                          const Array<std::int64_t>& lengths, std::int64_t n_labels, bool one_root,
                          int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    if (direction.size() != scores.size())
        throw std::invalid_argument("the direction must have the shape of the scores");
    NewArray<double> out({static_cast<std::size_t>(sentences.n_scores())});
    sentences.each(n_threads, [&](std::int64_t i) {
        const std::int64_t at = sentences.first_score(i);
        tree_hessian_vector(sentences[i], direction.data() + at, out.data() + at);
    });
    return out.take();
}

nb::object entropy(const Array<double>& scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
                   bool one_root, int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    NewArray<double> out({static_cast<std::size_t>(sentences.size())});
    sentences.each(n_threads, [&](std::int64_t i) { out.data()[i] = tree_entropy(sentences[i]); });
    return out.take();
}

nb::tuple best(const Array<double>& scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
               bool one_root, int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    const auto n_words = static_cast<std::size_t>(sentences.n_words());
    NewArray<double> found({static_cast<std::size_t>(sentences.size())});
    NewArray<std::int32_t> heads({n_words}), labels({n_words});
    sentences.each(n_threads, [&](std::int64_t i) {
        const ScoredTree tree = best_tree(sentences[i]);
        found.data()[i] = tree.score;
        std::copy(tree.heads.begin(), tree.heads.end(), heads.data() + sentences.first_word(i));
        std::copy(tree.labels.begin(), tree.labels.end(), labels.data() + sentences.first_word(i));
    });
    return nb::make_tuple(found.take(), heads.take(), labels.take());
}

// [(score, heads [n], labels [n]), …] for each sentence.
nb::list k_best(const Array<double>& scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
                bool one_root, std::int64_t k, int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    std::vector<std::vector<ScoredTree>> found(sentences.size());
    sentences.each(n_threads, [&](std::int64_t i) { found[i] = k_best_trees(sentences[i], k); });
    nb::list out;
    for (const auto& trees : found) {
        nb::list of_sentence;
        for (const ScoredTree& tree : trees) {
            NewArray<std::int32_t> heads({tree.heads.size()}), labels({tree.labels.size()});
            std::copy(tree.heads.begin(), tree.heads.end(), heads.data());
            std::copy(tree.labels.begin(), tree.labels.end(), labels.data());
            of_sentence.append(nb::make_tuple(tree.score, heads.take(), labels.take()));
        }
        out.append(of_sentence);
    }
    return out;
}

// n_samples trees of each sentence: heads and labels [Σ n_samples · n], from uniforms [Σ n_samples · 2 n].
nb::tuple sample(const Array<double>& scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
                 bool one_root, std::int64_t n_samples, const Array<double>& uniforms, int n_threads) {
    const Sentences sentences(scores, lengths, n_labels, one_root);
    const std::int64_t n_heads = n_samples * sentences.n_words();
    if (n_samples < 0 || static_cast<std::int64_t>(uniforms.size()) != 2 * n_heads)
        throw std::invalid_argument("there must be two uniform numbers for each word of each sample");
    NewArray<std::int32_t> heads({static_cast<std::size_t>(n_heads)}),
        labels({static_cast<std::size_t>(n_heads)});
    sentences.each(n_threads, [&](std::int64_t i) {
        const TreeView tree = sentences[i];
        for (std::int64_t s = 0; s < n_samples; ++s) {
            const std::int64_t at = n_samples * sentences.first_word(i) + s * tree.n_words;
            tree_sample(tree, uniforms.data() + 2 * at, heads.data() + at, labels.data() + at);
        }
    });
    return nb::make_tuple(heads.take(), labels.take());
}

}  // namespace

void bind_trees(nb::module_& m) {
    m.def("tree_log_partition", &log_partition, "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a,
          "n_threads"_a);
    m.def("tree_marginals", &marginals, "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a, "n_threads"_a);
    m.def("tree_hessian_vector", &hessian_vector, "scores"_a, "direction"_a, "lengths"_a, "n_labels"_a,
          "one_root"_a, "n_threads"_a);
    m.def("tree_entropy", &entropy, "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a, "n_threads"_a);
    m.def("tree_best", &best, "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a, "n_threads"_a);
    m.def("tree_k_best", &k_best, "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a, "k"_a, "n_threads"_a);
    m.def("tree_sample", &sample, "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a, "n_samples"_a,
          "uniforms"_a, "n_threads"_a);
}

}  // namespace crfkit
