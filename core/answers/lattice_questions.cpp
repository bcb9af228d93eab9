#include "answers/lattice_questions.hpp"

#include <algorithm>
#include <memory>

#include "base/threads.hpp"

namespace crfkit {
namespace {

// Calls function(n, first position, room) for every sequence that is not empty.
template <class Function>
void each_sequence(const LatticeSource& source, int n_threads, const Function& function) {
    const auto ptr = source.sequence_ptr();
    const auto n = static_cast<std::int64_t>(ptr.size()) - 1;
    std::vector<std::unique_ptr<ScoredLattice>> rooms(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n, n_threads, [&](std::int64_t i, int worker) {
        if (ptr[i] == ptr[i + 1]) return;
        if (!rooms[worker]) rooms[worker] = std::make_unique<ScoredLattice>();
        source.load(i, *rooms[worker]);
        function(i, ptr[i], *rooms[worker]);
    });
}

}  // namespace

void best(const LatticeSource& source, std::int32_t* labels, int n_threads) {
    each_sequence(source, n_threads, [&](std::int64_t, std::int64_t first, ScoredLattice& room) {
        room.decode(labels + first);
    });
}

void marginals(const LatticeSource& source, double* out, int n_threads) {
    const std::int64_t L = source.n_labels();
    std::fill(out, out + source.sequence_ptr().back() * L, 0.0);
    each_sequence(source, n_threads, [&](std::int64_t, std::int64_t first, ScoredLattice& room) {
        const Lattice& lattice = room.lattice;
        room.engine.marginals(room.graph());
        for (std::int64_t t = 0; t < lattice.n_positions(); ++t)
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j)
                out[(first + t) * L + lattice.labels[j]] = room.engine.node_probs[j];
    });
}

void log_partitions(const LatticeSource& source, const Annotation* allowed, double* out, int n_threads) {
    std::fill(out, out + source.sequence_ptr().size() - 1, 0.0);
    each_sequence(source, n_threads, [&](std::int64_t n, std::int64_t first, ScoredLattice& room) {
        if (allowed) room.lattice.close(*allowed, first, room.nodes);
        out[n] = room.engine.log_partition(room.graph());
    });
}

std::vector<std::vector<ScoredLabels>> k_best(const LatticeSource& source, std::int64_t k, int n_threads) {
    std::vector<std::vector<ScoredLabels>> out(source.sequence_ptr().size() - 1, {ScoredLabels{0, {}}});
    each_sequence(source, n_threads, [&](std::int64_t n, std::int64_t, ScoredLattice& room) {
        out[n] = k_best(room.lattice, *room.arcs, room.nodes, k);
    });
    return out;
}

void sample(const LatticeSource& source, std::int64_t n, const double* uniforms, std::int32_t* labels,
            int n_threads) {
    each_sequence(source, n_threads, [&](std::int64_t, std::int64_t first, ScoredLattice& room) {
        room.engine.log_partition(room.graph());
        const std::int64_t T = room.lattice.n_positions();
        room.engine.sample(room.graph(), n, uniforms + n * first,
                           [&](std::int64_t i, std::int64_t t, std::int64_t node, std::int64_t) {
                               if (t < T) labels[n * first + i * T + t] = room.lattice.labels[node];
                           });
    });
}

}  // namespace crfkit
