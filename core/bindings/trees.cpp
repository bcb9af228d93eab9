#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "trees/projective.hpp"
#include "trees/sample.hpp"
#include "trees/sibling_scores.hpp"
#include "trees/sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// The questions on spanning trees in the form of those on projective ones.
class SpanningTrees {
  public:
    static double log_partition(const TreeView& tree) { return tree_log_partition(tree); }
    static double marginals(const TreeView& tree, ProjectiveParts<double> marginals) {
        return tree_marginals(tree, marginals.arcs);
    }
    static void hessian_vector(const TreeView& tree, ProjectiveParts<const double> direction,
                               ProjectiveParts<double> hessian_vector) {
        tree_hessian_vector(tree, direction.arcs, hessian_vector.arcs);
    }
    static double entropy(const TreeView& tree) { return tree_entropy(tree); }
    static ScoredTree best(const TreeView& tree) { return best_tree(tree); }
    static std::vector<ScoredTree> k_best(const TreeView& tree, std::int64_t k) {
        return k_best_trees(tree, k);
    }
    static constexpr std::int64_t kUniforms = 2;
    static void sample(const TreeView& tree, std::int64_t n_samples, const double* uniforms,
                       std::int32_t* heads, std::int32_t* labels) {
        for (std::int64_t at = 0; at < n_samples * tree.n_words; at += tree.n_words)
            tree_sample(tree, uniforms + kUniforms * at, heads + at, labels + at);
    }
};

// Sentences one after the other with their scores [Σ (n + 1)² R], n = lengths[i], and of projective trees
// perhaps with scores of siblings [Σ (n + 1)³], which are checked before a sentence is answered: that takes a
// pass over them that is needed anyway. `Trees` answers.
template <class Trees>
class ScoredTrees {
  public:
    ScoredTrees(Array<double> scores, const Array<std::int64_t>& lengths, std::int64_t n_labels,
                bool one_root, int n_threads, Maybe<double> siblings)
        : scores_(std::move(scores)),
          siblings_(std::move(siblings)),
          n_labels_(n_labels),
          one_root_(one_root),
          n_threads_(n_threads) {
        if (n_labels < 1) throw std::invalid_argument("there must be at least one label");
        constexpr std::int64_t most = std::int64_t(1) << 20;
        for (const std::int64_t n : view(lengths)) {
            if (n < 0 || n > most) throw std::invalid_argument("a length is out of range");
            begins_.push_back(begins_.back() + (n + 1) * (n + 1) * n_labels);
            sibling_begins_.push_back(sibling_begins_.back() + (n + 1) * (n + 1) * (n + 1));
            words_.push_back(words_.back() + n);
        }
        if (begins_.back() != static_cast<std::int64_t>(scores_.size()))
            throw std::invalid_argument("the scores must have (n + 1)² R numbers for each sentence");
        if (siblings_ && sibling_begins_.back() != static_cast<std::int64_t>(siblings_->size()))
            throw std::invalid_argument(
                "the scores of siblings must have (n + 1)³ numbers for each sentence");
    }

