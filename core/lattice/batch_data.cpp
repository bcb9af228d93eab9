#include "lattice/batch_data.hpp"

#include <algorithm>
#include <numeric>

#include "base/threads.hpp"
#include "data/blocks.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kPositionsPerBlock = 4096;
constexpr std::int64_t kTermsPerTask = 1 << 9;

}  // namespace

std::vector<BatchBlock> cut_into_batches(const Layout& layout, const Design& design, int n_threads) {
    std::vector<BatchBlock> blocks;
    const auto& ptr = design.sequence_ptr;
    for (std::int64_t first = 0, last = 0; first < design.n_sequences(); first = last) {
        while (last < design.n_sequences() &&
               (last == first || ptr[last + 1] - ptr[first] <= kPositionsPerBlock))
            ++last;
        BatchBlock block{ptr[first], ptr[last], {}, first, last, {}, {}};
        block.sequences.resize(static_cast<std::size_t>(last - first));
        std::iota(block.sequences.begin(), block.sequences.end(), static_cast<std::int32_t>(first));
        std::stable_sort(block.sequences.begin(), block.sequences.end(), [&](std::int32_t a, std::int32_t b) {
            return ptr[a + 1] - ptr[a] > ptr[b + 1] - ptr[b];
        });
        blocks.push_back(std::move(block));
    }
    parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads, [&](std::int64_t i, int) {
        BatchBlock& block = blocks[i];
        std::vector<std::int32_t> scratch(static_cast<std::size_t>(layout.n_features()), 0);
        block.features = invert(design.features, block.first_position, block.last_position, scratch);
        block.tasks = cut_lists(block.features, kTermsPerTask);
    });
    return blocks;
}

}  // namespace crfkit
