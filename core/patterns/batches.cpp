#include "patterns/batches.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace crfkit {
namespace {

constexpr std::int64_t kArcBytes = 128 << 20;  // of sums over arcs, one list for each chunk

// A node that the labels of a sequence lead to: the arc into it that is scored, and where it came from.
struct Place {
    std::int32_t node;
    std::int64_t arc;
    std::size_t before;  // among the places of the level before
};

// Calls function(arc, node) for every arc from a node of a step to one after it with this label.
template <class Function>
void each_way(const StepTable& table, const Step& step, std::int32_t node, std::int32_t label,
              const Function& function) {
    const auto each_out = [&](std::int32_t from, const auto& visit) {
        const std::int32_t* ptr = table.out_ptr.data() + step.first_out + from;
        for (std::int32_t k = ptr[0]; k < ptr[1]; ++k) {
            const std::int64_t arc = step.first_arc + table.out_arc[step.first_arc + k];
            visit(arc, table.destination[arc]);
        }
    };
    const auto arrive = [&](std::int64_t arc, std::int32_t to) {
        const std::int32_t after = to - step.n_sources();
        if (table.labels(step.after)[after] == label) function(arc, after);
    };
    each_out(node, [&](std::int64_t arc, std::int32_t to) {
        if (to >= step.n_sources())
            arrive(arc, to);
        else
            each_out(to,
                     [&](std::int64_t next, std::int32_t end) { arrive(step.silent_out ? arc : next, end); });
    });
}

}  // namespace

PatternBatches::PatternBatches(const Trellises& trellises, const Annotation& gold,
                               const std::vector<Block>& blocks)
    : gold_arcs_(static_cast<std::size_t>(trellises.table.n_arcs()), 0.0) {
    const Design& design = *trellises.design;
    for (const Block& block : blocks) {
        std::vector<std::int32_t> members;
        for (std::int64_t n = block.first_sequence; n < block.last_sequence; ++n) {
            if (design.sequence_ptr[n] == design.sequence_ptr[n + 1]) continue;
            members.push_back(static_cast<std::int32_t>(n));
            if (gold.complete(design.sequence_ptr[n], design.sequence_ptr[n + 1]))
                add_gold(trellises, gold, n);
        }
        std::stable_sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
            return trellises.trellis_of[a] < trellises.trellis_of[b];
        });
        for (std::size_t i = 0; i < members.size(); ++i) {
            const bool full =
                static_cast<std::int64_t>(sequences_.size()) - batch_ptr_.back() == kMostSequences;
            if (i > 0 && (full || trellises.trellis_of[members[i]] != trellises.trellis_of[members[i - 1]]))
                batch_ptr_.push_back(static_cast<std::int64_t>(sequences_.size()));
            sequences_.push_back(members[i]);
        }
        if (!members.empty()) batch_ptr_.push_back(static_cast<std::int64_t>(sequences_.size()));
        block_ptr_.push_back(static_cast<std::int64_t>(batch_ptr_.size()) - 1);
    }
    // Sums over arcs, one list for each chunk, are to cost little beside what is summed.
    std::int64_t n_summed = 0;
    for (std::size_t i = 0; i + 1 < batch_ptr_.size(); ++i)
        for (const std::int32_t step : trellises.steps_of_sequence(sequences_[batch_ptr_[i]]))
            n_summed += trellises.table.steps[step].n_arcs;
    const std::int64_t n_arcs = std::max<std::int64_t>(1, trellises.table.n_arcs());
    n_chunks_ = std::clamp<std::int64_t>(std::min(n_summed / (4 * n_arcs), kArcBytes / (8 * n_arcs)), 1, 16);
}

// Each label sequence is one path. Read from the left, several nodes may still be on it, but never two arcs
// lead to one of them.
void PatternBatches::add_gold(const Trellises& trellises, const Annotation& gold, std::int64_t n) {
    const StepTable& table = trellises.table;
    const auto steps = trellises.steps_of_sequence(n);
    const std::int64_t first = trellises.design->sequence_ptr[n];
    std::vector<std::vector<Place>> places{{{0, -1, 0}}};
    for (std::size_t t = 0; t < steps.size(); ++t) {
        const std::int32_t label =
            t + 1 < steps.size() ? gold.labels[first + static_cast<std::int64_t>(t)] : -1;
        std::vector<Place> reached;
        for (std::size_t i = 0; i < places.back().size(); ++i)
            each_way(table, table.steps[steps[t]], places.back()[i].node, label,
                     [&](std::int64_t arc, std::int32_t node) { reached.push_back({node, arc, i}); });
        places.push_back(std::move(reached));
    }
    if (places.back().size() != 1)
        throw std::invalid_argument("sequence " + std::to_string(n) + ": its labels do not exist");
    std::size_t at = 0;
    for (std::size_t t = places.size() - 1; t > 0; --t) {
        gold_arcs_[places[t][at].arc] += gold.weights[n];
        at = places[t][at].before;
    }
}

}  // namespace crfkit
