// The questions on the outputs of one structure at its scores, bound once for all graphs of the path engine.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/lock_release.hpp"
#include "paths/label_sequences.hpp"

namespace crfkit {

using Shapes = std::vector<std::vector<std::size_t>>;
using PartNumbers = std::vector<double*>;  // numbers of the parts of a structure, in the shapes that it tells

// `Scores` are the scores of a structure:
//   kOutput           what an output is called
//   graph()           the graph with these scores; empty(): it has no position, and one output of score 0
//   shapes()          the shapes of the numbers of its parts
//   fits(direction)   whether a direction is about the same graph
//   log_partition(in_log_space), marginals(in_log_space, parts),
//   hessian_vector(direction, in_log_space, parts)
template <class Scores>
void check_possible(double log_partition) {
    if (!(log_partition > kAbsent))
        throw std::invalid_argument(std::string("no ") + Scores::kOutput +
                                    " is possible: every one has a part with score −inf");
}

// The last three by the path engine, for scores with collect(numbers of nodes, numbers of arcs, parts).
template <class Scores>
class EngineSums {
  public:
    double log_partition(bool in_log_space) const {
        return PathEngine().log_partition(self().graph(), in_log_space);
    }
    void marginals(bool in_log_space, const PartNumbers& parts) const {
        PathEngine engine;
        check_possible<Scores>(engine.marginals(self().graph(), in_log_space));
        self().collect(engine.node_probs, engine.arc_probs, parts);
    }
    void hessian_vector(const Scores& direction, bool in_log_space, const PartNumbers& parts) const {
        PathEngine engine;
        check_possible<Scores>(engine.marginals(self().graph(), in_log_space));
        engine.hessian_vector(self().graph(), direction.graph());
        self().collect(engine.node_changes, engine.arc_changes, parts);
    }

  private:
    const Scores& self() const { return static_cast<const Scores&>(*this); }
};

// A new array for each kind of part, which fill(parts) fills without the interpreter's lock.
template <class Scores, class Fill>
nanobind::tuple filled_parts(const Scores& scores, const Fill& fill) {
    std::vector<NewArray<double>> arrays;
    PartNumbers parts;
    for (const auto& shape : scores.shapes()) parts.push_back(arrays.emplace_back(shape).data());
    if (scores.empty()) {
        for (NewArray<double>& array : arrays) array.fill(0);
    } else {
        const LockRelease release;
        fill(parts);
    }
    nanobind::list out;
    for (NewArray<double>& array : arrays) out.append(array.take());
    return nanobind::tuple(out);
}

template <class Scores>
double entropy_of(const Scores& scores, bool in_log_space) {
    const LockRelease release;
    if (scores.empty()) return 0.0;
    PathEngine engine;
    check_possible<Scores>(engine.marginals(scores.graph(), in_log_space));
    return engine.entropy(scores.graph());
}

// (score, output)
template <class Scores>
nanobind::tuple decode_of(const Scores& scores) {
    ScoredLabels found{0, {}};
    if (!scores.empty()) {
        const LockRelease release;
        std::vector<double> best;
        found.labels.assign(static_cast<std::size_t>(output_size(scores.graph())), -1);
        found.score = decode(scores.graph(), best, found.labels.data());
        check_possible<Scores>(found.score);
    }
    return nanobind::make_tuple(found.score, new_array(found.labels));
}

template <class Scores>
nanobind::list k_best_of(const Scores& scores, std::int64_t k) {
    if (!scores.empty()) return as_list(unlocked([&] { return k_best(scores.graph(), k); }));
    return as_list(std::vector<ScoredLabels>(k > 0 ? 1 : 0));
}

template <class Scores>
std::size_t n_uniforms(const Scores& scores) {
    return scores.empty() ? 0 : PathEngine::n_uniforms(scores.graph());
}

template <class Scores>
nanobind::object sample_of(const Scores& scores, const Matrix<double>& uniforms) {
    if (uniforms.shape(1) != n_uniforms(scores))
        throw std::invalid_argument("expected uniforms of the shape [n, n_uniforms]");
    const std::size_t n = uniforms.shape(0);
    NewArray<std::int32_t> out(
        {n, scores.empty() ? 0 : static_cast<std::size_t>(output_size(scores.graph()))});
    out.fill(-1);
    if (!scores.empty()) {
        const LockRelease release;
        PathEngine engine;
        check_possible<Scores>(engine.log_partition(scores.graph()));
        sample(scores.graph(), engine, static_cast<std::int64_t>(n), uniforms.data(), out.data());
    }
    return out.take();
}

template <class Scores>
void bind_path_questions(nanobind::class_<Scores>& scores) {
    using namespace nanobind::literals;
    const auto slow = "in_log_space"_a = false;
    scores
        .def(
            "log_partition",
            [](const Scores& self, bool in_log_space) {
                const LockRelease release;
                return self.empty() ? 0.0 : self.log_partition(in_log_space);
            },
            slow)
        .def(
            "marginals",
            [](const Scores& self, bool in_log_space) {
                return filled_parts(self,
                                    [&](const PartNumbers& parts) { self.marginals(in_log_space, parts); });
            },
            slow)
        .def(
            "hessian_vector",
            [](const Scores& self, const Scores& direction, bool in_log_space) {
                if (!self.fits(direction))
                    throw std::invalid_argument("the direction must have the shape of the scores");
                return filled_parts(self, [&](const PartNumbers& parts) {
                    self.hessian_vector(direction, in_log_space, parts);
                });
            },
            "direction"_a, slow)
        .def("entropy", &entropy_of<Scores>, slow)
        .def("decode", &decode_of<Scores>)
        .def("k_best", &k_best_of<Scores>, "k"_a)
        .def_prop_ro("n_uniforms", &n_uniforms<Scores>)
        .def("sample", &sample_of<Scores>, "uniforms"_a);
}

}  // namespace crfkit
