// Passes of the vector kernels over whole vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "kernels/vectors.hpp"

namespace crfkit {

struct VectorPass {
    std::int64_t n;       // elements of the vectors
    std::int64_t n_sums;  // that the kernel adds up
    int n_threads;
    bool backward = false;  // from the last block to the first
};

// Runs a vector kernel over fixed blocks of the vectors and returns its sums, always added up from the first
// block to the last: the number of threads changes no bit of a result.
template <class Kernel, class... Given>
std::vector<double> over_blocks(const VectorPass& pass, Kernel kernel, const Given&... given) {
    constexpr std::int64_t size = 4096;  // so that many threads end at about the same time
    const std::int64_t n_blocks = (pass.n + size - 1) / size;
    std::vector<double> parts(static_cast<std::size_t>(n_blocks * pass.n_sums));
    parallel_for(n_blocks, pass.n_threads, [&](std::int64_t task, int) {
        const std::int64_t block = pass.backward ? n_blocks - 1 - task : task, first = block * size;
        kernel(given..., first, std::min(size, pass.n - first), parts.data() + block * pass.n_sums);
    });
    std::vector<double> sums(static_cast<std::size_t>(pass.n_sums));
    for (auto part = parts.begin(); part != parts.end(); part += pass.n_sums)
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[static_cast<std::ptrdiff_t>(i)];
    return sums;
}

}  // namespace crfkit
