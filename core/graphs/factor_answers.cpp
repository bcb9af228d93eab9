#include "graphs/factor_answers.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/interruption.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

// Calls answer(sums, shape, scores, n) for every graph; where it gives false, no assignment is possible.
template <class Answer>
void each_graph(const FactorSource& source, const double* w, int n_threads, const Answer& answer) {
    const FactorData& data = source.data;
    struct Work {
        std::unique_ptr<FactorReader> reader;
        std::vector<std::unique_ptr<GraphSums>> sums;  // [shapes]
        std::vector<double> scores;
    };
    std::vector<Work> work(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(data.n_graphs(), n_threads, [&](std::int64_t n, int worker) {
        check_interruption();
        auto& [reader, sums, scores] = work[worker];
        if (!reader) {
            reader = std::make_unique<FactorReader>(data);
            sums.resize(data.known.size());
        }
        std::unique_ptr<GraphSums>& own = sums[data.shapes[n]];
        if (!own) own = source.open_sums(data.shapes[n]);
        reader->load(n);
        scores = reader->shape().fixed;
        reader->add_all_scores(w, scores.data());
        if (!answer(*own, reader->shape(), scores, n))
            throw GraphImpossible("no assignment is possible", n, {});
    });
}

// Where the answers of each graph begin, of which it has size(shape).
template <class Size>
std::vector<std::int64_t> begins(const FactorData& data, const Size& size) {
    std::vector<std::int64_t> ptr{0};
    for (std::int64_t n = 0; n < data.n_graphs(); ++n) ptr.push_back(ptr.back() + size(data.shape(n)));
    return ptr;
}

}  // namespace

std::vector<std::int32_t> decode_graphs(const FactorSource& source, const double* w, int n_threads) {
    const auto ptr = begins(source.data, [](const GraphShape& shape) { return shape.n_variables; });
    std::vector<std::int32_t> out(static_cast<std::size_t>(ptr.back()));
    each_graph(
        source, w, n_threads,
        [&](GraphSums& sums, const GraphShape& shape, const std::vector<double>& scores, std::int64_t n) {
            std::vector<std::int32_t> values(static_cast<std::size_t>(shape.graph.n_variables()));
            if (!std::isfinite(sums.decode(scores.data(), values.data()))) return false;
            std::copy_n(values.begin(), shape.n_variables, out.begin() + ptr[n]);
            return true;
        });
    return out;
}

// The tables of single variables come first, so their marginals are those of the variables.
std::vector<double> graph_marginals(const FactorSource& source, const double* w, int n_threads) {
    const auto ptr =
        begins(source.data, [](const GraphShape& shape) { return shape.graph.value_ptr[shape.n_variables]; });
    std::vector<double> out(static_cast<std::size_t>(ptr.back()));
    each_graph(source, w, n_threads,
               [&](GraphSums& sums, const GraphShape&, const std::vector<double>& scores, std::int64_t n) {
                   std::vector<double> marginals(scores.size());
                   if (!std::isfinite(sums.marginals(scores.data(), marginals.data()))) return false;
                   std::copy_n(marginals.begin(), ptr[n + 1] - ptr[n], out.begin() + ptr[n]);
                   return true;
               });
    return out;
}

}  // namespace crfkit
