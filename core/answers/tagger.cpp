#include "answers/tagger.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "chain/viterbi.hpp"
#include "data/candidates.hpp"

namespace crfkit {

// One sequence, scored: what the questions below start from.
struct Tagger::Room {
    const Scorer<double>& scorer;
    Workspace<double> work;
    std::int64_t first_position, n_positions;
    bool own_arcs, safe;

    // Scores sequence n. `safe`: the scaled kernels are exact for it.
    void load(const Tagger& tagger, const Design& design, std::int64_t n) {
        const WeightTables<double>& tables = tagger.dense().tables;
        const std::int32_t stride = tables.stride;
        first_position = design.sequence_ptr[n];
        n_positions = design.sequence_ptr[n + 1] - first_position;
        work.reserve(n_positions, stride, false);
        scorer.score(n, work.scores.data());
        close_labels(design.allowed, first_position, n_positions, tagger.layout_->n_labels, stride,
                     work.scores.data());
        own_arcs = design.arcs.ptr.size() > 0;
        safe = tables.arc_spread <= WeightTables<double>::kSafeSpread;
        work.position_arcs.clear();
        if (own_arcs)
            safe &= prepare_own_arcs<double>(scorer, nullptr, tagger.layout_->n_labels, first_position,
                                             n_positions, work);
    }
    PlainChain plain(const Tagger& tagger) const {
        const WeightTables<double>& tables = tagger.dense().tables;
        return PlainChain(work.scores.data(), tables.arcs, work.own_scores, work.position_arcs, n_positions,
                          tagger.layout_->n_labels, tables.stride);
    }
    // log Z, and P(y_t) in work.probs. False when scaled messages are not exact for this sequence.
    bool sum_product(const Tagger& tagger, double& log_partition) {
        const auto& [tables, arcs, some_arcs_missing] = tagger.dense();
        if (!safe) return false;
        std::copy(work.scores.begin(), work.scores.begin() + n_positions * tables.stride,
                  work.states.begin());
        const Messages<double> messages = work.messages(work.probs.data(), 1);
        log_partition = tables.kernels.sum_product(arcs.table, own_arcs ? work.position_arcs.data() : nullptr,
                                                   n_positions, messages);
        return !some_arcs_missing ||
               (log_partition > -INFINITY &&
                messages_are_exact(messages, n_positions, tagger.layout_->n_labels, tables.stride));
    }
};

Tagger::Dense::Dense(const Layout& layout, const double* w)
    : tables(layout, WeightTables<double>::kNever),
      some_arcs_missing(layout.bigrams && !layout.bigrams->soft) {
    tables.set(w, 1);
    arcs.set(tables, layout.n_labels, nullptr);
    arcs.table.some_missing = some_arcs_missing;
}

Tagger::Tagger(std::shared_ptr<const Layout> layout, const double* w)
    : layout_(std::move(layout)), w_(w, w + layout_->n_weights()), lattices_(*layout_, w_.data()) {}

const Tagger::Dense& Tagger::dense() const {
    once_.run([&] { dense_ = std::make_unique<const Dense>(*layout_, w_.data()); });
    return *dense_;
}

// Refuses a design of another layout, and sequences that have no label sequence.
void Tagger::check(const Design& design, int n_threads) const {
    design.check_layout(*layout_);
    if (!design.as_lattices && !design.as_batches && (layout_->bigrams || !design.allowed.empty()))
        check_possible(existing_bigrams(*layout_), design, nullptr, n_threads);
}

// Calls function(n, room) for every sequence that is not empty, with its scores loaded.
template <class Function>
void Tagger::each_sequence(const Design& design, int n_threads, Function function) const {
    constexpr std::int64_t per_task = 16;
    const Scorer<double> scorer(*layout_, design, dense().tables);
    const std::int64_t n = design.n_sequences(), n_tasks = (n + per_task - 1) / per_task;
    std::vector<std::unique_ptr<Room>> rooms(
        static_cast<std::size_t>(std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(1, n_tasks))));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        const FlushSubnormals flush;
        if (!rooms[worker]) rooms[worker].reset(new Room{scorer, {}, 0, 0, false, false});
        Pace pace;
        for (std::int64_t i = task * per_task; i < std::min(n, (task + 1) * per_task); ++i) {
            if (design.sequence_ptr[i] == design.sequence_ptr[i + 1]) continue;
            rooms[worker]->load(*this, design, i);
            pace.work(4 * rooms[worker]->n_positions * layout_->n_labels * layout_->n_labels);
            function(i, *rooms[worker]);
        }
    });
}

