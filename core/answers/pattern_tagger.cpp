#include "answers/pattern_tagger.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "chain/workspace.hpp"
#include "data/scorer.hpp"
#include "lattice/arc_model.hpp"

namespace crfkit {

// One sequence, scored: what the questions below start from.
struct PatternTagger::Room {
    std::int64_t first_position, n_positions;
    Buffer<double> rows;         // [T, S]
    std::vector<double> states;  // [T, L]
    TrellisRun run;
};

PatternTagger::PatternTagger(std::shared_ptr<const Layout> layout, std::vector<double> w,
                             std::int64_t first_weight)
    : layout_(std::move(layout)),
      w_(std::move(w)),
      first_weight_(first_weight),
      tables_(*layout_, WeightTables<double>::kNever) {
    if (first_weight < layout_->n_weights() || first_weight > static_cast<std::int64_t>(w_.size()))
        throw std::invalid_argument("the weights of the patterns must follow those of the layout");
    tables_.set(w_.data(), 1);
}

// Calls function(n, room, trellis) for every sequence that is not empty, with its scores loaded.
template <class Function>
void PatternTagger::each_sequence(const Trellises& trellises, bool exponentiated, int n_threads,
                                  const Function& function) const {
    constexpr std::int64_t per_task = 16;
    const Design& design = *trellises.design;
    design.check_layout(*layout_);
    if (trellises.first_weight != first_weight_ ||
        first_weight_ + trellises.book->n_weights > static_cast<std::int64_t>(w_.size()))
        throw std::invalid_argument("the trellises were made for other patterns than the weights");
    StepScores scores;
    scores.score_weights(trellises, ArcModel(*layout_), w_.data());
    if (exponentiated) scores.exponentiate(trellises.table);
    const Scorer<double> scorer(*layout_, design, tables_);
    const std::int64_t n = design.n_sequences(), L = layout_->n_labels, S = tables_.stride;
    std::vector<Room> rooms(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for((n + per_task - 1) / per_task, n_threads, [&](std::int64_t task, int worker) {
        Room& room = rooms[worker];
        for (std::int64_t i = task * per_task; i < std::min(n, (task + 1) * per_task); ++i) {
            room.first_position = design.sequence_ptr[i];
            room.n_positions = design.sequence_ptr[i + 1] - room.first_position;
            if (room.n_positions == 0) continue;
            check_interruption();
            room.rows.resize(room.n_positions * S);
            scorer.score(i, room.rows.data());
            close_labels(design.allowed, room.first_position, room.n_positions, layout_->n_labels,
                         static_cast<std::int32_t>(S), room.rows.data());
            room.states.resize(static_cast<std::size_t>(room.n_positions * L));
            for (std::int64_t t = 0; t < room.n_positions; ++t)
                std::copy_n(room.rows.data() + t * S, L, room.states.data() + t * L);
            const ScoredTrellis trellis{trellises.table, trellises.steps_of_sequence(i), layout_->n_labels,
                                        room.states.data(), scores};
            function(i, room, trellis);
        }
    });
}

void PatternTagger::best(const Trellises& trellises, std::int32_t* labels, int n_threads) const {
    each_sequence(trellises, false, n_threads, [&](std::int64_t, Room& room, const ScoredTrellis& trellis) {
        room.run.best(trellis, labels + room.first_position);
    });
}

void PatternTagger::marginals(const Trellises& trellises, double* out, int n_threads) const {
    const std::int64_t L = layout_->n_labels;
    std::fill(out, out + trellises.design->n_positions() * L, 0.0);
    each_sequence(trellises, true, n_threads, [&](std::int64_t, Room& room, const ScoredTrellis& trellis) {
        room.run.marginals(trellis);
        for (std::int64_t t = 0; t < room.n_positions; ++t) {
            const Step& step = trellis.step(t);
            const auto after = trellis.table.labels(step.after);
            const double* probs = room.run.node_probs.data() + room.run.node_begin[t] + step.n_sources();
            for (std::int32_t j = 0; j < step.n_after; ++j)
                out[(room.first_position + t) * L + after[j]] += probs[j];
        }
    });
}

void PatternTagger::log_partitions(const Trellises& trellises, const Annotation* allowed, double* out,
                                   int n_threads) const {
    std::fill(out, out + trellises.n_sequences(), 0.0);
    const std::int64_t L = layout_->n_labels;
    each_sequence(trellises, true, n_threads, [&](std::int64_t n, Room& room, const ScoredTrellis& trellis) {
        if (allowed)
            for (std::int64_t t = 0; t < room.n_positions; ++t)
                allowed->forbidden(room.first_position + t, layout_->n_labels, [&](std::int32_t b) {
                    room.states[t * L + b] = -std::numeric_limits<double>::infinity();
                });
        out[n] = room.run.log_partition(trellis);
    });
}

std::vector<std::vector<ScoredLabels>> PatternTagger::k_best(const Trellises& trellises, std::int64_t k,
                                                             int n_threads) const {
    std::vector<std::vector<ScoredLabels>> out(static_cast<std::size_t>(trellises.n_sequences()),
                                               {ScoredLabels{0, {}}});
    each_sequence(trellises, false, n_threads, [&](std::int64_t n, Room&, const ScoredTrellis& trellis) {
        out[n] = crfkit::k_best(trellis, k);
    });
    return out;
}

void PatternTagger::sample(const Trellises& trellises, std::int64_t n, const double* uniforms,
                           std::int32_t* labels, int n_threads) const {
    each_sequence(trellises, true, n_threads, [&](std::int64_t, Room& room, const ScoredTrellis& trellis) {
        room.run.log_partition(trellis);
        room.run.sample(trellis, n, uniforms + n * room.first_position, labels + n * room.first_position);
    });
}

}  // namespace crfkit
