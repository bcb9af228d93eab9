#include <nanobind/nanobind.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "trees/sample.hpp"
#include "trees/sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// Sentences one after the other with their scores [Σ (n + 1)² R], n = lengths[i].
class ScoredTrees {
  public:
    ScoredTrees(Array<double> scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
                bool one_root, int n_threads)
        : scores_(std::move(scores)), n_labels_(n_labels), one_root_(one_root), n_threads_(n_threads) {
        if (n_labels < 1) throw std::invalid_argument("there must be at least one label");
        constexpr std::int64_t most = std::int64_t(1) << 20;
        for (const std::int64_t n : view(lengths)) {
            if (n < 0 || n > most) throw std::invalid_argument("a length is out of range");
            begins_.push_back(begins_.back() + (n + 1) * (n + 1) * n_labels);
            words_.push_back(words_.back() + n);
        }
        if (begins_.back() != static_cast<std::int64_t>(scores_.size()))
            throw std::invalid_argument("the scores must have (n + 1)² R numbers for each sentence");
    }

    nb::object log_partition() const {
        NewArray<double> out({size()});
        each([&](std::int64_t i, const TreeView& tree) { out.data()[i] = tree_log_partition(tree); });
        return out.take();
    }

    // log Z [N], and the marginals in the shape of the scores.
    nb::tuple marginals() const {
        NewArray<double> log_z({size()}), out({scores_.size()});
        each([&](std::int64_t i, const TreeView& tree) {
            log_z.data()[i] = tree_marginals(tree, out.data() + begins_[i]);
        });
        return nb::make_tuple(log_z.take(), out.take());
    }

    nb::object hessian_vector(const Array<double>& direction) const {
        check_size("direction", direction.size(), begins_.back());
        NewArray<double> out({scores_.size()});
        each([&](std::int64_t i, const TreeView& tree) {
            tree_hessian_vector(tree, direction.data() + begins_[i], out.data() + begins_[i]);
        });
        return out.take();
    }

    nb::object entropy() const {
        NewArray<double> out({size()});
        each([&](std::int64_t i, const TreeView& tree) { out.data()[i] = tree_entropy(tree); });
        return out.take();
    }

    // Scores [N], heads and labels [Σ n].
    nb::tuple decode() const {
        const auto n_words = static_cast<std::size_t>(words_.back());
        NewArray<double> found({size()});
        NewArray<std::int32_t> heads({n_words}), labels({n_words});
        each([&](std::int64_t i, const TreeView& tree) {
            const ScoredTree best = best_tree(tree);
            found.data()[i] = best.score;
            std::copy(best.heads.begin(), best.heads.end(), heads.data() + words_[i]);
            std::copy(best.labels.begin(), best.labels.end(), labels.data() + words_[i]);
        });
        return nb::make_tuple(found.take(), heads.take(), labels.take());
    }

    nb::list k_best(std::int64_t k) const {
        std::vector<std::vector<ScoredTree>> found(size());
        each([&](std::int64_t i, const TreeView& tree) { found[i] = k_best_trees(tree, k); });
        return as_list(found);
    }

    // n trees of each sentence: heads and labels [Σ n · words], from uniforms [Σ 2 n · words].
    nb::tuple sample(std::int64_t n, const Array<double>& uniforms) const {
        const std::int64_t n_heads = n * words_.back();
        if (n < 0 || static_cast<std::int64_t>(uniforms.size()) != 2 * n_heads)
            throw std::invalid_argument("there must be two uniform numbers for each word of each sample");
        NewArray<std::int32_t> heads({static_cast<std::size_t>(n_heads)}),
            labels({static_cast<std::size_t>(n_heads)});
        each([&](std::int64_t i, const TreeView& tree) {
            for (std::int64_t s = 0; s < n; ++s) {
                const std::int64_t at = n * words_[i] + s * tree.n_words;
                tree_sample(tree, uniforms.data() + 2 * at, heads.data() + at, labels.data() + at);
            }
        });
        return nb::make_tuple(heads.take(), labels.take());
    }

  private:
    std::size_t size() const { return words_.size() - 1; }

    // Runs task(i, tree) for every sentence; names the one that has no tree where there are several.
    template <class Task>
    void each(const Task& task) const {
        const LockRelease release;
        parallel_for(static_cast<std::int64_t>(size()), n_threads_, [&](std::int64_t i, int) {
            try {
                task(i,
                     TreeView{words_[i + 1] - words_[i], n_labels_, scores_.data() + begins_[i], one_root_});
            } catch (const NoTree& error) {
                if (size() == 1) throw;
                throw NoTree("sentence " + std::to_string(i) + ": " + error.what());
            }
        });
    }

    Array<double> scores_;
    std::int64_t n_labels_;
    bool one_root_;
    int n_threads_;
    std::vector<std::int64_t> begins_{0}, words_{0};  // [N + 1]
};

}  // namespace

void bind_trees(nb::module_& m) {
    nb::class_<ScoredTrees>(m, "ScoredTrees")
        .def(nb::init<Array<double>, const Array<std::int64_t>&, std::int64_t, bool, int>(), "scores"_a,
             "lengths"_a, "n_labels"_a, "one_root"_a, "n_threads"_a)
        .def("log_partition", &ScoredTrees::log_partition)
        .def("marginals", &ScoredTrees::marginals)
        .def("hessian_vector", &ScoredTrees::hessian_vector, "direction"_a)
        .def("entropy", &ScoredTrees::entropy)
        .def("decode", &ScoredTrees::decode)
        .def("k_best", &ScoredTrees::k_best, "k"_a)
        .def("sample", &ScoredTrees::sample, "n"_a, "uniforms"_a);
}

}  // namespace crfkit
