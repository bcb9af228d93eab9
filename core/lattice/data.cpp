#include "lattice/data.hpp"

#include <algorithm>

#include "base/threads.hpp"
#include "data/blocks.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kPositionsPerTask = 1024;
constexpr BlockSizes kNodes{1 << 12, 1 << 15, 1 << 19};  // of a block: their residuals stay in the cache
constexpr std::int64_t kFacetResiduals = 1 << 20;        // numbers by position and facet in a block

}  // namespace

ActiveIds node_weights(const Layout& layout, const Design& design, const Candidates& candidates,
                       int n_threads) {
    const ActiveIds& features = design.features;
    const std::int64_t n_positions = design.n_positions(),
                       n_tasks = (n_positions + kPositionsPerTask - 1) / kPositionsPerTask;
    ActiveIds out;
    out.ptr.assign(candidates.n_nodes() + 1, 0);
    // Calls found(node, p, i) for every weight p of every node, i being the place of the feature.
    const auto each = [&](const auto& found) {
        parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
            for (std::int64_t t = task * kPositionsPerTask;
                 t < std::min(n_positions, (task + 1) * kPositionsPerTask); ++t)
                for (std::int64_t i = features.ptr[t]; i < features.ptr[t + 1]; ++i) {
                    const std::int64_t node = candidates.position_ptr[t];
                    const std::int32_t* labels = candidates.labels.data() + node;
                    const std::int64_t n = candidates.position_ptr[t + 1] - node;
                    const auto hit = [&](std::int64_t k, std::int64_t p) { found(node + k, p, i); };
                    each_weight(layout, features.ids[i], labels, n, hit);
                }
        });
    };
    each([&](std::int64_t node, std::int64_t, std::int64_t) { ++out.ptr[node + 1]; });
    for (std::int64_t node = 0; node < candidates.n_nodes(); ++node) out.ptr[node + 1] += out.ptr[node];
    const bool valued = features.values.size() > 0;
    out.ids.resize(out.ptr[candidates.n_nodes()]);
    if (valued) out.values.resize(out.ids.size());
    std::vector<std::int64_t> next(out.ptr.begin(), out.ptr.end());
    each([&](std::int64_t node, std::int64_t p, std::int64_t i) {
        const std::int64_t place = next[node]++;
        out.ids[place] = static_cast<std::int32_t>(p);
        if (valued) out.values[place] = features.values[i];
    });
    return out;
}

LatticeData::LatticeData(const Layout& layout, const ArcModel& arcs, const Design& design, int n_threads,
                         bool listed)
    : model(arcs),
      candidates(find_candidates(arcs.bigrams, design, n_threads)),
      weights(layout.facets.empty() && listed ? node_weights(layout, design, candidates, n_threads)
                                              : ActiveIds{}) {}

std::vector<LatticeBlock> cut_into_blocks(const Layout& layout, const Design& design, const LatticeData& data,
                                          BlockUse use, int n_threads) {
    const auto node_of = [&](std::int64_t n) { return data.candidates.position_ptr[design.sequence_ptr[n]]; };
    const bool by_facet = !layout.facets.empty();
    const std::int64_t most_positions =
        by_facet ? std::max<std::int64_t>(1, kFacetResiduals / layout.facets.n) : design.n_positions();
    const std::int64_t most_nodes = kNodes.size(node_of(design.n_sequences()), use);
    std::vector<LatticeBlock> blocks;
    for (std::int64_t first = 0, last = 0; first < design.n_sequences(); first = last) {
        while (
            last < design.n_sequences() &&
            (last == first || (node_of(last + 1) - node_of(first) <= most_nodes &&
                               design.sequence_ptr[last + 1] - design.sequence_ptr[first] <= most_positions)))
            ++last;
        blocks.push_back({node_of(first),
                          node_of(last),
                          design.sequence_ptr[first],
                          design.sequence_ptr[last],
                          first,
                          last,
                          {},
                          {}});
    }
    parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads, [&](std::int64_t i, int) {
        LatticeBlock& block = blocks[i];
        std::vector<std::int32_t> scratch(
            by_facet ? static_cast<std::size_t>(layout.n_features()) : layout.pair_labels.size(), 0);
        block.lists = by_facet ? invert(design.features, block.first_position, block.last_position, scratch)
                               : invert(data.weights, block.first_node, block.last_node, scratch);
    });
    cut_ranges(blocks, &LatticeBlock::lists,
               by_facet ? layout.n_features() : static_cast<std::int64_t>(layout.pair_labels.size()),
               &LatticeBlock::ranges);
    return blocks;
}

}  // namespace crfkit
