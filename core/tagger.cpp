#include "tagger.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "threads.hpp"

namespace crfkit {

// One sequence, scored: what the questions below start from.
struct Tagger::Room {
    const Scorer<double>& scorer;
    Workspace<double> work;
    std::int64_t first_site, n_sites;
    bool own_arcs, safe;

    // Scores sequence n. `safe`: the scaled kernels are exact for it.
    void load(const Tagger& tagger, const Design& design, std::int64_t n) {
        const std::int32_t stride = tagger.tables_.stride;
        first_site = design.sequence_ptr[n];
        n_sites = design.sequence_ptr[n + 1] - first_site;
        work.reserve(n_sites, stride, false);
        scorer.score(n, work.scores.data());
        own_arcs = design.arcs.ptr.size() > 0;
        safe = tagger.tables_.arc_spread <= WeightTables<double>::kSafeSpread;
        work.site_arcs.clear();
        if (own_arcs)
            safe &= prepare_own_arcs<double>(scorer, nullptr, tagger.layout_->n_labels, first_site, n_sites,
                                             work);
    }
    PlainChain plain(const Tagger& tagger) const {
        return PlainChain(work.scores.data(), tagger.tables_.arcs, work.own_scores, work.site_arcs, n_sites,
                          tagger.layout_->n_labels, tagger.tables_.stride);
    }
    // The arc scores [L, S] into each site (null: the shared ones).
    std::vector<const double*> arc_scores(std::int64_t size) const {
        std::vector<const double*> tables(static_cast<std::size_t>(n_sites), nullptr);
        const double* own = work.own_scores.data();
        for (std::int64_t t = 1; t < n_sites; ++t)
            if (work.site_arcs[t].weight) {
                tables[t] = own;
                own += size;
            }
        return tables;
    }
    double sum_product(const Tagger& tagger) {
        std::copy(work.scores.begin(), work.scores.begin() + n_sites * tagger.tables_.stride,
                  work.states.begin());
        return tagger.tables_.kernels.sum_product(tagger.arcs_.table,
                                                  own_arcs ? work.site_arcs.data() : nullptr, n_sites,
                                                  work.messages(work.probs.data(), 1));
    }
};

Tagger::Tagger(std::shared_ptr<const Layout> layout, const double* w)
    : layout_(std::move(layout)), tables_(*layout_, WeightTables<double>::kNever) {
    tables_.set(w, 1);
    arcs_.set(tables_, layout_->n_labels, nullptr);
}

// Calls function(n, room) for every sequence that is not empty, with its scores loaded.
template <class Function>
void Tagger::each_sequence(const Design& design, int n_threads, Function function) const {
    constexpr std::int64_t per_task = 16;
    design.check_layout(*layout_);
    const Scorer<double> scorer(*layout_, design, tables_);
    const std::int64_t n = design.n_sequences(), n_tasks = (n + per_task - 1) / per_task;
    std::vector<std::unique_ptr<Room>> rooms(
        static_cast<std::size_t>(std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(1, n_tasks))));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        const FlushSubnormals flush;
        if (!rooms[worker]) rooms[worker].reset(new Room{scorer, {}, 0, 0, false, false});
        for (std::int64_t i = task * per_task; i < std::min(n, (task + 1) * per_task); ++i) {
            if (design.sequence_ptr[i] == design.sequence_ptr[i + 1]) continue;
            rooms[worker]->load(*this, design, i);
            function(i, *rooms[worker]);
        }
    });
}

void Tagger::best(const Design& design, std::int32_t* labels, int n_threads) const {
    const std::int64_t S = tables_.stride, L = layout_->n_labels;
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        std::vector<const double*> own;
        if (room.own_arcs) own = room.arc_scores(L * S);
        double* messages = room.work.forward.data();
        tables_.kernels.max_sum(tables_.arcs.data(), own.empty() ? nullptr : own.data(), room.n_sites,
                                layout_->n_labels, tables_.stride, room.work.scores.data(), messages);
        std::int32_t* out = labels + room.first_site;
        const double* row = messages + (room.n_sites - 1) * S;
        std::int64_t label = std::max_element(row, row + L) - row;
        out[room.n_sites - 1] = static_cast<std::int32_t>(label);
        for (std::int64_t t = room.n_sites - 1; t > 0; --t) {  // which label before gave the best?
            const double* arcs = (own.empty() || !own[t] ? tables_.arcs.data() : own[t]) + label;
            row = messages + (t - 1) * S;
            label = 0;
            for (std::int64_t a = 1; a < L; ++a)
                if (row[a] + arcs[a * S] > row[label] + arcs[label * S]) label = a;
            out[t - 1] = static_cast<std::int32_t>(label);
        }
    });
}

void Tagger::marginals(const Design& design, double* out, int n_threads) const {
    const std::int64_t S = tables_.stride, L = layout_->n_labels;
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        double* rows = out + room.first_site * L;
        if (!room.safe) {
            log_marginals(room.plain(*this).view, rows, nullptr);
            return;
        }
        if (!(room.sum_product(*this) > -INFINITY))
            throw std::invalid_argument("no labelling is possible: every one has a part with score −inf");
        for (std::int64_t t = 0; t < room.n_sites; ++t)
            std::copy_n(room.work.probs.data() + t * S, L, rows + t * L);
    });
}

void Tagger::log_partitions(const Design& design, const Annotation* evidence, double* out,
                            int n_threads) const {
    std::fill(out, out + design.n_sequences(), 0.0);
    each_sequence(design, n_threads, [&](std::int64_t n, Room& room) {
        if (evidence)
            for (std::int64_t t = 0; t < room.n_sites; ++t)
                evidence->forbidden(room.first_site + t, layout_->n_labels, [&](std::int32_t b) {
                    room.work.scores[t * tables_.stride + b] = WeightTables<double>::kNever;
                });
        out[n] = room.safe ? room.sum_product(*this) : LogForward(room.plain(*this).view).log_partition;
    });
}

std::vector<std::vector<ScoredLabels>> Tagger::k_best(const Design& design, std::int64_t k,
                                                      int n_threads) const {
    std::vector<std::vector<ScoredLabels>> out(static_cast<std::size_t>(design.n_sequences()),
                                               {ScoredLabels{0, {}}});
    each_sequence(design, n_threads,
                  [&](std::int64_t n, Room& room) { out[n] = crfkit::k_best(room.plain(*this).view, k); });
    return out;
}

void Tagger::sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                    int n_threads) const {
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        crfkit::sample(room.plain(*this).view, n, uniforms + n * room.first_site,
                       labels + n * room.first_site);
    });
}

}  // namespace crfkit
