#include "lattice/function_lattices.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/threads.hpp"
#include "data/blocks.hpp"
#include "lattice/lattice_loss.hpp"
#include "training/objective.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kMostBuffers = 16;
constexpr std::int64_t kBufferNumbers = 1 << 24;  // in all buffers together
constexpr std::int64_t kWeightsPerTask = 1 << 14;

}  // namespace

Lattices::Lattices(std::shared_ptr<const Layout> model, std::shared_ptr<const Design> data,
                   std::span<const std::uint8_t> starts, std::span<const std::uint8_t> ends, int n_threads)
    : layout(std::move(model)),
      design(std::move(data)),
      bigrams(existing_bigrams(*layout)),
      starts_(starts.begin(), starts.end()),
      ends_(ends.begin(), ends.end()) {
    design->check_layout(*layout);
    if (starts_.size() != static_cast<std::size_t>(layout->n_labels) ||
        ends_.size() != static_cast<std::size_t>(layout->n_labels))
        throw std::invalid_argument("starts and ends must have one entry for each label");
    candidates = find_candidates(bigrams, *design, n_threads);
    arc_ptr.assign(static_cast<std::size_t>(n_sequences()) + 1, 0);
    std::vector<Lattice> rooms(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_sequences(), n_threads, [&](std::int64_t n, int worker) {
        if (design->sequence_ptr[n] == design->sequence_ptr[n + 1]) return;
        Lattice& lattice = rooms[worker];
        build(n, lattice);
        std::int64_t& count = arc_ptr[n + 1];
        count = lattice.arc.size() - std::count(lattice.arc.begin(), lattice.arc.end(), -1);
        for (std::int64_t j = 0; j < lattice.position_ptr[1]; ++j) count += starts_[lattice.labels[j]] != 0;
        for (std::int64_t j = lattice.position_ptr[lattice.n_positions() - 1]; j < lattice.n_nodes(); ++j)
            count += ends_[lattice.labels[j]] != 0;
    });
    std::partial_sum(arc_ptr.begin(), arc_ptr.end(), arc_ptr.begin());
}

void Lattices::build(std::int64_t n, Lattice& lattice) const {
    lattice.build(bigrams, candidates, design->sequence_ptr[n], design->sequence_ptr[n + 1]);
    std::int32_t number = 0;
    for (std::int32_t& arc : lattice.arc)
        if (arc >= 0) arc = number++;
}

std::int64_t Lattices::n_starts(const Lattice& lattice) const {
    return std::count_if(lattice.labels.begin(), lattice.labels.begin() + lattice.position_ptr[1],
                         [&](std::int32_t label) { return starts_[label] != 0; });
}

ArcList Lattices::arcs(int n_threads) const {
    ArcList out;
    for (auto* list : {&out.before, &out.after, &out.position})
        list->resize(static_cast<std::size_t>(n_arcs()));
    std::vector<Lattice> rooms(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_sequences(), n_threads, [&](std::int64_t n, int worker) {
        if (design->sequence_ptr[n] == design->sequence_ptr[n + 1]) return;
        Lattice& lattice = rooms[worker];
        build(n, lattice);
        const auto set = [&](std::int64_t k, std::int32_t before, std::int32_t after, std::int64_t position) {
            out.before[arc_ptr[n] + k] = before;
            out.after[arc_ptr[n] + k] = after;
            out.position[arc_ptr[n] + k] = static_cast<std::int32_t>(position);
        };
        const std::int64_t first = n_starts(lattice), T = lattice.n_positions();
        each_boundary_arc(n, lattice, [&](std::int64_t k, std::int64_t j) {
            if (k < first)
                set(k, bigrams.n_labels, lattice.labels[j], 0);
            else
                set(k, lattice.labels[j], bigrams.n_labels, T);
        });
        for (std::int64_t t = 1; t < T; ++t)
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j)
                for (std::int64_t e = lattice.in_ptr[j]; e < lattice.in_ptr[j + 1]; ++e)
                    if (lattice.arc[e] >= 0)
                        set(first + lattice.arc[e], lattice.labels[lattice.from[e]], lattice.labels[j], t);
    });
    return out;
}

