#include "lattice_tagger.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include "lattice.hpp"
#include "lattice_data.hpp"
#include "lattice_scorer.hpp"
#include "log_chain.hpp"
#include "threads.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kSequencesPerTask = 16;

// A lattice as a chain over the labels that occur in it, for the questions that have no lattice form.
struct UnionChain {
    std::vector<std::int32_t> labels;  // [U] ascending
    std::vector<double> states, arcs;
    ChainView view;

    UnionChain(const UnionChain&) = delete;
    UnionChain(const Lattice& lattice, const ArcScores& arc_scores, const Bigrams& bigrams,
               const std::vector<double>& scores)
        : labels(lattice.labels) {
        std::sort(labels.begin(), labels.end());
        labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
        const std::size_t U = labels.size();
        states.assign(static_cast<std::size_t>(lattice.n_sites()) * U, kNever);
        for (std::int64_t t = 0; t < lattice.n_sites(); ++t)
            for (std::int64_t j = lattice.site_ptr[t]; j < lattice.site_ptr[t + 1]; ++j)
                states[static_cast<std::size_t>(t) * U + place(lattice.labels[j])] = scores[j];
        arcs.assign(U * U, bigrams.soft ? 0.0 : kNever);
        for (std::size_t a = 0; a < U; ++a)
            for (std::size_t b = 0; b < U; ++b)
                if (const std::int32_t number = bigrams.find(labels[a], labels[b]); number >= 0)
                    arcs[a * U + b] = arc_scores.scores[number];
        view = {lattice.n_sites(), static_cast<std::int32_t>(U), states.data(), arcs.data(), false};
    }
    std::size_t place(std::int32_t label) const {
        return static_cast<std::size_t>(std::lower_bound(labels.begin(), labels.end(), label) -
                                        labels.begin());
    }
};

}  // namespace

// One sequence, scored.
struct LatticeTagger::Room {
    const LatticeData& data;
    const LatticeScorer<double>& scorer;
    Lattice lattice;
    std::vector<double> scores;
    std::int64_t first_site, n_sites;

    void load(const Design& design, std::int64_t n) {
        first_site = design.sequence_ptr[n];
        n_sites = design.sequence_ptr[n + 1] - first_site;
        lattice.build(data.bigrams, data.candidates, first_site, first_site + n_sites);
        scorer.score(n, scores);
    }
    // Only what the annotation admits is left.
    void close(const Annotation& evidence) {
        for (std::int64_t t = 0; t < n_sites; ++t)
            for (std::int64_t j = lattice.site_ptr[t]; j < lattice.site_ptr[t + 1]; ++j)
                if (!evidence.possible(first_site + t, lattice.labels[j])) scores[j] = kNever;
    }
    UnionChain plain() const { return UnionChain(lattice, scorer.arcs, data.bigrams, scores); }
};

// Calls function(n, room) for every sequence that is not empty, with its scores loaded.
template <class Function>
void LatticeTagger::each_sequence(const Design& design, int n_threads, const Function& function) const {
    const LatticeData data(layout_, design, n_threads);
    LatticeScorer<double> scorer(layout_, design, data);
    scorer.set(w_);
    const std::int64_t n = design.n_sequences(), n_tasks = (n + kSequencesPerTask - 1) / kSequencesPerTask;
    std::vector<std::unique_ptr<Room>> rooms(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        if (!rooms[worker]) rooms[worker].reset(new Room{data, scorer, {}, {}, 0, 0});
        for (std::int64_t i = task * kSequencesPerTask; i < std::min(n, (task + 1) * kSequencesPerTask);
             ++i) {
            if (design.sequence_ptr[i] == design.sequence_ptr[i + 1]) continue;
            rooms[worker]->load(design, i);
            function(i, *rooms[worker]);
        }
    });
}

void LatticeTagger::best(const Design& design, std::int32_t* labels, int n_threads) const {
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        room.lattice.best(room.scorer.arcs, room.scores, labels + room.first_site);
    });
}

void LatticeTagger::marginals(const Design& design, double* out, int n_threads) const {
    const std::int64_t L = layout_.n_labels;
    std::fill(out, out + design.n_sites() * L, 0.0);
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        room.lattice.marginals(room.scorer.arcs, room.scores);
        for (std::int64_t t = 0; t < room.n_sites; ++t)
            for (std::int64_t j = room.lattice.site_ptr[t]; j < room.lattice.site_ptr[t + 1]; ++j)
                out[(room.first_site + t) * L + room.lattice.labels[j]] = room.lattice.node_probs[j];
    });
}

void LatticeTagger::log_partitions(const Design& design, const Annotation* evidence, double* out,
                                   int n_threads) const {
    std::fill(out, out + design.n_sequences(), 0.0);
    each_sequence(design, n_threads, [&](std::int64_t n, Room& room) {
        if (evidence) room.close(*evidence);
        out[n] = room.lattice.log_partition(room.scorer.arcs, room.scores);
    });
}

std::vector<std::vector<ScoredLabels>> LatticeTagger::k_best(const Design& design, std::int64_t k,
                                                             int n_threads) const {
    std::vector<std::vector<ScoredLabels>> out(static_cast<std::size_t>(design.n_sequences()),
                                               {ScoredLabels{0, {}}});
    each_sequence(design, n_threads, [&](std::int64_t n, Room& room) {
        const UnionChain chain = room.plain();
        out[n] = crfkit::k_best(chain.view, k);
        for (ScoredLabels& path : out[n])
            for (std::int32_t& label : path.labels) label = chain.labels[label];
    });
    return out;
}

void LatticeTagger::sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                           int n_threads) const {
    each_sequence(design, n_threads, [&](std::int64_t, Room& room) {
        const UnionChain chain = room.plain();
        std::int32_t* out = labels + n * room.first_site;
        crfkit::sample(chain.view, n, uniforms + n * room.first_site, out);
        for (std::int64_t i = 0; i < n * room.n_sites; ++i) out[i] = chain.labels[out[i]];
    });
}

}  // namespace crfkit