void Tagger::best(const Design& design, std::int32_t* labels, int n_threads) const {
    check(design, n_threads);
    if (design.as_lattices || design.as_batches) return lattices_.best(design, labels, n_threads);
    const WeightTables<double>& tables = dense().tables;
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        std::vector<const double*> own;
        if (room.own_arcs) own = room.work.arc_scores(room.n_positions, tables.arcs.size());
        best_labels<double>(tables, own, room.n_positions, layout_->n_labels, room.work.scores.data(),
                            room.work.forward.data(), labels + room.first_position);
    });
}

void Tagger::marginals(const Design& design, double* out, int n_threads) const {
    check(design, n_threads);
    if (design.as_lattices || design.as_batches) return lattices_.marginals(design, out, n_threads);
    const std::int64_t S = dense().tables.stride, L = layout_->n_labels;
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        double* rows = out + room.first_position * L;
        double log_partition = 0;
        if (!room.sum_product(*this, log_partition)) {
            log_marginals(room.plain(*this).view, rows, nullptr);
            return;
        }
        require_possible(log_partition);
        for (std::int64_t t = 0; t < room.n_positions; ++t)
            std::copy_n(room.work.probs.data() + t * S, L, rows + t * L);
    });
}

void Tagger::log_partitions(const Design& design, const Annotation* allowed, double* out,
                            int n_threads) const {
    check(design, n_threads);
    if (design.as_lattices || design.as_batches)
        return lattices_.log_partitions(design, allowed, out, n_threads);
    const std::int32_t S = dense().tables.stride;
    std::fill(out, out + design.n_sequences(), 0.0);
    each_sequence(design, n_threads, [&](std::int64_t n, Room& room) {
        if (allowed)
            for (std::int64_t t = 0; t < room.n_positions; ++t)
                allowed->forbidden(room.first_position + t, layout_->n_labels, [&](std::int32_t b) {
                    room.work.scores[t * S + b] = WeightTables<double>::kNever;
                });
        if (!room.sum_product(*this, out[n])) out[n] = LogForward(room.plain(*this).view).log_partition;
    });
}

std::vector<std::vector<ScoredLabels>> Tagger::k_best(const Design& design, std::int64_t k,
                                                      int n_threads) const {
    check(design, n_threads);
    if (design.as_lattices || design.as_batches) return lattices_.k_best(design, k, n_threads);
    std::vector<std::vector<ScoredLabels>> out(static_cast<std::size_t>(design.n_sequences()),
                                               {ScoredLabels{0, {}}});
    each_sequence(design, n_threads,
                  [&](std::int64_t n, Room& room) { out[n] = crfkit::k_best(room.plain(*this).view, k); });
    return out;
}

void Tagger::scores(const Design& design, std::int64_t n, double* states, double* arcs) const {
    design.check_layout(*layout_);
    if (!layout_->facets.empty()) throw std::invalid_argument("the labels have facets");
    if (n < 0 || n >= design.n_sequences()) throw std::invalid_argument("there is no such sequence");
    const WeightTables<double>& tables = dense().tables;
    const std::int64_t first = design.sequence_ptr[n], n_positions = design.sequence_ptr[n + 1] - first;
    const std::int64_t S = tables.stride, L = layout_->n_labels;
    const Scorer<double> scorer(*layout_, design, tables);
    Buffer<double> rows(n_positions * S), table(L * S);
    scorer.score(n, rows.data());
    for (std::int64_t t = 0; t < n_positions; ++t) std::copy_n(rows.data() + t * S, L, states + t * L);
    const auto copy = [&](const double* from, double* to) {
        for (std::int64_t a = 0; a < L; ++a) std::copy_n(from + a * S, L, to + a * L);
    };
    if (!by_position(design)) return copy(tables.arcs.data(), arcs);
    for (std::int64_t t = 1; t < n_positions; ++t) {
        scorer.score_arcs(first + t, table.data());
        copy(table.data(), arcs + (t - 1) * L * L);
    }
}

void Tagger::sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                    int n_threads) const {
    check(design, n_threads);
    if (design.as_lattices || design.as_batches)
        return lattices_.sample(design, n, uniforms, labels, n_threads);
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        crfkit::sample(room.plain(*this).view, n, uniforms + n * room.first_position,
                       labels + n * room.first_position);
    });
}

}  // namespace crfkit