void Lattices::check(const ActiveFeatures& active, std::int64_t n_weights) const {
    if (active.n_parts != (active.on_arcs ? n_arcs() : candidates.n_nodes()))
        throw std::invalid_argument("active: there must be as many parts as the lattices have");
    if (active.first_weight > n_weights - active.n_weights)
        throw std::invalid_argument("active: it names weights beyond the last one");
}

void Lattices::score(const std::vector<ActiveFeatures>& active, const double* w, std::int64_t n,
                     const Lattice& lattice, std::vector<double>& nodes, std::vector<double>& arcs) const {
    const std::int64_t first_node = candidates.position_ptr[design->sequence_ptr[n]];
    const std::int64_t first_arc = arc_ptr[n], n_arcs = arc_ptr[n + 1] - first_arc;
    nodes.assign(lattice.labels.size(), 0.0);
    arcs.assign(static_cast<std::size_t>(n_arcs), 0.0);
    for (const ActiveFeatures& block : active) {
        if (block.on_arcs)
            block.score(first_arc, n_arcs, w, arcs.data());
        else
            block.score(first_node, lattice.n_nodes(), w, nodes.data());
    }
    std::int64_t n_ends = 0;
    const std::int64_t first = n_starts(lattice);
    each_boundary_arc(n, lattice, [&](std::int64_t k, std::int64_t j) {
        nodes[j] += arcs[k];
        n_ends += k >= first;
    });
    arcs.resize(static_cast<std::size_t>(n_arcs - n_ends));  // only those between labels are left
    arcs.erase(arcs.begin(), arcs.begin() + first);
}

FunctionObjective::FunctionObjective(std::shared_ptr<const Lattices> lattices, Annotation gold, int n_threads)
    : lattices_(std::move(lattices)), gold_(std::move(gold)) {
    const Design& design = *lattices_->design;
    check_annotation(*lattices_->layout, design, gold_);
    if (static_cast<std::int64_t>(gold_.weights.size()) != design.n_sequences())
        throw std::invalid_argument("there must be one weight for each sequence");
    check_possible(lattices_->bigrams, design, &gold_, n_threads);
}

double FunctionObjective::evaluate(const std::vector<ActiveFeatures>& active, const double* w,
                                   const double* v, std::int64_t n_weights, double* out,
                                   int n_threads) const {
    for (const ActiveFeatures& block : active) lattices_->check(block, n_weights);
    Residuals residuals;
    const double value = differentiate(active, w, v, residuals, n_threads);
    gather(active, residuals, n_weights, out, n_threads);
    return value;
}