    nb::object log_partition() const {
        NewArray<double> out({size()});
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            out.data()[i] = trees.log_partition(tree);
        });
        return out.take();
    }

    // log Z [N], and the marginals in the shapes of the scores; None where there are no siblings.
    nb::tuple marginals() const {
        NewArray<double> log_z({size()});
        NewParts out(*this);
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            log_z.data()[i] = trees.marginals(tree, out.at(i));
        });
        return nb::make_tuple(log_z.take(), out.arcs.take(), out.take_siblings());
    }

    nb::tuple hessian_vector(const Array<double>& direction, const Maybe<double>& siblings) const {
        check_size("direction", direction.size(), begins_.back());
        if (siblings.has_value() != siblings_.has_value())
            throw std::invalid_argument("the direction must have siblings where the scores have");
        if (siblings) check_size("siblings", siblings->size(), sibling_begins_.back());
        NewParts out(*this);
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            const double* of_siblings = siblings ? siblings->data() + sibling_begins_[i] : nullptr;
            trees.hessian_vector(tree, {direction.data() + begins_[i], of_siblings}, out.at(i));
        });
        return nb::make_tuple(out.arcs.take(), out.take_siblings());
    }

    nb::object entropy() const {
        NewArray<double> out({size()});
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            out.data()[i] = trees.entropy(tree);
        });
        return out.take();
    }

    // Scores [N], heads and labels [Σ n].
    nb::tuple decode() const {
        const auto n_words = static_cast<std::size_t>(words_.back());
        NewArray<double> found({size()});
        NewArray<std::int32_t> heads({n_words}), labels({n_words});
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            const ScoredTree best = trees.best(tree);
            found.data()[i] = best.score;
            std::copy(best.heads.begin(), best.heads.end(), heads.data() + words_[i]);
            std::copy(best.labels.begin(), best.labels.end(), labels.data() + words_[i]);
        });
        return nb::make_tuple(found.take(), heads.take(), labels.take());
    }

    nb::list k_best(std::int64_t k) const {
        std::vector<std::vector<ScoredTree>> found(size());
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            found[i] = trees.k_best(tree, k);
        });
        return as_list(found);
    }

    // n trees of each sentence: heads and labels [Σ n · words], from uniforms [Σ n · words · n_uniforms].
    nb::tuple sample(std::int64_t n, const Array<double>& uniforms) const {
        const std::int64_t n_heads = n * words_.back();
        if (n < 0 || static_cast<std::int64_t>(uniforms.size()) != Trees::kUniforms * n_heads)
            throw std::invalid_argument(
                "there must be n_uniforms uniform numbers for each word of each sample");
        NewArray<std::int32_t> heads({static_cast<std::size_t>(n_heads)}),
            labels({static_cast<std::size_t>(n_heads)});
        each([&](Trees& trees, std::int64_t i, const ProjectiveView& tree) {
            const std::int64_t at = n * words_[i];
            trees.sample(tree, n, uniforms.data() + Trees::kUniforms * at, heads.data() + at,
                         labels.data() + at);
        });
        return nb::make_tuple(heads.take(), labels.take());
    }

  private:
    std::size_t size() const { return words_.size() - 1; }

    // New arrays in the shapes of the scores of all sentences.
    struct NewParts {
        explicit NewParts(const ScoredTrees& scored)
            : arcs({scored.scores_.size()}),
              siblings({scored.siblings_ ? scored.siblings_->size() : 0}),
              scored_(scored) {}
        ProjectiveParts<double> at(std::int64_t i) {
            constexpr std::int64_t large = std::int64_t(1) << 20;  // 8 MiB: a share of the outermost cache
            if (!scored_.siblings_) return {arcs.data() + scored_.begins_[i], nullptr};
            return {arcs.data() + scored_.begins_[i], siblings.data() + scored_.sibling_begins_[i],
                    scored_.sibling_begins_.back() >= large};
        }
        nb::object take_siblings() { return scored_.siblings_ ? siblings.take() : nb::none(); }

        NewArray<double> arcs, siblings;
        const ScoredTrees& scored_;
    };

    // Runs task(trees, i, tree) for every sentence; names the one that has no tree where there are several.
    template <class Task>
    void each(const Task& task) const {
        const LockRelease release;
        // parallel_for has no more workers than tasks
        const auto most = static_cast<std::int64_t>(size());
        std::vector<Trees> workers(static_cast<std::size_t>(
            std::clamp<std::int64_t>(n_threads_, 1, std::max<std::int64_t>(most, 1))));
        parallel_for(static_cast<std::int64_t>(size()), n_threads_, [&](std::int64_t i, int worker) {
            try {
                const std::int64_t n_words = words_[i + 1] - words_[i];
                const double* siblings = siblings_ ? siblings_->data() + sibling_begins_[i] : nullptr;
                if (siblings) refuse_unusable_siblings(siblings, n_words);
                task(workers[worker], i,
                     ProjectiveView{{n_words, n_labels_, scores_.data() + begins_[i], one_root_}, siblings});
            } catch (const NoTree& error) {
                if (size() == 1) throw;
                throw NoTree("sentence " + std::to_string(i) + ": " + error.what());
            } catch (const UnusableScore& error) {
                throw UnusableScore("Scores of siblings, sentence " + std::to_string(i) + ": " +
                                    error.what());
            }
        });
    }

    Array<double> scores_;
    Maybe<double> siblings_;
    std::int64_t n_labels_;
    bool one_root_;
    int n_threads_;
    std::vector<std::int64_t> begins_{0}, sibling_begins_{0}, words_{0};  // [N + 1]
};

template <class Trees>
void bind_scored_trees(nb::module_& m, const char* name) {
    using Scored = ScoredTrees<Trees>;
    nb::class_<Scored>(m, name)
        .def(nb::init<Array<double>, const Array<std::int64_t>&, std::int64_t, bool, int, Maybe<double>>(),
             "scores"_a, "lengths"_a, "n_labels"_a, "one_root"_a, "n_threads"_a, "siblings"_a = nb::none())
        .def_prop_ro_static("n_uniforms", [](nb::handle) { return Trees::kUniforms; })
        .def("log_partition", &Scored::log_partition)
        .def("marginals", &Scored::marginals)
        .def("hessian_vector", &Scored::hessian_vector, "direction"_a, "siblings"_a = nb::none())
        .def("entropy", &Scored::entropy)
        .def("decode", &Scored::decode)
        .def("k_best", &Scored::k_best, "k"_a)
        .def("sample", &Scored::sample, "n"_a, "uniforms"_a);
}

void raise(const char* type, const std::exception& error) {
    PyErr_SetString(nb::object(nb::module_::import_("crfkit.errors").attr(type)).ptr(), error.what());
}

// NoTree as crfkit.errors.NoOutputError, UnusableScore as ArgumentError.
void bind_errors() {
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const NoTree& error) {
            raise("NoOutputError", error);
        } catch (const UnusableScore& error) {
            raise("ArgumentError", error);
        }
    });
}

}  // namespace

void bind_trees(nb::module_& m) {
    bind_errors();
    bind_scored_trees<SpanningTrees>(m, "ScoredTrees");
    bind_scored_trees<ProjectiveTrees>(m, "ScoredProjectiveTrees");
    bind_scored_trees<ProjectiveEngine>(m, "ProjectiveTreesByEngine");
}

}  // namespace crfkit
