#include "kernels/vectors.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kBlock = 16384;

enum class Order { forward, backward };

// Runs work(first, count, sums) over all blocks of n elements, with n_sums zeros for each; then adds these
// up, always from the first block to the last.
template <class Work>
std::vector<double> over_blocks(std::int64_t n, std::int64_t n_sums, int n_threads, const Work& work,
                                Order order = Order::forward) {
    const std::int64_t n_blocks = (n + kBlock - 1) / kBlock;
    std::vector<double> parts(static_cast<std::size_t>(n_blocks * n_sums));
    parallel_for(n_blocks, n_threads, [&](std::int64_t task, int) {
        const std::int64_t block = order == Order::forward ? task : n_blocks - 1 - task,
                           first = block * kBlock;
        work(first, std::min(kBlock, n - first), parts.data() + block * n_sums);
    });
    std::vector<double> sums(static_cast<std::size_t>(n_sums));
    for (std::size_t i = 0; i < parts.size(); ++i) sums[i % sums.size()] += parts[i];
    return sums;
}

}  // namespace

std::vector<double> products(const double* a, const double* b, std::int64_t n, int n_threads) {
    const auto kernel = vector_kernels().products;
    return over_blocks(n, 2, n_threads, [&](std::int64_t first, std::int64_t count, double* sums) {
        kernel(a, b, first, count, sums);
    });
}

void step(const double* x, const double* direction, double t, std::int64_t n, double* out, int n_threads) {
    const auto kernel = vector_kernels().step;
    over_blocks(n, 0, n_threads, [&](std::int64_t first, std::int64_t count, double*) {
        kernel(x, direction, t, first, count, out);
    });
}

double penalty(const double* x, Strengths l1, std::int64_t n, int n_threads) {
    const auto kernel = vector_kernels().penalty;
    return over_blocks(n, 1, n_threads, [&](std::int64_t first, std::int64_t count, double* sums) {
        kernel(x, l1, first, count, sums);
    })[0];
}

double pseudo_gradient(const double* x, const double* g, Strengths l1, std::int64_t n, double* out,
                       int n_threads) {
    const auto kernel = vector_kernels().pseudo_gradient;
    return over_blocks(n, 1, n_threads, [&](std::int64_t first, std::int64_t count, double* sums) {
        kernel(x, g, l1, first, count, out, sums);
    })[0];
}

std::vector<double> orthant_step(const OrthantPath& path, double t, std::int64_t n, double* out,
                                 int n_threads) {
    const auto kernel = vector_kernels().orthant_step;
    return over_blocks(n, 2, n_threads, [&](std::int64_t first, std::int64_t count, double* sums) {
        kernel(path, t, first, count, out, sums);
    });
}

std::vector<double> write_pair(const PairRows& pairs, std::int64_t s_row, const PairSource& source,
                               int n_threads) {
    const auto kernel = vector_kernels().write_pair;
    return over_blocks(source.columns.n, 2 * pairs.n_rows + 1, n_threads,
                       [&](std::int64_t first, std::int64_t count, double* sums) {
                           kernel(pairs, s_row, source, first, count, sums);
                       });
}

std::vector<double> row_products(const PairRows& pairs, const double* v, int n_threads) {
    const auto kernel = vector_kernels().row_products;
    const auto work = [&](std::int64_t first, std::int64_t count, double* sums) {
        kernel(pairs, v, first, count, sums);
    };
    const std::vector<double> twice = over_blocks(pairs.n_columns, 2 * pairs.n_rows, n_threads, work);
    std::vector<double> once(static_cast<std::size_t>(pairs.n_rows));
    for (std::size_t row = 0; row < once.size(); ++row) once[row] = twice[2 * row];
    return once;
}

std::vector<double> gram(const PairRows& pairs, std::int64_t n_columns, int n_threads) {
    const auto kernel = vector_kernels().gram;
    return over_blocks(
        n_columns, pairs.n_rows * pairs.n_rows, n_threads,
        [&](std::int64_t first, std::int64_t count, double* sums) { kernel(pairs, first, count, sums); });
}

// Backward, because the rows that write_pair has read last are still in the cache.
double combine(const PairRows& pairs, const Combination& combination, double* out, int n_threads) {
    const auto kernel = vector_kernels().combine;
    return over_blocks(
        combination.columns.n, 1, n_threads,
        [&](std::int64_t first, std::int64_t count, double* sums) {
            kernel(pairs, combination, first, count, out, sums);
        },
        Order::backward)[0];
}

}  // namespace crfkit