// First half, sequence by sequence: scores → value and residuals of all parts.
double FunctionObjective::differentiate(const std::vector<ActiveFeatures>& active, const double* w,
                                        const double* v, Residuals& residuals, int n_threads) const {
    const Lattices& lattices = *lattices_;
    const auto& ptr = lattices.design->sequence_ptr;
    struct Room {
        ScoredLattice scored;
        std::vector<double> node_direction, arc_direction;
    };
    std::vector<Room> rooms(static_cast<std::size_t>(std::max(n_threads, 1)));
    std::vector<double> losses(static_cast<std::size_t>(lattices.n_sequences()), 0.0);
    residuals.nodes.assign(static_cast<std::size_t>(lattices.candidates.n_nodes()), 0.0);
    residuals.arcs.assign(static_cast<std::size_t>(lattices.n_arcs()), 0.0);
    parallel_for(lattices.n_sequences(), n_threads, [&](std::int64_t n, int worker) {
        if (ptr[n] == ptr[n + 1]) return;
        auto& [scored, node_direction, arc_direction] = rooms[worker];
        Lattice& lattice = scored.lattice;
        lattices.build(n, lattice);
        lattices.score(active, w, n, lattice, scored.nodes, scored.own_arcs.scores);
        scored.own_arcs.exponentiate(lattices.bigrams.soft);
        if (v) lattices.score(active, v, n, lattice, node_direction, arc_direction);
        const LatticeDirection direction{node_direction, arc_direction};
        double* nodes = residuals.nodes.data() + lattices.candidates.position_ptr[ptr[n]];
        double* arcs = residuals.arcs.data() + lattices.arc_ptr[n];
        losses[n] = lattice_loss<double>(lattice, scored.engine, scored.own_arcs, scored.nodes,
                                         v ? &direction : nullptr, gold_, ptr[n], gold_.weights[n],
                                         {nodes, arcs + lattices.n_starts(lattice)});
        lattices.each_boundary_arc(n, lattice, [&](std::int64_t k, std::int64_t j) { arcs[k] = nodes[j]; });
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

// Second half: Φᵀ residuals, in a few buffers of D numbers each. How many there are, and what each of them
// sums, depends on the data alone.
void FunctionObjective::gather(const std::vector<ActiveFeatures>& active, const Residuals& residuals,
                               std::int64_t n_weights, double* out, int n_threads) const {
    const Lattices& lattices = *lattices_;
    std::int64_t n_entries = 0;
    for (const ActiveFeatures& block : active) n_entries += block.n_entries();
    const std::int64_t worth = std::min(kBufferNumbers, n_entries) / std::max<std::int64_t>(n_weights, 1);
    const auto chunks = cut_evenly(*lattices.design, 0, lattices.n_sequences(),
                                   std::clamp<std::int64_t>(worth, 1, kMostBuffers));
    const auto n_chunks = static_cast<std::int64_t>(chunks.size()) - 1;
    const auto sum = [&](std::int64_t chunk, double* to) {
        const std::int64_t first = chunks[chunk], last = chunks[chunk + 1];
        const auto node = [&](std::int64_t n) {
            return lattices.candidates.position_ptr[lattices.design->sequence_ptr[n]];
        };
        for (const ActiveFeatures& block : active) {
            const std::int64_t begin = block.on_arcs ? lattices.arc_ptr[first] : node(first);
            const std::int64_t end = block.on_arcs ? lattices.arc_ptr[last] : node(last);
            const auto& of_parts = block.on_arcs ? residuals.arcs : residuals.nodes;
            block.add(begin, end - begin, of_parts.data() + begin, to);
        }
    };
    if (n_chunks < 2) {
        if (n_chunks == 1) sum(0, out);
        return;
    }
    std::vector<std::vector<double>> buffers(static_cast<std::size_t>(n_chunks));
    parallel_for(n_chunks, n_threads, [&](std::int64_t chunk, int) {
        buffers[chunk].assign(static_cast<std::size_t>(n_weights), 0.0);
        sum(chunk, buffers[chunk].data());
    });
    parallel_for((n_weights + kWeightsPerTask - 1) / kWeightsPerTask, n_threads, [&](std::int64_t task, int) {
        const std::int64_t begin = task * kWeightsPerTask;
        const std::int64_t end = std::min(n_weights, begin + kWeightsPerTask);
        for (const auto& buffer : buffers)
            for (std::int64_t d = begin; d < end; ++d) out[d] += buffer[d];
    });
}

ActiveSource::ActiveSource(const Lattices& lattices, std::vector<ActiveFeatures> active,
                           std::span<const double> w)
    : lattices_(lattices), active_(std::move(active)), w_(w.data()) {
    for (const ActiveFeatures& block : active_) lattices.check(block, static_cast<std::int64_t>(w.size()));
}

void ActiveSource::load(std::int64_t n, ScoredLattice& room) const {
    lattices_.build(n, room.lattice);
    lattices_.score(active_, w_, n, room.lattice, room.nodes, room.own_arcs.scores);
    room.own_arcs.exponentiate(lattices_.bigrams.soft);
    room.arcs = &room.own_arcs;
}

}  // namespace crfkit
